"""The fields of claims, volumes, storage classes and CSI objects that decisions use.

These objects are read only if a pod of our scheduler names a claim.
"""

from typing import Any

from pydantic import Field

from .base import LabelSelector, Object, Quantities, Requirement, Wire
from .pods import NodeSelector


class ClaimResources(Wire):
    """How much storage a claim requests."""

    requests: Quantities = Field(default_factory=dict)


class ClaimSpec(Wire):
    """What a claim requests of a volume, and the volume that it has."""

    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    resources: ClaimResources = ClaimResources()
    volume_mode: str = ""
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimStatus(Wire):
    """The phase of a claim; Lost means that its volume is gone."""

    phase: str = ""


class PersistentVolumeClaim(Object):
    """A v1 PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class CsiSource(Wire):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeAffinity(Wire):
    """From which nodes a volume can be reached."""

    required: NodeSelector | None = None


class ClaimReference(Wire):
    """The claim that a volume is for, or is bound to."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeStatus(Wire):
    """The phase of a volume; Available means that no claim has it."""

    phase: str = ""


class VolumeSpec(Wire):
    """The source of a volume; of in-tree types only those that were migrated to CSI drivers."""

    csi: CsiSource | None = None
    node_affinity: VolumeAffinity = VolumeAffinity()
    capacity: Quantities = Field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None


class PersistentVolume(Object):
    """A v1 PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyTerm(Wire):
    """Labels of nodes that must all have one of their values."""

    match_label_expressions: tuple[Requirement, ...] = ()


class StorageClass(Object):
    """A storage.k8s.io StorageClass."""

    volume_binding_mode: str = "Immediate"
    provisioner: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class DriverAllocatable(Wire):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class NodeDriver(Wire):
    """A driver on a node."""

    name: str = ""
    allocatable: DriverAllocatable = DriverAllocatable()


class CsiNodeSpec(Wire):
    """The drivers of a node."""

    drivers: tuple[NodeDriver, ...] = ()


class CSINode(Object):
    """A storage.k8s.io CSINode, named like its node."""

    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Wire):
    """Whether nodes without the driver take no pods with its volumes, and who knows its room."""

    prevent_pod_scheduling_if_missing: bool = False
    storage_capacity: bool = False


class CSIDriver(Object):
    """A storage.k8s.io CSIDriver."""

    spec: CsiDriverSpec = CsiDriverSpec()


class AttachmentSource(Wire):
    """The attached volume; empty if it is not a PersistentVolume."""

    persistent_volume_name: str = ""


class AttachmentSpec(Wire):
    """The driver, the node and the volume of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object):
    """A storage.k8s.io VolumeAttachment."""

    spec: AttachmentSpec = AttachmentSpec()


class CSIStorageCapacity(Object):
    """A storage.k8s.io CSIStorageCapacity; without a topology, no node can use it."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Any = None
    maximum_volume_size: Any = None
