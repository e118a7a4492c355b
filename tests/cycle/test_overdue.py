"""A strategy that does not come to an end keeps nobody from starting, and is not asked again."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tutti.operator import planner
from tutti.operator.planner import PlanProgress
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Problem, Solution

from ..harness.builders import AMPLE_BUDGET, gang, node
from ..harness.fakes import Clock, FakeCluster, Life
from . import scenarios


class Endless:
    """Answers when it is told to, in good time or not, and may break."""

    name = "endless"

    def __init__(self) -> None:
        self.solves = 0
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()
        self.is_broken = False

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Wait, and answer as best fit does."""
        self.solves += 1
        self.is_asked.set()
        self.may_answer.wait()
        if self.is_broken:
            raise RuntimeError("a bug")
        return BestFit().solve(problem, budget)


class Punctual(PlanProgress):
    """Lets a plan reach its strategy, however long the machine takes to get there."""

    is_late = False


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endless]:
    monkeypatch.setattr(planner, "GRACE_SECONDS", 0.05 - AMPLE_BUDGET.seconds)
    monkeypatch.setattr(planner, "PlanProgress", Punctual)
    endless_strategy = Endless()
    yield endless_strategy
    endless_strategy.may_answer.set()


@pytest.mark.parametrize("is_broken", [False, True])
async def test_the_fallback_answers_until_an_overdue_plan_has_ended(
    endless: Endless,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_broken: bool,
) -> None:
    endless.is_broken = is_broken
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=9), gang("a").of(2, cpu=1))
    life = Life(cluster, Clock(), strategy=endless)
    await life.settle()
    await asyncio.to_thread(endless.is_asked.wait)
    assert (endless.solves, bound(cluster)) == (1, {"a-0", "a-1"})
    cluster.add(gang("b").of(2, cpu=1), gang("large").of(2, cpu=8))
    life.watch.catch_up()
    await life.settle()
    assert (endless.solves, bound(cluster)) == (1, {"a-0", "a-1", "b-0", "b-1"})
    assert "endless has not answered within 0 s, this is a bug: bestfit answers" in caplog.text
    endless.may_answer.set()
    assert life.cycle.planner.overdue is not None
    await asyncio.wait([life.cycle.planner.overdue])
    await asyncio.sleep(0)  # for whoever else is told of its end
    assert ("the overdue plan has failed" in caplog.text) == is_broken
    endless.is_broken = False
    monkeypatch.setattr(planner, "GRACE_SECONDS", 0.0)
    cluster.add(gang("c").of(2, cpu=1))
    life.watch.catch_up()
    await life.settle()
    assert endless.solves > 1
    assert bound(cluster) >= {"c-0", "c-1"}
    scenarios.assert_promises(cluster)


def bound(cluster: FakeCluster) -> set[str]:
    return {pod.key.name for pod in cluster.pods.values() if pod.node is not None}
