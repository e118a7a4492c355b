"""A plan that is late still ends, and says that it comes further; counted, not timed."""

from collections.abc import Sequence
from typing import Any

import pytest

from tutti.gang.demand import PlacementRequest
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Plan
from tutti.planning.plan import plan
from tutti.planning.search import repairs, round_answer
from tutti.planning.search.partial_plan import PartialPlan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Budget, Problem, Solution
from tutti.verify import plan_checks

from ...harness.builders import AMPLE_BUDGET, GangBuilder, gang, node, peers, snapshot_of

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
    made = plan(cluster, strategy, BestFit(), AMPLE_BUDGET, progress=progress)
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


def repaired(
    monkeypatch: pytest.MonkeyPatch,
    cluster: Snapshot,
    late_after: int = NEVER,
    *,
    finds: bool = True,
) -> tuple[Plan, int]:
    """The plan, and how many rounds of repairs it took; perhaps these find no place."""
    rounds = 0
    answer = round_answer.answer_round

    def counted(before: PartialPlan, wants: Sequence[PlacementRequest], *rest: Any) -> PartialPlan:
        nonlocal rounds
        is_repair = any(want.is_repair for want in wants)
        rounds += is_repair
        return answer(before, wants, *rest) if finds or not is_repair else before

    with monkeypatch.context() as patched:
        patched.setattr(round_answer, "answer_round", counted)
        progress = CountedProgress(late_after)
        made = plan(cluster, IlpStrategy(), BestFit(), AMPLE_BUDGET, progress=progress)
    assert plan_checks.violations(cluster, made) == ()
    return made, rounds


def lacking(count: int, least: float) -> GangBuilder:
    """A gang that has lost a member, and so many members that wait, no two of which are alike."""
    made = gang("a").of(1, cpu=1)
    for i in range(count):
        made = made.of(1, cpu=least + i / 64)
    return made.needing(2).bound_on("n1")


def test_members_that_fit_no_node_take_no_round_of_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = snapshot_of(node("n1", cpu=4), lacking(40, least=9).of(1, cpu=1))
    made, rounds = repaired(monkeypatch, cluster)
    assert rounds == 1
    assert [len(placed.assignments) for placed in made.placements] == [1]


def test_a_repair_that_fits_if_another_moves_is_not_left_out() -> None:
    first = gang("a").of(1, cpu=1).of(1, cpu=4).of(1, cpu=9).needing(3).priority(1)
    # The first gang leaves no room for its older member; only n1 has what the younger needs.
    other = gang("b").of(1, cpu=1).of(1, cpu=10).of(1, cpu=4, gpu=1).needing(2)
    cluster = snapshot_of(
        node("n1", cpu=4, gpu=1),
        node("n2", cpu=4, rdma=4),
        node("n3", cpu=10),
        node("n4", cpu=2),
        first.bound_on("n4"),
        other.bound_on("n4"),
        gang("c").of(1, cpu=100, rdma=1),  # so that n2 is worth more than n1
    )
    made = plan(cluster, IlpStrategy(), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(cluster, made) == ()
    nodes = {a.pod.name: a.node for placed in made.placements for a in placed.assignments}
    assert nodes == {"a-1": "n2", "a-2": "n3", "b-2": "n1"}


def test_members_that_are_to_be_near_each_other_replace_lost_ones_together() -> None:
    leading = gang("b").of(2, cpu=1).needing(2).labelled(app="leader").bound_on("n4")
    leading = leading.only("b-0", labels=())
    near = gang("a").of(2, cpu=1).needing(2).near("zone", peers(app="leader")).bound_on("n4")
    near = near.only("a-0", shape=leading.members[0].shape)
    nodes = [node(name, cpu=1).labelled(zone=name[1:]) for name in ("n1", "n2")]
    shared = node("n3", cpu=2).labelled(zone="3")
    cluster = snapshot_of(*nodes, shared, node("n4", cpu=2).labelled(zone="4"), leading, near)
    made = plan(cluster, IlpStrategy(), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(cluster, made) == ()
    placed = {a.pod.name: a.node for placed in made.placements for a in placed.assignments}
    assert placed == {"a-1": "n3", "b-1": "n3"}


def test_repairs_end_once_the_plan_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = snapshot_of(node("n1", cpu=9), lacking(40, least=1), gang("b").of(1, cpu=1))
    made, rounds = repaired(monkeypatch, cluster, finds=False)
    assert rounds >= 40
    made, rounds = repaired(monkeypatch, cluster, late_after=-1, finds=False)
    assert rounds <= 2  # one before other gangs, and one after them
    assert made.shortfall == repairs.SHORTFALL
    assert "b" in {placed.gang.name for placed in made.placements}
