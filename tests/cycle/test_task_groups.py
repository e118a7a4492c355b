"""Applications of YuniKorn: their PodGroup is made of the first pod, and they start whole."""

import json
from dataclasses import replace

from tutti.model.applications import ApplicationPod
from tutti.model.cluster import Member
from tutti.model.keys import GangKey, NodeName, PodKey
from tutti.state.applications import UNDECLARED, UNMADE

from ..harness.builders import NAMESPACE, member, node, shape
from ..harness.fakes import Clock, FakeCluster, Life

TEXT = json.dumps([{"name": "w", "minMember": 2, "minResource": {"cpu": 2}}])
WHOLE = GangKey(NAMESPACE, "a")


def worker(name: str, text: str = TEXT, cpu: int = 2) -> Member:
    application = ApplicationPod("a", "w", task_groups=text)
    return replace(member(name, shape(cpu=cpu), role="w"), application=application)


class Played:
    """A node of 4 CPUs, and an operator that reads task groups, or does not."""

    def __init__(self, *, reads: bool = True) -> None:
        self.cluster, self.clock = FakeCluster(), Clock()
        self.cluster.add(node("n1", cpu=4, memory=64))
        self.life = Life(self.cluster, self.clock, is_declaring=reads)

    async def submit(self, *members: Member) -> None:
        """Create pods, and let the operator see them."""
        for pod in members:
            self.cluster.add_pod(replace(pod, created=self.clock.now))
        self.life.watch.catch_up()
        for _ in range(3):
            await self.life.turn()

    def pod(self, name: str) -> Member:
        """One pod as it is."""
        return self.cluster.pods[PodKey(NAMESPACE, name)]


async def test_pods_without_task_groups_wait_until_another_pod_has_them() -> None:
    played = Played()
    await played.submit(worker("first", text=""))
    played.clock.now += 5.0
    await played.life.turn()
    assert played.pod("first").node is None
    assert played.pod("first").scheduled_condition.message == UNDECLARED
    await played.submit(worker("second"))
    assert {played.pod(name).node for name in ("first", "second")} == {NodeName("n1")}
    assert played.cluster.broken == []


async def test_room_is_held_for_the_pods_that_do_not_exist_yet() -> None:
    """As by YuniKorn's placeholders, but no pod is made for it."""
    played = Played()
    await played.submit(worker("first"))
    assert played.pod("first").node == NodeName("n1")
    await played.submit(member("other", shape(cpu=1)))
    assert played.pod("other").node is None
    await played.submit(worker("second", text=""))
    assert played.pod("second").node == NodeName("n1")
    assert played.cluster.broken == []


async def test_an_application_for_which_there_is_no_room_waits_whole() -> None:
    played = Played()
    await played.submit(member("other", shape(cpu=1)))
    await played.submit(worker("first"), worker("second"))
    assert [played.pod(name).node for name in ("first", "second")] == [None, None]
    assert played.cluster.declared[WHOLE]["spec"]["roles"][0]["minMember"] == 2


async def test_what_is_wrong_with_task_groups_is_said_on_the_pod() -> None:
    played = Played()
    await played.submit(worker("first", text="{"), worker("second", text="{"))
    played.clock.now += 5.0
    await played.life.turn()
    messages = {played.pod(name).scheduled_condition.message for name in ("first", "second")}
    assert {message.split(":")[0] for message in messages} == {
        "annotation yunikorn.apache.org/task-groups",
        UNMADE,
    }
    assert played.cluster.declared == {}


async def test_where_task_groups_are_not_read_the_pods_start_alone() -> None:
    played = Played(reads=False)
    await played.submit(worker("first"))
    assert played.pod("first").node == NodeName("n1")
    assert played.cluster.declared == {}
