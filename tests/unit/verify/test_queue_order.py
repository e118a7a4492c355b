"""The checker catches gangs that start in the place of those that come first by their queues."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.gang.findings import LimitHeldForIt, QueueAtLimit
from tutti.gang.room_findings import RoomHeldForIt
from tutti.model.cluster import SlotReservation
from tutti.model.decisions import Finding, Placement, Plan, Reason, Rejection
from tutti.model.keys import NodeName
from tutti.model.queues import PastUse, Queue, QueueMode
from tutti.model.shapes import Toleration
from tutti.verify import plan_checks

from ...harness.builders import (
    GPU,
    GangBuilder,
    Part,
    gang,
    node,
    reservation,
    shape,
    snapshot_of,
    space,
)
from .test_plan_checks import placing
from .test_queue_checks import queue

ML = space("ml")
GUARANTEED = queue("a", guaranteed=(("cpu", 4000),))
GUARANTEE = "gang ml/w waits although its queue guarantees it, and gang ml/x borrows in its place"
SHARE = (
    "gang ml/w waits although its queue has borrowed less than that of gang ml/x, which starts in "
    "its place"
)


def starting(of: GangBuilder) -> Placement:
    return placing(of, *((m.key.name, "n1") for m in of.members if m.node is None))


def made(
    waits: GangBuilder,
    *starts: GangBuilder,
    reason: Reason = Reason.NOT_ENOUGH_ROOM,
    findings: tuple[Finding, ...] = (),
    **changes: Any,
) -> Plan:
    rejections = (Rejection(waits.key, reason, findings),)
    return replace(Plan(tuple(starting(start) for start in starts), rejections), **changes)


def gang_in(name: str, into: str, cpu: float, members: int = 1) -> GangBuilder:
    return gang(name).of(members, cpu=cpu).but(queue=into)


W, X = gang_in("w", "a", 4), gang_in("x", "b", 5)
SCENE: tuple[Part, ...] = (ML, node("n1", cpu=5), GUARANTEED, queue("b"))


def faults(plan: Plan, *parts: Part) -> tuple[str, ...]:
    return plan_checks.violations(snapshot_of(*parts), plan)


def test_no_gang_borrows_in_the_place_of_one_that_its_queue_guarantees() -> None:
    assert faults(made(W, X), *SCENE, W, X) == (GUARANTEE,)
    assert faults(made(W), *SCENE, W, X) == ()


@pytest.mark.parametrize(
    "plan",
    [
        made(W, X, proved=False),
        made(W, X, reason=Reason.TIMED_OUT),
        made(W, X, findings=(RoomHeldForIt(1),)),
        made(W, X, findings=(LimitHeldForIt(),)),
        made(W, X, findings=(QueueAtLimit("a", "cpu", 1, 2, 3, X.key),)),
    ],
)
def test_what_is_open_is_not_judged(plan: Plan) -> None:
    assert faults(plan, *SCENE, W, X) == ()


def test_only_gangs_that_could_start_are_judged() -> None:
    for waits in (
        W.needing(2),
        W.of(1, cpu=1).bound_on("n1"),
        W.apart("hostname"),
        W.last(1, gates=("hold",)),
        W.last(1, unsupported_fields=("spec.x",)),
        gang("w").role("r", 1, cpu=4).at_most(2).but(queue="a"),
        gang("w").role("r", 1, cpu=4).declaring(cpu=4).but(queue="a"),
        gang("w").role("r", 2, 1, cpu=2).of(2, role="other", cpu=1).but(queue="a"),
    ):
        assert faults(made(waits, X), ML, node("n1", cpu=9), *SCENE[2:], waits, X) == ()


def test_gangs_of_unequal_pods_are_judged_by_their_oldest_members() -> None:
    two = gang_in("w", "a", 1).of(1, cpu=3)
    assert faults(made(two, X), *SCENE, two, X) == (GUARANTEE,)
    assert faults(made(two.of(1, cpu=1), X), *SCENE, two.of(1, cpu=1), X) == (), "5 of 4 cpu"
    young = two.of(1, cpu=1).needing(2)
    assert faults(made(young, X), *SCENE, young, X) == (GUARANTEE,)
    roles = gang("w").role("s", 1, 2, cpu=1).role("d", 1, cpu=2).needing(3).but(queue="a")
    assert faults(made(roles, X), *SCENE, roles, X) == (GUARANTEE,)


def test_unequal_pods_have_room_where_they_can_be_placed_one_by_one() -> None:
    nodes = node("n1", cpu=2), node("n2", cpu=3)
    apart = gang("x").of(1, cpu=2).of(1, cpu=3).but(queue="b")
    starts = placing(apart, ("x-0", "n1"), ("x-1", "n2"))
    for sizes, room in (((2, 3), True), ((1, 4), False), ((2, 2.5), True), ((2.5, 2.6), False)):
        waits = gang("w").of(1, cpu=sizes[0]).of(1, cpu=sizes[1]).but(queue="a")
        plan = replace(made(waits), placements=(starts,))
        parts = ML, *nodes, queue("a", guaranteed=(("cpu", 9000),)), queue("b"), waits, apart
        assert faults(plan, *parts) == ((GUARANTEE,) if room else ()), sizes


def test_unequal_pods_go_to_nodes_that_take_them() -> None:
    nodes = node("n1", cpu=5), node("n2", cpu=2).tainted("gpu"), node("n3", cpu=1)
    large = queue("a", guaranteed=(("cpu", 9000),))
    for small, room in ((1, True), (2, False)):
        waits = gang("w").of(1, cpu=5).of(1, cpu=small).but(queue="a")
        parts = ML, *nodes, large, queue("b"), waits, X
        assert faults(made(waits, X), *parts) == ((GUARANTEE,) if room else ()), small


def test_unequal_pods_may_go_to_different_nodes() -> None:
    passes = replace(shape(cpu=2), tolerations=(Toleration("gpu", "Exists"),))
    waits = gang("w").of(1, cpu=2).of(1, cpu=1).only("w-0", shape=passes).but(queue="a")
    small = gang_in("x", "b", 1)
    nodes = node("n1", cpu=1), node("n2", cpu=3).tainted("gpu")
    parts = ML, *nodes, GUARANTEED, queue("b", guaranteed=(("cpu", 1),)), waits, small
    assert faults(made(waits, small), *parts) == (GUARANTEE,)


def test_a_gang_is_guaranteed_what_its_queue_has_left() -> None:
    runs = gang_in("r", "a", 1).bound_on("n2")
    more = node("n2", cpu=1)
    assert faults(made(W, X), *SCENE, more, runs, W, X) == ()
    small = gang_in("w", "a", 3)
    assert faults(made(small, X), *SCENE, more, runs, small, X) == (GUARANTEE,)


def test_a_gang_that_a_parent_may_cover_is_not_judged() -> None:
    parent, child = queue("p", guaranteed=(("cpu", 9000),)), queue("b", parent="p")
    assert faults(made(W, X), *SCENE[:3], parent, child, W, X) == ()
    waits = gang_in("w", "b", 4)
    other = gang_in("x", "c", 5)
    assert faults(made(waits, other), *SCENE[:3], parent, child, queue("c"), waits, other) == ()


def test_what_children_guarantee_counts_for_their_parent() -> None:
    tree = (replace(GUARANTEED, parent="p"), queue("p"), queue("b"))
    assert faults(made(W, X), *SCENE[:2], *tree, W, X) == (GUARANTEE,)
    shadow = (replace(tree[0], mode=QueueMode.SHADOW), *tree[1:])
    assert faults(made(W, X), *SCENE[:2], *shadow, W, X) == ()
    sibling = (*tree[:2], queue("b", parent="p"))
    assert faults(made(W, X), *SCENE[:2], *sibling, W, X) == (GUARANTEE,)


def test_what_counts_for_no_guarantee_makes_no_gang_a_borrower() -> None:
    """A queue in shadow, and one with the name of the root, guarantee nothing."""
    room, b = node("n1", cpu=5, gpu=1), queue("b", guaranteed=(("cpu", 5000),))
    x = gang("x").of(1, cpu=5, gpu=1).priority(9).but(queue="b")
    parts = ML, room, GUARANTEED, b, W, x
    gpus = queue("s", guaranteed=((GPU, 8),))
    assert faults(made(W, x), *parts, gpus) == (GUARANTEE,)
    assert faults(made(W, x), *parts, replace(gpus, mode=QueueMode.SHADOW)) == ()
    assert faults(made(W, x), *parts, replace(gpus, name="root")) == ()


def test_a_gang_takes_the_place_of_another_if_it_fits_there() -> None:
    wide = gang_in("w", "a", 1, members=4)
    assert faults(made(wide, X), *SCENE, wide, X) == (GUARANTEE,)
    two = (ML, node("n1", cpu=5), node("n2", cpu=5), *SCENE[2:])
    large = gang_in("w", "a", 3, members=2)
    more = replace(GUARANTEED, guaranteed=(("cpu", 9000),))
    parts = (*two[:3], more, queue("b"))
    assert faults(made(large, X), *parts, large, X) == (GUARANTEE,)
    tainted = node("n1", cpu=5).tainted("gpu")
    passes = X.shaped(tolerations=(Toleration("gpu", "Exists"),))
    assert faults(made(W, passes), ML, tainted, *SCENE[2:], W, passes) == ()


def test_a_gang_at_the_limit_of_a_queue_has_no_place() -> None:
    limited = replace(GUARANTEED, limits=(("cpu", 3000), ("memory", 0)))
    assert faults(made(W, X), *SCENE[:2], limited, queue("b"), W, X) == ()
    enough = replace(GUARANTEED, limits=(("cpu", 4000), ("memory", 0)))
    assert faults(made(W, X), *SCENE[:2], enough, queue("b"), W, X) == (GUARANTEE,)
    shadow = replace(limited, mode=QueueMode.SHADOW, guaranteed=())
    assert faults(made(W, X), *SCENE[:2], shadow, queue("b"), W, X) == ()


def borrowing(*queues: Queue, charged: float = 2) -> tuple[tuple[Part, ...], Plan]:
    """Two gangs start in queue b, whose pods that run use some of the cluster; one waits in a."""
    x, y, runs = gang_in("x", "b", 2), gang_in("y", "b", 2), gang_in("r", "b", charged)
    waits = gang_in("w", "a", 2)
    some: tuple[Part, ...] = (*queues, x, y, runs.bound_on("n2"), waits)
    parts: tuple[Part, ...] = (ML, node("n1", cpu=4), node("n2", cpu=6), *some)
    return parts, made(waits, x, y)


def test_no_gangs_borrow_before_the_turn_of_another_queue() -> None:
    parts, plan = borrowing(queue("a"), queue("b"))
    assert faults(plan, *parts) == (SHARE,)
    one = replace(plan, placements=plan.placements[:1])
    assert faults(one, *parts) == (), "that may be the starved gang"
    parts, plan = borrowing(queue("a"), queue("b"), charged=0)
    assert faults(plan, *parts) == ()


def test_weights_and_guarantees_and_queues_above_count_for_turns() -> None:
    parts, plan = borrowing(queue("a"), replace(queue("b"), weight=100))
    assert faults(plan, *parts) == ()
    some = queue("b", guaranteed=(("cpu", 1999),))
    parts, plan = borrowing(queue("a"), some)
    assert faults(plan, *parts) == ()
    parts, plan = borrowing(queue("a"), queue("b", parent="p"), queue("p"))
    assert faults(plan, *parts) == (SHARE,)


def with_past(queue: Queue, mean: int, share: int = 0) -> Queue:
    """The Queue with past use in percent, of which half is the share since, after a half-life."""
    return replace(queue, past_use=PastUse(mean * 10_000, share * 10_000, -60.0, 60.0))


@pytest.mark.parametrize(
    ("a", "b", "broken"),
    [
        (with_past(queue("a"), 0), with_past(queue("b"), 20), (SHARE,)),
        (queue("a"), with_past(queue("b"), 0, 20), (SHARE,)),
        (with_past(queue("a"), 20), with_past(queue("b"), 20), ()),
        (with_past(queue("a"), 10), with_past(queue("b"), 19), ()),
        (with_past(queue("a"), 30), queue("b"), ()),
        (with_past(queue("a"), 9, 1), with_past(queue("b"), 1, 9), ()),
    ],
)
def test_past_use_breaks_ties(a: Queue, b: Queue, broken: tuple[str, ...]) -> None:
    parts, _ = borrowing(a, b, charged=0)
    waits, starts = gang_in("w", "a", 0.1), [gang_in(name, "b", 0.1) for name in "xy"]
    parts = (*parts[:-4], *starts, waits)
    assert faults(made(waits, *starts), *parts) == broken
    low = waits.priority(-1)
    assert faults(made(low, *starts), *parts[:-1], low) == ()


def test_past_use_of_the_root_comes_last() -> None:
    parts, _ = borrowing(with_past(queue("b"), 0), charged=0)
    waits = gang("w").of(1, cpu=0.1)
    starts = [gang_in(name, "b", 0.1) for name in "xy"]
    assert faults(made(waits, *starts), *parts[:-4], *starts, waits) == ()
    waits, starts = gang_in("w", "b", 0.1), [gang(name).of(1, cpu=0.1) for name in "xy"]
    assert faults(made(waits, *starts), *parts[:-4], *starts, waits) == (SHARE,)


def test_equal_gangs_are_judged_once() -> None:
    parts, plan = borrowing(queue("a"), queue("b"))
    again = gang_in("v", "a", 2)
    more = (*plan.rejections, Rejection(again.key, Reason.NOT_ENOUGH_ROOM, ()))
    assert faults(replace(plan, rejections=more), *parts, again) == (SHARE,)


def test_a_queue_with_the_name_of_the_root_changes_nothing() -> None:
    waits, starts = gang_in("w", "", 4), gang_in("x", "", 5)
    assert faults(made(waits, starts), ML, node("n1", cpu=5), queue("root"), waits, starts) == ()


def test_gangs_of_no_queue_take_turns_too() -> None:
    parts, plan = borrowing(queue("b"))
    waits = gang("w").of(1, cpu=2)
    assert faults(plan, *parts[:-1], waits) == (SHARE,)


def test_reservations_and_slots_take_room() -> None:
    held = gang_in("h", "a", 1)
    room = (ML, node("n1", cpu=6), *SCENE[2:], held, reservation(held, ("h-0", "n1")))
    assert faults(made(W, X), *room, W, X) == ()
    small = gang_in("w", "a", 3)
    assert faults(made(small, X), *room, small, X) == (GUARANTEE,)
    awaits = gang("x").role("r", 1, cpu=1).role("s", 1, 0, cpu=1).declaring(cpu=4).but(queue="b")
    slot = replace(starting(awaits), slots=(SlotReservation(NodeName("n1"), "s", 1),))
    plan = replace(made(W), placements=(slot,))
    assert faults(plan, *SCENE, W, awaits) == ()
    small = gang_in("x", "b", 2)
    both = made(W, small)
    awaits = gang("y").role("r", 1, cpu=1).role("s", 2, 0, cpu=1).declaring(cpu=1).but(queue="b")
    slot = replace(starting(awaits), slots=(SlotReservation(NodeName("n1"), "s", 2),))
    plan = replace(both, placements=(*both.placements, slot))
    assert faults(plan, *SCENE, W, small, awaits) == ()
    assert faults(both, *SCENE, W, small, awaits) == (GUARANTEE,)


FAMILY = (
    queue("p", guaranteed=(("cpu", 6000),)),
    queue("a", parent="p", guaranteed=(("cpu", 2000),)),
    queue("b", parent="p", guaranteed=(("cpu", 2000),)),
)
LEAF = (
    "gang ml/w waits although its queue guarantees it, and gang ml/x starts in its place beyond "
    "the guarantee of its own"
)


def in_family(
    waits: GangBuilder, *starts: GangBuilder, queues: tuple[Queue, ...] = FAMILY, cpu: int = 6
) -> tuple[str, ...]:
    """What is wrong if these start, and fill the node."""
    return faults(made(waits, *starts), ML, node("n1", cpu=cpu), *queues, waits, *starts)


def test_no_gang_starts_by_a_parent_s_guarantee_in_the_place_that_a_leaf_guarantees() -> None:
    w, x, y = gang_in("w", "b", 2), gang_in("x", "a", 3), gang_in("y", "a", 3)
    assert in_family(w, x, y) == (LEAF,)
    assert in_family(gang_in("w", "b", 3), x, y) == (), "more than its leaf guarantees"
    assert in_family(gang_in("w", "", 2), x, y) == (), "it is in no queue"


def test_gangs_that_exceed_all_guarantees_are_judged_as_borrowers() -> None:
    y = gang_in("y", "b", 5)
    sentences = (GUARANTEE, GUARANTEE.replace("ml/x", "ml/y"))
    parts = ML, node("n1", cpu=10), *SCENE[2:], W, X, y
    assert faults(made(W, X, y), *parts) == sentences


def test_gangs_that_their_leaf_may_cover_may_start_first() -> None:
    w, x, y = gang_in("w", "b", 2), gang_in("x", "a", 1), gang_in("y", "a", 1)
    assert in_family(w, x, y, cpu=2) == ()
    two = gang_in("x", "a", 2)
    assert in_family(w, two, y, gang_in("z", "a", 2), cpu=5) == (), "y is no place for it"
    above = queue("q", parent="p", guaranteed=(("cpu", 6000),))
    only_child = (FAMILY[0], above, replace(FAMILY[1], parent="q"), FAMILY[2])
    three = gang_in("x", "a", 3), gang_in("y", "a", 3)
    assert in_family(w, *three, queues=only_child) == ()


def test_no_starved_gang_starts_beyond_its_leaf_before_what_another_leaf_guarantees() -> None:
    w, x, y = gang_in("w", "b", 2), gang_in("x", "a", 2), gang_in("y", "a", 2)
    assert in_family(w, gang_in("x", "a", 3), cpu=3) == (LEAF,)
    assert in_family(w, x, y, cpu=4) == (LEAF,)
    assert in_family(w, x, y.priority(1), gang_in("z", "a", 2), cpu=6) == (LEAF,)
    assert in_family(w, x, y.priority(1), cpu=4) == (), "y may be covered by the parent"
    assert in_family(w, gang_in("x", "a", 3), gang_in("own", "b", 0), cpu=3) == ()
    assert in_family(w.priority(1), gang_in("x", "a", 3), gang_in("own", "b", 0), cpu=3) == (LEAF,)


def test_members_beyond_those_needed_may_borrow() -> None:
    """They join last, in room that is too little for the gang that waits."""
    w, x, y = gang_in("w", "b", 2), gang_in("x", "a", 3), gang_in("y", "a", 1, members=3)
    assert in_family(w, y.needing(1), cpu=3) == ()
    assert in_family(w, x, y.needing(1)) == (LEAF,)
    assert faults(made(W, X), *SCENE, W, X) == (GUARANTEE,)
    grows = gang_in("x", "b", 1, members=5).needing(1)
    assert faults(made(W, grows), *SCENE, W, grows) == ()


def test_a_leaf_s_guarantee_comes_first_whatever_its_ancestors_guarantee() -> None:
    w, x, y = gang_in("w", "b", 2), gang_in("x", "a", 3), gang_in("y", "a", 3)
    less = (queue("p", guaranteed=(("cpu", 4000),)), *FAMILY[1:])
    assert in_family(w, x, y, queues=less) == (LEAF,)
    apart = (
        queue("q", guaranteed=(("cpu", 6000),)),
        replace(FAMILY[1], parent="q"),
        queue("c", parent="q"),
    )
    assert in_family(w, x, y, queues=(*FAMILY[::2], *apart)) == (LEAF,)
    narrow = (queue("p", guaranteed=(("cpu", 1000),)), *FAMILY[2:], *apart)
    assert in_family(w, x, y, queues=narrow) == (LEAF,)
