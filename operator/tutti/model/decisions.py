"""What planning decides: values that can be compared, printed, replayed and thrown away."""

from dataclasses import dataclass
from enum import StrEnum

from .cluster import Member
from .keys import GangKey, NodeName, PodKey, Uid


class Reason(StrEnum):
    """Why a gang waits, as its ``Reserved`` condition says it."""

    WAITING_FOR_MEMBERS = "WaitingForMembers"
    NOT_ENOUGH_ROOM = "NotEnoughRoom"
    NO_NODE_FITS = "NoNodeFits"
    NOT_MODELLED = "NotModelled"
    BUDGET_EXHAUSTED = "BudgetExhausted"
    REFUSED = "Refused"  # the API server would not take the Reservation


@dataclass(frozen=True, slots=True)
class Assignment:
    """One member on one node; uid and version are the preconditions of its binding."""

    pod: PodKey
    uid: Uid
    version: str
    node: NodeName


@dataclass(frozen=True, slots=True)
class Placement:
    """All assignments that one gang needs now; complete by construction."""

    gang: GangKey
    uid: Uid
    generation: int
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a gang got no placement: the reason, and one sentence with asked, found and short."""

    gang: GangKey
    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A gang that lost members and finds no room: the bound ones go, so that it can start anew."""

    gang: GangKey
    uid: Uid
    generation: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The placements, evictions and rejections for one Snapshot.

    ``proved`` says that no better admission exists; ``shortfall`` is why it does not.
    """

    placements: tuple[Placement, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    proved: bool = True
    shortfall: str = ""
