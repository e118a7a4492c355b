"""The status of Queues: what is written, when, and what happens where it cannot be."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.kube import errors
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.keys import Uid
from tutti.model.queues import PastUse, Queue, QueueMode, Stop
from tutti.reporting.queue_reporter import (
    FIGURE_SECONDS,
    LOOK_SECONDS,
    REFUSED_SECONDS,
    WRITES_PER_LOOK,
)

from ..harness.builders import gang, node
from ..harness.fakes import Clock, FakeCluster, Fault, Life

VISION = Queue("vision", Uid("vision-1"), limits=(("cpu", 3000),), queues_since=1.0)


def with_queue(*queues: Queue) -> FakeCluster:
    cluster = FakeCluster()
    for queue in queues or (VISION,):
        cluster.add_queue(queue)
    cluster.add(node("n1", cpu=8), gang("a").of(2, cpu=1))
    cluster.change_group("a", queue="vision")
    return cluster


async def live(cluster: FakeCluster) -> Life:
    life = Life(cluster, Clock())
    await life.settle()
    return life


async def news(life: Life) -> None:
    life.watch.catch_up()
    await life.settle()


def status(cluster: FakeCluster, name: str = "vision") -> Any:
    return cluster.queues[name].status


def condition(cluster: FakeCluster, kind: str, name: str = "vision") -> tuple[str, str]:
    lines = {line["type"]: line for line in status(cluster, name)["conditions"]}
    return lines[kind]["status"], lines[kind]["reason"]


def writes(cluster: FakeCluster) -> int:
    return cluster.calls.count("write_queue_status")


async def test_a_status_has_figures_and_conditions_and_rests() -> None:
    cluster = with_queue()
    life = await live(cluster)
    assert status(cluster)["schedulerName"] == "tutti"
    assert status(cluster)["use"] == "2/3 cpu"
    assert condition(cluster, "Valid") == ("True", "Declared")
    assert condition(cluster, "Accepting") == ("True", "Accepting")
    assert condition(cluster, "Empty") == ("False", "Charged")
    before = writes(cluster)
    life.clock.now += 100.0
    await news(life)
    assert writes(cluster) == before
    life = await live(cluster)  # the next leader
    assert writes(cluster) == before


async def test_faults_are_said_and_taken_back() -> None:
    cluster = with_queue(replace(VISION, parent="ml"))
    life = await live(cluster)
    assert condition(cluster, "Valid") == ("False", "UnknownParent")
    assert condition(cluster, "Accepting") == ("False", "Held")
    cluster.add_queue(Queue("ml", Uid("ml-1"), stop=Stop.HOLD))
    await news(life)
    assert condition(cluster, "Valid") == ("True", "Declared")
    assert condition(cluster, "Accepting") == ("False", "Held")
    assert status(cluster)["observedGeneration"] == cluster.queues["vision"].generation


async def test_figures_are_written_more_rarely_than_conditions() -> None:
    cluster = with_queue()
    life = await live(cluster)
    before, began = writes(cluster), life.clock.now
    cluster.add(gang("b").of(1, cpu=1))
    cluster.change_group("b", queue="vision")
    life.watch.catch_up()
    next_in: float | None = 0.0
    while writes(cluster) == before:
        assert next_in is not None
        life.clock.now += next_in
        next_in = await life.turn()
    assert 1.0 <= life.clock.now - began <= 2 * FIGURE_SECONDS
    await life.settle()
    assert status(cluster)["use"] == "3/3 cpu"
    began = life.clock.now
    life.clock.now += 1.0
    cluster.change_queue("vision", stop=Stop.HOLD)
    life.watch.catch_up()
    await life.turn()
    assert condition(cluster, "Accepting") == ("False", "Held")


async def test_a_crowd_of_queues_is_told_in_turns() -> None:
    queues = [
        Queue(f"q{number:03}", Uid(f"q{number}"), queues_since=1.0)
        for number in range(WRITES_PER_LOOK + 5)
    ]
    cluster = with_queue(*queues)
    life = Life(cluster, Clock())
    await life.turn()
    assert writes(cluster) == WRITES_PER_LOOK
    await life.settle()
    assert writes(cluster) == len(queues)
    assert all(status(cluster, queue.name) for queue in queues)


async def test_what_another_scheduler_has_said_stays_until_it_is_no_longer_so() -> None:
    cluster = with_queue()
    life = await live(cluster)
    theirs = {**status(cluster), "schedulerName": "other"}
    cluster.queues["vision"] = replace(cluster.queues["vision"], status=theirs)
    life = await live(cluster)
    assert status(cluster) == theirs
    cluster.change_queue("vision", stop=Stop.HOLD)
    await news(life)
    assert status(cluster)["schedulerName"] == "tutti"


async def test_a_refused_status_is_tried_again_later_and_stops_nobody() -> None:
    cluster = with_queue(VISION, Queue("nlp", Uid("nlp-1")))
    refusals = [errors.Refused("no", status=403), errors.Gone("gone", status=404)]
    cluster.fault = lambda _, name: (
        Fault(refusals.pop()) if refusals and name == "write_queue_status" else None
    )
    life = Life(cluster, Clock())
    next_in = await life.turn()
    assert not life.problems
    assert next_in is not None
    assert next_in <= REFUSED_SECONDS
    began = life.clock.now
    await life.settle()
    assert life.clock.now - began >= REFUSED_SECONDS
    assert status(cluster)
    assert status(cluster, "nlp")


@pytest.mark.parametrize(
    "problem", [errors.Conflict("changed", status=409), errors.Gone("gone", status=404)]
)
async def test_a_queue_that_is_read_again_is_written_again_at_once(
    problem: errors.ApiError,
) -> None:
    cluster = with_queue()
    faults = [Fault(problem)]
    cluster.fault = lambda _, name: (
        faults.pop() if faults and name == "write_queue_status" else None
    )
    life = Life(cluster, Clock())
    await life.turn()
    assert not status(cluster)
    cluster.change_queue("vision", weight=2)
    life.watch.catch_up()
    life.clock.now += LOOK_SECONDS
    await life.turn()
    assert status(cluster)["observedGeneration"] == 2


@pytest.mark.parametrize(
    "problem", [errors.Conflict("changed", status=409), errors.Unavailable("broken", status=500)]
)
async def test_what_may_be_over_soon_is_tried_again_soon(problem: errors.ApiError) -> None:
    cluster = with_queue()
    faults = [Fault(problem)]
    cluster.fault = lambda _, name: (
        faults.pop() if faults and name == "write_queue_status" else None
    )
    life = Life(cluster, Clock())
    began = life.clock.now
    await life.settle()
    assert status(cluster)["schedulerName"] == "tutti"
    assert life.clock.now - began < REFUSED_SECONDS / 2


async def test_an_api_server_that_is_away_is_told_of() -> None:
    cluster = with_queue()
    away = Fault(errors.Unavailable("away"))
    cluster.fault = lambda _, name: away if name == "write_queue_status" else None
    life = Life(cluster, Clock())
    await life.turn()
    assert len(life.problems) == 1


async def test_who_only_watches_says_what_is_so_of_queues() -> None:
    cluster = with_queue()
    life = Life(cluster, Clock(), rollout_limits=RolloutLimits(Mode.SHADOW))
    await life.settle()
    assert condition(cluster, "Empty") == ("True", "Empty")
    assert status(cluster)["waiting"] == 1


async def test_a_queue_that_has_changed_since_is_told_in_the_next_cycle() -> None:
    cluster = with_queue()
    life = Life(cluster, Clock())

    def change(name: str) -> None:
        if name == "write_status" and cluster.queues["vision"].queue.weight == 1:
            cluster.change_queue("vision", weight=7)
            life.watch.catch_up()

    cluster.before = change
    await life.settle()
    assert status(cluster)["observedGeneration"] == 2


async def test_a_queue_in_shadow_stops_nobody_and_says_whom_it_would_have_stopped() -> None:
    shadow = replace(VISION, limits=(("cpu", 2000),), mode=QueueMode.SHADOW)
    cluster = with_queue(shadow)
    life = await live(cluster)
    assert condition(cluster, "WouldStop") == ("False", "WithinLimit")
    life.clock.now += 60.0
    cluster.add(gang("b").of(3, cpu=1))
    cluster.change_group("b", queue="vision")
    await news(life)
    assert condition(cluster, "WouldStop") == ("True", "BeyondLimit")
    message = next(m["message"] for m in status(cluster)["conditions"] if m["type"] == "WouldStop")
    assert message == "mode is Shadow: its limits would have stopped ml/b"
    assert status(cluster)["use"] == "5/2 cpu"


async def test_past_use_is_recorded_only_if_it_has_a_half_life() -> None:
    cluster = with_queue(replace(VISION, past_use=PastUse(9, 9, 0.0, 9.0)))
    await live(cluster)
    assert cluster.queues["vision"].queue.past_use is None


async def test_past_use_is_written_when_the_share_changes_and_survives_a_change_of_leader() -> None:
    cluster = with_queue(Queue("vision", Uid("vision-1")))
    clock = Clock()
    life = Life(cluster, clock, usage_half_life=600.0)
    began = clock.now
    await life.settle()
    first = past_of(cluster)
    assert (first.mean, first.share) == (0, 250_000)
    assert began <= first.since <= began + 9.0
    before = writes(cluster)
    clock.now += 600.0
    await news(life)
    assert writes(cluster) == before, "the share is as it was"
    assert past_of(cluster).mean_at(first.since + 600.0) == 125_000
    for name in ("a-0", "a-1"):
        cluster.delete_pod(name)
    clock.now = first.since + 600.0
    life = Life(cluster, clock, identity="tutti-1", usage_half_life=600.0)  # after a crash
    await life.settle()
    second = past_of(cluster)
    assert second.mean == pytest.approx(125_000, rel=0.01)
    assert second.share == 0
    assert second.mean_at(second.since + 1200.0) == pytest.approx(125_000 / 4, rel=0.01)
    clock.now += 60.0
    life = Life(cluster, clock, identity="tutti-2", usage_half_life=60.0)  # another setting
    await life.settle()
    assert (past_of(cluster).half_life, past_of(cluster).share) == (60.0, 0)
    assert past_of(cluster).mean < second.mean


def past_of(cluster: FakeCluster) -> PastUse:
    past = cluster.queues["vision"].queue.past_use
    assert past is not None
    return past
