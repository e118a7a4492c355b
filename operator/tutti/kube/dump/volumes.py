"""Claims, volumes and classes back to API objects, as far as pods of ours name them.

The inverse of ``kube.volumes``; separate from ``objects`` as that is from ``decode``.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ...model.volumes import Claim, Storage, StorageClass, Volume, Way
from .. import volumes as reading
from ..shapes import CLAIM, NODE_NAME
from .rules import requirement

Raw = dict[str, Any]


def written(storage: Storage) -> Iterator[Raw]:
    """All of it, as API objects; their uids are not part of a Snapshot."""
    yield from (_class(one) for one in storage.classes)
    yield from (_volume(one) for one in storage.volumes)
    yield from (_claim(one) for one in storage.claims)


def add_claims(spec: Raw, claims: Iterable[str]) -> None:
    """Let a pod have a volume for each of these claims."""
    for name in claims:
        found = spec.setdefault("volumes", [])
        found.append({"name": f"volume-{len(found)}", CLAIM: {"claimName": name}})


def _claim(value: Claim) -> Raw:
    metadata: Raw = {**value.key._asdict(), "uid": f"claim-{'/'.join(value.key)}"}
    if value.is_bound:
        metadata["annotations"] = {reading.BOUND: "yes"}
    if value.terminating:
        metadata["deletionTimestamp"] = "1970-01-01T00:00:00Z"  # when it began decides nothing
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
    if value.affinity is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(map(_term, value.affinity))}}
    if value.driver:
        spec["csi"] = {"driver": value.driver}
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
    """A term; one that asks nothing of labels held for fields, which only nameless nodes have."""
    if not way:
        field = {"key": NODE_NAME, "operator": "NotIn", "values": ["-"]}
        return {"matchFields": [field]}
    return {"matchExpressions": [requirement(one) for one in way]}


def _class(value: StorageClass) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": value.name, "uid": f"storage-class-{value.name}"},
        "volumeBindingMode": reading.WAITS if value.waits else "Immediate",
    }
