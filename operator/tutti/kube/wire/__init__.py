"""API objects as the API server writes them: pydantic models, and how they are read.

The spelling of the API and its nulls do not reach the model. The modules of ``gang_sources`` have
the fields of the objects that declare gangs.
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
from .reading import Page, WatchEvent, parse_event, parse_one, parse_page, peek_continue_token
from .storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
    VolumeAttachment,
    VolumeSpec,
)

__all__ = [
    "Affinity",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
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
    "TopologyTerm",
    "VolumeAttachment",
    "VolumeSpec",
    "WatchEvent",
    "Wire",
    "parse_event",
    "parse_one",
    "parse_page",
    "peek_continue_token",
]
