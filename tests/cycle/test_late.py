"""Members that do not exist yet: awaited over crashes and refusals, and given up in time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tutti.kube import errors
from tutti.model.cluster import Phase, ScheduledCondition, SlotReservation
from tutti.model.decisions import Assignment, Mode, RolloutLimits
from tutti.model.keys import GangKey, NodeName

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios

NO_VALUES = {"key": "app", "operator": "In"}
N1, N2 = NodeName("n1"), NodeName("n2")


def driven(**about: object) -> builders.GangBuilder:
    """A driver and its three workers, which are made later and awaited for 60 seconds."""
    base = gang("a").role("driver", 1, cpu=1).role("worker", 3, 0).declaring(cpu=1)
    return base.needing(4).but(absent_seconds=60.0, **about)


def cluster_of(*parts: builders.NodeBuilder | builders.GangBuilder) -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(*parts)
    return cluster


def make(cluster: FakeCluster, *names: str, cpu: float = 1) -> None:
    """Make workers, as a driver would."""
    for name in names:
        worker = builders.member(name, builders.shape(cpu=cpu), role="worker")
        cluster.add_pod(replace(worker, group="a", created=float(cluster.version)))


async def turns(life: Life, n: int) -> None:
    for _ in range(n):
        await life.turn()


def reserved_slots(cluster: FakeCluster) -> tuple[SlotReservation, ...]:
    (reservation,) = cluster.reservations.values()
    return reservation.slots


def events(cluster: FakeCluster, reason: str) -> list[str]:
    return [e["message"] for e in cluster.events.values() if e["reason"] == reason]


def bound(cluster: FakeCluster) -> list[str]:
    return sorted(pod.key.name for pod in cluster.pods.values() if pod.node is not None)


async def waiting_life() -> Life:
    """A driver that is bound, and three workers that are awaited."""
    cluster = cluster_of(node("n1", cpu=2), node("n2", cpu=2), driven())
    life = Life(cluster, Clock())
    await turns(life, 2)
    assert bound(cluster) == ["a-0"]
    assert sum(slot.count for slot in reserved_slots(cluster)) == 3
    return life


async def test_a_worker_is_named_before_it_is_bound() -> None:
    life = await waiting_life()
    calls_before = len(life.cluster.calls)
    make(life.cluster, "w-0")
    life.watch.catch_up()
    await life.turn()
    calls = life.cluster.calls[calls_before : calls_before + 4]
    assert calls == ["amend", "read_lease", "read_member", "bind"]
    assert sum(slot.count for slot in reserved_slots(life.cluster)) == 2


async def test_those_that_never_come_are_given_up_and_that_is_said() -> None:
    life = await waiting_life()
    await life.settle()
    assert life.clock.now >= 1_060.0
    assert life.cluster.reservations == {}
    said = "3 members of role worker did not come within 60 s: their room is given back"
    assert events(life.cluster, "Released") == [said]
    status = life.cluster.groups[GangKey(NAMESPACE, "a")].status
    assert status["phase"] == "Degraded"
    make(life.cluster, "w-0", "w-1", "w-2")
    life.watch.catch_up()
    await life.settle()
    scenarios.assert_promises(life.cluster)


async def test_pods_are_told_of_a_template_that_cannot_be_read() -> None:
    cluster = cluster_of(node("n1", cpu=8))
    terms = [{"topologyKey": "zone", "labelSelector": {"matchExpressions": [NO_VALUES]}}]
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    template = {"resources": {"cpu": "1"}, "affinity": rules}
    role = {"name": "worker", "minMember": 2, "template": template}
    metadata = {"name": "a", "namespace": NAMESPACE}
    await cluster.declare(NAMESPACE, {"metadata": metadata, "spec": {"roles": [role]}})
    make(cluster, "w-0")
    life = Life(cluster, Clock())
    await life.settle()
    sentence = (
        "role worker: 1 of 2 exist; no room is held for absent members of role worker, since its "
        "template has a malformed spec.affinity.podAntiAffinity"
    )
    (reserved,) = cluster.groups[GangKey(NAMESPACE, "a")].status["conditions"]
    assert (reserved["reason"], reserved["message"]) == ("WaitingForMembers", sentence)
    (pod,) = cluster.pods.values()
    assert pod.scheduled_condition == ScheduledCondition("WaitingForMembers", sentence)
    make(cluster, "w-1")
    life.watch.catch_up()
    await life.settle()
    assert bound(cluster) == ["w-0", "w-1"]


def last_one_is_bound_by_hand(life: Life) -> None:
    life.cluster.change_node("n1", allocatable=builders.resources(cpu=3, pods=110))
    worker = builders.member("w-2", builders.shape(cpu=1), role="worker")
    life.cluster.add_pod(replace(worker, group="a", node=N1))


def two_are_enough_by_now(life: Life) -> None:
    group = life.cluster.groups[GangKey(NAMESPACE, "a")]
    fewer = (group.roles[0], replace(group.roles[1], min_member=2))
    life.cluster.change_group("a", min_member=3, roles=fewer)


@pytest.mark.parametrize("change", [last_one_is_bound_by_hand, two_are_enough_by_now])
async def test_slots_that_a_whole_gang_does_not_need_are_given_back(
    change: Callable[[Life], None],
) -> None:
    life = await waiting_life()
    make(life.cluster, "w-0", "w-1")
    life.watch.catch_up()
    await turns(life, 4)
    assert sum(slot.count for slot in reserved_slots(life.cluster)) == 1
    change(life)
    life.cluster.add(gang("b").of(1, cpu=1))
    life.watch.catch_up()
    await life.settle()
    assert life.clock.now <= 1_060.0
    assert life.cluster.reservations == {}
    assert "b-0" in bound(life.cluster)
    scenarios.assert_promises(life.cluster)


async def test_a_pause_takes_no_slot_from_those_that_are_there() -> None:
    life = await waiting_life()
    paused = Life(life.cluster, life.clock, rollout_limits=RolloutLimits(Mode.PAUSED))
    make(life.cluster, "w-0")
    paused.watch.catch_up()
    await paused.settle()
    life.clock.now += 100.0
    await turns(paused, 3)
    assert sum(slot.count for slot in reserved_slots(life.cluster)) == 3
    assert bound(life.cluster) == ["a-0"]
    await Life(life.cluster, life.clock).settle()
    assert bound(life.cluster) == ["a-0", "w-0"]
    assert life.cluster.reservations == {}
    said = "2 members of role worker did not come within 60 s: their room is given back"
    assert events(life.cluster, "Released") == [said]


async def test_what_asks_for_more_is_said_once() -> None:
    life = await waiting_life()
    make(life.cluster, "w-0", cpu=2)
    life.watch.catch_up()
    await turns(life, 3)
    said = "w-0 asks for 2 cpu, and the template of role worker declares 1 cpu: it is placed again"
    assert events(life.cluster, "LargerThanDeclared") == [said]


@pytest.mark.parametrize(
    "answer",
    [
        errors.Conflict("it has changed", status=409),
        errors.Refused("no", status=403),
        errors.Unavailable("away", status=500),
    ],
)
async def test_an_amendment_that_is_not_taken_is_tried_again(answer: errors.ApiError) -> None:
    life = await waiting_life()
    make(life.cluster, "w-0", "w-1", "w-2")
    life.watch.catch_up()
    faults = [answer]
    life.cluster.fault = lambda _, name: Fault(faults.pop()) if faults and name == "amend" else None
    await life.settle()
    assert faults == []
    scenarios.assert_promises(life.cluster)


async def test_a_reservation_that_somebody_deleted_is_forgotten() -> None:
    life = await waiting_life()
    make(life.cluster, "w-0")
    life.watch.catch_up()

    def before(name: str) -> None:
        if name == "amend":
            life.cluster.reservations.clear()

    life.cluster.before = before
    await life.turn()
    assert list(life.state.reservations) == []


async def test_those_whose_reservation_somebody_deleted_get_room_again() -> None:
    life = await waiting_life()
    life.cluster.delete_reservation("a")
    life.cluster.add(gang("b").of(1, cpu=1).priority(9))
    life.watch.catch_up()
    await turns(life, 2)
    assert sum(slot.count for slot in reserved_slots(life.cluster)) == 3
    make(life.cluster, "w-0", "w-1", "w-2")
    life.watch.catch_up()
    await life.settle()
    assert bound(life.cluster) == ["a-0", "w-0", "w-1", "w-2"]
    scenarios.assert_promises(life.cluster)


async def test_those_whose_time_was_up_by_then_do_not() -> None:
    life = await waiting_life()
    life.cluster.delete_reservation("a")
    life.clock.now += 60.0
    life.watch.catch_up()
    await life.settle()
    assert life.cluster.reservations == {}


@pytest.mark.parametrize("ends", ["group", "driver"])
async def test_everything_is_given_back_once_the_gang_ends(ends: str) -> None:
    life = await waiting_life()
    if ends == "group":
        life.cluster.delete_group("a")
    else:
        life.cluster.run_pods(Phase.SUCCEEDED)
    life.watch.catch_up()
    await turns(life, 2)
    assert life.cluster.reservations == {}
    assert life.clock.now == 1_000.0


async def test_a_slot_whose_node_is_closed_is_held_elsewhere() -> None:
    life = await waiting_life()
    life.cluster.put_node(node("n3", cpu=4).made)
    life.cluster.change_node("n1", unschedulable=True)
    life.watch.catch_up()
    await turns(life, 2)
    assert N1 not in {slot.node for slot in reserved_slots(life.cluster)}
    assert sum(slot.count for slot in reserved_slots(life.cluster)) == 3


async def test_a_worker_whose_node_closes_before_it_is_bound_gives_its_room_back() -> None:
    life = await waiting_life()
    make(life.cluster, "w-0")
    life.watch.catch_up()
    (node_of,) = {slot.node for slot in reserved_slots(life.cluster)[:1]}

    def before(name: str) -> None:
        if name == "amend":
            life.cluster.change_node(node_of, unschedulable=True)
            life.watch.catch_up("nodes")

    life.cluster.before = before
    await life.turn()
    life.cluster.before = lambda _: None
    touched = life.cluster.calls.count("say_of_pod")
    assert touched == 1, "no binding that was sent before may still succeed"
    assert "w-0" not in {e.pod.name for r in life.cluster.reservations.values() for e in r.entries}
    life.cluster.change_node(node_of, unschedulable=False)
    make(life.cluster, "w-1", "w-2")
    life.watch.catch_up()
    await life.settle()
    scenarios.assert_promises(life.cluster)


async def test_a_worker_that_is_deleted_before_it_is_bound_gives_its_room_back() -> None:
    life = await waiting_life()
    make(life.cluster, "w-0")
    life.watch.catch_up()
    once = ["w-0"]

    def before(name: str) -> None:
        if name == "bind" and once:
            life.cluster.delete_pod(once.pop())

    life.cluster.before = before
    await turns(life, 3)
    make(life.cluster, "w-1", "w-2", "w-3")
    life.watch.catch_up()
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert bound(life.cluster) == ["a-0", "w-1", "w-2", "w-3"]


async def test_what_is_reserved_for_others_is_never_taken_after_a_crash() -> None:
    cluster = cluster_of(node("n1", cpu=2), node("n2", cpu=2), driven())
    clock = Clock()
    await turns(Life(cluster, clock), 2)
    cluster.add(gang("b").of(1, cpu=1).priority(9))
    make(cluster, "w-0")
    for number in (1, 2, 3):
        life = Life(cluster, clock)
        at = len(cluster.calls) + number
        cluster.fault = lambda n, _, at=at: Fault(Crash()) if n == at else None  # type: ignore[misc]
        with pytest.raises(Crash):
            await turns(life, 3)
    cluster.fault = lambda _, __: None
    make(cluster, "w-1", "w-2")
    await Life(cluster, clock).settle()
    assert bound(cluster) == ["a-0", "w-0", "w-1", "w-2"]
    scenarios.assert_promises(cluster)


async def test_a_binding_that_lands_late_does_not_cost_the_workers_their_room() -> None:
    """A former leader's, between the lists of the next one and its first plan."""
    cluster = cluster_of(node("n1", cpu=2), node("n2", cpu=2), driven())
    clock = Clock()
    before = Life(cluster, clock)
    cluster.fault = lambda _, name: Fault(Crash()) if name == "bind" else None
    with pytest.raises(Crash):
        await turns(before, 2)
    cluster.fault = lambda _call, _name: None
    life = Life(cluster, clock, identity="tutti-1")
    await life.cycle.begin(life.term)
    life.watch.catch_up()
    (standing,) = cluster.reservations.values()
    (entry,) = standing.entries
    driver = cluster.pods[entry.pod]
    await cluster.bind(Assignment(driver.key, driver.uid, driver.version, entry.node))
    life.watch.catch_up("pending")  # it has left that stream, and is not in the other one yet
    await life.cycle.run_once(life.term)
    life.watch.catch_up()
    await turns(life, 3)
    assert bound(cluster) == ["a-0"]
    assert sum(slot.count for slot in reserved_slots(cluster)) == 3
    assert "release" not in cluster.calls, "it is not given back and made again"


async def test_a_change_that_is_refused_is_not_tried_in_every_cycle() -> None:
    life = await waiting_life()
    make(life.cluster, "w-0")
    life.watch.catch_up()
    amended: list[str] = []

    def fault(_: int, name: str) -> Fault | None:
        if name != "amend":
            return None
        amended.append(name)
        return Fault(errors.Refused("no", status=403)) if len(amended) > 1 else None

    def before(name: str) -> None:
        if name == "amend":  # so what it names cannot be bound, and is to be given back
            for node_name in ("n1", "n2"):
                life.cluster.change_node(node_name, unschedulable=True)
            life.watch.catch_up("nodes")

    life.cluster.fault, life.cluster.before = fault, before
    await turns(life, 8)
    assert bound(life.cluster) == ["a-0"]
    assert len(amended) == 3
