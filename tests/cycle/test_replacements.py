"""A gang that waits does not take the room of a lost member before its replacement exists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.model.cluster import Phase
from tutti.model.keys import NodeName, PodKey, Uid
from tutti.model.owners import Owner
from tutti.state.lost_members import HOLD_SECONDS

from ..harness.builders import NAMESPACE, gang, node, single
from ..harness.fakes import Clock, FakeCluster, Life

if TYPE_CHECKING:
    from tutti.model.cluster import Member

OWNER = Owner("Job", "a", "batch", Uid("job"))


class Play:
    """Gang a runs on two nodes of one CPU; gang b of one member waits for a CPU."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeCluster(), Clock()
        running = gang("a").of(2, cpu=1).bound_on("n1", "n2")
        self.running = running.each(phase=Phase.RUNNING, owner=OWNER)
        self.cluster.add(node("n1", cpu=1), node("n2", cpu=1), self.running)
        self.cluster.add(gang("b").of(1, cpu=1))
        self.life = Life(self.cluster, self.clock)

    async def until_settled(self) -> None:
        """Cycle until nothing is due."""
        self.life.watch.catch_up()
        await self.life.settle()

    async def lose_a_member(self) -> Member:
        """Let a member be deleted, and Tutti see that; answers its replacement."""
        await self.until_settled()
        assert self.node_of("b-0") is None
        self.cluster.delete_pod("a-1")
        self.life.watch.catch_up()
        await self.life.turn()
        await self.life.turn()
        assert self.node_of("b-0") is None
        lost = self.running.made.members[1]
        key = lost.key._replace(name="a-new")
        return replace(lost, key=key, uid=Uid("new"), node=None, phase=Phase.PENDING, bound_at=None)

    def node_of(self, name: str) -> NodeName | None:
        """The node of a pod, once it is bound."""
        return self.cluster.pods[PodKey(NAMESPACE, name)].node


async def test_a_replacement_that_comes_at_once_gets_the_room_of_the_lost_member() -> None:
    play = Play()
    replacement = await play.lose_a_member()
    play.clock.now += 1.0
    play.cluster.add_pod(replacement)
    await play.until_settled()
    assert play.node_of("a-new") == NodeName("n2")
    assert play.node_of("b-0") is None


async def test_without_a_replacement_the_room_is_free_after_some_seconds() -> None:
    play = Play()
    await play.lose_a_member()
    next_turn = await play.life.turn()
    assert next_turn is not None
    assert next_turn <= HOLD_SECONDS
    play.clock.now += next_turn
    await play.until_settled()
    assert play.node_of("b-0") == NodeName("n2")


async def test_a_pod_of_others_that_takes_the_room_ends_the_hold() -> None:
    play = Play()
    await play.lose_a_member()
    assert play.life.state.next_free_room(play.clock.now) is not None
    play.cluster.add(single("other", cpu=1).bound_on("n2"))
    play.life.watch.catch_up()
    assert play.life.state.next_free_room(play.clock.now) is None
