"""Pods of groups that are no gangs, in the picture of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutti.kube.codec.queues import QueueObject
from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item
from tutti.model.applications import ApplicationPod
from tutti.model.cluster import Phase, Role
from tutti.model.keys import POD, ApiKind, GangKey, NodeName, Uid
from tutti.model.queues import Queue
from tutti.state.cluster_state import ClusterState

from ...harness.builders import NAMESPACE, member, shape

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


def test_a_pod_of_no_role_changes_no_stage() -> None:
    world = Observed()
    world.version = 10
    staged(world)
    world.pod("odd", role="other")
    assert roles(world) == (FIRST, 1, [])
