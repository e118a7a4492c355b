"""What happens in the cluster while faults strike: seven gangs on nodes that they fill to the brim.

Whatever the operator does when, it can reach one end only, in which every core and GPU is taken:
any member bound too often, too early or to the wrong node is an over-commit or a gang too few.
That is why each kind of node holds members of one size: no order of events leaves an odd gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ...harness.rig import GROUP_LABEL, members, pod, pod_group
from . import foreign, handed, queued

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .rest import Rest

POOLS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "gpu": (3, {"cpu": 2, "gpus": 2}),
    "plain": (2, {"cpu": 3}),
}  # room for six and for six
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
        node_manifest(f"{pool}-{i}", memory="16Gi", labels={"pool": pool}, **room)
        for pool, (n, room) in POOLS.items()
        for i in range(n)
    ]


def priority_class() -> dict[str, Any]:
    """What lets one gang go before all others."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": URGENT},
        "value": 1000,
    }


def objects(
    namespace: str,
    *,
    is_foreign: bool = False,
    is_queued: bool = False,
    is_handed: bool = False,
) -> list[dict[str, Any]]:
    """All that waits when the operator starts.

    ``is_foreign`` lets others than Tutti declare it, ``is_queued`` puts it into queues,
    ``is_handed`` lets kube-scheduler bind most of it.
    """
    plain: dict[str, Any] = {"namespace": namespace, "spec": _in_pool("plain"), "cpu": 1}
    gpu: dict[str, Any] = {"namespace": namespace, "spec": _in_pool("gpu"), "cpu": 1, "gpu": 1}
    urgent = {**gpu, "spec": {**_in_pool("gpu"), "priorityClassName": URGENT}}
    groups = [
        pod_group("train", 4, namespace=namespace),  # a plain gang
        pod_group("graph", namespace=namespace, driver=1, worker=2),  # one with roles
        pod_group("short", 2, namespace=namespace),  # finishes by itself, and makes room for ...
        pod_group("late", 2, namespace=namespace),  # ... the one that waits for it
        pod_group("vast", 2, namespace=namespace),  # larger than the cluster
        pod_group("worn", 2, namespace=namespace),  # loses a member and is given another
    ]
    pods = [
        *members("train", 4, **gpu),
        pod("graph-driver", "graph", role="driver", **plain),
        *(pod(f"graph-worker-{i}", "graph", role="worker", **plain) for i in range(2)),
        *members("short", 2, run_seconds=RUN_SECONDS, **urgent),
        *members("late", 2, **gpu),
        *members("vast", 2, **{**gpu, "gpu": 4}),
        *members("worn", 2, **plain),
        pod("alone", **plain),  # a gang of one
    ]
    if is_foreign:
        classes = {
            one["metadata"]["labels"][GROUP_LABEL]: one["spec"]["priorityClassName"]
            for one in pods
            if "priorityClassName" in one["spec"]
        }
        return [foreign.translated(one, classes) for one in (*groups, *pods)]
    if is_handed:
        return [handed.translated(one) for one in (*groups, *pods)]
    return queued.translated(namespace, [*groups, *pods]) if is_queued else [*groups, *pods]


def _in_pool(pool: str) -> dict[str, Any]:
    return {"nodeSelector": {"pool": pool}}


class Story:
    """What others do while the operator works: a member is lost, another takes its place.

    Where there are queues, others change them, and a gang.
    """

    def __init__(
        self,
        request: Callable[..., Any],
        namespace: str,
        *,
        is_foreign: bool = False,
        is_queued: bool = False,
        is_handed: bool = False,
    ) -> None:
        self._request = request
        self._namespace = namespace
        self._is_foreign = is_foreign
        self._is_handed = is_handed
        self._changes = queued.Changes(request, namespace) if is_queued else None
        self._is_replaced = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self._is_replaced and (self._changes is None or self._changes.is_over)

    def retry(self, rest: Rest) -> None:
        """Do the next thing, if it is time."""
        if self._changes is not None:
            self._changes.retry(rest.started)
        if self._is_replaced or not all(name in rest.bound for name in WORN):
            return
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        self._request("DELETE", f"{pods}/{WORN[-1]}?gracePeriodSeconds=0")
        about: dict[str, Any] = {"namespace": self._namespace, "spec": _in_pool("plain"), "cpu": 1}
        replacement = pod(REPLACEMENT, "worn", **about)
        if self._is_foreign:
            replacement = foreign.member(replacement)
        if self._is_handed:
            replacement = handed.translated(replacement)
        self._request("POST", pods, replacement)
        self._is_replaced = True
