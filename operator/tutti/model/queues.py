"""A Queue as it is declared, and the records of a start in a queue and of the use of a queue."""

from dataclasses import dataclass
from enum import StrEnum
from math import exp2, inf

from .inter_pod import Requirement
from .keys import Uid
from .resources import Resources

ROOT = "root"  # the built-in queue: above all others, and the queue of gangs without a queue
Amounts = tuple[tuple[str, int], ...]  # by resource, sorted; 0 differs from an absent resource
Selector = tuple[Requirement, ...]  # all must hold; an empty tuple selects everything


class Stop(StrEnum):
    """Which gangs a queue does not start; this also applies to all queues below it."""

    NONE = "None"
    HOLD = "Hold"  # all gangs
    DRAIN = "Drain"  # gangs created after the drain began, so that the queue becomes empty


class QueueMode(StrEnum):
    """Whether the quotas of a queue take effect."""

    ACTIVE = "Active"
    SHADOW = "Shadow"  # the status only says which gangs they would have stopped


class Preemption(StrEnum):
    """Which pods Tutti may end so that gangs that wait in a queue start."""

    OFF = "Off"  # none
    RECLAIM = "Reclaim"  # pods that borrow, if a guarantee covers the gang that waits
    FULL = "Full"  # also pods that borrow in the same queue, of gangs with a lower priority


@dataclass(frozen=True, slots=True)
class PastUse:
    """The record of a queue's past use; no tenant can write it.

    Past use is a mean of shares over time. It gives each time half the weight of the time one
    half-life later. Shares are in parts per million.
    """

    mean: int  # at ``since``
    share: int  # from ``since`` on
    since: float  # seconds since the epoch
    half_life: float  # seconds; positive

    def mean_at(self, now: float) -> float:
        """The mean at a time, in parts per million, as if the share had not changed since."""
        remaining = exp2(-max(0.0, now - self.since) / self.half_life)
        return self.mean * remaining + self.share * (1 - remaining)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as an administrator declares it; names of queues are unique in the cluster."""

    name: str
    uid: Uid
    parent: str = ""  # empty for a child of the root
    guaranteed: Amounts = ()
    limits: Amounts = ()
    weight: int = 1
    namespaces: Selector | None = ()  # namespaces that may use it, by label; None: no namespace
    default_for: Selector | None = None  # namespaces whose default it is; None: no namespace
    stop: Stop = Stop.NONE
    draining_since: float | None = None  # seconds since the epoch; None until it is recorded
    mode: QueueMode = QueueMode.ACTIVE
    preemption: Preemption | None = None  # None: as the operator's setting says
    min_run_seconds: float = 0.0  # after its start a gang of the queue is no victim for so long
    max_grace_seconds: float = inf  # a gang whose pods may take longer to end does not borrow
    is_terminating: bool = False
    created: float = 0.0  # seconds since the epoch
    past_use: PastUse | None = None  # None: nothing is recorded
    # The record of the time since when plans have had Queues; it outlives the first Queue.
    queues_since: float | None = None  # seconds since the epoch
    unreadable: tuple[str, ...] = ()  # fields; amounts count as 0, selectors as None; sorted


@dataclass(frozen=True, slots=True)
class RoleAtStart:
    """How many members of one role a gang started with, and the sum of their requests."""

    role: str
    members: int
    requests: Resources


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """The record of a gang's start in a queue; no tenant can write it.

    A queue that was deleted and created again has another uid, and is not the queue of the record.
    """

    queue: str  # empty if the gang ran before there were Queues and has belonged to none since
    queue_uid: Uid
    started: float  # seconds since the epoch
    minimum: tuple[RoleAtStart, ...] = ()  # sorted by role
    is_protected: bool = False  # from being ended, for its queue's own guarantee covered it
    # How many members of each role have succeeded since, sorted. It never falls, whatever becomes
    # of their pods and of the PodGroup.
    succeeded: tuple[tuple[str, int], ...] = ()

    @property
    def has_roles(self) -> bool:
        """Whether members fill places of their role only."""
        return any(start.role for start in self.minimum)
