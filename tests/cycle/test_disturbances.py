"""What happens between two calls of one cycle, or unseen by a watch that lags, breaks nothing."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tutti.commit import binding
from tutti.kube import errors
from tutti.model.cluster import Member, Phase
from tutti.model.keys import GangKey
from tutti.model.shapes import Taint
from tutti.operator import cycle
from tutti.state.pod_index import MOST_LATE

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node, single
from ..harness.fakes import STREAMS, Clock, FakeCluster, Fault, Life
from ..harness.operator_process import SENT
from . import scenarios


def a_life(*parts: builders.NodeBuilder | builders.GangBuilder) -> Life:
    cluster = FakeCluster()
    cluster.add(*parts)
    return Life(cluster, Clock())


def once_before(life: Life, call: str, happens: Callable[[], None], *, is_seen: bool) -> None:
    """Let something happen when a call of that name first reaches the server."""

    def before(name: str) -> None:
        if name == call:
            life.cluster.before = lambda _: None
            happens()
            if is_seen:
                life.watch.catch_up()

    life.cluster.before = before


def take_before_the_first_binding(life: Life, node_name: str) -> None:
    """Let another scheduler use a CPU of a node after the Reservations are written."""
    taken = partial(life.cluster.occupy, node_name, builders.shape(cpu=1).requests)
    once_before(life, "read_lease", taken, is_seen=True)


def condition(life: Life, gang_name: str, kind: str) -> tuple[str, str, str]:
    status = life.cluster.groups[GangKey(NAMESPACE, gang_name)].status
    (line,) = [line for line in status["conditions"] if line["type"] == kind]
    return line["status"], line["reason"], line["message"]


def phase(life: Life, gang_name: str) -> object:
    return life.cluster.groups[GangKey(NAMESPACE, gang_name)].status.get("phase")


def successor(name: str, group: str, **amounts: float) -> Member:
    pod = builders.member(name, builders.shape(**amounts))
    return replace(pod, group=group, created=50.0)


async def test_a_binding_is_logged_with_the_version_up_to_which_bound_pods_are_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    with caplog.at_level(logging.DEBUG):
        await life.turn()
        seen = life.cluster.version
        life.watch.catch_up()
        life.cluster.add(single("later", cpu=1))
        life.watch.catch_up()
        await life.turn()
    lines = (SENT.search(record.message) for record in caplog.records)
    sent = {line["uid"]: int(line["version"]) for line in lines if line}
    bound = {pod.key.name: pod for pod in life.cluster.pods.values() if pod.node is not None}
    assert {bound[name].uid for name in ("a-0", "a-1", "later")} == sent.keys()
    shown = [int(bound[name].version) for name in ("a-0", "a-1")]
    assert sent[bound["a-0"].uid] < min(shown)
    assert sent[bound["later"].uid] == max(shown) <= seen


async def test_a_gang_whose_room_is_taken_before_its_first_binding_is_not_started_in_part() -> None:
    """Others may take room while the Lease is read, or while other gangs are bound."""
    life = a_life(node("n1", cpu=2), node("n2", cpu=2), gang("a").of(2, cpu=2))
    take_before_the_first_binding(life, "n2")
    for _ in range(3):
        await life.turn()
    assert "reserve" in life.cluster.calls
    assert "bind" not in life.cluster.calls
    assert not life.cluster.reservations
    assert phase(life, "a") == "Waiting"


async def test_two_members_do_not_start_on_room_for_one() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=2))
    take_before_the_first_binding(life, "n1")
    for _ in range(3):
        await life.turn()
    assert "bind" not in life.cluster.calls


async def test_a_member_beyond_the_minimum_whose_room_is_taken_keeps_nobody_from_starting() -> None:
    life = a_life(*(node(f"n{i}", cpu=2) for i in range(3)), gang("a").of(3, cpu=2).needing(2))
    take_before_the_first_binding(life, "n1")
    await life.turn()
    nodes = [pod.node for pod in life.cluster.pods.values()]
    assert sorted(node for node in nodes if node is not None) == ["n0", "n2"]


async def test_a_member_of_a_gang_that_runs_starts_without_another_whose_room_is_taken() -> None:
    """Both are beyond the minimum, and in one Reservation."""
    runs = gang("a").of(2, cpu=2).bound_on("n0", "n1").needing(2)
    life = a_life(*(node(f"n{i}", cpu=2) for i in range(4)), runs)
    for name in ("a-8", "a-9"):
        life.cluster.add_pod(successor(name, "a", cpu=2))
    life.watch.catch_up()
    take_before_the_first_binding(life, "n2")
    await life.turn()
    nodes = [pod.node for pod in life.cluster.pods.values() if pod.node is not None]
    assert sorted(nodes) == ["n0", "n1", "n3"]
    for _ in range(2):
        await life.turn()
    assert not life.cluster.reservations


async def test_a_driver_does_not_start_if_the_room_of_its_executors_is_taken_before() -> None:
    workers = gang("a").role("driver", 1, cpu=1).role("worker", 2, 0).declaring(cpu=2).needing(3)
    life = a_life(node("n1", cpu=1), node("n2", cpu=4), workers)
    take_before_the_first_binding(life, "n2")
    for _ in range(3):
        await life.turn()
    assert "reserve" in life.cluster.calls
    assert "bind" not in life.cluster.calls


async def test_a_gang_is_reserved_first_then_bound_then_nothing_is_held() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    await life.turn()
    first, last = life.cluster.calls[:4], life.cluster.calls[4:]
    assert first == ["reserve", "read_lease", "bind", "bind"]
    assert sorted(last) == ["release", "write_status"], "nobody's node waits for any of these"
    scenarios.assert_promises(life.cluster)
    assert phase(life, "a") == "Bound"


async def test_a_member_deleted_before_the_first_bind_gives_the_room_back() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    once_before(life, "reserve", lambda: life.cluster.delete_pod("a-1"), is_seen=True)
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "a") == []
    assert phase(life, "a") == "Waiting"


async def test_nothing_is_bound_while_the_watch_is_late_by_our_own_bindings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "WAIT_SECONDS", 0.05)
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    await life.cycle.begin(life.term)
    await life.cycle.run_once(life.term)  # bound, and not shown
    life.cluster.occupy("n1", builders.resources(cpu=2))
    life.cluster.add(gang("b").of(2, cpu=1))
    life.watch.catch_up("pending", "groups")
    life.clock.now += 1.0
    turn = asyncio.create_task(life.cycle.run_once(life.term))
    for _ in range(3):
        await asyncio.wait([turn], timeout=0.1)
        assert life.cluster.calls.count("bind") == 2
    life.watch.catch_up()
    await turn
    assert life.cluster.calls.count("bind") == 2
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "b") == []


async def test_a_binding_that_is_never_shown_holds_up_the_next_for_a_while_only() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    await life.cycle.begin(life.term)
    await life.cycle.run_once(life.term)
    life.cluster.add(gang("b").of(2, cpu=1))
    life.watch.catch_up("pending", "groups", "reservations")
    life.clock.now += 1.0
    assert await life.cycle.run_once(life.term) == cycle.NEXT_SECONDS
    assert life.cluster.calls.count("bind") == 2
    life.clock.now += MOST_LATE
    await life.cycle.run_once(life.term)
    assert life.cluster.calls.count("bind") == 4


async def test_bindings_in_line_are_left_to_the_next_cycle_once_the_watch_is_late() -> None:
    life = a_life(node("n1", cpu=99), node("n2", cpu=99), gang("a").of(150, cpu=1))
    await life.cycle.begin(life.term)

    def later(name: str) -> None:
        life.clock.now += 0.01 if name == "bind" else 0.0

    life.cluster.before = later
    assert await life.cycle.run_once(life.term) == cycle.NEXT_SECONDS
    assert life.cluster.calls.count("bind") == 2 * 64  # so many are sent at a time
    life.cluster.before = lambda _: None
    life.watch.catch_up()
    await life.settle()
    assert len(scenarios.places(life.cluster, "a")) == 150


async def test_room_taken_after_the_last_look_at_all_of_it_gets_no_binding() -> None:
    life = a_life(node("n1", cpu=2), gang("a").of(2, cpu=1))
    requests = builders.resources(cpu=2)
    once_before(life, "read_lease", lambda: life.cluster.occupy("n1", requests), is_seen=True)
    await life.turn()
    assert "bind" not in life.cluster.calls
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert life.cluster.reservations == {}
    assert phase(life, "a") == "Waiting"


async def test_a_member_deleted_while_others_are_bound_is_said_and_replaced() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    once_before(life, "bind", lambda: life.cluster.delete_pod("a-1"), is_seen=False)
    await life.settle()
    assert condition(life, "a", "Healthy")[:2] == ("False", "MemberLost")
    assert life.cluster.reservations == {}
    life.cluster.add_pod(successor("a-9", "a", cpu=1))
    life.watch.catch_up()
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert condition(life, "a", "Healthy")[0] == "True"


TROUBLES = {
    "cordoned": lambda cluster: cluster.change_node("n1", unschedulable=True),
    "not ready": lambda cluster: cluster.change_node("n1", ready=False),
    "tainted": lambda cluster: cluster.change_node("n1", taints=(Taint("k", "v", "NoSchedule"),)),
    "deleted": lambda cluster: cluster.delete_node("n1"),
    "full": lambda cluster: cluster.occupy("n1", builders.resources(cpu=2)),
    "shrunk": lambda cluster: cluster.change_node("n1", allocatable=builders.resources(cpu=1)),
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_node_lost_between_reserve_and_bind_is_planned_around(trouble: str) -> None:
    life = a_life(node("n1", cpu=2), node("n2", cpu=4), gang("a").of(2, cpu=1))
    once_before(life, "reserve", lambda: TROUBLES[trouble](life.cluster), is_seen=True)
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "a") == ["n2", "n2"]
    assert "release" in life.cluster.calls


async def test_gangs_of_one_are_not_bound_into_room_that_went_while_others_were_reserved() -> None:
    life = a_life(node("n1", cpu=2), gang("a").of(1, cpu=1), single("s", cpu=1), single("t", cpu=1))
    taken = builders.resources(cpu=1)
    once_before(life, "reserve", lambda: life.cluster.occupy("n1", taken), is_seen=True)
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.admitted(life.cluster) == {0: 1000}


async def test_two_gangs_of_one_do_not_share_the_room_that_is_left_for_one() -> None:
    life = a_life(node("n1", cpu=2), gang("a").of(1, gpu=1), single("s", cpu=1), single("t", cpu=1))
    life.cluster.add(node("n2", cpu=1, gpu=1))
    life.watch.catch_up()
    taken = builders.resources(cpu=1)
    once_before(life, "reserve", lambda: life.cluster.occupy("n1", taken), is_seen=True)
    await life.settle()
    assert life.cluster.broken == []


@pytest.mark.parametrize("call", ["reserve", "bind", "release", "write_status"])
@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_pod_group_deleted_in_the_middle_leaves_nothing_behind(
    call: str, *, is_seen: bool
) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(3, cpu=1))
    once_before(life, call, lambda: life.cluster.delete_group("a"), is_seen=is_seen)
    await life.settle()
    assert life.cluster.reservations == {}
    assert len(scenarios.places(life.cluster, "a")) in (0, 3)
    life.cluster.collect()
    await life.settle()
    assert life.cluster.broken == []


@pytest.mark.parametrize("status", [0, 503])
async def test_reports_are_made_though_what_has_ended_cannot_be_cleared_away_meanwhile(
    status: int,
) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    away = Fault(errors.Unavailable("away.", status=status))
    life.cluster.fault = lambda _, name: away if name == "release" else None
    if status:
        await life.turn()
    else:
        with pytest.raises(errors.Unavailable, match="away"):
            await life.cycle.run_once(life.term)
    assert phase(life, "a") == "Bound"
    assert len(life.cluster.reservations) == 1
    life.cluster.fault = lambda *_: None
    await life.settle()
    scenarios.assert_promises(life.cluster)


async def test_a_bug_in_the_reports_is_not_hidden_by_a_server_that_goes_away_meanwhile() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    faults = {"write_status": Fault(ValueError("a bug")), "release": Fault(errors.Unavailable("-"))}
    life.cluster.fault = lambda _, name: faults.get(name)
    with pytest.raises(ValueError, match="a bug"):
        await life.cycle.run_once(life.term)


async def test_the_pods_of_a_deleted_pod_group_wait_and_say_so() -> None:
    life = a_life(node("n1", cpu=1), gang("a").of(3, cpu=1))
    await life.settle()
    life.cluster.delete_group("a")
    life.watch.catch_up()
    await life.settle()
    reasons = {pod.scheduled_condition.reason for pod in scenarios.members(life.cluster, "a")}
    assert reasons == {"PodGroupNotFound"}


@pytest.mark.parametrize("is_swapped", [True, False], ids=["late delete", "in order"])
async def test_a_pod_group_recreated_under_its_name_takes_the_bound_pods_over(
    *, is_swapped: bool
) -> None:
    made = gang("a").of(2, cpu=1)
    life = a_life(node("n1", cpu=4), made)
    await life.settle()
    known = life.cluster.groups[GangKey(NAMESPACE, "a")]
    life.cluster.delete_group("a")
    life.cluster.add_group(made)
    if is_swapped:  # kopf tells of different objects in any order
        life.cluster.log[-2:] = reversed(life.cluster.log[-2:])
    life.watch.catch_up()
    calls = life.cluster.calls.count("bind")
    await life.settle()
    assert life.cluster.groups[GangKey(NAMESPACE, "a")].uid != known.uid
    assert phase(life, "a") == "Bound"
    assert life.cluster.calls.count("bind") == calls


async def test_a_pod_group_recreated_while_reserved_is_planned_again() -> None:
    made = gang("a").of(2, cpu=1)
    life = a_life(node("n1", cpu=4), made)

    def recreate() -> None:
        life.cluster.delete_group("a")
        life.cluster.add_group(made)

    once_before(life, "reserve", recreate, is_seen=True)
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert life.cluster.calls.count("reserve") == 2
    assert phase(life, "a") == "Bound"


@pytest.mark.parametrize(("call", "is_seen"), [("reserve", True), ("bind", False), ("bind", True)])
async def test_a_pod_relabelled_while_reserved_starts_no_half_gang_unsaid(
    call: str, *, is_seen: bool
) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    once_before(life, call, lambda: life.cluster.change_pod("a-1", group="b"), is_seen=is_seen)
    await life.settle()
    assert life.cluster.broken == []
    assert life.cluster.reservations == {}
    if scenarios.half_bound(life.cluster):
        assert condition(life, "a", "Healthy")[0] == "False"
    else:
        assert scenarios.places(life.cluster, "a") == []


async def test_a_pod_changed_while_it_is_bound_is_bound_at_the_next_look() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    once_before(life, "bind", lambda: life.cluster.change_pod("a-1", role="x"), is_seen=False)
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert len(scenarios.places(life.cluster, "a")) == 2


@pytest.mark.parametrize("change", [{"terminating": True}, {"gates": ("hold",)}])
async def test_a_member_that_can_no_longer_be_bound_keeps_no_room(change: dict[str, bool]) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    once_before(life, "bind", lambda: life.cluster.change_pod("a-1", **change), is_seen=False)
    await life.settle()
    assert life.cluster.reservations == {}
    assert condition(life, "a", "Healthy")[0] == "False"


@pytest.mark.parametrize("lagging", STREAMS)
async def test_a_stream_that_lags_lets_no_room_be_used_twice(lagging: str) -> None:
    life = a_life(
        node("n1", cpu=4), gang("a").of(2, cpu=1), gang("b").of(2, cpu=1), single("s", cpu=1)
    )
    for name in ("c", "d"):
        for _ in range(3):
            await life.cycle.run_once(life.term)
        life.watch.catch_up(*(stream for stream in STREAMS if stream != lagging))
        life.cluster.add(gang(name).of(2, cpu=1).priority(9))
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert len([pod for pod in life.cluster.pods.values() if pod.node]) == 4


async def test_a_binding_whose_answer_was_lost_holds_its_room_until_it_is_known() -> None:
    life = a_life(node("n1", cpu=1), single("s", cpu=1), single("t", cpu=1))
    away = Fault(errors.Unavailable("away.", status=500), is_committed=True)
    life.cluster.fault = lambda _, name: away if name in ("bind", "read_member") else None
    for _ in range(4):
        await life.cycle.run_once(life.term)
    assert life.cluster.calls.count("bind") == 1
    life.cluster.fault = lambda _number, _name: None
    await life.settle()
    scenarios.assert_promises(life.cluster)


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "in a gap"])
async def test_a_pod_bound_and_deleted_leaves_no_ghost(*, is_told: bool) -> None:
    life = a_life(node("n1", cpu=1), single("s", cpu=1))
    await life.cycle.run_once(life.term)
    life.cluster.delete_pod("s")
    if is_told:
        life.watch.catch_up("bound")  # and the pending pods' stream still shows it
    else:
        life.watch.relist()
    assert life.state.snapshot(0.0).gangs == ()
    assert life.state.snapshot(0.0).nodes[0].used == builders.resources()


async def test_a_conflict_answered_after_the_pod_was_bound_and_deleted_leaves_no_ghost() -> None:
    life = a_life(node("n1", cpu=1), single("s", cpu=1))
    lost = Fault(errors.Conflict("already bound.", status=409), is_committed=True)
    life.cluster.fault = lambda _, name: lost if name == "bind" else None

    def before(name: str) -> None:
        if name == "read_member":
            life.watch.catch_up()

    life.cluster.before = before
    await life.cycle.run_once(life.term)
    life.cluster.delete_pod("s")
    life.watch.catch_up()
    assert life.state.snapshot(0.0).gangs == ()
    assert life.state.snapshot(0.0).nodes[0].used == builders.resources()


async def test_a_refused_reservation_is_said_and_asked_for_again_in_time() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1), gang("b").of(2, cpu=1))
    uid = life.cluster.groups[GangKey(NAMESPACE, "a")].uid
    refused = Fault(errors.Refused("etcdserver: request is too large", status=500))
    life.cluster.fault = lambda _, name: refused if name == "reserve" else None
    for _ in range(3):
        await life.turn()
        life.clock.now += 2.0
    assert life.cluster.calls.count("reserve") == 4  # two of each gang, one after the other
    answer = condition(life, "a", "Reserved")
    assert answer[:2] == ("False", "Refused")
    assert "too large" in answer[2]
    life.cluster.fault = lambda _number, _name: None
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert len(scenarios.places(life.cluster, "a")) == 2
    assert uid == life.cluster.groups[GangKey(NAMESPACE, "a")].uid


async def test_a_refused_binding_is_said_and_not_asked_for_again_at_once() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1), single("s", cpu=1))
    refused = Fault(errors.Refused("a webhook says no.", status=403))
    life.cluster.fault = lambda _, name: refused if name == "bind" else None
    for _ in range(4):
        await life.turn()
        life.clock.now += 2.0
    assert life.cluster.calls.count("bind") == 6  # each pod was asked for twice, and then no more
    held, reason, sentence = condition(life, "a", "Reserved")
    assert (held, reason) == ("False", "Refused")
    assert "a webhook says no" in sentence
    assert life.problems == []
    life.cluster.fault = lambda _number, _name: None
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert phase(life, "a") == "Bound"


async def test_one_gang_whose_status_is_refused_does_not_silence_the_others() -> None:
    life = a_life(
        node("n1", cpu=1),
        gang("a").of(2, cpu=1),
        gang("b").of(2, cpu=1),
        gang("c").of(1, cpu=1),
    )
    first: list[int] = []

    def fault(number: int, name: str) -> Fault | None:
        if name == "write_status" and not first:
            first.append(number)
        refuses = Fault(errors.Refused("invalid", status=422))
        return refuses if name == "write_status" and number == first[0] else None

    life.cluster.fault = fault
    await life.turn()
    told = [group.key.name for group in life.cluster.groups.values() if group.status]
    assert len(told) == 2
    assert life.problems == []
    await life.settle()
    assert all(group.status for group in life.cluster.groups.values())


async def test_a_webhook_that_breaks_one_binding_does_not_hold_up_other_gangs() -> None:
    life = a_life(node("n1", cpu=4), single("bad", cpu=1), gang("b").of(2, cpu=1))
    broken = Fault(errors.Unavailable("failed calling webhook", status=500))
    first: list[int] = []

    def fault(number: int, name: str) -> Fault | None:
        if name == "bind" and not first:
            first.append(number)
        return broken if first == [number] else None

    life.cluster.fault = fault
    await life.cycle.run_once(life.term)
    assert life.cluster.calls.count("bind") == 3
    assert phase(life, "b") is not None
    await life.settle()
    scenarios.assert_promises(life.cluster)


async def test_a_reservation_stands_while_one_of_its_bindings_keeps_failing() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(3, cpu=1))
    broken = Fault(errors.Unavailable("failed calling webhook", status=500))
    binds: list[int] = []

    def fault(number: int, name: str) -> Fault | None:
        if name == "bind":
            binds.append(number)
        return broken if name == "bind" and len(binds) >= 3 else None

    life.cluster.fault = fault
    for _ in range(5):
        await life.turn()
    assert len(life.cluster.reservations) == 1
    assert len(binds) == 4, "what failed is asked once more, and not in every cycle"
    assert condition(life, "a", "Bound")[:2] == ("False", "Refused")
    life.cluster.fault = lambda _number, _name: None
    life.clock.now += 60
    await life.settle()
    assert phase(life, "a") == "Bound"
    scenarios.assert_promises(life.cluster)


def minimum_raised(life: Life) -> None:
    group = life.cluster.groups[GangKey(NAMESPACE, "a")]
    life.cluster._put_group(replace(group, min_member=3))


def group_deleted_in_the_foreground(life: Life) -> None:
    group = life.cluster.groups[GangKey(NAMESPACE, "a")]
    life.cluster._put_group(replace(group, terminating=True))


def driver_made_a_worker(life: Life) -> None:
    life.cluster.change_pod("a-0", role="worker")


@pytest.mark.parametrize(
    "change", [minimum_raised, group_deleted_in_the_foreground, driver_made_a_worker]
)
async def test_a_reservation_that_no_longer_makes_its_gang_whole_is_released(
    change: Callable[[Life], None],
) -> None:
    life = a_life(node("n1", cpu=8), gang("a").role("driver", 1, cpu=1).role("worker", 1, cpu=1))
    away = Fault(errors.Unavailable("connection refused."))
    life.cluster.fault = lambda _number, name: away if name == "bind" else None
    await life.turn()
    assert len(life.cluster.reservations) == 1
    life.cluster.fault = lambda _number, _name: None
    change(life)
    again = Life(life.cluster, life.clock)
    await again.settle()
    assert scenarios.places(again.cluster, "a") == []
    assert again.cluster.reservations == {}


async def test_a_server_that_is_away_is_not_asked_for_everything() -> None:
    life = a_life(node("n1", cpu=100), *(single(f"s{i}", cpu=1) for i in range(100)))
    away = Fault(errors.Unavailable("connection refused."))
    life.cluster.fault = lambda _number, _name: away
    with pytest.raises(errors.Unavailable):
        await life.cycle.run_once(life.term)
    assert len(life.cluster.calls) <= 32


async def test_a_finished_gang_stays_finished_while_its_pods_are_cleared_away() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    await life.settle()
    life.cluster.run_pods(Phase.SUCCEEDED)
    life.watch.catch_up()
    await life.settle()
    assert phase(life, "a") == "Finished"
    for name in ("a-0", "a-1"):
        life.cluster.delete_pod(name)
        life.watch.catch_up()
        await life.settle()
        assert phase(life, "a") == "Finished"
    again = gang("a").of(2, cpu=1).made
    for member in again.members:
        life.cluster.add_pod(member)
    life.watch.catch_up()
    await life.settle()
    assert phase(life, "a") == "Bound"


async def test_a_gang_whose_members_have_all_failed_waits_and_says_so() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1))
    await life.settle()
    life.cluster.run_pods(Phase.FAILED)
    life.watch.catch_up()
    await life.settle()
    life.clock.now += 100.0
    await life.settle()
    assert phase(life, "a") == "Waiting"
    assert "failed" in condition(life, "a", "Reserved")[2]


def happen(life: Life, chance: random.Random) -> None:
    """Let one thing happen, or be seen, or nothing."""
    cluster = life.cluster
    pods = [pod.key.name for pod in cluster.pods.values()]
    nodes = [name for name in cluster.nodes if name != "n1"]
    group = chance.choice("abc")
    things: list[Callable[[], None]] = [
        lambda: cluster.add_pod(successor(f"{group}-{cluster.version}", group, cpu=1)),
        lambda: life.watch.catch_up(chance.choice(STREAMS), events=chance.randrange(1, 4)),
        life.watch.catch_up,
        life.watch.relist,
    ]
    if pods:
        things.append(lambda: cluster.delete_pod(chance.choice(pods)))
        things.append(lambda: cluster.change_pod(chance.choice(pods), group=group))
    if nodes:
        things.append(lambda: cluster.delete_node(chance.choice(nodes)))
        is_cordoned = chance.random() < 0.5
        things.append(lambda: cluster.change_node(chance.choice(nodes), unschedulable=is_cordoned))
    if chance.random() < 0.6:
        chance.choice(things)()


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_happens_in_whatever_order_ends_well(seed: int) -> None:
    chance = random.Random(seed)
    life = a_life(
        node("n1", cpu=4),
        node("n2", cpu=4),
        node("n3", cpu=2),
        gang("a").of(3, cpu=1),
        gang("b").of(3, cpu=2).priority(3),
        gang("c").of(4, cpu=1).needing(3),
        single("s", cpu=2),
    )
    cluster = life.cluster
    cluster.before = lambda _: happen(life, chance)
    for _ in range(8):
        await life.turn()
    cluster.before = lambda _: None
    life.watch.catch_up()
    await life.settle()
    assert cluster.broken == []
    assert cluster.reservations == {}
    for key in scenarios.half_bound(cluster):
        assert condition(life, key.name, "Healthy")[0] == "False"
    assert picture(life) == picture(Life(cluster, life.clock))


def picture(life: Life) -> list[str]:
    """What a World shows, in lines that are easy to compare."""
    seen = life.state.snapshot(0.0)
    # Of a gang of which nothing lives, a World that has said all shows no more.
    gangs = [gang for gang in seen.gangs if not gang.is_idle]
    members = [str(m) for gang in gangs for m in (replace(gang, members=()), *gang.members)]
    return [*members, *map(str, seen.strays), *map(str, seen.nodes), *map(str, seen.reservations)]
