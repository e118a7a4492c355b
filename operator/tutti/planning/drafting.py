"""The rounds of a plan, answered one after the other: a draft is what they have come to so far.

Separate from the plan, which says what is asked at all, and in words what came of it. A round
changes nothing that one before it has decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..model.decisions import Assignment, Policy
from ..model.keys import Uid
from ..strategies.problem import Budget, Outcome, Problem, Solution, Strategy
from . import demand, followers, reduce, rounds, shortage, starving, tally, value
from .crowds import Crowds
from .demand import Census, Want
from .followers import Later
from .reduce import Grid
from .rounds import Round
from .shortage import Rooms
from .starving import Hold
from .tally import Tally

MOST_REPAIRS = 8  # rounds of repairs that together may take as long as the search


@dataclass(frozen=True, slots=True)
class Effort:
    """Who answers the rounds, and how much work they may spend."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget
    policy: Policy
    taken_at: float  # seconds since the epoch

    def ask(self, problem: Problem) -> Solution:
        """The strategy's answer; it may have none."""
        return self.strategy.solve(problem, self.budget)

    def with_a_share(self, of: float) -> "Effort":
        """The same with one of so many shares of the seconds, so that all of a plan has an end."""
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds / of))


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
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


def repair(draft: Draft, found: Sequence[Census], effort: Effort) -> Draft:
    """Replace lost members; where one shape has no room, a waiting member of another may have."""
    refused: set[demand.Refusal] = set()
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


def search(draft: Draft, steps: Sequence[Round], effort: Effort) -> Draft:
    """Go through the rounds; again for as long as a search without a proof has overlooked room."""
    effort = effort.with_a_share(max(_most_searches(draft, steps), 1))
    draft = _decide(draft, steps, effort)
    again = replace(effort, strategy=effort.fallback)
    while not draft.proved:
        more = _decide(draft, steps, again)
        if len(more.assigned) == len(draft.assigned):
            break
        draft = more
    return draft


def _most_searches(draft: Draft, steps: Sequence[Round]) -> float:
    """How many searches of a full share the steps may ask for.

    One each, one more for all that starved gangs part, and half of one to look who might help.
    """
    joint = sum(step.starved is not None for step in steps[:-1])
    rules = draft.base.rules
    return (len(steps) + joint) * (1.5 if rules.near or rules.even else 1.0)


def _decide(draft: Draft, steps: Sequence[Round], effort: Effort) -> Draft:
    """Start whole gangs, and let those of a priority grow before lower ones are looked at."""
    rules, has_parts = draft.base.rules, len(steps) > 1 or any(step.growing for step in steps)
    draft, left = replace(draft, hold=None), list(steps)
    while left:
        step = left.pop(0)
        if step.starved is not None and draft.hold is None and left:
            whole = _undivided(draft, (step, *left), effort)
            if whole is not None:
                draft, left = whole
                continue
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


def _undivided(
    draft: Draft, steps: Sequence[Round], effort: Effort
) -> tuple[Draft, list[Round]] | None:
    """One decision over steps that starved gangs part; None if one of these does not start."""
    ends = next((i for i, step in enumerate(steps) if step.growing), len(steps) - 1) + 1
    (joint,) = rounds.once_held(steps[:ends])
    left = list(steps[ends:])
    tried = _start(draft, joint, left, effort)
    firsts = (step.starved for step in steps[:ends])
    if not all(tried.has_placed(first.want) for first in firsts if first is not None):
        return None
    return _extend(tried, joint.growing, effort), left


def _start(draft: Draft, step: Round, left: Sequence[Round], effort: Effort) -> Draft:
    """Start whole gangs: the joint decision."""
    waiting = [want for want in step.wants if not draft.has_placed(want)]
    return _round(draft, waiting, effort, Later(draft.base, step.growing, left))


def _extend(draft: Draft, found: Sequence[Census], effort: Effort) -> Draft:
    """Let further members join; which of them is no part of the proof, so best fit decides."""
    wants = [want for census in found for want in demand.extras(census, draft.assigned)]
    joined = _round(draft, wants, replace(effort, strategy=effort.fallback))
    return replace(joined, proved=draft.proved, shortfall=draft.shortfall, tally=draft.tally)


def _round(
    draft: Draft, wants: Sequence[Want], effort: Effort, later: Later | None = None
) -> Draft:
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
    if later is not None and draft.proved and not shortfall:
        share = effort.with_a_share(2)
        if later.might_help(problem, solution, share.ask):
            shortfall = followers.SENTENCE
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


def _shortfall(solution: Solution, effort: Effort) -> str:
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
