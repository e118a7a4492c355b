"""Which components each case needs, and what it checks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...harness.controlplane.pins import chosen_k8s
from . import kubeflow, kubernetes, kueue, lws, ray, volcano
from .ground import ground

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .ground import Ground

_MANAGER = "controller-manager"  # makes pods of Jobs, and collects what lost its owner
# Components, and the checks that share them.
CASES: Mapping[str, tuple[tuple[str, ...], tuple[Callable[[Ground], None], ...]]] = {
    "pod-group-controller": (("pod-group-controller",), (kubeflow.pod_group_status,)),
    "mpi-operator": ((_MANAGER, "mpi-operator"), (kubeflow.mpi_job,)),
    "volcano": ((_MANAGER, "volcano"), (volcano.vcjob, volcano.vcjob_task)),
    "training-operator": ((_MANAGER, "training-operator"), (kubeflow.pytorch_job,)),
    "trainer": ((_MANAGER, "jobset", "trainer"), (kubeflow.jobset, kubeflow.train_job)),
    "kuberay": ((_MANAGER, "kuberay"), (ray.cluster, ray.job_without_cluster)),
    "kuberay-volcano": ((_MANAGER, "kuberay-volcano"), (ray.volcano_job,)),
    "lws": ((_MANAGER, "lws"), (lws.leader_worker_set,)),
    "kueue": ((_MANAGER, "kueue"), (kueue.pod_groups,)),
    "workload-with-job": (
        (_MANAGER, "workload-with-job"),
        (kubernetes.job, kubernetes.plain_job),
    ),
}
# A Job of 1.36 cannot say what its group shall be.
FROM_1_37 = ("workload-with-job",)


def play(name: str) -> str:
    """Play a case; answers how long it took, or raises an AssertionError."""
    if name in FROM_1_37 and chosen_k8s() != "1.37":
        return f"{name}: not on Kubernetes {chosen_k8s()}"
    components, checks = CASES[name]
    began = time.monotonic()
    with ground(components) as stage:
        ready = time.monotonic()
        for check in checks:
            check(stage)
    done = time.monotonic()
    return f"{name}: ready after {ready - began:.1f} s, checked in {done - ready:.1f} s"
