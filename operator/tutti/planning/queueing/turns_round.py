"""All borrowers in one program, in which each turn is worth more than all turns after it.

A gang that does not start changes the turns of others. So the order that follows from the answer is
computed. If it differs from the assumed order in a way that matters, the program is solved again
with it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...gang import demand
from ...gang.demand import PlacementRequest
from ...model.cluster import Member
from ...model.keys import Uid
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
from .room_choice import RoomChoice

MOST_ORDERS = 6  # orders that are tried; then the first turn is decided by itself
_STAYS = DemandLevel(1)  # the level of started gangs; the levels of turns count down from 0

Wants = Mapping[Borrower, PlacementRequest]
Level = Sequence[Borrower]  # borrowers that are decided on together
Order = Sequence[Level]


def decide(
    plan: PartialPlan, wants: Wants, shares: Shares, limits: SearchLimits
) -> PartialPlan | None:
    """The proved plan with the best borrowers of each turn; its tally counts borrowers alone.

    None if there is no proof, or if no order was found that follows from its own answer.
    """
    borrowing = _Borrowing(plan, wants, shares, RoomBound.of_plan(plan.above, plan.held_room))
    order = share.decided_together(share.turns(shares, wants))
    answer = borrowing.by_counting(order, limits)
    return borrowing.by_search(order, limits) if answer is None else answer


@dataclass(frozen=True, slots=True, eq=False)
class _Borrowing:
    """The gangs that wait to borrow, and a bound on the room that is left for them."""

    plan: PartialPlan
    wants: Wants
    shares: Shares
    bound: RoomBound  # beside all that has started

    def by_counting(self, order: Order, limits: SearchLimits) -> PartialPlan | None:
        """The plan with the best borrowers by counting; None if they have no room or no proof."""
        some = self._without_excluded()
        before = fixed_round.with_rows(self.plan)
        choice = RoomChoice.of(before, [*some.values()], limits, self.bound)
        if choice is None:
            return None
        for _ in range(MOST_ORDERS):
            places = _places(order)
            best = choice.best([(-places[gang], 0) for gang in some])
            if best is None:
                return None
            placed = {member.uid for want in best for member in want.members[: want.need]}
            in_fact = self._in_fact(placed)
            if _is_as_good(order, in_fact.open, self._started(placed)):
                counted = choice.started(best)
                return fixed_round.counted_round(self.plan, counted, best, limits)
            order = in_fact.all
        return None

    def by_search(self, order: Order, limits: SearchLimits) -> PartialPlan | None:
        """The plan with the best borrowers, by best fit or by a program; None without proof.

        Best fit is enough if each gang that has room starts.
        """
        plan, wants = self.plan, self.wants
        quick = replace(limits, strategy=limits.fallback)
        answer = fixed_round.decide(plan, [wants[gang] for gang in _gangs(order)], quick)
        in_fact = self._in_fact(answer.assigned)
        if all(map(self._started(answer.assigned).issuperset, in_fact.open)):
            tally = bounds.settled(answer.tally)
            return replace(answer, proved=plan.proved, shortfall=plan.shortfall, tally=tally)
        some = self._without_excluded()
        for _ in range(MOST_ORDERS):
            order = in_fact.all
            in_order = _by_order(plan, some, order, limits)
            if in_order is None:
                return None
            in_fact = self._in_fact(in_order.assigned)
            if _is_as_good(order, in_fact.open, self._started(in_order.assigned)):
                return in_order
        return None

    def _without_excluded(self) -> Wants:
        """The gangs that the room for each size does not rule out."""
        return {gang: want for gang, want in self.wants.items() if not self.bound.excludes(want)}

    def _started(self, placed: Collection[Uid]) -> set[Borrower]:
        return {
            gang for gang, want in self.wants.items() if any(uid in placed for uid in want.uids)
        }

    def _in_fact(self, placed: Collection[Uid]) -> "_InFact":
        """The order that follows if these members get a node, and no others of the borrowers."""
        started = self._started(placed)
        members = {
            gang: [member for member in self.wants[gang].members if member.uid in placed]
            for gang in started
        }
        counted = _Counted(self, members)
        order = share.decided_in_fact(self.shares, self.wants, started, counted.exceeding)
        known = {*_gangs(order)}
        rest = [gang for gang in self.wants if gang not in known]
        return _InFact([*order, rest], [*counted.open_levels(order)])


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """What is left beside some of the gangs that start by an answer."""

    borrowing: _Borrowing
    members: Mapping[Borrower, Sequence[Member]]  # of the gangs that start

    def exceeding(
        self, started: Collection[Borrower], others: Collection[Borrower]
    ) -> Collection[Borrower]:
        """The ``others`` that exceed a limit or the room of all nodes, beside the started gangs."""
        plan, wants = self.borrowing.plan, self.borrowing.wants
        placed = [
            Started(gang.key, group[0].shape, len(group))
            for gang in started
            for group in demand.by_shape(tuple(self.members[gang]))
        ]
        rows = [plan.base.shapes[start.shape] for start in placed]
        numbers = np.array([start.members for start in placed], dtype=np.int64)
        totals = fixed_round.room_in_total(plan) - numbers @ plan.base.requests[rows]
        quotas = plan.quotas.with_started(placed)
        return {
            gang
            for gang in others
            if not fixed_round.fits_by_totals(plan, wants[gang], totals)
            or problems.exceeded(plan.base, wants[gang], quotas)
        }

    def open_levels(self, order: Order) -> Iterator[Level]:
        """The order without gangs that have no room beside the gangs that start before them."""
        bound, wants = self.borrowing.bound, self.borrowing.wants
        for level in order:
            yield [g for g in level if g in self.members or not bound.excludes(wants[g])]
            starts = (tuple(self.members[gang]) for gang in level if gang in self.members)
            bound = bound.beside(group for start in starts for group in demand.by_shape(start))


class _InFact(NamedTuple):
    """The order that follows from an answer, and the same without gangs that have no room."""

    all: Order
    open: Order


def _gangs(order: Order) -> Iterator[Borrower]:
    return (gang for level in order for gang in level)


def _is_as_good(assumed: Order, in_fact: Order, started: Collection[Borrower]) -> bool:
    """Whether the best answer by the ``assumed`` order is also the best by the order ``in_fact``.

    It is if, for each waiting gang that comes in fact before or together with a gang that starts,
    the assumed order has the two like this, too. Then no exchange of gangs is better by the order
    in fact without being better by the assumed one.
    """
    place = _places(assumed)
    latest = -1  # the last assumed place of the gangs of earlier levels that wait
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
    """The best plan by this order, beside all gangs that have started; None without proof."""
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
    round_plan = round_answer.with_joint(before, joint.wants, solution)
    tally = _tally(joint, problem, solution)
    return fixed_round.fixed(plan, replace(round_plan, tally=tally), requests)


def _in_turns(joint: Joint, levels: Sequence[DemandLevel]) -> Problem:
    """The program of a joint decision, with these levels for the gangs that may wait."""
    staying = [_STAYS] * joint.staying
    pairs = zip(joint.problem.demands, (*staying, *levels), strict=True)
    return replace(joint.problem, demands=tuple(replace(d, level=level) for d, level in pairs))


def _tally(joint: Joint, problem: Problem, solution: Solution) -> Tally:
    """The admitted value of the gangs that may wait, by priority; all of it is proved."""
    priorities = {
        turn.level: own.level
        for turn, own in list(zip(problem.demands, joint.problem.demands, strict=True))[
            joint.staying :
        ]
    }
    tally: dict[DemandLevel, tuple[int, int | None]] = {}
    for turn, worth in admitted_value(problem, solution):
        if turn in priorities:
            before, _ = tally.get(priorities[turn], (0, 0))
            tally[priorities[turn]] = before + worth, before + worth
    return tally
