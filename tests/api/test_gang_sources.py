"""Gangs that objects of other projects declare, on a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.rig import Rig, pod
from tutti.operator.kopf_lists import CHECK_SECONDS

from .bodies import crd_of

CRD = Path(__file__).parents[1] / "bench" / "e2e" / "coscheduling-crd.yaml"
NAME = "podgroups.scheduling.x-k8s.io"
LABEL = "scheduling.x-k8s.io/pod-group"

RAY = "rayclusters.ray.io"
JOBSET = "jobsets.jobset.x-k8s.io"
RAY_LABELS = {"ray.io/cluster": "gang", "ray.io/node-type": "worker", "ray.io/group": "small"}
JOBSET_LABELS = {
    "jobset.sigs.k8s.io/jobset-name": "gang",
    "jobset.sigs.k8s.io/replicatedjob-name": "workers",
}


def ray_cluster() -> dict[str, Any]:
    """A head and two workers."""
    worker_group = {"groupName": "small", "replicas": 2}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "gang", "namespace": "ml"},
        "spec": {"headGroupSpec": {}, "workerGroupSpecs": [worker_group]},
    }


def jobset() -> dict[str, Any]:
    """Three workers."""
    job = {"name": "workers", "replicas": 1, "template": {"spec": {"parallelism": 3}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "gang", "namespace": "ml"},
        "spec": {"replicatedJobs": [job]},
    }


def foreign_group(name: str, n: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ml"},
        # No node has so much, and no gang waits for it.
        "spec": {"minMember": n, "minResources": {"cpu": "1000"}},
    }


def member(name: str, group: str) -> dict[str, Any]:
    body = pod(name, cpu=1)
    body["metadata"]["labels"] = {LABEL: group}
    return body


def test_scheduler_plugins_pod_groups_start_whole_once_their_crd_is_there() -> None:
    """The CRD comes, goes and comes again while Tutti runs; other pods never wait for it."""
    chosen = {"TUTTI_GANG_SOURCES": NAME}
    with Rig.start(values=[f"settings.gangSources={{{NAME}}}"], environment=chosen) as rig:
        rig.nodes(1, cpu=2, memory="16Gi")
        rig.create(pod("alone", cpu="100m"), member("early-0", "early"))
        rig.until(lambda: "nodeName" in rig.pod("alone")["spec"], "other pods are served")
        rig.until_pod_says("early-0", "PodGroupNotFound")
        rig.delete("pod", "early-0")
        rig.delete("pod", "alone")
        rig.plane.install_crds(CRD)
        rig.create(foreign_group("mpi", 2), member("mpi-0", "mpi"))
        rig.until(
            lambda: "1 of 2 members exist" in rig.pod_says("mpi-0").get("message", ""),
            "it waits",
            2 * CHECK_SECONDS,
        )
        rig.create(member("mpi-1", "mpi"))
        rig.until(lambda: rig.bound() == 2, "the gang starts whole")
        rig.create(
            foreign_group("large", 2), member("large-0", "large"), member("large-1", "large")
        )
        rig.until_pod_says("large-0", "Unschedulable")
        rig.until(lambda: not rig.reservations(), "it is carried out")
        rig.plane.kubectl("delete", "crd", NAME)
        rig.until_pod_says("large-1", "PodGroupNotFound")
        rig.create(pod("late", cpu="0"))
        rig.until(lambda: "nodeName" in rig.pod("late")["spec"], "other pods are served")

        for name in ("mpi-0", "mpi-1", "large-1"):
            rig.delete("pod", name)
        rig.plane.install_crds(CRD)
        rig.create(foreign_group("large", 2))  # one pod of it has waited all the time
        rig.until(
            lambda: "1 of 2 members exist" in rig.pod_says("large-0").get("message", ""),
            "it waits for members",
            2 * CHECK_SECONDS,
        )
        rig.create(member("large-2", "large"))
        rig.until(
            lambda: ["nodeName" in rig.pod(f"large-{i}")["spec"] for i in (0, 2)] == [True, True],
            "the gang starts whole",
        )


@pytest.mark.parametrize(
    ("name", "declared", "labels", "comes_late"),
    [
        (
            RAY,
            ray_cluster(),
            [
                RAY_LABELS | {"ray.io/node-type": "head", "ray.io/group": "headgroup"},
                RAY_LABELS,
                RAY_LABELS,
            ],
            False,
        ),
        (JOBSET, jobset(), [JOBSET_LABELS] * 3, True),
    ],
    ids=["ray", "jobset, its CRD comes late"],
)
def test_gangs_of_owners_start_whole(
    name: str, declared: dict[str, Any], labels: list[dict[str, str]], *, comes_late: bool
) -> None:
    """The object that makes the pods is the gang: no PodGroup is needed."""
    chosen = {"TUTTI_GANG_SOURCES": name}
    values = [f"settings.gangSources={{{name}}}"]
    with Rig.start(operator=comes_late, values=values, environment=chosen) as rig:
        rig.nodes(1, cpu=4, memory="16Gi")
        members = [pod(f"gang-{index}", cpu=1) for index in range(3)]
        for member_pod, own in zip(members, labels, strict=True):
            member_pod["metadata"]["labels"] = own
        if comes_late:
            rig.create(*members[:2])
            rig.until_pod_says("gang-0", "PodGroupNotFound")
        version = declared["apiVersion"].split("/")[1]
        rig.plane.install([crd_of(name, declared["kind"], version)])
        if comes_late:
            rig.create(declared)
        else:
            rig.operator.start()
            rig.create(declared, *members[:2])
        rig.until(
            lambda: rig.pod_says("gang-0").get("reason") == "WaitingForMembers",
            "it waits for members",
            2 * CHECK_SECONDS,
        )
        rig.create(members[2])
        rig.until(lambda: rig.bound() == 3, "the gang starts whole")
