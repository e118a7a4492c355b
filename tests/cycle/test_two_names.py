"""Two installations with scheduler names of their own; a PodGroup does not name its scheduler."""

from itertools import pairwise

from tutti.model.keys import GangKey

from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Life

KEY = GangKey(NAMESPACE, "a")


async def test_the_status_is_left_to_whoever_sees_members() -> None:
    cluster, clock = FakeCluster(), Clock()
    builder = gang("a").of(2, cpu=1)
    cluster.add_group(builder)
    await cluster.write_status(KEY, {"schedulerName": "other", "phase": "Running"})
    life = Life(cluster, clock)
    life.watch.catch_up()
    for _ in range(3):
        clock.now += 60.0
        await life.turn()
    assert cluster.groups[KEY].status == {"schedulerName": "other", "phase": "Running"}

    cluster.add_pod(builder.made.members[0])
    for _ in range(3):
        clock.now += 60.0
        await life.turn()
    status = cluster.groups[KEY].status
    assert (status["schedulerName"], status["phase"]) == ("tutti", "Waiting")


async def test_two_with_members_in_one_group_overwrite_each_other_once_a_minute() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(gang("a").of(2, cpu=1))
    life = Life(cluster, clock)
    life.watch.catch_up()
    written = []
    for _ in range(130):
        await cluster.write_status(KEY, {"schedulerName": "other", "phase": "Running"})
        life.watch.catch_up()
        clock.now += 1.0
        await life.turn()
        if cluster.groups[KEY].status["schedulerName"] == "tutti":
            written.append(clock.now)
    assert [after - before for before, after in pairwise(written)] == [60.0, 60.0]


async def test_after_a_status_was_overwritten_news_is_written_at_once() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(gang("a").of(2, cpu=1))
    await cluster.write_status(KEY, {"schedulerName": "other", "phase": "Running"})
    life = Life(cluster, clock)
    life.watch.catch_up()
    for _ in range(3):
        clock.now += 2.0
        await life.turn()
    assert cluster.groups[KEY].status["phase"] == "Waiting"
    cluster.add(node("n1", cpu=2))
    for _ in range(3):
        clock.now += 1.0
        life.watch.catch_up()
        await life.turn()
    assert cluster.groups[KEY].status["phase"] == "Bound"
