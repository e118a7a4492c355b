"""The rounds of a plan, answered in order.

A round changes nothing that an earlier round has decided, unless that lets more gangs start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...gang import demand
from ...gang.demand import MemberCounts, PlacementRequest
from . import bounds, round_answer, round_order, starvation
from .limits import SearchLimits
from .partial_plan import PartialPlan
from .round_order import Round
from .round_proof import LaterRounds


class SearchOrder(Protocol):
    """The rounds of a plan and their order."""

    @property
    def wants(self) -> Sequence[PlacementRequest]:
        """All gangs that have not started."""

    def most_searches(self, plan: PartialPlan) -> float:
        """The most searches that the rounds may need; each gets an equal share of the budget."""

    def run(self, plan: PartialPlan, limits: SearchLimits) -> PartialPlan:
        """The plan after all rounds."""


@dataclass(frozen=True, slots=True)
class PriorityOrder:
    """The order without Queues: by priority alone."""

    steps: Sequence[Round]

    @property
    def wants(self) -> Sequence[PlacementRequest]:
        """All gangs that have not started."""
        return [want for step in self.steps for want in step.wants]

    def most_searches(self, plan: PartialPlan) -> float:
        """One search for each round and one for the border above it, and some more."""
        return most_searches(plan, self.steps)

    def run(self, plan: PartialPlan, limits: SearchLimits) -> PartialPlan:
        """Start whole gangs; gangs of one priority grow before lower priorities are decided."""
        return run_rounds(plan, self.steps, limits)


def search(plan: PartialPlan, order: SearchOrder, limits: SearchLimits) -> PartialPlan:
    """The plan after all rounds.

    If the plan is not proved, best fit runs all rounds again as long as more members fit and the
    plan is not late.
    """
    limits = limits.with_share(max(order.most_searches(plan), 1))
    plan = order.run(plan, limits)
    again = replace(limits, strategy=limits.fallback)
    while not (plan.proved or limits.is_late):
        extended = order.run(plan, again)
        if len(extended.assigned) == len(plan.assigned):
            break
        plan = extended
    return plan


def most_searches(plan: PartialPlan, steps: Sequence[Round]) -> float:
    """The most searches that the rounds may need; each gets an equal share of the budget.

    There is one for each round, one for the border above it, and one more for rounds that a starved
    gang divides. Half as many again ask whether later members might help.
    """
    joint = sum(step.starved is not None for step in steps[:-1])
    edges = len(steps) - (not plan.assigned)
    rules = plan.base.rules
    return (len(steps) + joint + edges) * (1.5 if rules.affinity or rules.spread else 1.0)


def run_rounds(plan: PartialPlan, steps: Sequence[Round], limits: SearchLimits) -> PartialPlan:
    """Start whole gangs; gangs of one priority grow before lower priorities are decided."""
    rules, has_parts = plan.base.rules, len(steps) > 1 or any(step.growing for step in steps)
    plan, remaining = replace(plan, hold=None), list(steps)
    while remaining:
        step = remaining.pop(0)
        if step.starved is not None and plan.hold is None and remaining:
            whole = _undivided(plan, (step, *remaining), limits)
            if whole is not None:
                plan, remaining = whole
                continue
        plan = _start(plan, step, remaining, limits)
        first = step.starved
        if first is not None and plan.hold is None and not plan.has_placed(first.want):
            plan = round_answer.start_as_in_the_empty_cluster(plan, first, limits)
            if not plan.has_placed(first.want):
                plan = replace(plan, hold=starvation.hold(first, plan.free))
                remaining = [*round_order.once_held(remaining)]
        plan = _extend(plan, step.growing, limits)
    waits = (not plan.has_placed(want) for step in steps for want in step.wants)
    if not plan.proved and has_parts and (rules.affinity or rules.spread) and any(waits):
        # A second pass may start gangs that other gangs need nearby, so no bound of a round holds.
        return replace(plan, tally=bounds.unbounded(plan.tally))
    return plan


def _undivided(
    plan: PartialPlan, steps: Sequence[Round], limits: SearchLimits
) -> tuple[PartialPlan, list[Round]] | None:
    """One decision on rounds that starved gangs divide; None if a starved gang does not start."""
    ends = next((i for i, step in enumerate(steps) if step.growing), len(steps) - 1) + 1
    (joint,) = round_order.once_held(steps[:ends])
    remaining = list(steps[ends:])
    tried = _start(plan, joint, remaining, limits)
    firsts = (step.starved for step in steps[:ends])
    if not all(tried.has_placed(first.want) for first in firsts if first is not None):
        return None
    return _extend(tried, joint.growing, limits), remaining


def _start(
    plan: PartialPlan, step: Round, remaining: Sequence[Round], limits: SearchLimits
) -> PartialPlan:
    """Start whole gangs by one joint decision."""
    waiting = [want for want in step.wants if not plan.has_placed(want)]
    answer = round_answer.answer_round(
        plan, waiting, limits, LaterRounds(plan.base, step.growing, remaining)
    )
    return round_answer.with_border(plan, answer, step, limits)


def _extend(plan: PartialPlan, gangs: Sequence[MemberCounts], limits: SearchLimits) -> PartialPlan:
    """Let further members join by best fit; the proof does not cover which of them join."""
    wants = [want for gang in gangs for want in demand.growth_requests(gang, plan.assigned)]
    joined = round_answer.with_joined(
        round_answer.answer_round(plan, wants, replace(limits, strategy=limits.fallback)), wants
    )
    return replace(joined, proved=plan.proved, shortfall=plan.shortfall, tally=plan.tally)
