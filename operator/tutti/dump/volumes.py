"""Encodes claims, volumes and classes as API objects, as far as pods of our scheduler name them.

The inverse of ``kube.codec.volumes``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..kube.codec import volumes as reading
from ..kube.codec.shapes import CLAIM, EPHEMERAL, NODE_NAME
from ..model.cluster import Member, Snapshot
from ..model.devices.claims import without_counts
from ..model.keys import NodeName
from ..model.resources import Resources
from ..model.volumes import (
    PLENTY,
    Capacity,
    Claim,
    ClaimKey,
    Driver,
    Offer,
    Storage,
    StorageClass,
    Volume,
    VolumeRequest,
    Way,
    counts_volumes,
    driver_of,
    is_attaching,
)
from .inter_pod import requirement

Raw = dict[str, Any]


def written(storage: Storage) -> Iterator[Raw]:
    """The classes, volumes and claims as API objects; most uids are not part of a Snapshot."""
    yield from (_class(storage_class) for storage_class in storage.classes)
    yield from (_driver(driver) for driver in storage.drivers)
    yield from (_capacity(n, capacity) for n, capacity in enumerate(storage.capacities))
    yield from (_volume(volume) for volume in storage.volumes)
    yield from (_claim(claim) for claim in storage.claims)


def without_volumes(amounts: Resources) -> Resources:
    """The amounts without those that count volumes or devices."""
    amounts = without_counts(amounts)
    return Resources(tuple(amount for amount in amounts.amounts if not counts_volumes(amount[0])))


def drivers(snapshot: Snapshot) -> Iterator[Raw]:
    """CSINodes; each limit is lower by the volumes of other pods, which a dump does not have."""
    ours = _attached_for_ours(snapshot)
    resources = {name for node in snapshot.nodes for name in node.allocatable.names}
    names = sorted(name for name in resources if is_attaching(name))
    for node in snapshot.nodes if names else ():
        listed = []
        for name in names:
            driver, most = driver_of(name), node.allocatable[name]
            used_by_others = node.used[name] - len(ours.get((node.name, driver), ()))
            # Without a limit the field is absent.
            limit = {"allocatable": {"count": most - used_by_others}} if most < PLENTY else {}
            listed.append({"name": driver, **limit})
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node.name, "uid": f"csi-node-{node.name}"},
            "spec": {"drivers": listed},
        }


def _attached_for_ours(snapshot: Snapshot) -> Mapping[tuple[NodeName, str], set[str]]:
    """The volumes of CSI drivers that our pods have on their nodes, by node and driver."""
    volumes = {volume.name: volume for volume in snapshot.storage.volumes}
    claims = {claim.key: volumes.get(claim.volume) for claim in snapshot.storage.claims}
    handles: dict[tuple[NodeName, str], set[str]] = {}
    members = (*(member for gang in snapshot.gangs for member in gang.members), *snapshot.strays)
    for member in members:
        if member.node is None or member.is_over:
            continue
        for name in member.claims:
            volume = claims.get(ClaimKey(member.key.namespace, name))
            if volume is not None and volume.driver:
                handles.setdefault((member.node, volume.driver), set()).add(volume.handle)
    return handles


def add_claims(spec: Raw, member: Member) -> None:
    """Add a volume for each claim of a pod to its spec."""
    for name in member.claims:
        volumes = spec.setdefault("volumes", [])
        if name in member.own_claims:
            own = {"name": name.removeprefix(f"{member.key.name}-"), EPHEMERAL: {}}
            volumes.append(own)
        else:
            volumes.append({"name": f"volume-{len(volumes)}", CLAIM: {"claimName": name}})


def _claim(value: Claim) -> Raw:
    metadata: Raw = {**value.key._asdict(), "uid": value.uid or f"claim-{'/'.join(value.key)}"}
    annotations = {reading.BOUND: "yes"} if value.is_bound else {}
    if value.selected_node is not None:
        annotations[reading.SELECTED_NODE] = value.selected_node
    if annotations:
        metadata["annotations"] = annotations
    if value.version:
        metadata["resourceVersion"] = value.version
    if value.owner:
        metadata["ownerReferences"] = [{"kind": "Pod", "uid": value.owner, "controller": True}]
    if value.terminating:
        metadata["deletionTimestamp"] = "1970-01-01T00:00:00Z"  # the time does not matter
    spec: Raw = {"volumeName": value.volume, "storageClassName": value.storage_class}
    if value.request is not None:
        spec |= _wanted(value.request)
    elif value.for_one_pod:
        spec["accessModes"] = [reading.ONE_POD]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": reading.LOST} if value.is_lost else {},
    }


def _wanted(request: VolumeRequest) -> Raw:
    wanted: Raw = {
        "accessModes": [*request.modes],
        "resources": {"requests": {reading.STORAGE: str(request.size)}},
        "volumeMode": _mode(is_block=request.is_block),
    }
    if request.selector is None:
        wanted["selector"] = {"matchExpressions": [{"key": "", "operator": ""}]}  # unreadable
    elif request.selector:
        wanted["selector"] = {"matchExpressions": list(map(requirement, request.selector))}
    if request.attributes_class:
        wanted["volumeAttributesClassName"] = request.attributes_class
    return wanted


def _mode(*, is_block: bool) -> str:
    return reading.BLOCK if is_block else "Filesystem"


def _volume(value: Volume) -> Raw:
    spec: Raw = {}
    if value.driver:
        spec["csi"] = {"driver": value.driver, "volumeHandle": value.handle}
    if value.affinity is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(map(_term, value.affinity))}}
    if value.in_tree:
        spec[value.in_tree] = {}
    if value.claim is not None:
        spec["claimRef"] = {**value.claim.key._asdict(), "uid": value.claim.uid}
    labels = dict(value.places)
    if value.offer is not None:
        spec |= _offered(value.offer)
        labels |= dict(value.offer.labels)
    names = {"name": value.name, "uid": f"volume-{value.name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {**names, "labels": labels},
        "spec": spec,
        "status": {"phase": _phase(value)},
    }


def _phase(value: Volume) -> str:
    if value.offer is None:
        return reading.NO_LONGER_OFFERED[0]
    return "Bound" if value.claim is not None else reading.AVAILABLE


def _offered(offer: Offer) -> Raw:
    offered: Raw = {
        "storageClassName": offer.storage_class,
        "capacity": {reading.STORAGE: str(offer.size)},
        "accessModes": [*offer.modes],
        "volumeMode": _mode(is_block=offer.is_block),
    }
    if offer.attributes_class:
        offered["volumeAttributesClassName"] = offer.attributes_class
    return offered


def _term(way: Way) -> Raw:
    """A term of node affinity; an empty way gives a term that every node meets.

    Its original term was about fields, and volumes are tested as if a node had no name.
    """
    if not way:
        field = {"key": NODE_NAME, "operator": "NotIn", "values": ["-"]}
        return {"matchFields": [field]}
    return {"matchExpressions": [requirement(expression) for expression in way]}


def _class(value: StorageClass) -> Raw:
    raw: Raw = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": value.name, "uid": f"storage-class-{value.name}"},
        "volumeBindingMode": reading.WAITS if value.waits else "Immediate",
        "provisioner": value.provisioner,
    }
    if value.topologies is not None:
        ways = value.topologies or ((),)  # a term without expressions allows no node
        raw["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": r.key, "values": [*r.values]} for r in way]}
            for way in ways
        ]
    return raw


def _driver(value: Driver) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": value.name, "uid": f"driver-{value.name}"},
        # Whether nodes without the driver take its volumes is in the limits of the nodes.
        "spec": {"storageCapacity": value.has_capacity},
    }


def _capacity(number: int, value: Capacity) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {
            "namespace": "default",
            "name": f"capacity-{number}",
            "uid": f"capacity-{number}",
        },
        "storageClassName": value.storage_class,
        "nodeTopology": {"matchExpressions": list(map(requirement, value.way))},
        "capacity": str(value.largest),
    }
