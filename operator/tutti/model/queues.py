"""A Queue as it is declared, and what is written down about a gang when it starts in one."""

from dataclasses import dataclass
from enum import StrEnum

from .inter_pod import Requirement
from .keys import Uid
from .resources import Resources

ROOT = "root"  # the built-in queue: the parent of all, and the queue of gangs that have none
Amounts = tuple[tuple[str, int], ...]  # by resource, sorted; a zero says something: nothing at all
Selector = tuple[Requirement, ...]  # all must hold; none at all selects everything


class Stop(StrEnum):
    """What a queue no longer does; it holds for all queues below it, too."""

    NONE = "None"
    HOLD = "Hold"  # start gangs
    DRAIN = "Drain"  # admit gangs created after the drain began, so that it is empty at the end


class QueueMode(StrEnum):
    """Whether the quotas of a queue count."""

    ACTIVE = "Active"
    SHADOW = "Shadow"  # they only say what they would have stopped


class Preemption(StrEnum):
    """What gangs that wait in a queue may have ended, so that they start."""

    OFF = "Off"  # nothing
    RECLAIM = "Reclaim"  # what borrows, if a guarantee covers them
    FULL = "Full"  # also borrowers of their own queue with a lower priority


@dataclass(frozen=True, slots=True)
class Queue:
    """What an administrator declares of a queue; names of queues are unique in the cluster."""

    name: str
    uid: Uid
    parent: str = ""  # empty for a child of the root
    guaranteed: Amounts = ()
    limits: Amounts = ()
    weight: int = 1
    namespaces: Selector | None = ()  # that may use it, by their labels; None for none
    default_for: Selector | None = None  # those of which it is the default; None for none
    stop: Stop = Stop.NONE
    draining_since: float | None = None  # seconds since the epoch; None until it is written down
    mode: QueueMode = QueueMode.ACTIVE
    preemption: Preemption | None = None  # None: as the operator's setting says
    min_run_seconds: float = 0.0  # after its start a gang of the queue is no victim for so long
    is_terminating: bool = False
    created: float = 0.0  # seconds since the epoch
    unreadable: tuple[str, ...] = ()  # fields: amounts that count as 0, selectors as None; sorted


@dataclass(frozen=True, slots=True)
class RoleAtStart:
    """Members of one role that a gang started with, and what they requested together."""

    role: str
    members: int
    requests: Resources


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """What is written down when a gang starts; no tenant can write it.

    A queue that was deleted and created again has another uid, and is not the queue of the record.
    """

    queue: str
    queue_uid: Uid
    started: float  # seconds since the epoch
    minimum: tuple[RoleAtStart, ...] = ()  # sorted by role
    is_protected: bool = False  # from being ended, for its queue's own guarantee covered it
