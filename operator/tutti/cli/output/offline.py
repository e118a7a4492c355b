"""Planning offline: how it is to be done, and what comes of it, verified as a live plan is."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from ...dump import Objects, PlannerConfig
from ...model.cluster import Snapshot
from ...model.decisions import Objective, Plan, Policy
from ...strategies import StrategyError, load, names
from ...strategies.problem import Budget
from ...verify import plan_checks
from ...whatif import Planner
from ..inputs import fail, say
from .plan_diff import GangRow, lines

FALLBACK = "bestfit"
DEFAULT_STRATEGY = "ilp"


@dataclass(frozen=True, slots=True)
class Planned:
    """A Snapshot with its Plan; ``broken`` is what that breaks, which is a bug of Tutti's."""

    snapshot: Snapshot
    setup: PlannerConfig
    plan: Plan
    lines: Sequence[GangRow]
    broken: Sequence[str]


def setup_of(found: Objects) -> PlannerConfig:
    """How the dump among the files was planned, else Tutti's defaults; never the environment."""
    if found.header is not None:
        return found.header.setup
    return PlannerConfig(found.scheduler, DEFAULT_STRATEGY, Policy(), {})


def changed(setup: PlannerConfig, strategy: str | None, objective: str | None) -> PlannerConfig:
    """The same with another strategy or objective, where one is named."""
    policy = setup.policy
    if objective is not None:
        policy = replace(policy, objective=Objective(objective))
    return replace(setup, strategy=strategy or setup.strategy, policy=policy)


def planner_of(setup: PlannerConfig) -> Planner:
    """Who plans so; an unknown strategy ends the command."""
    try:
        strategy, fallback = load(setup.strategy), load(FALLBACK)
    except StrategyError as problem:
        nearest = difflib.get_close_matches(setup.strategy, names(), n=1, cutoff=0.5)
        hint = f"; did you mean {nearest[0]}?" if nearest and nearest[0] != setup.strategy else ""
        fail(f"{problem}{hint}")
    return Planner(strategy, fallback, _budget(setup), setup.policy)


def planned(snapshot: Snapshot, setup: PlannerConfig) -> Planned:
    """Plan as the operator would, and verify; an unknown strategy ends the command."""
    made = planner_of(setup).plan(snapshot)
    broken = plan_checks.violations(snapshot, made)
    for sentence in broken:
        say(f"the plan failed its check, which is a bug in Tutti: {sentence}", aside=True)
    return Planned(snapshot, setup, made, lines(snapshot, made), broken)


def _budget(setup: PlannerConfig) -> Budget:
    known = {each.name: type(getattr(Budget(), each.name)) for each in fields(Budget)}
    try:
        said = {name: known[name](n) for name, n in setup.budget.items() if name in known}
    except (ValueError, OverflowError):
        fail("the budget in the dump is not a number")
    return Budget(**said)
