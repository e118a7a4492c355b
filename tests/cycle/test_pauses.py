"""Leaders that are frozen at any call and wake at any time, while gangs, room and budgets change.

Each leader is frozen whole: whatever it has sent and is not done yet arrives when it wakes. Several
are frozen at a time, and what they see when they wake is any part of what has happened.
"""

import asyncio
import random
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.model.cluster import OnPartial
from tutti.model.keys import GangKey

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import STREAMS, Clock, FakeCluster, Life
from ..harness.threads import RepeatableThreads
from .test_releasing import SET

if TYPE_CHECKING:
    from collections.abc import Callable

LEADERS = 4
TURNS = 6  # of one leader
TOLD = ("pending", "bound", "groups", "reservations")  # streams whose news the story has
LINES = 100  # of the story that a failure tells
GRAVE = ("reserve", "read_lease", "bind", "evict", "release")  # calls that matter the most
ME: ContextVar[int] = ContextVar("ME")


class Play:
    """One cluster, its leaders, and what happens to it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = FakeCluster()
        self.clock = Clock(self.chance.choice([1.5, 1_000.0]))  # too early for reports, or not
        self.frozen: dict[int, asyncio.Event] = {}
        self.lives: list[Life] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.gone: set[str] = set()  # PodGroups
        self.story: list[str] = []  # what was called, and what happened
        self._noted = 0  # how much of what is broken is in the story
        self._calm = False
        self._is_partial = bool(seed % 2)
        if self._is_partial:
            self._begin_partial()
        else:
            self._begin_with_room()
        self.cluster.pause = self._pause

    def _begin_with_room(self) -> None:
        """Several gangs that want the same room."""
        self.cluster.add(node("n1", cpu=3), node("n2", cpu=2), node("n3", cpu=1))
        for name, n in (("a", 3), ("b", 2), ("c", 3)):
            self._add(name, n)

    def _begin_partial(self) -> None:
        """A gang that has lost a member and has no room for another."""
        part = gang("a").of(3, cpu=2).bound_on("n1", "n1", "n2").each(owner=SET)
        self.cluster.add(node("n1", cpu=4), node("n2", cpu=2), node("n3", cpu=1), part)
        self.cluster.change_group("a", on_partial=OnPartial.RELEASE)
        self.cluster.delete_pod("a-2")
        self.cluster.change_node("n2", unschedulable=True)
        self._succeed("a")

    def _add(self, name: str, n: int) -> None:
        priority = self.chance.randrange(3)
        self.cluster.add(gang(name).of(n, cpu=1).priority(priority).each(owner=SET))

    def _succeed(self, name: str) -> None:
        new_pod = builders.member(
            f"{name}-{self.cluster.version}",
            builders.shape(cpu=2 if self._is_partial else 1),
        )
        age = self.clock.now if self.chance.random() < 0.5 else 0.0
        self.cluster.add_pod(replace(new_pod, group=name, created=age, owner=SET))

    async def _pause(self, at: int, committed: bool) -> None:  # noqa: FBT001 - as it is called
        me, call = ME.get(), self.cluster.calls[at - 1]
        is_leader = me == len(self.lives) - 1
        self._tell(at, "has its answer" if committed else "is sent")
        if is_leader and me not in self.frozen and self._freezes(call):
            self.frozen[me] = asyncio.Event()
        if (event := self.frozen.get(me)) is not None:
            self._tell(at, "is frozen")
            await event.wait()
            self._tell(at, "goes on")
        if is_leader and committed and call in GRAVE and self.chance.random() < 0.3:
            self._wake()
        if self.chance.random() < 0.1:
            self.happen()

    def _tell(self, at: int, what: str) -> None:
        """Note what becomes of a call."""
        if subject := self.cluster.subjects[at]:
            self._note(f"tutti-{ME.get()}: {self.cluster.calls[at - 1]} {subject} {what}")

    def _note(self, what: str) -> None:
        """Add to the story what is broken by now, and this."""
        broken = self.cluster.broken[self._noted :]
        self._noted += len(broken)
        self.story += [*map(_broken, broken), f"{self.cluster.version} {what}"]

    def told(self) -> str:
        """The story until the first thing that is wrong."""
        self._note("this is the end")
        first = self.story.index(_broken(self.wrong()[0])) + 1 if self.wrong() else None
        return "\n".join(self.story[:first][-LINES:])

    def _freezes(self, call: str) -> bool:
        return not self._calm and self.chance.random() < (0.3 if call in GRAVE else 0.05)

    def happen(self) -> None:
        """Let one thing happen."""
        if self._calm:
            return
        cluster, chance = self.cluster, self.chance
        groups = [key.name for key in cluster.groups]
        pods = list(cluster.pods.values())
        bound = [pod.key.name for pod in pods if pod.node is not None]
        leaving = [pod for pod in pods if pod.terminating]
        things: list[Callable[[], None]] = [
            lambda: cluster.change_node("n2", unschedulable=False),
            lambda: cluster.change_node("n2", unschedulable=True),
        ]
        if self._is_partial:
            things += [lambda: cluster.protected.update(bound), cluster.protected.clear] * 2
            partial = chance.choice(list(OnPartial))
            things.append(lambda: cluster.change_group("a", on_partial=partial))
        else:
            things.append(lambda: self._add(f"d{cluster.version}", chance.randrange(1, 4)))
            things += [lambda: self._delete_group(chance.choice(groups))] * (2 * bool(groups))
        if bound and chance.random() < 0.3:
            things.append(lambda: self._delete_pod(chance.choice(bound)))
        if leaving:
            things += [lambda: self._replace(chance.choice(leaving).key.name)] * 3
        chance.choice(things)()

    def _delete_group(self, name: str) -> None:
        self.gone.add(name)
        self.cluster.delete_group(name)
        self._note(f"PodGroup {name} is gone")
        if self.chance.random() < 0.8:
            self.cluster.collect()
            self._note("no Reservation is left without a PodGroup")

    def _delete_pod(self, name: str) -> None:
        self.cluster.delete_pod(name)
        self._note(f"pod {name} is gone")

    def _replace(self, name: str) -> None:
        group = next(pod.group for pod in self.cluster.pods.values() if pod.key.name == name)
        self._delete_pod(name)
        self._succeed(group)

    async def run(self) -> None:
        """Let one leader after the other lead, and those that are frozen wake at any time."""
        asyncio.get_running_loop().set_default_executor(RepeatableThreads(self._turns))
        for number in range(LEADERS):
            self.lives.append(Life(self.cluster, self.clock, identity=f"tutti-{number}"))
            self._note(f"tutti-{number} leads")
            self.tasks.append(asyncio.create_task(self._lead(number)))
            while number not in self.frozen and not self.tasks[number].done():
                await asyncio.sleep(0)
                if self.chance.random() < 0.003:
                    self._wake()
            for _ in range(self.chance.randrange(6)):
                self.happen()
            self.clock.now += self.chance.choice([0.0, 1.0, 60.0])
        while self.frozen:
            self._wake()
            for _ in range(self.chance.randrange(50)):
                await asyncio.sleep(0)
        self._calm = True
        await asyncio.gather(*self.tasks)

    def _turns(self) -> int:
        """For how many turns of the event loop a thread works; the seed says it."""
        return self.chance.choice([0, 1, 10, 300])

    async def _lead(self, number: int) -> None:
        ME.set(number)
        life = self.lives[number]
        for _ in range(TURNS):
            if life.is_deposed:
                return
            await life.turn()
            self.clock.now += self.chance.choice([0.0, 0.5, 30.0])

    def _wake(self) -> None:
        """Wake one of those that are frozen, with any part of the news."""
        if not self.frozen:
            return
        number = self.chance.choice(list(self.frozen))
        for stream in STREAMS:
            if self.chance.random() < 0.5:
                events = self.chance.choice([None, 1, 2])
                self.lives[number].watch.catch_up(stream, events=events)
                if stream in TOLD:
                    self._note(f"tutti-{number} is shown {events or 'all'} of {stream}")
        self._note(f"tutti-{number} wakes")
        self.frozen.pop(number).set()

    def wrong(self) -> list[str]:
        """What no leader may do; what goes with its PodGroup may arrive without a Reservation."""
        gone = tuple(f"{NAMESPACE}/{name}-" for name in self.gone)
        return [
            said
            for said in self.cluster.broken
            if "without a Reservation" not in said or not said.startswith(gone)
        ]


def _broken(said: str) -> str:
    return f"BROKEN: {said}"


@pytest.mark.parametrize("seed", [2, 3])
async def test_a_seed_repeats_exactly(seed: int) -> None:
    plays = [Play(seed), Play(seed)]
    for play in plays:
        await play.run()
    assert plays[0].told() == plays[1].told()
    assert plays[0].cluster.calls == plays[1].cluster.calls


@pytest.mark.parametrize("seed", range(200))
async def test_leaders_that_wake_at_any_time_do_no_harm(seed: int) -> None:
    play = Play(seed)
    await play.run()
    assert play.wrong() == [], play.told()
    play.cluster.collect()
    last = Life(play.cluster, play.clock)
    ME.set(-1)
    for _ in range(20):
        await last.turn()
        play.clock.now += 40.0
    assert play.wrong() == [], play.told()
    assert last.problems == []
    stands = [
        reservation.gang.name
        for reservation in play.cluster.reservations.values()
        if reservation.entries
    ]
    assert stands == [], "whoever is reserved is bound, or freed"
    assert all(GangKey(NAMESPACE, name) not in play.cluster.groups for name in play.gone)
