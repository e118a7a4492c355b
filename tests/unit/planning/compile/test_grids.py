"""From names to numbers and back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from tutti.gang import demand
from tutti.gang.demand import PlacementRequest
from tutti.model.cluster import Member, Node, Phase, SlotReservation
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import NodeTerm, Shape
from tutti.planning.compile import answers, grids, problems
from tutti.planning.compile.grids import AMOUNT_LIMIT, Grid
from tutti.strategies.problem import DemandLevel, Outcome, Part, Share, Solution

from ....harness.builders import (
    GPU,
    GangBuilder,
    NodeBuilder,
    gang,
    member,
    node,
    reservation,
    resources,
    shape,
    snapshot_of,
)
from ....harness.builders import Part as Piece

N1, N2 = NodeName("n1"), NodeName("n2")


def want_of(of: GangBuilder) -> PlacementRequest:
    want = demand.start_request(demand.count_members(of.made))
    assert want is not None
    return want


def grid_of(*pieces: Piece) -> Grid:
    snapshot = snapshot_of(*pieces)
    return grids.grid(snapshot, (m.shape for g in snapshot.gangs for m in g.members))


def row(base: Grid, name: str) -> dict[str, int]:
    """A node's free room by resource."""
    index = [node.name for node in base.nodes].index(NodeName(name))
    return dict(zip(base.resources, base.free[index].tolist(), strict=True))


def test_the_axes_are_nodes_by_name_and_what_any_shape_asks_for() -> None:
    base = grid_of(node("n2"), node("n1"), gang("a").of(2, cpu=1).of(1, gpu=1))
    assert [each.name for each in base.nodes] == ["n1", "n2"]
    assert base.resources == ("cpu", GPU, "pods")
    assert base.requests.tolist() == [[1000, 0, 1], [0, 1, 1]]


def test_every_member_takes_one_of_a_nodes_pods_even_if_it_does_not_say_so() -> None:
    unsaid = gang("a").of(1).each(shape=Shape(resources(cpu=1)))
    assert grids.footprint(unsaid.members[0].shape) == resources(cpu=1, pods=1)
    assert grid_of(node("n1"), unsaid).requests.tolist() == [[1000, 1]]


def test_free_is_allocatable_less_used_less_reserved() -> None:
    held = gang("b").of(1, cpu=2)
    base = grid_of(
        node("n1", cpu=8).using(cpu=1),
        gang("a").of(1, cpu=1),
        held,
        reservation(held, ("b-0", "n1")),
    )
    assert row(base, "n1") == {"cpu": 5000, "pods": 108}
    assert base.capacity.tolist() == [[8000, 110]]


def test_a_resource_that_a_node_does_not_list_has_no_room_there() -> None:
    base = grid_of(node("n1", cpu=8), node("n2", gpu=1), gang("a").of(1, gpu=1))
    assert row(base, "n1")[GPU] == 0


def test_an_overdrawn_node_has_no_room_rather_than_a_debt() -> None:
    base = grid_of(node("n1", cpu=1, gpu=1).using(cpu=9), gang("a").of(1, cpu=1, gpu=1))
    assert row(base, "n1") == {"cpu": 0, GPU: 1, "pods": 109}


@pytest.mark.parametrize("room", [2**70, 2**49, 0])
def test_what_asks_for_more_than_any_node_has_never_fits(room: int) -> None:
    huge = NodeBuilder(Node(N1, Resources.of({"x": room, "pods": 110})))
    asks = gang("a").of(1).each(shape=Shape(Resources.of({"x": 2**80})))
    base = grid_of(huge, asks)
    assert base.requests[0].tolist() == [1, AMOUNT_LIMIT]
    assert row(base, "n1")["x"] < AMOUNT_LIMIT


@pytest.mark.parametrize("amount", [2**50, 600 * 2**40, 10**15, 2**60])
@pytest.mark.parametrize("members", [3, 4, 5])
def test_large_amounts_fit_exactly(amount: int, members: int) -> None:
    large = NodeBuilder(Node(N1, Resources.of({"x": 4 * amount + 1, "pods": 110})))
    asks = gang("a").of(1).each(shape=Shape(Resources.of({"x": amount})))
    base = grid_of(large.but(used=Resources.of({"x": 1})), asks)
    asked, room = int(base.requests[0, 1]), row(base, "n1")["x"]
    assert (asked * members <= room) == (members <= 4)
    assert asked <= AMOUNT_LIMIT


def test_a_request_that_is_no_whole_number_of_units_counts_as_more() -> None:
    def asking(amount: int) -> Grid:
        large = NodeBuilder(Node(N1, Resources.of({"x": 2**52, "pods": 110})))
        return grid_of(large, gang("a").of(1).each(shape=Shape(Resources.of({"x": amount}))))

    assert not asking(2**51).is_rounded
    odd = asking(2**51 + 1)
    assert odd.is_rounded
    assert int(odd.requests[0, 1]) * odd.units[1] > 2**51
    assert not asking(2**53 + 1).is_rounded  # no node has so much


def test_an_absurd_amount_on_one_node_leaves_others_as_they_are() -> None:
    huge = NodeBuilder(Node(N1, Resources.of({"x": 2**80, "pods": 110})))
    small = NodeBuilder(Node(N2, Resources.of({"x": 3, "pods": 110})))
    asks = gang("a").of(2).each(shape=Shape(Resources.of({"x": 1})))
    base = grid_of(huge, small, asks)
    assert (base.units, row(base, "n2")["x"], base.requests[0, 1]) == ((1, 1), 3, 1)


def test_room_that_gangs_give_back_is_exact_for_large_amounts() -> None:
    large = NodeBuilder(Node(N1, Resources.of({"x": 2**52 + 5, "pods": 110})))
    running = (
        gang("a").of(1).each(shape=Shape(Resources.of({"x": 2**51})), node=N1, phase=Phase.RUNNING)
    )
    waiting = gang("b").of(1).each(shape=Shape(Resources.of({"x": 2**51})))
    snapshot = snapshot_of(large.but(used=Resources.of({"x": 5})), running, waiting)
    base = grids.grid(snapshot, [waiting.members[0].shape])
    assert base.free[0, 1] == base.requests[0, 1]
    assert grids.vacant(snapshot, base)[0, 1] == 2 * base.requests[0, 1]


def test_equal_shapes_are_one_and_node_rules_are_kept() -> None:
    in_a = (("pool", "a"),)
    anywhere, only_a = gang("a").of(2, cpu=1), gang("b").of(2, cpu=1).shaped(node_selector=in_a)
    base = grid_of(node("n1").labelled(pool="a"), node("n2"), anywhere, only_a)
    assert base.allowed.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("twins", [1, 3])
def test_nodes_that_no_rule_tells_apart_get_the_same_answer(twins: int) -> None:
    needs = NodeTerm(labels=(Requirement("pool", "In", ("a",)),))
    picky = gang("a").of(1).shaped(required=(needs,))
    alike = [node(f"n{i}").labelled(host=f"h{i}", pool="a") for i in range(twins)]
    base = grid_of(*alike, node("other").labelled(host="h"), picky)
    assert base.allowed.tolist() == [[True] * twins + [False]]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"rack": "r1"}, [True, True, False, False]),
        ({"rack": "r1", "pool": "a"}, [True, False, False, False]),
        ({"rack": "r2", "pool": "b"}, [False, False, False, True]),
        ({"rack": "r3"}, [False] * 4),
        ({"rack": "r1", "zone": "z"}, [False] * 4),
    ],
)
def test_a_selector_of_several_labels_allows_the_nodes_that_have_all_of_them(
    selector: Mapping[str, str], expected: Sequence[bool]
) -> None:
    nodes = [
        node(f"n{i}").labelled(rack=rack, pool=pool)
        for i, (rack, pool) in enumerate([("r1", "a"), ("r1", "b"), ("r2", "a"), ("r2", "b")])
    ]
    picky = gang("a").of(1).shaped(node_selector=tuple(sorted(selector.items())))
    base = grid_of(*nodes, picky, gang("b").of(1))
    assert base.allowed.tolist() == [list(expected), [True] * 4]


def test_members_are_told_apart_by_what_their_shapes_say() -> None:
    twins = gang("a").of(2, cpu=1).of(1, cpu=2).made.members
    again = replace(twins[1], shape=replace(twins[1].shape))
    assert again.shape is not twins[0].shape
    assert demand.by_shape((twins[0], again, twins[2])) == ((twins[0], again), (twins[2],))
    assert demand.by_shape(()) == ()


def test_a_rule_on_the_nodes_name_tells_equal_nodes_apart() -> None:
    on_n2 = NodeTerm(fields=(Requirement("metadata.name", "In", ("n2",)),))
    base = grid_of(node("n1"), node("n2"), gang("a").of(1).shaped(required=(on_n2,)))
    assert base.allowed.tolist() == [[False, True]]


def test_a_reserved_member_holds_room_until_its_node_counts_it() -> None:
    made = gang("a").of(3, cpu=1).bound_on("n1")
    held = reservation(made, ("a-0", "n1"), ("a-1", "n1"), ("a-2", "n2"))
    expected = {N1: resources(cpu=1, pods=1), N2: resources(cpu=1, pods=1)}
    assert grids.reserved_room(snapshot_of(made, held)) == expected


def test_an_unknown_member_holds_the_most_that_its_siblings_ask_for() -> None:
    made = gang("a").of(1, cpu=1).of(1, gpu=1)
    assert grids.reserved_room(snapshot_of(made, reservation(made, ("a-9", "n1")))) == {
        N1: resources(cpu=1, gpu=1, pods=1)
    }
    stranger = reservation(gang("b"), ("b-0", "n1"))
    assert grids.reserved_room(snapshot_of(stranger)) == {N1: resources()}


def test_a_strays_room_is_held_as_well() -> None:
    made = gang("a").of(1, cpu=3)
    held = reservation(made, ("a-0", "n1"))
    assert grids.reserved_room(snapshot_of(held, strays=made.members)) == {
        N1: resources(cpu=3, pods=1)
    }


def test_slots_hold_the_most_that_members_of_their_role_ask_for() -> None:
    made = gang("a").role("driver", 1, cpu=8).role("worker", 1, cpu=2)
    held = reservation(
        made, slots=(SlotReservation(N1, "worker", 3), SlotReservation(N2, "other", 1))
    )
    found = grids.reserved_room(snapshot_of(made, held))
    assert found == {N1: resources(cpu=6, pods=3), N2: resources()}


def test_a_demand_has_a_part_per_role_and_shape() -> None:
    made = (
        gang("a").role("driver", 1, cpu=1).role("worker", 2, 3, cpu=1).of(1, role="worker", gpu=1)
    )
    made = made.needing(3).priority(7)
    base = grid_of(node("n1", cpu=8, gpu=1), made)
    found = problems.problem(base, base.free, [want_of(made)], [9]).demands[0]
    assert found.parts == (Part(0, 0, 1), Part(0, 1, 3), Part(1, 1, 1))
    assert (found.need, found.role_minimum, found.level, found.value) == (
        3,
        (1, 2),
        DemandLevel(7),
        9,
    )


def test_who_goes_first_is_above_its_priority_and_below_the_next() -> None:
    made = gang("a").of(1).priority(7)
    base = grid_of(node("n1", cpu=8), made)
    want = replace(want_of(made), is_starved=True)
    assert problems.problem(base, base.free, [want], [1]).demands[0].level == DemandLevel(
        7, is_starved=True
    )


def test_the_vacant_cluster_is_what_others_leave_when_all_members_of_gangs_have_ended() -> None:
    running = gang("a").of(3, cpu=2).bound_on("n1", "n1", "n2").only("a-2", phase=Phase.FAILED)
    snapshot = snapshot_of(
        node("n1", cpu=8, pods=9).using(cpu=1),
        node("n2", cpu=4, pods=9).using(cpu=1),
        running,
        strays=[replace(member("stray", shape(cpu=1)), node=NodeName("n2"))],
    )
    base = grids.grid(snapshot, [shape(cpu=1)])
    assert grids.vacant(snapshot, base).tolist() == [[7000, 8], [4000, 9]]


def test_without_roles_there_is_one_of_no_minimum() -> None:
    made = gang("a").of(2, role="ignored", cpu=1)
    base = grid_of(node("n1", cpu=8), made)
    found = problems.problem(base, base.free, [want_of(made)], [9]).demands[0]
    assert (found.parts, found.role_minimum) == ((Part(0, 0, 2),), (0,))


def test_the_oldest_members_take_the_first_nodes() -> None:
    made = gang("a").of(3, cpu=1).only("a-0", created=9.0)
    base = grid_of(node("n1", cpu=4), node("n2", cpu=4), made)
    shares = (Share(0, 1, 2), Share(0, 0, 1))
    given = answers.assignments(base, [want_of(made)], Solution(Outcome.PROVED, (shares,)))
    assert [(one.pod.name, one.node) for one in given[0]] == [("a-1", N1), ("a-2", N2), ("a-0", N2)]
    assert (given[0][0].uid, given[0][0].version) == (Uid("ml/a-1-uid"), "1")


def test_room_is_taken_by_what_is_admitted_only() -> None:
    made, other = gang("a").of(2, cpu=1), gang("b").of(2, cpu=1)
    base = grid_of(node("n1", cpu=4), made, other)
    solution = Solution(Outcome.PROVED, ((Share(0, 0, 2),), ()))
    wants = [want_of(made), want_of(other)]
    assert answers.room_left(base, base.free, wants, solution).tolist() == [[2000, 108]]
    assert answers.assignments(base, wants, solution)[1] == ()


def test_a_solution_that_takes_too_much_leaves_no_debt() -> None:
    made = gang("a").of(2, cpu=1)
    base = grid_of(node("n1", cpu=1), made)
    solution = Solution(Outcome.PROVED, ((Share(0, 0, 2),),))
    assert answers.room_left(base, base.free, [want_of(made)], solution).tolist() == [[0, 108]]


def test_a_shape_says_what_decoding_says_of_a_pod() -> None:
    assert shape(cpu=1).requests == resources(cpu=1, pods=1)


def test_a_gang_is_looked_at_once_for_the_level_of_all_its_members() -> None:
    """Members beyond those needed request nodes by themselves, each with the gang's priority."""
    looks = []

    class Members(tuple[Member, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Member]:
            looks.append(len(self))
            return super().__iter__()

    made = gang("a").of(9, cpu=1).priority(5).needing(1).made
    watched = replace(made, members=Members(made.members))
    wants = [PlacementRequest(watched, 1, (member,)) for member in made.members]
    starved = replace(wants[0], is_starved=True)
    levels = problems.levels([*wants, starved])
    assert levels == [DemandLevel(5)] * 9 + [DemandLevel(5, is_starved=True)]
    assert looks == [9]
