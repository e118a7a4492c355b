"""Encodes devices, classes, taint rules and claims as API objects.

The inverse of ``kube.codec.devices``. The configuration for drivers is not written: no decision
uses it, and it may hold secrets.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ...kube.codec import encode
from ...kube.codec.devices import ADMIN, ALL, EXACT_COUNT, NODE_NAME, VERSION
from ...kube.codec.requests import ALWAYS
from ...model.cluster import Member
from ...model.devices.claims import DeviceClaim, DeviceRequest, DeviceRoom
from ...model.devices.extended import CLAIM_OF, ContainerRequests, amounts
from ...model.devices.inventory import (
    Attribute,
    Counter,
    Device,
    DeviceClass,
    DeviceTaint,
    DeviceToleration,
    ResourceSlice,
    TaintRule,
)
from ...model.keys import NodeName

Raw = dict[str, Any]
_DEVICE = ("driver", "pool", "device")


def written(room: DeviceRoom) -> Iterator[Raw]:
    """The slices, classes, taint rules and claims; only claims have uids in a Snapshot."""
    yield from map(_slice, room.slices)
    yield from map(_class, room.classes)
    yield from map(_rule, room.rules)
    yield from map(_claim, room.claims)


def add_device_claims(pod: Raw, member: Member) -> None:
    """Add the claims of a member to the spec and the status of its pod."""
    named = [own for own in member.device_claims if own.name != CLAIM_OF]
    if not named:
        return
    pod["spec"]["resourceClaims"] = [
        {"name": own.name, "resourceClaimTemplateName": own.name}
        if own.is_own
        else {"name": own.name, "resourceClaimName": own.claim}
        for own in named
    ]
    pod["status"]["resourceClaimStatuses"] = [
        {"name": own.name, "resourceClaimName": own.claim}
        for own in named
        if own.is_own and own.claim is not None
    ]


def add_extended_requests(pod: Raw, member: Member) -> None:
    """Divide the only container of a pod into those that request extended resources.

    Their other requests are in the overhead of the pod. Names of containers matter to no plan.
    """
    if not member.extended_requests:
        return
    spec = pod["spec"]
    (main,) = spec["containers"]
    counted = dict(amounts(member.extended_requests).amounts)
    requests = main.pop("resources")["requests"]
    spec["overhead"] = {name: text for name, text in requests.items() if name not in counted}
    by_position = {of.position: of for of in member.extended_requests}
    short = [of.position for of in member.extended_requests if of.is_short_lived]
    init = max(short, default=-1) + 1  # how many init containers there are at least
    count = max(init + 1, max(by_position) + 1)
    containers = [_container(by_position.get(i), i) for i in range(count)]
    containers[init] = {**main, **containers[init]}
    if init:
        spec["initContainers"] = [_sidecar(by_position.get(i), containers[i]) for i in range(init)]
    spec["containers"] = containers[init:]
    if member.extended_claim:
        pod["status"]["extendedResourceClaimStatus"] = {
            "resourceClaimName": member.extended_claim,
            "requestMappings": [{"resourceName": name} for name in member.extended_resources],
        }


def _container(requests: ContainerRequests | None, position: int) -> Raw:
    if requests is None:
        return {"name": f"container-{position}"}
    counts = dict(requests.counts)
    asked = {name: str(counts.get(name, 0)) for name in requests.names}
    return {"name": f"container-{position}", "resources": {"requests": asked}}


def _sidecar(requests: ContainerRequests | None, container: Raw) -> Raw:
    """An init container; if it requests extended resources for good, a sidecar."""
    lasts = requests is not None and not requests.is_short_lived
    return {**container, "restartPolicy": ALWAYS} if lasts else container


def _object(kind: str, name: str, spec: Raw) -> Raw:
    metadata = {"name": name, "uid": f"{kind}-{name}"}
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _slice(value: ResourceSlice) -> Raw:
    spec: Raw = {
        "driver": value.driver,
        "pool": {
            "name": value.pool,
            "generation": value.generation,
            "resourceSliceCount": value.slices,
        },
        "devices": [_device(device) for device in value.devices],
        "sharedCounters": _counters("name", value.counters),
    }
    where = {"allNodes": True} if value.node is None else {"nodeName": value.node}
    return _object("ResourceSlice", value.name, {**spec, **where})


def _device(value: Device) -> Raw:
    device: Raw = {
        "name": value.id.name,
        "attributes": {f"{a.domain}/{a.name}": _attribute(a) for a in value.attributes},
        "capacity": {f"{c.domain}/{c.name}": {"value": c.quantity} for c in value.capacity},
        "taints": [_taint(taint) for taint in value.taints],
        "consumesCounters": _counters("counterSet", value.counters),
    }
    for field in value.unsupported:
        device.setdefault(field, True)
    return device


def _counters(key: str, counters: Iterable[Counter]) -> list[Raw]:
    sets: dict[str, Raw] = {}
    for of in counters:
        sets.setdefault(of.counter_set, {})[of.name] = {"value": of.quantity}
    return [{key: name, "counters": known} for name, known in sets.items()]


def _attribute(value: Attribute) -> Raw:
    if value.is_version:
        return {"version": value.value}
    kinds = {bool: "bool", int: "int", str: "string"}
    return {kinds[type(value.value)]: value.value}


def _taint(value: DeviceTaint) -> Raw:
    return value._asdict()


def _class(value: DeviceClass) -> Raw:
    spec: Raw = {"selectors": _selectors(value.selectors)}
    if value.extended_resource:
        spec["extendedResourceName"] = value.extended_resource
    body = _object("DeviceClass", value.name, spec)
    if value.created:
        body["metadata"]["creationTimestamp"] = encode.timestamp(value.created)
    return body


def _selectors(expressions: Iterable[str]) -> list[Raw]:
    return [{"cel": {"expression": text}} for text in expressions]


def _rule(value: TaintRule) -> Raw:
    spec: Raw = {"taint": _taint(value.taint)}
    if not value.matches_nothing:
        of = {"driver": value.driver, "pool": value.pool, "device": value.device}
        spec["deviceSelector"] = of
    return _object("DeviceTaintRule", value.name, spec)


def _claim(value: DeviceClaim) -> Raw:
    spec: Raw = {"requests": [_request(request) for request in value.requests]}
    constraints: list[Raw] = [
        {
            "requests": [*constraint.requests],
            "distinctAttribute" if constraint.is_distinct else "matchAttribute": str(
                constraint.attribute
            ),
        }
        for constraint in value.constraints
    ]
    if value.unsupported:
        constraints.append({"unsupported": list(value.unsupported)})
    if constraints:
        spec["constraints"] = constraints
    body = _object("ResourceClaim", value.key.name, {"devices": spec})
    metadata = body["metadata"] = {**value.key._asdict(), "uid": value.uid}
    if value.owner is not None:
        owner = {"kind": "Pod", "uid": value.owner, "controller": True}
        metadata["ownerReferences"] = [owner]
    if value.terminating:
        metadata["deletionTimestamp"] = "1970-01-01T00:00:00Z"  # the time does not matter
    body["status"] = _status(value)
    return body


def _request(value: DeviceRequest) -> Raw:
    if value.alternatives:
        parts = [{"name": part.name, **_part(part)} for part in value.alternatives]
        return {"name": value.name, "firstAvailable": parts}
    return {"name": value.name, "exactly": _part(value)}


def _part(value: DeviceRequest) -> Raw:
    return {
        "deviceClassName": value.device_class,
        "count": value.count,
        "allocationMode": ALL if value.takes_all else EXACT_COUNT,
        "selectors": _selectors(value.selectors),
        "tolerations": [_toleration(toleration) for toleration in value.tolerations],
        **({ADMIN: True} if value.admin_access else {}),
    }


def _toleration(value: DeviceToleration) -> Raw:
    fields = value._asdict()
    seconds = fields.pop("seconds")
    return {**fields, **({} if seconds is None else {"tolerationSeconds": seconds})}


def _status(value: DeviceClaim) -> Raw:
    consumers = [
        {"apiGroup": user.group, "resource": user.resource, "name": user.name, "uid": user.uid}
        for user in value.consumers
    ]
    status: Raw = {"reservedFor": consumers}
    if value.allocated is not None:
        results = [
            {"request": result.request, **dict(zip(_DEVICE, result.device, strict=True)), **mark}
            for of, mark in ((value.allocated, {}), (value.administered, {ADMIN: True}))
            for result in of
        ]
        status["allocation"] = {"devices": {"results": results}}
        terms = _terms(value.nodes, reaches_unknown=value.reaches_unknown)
        if terms:
            status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    return status


def _terms(nodes: Iterable[NodeName] | None, *, reaches_unknown: bool) -> list[Raw]:
    """The nodes that can use the devices; a selector by other fields stands for any such one."""
    if reaches_unknown:
        return [{"matchExpressions": [{"key": "unknown", "operator": "Exists"}]}]
    if nodes is None:
        return []
    return [{"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [*nodes]}]}]
