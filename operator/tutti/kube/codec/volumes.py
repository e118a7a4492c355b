"""Decoders of claims, volumes and classes. Source: VolumeBinding in kube-scheduler 1.37."""

from ...model.keys import NodeName
from ...model.volumes import (
    PLACES,
    Attachment,
    Claim,
    ClaimKey,
    Driver,
    NodeDrivers,
    Reach,
    StorageClass,
    Volume,
    way_order,
)
from .. import wire
from .inter_pod import requirements
from .metadata import named

BOUND = "pv.kubernetes.io/bind-completed"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
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
    return Claim(
        ClaimKey(metadata.namespace, metadata.name),
        spec.volume_name,
        is_bound=bool(spec.volume_name) and BOUND in metadata.annotations,
        storage_class=metadata.annotations.get(BETA_CLASS, spec.storage_class_name or ""),
        is_lost=claim.status.phase == LOST,
        terminating=metadata.deletion_timestamp is not None,
        for_one_pod=ONE_POD in spec.access_modes,
    )


def decode_volume(volume: wire.PersistentVolume) -> Volume:
    """Read a volume."""
    named(volume)
    spec = volume.spec
    kinds = wire.VolumeSpec.model_fields
    in_tree = (kinds[kind].alias or "" for kind in _IN_TREE if getattr(spec, kind) is not None)
    labels = volume.metadata.labels
    return Volume(
        volume.metadata.name,
        _affinity(spec.node_affinity.required),
        tuple((key, labels[key]) for key in sorted(labels) if key in PLACES),
        driver=spec.csi.driver if spec.csi is not None else "",
        handle=spec.csi.volume_handle if spec.csi is not None else "",
        in_tree=next(in_tree, ""),
    )


def decode_class(storage_class: wire.StorageClass) -> StorageClass:
    """Read a class; its binding mode is immutable."""
    named(storage_class)
    return StorageClass(
        storage_class.metadata.name,
        storage_class.volume_binding_mode == WAITS,
        storage_class.provisioner,
    )


def decode_drivers(node: wire.CSINode) -> NodeDrivers:
    """Read the drivers of a node."""
    named(node)
    limits = {driver.name: driver.allocatable.count for driver in node.spec.drivers}
    return NodeDrivers(NodeName(node.metadata.name), tuple(sorted(limits.items())))


def decode_driver(driver: wire.CSIDriver) -> Driver:
    """Read a driver."""
    named(driver)
    return Driver(driver.metadata.name, driver.spec.prevent_pod_scheduling_if_missing)


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
