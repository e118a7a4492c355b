"""Claims, volumes and storage classes: the fields of theirs that a decision uses.

Separate from ``objects`` because they are read only where a pod that waits names a claim.
"""

from typing import Any

from pydantic import Field

from .base import Metadata, Object, Wire
from .pods import NodeSelector


class ClaimMetadata(Metadata):
    """A claim's, of which annotations say whether it is bound."""

    annotations: dict[str, str] = Field(default_factory=dict)


class ClaimSpec(Wire):
    """What is claimed, and which volume it was given."""

    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None


class ClaimStatus(Wire):
    """Whether the volume is still there."""

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
    """Where a volume is; of the kinds in the tree those that CSI drivers have taken over."""

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
    """Whether nodes without the driver are left out."""

    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Object):
    """A storage.k8s.io CSIDriver."""

    spec: CsiDriverSpec = CsiDriverSpec()


class AttachmentSource(Wire):
    """What is attached; some attachments are of no PersistentVolume."""

    persistent_volume_name: str = ""


class AttachmentSpec(Wire):
    """Who attaches what to which node."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object):
    """A storage.k8s.io VolumeAttachment."""

    spec: AttachmentSpec = AttachmentSpec()
