"""What happens in the cluster while faults strike: seven gangs on nodes that they fill to the brim.

Whatever the operator does when, one end can be reached, in which every core and GPU is taken: any
member bound too often, too early or to the wrong node is an over-commit or a gang too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..controlplane.nodes import node_manifest
from ..rig import members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .rest import Rest

NODES = 3  # of four cores and two GPUs: twelve and six
RUN_SECONDS = 0.5
URGENT = "urgent"
WORN = ("worn-0", "worn-1")
REPLACEMENT = "worn-2"

# What an unbroken run starts: pods that are bound or have succeeded, by gang.
STARTED: Mapping[str, int] = {
    "train": 4,
    "graph": 3,
    "short": 2,
    "late": 2,
    "vast": 0,
    "worn": 2,
    "alone": 1,
}


def nodes() -> list[dict[str, Any]]:
    """The nodes of every run."""
    return [
        node_manifest(f"node-{i}", cpu=4, memory="16Gi", gpus=2, labels={"pool": "faults"})
        for i in range(NODES)
    ]


def priority_class() -> dict[str, Any]:
    """What lets one gang go before all others."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": URGENT},
        "value": 1000,
    }


def objects(namespace: str) -> list[dict[str, Any]]:
    """All that waits when the operator starts."""
    urgent = {"priorityClassName": URGENT}
    about: dict[str, Any] = {"namespace": namespace, "cpu": 1}
    groups = [
        pod_group("train", 4, namespace=namespace),  # a plain gang
        pod_group("graph", namespace=namespace, driver=1, worker=2),  # one with roles
        pod_group("short", 2, namespace=namespace),  # finishes by itself, and makes room for ...
        pod_group("late", 2, namespace=namespace),  # ... the one that waits for it
        pod_group("vast", 2, namespace=namespace),  # larger than the cluster
        pod_group("worn", 2, namespace=namespace),  # loses a member and is given another
    ]
    pods = [
        *members("train", 4, gpu=1, **about),
        pod("graph-driver", "graph", role="driver", **about),
        *(pod(f"graph-worker-{i}", "graph", role="worker", **about) for i in range(2)),
        *members("short", 2, gpu=1, spec=urgent, run_seconds=RUN_SECONDS, **about),
        *members("late", 2, gpu=1, **about),
        *members("vast", 2, gpu=4, **about),
        *members("worn", 2, **about),
        pod("alone", **about),  # a gang of one
    ]
    return [*groups, *pods]


class Story:
    """What others do while the operator works: a member is lost, another takes its place."""

    def __init__(self, request: Callable[..., Any], namespace: str) -> None:
        self._request = request
        self._namespace = namespace
        self.is_over = False

    def go_on(self, seen: Rest) -> None:
        """Do the next thing, if it is time."""
        if self.is_over or not all(name in seen.bound for name in WORN):
            return
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        self._request("DELETE", f"{pods}/{WORN[-1]}?gracePeriodSeconds=0")
        self._request("POST", pods, pod(REPLACEMENT, "worn", namespace=self._namespace, cpu=1))
        self.is_over = True
