"""The order of a plan with queues: who starts before whom, and what is held for a starved gang."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.gang.demand import PlacementRequest
from tutti.gang.finding_text import sentence
from tutti.model.cluster import Phase
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.queues import PastUse, Queue, QueueMode, QueueRecord, RoleAtStart
from tutti.model.resources import NOTHING
from tutti.planning.plan import plan
from tutti.planning.queueing import covered_round, room_choice, turns_round
from tutti.queues.share import Borrower
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify.plan_checks import violations

from ....harness.builders import (
    AMPLE_BUDGET,
    GPU,
    GangBuilder,
    NodeBuilder,
    Part,
    gang,
    node,
    peers,
    reservation,
    resources,
    single,
    snapshot_of,
    space,
    topology,
)
from ...queues.builders import key
from ..test_queued_gangs import queue

ML = space("ml")
NOW = 10_000.0
POLICY = Policy(age_seconds=1e9, starvation_seconds=5_000.0)


def planned(*parts: Part, name: str = "ilp") -> Plan:
    snapshot = snapshot_of(ML, *parts, at=NOW)
    made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET, POLICY)
    assert violations(snapshot, made) == ()
    return made


def started(plan: Plan) -> set[str]:
    return {placement.gang.name for placement in plan.placements}


def members(plan: Plan) -> dict[str, int]:
    return {placement.gang.name: len(placement.assignments) for placement in plan.placements}


def gpus(guaranteed: int, limit: int | None = None) -> dict[str, Any]:
    limits = () if limit is None else ((GPU, limit),)
    return {"guaranteed": ((GPU, guaranteed),), "limits": limits}


def waits(name: str, into: str, gpu: int, priority: int = 0, **changes: Any) -> GangBuilder:
    """A gang of one pod that has waited since a moment ago, unless it is said otherwise."""
    changes = {"created": NOW, **changes}
    return gang(name).of(1, gpu=gpu).priority(priority).but(queue=into, **changes)


def starves(name: str, into: str, gpu: int, priority: int = 0, created: float = 0) -> GangBuilder:
    """A gang that has waited for too long."""
    return waits(name, into, gpu, priority, created=created)


def runs(name: str, into: Queue, gpu: int, priority: int = 0) -> tuple[Part, Part]:
    """A gang of one pod on the first node, and the record of its start."""
    bound = waits(name, into.name, gpu, priority).bound_on("n1")
    starts = (RoleAtStart("", 1, resources(gpu=gpu, pods=1)),)
    record = QueueRecord(into.name, into.uid, 1.0, starts)
    return bound, replace(reservation(bound), record=record)


def eight() -> NodeBuilder:
    return node("n1", gpu=8)


A, B = queue("a", **gpus(4)), queue("b", **gpus(4))


def test_covered_gangs_start_before_borrowers_whatever_their_priority() -> None:
    plan = planned(eight(), A, B, waits("x", "a", 8, priority=9), waits("y", "b", 4))
    assert started(plan) == {"y"}
    assert plan.proved


def test_a_resource_that_only_a_queue_in_shadow_guarantees_decides_nothing() -> None:
    cpus = {"guaranteed": (("cpu", 4000),)}
    shadow = queue("s", mode=QueueMode.SHADOW, **gpus(8))
    high = gang("x").of(1, cpu=4, gpu=1).priority(9).but(queue="b", created=NOW)
    low = gang("w").of(1, cpu=4).but(queue="a", created=NOW)
    nodes = node("n1", cpu=4, gpu=1)
    plan = planned(nodes, queue("a", **cpus), queue("b", **cpus), shadow, high, low)
    assert (started(plan), plan.proved) == ({"x"}, True)


def test_pods_of_another_scheduler_take_room_and_are_charged_to_no_queue() -> None:
    taken = node("n1", gpu=8).using(gpu=6)
    plan = planned(taken, queue("a", **gpus(8, limit=8)), waits("x", "a", 4))
    assert (started(plan), plan.rejections[0].reason) == (set(), Reason.NOT_ENOUGH_ROOM)
    assert [use.charged for use in plan.queues] == [NOTHING] * len(plan.queues)
    assert started(planned(taken, queue("a", **gpus(8, limit=8)), waits("x", "a", 2))) == {"x"}


def test_a_higher_priority_starts_first_among_covered_gangs_of_a_queue() -> None:
    plan = planned(eight(), A, B, waits("x", "a", 4), waits("y", "a", 3, priority=9))
    assert started(plan) == {"x", "y"}
    plan = planned(node("n1", gpu=4), A, B, waits("x", "a", 4), waits("y", "a", 3, priority=9))
    assert started(plan) == {"y"}


def test_what_a_leaf_guarantees_comes_before_a_higher_priority_that_a_parent_covers() -> None:
    parent, other = queue("p", **gpus(8)), queue("y", parent="p", **gpus(4))
    gangs = waits("high", "x", 8, priority=9), waits("low", "y", 4)
    for most in None, 4:
        own = queue("x", parent="p", **gpus(4, most))
        plan = planned(eight(), parent, own, other, *gangs)
        assert (started(plan), plan.proved) == ({"low"}, True)
    wide, x, y = queue("p", **gpus(6)), queue("x", parent="p", **gpus(2)), queue("y", parent="p")
    some = [waits(f"x{i}", "x", 1, priority=9) for i in range(6)]
    plan = planned(node("n1", gpu=6), wide, x, replace(y, guaranteed=((GPU, 2),)), *some, low(2))
    assert {"low"} < started(plan)


def test_a_gang_that_a_parent_covers_and_that_runs_keeps_its_room() -> None:
    parent, own = queue("p", **gpus(8)), queue("x", parent="p", **gpus(4))
    other = queue("y", parent="p", **gpus(4))
    assert started(planned(eight(), parent, own, other, *runs("r", own, 8), low(4))) == set()


def low(gpu: int) -> GangBuilder:
    """A gang of the queue y without priority."""
    return waits("low", "y", gpu)


def test_a_leaf_s_own_guarantee_counts_as_much_at_any_depth() -> None:
    """A queue above several leaves comes after them; one above a single leaf is as good as it."""
    flat = queue("x", **gpus(4))
    deep = queue("p", **gpus(8)), queue("m", parent="p", **gpus(8)), queue("y", parent="m")
    sibling, low_one = queue("z", parent="m"), waits("low", "x", 4)
    high = waits("high", "y", 8, priority=9)
    assert started(planned(eight(), flat, *deep, sibling, high, low_one)) == {"low"}
    assert started(planned(eight(), flat, *deep, high, low_one)) == {"high"}


def test_members_join_by_a_leaf_s_guarantee_before_gangs_start_by_a_parent_s() -> None:
    parent, own = queue("p", **gpus(8)), queue("x", parent="p", **gpus(2))
    other = queue("y", parent="p", **gpus(2))
    grows = gang("g").of(4, gpu=1).needing(1).priority(9).but(queue="x", created=NOW)
    some = parent, own, other, grows
    assert members(planned(node("n1", gpu=4), *some, low(2))) == {"g": 2, "low": 1}
    assert members(planned(node("n1", gpu=4), *some, low(3))) == {"g": 4}


def test_the_queue_that_has_borrowed_less_borrows_first() -> None:
    some = queue("c"), queue("d")
    full, empty = runs("r", some[0], 3), (waits("x", "c", 5, priority=9), waits("y", "d", 5))
    assert started(planned(eight(), *some, *full, *empty)) == {"y"}


def test_past_use_decides_between_queues_that_have_borrowed_equally_much() -> None:
    past = PastUse(500_000, 0, NOW, 60.0)
    used, unused = queue("c", past_use=past), queue("d")
    large, small = waits("x", "c", 8, created=NOW - 9), waits("y", "d", 5)
    assert started(planned(eight(), queue("c"), unused, large, small)) == {"x"}
    plan = planned(eight(), used, unused, large, small)
    assert started(plan) == {"y"}
    assert plan.proved
    high = waits("x", "c", 8, priority=1)
    assert started(planned(eight(), used, unused, high, small)) == {"x"}
    borrows = runs("r", unused, 3)
    assert started(planned(eight(), used, *borrows, waits("x", "c", 5), small)) == {"x"}
    guaranteed = queue("c", past_use=past, **gpus(8))
    assert started(planned(eight(), guaranteed, unused, large, small)) == {"x"}


def test_borrowers_take_turns() -> None:
    """Each queue gets half, although the gangs of one came first."""
    old = [waits(f"x{i}", "c", 1, created=NOW - 9 + i) for i in range(8)]
    new = [waits(f"y{i}", "d", 1, created=NOW) for i in range(8)]
    names = started(planned(eight(), queue("c"), queue("d"), *old, *new))
    assert (len(names), sum(name.startswith("x") for name in names)) == (8, 4)


def test_gangs_of_one_queue_that_follow_each_other_are_chosen_for_the_most_value() -> None:
    old, others = waits("x", "c", 5, created=NOW - 9), [waits(f"y{i}", "c", 4) for i in range(2)]
    plan = planned(eight(), queue("c"), queue("d"), old, *others)
    assert started(plan) == {"y0", "y1"}
    assert plan.proved


def test_gangs_of_one_queue_are_not_chosen_together_across_the_turn_of_another() -> None:
    old, others = waits("x", "c", 5, created=NOW - 9), [waits(f"y{i}", "c", 4) for i in range(2)]
    plan = planned(eight(), queue("c"), queue("d"), old, *others, waits("z", "d", 3))
    assert started(plan) == {"x", "z"}


def test_a_gang_that_its_limit_keeps_out_stands_between_no_turns() -> None:
    old, others = waits("x", "c", 5, created=NOW - 9), [waits(f"y{i}", "c", 4) for i in range(2)]
    full = queue("d", limits=((GPU, 2),))
    plan = planned(eight(), queue("c"), full, old, *others, waits("z", "d", 3))
    assert started(plan) == {"y0", "y1"}


def contended() -> tuple[Part, ...]:
    """Two queues, each with gangs of which not all fit."""
    nodes = node("n1", gpu=5), node("n2", gpu=4)
    sizes = {"c": (3, 3, 2), "d": (4, 4, 1)}
    gangs = [waits(f"{q}{i}", q, n) for q, own in sizes.items() for i, n in enumerate(own)]
    return (*nodes, queue("c"), queue("d"), *gangs)


def test_of_equal_gangs_those_that_come_first_start() -> None:
    teams = [queue(name, guaranteed=((GPU, 3),)) for name in ("c", "d")]
    gangs = [waits(f"{name}{i:02}", name, 2) for name in ("c", "d") for i in range(12)]
    plan = planned(node("n1", gpu=8), *teams, *gangs)
    assert started(plan) == {"c00", "c01", "d00", "d01"}


COUNTING = ("room_choice.best_choice", "room_choice._placed_together")


@pytest.mark.parametrize("without", ["", *COUNTING])
def test_all_turns_are_decided_together(monkeypatch: pytest.MonkeyPatch, without: str) -> None:
    """By counting; else by one program."""
    if without:
        monkeypatch.setattr(f"tutti.planning.queueing.{without}", lambda *_: None)
    plan = planned(*contended())
    assert plan.proved
    assert [level.admitted == level.bound for level in plan.levels] == [True]
    both = planned(eight(), queue("c"), queue("d"), waits("x", "c", 4), waits("y", "d", 4))
    assert (started(both), both.proved) == ({"x", "y"}, True)


@pytest.mark.parametrize("step", ["_by_order", "_is_as_good"])
def test_without_one_program_each_turn_is_decided_by_itself(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    together = planned(*contended())
    monkeypatch.setattr(room_choice, "best_choice", lambda *_: None)
    monkeypatch.setattr(turns_round, step, lambda *_: None)
    assert started(planned(*contended())) == started(together)


def test_where_no_order_follows_from_its_choice_each_turn_is_decided_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = planned(*contended())
    monkeypatch.setattr(turns_round, "_is_as_good", lambda *_: False)
    assert started(planned(*contended())) == started(together)


def test_pods_on_nodes_of_one_size_are_counted_where_all_nodes_seem_to_have_room() -> None:
    """Three nodes of 6 take three pods of 4, and four have room in all nodes together."""
    nodes = [node(f"n{i}", gpu=6) for i in range(3)]
    gangs = [
        gang(name).of(n, gpu=4).but(queue="c", created=NOW) for name, n in (("x", 2), ("y", 3))
    ]
    plan = planned(*nodes, queue("c"), *gangs)
    assert (started(plan), plan.proved) == ({"y"}, True)


def test_a_gang_for_which_no_domain_has_room_waits() -> None:
    nodes = [node(f"n{i}", gpu=4).labelled(rack=f"r{i}") for i in range(2)]
    apart = gang("x").of(2, gpu=4).but(queue="c", created=NOW).together("rack")
    plan = planned(topology("rack"), *nodes, queue("c"), apart)
    assert (started(plan), plan.proved) == (set(), True)


def test_gangs_that_choose_among_unequal_pods_are_not_counted() -> None:
    unequal = gang("x").of(1, gpu=6).of(1, gpu=3).needing(1).but(queue="c", created=NOW)
    plan = planned(eight(), queue("c"), unequal, waits("y", "c", 5))
    assert (started(plan), plan.proved) == ({"x", "y"}, True)


def test_a_strategy_without_proof_decides_turn_by_turn() -> None:
    snapshot = snapshot_of(ML, *contended(), at=NOW)
    made = plan(snapshot, BestFit(), BestFit(), AMPLE_BUDGET, POLICY)
    assert violations(snapshot, made) == ()
    assert not made.proved


def test_an_order_is_as_good_if_nobody_who_waits_comes_before_more_that_start() -> None:
    a, b, c = (Borrower(key(name), "q", 0, 0, NOTHING) for name in "abc")
    assert turns_round._is_as_good([[a], [b], [c]], [[b], [a], [c]], {a, b})
    assert turns_round._is_as_good([[a], [b], [c]], [[a, b], [c]], {a, b})
    assert not turns_round._is_as_good([[a], [b], [c]], [[b], [a], [c]], {a})
    assert not turns_round._is_as_good([[a], [b], [c]], [[a, b], [c]], {a, c})
    assert turns_round._is_as_good([[a, b], [c]], [[a], [b], [c]], {a})


def test_a_gang_that_does_not_fit_lets_others_of_its_queue_borrow() -> None:
    plan = planned(eight(), queue("c"), waits("x", "c", 9, priority=9), waits("y", "c", 8))
    assert started(plan) == {"y"}


def test_covered_gangs_have_other_nodes_where_more_start_then() -> None:
    """What borrows is decided together with the nodes of what is covered."""
    small = gang("x").of(2, gpu=2).but(queue="a", created=NOW)
    plan = planned(node("n1", gpu=5), node("n2", gpu=4), A, small, waits("y", "b", 5), B)
    assert started(plan) == {"x", "y"}


def test_members_beyond_those_needed_join_as_covered_before_others_borrow() -> None:
    elastic = gang("x").of(4, gpu=1).needing(2).but(queue="a", created=NOW)
    plan = planned(node("n1", gpu=6), A, B, elastic, waits("y", "a", 3, priority=-1))
    assert members(plan) == {"x": 4}
    plan = planned(node("n1", gpu=6), A, B, elastic, waits("y", "b", 4))
    assert members(plan) == {"x": 2, "y": 1}


def test_members_that_no_guarantee_covers_join_by_the_turn_of_their_queue() -> None:
    elastic = gang("x").of(9, gpu=1).needing(1).but(queue="c", created=NOW)
    plan = planned(eight(), queue("c"), queue("d"), elastic, waits("y", "d", 4))
    assert members(plan) == {"x": 4, "y": 1}


def test_a_gang_without_any_charge_grows() -> None:
    """All its members have ended well."""
    over = gang("x").of(1, gpu=1).bound_on("n1").each(phase=Phase.SUCCEEDED)
    grows = over.of(2, gpu=1).needing(1).but(queue="a", created=NOW)
    assert members(planned(eight(), A, grows)) == {"x": 2}


def test_a_pod_without_a_podgroup_is_covered_too() -> None:
    default = queue("a", default_for=(), **gpus(4))
    plan = planned(node("n1", gpu=4), default, B, single("p", gpu=4), waits("y", "a", 3, 9))
    assert started(plan) == {"y"}
    plan = planned(node("n1", gpu=4), default, B, single("p", gpu=4))
    assert started(plan) == {"p"}


def test_gangs_of_different_pods_are_covered_by_what_starts() -> None:
    mixed = gang("x").of(1, gpu=4).of(1, gpu=1).needing(1).but(queue="a", created=NOW)
    plan = planned(node("n1", gpu=3), A, queue("c"), mixed, waits("y", "c", 3))
    assert started(plan) == {"x"}


@pytest.mark.parametrize("priority", [0, -1])
def test_an_entitled_gang_starts_before_newer_covered_gangs(priority: int) -> None:
    newer = [waits(f"y{i}", "b", 1) for i in range(4)]
    plan = planned(node("n1", gpu=4), A, B, starves("x", "a", 4, priority), *newer)
    assert started(plan) == {"x"}


def test_room_is_held_for_an_entitled_gang_from_all() -> None:
    running = runs("r", B, 2)
    plan = planned(node("n1", gpu=4), A, B, *running, starves("x", "a", 4), waits("y", "b", 1))
    assert started(plan) == set()
    texts = {rejection.gang.name: sentence(rejection) for rejection in plan.rejections}
    assert "room is held for" in texts["y"]


def test_higher_priorities_of_its_queue_that_are_covered_come_before_an_entitled_gang() -> None:
    running = runs("r", B, 2)
    above = waits("y", "a", 2, priority=1)
    plan = planned(node("n1", gpu=4), A, B, *running, starves("x", "a", 4), above)
    assert started(plan) == {"y"}


def test_its_cover_is_held_for_an_entitled_gang_from_its_own_queue() -> None:
    """There is room for the small one, but it would take what covers the starved one."""
    room = (node("n1", gpu=6), node("n2", gpu=1))
    own, other, small = runs("r", A, 2), waits("z", "b", 2), waits("y", "a", 1)
    assert started(planned(*room, A, B, *own, starves("x", "a", 4), small, other)) == {"z"}
    assert started(planned(*room, A, B, *own, small, other)) == {"y", "z"}


def test_an_entitled_gang_borrows_until_its_own_queue_leaves_it_its_cover() -> None:
    own, starved = runs("r", A, 2), starves("x", "a", 4)
    assert started(planned(node("n1", gpu=12), A, B, *own, starved)) == {"x"}
    guarded = starved.but(is_protected=True)
    assert started(planned(node("n1", gpu=12), A, B, *own, guarded)) == set()


def test_a_queue_that_uses_its_guarantee_holds_no_room_that_another_guarantees() -> None:
    """Otherwise a gang that has starved behind its own queue would keep it for ever."""
    own, starved = runs("r", A, 4), starves("x", "a", 4)
    assert started(planned(eight(), A, B, *own, starved, waits("w", "b", 4))) == {"w"}
    assert started(planned(eight(), A, B, *own, starved, waits("w", "b", 5))) == {"x"}


def family(a: int, b: int, parent: int) -> tuple[Queue, ...]:
    return (
        queue("p", **gpus(parent)),
        queue("a", parent="p", **gpus(a)),
        queue("b", parent="p", **gpus(b)),
    )


def test_a_starved_gang_that_a_parent_covers_comes_after_what_leaves_guarantee() -> None:
    starved, own = starves("x", "a", 4), waits("w", "b", 4)
    plan = planned(node("n1", gpu=4), *family(0, 4, 8), starved, own)
    assert (started(plan), plan.proved) == ({"w"}, True)
    other = waits("y", "b", 8, priority=9)
    assert started(planned(eight(), *family(0, 4, 8), starved, other)) == {"x"}


def test_a_starved_gang_whose_cover_others_take_comes_after_all_covered_gangs() -> None:
    starved, own, small = starves("x", "a", 4), waits("w", "b", 4), waits("y", "c", 2)
    children = queue("c", parent="q"), queue("d", parent="q")
    queues = (*family(0, 4, 4), queue("q", **gpus(2)), *children)
    assert started(planned(node("n1", gpu=9), *queues, starved, own, small)) == {"w", "y"}
    assert started(planned(node("n1", gpu=10), *queues, starved, own, small)) == {"w", "x", "y"}


def test_higher_priorities_come_before_a_starved_gang_only_in_its_tier() -> None:
    high = [waits(f"h{i}", "a", 2, priority=9) for i in range(3)]
    starved, own = starves("x", "a", 2), waits("w", "b", 4)
    plan = planned(node("n1", gpu=6), *family(2, 4, 12), starved, own, *high)
    assert "w" in started(plan)
    assert len(started(plan)) == 2


def test_a_gang_behind_a_starved_one_of_its_queue_may_wait_within_its_guarantee() -> None:
    """What others start before the starved one takes its place, too."""
    queues = (queue("a", **gpus(1)), queue("p", **gpus(4)))
    others = queue("b", parent="p"), queue("c", parent="p")
    some = [waits(f"y{i}", "b", 1) for i in range(2)]
    behind = waits("z", "a", 1)
    plan = planned(node("n1", gpu=4), *queues, *others, starves("x", "a", 2), behind, *some)
    assert started(plan) == {"x", "y0", "y1"}


def test_own_gangs_that_leave_an_entitled_gang_its_cover_start() -> None:
    more, blocked = queue("a", **gpus(6)), runs("r", B, 3)
    big = gang("x").of(1, gpu=5).but(queue="a", created=0.0)
    room = (node("n1", gpu=7), node("n2", gpu=1))
    plan = planned(*room, more, B, *blocked, big, waits("y", "a", 1), waits("z", "a", 1))
    assert len(started(plan)) == 1
    assert started(plan) < {"y", "z"}


def test_its_further_members_leave_an_entitled_gang_its_cover() -> None:
    grows = gang("g").of(3, gpu=1).needing(1).bound_on("n2").but(queue="a", created=0.0)
    starts = (RoleAtStart("", 1, resources(gpu=1, pods=1)),)
    record = replace(reservation(grows), record=QueueRecord("a", A.uid, 1.0, starts))
    parent = queue("p", **gpus(4))
    child = queue("a", parent="p", **gpus(2))
    leaf = replace(child, uid=A.uid)
    big = gang("x").of(1, gpu=3).but(queue="a", created=0.0)
    blocked = runs("r", queue("b"), 2)
    room = (node("n1", gpu=4), node("n2", gpu=3))
    plan = planned(*room, parent, leaf, queue("b"), grows, record, big, *blocked)
    assert "g" not in started(plan)


def test_many_further_members_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[object] = []
    equal = PlacementRequest.__eq__

    def counted(one: PlacementRequest, other: object) -> bool:
        compared.append(one)
        return equal(one, other)

    monkeypatch.setattr(PlacementRequest, "__eq__", counted)
    grows = gang("g").of(200, gpu=1).needing(1).bound_on("n2").but(queue="a", created=0.0)
    starts = (RoleAtStart("", 1, resources(gpu=1, pods=1)),)
    record = replace(reservation(grows), record=QueueRecord("a", A.uid, 1.0, starts))
    parent, leaf = queue("p", **gpus(4)), queue("a", parent="p", **gpus(2))
    big = gang("x").of(1, gpu=3).but(queue="a", created=0.0)
    room = (node("n1", gpu=4), node("n2", gpu=3))
    queues = parent, replace(leaf, uid=A.uid), queue("b")
    assert "g" not in started(
        planned(*room, *queues, grows, record, big, *runs("r", queue("b"), 2))
    )
    assert len(compared) < 1_000


def test_a_gang_that_must_borrow_comes_after_covered_gangs_of_other_queues() -> None:
    plan = planned(eight(), A, B, starves("x", "a", 8), waits("y", "b", 4), waits("z", "a", 4))
    assert started(plan) == {"y"}
    texts = {rejection.gang.name: sentence(rejection) for rejection in plan.rejections}
    assert "room is held for" in texts["z"]


def test_a_gang_that_must_borrow_starts_before_its_own_covered_gangs_and_borrowers() -> None:
    some = waits("y", "a", 4), waits("z", "b", 8)
    assert started(planned(eight(), A, B, starves("x", "a", 8), *some)) == {"x"}


def test_what_a_starved_gang_needs_of_a_limit_is_held() -> None:
    limited = queue("a", **gpus(0, limit=6))
    running = runs("r", limited, 3)
    plan = planned(
        node("n1", gpu=20), limited, B, *running, starves("x", "a", 4), waits("y", "a", 1)
    )
    assert started(plan) == set()
    texts = {rejection.gang.name: sentence(rejection) for rejection in plan.rejections}
    assert texts["y"] == (
        "queue a is at its limit: 3 of 6 nvidia.com/gpu are in use, 1 wanted; some of it is held "
        "for gang ml/x, which goes first; a limit of 8 would be enough"
    )
    assert {rejection.reason for rejection in plan.rejections} == {Reason.QUEUE_AT_LIMIT}


@pytest.mark.parametrize("limited", ["p", "a"])
def test_a_starved_gang_holds_no_room_on_nodes_while_a_limit_keeps_it_waiting(limited: str) -> None:
    """Its own queue has to give back first; the limit may also be that of an ancestor."""
    parent, own = queue("p"), queue("a", parent="p", **gpus(4))
    limits = ((GPU, 4),)
    parent, own = (replace(q, limits=limits if q.name == limited else ()) for q in (parent, own))
    room = node("n1", gpu=2), node("n2", gpu=4), node("n3", gpu=2)
    waiting = starves("x", "a", 4), waits("w", "b", 4), waits("y", "a", 2)
    full = planned(*room, parent, own, B, *runs("r", own, 2), *waiting)
    assert started(full) == {"w"}
    texts = {rejection.gang.name: sentence(rejection) for rejection in full.rejections}
    assert texts["x"].endswith("it has waited longest, so what its queue gives back is held for it")
    assert texts["y"].endswith(
        "some of it is held for gang ml/x, which goes first; a limit of 8 would be enough"
    )
    other = gang("r").of(1, gpu=2).bound_on("n2")
    free = planned(*room, parent, own, B, other, *waiting)
    assert started(free) == set()
    texts = {rejection.gang.name: sentence(rejection) for rejection in free.rejections}
    assert "room is held for it on 1 node" in texts["x"]


def test_each_queue_has_one_candidate_and_an_entitled_one_goes_first() -> None:
    """The oldest must borrow; in the other queue, the highest priority counts."""
    old = starves("x", "a", 8, created=0.0)
    low, high = starves("y", "b", 4, created=1.0), starves("z", "b", 4, priority=1, created=2.0)
    assert started(planned(node("n1", gpu=4), node("n2", gpu=4), A, B, low, high)) == {"y", "z"}
    assert started(planned(node("n1", gpu=8), A, B, old, low, high)) == {"y", "z"}


def test_unequal_pods_that_exceed_what_nodes_have_left_together_take_no_turn() -> None:
    """So the two of the other queue are decided together, and the larger one is worth more."""
    queues = queue("c"), queue("d")
    unequal = gang("z").of(1, gpu=1).of(1, gpu=4).but(queue="d", created=NOW)
    both = waits("x", "c", 2, created=NOW - 1), waits("y", "c", 4)
    assert started(planned(node("n1", gpu=4), *queues, *both, unequal)) == {"y"}


def test_a_plan_says_when_the_next_gang_falls_due() -> None:
    later = waits("y", "b", 1, created=NOW - 4_000.0)
    plan = planned(node("n1", gpu=4), A, B, starves("x", "a", 4), later)
    assert plan.next_change_at == NOW + 1_000.0


def test_gangs_with_rules_between_their_pods_start_in_order() -> None:
    apart = gang("x").of(2, gpu=1).near("hostname").but(queue="a", created=NOW)
    plan = planned(node("n1", gpu=1), node("n2", gpu=1), A, B, apart, waits("y", "b", 1))
    assert started(plan) == {"y"}


PARENT, CHILD = queue("p", **gpus(6)), queue("a", parent="p", **gpus(2))


def large() -> tuple[Part, ...]:
    """A gang that only the parent covers, and that a covered start of its queue would strip."""
    return (PARENT, CHILD, *runs("r", CHILD, 5, priority=9))


def test_a_start_that_would_strip_a_gang_of_its_queue_borrows() -> None:
    plan = planned(eight(), *large(), waits("w", "a", 2, created=NOW - 1), waits("x", "a", 2))
    assert (started(plan), plan.proved) == ({"w"}, False)
    assert plan.shortfall == "other gangs might be covered together"
    plan = planned(eight(), *large(), waits("x", "a", 2), B, starves("s", "b", 1))
    assert started(plan) == {"x", "s"}


def test_where_the_walk_refuses_a_start_another_of_equal_value_is_as_good() -> None:
    other = queue("b", parent="p", **gpus(2))
    both = waits("x", "a", 2, created=NOW - 1), waits("y", "b", 2)
    plan = planned(node("n1", gpu=7), *large(), other, *both)
    assert (started(plan), plan.proved) == ({"y"}, True)


def test_after_some_attempts_nothing_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covered_round, "MOST_ATTEMPTS", 1)
    plan = planned(eight(), *large(), waits("w", "a", 2, created=NOW - 1), waits("x", "a", 2))
    assert (started(plan), plan.proved) == ({"w"}, False)


def test_a_plan_in_which_all_gangs_start_is_proved() -> None:
    plan = planned(eight(), *large(), waits("x", "a", 2))
    assert (started(plan), plan.proved, plan.shortfall) == ({"x"}, True, "")
    assert all(level.admitted == level.bound for level in plan.levels)


def test_in_the_last_attempt_only_allowed_starts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covered_round, "MOST_ATTEMPTS", 2)
    other = queue("b", parent="p", **gpus(2))
    some = waits("x", "a", 2), waits("y", "b", 2), waits("z", "b", 2)
    plan = planned(node("n1", gpu=9), *large(), other, *some)
    assert len(started(plan)) == 2
    assert started(plan) & {"y", "z"}


def test_a_high_priority_that_the_walk_refuses_does_not_keep_others_from_their_cover() -> None:
    other = queue("b", parent="p", **gpus(2))
    some = waits("x", "a", 2, priority=1), waits("y", "b", 2)
    assert started(planned(eight(), *large(), other, *some)) == {"y"}


def test_high_priorities_that_all_start_are_decided_before_the_others() -> None:
    """Low ones that run could be displaced by them, which the rows of all cannot tell."""
    own = queue("a", **gpus(6))
    running = gang("r").of(2, gpu=1).bound_on("n1", "n1").but(queue="a", created=0.0)
    starts = (RoleAtStart("", 2, resources(gpu=2, pods=2)),)
    record = replace(reservation(running), record=QueueRecord("a", own.uid, 1.0, starts))
    low = waits("y", "a", 3), waits("z", "a", 2), waits("v", "a", 2)
    some = (own, running, record, waits("x", "a", 1, priority=1), *low)
    plan = planned(node("n1", gpu=5), node("n2", gpu=5), *some)
    assert plan.proved
    assert {"x", "y"} <= started(plan)


def test_a_starved_gang_that_borrows_keeps_none_of_its_queue_from_their_guarantee() -> None:
    """Of several that the guarantee covers, the one that waits longest goes first."""
    a, b = queue("a", **gpus(1)), queue("b", **gpus(1))
    big, small = starves("big", "a", 2), starves("small", "a", 1, created=1)
    plan = planned(node("n1", gpu=2), a, b, *runs("r", b, 1), big, small)
    assert (started(plan), plan.proved) == ({"small"}, True)
    later = starves("later", "a", 1, priority=0, created=2)
    plan = planned(node("n1", gpu=2), a, b, *runs("r", b, 1), big, later, small)
    assert started(plan) == {"small"}
    plan = planned(node("n1", gpu=2), a, b, *runs("r", b, 1), big, waits("later", "a", 1))
    assert started(plan) == set()


def test_no_member_joins_a_gang_that_does_not_start() -> None:
    grows = gang("g").of(3, gpu=1).needing(2).but(queue="a", created=NOW)
    plan = planned(node("n1", gpu=1), A, B, grows, waits("y", "b", 1))
    assert started(plan) == {"y"}


def test_gangs_of_all_tiers_are_covered_together() -> None:
    """The walk takes t before x, which no guarantee would cover then: so t borrows, after y."""
    above = queue("p", **gpus(2)), queue("n", parent="p")
    parent, a, b = queue("m", parent="p", **gpus(2)), queue("a", parent="m"), queue("b", parent="m")
    some = waits("x", "a", 2), waits("t", "b", 1, created=NOW - 9), waits("y", "c", 1, priority=1)
    plan = planned(node("n1", gpu=3), *above, parent, a, b, queue("c"), *some)
    assert started(plan) == {"x", "y"}


def test_members_join_that_leave_an_entitled_gang_its_cover() -> None:
    more, blocked = queue("a", **gpus(9)), runs("r", B, 3)
    grows = gang("g").of(2, gpu=1).needing(1).bound_on("n2").but(queue="a", created=0.0)
    starts = (RoleAtStart("", 1, resources(gpu=1, pods=1)),)
    record = replace(reservation(grows), record=QueueRecord("a", more.uid, 1.0, starts))
    room = (node("n1", gpu=7), node("n2", gpu=2))
    plan = planned(*room, more, B, *blocked, grows, record, starves("x", "a", 5))
    assert started(plan) == {"g"}


def test_without_proof_no_bound_is_known_where_pods_follow_pods() -> None:
    near = gang("x").of(2, gpu=1).near("hostname").but(queue="a", created=NOW)
    apart = waits("w", "a", 2).apart("hostname", peers(group="x"))
    plan = planned(eight().labelled(hostname="n1"), *large(), near, apart, waits("z", "a", 8))
    assert not plan.proved
    assert all(level.bound is None for level in plan.levels)
