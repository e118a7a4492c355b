"""The fields of Tutti's Queues, and of the record of a start, spelt as the API spells them."""

from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field

from .base import LabelSelector, Object, Quantities, Wire


class RoleAtStart(Wire):
    """Members of one role that a gang started with, and what they requested together."""

    role: str = ""
    members: int
    requests: Quantities = Field(default_factory=dict)


class QueueRecord(Wire):
    """The queue in which a gang started; the built-in queue ``root`` has no uid."""

    name: str
    uid: str = ""
    started_at: AwareDatetime
    minimum: tuple[RoleAtStart, ...] = ()
    protected: bool = False


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
    preemption: str | None = None
    min_run_seconds: int = 0


class QueueStatus(Wire):
    """What Tutti has written down; no decision reads the rest, which stays as it came."""

    model_config = ConfigDict(extra="allow")

    draining_since: AwareDatetime | None = None

    @property
    def rest(self) -> dict[str, Any]:
        """All but the time, as the API spells it."""
        return dict(self.model_extra or {})


class Queue(Object):
    """A tutti.dev Queue."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
