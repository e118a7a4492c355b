"""Queues are held while gangs are charged to them, and know since when they drain."""

from dataclasses import replace

import pytest

from tutti.commit.queue_lifecycle import OLD_CRD_SECONDS
from tutti.kube import errors
from tutti.kube.backoff import REFUSED_SECONDS
from tutti.kube.codec.queues import FINALIZER
from tutti.model.cluster import Phase
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.keys import GangKey, PodKey, Uid
from tutti.model.queues import Queue, Stop
from tutti.reporting.metrics import Stage

from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from .test_stages import StageCalls

VISION = Queue("vision", Uid("vision-1"), limits=(("cpu", 3000),))
CALLS = 25  # more than a start, a drain and a deletion take


def with_queue(queue: Queue = VISION) -> FakeCluster:
    """A gang of two that waits in a queue, and room for more."""
    cluster = FakeCluster()
    cluster.add_queue(queue)
    cluster.add(node("n1", cpu=8), gang("a").of(2, cpu=1))
    cluster.change_group("a", queue="vision")
    return cluster


async def live(cluster: FakeCluster, clock: Clock | None = None) -> Life:
    life = Life(cluster, clock or Clock())
    await life.settle()
    return life


async def news(life: Life) -> None:
    life.watch.catch_up()
    await life.settle()


def is_bound(cluster: FakeCluster, name: str) -> bool:
    return cluster.pods[PodKey(NAMESPACE, name)].node is not None


def end(cluster: FakeCluster, name: str) -> None:
    cluster.change_pod(name, phase=Phase.SUCCEEDED)


def add_gang(cluster: FakeCluster, name: str, created: float) -> None:
    cluster.add(gang(name).of(1, cpu=1))
    cluster.change_group(name, queue="vision", created=created)


async def test_a_queue_has_its_finalizer_before_a_gang_starts_in_it() -> None:
    cluster = with_queue(replace(VISION))
    cluster.queues["vision"] = replace(cluster.queues["vision"], finalizers=("other.example/x",))
    await live(cluster)
    assert cluster.queues["vision"].finalizers == ("other.example/x", FINALIZER)
    assert cluster.calls.index("set_finalizers") < cluster.calls.index("reserve")
    assert cluster.calls.count("set_finalizers") == 1


async def test_the_time_of_the_first_plan_with_queues_is_written_before_it_and_outlives_them() -> (
    None
):
    cluster = with_queue(replace(VISION, created=400.0))
    clock = Clock()
    began = clock.now
    await live(cluster, clock)
    since = cluster.queues["vision"].queue.queues_since
    assert since is not None
    assert began <= since
    assert cluster.calls.index("write_queue_status") < cluster.calls.index("reserve")
    clock.now += 60.0
    cluster.add_queue(Queue("nlp", Uid("nlp-1"), created=460.0))
    cluster.delete_queue("vision")
    for name in ("a-0", "a-1"):
        end(cluster, name)
    await live(cluster, clock)
    assert "vision" not in cluster.queues
    assert cluster.queues["nlp"].queue.queues_since == since


async def test_queues_that_an_older_version_has_planned_with_began_with_the_first() -> None:
    cluster = with_queue(replace(VISION, created=400.0))
    cluster.queues["vision"] = replace(cluster.queues["vision"], finalizers=(FINALIZER,))
    cluster.add_queue(Queue("nlp", Uid("nlp-1"), created=460.0))
    await live(cluster)
    assert {read.queue.queues_since for read in cluster.queues.values()} == {400.0}


async def test_no_queue_goes_before_the_others_know_since_when_there_are_queues() -> None:
    cluster = with_queue()
    clock = Clock()
    await live(cluster, clock)
    for name in ("a-0", "a-1"):
        end(cluster, name)
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    cluster.delete_queue("vision")
    refuses = [True]
    cluster.fault = lambda _, name: (
        Fault(errors.Refused("no", status=403))
        if refuses and name == "write_queue_status"
        else None
    )
    life = Life(cluster, clock)
    for _ in range(4):
        await life.turn()
        life.watch.catch_up()
    assert "vision" in cluster.queues
    refuses.clear()
    clock.now += REFUSED_SECONDS + 1.0
    await news(life)
    assert "vision" not in cluster.queues


async def test_an_old_crd_is_named_and_keeps_no_deleted_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = with_queue()
    cluster.has_old_crds = True
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    clock = Clock()
    life = await live(cluster, clock)
    before = cluster.calls.count("write_queue_status")
    cluster.delete_queue("vision")
    for name in ("a-0", "a-1"):
        end(cluster, name)
    await news(life)
    assert "vision" not in cluster.queues
    assert caplog.text.count("apply the CRDs of this version") == 1
    assert cluster.calls.count("write_queue_status") <= before + 2, "a report, and not the field"
    cluster.has_old_crds = False
    clock.now += OLD_CRD_SECONDS
    await news(life)
    assert cluster.queues["nlp"].queue.queues_since is not None


async def test_a_deleted_queue_starts_nothing_and_goes_with_its_last_gang() -> None:
    cluster = with_queue()
    cluster.add_queue(Queue("nlp", Uid("nlp-1")))
    life = await live(cluster)
    cluster.delete_queue("vision")
    add_gang(cluster, "b", created=5.0)
    await news(life)
    assert not is_bound(cluster, "b-0")
    end(cluster, "a-0")
    await news(life)
    assert "vision" in cluster.queues
    end(cluster, "a-1")
    await news(life)
    assert "vision" not in cluster.queues
    assert not is_bound(cluster, "b-0"), "its queue is unknown now"
    assert not cluster.broken


async def test_a_queue_that_is_made_again_is_another() -> None:
    cluster = with_queue()
    life = await live(cluster)
    cluster.delete_queue("vision")
    end(cluster, "a-0")
    end(cluster, "a-1")
    await news(life)
    cluster.add_queue(replace(VISION, uid=Uid("vision-2")))
    await news(life)
    assert cluster.queues["vision"].finalizers == (FINALIZER,)
    assert cluster.queues["vision"].queue.uid == "vision-2"


async def test_a_queue_that_is_deleted_while_a_plan_starts_a_gang_in_it_stays() -> None:
    cluster = with_queue()
    clock = Clock()
    metrics = StageCalls(cluster)
    life = Life(cluster, clock, metrics=metrics)

    def delete() -> None:
        cluster.delete_queue("vision")
        life.watch.catch_up()

    metrics.after[Stage.RESERVE] = delete
    await life.turn()
    assert is_bound(cluster, "a-0")
    assert "vision" in cluster.queues
    await life.settle()
    assert "vision" in cluster.queues


async def test_a_drain_is_dated_once_and_keeps_out_who_comes_later() -> None:
    cluster = with_queue()
    life = await live(cluster)
    life.clock.now = 2000.5
    add_gang(cluster, "before", created=2000.0)
    cluster.change_queue("vision", stop=Stop.DRAIN)
    await news(life)
    since = cluster.queues["vision"].queue.draining_since
    assert since == pytest.approx(2000.5)
    assert is_bound(cluster, "before-0")
    life.clock.now = 2010.0
    end(cluster, "a-0")
    add_gang(cluster, "after", created=2005.0)
    await news(life)
    assert not is_bound(cluster, "after-0")
    assert cluster.queues["vision"].queue.draining_since == since
    cluster.change_queue("vision", stop=Stop.NONE)
    await news(life)
    assert cluster.queues["vision"].queue.draining_since is None
    assert is_bound(cluster, "after-0")


async def test_a_drain_is_dated_before_the_plan_that_obeys_it() -> None:
    cluster = with_queue(replace(VISION, stop=Stop.DRAIN))
    cluster.change_group("a", created=1001.0)
    await live(cluster)
    assert not is_bound(cluster, "a-0")


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("number", range(1, CALLS))
async def test_after_a_crash_at_any_call_a_queue_ends_as_it_should(
    number: int,
    is_committed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    cluster = with_queue(replace(VISION, stop=Stop.DRAIN))
    cluster.change_group("a", created=999.0)
    clock = Clock()
    cluster.fault = lambda n, _: Fault(Crash(), is_committed) if n == number else None
    life = Life(cluster, clock)
    try:
        await life.settle()
        cluster.delete_queue("vision")
        end(cluster, "a-0")
        await news(life)
        end(cluster, "a-1")
        await news(life)
    except Crash:
        cluster.fault = lambda _number, _name: None
        clock.now += 100.0
        if "vision" in cluster.queues and not cluster.queues["vision"].queue.is_terminating:
            life = await live(cluster, clock)
            assert is_bound(cluster, "a-0")
            since = cluster.queues["vision"].queue.draining_since
            assert since is not None
            assert cluster.queues["vision"].finalizers == (FINALIZER,)
            cluster.delete_queue("vision")
            await news(life)
            assert "vision" in cluster.queues
        else:
            life = await live(cluster, clock)
        end(cluster, "a-0")
        end(cluster, "a-1")
        await news(life)
    assert "vision" not in cluster.queues
    assert not cluster.broken


async def test_a_refused_finalizer_stops_nobody_and_is_tried_again() -> None:
    cluster = with_queue()
    refusals = [errors.Refused("not today", status=403)] * 1
    cluster.fault = lambda _, name: (
        Fault(refusals.pop()) if refusals and name == "set_finalizers" else None
    )
    life = Life(cluster, Clock())
    await life.turn()
    assert is_bound(cluster, "a-0")
    assert not cluster.queues["vision"].finalizers
    await life.settle()
    assert cluster.queues["vision"].finalizers == (FINALIZER,)


async def test_a_drain_that_meets_a_broken_server_begins_soon() -> None:
    cluster = with_queue()
    life = await live(cluster)
    faults = [Fault(errors.Unavailable("broken", status=500))]
    cluster.fault = lambda _, name: (
        faults.pop() if faults and name == "write_queue_status" else None
    )
    cluster.change_queue("vision", stop=Stop.DRAIN)
    began = life.clock.now
    await news(life)
    since = cluster.queues["vision"].queue.draining_since
    assert since is not None
    assert since - began < REFUSED_SECONDS / 2


async def test_a_conflict_is_tried_again_soon() -> None:
    cluster = with_queue(replace(VISION, queues_since=1.0))
    life = Life(cluster, Clock())
    cluster.change_queue("vision", weight=2)  # which this replica has not seen
    life.late = ("queues",)
    await life.turn()
    assert not cluster.queues["vision"].finalizers
    life.late = ()
    await news(life)
    assert cluster.queues["vision"].finalizers == (FINALIZER,)


async def test_a_vanished_queue_is_left_to_the_watch() -> None:
    cluster = with_queue()
    life = Life(cluster, Clock())
    cluster.delete_queue("vision")
    life.late = ("queues",)
    await life.turn()
    assert not life.problems


async def test_an_api_server_that_is_away_ends_the_cycle() -> None:
    cluster = with_queue()
    cluster.fault = lambda _, name: (
        Fault(errors.Unavailable("away")) if name == "set_finalizers" else None
    )
    life = Life(cluster, Clock())
    await life.turn()
    assert len(life.problems) == 1
    assert not is_bound(cluster, "a-0")


async def test_a_deposed_replica_lets_no_queue_go() -> None:
    cluster = with_queue()
    life = await live(cluster)
    cluster.delete_queue("vision")
    end(cluster, "a-0")
    end(cluster, "a-1")
    cluster.take_lease("tutti-1")
    await news(life)
    assert life.is_deposed
    assert "vision" in cluster.queues


async def test_who_only_watches_writes_nothing_into_queues() -> None:
    cluster = with_queue(replace(VISION, stop=Stop.DRAIN))
    life = Life(cluster, Clock(), rollout_limits=RolloutLimits(Mode.SHADOW))
    await life.settle()
    assert not cluster.queues["vision"].finalizers
    assert cluster.queues["vision"].queue.draining_since is None
    assert GangKey(NAMESPACE, "a") in cluster.groups
