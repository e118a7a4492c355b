"""Pods of groups that are no gangs, in the picture of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tutti.gang.demand import count_members
from tutti.kube.codec.queues import QueueObject
from tutti.kube.gang_sources import GangObject, jobset
from tutti.kube.list_watch import Item
from tutti.model.applications import ApplicationPod
from tutti.model.cluster import MadeFor, Phase, PodReservation, Role, SlotReservation
from tutti.model.keys import POD, ApiKind, GangKey, NodeName, Uid
from tutti.model.queues import Queue
from tutti.state.cluster_state import ClusterState

from ...harness.builders import NAMESPACE, gang, member, reservation, shape

if TYPE_CHECKING:
    from tutti.model.cluster import Member

KUBERNETES = ApiKind("scheduling.k8s.io", "PodGroup")
PLUGINS = ApiKind("scheduling.x-k8s.io", "PodGroup")
KEY = GangKey(NAMESPACE, "g", KUBERNETES)
OTHER = GangKey(NAMESPACE, "g", PLUGINS)


class Observed:
    """A cluster state that is fed by hand."""

    def __init__(self) -> None:
        self.state = ClusterState(lambda: None)
        self.version = 0

    def pod(self, name: str, **changes: Any) -> Member:
        """Show a pod that names the group."""
        self.version += 1
        made = replace(member(name, shape(cpu=1)), group="g", group_kind=KUBERNETES)
        made = replace(made, version=str(self.version), **changes)
        store: Any = self.state.pods.pending if made.node is None else self.state.pods.bound
        store.put(Item(made.uid, self.version, made))
        return made

    def group(self, *, key: GangKey = KEY, uid: str = "u", basic: bool = True) -> GangObject:
        """Show a group of that name."""
        self.version += 1
        gang_object = GangObject(key, Uid(uid), 2, version=str(self.version), is_one_by_one=basic)
        self.state.learn_group(gang_object)
        return gang_object

    def gangs(self) -> dict[GangKey, list[str]]:
        """The members' names by gang."""
        found = self.state.snapshot(0.0).gangs
        return {gang.key: [member.key.name for member in gang.members] for gang in found}

    def strays(self) -> list[str]:
        """The pods whose group does not exist."""
        return [stray.key.name for stray in self.state.snapshot(0.0).strays]


def alone(*names: str) -> dict[GangKey, list[str]]:
    return {GangKey(NAMESPACE, name, POD): [name] for name in names}


def test_the_pods_of_such_a_group_are_as_pods_that_name_none() -> None:
    world = Observed()
    world.pod("a")
    assert (world.gangs(), world.strays()) == ({}, ["a"])
    world.group()
    world.pod("b")
    world.pod("c", node=NodeName("n1"))
    assert (world.gangs(), world.strays()) == (alone("a", "b", "c"), [])


def test_they_wait_again_where_the_group_goes_or_becomes_a_gang() -> None:
    world = Observed()
    first, pod = world.group(), world.pod("a")
    world.state.gang_objects[KUBERNETES].drop(first.uid)
    assert (world.gangs(), world.strays()) == ({}, ["a"])
    world.group(uid="v", basic=False)
    assert (world.gangs(), world.strays()) == ({KEY: ["a"]}, [])
    world.group(uid="v")
    assert world.gangs() == alone("a")
    world.state.pods.pending.drop(pod.uid)
    world.group(uid="v", basic=False)
    assert world.gangs() == {KEY: []}


def test_the_next_gang_that_such_a_pod_names_counts() -> None:
    """Every Job may have such a group, and a template of it the label of another."""
    world = Observed()
    world.group()
    world.group(key=OTHER, uid="x", basic=False)
    world.pod("a", other_gangs=(OTHER,))
    assert world.gangs() == {OTHER: ["a"]}


def test_a_pod_of_spark_with_such_a_group_is_sparks() -> None:
    world = Observed()
    world.group()
    app = GangKey(NAMESPACE, "spark-1")
    world.pod("a", application=ApplicationPod("spark-1", "executor"), other_gangs=(app,))
    assert world.gangs() == alone("a")
    world.group(key=app, uid="app", basic=False)
    assert world.gangs() == {app: ["a"]}


def test_a_number_that_an_object_states_is_its_priority() -> None:
    world = Observed()
    made = world.group(basic=False)
    world.version += 1
    world.state.learn_group(replace(made, priority_value=9, version=str(world.version)))
    (gang,) = world.state.snapshot(0.0).gangs
    assert gang.priority == 9


def test_a_queue_that_counts_if_it_exists_follows_the_queues() -> None:
    world = Observed()
    group = world.group(basic=False)
    world.state.learn_group(replace(group, version="9", queue_if_exists="default"))

    def queue() -> str:
        (gang,) = world.state.snapshot(0.0).gangs
        return gang.queue

    assert queue() == ""
    world.state.learn_queue(QueueObject(Queue("default", Uid("d")), version="10"))
    assert queue() == "default"
    world.state.queues.drop(Uid("d"))
    assert queue() == ""


FIRST, SECOND = (Role("init", 1),), (Role("late", 0), Role("node", 2))


def staged(world: Observed) -> GangObject:
    """A group of two stages."""
    group = replace(world.group(basic=False), stages=(FIRST, SECOND), roles=FIRST, min_member=1)
    world.state.learn_group(replace(group, version="99"))
    return group


def roles(world: Observed) -> tuple[tuple[Role, ...], int, list[str]]:
    """The roles, the size and the members that the gang has now."""
    (gang,) = world.state.snapshot(0.0).gangs
    return (
        gang.roles,
        gang.min_member,
        [member.key.name for member in gang.members if gang.accepts(member)],
    )


def test_the_members_are_those_of_the_newest_stage_that_has_pods() -> None:
    world = Observed()
    world.version = 10
    staged(world)
    assert roles(world) == (FIRST, 1, [])
    world.pod("i", role="init", node=NodeName("n1"))
    assert roles(world) == (FIRST, 1, ["i"])
    world.pod("i", role="init", node=NodeName("n1"), phase=Phase.SUCCEEDED)
    assert roles(world) == (FIRST, 1, ["i"])
    world.pod("a", role="node")
    world.pod("b", role="node")
    assert roles(world) == (SECOND, 2, ["a", "b"])
    world.pod("a", role="node", node=NodeName("n1"), terminating=True)
    world.pod("b", role="node", terminating=True)
    assert roles(world)[0] == SECOND
    world.pod("i2", role="init")  # restarted, while the old pods go
    assert roles(world) == (FIRST, 1, ["i", "i2"])


BOTH = (Role("load", 1), Role("side", 2))


def beside() -> Observed:
    """A group whose second stage begins while pods of the first still run."""
    world = Observed()
    world.version = 10
    group = replace(world.group(basic=False), stages=(BOTH, SECOND), roles=BOTH, min_member=3)
    world.state.learn_group(replace(group, version="99"))
    world.pod("load", role="load", node=NodeName("n1"), phase=Phase.SUCCEEDED)
    for name in ("s1", "s2"):
        world.pod(name, role="side", node=NodeName("n1"))
    return world


def lose(world: Observed, old: str, new: str) -> None:
    """A pod fails, and its Job creates another."""
    world.pod(old, role="side", node=NodeName("n1"), phase=Phase.FAILED)
    world.pod(new, role="side")


def test_a_stage_starts_whole_beside_pods_of_an_earlier_stage() -> None:
    world = beside()
    for name in ("a", "b"):
        world.pod(name, role="node")
    assert roles(world) == (SECOND, 2, ["a", "b"])
    (starting,) = world.state.snapshot(0.0).gangs
    assert not count_members(starting).is_committed


def test_a_lost_pod_of_an_earlier_stage_is_replaced_once_the_new_stage_has_begun() -> None:
    world = beside()
    world.pod("a", role="node", node=NodeName("n1"))
    world.pod("b", role="node")
    lose(world, "s2", "s3")
    assert roles(world)[1:] == (2, ["a", "b", "load", "s1", "s2", "s3"])
    (running,) = world.state.snapshot(0.0).gangs
    counts = count_members(running)
    assert [member.key.name for member in counts.ready] == ["b", "s3"]
    assert counts.missing_by_role == {"node": 1}


def test_a_stage_that_can_start_does_not_wait_for_pods_of_an_earlier_stage() -> None:
    world = beside()
    for name in ("a", "b"):
        world.pod(name, role="node")
    lose(world, "s2", "s3")
    assert roles(world) == (SECOND, 2, ["a", "b"])


def test_while_a_stage_lacks_pods_those_of_an_earlier_stage_come_first() -> None:
    """Its other pods may come only once these have ended."""
    world = beside()
    world.pod("a", role="node")
    assert roles(world) == (SECOND, 2, ["a"])
    lose(world, "s2", "s3")
    assert roles(world) == (BOTH, 3, ["load", "s1", "s2", "s3"])
    (running,) = world.state.snapshot(0.0).gangs
    assert count_members(running).missing_by_role == {"side": 1}
    world.pod("s3", role="side", node=NodeName("n1"))
    assert roles(world) == (SECOND, 2, ["a"])


def test_a_stage_with_a_reservation_that_lacks_a_pod_by_now_keeps_its_roles() -> None:
    world = beside()
    world.pod("a", role="node")
    (waiting,) = world.state.snapshot(0.0).gangs
    entries = (
        PodReservation(m.key, m.uid, NodeName("n1")) for m in waiting.members if m.role == "node"
    )
    standing = replace(reservation(gang("g").of(2, cpu=1)), gang=KEY, uid=Uid("u"))
    standing = replace(standing, entries=tuple(entries), self_uid=Uid("r"), version="100")
    world.state.reservations.put(standing)
    lose(world, "s2", "s3")
    assert roles(world) == (SECOND, 2, ["a"])


def test_a_pod_of_no_role_changes_no_stage() -> None:
    world = Observed()
    world.version = 10
    staged(world)
    world.pod("odd", role="other")
    assert roles(world) == (FIRST, 1, [])


def test_pods_of_a_deleted_object_are_no_members_of_a_new_object_of_its_name() -> None:
    """They would count as bound, so that the new gang would not start whole."""
    world = Observed()
    before, now = (MadeFor(KUBERNETES, Uid(uid)) for uid in ("before", "u"))
    world.pod("old", made_for=before, node=NodeName("n1"))
    world.pod("over", made_for=before, node=NodeName("n1"), phase=Phase.SUCCEEDED)
    world.pod("waits", made_for=before)
    world.pod("new", made_for=now)
    world.pod("of-another-kind", made_for=MadeFor(PLUGINS, Uid("before")))
    world.pod("unknown")
    world.group(basic=False)
    assert world.gangs() == {KEY: ["new", "of-another-kind", "unknown"]}
    assert world.strays() == ["old", "waits"]


def test_runs_are_compared_between_pods_of_one_job() -> None:
    """Two jobs whose pods name one PodGroup; one of them has restarted twice."""
    world = Observed()
    one, two = (GangKey(NAMESPACE, name, jobset.KIND.api) for name in ("one", "two"))
    world.pod("one-0", run=1, other_gangs=(one,))
    world.pod("one-1", run=2, other_gangs=(OTHER, one))
    world.pod("two-0", run=0, other_gangs=(two,))
    world.pod("no-job", run=0)
    world.group(basic=False)
    assert world.gangs() == {KEY: ["no-job", "one-1", "two-0"]}


@pytest.mark.parametrize("is_held", [False, True])
def test_once_no_room_is_held_the_next_stage_starts_whole(*, is_held: bool) -> None:
    world = beside()
    group = world.state.group(KEY)
    assert group is not None
    world.state.learn_group(replace(group, version="100", holds_later_stages=True))
    if is_held:
        slots = [SlotReservation(NodeName("n1"), "node", 2)]
        standing = reservation(gang("g").of(2, cpu=1), slots=slots)
        standing = replace(standing, gang=KEY, uid=Uid("u"), self_uid=Uid("r"), version="101")
        world.state.reservations.put(standing)
    for name in ("a", "b"):
        world.pod(name, role="node")
    (waiting,) = world.state.snapshot(0.0).gangs
    assert count_members(waiting).is_committed is is_held
