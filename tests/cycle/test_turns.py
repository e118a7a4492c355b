"""Whoever has something to be told is told in turn, however much there is to tell each cycle."""

from tutti.model.keys import GangKey

from ..builders import NAMESPACE, gang, node, single
from ..fakes import Clock, FakeCluster, Life

CROWD = 30  # more PodGroups than one cycle writes about
CYCLES = 60
SOON = 10


async def test_a_gang_is_told_in_turn_while_newer_ones_keep_coming() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=1))
    life = Life(cluster, clock)
    for cycle in range(CYCLES):
        clock.now += 1.0
        names = [f"a-{cycle:02}-{i:02}" for i in range(CROWD)]
        for name in [*names, "zulu"] if cycle == SOON else names:
            made = gang(name).of(1, cpu=9).each(created=clock.now)
            cluster.add(made.but(created=clock.now))
        await life.turn()
    assert cluster.groups[GangKey(NAMESPACE, "zulu")].status["phase"] == "Waiting"


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
    assert zulu.said.reason == "Unschedulable"
