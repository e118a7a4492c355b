"""The scene with a tree of queues: limits leave less than the nodes, so that only they stop gangs.

There is room for all gangs and more. A gang waits until another of its queue has ended, a member
too many never starts, and a lost member is replaced although its queue is above its limit. While
gangs run, an administrator lowers a limit below use, and moves, drains and deletes queues, and a
tenant makes a PodGroup again with another queue and one more pod.
"""

from __future__ import annotations

from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ...harness.rig import QUEUES, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GPU = "nvidia.com/gpu"
QUEUE_OF: Mapping[str, str] = {
    "train": "train",
    "graph": "plain",
    "short": "rest",
    "late": "rest",
    "vast": "rest",
    "worn": "plain",
    "brief": "gone",
}
MORE_ROOM: Mapping[str, Mapping[str, Any]] = {
    "gpu-more": {"cpu": 8, "gpus": 8},
    "plain-more": {"cpu": 8},
}
# What the status of each queue says in the end; it is written a while after the last binding.
CHARGED: Mapping[str, str] = {
    "queue -top": "cpu 11",
    "queue -lab": f"{GPU} 4",
    "queue -train": f"{GPU} 4",
    "queue -rest": f"{GPU} 2",
    "queue -plain": "cpu 5",
}
GONE = "queue -gone"  # deleted while its gang runs, so that it goes once that has ended
BRIEF = "brief-0"
SURPLUS = "train-more"  # a member that the limit of its queue never lets start
AGAIN = "graph"  # its PodGroup is made again with another queue, and its pods run on


def nodes() -> list[dict[str, Any]]:
    """More nodes than the gangs need."""
    return [
        node_manifest(name, memory="16Gi", labels={"pool": name.partition("-")[0]}, **room)
        for name, room in MORE_ROOM.items()
    ]


def queues(namespace: str) -> list[dict[str, Any]]:
    """The queues of a run, three levels deep; Queues have no namespace, so they are named by it."""
    return [
        _queue(namespace, "top", "", {"cpu": (None, 13)}),
        _queue(namespace, "lab", "top", {GPU: (4, 6)}),
        _queue(namespace, "train", "lab", {GPU: (4, 4)}),
        _queue(namespace, "rest", "lab", {GPU: (None, 2)}),
        _queue(namespace, "plain", "top", {"cpu": (None, 5)}),
        _queue(namespace, "gone", "top", is_held=True),
    ]


def _queue(
    namespace: str,
    name: str,
    parent: str,
    quotas: Mapping[str, tuple[int | None, int]] = MappingProxyType({}),
    *,
    is_held: bool = False,
) -> dict[str, Any]:
    lines = [
        {"name": key, "limit": limit, **({} if guaranteed is None else {"guaranteed": guaranteed})}
        for key, (guaranteed, limit) in quotas.items()
    ]
    ours = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    above = {"parent": f"{namespace}-{parent}"} if parent else {}
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": f"{namespace}-{name}"},
        "spec": {
            "namespaces": ours,
            "resources": lines,
            "stop": "Hold" if is_held else "None",
            **above,
        },
    }


def translated(namespace: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects of the scene in their queues, one member more than a limit lets start, a gang."""
    groups = [*objects, pod_group("brief", 1, namespace=namespace)]
    for group in groups:
        if group["kind"] == "PodGroup":
            name = QUEUE_OF[group["metadata"]["name"]]
            group["spec"]["queue"] = f"{namespace}-{name}"
    more = pod(SURPLUS, "train", namespace=namespace, spec=_in_pool("gpu"), cpu=1, gpu=1)
    brief = pod(BRIEF, "brief", namespace=namespace, spec=_in_pool("plain"), cpu=1)
    return [*queues(namespace), *groups, more, brief]


def _in_pool(pool: str) -> dict[str, Any]:
    return {"nodeSelector": {"pool": pool}}


class Changes:
    """Others change queues and a gang, each time once so many members of gangs have started."""

    def __init__(self, request: Callable[..., Any], namespace: str) -> None:
        self._request = request
        self._namespace = namespace
        self._steps = deque(
            (
                ({"graph": 3, "worn": 2}, self._lower_and_resume),
                ({}, self._make_again),
                ({"train": 4, "late": 2, "brief": 1}, self._move_drain_and_delete),
                ({}, self._end_brief),
            )
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing will be changed any more."""
        return not self._steps

    def retry(self, started: Mapping[str, int]) -> None:
        """Make the next changes, if it is time."""
        if self._steps and self._steps[0][0].items() <= started.items():
            self._steps.popleft()[1]()

    def _lower_and_resume(self) -> None:
        self._change("plain", resources=[{"name": "cpu", "limit": 3}])  # 5 are in use
        self._change("gone", stop="None")

    def _make_again(self) -> None:
        """A tenant tries to leave a queue that is full, for one without a limit of cores."""
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{self._namespace}/podgroups"
        self._request("DELETE", f"{path}/{AGAIN}")
        group = pod_group(AGAIN, namespace=self._namespace, driver=1, worker=2)
        group["spec"]["queue"] = f"{self._namespace}-rest"
        self._request("POST", path, group)
        more = pod(
            f"{AGAIN}-worker-2",
            AGAIN,
            namespace=self._namespace,
            role="worker",
            spec=_in_pool("plain"),
            cpu=1,
        )
        self._request("POST", f"/api/v1/namespaces/{self._namespace}/pods", more)

    def _move_drain_and_delete(self) -> None:
        self._change("rest", parent=f"{self._namespace}-top")
        self._change("train", stop="Drain")
        self._request("DELETE", f"{QUEUES}/{self._namespace}-gone")

    def _end_brief(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods/{BRIEF}/status"
        self._request("PATCH", path, {"status": {"phase": "Succeeded"}})

    def _change(self, name: str, **spec: Any) -> None:
        self._request("PATCH", f"{QUEUES}/{self._namespace}-{name}", {"spec": spec})


def said(request: Callable[..., Any], namespace: str) -> dict[str, str]:
    """What is said of each queue of a run, and the records of starts that stand."""
    lines = {}
    for item in request("GET", QUEUES)["items"]:
        name = item["metadata"]["name"]
        if name.startswith(f"{namespace}-"):
            charged = [
                f"{line['name']} {line.get('charged')} covered {line.get('covered')}"
                for line in item.get("status", {}).get("resources", ())
            ]
            finalizers = item["metadata"].get("finalizers", [])
            lines[f"queue {name.removeprefix(namespace)}"] = f"{charged} {finalizers}"
    path = f"/apis/tutti.dev/v1alpha1/namespaces/{namespace}/reservations"
    for item in request("GET", path)["items"]:
        record = item["spec"].get("queue", {}).get("name", "")
        gang = item["spec"]["podGroup"]["name"]
        lines[f"record of {gang}"] = record.removeprefix(namespace)
    return lines
