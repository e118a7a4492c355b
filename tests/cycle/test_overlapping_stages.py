"""A gang whose stages overlap: a job without a dependency runs beside the next stage."""

from dataclasses import replace

from tutti.kube.gang_sources import GangObject
from tutti.model.cluster import MadeFor, Phase, Role
from tutti.model.keys import PodKey, Uid

from ..harness.builders import NAMESPACE, shape
from .test_held_stages import KEY, Staged, stage_pod

LOAD, SIDE, NODES = Role("load", 1), Role("side", 2), Role("node", 2)


def overlapping(uid: str, created: float = 0.0) -> GangObject:
    """The gang, of which ``load`` and ``side`` start first."""
    first = (LOAD, SIDE)
    return GangObject(KEY, Uid(uid), 2, roles=first, stages=(first, (NODES,)), created=created)


class Played(Staged):
    """The gang, on one node."""

    def __init__(self, cpu: int) -> None:
        super().__init__(overlapping("g"), cpu)

    async def first_stage(self) -> None:
        """Start the first stage."""
        pods = (stage_pod("l", "load", 1), stage_pod("s", "side", 1), stage_pod("t", "side", 1))
        await self.turn(*(replace(pod, made_for=MadeFor(KEY.kind, Uid("g"))) for pod in pods))
        assert self.on_nodes() == ["l", "s", "t"]

    async def second_stage(self) -> None:
        """End ``load`` alone, and create the second stage."""
        await self.first_stage()
        self.end("l", Phase.SUCCEEDED)
        await self.turn(stage_pod("a", "node", 1), stage_pod("b", "node", 1))

    def end(self, name: str, phase: Phase) -> None:
        """A pod ends now."""
        self.cluster.change_pod(name, phase=phase, ended=self.clock.now)

    def on_nodes(self) -> list[str]:
        """The pods that have a node and are not over."""
        pods = self.cluster.pods.values()
        return sorted(pod.key.name for pod in pods if pod.node and not pod.is_over)


async def test_a_lost_pod_of_the_first_stage_is_replaced_while_the_second_runs() -> None:
    played = Played(cpu=4)
    await played.second_stage()
    assert played.on_nodes() == ["a", "b", "s", "t"]
    played.end("s", Phase.FAILED)
    await played.turn(stage_pod("s2", "side", 1))
    assert played.on_nodes() == ["a", "b", "s2", "t"]
    assert played.cluster.broken == []


async def test_the_second_stage_starts_whole_beside_the_first() -> None:
    """A pod that the first has lost waits until the second has started."""
    played = Played(cpu=3)
    await played.second_stage()
    assert played.on_nodes() == ["s", "t"]
    played.end("s", Phase.FAILED)
    await played.turn(stage_pod("s2", "side", 1))
    assert played.on_nodes() == ["a", "b", "t"]
    said = played.cluster.pods[PodKey(NAMESPACE, "s2")].scheduled_condition
    assert said.reason == "Unschedulable"
    played.end("t", Phase.SUCCEEDED)
    await played.turn()
    assert played.on_nodes() == ["a", "b", "s2"]


async def test_the_second_stage_waits_whole_if_its_room_is_taken_before_its_first_binding() -> None:
    played = Played(cpu=4)
    await played.first_stage()
    played.end("l", Phase.SUCCEEDED)

    def take(name: str) -> None:
        if name == "read_lease" and "reserve" in played.cluster.calls[calls:]:
            played.cluster.before = lambda _name: None
            played.cluster.occupy("n1", shape(cpu=1).requests)
            played.life.watch.catch_up()

    calls = len(played.cluster.calls)
    played.cluster.before = take
    await played.turn(stage_pod("a", "node", 1), stage_pod("b", "node", 1))
    assert "reserve" in played.cluster.calls[calls:]
    assert played.on_nodes() == ["s", "t"]


async def test_a_pod_of_a_later_stage_is_told_that_an_earlier_stage_starts_first() -> None:
    played = Played(cpu=2)
    await played.turn(
        stage_pod("l", "load", 1), stage_pod("s", "side", 1), stage_pod("a", "node", 1)
    )
    for _ in range(3):
        await played.turn()
    assert played.on_nodes() == []
    said = played.cluster.pods[PodKey(NAMESPACE, "a")].scheduled_condition
    assert said.reason == "WaitingForStage"
    assert said.message == (
        "JobSet tune starts in stages: pods of the role 'node' wait until the pods of another "
        "stage have started"
    )


async def test_no_member_is_bound_once_the_last_of_its_stage_is_lost_unseen() -> None:
    """Pods of an earlier stage that still count are not relied on."""
    played = Played(cpu=4)
    await played.second_stage()
    assert played.on_nodes() == ["a", "b", "s", "t"]
    played.end("b", Phase.FAILED)
    played.cluster.add_pod(replace(stage_pod("b2", "node", 1), created=played.clock.now))
    played.life.watch.catch_up()

    def lose(name: str) -> None:
        if name == "reserve":
            played.cluster.before = lambda _name: None
            played.end("a", Phase.FAILED)

    played.cluster.before = lose
    await played.life.turn()
    assert played.cluster.pods[PodKey(NAMESPACE, "b2")].node is None


async def test_a_gang_that_is_created_again_starts_whole_beside_pods_of_the_deleted_gang() -> None:
    played = Played(cpu=5)
    await played.first_stage()
    played.cluster.delete_group(KEY.name, KEY.kind)
    played.cluster._put_group(overlapping("g2", played.clock.now))
    new = (stage_pod(f"{role}-2", role, 1) for role in ("load", "side"))
    more = stage_pod("side-3", "side", 1)
    await played.turn(
        *(replace(pod, made_for=MadeFor(KEY.kind, Uid("g2"))) for pod in (*new, more))
    )
    assert played.on_nodes() == ["l", "s", "t"]
    played.cluster.delete_pod("l")
    await played.turn()
    assert played.on_nodes() == ["load-2", "s", "side-2", "side-3", "t"]
