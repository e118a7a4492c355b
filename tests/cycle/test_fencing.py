"""A leader that was paused at any moment and wakes up deposed does no harm.

No clock takes part: what protects is the term, read again after reserving, and the preconditions
of every call. The paused leader stops before or after each commit of its own in turn; another
takes over, finds the nodes changed, plans again and comes to rest; then the first goes on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tutti.model.keys import NodeName

from ..harness import builders
from ..harness.builders import gang, node, shape
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios
from .scenarios import SCENARIOS

for_each_scenario = pytest.mark.parametrize("name", SCENARIOS)
moments = pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])

Change = Callable[[FakeCluster], None]


def nothing(_cluster: FakeCluster) -> None:
    """Leave the nodes as they are."""


def cordon_the_first(cluster: FakeCluster) -> None:
    """Close the first node, and offer another in its place."""
    cluster.change_node("n1", unschedulable=True)
    cluster.put_node(node("n9", cpu=9, gpu=4).made)


def fill_the_first(cluster: FakeCluster) -> None:
    """Let somebody else take what the first node has left for a moment, and offer another."""
    cluster.put_node(node("n9", cpu=9, gpu=4).made)
    cluster.occupy("n1", shape(cpu=0.5).requests)


def want_the_same_room(cluster: FakeCluster) -> None:
    """Add a gang that takes whatever is given back."""
    cordon_the_first(cluster)
    cluster.add(gang("z").of(1, cpu=1).priority(99))


CHANGES = (nothing, cordon_the_first, fill_the_first, want_the_same_room)


async def run_with_a_pause(
    cluster: FakeCluster, number: int, change: Change, *, is_committed: bool
) -> tuple[Life, Life]:
    """Pause the first life at its call of that number for as long as a second one leads."""
    clock = Clock()
    first = Life(cluster, clock, identity="tutti-0")
    second: list[Life] = []

    async def pause(at: int, committed: bool) -> None:  # noqa: FBT001 - as it is called
        if second or at != number or committed is not is_committed:
            return
        change(cluster)
        second.append(Life(cluster, clock, identity="tutti-1"))
        clock.now += 60.0
        await second[0].settle()

    cluster.pause = pause
    await first.settle()
    cluster.pause = _never
    if not second:
        second.append(Life(cluster, clock, identity="tutti-1"))
    await second[0].settle()
    return first, second[0]


async def _never(_at: int, _committed: bool) -> None:  # noqa: FBT001
    pass


@for_each_scenario
@moments
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_a_leader_paused_at_any_call_does_no_harm_when_it_wakes(
    name: str, change: Change, *, is_committed: bool
) -> None:
    unbroken = SCENARIOS[name]()
    await Life(unbroken, Clock()).settle()
    for number in range(1, len(unbroken.calls) + 1):
        cluster = SCENARIOS[name]()
        _first, second = await run_with_a_pause(cluster, number, change, is_committed=is_committed)
        # Another scheduler's pods may collide; nobody else may.
        collisions = ["does not fit n1"] if change is fill_the_first else []
        broken = [
            said
            for said in cluster.broken
            if not any(collision in said for collision in collisions)
        ]
        assert broken == [], number
        assert scenarios.half_bound(cluster) == [], number
        assert cluster.reservations == {}, number
        assert second.problems == [], number


async def test_room_is_given_away_only_after_a_late_binding_can_no_longer_succeed() -> None:
    """A binding of the old leader is under way while the new one hands its room to another gang."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    clock = Clock(1.5)  # too early for reports, which change pods as well
    first = Life(cluster, clock, identity="tutti-0")
    later: list[Life] = []
    awake = asyncio.Event()

    async def pause(at: int, committed: bool) -> None:  # noqa: FBT001
        if committed or at not in (3, 4):
            return
        assert cluster.calls[at - 1] == "bind"
        if later:
            await awake.wait()
            return
        # One member is gone, so the Reservation is given back, and another gang takes the room.
        cluster.delete_pod("a-0")
        cluster.add(gang("b").of(2, cpu=1).priority(1).but(created=5.0))
        later.append(Life(cluster, clock, identity="tutti-1"))
        for _ in range(3):
            await later[0].turn()
        assert scenarios.places(cluster, "b") == ["n1", "n1"]
        awake.set()

    cluster.pause = pause
    await first.settle()
    assert later
    assert cluster.broken == []
    assert scenarios.places(cluster, "a") == []


async def test_a_deposed_leader_gives_back_what_it_reserved_and_binds_nothing() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    life = Life(cluster, Clock())

    async def pause(_at: int, committed: bool) -> None:  # noqa: FBT001
        if cluster.calls[-1] == "reserve" and not committed:
            cluster.take_lease("somebody")

    cluster.pause = pause
    await life.settle()
    assert life.is_deposed
    assert cluster.reservations == {}
    assert "bind" not in cluster.calls


async def test_a_leader_whose_term_ends_while_a_binding_has_no_answer_sends_no_other() -> None:
    """As while a webhook hangs: the election goes on meanwhile, and another leader may plan."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=3), gang("a").of(3, cpu=1))
    first = Life(cluster, Clock(), identity="tutti-0", in_flight=1)

    async def pause(_at: int, committed: bool) -> None:  # noqa: FBT001
        if cluster.calls[-1] == "bind" and committed:
            first.leads = False

    cluster.pause = pause
    await first.settle()
    assert first.is_deposed
    assert cluster.calls.count("bind") == 1
    assert len(cluster.reservations) == 1, "the next leader carries it out"
    cluster.pause = _never
    await Life(cluster, Clock(), identity="tutti-1").settle()
    assert scenarios.places(cluster, "a") == ["n1", "n1", "n1"]
    assert cluster.broken == []


async def test_a_reservation_of_a_past_term_that_turns_up_late_is_deleted_not_carried_out() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    old = Life(cluster, Clock(), identity="tutti-0")
    new: list[Life] = []

    async def pause(_at: int, committed: bool) -> None:  # noqa: FBT001
        # The new leader has listed and begun before the old one's Reservation arrives.
        if cluster.calls[-1] == "reserve" and not committed and not new:
            new.append(Life(cluster, Clock(), identity="tutti-1"))
            cluster.change_node("n1", unschedulable=True)
            new[0].watch.catch_up()
            await new[0].settle()
        if cluster.calls[-1] == "read_lease" and new:
            cluster.is_dead = True  # the old leader ends before it could give anything back

    cluster.pause = pause
    with pytest.raises(Crash):
        await old.settle()
    cluster.is_dead = False
    cluster.pause = _never
    assert len(cluster.reservations) == 1
    cluster.change_node("n1", unschedulable=False)
    made = len(cluster.calls)
    new[0].watch.catch_up()
    await new[0].settle()
    calls = cluster.calls[made:]
    assert calls.index("release") < calls.index("bind")
    assert calls.count("reserve") == 1, "it was planned again"
    scenarios.assert_promises(cluster)


async def test_a_member_recreated_under_the_same_name_is_not_bound_by_mistake() -> None:
    """Its binding is under way while the pod is replaced by one that asks for more."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    life = Life(cluster, Clock())
    replaced: list[str] = []

    async def pause(_at: int, committed: bool) -> None:  # noqa: FBT001
        if cluster.calls[-1] == "bind" and not committed and not replaced:
            replaced.append("a-0")
            old = cluster.pods[builders.member("a-0", shape(cpu=1)).key]
            cluster.delete_pod("a-0")
            cluster.add_pod(replace(old, shape=shape(cpu=2)))

    cluster.pause = pause
    await life.settle()
    assert replaced
    assert cluster.broken == []
    assert scenarios.places(cluster, "a") == ["n1"]


async def test_a_member_recreated_and_bound_by_hand_is_not_taken_for_the_one_reserved() -> None:
    """The answer to its binding was lost, and the name now belongs to another pod elsewhere."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), node("n2", cpu=1, unschedulable=True), gang("a").of(2, cpu=1))
    life = Life(cluster, Clock())
    replaced: list[str] = []

    async def pause(_at: int, committed: bool) -> None:  # noqa: FBT001
        if cluster.calls[-1] == "bind" and not committed and not replaced:
            replaced.append("a-0")
            old = cluster.pods[builders.member("a-0", shape(cpu=1)).key]
            cluster.delete_pod("a-0")
            cluster.add_pod(replace(old, node=NodeName("n2")))

    cluster.pause = pause
    await life.turn()
    gone = [member for member in life.state.snapshot(0.0).gangs[0].members if member.node == "n1"]
    assert [member.key.name for member in gone] == ["a-1"]
    await life.settle()
    scenarios.assert_promises(cluster)


async def test_a_standing_reservation_is_verified_before_it_is_carried_out() -> None:
    """The operator was away while the node that it had reserved was filled."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(2, cpu=1))
    first = Life(cluster, Clock())
    cluster.fault = lambda _, name: Fault(Crash()) if name == "bind" else None
    with pytest.raises(Crash):
        await first.settle()
    assert len(cluster.reservations) == 1
    cluster.fault = lambda *_: None
    cluster.occupy("n1", shape(cpu=1).requests)
    cluster.put_node(node("n2", cpu=2).made)
    await Life(cluster, Clock()).settle()
    assert scenarios.places(cluster, "a") == ["n2", "n2"]
    scenarios.assert_promises(cluster)
