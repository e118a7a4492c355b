"""What a replica keeps that stands by for weeks: nothing of gangs, pods and nodes that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.builders import gang, member, node, reservation, shape
from tests.harness.fakes import Clock, FakeCluster, Life
from tutti.kube.codec.queues import QueueObject
from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item, ObjectList
from tutti.model.cluster import Namespace, SlotReservation
from tutti.model.devices.claims import ClaimName, DeviceClaim, PodClaim
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.queues import Queue, QueueRecord
from tutti.model.volumes import Claim, ClaimKey, VolumeChoice
from tutti.state.cluster_state import ClusterState
from tutti.state.store import Store

if TYPE_CHECKING:
    from tutti.model.cluster import Member

APART = gang("x").of(1).apart("zone").made.members[0].shape.rules
N1 = NodeName("n1")
ROUNDS = 20


class Standby:
    """The state of a replica that stands by, and gangs that come and go."""

    def __init__(self) -> None:
        self.state = ClusterState(lambda: None, reads_devices=True)
        self.version = 0
        self.rounds = 0
        for store in chain(self.state.stores.values(), self.state.pods.stores):
            store.replace(ObjectList(), 1, store.began())
        self.put(self.state.nodes, Uid("n1"), node("n1", cpu=64).made)
        self.put(self.state.queues, Uid("q"), QueueObject(Queue("vision", Uid("q"))))
        self.put(self.state.namespaces, Uid("ml"), Namespace("ml"))

    def pod(self, name: str) -> Member:
        """A pod with a volume and a device, and a rule between pods."""
        made = member(name, replace(shape(cpu=1), rules=APART))
        return replace(made, uid=Uid(name), claims=(name,), device_claims=(PodClaim("gpu", name),))

    def put(self, store: Store[Any], uid: Uid, value: Any) -> None:
        """Show an object."""
        self.version += 1
        store.put(Item(uid, self.version + 1, value))

    def come(self) -> None:
        """A gang, its Reservation, its claims and a node of its own come."""
        self.rounds += 1
        name = f"g{self.rounds}"
        state, uid, key = self.state, Uid(name), GangKey("ml", name)
        pod, own = self.pod(f"{name}-0"), node(f"n-{name}", cpu=8).made
        claim = Claim(ClaimKey("ml", pod.key.name), uid=name, selected_node=N1)
        made = reservation(gang(name).of(1, cpu=1), (pod.key.name, "n1"))
        held = replace(
            made,
            entries=tuple(replace(entry, uid=pod.uid) for entry in made.entries),
            uid=uid,
            self_uid=Uid(f"r-{name}"),
            slots=(SlotReservation(N1, "", 1),),
            record=QueueRecord("vision", Uid("q"), 0.0),
            charged=(pod.uid,),
            volumes=(VolumeChoice(pod.key.name, name, "7", N1),),
        )
        self.put(state.nodes, Uid(own.name), own)
        self.put(state.groups, uid, GangObject(key, uid, 1, generation=1))
        self.put(state.storage.claims, Uid(f"c-{name}"), claim)
        self.put(state.devices.claims, uid, DeviceClaim(ClaimName("ml", pod.key.name), uid))
        self.put(state.pods.pending, pod.uid, replace(pod, group=name))
        self.put(state.reservations.store, Uid(f"r-{name}"), held)
        self.put(state.pods.bound, pod.uid, replace(pod, group=name, node=N1))

    def go(self) -> None:
        """They go."""
        name, state = f"g{self.rounds}", self.state
        uid, pod, own = Uid(name), self.pod(f"{name}-0"), node(f"n-{name}", cpu=8).made
        state.reservations.store.drop(Uid(f"r-{name}"))
        state.pods.pending.drop(pod.uid)
        state.pods.bound.drop(pod.uid)
        state.storage.claims.drop(Uid(f"c-{name}"))
        state.devices.claims.drop(uid)
        state.groups.drop(uid)
        state.nodes.drop(Uid(own.name))


def sizes(thing: object, path: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, int]]:
    """The sizes of the collections of a state, by where they are; a Store forgets by itself."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Mapping | set | frozenset | list | tuple):
        yield path, len(thing)
        if isinstance(thing, Mapping):
            for value in thing.values():
                yield from sizes(value, f"{path}[]", seen)
        return
    if not type(thing).__module__.startswith("tutti."):
        return
    for name, value in vars(thing).items() if hasattr(thing, "__dict__") else ():
        if not (isinstance(thing, Store) and name == "_gone"):
            yield from sizes(value, f"{path}.{name}", seen)


def grown(standby: Standby, *, tidy: bool) -> Collection[str]:
    """The collections that grow while gangs come and go."""
    before: dict[str, int] = {}
    for n in range(2 * ROUNDS):
        if n == ROUNDS:
            before = total(standby.state)
        standby.come()
        standby.go()
        if tidy:
            standby.state.tidy(1.0)
    return {path for path, size in total(standby.state).items() if size > before.get(path, 0)}


def total(state: ClusterState) -> dict[str, int]:
    """The sizes of all collections, by path."""
    summed: dict[str, int] = {}
    for path, size in sizes(state):
        summed[path] = summed.get(path, 0) + size
    return summed


@pytest.mark.parametrize("has_led", [False, True])
def test_a_standby_keeps_nothing_of_what_is_gone(*, has_led: bool) -> None:
    standby = Standby()
    if has_led:
        standby.put(standby.state.pods.pending, Uid("rules"), standby.pod("rules"))
        standby.state.snapshot(0.0)
    assert "._gangs._stale" in grown(standby, tidy=False), "it sees where it grows"
    standby.state.tidy(1.0)
    assert not grown(standby, tidy=True)


def test_a_standby_keeps_the_record_of_a_start_whose_pods_its_watch_shows_late() -> None:
    """Another client deletes the Reservation, which the faster watch of Reservations shows."""
    standby = Standby()
    state, pod = standby.state, standby.pod("g1-0")
    standby.come()
    state.pods.bound.leave(pod.uid, standby.version + 1)
    state.reservations.store.drop(Uid("r-g1"))
    state.tidy(1.0)
    standby.put(state.pods.bound, pod.uid, replace(pod, group="g1", node=N1))
    state.tidy(2.0)
    assert [lost.uid for lost in state.reservations.lost_records()] == ["g1"]
    state.pods.bound.drop(pod.uid)
    state.tidy(3.0)
    standby.put(state.pods.pending, pod.uid, replace(pod, group="g1"))
    assert not state.reservations.lost_records()


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_standby_that_forgets_what_is_gone_sees_the_same_when_it_leads(rounds: int) -> None:
    seen = []
    for tidies in (False, True):
        standby = Standby()
        for n in range(rounds):
            standby.come()
            if n == 0:
                standby.state.snapshot(0.0)
            standby.go()
        standby.come()
        if tidies:
            standby.state.tidy(1.0)
        before = standby.state.snapshot(2.0)
        assert before.gangs
        standby.go()
        if tidies:
            standby.state.tidy(3.0)
        seen.append((before, standby.state.snapshot(4.0)))
    assert seen[0] == seen[1]


async def test_a_standby_forgets_without_a_call_to_the_api_server() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), gang("a").of(1, cpu=1))
    life = Life(cluster, Clock())
    made = [*cluster.calls]
    await life.cycle.stand_by()
    assert cluster.calls == made
