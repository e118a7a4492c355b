"""API objects as the API server writes them, and how they are read, by pydantic.

Separate from the model so that the API's spelling, its nulls and its surprises end here.
The fields of what declares gangs stand in the modules of ``gang_sources``.
"""

from .base import Condition, LabelSelector, Metadata, Object, Quantities, Requirement, Wire
from .inter_pod import PodAffinity, PodAffinityTerm, SpreadConstraint
from .objects import (
    ConfigMap,
    Job,
    Lease,
    Node,
    Reservation,
)
from .pods import (
    Affinity,
    Container,
    ContainerStatus,
    NodeSelector,
    NodeTerm,
    Pod,
    PodSpec,
    PodStatus,
    PreferredNodeTerm,
    ResourceAmounts,
    Toleration,
)
from .queues import Queue, QueueRecord
from .reading import Page, WatchEvent, parse_event, parse_one, parse_page
from .storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSpec,
)

__all__ = [
    "Affinity",
    "CSIDriver",
    "CSINode",
    "Condition",
    "ConfigMap",
    "Container",
    "ContainerStatus",
    "Job",
    "LabelSelector",
    "Lease",
    "Metadata",
    "Node",
    "NodeSelector",
    "NodeTerm",
    "Object",
    "Page",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodSpec",
    "PodStatus",
    "PreferredNodeTerm",
    "Quantities",
    "Queue",
    "QueueRecord",
    "Requirement",
    "Reservation",
    "ResourceAmounts",
    "SpreadConstraint",
    "StorageClass",
    "Toleration",
    "VolumeAttachment",
    "VolumeSpec",
    "WatchEvent",
    "Wire",
    "parse_event",
    "parse_one",
    "parse_page",
]
