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
    PreferredNodeTerm,
    PriorityClass,
    Quantities,
    Reservation,
    Role,
    Toleration,
)
from .reading import Page, WatchEvent, parse_event, parse_one, parse_page

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
    "Role",
    "SpreadConstraint",
    "Toleration",
    "WatchEvent",
    "parse_event",
    "parse_one",
    "parse_page",
]
