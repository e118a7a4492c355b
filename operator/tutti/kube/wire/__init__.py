"""API objects as the API server writes them, and how they are read; the only user of pydantic.

Separate from the model so that the API's spelling, its nulls and its surprises end here.
"""

from .base import Condition, LabelSelector, Metadata, Object, Quantities, Requirement
from .inter_pod import PodAffinity, PodAffinityTerm, SpreadConstraint
from .objects import (
    ConfigMap,
    Job,
    Lease,
    Namespace,
    Node,
    PodGroup,
    PriorityClass,
    Reservation,
    Role,
    Template,
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
    "Namespace",
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
    "PodGroup",
    "PodSpec",
    "PodStatus",
    "PreferredNodeTerm",
    "PriorityClass",
    "Quantities",
    "Requirement",
    "Reservation",
    "ResourceAmounts",
    "Role",
    "SpreadConstraint",
    "StorageClass",
    "Template",
    "Toleration",
    "VolumeAttachment",
    "VolumeSpec",
    "WatchEvent",
    "parse_event",
    "parse_one",
    "parse_page",
]
