"""A gang that is given up for now, and disruption budgets that keep some of it, or all."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from tutti.kube import errors
from tutti.model.keys import GangKey, PodKey
from tutti.model.owners import Owner

from ..harness import builders
from ..harness.builders import NAMESPACE
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from .test_refused import pass_time
from .test_releasing import (
    JOB,
    SET,
    calls,
    dying_at,
    lost_one,
    moments,
    reserved_message,
    terminating,
)

HOUR = 3600.0


def budget(cluster: FakeCluster, least: int) -> None:
    """Allow no eviction that leaves fewer than so many members that run on."""

    def count(call: str) -> None:
        if call == "evict":
            here = [pod.key.name for pod in cluster.pods.values() if _stays(cluster, pod.key)]
            cluster.protected = set(here) if len(here) <= least else set()

    cluster.before = count


def _stays(cluster: FakeCluster, key: PodKey) -> bool:
    return cluster.pods[key].node is not None and not cluster.pods[key].terminating


def replaced(cluster: FakeCluster) -> None:
    """Let pods that were evicted leave, and their controller make others."""
    for name in terminating(cluster):
        cluster.delete_pod(name)
        again = builders.member(f"{name}-again", builders.shape(cpu=2))
        cluster.add_pod(replace(again, group="a", created=20.0, owner=SET))


def bound(cluster: FakeCluster) -> int:
    return sum(pod.node is not None for pod in cluster.pods.values())


def bound_says(cluster: FakeCluster) -> str:
    lines = cluster.groups[GangKey(NAMESPACE, "a")].status["conditions"]
    return next(str(line["reason"]) for line in lines if line["type"] == "Bound")


def event_messages(cluster: FakeCluster) -> list[str]:
    """The sentences of the Events that say what is to be evicted."""
    return [
        str(event["message"]) for event in cluster.events.values() if event["reason"] == "Released"
    ]


async def turns(life: Life, n: int = 4) -> float | None:
    for _ in range(n):
        next_in = await life.turn()
    return next_in


async def test_a_gang_that_a_budget_keeps_is_completed_once_there_is_room() -> None:
    """The budget wants all three healthy, so it will never allow one to go while one is missing."""
    cluster, clock = lost_one(), Clock()
    budget(cluster, least=3)
    life = Life(cluster, clock)
    due = await turns(life)
    assert not terminating(cluster)
    assert not cluster.reservations
    assert calls(cluster, "evict") == 2
    assert due == 30.0
    cluster.change_node("n2", unschedulable=False)
    life.watch.catch_up()
    await turns(life)
    assert bound(cluster) == 3, "at once, and not when the budget is asked again"
    assert calls(cluster, "evict") == 2
    assert not life.problems


class RunningClock(Clock):
    """A clock that goes on each time that it is read."""

    def __call__(self) -> float:
        """The present, a little later than the last."""
        self.now += 0.01
        return self.now


def job_that_would_fail(cluster: FakeCluster) -> None:
    """Let the Job of the gang fail once more after the plan is made."""
    cluster.put_job("a", 3)

    def fail(call: str) -> None:
        if call == "reserve":
            cluster.put_job("a", 0)

    cluster.before = fail


@pytest.mark.parametrize(
    ("owner", "keep"),
    [(SET, partial(budget, least=3)), (JOB, job_that_would_fail)],
    ids=["budget", "job"],
)
async def test_a_refused_eviction_is_told_and_due_again_from_the_cycle_on_in_which_it_was_refused(
    owner: Owner, keep: Callable[[FakeCluster], None]
) -> None:
    cluster = lost_one(owner)
    keep(cluster)
    due = await Life(cluster, RunningClock()).turn()
    assert "; but not yet: " in reserved_message(cluster)
    assert due is not None
    assert 29.0 < due <= 30.0


async def test_the_rest_of_a_gang_is_due_again_from_the_cycle_on_in_which_it_was_refused() -> None:
    cluster = lost_one()
    budget(cluster, least=1)
    life = Life(cluster, RunningClock())
    for seconds in (30.0, HOUR):
        due = await life.turn()
        assert due is not None
        assert seconds - 1.0 < due <= seconds
        life.clock.now += due


async def test_that_nobody_has_gone_is_said_with_the_words_of_the_budget() -> None:
    cluster, clock = lost_one(), Clock()
    budget(cluster, least=3)
    life = Life(cluster, clock)
    await turns(life, 1)
    for _ in range(10):
        await turns(life)
        assert reserved_message(cluster).endswith(
            "; to be released: 2 bound members to evict, to start again whole; but not yet: "
            "pod ml/a-0: it would violate the pod's disruption budget"
        )
        assert bound_says(cluster) == "Binding"
        clock.now += 30.0
    assert calls(cluster, "evict") == 20, "twice in 30 seconds"
    (sentence,) = event_messages(cluster)
    assert sentence.startswith("2 bound members to evict: others were lost")
    clock.now += HOUR
    await turns(life)
    assert len(event_messages(cluster)) == 2, "the first is forgotten by now"


async def test_a_gang_that_a_budget_lets_go_later_is_released_then() -> None:
    cluster, clock = lost_one(), Clock()
    budget(cluster, least=3)
    life = Life(cluster, clock)
    await turns(life)
    budget(cluster, least=0)
    clock.now += 29.0
    await turns(life)
    assert not terminating(cluster)
    clock.now += 1.0
    await turns(life)
    assert terminating(cluster) == ["a-0", "a-1"]
    assert not cluster.reservations


async def test_the_rest_of_a_gang_is_asked_once_more_before_it_is_left() -> None:
    cluster, clock = lost_one(), Clock()
    budget(cluster, least=1)
    life = Life(cluster, clock)
    await turns(life)
    clock.now += 5.0
    assert await turns(life) == 25.0
    assert terminating(cluster) == ["a-0"]
    assert calls(cluster, "evict") == 2
    assert cluster.reservations, "the rest is still to be done"
    assert reserved_message(cluster) == "evicting 2 bound members, to start again whole"
    budget(cluster, least=0)
    clock.now += 25.0
    await turns(life)
    assert terminating(cluster) == ["a-0", "a-1"]
    assert not cluster.reservations
    assert not life.problems


async def half_gone(cluster: FakeCluster, clock: Clock) -> Life:
    """One of two was evicted and is back; the budget has kept the other twice."""
    budget(cluster, least=1)
    life = Life(cluster, clock)
    await turns(life)
    replaced(cluster)
    clock.now += 30.0
    await turns(life)
    assert not cluster.reservations
    return life


async def test_a_gang_of_which_some_have_gone_is_completed_as_far_as_there_is_room() -> None:
    cluster, clock = lost_one(), Clock()
    life = await half_gone(cluster, clock)
    assert bound(cluster) == 2
    assert reserved_message(cluster).endswith(
        "; but not yet: pod ml/a-1: it would violate the pod's disruption budget; "
        "1 other had left, so no other member is evicted within an hour"
    )
    cluster.change_node("n2", unschedulable=False)
    life.watch.catch_up()
    await turns(life)
    assert bound(cluster) == 3


async def test_nobody_is_evicted_again_and_again_for_a_budget_that_keeps_the_rest() -> None:
    cluster, clock = lost_one(), Clock()
    life = await half_gone(cluster, clock)
    tried = calls(cluster, "evict")
    for _ in range(100):
        clock.now += 35.0
        assert await turns(life, 1) not in (0.0, None)
        replaced(cluster)
    assert calls(cluster, "evict") == tried
    clock.now += 100.0
    await turns(life)
    assert calls(cluster, "evict") == tried + 2
    assert len(terminating(cluster)) == 1
    assert not cluster.reservations, "the rest was asked once more the first time"


async def test_what_was_refused_is_forgotten_once_the_gang_is_whole() -> None:
    cluster, clock = lost_one(), Clock()
    life = await half_gone(cluster, clock)
    cluster.change_node("n2", unschedulable=False)
    life.watch.catch_up()
    await turns(life)
    (name,) = (pod.key.name for pod in cluster.pods.values() if pod.node == "n2")
    cluster.change_node("n2", unschedulable=True)
    cluster.delete_pod(name)
    successor = builders.member("a-4", builders.shape(cpu=2))
    cluster.add_pod(replace(successor, group="a", created=30.0, owner=SET))
    budget(cluster, least=0)
    life.watch.catch_up()
    await turns(life)
    assert len(terminating(cluster)) == 2, "at once"


@moments
async def test_a_crash_at_any_call_leaves_a_gang_that_can_be_completed(
    *, is_committed: bool
) -> None:
    for least in (3, 1):
        whole = lost_one()
        budget(whole, least)
        await turns(Life(whole, Clock()))
        for number in range(1, len(whole.calls) + 1):
            cluster, clock = lost_one(), Clock()
            budget(cluster, least)
            cluster.fault = dying_at(number, is_committed=is_committed)
            with suppress(Crash):  # a call that is refused commits nothing to die after
                await turns(Life(cluster, clock))
            life = Life(cluster, clock)
            for _ in range(3):
                await turns(life)
                replaced(cluster)
                clock.now += 30.0
            assert not cluster.reservations, (least, number)
            cluster.change_node("n2", unschedulable=False)
            life.watch.catch_up()
            await turns(life)
            assert bound(cluster) == 3, (least, number)
            assert not cluster.broken


Failure = Callable[[int, str], Fault | None]


def failing_once(call: str, problem: errors.ApiError) -> Failure:
    left = [problem]
    return lambda _, name: Fault(left.pop()) if name == call and left else None


async def test_an_eviction_that_met_a_problem_is_not_one_that_has_gone() -> None:
    cluster, clock = lost_one(), Clock()
    budget(cluster, least=3)
    cluster.fault = failing_once("evict", errors.Unavailable("broken.", status=500))
    life = Life(cluster, clock)
    await turns(life)
    assert life.problems == []
    assert not cluster.reservations
    assert "had left" not in reserved_message(cluster)


@pytest.mark.parametrize("least", [3, 1])
async def test_a_reservation_that_could_not_be_deleted_is_deleted_by_the_next_cycle(
    least: int,
) -> None:
    cluster, clock = lost_one(), Clock()
    budget(cluster, least)
    cluster.fault = failing_once("release", errors.Unavailable("broken.", status=500))
    life = Life(cluster, clock)
    await turns(life)
    if least == 1:
        clock.now += 30.0
        await turns(life)
    assert life.problems == []
    assert not cluster.reservations
    assert calls(cluster, "evict") == (2 if least == 3 else 3)


async def test_a_reservation_that_may_not_be_deleted_is_asked_for_rarely() -> None:
    cluster = lost_one()
    cluster.protected = {"a-0", "a-1"}
    refused = Fault(errors.Refused("a webhook says no", status=403))
    cluster.fault = lambda _, name: refused if name == "release" else None
    life = Life(cluster, Clock())
    await pass_time(life, 20)
    assert 1 <= calls(cluster, "release") <= 8
    cluster.fault = lambda *_: None
    await pass_time(life, 60)
    assert calls(cluster, "release") <= 10
    assert not life.problems
