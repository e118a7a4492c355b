"""The scene with domains of the network: racks that have no room beside racks that have some.

One gang loses a node and is repaired in its rack, one grows until its rack is full and shrinks,
two are in segments, and one fits in no rack. All the time other racks have room, which no member
may use.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ...harness.rig import members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .rest import Rest

BLOCK, RACK, INDEX = "example.com/block", "example.com/rack", "index"
RACKS: Mapping[str, tuple[int, int]] = {  # nodes and the cores of each; the pool is the first part
    "ring-1": (3, 2),
    "ring-2": (3, 1),
    "mesh-1": (2, 2),
    "mesh-2": (2, 1),
    "pipe-1": (1, 3),
    "pipe-2": (1, 2),
    "pipe-3": (1, 1),
    "stage-1": (1, 2),
    "stage-2": (1, 2),
    "stage-3": (1, 1),
}
# What an unbroken run starts; ``wide`` has room in two racks only.
STARTED: Mapping[str, int] = {"ring": 4, "mesh": 4, "pipe": 5, "stage": 4, "wide": 0}
VARYING = "ring"  # which of its members are lost depends on their nodes
FIRST: Mapping[str, int] = {**STARTED, "mesh": 3, "wide": 7}  # pods when the operator starts
RULES: Mapping[str, Mapping[str, Any]] = {
    "ring": {"required": RACK},
    "mesh": {"required": RACK},
    "pipe": {"required": BLOCK, "segments": {"size": 2, "level": RACK}},
    "stage": {"segments": {"size": 2, "level": RACK, "indexLabel": INDEX}},
    "wide": {"required": RACK},
}


def nodes() -> list[dict[str, Any]]:
    """The nodes of the racks."""
    return [
        node_manifest(
            f"{rack}-{i}",
            memory="16Gi",
            labels={"pool": rack.partition("-")[0], BLOCK: rack.partition("-")[0], RACK: rack},
            cpu=cpu,
        )
        for rack, (n, cpu) in RACKS.items()
        for i in range(n)
    ]


def topology() -> dict[str, Any]:
    """The levels."""
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "network"},
        "spec": {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}]},
    }


def restore(request: Callable[..., Any]) -> None:
    """Create the nodes again that an earlier run has lost."""
    there = {item["metadata"]["name"] for item in request("GET", "/api/v1/nodes")["items"]}
    for node in nodes():
        if node["metadata"]["name"] not in there:
            request("POST", "/api/v1/nodes", node)


def objects(namespace: str) -> list[dict[str, Any]]:
    """All that waits when the operator starts."""
    return [*_groups(namespace), *_pods(namespace)]


def _groups(namespace: str) -> Iterator[dict[str, Any]]:
    for name, rule in RULES.items():
        group = pod_group(name, FIRST[name], namespace=namespace)
        group["spec"]["topology"] = rule
        yield group


def _pods(namespace: str) -> Iterator[dict[str, Any]]:
    for name, number in FIRST.items():
        for one in members(name, number, **_about(namespace, name)):
            yield _indexed(one)


def _about(namespace: str, gang: str) -> dict[str, Any]:
    pool = "ring" if gang == "wide" else gang
    return {"namespace": namespace, "spec": {"nodeSelector": {"pool": pool}}, "cpu": 1}


def _indexed(one: dict[str, Any], index: str = "") -> dict[str, Any]:
    """The pod with its index, the number in its name if not said."""
    one["metadata"]["labels"][INDEX] = index or one["metadata"]["name"].rpartition("-")[2]
    return one


def _is_whole(gang: str) -> Callable[[Rest], bool]:
    return lambda rest: rest.started[gang] == FIRST[gang]


class Story:
    """What others do: a node and members are lost and made again, a gang grows and shrinks."""

    def __init__(self, request: Callable[..., Any], namespace: str) -> None:
        self._request = request
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._steps: list[tuple[Callable[[Rest], bool], Callable[[], None]]] = [
            (_is_whole("ring"), self._lose_a_node),
            (_is_whole("pipe"), lambda: self._replace("pipe-0", "pipe-5")),
            (_is_whole("stage"), lambda: self._replace("stage-3", "stage-4", index="3")),
            (_is_whole("mesh"), lambda: self._make("mesh-3")),
            (lambda rest: "mesh-3" in rest.bound, lambda: self._make("mesh-4")),
            (lambda rest: bool(rest.said.get("mesh-4")), lambda: self._end("mesh-0")),
        ]

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return not self._steps

    def retry(self, rest: Rest) -> None:
        """Do what is due, each thing once."""
        for step in [step for step in self._steps if step[0](rest)]:
            self._steps.remove(step)
            step[1]()

    def _lose_a_node(self) -> None:
        """The node with most members of ``ring`` goes, and they are made again."""
        pods = self._request("GET", self._pods)["items"]
        ring = {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["metadata"]["name"].startswith("ring-")
        }
        ((lost, _),) = Counter(ring.values()).most_common(1)
        self._request("DELETE", f"/api/v1/nodes/{lost}")
        members_lost = sorted(name for name, node in ring.items() if node == lost)
        for number, name in enumerate(members_lost, FIRST["ring"]):
            self._replace(name, f"ring-{number}")

    def _replace(self, name: str, by: str, *, index: str = "") -> None:
        self._end(name)
        self._make(by, index=index)

    def _end(self, name: str) -> None:
        self._request("DELETE", f"{self._pods}/{name}?gracePeriodSeconds=0")

    def _make(self, name: str, *, index: str = "") -> None:
        gang = name.partition("-")[0]
        made = pod(name, gang, **_about(self._namespace, gang))
        self._request("POST", self._pods, _indexed(made, index))
