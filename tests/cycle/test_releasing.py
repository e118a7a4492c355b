"""A gang that is given up for now: what is written, in which order, and what a crash leaves."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tutti.kube import errors
from tutti.model.cluster import OnPartial
from tutti.model.keys import GangKey
from tutti.model.owners import Owner

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life

SET = Owner("ReplicaSet", "a", "apps")
JOB = Owner("Job", "a", "batch")
KEY = (NAMESPACE, "a")
moments = pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])


def lost_one(owner: Owner = SET) -> FakeCluster:
    """Two of three are bound, the third was lost, and there is no room for its successor."""
    cluster = FakeCluster()
    asked = gang("a").of(3, cpu=2).bound_on("n1", "n1", "n2").each(owner=owner)
    cluster.add(node("n1", cpu=4), node("n2", cpu=2), asked)
    cluster.change_group("a", on_partial=OnPartial.RELEASE)
    cluster.delete_pod("a-2")
    cluster.change_node("n2", unschedulable=True)
    successor = builders.member("a-3", builders.shape(cpu=2))
    cluster.add_pod(replace(successor, group="a", created=9.0, owner=owner))
    return cluster


def dying_at(number: int, *, is_committed: bool) -> Callable[[int, str], Fault | None]:
    return lambda at, _: Fault(Crash(), is_committed) if at == number else None


def terminating(cluster: FakeCluster) -> list[str]:
    return sorted(pod.key.name for pod in cluster.pods.values() if pod.terminating)


def calls(cluster: FakeCluster, name: str) -> int:
    return cluster.calls.count(name)


def reserved_message(cluster: FakeCluster) -> str:
    lines = cluster.groups[GangKey(NAMESPACE, "a")].status["conditions"]
    return next(str(line["message"]) for line in lines if line["type"] == "Reserved")


async def live(cluster: FakeCluster, clock: Clock | None = None) -> None:
    """Cycle until nothing is left to do but wait."""
    life = Life(cluster, clock or Clock())
    for _ in range(6):
        await life.turn()


async def test_it_is_written_down_and_said_before_the_first_pod_goes() -> None:
    cluster = lost_one()
    await live(cluster)
    assert terminating(cluster) == ["a-0", "a-1"]
    first = cluster.calls.index("evict")
    assert cluster.calls.index("reserve") < cluster.calls.index("read_lease") < first
    assert cluster.calls.index("say") < first
    assert [event["reason"] for event in cluster.events.values()].count("Released") == 1
    assert not cluster.reservations, "it is done once all are on their way out"


async def test_the_gang_starts_again_whole_once_there_is_room() -> None:
    cluster = lost_one()
    await live(cluster)
    for name in ("a-0", "a-1"):
        cluster.delete_pod(name)
        again = builders.member(f"{name}-again", builders.shape(cpu=2))
        cluster.add_pod(replace(again, group="a", created=20.0, owner=SET))
    await live(cluster)
    assert not any(pod.node for pod in cluster.pods.values()), "two would fit, and three are needed"
    cluster.change_node("n2", unschedulable=False)
    await live(cluster)
    assert all(pod.node for pod in cluster.pods.values())
    assert calls(cluster, "evict") == 2
    assert not cluster.broken


@moments
async def test_a_crash_at_any_call_evicts_the_same_pods_and_leaves_nothing_behind(
    *, is_committed: bool
) -> None:
    whole = lost_one()
    await live(whole)
    for number in range(1, len(whole.calls) + 1):
        cluster, clock = lost_one(), Clock()
        cluster.fault = dying_at(number, is_committed=is_committed)
        with pytest.raises(Crash):
            await live(cluster, clock)
        await live(cluster, clock)
        assert terminating(cluster) == ["a-0", "a-1"], number
        assert not cluster.reservations
        assert calls(cluster, "evict") <= 3


@pytest.mark.parametrize("left", [3, None])
async def test_a_job_that_stands_it_is_released(left: int | None) -> None:
    cluster = lost_one(JOB)
    cluster.put_job("a", left)
    await live(cluster)
    assert terminating(cluster) == ["a-0", "a-1"]


@pytest.mark.parametrize("left", [None, 2], ids=["unreadable", "near its limit"])
async def test_a_job_that_would_fail_is_spared_and_asked_again_later(left: int | None) -> None:
    cluster, clock = lost_one(JOB), Clock()
    if left is not None:
        cluster.put_job("a", left)
    life = Life(cluster, clock)
    for _ in range(4):
        due = await life.turn()
    assert not terminating(cluster)
    assert calls(cluster, "read_job") == 1, "not in every cycle"
    assert "but not yet: Job a" in reserved_message(cluster)
    assert due is not None
    assert not calls(cluster, "reserve")
    cluster.put_job("a", 3)
    clock.now += 30.0
    for _ in range(4):
        await life.turn()
    assert terminating(cluster) == ["a-0", "a-1"]


async def test_a_job_that_is_not_asked_about_any_more_makes_no_cycle_due() -> None:
    """Two gangs are spared; one is completed, and the other goes on waiting."""
    cluster, clock = lost_one(JOB), Clock()
    cluster.put_job("a", 2)
    cluster.put_job("b", 2)
    owner = Owner("Job", "b", "batch")
    other = gang("b").of(3, cpu=2).bound_on("n3", "n3", "n4").each(owner=owner)
    cluster.add(node("n3", cpu=4), node("n4", cpu=2), other)
    cluster.change_group("b", on_partial=OnPartial.RELEASE)
    cluster.change_node("n4", unschedulable=True)
    cluster.delete_pod("b-2")
    successor = builders.member("b-3", builders.shape(cpu=2))
    cluster.add_pod(replace(successor, group="b", created=9.0, owner=owner))
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    assert calls(cluster, "read_job") == 2
    cluster.change_node("n2", unschedulable=False)
    for _ in range(3):
        await life.turn()
    clock.now += 31.0
    assert [await life.turn() for _ in range(3)] == [30.0, 30.0, 30.0]
    assert calls(cluster, "read_job") == 3, "of the one that waits"


async def test_a_job_that_has_failed_more_since_is_spared_at_the_last_moment() -> None:
    cluster = lost_one(JOB)
    cluster.put_job("a", 3)

    def fail(call: str) -> None:
        if call == "reserve":
            cluster.put_job("a", 0)

    cluster.before = fail
    await live(cluster)
    assert not terminating(cluster)
    assert not cluster.reservations
    assert calls(cluster, "reserve") == 1
    assert "but not yet: Job a" in reserved_message(cluster)


Change = Callable[[FakeCluster], object]
CHANGES: dict[str, Change] = {
    "the user thinks better of it": lambda c: c.change_group("a", on_partial=OnPartial.COMPLETE),
    "the gang needs no more than it has": lambda c: c.change_group("a", min_member=2),
    "the PodGroup is deleted": lambda c: c.delete_group("a"),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_an_eviction_that_a_dead_leader_left_is_dropped_if_it_makes_no_sense(
    what: str,
) -> None:
    cluster, clock = lost_one(), Clock()
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    cluster.fault = lambda _, __: None
    assert cluster.reservations
    CHANGES[what](cluster)
    await live(cluster, clock)
    assert not terminating(cluster)
    assert not cluster.reservations


async def test_a_pod_that_left_by_itself_is_no_problem() -> None:
    cluster = lost_one()

    def leave(call: str) -> None:
        if call == "evict" and len(cluster.pods) == 3:
            cluster.delete_pod("a-1")

    cluster.before = leave
    await live(cluster)
    assert terminating(cluster) == ["a-0"]
    assert not cluster.reservations


@pytest.mark.parametrize("call", ["read_job", "say", "evict", "reserve"])
@pytest.mark.parametrize("status", [0, 500])
async def test_a_call_without_an_answer_is_made_again(call: str, status: int) -> None:
    cluster = lost_one(JOB)
    cluster.put_job("a", 3)
    clock = Clock()
    failed: list[str] = []

    def fault(_at: int, name: str) -> Fault | None:
        if name != call or failed:
            return None
        failed.append(name)
        return Fault(errors.Unavailable("away.", status=status))

    cluster.fault = fault
    await live(cluster, clock)
    clock.now += 60.0
    await live(cluster, clock)
    assert failed
    assert terminating(cluster) == ["a-0", "a-1"]
    assert not cluster.reservations


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_eviction_that_is_refused_in_other_words_concerns_that_pod_alone(
    status: int,
) -> None:
    cluster, clock = lost_one(), Clock()
    refused = Fault(errors.Unavailable("a webhook says: not now", status=status))
    cluster.fault = lambda _, name: refused if name == "evict" else None
    cluster.add(gang("new").of(2, cpu=64))
    life = Life(cluster, clock)
    for _ in range(5):
        await life.turn()
    assert not life.problems
    assert calls(cluster, "evict") == 2, "not in every cycle"
    assert cluster.groups[GangKey(NAMESPACE, "new")].status, "others are told why they wait"
    cluster.fault = lambda _, __: None
    clock.now += 30.0
    for _ in range(3):
        await life.turn()
    assert terminating(cluster) == ["a-0", "a-1"]
