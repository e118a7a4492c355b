"""A leader that was paused wakes up and binds, and whoever leads by then is not shown it yet.

Its bindings are what the Reservation says, and succeed. So until the watch of bound pods shows
them, or the pods have been asked, the room of a Reservation is nobody else's: whoever deletes or
shortens it, signed or not, and whoever of it is listed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from .. import builders
from ..builders import gang, node, single
from ..fakes import STREAMS, Clock, FakeCluster, Life
from . import scenarios
from .test_refused import ANSWERS, Choosy, never, nothing, turns


class Halts:
    """Where somebody stands still: at bindings by their number, and later at deletions."""

    def __init__(self, cluster: FakeCluster, *bindings: int) -> None:
        self._cluster = cluster
        self._held = {number: asyncio.Event() for number in bindings}
        self._bindings = 0
        self._for_good = asyncio.Event()
        self.is_over = False
        cluster.pause = self._pause

    async def _pause(self, at: int, is_committed: bool) -> None:  # noqa: FBT001 - as it is called
        call = self._cluster.made[at - 1]
        if is_committed or self.is_over:
            return
        if call == "release":
            await self._for_good.wait()
        elif call == "bind":
            self._bindings += 1
            if (event := self._held.get(self._bindings)) is not None:
                await event.wait()

    async def met(self) -> None:
        """Let everyone go on until they stand still."""
        await asyncio.sleep(0.02)

    async def wake(self, *bindings: int) -> None:
        """Let these bindings succeed, but nothing that follows them."""
        for number in bindings:
            self._held[number].set()
        await self.met()
        self.is_over = True


@asynccontextmanager
async def halted(life: Life, halts: Halts) -> AsyncIterator[asyncio.Task[float | None]]:
    """Let a leader come to where it stands still, and end it after all."""
    turn = asyncio.create_task(life.turn())
    await halts.met()
    assert not turn.done()
    yield turn
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)


async def succeeded(cluster: FakeCluster, clock: Clock) -> Life:
    """Whoever leads next, before its first cycle."""
    life = Life(cluster, clock, identity="tutti-1")
    await life.begin()
    life.watch.catch_up()
    return life


async def cycles(life: Life, count: int = 3) -> None:
    """So many cycles, while the watch of bound pods is late."""
    life.late = ("bound",)
    life.watch.catch_up(*(stream for stream in STREAMS if stream not in life.late))
    await turns(life, count)


def worker(cluster: FakeCluster, name: str, cpu: float) -> None:
    one = builders.member(name, builders.shape(cpu=cpu), role="worker")
    # Too young to be told why it waits, which would change it.
    cluster.add_pod(replace(one, group="a", created=Clock().now))


def at(cluster: FakeCluster, *names: str) -> list[str | None]:
    pods = {pod.key.name: pod.node for pod in cluster.pods.values()}
    return [pods[name] for name in names]


async def test_a_deposed_leader_deletes_nothing_before_it_has_asked_who_leads() -> None:
    """It sees a Reservation of another term, which is its successor's."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2))
    clock = Clock()
    first = Life(cluster, clock, identity="tutti-0")
    await first.settle()
    second = Life(cluster, clock, identity="tutti-1")
    cluster.add(gang("a").of(2, cpu=1))
    second.watch.catch_up()
    halts = Halts(cluster, 1, 2)
    async with halted(second, halts):
        halts.is_over = True
        first.watch.catch_up()
        await first.turn()
        assert first.is_deposed
        assert len(cluster.reservations) == 1


async def test_a_reservation_that_goes_with_its_pod_group_gives_no_room_at_once() -> None:
    """The garbage collector deletes it; the PodGroup is made anew, as by `replace --force`."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    clock = Clock(1.5)  # too early for a report on pods, which would change them
    halts = Halts(cluster, 1, 2)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts) as turn:
        second = await succeeded(cluster, clock)
        halts.is_over = True
        cluster.delete_group("a")
        cluster.collect()
        cluster.add_group(gang("a").needing(2))
        cluster.add(gang("b").of(2, cpu=1).priority(9))
        second.watch.catch_up()
        await turns(second, 2)
        assert scenarios.places(cluster, "b") == ["n1", "n1"]
        await halts.wake(1, 2)
        await turn
    assert at(cluster, "a-0", "a-1") == [None, None]
    assert not cluster.broken


async def test_who_is_reserved_but_not_listed_is_looked_for_before_its_room_is_guessed() -> None:
    """A driver of four CPUs is not one of its workers."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4, gpu=1), node("n2", cpu=2))
    cluster.add(gang("a").role("driver", 1, cpu=4, gpu=1).role("worker", 2, cpu=1))
    clock = Clock()
    halts = Halts(cluster, 1, 3)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts):
        second = await succeeded(cluster, clock)
        await halts.wake(1)
        cluster.add(gang("b").of(1, cpu=3))
        await cycles(second)
        assert at(cluster, "a-0", "b-0") == ["n1", None]


async def test_so_is_who_has_a_reservation_that_cannot_be_signed_yet() -> None:
    cluster = Choosy()
    cluster.add(node("n1", cpu=4), gang("a").of(2, cpu=2))
    clock = Clock()
    halts = Halts(cluster, 1, 2)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts):
        cluster.refuse = never("adopt", "a", ANSWERS["a webhook that is down"])
        second = await succeeded(cluster, clock)
        await halts.wake(1, 2)
        cluster.add(gang("b").of(1, cpu=3))
        await cycles(second)
        assert at(cluster, "a-0", "a-1", "b-0") == ["n1", "n1", None]


def with_slots(cluster: FakeCluster) -> None:
    """A driver of one CPU that is bound, and slots for three workers of two."""
    driven = gang("a").role("driver", 1, cpu=1).role("worker", 3, 0).declaring(cpu=2).needing(4)
    cluster.add(node("n1", cpu=7), driven)


@pytest.mark.parametrize("comes", [None, "w-1"], ids=["shortened", "amended"])
async def test_no_reservation_goes_on_without_a_pod_that_was_not_looked_for(
    comes: str | None,
) -> None:
    cluster = FakeCluster()
    with_slots(cluster)
    clock = Clock()
    first = Life(cluster, clock, identity="tutti-0")
    await turns(first, 2)
    worker(cluster, "w-0", cpu=1)
    cluster.add(single("c", cpu=1))
    first.watch.catch_up()
    halts = Halts(cluster, 1)
    async with halted(first, halts):
        second = await succeeded(cluster, clock)
        await halts.wake(1)
        if comes is not None:
            worker(cluster, comes, cpu=2)
        cluster.add(gang("b").of(1, cpu=1).priority(9))
        await cycles(second)
        assert at(cluster, "w-0", "b-0") == ["n1", None]
        (standing,) = cluster.reservations.values()
        assert "w-0" in [entry.pod.name for entry in standing.entries]


async def test_a_leader_of_the_past_shortens_no_reservation_by_what_it_has_bound() -> None:
    """The next one could not sign it yet, and is shown its change before its binding."""
    cluster = Choosy()
    with_slots(cluster)
    clock = Clock()
    first = Life(cluster, clock, identity="tutti-0")
    await turns(first, 2)
    worker(cluster, "w-0", cpu=1)
    cluster.add(single("c", cpu=1))
    first.watch.catch_up()
    halts = Halts(cluster, 1)
    async with halted(first, halts) as turn:
        cluster.refuse = never("adopt", "a", ANSWERS["a webhook that is down"])
        second = await succeeded(cluster, clock)
        await cycles(second, 1)
        cluster.refuse = nothing
        await halts.wake(1)
        await turn
        worker(cluster, "w-1", cpu=2)
        first.watch.catch_up()
        amended = cluster.made.count("amend")
        await first.turn()
        assert first.is_deposed
        assert cluster.made.count("amend") == amended + 1
        cluster.add(gang("b").of(1, cpu=1).priority(9))
        await cycles(second, 2)
        assert at(cluster, "w-0", "b-0") == ["n1", None]
