"""A plan that is late still ends, and says that it comes further; counted, not timed."""

import pytest

from tutti.model.cluster import Snapshot
from tutti.model.decisions import Plan
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Budget, Problem, Solution
from tutti.verify import plan_checks

from ...harness.builders import gang, node, snapshot_of

NEVER = 10**9


class CountedProgress:
    """A plan that is late once it has made so many steps."""

    def __init__(self, late_after: int) -> None:
        self.late_after, self.steps = late_after, 0

    @property
    def is_late(self) -> bool:
        """Whether it has made more steps than it may."""
        return self.steps > self.late_after

    def step(self) -> None:
        """Count a step."""
        self.steps += 1


class CountedStrategy:
    """The integer program, and how often it was asked."""

    name = "ilp"

    def __init__(self) -> None:
        self.asked = 0

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer, and count that it was asked."""
        self.asked += 1
        return IlpStrategy().solve(problem, budget)


def seen(waiting: int = 3) -> Snapshot:
    """Gangs of one priority each, which grow and so make a round each; two have room."""
    gangs = [gang(f"g{i}").of(3, cpu=1).needing(2).priority(i) for i in range(waiting)]
    return snapshot_of(node("a", cpu=3), node("b", cpu=3), *gangs)


def planned(progress: CountedProgress, strategy: CountedStrategy, waiting: int = 3) -> Plan:
    cluster = seen(waiting)
    made = plan(cluster, strategy, BestFit(), Budget(), progress=progress)
    assert plan_checks.violations(cluster, made) == ()
    return made


def test_a_late_plan_is_answered_by_the_fallback_and_says_so() -> None:
    strategy = CountedStrategy()
    plan = planned(CountedProgress(late_after=-1), strategy)
    assert strategy.asked == 0
    assert {placed.gang.name for placed in plan.placements} == {"g2", "g1"}
    assert not plan.proved
    assert plan.shortfall == "the plan is late, bestfit answered"


@pytest.mark.parametrize("late_after", [1, 2, 3])
def test_the_strategy_is_asked_until_the_plan_is_late(late_after: int) -> None:
    strategy = CountedStrategy()
    planned(CountedProgress(late_after), strategy)
    in_time = CountedStrategy()
    planned(CountedProgress(NEVER), in_time)
    assert strategy.asked <= late_after < in_time.asked + 3
    assert strategy.asked < in_time.asked


def test_a_plan_says_for_each_gang_that_waits_that_it_comes_further() -> None:
    few, many = CountedProgress(-1), CountedProgress(-1)
    planned(few, CountedStrategy(), waiting=3)
    planned(many, CountedStrategy(), waiting=30)
    assert many.steps - few.steps >= 27
