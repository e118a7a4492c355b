"""The answer to one round: these requests, in the room that earlier rounds have left.

If the rounds above are in the way of a request, the round is decided again together with them.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...gang.demand import PlacementRequest
from ...strategies.problem import Outcome, Solution
from ..compile import answers, capacity, gang_value, problems
from ..compile.capacity import FitByShape
from . import borders, bounds, round_proof
from .limits import SearchLimits
from .partial_plan import PartialPlan
from .round_order import Round
from .round_proof import LaterRounds
from .starvation import EmptyClusterPlacement, StarvedGang


def answer_round(
    plan: PartialPlan,
    wants: Sequence[PlacementRequest],
    limits: SearchLimits,
    later: LaterRounds | None = None,
) -> PartialPlan:
    """The plan with these requests answered in the room that it had left.

    Requests that do not fit by counts alone are left out: that is a proof, and makes the search
    smaller. The plan is not proved if members of ``later`` rounds might let more gangs start.
    """
    rooms = FitByShape(plan.base, plan.room)
    wants = [
        want
        for want in wants
        if capacity.short(rooms, want) is None and capacity.domain_shortage(rooms, want) is None
    ]
    if not wants:
        return plan
    worths = gang_value.worths(plan.base, wants, limits.policy, limits.taken_at)
    problem = problems.problem(
        plan.base, plan.room, wants, worths, plan.quotas, placed=plan.assigned
    )
    solution = limits.ask(problem)
    shortfall = _shortfall_of(solution, limits)
    if solution.outcome is Outcome.FAILED:
        solution = limits.fallback.solve(problem, limits.budget)
    if solution.outcome is Outcome.FAILED:
        return replace(plan, proved=False, shortfall=plan.shortfall or shortfall)
    if later is not None and plan.proved and not shortfall:
        share = limits.with_share(2)
        if later.might_help(problem, solution, share.ask):
            shortfall = round_proof.SENTENCE
    assignments = answers.assignments(plan.base, wants, solution)
    inter_pod = plan.inter_pod.with_placed(answers.placed_counts(wants, solution))
    return replace(
        plan,
        inter_pod=inter_pod,
        base=plan.base if inter_pod is plan.inter_pod else inter_pod.grid(),
        free=answers.room_left(plan.base, plan.free, wants, solution),
        assigned={**plan.assigned, **{pod.uid: pod for gang in assignments for pod in gang}},
        proved=plan.proved and not shortfall and bounds.is_settled(solution),
        shortfall=plan.shortfall or shortfall,
        tally=bounds.counted(plan.tally, problem, solution),
        quotas=plan.quotas.with_started(answers.started(wants, solution)),
    )


def start_as_in_the_empty_cluster(
    plan: PartialPlan, first: StarvedGang, limits: SearchLimits
) -> PartialPlan:
    """The plan in which a starved gang has the nodes of its placement in the empty cluster.

    The plan stays as it is if these nodes have no room for it yet. A search that is not exact may
    miss this placement where there is more room.
    """
    if (first.placed > plan.room).any():
        return plan
    known = replace(limits, strategy=EmptyClusterPlacement(first.shares))
    answer = answer_round(plan, [replace(first.want, is_starved=True)], known)
    return answer if answer.has_placed(first.want) else plan


def with_border(
    before: PartialPlan, answer: PartialPlan, step: Round, limits: SearchLimits
) -> PartialPlan:
    """The answer to a round, decided again with the rounds above if these are in the way."""
    if limits.strategy is limits.fallback:
        return answer
    above = replace(before.above, wants=(*before.above.wants, *step.wants))
    answer = replace(answer, above=above)
    left_out = [want for want in step.wants if not answer.has_placed(want)]
    if not before.assigned or not above.could_start(left_out, answer.held_room):
        return answer
    return _decide_border(answer, step, limits)


def _decide_border(plan: PartialPlan, step: Round, limits: SearchLimits) -> PartialPlan:
    """The round decided again, while all gangs above it may have other nodes."""
    priorities = {want.gang.priority for want in step.wants}
    if not plan.proved:
        return replace(plan, tally=bounds.unbounded(plan.tally, priorities))
    above = plan.above
    joint = borders.joint(above, plan.assigned, plan.held_room, limits.policy, limits.taken_at)
    solution = limits.ask(joint.problem)
    worth_before = joint.worth(plan.assigned)
    worth = joint.worth_of(solution)
    is_best = worth >= worth_before and bounds.is_settled(solution)
    shortfall = _shortfall_of(solution, limits)
    if not is_best and solution.outcome is not Outcome.HEURISTIC:
        shortfall = shortfall or borders.SENTENCE
    is_best &= not shortfall
    raised = bounds.raised(plan.tally, worth_before, max(worth_before, worth))
    settle = bounds.settled if is_best else bounds.unbounded
    plan = replace(plan, proved=is_best, shortfall=shortfall, tally=settle(raised, priorities))
    if worth <= worth_before:
        return plan
    return with_joint(plan, joint.wants, solution)


def with_joint(
    plan: PartialPlan, wants: Sequence[PlacementRequest], solution: Solution
) -> PartialPlan:
    """The plan with the answer to a joint program over these requests and all above them."""
    above = plan.above
    assignments = answers.assignments(above.base, wants, solution)
    inter_pod = above.inter_pod.with_placed(answers.placed_counts(wants, solution))
    return replace(
        plan,
        inter_pod=inter_pod,
        base=above.base if inter_pod is above.inter_pod else inter_pod.grid(),
        free=answers.room_left(above.base, above.free, wants, solution),
        assigned={pod.uid: pod for gang in assignments for pod in gang},
        quotas=above.quotas.with_started(answers.started(wants, solution)),
    )


def with_joined(plan: PartialPlan, wants: Sequence[PlacementRequest]) -> PartialPlan:
    """The plan, with a note of the single-member requests that have a node."""
    placed = [want for want in wants if plan.has_placed(want)]
    above = replace(plan.above, joined=(*plan.above.joined, *placed))
    return replace(plan, above=above)


def _shortfall_of(solution: Solution, limits: SearchLimits) -> str:
    """Why a proof is missing; empty if there is a proof, or if the strategy promises none."""
    name = limits.strategy.name
    match solution.outcome:
        case Outcome.FAILED:
            why = solution.detail or "no reason given"
            return f"{name} failed ({why}), {limits.fallback.name} answered"
        case Outcome.BUDGET_EXHAUSTED if not all(solution.shares):
            return solution.detail or f"{name} used up its budget"
        case _:
            return ""
