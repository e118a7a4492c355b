"""The clock of the API server is set back an hour: nothing that waits for seconds waits an hour."""

from collections.abc import Callable

import pytest

from tutti.kube import errors
from tutti.kube.codec.queues import FINALIZER
from tutti.model.keys import GangKey, Uid
from tutti.model.queues import Queue

from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Fault, Life
from .test_preempting import live, prioritized, terminating

HOUR = 3600.0
A = GangKey(NAMESPACE, "a")
REFUSALS = {
    "refused": errors.Refused("no", status=403),
    "failed": errors.Unavailable("broken", status=500),
}


def refusing(cluster: FakeCluster, call: str, problem: errors.ApiError) -> Callable[[], None]:
    """Have a call refused, until the answer is called."""
    refuses = [True]
    cluster.fault = lambda _, name: Fault(problem) if refuses and name == call else None
    return refuses.clear


async def seconds_until(life: Life, is_done: Callable[[], bool]) -> float:
    """How many seconds after the clock was set back it is done, with a cycle in each second."""
    life.clock.now -= HOUR
    began = life.clock.now
    while not is_done() and life.clock.now < began + 100:
        life.clock.now += 1.0
        await life.turn()
    return life.clock.now - began


def cluster_of_one() -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=1), gang("a").of(2, cpu=2))
    return cluster


@pytest.mark.parametrize("problem", REFUSALS.values(), ids=REFUSALS)
async def test_a_write_of_a_queue_is_tried_again(problem: errors.ApiError) -> None:
    cluster = cluster_of_one()
    cluster.add_queue(Queue("vision", Uid("vision-1")))
    accept = refusing(cluster, "set_finalizers", problem)
    life = Life(cluster, Clock(2 * HOUR))
    await life.turn()
    accept()
    assert await seconds_until(life, lambda: bool(cluster.queues["vision"].finalizers)) <= 2.0
    assert cluster.queues["vision"].finalizers == (FINALIZER,)


@pytest.mark.parametrize("problem", REFUSALS.values(), ids=REFUSALS)
async def test_the_status_of_a_queue_is_tried_again(problem: errors.ApiError) -> None:
    cluster = cluster_of_one()
    cluster.add_queue(Queue("vision", Uid("vision-1")))
    life = Life(cluster, Clock(2 * HOUR))
    await life.turn()
    accept = refusing(cluster, "write_queue_status", problem)
    cluster.change_queue("vision", limits=(("cpu", 1000),))
    for _ in range(20):
        life.clock.now += 1.0
        await life.turn()
    seen = cluster.queues["vision"].status
    accept()
    assert await seconds_until(life, lambda: cluster.queues["vision"].status != seen) <= 6.0


async def test_the_figures_of_a_queue_are_written_again() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), gang("a").of(2, cpu=2))
    cluster.add_queue(Queue("vision", Uid("vision-1")))
    life = Life(cluster, Clock(2 * HOUR))
    for _ in range(3):
        life.clock.now += 1.0
        await life.turn()
    seen = cluster.queues["vision"].status
    assert seen
    cluster.add(gang("b").of(1, cpu=1))
    cluster.change_group("b", queue="vision")
    life.watch.catch_up()
    assert await seconds_until(life, lambda: cluster.queues["vision"].status != seen) <= 10.0


@pytest.mark.parametrize("problem", REFUSALS.values(), ids=REFUSALS)
async def test_the_status_of_a_gang_is_tried_again(problem: errors.ApiError) -> None:
    cluster = cluster_of_one()
    accept = refusing(cluster, "write_status", problem)
    life = Life(cluster, Clock(2 * HOUR))
    await life.turn()
    accept()
    assert await seconds_until(life, lambda: bool(cluster.groups[A].status)) <= 2.0


async def test_the_sentence_of_a_gang_is_renewed_and_its_news_is_written() -> None:
    cluster = cluster_of_one()
    life = Life(cluster, Clock(2 * HOUR))
    await life.settle()

    def message() -> str:
        return str(cluster.groups[A].status["conditions"])

    before = message()
    cluster.add(node("n2", cpu=3))
    life.watch.catch_up()
    assert await seconds_until(life, lambda: message() != before) <= 62.0
    cluster.add(node("n3", cpu=8))
    life.watch.catch_up()

    def has_begun() -> bool:
        return bool(cluster.groups[A].status["phase"] != "Waiting")

    assert await seconds_until(life, has_begun) <= 5.0


async def test_a_victim_of_which_a_part_went_is_asked_once_more() -> None:
    cluster = prioritized()
    cluster.protected = {"low-1"}
    life = await live(cluster, Clock(2 * HOUR))
    assert terminating(cluster) == ["low-0"]
    cluster.protected = set()
    assert await seconds_until(life, lambda: len(terminating(cluster)) == 2) <= 2.0


async def test_a_pod_that_is_new_hears_why_it_waits() -> None:
    cluster, clock = cluster_of_one(), Clock(2 * HOUR)
    cluster.add(gang("b").of(1, cpu=3).each(created=clock.now).but(created=clock.now))
    life = Life(cluster, clock)
    await life.turn()
    (pod,) = [key for key in cluster.pods if key.name == "b-0"]
    assert not cluster.pods[pod].scheduled_condition.reason

    def is_told() -> bool:
        return cluster.pods[pod].scheduled_condition.reason == "Unschedulable"

    assert await seconds_until(life, is_told) <= 2.0
