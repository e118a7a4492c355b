"""Decoders and encoders of resource.k8s.io objects: devices, classes, claims, taint rules.

Sources: resource.k8s.io/v1 of Kubernetes 1.37, and ``bindClaim`` of kube-scheduler.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...model.cluster import Member
from ...model.devices.claims import (
    FINALIZER,
    AttributeConstraint,
    AttributeName,
    ClaimAllocation,
    ClaimName,
    Consumer,
    DeviceClaim,
    DeviceRequest,
    DeviceResult,
    PodClaim,
)
from ...model.devices.extended import RequestMapping
from ...model.devices.inventory import (
    Attribute,
    Capacity,
    Counter,
    Device,
    DeviceClass,
    DeviceId,
    DeviceTaint,
    DeviceToleration,
    ResourceSlice,
    Scalar,
    TaintRule,
)
from ...model.keys import NodeName, Uid
from .. import wire
from ..wire import devices, objects
from .metadata import named, seconds_of

VERSION = "resource.k8s.io/v1"
CLAIMS_FIELD = "spec.resourceClaims"
NODE_NAME = "metadata.name"
EXACT_COUNT, ALL = "ExactCount", "All"
_ALL = f"allocationMode: {ALL}"
EXACTLY, ADMIN = "exactly", "adminAccess"
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"  # annotation of such claims

MOST_DEPTH = 100  # of configuration: it is written again, by code that cannot nest without end

Raw = dict[str, Any]


def decode_slice(piece: devices.ResourceSlice) -> ResourceSlice:
    """Read a slice; the devices of a slice without a node name belong to several nodes."""
    named(piece)
    spec, pool = piece.spec, piece.spec.pool
    return ResourceSlice(
        piece.metadata.name,
        spec.driver,
        pool.name,
        pool.generation,
        pool.resource_slice_count,
        NodeName(spec.node_name) if spec.node_name else None,
        tuple(
            _device(spec.driver, pool.name, device, is_shared=not spec.node_name)
            for device in spec.devices
        ),
        _counters((of.name, of.counters) for of in spec.shared_counters),
    )


def _counters(sets: Iterable[tuple[str, Mapping[str, devices.Capacity]]]) -> tuple[Counter, ...]:
    return tuple(
        sorted(Counter(of, name, str(n.value)) for of, known in sets for name, n in known.items())
    )


def _device(driver: str, pool: str, device: devices.Device, *, is_shared: bool) -> Device:
    unknown = {name for name, value in (device.model_extra or {}).items() if value}
    if is_shared:
        unknown.add("devices of several nodes")
    attributes = []
    for qualified, attribute in device.attributes.items():
        values: tuple[Scalar | None, ...] = (
            attribute.bool_value,
            attribute.int_value,
            attribute.string_value,
            attribute.version_value,
        )
        known = [value for value in values if value is not None]
        if not known:
            unknown.add("attributes[] with several values")
            continue
        is_version = attribute.version_value is not None
        attributes.append(Attribute(*_qualified(qualified, driver), known[0], is_version))
    return Device(
        DeviceId(driver, pool, device.name),
        tuple(sorted(attributes, key=lambda attribute: attribute[:2])),
        tuple(
            sorted(
                Capacity(*_qualified(name, driver), str(amount.value))
                for name, amount in device.capacity.items()
            )
        ),
        tuple(DeviceTaint(taint.key, taint.value, taint.effect) for taint in device.taints),
        tuple(sorted(unknown)),
        _counters((of.counter_set, of.counters) for of in device.consumes_counters),
    )


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """The domain and the name; the driver is the domain of a name that has none."""
    domain, slash, rest = name.partition("/")
    return (domain, rest) if slash else (driver, name)


def decode_device_class(device_class: devices.DeviceClass) -> DeviceClass:
    """Read a DeviceClass."""
    named(device_class)
    metadata, spec = device_class.metadata, device_class.spec
    expressions, unread = _expressions(spec.selectors)
    unknown = {*unread}
    config = _text(spec.config, unknown)
    return DeviceClass(
        metadata.name,
        expressions,
        tuple(sorted(unknown)),
        config,
        spec.extended_resource_name,
        seconds_of(metadata.creation_timestamp),
    )


def decode_taint_rule(rule: devices.DeviceTaintRule) -> TaintRule:
    """Read a DeviceTaintRule; without a selector it matches no device."""
    named(rule)
    taint, selected = rule.spec.taint, rule.spec.device_selector
    of = selected or devices.TaintedDevices()
    return TaintRule(
        rule.metadata.name,
        DeviceTaint(taint.key, taint.value, taint.effect),
        of.driver,
        of.pool,
        of.device,
        matches_nothing=selected is None,
    )


def decode_device_claim(claim: devices.ResourceClaim) -> DeviceClaim:
    """Read a ResourceClaim."""
    named(claim)
    metadata, spec, status = claim.metadata, claim.spec.devices, claim.status
    unknown: set[str] = set()
    requests = [request for read in spec.requests for request in _request(read, unknown)]
    constraints = [
        constraint
        for read in spec.constraints
        for constraint in _constraint(read, requests, unknown)
    ]
    if len({request.admin_access for request in requests}) > 1:
        unknown.add(f"requests[].{EXACTLY}.{ADMIN} beside requests without it")
    config = _text(spec.config, unknown)
    nodes, reaches_unknown = _nodes(status.allocation)
    results = () if status.allocation is None else status.allocation.devices.results
    owner = next(
        (owner.uid for owner in metadata.owner_references if owner.controller and owner.uid), None
    )
    return DeviceClaim(
        ClaimName(metadata.namespace, metadata.name),
        Uid(metadata.uid),
        tuple(requests),
        tuple(f"devices.{field}" for field in sorted(unknown)),
        None if owner is None else Uid(owner),
        terminating=metadata.deletion_timestamp is not None,
        allocated=None if status.allocation is None else _results(results, administered=False),
        administered=_results(results, administered=True),
        nodes=nodes,
        reaches_unknown=reaches_unknown,
        consumers=tuple(
            Consumer(Uid(user.uid), user.name, user.resource, user.api_group)
            for user in status.reserved_for
        ),
        constraints=tuple(constraints),
        finalizers=metadata.finalizers,
        version=metadata.resource_version,
        config=config,
    )


def _request(read: devices.DeviceRequest, unknown: set[str]) -> Iterator[DeviceRequest]:
    """The request, if Tutti supports its kind; adds its unsupported fields to ``unknown``."""
    if read.exactly is not None:
        yield _part(read.name, read.exactly, EXACTLY, unknown)
    elif not read.first_available:
        unknown.add("requests[]")
    else:
        parts = [_part(p.name, p, "firstAvailable[]", unknown) for p in read.first_available]
        if any(part.takes_all for part in parts):
            unknown.add(f"requests[].firstAvailable[].{_ALL}")
        yield DeviceRequest(read.name, "", alternatives=tuple(parts))


def _constraint(
    read: devices.DeviceConstraint, requests: Sequence[DeviceRequest], unknown: set[str]
) -> Iterator[AttributeConstraint]:
    """The constraint, if Tutti supports it; else ``unknown`` gets what is not supported of it."""
    domain, slash, name = (read.match_attribute or read.distinct_attribute).partition("/")
    constraint = AttributeConstraint(
        AttributeName(domain, name), read.requests, is_distinct=not read.match_attribute
    )
    fields = [f".{field}" for field, value in (read.model_extra or {}).items() if value]
    if not fields and (not slash or (read.match_attribute and read.distinct_attribute)):
        fields.append("")
    covered = [of for of in requests if any(constraint.covers(name) for name, _ in of.by_name())]
    if any(request.admin_access for request in covered):
        fields.append(f" for requests with {ADMIN}")
    if any(request.is_plural for request in covered):
        fields.append(" for firstAvailable[].count")
    unknown |= {f"constraints[]{field}" for field in fields}
    if not fields:
        yield constraint


def _part(name: str, part: devices.ExactRequest, where: str, unknown: set[str]) -> DeviceRequest:
    """A request of one class; adds its unsupported fields to ``unknown``."""
    fields = {field for field, value in (part.model_extra or {}).items() if value}
    if part.admin_access and where != EXACTLY:
        fields.add(ADMIN)
    if part.allocation_mode == EXACT_COUNT and part.count < 1:
        fields.add(f"count: {part.count}")
    if part.allocation_mode not in (EXACT_COUNT, ALL):
        fields.add(f"allocationMode: {part.allocation_mode}")
    expressions, unread = _expressions(part.selectors)
    unknown |= {f"requests[].{where}.{field}" for field in (*fields, *unread)}
    return DeviceRequest(
        name,
        part.device_class_name,
        part.count,
        expressions,
        tuple(
            DeviceToleration(t.key, t.operator, t.value, t.effect, t.toleration_seconds)
            for t in part.tolerations
        ),
        takes_all=part.allocation_mode == ALL,
        admin_access=part.admin_access,
    )


def _expressions(
    selectors: Iterable[devices.DeviceSelector],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The CEL expressions, and the fields that hold a selector of another kind."""
    read = [selector.cel for selector in selectors]
    unknown = () if all(cel is not None for cel in read) else ("selectors[]",)
    return tuple(cel.expression for cel in read if cel is not None), unknown


def _results(
    results: Iterable[devices.DeviceResult], *, administered: bool
) -> tuple[DeviceResult, ...]:
    """The devices with admin access, or those that nobody else can have."""
    return tuple(
        DeviceResult(result.request, DeviceId(result.driver, result.pool, result.device))
        for result in results
        if result.admin_access is administered
    )


def _nodes(allocation: devices.Allocation | None) -> tuple[tuple[NodeName, ...] | None, bool]:
    """The nodes that an allocation names; None for all. True if it selects them in another way."""
    if allocation is None or allocation.node_selector is None:
        return None, False
    names: set[NodeName] = set()
    for term in allocation.node_selector.node_selector_terms:
        fields = term.match_fields
        if term.match_expressions or [(f.key, f.operator) for f in fields] != [(NODE_NAME, "In")]:
            return None, True
        names.update(map(NodeName, fields[0].values))
    return tuple(sorted(names)), False


def _text(config: Sequence[Mapping[str, Any]], unknown: set[str]) -> str:
    """The configuration as JSON; if it is nested too deeply, nothing, and ``unknown`` gets that."""
    if _is_deep(config):
        unknown.add("config[] (nested too deeply)")
        return ""
    return json.dumps(config, separators=(",", ":"), sort_keys=True) if config else ""


def _is_deep(config: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the configuration has more than ``MOST_DEPTH`` levels."""
    values: list[Any] = [*config]
    for _ in range(MOST_DEPTH):
        values = [
            inner
            for value in values
            if isinstance(value, Mapping | list)
            for inner in (value.values() if isinstance(value, Mapping) else value)
        ]
    return bool(values)


def pod_claims(pod: wire.Pod) -> tuple[PodClaim, ...]:
    """The claims that a pod names; one that its template makes is named in the status.

    A controller may find that a template needs no claim; such a claim is left out.
    """
    made = {
        status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses
    }
    claims = []
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            claims.append(PodClaim(claim.name, claim.resource_claim_name))
        elif made.get(claim.name, "") is not None:
            claims.append(PodClaim(claim.name, made.get(claim.name), is_own=True))
    return tuple(sorted(claims))


def reserved_claims(read: objects.ReservedClaims) -> tuple[ClaimAllocation, ...]:
    """The devices that a Reservation gives to the claims of a pod."""
    return tuple(
        ClaimAllocation(
            claim.name,
            Uid(claim.uid),
            tuple(
                DeviceResult(result.request, DeviceId(result.driver, result.pool, result.device))
                for result in claim.devices
            ),
        )
        for claim in read.claims
    )


def encode_reserved(pod: Uid, claims: Iterable[ClaimAllocation]) -> Raw:
    """The devices of the claims of a pod, as a Reservation has them."""
    return {
        "pod": pod,
        "claims": [
            {
                "name": claim.claim,
                "uid": claim.uid,
                "devices": [
                    {
                        "request": result.request,
                        "driver": result.device.driver,
                        "pool": result.device.pool,
                        "device": result.device.name,
                    }
                    for result in claim.results
                ],
            }
            for claim in claims
        ],
    }


def encode_finalizers(claim: DeviceClaim, *, protected: bool) -> Raw:
    """A patch that sets or removes the finalizer of an allocated claim, in this version of it."""
    others = [name for name in claim.finalizers if name != FINALIZER]
    finalizers = [*others, FINALIZER] if protected else others
    return {"metadata": {**_same(claim), "finalizers": finalizers}}


def encode_extended_claim(member: Member, name: str, requests: Iterable[DeviceRequest]) -> Raw:
    """A ResourceClaim that stands for extended resources of a pod, and goes with it."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": member.key.name,
        "uid": member.uid,
        "controller": True,
    }
    metadata = {
        "name": name,
        "namespace": member.key.namespace,
        "annotations": {EXTENDED_CLAIM: "true"},
        "ownerReferences": [owner],
    }
    wanted = [
        {
            "name": request.name,
            EXACTLY: {
                "deviceClassName": request.device_class,
                "allocationMode": EXACT_COUNT,
                "count": request.count,
            },
        }
        for request in requests
    ]
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": wanted}},
    }


def encode_extended_status(member: Member, claim: str, mappings: Iterable[RequestMapping]) -> Raw:
    """A patch of the status of a pod, in this version of it: its claim for extended resources."""
    status = {
        "resourceClaimName": claim,
        "requestMappings": [
            {
                "containerName": mapping.container,
                "resourceName": mapping.resource,
                "requestName": mapping.request,
            }
            for mapping in mappings
        ],
    }
    return {
        "metadata": {"uid": member.uid, "resourceVersion": member.version},
        "status": {"extendedResourceClaimStatus": status},
    }


class ClaimWrite(NamedTuple):
    """What is written into a claim: its devices, the node that has them, and more consumers."""

    results: tuple[DeviceResult, ...]  # empty if it has its devices already
    node: NodeName
    consumers: tuple[Consumer, ...]
    classes: Mapping[str, DeviceClass]  # by name; the configuration of its own is copied


def encode_allocation(claim: DeviceClaim, write: ClaimWrite) -> Raw:
    """A patch of the status: the devices, the node that has them, and more consumers."""
    requests = dict(part for request in claim.requests for part in request.by_name())
    status: Raw = {"reservedFor": [*map(_consumer, (*claim.consumers, *write.consumers))]}
    if write.results:
        results = [
            {
                "request": result.request,
                "driver": result.device.driver,
                "pool": result.device.pool,
                "device": result.device.name,
                **_tolerations(requests[result.request]),
                **({ADMIN: True} if claim.takes_nothing else {}),
            }
            for result in write.results
        ]
        terms = [{"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [write.node]}]}]
        config = list(_config(claim, write))
        status["allocation"] = {
            "devices": {"results": results, **({"config": config} if config else {})},
            "nodeSelector": {"nodeSelectorTerms": terms},
        }
    return {"metadata": _same(claim), "status": status}


def encode_consumers(claim: DeviceClaim, consumers: Sequence[Consumer]) -> Raw:
    """A patch of the status that leaves these consumers; without any, nothing stays allocated."""
    status: Raw = {"reservedFor": [*map(_consumer, consumers)]}
    if not consumers:
        status["allocation"] = None
    return {"metadata": _same(claim), "status": status}


def _same(claim: DeviceClaim) -> Raw:
    return {"uid": claim.uid, "resourceVersion": claim.version}


def _consumer(consumer: Consumer) -> Raw:
    group = {"apiGroup": consumer.group} if consumer.group else {}
    return {**group, "resource": consumer.resource, "name": consumer.name, "uid": consumer.uid}


def _tolerations(request: DeviceRequest) -> Raw:
    tolerations = [_toleration(toleration) for toleration in request.tolerations]
    return {"tolerations": tolerations} if tolerations else {}


def _toleration(toleration: DeviceToleration) -> Raw:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.seconds,
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _config(claim: DeviceClaim, write: ClaimWrite) -> Iterator[Raw]:
    """The configuration for drivers: of each class once, then of the claim.

    A configuration without requests is for all of them. One that names a request is for the
    alternative that was chosen, too.
    """
    given = {result.request for result in write.results}
    names = [
        (request.name, name, part.device_class)
        for request in claim.requests
        for name, part in request.by_name()
        if name in given or not request.alternatives
    ]
    of_class: dict[str, list[str]] = {}
    for _, name, device_class in names:
        of_class.setdefault(device_class, []).append(name)
    for class_name, requests in of_class.items():
        for config in json.loads(write.classes[class_name].config or "[]"):
            yield {**config, "source": "FromClass", **_for(requests, names)}
    for config in json.loads(claim.config or "[]"):
        listed = config.pop("requests", None)
        wanted = [
            name for parent, name, _ in names if not listed or name in listed or parent in listed
        ]
        if wanted:
            yield {**config, "source": "FromClaim", **_for(listed or wanted, names)}


def _for(requests: Sequence[str], names: Sequence[tuple[str, str, str]]) -> Raw:
    is_all = all(name in requests or parent in requests for parent, name, _ in names)
    return {} if is_all else {"requests": list(requests)}
