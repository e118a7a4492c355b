"""The victims that cost least: sets are tried in the order of their cost, until one suffices.

The caller decides whether a set suffices, by placing the gang, and which candidates may end
together. If too many sets cost less than the answer, the cheapest set is tried that frees enough in
total, without looking at nodes; no set that suffices costs less. If it does not suffice, the search
starts with all candidates that may end together, and leaves out as many as it can.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from ...model.cluster import Member
from ...model.keys import GangKey
from ...model.resources import NOTHING, Resources

MOST_SETS = 1_000  # sets that are tried in the order of their cost
MOST_LEFT_OUT = 10  # sets that may not end together, for each set that may be tried
MOST_STARTS = 64  # sets from which victims are left out, if not all may end together
MOST_AMOUNTS = 256  # amounts of a resource that are told apart in counting


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
    lost: Fraction = Fraction(0)  # the work of this end alone, without what earlier ends lost
    is_whole: bool = True

    @property
    def name(self) -> tuple[GangKey, str]:
        """The gang, and the name of the pod if it is an extra."""
        return self.gang, "" if self.is_whole else self.members[0].key.name


class Missing(NamedTuple):
    """How much of one resource victims must free in total, and what the end of each frees."""

    amount: int  # above 0
    freed: Mapping[tuple[GangKey, str], int]  # by the name of the candidate


Answer = TypeVar("Answer")
# As many of some candidates as may end together, taken in their order.
Together = Callable[[Sequence[Candidate]], Sequence[Candidate]]


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
    missing: Iterable[Missing] = (),
    most_sets: int = MOST_SETS,
    *,
    together: Together = lambda some: some,
) -> Victims[Answer] | None:
    """The cheapest set of victims that suffices; None if no set is found.

    ``suffice`` returns an answer for a set that suffices, or else None. If a set suffices, each
    larger set is assumed to suffice, too, and it frees all that is ``missing``. A set is only tried
    if all of it may end ``together``, as then each part of it may. Of sets of equal cost, the set
    wins whose victims come first by cost and name, unless counting finds the set.
    """
    answer = suffice(_without_parts(candidates))
    if answer is None:
        return None
    ordered = sorted(candidates, key=lambda candidate: (candidate.cost, candidate.name))
    may_all_end = len(together(ordered)) == len(ordered)

    def may_end(some: Sequence[Candidate]) -> bool:
        return may_all_end or len(together(some)) == len(some)

    tried, bound, sets = 0, FREE, _by_cost(ordered, may_end)
    for cost, some, may_be_tried in islice(sets, most_sets * (1 if may_all_end else MOST_LEFT_OUT)):
        if tried == most_sets:
            break
        bound = cost
        if may_be_tried:
            tried += 1
            if (least := suffice(some)) is not None:
                return Victims(tuple(some), least, cost)
    if tried < most_sets and next(sets, None) is None:  # all sets were tried
        return None
    counted = [_cheapest_in_total(ordered, lack) for lack in missing]
    if counted:
        cost, some = max(counted, key=lambda pair: pair[0])
        bound = max(bound, cost)
        is_tried = not _has_parts(some) and may_end(some)
        if is_tried and (least := suffice(some)) is not None:
            return Victims(tuple(some), least, cost)
    few = _few(ordered, suffice, answer, bound)
    return few if may_end(few.candidates) else _few_together(ordered, suffice, together, few)


def _cheapest_in_total(
    ordered: Sequence[Candidate], missing: Missing
) -> tuple[Cost, Sequence[Candidate]]:
    """The cheapest candidates that free so much in total, and their cost; empty if none do.

    A knapsack by amounts. Large amounts are divided and rounded up, so that the candidates may free
    less than is missing, but no candidates that free it cost less.
    """
    unit = -(-missing.amount // MOST_AMOUNTS)
    wanted = -(-missing.amount // unit)
    # By amount from 0: the cheapest cost at which so much is freed, and a chain of candidates.
    best: list[tuple[Cost, _Chain] | None] = [(FREE, None), *[None] * wanted]
    for candidate in ordered:
        last = best[wanted]
        if last is not None and candidate.cost >= last[0]:
            break  # no later candidate improves anything
        gain = -(-missing.freed[candidate.name] // unit)
        for amount in range(wanted, 0, -1) if gain else ():
            before, known = best[max(amount - gain, 0)], best[amount]
            if before is None:
                continue
            cost = before[0].plus(candidate.cost)
            if known is None or cost < known[0]:
                best[amount] = cost, (candidate, before[1])
    cheapest = best[wanted]
    if cheapest is None:
        return FREE, ()
    cost, chain = cheapest
    return cost, [*_links(chain)]


_Chain = tuple[Candidate, "_Chain"] | None


def _links(chain: _Chain) -> Iterator[Candidate]:
    while chain is not None:
        candidate, chain = chain
        yield candidate


def _by_cost(
    ordered: Sequence[Candidate], may_end: Callable[[Sequence[Candidate]], bool]
) -> Iterator[tuple[Cost, Sequence[Candidate], bool]]:
    """All sets, their costs, and whether they may end, the cheapest first; the first set is empty.

    Sets that have a gang and extras of this gang are left out, and so are sets of which already a
    part may not end.
    """
    yield FREE, (), True
    heap: list[tuple[Cost, tuple[int, ...]]] = [(candidate.cost, (0,)) for candidate in ordered[:1]]
    while heap:
        cost, places = heappop(heap)
        *first, last = places
        some = [ordered[place] for place in places]
        may_be_tried = may_end(some)
        if not _has_parts(some):
            yield cost, some, may_be_tried
        if last + 1 < len(ordered):
            following = ordered[last + 1].cost
            if may_be_tried:
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
        left_out = {id(candidate) for candidate in block}
        others = [candidate for candidate in chosen if id(candidate) not in left_out]
        if (remaining := suffice(_without_parts(others))) is not None:
            chosen, answer = others, remaining
        elif len(block) > 1:
            half = len(block) // 2
            blocks += [block[half:], block[:half]]
    chosen_victims = _without_parts(chosen)
    return Victims(tuple(chosen_victims), answer, min(bound, _total(chosen_victims)))


def _few_together(
    ordered: Sequence[Candidate],
    suffice: Callable[[Sequence[Candidate]], Answer | None],
    together: Together,
    few: Victims[Answer],
) -> Victims[Answer] | None:
    """Victims that may end together and suffice, without one that can be spared.

    The search starts with the cheapest that may end together, and then with those that suffice but
    may not all end (``few``); then with one candidate before all others, the cheapest first, as one
    of these has to end. None if nothing suffices: other sets are not tried.
    """
    alone = ((candidate,) for candidate in islice(ordered, MOST_STARTS))
    for first in ((), few.candidates, *((*candidate, *few.candidates) for candidate in alone)):
        some = together([*{candidate.name: candidate for candidate in (*first, *ordered)}.values()])
        if (answer := suffice(_without_parts(some))) is not None:
            kept = {candidate.name for candidate in some}
            return _few(
                [candidate for candidate in ordered if candidate.name in kept],
                suffice,
                answer,
                few.bound,
            )
    return None


def _has_parts(some: Sequence[Candidate]) -> bool:
    """Whether these have a gang and extras of this gang."""
    return len(_without_parts(some)) < len(some)


def _without_parts(some: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates, without extras of gangs that end whole."""
    whole = {candidate.gang for candidate in some if candidate.is_whole}
    return [candidate for candidate in some if candidate.is_whole or candidate.gang not in whole]


def _total(some: Sequence[Candidate]) -> Cost:
    total = FREE
    for candidate in some:
        total = total.plus(candidate.cost)
    return total
