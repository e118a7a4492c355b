"""Two installations with scheduler names of their own; a PodGroup does not name its scheduler."""

from tutti.model.keys import GangKey

from ..harness.builders import NAMESPACE, gang
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
