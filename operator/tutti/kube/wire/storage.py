"""The fields of claims, volumes, storage classes and CSI objects that decisions use.

These objects are read only if a pod of our scheduler names a claim.
"""

from typing import Any

from pydantic import Field

from .base import Metadata, Object, Wire
from .pods import NodeSelector


class ClaimMetadata(Metadata):
    """The metadata of a claim; an annotation says whether it is bound."""

    annotations: dict[str, str] = Field(default_factory=dict)


class ClaimSpec(Wire):
    """The class and access modes of a claim, and the volume that it has."""

    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None


class ClaimStatus(Wire):
    """The phase of a claim; Lost means that its volume is gone."""

    phase: str = ""


class PersistentVolumeClaim(Object):
    """A v1 PersistentVolumeClaim."""

    metadata: ClaimMetadata = ClaimMetadata()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class CsiSource(Wire):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeAffinity(Wire):
    """From which nodes a volume can be reached."""

    required: NodeSelector | None = None


class VolumeSpec(Wire):
    """The source of a volume; of in-tree types only those that were migrated to CSI drivers."""

    csi: CsiSource | None = None
    node_affinity: VolumeAffinity = VolumeAffinity()
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


class StorageClass(Object):
    """A storage.k8s.io StorageClass."""

    volume_binding_mode: str = "Immediate"
    provisioner: str = ""


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
    """Whether pods with volumes of the driver are kept off nodes without it."""

    prevent_pod_scheduling_if_missing: bool = False


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
