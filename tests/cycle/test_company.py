"""Rules between pods while a promise is being carried out: what leans on others, and who comes."""

from tutti.kube import errors

from ..harness import builders
from ..harness.builders import gang, node, peers, single
from ..harness.fakes import Clock, FakeCluster, Fault, Life
from . import scenarios


def a_life(*parts: builders.NodeBuilder | builders.GangBuilder) -> Life:
    cluster = FakeCluster()
    cluster.add(*parts)
    return Life(cluster, Clock())


async def test_a_gang_of_one_does_not_follow_a_gang_that_was_given_back_before_it() -> None:
    driver = gang("d").of(2, cpu=2).labelled(app="d")
    follower = single("s", cpu=1).near("zone", peers("ml", app="d"))
    near = node("n1", cpu=4).labelled(zone="z"), node("n2", cpu=1).labelled(zone="z")
    life = a_life(*near, driver, follower)

    def cordon(name: str) -> None:
        if name == "reserve":
            life.cluster.change_node("n1", unschedulable=True)
            life.watch.catch_up()

    life.cluster.before = cordon
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert "release" in life.cluster.calls
    assert "bind" not in life.cluster.calls
    life.cluster.before = lambda _: None
    life.cluster.change_node("n1", unschedulable=False)
    life.watch.catch_up()
    await life.settle()
    assert {pod.node for pod in life.cluster.pods.values()} == {"n1", "n2"}


async def a_begun_gang(*more: builders.NodeBuilder) -> tuple[Life, str]:
    """A gang of two: one is bound, then a pod comes that the other minds. And where the one is."""
    builder = gang("a").of(2, cpu=1).apart("hostname", peers("ml", app="b"))
    nodes = [node(name, cpu=1).labelled(hostname=name) for name in ("n1", "n2")]
    life = a_life(*nodes, *more, builder)

    def refused(_: int, name: str) -> Fault | None:
        is_second = name == "bind" and life.cluster.calls.count("bind") == 2
        return Fault(errors.Conflict("not now", status=409)) if is_second else None

    life.cluster.fault = refused
    await life.turn()
    (bound,) = scenarios.places(life.cluster, "a")
    (promised,) = {"n1", "n2"} - {bound}
    life.cluster.occupy(promised, builders.resources(cpu=0), app="b")
    life.watch.catch_up()
    await life.settle()
    return life, bound


async def test_a_slot_that_a_rule_forbids_by_now_is_lost_and_placed_again() -> None:
    life, bound = await a_begun_gang(node("n3", cpu=1, gpu=1).labelled(hostname="n3"))
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "a") == [bound, "n3"]


async def test_where_no_node_will_do_the_slot_waits_and_nothing_is_held() -> None:
    life, bound = await a_begun_gang()
    assert scenarios.places(life.cluster, "a") == [bound]
    assert life.cluster.reservations == {}
    reasons = {
        pod.scheduled_condition.reason
        for pod in scenarios.members(life.cluster, "a")
        if pod.node is None
    }
    assert reasons == {"Unschedulable"}
    life.cluster.add(node("n3", cpu=1).labelled(hostname="n3"))
    life.watch.catch_up()
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "a") == [bound, "n3"]
