"""How large the gangs are on a cluster that is not the demo's own: by what its nodes have free.

Pure. The story needs a first gang that fits, and one that fits only without the first; members
ask for CPU alone, and stay on a few nodes, so that a large cluster hardly notices.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.harness.controlplane.nodes import RUN_SECONDS

from tutti.kube.codec import quantity

from .cluster import DemoError, Manifest
from .stage import amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CPU = "cpu"
HOSTNAME = "kubernetes.io/hostname"
ROLE = "tutti.dev/role"
MOST_NODES = 4
FEWEST_SLOTS = 8  # below this, the gangs of the story cannot differ
SLOTS_PER_NODE = 3
LEAST_MILLIS = 10  # of CPU, for a member
MARGIN = 0.8  # of the free CPU is planned with: other people's pods come and go
FOR_EVER = 3600
# What the strictest pod security standard asks for, so that every namespace takes the pods.
SAFE_POD = {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
SAFE_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True)
class Room:
    """A node that members may use, and what it has; CPU in thousandths."""

    name: str
    hostname: str
    kind: str
    allocatable: int
    free: int
    free_pods: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The gangs' sizes: workers per gang, and what each member asks for."""

    nodes: tuple[Room, ...]
    millis: int
    workers: Mapping[str, int]
    too_large_millis: int
    run_seconds: int
    image: str
    scheduler: str

    @property
    def most_millis(self) -> int:
        """The most CPU that is asked for at one time."""
        largest = max(self.workers["training"], self.workers["next"])
        return self.millis * (largest + self.workers["roles"] + 1)


def room_of(node: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> Room | None:
    """What a node has for us; None where members could not, or should not, run."""
    status, labels = node["status"], node["metadata"].get("labels", {})
    conditions = status.get("conditions", [])
    is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    if not is_ready or node["spec"].get("taints") or node["spec"].get("unschedulable"):
        return None
    if HOSTNAME not in labels:
        return None
    allocatable = quantity.offered(CPU, status["allocatable"][CPU])
    return Room(
        name=node["metadata"]["name"],
        hostname=labels[HOSTNAME],
        kind=labels.get("node.kubernetes.io/instance-type", "node"),
        allocatable=allocatable,
        free=allocatable - sum(amount(pod, CPU) for pod in pods),
        free_pods=quantity.offered("pods", status["allocatable"]["pods"]) - len(pods),
    )


def chosen(rooms: Iterable[Room], largest: int, **about: Any) -> Sizes:
    """The nodes with most free CPU, and gangs to fit; ``largest`` is the largest node of all.

    Raises:
        DemoError: there is too little room for the story.
    """
    best = sorted(rooms, key=lambda room: (-room.free, room.name))[:MOST_NODES]
    # One small node among large ones would make members so small that they are many.
    best = [room for room in best if 2 * room.free >= best[0].free and room.free > 0]
    each = max(SLOTS_PER_NODE, -(-FEWEST_SLOTS // max(len(best), 1)))
    millis = int(MARGIN * min((room.free for room in best), default=0)) // each
    if millis < LEAST_MILLIS:
        raise DemoError("no ready, untainted node of this cluster has enough free CPU")
    slots = sum(min(room.free // millis, room.free_pods) for room in best)
    if slots < FEWEST_SLOTS:
        raise DemoError("the nodes of this cluster have too little room for more pods")
    roles = 2
    rest = slots - roles - 1
    training = rest * 2 // 3
    workers = {
        "training": training,
        "roles": roles,
        "too-large": 2,
        "next": max(rest // 2, rest - training + 1),
    }
    nodes = tuple(sorted(best, key=lambda room: (room.kind, room.name)))
    return Sizes(nodes, millis, workers, 2 * largest, **about)


def resized(manifest: Manifest, gang: str, sizes: Sizes) -> Manifest:
    """An example as it fits this cluster: fewer members, CPU instead of GPUs, a few nodes."""
    fitted = copy.deepcopy(manifest)
    spec, workers = fitted["spec"], sizes.workers[gang]
    if fitted["kind"] == "PodGroup":
        if "minMember" in spec:
            spec["minMember"] = workers
        for role in spec.get("roles", ()):
            role["minMember"] = 1 if role["name"] == "driver" else workers
        return fitted
    template = spec["template"]
    is_driver = template["metadata"]["labels"].get(ROLE) == "driver"
    spec["parallelism"] = spec["completions"] = 1 if is_driver else workers
    if gang == "training":
        # For nodes that are themselves played by kwok; real ones run `sleep`.
        template["metadata"]["annotations"] = {RUN_SECONDS: str(sizes.run_seconds)}
    _fit_pod(template["spec"], gang, sizes)
    return fitted


def _fit_pod(spec: dict[str, Any], gang: str, sizes: Sizes) -> None:
    hosts = [room.hostname for room in sizes.nodes]
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hosts}]}
    within = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec.pop("nodeSelector", None)
    if gang != "too-large":
        spec["affinity"] = {"nodeAffinity": within}
    spec["schedulerName"] = sizes.scheduler
    spec["terminationGracePeriodSeconds"] = 1
    spec["securityContext"] = SAFE_POD
    seconds = sizes.run_seconds if gang == "training" else FOR_EVER
    millis = sizes.too_large_millis if gang == "too-large" else sizes.millis
    for container in spec["containers"]:
        container["image"] = sizes.image
        container["command"] = ["sleep", str(seconds)]
        container["resources"] = {"requests": {CPU: f"{millis}m", "memory": "16Mi"}}
        container["securityContext"] = SAFE_CONTAINER
