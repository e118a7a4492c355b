"""Gangs that kube-scheduler binds: pinned and ungated together, whatever dies in between."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tutti.gang.timeouts import BINDING_SECONDS
from tutti.kube import errors
from tutti.model.cluster import GATE, BoundBy, Member
from tutti.model.keys import GangKey, NodeName

from ..harness import builders
from ..harness.builders import NAMESPACE, GangBuilder, gang, node
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios
from .test_crashes import failing_at, moments

KUBE = BoundBy.KUBE_SCHEDULER


def handed(name: str, count: int, cpu: int = 1) -> GangBuilder:
    """A gang whose gated members Tutti hands over."""
    return gang(name).of(count, cpu=cpu).each(gates=(GATE,), bound_by=KUBE).but(bound_by=KUBE)


def successor(name: str, cpu: int = 1) -> Member:
    """What a controller makes in place of a lost member of gang a."""
    pod = builders.member(name, builders.shape(cpu=cpu))
    return replace(pod, group="a", gates=(GATE,), created=50.0, bound_by=KUBE)


def cluster_of(*parts: builders.NodeBuilder | GangBuilder) -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(*parts)
    return cluster


def contended() -> FakeCluster:
    """Two gangs that are handed over, and one of Tutti's; two of the three fit."""
    return cluster_of(
        node("n1", cpu=4),
        node("n2", cpu=4),
        handed("a", 3),
        handed("b", 3).but(created=1.0, bound_by=KUBE),
        gang("c").of(4, cpu=1).priority(5).but(created=2.0),
    )


def pods(cluster: FakeCluster, name: str) -> list[Member]:
    return scenarios.members(cluster, name)


def half_ungated(cluster: FakeCluster) -> list[str]:
    """The gangs of which some members were handed over, and others were not."""
    found = []
    for key in cluster.groups:
        states = {pod.gates == (GATE,) for pod in pods(cluster, key.name)}
        if len(states) > 1 and cluster.groups[key].bound_by is KUBE:
            found.append(key.name)
    return found


async def settled(cluster: FakeCluster, clock: Clock | None = None) -> Life:
    """A life that ends once kube-scheduler has bound all that it was given."""
    life = Life(cluster, clock or Clock())
    for _ in range(20):
        for _ in range(5):
            await life.turn()
        if not any(pod.is_handed_over for pod in cluster.pods.values()):
            break
        cluster.schedule()
    await life.settle()
    return life


def assert_promises(cluster: FakeCluster) -> None:
    scenarios.assert_promises(cluster)
    assert half_ungated(cluster) == []


def status(cluster: FakeCluster, name: str, kind: str = "Healthy") -> tuple[str, str, str]:
    """The phase of a gang, and the reason and the message of one condition."""
    group_status: Any = cluster.groups[GangKey(NAMESPACE, name)].status
    lines = [line for line in group_status["conditions"] if line["type"] == kind]
    reason, message = (lines[0]["reason"], lines[0]["message"]) if lines else ("", "")
    return group_status["phase"], reason, message


async def test_all_members_are_pinned_and_ungated_and_then_bound_by_kube_scheduler() -> None:
    cluster, clock = cluster_of(node("n1", cpu=2), node("n2", cpu=2), handed("a", 3)), Clock()
    life = Life(cluster, clock)
    for _ in range(5):
        await life.turn()
    assert cluster.calls.count("hand_over") == 3
    assert "bind" not in cluster.calls
    assert [pod.is_handed_over for pod in pods(cluster, "a")] == [True] * 3
    assert len(cluster.reservations) == 1, "it stays until every member has its node"
    cluster.schedule("a-0", "a-1")
    await life.turn()
    assert len(cluster.reservations) == 1
    cluster.schedule()
    await life.settle()
    assert_promises(cluster)
    assert status(cluster, "a") == ("Bound", "Whole", "no needed member is missing")


async def test_a_gang_that_does_not_fit_stays_gated_and_its_pods_say_why() -> None:
    cluster = cluster_of(node("n1", cpu=2), handed("a", 3))
    await Life(cluster, Clock()).settle()
    assert "hand_over" not in cluster.calls
    assert {pod.gates for pod in pods(cluster, "a")} == {(GATE,)}
    assert {pod.scheduled_condition.reason for pod in pods(cluster, "a")} == {"Unschedulable"}


async def test_a_gate_of_others_holds_the_gang_back() -> None:
    cluster = cluster_of(node("n1", cpu=4), handed("a", 3))
    cluster.change_pod("a-1", gates=("example.com/quota", GATE))
    await Life(cluster, Clock()).settle()
    assert "hand_over" not in cluster.calls
    cluster.change_pod("a-1", gates=(GATE,))
    await settled(cluster)
    assert_promises(cluster)
    assert len(scenarios.places(cluster, "a")) == 3


async def strikes(cluster: FakeCluster, number: int, what: BaseException, *, after: bool) -> None:
    """Live until rest with kube-scheduler, with one fault at the call of that number."""
    clock = Clock()
    cluster.fault = failing_at(number, what, is_committed=after)
    try:
        await settled(cluster, clock)
    except Crash:
        await settled(cluster, clock)


FAULTS: Mapping[str, Callable[[], BaseException]] = {
    "crash": Crash,
    "no answer": partial(errors.Unavailable, "away.", status=0),
    "overload": partial(errors.Unavailable, "away.", status=500),
    "conflict": partial(errors.Conflict, "another client wrote first.", status=409),
    "refusal": partial(errors.Refused, "no.", status=403),
}


@moments
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_any_call_ends_as_an_unbroken_run_does(
    fault: str, *, is_committed: bool
) -> None:
    if is_committed and fault in ("conflict", "refusal"):
        return  # the API server commits nothing that it refuses
    whole = contended()
    await settled(whole)
    assert_promises(whole)
    assert whole.calls.count("hand_over") == 3
    for number in range(1, len(whole.calls) + 1):
        cluster = contended()
        await strikes(cluster, number, FAULTS[fault](), after=is_committed)
        assert_promises(cluster)
        assert scenarios.admitted(cluster) == scenarios.admitted(whole), number


async def test_after_a_crash_between_two_patches_the_next_leader_hands_over_the_others() -> None:
    cluster, clock = cluster_of(node("n1", cpu=3), handed("a", 3)), Clock()
    handed_over = []

    def fault(_number: int, name: str) -> Fault | None:
        handed_over.append(name)
        return Fault(Crash(), is_committed=True) if handed_over.count("hand_over") == 2 else None

    cluster.fault = fault
    with pytest.raises(Crash):
        await Life(cluster, clock).settle()
    assert half_ungated(cluster) == ["a"]
    cluster.fault = lambda _number, _name: None
    await settled(cluster, clock)
    assert_promises(cluster)
    assert {pod.gates for pod in pods(cluster, "a")} == {()}


async def test_a_patch_that_is_refused_is_tried_again_and_no_gate_comes_back() -> None:
    cluster, clock = cluster_of(node("n1", cpu=3), handed("a", 3)), Clock()
    patches = 0

    def fault(_number: int, name: str) -> Fault | None:
        nonlocal patches
        patches += name == "hand_over"
        is_refused = name == "hand_over" and 2 <= patches <= 5
        return Fault(errors.Refused("no.", status=403)) if is_refused else None

    cluster.fault = fault
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    assert half_ungated(cluster) == ["a"]
    assert len(cluster.reservations) == 1
    clock.now += 700.0
    await settled(cluster, clock)
    assert_promises(cluster)


async def test_a_late_patch_of_a_former_leader_is_refused() -> None:
    cluster, clock = cluster_of(node("n1", cpu=3), handed("a", 3)), Clock()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def pause(number: int, is_committed: bool) -> None:  # noqa: FBT001 - as it is called
        if cluster.calls[number - 1] == "hand_over" and not (is_committed or go_on.is_set()):
            begun.set()
            await go_on.wait()

    cluster.pause = pause
    former = asyncio.create_task(Life(cluster, clock).turn())
    await begun.wait()
    cluster.pause = FakeCluster().pause
    cluster.delete_node("n1")
    next_leader = Life(cluster, clock, identity="tutti-1")
    for _ in range(3):
        await next_leader.turn()
    assert cluster.reservations == {}, "the room is given back"
    go_on.set()
    await former
    assert {pod.gates for pod in pods(cluster, "a")} == {(GATE,)}


async def refused_by_kube_scheduler() -> tuple[FakeCluster, Clock, Life]:
    """A gang of which kube-scheduler does not bind one member."""
    cluster, clock = cluster_of(node("n1", cpu=2), node("n2", cpu=2), handed("a", 3)), Clock()
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    cluster.schedule("a-0", "a-1")
    cluster.schedule("a-2", unless="0/2 nodes are available: 1 cannot allocate all claims.")
    for _ in range(3):
        await life.turn()
    return cluster, clock, life


async def test_a_refusal_of_kube_scheduler_is_told_at_once() -> None:
    """Also if the status was written just before, and only the refusal is new."""
    cluster, clock = cluster_of(node("n1", cpu=2), handed("a", 2)), Clock()
    life = Life(cluster, clock)

    async def seen() -> tuple[str, str, str]:
        for _ in range(3):
            clock.now += 1.0
            await life.turn()
        return status(cluster, "a", "Bound")

    assert await seen() == ("Reserved", "Binding", "0 of 2 members are bound")
    cluster.schedule("a-1", unless="0/1 nodes are available: 1 cannot allocate all claims.")
    phase, reason, message = await seen()
    assert (phase, reason) == ("Reserved", "NotBound")
    assert "a-1 is not bound to node n1" in message
    assert "cannot allocate all claims" in message
    cluster.schedule()
    assert await seen() == ("Bound", "Bound", "2 of 2 members are bound")


async def test_what_kube_scheduler_does_not_bind_in_time_makes_the_gang_degraded() -> None:
    cluster, clock, life = await refused_by_kube_scheduler()
    assert len(cluster.reservations) == 1
    assert status(cluster, "a")[0] == "Reserved"
    clock.now += BINDING_SECONDS
    await life.settle()
    phase, reason, message = status(cluster, "a")
    assert (phase, reason) == ("Degraded", "NotBound")
    assert "a-2 is not bound to node" in message
    assert "cannot allocate all claims" in message
    assert "delete what it cannot bind there" in message
    assert cluster.reservations == {}
    assert "evict" not in cluster.calls


async def test_its_room_stays_its_own_and_a_late_binding_makes_the_gang_whole() -> None:
    cluster, clock, life = await refused_by_kube_scheduler()
    clock.now += BINDING_SECONDS
    cluster.add(gang("b").of(2, cpu=1))
    life.watch.catch_up()
    await life.settle()
    assert scenarios.places(cluster, "b") == [], "one cpu is free, and two are not"
    cluster.schedule()
    life.watch.catch_up()
    await life.settle()
    assert status(cluster, "a")[:2] == ("Bound", "Whole")


async def test_the_successor_of_a_member_that_was_not_bound_is_planned_first() -> None:
    cluster, clock, life = await refused_by_kube_scheduler()
    clock.now += BINDING_SECONDS
    await life.settle()
    cluster.delete_pod("a-2")
    cluster.add(gang("b").of(2, cpu=1).priority(9))
    cluster.add_pod(successor("a-new"))
    await settled(cluster, clock)
    assert_promises(cluster)
    assert len(scenarios.places(cluster, "a")) == 3
    assert scenarios.places(cluster, "b") == []
    assert status(cluster, "a")[:2] == ("Bound", "Whole")


async def test_the_time_also_runs_after_a_change_of_leader() -> None:
    cluster, clock, _ = await refused_by_kube_scheduler()
    clock.now += BINDING_SECONDS
    await Life(cluster, clock, identity="tutti-1").settle()
    assert status(cluster, "a")[:2] == ("Degraded", "NotBound")


async def test_a_member_that_is_deleted_while_others_wait_for_kube_scheduler_is_replaced() -> None:
    cluster, clock = cluster_of(node("n1", cpu=4), handed("a", 3)), Clock()
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    cluster.delete_pod("a-1")
    cluster.add_pod(successor("a-new"))
    await settled(cluster, clock)
    assert_promises(cluster)
    assert len(scenarios.places(cluster, "a")) == 3


async def test_a_node_that_goes_away_after_the_patches_is_said_of_the_gang() -> None:
    cluster, clock = cluster_of(node("n1", cpu=2), node("n2", cpu=2), handed("a", 3)), Clock()
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    places = scenarios.places(cluster, "a")
    lonely = next(pod for pod in pods(cluster, "a") if places.count(NodeName(str(pod.node))) == 1)
    cluster.delete_node(str(lonely.node))
    clock.now += BINDING_SECONDS
    cluster.schedule(*(pod.key.name for pod in pods(cluster, "a") if pod.node != lonely.node))
    await life.settle()
    assert status(cluster, "a")[:2] == ("Degraded", "NodeLost")


async def test_pods_that_the_other_scheduler_would_bind_wait_and_say_what_differs() -> None:
    cluster = cluster_of(node("n1", cpu=9), gang("a").of(2, cpu=1), handed("b", 2))
    cluster.change_pod("a-1", bound_by=KUBE, gates=(GATE,))
    cluster.change_pod("b-1", bound_by=BoundBy.TUTTI, gates=())
    await Life(cluster, Clock()).settle()
    said = {pod.key.name: pod.scheduled_condition for pod in cluster.pods.values()}
    assert said["a-1"].reason == said["b-1"].reason == "NotModelled"
    assert "does not say binding: KubeScheduler" in said["a-1"].message
    assert "says binding: KubeScheduler" in said["b-1"].message
    assert scenarios.places(cluster, "a") == scenarios.places(cluster, "b") == []


async def test_a_running_pod_of_another_scheduler_counts_for_no_gang_and_takes_room() -> None:
    cluster = cluster_of(node("n1", cpu=2), gang("a").of(2, cpu=1))
    cluster.add_pod(replace(successor("theirs"), gates=(), node=NodeName("n1")))
    await Life(cluster, Clock()).settle()
    assert scenarios.places(cluster, "a") == [NodeName("n1")], "theirs alone"
    assert cluster.groups[GangKey(NAMESPACE, "a")].status["members"]["bound"] == 0
