"""What a rejection says of a gang: its members, its time, and what people can do.

A finding is a value; ``room_findings`` has those about room, ``finding_text`` puts all in words.
"""

from dataclasses import dataclass

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
class RoleMembersExist(Finding):
    """So many of a role's members exist."""

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
    """So many members are lost, or were never made, and none waits to replace them."""

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
    """All that a started gang waits with is beyond the maxMember of these roles."""

    roles: tuple[str, ...]
    members: int


@dataclass(frozen=True, slots=True)
class TemplateNotRead(Finding):
    """No room is held for a role's absent members, for its template cannot be read."""

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
    """What declares the gang uses fields that Tutti does not place by yet."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownLevel(Finding):
    """The gang names a level that no topology has; ``known`` are all levels."""

    level: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MembersDiffer(Finding):
    """A pod has another value of a field than its gang, whose members must have the same."""

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


# Time, and how sure the plan is.


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
    """The gang is not tried any more, since ``onTimeout`` is ``Fail``."""


@dataclass(frozen=True, slots=True)
class NoPriorityClass(Finding):
    """The PriorityClass does not exist, so the highest priority of the gang's pods counts."""

    name: str
    priority: int


# A started gang that is to start again whole.


@dataclass(frozen=True, slots=True)
class ClaimsRoom(Finding):
    """The gang starts once so many pods of these gangs have ended, or what terminates has gone."""

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
class EvictionsCapped(Finding):
    """The claim waits: so many pods have ended, and more would exceed a limit.

    The limit is of one cycle, or of a queue within an hour.
    """

    pods: int
    limit: int
    queue: str = ""


@dataclass(frozen=True, slots=True)
class ToBeReleased(Finding):
    """So many bound members are to be evicted."""

    members: int


@dataclass(frozen=True, slots=True)
class NotReleased(Finding):
    """What keeps a gang from being released."""

    because: "ReleaseObstacle"


@dataclass(frozen=True, slots=True)
class MembersSucceeded:
    """So many members have succeeded."""

    members: int


@dataclass(frozen=True, slots=True)
class NotMadeAgain:
    """Nothing would make the member again: it is a Spark driver, or has no controller."""

    pod: str
    is_driver: bool


@dataclass(frozen=True, slots=True)
class StillLeaving:
    """The member has not left its node yet."""

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
    """The Job of the members tolerates so many more failures, and so many evictions."""

    job: str
    failures_left: int
    evictions: int


@dataclass(frozen=True, slots=True)
class EvictionRefused:
    """The API server's answer about a member; ``gone`` others had gone when Tutti gave up."""

    message: str
    gone: int = 0


EvictionObstacle = JobNotRead | JobWouldFail | EvictionRefused


@dataclass(frozen=True, slots=True)
class EvictionPutOff(Finding):
    """Why the eviction has to wait."""

    because: EvictionObstacle


# What others say, and what the mode forbids.


@dataclass(frozen=True, slots=True)
class Quoted(Finding):
    """What the API server, or a Spark driver's configuration, says."""

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
    """The queue of the gang has children; ``candidates`` are those below it."""

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
class QueueStopped(Finding):
    """The queue starts no gang or, if it drains, no gang as new as this one."""

    queue: str
    is_drained: bool = False


@dataclass(frozen=True, slots=True)
class QueueChanges(Finding):
    """Pods of an earlier run of the gang still hold room in one queue, and it starts in another."""

    charged: str
    queue: str


@dataclass(frozen=True, slots=True)
class QueueAtLimit(Finding):
    """A queue uses so much of a resource, and its limit leaves less than the gang needs.

    Amounts are those of ``Resources``: of cpu, thousandths. Some of the limit may be held for
    another gang; then nothing more is said. Else the limit would allow the start if it were
    ``enough``, or once the gangs in ``ending`` have ended, which are charged so much; none are
    named where it takes many. ``before`` are gangs that wait in the same queue and come first.
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


@dataclass(frozen=True, slots=True)
class MayNotBorrow(Finding):
    """The gang cannot be ended, and its own queue does not cover it.

    Of a resource that is short: what the gang wants, and what the queue guarantees and covers.
    """

    queue: str
    resource: str = ""
    wanted: int = 0
    guaranteed: int = 0
    in_use: int = 0


@dataclass(frozen=True, slots=True)
class CountsInRoot(Finding):
    """The gang names no queue, and its namespace has no default."""


@dataclass(frozen=True, slots=True)
class NothingStarts(Finding):
    """The mode in which nothing starts."""

    mode: Mode


@dataclass(frozen=True, slots=True)
class WouldStart(Finding):
    """What would start now in active mode."""

    members: int
    nodes: int


@dataclass(frozen=True, slots=True)
class WouldEvict(Finding):
    """How many bound members would be evicted now in active mode."""

    members: int
