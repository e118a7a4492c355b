"""From a Snapshot to a Plan: which gangs start now and where, and why the others wait.

Repairs of gangs that have started come first, then whole gangs in one joint decision; members
beyond those needed follow the whole gangs of their priority. The same Snapshot gives the same Plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Shape, Slots, Snapshot
from ..model.decisions import Assignment, Placement, Plan, Policy
from ..model.keys import Uid
from ..strategies.problem import Budget, Demand, Outcome, Problem, Solution, Strategy
from . import (
    choosing,
    demand,
    explain,
    filling,
    followers,
    looks,
    moves,
    order,
    partial,
    reduce,
    rounds,
    shortage,
    slots,
    starving,
    tally,
    timeouts,
    value,
)
from .company import Company
from .crowds import Crowds
from .demand import Census, Want
from .filling import Filled
from .followers import Later
from .reduce import Grid
from .rounds import Round
from .shortage import Rooms
from .starving import Hold
from .tally import Tally

DEFAULT_POLICY = Policy()
MOST_TRIALS = 8  # kinds of starved gangs that are tried on the empty cluster
MOST_REPAIRS = 8  # rounds of repairs that together may take as long as the search


@dataclass(frozen=True, slots=True)
class _Effort:
    """Who answers the rounds, and how much work they may spend."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget
    policy: Policy
    taken_at: float  # seconds since the epoch

    def ask(self, problem: Problem) -> Solution:
        """The strategy's answer; it may have none."""
        return self.strategy.solve(problem, self.budget)

    def answer(self, problem: Problem) -> Solution:
        """The strategy's answer, or the fallback's where it has none."""
        solution = self.ask(problem)
        if solution.outcome is Outcome.FAILED:
            return self.fallback.solve(problem, self.budget)
        return solution

    def with_a_share(self, of: int) -> "_Effort":
        """The same with one of so many shares of the seconds, so that all of a plan has an end."""
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds / of))


class _Trials:
    """Whether gangs would fit the empty cluster; equal ones are asked about once."""

    def __init__(self, effort: _Effort) -> None:
        self._effort = effort.with_a_share(MOST_TRIALS)
        self._known: dict[Demand, Solution] = {}
        self.shortfall = ""  # why one of them may have been passed over wrongly

    def __call__(self, problem: Problem) -> Solution:
        """The answer for a problem of one demand; none once too many were asked for."""
        (asked,) = problem.demands
        if asked not in self._known and len(self._known) >= MOST_TRIALS:
            self._known[asked] = Solution(Outcome.BUDGET_EXHAUSTED, ((),))
        elif asked not in self._known:
            self._known[asked] = self._effort.answer(problem)
        solution = self._known[asked]
        if solution.outcome is Outcome.BUDGET_EXHAUSTED and not solution.shares[0]:
            self.shortfall = "not all that have starved could be looked at"
        return solution


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """A plan in the making: who has a node by now, what room is left, how far it is proved."""

    crowds: Crowds
    base: Grid  # with what the crowds forbid by now
    free: NDArray[np.int64]
    assigned: Mapping[Uid, Assignment]
    proved: bool = True
    shortfall: str = ""  # why a proof that was asked for is missing
    hold: Hold | None = None
    tally: Tally = field(default_factory=dict)  # of the whole gangs

    @property
    def room(self) -> NDArray[np.int64]:
        """What of the free room may be given away."""
        return self.free if self.hold is None else self.free - self.hold.room

    def has_placed(self, want: Want) -> bool:
        """Whether the gang starts, or has begun to be repaired or to grow."""
        return any(member.uid in self.assigned for member in want.members)


def plan(
    snapshot: Snapshot,
    strategy: Strategy,
    fallback: Strategy,
    budget: Budget,
    policy: Policy = DEFAULT_POLICY,
) -> Plan:
    """Decide for every gang that has no standing Reservation; ``fallback`` answers if needed."""
    effort = _Effort(strategy, fallback, budget, policy, snapshot.taken_at)
    came = filling.filled(snapshot)
    snapshot = came.snapshot
    wishing = _censuses(came)
    found = choosing.plain(wishing)
    residents = looks.there(snapshot)
    promised = looks.promised(snapshot)
    members = (member for one in found for member in one.waiting)
    roll = looks.roll(snapshot, (*members, *(member for member, _ in promised)), residents)
    if roll.number:
        found = [
            replace(one, ready=roll.told_apart(one.ready), absent=roll.told_apart(one.absent))
            for one in found
        ]
        promised = [(seen, on) for one, on in promised for seen in roll.told_apart((one,))]
    members = (member for one in found for member in one.waiting)
    everyone = (*members, *(member for member, _ in promised))
    base = reduce.grid(snapshot, (member.shape for member in everyone))
    crowds = Crowds.of(base, roll, residents, promised)
    repairing = effort.with_a_share(MOST_REPAIRS)
    begun = _Draft(crowds, crowds.grid(), base.free, {})
    repaired = replace(_repair(begun, found, repairing), tally={})
    empty, before = Rooms(base, base.capacity), Rooms(repaired.base, repaired.free)
    tried = [one for one in found if not timeouts.is_given_up(one, snapshot.taken_at)]
    wants = _startable(empty, tried)
    trials = _Trials(effort)

    def cleared() -> Grid:
        return Crowds.of(base, roll, looks.staying(snapshot)).grid()

    starved = starving.starved(snapshot, cleared, wants, policy, trials)
    steps = rounds.rounds(tried, wants, starved)
    start = replace(
        repaired,
        proved=repaired.proved and not trials.shortfall,
        shortfall=repaired.shortfall or trials.shortfall,
    )
    draft = _search(start, steps, effort)
    evidence = explain.Evidence(
        empty=empty,
        before=before,
        left=Rooms(draft.base, draft.free),
        behind=Rooms(draft.base, draft.room),
        crowds=draft.crowds,
        placed=draft.assigned,
        shortfall=draft.shortfall,
        hold=draft.hold,
    )
    waiting = timeouts.said(explain.rejections(evidence, found), found, snapshot.taken_at)
    company = Company(roll, tried, Rooms(base, base.free), draft.assigned)
    evictions, rejections = partial.verdicts(snapshot, found, waiting, company)
    ground = moves.Ground(snapshot, residents, begun.base, draft.room)
    assigned = choosing.improved(ground, wishing, found, draft.assigned)
    dues = (
        starving.due(wants, starved, snapshot, policy),
        timeouts.due(found, snapshot.taken_at),
        slots.due(snapshot),
    )
    return Plan(
        placements=_placements(found, assigned, came),
        rejections=rejections,
        evictions=evictions,
        proved=draft.proved,
        shortfall=draft.shortfall,
        due=min((at for at in dues if at is not None), default=None),
        levels=tally.levels(draft.tally),
    )


def _censuses(came: Filled) -> Sequence[Census]:
    """The gangs to decide on, in the order considered; a reserved one is being carried out.

    One whose Reservation is open for absent members may be repaired, and grow, all the same.
    """
    snapshot = came.snapshot
    reserved = {held.gang for held in snapshot.reservations if held.uid not in came.open}
    promised = {entry.uid for held in snapshot.reservations for entry in held.entries}
    gangs = (
        gang
        for gang in snapshot.gangs
        if gang.uid not in snapshot.settled and gang.key not in reserved
    )
    found = ((g, demand.census(g, promised, came.room(g))) for g in order.considered(gangs))
    return [one if came.awaits(gang) else replace(one, absent=()) for gang, one in found]


def _startable(empty: Rooms, found: Sequence[Census]) -> Sequence[Want]:
    """The gangs that have not started, without those that no node could ever hold."""
    wants = (want for census in found if (want := demand.whole(census)) is not None)
    return [want for want in wants if shortage.nowhere_member(empty, want) is None]


def _repair(draft: _Draft, found: Sequence[Census], effort: _Effort) -> _Draft:
    """Replace lost members; where one shape has no room, a waiting member of another may have."""
    refused: set[tuple[Uid, str, Shape]] = set()
    while True:
        wants = [w for c in found for w in demand.repairs(c, draft.assigned, refused)]
        if not wants:
            return draft
        draft = _round(draft, wants, effort)
        refused.update(
            (want.gang.uid, member.role, member.shape)
            for want in wants
            for member in want.members
            if member.uid not in draft.assigned
        )


def _search(draft: _Draft, steps: Sequence[Round], effort: _Effort) -> _Draft:
    """Go through the rounds; again for as long as a search without a proof has overlooked room."""
    seconds = effort.budget.seconds / max(len(steps), 1)
    effort = replace(effort, budget=replace(effort.budget, seconds=seconds))
    draft = _decide(draft, steps, effort)
    again = replace(effort, strategy=effort.fallback)
    while not draft.proved:
        more = _decide(draft, steps, again)
        if len(more.assigned) == len(draft.assigned):
            break
        draft = more
    return draft


def _decide(draft: _Draft, steps: Sequence[Round], effort: _Effort) -> _Draft:
    """Start whole gangs, and let those of a priority grow before lower ones are looked at."""
    rules, has_parts = draft.base.rules, len(steps) > 1 or any(step.growing for step in steps)
    draft, left = replace(draft, hold=None), list(steps)
    while left:
        step = left.pop(0)
        draft = _start(draft, step, left, effort)
        first = step.starved
        if first is not None and draft.hold is None and not draft.has_placed(first.want):
            draft = replace(draft, hold=starving.hold(first, draft.free))
            left = [*rounds.once_held(left)]
        draft = _extend(draft, step.growing, effort)
    waits = (not draft.has_placed(want) for step in steps for want in step.wants)
    if not draft.proved and has_parts and (rules.near or rules.even) and any(waits):
        # A second look may let some start who are followed by others: no bound of a round holds.
        return replace(draft, tally=tally.unbounded(draft.tally))
    return draft


def _start(draft: _Draft, step: Round, left: Sequence[Round], effort: _Effort) -> _Draft:
    """Start whole gangs: the joint decision."""
    waiting = [want for want in step.wants if not draft.has_placed(want)]
    return _round(draft, waiting, effort, Later(draft.base, step.growing, left))


def _extend(draft: _Draft, found: Sequence[Census], effort: _Effort) -> _Draft:
    """Let further members join; which of them is no part of the proof, so best fit decides."""
    wants = [want for census in found for want in demand.extras(census, draft.assigned)]
    joined = _round(draft, wants, replace(effort, strategy=effort.fallback))
    return replace(joined, proved=draft.proved, shortfall=draft.shortfall, tally=draft.tally)


def _round(
    draft: _Draft, wants: Sequence[Want], effort: _Effort, later: Later | None = None
) -> _Draft:
    """The draft after these demands were answered on the room that it had left.

    Demands that counting alone rules out are not asked: that is proof enough, and less to search.
    What those who come ``later`` might change is not proved.
    """
    rooms = Rooms(draft.base, draft.room)
    wants = [want for want in wants if shortage.short(rooms, want) is None]
    if not wants:
        return draft
    worths = value.worths(draft.base, wants, effort.policy, effort.taken_at)
    problem = reduce.problem(draft.base, draft.room, wants, worths)
    solution = effort.ask(problem)
    shortfall = _shortfall(solution, effort)
    if solution.outcome is Outcome.FAILED:
        solution = effort.fallback.solve(problem, effort.budget)
    if solution.outcome is Outcome.FAILED:
        return replace(draft, proved=False, shortfall=draft.shortfall or shortfall)
    if later is not None and later.might_help(problem, solution, effort.with_a_share(2).ask):
        shortfall = shortfall or followers.SENTENCE
    given = reduce.assignments(draft.base, wants, solution)
    crowds = draft.crowds.joined(reduce.seated(wants, solution))
    return replace(
        draft,
        crowds=crowds,
        base=draft.base if crowds is draft.crowds else crowds.grid(),
        free=reduce.room_left(draft.base, draft.free, wants, solution),
        assigned={**draft.assigned, **{one.uid: one for some in given for one in some}},
        proved=draft.proved and not shortfall and tally.is_settled(solution),
        shortfall=draft.shortfall or shortfall,
        tally=tally.counted(draft.tally, problem, solution),
    )


def _shortfall(solution: Solution, effort: _Effort) -> str:
    """Why a proof is missing that the strategy would have given; a heuristic promises none."""
    name = effort.strategy.name
    match solution.outcome:
        case Outcome.FAILED:
            why = solution.detail or "no reason given"
            return f"{name} failed ({why}), {effort.fallback.name} answered"
        case Outcome.BUDGET_EXHAUSTED if not all(solution.shares):
            return solution.detail or f"{name} used up its budget"
        case _:
            return ""


def _placements(
    found: Sequence[Census], assigned: Mapping[Uid, Assignment], came: Filled
) -> tuple[Placement, ...]:
    """One Placement per gang that got something, of all rounds together."""
    placements = []
    for census in found:
        gang = census.gang
        own = tuple(assigned[member.uid] for member in census.ready if member.uid in assigned)
        new = tuple(
            Slots(assigned[member.uid].node, member.role, 1)
            for member in census.absent
            if member.uid in assigned
        )
        if (standing := came.open.get(gang.uid)) is not None:
            one = standing.placement(gang, own, new)
            placements.extend([] if one is None else [one])
        elif own or (new and census.is_committed):
            held = slots.slots_of(slots.places(new))
            placements.append(Placement(gang.key, gang.uid, gang.generation, own, held))
    return tuple(placements)
