"""The fields of Tutti's Queues that a decision uses, spelt as the API spells them."""

from typing import Any

from pydantic import AwareDatetime

from .base import LabelSelector, Object, Wire


class QueueResource(Wire):
    """The quotas of one resource; amounts stay as they came, as in ``Quantities``."""

    name: str
    guaranteed: Any = None
    limit: Any = None


class QueueSpec(Wire):
    """What an administrator declares."""

    parent: str = ""
    resources: tuple[QueueResource, ...] = ()
    weight: int = 1
    namespaces: LabelSelector | None = None
    default_for: LabelSelector | None = None
    stop: str = "None"
    mode: str = "Active"


class QueueStatus(Wire):
    """What Tutti has written down."""

    draining_since: AwareDatetime | None = None


class Queue(Object):
    """A tutti.dev Queue."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
