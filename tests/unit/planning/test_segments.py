"""Gangs in segments from end to end: planned, and verified by code of its own."""

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest

from tutti.model.cluster import Phase, SlotReservation, Snapshot
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.keys import NodeName
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    Part,
    applied,
    gang,
    labels,
    node,
    reservation,
    snapshot_of,
    topology,
)
from .test_domains import EVERY, EXACT, NETWORK, planned, rack, why
from .test_progress import CountedProgress

INDEX = "index"


def per_rack(plan: Plan, name: str = "a") -> Counter[str]:
    """By rack, how many members of the gang the plan puts there."""
    return Counter(
        assignment.node.rsplit("-", 1)[0]
        for placement in plan.placements
        for assignment in placement.assignments
        if placement.gang.name == name
    )


def indexed(builder: GangBuilder, *indexes: int) -> GangBuilder:
    """The gang whose members have these indexes, in the order of their names."""
    for number, index in enumerate(indexes):
        builder = builder.only(f"a-{number}", labels=labels(index=str(index)))
    return builder


def racks_by_index(plan: Plan, snapshot: Snapshot) -> Mapping[int, str]:
    """By index of a member, the rack in which it starts."""
    (made,) = snapshot.gangs
    of = {m.uid: int(dict(m.labels)[INDEX]) for m in made.members}
    return {
        of[assignment.uid]: assignment.node.rsplit("-", 1)[0]
        for placement in plan.placements
        for assignment in placement.assignments
    }


@EVERY
def test_racks_of_ten_and_ten_hold_sixteen_as_six_six_and_four(name: str) -> None:
    """Each rack has one whole segment of six, and the short one is beside one of them."""
    parts: list[Part] = [*rack("r1", 1, cpu=10), *rack("r2", 1, cpu=10), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(16, cpu=1).in_segments(6, "rack")), name)
    assert sorted(per_rack(plan).values()) == [6, 10]


@EVERY
def test_ten_members_in_segments_of_four_start_where_they_fit(name: str) -> None:
    """kueue#15277: 10 pods in slices of 4, and 2 of them stay gated for ever."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), *rack("r3", 1, cpu=2), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(10, cpu=1).in_segments(4, "rack")), name)
    assert sorted(per_rack(plan).values()) == [2, 4, 4]


@EVERY
def test_segments_need_no_size_that_divides_the_gang_or_the_rack(name: str) -> None:
    """kueue#9046 and #13416: sizes must divide there."""
    parts: list[Part] = [*rack("r1", 1, cpu=7), *rack("r2", 1, cpu=5), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(10, cpu=1).in_segments(3, "rack")), name)
    counts = per_rack(plan).values()
    assert sum(counts) == 10
    assert sum(count % 3 > 0 for count in counts) == 1


@EVERY
def test_whole_segments_fill_the_tightest_racks_and_leave_the_largest(name: str) -> None:
    parts: list[Part] = [*rack("r1", 4), *rack("r2", 2), *rack("r3", 1), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(8, cpu=1).in_segments(4, "rack")), name)
    assert per_rack(plan) == {"b1-r3": 4, "b1-r2": 4}


@EVERY
def test_a_refusal_says_how_many_whole_segments_there_is_room_for(name: str) -> None:
    parts: list[Part] = [*rack("r1", 1, cpu=7), *rack("r2", 1, cpu=7), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(12, cpu=1).in_segments(6, "rack")), name)
    assert per_rack(plan) == {"b1-r1": 6, "b1-r2": 6}
    plan = planned(snapshot_of(*parts, gang("a").of(14, cpu=1).in_segments(6, "rack")), name)
    reason, sentence = why(plan, "a")
    assert reason is Reason.NOT_ENOUGH_ROOM
    assert "the domains of rack have room for 2 whole segments of 6: 13 of 14 members" in sentence


@EVERY
def test_a_refusal_counts_segments_within_each_block_that_the_gang_may_be_in(name: str) -> None:
    """The racks of both blocks together would have room."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=3), *rack("r3", 1, cpu=3), NETWORK]
    parts += rack("r4", 1, block="b2")
    for made in (
        gang("a").of(8, cpu=1).together("block"),
        gang("a").role("driver", 4, cpu=1).role("worker", 4, cpu=1).together("block"),
    ):
        plan = planned(snapshot_of(*parts, made.in_segments(4, "rack")), name)
        reason, sentence = why(plan, "a")
        assert reason is Reason.NOT_ENOUGH_ROOM
        room = "its domains of rack have room for 1 whole segment of 4: 7 of 8 members"
        assert f"; the domain of block with room for most is b1: {room}" in sentence


def test_a_refusal_counts_segments_everywhere_if_not_all_of_them_are_in_one_block() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=3, block="b2"), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 8, cpu=1).together("block", "driver")
    whole = "; the domains of rack have room for 1 whole segment of 4: 7 of"
    of_workers, of_all = made.in_segments(4, "rack", "worker"), made.in_segments(4, "rack")
    assert f"{whole} 8 members" in why(planned(snapshot_of(*parts, of_workers)), "a")[1]
    assert f"{whole} 9 members" in why(planned(snapshot_of(*parts, of_all)), "a")[1]


def test_a_refusal_counts_segments_of_several_requests() -> None:
    """Each rack has room for one large member and three small ones, each size by itself."""
    parts: list[Part] = [part for i in range(3) for part in rack(f"r{i}", 1, cpu=3)]
    made = gang("a").of(2, cpu=2).of(6, cpu=1).in_segments(5, "rack")
    sentence = why(planned(snapshot_of(*parts, NETWORK, made)), "a")[1]
    assert "the domains of rack have room for 0 whole segments of 5: 4 of 8 members" in sentence


@EXACT
def test_segments_of_several_requests_are_placed_exactly(name: str) -> None:
    """Best fit puts the large members first and fills a rack with them; then no segment is left."""
    parts: list[Part] = [*rack("r1", 1, cpu=5), *rack("r2", 1, cpu=5), NETWORK]
    made = gang("a").of(2, cpu=3).of(2, cpu=2).in_segments(2, "rack")
    plan = planned(snapshot_of(*parts, made), name)
    assert per_rack(plan) == {"b1-r1": 2, "b1-r2": 2}


@EVERY
def test_segments_of_one_role_leave_the_other_role_free(name: str) -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), node("bare", cpu=2), NETWORK]
    made = gang("a").role("driver", 1, cpu=2).role("worker", 8, cpu=1)
    plan = planned(snapshot_of(*parts, made.in_segments(4, "rack", "worker")), name)
    assert per_rack(plan) == {"bare": 1, "b1-r1": 4, "b1-r2": 4}


def test_segments_of_a_role_without_members_do_not_matter() -> None:
    made = gang("a").role("worker", 4, cpu=1).role("ghost", 0).in_segments(2, "rack", "ghost")
    plan = planned(snapshot_of(node("n", cpu=4), NETWORK, made))
    assert per_rack(plan).total() == 4


@EVERY
def test_segments_are_inside_the_block_that_the_gang_requires(name: str) -> None:
    parts: list[Part] = [
        *rack("r1", 1),
        *rack("r2", 1, block="b2"),
        *rack("r3", 1, block="b2"),
        *rack("r4", 1, cpu=2, block="b1"),
        NETWORK,
    ]
    made = gang("a").of(8, cpu=1).in_segments(4, "rack").together("block")
    assert per_rack(planned(snapshot_of(*parts, made), name)) == {"b2-r2": 4, "b2-r3": 4}


@EXACT
def test_two_gangs_in_segments_start_jointly(name: str) -> None:
    """The first could start on any two racks; the second needs one of them whole."""
    parts: list[Part] = [*rack("r1", 1, cpu=5), *rack("r2", 1, cpu=4), *rack("r3", 1), NETWORK]
    first = gang("a").of(2, cpu=1).of(6, cpu=1).in_segments(4, "rack")
    second = gang("b").of(4, cpu=1).in_segments(4, "rack")
    plan = planned(snapshot_of(*parts, first, second), name)
    assert per_rack(plan, "a").total() == 8
    assert per_rack(plan, "b").total() == 4
    assert plan.proved


def test_more_members_than_needed_are_in_segments_once_the_gang_runs() -> None:
    """They come in the next cycle: then the seats of short segments are known."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 2), NETWORK]
    made = gang("a").of(8, cpu=1).needing(6).in_segments(4, "rack")
    before = snapshot_of(*parts, made)
    plan = planned(before)
    assert sorted(per_rack(plan).values()) == [2, 4]
    after = applied(before, plan)
    assert sum(per_rack(planned(after)).values()) == 2
    ends = applied(after, planned(after))
    nodes = Counter(m.node.rsplit("-", 1)[0] for g in ends.gangs for m in g.members if m.node)
    assert sorted(nodes.values()) == [4, 4]


def test_a_replacement_returns_to_the_segment_that_lost_a_member() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").of(8, cpu=1).in_segments(4, "rack")
    running = made.bound_on(*["b1-r1-0"] * 4, *["b1-r2-0"] * 3)
    assert per_rack(planned(snapshot_of(*parts, running))) == {"b1-r2": 1}


def test_a_replacement_waits_while_the_rack_of_its_segment_is_full() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 1), NETWORK]
    made = gang("a").of(8, cpu=1).in_segments(4, "rack")
    running = made.bound_on(*["b1-r1-0"] * 4, *["b1-r2-0"] * 3)
    full = snapshot_of(*parts, running, gang("other").of(1, cpu=1).bound_on("b1-r2-0"))
    plan = planned(full)
    assert plan.placements == ()
    assert why(plan, "a")[0] is Reason.NOT_ENOUGH_ROOM


def test_of_two_segments_that_lost_a_member_the_one_with_room_comes_first() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    made = gang("a").of(7, cpu=1).needing(6).in_segments(4, "rack")
    running = made.bound_on(*["b1-r1-0"] * 3, *["b1-r2-0"] * 3)
    full = snapshot_of(*parts, running, gang("other").of(1, cpu=1).bound_on("b1-r1-0"))
    assert per_rack(planned(full)) == {"b1-r2": 1}


def test_a_segment_that_is_lost_whole_starts_again_in_the_rack_with_most_room() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=3), *rack("r3", 2), NETWORK]
    made = gang("a").of(8, cpu=1).in_segments(4, "rack").bound_on(*["b1-r1-0"] * 4)
    assert per_rack(planned(snapshot_of(*parts, made))) == {"b1-r3": 4}


def test_a_segment_that_starts_again_stays_in_the_block_of_its_gang() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), *rack("r3", 3, block="b2"), NETWORK]
    made = gang("a").of(8, cpu=1).in_segments(4, "rack").together("block")
    assert per_rack(planned(snapshot_of(*parts, made.bound_on(*["b1-r1-0"] * 4)))) == {"b1-r2": 4}


def test_lost_members_wait_where_no_node_is_in_a_domain() -> None:
    made = gang("a").of(4, cpu=1).in_segments(2, "rack").bound_on("n", "n")
    plan = planned(snapshot_of(node("n", cpu=9), NETWORK, made))
    assert plan.placements == ()


def test_room_is_held_for_absent_members_in_segments() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 4, 2, cpu=1).declaring(cpu=1)
    plan = planned(snapshot_of(*parts, made.in_segments(2, "rack", "worker")))
    (placement,) = plan.placements
    on = Counter(slot.node for slot in placement.slots for _ in range(slot.count))
    assert on.total() == 2


def test_slots_of_a_reservation_count_as_members_of_segments() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 4, 2, cpu=1).declaring(cpu=1)
    made = made.in_segments(2, "rack", "worker").bound_on("b1-r1-0")
    held = reservation(made, slots=[SlotReservation(NodeName("b1-r2-0"), "worker", 1)])
    assert set(per_rack(planned(snapshot_of(*parts, made, held)))) <= {"b1-r1", "b1-r2"}


def test_an_unknown_level_of_segments_keeps_a_gang_waiting() -> None:
    plan = planned(snapshot_of(node("n"), NETWORK, gang("a").of(2, cpu=1).in_segments(2, "row")))
    expected = "no Topology has the level row: the levels are block, rack"
    assert why(plan, "a") == (Reason.UNKNOWN_LEVEL, expected)


def test_an_unknown_level_of_segments_ends_nothing_that_runs() -> None:
    made = gang("a").of(2, cpu=1).in_segments(2, "row").bound_on("n", "n")
    assert planned(snapshot_of(node("n", cpu=4), made)).rejections == ()


def test_a_starved_gang_in_segments_gets_room_held() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    busy = gang("busy").of(1, cpu=1).bound_on("b1-r1-0")
    old = gang("a").of(8, cpu=1).in_segments(4, "rack")
    small = gang("z").of(4, cpu=1).each(created=10_000.0)
    plan = planned(
        snapshot_of(*parts, busy, old, small, at=10_000.0), "ilp", Policy(starvation_seconds=60)
    )
    assert plan.placements == ()


def test_room_that_is_held_for_several_absent_members_fills_their_segment() -> None:
    """Two bound members and room for two others are a segment of four."""
    parts: list[Part] = [*rack("r1", 1, cpu=8), *rack("r2", 1, cpu=8), NETWORK]
    made = gang("a").role("x", 2, 6, cpu=1).role("y", 2, 0, cpu=1).declaring(cpu=1)
    running = made.in_segments(4, "rack").bound_on("b1-r1-0", "b1-r1-0")
    held = reservation(running, slots=[SlotReservation(NodeName("b1-r1-0"), "y", 2)])
    assert per_rack(planned(snapshot_of(*parts, running, held))) == {"b1-r2": 4}


# ---- with an index


def test_segments_have_the_members_with_consecutive_indexes() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), *rack("r3", 1, cpu=2), NETWORK]
    made = indexed(gang("a").of(10, cpu=1), 9, 3, 0, 5, 1, 7, 2, 4, 6, 8)
    cluster = snapshot_of(*parts, made.in_segments(4, "rack", index=INDEX))
    racks = racks_by_index(planned(cluster), cluster)
    assert len({racks[i] for i in range(4)}) == len({racks[i] for i in range(4, 8)}) == 1
    assert racks[8] == racks[9] == "b1-r3"


def test_a_short_segment_by_index_comes_last_in_a_shared_rack() -> None:
    parts: list[Part] = [*rack("r1", 1, cpu=6), *rack("r2", 1), NETWORK]
    made = indexed(gang("a").of(10, cpu=1), *range(10)).in_segments(4, "rack", index=INDEX)
    cluster = snapshot_of(*parts, made)
    racks = racks_by_index(planned(cluster), cluster)
    assert [racks[i] for i in range(10)] == ["b1-r2"] * 4 + ["b1-r1"] * 6


def test_the_members_with_the_first_indexes_start() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=2), NETWORK]
    made = indexed(gang("a").of(8, cpu=1).needing(6), *range(7, -1, -1))
    cluster = snapshot_of(*parts, made.in_segments(4, "rack", index=INDEX))
    assert set(racks_by_index(planned(cluster), cluster)) == set(range(6))


def test_a_replacement_goes_to_the_segment_of_its_index() -> None:
    """Both segments lost a member; the seats are not interchangeable."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    made = indexed(gang("a").of(8, cpu=1), 0, 1, 2, 4, 5, 6, 7, 3)
    running = made.in_segments(4, "rack", index=INDEX).bound_on(*["b1-r1-0"] * 3, *["b1-r2-0"] * 3)
    cluster = snapshot_of(*parts, running)
    assert racks_by_index(planned(cluster), cluster) == {7: "b1-r2", 3: "b1-r1"}


def test_a_segment_of_new_indexes_is_in_one_rack() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=3), *rack("r3", 1, cpu=2), NETWORK]
    made = indexed(gang("a").of(6, cpu=1).needing(4), *range(6))
    running = made.in_segments(2, "rack", index=INDEX).bound_on(*["b1-r1-0"] * 4)
    cluster = snapshot_of(*parts, running)
    assert racks_by_index(planned(cluster), cluster) == {4: "b1-r2", 5: "b1-r2"}


def test_a_reserved_member_fixes_the_rack_of_its_segment() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 1), NETWORK]
    made = indexed(gang("a").of(4, cpu=1).needing(2), 0, 1, 2, 3)
    made = made.in_segments(2, "rack", index=INDEX).bound_on("b1-r1-0", "b1-r1-0")
    held = reservation(made, ("a-2", "b1-r2-0"))
    assert planned(snapshot_of(*parts, made, held)).placements == ()


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            indexed(gang("a").of(2, cpu=1), 0),
            "pod a-1 has no number in the label index: segments go by it",
        ),
        (
            indexed(gang("a").of(2, cpu=1), 0, 2),
            "no pod has 1 in the label index: segments go by it, and need all numbers from 0 on",
        ),
        (
            indexed(gang("a").of(1, cpu=1).of(1, cpu=2), 0, 1),
            "segments by index need members of one role with equal requests",
        ),
    ],
    ids=["no label", "a gap", "several requests"],
)
def test_a_gang_without_its_indexes_waits_and_says_so(made: GangBuilder, sentence: str) -> None:
    cluster = snapshot_of(*rack("r1", 4), NETWORK, made.in_segments(2, "rack", index=INDEX))
    assert why(planned(cluster), "a") == (Reason.MISSING_INDEX, sentence)


def test_absent_members_have_no_index_and_the_gang_waits_for_them() -> None:
    made = gang("a").role("worker", 4, 2, cpu=1).declaring(cpu=1).labelled(index="0")
    made = made.only("a-1", labels=labels(index="1")).in_segments(2, "rack", index=INDEX)
    plan = planned(snapshot_of(*rack("r1", 4), NETWORK, made))
    assert plan.placements == ()
    assert why(plan, "a")[0] is Reason.WAITING_FOR_MEMBERS


def test_members_that_have_ended_are_in_no_segment() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    made = indexed(gang("a").of(4, cpu=1), 0, 1, 2, 3).in_segments(2, "rack", index=INDEX)
    made = made.bound_on("b1-r1-0", "b1-r2-0", "b1-r2-0").only("a-0", phase=Phase.SUCCEEDED)
    cluster = snapshot_of(*parts, made)
    assert racks_by_index(planned(cluster), cluster) == {3: "b1-r2"}


@EVERY
def test_absent_members_on_one_node_are_a_whole_segment(name: str) -> None:
    parts: list[Part] = [*rack("r1", 1, cpu=2), *rack("r2", 1, cpu=2), NETWORK]
    made = gang("a").role("x", 1, cpu=1).role("y", 3, 0, cpu=1).declaring(cpu=1)
    plan = planned(snapshot_of(*parts, made.in_segments(2, "rack", "y")), name)
    (placement,) = plan.placements
    assert sorted(slot.count for slot in placement.slots) == [1, 2]


def blocks_of(plan: Plan, name: str = "a") -> set[str]:
    return {on.split("-")[0] for on in per_rack(plan, name)}


# By best fit alone, the segments of two would be in the smallest racks, in two blocks.
SPLIT: list[Part] = [
    *rack("r1", 1, block="x", cpu=2),
    *rack("r2", 1, block="y", cpu=2),
    *rack("r3", 1, block="z", cpu=3),
    *rack("r4", 1, block="z", cpu=3),
    NETWORK,
]


@EVERY
def test_segments_are_in_one_block_that_the_gang_prefers(name: str) -> None:
    split = planned(snapshot_of(*SPLIT, gang("a").of(4, cpu=1).in_segments(2, "rack")), name)
    assert blocks_of(split) == {"x", "y"}
    made = gang("a").of(4, cpu=1).in_segments(2, "rack").preferring("block")
    large = gang("large").of(99, cpu=1).in_segments(2, "rack").preferring("block")
    together = planned(snapshot_of(*SPLIT, made, large), name)
    assert blocks_of(together) == {"z"}
    assert sorted(per_rack(together).values()) == [2, 2]


@EVERY
@pytest.mark.parametrize("roles", [(), ("x",), ("x", "y")])
def test_required_and_preferred_levels_and_segments_hold_together(
    name: str, roles: tuple[str, ...]
) -> None:
    """Zone 1 has a block with most room, and not enough; zone 2 has room in three blocks or one."""
    nodes = [
        node(f"{block}-{rack_name}-0", cpu=cpu).labelled(zone=zone, block=block, rack=rack_name)
        for zone, block, rack_name, cpu in (
            *(("1", "w", f"w{n}", 1) for n in range(8)),
            *(("2", block, f"{block}0", 2) for block in "xy"),
            *(("2", "z", f"z{n}", 3) for n in range(2)),
        )
    ]
    made = gang("a").role("x", 2, cpu=1).role("y", 2, cpu=1)
    made = made.together("zone", *roles).preferring("block", *roles)
    made = made.in_segments(2, "rack", *roles)
    snapshot = snapshot_of(*nodes, topology("zone", "block", "rack"), made)
    plan = planned(snapshot, name)
    (placement,) = plan.placements
    members = {member.uid: member.role for member in snapshot.gangs[0].members}
    ruled = Counter(
        assignment.node[:4]
        for assignment in placement.assignments
        if not roles or members[assignment.uid] in roles
    )
    assert {count % 2 for count in ruled.values()} == {0}
    assert len({on[0] for on in ruled}) == 1
    assert {on[0] for on in ruled} <= {"x", "y", "z"}


def test_segments_by_index_are_in_one_block_with_their_own_members() -> None:
    made = gang("a").of(4, cpu=1).in_segments(2, "rack", index=INDEX).preferring("block")
    snapshot = snapshot_of(*SPLIT, indexed(made, 3, 2, 1, 0))
    racks = racks_by_index(planned(snapshot), snapshot)
    assert racks[0] == racks[1] != racks[2] == racks[3]
    assert {racks[0], racks[2]} == {"z-r3", "z-r4"}


def test_segments_go_to_one_of_the_levels_that_they_prefer_if_there_is_no_room_in_the_other() -> (
    None
):
    made = gang("a").of(4, cpu=1).in_segments(2, "rack").preferring("block").preferring("rack")
    assert blocks_of(planned(snapshot_of(*SPLIT, made))) == {"z"}


def test_segments_stay_where_they_are_if_no_block_has_room_for_all_of_them() -> None:
    made = gang("a").of(8, cpu=1).in_segments(2, "rack").preferring("block")
    assert blocks_of(planned(snapshot_of(*SPLIT, made))) == {"x", "y", "z"}


def test_a_plan_that_is_late_moves_no_further_gang_in_segments() -> None:
    nodes = [
        node(f"{block}-{name}-0", cpu=n, gpu=n).labelled(block=block, rack=name)
        for block, name, n in (("x", "r1", 2), ("y", "r2", 2), ("z", "r3", 3), ("z", "r4", 3))
    ]
    gangs = [
        made.in_segments(2, "rack").preferring("block")
        for made in (gang("a").of(4, cpu=1), gang("b").of(4, gpu=1))
    ]
    snapshot, strategy = snapshot_of(*nodes, NETWORK, *gangs), STRATEGIES["bestfit"]()
    moved = []
    for late_after in range(40):
        progress = CountedProgress(late_after)
        made = plan(snapshot, strategy, BestFit(), AMPLE_BUDGET, Policy(), progress=progress)
        assert plan_checks.violations(snapshot, made) == ()
        moved.append(sum(blocks_of(made, name) == {"z"} for name in "ab"))
    assert moved == sorted(moved)
    assert {*moved} == {0, 1, 2}


def test_replacements_and_other_members_keep_a_gang_in_segments_where_it_is() -> None:
    made = gang("a").of(4, cpu=1).in_segments(2, "rack").preferring("block")
    running = made.bound_on("x-r1-0", "x-r1-0", "y-r2-0")
    assert blocks_of(planned(snapshot_of(*SPLIT, running))) == {"y"}


@pytest.mark.parametrize("seed", range(40))
def test_a_gang_in_segments_is_in_one_block_if_and_only_if_one_holds_it(seed: int) -> None:
    """Against counting, which is exact for members of one shape on a node for each rack."""
    draw = Random(seed)
    size, members = draw.randint(1, 4), draw.randint(2, 9)
    racks = {(block, f"r{i}"): draw.randint(1, 6) for block in "xyz" for i in range(3)}
    parts = [part for (b, r), cpu in racks.items() for part in rack(r, 1, block=b, cpu=cpu)]
    made = gang("a").of(members, cpu=1).in_segments(size, "rack").preferring("block")
    used = blocks_of(planned(snapshot_of(*parts, NETWORK, made), draw.choice(["bestfit", "ilp"])))

    def room(*blocks: str) -> int:
        rooms = [cpu for (block, _), cpu in racks.items() if block in blocks]
        return sum(r // size * size for r in rooms) + max(r % size for r in rooms)

    assert (len(used) > 0) == (room(*"xyz") >= members)
    assert (len(used) == 1) == any(room(block) >= members for block in "xyz")
