"""An explanation as data: counts, what is short, and what would help.

Other modules compute it and put it into words, so that it can be compared, printed and stored.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from ..model.decisions import Reason
from ..model.keys import GangKey, NodeName
from ..model.resources import Resources

OPTIONAL = "optional"  # says of a field that data leaves it out while it is empty


class Certainty(StrEnum):
    """Whether a statement is proved, or is only the best that was found within the effort."""

    PROVED = "proved"
    TRIED = "tried"

    @classmethod
    def of(cls, *, proved: bool) -> "Certainty":
        """PROVED if true, else TRIED."""
        return cls.PROVED if proved else cls.TRIED


@dataclass(frozen=True, slots=True)
class Placeable:
    """The most of the needed members that fit together: proved, or the most that was found."""

    members: int
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class ShortShape:
    """The shape that keeps the gang waiting: ``forced`` members must start, ``room`` have room."""

    requests: Resources
    roles: tuple[str, ...]  # of the members of this shape
    forced: int
    room: int


class Obstacle(StrEnum):
    """The kind of a bottleneck."""

    RESOURCE = "resource"
    RULES = "rules"  # taints, cordons, selectors, affinity


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Something scarce, and how many members would fit if it alone were plentiful."""

    obstacle: Obstacle
    name: str  # the resource, or the most frequent reason to avoid nodes
    admits: Placeable


@dataclass(frozen=True, slots=True)
class MoreNodes:
    """How many more nodes like an existing one, empty and ready, start the gang; 0 if none found.

    Proved means that one node fewer does not start it; with 0, that no number of nodes of one kind
    does.
    """

    count: int
    like: NodeName
    kinds: int  # existing kinds of nodes
    certainty: Certainty
    cut: bool = False  # the effort ended before the search did


@dataclass(frozen=True, slots=True)
class SmallerNeed:
    """The largest minMember with which the gang starts now; 0 if none was found.

    Proved means that one more does not start; with 0, that not even ``floor`` does.
    """

    min_member: int
    floor: int  # the least that its roles allow
    certainty: Certainty
    cut: bool = False


@dataclass(frozen=True, slots=True)
class EndedGangs:
    """The fewest gangs without which the gang starts; empty if no such set was found.

    Proved means that fewer gangs are not enough; if empty, that no such set exists. ``domain`` is
    where the gang then starts, if all its members must be in one domain.
    """

    gangs: tuple[GangKey, ...]
    certainty: Certainty
    cut: bool = False
    domain: str = field(default="", metadata={OPTIONAL: True})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a gang that waits for room lacks, and what would start it."""

    beside: Placeable  # beside all that the plan starts
    alone: Placeable  # if no other waiting gang needed the room
    short: ShortShape | None
    bottlenecks: tuple[Bottleneck, ...]  # the most helpful first
    nodes: MoreNodes
    min_member: SmallerNeed | None  # None if it cannot be lowered
    ended: EndedGangs  # bound gangs that would have to end
    preferred: EndedGangs  # gangs that the plan starts instead
    plans: int  # number of plans that this took


@dataclass(frozen=True, slots=True)
class Advice:
    """Why a gang waits, and what would help; the same holds for the ``alike`` gangs."""

    gang: GangKey
    needed: int  # members that it requests room for
    reason: Reason
    sentence: str
    diagnosis: Diagnosis | None = None  # None if it does not wait for room
    alike: tuple[GangKey, ...] = ()
