"""The scene with a tree of queues: limits leave less than the nodes, so that only they stop gangs.

There is room for all gangs and more. A gang waits until another of its queue has ended, a member
too many never starts, and a lost member is replaced although its queue is at its limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ...harness.rig import pod

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GPU = "nvidia.com/gpu"
QUEUES = "/apis/tutti.dev/v1alpha1/queues"
QUEUE_OF: Mapping[str, str] = {
    "train": "train",
    "graph": "plain",
    "short": "rest",
    "late": "rest",
    "vast": "rest",
    "worn": "plain",
}
MORE_ROOM: Mapping[str, Mapping[str, Any]] = {
    "gpu-more": {"cpu": 8, "gpus": 8},
    "plain-more": {"cpu": 8},
}
# What the status of each queue says in the end; it is written a while after the last binding.
CHARGED: Mapping[str, str] = {
    "queue -top": "cpu 11",
    "queue -lab": f"{GPU} 6",
    "queue -train": f"{GPU} 4",
    "queue -rest": f"{GPU} 2",
    "queue -plain": "cpu 5",
}
SURPLUS = "train-more"  # a member that the limit of its queue never lets start


def nodes() -> list[dict[str, Any]]:
    """More nodes than the gangs need."""
    return [
        node_manifest(name, memory="16Gi", labels={"pool": name.partition("-")[0]}, **room)
        for name, room in MORE_ROOM.items()
    ]


def queues(namespace: str) -> list[dict[str, Any]]:
    """The queues of a run, three levels deep; Queues have no namespace, so they are named by it."""
    return [
        _queue(namespace, "top", "", cpu=(None, 13)),
        _queue(namespace, "lab", "top", **{GPU: (4, 6)}),
        _queue(namespace, "train", "lab", **{GPU: (4, 4)}),
        _queue(namespace, "rest", "lab", **{GPU: (None, 2)}),
        _queue(namespace, "plain", "top", cpu=(None, 5)),
    ]


def _queue(
    namespace: str, name: str, parent: str, **quotas: tuple[int | None, int]
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
        "spec": {"namespaces": ours, "resources": lines, **above},
    }


def translated(namespace: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects of the scene in their queues, and one member more than a limit lets start."""
    for each in objects:
        if each["kind"] == "PodGroup":
            name = QUEUE_OF[each["metadata"]["name"]]
            each["spec"]["queue"] = f"{namespace}-{name}"
    spec = {"nodeSelector": {"pool": "gpu"}}
    more = pod(SURPLUS, "train", namespace=namespace, spec=spec, cpu=1, gpu=1)
    return [*queues(namespace), *objects, more]


def said(request: Callable[..., Any], namespace: str) -> dict[str, str]:
    """What is said of each queue of a run, and the records of starts that stand."""
    lines = {}
    for each in request("GET", QUEUES)["items"]:
        name = each["metadata"]["name"]
        if name.startswith(f"{namespace}-"):
            charged = [
                f"{line['name']} {line.get('charged')} covered {line.get('covered')}"
                for line in each.get("status", {}).get("resources", ())
            ]
            finalizers = each["metadata"].get("finalizers", [])
            lines[f"queue {name.removeprefix(namespace)}"] = f"{charged} {finalizers}"
    path = f"/apis/tutti.dev/v1alpha1/namespaces/{namespace}/reservations"
    for each in request("GET", path)["items"]:
        record = each["spec"].get("queue", {}).get("name", "")
        gang = each["spec"]["podGroup"]["name"]
        lines[f"record of {gang}"] = record.removeprefix(namespace)
    return lines


def remove(request: Callable[..., Any], namespace: str) -> None:
    """Delete the queues of a run, which no operator would let go any more."""
    for each in request("GET", QUEUES)["items"]:
        name = each["metadata"]["name"]
        if name.startswith(f"{namespace}-"):
            request("PATCH", f"{QUEUES}/{name}", {"metadata": {"finalizers": None}})
            request("DELETE", f"{QUEUES}/{name}")
