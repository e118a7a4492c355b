"""What planning decides: values that can be compared, printed, replayed and thrown away."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from .cluster import Member, PodReservation, Reservation, SlotReservation
from .keys import GangKey, NodeName, PodKey, Uid
from .queues import ROOT, Preemption, QueueRecord
from .resources import Resources


class Objective(StrEnum):
    """What the gangs that are admitted together are counted by, within one priority."""

    RESOURCES = "resources"  # the largest share of any resource's cluster total, weighted by age
    GANGS = "gangs"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Policy:
    """What users may choose about who starts first; never whether a plan is sound."""

    objective: Objective = Objective.RESOURCES
    age_seconds: float = 3600.0  # a gang that has waited so long counts twice, and so on
    starvation_seconds: float = 3600.0  # then a gang goes before all others of its priority
    # What gangs may have ended in queues that say nothing of it; if off, nobody ends in any queue.
    preemption: Preemption = Preemption.OFF


@dataclass(frozen=True, slots=True)
class GangCap:
    """A limit on what some gangs use together, by resource; ``pods`` counts their members.

    Members that run, and members that a Reservation holds room for, use what they request.
    Resources without a limit are not counted.
    """

    name: str
    gangs: frozenset[GangKey]
    limits: Mapping[str, int]


class Mode(StrEnum):
    """Whether plans are carried out."""

    ACTIVE = "active"
    SHADOW = "shadow"  # none, nor is anything finished that was begun
    PAUSED = "paused"  # none; what was begun is finished


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """What users may choose about how much of a plan is carried out."""

    mode: Mode = Mode.ACTIVE
    bindings: int = 0  # begun per cycle at most, whole gangs only; 0 is any number
    # Pods that end for claims at most, in one cycle and of one queue within an hour; 0: no limit.
    evictions: int = 0
    hourly_evictions: int = 0


class Reason(StrEnum):
    """Why a gang waits, as its ``Reserved`` condition says it."""

    WAITING_FOR_MEMBERS = "WaitingForMembers"
    WAITING_FOR_VOLUMES = "WaitingForVolumes"
    NOT_ENOUGH_ROOM = "NotEnoughRoom"
    NO_NODE_FITS = "NoNodeFits"
    NOT_MODELLED = "NotModelled"
    UNKNOWN_LEVEL = "UnknownLevel"  # of a topology
    MEMBERS_DIFFER = "MembersDiffer"  # in what its kind of gang wants to be equal
    BUDGET_EXHAUSTED = "BudgetExhausted"
    TIMED_OUT = "TimedOut"
    WAITING_FOR_CONFIGURATION = "WaitingForConfiguration"  # of a Spark driver: how large it is
    REFUSED = "Refused"  # the API server would not take the Reservation
    UNKNOWN_QUEUE = "UnknownQueue"
    FORBIDDEN_QUEUE = "ForbiddenQueue"  # the queue does not admit the namespace
    QUEUE_HAS_CHILDREN = "QueueHasChildren"  # gangs start in queues without children
    AMBIGUOUS_DEFAULT = "AmbiguousDefault"  # several queues are the namespace's default
    UNKNOWN_NAMESPACE = "UnknownNamespace"  # no watch has shown it yet
    QUEUE_HELD = "QueueHeld"
    QUEUE_DRAINS = "QueueDrains"  # and the gang is newer than the drain
    QUEUE_CHANGES = "QueueChanges"  # pods of the gang still hold room in another queue
    QUEUE_AT_LIMIT = "QueueAtLimit"
    MAY_NOT_BORROW = "MayNotBorrow"  # preemption: Never, and its queue does not cover it
    PAUSED = "Paused"
    WOULD_START = "WouldStart"  # but for the mode


@dataclass(frozen=True, slots=True)
class Assignment:
    """One member on one node; uid and version are the preconditions of its binding."""

    pod: PodKey
    uid: Uid
    version: str
    node: NodeName


@dataclass(frozen=True, slots=True)
class Placement:
    """All assignments that one gang needs now; complete by construction.

    ``slots`` are all the room that is then held for members that do not exist yet, what a standing
    Reservation holds for them and goes on holding included. A ``remark`` is for people.
    """

    gang: GangKey
    uid: Uid
    generation: int
    assignments: tuple[Assignment, ...]
    slots: tuple[SlotReservation, ...] = ()
    remark: str = ""
    record: QueueRecord | None = None  # of a gang that starts while there are Queues


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rejection says; ``gang.findings`` has all kinds."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a gang got no placement: the reason, and what was found; ``gang.finding_text`` words it.

    Of one that has timed out and waits on, ``underlying_reason`` is why it does.
    ``only_extra_members`` says that only members have no room that the gang does not need.
    """

    gang: GangKey
    reason: Reason
    findings: tuple[Finding, ...]
    underlying_reason: Reason | None = None
    only_extra_members: bool = False

    def with_findings(self, *findings: Finding) -> "Rejection":
        """The rejection with these findings after its own."""
        return replace(self, findings=(*self.findings, *findings))


@dataclass(frozen=True, slots=True)
class Eviction:
    """A gang that lost members and finds no room: the bound ones go, so that it can start anew."""

    gang: GangKey
    uid: Uid
    generation: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Victim:
    """Members of a gang that are to end, so that another starts: all of them, or some extras."""

    gang: GangKey
    uid: Uid
    members: tuple[Member, ...]
    is_whole: bool  # otherwise the gang runs on with at least the members that it needs
    queue: str = ROOT  # that the gang is charged to


@dataclass(frozen=True, slots=True)
class Claim:
    """A gang that starts once its victims have gone, and nobody else takes their room.

    ``cost`` is the work that is lost: seconds, times the share of the cluster that each member
    requests. No other victims cost less than ``bound``.
    """

    gang: GangKey
    uid: Uid
    generation: int
    assignments: tuple[Assignment, ...]
    victims: tuple[Victim, ...]  # sorted by gang; none if the room of members suffices that leave
    by_guarantee: bool  # otherwise by its priority alone
    cost: Fraction
    bound: Fraction
    record: QueueRecord | None = None  # of the start, while there are Queues

    @property
    def is_proved(self) -> bool:
        """Whether no other victims lose less work."""
        return self.bound >= self.cost


@dataclass(frozen=True, slots=True)
class Level:
    """What was admitted of one priority's gangs that could start, in the objective's own units.

    No admission is worth more than ``bound``; None where nobody has shown one.
    """

    priority: int
    admitted: int
    bound: int | None = None

    @property
    def gap(self) -> float | None:
        """By how much what is admitted may be below the best, as a share of the bound."""
        if self.bound is None:
            return None
        return (self.bound - self.admitted) / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class QueueUse:
    """What the gangs at and below a queue use when the Snapshot was taken, before the plan.

    Only resources that some queue guarantees are in ``covered`` and ``borrowed``, which add up to
    what is charged of them. ``share`` is the largest part of any resource's total that is charged
    over the guarantee, divided by the weight.
    """

    name: str
    charged: Resources
    covered: Resources  # by the guarantee of any queue, those above included
    borrowed: Resources
    waiting: int  # gangs with pods that have not started
    share: Fraction
    # Of a queue in shadow: gangs that run and that its limits would have stopped, in this order.
    stopped_in_shadow: tuple[GangKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The placements, evictions and rejections for one Snapshot.

    ``proved`` says that no better admission exists; ``shortfall`` is why it does not. At
    ``next_change_at`` the same Snapshot calls for another plan: time alone changes who goes first.
    """

    placements: tuple[Placement, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    proved: bool = True
    shortfall: str = ""
    next_change_at: float | None = None  # seconds since the epoch
    levels: tuple[Level, ...] = ()  # the highest priority first; gangs ruled out by counting aside
    queues: tuple[QueueUse, ...] = ()  # by name, the root included; empty while there are no Queues
    claims: tuple[Claim, ...] = ()  # one after the other: each counts on those before it

    @property
    def open_level(self) -> Level | None:
        """The highest priority at which a better admission may exist."""
        return next((level for level in self.levels if level.gap != 0), None)

    @property
    def gap(self) -> float | None:
        """The gap of that priority; None if it is not known.

        Gaps of several priorities have no sum: no gain at a lower one makes up for a higher one.
        """
        if self.proved:
            return 0.0
        if (level := self.open_level) is not None:
            return level.gap
        return 0.0 if self.levels else None


class Released(NamedTuple):
    """A Reservation that was given back, and why; or what of it did not go on as ``rest``."""

    reservation: Reservation
    sentence: str
    rest: Reservation | None = None
    reason: str = "Released"

    @property
    def ended(self) -> Iterator[PodReservation]:
        """The entries that are given back."""
        kept = frozenset(() if self.rest is None else self.rest.entries)
        return (entry for entry in self.reservation.entries if entry not in kept)
