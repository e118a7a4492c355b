"""Who cannot start beside others, counted by size."""

import numpy as np
import pytest

from tutti.gang import demand
from tutti.gang.demand import PlacementRequest
from tutti.planning.compile import grids
from tutti.planning.compile.capacity import FitByShape
from tutti.planning.queueing import room_bound
from tutti.planning.queueing.room_bound import RoomBound

from ....harness.builders import GangBuilder, NodeBuilder, gang, node, snapshot_of


def bound(
    nodes: list[NodeBuilder], *gangs: GangBuilder, beside: int = 0
) -> tuple[RoomBound, list[PlacementRequest]]:
    """The bound on these nodes, with the first gangs on some of them, and what gangs request."""
    snapshot = snapshot_of(*nodes, *gangs)
    wants = [
        want
        for gang in snapshot.gangs
        if (want := demand.start_request(demand.count_members(gang)))
    ]
    base = grids.grid(snapshot, (member.shape for want in wants for member in want.members))
    groups = (group for want in wants[:beside] for group in want.alike)
    return RoomBound.of(FitByShape(base, base.free)).beside(groups), wants


def test_pods_of_different_requests_are_counted_by_what_they_have_in_common() -> None:
    """Neither is larger than the other, but each takes a node of 8 GPUs for itself."""
    nodes = [node(f"n{i}", gpu=8, cpu=64) for i in range(3)]
    first = gang("a").of(2, gpu=8, cpu=1)
    found, (_, small, large) = bound(
        nodes, first, gang("b").of(1, gpu=7, cpu=9), gang("c").of(2, gpu=7, cpu=9), beside=1
    )
    assert not found.excludes(small)
    assert found.excludes(large)


def test_a_large_pod_counts_as_several_small_ones() -> None:
    nodes = [node("n1", gpu=8), node("n2", gpu=3)]
    found, (_, three, four) = bound(
        nodes, gang("a").of(1, gpu=8), gang("b").of(3, gpu=1), gang("c").of(4, gpu=1), beside=1
    )
    assert not found.excludes(three)
    assert found.excludes(four)


def test_nothing_is_said_of_gangs_of_different_pods() -> None:
    mixed = gang("a").of(2, gpu=8).of(2, gpu=1).needing(2)
    found, (want,) = bound([node("n1", gpu=1)], mixed)
    assert not found.excludes(want)


def test_of_too_many_sizes_none_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found, (want,) = bound([node("n1", gpu=1)], gang("a").of(1, gpu=8))
    assert found.excludes(want)
    monkeypatch.setattr(room_bound, "MOST_SIZES", 0)
    found, (want,) = bound([node("n1", gpu=1)], gang("a").of(1, gpu=8))
    assert not found.excludes(want)
    assert found.room.shape == (0,)
    assert np.array_equal(found.used, found.room)
