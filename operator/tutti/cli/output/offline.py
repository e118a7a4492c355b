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


def setup_of(objects: Objects) -> PlannerConfig:
    """How the dump among the files was planned, else Tutti's defaults; never the environment."""
    if objects.header is not None:
        return objects.header.setup
    return PlannerConfig(objects.scheduler, DEFAULT_STRATEGY, Policy(), {})


def changed(setup: PlannerConfig, strategy: str | None, objective: str | None) -> PlannerConfig:
    """The same with another strategy or objective, where one is named."""
    policy = setup.policy
    if objective is not None:
        policy = replace(policy, objective=Objective(objective))
    return replace(setup, strategy=strategy or setup.strategy, policy=policy)


def load_planner(setup: PlannerConfig) -> Planner:
    """The planner of a configuration.

    Raises:
        StrategyError: there is no such strategy, or its budget is not a number.
    """
    try:
        strategy, fallback = load(setup.strategy), load(FALLBACK)
    except StrategyError as problem:
        nearest = difflib.get_close_matches(setup.strategy, names(), n=1, cutoff=0.5)
        hint = f"; did you mean {nearest[0]}?" if nearest and nearest[0] != setup.strategy else ""
        raise StrategyError(f"{problem}{hint}") from problem
    return Planner(strategy, fallback, _budget(setup), setup.policy)


def planner_of(setup: PlannerConfig) -> Planner:
    """The planner of a configuration; an unknown strategy ends the command."""
    try:
        return load_planner(setup)
    except StrategyError as problem:
        fail(str(problem))


def checked(snapshot: Snapshot, setup: PlannerConfig, planner: Planner) -> Planned:
    """Plan as the operator would, and verify."""
    plan = planner.plan(snapshot)
    broken = plan_checks.violations(snapshot, plan)
    return Planned(snapshot, setup, plan, lines(snapshot, plan), broken)


def planned(snapshot: Snapshot, setup: PlannerConfig) -> Planned:
    """The same for a command: an unknown strategy ends it, and it prints what the plan breaks."""
    outcome = checked(snapshot, setup, planner_of(setup))
    for sentence in outcome.broken:
        say(f"the plan failed its check, which is a bug in Tutti: {sentence}", aside=True)
    return outcome


def _budget(setup: PlannerConfig) -> Budget:
    field_types = {field.name: type(getattr(Budget(), field.name)) for field in fields(Budget)}
    try:
        values = {
            name: field_types[name](n) for name, n in setup.budget.items() if name in field_types
        }
    except (ValueError, OverflowError) as problem:
        raise StrategyError("the budget in the dump is not a number") from problem
    return Budget(**values)
