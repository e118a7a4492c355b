"""Decoders of claims, volumes and classes, and the writes that bind claims.

Source: VolumeBinding in kube-scheduler 1.37, and component-helpers/storage/volume.
"""

from collections.abc import Mapping
from typing import Any

from ...model.keys import NodeName
from ...model.volumes import (
    PLACES,
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    ClaimRef,
    Driver,
    NodeDrivers,
    Offer,
    Reach,
    StorageClass,
    Volume,
    VolumeRequest,
    Way,
    way_order,
)
from .. import wire
from ..errors import BadObject
from .inter_pod import MalformedSelector, decode_labels, read_selector, requirements
from .metadata import named
from .quantity import QuantityError, offered, requested

BOUND = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
STORAGE = "storage"
BLOCK = "Block"
AVAILABLE = "Available"
NO_LONGER_OFFERED = ("Released", "Failed")
LOST = "Lost"
ONE_POD = "ReadWriteOncePod"
WAITS = "WaitForFirstConsumer"

_IN_TREE = (
    "aws_elastic_block_store",
    "azure_disk",
    "azure_file",
    "cinder",
    "gce_persistent_disk",
    "portworx_volume",
    "vsphere_volume",
)


def decode_claim(claim: wire.PersistentVolumeClaim) -> Claim:
    """Read a claim."""
    named(claim)
    metadata, spec = claim.metadata, claim.spec
    is_bound = bool(spec.volume_name) and BOUND in metadata.annotations
    selected = "" if is_bound else metadata.annotations.get(SELECTED_NODE, "")
    return Claim(
        ClaimKey(metadata.namespace, metadata.name),
        spec.volume_name,
        is_bound=is_bound,
        storage_class=_class_of(claim),
        is_lost=claim.status.phase == LOST,
        terminating=metadata.deletion_timestamp is not None,
        for_one_pod=ONE_POD in spec.access_modes,
        request=None if is_bound else _request(claim),
        uid=metadata.uid,
        version="" if is_bound else metadata.resource_version,
        selected_node=NodeName(selected) if selected else None,
        owner=next((o.uid for o in metadata.owner_references if o.controller), ""),
    )


def _class_of(claim: wire.PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(BETA_CLASS, claim.spec.storage_class_name or "")


def _request(claim: wire.PersistentVolumeClaim) -> VolumeRequest:
    """What a claim requests.

    Raises:
        BadObject: its size cannot be read.
    """
    spec = claim.spec
    try:
        size = requested(STORAGE, spec.resources.requests.get(STORAGE, 0))
    except QuantityError as problem:
        raise BadObject(named(claim), f"its request cannot be read: {problem}") from problem
    return VolumeRequest(
        _class_of(claim),
        size,
        tuple(sorted(set(spec.access_modes))),
        is_block=spec.volume_mode == BLOCK,
        selector=() if spec.selector is None else _selector(spec.selector),
        attributes_class=spec.volume_attributes_class_name or "",
    )


def decode_volume(volume: wire.PersistentVolume) -> Volume:
    """Read a volume."""
    named(volume)
    spec = volume.spec
    kinds = wire.VolumeSpec.model_fields
    in_tree = (kinds[kind].alias or "" for kind in _IN_TREE if getattr(spec, kind) is not None)
    labels, ref = volume.metadata.labels, spec.claim_ref
    return Volume(
        volume.metadata.name,
        _affinity(spec.node_affinity.required),
        tuple((key, labels[key]) for key in sorted(labels) if key in PLACES),
        driver=spec.csi.driver if spec.csi is not None else "",
        handle=spec.csi.volume_handle if spec.csi is not None else "",
        in_tree=next(in_tree, ""),
        offer=_offer(volume),
        claim=None if ref is None else ClaimRef(ClaimKey(ref.namespace, ref.name), ref.uid),
    )


def _offer(volume: wire.PersistentVolume) -> Offer | None:
    """What a volume offers; None if no claim can be bound to it.

    Raises:
        BadObject: its size cannot be read.
    """
    spec, phase = volume.spec, volume.status.phase
    is_free = spec.claim_ref is None
    if (
        volume.metadata.deletion_timestamp is not None
        or phase in NO_LONGER_OFFERED
        or (is_free and phase != AVAILABLE)
    ):
        return None
    try:
        size = offered(STORAGE, spec.capacity.get(STORAGE, 0))
    except QuantityError as problem:
        raise BadObject(named(volume), f"its size cannot be read: {problem}") from problem
    return Offer(
        volume.metadata.annotations.get(BETA_CLASS, spec.storage_class_name),
        size,
        tuple(sorted(set(spec.access_modes))),
        is_block=spec.volume_mode == BLOCK,
        labels=decode_labels(volume.metadata.labels) if is_free else (),
        attributes_class=spec.volume_attributes_class_name or "",
    )


def decode_class(storage_class: wire.StorageClass) -> StorageClass:
    """Read a class; its binding mode and its topologies are immutable."""
    named(storage_class)
    terms = storage_class.allowed_topologies
    return StorageClass(
        storage_class.metadata.name,
        storage_class.volume_binding_mode == WAITS,
        storage_class.provisioner,
        _topologies(terms) if terms else None,
    )


def _topologies(terms: tuple[wire.TopologyTerm, ...]) -> Reach:
    """The ways of allowedTopologies; a term without expressions allows no node."""
    ways = {
        requirements(
            wire.Requirement(key=e.key, operator="In", values=e.values)
            for e in term.match_label_expressions
        )
        for term in terms
        if term.match_label_expressions
    }
    return tuple(sorted(ways, key=way_order))


def decode_capacity(capacity: wire.CSIStorageCapacity) -> Capacity | None:
    """Read a capacity; None if no node can use it.

    Raises:
        BadObject: its size cannot be read.
    """
    name = named(capacity)
    limit = capacity.maximum_volume_size
    limit = capacity.capacity if limit is None else limit
    way = None if capacity.node_topology is None else _selector(capacity.node_topology)
    if limit is None or way is None:
        return None
    try:
        return Capacity(capacity.storage_class_name, way, offered(STORAGE, limit))
    except QuantityError as problem:
        raise BadObject(name, f"its size cannot be read: {problem}") from problem


def _selector(selector: wire.LabelSelector) -> Way | None:
    """The requirements of a selector; None if it cannot be read."""
    try:
        return read_selector(selector)
    except MalformedSelector:
        return None


def decode_drivers(node: wire.CSINode) -> NodeDrivers:
    """Read the drivers of a node."""
    named(node)
    limits = {driver.name: driver.allocatable.count for driver in node.spec.drivers}
    return NodeDrivers(NodeName(node.metadata.name), tuple(sorted(limits.items())))


def decode_driver(driver: wire.CSIDriver) -> Driver:
    """Read a driver."""
    named(driver)
    spec = driver.spec
    return Driver(
        driver.metadata.name, spec.prevent_pod_scheduling_if_missing, spec.storage_capacity
    )


def decode_attachment(attachment: wire.VolumeAttachment) -> Attachment | None:
    """Read an attachment; None if it is not of a PersistentVolume."""
    named(attachment)
    spec = attachment.spec
    volume = spec.source.persistent_volume_name
    if not (spec.attacher and volume):
        return None
    return Attachment(NodeName(spec.node_name), spec.attacher, volume)


def _affinity(required: wire.NodeSelector | None) -> Reach | None:
    """The node affinity of a volume, which depends on the labels of nodes alone.

    kube-scheduler's ``CheckNodeAffinity`` tests every node as if it had no name.
    """
    if required is None:
        return None
    ways = {
        requirements(term.match_expressions)
        for term in required.node_selector_terms
        if (term.match_expressions or term.match_fields)
        and all(map(_holds_without_a_name, term.match_fields))
    }
    return tuple(sorted(ways, key=way_order))


def _holds_without_a_name(field: wire.Requirement) -> bool:
    if len(field.values) != 1:
        return False
    return field.operator == ("NotIn" if field.values[0] else "In")


def encode_binding(version: str, claim: Claim) -> Mapping[str, Any]:
    """A patch that gives a volume to a claim, if the volume has this version.

    The PV controller completes the binding; with the annotation it may also undo it.
    """
    key = claim.key
    return {
        "metadata": {
            "resourceVersion": version,
            "annotations": {BOUND_BY_CONTROLLER: "yes"},
        },
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": key.namespace,
                "name": key.name,
                "uid": claim.uid,
            }
        },
    }


def encode_selected_node(node: NodeName | None, version: str) -> Mapping[str, Any]:
    """A patch that says for which node a claim is provisioned, if it has this version; or none."""
    return {"metadata": {"resourceVersion": version, "annotations": {SELECTED_NODE: node}}}
