"""A leader that was paused before an eviction wakes up, and its successor has kept the member.

The eviction names the pod as it was when the leader last knew that it leads; whoever gives such a
Reservation up changes each member that stays, so that no eviction sent before can succeed.
"""

from collections.abc import Callable, Mapping

import pytest

from tutti.kube import errors
from tutti.model.cluster import OnPartial

from ..harness.fakes import STREAMS, Clock, FakeCluster, Fault, Life, Watch
from .test_refused import pass_time
from .test_releasing import calls, lost_one, moments, terminating


def a_budget_refuses(cluster: FakeCluster) -> None:
    """Protect the members that are there."""
    cluster.protected |= {"a-0", "a-1"}


def the_user_thinks_better_of_it(cluster: FakeCluster) -> None:
    """Want the gang completed."""
    cluster.change_group("a", on_partial=OnPartial.COMPLETE)


def room_comes_back(cluster: FakeCluster) -> None:
    """Let the gang be made whole."""
    cluster.change_node("n2", unschedulable=False)


def somebody_deletes_the_reservation(cluster: FakeCluster) -> None:
    """Delete it after the next leader has adopted it."""
    room_comes_back(cluster)
    if cluster.reservations:
        cluster.delete_reservation("a")


CHANGES = (
    a_budget_refuses,
    the_user_thinks_better_of_it,
    room_comes_back,
    somebody_deletes_the_reservation,
)


VIEWS: Mapping[str, Callable[[Watch], None]] = {
    "nothing": lambda _watch: None,
    "that its members were kept": lambda watch: watch.catch_up("bound", events=2),
    "all but the Reservations": lambda watch: watch.catch_up(
        *(stream for stream in STREAMS if stream != "reservations")
    ),
}


async def run_with_a_pause(
    number: int,
    change: Callable[[FakeCluster], None],
    see: Callable[[Watch], None],
    *,
    is_committed: bool,
) -> FakeCluster:
    """Pause the first leader at its call of that number while a second one makes the gang whole."""
    cluster, clock = lost_one(), Clock()
    first = Life(cluster, clock, identity="tutti-0")
    second: list[Life] = []

    async def pause(at: int, committed: bool) -> None:  # noqa: FBT001 - as it is called
        if second or at != number or committed is not is_committed:
            return
        second.append(Life(cluster, clock, identity="tutti-1"))
        clock.now += 60.0
        await second[0].begin()
        change(cluster)
        second[0].watch.catch_up()
        for _ in range(4):
            await second[0].turn()
        room_comes_back(cluster)
        second[0].watch.catch_up()
        for _ in range(6):
            await second[0].turn()
        cluster.protected.clear()
        see(first.watch)

    cluster.pause = pause
    for _ in range(4):
        await first.turn()
    for life in second:
        for _ in range(6):
            await life.turn()
    return cluster


@moments
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("view", VIEWS)
async def test_no_member_that_stays_is_evicted_by_a_leader_that_wakes_up_late(
    change: Callable[[FakeCluster], None], view: str, *, is_committed: bool
) -> None:
    whole = lost_one()
    life = Life(whole, Clock())
    for _ in range(4):
        await life.turn()
    assert calls(whole, "evict") == 2
    for number in range(1, len(whole.calls) + 1):
        cluster = await run_with_a_pause(number, change, VIEWS[view], is_committed=is_committed)
        assert cluster.broken == [], number
        assert not cluster.reservations, number


async def test_an_eviction_names_the_pod_as_it_was_seen() -> None:
    """It changes while the eviction is under way, and is evicted at the next look."""
    cluster = lost_one()
    changed: list[str] = []

    def before(call: str) -> None:
        if call == "evict" and not changed:
            changed.append(call)
            for name in ("a-0", "a-1"):
                cluster.change_pod(name, labels=(("seen", "later"),))

    cluster.before = before
    life = Life(cluster, Clock())
    await life.turn()
    assert terminating(cluster) == []
    for _ in range(3):
        await life.turn()
    assert terminating(cluster) == ["a-0", "a-1"]
    assert calls(cluster, "evict") == 4
    assert not cluster.broken


@pytest.mark.parametrize(
    "answer",
    [errors.Refused("a webhook says no", status=403), errors.Unavailable("broken.", status=500)],
    ids=["refused", "broken"],
)
async def test_a_reservation_stays_while_a_member_that_stays_cannot_be_changed(
    answer: errors.ApiError,
) -> None:
    cluster = lost_one()
    cluster.protected = {"a-0", "a-1"}
    cluster.fault = lambda _, name: Fault(answer) if name == "say_of_pod" else None
    life = Life(cluster, Clock())
    await pass_time(life, 20)
    assert cluster.reservations
    assert calls(cluster, "say_of_pod") <= 20, "ever more rarely"
    cluster.fault = lambda *_: None
    await pass_time(life, 400)
    cluster.change_node("n2", unschedulable=False)
    life.watch.catch_up()
    await pass_time(life, 60)
    assert not cluster.reservations
    assert not cluster.broken
