"""How far a plan is, as its thread says it."""

from tutti.model.decisions import Policy
from tutti.operator.planner import Planner, PlanProgress
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness.builders import gang, node, snapshot_of


def test_a_plan_is_late_after_its_time_however_far_it_came() -> None:
    moments = iter([100.0, 159.0, 159.0, 160.0])
    progress = PlanProgress(lambda: next(moments), 60.0)
    progress.step()
    assert progress.stepped_at == 159.0
    assert [progress.is_late, progress.is_late] == [False, True]


async def test_a_planner_knows_when_its_last_plan_came_further() -> None:
    planner = Planner(BestFit(), Budget(), Policy())
    assert planner.stepped_at == 0.0
    await planner.plan(snapshot_of(node("a", cpu=1), gang("g").of(1, cpu=1)), BestFit())
    assert planner.stepped_at > 0.0
