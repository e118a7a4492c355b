"""One comparison: what a strategy answered beside what the oracle knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome
from tutti.verify import plan_checks

from ...harness.builders import AMPLE_BUDGET
from .admission import Reading
from .case import by_number, case_of
from .faults import faults, worth
from .optimum import optimum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.model.cluster import Snapshot
    from tutti.model.decisions import Plan, Policy
    from tutti.strategies.problem import Problem, Solution, Strategy

    from .case import Worth


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found wrong, one sentence each, and how far the answer was proved."""

    wrong: tuple[str, ...]
    is_proved: bool
    is_contended: bool  # the oracle leaves some gang out
    is_bounded: bool = False  # a bound was given for every level


def compared(problem: Problem, strategy: Strategy, budget: Budget | None = None) -> Comparison:
    """Solve a Problem both ways."""
    solution = strategy.solve(problem, budget or AMPLE_BUDGET)
    case = case_of(problem)
    best = optimum(case)
    total = sum(ask.value for ask in case.asks)
    return Comparison(
        wrong=(*faults(problem, solution), *_off(problem, solution, best)),
        is_proved=solution.outcome is Outcome.PROVED,
        is_bounded={level.priority for level, _ in solution.bounds} == set(case.levels),
        is_contended=sum(value for _, value in best) < total,
    )


def planned(snapshot: Snapshot, policy: Policy, strategy: Strategy) -> Comparison:
    """Plan a Snapshot both ways."""
    return judged(snapshot, policy, plan(snapshot, strategy, BestFit(), AMPLE_BUDGET, policy))


def judged(snapshot: Snapshot, policy: Policy, plan: Plan) -> Comparison:
    """What is wrong with a plan, and with what it says of itself."""
    if broken := plan_checks.violations(snapshot, plan):
        return Comparison(broken, is_proved=plan.proved, is_contended=True)
    reading = Reading(snapshot, policy)
    stages = [(stage, optimum(stage.case)) for stage in reading.stages(plan)]
    off = [
        f"admits {_said(stage.found)}, the optimum is {_said(best)}; proved: {plan.proved}"
        for stage, best in stages
        # Without a proof there is a second look, which may find who follows somebody of below.
        if stage.found != best and (plan.proved or stage.found < best)
    ]
    return Comparison(
        wrong=(
            *off,
            *_overclaimed(reading, plan),
            *_misplaced(reading, plan),
            *reading.joinable(plan),
        ),
        is_proved=plan.proved,
        is_contended=any(
            sum(value for _, value in best) < sum(ask.value for ask in stage.case.asks)
            for stage, best in stages
        ),
    )


def _overclaimed(reading: Reading, plan: Plan) -> Iterator[str]:
    """Where the plan is proved, and more could start beside those who were decided on later."""
    for stage in reading.stages(plan) if plan.proved else ():
        best = optimum(stage.later, down_to=stage.found[-1][0])
        if best != stage.found:
            yield f"it is proved, and beside all that came later the optimum is {_said(best)}"


def _misplaced(reading: Reading, plan: Plan) -> Iterator[str]:
    """Whether somebody is where, by the oracle's word, not all of them may be."""
    nodes = {
        assignment.pod.name: assignment.node
        for placement in plan.placements
        for assignment in placement.assignments
    }
    if sum(value for _, value in optimum(reading.carried_out(nodes))) != len(nodes):
        yield "not everybody may be where the plan says"


def _off(problem: Problem, solution: Solution, best: Worth) -> Iterator[str]:
    """Where the answer is not worth what the best one is, or claims a bound that is none."""
    if solution.outcome is Outcome.FAILED:
        yield f"failed: {solution.detail}"
        return
    found = worth(problem, solution)
    if found != best:
        yield f"admits {_said(found)}, the optimum is {_said(best)}; it says {solution.outcome}"
    yield from wrong_bounds(by_number(solution.bounds), best)


def wrong_bounds(bounds: Sequence[tuple[int, int]], best: Worth) -> Iterator[str]:
    """The bounds that are below what can be admitted."""
    known = dict(best)
    for level, bound in bounds:
        if level not in known:
            yield f"a bound for level {level}, which nobody has"
        elif bound < known[level]:
            yield f"level {level}: bound {bound} is below the optimum {known[level]}"


def _said(values: Worth) -> str:
    return ", ".join(f"{value} on level {level}" for level, value in values) or "nothing"
