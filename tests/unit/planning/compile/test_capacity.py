"""The room for each shape, which is counted once for all pods that request the same."""

from tutti.gang import demand
from tutti.planning.compile import capacity, grids
from tutti.planning.compile.capacity import Fit, FitByShape

from ....harness.builders import gang, node, shape, snapshot_of


def test_equal_shapes_are_counted_once_whichever_object_each_is() -> None:
    cluster = snapshot_of(node("n1", cpu=8), node("n2", cpu=3))
    one, other = shape(cpu=2), shape(cpu=2)
    grid = grids.grid(cluster, [one])
    rooms = FitByShape(grid, grid.free)
    assert one is not other
    assert rooms[one] is rooms[other]
    assert rooms[one] == Fit(members=5, nodes=2)
    assert [*rooms.known] == [one]


def test_only_a_gang_that_needs_more_members_than_fit_is_short_of_room() -> None:
    cluster = snapshot_of(node("n1", cpu=8), gang("a").of(4, cpu=2), gang("b").of(5, cpu=2))
    requests = [demand.start_request(demand.count_members(one)) for one in cluster.gangs]
    fits, exceeds = [request for request in requests if request is not None]
    grid = grids.grid(cluster, [m.shape for one in cluster.gangs for m in one.members])
    rooms = FitByShape(grid, grid.free)
    assert capacity.short(rooms, fits) is None
    shortage = capacity.short(rooms, exceeds)
    assert shortage is not None
    assert (shortage.room.members, shortage.lacking) == (4, 1)
    assert capacity.nowhere_member(rooms, exceeds) is None
