"""A leader that was paused wakes up and binds, and whoever leads by then is not shown it yet.

Its bindings are what the Reservation says, and succeed. So until the watch of bound pods shows
them, or the pods have been asked, the room of a Reservation is nobody else's: whoever deletes or
shortens it, signed or not, and whoever of it is listed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tutti.kube import errors
from tutti.kube.codec import encode
from tutti.model.cluster import Member
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Problem, Solution

from ..harness import builders
from ..harness.builders import gang, node, single
from ..harness.fakes import STREAMS, Clock, Crash, FakeCluster, Fault, Life
from . import scenarios
from .test_hand_over import handed
from .test_refused import ANSWERS, Choosy, never, nothing, pass_time, turns


class Halts:
    """Where somebody stands still: at bindings by their number, and later at deletions."""

    def __init__(self, cluster: FakeCluster, *bindings: int) -> None:
        self._cluster = cluster
        self._held = {number: asyncio.Event() for number in bindings}
        self._numbers: dict[int, int] = {}  # of bindings, by the number of the call
        self._done: set[int] = set()  # bindings that the API server has taken
        self._for_good = asyncio.Event()
        self.is_over = False
        cluster.pause = self._pause

    async def _pause(self, at: int, is_committed: bool) -> None:  # noqa: FBT001 - as it is called
        call = self._cluster.calls[at - 1]
        if call == "bind" and not is_committed:
            number = self._numbers[at] = len(self._numbers) + 1
            if (event := self._held.get(number)) is not None and not self.is_over:
                await event.wait()
        elif call == "bind":
            self._done.add(self._numbers[at])
        elif call == "release" and not (is_committed or self.is_over):
            await self._for_good.wait()

    async def met(self) -> None:
        """Let everyone go on until all these bindings are on their way."""
        await _until(lambda: self._held.keys() <= set(self._numbers.values()))

    def let(self, *bindings: int) -> None:
        """Let these bindings go on."""
        for number in bindings:
            self._held[number].set()

    async def succeed(self, *bindings: int) -> None:
        """Let these bindings succeed, but nothing that follows them."""
        self.let(*bindings)
        await _until(lambda: self._done.issuperset(bindings))
        self.is_over = True


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - it is asked, for nobody tells
            await asyncio.sleep(0.001)


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
    """The garbage collector deletes it; the PodGroup is made again, as by `replace --force`."""
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
        halts.let(1, 2)
        await turn
    assert at(cluster, "a-0", "a-1") == [None, None]
    assert not cluster.broken


async def test_a_reservation_that_went_before_it_was_listed_lets_no_room_be_used_twice() -> None:
    """The bindings of a paused leader come right after those of the next one."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    clock = Clock(1.5)  # too early for a report on pods, which would change them
    halts = Halts(cluster, 1, 2)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts) as turn:
        halts.is_over = True
        cluster.delete_group("a")
        cluster.collect()
        cluster.add(gang("b").of(2, cpu=1).priority(9))
        cluster.bound = lambda _: halts.let(1, 2)
        second = Life(cluster, clock, identity="tutti-1")
        await turns(second, 2)
        assert scenarios.places(cluster, "b") == ["n1", "n1"]
        await turn
    assert at(cluster, "a-0", "a-1") == [None, None]
    assert not cluster.broken


async def left_before_they_could_be_changed(cluster: Choosy) -> Life:
    """The next leader, to which a late watch does not show the nodes of gang a yet.

    The Reservation went with the PodGroup before it was listed, and the bindings came just before
    the next leader could make them fail.
    """
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    clock = Clock()
    halts = Halts(cluster, 1, 2)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts):
        cluster.delete_group("a")
        cluster.collect()
        cluster.add(gang("b").of(2, cpu=1))
        second = Life(cluster, clock, identity="tutti-1")
        await second.begin()
        await halts.succeed(1, 2)
    second.late = ("bound",)
    second.watch.catch_up("pending")
    return second


async def test_pods_that_left_before_they_could_be_changed_are_asked_for_their_nodes() -> None:
    cluster = Choosy()
    second = await left_before_they_could_be_changed(cluster)
    await turns(second, 3)
    assert not [line for line in cluster.broken if "fit" in line]
    assert at(cluster, "a-0", "a-1", "b-0", "b-1") == ["n1", "n1", None, None]
    assert cluster.calls.count("read_member") == 2


async def test_pods_that_left_are_asked_for_again_while_the_server_is_away() -> None:
    cluster = Choosy()
    second = await left_before_they_could_be_changed(cluster)
    away = Fault(errors.Unavailable("connection refused."))
    cluster.fault = lambda _, call: away if call == "read_member" else None
    await turns(second, 2)
    assert len(second.problems) == 2
    cluster.fault = lambda *_: None
    await turns(second, 2)
    assert not [line for line in cluster.broken if "fit" in line]
    assert cluster.calls.count("reserve") == 1, "that of gang a"


async def test_pods_handed_over_before_they_could_be_changed_are_asked_for_their_nodes() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), handed("a", 2))
    clock = Clock()
    awake = asyncio.Event()

    async def pause(at: int, committed: bool) -> None:  # noqa: FBT001 - as it is called
        if cluster.calls[at - 1] == "hand_over" and not committed:
            await awake.wait()

    cluster.pause = pause
    first = asyncio.create_task(Life(cluster, clock, identity="tutti-0").turn())
    await _until(lambda: cluster.calls.count("hand_over") == 2)
    cluster.delete_group("a")
    cluster.collect()
    cluster.add(gang("b").of(2, cpu=1))
    second = Life(cluster, clock, identity="tutti-1")
    await second.begin()
    awake.set()
    await first
    cluster.schedule()
    second.late = ("bound",)
    second.watch.catch_up("pinned")
    await turns(second, 3)
    assert not [line for line in cluster.broken if "fit" in line]
    assert at(cluster, "a-0", "a-1", "b-0", "b-1") == ["n1", "n1", None, None]


class Interrupted(Choosy):
    """Something happens while the next leader changes its first pod."""

    meanwhile: asyncio.Event | None = None
    goes_on: asyncio.Event

    async def say_of_pod(self, member: Member, why: encode.Why) -> Member:
        """See ``Api.say_of_pod``."""
        if self.meanwhile is not None and not self.meanwhile.is_set():
            self.meanwhile.set()
            await self.goes_on.wait()
        return await super().say_of_pod(member, why)


@pytest.mark.parametrize("fate", ["stays", "is signed again", "goes with its PodGroup"])
async def test_pods_that_leave_after_a_leader_looked_for_them_are_asked_for(fate: str) -> None:
    """It has adopted their Reservation, and changes other pods before its first plan."""
    cluster = Interrupted()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1), gang("c").of(1, cpu=9))
    clock = Clock()
    halts = Halts(cluster, 1, 2)
    first = Life(cluster, clock, identity="tutti-0")
    async with halted(first, halts):
        cluster.delete_group("c")
        cluster.add(gang("b").of(2, cpu=1))
        second = Life(cluster, clock, identity="tutti-1")
        cluster.meanwhile, cluster.goes_on = asyncio.Event(), asyncio.Event()
        turn = asyncio.create_task(second.turn())
        await cluster.meanwhile.wait()
        await halts.succeed(1, 2)
        if fate == "is signed again":
            (reservation,) = cluster.reservations.values()
            await cluster.adopt(reservation, first.term)
        elif fate == "goes with its PodGroup":
            cluster.delete_group("a")
            cluster.collect()
        second.watch.catch_up("groups", "reservations", "pending")
        second.late = ("bound",)
        cluster.goes_on.set()
        await turn
        await turns(second, 2)
    assert not [line for line in cluster.broken if "fit" in line]
    assert at(cluster, "a-0", "a-1", "b-0", "b-1") == ["n1", "n1", None, None]


async def test_pods_that_are_deleted_as_a_term_begins_are_asked_for_once() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(3, cpu=1))
    life = Life(cluster, Clock())
    await life.begin()
    cluster.delete_pod("a-0")
    life.watch.catch_up()
    await turns(life, 3)
    cluster.delete_pod("a-1")
    life.watch.catch_up()
    await turns(life, 3)
    assert cluster.calls.count("read_member") == 1


async def test_no_pod_is_asked_for_after_a_leader_that_has_resigned() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(3, cpu=1))
    life = Life(cluster, Clock())
    life.follows_resignation = True
    await life.begin()
    cluster.delete_pod("a-0")
    life.watch.catch_up()
    await turns(life, 3)
    assert "read_member" not in cluster.calls


@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_pod_that_cannot_be_changed_when_a_term_begins_is_tried_again_and_stops_nobody(
    answer: str,
) -> None:
    cluster = Choosy()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1), gang("b").of(2, cpu=1))
    cluster.delete_group("a")
    tried: list[str] = []

    def refuse(call: str, of: str) -> errors.ApiError | None:
        if call != "say_of_pod" or not of.startswith("a"):
            return None
        tried.append(of)
        return ANSWERS[answer]

    cluster.refuse = refuse
    life = Life(cluster, Clock(1.5))
    await turns(life, 2)
    assert scenarios.places(cluster, "b") == ["n1", "n1"]
    assert 4 <= len(tried) <= 6, "reports try likewise"
    await pass_time(life, 120)
    assert 6 < len(tried) <= 300, "a report may try every second, and nobody in every cycle"
    assert not life.problems


async def test_who_is_reserved_but_not_listed_is_looked_for_before_its_room_is_guessed() -> None:
    """A driver of four CPUs is not one of its workers."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4, gpu=1), node("n2", cpu=2))
    cluster.add(gang("a").role("driver", 1, cpu=4, gpu=1).role("worker", 2, cpu=1))
    clock = Clock()
    halts = Halts(cluster, 1, 3)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts):
        second = await succeeded(cluster, clock)
        await halts.succeed(1)
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
        await halts.succeed(1, 2)
        cluster.add(gang("b").of(1, cpu=3))
        await cycles(second)
        assert at(cluster, "a-0", "a-1", "b-0") == ["n1", "n1", None]


def with_slots(cluster: FakeCluster) -> None:
    """A driver of one CPU that is bound, and slots for three workers of two."""
    driven = gang("a").role("driver", 1, cpu=1).role("worker", 3, 0).declaring(cpu=2).needing(4)
    cluster.add(node("n1", cpu=7), driven)


async def who_binds_a_worker(cluster: FakeCluster, clock: Clock) -> Life:
    """A leader that has made such a gang start, and is about to bind a worker, and a pod alone."""
    with_slots(cluster)
    life = Life(cluster, clock, identity="tutti-0")
    await turns(life, 2)
    worker(cluster, "w-0", cpu=1)
    cluster.add(single("c", cpu=1))
    life.watch.catch_up()
    return life


@pytest.mark.parametrize("comes", [None, "w-1"], ids=["shortened", "amended"])
async def test_no_reservation_goes_on_without_a_pod_that_was_not_looked_for(
    comes: str | None,
) -> None:
    cluster, clock = FakeCluster(), Clock()
    first = await who_binds_a_worker(cluster, clock)
    halts = Halts(cluster, 1)
    async with halted(first, halts):
        second = await succeeded(cluster, clock)
        await halts.succeed(1)
        if comes is not None:
            worker(cluster, comes, cpu=2)
        cluster.add(gang("b").of(1, cpu=1).priority(9))
        await cycles(second)
        assert at(cluster, "w-0", "b-0") == ["n1", None]


async def test_a_leader_of_the_past_shortens_no_reservation_by_what_it_has_bound() -> None:
    """The next one could not sign it yet, and is shown its change before its binding."""
    cluster, clock = Choosy(), Clock()
    first = await who_binds_a_worker(cluster, clock)
    halts = Halts(cluster, 1)
    async with halted(first, halts) as turn:
        cluster.refuse = never("adopt", "a", ANSWERS["a webhook that is down"])
        second = await succeeded(cluster, clock)
        await cycles(second, 1)
        cluster.refuse = nothing
        await halts.succeed(1)
        await turn
        worker(cluster, "w-1", cpu=2)
        first.watch.catch_up()
        amended = cluster.calls.count("amend")
        await first.turn()
        assert first.is_deposed
        assert cluster.calls.count("amend") == amended + 1
        cluster.add(gang("b").of(1, cpu=1).priority(9))
        await cycles(second, 2)
        assert at(cluster, "w-0", "b-0") == ["n1", None]


async def reserved_alone(*nodes: builders.NodeBuilder, cpu: int = 1) -> Choosy:
    """What a leader left that died before its first binding."""
    cluster = Choosy()
    cluster.add(*nodes, gang("a").of(2, cpu=cpu))
    cluster.fault = lambda _, call: Fault(Crash()) if call == "read_lease" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).turn()
    cluster.fault = lambda *_: None
    return cluster


async def test_who_has_signed_a_reservation_again_asks_who_leads_before_it_does_anything() -> None:
    """Its successor has bound half of it, of which the late watch of bound pods says nothing."""
    cluster = await reserved_alone(node("n1", cpu=2), node("n2", cpu=2), cpu=2)
    clock = Clock()
    first = Life(cluster, clock, identity="tutti-1")
    await first.begin()
    halts = Halts(cluster, 2)
    async with halted(Life(cluster, clock, identity="tutti-2"), halts):
        for name in ("n1", "n2"):
            cluster.change_node(name, unschedulable=True)
        first.watch.catch_up("reservations", "nodes")
        calls = len(cluster.calls)
        await first.turn()
        assert first.is_deposed
        assert cluster.calls[calls:] == ["adopt", "read_lease"]
        assert len(cluster.reservations) == 1


async def test_who_leads_is_asked_again_where_nobody_knew_after_signing() -> None:
    cluster = await reserved_alone(node("n1", cpu=2))
    life = Life(cluster, Clock(), identity="tutti-1")
    away = Fault(errors.Unavailable("connection refused."))
    cluster.fault = lambda _, call: away if call == "read_lease" else None
    for _ in range(2):
        calls = len(cluster.calls)
        with pytest.raises(errors.Unavailable):
            await life.begin()
        assert cluster.calls[calls:][-1] == "read_lease"
    assert cluster.calls.count("adopt") == 1


async def test_who_leaves_an_unsigned_reservation_is_read_once_if_it_says_who_that_is() -> None:
    cluster = await reserved_alone(node("n1", cpu=2))
    cluster.refuse = never("adopt", "a", ANSWERS["a quota"])
    life = Life(cluster, Clock(), identity="tutti-1")
    await turns(life, 2)
    (held,) = cluster.reservations.values()
    nameless = tuple(replace(entry, pod=entry.pod._replace(name="")) for entry in held.entries)
    for entries in (held.entries, nameless, ()):
        (held,) = cluster.reservations.values()
        await cluster.amend(replace(held, entries=entries))
        life.watch.catch_up()
        await life.turn()
    assert cluster.calls.count("read_member") == 2


async def test_a_leader_knows_its_reservation_though_one_of_the_past_has_signed_it_again() -> None:
    cluster = FakeCluster()
    with_slots(cluster)
    clock = Clock()
    await turns(Life(cluster, clock, identity="tutti-0"), 2)
    first = Life(cluster, clock, identity="tutti-1")
    await first.begin()
    second = Life(cluster, clock, identity="tutti-2")
    await second.turn()
    first.watch.catch_up("reservations")
    await first.turn()
    assert first.is_deposed
    (stolen,) = cluster.reservations.values()
    assert stolen.term == first.term
    second.watch.catch_up()
    await turns(second, 2)
    (standing,) = cluster.reservations.values()
    assert (standing.term, standing.slots) == (second.term, stolen.slots)


async def test_who_was_paused_before_it_listed_asks_who_leads_once_it_has_signed() -> None:
    cluster = FakeCluster()
    with_slots(cluster)
    clock = Clock()
    await turns(Life(cluster, clock, identity="tutti-0"), 2)
    late = Life(cluster, clock, identity="tutti-1")
    await Life(cluster, clock, identity="tutti-2").turn()
    late.watch.relist()
    await late.turn()
    assert late.is_deposed


async def test_a_takeover_that_is_begun_again_forgets_nothing_that_it_has_signed() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), node("n2", cpu=1), gang("a").of(2, cpu=1))
    driven = gang("c").role("driver", 1, cpu=0.5).role("worker", 1, 0).declaring(cpu=0.5)
    cluster.add(driven.needing(2))
    clock = Clock(1.5)
    halts = Halts(cluster, 1, 2, 3)
    async with halted(Life(cluster, clock, identity="tutti-0"), halts) as turn:
        halts.is_over = True
        second = Life(cluster, clock, identity="tutti-1")
        away = Fault(errors.Unavailable("connection refused."))
        cluster.fault = lambda _, call: (
            away if call == "adopt" and cluster.calls.count("adopt") == 2 else None
        )
        with pytest.raises(errors.Unavailable):
            await second.begin()
        cluster.fault = lambda *_: None
        second.watch.relist()
        await second.begin()
        cluster.delete_group("a")
        cluster.collect()
        cluster.add_group(gang("a").needing(2))
        cluster.add(gang("b").of(2, cpu=1).priority(9))
        second.watch.catch_up()
        await turns(second, 2)
        halts.let(1, 2, 3)
        await turn
    assert not [line for line in cluster.broken if "fit" in line]


async def test_pods_that_may_not_be_changed_once_their_reservation_went_stop_nobody() -> None:
    cluster = await reserved_alone(node("n1", cpu=4))
    life = Life(cluster, Clock())
    await life.begin()
    cluster.refuse = never("say_of_pod", "a", ANSWERS["a quota"])
    cluster.delete_group("a")
    cluster.collect()
    cluster.add(gang("b").of(1, cpu=1))
    life.watch.catch_up()
    await pass_time(life, 60)
    assert not life.problems
    assert scenarios.places(cluster, "b") == ["n1"]


class Slow(BestFit):
    """News comes while it plans."""

    def __init__(self, news: Callable[[], None]) -> None:
        self._news = news

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """See ``Strategy.solve``."""
        self._news()
        return super().solve(problem, budget)


async def test_who_is_not_listed_any_more_by_the_time_of_the_plan_keeps_its_entry() -> None:
    """It was shown without a node when it could still be looked for, and is bound since."""
    cluster, clock = FakeCluster(), Clock()
    first = await who_binds_a_worker(cluster, clock)
    halts = Halts(cluster, 1)
    async with halted(first, halts):
        slow = Slow(lambda: second.watch.catch_up("pending"))
        second = Life(cluster, clock, slow, identity="tutti-1")
        await second.begin()
        worker(cluster, "w-1", cpu=2)
        cluster.add(node("n2", cpu=1), gang("b").of(1, cpu=1))
        second.watch.catch_up()
        await halts.succeed(1)
        second.late = ("bound",)
        await second.turn()
        (standing,) = cluster.reservations.values()
        assert [entry.pod.name for entry in standing.entries] == ["w-0", "w-1"]
