"""Gangs that objects of other projects declare: what is written into these, and when."""

from tutti.kube.gang_sources import GangObject
from tutti.model.keys import ApiKind, GangKey, PodKey, Uid

from ..harness.builders import NAMESPACE, gang, node, single
from ..harness.fakes import Clock, FakeCluster, Life

KUBERNETES = ApiKind("scheduling.k8s.io", "PodGroup")
PLUGINS = ApiKind("scheduling.x-k8s.io", "PodGroup")
VOLCANO = ApiKind("scheduling.volcano.sh", "PodGroup")


async def lived(kind: ApiKind, nodes: int) -> FakeCluster:
    """A gang of two that was scheduled for some minutes."""
    cluster, clock = FakeCluster(), Clock()
    builder = gang("a").of(2, cpu=1).each(group_kind=kind)
    cluster.add(*(node(f"n{number}", cpu=1) for number in range(nodes)))
    cluster.add(builder.but(key=GangKey(NAMESPACE, "a", kind)))
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


async def test_a_pod_that_names_its_group_too_late_may_start_alone_and_is_a_member_then() -> None:
    """Volcano writes the group of a ReplicaSet into pods that exist: Tutti cannot know of it."""
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=1), single("a", cpu=1))
    life = Life(cluster, clock)
    await life.settle()
    assert cluster.pods[PodKey(NAMESPACE, "a")].node == "n1"

    cluster._put_group(GangObject(GangKey(NAMESPACE, "g", VOLCANO), Uid("g"), 2))
    cluster.add(single("b", cpu=1))
    for name in ("a", "b"):
        cluster.change_pod(name, group="g", group_kind=VOLCANO)
    life.watch.catch_up()
    await life.settle()
    status = cluster.groups[GangKey(NAMESPACE, "g", VOLCANO)].status
    assert (cluster.pods[PodKey(NAMESPACE, "b")].node, status["phase"]) == (None, "Inqueue")
    assert "1/2 tasks in gang unschedulable" in status["conditions"][0]["message"]
