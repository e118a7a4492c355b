"""API objects as the API server writes them, and how they are read; the only user of pydantic.

Separate from the model so that the API's spelling, its nulls and its surprises end here.
"""

from .base import LabelSelector, Requirement
from .between import PodAffinity, PodAffinityTerm, SpreadConstraint
from .objects import (
    Affinity,
    Condition,
    Container,
    ContainerStatus,
    Job,
    Lease,
    Metadata,
    Namespace,
    Node,
    NodeSelector,
    NodeTerm,
    Object,
    Pod,
    PodGroup,
    PodSpec,
    PodStatus,
    PriorityClass,
    Quantities,
    Reservation,
    Role,
    Toleration,
)
from .reading import Page, WatchEvent, parse_event, parse_one, parse_page
from .storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeSpec

__all__ = [
    "Affinity",
    "Condition",
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
    "PriorityClass",
    "Quantities",
    "Requirement",
    "Reservation",
    "Role",
    "SpreadConstraint",
    "StorageClass",
    "Toleration",
    "VolumeSpec",
    "WatchEvent",
    "parse_event",
    "parse_one",
    "parse_page",
]
