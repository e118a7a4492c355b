"""Members that replace lost ones: they come before all gangs that have not started."""

from collections.abc import Sequence
from dataclasses import replace

from ...gang import demand
from ...gang.demand import MemberCounts
from ...model.decisions import Objective
from . import round_answer
from .limits import SearchLimits
from .partial_plan import PartialPlan
from .round_order import Round

MOST_REPAIRS = 8  # rounds of repairs that together may take as long as the search
SHORTFALL = "the plan was late before all members that could replace lost ones were tried"


def repair(plan: PartialPlan, gangs: Sequence[MemberCounts], limits: SearchLimits) -> PartialPlan:
    """The plan with as many lost members replaced as have room, by the oldest waiting members.

    If the members of one shape have no room, members of other shapes are tried, until the plan is
    late. Shapes that fit no node, even before the plan, take no try.
    """
    limits = replace(limits, policy=replace(limits.policy, objective=Objective.GANGS))
    without_room = _without_room(plan, gangs)
    has_begun = False
    while requests := [
        request
        for gang in gangs
        for request in demand.repair_requests(gang, plan.assigned, without_room)
    ]:
        if has_begun and limits.is_late:
            return replace(plan, proved=False, shortfall=plan.shortfall or SHORTFALL)
        has_begun = True
        answer = round_answer.answer_round(plan, requests, limits)
        answer = round_answer.with_border(plan, answer, Round(tuple(requests)), limits)
        answer = replace(answer, above=replace(answer.above, wants=()))
        plan = round_answer.with_joined(answer, requests)
        without_room.update(
            (request.gang.uid, member.role, member.shape)
            for request in requests
            for member in request.members
            if member.uid not in plan.assigned
        )
    return plan


def _without_room(plan: PartialPlan, gangs: Sequence[MemberCounts]) -> set[demand.Refusal]:
    """The shapes of members that fit no node, wherever the plan places all others.

    With affinity or spread, a node may become good for a member once others are placed.
    """
    rules = plan.above.base.rules
    if rules.affinity or rules.spread:
        return set()
    rooms = plan.above.fit_beside(plan.held_room)
    return {
        (counts.gang.uid, member.role, member.shape)
        for counts in gangs
        if counts.is_committed and counts.missing > 0
        for member in counts.waiting
        if not rooms[member.shape].members
    }
