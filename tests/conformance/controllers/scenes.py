"""The scenes of the play: who makes the gangs, and how its job looks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.pins import chosen_k8s
from . import kubeflow, kubernetes, ray
from .cases import FROM_1_37
from .play import Scene, has_condition, play

if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGINS = ("podgroups.scheduling.x-k8s.io",)
_RUN_POLICY: Mapping[bool, Mapping[str, Any]] = {
    is_suspended: {"spec": {"runPolicy": {"suspend": is_suspended}}}
    for is_suspended in (True, False)
}


def _are_ready(number: int) -> Any:
    return lambda job: job.get("status", {}).get("ready", 0) == number


SCENES: Mapping[str, Scene] = {
    "mpi-operator": Scene(
        ("mpi-operator",),
        "kubeflow.org/v2beta1",
        "mpijobs",
        lambda name: [kubeflow.mpi(name, workers=2)],
        kubeflow.LABEL,
        has_condition("Running"),
        PLUGINS,
        suspension=_RUN_POLICY,
    ),
    "workload-with-job": Scene(
        ("workload-with-job",),
        "batch/v1",
        "jobs",
        lambda name: [kubernetes.gang_job(name, pods=3, cpu=2)],
        "job-name",
        _are_ready(3),
        cpus=5,
    ),
    "training-operator": Scene(
        ("training-operator",),
        "kubeflow.org/v1",
        "pytorchjobs",
        lambda name: [kubeflow.pytorch(name, workers=2)],
        kubeflow.LABEL,
        has_condition("Running"),
        PLUGINS,
        suspension=_RUN_POLICY,
    ),
    "trainer": Scene(
        ("jobset", "trainer"),
        "trainer.kubeflow.org/v1alpha1",
        "trainjobs",
        lambda name: [*kubeflow.plain_training(name, nodes=3, cpu=2)],
        kubeflow.LABEL,
        lambda job: any(s.get("ready") for s in job.get("status", {}).get("jobsStatus", [])),
        PLUGINS,
        cpus=5,
    ),
    "jobset": Scene(
        ("jobset", "pod-group-controller"),  # JobSet makes no PodGroup
        "jobset.x-k8s.io/v1alpha2",
        "jobsets",
        lambda name: [*kubeflow.labelled_jobset(name, pods=3, cpu=2)],
        kubeflow.LABEL,
        lambda job: any(
            s.get("ready") for s in job.get("status", {}).get("replicatedJobsStatus", [])
        ),
        PLUGINS,
        cpus=5,
    ),
    "kuberay": Scene(
        ("kuberay",),
        "ray.io/v1",
        "rayclusters",
        lambda name: [ray.ray_cluster(name, workers=2)],
        ray.LABEL,
        has_condition("RayClusterProvisioned"),
        PLUGINS,
        scheduler="scheduler-plugins-scheduler",
    ),
}


def act(name: str) -> str:
    """Play a scene; answers how long it took, or raises an AssertionError."""
    if name in FROM_1_37 and chosen_k8s() != "1.37":
        return f"{name}: not on Kubernetes {chosen_k8s()}"
    began = time.monotonic()
    play(SCENES[name])
    return f"{name}: with Tutti in {time.monotonic() - began:.1f} s"
