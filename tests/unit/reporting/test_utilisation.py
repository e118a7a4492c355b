"""Figures of a picture: gangs by state, and the room, all of it accounted for."""

from collections import Counter
from dataclasses import replace

from hypothesis import given

from tutti.model.cluster import Phase, Snapshot
from tutti.reporting.utilisation import GangState, Utilisation, rooms, state_of, states

from ...harness.builders import gang, node, snapshot_of
from ...harness.generators import snapshots


def test_each_gang_is_what_it_has_come_to() -> None:
    lost = gang("lost").of(2, cpu=1).bound_on("n1")
    over = gang("over").of(1, cpu=1).each(phase=Phase.SUCCEEDED)
    gangs = (gang("new"), gang("waits").of(2, cpu=1), lost, over)
    snapshot = snapshot_of(node("n1", cpu=9), *gangs, gang("runs").of(1, cpu=1).bound_on("n1"))
    found = {one.key.name: state_of(one, snapshot) for one in snapshot.gangs}
    assert found == {
        "new": GangState.WAITING,
        "waits": GangState.WAITING,
        "lost": GangState.DEGRADED,
        "over": None,
        "runs": GangState.STARTED,
    }
    assert states(snapshot) == {**Counter(filter(None, found.values())), GangState.RESERVED: 0}


def test_room_is_allocated_reserved_free_or_stranded() -> None:
    snapshot = snapshot_of(
        node("full", cpu=2, gpu=4, memory=8, pods=9).using(cpu=2, gpu=1),
        node("open", cpu=8, gpu=4, memory=8, pods=9).using(cpu=1, gpu=1),
        node("shut", cpu=8, gpu=4, memory=8, pods=9).cordoned(),
    )
    assert rooms(snapshot)["nvidia.com/gpu"] == Utilisation(12, 2, 0, 10, 3 + 4)
    assert rooms(snapshot)["cpu"] == Utilisation(18_000, 3_000, 0, 15_000, 8_000)


@given(snapshots())
def test_what_is_free_was_offered_and_is_not_promised(seen: Snapshot) -> None:
    for room in rooms(seen).values():
        assert 0 <= room.stranded <= room.free <= room.allocatable
        assert room.free >= room.allocatable - room.allocated - room.reserved


@given(snapshots())
def test_every_gang_has_one_state_or_has_ended(seen: Snapshot) -> None:
    open_ones = [gang for gang in seen.gangs if state_of(gang, seen) is not None]
    assert sum(states(seen).values()) == len(open_ones)
    settled = replace(seen, settled=frozenset())
    assert states(settled) == states(seen)
