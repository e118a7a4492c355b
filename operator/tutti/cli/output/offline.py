"""Plans offline: the configuration, and the plan with its check, as in a live cycle."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from ...dump import Objects, PlannerConfig
from ...model.cluster import Snapshot
from ...model.decisions import Objective, Plan, Policy
from ...model.queues import Preemption
from ...planning.plan import with_budgets_that_count
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
    """A Snapshot with its Plan; ``broken`` has the promises that it breaks, which is a bug."""

    snapshot: Snapshot
    setup: PlannerConfig
    plan: Plan
    lines: Sequence[GangRow]
    broken: Sequence[str]


def setup_of(objects: Objects) -> PlannerConfig:
    """The configuration of the dump among the files, or else the defaults; not the environment."""
    if objects.header is not None:
        return objects.header.setup
    return PlannerConfig(objects.scheduler, DEFAULT_STRATEGY, Policy(), {})


def changed(
    setup: PlannerConfig,
    strategy: str | None,
    objective: str | None,
    preemption: str | None = None,
) -> PlannerConfig:
    """The configuration with another strategy, objective or mode of preemption, if given."""
    policy = setup.policy
    if preemption is not None:
        policy = replace(policy, preemption=Preemption(preemption))
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
    """Plan as the operator would, and check the plan."""
    plan = planner.plan(snapshot)
    broken = plan_checks.violations(with_budgets_that_count(snapshot, setup.policy), plan)
    return Planned(snapshot, setup, plan, lines(snapshot, plan), broken)


def planned(snapshot: Snapshot, setup: PlannerConfig) -> Planned:
    """The same for a command; an unknown strategy ends it, and it prints broken promises."""
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
