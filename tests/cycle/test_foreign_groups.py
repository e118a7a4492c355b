"""Gangs that objects of other projects declare: what is written into these, and when."""

import tracemalloc
from dataclasses import replace

from tutti.kube.gang_sources import GangObject
from tutti.model.keys import ApiKind, GangKey, PodKey, Uid
from tutti.planning import plan as planning
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ..harness.builders import NAMESPACE, gang, member, node, shape, single
from ..harness.counting import calls_of
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


def groups(number: int, kind: ApiKind) -> FakeCluster:
    """So many groups without pods, a gang of two that fits, and one that does not."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2))
    for i in range(number):
        cluster._put_group(GangObject(GangKey(NAMESPACE, f"g{i}", kind), Uid(f"g{i}"), 2))
    for name, cpu in (("fits", 1), ("waits", 2)):
        builder = gang(name).of(2, cpu=cpu).each(group_kind=kind)
        cluster.add(builder.but(key=GangKey(NAMESPACE, name, kind)))
    return cluster


async def test_the_work_of_a_plan_grows_no_faster_than_the_number_of_groups() -> None:
    """10,000 groups that nobody's pods name: counted in calls of functions."""
    counts = []
    for number in (1_000, 10_000):
        cluster = groups(number, PLUGINS)
        life = Life(cluster, Clock())
        await life.turn()
        life.watch.catch_up()
        await life.turn()
        snapshot = life.state.snapshot(life.clock.now)
        again = life.state.snapshot(life.clock.now)
        assert all(a is b for a, b in zip(snapshot.gangs, again.gangs, strict=True))
        counts.append(
            calls_of(lambda: planning.plan(snapshot, BestFit(), BestFit(), Budget(10, 10.0)))  # noqa: B023
        )
        assert "write_status" not in cluster.calls
        assert sum(member.node is not None for member in cluster.pods.values()) == 2
    assert counts[1] <= 11 * counts[0]


async def test_ten_thousand_groups_take_a_bounded_amount_of_memory() -> None:
    tracemalloc.start()
    try:
        cluster = groups(0, PLUGINS)
        life = Life(cluster, Clock())
        await life.turn()
        before = tracemalloc.get_traced_memory()[0]
        for i in range(10_000):
            key = GangKey(NAMESPACE, f"g{i}", PLUGINS)
            life.state.learn_group(GangObject(key, Uid(f"g{i}"), 2, version=str(i)))
        life.state.snapshot(life.clock.now)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 10_000 * 4_096


async def test_a_basic_group_is_told_once_a_pod_of_it_has_a_node() -> None:
    """As by kube-scheduler, for which it is a group of at least one pod; the pods are no gang."""
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=1))
    key = GangKey(NAMESPACE, "plain", KUBERNETES)
    cluster._put_group(GangObject(key, Uid("g"), 1, is_one_by_one=True))
    life = Life(cluster, clock)
    life.watch.catch_up()
    await life.turn()
    assert cluster.groups[key].status == {}
    for name in ("a", "b"):
        pod = member(name, shape(cpu=1))
        cluster.add_pod(replace(pod, group="plain", group_kind=KUBERNETES))
    life.watch.catch_up()
    for _ in range(4):
        clock.now += 60.0
        await life.turn()
        life.watch.catch_up()
    (line,) = cluster.groups[key].status["conditions"]
    assert (line["type"], line["status"]) == ("PodGroupInitiallyScheduled", "True")
    assert cluster.calls.count("write_status") == 1
    cluster.delete_pod("a")
    cluster.delete_pod("b")
    life.watch.catch_up()
    await life.turn()
    assert cluster.groups[key].status["conditions"] == [line]
    assert not any("SeveralGangs" in str(event) for event in cluster.events.values())
