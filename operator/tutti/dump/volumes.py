"""Encodes claims, volumes and classes as API objects, as far as pods of our scheduler name them.

The inverse of ``kube.codec.volumes``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..kube.codec import volumes as reading
from ..kube.codec.shapes import CLAIM, NODE_NAME
from ..model.cluster import Snapshot
from ..model.devices.claims import without_counts
from ..model.keys import NodeName
from ..model.resources import Resources
from ..model.volumes import (
    PLENTY,
    Claim,
    ClaimKey,
    Storage,
    StorageClass,
    Volume,
    Way,
    driver_of,
    is_attaching,
)
from .inter_pod import requirement

Raw = dict[str, Any]


def written(storage: Storage) -> Iterator[Raw]:
    """The classes, volumes and claims as API objects; their uids are not part of a Snapshot."""
    yield from (_class(storage_class) for storage_class in storage.classes)
    yield from (_volume(volume) for volume in storage.volumes)
    yield from (_claim(claim) for claim in storage.claims)


def without_volumes(amounts: Resources) -> Resources:
    """The amounts without those that count the volumes of drivers, or devices."""
    amounts = without_counts(amounts)
    return Resources(tuple(amount for amount in amounts.amounts if not is_attaching(amount[0])))


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


def add_claims(spec: Raw, claims: Iterable[str]) -> None:
    """Add a volume for each of these claims to the spec of a pod."""
    for name in claims:
        volumes = spec.setdefault("volumes", [])
        volumes.append({"name": f"volume-{len(volumes)}", CLAIM: {"claimName": name}})


def _claim(value: Claim) -> Raw:
    metadata: Raw = {**value.key._asdict(), "uid": f"claim-{'/'.join(value.key)}"}
    if value.is_bound:
        metadata["annotations"] = {reading.BOUND: "yes"}
    if value.terminating:
        metadata["deletionTimestamp"] = "1970-01-01T00:00:00Z"  # the time does not matter
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "volumeName": value.volume,
            "storageClassName": value.storage_class,
            "accessModes": [reading.ONE_POD] if value.for_one_pod else [],
        },
        "status": {"phase": reading.LOST} if value.is_lost else {},
    }


def _volume(value: Volume) -> Raw:
    spec: Raw = {}
    if value.driver:
        spec["csi"] = {"driver": value.driver, "volumeHandle": value.handle}
    if value.affinity is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(map(_term, value.affinity))}}
    if value.in_tree:
        spec[value.in_tree] = {}
    names = {"name": value.name, "uid": f"volume-{value.name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {**names, "labels": dict(value.places)},
        "spec": spec,
    }


def _term(way: Way) -> Raw:
    """A term of node affinity; an empty way gives a term that every node meets.

    Its original term was about fields, and volumes are tested as if a node had no name.
    """
    if not way:
        field = {"key": NODE_NAME, "operator": "NotIn", "values": ["-"]}
        return {"matchFields": [field]}
    return {"matchExpressions": [requirement(expression) for expression in way]}


def _class(value: StorageClass) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": value.name, "uid": f"storage-class-{value.name}"},
        "volumeBindingMode": reading.WAITS if value.waits else "Immediate",
        "provisioner": value.provisioner,
    }
