"""The checker catches every kind of broken plan, and every promise that can no longer be kept."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tutti.model.cluster import Phase, SlotReservation, Snapshot
from tutti.model.decisions import Assignment, Placement, Plan
from tutti.model.keys import NodeName, PodKey, Uid
from tutti.model.ports import HostPort
from tutti.verify import plan_checks, reservation_checks

from ...harness.builders import (
    GangBuilder,
    NodeBuilder,
    Part,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
)

N1, N2 = NodeName("n1"), NodeName("n2")


def placing(of: GangBuilder, *where: tuple[str, str]) -> Placement:
    """A placement of pods by name on nodes by name."""
    made = of.made
    members = {m.key.name: m for m in made.members}
    return Placement(
        made.key,
        made.uid,
        made.generation,
        tuple(
            Assignment(members[pod].key, members[pod].uid, "1", NodeName(on)) for pod, on in where
        ),
    )


def broken(*parts: Part | Placement) -> tuple[str, ...]:
    """What a plan of these placements breaks."""
    placements = tuple(part for part in parts if isinstance(part, Placement))
    pieces = [part for part in parts if not isinstance(part, Placement)]
    return plan_checks.violations(snapshot_of(*pieces), Plan(placements))


A = gang("a").of(2, cpu=2)
ROOMY = node("n1", cpu=8)
ON_N1 = placing(A, ("a-0", "n1"), ("a-1", "n1"))


def test_a_good_plan_breaks_nothing() -> None:
    assert broken(ROOMY, A, ON_N1) == ()


def test_a_plan_for_an_unknown_gang_is_caught() -> None:
    assert broken(ROOMY, ON_N1) == ("gang ml/a: there is no such gang",)


def test_a_plan_for_the_gang_that_had_this_name_before_is_caught() -> None:
    old = replace(ON_N1, uid=Uid("old"))
    assert broken(ROOMY, A, old) == ("gang ml/a: there is no such gang",)


LEFT_ALONE = "gang ml/a: it is being deleted, or has a placement already"


def test_a_plan_for_a_gang_that_is_being_deleted_is_caught() -> None:
    assert broken(ROOMY, A.but(terminating=True), ON_N1) == (LEFT_ALONE,)


def test_a_second_placement_of_one_gang_is_caught() -> None:
    assert LEFT_ALONE in broken(ROOMY, A, ON_N1, ON_N1)


def test_a_plan_for_a_gang_with_a_standing_reservation_is_caught() -> None:
    assert LEFT_ALONE in broken(ROOMY, A, ON_N1, reservation(A))


def test_a_pod_that_another_reservation_holds_is_caught() -> None:
    other = gang("b").of(1)
    entries = reservation(A, ("a-0", "n1")).entries
    held = replace(reservation(other), entries=entries)
    assert broken(ROOMY, A, other, held, ON_N1) == ("pod ml/a-0: it has a node already",)


def test_one_pod_on_two_nodes_is_caught() -> None:
    twice = placing(A, ("a-0", "n1"), ("a-0", "n2"), ("a-1", "n1"))
    assert broken(ROOMY, node("n2", cpu=8), A, twice) == ("pod ml/a-0: it has a node already",)


def altered(change: Callable[[Assignment], Assignment]) -> Placement:
    """The good placement with its first assignment changed."""
    first, *rest = ON_N1.assignments
    return replace(ON_N1, assignments=(change(first), *rest))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda one: replace(one, uid=Uid("gone")), id="another-uid"),
        pytest.param(lambda one: replace(one, pod=PodKey("ml", "x")), id="another-name"),
    ],
)
def test_a_pod_that_is_not_there_is_caught(change: Callable[[Assignment], Assignment]) -> None:
    placement = altered(change)
    pod = placement.assignments[0].pod
    assert (
        broken(ROOMY, A, placement)
        == (
            f"pod {pod}: it is no member of gang ml/a",
            "gang ml/a: 1 of 2 members are placed",
        )[: 1 if pod.name == "x" else 2]
    )


def test_a_pod_of_another_gang_is_caught() -> None:
    other = gang("b").of(1)
    stolen = replace(ON_N1, assignments=placing(other, ("b-0", "n1")).assignments)
    assert "pod ml/b-0: it is no member of gang ml/a" in broken(ROOMY, A, other, stolen)


def test_a_node_that_is_not_there_is_caught() -> None:
    placement = altered(lambda one: replace(one, node=N2))
    assert broken(ROOMY, A, placement) == ("pod ml/a-0: there is no node n2",)


@pytest.mark.parametrize(
    "state",
    [
        {"node": N2},
        {"gates": ("hold",)},
        {"terminating": True},
        {"phase": Phase.FAILED},
        {"unsupported_fields": ("spec.x",)},
        {"volume_problems": ("claim x does not exist",)},
    ],
)
def test_a_pod_that_cannot_be_placed_now_is_caught(state: dict[str, object]) -> None:
    made = gang("a").of(3, cpu=1).needing(2).only("a-0", **state)
    placement = placing(made, ("a-0", "n1"), ("a-1", "n1"), ("a-2", "n1"))
    assert broken(ROOMY, made, placement) == ("pod ml/a-0: it cannot be placed now",)


def test_a_pod_of_no_known_role_is_caught() -> None:
    made = gang("a").role("worker", 1).of(1, role="other").needing(1)
    placement = placing(made, ("a-0", "n1"), ("a-1", "n1"))
    assert broken(ROOMY, made, placement) == ("pod ml/a-1: it cannot be placed now",)


def test_a_node_that_the_rules_forbid_is_caught() -> None:
    found = broken(ROOMY.cordoned(), A, ON_N1)
    assert found[0] == "pod ml/a-0: node n1 will not do: is cordoned"


def test_too_much_on_one_node_is_caught() -> None:
    assert broken(node("n1", cpu=3), A, ON_N1) == ("pod ml/a-1: node n1 has too little cpu",)


def test_two_gangs_that_each_fit_alone_are_caught_together() -> None:
    other = gang("b").of(1, cpu=2)
    found = broken(node("n1", cpu=5), A, other, ON_N1, placing(other, ("b-0", "n1")))
    assert found == ("pod ml/b-0: node n1 has too little cpu",)


def test_pods_are_counted_even_if_they_ask_for_nothing() -> None:
    found = broken(node("n1", cpu=8, pods=1), A, ON_N1)
    assert found == ("pod ml/a-1: node n1 has too little pods",)


def test_room_used_by_others_is_counted() -> None:
    assert broken(node("n1", cpu=4).using(cpu=1), A, ON_N1) == (
        "pod ml/a-1: node n1 has too little cpu",
    )


def test_an_overdrawn_resource_that_is_not_asked_for_is_no_violation() -> None:
    assert broken(node("n1", cpu=4, memory=1).using(memory=2), A, ON_N1) == ()


def test_room_that_reservations_hold_is_counted() -> None:
    held = gang("b").of(2, cpu=2).role("worker", 0, 1, cpu=1)
    whole = reservation(
        held, ("b-0", "n1"), ("b-9", "n1"), slots=[SlotReservation(N1, "worker", 2)]
    )
    # 2 for b-0, 2 for the unknown b-9, 2 for two slots, 4 for the plan
    assert broken(node("n1", cpu=10), A, held, whole, ON_N1) == ()
    assert broken(node("n1", cpu=9), A, held, whole, ON_N1) == (
        "pod ml/a-1: node n1 has too little cpu",
    )


def test_a_reserved_member_that_is_bound_is_counted_once() -> None:
    held = gang("b").of(1, cpu=2).bound_on("n1")
    assert broken(node("n1", cpu=6), A, held, reservation(held, ("b-0", "n1")), ON_N1) == ()


def test_reservations_of_unknown_gangs_and_nodes_do_no_harm() -> None:
    assert broken(ROOMY, A, reservation(gang("b"), ("b-0", "n1"), ("b-1", "gone")), ON_N1) == ()


def test_a_gang_that_is_not_whole_is_caught() -> None:
    assert broken(ROOMY, A, placing(A, ("a-0", "n1"))) == ("gang ml/a: 1 of 2 members are placed",)


def test_a_role_that_is_short_is_caught() -> None:
    made = gang("a").role("driver", 1).role("worker", 1, 2).needing(2)
    placement = placing(made, ("a-1", "n1"), ("a-2", "n1"))
    assert broken(ROOMY, made, placement) == ("gang ml/a: 0 of 1 of role driver are placed",)


def test_a_started_gang_may_get_its_members_one_by_one() -> None:
    started = gang("a").of(4, cpu=1).bound_on("n1")
    assert broken(ROOMY, started, placing(started, ("a-1", "n1"))) == ()


def test_a_bound_member_of_no_known_role_does_not_make_a_gang_started() -> None:
    made = gang("a").of(1, role="other").bound_on("n1").role("worker", 2).needing(2)
    found = broken(ROOMY, made, placing(made, ("a-1", "n1")))
    assert found[0] == "gang ml/a: 1 of 2 members are placed"


def test_a_gang_of_one_is_checked_alike() -> None:
    alone = single("p", cpu=9)
    assert broken(ROOMY, alone, placing(alone, ("p", "n1"))) == (
        "pod ml/p: node n1 has too little cpu",
    )


def upheld(*parts: Part | Placement) -> list[str]:
    """The gangs whose placements still hold."""
    placements = [part for part in parts if isinstance(part, Placement)]
    snapshot = snapshot_of(*(part for part in parts if not isinstance(part, Placement)))
    return [each.gang.name for each in plan_checks.upheld(snapshot, placements)]


def test_placements_that_break_nothing_are_upheld() -> None:
    assert upheld(ROOMY, A, ON_N1) == ["a"]
    assert upheld(node("n1", cpu=1), A, ON_N1) == []


def test_of_no_placements_none_is_upheld() -> None:
    assert plan_checks.upheld(snapshot_of(*NODES), ()) == ()
    assert plan_checks.violations(snapshot_of(*NODES), Plan()) == ()


def test_of_placements_that_the_world_holds_not_all_of_the_first_are_upheld() -> None:
    second, third = gang("b").of(1, cpu=2), gang("c").of(1, cpu=1)
    placements = (ON_N1, placing(second, ("b-0", "n1")), placing(third, ("c-0", "n1")))
    assert upheld(node("n1", cpu=5), A, second, third, *placements) == ["a", "c"]


def test_a_placement_on_a_node_that_left_is_not_upheld() -> None:
    assert upheld(A, ON_N1) == []


HELD = reservation(A, ("a-0", "n1"), ("a-1", "n2"))
NODES = (node("n1", cpu=2), node("n2", cpu=2))


def lost(*parts: Part, of: GangBuilder = A) -> list[str]:
    """The names of the entries that can no longer be carried out."""
    snapshot = snapshot_of(*parts)
    standing = next(
        reservation for reservation in snapshot.reservations if reservation.gang == of.made.key
    )
    return [
        entry.pod.name
        for entry in reservation_checks.lost(snapshot)
        .get(standing.uid, reservation_checks.Unkeepable())
        .entries
    ]


def test_a_reservation_that_can_be_carried_out_has_lost_nothing() -> None:
    assert lost(*NODES, A, HELD) == []
    assert reservation_checks.lost(snapshot_of(*NODES, A, HELD)) == {}


def test_an_entry_whose_claims_went_is_lost() -> None:
    spoilt = A.only("a-1", volume_problems=("claim x does not exist",))
    assert lost(*NODES, spoilt, HELD) == ["a-1"]


@pytest.mark.parametrize(
    "state",
    [
        {"uid": Uid("another")},
        {"node": NodeName("elsewhere")},
        {"gates": ("hold",)},
        {"terminating": True},
        {"phase": Phase.FAILED},
        {"group": "another"},
    ],
)
def test_an_entry_is_lost_with_its_pod(state: dict[str, object]) -> None:
    assert lost(*NODES, A.only("a-0", **state), HELD) == ["a-0"]


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param((NODES[0],), id="gone"),
        pytest.param((NODES[0], NODES[1].cordoned()), id="cordoned"),
        pytest.param((NODES[0], NODES[1].but(ready=False)), id="not-ready"),
        pytest.param((NODES[0], NODES[1].tainted("gpu")), id="tainted"),
        pytest.param((NODES[0], NODES[1].using(cpu=1)), id="taken-by-others"),
        pytest.param((NODES[0], node("n2", cpu=1)), id="shrunk"),
    ],
)
def test_an_entry_is_lost_with_its_node(nodes: tuple[Part, ...]) -> None:
    assert lost(*nodes, A, HELD) == ["a-1"]


@pytest.mark.parametrize(
    "state",
    [{}, {"phase": Phase.SUCCEEDED}, {"terminating": True}, {"group": "another"}],
)
def test_an_entry_whose_member_is_bound_there_is_never_lost(state: dict[str, object]) -> None:
    bound = A.only("a-0", node=N1, **state)
    assert lost(node("n1", cpu=2).cordoned(), NODES[1], bound, HELD) == []


def test_an_entry_whose_member_is_bound_there_as_another_gangs_is_never_lost() -> None:
    uid = A.made.members[0].uid
    moved = gang("b").of(1, cpu=2).each(uid=uid).bound_on("n1")
    assert lost(*NODES, A.only("a-0", uid=Uid("another")), moved, HELD) == []


def test_where_a_node_cannot_keep_all_promises_the_oldest_keeps_its_own() -> None:
    first, second = gang("y").of(1, cpu=2), gang("x").of(1, cpu=2)
    old, new = reservation(first, ("y-0", "n1"), at=1.0), reservation(second, ("x-0", "n1"), at=2.0)
    parts: tuple[Part, ...] = (NODES[0], first, second, old, new)
    assert lost(*parts, of=first) == []
    assert lost(*parts, of=second) == ["x-0"]


def test_of_two_promises_of_one_moment_the_first_gang_by_name_keeps_its_own() -> None:
    first, second = gang("x").of(1, cpu=2), gang("y").of(1, cpu=2)
    held = (reservation(first, ("x-0", "n1")), reservation(second, ("y-0", "n1")))
    assert lost(NODES[0], first, second, *held, of=first) == []
    assert lost(NODES[0], first, second, *held, of=second) == ["y-0"]


def test_what_is_lost_takes_no_room_from_later_promises() -> None:
    first, second = gang("x").of(1, cpu=2).each(gates=("hold",)), gang("y").of(1, cpu=2)
    held = (reservation(first, ("x-0", "n1")), reservation(second, ("y-0", "n1")))
    assert lost(NODES[0], first, second, *held, of=second) == []


def test_slots_keep_their_room_from_later_promises() -> None:
    first, second = gang("x").role("worker", 1, cpu=1), gang("y").of(1, cpu=2)
    old = reservation(first, slots=[SlotReservation(N1, "worker", 1)])
    assert lost(NODES[0], first, second, old, reservation(second, ("y-0", "n1")), of=second) == [
        "y-0"
    ]


def test_a_stray_of_the_reserved_gang_can_still_be_bound() -> None:
    snapshot = snapshot_of(*NODES, HELD, strays=A.members)
    assert reservation_checks.lost(snapshot) == {}


def test_a_gang_of_one_is_known_by_its_pods_name() -> None:
    alone = single("p", cpu=1)
    assert lost(NODES[0], alone, reservation(alone, ("p", "n1")), of=alone) == []


def test_an_unknown_reservation_has_lost_nothing_that_is_known() -> None:
    empty = Snapshot(taken_at=0.0)
    assert reservation_checks.lost(empty) == {}


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        pytest.param(NODES[0], "taken", id="empty"),
        pytest.param(NODES[0].using(cpu=1), "refused", id="used"),
        pytest.param(NODES[0].using(gpu=1), "taken", id="used-of-what-it-does-not-have"),
        pytest.param(NODES[0].cordoned(), "refused", id="cordoned"),
    ],
)
def test_a_node_takes_a_member_if_there_is_room_beside_what_is_bound(
    part: NodeBuilder, answer: str
) -> None:
    (seen,) = snapshot_of(part).nodes
    assert bool(plan_checks.fitting({seen.name: seen}, [(A.made.members[0], seen.name)])) == (
        answer == "taken"
    )


def test_members_fit_beside_one_another_and_on_nodes_that_exist() -> None:
    """The second needs more than the first leaves; the idle member has no node."""
    nodes = {n.name: n for n in snapshot_of(node("n1", cpu=5)).nodes}
    first, second, third = (
        gang(name).of(1, cpu=cpu).made.members[0] for name, cpu in (("a", 3), ("b", 3), ("c", 2))
    )
    (idle,) = gang("d").of(1).made.members
    n1, gone = NodeName("n1"), NodeName("gone")
    all_members = [(first, n1), (second, n1), (idle, gone), (third, n1)]
    assert plan_checks.fitting(nodes, all_members) == [first, third]


def test_more_members_of_a_role_than_it_may_have_are_caught() -> None:
    made = gang("a").role("worker", 1, 4, cpu=1).at_most(2).needing(1).bound_on("n1")
    fine = placing(made, ("a-1", "n1"))
    many = placing(made, ("a-1", "n1"), ("a-2", "n1"))
    assert broken(ROOMY, made, fine) == ()
    assert broken(ROOMY, made, many) == ("gang ml/a: 3 of at most 2 of role worker are placed",)


def test_a_role_that_has_too_many_already_is_no_fault_of_a_placement_elsewhere() -> None:
    made = gang("a").role("driver", 1, 2).role("worker", 1, 3).at_most(2).needing(1)
    started = made.bound_on(*["n1"] * 5).only("a-1", node=None)
    assert broken(ROOMY, started, placing(started, ("a-1", "n1"))) == ()


def test_a_member_that_succeeded_leaves_its_place_in_the_role_to_another() -> None:
    made = gang("a").role("worker", 1, 3, cpu=1).at_most(2).needing(1).bound_on("n1", "n1")
    over = made.only("a-0", phase=Phase.SUCCEEDED)
    assert broken(ROOMY, over, placing(over, ("a-2", "n1"))) == ()


WEB, HERE = HostPort(80), HostPort(80, ip="10.0.0.1")
TAKEN = "node n1 has too little host port"


def test_two_members_with_one_host_port_on_a_node_are_caught() -> None:
    found = broken(ROOMY, A.listening(WEB), ON_N1)
    assert found == (f"pod ml/a-1: {TAKEN} 80/TCP",)


def test_a_host_port_that_others_use_is_no_room() -> None:
    assert broken(ROOMY.listening(HERE), A.listening(WEB), ON_N1)[0] == (
        f"pod ml/a-0: {TAKEN} 80/TCP"
    )
    found = broken(
        ROOMY.listening(HERE), single("s").listening(HERE), placing(single("s"), ("s", "n1"))
    )
    assert found == (f"pod ml/s: {TAKEN} 10.0.0.1:80/TCP",)


def test_a_host_port_at_another_ip_is_free() -> None:
    there = single("s").listening(HostPort(80, ip="10.0.0.2"))
    assert broken(ROOMY.listening(HERE), there, placing(there, ("s", "n1"))) == ()


def test_a_reserved_host_port_is_taken() -> None:
    other = single("s").listening(WEB)
    held = reservation(A.listening(WEB), ("a-0", "n1"))
    found = broken(ROOMY, A.listening(WEB), other, held, placing(other, ("s", "n1")))
    assert found == (f"pod ml/s: {TAKEN} 80/TCP",)
