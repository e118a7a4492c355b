"""A gang with stages that holds room for its later stages, or does not."""

from dataclasses import replace

import pytest

from tutti.kube.gang_sources import GangObject, jobset
from tutti.model.cluster import Member, Phase, Role
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.shapes import Template

from ..harness.builders import NAMESPACE, gang, member, node, peers, shape, single
from ..harness.fakes import Clock, FakeCluster, Life

KEY = GangKey(NAMESPACE, "tune", jobset.KIND.api)
LOAD, NODES = Role("load", 1), Role("node", 2)
HELD = replace(NODES, template=Template(shape(cpu=2)))
HOLD_SECONDS = 60.0


def stage_pod(name: str, role: str, cpu: int) -> Member:
    return replace(
        member(name, shape(cpu=cpu), role=role), group=KEY.name, group_kind=jobset.KIND.api
    )


class Staged:
    """A cluster with one node, a gang with stages, and an operator."""

    def __init__(self, group: GangObject, cpu: int) -> None:
        self.cluster, self.clock = FakeCluster(), Clock()
        self.cluster.add(node("n1", cpu=cpu))
        self.cluster._put_group(group)
        self.life = Life(self.cluster, self.clock)

    async def turn(self, *pods: Member) -> None:
        """Create pods, and let some cycles pass."""
        for pod in pods:
            self.cluster.add_pod(replace(pod, created=self.clock.now))
        self.life.watch.catch_up()
        for _ in range(3):
            self.clock.now += 1.0
            await self.life.turn()
            self.life.watch.catch_up()

    def node_of(self, *names: str) -> list[str | None]:
        """Where these pods are."""
        return [self.cluster.pods[PodKey(NAMESPACE, name)].node for name in names]


class Played(Staged):
    """A node of five CPUs: the first stage needs one, the second needs four of them."""

    def __init__(self, *, holds: bool, later: Role = HELD) -> None:
        group = GangObject(
            KEY,
            Uid("g"),
            1,
            roles=(LOAD,),
            absent_seconds=HOLD_SECONDS,
            stages=((LOAD,), (later if holds else NODES,)),
            holds_later_stages=holds,
        )
        super().__init__(group, cpu=5)


@pytest.mark.parametrize("holds", [True, False])
async def test_room_for_the_second_stage_is_held_from_the_start(*, holds: bool) -> None:
    played = Played(holds=holds)
    await played.turn(stage_pod("load-0", "load", cpu=1))
    assert played.node_of("load-0") == ["n1"]
    await played.turn(member("other", shape(cpu=2)))
    assert played.node_of("other") == [None if holds else NodeName("n1")]
    played.cluster.change_pod("load-0", phase=Phase.SUCCEEDED)
    await played.turn()
    assert played.node_of("other") == [None if holds else NodeName("n1")]
    await played.turn(*(stage_pod(f"node-{i}", "node", cpu=2) for i in range(2)))
    assert played.node_of("node-0", "node-1") == [NodeName("n1") if holds else None] * 2
    assert played.cluster.broken == []


async def test_the_first_stage_waits_while_there_is_no_room_for_the_second() -> None:
    played = Played(holds=True)
    await played.turn(member("other", shape(cpu=1)))
    await played.turn(stage_pod("load-0", "load", cpu=1))
    assert played.node_of("load-0") == [None]


async def test_room_that_is_held_too_long_is_given_back_and_the_stage_then_starts_whole() -> None:
    played = Played(holds=True)
    await played.turn(stage_pod("load-0", "load", cpu=1))
    await played.turn(member("other", shape(cpu=2)))
    played.clock.now += HOLD_SECONDS
    await played.turn()
    assert played.node_of("other") == [NodeName("n1")]
    played.cluster.change_pod("load-0", phase=Phase.SUCCEEDED)
    await played.turn(*(stage_pod(f"node-{i}", "node", cpu=2) for i in range(2)))
    assert played.node_of("node-0", "node-1") == [None, None]
    played.cluster.delete_pod("other")
    await played.turn()
    assert played.node_of("node-0", "node-1") == [NodeName("n1")] * 2
    assert played.cluster.broken == []


async def test_a_pod_that_failed_and_is_made_again_starts_without_room_for_later_stages() -> None:
    """A Job keeps its failed pod; the stage of the new one waits for its own room alone."""
    played = Played(holds=True)
    await played.turn(stage_pod("load-0", "load", cpu=1))
    played.cluster.change_pod("load-0", phase=Phase.FAILED)
    await played.turn(member("other", shape(cpu=2)))
    assert played.node_of("other") == [NodeName("n1")]
    await played.turn(stage_pod("load-1", "load", cpu=1))
    assert played.node_of("load-1") == [NodeName("n1")]
    played.cluster.change_pod("load-1", phase=Phase.SUCCEEDED)
    played.cluster.delete_pod("other")
    await played.turn(*(stage_pod(f"node-{i}", "node", cpu=2) for i in range(2)))
    assert played.node_of("node-0", "node-1") == [NodeName("n1")] * 2
    assert played.cluster.broken == []


async def test_room_for_the_second_stage_keeps_its_rules_beside_pods_that_run() -> None:
    """Its pods must not be beside pods with the label ``app=db``, as the first node has."""
    apart = gang("x").of(1, cpu=2).apart("zone", peers(app="db")).made
    played = Played(holds=True, later=replace(NODES, template=Template(apart.members[0].shape)))
    played.cluster.add(node("n1", cpu=9).labelled(zone="a"), node("n2", cpu=9).labelled(zone="b"))
    played.cluster.add(single("db-0", cpu=1).labelled(app="db").bound_on("n1"))
    await played.turn(stage_pod("load-0", "load", cpu=1))
    (reservation,) = played.cluster.reservations.values()
    assert {slot.node for slot in reservation.slots} == {NodeName("n2")}


async def test_a_pod_of_an_earlier_run_that_failed_keeps_no_room_from_later_stages() -> None:
    played = Played(holds=True)
    await played.turn(stage_pod("load-0", "load", cpu=1))
    played.cluster.change_pod("load-0", phase=Phase.FAILED)
    await played.turn(member("other", shape(cpu=2)))
    await played.turn(replace(stage_pod("load-1", "load", cpu=1), run=1))
    assert played.node_of("load-1") == [None]
    played.cluster.delete_pod("load-0")
    played.cluster.delete_pod("other")
    await played.turn()
    assert played.node_of("load-1") == [NodeName("n1")]
    (reservation,) = played.cluster.reservations.values()
    assert sum(slot.count for slot in reservation.slots) == 2
