"""The rounds of a plan, answered one after the other: a draft is what they have come to so far.

Separate from the plan, which says what is asked at all, and in words what came of it. A round
changes nothing that one before it has decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...gang import demand
from ...gang.demand import MemberCounts, PlacementRequest
from ...model.decisions import Assignment, Objective, Policy
from ...model.keys import Uid
from ...strategies.problem import Budget, Outcome, Problem, Solution, Strategy
from ..compile import answers, capacity, gang_value, problems
from ..compile.answers import PlacedCount
from ..compile.capacity import FitByShape
from ..compile.grids import Grid
from ..compile.inter_pod import InterPodCompiler
from . import borders, bounds, round_order, round_proof, starvation
from .borders import Above
from .bounds import Tally
from .round_order import Round
from .round_proof import LaterRounds
from .starvation import HeldCapacity

MOST_REPAIRS = 8  # rounds of repairs that together may take as long as the search


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Who answers the rounds, and how much work they may spend."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget
    policy: Policy
    taken_at: float  # seconds since the epoch

    def ask(self, problem: Problem) -> Solution:
        """The strategy's answer; it may have none."""
        return self.strategy.solve(problem, self.budget)

    def with_a_share(self, of: float) -> "SearchLimits":
        """The same with one of so many shares of the seconds, so that all of a plan has an end."""
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds / of))


@dataclass(frozen=True, slots=True, eq=False)
class PartialPlan:
    """A plan in the making: who has a node by now, what room is left, how far it is proved."""

    crowds: InterPodCompiler
    base: Grid  # with what the crowds forbid by now
    free: NDArray[np.int64]
    above: Above  # what the next round comes after
    assigned: Mapping[Uid, Assignment] = field(default_factory=dict)
    proved: bool = True
    shortfall: str = ""  # why a proof that was asked for is missing
    hold: HeldCapacity | None = None
    tally: Tally = field(default_factory=dict)  # of the whole gangs

    @classmethod
    def blank(cls, crowds: InterPodCompiler, free: NDArray[np.int64]) -> "PartialPlan":
        """The draft in which nobody has a node."""
        base = crowds.grid()
        return cls(crowds, base, free, Above(crowds, base, free))

    @property
    def room(self) -> NDArray[np.int64]:
        """What of the free room may be given away."""
        return self.free - self.held

    @property
    def held(self) -> NDArray[np.int64] | int:
        """The room that is held."""
        return 0 if self.hold is None else self.hold.room

    def has_placed(self, want: PlacementRequest) -> bool:
        """Whether the gang starts, or has begun to be repaired or to grow."""
        return any(member.uid in self.assigned for member in want.members)


def repair(draft: PartialPlan, found: Sequence[MemberCounts], effort: SearchLimits) -> PartialPlan:
    """Replace as many lost members as can be by the oldest that wait.

    Where one shape has no room, waiting members of another may have, beside those.
    """
    effort = replace(effort, policy=replace(effort.policy, objective=Objective.GANGS))
    refused: set[demand.Refusal] = set()
    while True:
        wants = [w for c in found for w in demand.repairs(c, draft.assigned, refused)]
        if not wants:
            return draft
        before = draft
        draft = _searched(before, _round(before, wants, effort), Round(tuple(wants)), effort)
        draft = _joined(replace(draft, above=replace(draft.above, wants=())), wants)
        refused.update(
            (want.gang.uid, member.role, member.shape)
            for want in wants
            for member in want.members
            if member.uid not in draft.assigned
        )


def search(draft: PartialPlan, steps: Sequence[Round], effort: SearchLimits) -> PartialPlan:
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


def moved(
    draft: PartialPlan, found: Sequence[MemberCounts], assigned: Mapping[Uid, Assignment]
) -> PartialPlan:
    """The draft with the same members on other nodes."""
    above = draft.above
    rows = {node.name: row for row, node in enumerate(above.base.nodes)}
    members = (member for census in found for member in census.waiting if member.uid in assigned)
    seated = [PlacedCount(member.shape, rows[assigned[member.uid].node], 1) for member in members]
    crowds = above.crowds.joined(seated)
    return replace(
        draft,
        crowds=crowds,
        base=above.base if crowds is above.crowds else crowds.grid(),
        free=answers.room_beside(above.base, above.free, seated),
        assigned=assigned,
    )


def may_join_late(draft: PartialPlan, found: Sequence[MemberCounts]) -> bool:
    """Whether a member that waits has room beside the plan, counted without rules between pods.

    Members are placed one by one in rounds of their own. A later border may make room for one that
    had none, and a rule may ask for pods of a later round.
    """
    before_hold = FitByShape(draft.base, draft.free)
    after_hold = FitByShape(draft.base, draft.room)
    for census in found:
        is_held_back = draft.hold is not None and draft.hold.holds_back(census.gang)
        rooms = after_hold if is_held_back else before_hold
        wants = (
            *demand.extras(census, draft.assigned),
            *demand.repairs(census, draft.assigned, ()),
        )
        if any(rooms[want.members[0].shape].members for want in wants):
            return True
    return False


def completed(
    draft: PartialPlan, found: Sequence[MemberCounts], steps: Sequence[Round], effort: SearchLimits
) -> PartialPlan:
    """The draft with whoever waits and fits beside all that have a node; itself if nobody does.

    What is proved of whole gangs stays so as long as no more of them start, for those who join take
    room and give none; under rules between pods they may do others good.
    """
    look = replace(effort, strategy=effort.fallback)
    look = look.with_a_share(MOST_REPAIRS * max(_most_searches(draft, steps), 1))
    mended = replace(repair(draft, found, look), proved=draft.proved, tally=draft.tally)
    more = _decide(replace(mended, shortfall=draft.shortfall), steps, look)
    if len(more.assigned) == len(draft.assigned):
        return draft
    whole = [want for step in steps for want in step.wants]
    is_new = any(more.has_placed(want) and not draft.has_placed(want) for want in whole)
    waiting = [want for want in whole if not more.has_placed(want)]
    may_help = is_new or draft.base.rules.near or draft.base.rules.even
    if not draft.proved or (may_help and draft.above.could_start(waiting, more.held)):
        shortfall = draft.shortfall or (round_proof.SENTENCE if draft.proved else "")
        return replace(more, proved=False, shortfall=shortfall, tally=bounds.unbounded(more.tally))
    return replace(more, proved=True, shortfall="", tally=bounds.settled(more.tally))


def _most_searches(draft: PartialPlan, steps: Sequence[Round]) -> float:
    """How many searches of a full share the steps may ask for.

    One each and one for the border above it, one more for all that starved gangs part, and half of
    one to look who might help.
    """
    joint = sum(step.starved is not None for step in steps[:-1])
    edges = len(steps) - (not draft.assigned)
    rules = draft.base.rules
    return (len(steps) + joint + edges) * (1.5 if rules.near or rules.even else 1.0)


def _decide(draft: PartialPlan, steps: Sequence[Round], effort: SearchLimits) -> PartialPlan:
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
            draft = replace(draft, hold=starvation.hold(first, draft.free))
            left = [*round_order.once_held(left)]
        draft = _extend(draft, step.growing, effort)
    waits = (not draft.has_placed(want) for step in steps for want in step.wants)
    if not draft.proved and has_parts and (rules.near or rules.even) and any(waits):
        # A second look may let some start who are followed by others: no bound of a round holds.
        return replace(draft, tally=bounds.unbounded(draft.tally))
    return draft


def _undivided(
    draft: PartialPlan, steps: Sequence[Round], effort: SearchLimits
) -> tuple[PartialPlan, list[Round]] | None:
    """One decision over steps that starved gangs part; None if one of these does not start."""
    ends = next((i for i, step in enumerate(steps) if step.growing), len(steps) - 1) + 1
    (joint,) = round_order.once_held(steps[:ends])
    left = list(steps[ends:])
    tried = _start(draft, joint, left, effort)
    firsts = (step.starved for step in steps[:ends])
    if not all(tried.has_placed(first.want) for first in firsts if first is not None):
        return None
    return _extend(tried, joint.growing, effort), left


def _start(
    draft: PartialPlan, step: Round, left: Sequence[Round], effort: SearchLimits
) -> PartialPlan:
    """Start whole gangs: the joint decision, with those above it where these are in the way."""
    waiting = [want for want in step.wants if not draft.has_placed(want)]
    answer = _round(draft, waiting, effort, LaterRounds(draft.base, step.growing, left))
    return _searched(draft, answer, step, effort)


def _searched(
    before: PartialPlan, answer: PartialPlan, step: Round, effort: SearchLimits
) -> PartialPlan:
    """The answer to a round, with its border searched where that may let others start."""
    if effort.strategy is effort.fallback:
        return answer
    above = replace(before.above, wants=(*before.above.wants, *step.wants))
    answer = replace(answer, above=above)
    left_out = [want for want in step.wants if not answer.has_placed(want)]
    if not before.assigned or not above.could_start(left_out, answer.held):
        return answer
    return _across(answer, step, effort)


def _across(draft: PartialPlan, step: Round, effort: SearchLimits) -> PartialPlan:
    """The same round decided once more, with all above it free to go elsewhere."""
    priorities = {want.gang.priority for want in step.wants}
    if not draft.proved:
        return replace(draft, tally=bounds.unbounded(draft.tally, priorities))
    above = draft.above
    joint = borders.joint(above, draft.assigned, draft.held, effort.policy, effort.taken_at)
    solution = effort.ask(joint.problem)
    known = joint.worth(draft.assigned)
    found = joint.worth_of(solution)
    is_best = found >= known and bounds.is_settled(solution)
    shortfall = _shortfall(solution, effort)
    if not is_best and solution.outcome is not Outcome.HEURISTIC:
        shortfall = shortfall or borders.SENTENCE
    is_best &= not shortfall
    raised = bounds.raised(draft.tally, known, max(known, found))
    settle = bounds.settled if is_best else bounds.unbounded
    draft = replace(draft, proved=is_best, shortfall=shortfall, tally=settle(raised, priorities))
    if found <= known:
        return draft
    given = answers.assignments(above.base, joint.wants, solution)
    crowds = above.crowds.joined(answers.placed_counts(joint.wants, solution))
    return replace(
        draft,
        crowds=crowds,
        base=above.base if crowds is above.crowds else crowds.grid(),
        free=answers.room_left(above.base, above.free, joint.wants, solution),
        assigned={one.uid: one for some in given for one in some},
    )


def _extend(draft: PartialPlan, found: Sequence[MemberCounts], effort: SearchLimits) -> PartialPlan:
    """Let further members join; which of them is no part of the proof, so best fit decides."""
    wants = [want for census in found for want in demand.extras(census, draft.assigned)]
    joined = _joined(_round(draft, wants, replace(effort, strategy=effort.fallback)), wants)
    return replace(joined, proved=draft.proved, shortfall=draft.shortfall, tally=draft.tally)


def _joined(draft: PartialPlan, wants: Sequence[PlacementRequest]) -> PartialPlan:
    """The draft that knows which of these members, each a want of its own, were placed."""
    placed = [want for want in wants if draft.has_placed(want)]
    above = replace(draft.above, joined=(*draft.above.joined, *placed))
    return replace(draft, above=above)


def _round(
    draft: PartialPlan,
    wants: Sequence[PlacementRequest],
    effort: SearchLimits,
    later: LaterRounds | None = None,
) -> PartialPlan:
    """The draft after these demands were answered on the room that it had left.

    Demands that counting alone rules out are not asked: that is proof enough, and less to search.
    What those who come ``later`` might change is not proved.
    """
    rooms = FitByShape(draft.base, draft.room)
    wants = [want for want in wants if capacity.short(rooms, want) is None]
    if not wants:
        return draft
    worths = gang_value.worths(draft.base, wants, effort.policy, effort.taken_at)
    problem = problems.problem(draft.base, draft.room, wants, worths)
    solution = effort.ask(problem)
    shortfall = _shortfall(solution, effort)
    if solution.outcome is Outcome.FAILED:
        solution = effort.fallback.solve(problem, effort.budget)
    if solution.outcome is Outcome.FAILED:
        return replace(draft, proved=False, shortfall=draft.shortfall or shortfall)
    if later is not None and draft.proved and not shortfall:
        share = effort.with_a_share(2)
        if later.might_help(problem, solution, share.ask):
            shortfall = round_proof.SENTENCE
    given = answers.assignments(draft.base, wants, solution)
    crowds = draft.crowds.joined(answers.placed_counts(wants, solution))
    return replace(
        draft,
        crowds=crowds,
        base=draft.base if crowds is draft.crowds else crowds.grid(),
        free=answers.room_left(draft.base, draft.free, wants, solution),
        assigned={**draft.assigned, **{one.uid: one for some in given for one in some}},
        proved=draft.proved and not shortfall and bounds.is_settled(solution),
        shortfall=draft.shortfall or shortfall,
        tally=bounds.counted(draft.tally, problem, solution),
    )


def _shortfall(solution: Solution, effort: SearchLimits) -> str:
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
