"""Members that had no room when they were tried, and have room after all rounds."""

from collections.abc import Sequence
from dataclasses import replace

from ...gang import demand
from ...gang.demand import MemberCounts
from ..compile.capacity import FitByShape
from . import bounds, repairs, round_proof
from .limits import SearchLimits
from .partial_plan import PartialPlan
from .round_runner import SearchOrder


def may_join_late(plan: PartialPlan, gangs: Sequence[MemberCounts]) -> bool:
    """Whether a waiting member has room beside the plan, counted without rules between pods.

    Members are placed one by one in rounds of their own. A later border may make room for such a
    member, and a rule may need pods of a later round.
    """
    before_hold = FitByShape(plan.base, plan.free)
    after_hold = FitByShape(plan.base, plan.room)
    for gang in gangs:
        is_held_back = plan.hold is not None and plan.hold.holds_back(gang.gang)
        rooms = after_hold if is_held_back else before_hold
        requests = (
            *demand.growth_requests(gang, plan.assigned),
            *demand.repair_requests(gang, plan.assigned, ()),
        )
        if any(rooms[request.members[0].shape].members for request in requests):
            return True
    return False


def join_late(
    plan: PartialPlan, gangs: Sequence[MemberCounts], order: SearchOrder, limits: SearchLimits
) -> PartialPlan:
    """The plan with all waiting members that fit now; the same plan if there are none.

    The proof stays if no further gang starts, because members that join only take room. With
    affinity or spread, they may also let other gangs start.
    """
    quick = replace(limits, strategy=limits.fallback)
    quick = quick.with_share(repairs.MOST_REPAIRS * max(order.most_searches(plan), 1))
    repaired = replace(repairs.repair(plan, gangs, quick), proved=plan.proved, tally=plan.tally)
    extended = order.run(replace(repaired, shortfall=plan.shortfall), quick)
    if len(extended.assigned) == len(plan.assigned):
        return plan
    whole = order.wants
    is_new = any(extended.has_placed(want) and not plan.has_placed(want) for want in whole)
    waiting = [want for want in whole if not extended.has_placed(want)]
    may_help = is_new or plan.base.rules.affinity or plan.base.rules.spread
    if not plan.proved or (may_help and plan.above.could_start(waiting, extended.held_room)):
        shortfall = plan.shortfall or (round_proof.SENTENCE if plan.proved else "")
        return replace(
            extended, proved=False, shortfall=shortfall, tally=bounds.unbounded(extended.tally)
        )
    return replace(extended, proved=True, shortfall="", tally=bounds.settled(extended.tally))
