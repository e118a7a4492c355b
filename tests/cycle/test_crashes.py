"""Killed at any call and started again, the operator ends where an unbroken run ends."""

import pytest

from tutti.kube import errors
from tutti.strategies.problem import Strategy

from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios
from .scenarios import SCENARIOS

for_each_scenario = pytest.mark.parametrize("name", SCENARIOS)
moments = pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])


async def unbroken(name: str, strategy: Strategy | None = None) -> FakeCluster:
    cluster = SCENARIOS[name]()
    await Life(cluster, Clock(), strategy).settle()
    return cluster


def failing_at(number: int, what: BaseException, *, is_committed: bool) -> FakeCluster.fault:  # type: ignore[valid-type]
    return lambda at, _: Fault(what, is_committed) if at == number else None


async def dies(life: Life, number: int, *, is_committed: bool) -> None:
    """Live until the call of that number."""
    life.cluster.fault = failing_at(number, Crash(), is_committed=is_committed)
    with pytest.raises(Crash):
        await life.settle()
    assert life.cluster.broken == []


@for_each_scenario
@moments
async def test_a_crash_at_any_call_ends_as_an_unbroken_run_does(
    name: str, *, is_committed: bool
) -> None:
    whole = await unbroken(name)
    scenarios.assert_promises(whole)
    for number in range(1, len(whole.calls) + 1):
        cluster, clock = SCENARIOS[name](), Clock()
        await dies(Life(cluster, clock), number, is_committed=is_committed)
        await Life(cluster, clock).settle()
        scenarios.assert_promises(cluster)
        assert scenarios.admitted(cluster) == scenarios.admitted(whole), number


@for_each_scenario
@moments
async def test_a_second_crash_while_recovering_changes_nothing(
    name: str, *, is_committed: bool
) -> None:
    whole = await unbroken(name)
    for first in range(1, len(whole.calls) + 1, 3):
        for more in range(1, 8, 2):
            cluster, clock = SCENARIOS[name](), Clock()
            await dies(Life(cluster, clock), first, is_committed=not is_committed)
            second = len(cluster.calls) + more
            cluster.fault = failing_at(second, Crash(), is_committed=is_committed)
            try:
                await Life(cluster, clock).settle()
            except Crash:
                await Life(cluster, clock).settle()
            scenarios.assert_promises(cluster)
            assert scenarios.admitted(cluster) == scenarios.admitted(whole), (first, more)


@for_each_scenario
@moments
@pytest.mark.parametrize("status", [0, 429, 500])
async def test_a_call_that_gets_no_good_answer_ends_as_if_it_had(
    name: str, status: int, *, is_committed: bool
) -> None:
    whole = await unbroken(name)
    for number in range(1, len(whole.calls) + 1):
        cluster = SCENARIOS[name]()
        away = errors.Unavailable("away.", status=status)
        cluster.fault = failing_at(number, away, is_committed=is_committed)
        await Life(cluster, Clock()).settle()
        scenarios.assert_promises(cluster)
        assert scenarios.admitted(cluster) == scenarios.admitted(whole), number


@for_each_scenario
async def test_a_conflict_at_any_call_is_got_over(name: str) -> None:
    whole = await unbroken(name)
    for number in range(1, len(whole.calls) + 1):
        cluster = SCENARIOS[name]()
        someone = errors.Conflict("someone wrote first.", status=409)
        cluster.fault = failing_at(number, someone, is_committed=False)
        await Life(cluster, Clock()).settle()
        scenarios.assert_promises(cluster)
        assert scenarios.admitted(cluster) == scenarios.admitted(whole), number


@for_each_scenario
async def test_whatever_is_refused_once_is_got_over_in_time(name: str) -> None:
    whole = await unbroken(name)
    for number in range(1, len(whole.calls) + 1):
        cluster = SCENARIOS[name]()
        no = errors.Refused("no.", status=403)
        cluster.fault = failing_at(number, no, is_committed=False)
        await Life(cluster, Clock()).settle()
        scenarios.assert_promises(cluster)
        assert scenarios.admitted(cluster) == scenarios.admitted(whole), number


@for_each_scenario
async def test_five_more_cycles_do_nothing(name: str) -> None:
    cluster, clock = SCENARIOS[name](), Clock()
    life = Life(cluster, clock)
    await life.settle()
    clock.now += 100.0
    await life.settle()
    calls = len(cluster.calls)
    for _ in range(5):
        clock.now += 100.0
        life.is_woken = False
        assert await life.turn() is None
        assert not life.is_woken
    assert len(cluster.calls) == calls
    assert life.problems == []


@for_each_scenario
async def test_a_restart_writes_nothing(name: str) -> None:
    cluster, clock = SCENARIOS[name](), Clock()
    await Life(cluster, clock).settle()
    calls = len(cluster.calls)
    again = Life(cluster, clock)
    again.follows_resignation = True
    await again.settle()
    assert cluster.calls[calls:] == []


@for_each_scenario
async def test_after_a_crash_pods_without_a_pod_group_are_changed_and_nothing_else(
    name: str,
) -> None:
    """A binding of the leader that crashed may be on its way; the pods say what they said."""
    cluster, clock = SCENARIOS[name](), Clock()
    await Life(cluster, clock).settle()
    calls = len(cluster.calls)
    await Life(cluster, clock).settle()
    strays = sum(
        pod.scheduled_condition.reason == "PodGroupNotFound" for pod in cluster.pods.values()
    )
    assert cluster.calls[calls:] == ["say_of_pod"] * strays
    events = [event for event in cluster.events.values() if event["reason"] == "PodGroupNotFound"]
    assert len(events) == strays


async def test_the_exact_strategy_survives_crashes_too() -> None:
    from tutti.strategies import STRATEGIES  # noqa: PLC0415 - its engine takes time to load

    exact = STRATEGIES["ilp"]()
    whole = await unbroken("more_than_fit", exact)
    scenarios.assert_promises(whole)
    for number in range(1, len(whole.calls) + 1, 6):
        cluster, clock = SCENARIOS["more_than_fit"](), Clock()
        await dies(Life(cluster, clock, exact), number, is_committed=True)
        await Life(cluster, clock, exact).settle()
        scenarios.assert_promises(cluster)
        assert scenarios.admitted(cluster) == scenarios.admitted(whole)
