"""The fields of Tutti's Queues and of the record of a start, in the spelling of the API."""

from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field

from .base import LabelSelector, Object, Quantities, Wire


class RoleAtStart(Wire):
    """How many members of one role a gang started with, and the sum of their requests."""

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
    """The quotas of one resource; amounts are as they came, like ``Quantities``."""

    name: str
    guaranteed: Any = None
    limit: Any = None


class QueueSpec(Wire):
    """The spec of a Queue, which an administrator writes."""

    parent: str = ""
    resources: tuple[QueueResource, ...] = ()
    weight: int = 1
    namespaces: LabelSelector | None = None
    default_for: LabelSelector | None = None
    stop: str = "None"
    mode: str = "Active"
    preemption: str | None = None
    min_run_seconds: int = 0
    max_grace_seconds: int | None = None


class PastUse(Wire):
    """The past use of a Queue; shares are in parts per million."""

    mean_share: int = Field(ge=0)
    share: int = Field(ge=0)
    since: AwareDatetime
    half_life_seconds: int = Field(gt=0)


class QueueStatus(Wire):
    """The status of a Queue; decisions read only the declared fields."""

    model_config = ConfigDict(extra="allow")

    draining_since: AwareDatetime | None = None
    past_use: PastUse | None = None
    queues_since: AwareDatetime | None = None

    @property
    def rest(self) -> dict[str, Any]:
        """All other fields, in the spelling of the API."""
        return dict(self.model_extra or {})


class Queue(Object):
    """A tutti.dev Queue."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
