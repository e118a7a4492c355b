"""Gangs that objects of other projects declare: what is written into these, and when."""

from tutti.model.keys import ApiKind, GangKey

from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Life

KUBERNETES = ApiKind("scheduling.k8s.io", "PodGroup")
PLUGINS = ApiKind("scheduling.x-k8s.io", "PodGroup")


async def lived(kind: ApiKind, nodes: int) -> FakeCluster:
    """A gang of two that was scheduled for some minutes."""
    cluster, clock = FakeCluster(), Clock()
    made = gang("a").of(2, cpu=1).each(group_kind=kind)
    cluster.add(*(node(f"n{number}", cpu=1) for number in range(nodes)))
    cluster.add(made.but(key=GangKey(NAMESPACE, "a", kind)))
    life = Life(cluster, clock)
    life.watch.catch_up()
    for _ in range(4):
        clock.now += 60.0
        await life.turn()
        life.watch.catch_up()
    return cluster


async def test_the_condition_of_kubernetes_own_is_written_and_stays() -> None:
    cluster = await lived(KUBERNETES, nodes=2)
    (line,) = cluster.groups[GangKey(NAMESPACE, "a", KUBERNETES)].status["conditions"]
    assert (line["type"], line["status"]) == ("PodGroupInitiallyScheduled", "True")
    assert cluster.calls.count("write_status") == 1


async def test_it_says_what_a_gang_waits_for() -> None:
    cluster = await lived(KUBERNETES, nodes=1)
    (line,) = cluster.groups[GangKey(NAMESPACE, "a", KUBERNETES)].status["conditions"]
    assert (line["status"], line["reason"]) == ("False", "Unschedulable")
    assert "short 1" in line["message"]


async def test_the_status_of_scheduler_plugins_is_its_own_controllers() -> None:
    cluster = await lived(PLUGINS, nodes=2)
    assert all(member.node for member in cluster.pods.values())
    assert "write_status" not in cluster.calls
