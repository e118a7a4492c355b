"""The victims that cost least: sets are tried in the order of their cost, until one suffices.

The caller decides whether a set suffices, by placing the gang, and which candidates may end
together. If too many sets cost less than the answer, the cheapest set is tried that frees enough in
total, without looking at nodes; no set that suffices costs less. If it does not suffice, the search
starts with all candidates that may end together, and leaves out as many as it can. If the gang must
be in one domain, this is done for one domain after the other, in the order of what their cheapest
sets cost, until no other domain can have cheaper victims.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from ...model.cluster import Member
from ...model.keys import GangKey
from ...model.resources import NOTHING, Resources

CandidateName = tuple[GangKey, str]  # the gang, and the pod if it is an extra

MOST_SETS = 1_000  # sets that are tried in the order of their cost
MOST_LEFT_OUT = 10  # sets that may not end together, for each set that may be tried
MOST_STARTS = 64  # sets from which victims are left out, if not all may end together
MOST_AMOUNTS = 256  # amounts of a resource that are told apart in counting
MOST_COUNTED = 32  # domains in which the cheapest victims are counted
MOST_DOMAINS = 8  # domains in which victims are searched


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
    def name(self) -> CandidateName:
        """The gang, and the name of the pod if it is an extra."""
        return self.gang, "" if self.is_whole else self.members[0].key.name


class Missing(NamedTuple):
    """How much of one resource victims must free in a domain, and what the end of each frees there.

    It is by the name of the candidate; candidates without a pod in the domain are left out.
    """

    amount: int  # above 0
    freed: Mapping[CandidateName, int]


class Domain(NamedTuple):
    """Nodes that could have a gang once victims have freed all that is missing there."""

    candidates: AbstractSet[CandidateName]  # those with pods there
    missing: tuple[Missing, ...] = ()


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
    domains: Iterable[Domain] = (),
    most_sets: int = MOST_SETS,
    *,
    together: Together = lambda some: some,
) -> Victims[Answer] | None:
    """The cheapest set of victims that suffices; None if no set is found.

    ``suffice`` returns an answer for a set that suffices, or else None. If a set suffices, each
    larger set is assumed to suffice, too, and in one of the ``domains`` it frees all that is
    missing. A set is only tried if all of it may end ``together``, as then each part of it may. Of
    sets of equal cost, the set wins whose victims come first by cost and name, unless counting
    finds the set.
    """
    answer = suffice(_without_parts(candidates))
    if answer is None:
        return None
    ordered = _ordered(candidates)
    may_all_end = len(together(ordered)) == len(ordered)
    search = _Search(ordered, suffice, together, may_all_end, answer)
    tried, bound, sets = 0, FREE, _by_cost(ordered, search.may_end)
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
    return search.by_domain(domains, bound)


@dataclass(frozen=True, slots=True)
class _Search(Generic[Answer]):
    """The search for victims that suffice where too many sets cost less."""

    ordered: Sequence[Candidate]  # by cost and name
    suffice: Callable[[Sequence[Candidate]], Answer | None]
    together: Together
    may_all_end: bool  # all candidates together
    answer: Answer  # for all candidates

    def may_end(self, some: Sequence[Candidate]) -> bool:
        """Whether these candidates may end together."""
        return self.may_all_end or len(self.together(some)) == len(some)

    def by_domain(self, domains: Iterable[Domain], bound: Cost) -> Victims[Answer] | None:
        """The cheapest victims of those that are found in some domain; no victims cost less."""
        counted, least = _counted(self.ordered, domains)
        best: Victims[Answer] | None = None
        for count in counted[:MOST_DOMAINS]:
            if best is not None and count.cost >= best.cost:
                break
            victims = self.in_domain(count, max(bound, least))
            if victims is not None and (best is None or victims.cost < best.cost):
                best = victims
        return best

    def in_domain(self, count: "_Count", bound: Cost) -> Victims[Answer] | None:
        """The counted victims of a domain if they suffice; otherwise few, if possible of there."""
        some = count.candidates
        is_tried = bool(some) and not _has_parts(some) and self.may_end(some)
        if is_tried and (answer := self.suffice(some)) is not None:
            if count.cost <= bound:
                return Victims(tuple(some), answer, count.cost)
            return self.few((_ordered(some),), answer, bound)  # a part may do in another domain
        names = count.domain.candidates
        there = [candidate for candidate in self.ordered if candidate.name in names]
        others = [candidate for candidate in self.ordered if candidate.name not in names]
        few = self.few((there, others), self.answer, bound)
        return few if self.may_end(few.candidates) else self.few_together(few)

    def few(
        self, parts: Sequence[Sequence[Candidate]], answer: Answer, bound: Cost
    ) -> Victims[Answer]:
        """Victims that suffice, without one that can be spared; ``answer`` is for all parts.

        Candidates are left out in blocks, those of the last part first, and of each part the most
        expensive ones first. A gang is more expensive than its extras, so it comes before them.
        """
        chosen = [candidate for part in parts for candidate in part]
        blocks = [[*reversed(part)] for part in parts if part]
        while blocks:
            block = blocks.pop()
            left_out = {id(candidate) for candidate in block}
            others = [candidate for candidate in chosen if id(candidate) not in left_out]
            if (remaining := self.suffice(_without_parts(others))) is not None:
                chosen, answer = others, remaining
            elif len(block) > 1:
                half = len(block) // 2
                blocks += [block[half:], block[:half]]
        victims = _without_parts(chosen)
        return Victims(tuple(victims), answer, min(bound, _total(victims)))

    def few_together(self, few: Victims[Answer]) -> Victims[Answer] | None:
        """Victims that may end together and suffice, without one that can be spared.

        The search starts with the cheapest that may end together, and then with those that suffice
        but may not all end (``few``); then with one candidate before all others, the cheapest
        first, as one of these has to end. None if nothing suffices: other sets are not tried.
        """
        alone = ((candidate,) for candidate in islice(self.ordered, MOST_STARTS))
        for first in ((), few.candidates, *((*some, *few.candidates) for some in alone)):
            ordered = {candidate.name: candidate for candidate in (*first, *self.ordered)}
            some = self.together([*ordered.values()])
            if (answer := self.suffice(_without_parts(some))) is not None:
                kept = {candidate.name for candidate in some}
                part = [candidate for candidate in self.ordered if candidate.name in kept]
                return self.few((part,), answer, few.bound)
        return None


class _Count(NamedTuple):
    """The cheapest candidates that free in total what is missing in a domain, and their cost."""

    cost: Cost
    candidates: Sequence[Candidate]
    domain: Domain


def _counted(
    ordered: Sequence[Candidate], domains: Iterable[Domain]
) -> tuple[Sequence[_Count], Cost]:
    """The counts of the domains that may have the cheapest victims, by cost, and a bound for all.

    Counting takes the domains in the order of the work that is lost there at least, and ends once
    no other domain can be cheaper.
    """
    bounds = [(_least_work(ordered, domain.missing), domain) for domain in domains]
    able = [(Cost(work, 0, 0), domain) for work, domain in bounds if work is not None]
    able.sort(key=lambda pair: pair[0])
    counts: list[_Count] = []
    least = FREE
    for bound, domain in able[:MOST_COUNTED]:
        if len(counts) >= MOST_DOMAINS and least <= bound:
            break
        sets = [_cheapest_in_total(ordered, lack) for lack in domain.missing]
        cost, some = max(sets, key=lambda pair: pair[0], default=(FREE, ()))
        least = min(least, cost) if counts else cost
        counts.append(_Count(cost, some, domain))
    least = min([least, *(bound for bound, _ in able[len(counts) :][:1])])
    anywhere = _Count(FREE, (), Domain(frozenset()))
    return sorted(counts or [anywhere], key=lambda count: count.cost), least


def _least_work(ordered: Iterable[Candidate], missing: Iterable[Missing]) -> Fraction | None:
    """Work that is lost at least if candidates free what is missing; None if they cannot.

    Parts of candidates may be taken, those first that cost least by amount (Dantzig, "Discrete-
    variable extremum problems", 1957).
    """
    work = {candidate.name: candidate.cost.work for candidate in ordered}
    least = Fraction(0)
    for lack in missing:
        gains = [(work[name] / gain, gain) for name, gain in lack.freed.items() if gain]
        if sum(gain for _, gain in gains) < lack.amount:
            return None
        left, total = lack.amount, Fraction(0)
        for price, gain in sorted(gains):
            total += price * min(gain, left)
            left -= min(gain, left)
        least = max(least, total)
    return least


def _cheapest_in_total(
    ordered: Sequence[Candidate], missing: Missing
) -> tuple[Cost, Sequence[Candidate]]:
    """The cheapest candidates that free so much in total, and their cost; all together do.

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
        gain = -(-missing.freed.get(candidate.name, 0) // unit)
        for amount in range(wanted, 0, -1) if gain else ():
            before, known = best[max(amount - gain, 0)], best[amount]
            if before is None:
                continue
            cost = before[0].plus(candidate.cost)
            if known is None or cost < known[0]:
                best[amount] = cost, (candidate, before[1])
    cost, chain = best[wanted] or (FREE, None)
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


def _ordered(some: Iterable[Candidate]) -> list[Candidate]:
    """These candidates by cost and name."""
    return sorted(some, key=lambda candidate: (candidate.cost, candidate.name))


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
