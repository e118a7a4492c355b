"""The victims that cost least: sets are tried in the order of their cost, until one suffices.

The caller decides whether a set suffices, by placing the gang. If too many sets cost less than the
answer, the search starts with all candidates instead, and leaves out as many as it can. The cost of
the last set that was tried is then the bound.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from ...model.cluster import Member
from ...model.keys import GangKey
from ...model.resources import NOTHING, Resources

MOST_SETS = 1_000  # sets that are tried in the order of their cost


class Cost(NamedTuple):
    """The cost of the end of some members; compared from the left."""

    work: Fraction  # seconds times the share of the cluster that each member requests
    members: int
    gangs: int

    def plus(self, other: "Cost") -> "Cost":
        """The cost of both."""
        return Cost(self.work + other.work, self.members + other.members, self.gangs + other.gangs)


FREE = Cost(Fraction(0), 0, 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A whole gang with its extras, or one extra, that may be ended."""

    gang: GangKey
    members: tuple[Member, ...]  # the members that would end
    cost: Cost
    charge: Resources = NOTHING  # what its queue is charged for them
    is_whole: bool = True

    @property
    def name(self) -> tuple[GangKey, str]:
        """The gang, and the name of the pod if it is an extra."""
        return self.gang, "" if self.is_whole else self.members[0].key.name


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Victims(Generic[Answer]):
    """Victims that suffice, with the answer of the caller; no victim can be spared.

    No set of victims that suffices costs less than ``bound``.
    """

    candidates: tuple[Candidate, ...]
    answer: Answer
    bound: Cost

    @property
    def cost(self) -> Cost:
        """What their end costs."""
        return _total(self.candidates)


def cheapest(
    candidates: Sequence[Candidate],
    suffice: Callable[[Sequence[Candidate]], Answer | None],
    most_sets: int = MOST_SETS,
) -> Victims[Answer] | None:
    """The cheapest set of victims that suffices; None if even all candidates do not suffice.

    ``suffice`` returns an answer for a set that suffices, or else None. If a set suffices, each
    larger set is assumed to suffice, too. Of sets of equal cost, the set wins whose victims come
    first by cost and name.
    """
    answer = suffice(_without_parts(candidates))
    if answer is None:
        return None
    ordered = sorted(candidates, key=lambda one: (one.cost, one.name))
    tried, bound = 0, FREE
    for cost, some in islice(_by_cost(ordered), most_sets):
        if (least := suffice(some)) is not None:
            return Victims(tuple(some), least, cost)
        tried, bound = tried + 1, cost
    if tried < most_sets:  # all sets were tried: the set of all no longer suffices
        return None
    return _few(ordered, suffice, answer, bound)


def _by_cost(ordered: Sequence[Candidate]) -> Iterator[tuple[Cost, Sequence[Candidate]]]:
    """All sets and their costs, the cheapest first; the first set is empty.

    Sets that have a gang and extras of this gang are left out.
    """
    yield FREE, ()
    heap: list[tuple[Cost, tuple[int, ...]]] = [(candidate.cost, (0,)) for candidate in ordered[:1]]
    while heap:
        cost, places = heappop(heap)
        *first, last = places
        if not _has_parts([ordered[place] for place in places]):
            yield cost, [ordered[place] for place in places]
        if last + 1 < len(ordered):
            following = ordered[last + 1].cost
            heappush(heap, (cost.plus(following), (*places, last + 1)))
            before = _total([ordered[place] for place in first])
            heappush(heap, (before.plus(following), (*first, last + 1)))


def _few(
    ordered: Sequence[Candidate],
    suffice: Callable[[Sequence[Candidate]], Answer | None],
    answer: Answer,
    bound: Cost,
) -> Victims[Answer]:
    """Victims that suffice, without one that can be spared; ``answer`` is for all candidates.

    The most expensive candidates are left out first, in blocks. A gang is more expensive than its
    extras, so it comes before them.
    """
    chosen = [*ordered]
    blocks = [[*reversed(ordered)]]
    while blocks:
        block = blocks.pop()
        left_out = {id(one) for one in block}
        others = [one for one in chosen if id(one) not in left_out]
        if (remaining := suffice(_without_parts(others))) is not None:
            chosen, answer = others, remaining
        elif len(block) > 1:
            half = len(block) // 2
            blocks += [block[half:], block[:half]]
    chosen_victims = _without_parts(chosen)
    return Victims(tuple(chosen_victims), answer, min(bound, _total(chosen_victims)))


def _has_parts(some: Sequence[Candidate]) -> bool:
    """Whether these have a gang and extras of this gang."""
    return len(_without_parts(some)) < len(some)


def _without_parts(some: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates, without extras of gangs that end whole."""
    whole = {one.gang for one in some if one.is_whole}
    return [one for one in some if one.is_whole or one.gang not in whole]


def _total(some: Sequence[Candidate]) -> Cost:
    total = FREE
    for one in some:
        total = total.plus(one.cost)
    return total
