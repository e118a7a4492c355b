"""What an explanation says, as data: counts, what is short, and what would help.

Separate from how it is found and from its words, so that it can be compared, printed and stored.
"""

from dataclasses import dataclass
from enum import StrEnum

from ..model.decisions import Reason
from ..model.keys import GangKey, NodeName
from ..model.resources import Resources


class Certainty(StrEnum):
    """Whether a statement is proved, or only the best that was found within the effort."""

    PROVED = "proved"
    TRIED = "tried"

    @classmethod
    def of(cls, *, proved: bool) -> "Certainty":
        """Name a truth value."""
        return cls.PROVED if proved else cls.TRIED


@dataclass(frozen=True, slots=True)
class Placeable:
    """The most of the needed members that fit together: proved, or the most that was found."""

    members: int
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class ShortShape:
    """The shape that keeps the gang waiting: so many of it must start, and so many have room."""

    requests: Resources
    roles: tuple[str, ...]  # of the members of this shape
    forced: int
    room: int


class Obstacle(StrEnum):
    """What kind of thing is scarce."""

    RESOURCE = "resource"
    RULES = "rules"  # taints, cordons, selectors, affinity


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One thing that is scarce, and how many members would fit if it alone were plentiful."""

    obstacle: Obstacle
    name: str  # of the resource, or what most nodes are avoided for
    admits: Placeable


@dataclass(frozen=True, slots=True)
class MoreNodes:
    """So many more nodes like one that exists, empty and ready, start the gang; 0: none found.

    Proved: one node fewer does not; where there is no answer, no number of nodes of one kind does.
    """

    count: int
    like: NodeName
    kinds: int  # existing kinds of nodes
    certainty: Certainty
    cut: bool = False  # the effort ended before the search did


@dataclass(frozen=True, slots=True)
class SmallerNeed:
    """The largest minMember with which the gang starts now; 0: none found.

    Proved: one more does not start; where there is no answer, not even ``floor`` does.
    """

    min_member: int
    floor: int  # the least that its roles allow
    certainty: Certainty
    cut: bool = False


@dataclass(frozen=True, slots=True)
class EndedGangs:
    """The fewest gangs without which the gang starts; none: no such set was found.

    Proved: fewer are not enough; without an answer, there is none.
    """

    gangs: tuple[GangKey, ...]
    certainty: Certainty
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a gang that waits for room lacks, and what would start it."""

    beside: Placeable  # beside all that the plan starts
    alone: Placeable  # if no other waiting gang wanted the room
    short: ShortShape | None
    bottlenecks: tuple[Bottleneck, ...]  # what helps most first
    nodes: MoreNodes
    min_member: SmallerNeed | None  # None where it cannot be lowered
    ended: EndedGangs  # bound gangs that would have to end
    preferred: EndedGangs  # gangs that the plan starts in its stead
    plans: int  # made to find this out


@dataclass(frozen=True, slots=True)
class Advice:
    """Why a gang waits, and what would help; gangs that are ``alike`` wait for the same."""

    gang: GangKey
    needed: int  # members it asks room for
    reason: Reason
    sentence: str
    diagnosis: Diagnosis | None = None  # None while it does not wait for room
    alike: tuple[GangKey, ...] = ()
