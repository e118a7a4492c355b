"""The fields of resource.k8s.io objects that decisions use: slices, classes, claims, taints."""

from typing import Any

from pydantic import ConfigDict, Field

from .base import Object, Wire
from .pods import NodeSelector


class Attribute(Wire):
    """The value of an attribute; lists of values are not read."""

    int_value: int | None = Field(default=None, alias="int")
    bool_value: bool | None = Field(default=None, alias="bool")
    string_value: str | None = Field(default=None, alias="string")
    version_value: str | None = Field(default=None, alias="version")


class Capacity(Wire):
    """An amount that a device has."""

    value: str | int | float = "0"


class CounterSet(Wire):
    """Counters that devices of a pool share."""

    name: str
    counters: dict[str, Capacity] = Field(default_factory=dict)


class CounterConsumption(Wire):
    """What a device consumes of the counters of a set."""

    counter_set: str
    counters: dict[str, Capacity] = Field(default_factory=dict)


class DeviceTaint(Wire):
    """A taint of a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Wire):
    """One device. Fields that are not declared here are kept, so that they can be named."""

    model_config = ConfigDict(extra="allow")

    name: str
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    capacity: dict[str, Capacity] = Field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()
    consumes_counters: tuple[CounterConsumption, ...] = ()


class Pool(Wire):
    """The pool that a slice is a part of."""

    name: str
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Wire):
    """The devices of a slice, and the nodes that can use them."""

    driver: str
    pool: Pool
    node_name: str = ""
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object):
    """A resource.k8s.io ResourceSlice."""

    spec: ResourceSliceSpec


class CELSelector(Wire):
    """A CEL expression."""

    expression: str = ""


class DeviceSelector(Wire):
    """A selector of devices; CEL is the only kind."""

    cel: CELSelector | None = None


class DeviceClassSpec(Wire):
    """The selectors of a class, the configuration for drivers, and the resource that it backs."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[dict[str, Any], ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Object):
    """A resource.k8s.io DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(Wire):
    """A toleration of a request for taints of devices."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ExactRequest(Wire):
    """A request for devices of one class. Fields that are not declared here are kept."""

    model_config = ConfigDict(extra="allow")

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()


class SubRequest(ExactRequest):
    """An alternative of a request."""

    name: str = ""


class DeviceRequest(Wire):
    """A request of a claim. Fields that are not declared here are kept."""

    model_config = ConfigDict(extra="allow")

    name: str
    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] = ()


class DeviceConstraint(Wire):
    """What devices of a claim must have in common, or not. Undeclared fields are kept."""

    model_config = ConfigDict(extra="allow")

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaimSpec(Wire):
    """The requests of a claim, and what they must have in common."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[dict[str, Any], ...] = ()


class ResourceClaimSpec(Wire):
    """What a claim requests."""

    devices: DeviceClaimSpec = DeviceClaimSpec()


class DeviceResult(Wire):
    """One allocated device."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False


class AllocatedDevices(Wire):
    """The devices that are allocated."""

    results: tuple[DeviceResult, ...] = ()


class Allocation(Wire):
    """What is allocated to a claim, and the nodes that can use it."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(Wire):
    """An object that a claim is reserved for."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Wire):
    """The allocation of a claim, and its consumers."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Object):
    """A resource.k8s.io ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class TaintedDevices(Wire):
    """The devices that a taint rule is about; empty fields match all."""

    driver: str = ""
    pool: str = ""
    device: str = ""


class DeviceTaintRuleSpec(Wire):
    """A taint, and the devices that get it."""

    device_selector: TaintedDevices | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Object):
    """A resource.k8s.io DeviceTaintRule."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
