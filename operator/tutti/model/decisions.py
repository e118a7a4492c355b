"""The results of planning, as values that can be compared and printed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from .cluster import Member, PodReservation, Reservation, SlotReservation
from .devices.claims import ClaimAllocation
from .keys import GangKey, NodeName, PodKey, Uid
from .queues import ROOT, Preemption, QueueRecord
from .resources import Resources
from .volumes import VolumeChoice


class Objective(StrEnum):
    """How the value of the gangs that start together is counted, within one priority."""

    RESOURCES = "resources"  # the largest share of any resource's cluster total, weighted by age
    GANGS = "gangs"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of users about which gangs start first; no setting can break a rule of plans."""

    objective: Objective = Objective.RESOURCES
    age_seconds: float = 3600.0  # a gang that has waited so long counts twice, and so on
    starvation_seconds: float = 3600.0  # after so long, a gang goes before others of its priority
    # What gangs may have ended, for queues that set no preemption. OFF overrides all queues.
    preemption: Preemption = Preemption.OFF


@dataclass(frozen=True, slots=True)
class GangCap:
    """A limit, by resource, on the total use of some gangs; ``pods`` counts their members.

    Members that run, and members that a Reservation holds room for, use their requests. Resources
    without a limit are not counted.
    """

    name: str
    gangs: frozenset[GangKey]
    limits: Mapping[str, int]


class Mode(StrEnum):
    """Whether plans are carried out."""

    ACTIVE = "active"
    SHADOW = "shadow"  # no plan is carried out, and standing Reservations are not continued
    PAUSED = "paused"  # no plan is carried out; standing Reservations are


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """The settings of users about how much of a plan is carried out."""

    mode: Mode = Mode.ACTIVE
    bindings: int = 0  # begun per cycle at most, whole gangs only; 0 is any number
    # Pods that end for claims at most, in one cycle and of one queue within an hour; 0: no limit.
    evictions: int = 0
    hourly_evictions: int = 0


class Reason(StrEnum):
    """Why a gang waits: the reason of its ``Reserved`` condition."""

    WAITING_FOR_MEMBERS = "WaitingForMembers"
    WAITING_FOR_VOLUMES = "WaitingForVolumes"
    WAITING_FOR_DEVICES = "WaitingForDevices"  # a claim for devices does not exist, or is in use
    NOT_ENOUGH_ROOM = "NotEnoughRoom"
    NO_NODE_FITS = "NoNodeFits"
    NOT_MODELLED = "NotModelled"
    UNKNOWN_LEVEL = "UnknownLevel"  # no topology has a level that the gang names
    MISSING_INDEX = "MissingIndex"  # members lack the index that says which segment they are in
    MEMBERS_DIFFER = "MembersDiffer"  # in a field in which members of such a gang must be equal
    BUDGET_EXHAUSTED = "BudgetExhausted"
    TIMED_OUT = "TimedOut"
    WAITING_FOR_CONFIGURATION = "WaitingForConfiguration"  # the size of a Spark gang is unknown
    REFUSED = "Refused"  # the API server refused the Reservation or a binding
    UNKNOWN_QUEUE = "UnknownQueue"
    FORBIDDEN_QUEUE = "ForbiddenQueue"  # the queue does not admit the namespace
    QUEUE_HAS_CHILDREN = "QueueHasChildren"  # gangs start in queues without children
    AMBIGUOUS_DEFAULT = "AmbiguousDefault"  # several queues are the default of the namespace
    UNKNOWN_NAMESPACE = "UnknownNamespace"  # no watch has shown it yet
    QUEUE_HELD = "QueueHeld"
    QUEUE_DRAINS = "QueueDrains"  # the queue drains, and the gang is newer than the drain
    QUEUE_CHANGES = "QueueChanges"  # pods of the gang still hold room in another queue
    QUEUE_AT_LIMIT = "QueueAtLimit"
    MAY_NOT_BORROW = "MayNotBorrow"  # it cannot be ended, and its queue does not cover it
    PAUSED = "Paused"
    WOULD_START = "WouldStart"  # it would start, but the mode forbids it


@dataclass(frozen=True, slots=True)
class Assignment:
    """One member on one node; uid and version are the preconditions of its binding."""

    pod: PodKey
    uid: Uid
    version: str
    node: NodeName
    claims: tuple[ClaimAllocation, ...] = ()  # the devices for each of its claims
    role: str = ""  # with which the member joins its gang
    fills_slot: bool = False  # whether it takes the room and the place of a slot


@dataclass(frozen=True, slots=True)
class Placement:
    """All assignments that one gang needs now; complete by construction.

    ``slots`` are all room that is held afterwards for members that do not exist yet, including the
    slots that a standing Reservation keeps. A ``remark`` is for users.
    """

    gang: GangKey
    uid: Uid
    generation: int
    assignments: tuple[Assignment, ...]
    slots: tuple[SlotReservation, ...] = ()
    remark: str = ""
    record: QueueRecord | None = None  # of the start; None if there are no Queues
    volumes: tuple[VolumeChoice, ...] = ()  # of the members' claims that are not bound; by claim


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement of a rejection; ``gang.findings`` and ``gang.room_findings`` have all kinds."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a gang got no placement: the reason and the findings.

    ``gang.finding_text`` puts findings in words. If a gang has timed out and still waits,
    ``underlying_reason`` is why. With ``only_extra_members``, the gang needs none of the members
    that have no room.
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
    """The eviction of the bound members of a gang, so that it can start again whole.

    The gang has lost members, and there is no room to replace them.
    """

    gang: GangKey
    uid: Uid
    generation: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Victim:
    """Members of a gang that a claim evicts: all members, or some extra members."""

    gang: GangKey
    uid: Uid
    members: tuple[Member, ...]
    is_whole: bool  # otherwise the gang runs on with at least the members that it needs
    queue: str = ROOT  # that the gang is charged to
    lost: Fraction = Fraction(0)  # the work that this end loses, as in ``Claim.lost``


@dataclass(frozen=True, slots=True)
class Claim:
    """A gang that starts once its victims are gone; until then their room is held for it.

    Work is in seconds, times the share of the cluster that each member requests. ``cost`` is the
    work that is lost, and what earlier ends of the same gangs lost. No other choice of victims
    costs less than ``bound``.
    """

    gang: GangKey
    uid: Uid
    generation: int
    assignments: tuple[Assignment, ...]
    victims: tuple[Victim, ...]  # sorted by gang; empty if the room of leaving pods is enough
    by_guarantee: bool  # False: by its priority alone
    cost: Fraction
    bound: Fraction
    record: QueueRecord | None = None  # of the start; None if there are no Queues
    volumes: tuple[VolumeChoice, ...] = ()  # as of ``Placement``

    @property
    def lost(self) -> Fraction:
        """The work that the end of its victims loses."""
        return sum((victim.lost for victim in self.victims), Fraction(0))

    @property
    def is_proved(self) -> bool:
        """Whether it is proved that no other choice of victims costs less."""
        return self.bound >= self.cost


@dataclass(frozen=True, slots=True)
class Level:
    """The value of the gangs that start at one priority, in the units of the objective.

    No admission is worth more than ``bound``; None if no bound is known.
    """

    priority: int
    admitted: int
    bound: int | None = None

    @property
    def gap(self) -> float | None:
        """An upper bound on how far the admitted value is below the best, as a share of ``bound``.

        None if no bound is known.
        """
        if self.bound is None:
            return None
        return (self.bound - self.admitted) / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class QueueUse:
    """What the gangs in a queue and below it use at the time of the Snapshot, before the plan.

    Only resources that some queue guarantees are in ``covered`` and ``borrowed``; the two add up to
    the charge. ``share`` is the largest part of any resource's total that is charged above the
    guarantee, divided by the weight of the queue.
    """

    name: str
    charged: Resources
    covered: Resources  # by the guarantee of any queue, including the queues above
    borrowed: Resources
    waiting: int  # gangs with pods that have not started
    share: Fraction
    # For a queue in shadow: the running gangs that its limits would have stopped, in this order.
    stopped_in_shadow: tuple[GangKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The placements, evictions, rejections and claims for one Snapshot.

    ``proved`` says that no better admission exists; otherwise ``shortfall`` says why there is no
    proof. At ``next_change_at`` a new plan is due even if nothing else changes, because the order
    of gangs depends on time.
    """

    placements: tuple[Placement, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    proved: bool = True
    shortfall: str = ""
    next_change_at: float | None = None  # seconds since the epoch
    levels: tuple[Level, ...] = ()  # the highest priority first; without gangs that cannot fit
    queues: tuple[QueueUse, ...] = ()  # by name, the root included; empty while there are no Queues
    claims: tuple[Claim, ...] = ()  # in order: each one assumes the claims before it

    @property
    def open_level(self) -> Level | None:
        """The level of the highest priority at which a better admission may exist."""
        return next((level for level in self.levels if level.gap != 0), None)

    @property
    def gap(self) -> float | None:
        """The gap of ``open_level``; 0 if the plan is proved, and None if the gap is not known.

        Gaps of several priorities are not added up: no gain at a lower priority makes up for a loss
        at a higher one.
        """
        if self.proved:
            return 0.0
        if (level := self.open_level) is not None:
            return level.gap
        return 0.0 if self.levels else None


class Released(NamedTuple):
    """A Reservation that was given back, and why; ``rest`` is the part that is kept, if any."""

    reservation: Reservation
    sentence: str
    rest: Reservation | None = None
    reason: str = "Released"

    @property
    def ended(self) -> Iterator[PodReservation]:
        """The entries that are given back."""
        remaining = frozenset(() if self.rest is None else self.rest.entries)
        return (entry for entry in self.reservation.entries if entry not in remaining)

    @property
    def ended_volumes(self) -> Iterator[VolumeChoice]:
        """The choices of volumes that are given back."""
        remaining = frozenset(() if self.rest is None else self.rest.volumes)
        return (choice for choice in self.reservation.volumes if choice not in remaining)
