"""Claims of pods for devices, and what is allocated to them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..keys import NodeName, Uid
from ..resources import Resources
from .inventory import DeviceClass, DeviceId, DeviceToleration, ResourceSlice, TaintRule

# Prefix of the resources that count free devices, and of the labels of pods that share a claim. The
# API server accepts no name with a colon.
_DEVICES = "device:"
_SETS = "sets:"  # after that prefix
MOST_RESULTS = 32  # devices that the API allows in one claim
MOST_CONSUMERS = 256  # pods that the API allows to share one claim
FINALIZER = "resource.kubernetes.io/delete-protection"  # of allocated claims


class ClaimName(NamedTuple):
    """The namespace and name of a ResourceClaim."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """As people write it."""
        return "/".join(self)


class PodClaim(NamedTuple):
    """A claim that a pod names; ``claim`` is None until a controller creates it."""

    name: str  # in the pod
    claim: str | None
    is_own: bool = False  # made from a template, for this pod alone


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request of a claim for ``count`` devices that meet all selectors of it and its class.

    With ``takes_all`` it is for all such devices of a node. A request with alternatives is for what
    one of them is for, and has no class of its own.
    """

    name: str
    device_class: str
    count: int = 1
    selectors: tuple[str, ...] = ()  # CEL expressions
    tolerations: tuple[DeviceToleration, ...] = ()
    takes_all: bool = False
    alternatives: tuple["DeviceRequest", ...] = ()  # the most wanted first
    admin_access: bool = False  # devices that others have will do, and others keep them

    @property
    def is_plural(self) -> bool:
        """Whether it has an alternative for several devices."""
        return any(part.count > 1 for part in self.alternatives)

    @property
    def least(self) -> int:
        """For how many devices it is at least."""
        return min((part.count for part in self.alternatives), default=self.count)

    @property
    def most(self) -> int:
        """For how many devices it is at most."""
        return max((part.count for part in self.alternatives), default=self.count)

    @property
    def classes(self) -> tuple[str, ...]:
        """The device classes that it names."""
        parts = self.alternatives or (self,)
        return tuple(part.device_class for part in parts)

    def by_name(self) -> Iterator[tuple[str, "DeviceRequest"]]:
        """It, or its alternatives, by the name that results have."""
        if not self.alternatives:
            yield self.name, self
        for part in self.alternatives:
            yield f"{self.name}/{part.name}", part


class AttributeName(NamedTuple):
    """The domain and the name of an attribute of devices."""

    domain: str
    name: str

    def __str__(self) -> str:
        """As the API has it."""
        return "/".join(self)


class AttributeConstraint(NamedTuple):
    """All devices of these requests must have the attribute: with one value, or each another.

    An alternative of a request is named ``request/alternative``; alone, it is named by its request.
    """

    attribute: AttributeName
    requests: tuple[str, ...] = ()  # empty: all requests of the claim
    is_distinct: bool = False  # each device another value

    def covers(self, name: str) -> bool:
        """Whether it is for devices that are for the request, or the alternative, of this name."""
        names = {name, name.partition("/")[0]}
        return not self.requests or not names.isdisjoint(self.requests)


class DeviceResult(NamedTuple):
    """One device that is allocated for a request."""

    request: str
    device: DeviceId


class Consumer(NamedTuple):
    """An object that a claim is reserved for, usually a pod."""

    uid: Uid
    name: str
    resource: str = "pods"
    group: str = ""


@dataclass(frozen=True, slots=True)
class ClaimAllocation:
    """The devices that a plan or a Reservation gives to a claim of a pod.

    Without any, the claim was allocated before, and the pod only joins its consumers.
    """

    claim: str  # its name, in the namespace of the pod
    uid: Uid
    results: tuple[DeviceResult, ...] = ()


class WantedDevices(NamedTuple):
    """What a claim wants, without its name and state."""

    requests: tuple[DeviceRequest, ...]
    constraints: tuple[AttributeConstraint, ...]
    unsupported: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim."""

    key: ClaimName
    uid: Uid
    requests: tuple[DeviceRequest, ...] = ()
    unsupported: tuple[str, ...] = ()  # its fields that Tutti does not support yet; sorted
    owner: Uid | None = None  # of the pod that it was made for
    terminating: bool = False
    allocated: tuple[DeviceResult, ...] | None = None  # None: not allocated
    administered: tuple[DeviceResult, ...] = ()  # allocated with admin access; others can have them
    nodes: tuple[NodeName, ...] | None = None  # that can reach the allocated devices; None: all
    reaches_unknown: bool = False  # the nodes are not given by name
    consumers: tuple[Consumer, ...] = ()  # that it is reserved for
    constraints: tuple[AttributeConstraint, ...] = ()
    finalizers: tuple[str, ...] = field(default=(), compare=False)
    version: str = field(default="", compare=False)  # metadata.resourceVersion
    # As in DeviceClass.config; and the tolerations of requests, which are copied, too.
    config: str = field(default="", compare=False)

    @property
    def wanted(self) -> WantedDevices:
        """What it wants; claims that want the same can get the same devices."""
        return WantedDevices(self.requests, self.constraints, self.unsupported)

    @property
    def is_allocated(self) -> bool:
        """Whether devices are allocated to it."""
        return self.allocated is not None

    @property
    def takes_nothing(self) -> bool:
        """Whether its requests are for admin access, so that others can have its devices."""
        return any(request.admin_access for request in self.requests)

    @property
    def least_devices(self) -> int:
        """How many devices its requests for a number of devices ask for together."""
        return sum(request.least for request in self.requests)

    @property
    def most_devices(self) -> int:
        """How many devices its requests for a number of devices ask for at most."""
        return sum(request.most for request in self.requests)

    def has(self, results: tuple[DeviceResult, ...]) -> bool:
        """Whether exactly these devices are allocated to it."""
        return {*(self.allocated or ()), *self.administered} == {*results}


class FreeDevice(NamedTuple):
    """A device that no claim and no Reservation has, and the selections that it meets."""

    id: DeviceId
    selections: int  # a bit for each selection, in the order of ``DeviceRoom.selections``
    # Of the counters that devices of the node share, by number, and how much it consumes of each.
    counters: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The free devices of a node that meet some selection; sorted.

    Stand-ins are among them (``stand_in``).
    """

    node: NodeName
    free: tuple[FreeDevice, ...] = ()
    counters: tuple[int, ...] = ()  # how much is left of each


class Selection(NamedTuple):
    """What a request selects: CEL expressions that must all hold, and taints that it tolerates.

    With alternatives, a device that one of them selects.
    """

    label: str  # for users: the class, with a digest if the request has selectors of its own
    expressions: tuple[str, ...] = ()  # sorted, without repetition
    tolerations: tuple[DeviceToleration, ...] = ()  # sorted, without repetition
    takes_all: bool = False  # of a node, or none
    alternatives: tuple["Selection", ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The CEL expressions of it and its alternatives."""
        return (*self.expressions, *(text for of in self.alternatives for text in of.expressions))


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """The devices, classes and claims of the cluster; empty while no pod of ours names a claim.

    ``nodes`` has the devices that the plan may give away, by node.
    """

    is_read: bool = False  # False: nothing is known of devices, and pods with claims wait
    slices: tuple[ResourceSlice, ...] = ()  # sorted by name
    classes: tuple[DeviceClass, ...] = ()  # sorted by name
    rules: tuple[TaintRule, ...] = ()  # sorted by name
    claims: tuple[DeviceClaim, ...] = ()  # sorted by key
    selections: tuple[Selection, ...] = ()  # of the claims that wait; sorted
    nodes: tuple[NodeDevices, ...] = ()  # sorted by name

    def claim(self, namespace: str, name: str) -> DeviceClaim | None:
        """The claim of this name; None if there is none."""
        key = ClaimName(namespace, name)
        return next((claim for claim in self.claims if claim.key == key), None)


NO_DEVICES = DeviceRoom()


def stand_in(selection: int, number: int) -> DeviceId:
    """A device that does not exist, for the selection of this index, which takes all of a node.

    With stand-ins, each node that has such devices has the same number of them.
    """
    return DeviceId("", "", f"{selection}/{number}")


def is_stand_in(device: DeviceId) -> bool:
    """Whether the device does not exist."""
    return not device.driver


def sharing(claim: ClaimName) -> str:
    """The label of the waiting pod that requests the devices of a claim for all that share it."""
    return _DEVICES + claim.name


def is_sharing(label: str) -> bool:
    """Whether the label stands for the devices of a shared claim."""
    return label.startswith(_DEVICES)


def counting(label: str) -> str:
    """The name of the resource that counts the free devices of a selection."""
    return _DEVICES + label


def counting_sets(label: str) -> str:
    """The name of the resource that counts sets of devices which have an attribute in common."""
    return counting(_SETS + label)


def is_counting_sets(resource: str) -> bool:
    """Whether the resource counts sets of devices."""
    return resource.startswith(_DEVICES + _SETS)


def is_counting(resource: str) -> bool:
    """Whether the resource counts devices."""
    return resource.startswith(_DEVICES)


def selected_by(resource: str) -> str:
    """The label of the selections whose devices, or sets of devices, the resource counts."""
    return resource.removeprefix(_DEVICES).removeprefix(_SETS)


def without_counts(amounts: Resources) -> Resources:
    """The amounts without those that count devices."""
    return Resources(tuple(amount for amount in amounts.amounts if not is_counting(amount[0])))


def devices_of(allocations: tuple[ClaimAllocation, ...]) -> Iterator[DeviceId]:
    """The devices of these allocations."""
    return (result.device for allocation in allocations for result in allocation.results)
