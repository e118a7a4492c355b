"""PodGroups that are used again: the next run starts whole, and a run that is ending is whole."""

from dataclasses import replace

import pytest

from tutti.kube import errors
from tutti.model.cluster import Phase
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.owners import Owner

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Fault, Life
from . import scenarios

ENDS = pytest.mark.parametrize("is_known", [True, False], ids=["", "nobody-knows-when-it-ended"])
RUNS = pytest.mark.parametrize("is_bare", [True, False], ids=["bare", "job"])


def job(number: int) -> Owner:
    return Owner("Job", f"a-{number}", "batch", Uid(f"job-{number}"))


def make(life: Life, number: int, count: int, *, is_bare: bool, first: int = 0) -> list[str]:
    """Make the pods of one run, as a Job would, or by hand."""
    names = [f"run-{number}-{i}" for i in range(first, first + count)]
    for name in names:
        new_pod = builders.member(name, builders.shape(cpu=1))
        owner = None if is_bare else job(number)
        life.cluster.add_pod(replace(new_pod, group="a", created=life.clock.now, owner=owner))
    life.watch.catch_up()
    return names


def end(life: Life, *names: str, is_known: bool = True) -> None:
    life.clock.now += 10.0
    for name in names:
        ended = life.clock.now if is_known else None
        life.cluster.change_pod(name, phase=Phase.SUCCEEDED, ended=ended)
    life.watch.catch_up()
    life.clock.now += 10.0


def bound(life: Life, *names: str) -> list[bool]:
    pods = {pod.key.name: pod for pod in life.cluster.pods.values()}
    return [pods[name].node is not None for name in names]


def status(life: Life) -> tuple[str, int, int]:
    group_status = life.cluster.groups[GangKey(NAMESPACE, "a")].status
    members = group_status["members"]
    return group_status["phase"], members["bound"], members["succeeded"]


async def first_run(*, is_bare: bool) -> tuple[Life, list[str]]:
    """Four members that run."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4))
    cluster.add_group(gang("a").needing(4).but(created=1_000.0))
    life = Life(cluster, Clock())
    names = make(life, 1, 4, is_bare=is_bare)
    await life.settle()
    assert bound(life, *names) == [True] * 4
    return life, names


async def second_run_is_whole_or_nothing(life: Life, *, is_bare: bool) -> list[str]:
    """Four members more, first with room for two."""
    room = builders.resources(cpu=2, pods=110)
    life.cluster.change_node("n1", allocatable=room)
    names: list[str] = []
    for i in range(4):
        names += make(life, 2, 1, is_bare=is_bare, first=i)
        await life.settle()
        assert bound(life, *names) == [False] * len(names)
        assert status(life) == ("Waiting", 0, 0)
    life.cluster.change_node("n1", allocatable=builders.resources(cpu=4, pods=110))
    life.watch.catch_up()
    await life.settle()
    assert bound(life, *names) == [True] * 4
    scenarios.assert_promises(life.cluster)
    return names


@RUNS
@ENDS
@pytest.mark.parametrize("cleared", [0, 3, 4])
async def test_the_next_run_starts_whole_or_not_at_all(
    cleared: int, *, is_known: bool, is_bare: bool
) -> None:
    life, names = await first_run(is_bare=is_bare)
    end(life, *names, is_known=is_known)
    await life.settle()
    assert status(life)[0] == "Finished"
    for name in names[:cleared]:
        life.cluster.delete_pod(name)
    await second_run_is_whole_or_nothing(life, is_bare=is_bare)


@RUNS
async def test_what_the_last_run_left_hides_no_loss_of_this_one(*, is_bare: bool) -> None:
    life, names = await first_run(is_bare=is_bare)
    end(life, *names)
    seconds = await second_run_is_whole_or_nothing(life, is_bare=is_bare)
    assert status(life) == ("Bound", 4, 0)
    life.cluster.delete_pod(seconds[0])
    life.watch.catch_up()
    await life.settle()
    assert status(life) == ("Degraded", 3, 0)
    (successor,) = make(life, 2, 1, is_bare=is_bare, first=4)
    await life.settle()
    assert bound(life, successor) == [True]
    end(life, *seconds[1:], successor)
    await life.settle()
    assert status(life) == ("Finished", 4, 4)


@RUNS
@ENDS
async def test_a_pod_group_of_the_same_name_starts_whole_or_not_at_all(
    *, is_known: bool, is_bare: bool
) -> None:
    life, names = await first_run(is_bare=is_bare)
    end(life, *names, is_known=is_known)
    life.cluster.delete_pod(names[0])
    life.watch.catch_up()
    life.cluster.delete_group("a")
    life.cluster.add_group(gang("a").needing(4).but(created=life.clock.now))
    life.watch.catch_up()
    await life.settle()
    assert status(life) == ("Waiting", 0, 0)
    await second_run_is_whole_or_nothing(life, is_bare=is_bare)


@RUNS
@ENDS
@pytest.mark.parametrize("is_cleared", [False, True])
async def test_a_gang_that_ends_one_by_one_is_never_broken(
    *, is_known: bool, is_bare: bool, is_cleared: bool
) -> None:
    life, names = await first_run(is_bare=is_bare)
    life.cluster.change_group("a", created=life.clock.now)  # its pods were made before it
    for count, name in enumerate(names, 1):
        end(life, name, is_known=is_known)
        await life.settle()
        if is_cleared and count < 4:
            life.cluster.delete_pod(name)
            life.watch.catch_up()
            await life.settle()
        assert status(life) == ("Finished" if count == 4 else "Bound", 4, count)
        again = Life(life.cluster, life.clock)
        await again.settle()
        assert status(again) == ("Finished" if count == 4 else "Bound", 4, count)


@ENDS
async def test_a_jobs_failed_member_is_replaced_after_all_others_succeeded(
    *, is_known: bool
) -> None:
    life, names = await first_run(is_bare=False)
    end(life, *names[:3], is_known=is_known)
    life.cluster.change_pod(names[3], phase=Phase.FAILED)
    (successor,) = make(life, 1, 1, is_bare=False, first=4)
    await life.settle()
    assert bound(life, successor) == [True]
    assert status(life) == ("Bound", 4, 3)


async def test_a_bare_pod_that_comes_after_all_others_succeeded_is_a_run_of_its_own() -> None:
    life, names = await first_run(is_bare=True)
    end(life, *names[:3])
    life.cluster.delete_pod(names[3])
    (successor,) = make(life, 1, 1, is_bare=True, first=4)
    await life.settle()
    assert bound(life, successor) == [False]
    assert status(life) == ("Waiting", 0, 0)


async def test_a_bare_pod_that_waited_for_room_follows_those_that_succeeded() -> None:
    life, names = await first_run(is_bare=True)
    (extra,) = make(life, 1, 1, is_bare=True, first=4)
    await life.settle()
    assert bound(life, extra) == [False]
    end(life, *names)
    await life.settle()
    assert bound(life, extra) == [True]
    assert status(life) == ("Finished", 5, 4)


@ENDS
async def test_a_member_that_ends_while_others_are_being_bound_keeps_them_their_room(
    *, is_known: bool
) -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4), gang("a").of(4, cpu=1))
    life = Life(cluster, Clock())
    away = Fault(errors.Unavailable("connection refused."))
    cluster.fault = lambda _, call: (
        away if call == "bind" and "bind" in cluster.calls[:-1] else None
    )
    await life.turn()
    (first,) = (pod.key.name for pod in cluster.pods.values() if pod.node == NodeName("n1"))
    end(life, first, is_known=is_known)
    cluster.fault = lambda _number, _call: None
    await life.settle()
    assert all(bound(life, "a-0", "a-1", "a-2", "a-3"))
    assert cluster.reservations == {}


def cordon_at_reserving(life: Life, name: str) -> None:
    """Take a node away once the next Reservation is asked for."""

    def change(call: str) -> None:
        if call == "reserve":
            life.cluster.before = lambda _: None
            life.cluster.change_node(name, unschedulable=True)
            life.watch.catch_up()

    life.cluster.before = change


@RUNS
@ENDS
@pytest.mark.parametrize("late", [0.0, 15.0], ids=["", "operator-clock-late"])
async def test_a_reservation_changes_nothing_about_which_run_counts(
    late: float, *, is_known: bool, is_bare: bool
) -> None:
    """It is lost before its first binding, and given back: nothing of this run was bound."""
    life, names = await first_run(is_bare=is_bare)
    end(life, *names, is_known=is_known)
    await life.settle()
    life.cluster.change_node("n1", allocatable=builders.resources(cpu=2, pods=110))
    life.cluster.put_node(node("n2", cpu=2).made)
    again = make(life, 2, 4, is_bare=is_bare)
    life.clock.now -= late
    cordon_at_reserving(life, "n2")
    life.watch.catch_up()
    await life.settle()
    assert bound(life, *again) == [False] * 4
    assert status(life) == ("Waiting", 0, 0)
    assert not life.cluster.reservations
