"""Gangs that run while Tutti is upgraded: Queues come, change and go, and versions take turns."""

from dataclasses import replace

import pytest

from tutti.model.keys import Uid
from tutti.model.queues import Queue

from ..harness.builders import gang, node
from ..harness.fakes import Crash, FakeCluster, Fault
from .test_start_records import is_bound, live

CALLS = 20  # more than a start takes
ALL = Queue("all", Uid("all-1"), limits=(("cpu", 4000),), default_for=())


def bound(cluster: FakeCluster) -> dict[str, str]:
    return {str(pod.uid): pod.node for pod in cluster.pods.values() if pod.node is not None}


def running() -> FakeCluster:
    """Three gangs of two that started without Queues."""
    cluster = FakeCluster()
    cluster.add_namespace("ml")
    cluster.add(node("n1", cpu=20), *(gang(name).of(2, cpu=1) for name in "abc"))
    return cluster


def more(cluster: FakeCluster, name: str) -> None:
    cluster.add(gang(name).of(2, cpu=1))


async def test_without_queues_gangs_that_run_are_left_alone() -> None:
    cluster = running()
    await live(cluster)
    before, calls = bound(cluster), len(cluster.calls)
    await live(cluster, "tutti-1")
    assert bound(cluster) == before
    assert not {"bind", "reserve", "release", "evict", "amend"} & {*cluster.calls[calls:]}


async def test_queues_that_are_created_while_gangs_run_end_nobody_and_stop_starts() -> None:
    cluster = running()
    life = await live(cluster)
    before = bound(cluster)
    cluster.add_queue(ALL)
    more(cluster, "d")
    life.watch.catch_up()
    await life.settle()
    assert bound(cluster) == before, "6 of 4 cpu are charged"
    cluster.change_queue("all", limits=(("cpu", 8000),))
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "d-0")
    assert before.items() <= bound(cluster).items()
    recorded = sorted(str(reservation.gang.name) for reservation in cluster.reservations.values())
    assert recorded == ["a", "b", "c", "d"], "those that ran before have a record, too"


@pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])
async def test_gangs_that_belong_to_a_queue_later_keep_the_minimum_they_ran_with(
    *, is_committed: bool
) -> None:
    """Whichever call fails, the record of each names its queue in the end."""
    for number in range(CALLS):
        cluster = running()
        await live(cluster)
        cluster.add_queue(Queue("vision", Uid("vision-1")))
        await live(cluster)
        first = {key: stored.record for key, stored in cluster.reservations.items()}
        assert {record.queue for record in first.values() if record} == {""}
        cluster.add_queue(ALL)
        at = len(cluster.calls) + number
        cluster.fault = lambda n, _, at=at: Fault(Crash(), is_committed) if n == at else None  # type: ignore[misc]
        for identity in ("tutti-1", "tutti-2"):
            try:
                await live(cluster, identity)
            except Crash:
                continue
        for key, stored in cluster.reservations.items():
            before = first[key]
            assert before is not None
            assert stored.record == replace(before, queue="all", queue_uid=Uid("all-1")), number
        assert not cluster.broken


async def test_queues_that_are_removed_again_leave_all_as_it_was_without_them() -> None:
    cluster = running()
    life = await live(cluster)
    cluster.add_queue(ALL)
    for limit in (8, 2):
        cluster.change_queue("all", limits=(("cpu", limit * 1000),))
        more(cluster, f"with-{limit}")
        life.watch.catch_up()
        await life.settle()
    before = bound(cluster)
    assert is_bound(cluster, "with-8-0")
    assert not is_bound(cluster, "with-2-0")
    cluster.delete_queue("all", by_force=True)
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "with-2-0")
    assert before.items() <= bound(cluster).items()
    assert not cluster.reservations
    assert not cluster.broken


@pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_call_after_queues_were_created_ends_nobody(
    *, is_committed: bool
) -> None:
    for number in range(CALLS):
        cluster = running()
        await live(cluster)
        before = bound(cluster)
        cluster.add_queue(ALL)
        cluster.change_queue("all", limits=(("cpu", 8000),))
        more(cluster, "d")
        more(cluster, "e")
        first = len(cluster.calls)
        at = first + number
        cluster.fault = lambda n, _, at=at: Fault(Crash(), is_committed) if n == at else None  # type: ignore[misc]
        for identity in ("tutti-1", "tutti-2"):
            try:
                await live(cluster, identity)
            except Crash:
                continue
        assert before.items() <= bound(cluster).items(), number
        started = [name for name in "de" if is_bound(cluster, f"{name}-0")]
        assert len(started) == 1, number
        assert len(bound(cluster)) == 8, number
        assert not cluster.broken


async def test_versions_that_know_no_queues_may_lead_in_between() -> None:
    """They delete records and start above limits; nothing that runs ends by either."""
    cluster = running()
    life = await live(cluster)
    cluster.add_queue(ALL)
    cluster.change_queue("all", limits=(("cpu", 8000),))
    more(cluster, "d")
    life.watch.catch_up()
    await life.settle()
    before = bound(cluster)
    cluster.delete_reservation("d")
    cluster.add(gang("e").of(2, cpu=1).bound_on("n1", "n1"))
    life = await live(cluster, "tutti-1")
    more(cluster, "f")
    life.watch.catch_up()
    await life.settle()
    assert before.items() <= bound(cluster).items()
    assert not is_bound(cluster, "f-0"), "10 of 8 cpu are charged"
    cluster.change_queue("all", limits=(("cpu", 12000),))
    life.watch.catch_up()
    await life.settle()
    assert is_bound(cluster, "f-0")
    assert not cluster.broken
