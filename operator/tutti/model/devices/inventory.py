"""Devices as their drivers publish them, device classes, and taints that rules give to devices."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ..keys import NodeName

Scalar = bool | int | str


class DeviceId(NamedTuple):
    """The driver, the pool and the name that identify a device."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        """As kube-scheduler prints it: ``driver/pool/name``."""
        return "/".join(self)


class Attribute(NamedTuple):
    """An attribute of a device; a version is text with ``is_version``."""

    domain: str
    name: str
    value: Scalar
    is_version: bool = False


class Capacity(NamedTuple):
    """An amount that a device has, as a Kubernetes quantity."""

    domain: str
    name: str
    quantity: str


class Counter(NamedTuple):
    """An amount of a counter that devices share: what there is, or what a device consumes."""

    counter_set: str
    name: str
    quantity: str


class DeviceTaint(NamedTuple):
    """A taint of a device."""

    key: str
    value: str
    effect: str


class DeviceToleration(NamedTuple):
    """A toleration of a request; empty fields match as for tolerations of pods."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """One device; ``unsupported`` names its fields that Tutti does not support yet."""

    id: DeviceId
    attributes: tuple[Attribute, ...] = ()  # sorted
    capacity: tuple[Capacity, ...] = ()  # sorted
    taints: tuple[DeviceTaint, ...] = ()
    unsupported: tuple[str, ...] = ()
    counters: tuple[Counter, ...] = ()  # that it consumes, of its pool; sorted


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """A part of a pool of devices.

    A pool is complete when all slices of its newest generation are known. ``node`` is None if pods
    of several nodes can use the devices.
    """

    name: str
    driver: str
    pool: str
    generation: int = 1
    slices: int = 1  # of the pool, in this generation
    node: NodeName | None = None
    devices: tuple[Device, ...] = ()
    counters: tuple[Counter, ...] = ()  # of the pool; sorted


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass: the selectors that all of its devices meet."""

    name: str
    selectors: tuple[str, ...] = ()  # CEL expressions
    unsupported: tuple[str, ...] = ()
    # Configuration for drivers, as JSON. It is copied into allocations; no decision uses it.
    config: str = field(default="", compare=False)
    extended_resource: str = ""  # that it backs, if any, beside the one with its own name
    created: float = 0.0  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule; empty fields match all devices."""

    name: str
    taint: DeviceTaint
    driver: str = ""
    pool: str = ""
    device: str = ""
    matches_nothing: bool = False  # it has no selector

    def matches(self, device: DeviceId) -> bool:
        """Whether the rule gives its taint to this device."""
        wanted = zip((self.driver, self.pool, self.device), device, strict=True)
        return not self.matches_nothing and all(not want or want == is_ for want, is_ in wanted)
