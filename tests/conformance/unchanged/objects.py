"""Kubernetes objects as plain dicts, spelt as the API spells them, without any code of Tutti's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

NOW = 1_767_268_800  # 2026-01-01T12:00:00Z, when every generated dump was taken
SCHEDULER = "tutti"
GROUP_LABEL, ROLE_LABEL = "tutti.dev/pod-group", "tutti.dev/role"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GPU = "nvidia.com/gpu"


def moment(seconds_ago: float) -> str:
    """RFC 3339, so many seconds before the dump was taken."""
    return datetime.fromtimestamp(NOW - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Room:
    """Amounts of the resources that generated pods ask for."""

    cpu: int = 0  # thousandths
    memory: int = 0  # MiB
    gpus: int = 0
    pods: int = 0

    def __add__(self, other: Room) -> Room:
        return Room(
            self.cpu + other.cpu,
            self.memory + other.memory,
            self.gpus + other.gpus,
            self.pods + other.pods,
        )

    def __sub__(self, other: Room) -> Room:
        return self + Room(-other.cpu, -other.memory, -other.gpus, -other.pods)

    def holds(self, other: Room) -> bool:
        """Whether the other fits into this."""
        left = self - other
        return min(left.cpu, left.memory, left.gpus, left.pods) >= 0

    def amounts(self) -> dict[str, str]:
        """What a container requests; the number of pods is nobody's request."""
        cpu = str(self.cpu // 1000) if self.cpu % 1000 == 0 else f"{self.cpu}m"
        memory = f"{self.memory // 1024}Gi" if self.memory % 1024 == 0 else f"{self.memory}Mi"
        named = {"cpu": cpu, "memory": memory, GPU: str(self.gpus)}
        return {name: amount for name, amount in named.items() if amount not in ("0", "0Gi")}


@dataclass(frozen=True)
class Ask:
    """What the pods of one role ask for, as a pod's spec and a role's template spell it."""

    room: Room
    labels: dict[str, str] = field(default_factory=dict)
    rules: Object = field(default_factory=dict)  # nodeSelector, tolerations, affinity, spreads
    ports: tuple[Object, ...] = ()

    def but(self, **changes: Any) -> Ask:
        """The same with other values in some fields."""
        return replace(self, **changes)

    def template(self) -> Object:
        """The template of a role whose members do not exist yet."""
        return {"resources": self.room.amounts(), "labels": self.labels, **self.rules}

    def spec(self) -> Object:
        """The spec of a pod."""
        container: Object = {"name": "main", "resources": {"requests": self.room.amounts()}}
        if self.ports:
            container["ports"] = list(self.ports)
        return {"schedulerName": SCHEDULER, "containers": [container], **self.rules}


def named(kind: str, name: str, namespace: str = "", version: str = "v1") -> Object:
    """An object of which nothing but its name is known."""
    metadata: Object = {"name": name, "uid": f"{kind.lower()}-{namespace}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def node(name: str, room: Room, labels: dict[str, str]) -> Object:
    """A node that is ready."""
    made = named("Node", name)
    made["metadata"]["labels"] = {"kubernetes.io/hostname": name, **labels}
    offers = {**room.amounts(), "pods": str(room.pods)}
    ready = [{"type": "Ready", "status": "True"}]
    return {**made, "spec": {}, "status": {"allocatable": offers, "conditions": ready}}


def pod(name: str, namespace: str, ask: Ask, age: float, on: str = "") -> Object:
    """A pod: running where it has a node, else pending."""
    made = named("Pod", name, namespace)
    made["metadata"] |= {
        "labels": dict(ask.labels),
        "creationTimestamp": moment(age),
        "resourceVersion": "7",
    }
    spec = ask.spec()
    if on:
        spec["nodeName"] = on
    return {**made, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


def pod_group(name: str, namespace: str, spec: Object, age: float) -> Object:
    """A PodGroup."""
    made = named("PodGroup", name, namespace, "tutti.dev/v1alpha1")
    more = {"generation": 1, "creationTimestamp": moment(age), "resourceVersion": "5"}
    made["metadata"] |= more
    return {**made, "spec": spec}


def reservation(group: Object, placement: list[Object], age: float) -> Object:
    """A standing Reservation of a PodGroup."""
    metadata = group["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    made = named("Reservation", uid, metadata["namespace"], "tutti.dev/v1alpha1")
    owner = {"apiVersion": "tutti.dev/v1alpha1", "kind": "PodGroup", "name": name, "uid": uid}
    made["metadata"] |= {"ownerReferences": [owner], "resourceVersion": "9"}
    made["spec"] = {
        "schedulerName": SCHEDULER,
        "podGroup": {"name": name, "uid": uid, "generation": 1},
        "term": "a-term",
        "reservedAt": moment(age),
        "placement": placement,
    }
    return made
