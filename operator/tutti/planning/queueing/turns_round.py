"""All borrowers in one program, in which each turn is worth more than all turns behind it.

Who does not start changes the turns of others. So the answer is held against the order that
follows from it, and the program is solved again with that order where the difference matters.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...gang.demand import PlacementRequest
from ...model.cluster import Member
from ...queues import share
from ...queues.share import Borrower, Shares
from ...strategies.problem import DemandLevel, Problem, Solution, admitted_value
from ..compile import problems
from ..compile.quotas import Started
from ..search import borders, bounds, round_answer
from ..search.borders import Joint
from ..search.bounds import Tally
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from . import fixed_round
from .room_bound import RoomBound

MOST_ORDERS = 6  # that are tried; then the first turn is decided by itself
_STAYS = DemandLevel(1)  # of what has started; turns count down from 0

Wants = Mapping[Borrower, PlacementRequest]
Level = Sequence[Borrower]  # who is decided on together
Order = Sequence[Level]


def decide(
    plan: PartialPlan, wants: Wants, shares: Shares, limits: SearchLimits
) -> PartialPlan | None:
    """The plan with the best borrowers of each turn, which is proved; its tally is of them alone.

    None if there is no proof, or no order that follows from its own answer.
    """
    above = plan.above
    bound = RoomBound.of(above.base, np.maximum(above.free - plan.held_room, 0))
    bound = bound.beside(member for want in above.joined for member in want.members)
    order = share.decided_together(share.turns(shares, wants))
    quick = replace(limits, strategy=limits.fallback)
    answer = fixed_round.decide(plan, [wants[gang] for gang in _gangs(order)], quick)
    started = {gang for gang, want in wants.items() if answer.has_placed(want)}
    in_fact = _in_fact(shares, started, _Counted(plan, answer, wants, bound))
    if all(map(started.issuperset, in_fact.open)):
        tally = bounds.settled(answer.tally)
        return replace(answer, proved=plan.proved, shortfall=plan.shortfall, tally=tally)
    some = {gang: want for gang, want in wants.items() if not bound.excludes(want)}
    for _ in range(MOST_ORDERS):
        order = in_fact.all
        found = _by_order(plan, some, order, limits)
        if found is None:
            return None
        started = {gang for gang, want in wants.items() if found.has_placed(want)}
        in_fact = _in_fact(shares, started, _Counted(plan, found, wants, bound))
        if _is_as_good(order, in_fact.open, started):
            return found
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """What is left beside some of an answer's starts, as far as counting tells."""

    plan: PartialPlan
    answer: PartialPlan
    wants: Wants
    bound: RoomBound

    def exceeding(
        self, started: Collection[Borrower], others: Collection[Borrower]
    ) -> Collection[Borrower]:
        """Those of the others that exceed a limit, or the room of all nodes, beside these."""
        plan = self.plan
        placed = [
            Started(gang.key, member.shape, 1) for gang in started for member in self._members(gang)
        ]
        rows = [plan.base.shapes[start.shape] for start in placed]
        totals = fixed_round.room_in_total(plan) - plan.base.requests[rows].sum(axis=0)
        quotas = plan.quotas.with_started(placed)
        return {
            gang
            for gang in others
            if not fixed_round.fits_by_totals(plan, self.wants[gang], totals)
            or problems.exceeded(plan.base, self.wants[gang], quotas)
        }

    def open_levels(self, order: Order, started: Collection[Borrower]) -> Iterator[Level]:
        """The order without gangs that have no room beside those that start before them."""
        bound = self.bound
        for level in order:
            yield [g for g in level if g in started or not bound.excludes(self.wants[g])]
            starts = (gang for gang in level if gang in started)
            bound = bound.beside(member for gang in starts for member in self._members(gang))

    def _members(self, gang: Borrower) -> Iterator[Member]:
        """The members that start."""
        assigned = self.answer.assigned
        return (member for member in self.wants[gang].members if member.uid in assigned)


class _InFact(NamedTuple):
    """The order that follows from an answer, and the same without gangs that have no room."""

    all: Order
    open: Order


def _in_fact(shares: Shares, started: AbstractSet[Borrower], counted: _Counted) -> _InFact:
    order = share.decided_in_fact(shares, counted.wants, started, counted.exceeding)
    known = {*_gangs(order)}
    rest = [gang for gang in counted.wants if gang not in known]
    return _InFact([*order, rest], [*counted.open_levels(order, started)])


def _gangs(order: Order) -> Iterator[Borrower]:
    return (gang for level in order for gang in level)


def _is_as_good(assumed: Order, in_fact: Order, started: Collection[Borrower]) -> bool:
    """Whether the best answer by the assumed order is the best by the other one, too.

    It is if each gang that waits, and comes before one that starts or together with it, did so
    before. Then no exchange of gangs is worth more by this order that is not by the assumed one.
    """
    place = _places(assumed)
    latest = -1  # the last assumed place of the gangs that wait and come before
    for level in in_fact:
        starts = min((place[gang] for gang in level if gang in started), default=len(place))
        waits = max((place[gang] for gang in level if gang not in started), default=-1)
        if starts <= latest or starts < waits:
            return False
        latest = max(latest, waits)
    return True


def _places(order: Order) -> Mapping[Borrower, int]:
    return {gang: place for place, level in enumerate(order) for gang in level}


def _by_order(
    plan: PartialPlan, wants: Wants, order: Order, limits: SearchLimits
) -> PartialPlan | None:
    """The best of these by this order, beside all that has started; None without proof."""
    requests = [wants[gang] for gang in _gangs(order) if gang in wants]
    places = _places(order)
    levels = {want.gang.uid: DemandLevel(-places[gang]) for gang, want in wants.items()}
    before = fixed_round.with_rows(plan)
    above = replace(before.above, wants=tuple(requests))
    if not above.could_start(requests, plan.held_room):
        return fixed_round.fixed(plan, before, ())
    joint = borders.joint(above, plan.assigned, plan.held_room, limits.policy, limits.taken_at)
    problem = _in_turns(joint, [levels[want.gang.uid] for want in joint.wants[joint.staying :]])
    solution = limits.ask(problem)
    if not (bounds.is_settled(solution) and all(solution.shares[: joint.staying])):
        return None
    found = round_answer.with_joint(before, joint.wants, solution)
    tally = _tally(joint, problem, solution)
    return fixed_round.fixed(plan, replace(found, tally=tally), requests)


def _in_turns(joint: Joint, levels: Sequence[DemandLevel]) -> Problem:
    """The program of a joint decision with these levels of those who do not stay."""
    staying = [_STAYS] * joint.staying
    pairs = zip(joint.problem.demands, (*staying, *levels), strict=True)
    return replace(joint.problem, demands=tuple(replace(d, level=level) for d, level in pairs))


def _tally(joint: Joint, problem: Problem, solution: Solution) -> Tally:
    """What is admitted of those who do not stay, by their priorities; all of it is proved."""
    priorities = {
        turn.level: own.level
        for turn, own in list(zip(problem.demands, joint.problem.demands, strict=True))[
            joint.staying :
        ]
    }
    found: dict[DemandLevel, tuple[int, int | None]] = {}
    for turn, worth in admitted_value(problem, solution):
        if turn in priorities:
            before, _ = found.get(priorities[turn], (0, 0))
            found[priorities[turn]] = before + worth, before + worth
    return found
