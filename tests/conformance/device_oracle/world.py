"""A small cluster: nodes, devices and the counters that they share, volumes, and gangs that wait.

Written from ``docs/devices.md`` and ``docs/storage.md``. Nodes go by their number, all others by
their names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Values = dict[str, int | str]
GANGS, MEMBERS, RESOURCES = "gangs", "members", "resources"  # objectives


@dataclass(frozen=True)
class Node:
    """What a node offers to all pods; ``used`` is the CPU of one pod of others, if it is not 0."""

    cpu: int
    pods: int
    zone: str
    used: int = 0
    is_closed: bool = False  # to new pods
    counters: tuple[int, ...] = ()  # how much there is of each counter of its GPUs
    limits: Mapping[str, int] = field(default_factory=dict)  # volumes, by driver
    attached: Mapping[str, int] = field(default_factory=dict)  # volumes of others, by driver

    @property
    def free_cpu(self) -> int:
        """The CPU that is left."""
        return self.cpu - self.used

    @property
    def free_pods(self) -> int:
        """How many more pods there may be."""
        return self.pods - bool(self.used)


@dataclass(frozen=True)
class Device:
    """A device of a node; what it consumes is by counter, and empty if it consumes none."""

    name: str
    node: int
    kind: str
    values: Values
    consumes: tuple[int, ...] = ()
    is_held: bool = False  # by a claim of others
    is_broken: bool = False  # it has a taint that nobody tolerates


@dataclass(frozen=True)
class Wanted:
    """The devices that will do: those of a kind, of all models or of some."""

    kind: str
    models: tuple[str, ...] = ()

    def selects(self, device: Device) -> bool:
        """Whether a device will do, if nobody has it and it is not broken."""
        return device.kind == self.kind and (
            not self.models or device.values["model"] in self.models
        )


@dataclass(frozen=True)
class Request:
    """So many devices, or all of a node; with several options, one device of any of them."""

    options: tuple[Wanted, ...]
    count: int | None = 1  # None: all


@dataclass(frozen=True)
class Tie:
    """Devices of some requests, or options of requests, are alike in an attribute, or all differ.

    A part is the number of a request, and that of an option or None for all of its options.
    """

    attribute: str
    parts: tuple[tuple[int, int | None], ...] = ()  # empty: all requests
    is_distinct: bool = False

    def covers(self, request: int, option: int) -> bool:
        """Whether it is about the devices for this option of a request."""
        return not self.parts or bool({(request, None), (request, option)} & {*self.parts})


@dataclass(frozen=True)
class DeviceClaim:
    """A claim of a pod, or of several pods of a gang that are on one node then.

    Then the oldest is among those that start, unless the claim has a device already. With admin
    access, it gets devices whoever else has them.
    """

    requests: tuple[Request, ...]
    ties: tuple[Tie, ...] = ()
    own: str = ""  # the device that it has
    is_admin: bool = False


@dataclass(frozen=True)
class Volume:
    """A volume that is there: one node reaches it, or all nodes of a zone."""

    name: str
    storage_class: str
    size: int
    host: int | None
    zone: str = ""
    is_taken: bool = False  # by a claim
    driver: str = ""  # of CSI

    def is_reached(self, number: int, node: Node) -> bool:
        """Whether a node reaches it."""
        return self.host == number if self.host is not None else self.zone == node.zone


@dataclass(frozen=True)
class StorageClass:
    """Where volumes can be made: nowhere without a driver, else in these zones (None: in all).

    With capacities, only where one is large enough: by the number of a node or by a zone.
    """

    driver: str = ""
    zones: tuple[str, ...] | None = None
    capacities: tuple[tuple[int | str, int], ...] | None = None


@dataclass(frozen=True)
class VolumeClaim:
    """A claim for a volume; ``volume`` is its own, or the one that is kept for it.

    If it is for one pod, one of the pods that name it has a node at a time. Else several pods name
    it only if it has its volume, which counts once on each node.
    """

    storage_class: str
    size: int
    volume: str = ""
    is_bound: bool = False
    selected: int | None = None  # the node where its volume is being made
    is_for_one: bool = False


@dataclass(frozen=True)
class Pod:
    """A member that waits; one that is blocked names a claim that does not exist."""

    cpu: int
    devices: tuple[str, ...] = ()  # claims
    volumes: tuple[str, ...] = ()  # claims
    role: str = ""
    is_blocked: bool = False


@dataclass(frozen=True)
class Gang:
    """Pods, of which it needs so many to start, and so many of a role; the oldest come first."""

    name: str
    priority: int
    need: int
    pods: tuple[Pod, ...]
    least: Mapping[str, int] = field(default_factory=dict)  # by role


@dataclass(frozen=True)
class World:
    """A cluster, and what is aimed for within a priority."""

    objective: str
    nodes: tuple[Node, ...]
    gangs: tuple[Gang, ...]
    devices: tuple[Device, ...] = ()
    claims: Mapping[str, DeviceClaim] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    volume_claims: Mapping[str, VolumeClaim] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[str, Volume]:
        """The volumes."""
        return {volume.name: volume for volume in self.volumes}

    @cached_property
    def devices_by_name(self) -> Mapping[str, Device]:
        """The devices."""
        return {device.name: device for device in self.devices}

    def gang(self, name: str) -> Gang:
        """The gang of this name."""
        return next(gang for gang in self.gangs if gang.name == name)

    def at(self, node: int) -> list[Device]:
        """The devices of a node."""
        return [device for device in self.devices if device.node == node]

    def left(self, node: int) -> tuple[int, ...]:
        """What devices that others have leave of each counter; below 0 if they exceed it."""
        held = [device for device in self.at(node) if device.is_held and device.consumes]
        there = self.nodes[node].counters
        return tuple(n - sum(device.consumes[i] for device in held) for i, n in enumerate(there))

    def can_get(self, claim: DeviceClaim, device: Device) -> bool:
        """Whether a claim can get a device at all: no counter of its pool is exceeded."""
        if device.is_broken or claim.is_admin:
            return not device.is_broken
        is_within = not device.consumes or min(self.left(device.node)) >= 0
        return is_within and not device.is_held

    def will_do(self, claim: VolumeClaim, volume: Volume, node: int) -> bool:
        """Whether a claim that has no volume can get this one on a node."""
        return (
            claim.selected is None
            and not volume.is_taken
            and volume.storage_class == claim.storage_class
            and volume.size >= claim.size
            and volume.is_reached(node, self.nodes[node])
        )

    def can_make(self, claim: VolumeClaim, number: int) -> bool:
        """Whether a volume can be made for a claim on a node."""
        of, zone = self.classes[claim.storage_class], self.nodes[number].zone
        if not of.driver or (of.zones is not None and zone not in of.zones):
            return False
        if claim.selected not in (None, number):
            return False
        return of.capacities is None or any(
            place in (number, zone) and size >= claim.size for place, size in of.capacities
        )

    def driver(self, claim: VolumeClaim) -> str:
        """The driver that attaches the volume of a claim, if any."""
        if claim.is_bound:
            return self.by_name[claim.volume].driver
        return self.classes[claim.storage_class].driver

    @cached_property
    def shared_volumes(self) -> frozenset[str]:
        """The claims for volumes that several pods name and may use at a time."""
        users = Counter(name for g in self.gangs for pod in g.pods for name in pod.volumes)
        several = {name for name, n in users.items() if n > 1}
        return frozenset(name for name in several if not self.volume_claims[name].is_for_one)

    def sharers(self, claim: str) -> list[tuple[str, int]]:
        """The pods that name a claim for devices, by gang and number; the oldest comes first."""
        return [
            (gang.name, i)
            for gang in self.gangs
            for i, pod in enumerate(gang.pods)
            if claim in pod.devices
        ]

    def most_together(self, pods: Sequence[Pod]) -> int:
        """How many of these pods may have a node at a time; each has a claim for one at most."""
        of = [name for pod in pods for name in self.claims_for_one(pod)]
        return len(pods) - len(of) + len({*of})

    def claims_for_one(self, pod: Pod) -> set[str]:
        """The claims of a pod that one pod at a time may use."""
        return {name for name in pod.volumes if self.volume_claims[name].is_for_one}

    def value(self, gang: Gang) -> Fraction:
        """What it is worth to start the gang, within its priority."""
        if self.objective == GANGS:
            return Fraction(1)
        if self.objective == MEMBERS:
            return Fraction(gang.need)
        totals = Counter({"cpu": sum(n.cpu for n in self.nodes)})
        totals["pods"] = sum(n.pods for n in self.nodes)
        totals.update(device.kind for device in self.devices)
        amounts = Counter[str]()
        for pod in _oldest(gang):
            amounts.update({"cpu": pod.cpu, "pods": 1})
        for name in dict.fromkeys(name for pod in _oldest(gang) for name in pod.devices):
            for request in () if self.claims[name].own else self.claims[name].requests:
                amounts[request.options[0].kind] += request.count or 0
        shares = (Fraction(n, totals[name]) for name, n in amounts.items() if totals[name])
        return max(shares, default=Fraction(1))


def _oldest(gang: Gang) -> Iterator[Pod]:
    """The pods that count for the value of a gang: the oldest that could start."""
    ready = [pod for pod in gang.pods if not pod.is_blocked]
    first: list[Pod] = []
    for role, least in gang.least.items():
        first += [pod for pod in ready if pod.role == role][:least]
    yield from first
    rest = [pod for pod in ready if not any(pod is one for one in first)]
    yield from rest[: gang.need - len(first)]


def priorities(gangs: Sequence[Gang]) -> list[int]:
    """The highest first."""
    return sorted({gang.priority for gang in gangs}, reverse=True)
