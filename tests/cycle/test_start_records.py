"""The record of a start: it outlives the Reservation's room, and goes when the gang does."""

from dataclasses import replace

import pytest

from tutti.kube import errors
from tutti.model.cluster import Phase, Reservation
from tutti.model.inter_pod import Requirement
from tutti.model.keys import GangKey, PodKey, Uid
from tutti.model.queues import Queue, QueueRecord

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life

VISION = Queue("vision", Uid("vision-1"), limits=(("cpu", 3000),))
CALLS = 30  # more than a start and a repair take


def with_queue(queue: Queue = VISION) -> FakeCluster:
    """A gang of three that waits in a queue, and room for more."""
    cluster = FakeCluster()
    cluster.add_queue(queue)
    cluster.add(node("n1", cpu=8), gang("a").of(3, cpu=1))
    cluster.change_group("a", queue="vision")
    return cluster


async def live(cluster: FakeCluster, identity: str = "tutti-0") -> Life:
    life = Life(cluster, Clock(), identity=identity)
    await life.settle()
    return life


def reservation(cluster: FakeCluster) -> Reservation | None:
    return next(iter(cluster.reservations.values()), None)


def record(cluster: FakeCluster) -> QueueRecord | None:
    """The record of a Reservation that holds nothing any more."""
    standing = reservation(cluster)
    return standing.record if standing is not None and standing.is_spent else None


def lose_member(cluster: FakeCluster, *, cpu: int = 1) -> None:
    cluster.change_pod("a-2", phase=Phase.FAILED, failure="OutOfcpu")
    replacement = builders.member("a-new", builders.shape(cpu=cpu))
    cluster.add_pod(replace(replacement, group="a", created=50.0))


def queues_of_records(cluster: FakeCluster) -> dict[str, str]:
    """The queue of each record, by gang."""
    standing = cluster.reservations.values()
    return {r.gang.name: r.record.queue for r in standing if r.record is not None}


def is_bound(cluster: FakeCluster, name: str) -> bool:
    return cluster.pods[PodKey(NAMESPACE, name)].node is not None


async def test_the_record_stays_until_no_member_holds_room() -> None:
    cluster = with_queue()
    life = await live(cluster)
    started = record(cluster)
    assert started is not None
    assert (started.queue, started.queue_uid) == ("vision", "vision-1")
    assert [start.members for start in started.minimum] == [3]
    cluster.change_group("a", queue="nlp")
    cluster.delete_group("a")
    cluster.collect()
    await life.settle()
    assert record(cluster) == started
    for name in ("a-0", "a-1", "a-2"):
        assert record(cluster) == started
        cluster.change_pod(name, phase=Phase.SUCCEEDED)
        life.watch.catch_up()
        await life.settle()
    assert not cluster.reservations
    assert not cluster.broken


async def test_a_podgroup_that_is_created_again_frees_nothing_of_the_limit() -> None:
    """Its pods run on; another queue would be charged for them, and this one could start more."""
    cluster = with_queue()
    cluster.add_queue(Queue("nlp", Uid("nlp-1"), limits=(("cpu", 3000),)))
    life = await live(cluster)
    started = record(cluster)
    cluster.delete_group("a")
    cluster.add_group(gang("a").needing(3))
    cluster.change_group("a", queue="nlp")
    cluster.add(gang("b").of(1, cpu=1), gang("c").of(3, cpu=1))
    cluster.change_group("b", queue="vision")
    cluster.change_group("c", queue="nlp")
    cluster.collect()
    life.watch.catch_up()
    await life.settle()
    assert [is_bound(cluster, name) for name in ("b-0", "c-0")] == [False, True]
    assert started in [stored.record for stored in cluster.reservations.values()]
    for name in ("a-0", "a-1", "a-2"):
        cluster.change_pod(name, phase=Phase.SUCCEEDED)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "b-0")
    assert not cluster.broken


def make_again(cluster: FakeCluster, queue: str = "vision") -> None:
    """Delete the PodGroup and create it again, as its tenant may; its pods stay."""
    cluster.delete_group("a")
    cluster.add_group(gang("a").needing(3))
    cluster.change_group("a", queue=queue)


async def join(life: Life, cluster: FakeCluster, *names: str) -> None:
    """Let pods join the gang."""
    for number, name in enumerate(names):
        joining = builders.member(name, builders.shape(cpu=1))
        cluster.add_pod(replace(joining, group="a", created=life.clock.now + number))
    life.watch.catch_up()
    life.clock.now += 5.0
    await life.settle()


def bound(cluster: FakeCluster) -> set[str]:
    return {key.name for key, pod in cluster.pods.items() if pod.node is not None}


@pytest.mark.parametrize("has_default", [False, True])
async def test_pods_that_join_a_podgroup_that_is_created_again_obey_the_limit(
    *, has_default: bool
) -> None:
    """The limit of the queue of the start, not that of the default of the namespace."""
    cluster = with_queue(replace(VISION, limits=(("cpu", 4000),)))
    if has_default:
        cluster.add_queue(Queue("small", Uid("s"), limits=(("cpu", 1000),), default_for=()))
    life = await live(cluster)
    make_again(cluster)
    for name in ("x", "y", "z"):
        await join(life, cluster, name)
    assert bound(cluster) == {"a-0", "a-1", "a-2", "x"}
    assert queues_of_records(cluster) == {"a": "vision"}
    assert not cluster.broken


async def test_a_podgroup_that_is_created_again_and_again_obeys_the_limit() -> None:
    """A pod of its first start never ends; each PodGroup has pods of its own."""
    cluster = with_queue(replace(VISION, limits=(("cpu", 6000),)))
    life = await live(cluster)
    cluster.change_pod("a-0", terminating=True)
    for name in ("a-1", "a-2"):
        cluster.delete_pod(name)
    for number in range(3):
        make_again(cluster)
        await join(life, cluster, *(f"b{number}-{i}" for i in range(3)))
    assert bound(cluster) == {"a-0", "b0-0", "b0-1", "b0-2", "b1-0", "b1-1"}
    assert not cluster.broken


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_podgroup_that_is_created_again_replaces_no_member_that_succeeded(
    *, is_kept: bool
) -> None:
    cluster = with_queue()
    life = await live(cluster)
    cluster.change_pod("a-0", phase=Phase.SUCCEEDED)
    add_waiting(cluster)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "b-0"), "the room below the limit that a-0 gave back"
    make_again(cluster)
    if not is_kept:
        cluster.delete_pod("a-0")
    await join(life, cluster, "x", "y")
    assert bound(cluster) >= {"a-1", "a-2", "b-0"}
    assert not {"x", "y"} & bound(cluster)
    assert not cluster.broken


@pytest.mark.parametrize("change", ["group", "role", "pod", "restart"])
async def test_members_that_succeeded_are_written_down_and_nothing_brings_them_back(
    change: str,
) -> None:
    cluster = with_queue()
    life = await live(cluster)
    cluster.change_pod("a-0", phase=Phase.SUCCEEDED)
    add_waiting(cluster)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "b-0")
    started = next(r.record for r in cluster.reservations.values() if r.gang.name == "a")
    assert started is not None
    assert started.succeeded == (("", 1),)
    match change:
        case "group":
            cluster.change_pod("a-0", group="gone")
        case "role":
            cluster.change_pod("a-0", role="other")
        case _:
            cluster.delete_pod("a-0")
            cluster.change_group("a", min_member=2)
    life = await live(cluster, "tutti-1") if change == "restart" else life
    life.watch.catch_up()
    await life.settle()
    cluster.change_group("a", min_member=3)
    await join(life, cluster, "x", "y")
    holders = {key.name for key, pod in cluster.pods.items() if pod.node and not pod.is_over}
    assert holders == {"a-1", "a-2", "b-0"}
    assert not cluster.broken


async def test_with_old_crds_members_that_succeeded_stay_charged() -> None:
    cluster = with_queue()
    cluster.has_old_crds = True
    life = await live(cluster)
    cluster.change_pod("a-0", phase=Phase.SUCCEEDED)
    add_waiting(cluster)
    life.watch.catch_up()
    await life.turn()
    assert not is_bound(cluster, "b-0")
    await life.turn()
    written = cluster.calls.count("amend")
    for _ in range(3):
        life.clock.now += 10.0
        await life.turn()
    assert cluster.calls.count("amend") == written, "it is not written in every cycle"


def with_slot(limit: int) -> FakeCluster:
    """A gang of a worker that waits, and of a driver that comes once the worker runs."""
    cluster = FakeCluster()
    cluster.add_queue(replace(VISION, limits=(("cpu", limit),)))
    made = gang("a").role("worker", 1, 1, cpu=1).role("driver", 1, 0).declaring(cpu=3)
    cluster.add(node("n1", cpu=16), made.needing(2).but(absent_seconds=6000.0))
    cluster.change_group("a", queue="vision")
    return cluster


async def take_turns(life: Life) -> None:
    """Plan and bind; no slot is given back, because too little time passes."""
    life.watch.catch_up()
    for _ in range(3):
        await life.turn()
        life.clock.now += 2.0


def arrive(cluster: FakeCluster, life: Life, name: str, role: str, cpu: int) -> None:
    pod = builders.member(name, builders.shape(cpu=cpu), role=role)
    cluster.add_pod(replace(pod, group="a", created=life.clock.now))


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_member_keeps_the_role_with_which_it_joined(*, is_restarted: bool) -> None:
    """So a tenant makes no extra of a member, and no plan fails because of its label."""
    cluster = with_slot(5000)
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    life = Life(cluster, Clock())
    await take_turns(life)
    cluster.change_pod("a-0", role="driver")
    life = Life(cluster, life.clock, identity="tutti-1") if is_restarted else life
    arrive(cluster, life, "a-driver", "driver", 3)
    await take_turns(life)
    assert is_bound(cluster, "a-driver"), "in its slot"
    standing = reservation(cluster)
    assert standing is not None
    roles = {pod.key.name: dict(standing.roles)[pod.uid] for pod in cluster.pods.values()}
    assert roles == {"a-0": "worker", "a-driver": "driver"}
    cluster.add(gang("b").of(1, cpu=2))
    cluster.change_group("b", queue="vision")
    cluster.add(gang("c").of(1, cpu=1))
    cluster.change_group("c", queue="nlp")
    await take_turns(life)
    assert (is_bound(cluster, "b-0"), is_bound(cluster, "c-0")) == (False, True)
    assert (cluster.broken, life.problems) == ([], [])


async def test_an_older_extra_does_not_take_the_place_of_a_slot() -> None:
    """It joins with the member that takes the slot; the charge rises by what it requests."""
    cluster = with_slot(5000)
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    life = Life(cluster, Clock())
    await take_turns(life)
    cluster.add(node("n2", cpu=2).labelled(zone="b"))
    arrive(cluster, life, "a-driver", "driver", 3)
    size = replace(builders.shape(cpu=1), node_selector=builders.labels(zone="b"))
    elsewhere = builders.member("a-extra", size, role="driver")
    cluster.add_pod(replace(elsewhere, group="a", created=life.clock.now - 60.0))
    cluster.add(gang("c").of(1, cpu=1))
    cluster.change_group("c", queue="nlp")
    await take_turns(life)
    assert bound(cluster) == {"a-0", "a-extra", "a-driver", "c-0"}
    standing = next(r for r in cluster.reservations.values() if r.gang.name == "a")
    first = cluster.pods[PodKey(NAMESPACE, "a-driver")].uid
    assert standing.charged.index(first) == 0
    assert (cluster.broken, life.problems) == ([], [])


async def test_a_template_that_is_raised_while_a_slot_is_open_obeys_the_limit() -> None:
    """No field of a role changes, but a role may be removed and added again."""
    cluster = with_slot(5000)
    life = Life(cluster, Clock())
    await take_turns(life)
    group = cluster.groups[GangKey(NAMESPACE, "a")]
    larger = gang("a").role("driver", 1, 0).declaring(cpu=9).roles
    cluster.change_group("a", roles=(group.roles[0], *larger))
    arrive(cluster, life, "a-driver", "driver", 9)
    await take_turns(life)
    assert bound(cluster) == {"a-0"}
    cluster.delete_pod("a-driver")
    cluster.change_group("a", roles=group.roles)
    arrive(cluster, life, "a-again", "driver", 3)
    await take_turns(life)
    assert bound(cluster) == {"a-0", "a-again"}
    assert (cluster.broken, life.problems) == ([], [])


async def test_no_more_members_take_slots_than_their_role_may_have() -> None:
    cluster = with_slot(9000)
    group = cluster.groups[GangKey(NAMESPACE, "a")]
    worker, driver = sorted(group.roles, key=lambda role: role.name != "worker")
    roles = worker, replace(driver, min_member=2)
    cluster.change_group("a", roles=roles, min_member=3)
    life = Life(cluster, Clock())
    await take_turns(life)
    roles = worker, replace(driver, min_member=1, max_member=1)
    cluster.change_group("a", roles=roles, min_member=2)
    for name in ("a-d1", "a-d2"):
        arrive(cluster, life, name, "driver", 3)
    await take_turns(life)
    assert bound(cluster) == {"a-0", "a-d1"}
    assert (cluster.broken, life.problems) == ([], [])


async def test_members_that_succeeded_beside_a_slot_alone_are_written_down() -> None:
    """And the record counts when the last slot is given back."""
    cluster = FakeCluster()
    cluster.add_queue(replace(VISION, limits=(("cpu", 6000),)))
    made = gang("a").role("worker", 0, 1, cpu=3).declaring(cpu=1).role("driver", 0, 1, cpu=1)
    cluster.add(node("n1", cpu=16), made.needing(4).but(absent_seconds=6000.0))
    cluster.change_group("a", queue="vision")
    cluster.change_pod("a-1", gates=("example.com/quota",))
    life = Life(cluster, Clock())
    await take_turns(life)
    arrive(cluster, life, "a-more", "worker", 1)
    await take_turns(life)
    cluster.change_group("a", min_member=3)
    await take_turns(life)
    for name in ("a-0", "a-more"):
        cluster.change_pod(name, phase=Phase.SUCCEEDED, ended=life.clock.now)
    await take_turns(life)
    standing = reservation(cluster)
    assert standing is not None
    assert standing.record is not None
    assert standing.record.succeeded == (("worker", 2),)
    cluster.change_pod("a-1", gates=())
    cluster.add(gang("b").of(1, cpu=1))
    cluster.change_group("b", queue="vision")
    await take_turns(life)
    assert {"a-1", "b-0"} <= bound(cluster)
    assert (cluster.broken, life.problems) == ([], [])


async def test_a_lost_member_is_replaced_at_the_limit_beside_an_extra_of_another_role() -> None:
    cluster = with_slot(5000)
    life = await live(cluster)
    for name, role, cpu in (("a-driver", "driver", 3), ("a-worker", "worker", 1)):
        arrive(cluster, life, name, role, cpu)
        life.watch.catch_up()
        await life.settle()
    assert bound(cluster) == {"a-0", "a-driver", "a-worker"}
    cluster.change_pod("a-driver", phase=Phase.FAILED, failure="OutOfcpu")
    arrive(cluster, life, "a-more", "worker", 1)
    arrive(cluster, life, "a-again", "driver", 3)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "a-again")
    assert not is_bound(cluster, "a-more")
    assert not cluster.broken


async def test_with_old_crds_a_lost_member_waits_for_no_field_that_is_dropped() -> None:
    """Its repair is not held off while the roles, and the members that succeeded, are not kept."""
    cluster = with_slot(4000)
    cluster.has_old_crds = True
    life = await live(cluster)
    arrive(cluster, life, "a-driver", "driver", 3)
    life.watch.catch_up()
    await life.settle()
    cluster.change_pod("a-driver", phase=Phase.FAILED, failure="OutOfcpu")
    arrive(cluster, life, "a-again", "driver", 3)
    life.watch.catch_up()
    await life.turn()
    await life.turn()
    assert is_bound(cluster, "a-again")


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.SUCCEEDED, None])
async def test_no_pod_is_bound_without_a_record_once_those_of_its_own_podgroup_are_over(
    phase: Phase | None,
) -> None:
    """The record of the PodGroup names none that holds room, and a pod of an earlier one does."""
    cluster = FakeCluster()
    cluster.add_queue(replace(VISION, limits=(("cpu", 4000),)))
    cluster.add(node("n1", cpu=9), gang("a").of(1, cpu=1))
    cluster.change_group("a", queue="vision")
    life = await live(cluster)
    cluster.delete_group("a")
    cluster.add_group(gang("a").needing(1))
    cluster.change_group("a", queue="vision")
    for number in range(3):
        await join(life, cluster, f"x{number}")
        waits = builders.member(f"y{number}", builders.shape(cpu=3))
        cluster.add_pod(replace(waits, group="a", created=life.clock.now))
        life.watch.catch_up()
        await life.settle()
        if phase is None:
            cluster.delete_pod(f"x{number}")
        else:
            cluster.change_pod(f"x{number}", phase=phase)
        life.watch.catch_up()
        life.clock.now += 60.0
        await life.settle()
    holders = {key.name for key, pod in cluster.pods.items() if pod.node and not pod.is_over}
    assert holders == {"a-0", "y0"}
    assert set(queues_of_records(cluster).values()) == {"vision"}
    assert not cluster.broken


async def test_no_two_records_name_one_pod() -> None:
    """A gang gets a record in the cycle in which a record that names one of its pods is missing."""
    cluster = before_queues()
    life = await live(cluster)
    cluster.add_queue(VISION)
    life.watch.catch_up()
    await life.settle()
    cluster.change_pod("a-2", group="c")
    cluster.change_pod("c-0", phase=Phase.SUCCEEDED)
    life.watch.catch_up()
    await life.settle()
    cluster.delete_reservation("a")
    life.watch.catch_up()
    await life.settle()
    named = [uid for standing in cluster.reservations.values() for uid in standing.charged]
    assert len(named) == len(set(named)) == 3


async def test_a_gang_keeps_its_queue_until_its_last_slot_is_given_back() -> None:
    cluster = FakeCluster()
    cluster.add_queue(VISION)
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    driven = gang("a").role("driver", 1, cpu=1).role("worker", 1, 0).declaring(cpu=1).needing(2)
    cluster.add(node("n1", cpu=9), driven.but(absent_seconds=60.0))
    cluster.change_group("a", queue="vision")
    life = Life(cluster, Clock())
    await life.turn()
    cluster.change_pod("a-0", phase=Phase.SUCCEEDED)
    roles = cluster.groups[GangKey(NAMESPACE, "a")].roles
    without = tuple(replace(role, template=None) for role in roles)
    cluster.change_group("a", queue="nlp", roles=without)
    for name, role in (("d", "driver"), ("w", "worker")):
        made = builders.member(name, builders.shape(cpu=1), role=role)
        cluster.add_pod(replace(made, group="a", created=life.clock.now))
    life.watch.catch_up()
    await life.turn()
    assert bound(cluster) == {"a-0"}
    assert "QueueChanges" in {event["reason"] for event in cluster.events.values()}
    life.clock.now += 120.0
    await life.settle()
    assert bound(cluster) == {"a-0", "d", "w"}
    assert queues_of_records(cluster) == {"a": "nlp"}
    assert not cluster.broken


async def test_no_tenant_moves_the_charge_of_a_gang_that_started_beside_pods_that_terminate() -> (
    None
):
    cluster = with_queue(replace(VISION, limits=(("cpu", 6000),)))
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    life = await live(cluster)
    for name in ("a-0", "a-1", "a-2"):
        cluster.change_pod(name, terminating=True)
    make_again(cluster)
    await join(life, cluster, "x", "y", "z")
    assert {"x", "y", "z"} < bound(cluster)
    cluster.change_group("a", queue="nlp")
    for name in ("a-0", "a-1", "a-2"):
        cluster.delete_pod(name)
    life.watch.catch_up()
    await life.settle()
    assert queues_of_records(cluster) == {"a": "vision"}
    cluster.add(gang("b").of(4, cpu=1))
    cluster.change_group("b", queue="vision")
    life.watch.catch_up()
    await life.settle()
    assert bound(cluster) == {"x", "y", "z"}
    assert not cluster.broken


async def test_a_start_anew_does_not_get_the_record_of_an_earlier_start() -> None:
    """While the API server does not delete the Reservation of that start, the gang waits."""
    cluster, clock = with_queue(), Clock()
    life = Life(cluster, clock)
    await life.settle()
    started = record(cluster)
    assert started is not None
    cluster.fault = lambda _at, name: (
        Fault(errors.Unavailable("overloaded", status=503), is_committed=False)
        if name == "release"
        else None
    )
    for name in ("a-0", "a-1", "a-2"):
        cluster.delete_pod(name)
    cluster.add_queue(Queue("nlp", Uid("nlp-1"), limits=(("cpu", 3000),)))
    cluster.change_group("a", queue="nlp")
    for pod in gang("a").of(3, cpu=1).each(created=9.0).made.members:
        cluster.add_pod(replace(pod, uid=Uid(f"{pod.uid}-again")))
    life.watch.catch_up()
    for _ in range(4):
        await life.turn()
        clock.now += 1.0
    assert not is_bound(cluster, "a-0")
    cluster.fault = lambda _at, _name: None
    clock.now += 600.0
    await life.settle()
    assert is_bound(cluster, "a-0")
    again = record(cluster)
    assert again is not None
    assert again.queue == "nlp"
    assert not cluster.broken


async def test_without_queues_no_record_is_kept() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), gang("a").of(3, cpu=1))
    await live(cluster)
    assert not cluster.reservations


async def test_records_go_with_the_last_queue() -> None:
    cluster = with_queue()
    life = await live(cluster)
    assert record(cluster) is not None
    cluster.delete_queue("vision", by_force=True)
    life.watch.catch_up()
    await life.settle()
    assert not cluster.reservations
    assert is_bound(cluster, "a-0")


async def test_the_next_leader_leaves_a_record_as_it_is() -> None:
    cluster = with_queue()
    await live(cluster)
    before, calls = reservation(cluster), len(cluster.calls)
    await live(cluster, "tutti-1")
    assert reservation(cluster) == before
    assert not {"adopt", "amend", "release", "reserve"} & {*cluster.calls[calls:]}


async def test_a_repair_is_written_into_the_reservation_with_the_record() -> None:
    cluster = with_queue()
    life = await live(cluster)
    started, generation = reservation(cluster), 7
    cluster.change_group("a", generation=generation)
    lose_member(cluster)
    life.watch.catch_up()
    life.clock.now += 60.0
    await life.turn()
    assert is_bound(cluster, "a-new")
    await life.settle()
    spent = reservation(cluster)
    assert started is not None
    assert spent is not None
    assert spent.is_spent
    assert (spent.self_uid, spent.record) == (started.self_uid, started.record)
    assert (spent.generation, spent.reserved_at > started.reserved_at) == (generation, True)
    assert cluster.calls.count("reserve") == 1
    assert not cluster.broken


async def test_a_leader_that_was_deposed_meanwhile_binds_nothing_and_leaves_the_record() -> None:
    cluster = with_queue()
    life = await live(cluster)
    started = record(cluster)
    lose_member(cluster)
    life.watch.catch_up()

    def depose(call: str) -> None:
        if call == "read_lease":
            cluster.before = lambda _call: None
            cluster.take_lease("tutti-1")

    cluster.before = depose
    await life.turn()
    assert life.is_deposed
    assert not is_bound(cluster, "a-new")
    assert record(cluster) == started
    await live(cluster, "tutti-2")
    assert is_bound(cluster, "a-new")


async def test_a_stranger_that_fills_the_reservation_is_turned_away_and_the_record_stays() -> None:
    """A leader that lost the Lease, and noticed it after it had written."""
    cluster = with_queue()
    life = await live(cluster)
    standing = reservation(cluster)
    assert standing is not None
    entry = builders.reservation(gang("a").of(1), ("a-0", "n1")).entries
    await cluster.amend(replace(standing, term="a stranger", entries=entry))
    life.watch.catch_up()
    await life.settle()
    assert record(cluster) == standing.record
    assert not cluster.broken


@pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_call_keeps_the_record(*, is_committed: bool) -> None:
    for number in range(CALLS):
        await _crash_at(number, is_committed=is_committed)


async def _crash_at(number: int, *, is_committed: bool) -> None:
    cluster = with_queue()
    cluster.fault = lambda at, _: Fault(Crash(), is_committed) if at == number else None
    for identity in ("tutti-0", "tutti-1"):
        try:
            await live(cluster, identity)
        except Crash:
            continue
    started = record(cluster)
    lose_member(cluster)
    for identity in ("tutti-2", "tutti-3", "tutti-4"):
        try:
            await live(cluster, identity)
        except Crash:
            continue
    assert started is not None
    assert record(cluster) == started
    assert all(is_bound(cluster, name) for name in ("a-0", "a-1", "a-new"))
    assert not cluster.broken


async def test_a_record_that_somebody_deletes_while_its_gang_runs_is_written_again() -> None:
    """A replica of an older version does: it sees a Reservation with nothing left to do."""
    cluster = with_queue()
    life = await live(cluster)
    started = record(cluster)
    cluster.delete_reservation("a")
    life.watch.catch_up()
    add_waiting(cluster)
    await life.settle()
    assert all(is_bound(cluster, f"a-{i}") for i in range(3))
    assert not is_bound(cluster, "b-0"), "a is charged by what its members request"
    assert record(cluster) == started
    for i in range(3):
        cluster.delete_pod(f"a-{i}")
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "b-0")
    assert not cluster.broken


def add_waiting(cluster: FakeCluster) -> None:
    """A gang of one that waits at the limit."""
    cluster.add(gang("b").of(1, cpu=1))
    cluster.change_group("b", queue="vision")


@pytest.mark.parametrize("label", ["", "gone", "c"])
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_tenant_that_changes_labels_of_running_pods_frees_nothing(
    label: str, *, is_restarted: bool
) -> None:
    cluster = with_queue()
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    cluster.add_group(gang("c").needing(1))
    cluster.change_group("c", queue="nlp")
    life = await live(cluster)
    cluster.delete_group("a")
    for i in range(3):
        cluster.change_pod(f"a-{i}", group=label)
    add_waiting(cluster)
    life.watch.catch_up()
    life = await live(cluster, "tutti-1") if is_restarted else life
    await life.settle()
    assert not is_bound(cluster, "b-0")
    cluster.change_pod("a-1", phase=Phase.FAILED)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "b-0"), "its PodGroup is gone, so nothing replaces the lost member"
    for i in range(3):
        cluster.delete_pod(f"a-{i}")
    life.watch.catch_up()
    await life.settle()
    assert len(cluster.reservations) == 1, "the record of a went with its last pod"
    assert not cluster.broken


async def test_a_pod_that_replaces_another_or_joins_is_charged_by_the_record_too() -> None:
    cluster = with_queue(replace(VISION, limits=(("cpu", 4000),)))
    life = await live(cluster)
    lose_member(cluster)
    cluster.add_pod(replace(builders.member("a-more", builders.shape(cpu=1)), group="a"))
    life.watch.catch_up()
    await life.settle()
    standing = reservation(cluster)
    assert standing is not None
    names = ("a-0", "a-1", "a-more", "a-new")  # the last two joined together
    pods = [cluster.pods[PodKey(NAMESPACE, name)] for name in names]
    assert all(pod.node for pod in pods)
    assert standing.charged == tuple(pod.uid for pod in pods), "in the order of their joining"
    for name in names:
        cluster.change_pod(name, group="")
    add_waiting(cluster)
    life.watch.catch_up()
    await life.settle()
    assert not is_bound(cluster, "b-0")


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_an_older_member_that_joins_is_charged_what_it_requests(*, is_deleted: bool) -> None:
    cluster = FakeCluster()
    cluster.add_queue(replace(VISION, limits=(("cpu", 5000),)))
    cluster.add(node("n1", cpu=9), gang("a").of(1, cpu=1).of(1, cpu=3).needing(1))
    cluster.change_group("a", queue="vision")
    cluster.change_pod("a-0", gates=("example.com/quota",))
    life = await live(cluster)
    cluster.change_pod("a-0", gates=())
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "a-0")
    if is_deleted:
        cluster.delete_reservation("a")
    life.watch.catch_up()
    await life.settle()
    standing = reservation(cluster)
    assert standing is not None
    names = {pod.uid: key.name for key, pod in cluster.pods.items()}
    assert [names[uid] for uid in standing.charged] == ["a-1", "a-0"]
    add_waiting(cluster)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "b-0"), "4 of 5 cpu are charged"


async def test_members_that_take_slots_come_first() -> None:
    cluster = FakeCluster()
    cluster.add_queue(replace(VISION, limits=(("cpu", 9000),)))
    driven = gang("a").role("driver", 1, cpu=1).role("worker", 2, 0).declaring(cpu=1).needing(3)
    cluster.add(node("n1", cpu=9), driven.but(absent_seconds=60.0))
    cluster.change_group("a", queue="vision")
    life = Life(cluster, Clock())
    await life.turn()
    refused = Fault(errors.Refused("not now"))
    cluster.fault = lambda _, name: refused if name == "bind" else None
    for name, created in (("w-0", 50.0), ("w-1", 10.0)):
        worker = builders.member(name, builders.shape(cpu=1), role="worker")
        cluster.add_pod(replace(worker, group="a", created=created))
        life.watch.catch_up()
        await life.turn()
    names = {pod.uid: key.name for key, pod in cluster.pods.items()}
    standing = reservation(cluster)
    assert standing is not None
    assert [names[uid] for uid in standing.charged] == ["w-1", "w-0", "a-0"]
    assert {entry.pod.name for entry in standing.entries} == {"w-0", "w-1"}
    cluster.fault = lambda *_: None
    life.clock.now += 60.0
    await life.settle()
    standing = reservation(cluster)
    assert standing is not None
    assert [names[uid] for uid in standing.charged] == ["w-1", "w-0", "a-0"]


def before_queues() -> FakeCluster:
    """Gangs and a pod that run, and no Queue; PodGroups name one that does not exist yet."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=9), gang("a").of(3, cpu=1), gang("c").of(1, cpu=1))
    cluster.change_group("a", queue="vision")
    return cluster


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_gang_that_ran_before_the_first_queue_is_charged_to_one_queue_from_then_on(
    *, is_restarted: bool
) -> None:
    cluster = before_queues()
    life = await live(cluster)
    assert not cluster.reservations
    cluster.add_queue(VISION)
    life.watch.catch_up()
    life = await live(cluster, "tutti-1") if is_restarted else life
    await life.settle()
    assert queues_of_records(cluster) == {"a": "vision", "c": ""}
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    cluster.change_group("a", queue="nlp")
    cluster.change_pod("a-0", group="gone")
    add_waiting(cluster)
    life.watch.catch_up()
    await life.settle()
    assert not is_bound(cluster, "b-0")
    assert queues_of_records(cluster) == {"a": "vision", "c": ""}
    assert cluster.calls.count("reserve") == 4, "two starts and two records"
    assert not cluster.broken


async def test_a_namespace_with_new_labels_moves_the_charge_of_no_gang_that_runs() -> None:
    """Its pods without a PodGroup count in the new default at once, and gangs that start later."""
    cluster = FakeCluster()
    cluster.add_namespace(NAMESPACE, team="vision")
    for name in ("vision", "nlp"):
        default = (Requirement("team", "In", (name,)),)
        cluster.add_queue(
            Queue(name, Uid(f"{name}-1"), limits=(("cpu", 3000),), default_for=default)
        )
    cluster.add(node("n1", cpu=8), gang("a").of(3, cpu=1))
    life = await live(cluster)
    cluster.add_namespace(NAMESPACE, team="nlp")
    cluster.add(gang("b").of(3, cpu=1))
    life.watch.catch_up()
    await life.settle()
    assert queues_of_records(cluster) == {"a": "vision", "b": "nlp"}
    cluster.add_namespace(NAMESPACE, team="vision")
    cluster.add(gang("c").of(1, cpu=1))
    life.watch.catch_up()
    await life.settle()
    assert not is_bound(cluster, "c-0"), "the gang that started first is still charged"
    assert not cluster.broken


@pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])
async def test_after_a_crash_at_any_call_the_missing_records_are_written_once(
    *, is_committed: bool
) -> None:
    for number in range(1, 20):
        cluster = before_queues()
        await live(cluster)
        begun = len(cluster.calls)
        at = begun + number
        cluster.fault = lambda n, _, at=at: Fault(Crash(), is_committed) if n == at else None  # type: ignore[misc]
        cluster.add_queue(VISION)
        for identity in ("tutti-1", "tutti-2"):
            try:
                await live(cluster, identity)
            except Crash:
                continue
        assert queues_of_records(cluster) == {"a": "vision", "c": ""}


async def test_a_record_that_is_refused_stops_nobody_and_is_tried_again() -> None:
    cluster = before_queues()
    life = await live(cluster)
    cluster.add_queue(VISION)
    cluster.fault = lambda _, call: Fault(errors.Refused("no")) if call == "reserve" else None
    life.watch.catch_up()
    await life.turn()
    assert not cluster.reservations
    cluster.fault = lambda _number, _call: None
    life.clock.now += 3600.0
    await life.settle()
    assert record(cluster) is not None


async def test_a_record_that_another_replica_has_written_is_left_as_it_is() -> None:
    cluster = before_queues()
    life = await live(cluster)
    cluster.add_queue(VISION)
    cluster.fault = lambda _, call: Fault(errors.Conflict("no")) if call == "reserve" else None
    life.watch.catch_up()
    await life.turn()
    assert not cluster.reservations
    cluster.fault = lambda _number, _call: None
    await life.settle()
    assert record(cluster) is not None


async def test_what_was_inherited_and_emptied_is_filled_by_strangers_only() -> None:
    """A leader that was deposed sees that it was emptied, and writes once more."""
    cluster = with_queue()
    cluster.fault = lambda _, call: Fault(Crash(), is_committed=False) if call == "bind" else None
    with pytest.raises(Crash):
        await live(cluster)
    cluster.fault = lambda _number, _call: None
    life = Life(cluster, Clock(), identity="tutti-1")
    while record(cluster) is None:
        await life.turn()
    standing, calls = reservation(cluster), len(cluster.calls)
    assert "adopt" in cluster.calls
    assert standing is not None
    entry = builders.reservation(gang("a").of(1), ("a-0", "n1")).entries
    await cluster.amend(replace(standing, term="a stranger", entries=entry))
    life.watch.catch_up()
    await life.settle()
    assert record(cluster) == standing.record
    assert "adopt" not in cluster.calls[calls:]
    assert not cluster.broken
