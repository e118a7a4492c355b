"""Whoever has something to be told is told in turn, however much there is to tell each cycle."""

import pytest

from tutti.model.keys import GangKey

from ..harness.builders import NAMESPACE, gang, node, single
from ..harness.fakes import Clock, FakeCluster, Life

CROWD = 12  # more PodGroups than one cycle writes about
CYCLES = 30
SOON = 3


async def test_a_gang_is_told_in_turn_while_newer_ones_keep_coming() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=1))
    life = Life(cluster, clock)
    for cycle in range(CYCLES):
        clock.now += 1.0
        names = [f"a-{cycle:02}-{i:02}" for i in range(CROWD)]
        for name in [*names, "zulu"] if cycle == SOON else names:
            builder = gang(name).of(1, cpu=9).each(created=clock.now)
            cluster.add(builder.but(created=clock.now))
        await life.turn()
    assert cluster.groups[GangKey(NAMESPACE, "zulu")].status["phase"] == "Waiting"


@pytest.mark.parametrize(("crowd", "told"), [(12, 4), (1000, 20)])
async def test_of_a_crowd_a_share_is_told_in_each_cycle(crowd: int, told: int) -> None:
    """So a flood does not take thousands of cycles, each of which looks at all that is left."""
    cluster = FakeCluster()
    cluster.add(*(gang(f"g-{number}").needing(1) for number in range(crowd)))
    await Life(cluster, Clock()).turn()
    assert sum(bool(group.status) for group in cluster.groups.values()) == told


async def test_a_pod_is_told_in_turn_while_newer_ones_keep_coming() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=1))
    life = Life(cluster, clock)
    for cycle in range(12):
        clock.now += 5.0
        names = [f"a-{cycle:02}-{i:03}" for i in range(250)]
        for name in [*names, "zulu"] if cycle == 1 else names:
            cluster.add(single(name, cpu=9).each(created=clock.now))
        await life.turn()
    (zulu,) = [pod for pod in cluster.pods.values() if pod.key.name == "zulu"]
    assert zulu.scheduled_condition.reason == "Unschedulable"


@pytest.mark.parametrize("ahead", [0.0, 2.0, 60.0, 600.0])
async def test_a_gang_is_told_soon_where_the_api_server_is_ahead_of_our_clock(ahead: float) -> None:
    cluster, clock = FakeCluster(), Clock()
    builder = gang("a").of(2, cpu=2).each(created=clock.now + ahead).but(created=clock.now + ahead)
    cluster.add(node("n1", cpu=1), builder)
    life = Life(cluster, clock)
    for _ in range(5):
        await life.turn()
        clock.now += 1.0
    assert cluster.groups[GangKey(NAMESPACE, "a")].status["phase"] == "Waiting"
    assert {pod.scheduled_condition.reason for pod in cluster.pods.values()} == {"Unschedulable"}
