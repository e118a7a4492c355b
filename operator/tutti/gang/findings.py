"""The findings of rejections, except those about room: members, time, queues, modes.

A finding is a value. ``room_findings`` has the findings about room, and ``finding_text`` puts all
findings in words.
"""

from dataclasses import dataclass
from enum import StrEnum

from ..model.decisions import Finding, Mode
from ..model.keys import GangKey, NodeName, PodKey

# Members that are missing or cannot be placed.


@dataclass(frozen=True, slots=True)
class BeingDeleted(Finding):
    """The PodGroup is being deleted."""


@dataclass(frozen=True, slots=True)
class MembersExist(Finding):
    """So many of the needed members exist."""

    members: int
    needed: int


@dataclass(frozen=True, slots=True)
class NobodyToStart(Finding):
    """All members that the gang needs to start are absent members of these roles."""

    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleMembersExist(Finding):
    """So many members of a role exist."""

    role: str
    members: int
    needed: int


@dataclass(frozen=True, slots=True)
class MembersBound(Finding):
    """So many of the needed members of a started gang are bound."""

    members: int
    needed: int


@dataclass(frozen=True, slots=True)
class MembersLost(Finding):
    """So many members are lost, or were never created, and no member waits to replace them."""

    members: int
    has_slots: bool  # whether room may be held for absent members


@dataclass(frozen=True, slots=True)
class Gated(Finding):
    """Members have scheduling gates."""

    members: int
    gates: tuple[str, ...]
    more_gates: int = 0
    is_single: bool = False
    is_started: bool = False


@dataclass(frozen=True, slots=True)
class Failed(Finding):
    """Further members have failed."""

    members: int


@dataclass(frozen=True, slots=True)
class WithoutRole(Finding):
    """Pods name no role of the gang."""

    members: int


@dataclass(frozen=True, slots=True)
class BeyondMaximum(Finding):
    """Members wait beyond the maxMember of their role."""

    members: int


@dataclass(frozen=True, slots=True)
class MaximumReached(Finding):
    """All waiting members of a started gang are beyond the maxMember of these roles."""

    roles: tuple[str, ...]
    members: int


@dataclass(frozen=True, slots=True)
class TemplateNotRead(Finding):
    """No room is held for the absent members of a role, because its template cannot be read."""

    role: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreatesOneByOne(Finding):
    """A StatefulSet may create one pod at a time."""

    stateful_set: str


@dataclass(frozen=True, slots=True)
class ParallelismTooSmall(Finding):
    """A Job's parallelism must be at least minMember."""

    job: str
    needed: int


@dataclass(frozen=True, slots=True)
class Unsupported(Finding):
    """Members use fields that Tutti does not place yet."""

    members: int
    fields: tuple[str, ...]
    is_single: bool = False


@dataclass(frozen=True, slots=True)
class UnsupportedInGroup(Finding):
    """The object that declares the gang uses fields that Tutti does not support yet."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownLevel(Finding):
    """The gang names a level that no topology has; ``known`` has all levels."""

    level: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingIndex(Finding):
    """Members do not fall into segments by the index in a label of theirs.

    ``pod`` has no index, or no member has ``index``, or members have several roles or requests.
    """

    label: str
    pod: str = ""
    index: int = 0
    is_mixed: bool = False


@dataclass(frozen=True, slots=True)
class MembersDiffer(Finding):
    """A pod and its gang differ in a field in which all members must be equal."""

    field: str
    value: str
    pod: str
    other_value: str


@dataclass(frozen=True, slots=True)
class VolumesNotReady(Finding):
    """Pods wait for volumes."""

    members: int
    problems: tuple[str, ...]
    more_problems: int = 0


@dataclass(frozen=True, slots=True)
class NamesOneClaim(Finding):
    """Members that must start together name a claim that one pod at a time may use."""

    claim: str
    members: int  # that name it
    needed: int  # that must start together, of the role if there is one
    role: str = ""


@dataclass(frozen=True, slots=True)
class DevicesNotReady(Finding):
    """Pods wait for their claims for devices."""

    members: int
    problems: tuple[str, ...]
    more_problems: int = 0


# Time, and whether the plan is proved.


@dataclass(frozen=True, slots=True)
class NotProved(Finding):
    """The search ended without a proof."""

    because: str


@dataclass(frozen=True, slots=True)
class NotStartedInTime(Finding):
    """The gang has not started within its timeout."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GivenUp(Finding):
    """The gang is not tried any more, because ``onTimeout`` is ``Fail``."""


@dataclass(frozen=True, slots=True)
class NoPriorityClass(Finding):
    """The PriorityClass does not exist, so the highest priority of the gang's pods counts."""

    name: str
    priority: int


# Pods that are evicted: for another gang, or so that a gang starts again whole.


@dataclass(frozen=True, slots=True)
class ClaimsRoom(Finding):
    """The gang starts once ``members`` pods of the victims have ended.

    If ``members`` is 0, the gang starts once pods that terminate are gone.
    """

    members: int
    victims: tuple[GangKey, ...]
    by_guarantee: bool


@dataclass(frozen=True, slots=True)
class KeptByBudget(Finding):
    """A gang that would end for it is kept by a budget, or by several of one pod."""

    gang: GangKey
    budgets: tuple[str, ...]  # by namespace and name
    pods: int  # of the budget that would have to be evicted together
    allowed: int  # evictions that it allows
    more: int = 0  # other gangs that budgets keep


@dataclass(frozen=True, slots=True)
class WithinGuarantee(Finding):
    """A guarantee would cover the gang, and all that may end for it is too little.

    All gangs of these queues are covered, so they may not end.
    """

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TooManyVictims(Finding):
    """The gangs that would end for it are more than a claim may name."""

    victims: int
    most: int


@dataclass(frozen=True, slots=True)
class EvictionsCapped(Finding):
    """The claim waits: so many pods have ended, and more would exceed a limit.

    The limit is of one cycle, or of a queue within an hour.
    """

    pods: int
    limit: int
    queue: str = ""


@dataclass(frozen=True, slots=True)
class ToBeReleased(Finding):
    """So many bound members will be evicted, so that the gang starts again whole."""

    members: int


@dataclass(frozen=True, slots=True)
class NotReleased(Finding):
    """Why a gang is not released."""

    because: "ReleaseObstacle"


@dataclass(frozen=True, slots=True)
class MembersSucceeded:
    """So many members have succeeded."""

    members: int


@dataclass(frozen=True, slots=True)
class NotMadeAgain:
    """No controller would create the member again: it is a Spark driver, or has no controller."""

    pod: str
    is_driver: bool


@dataclass(frozen=True, slots=True)
class StillLeaving:
    """The member still terminates on its node."""

    pod: str
    node: NodeName | None


@dataclass(frozen=True, slots=True)
class RoomAfterOther:
    """The member may find room once the other pod has its node."""

    member: PodKey
    other: PodKey


ReleaseObstacle = MembersSucceeded | NotMadeAgain | StillLeaving | RoomAfterOther


@dataclass(frozen=True, slots=True)
class JobNotRead:
    """The Job of the members cannot be read."""

    job: str


@dataclass(frozen=True, slots=True)
class JobWouldFail:
    """The Job tolerates ``failures_left`` more failures, and each eviction counts as one."""

    job: str
    failures_left: int
    evictions: int


@dataclass(frozen=True, slots=True)
class EvictionRefused:
    """The API server refused to evict a member with this ``message``.

    ``gone`` other members were gone when Tutti gave up the eviction.
    """

    message: str
    gone: int = 0


EvictionObstacle = JobNotRead | JobWouldFail | EvictionRefused


@dataclass(frozen=True, slots=True)
class EvictionPutOff(Finding):
    """Why the eviction has to wait."""

    because: EvictionObstacle


# Sentences of the API server and of Spark.


@dataclass(frozen=True, slots=True)
class Quoted(Finding):
    """A sentence that is shown as it is, such as an answer of the API server."""

    message: str


# The queue of a gang. ``candidates`` are the queues that its namespace may name, sorted.


@dataclass(frozen=True, slots=True)
class UnknownQueue(Finding):
    """The gang names a queue that does not exist."""

    queue: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForbiddenQueue(Finding):
    """The gang names a queue that does not admit its namespace."""

    queue: str
    namespace: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueHasChildren(Finding):
    """The queue of the gang has children; ``candidates`` are queues below it."""

    queue: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AmbiguousDefault(Finding):
    """The gang names no queue, and these queues are the default of its namespace."""

    namespace: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownNamespace(Finding):
    """No watch has shown the namespace of the gang yet, so its labels are unknown."""

    namespace: str


@dataclass(frozen=True, slots=True)
class QueueDrained(Finding):
    """The queue or one above it drains, and starts no gang that is as new as this one."""

    queue: str


class HoldCause(StrEnum):
    """Why a queue starts no gang."""

    STOP = "has stop: Hold"
    DELETION = "is being deleted"
    PARENT = "names a parent that cannot be used"


@dataclass(frozen=True, slots=True)
class QueueHeld(Finding):
    """The queue starts no gang, because of itself or of the queue ``by`` above it."""

    queue: str
    by: str
    cause: HoldCause


@dataclass(frozen=True, slots=True)
class QueueChanges(Finding):
    """Pods of an earlier run of the gang still hold room in one queue, and it starts in another."""

    charged: str
    queue: str


@dataclass(frozen=True, slots=True)
class QueueAtLimit(Finding):
    """The limit of a queue leaves less of a resource than the gang needs.

    Amounts are in the units of ``Resources``; for cpu, milli-CPU. If ``held_for`` is set, some of
    the limit is held for that gang. A limit of ``enough`` would admit the gang, beside what is
    held, or the end of the gangs in ``ending``; each has its charge. ``ending`` is empty if too
    many gangs would have to end, or if some of the limit is held. ``before`` are gangs that wait in
    the same queue and come first, whose requests ``enough`` leaves out; ``more_before`` counts
    further ones. ``has_others`` says that other limits keep the gang waiting, too.
    """

    queue: str
    resource: str
    in_use: int
    limit: int
    wanted: int
    held_for: GangKey | None = None
    enough: int = 0
    ending: tuple[tuple[GangKey, int], ...] = ()
    before: tuple[GangKey, ...] = ()
    more_before: int = 0
    has_others: bool = False


@dataclass(frozen=True, slots=True)
class LimitHeldForIt(Finding):
    """The gang has waited longest, and is next where a limit keeps it waiting."""


@dataclass(frozen=True, slots=True)
class BudgetOfGang:
    """Budgets of the gang's pods keep it from being ended: several of one pod, or a small one."""

    budgets: tuple[str, ...]  # by namespace and name
    pods: int  # of the gang that have this budget
    allowed: int  # evictions that it allows while all of its pods are healthy


@dataclass(frozen=True, slots=True)
class GraceTooLong:
    """A pod may take longer to end than its queue admits of gangs that borrow."""

    pod: PodKey
    seconds: int
    limit: int


EndingObstacle = BudgetOfGang | GraceTooLong | JobNotRead | JobWouldFail


@dataclass(frozen=True, slots=True)
class MayNotBorrow(Finding):
    """The gang cannot be ended, and its own queue does not cover it.

    Of a resource that is short: what the gang wants, and what the queue guarantees and covers.
    Without an ``obstacle``, its PodGroup says that it must not be ended.
    """

    queue: str
    resource: str = ""
    wanted: int = 0
    guaranteed: int = 0
    in_use: int = 0
    obstacle: EndingObstacle | None = None


@dataclass(frozen=True, slots=True)
class CountsInRoot(Finding):
    """The gang names no queue, and its namespace has no default."""


@dataclass(frozen=True, slots=True)
class NothingStarts(Finding):
    """Nothing starts in this mode."""

    mode: Mode


@dataclass(frozen=True, slots=True)
class WouldStart(Finding):
    """So many members would start now in active mode, on so many nodes."""

    members: int
    nodes: int


@dataclass(frozen=True, slots=True)
class WouldEvict(Finding):
    """So many bound members would be evicted now in active mode."""

    members: int
