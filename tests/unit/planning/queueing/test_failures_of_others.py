"""Known failures of other schedulers with queues, each as a scene of ours, by the issue's number.

Some are about what others evict: with Tutti nothing that runs is ended for a queue, so those scenes
are played over plans that follow one another, and say what starts once there is room.
"""

from dataclasses import replace
from typing import Any

import pytest

from tutti.gang.finding_text import sentence
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Plan, Policy
from tutti.model.queues import Queue, QueueRecord, RoleAtStart
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify.plan_checks import violations

from ....harness.builders import (
    AMPLE_BUDGET,
    GPU,
    GangBuilder,
    Part,
    applied,
    gang,
    node,
    peers,
    reservation,
    resources,
    snapshot_of,
    space,
)
from ..test_queued_gangs import queue

NOW = 10_000.0
PATIENT = Policy(age_seconds=1e9, starvation_seconds=1e9)


def planned(snapshot: Snapshot) -> Plan:
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, PATIENT)
    assert violations(snapshot, made) == ()
    assert made.evictions == ()
    return made


def cluster(*parts: Part) -> Snapshot:
    return snapshot_of(space("ml"), *parts, at=NOW)


def started(*parts: Part) -> set[str]:
    return {placement.gang.name for placement in planned(cluster(*parts)).placements}


def quota(name: str, parent: str = "", limit: int | None = None, **guaranteed: int) -> Queue:
    limits = () if limit is None else ((GPU, limit),)
    amounts = tuple(sorted((GPU if name == "gpu" else name, n) for name, n in guaranteed.items()))
    return queue(name, parent=parent, guaranteed=amounts, limits=limits)


def waits(name: str, into: str, members: int = 1, priority: int = 0, **each: Any) -> GangBuilder:
    made = gang(name).of(members, **(each or {"gpu": 1}))
    return made.priority(priority).but(queue=into, created=NOW)


def runs(of: GangBuilder, into: Queue, *nodes: str, at: float = 1.0) -> tuple[Part, Part]:
    """The gang on these nodes, and the record of its start."""
    needed = [member.shape.requests for member in of.members[: of.made.min_member]]
    total = needed[0].scaled(len(needed))
    start = (RoleAtStart("", len(needed), total),)
    bound = of.bound_on(*nodes)
    record = QueueRecord(into.name, into.uid, at, start)
    return bound, replace(reservation(bound), record=record)


def test_kueue_14477_all_gangs_of_a_queue_that_fit_start_in_one_plan() -> None:
    some = [waits(f"g{i}", "a") for i in range(20)]
    assert len(started(node("n1", gpu=20), quota("a", gpu=20), *some)) == 20


def test_kueue_6489_a_pod_that_never_ends_does_not_block_the_other_gangs_of_its_queue() -> None:
    own = quota("a", limit=8, gpu=8)
    stuck, record = runs(waits("r", "a", 2), own, "n1", "n1")
    assert isinstance(stuck, GangBuilder)
    leaving = stuck.each(terminating=True)
    large, small = waits("x", "a", 7), waits("y", "a", 6)
    parts = node("n1", gpu=8), own, leaving, record
    assert started(*parts, large) == set(), "two of the limit are still held"
    assert started(*parts, large, small) == {"y"}


def test_kueue_9406_who_borrows_one_resource_keeps_the_guarantee_of_another() -> None:
    own, other = quota("a", cpu=4000, gpu=2), quota("b", cpu=4000, gpu=6)
    running = runs(waits("r", "a", 1, cpu=0, gpu=6), own, "n1")
    covered, borrows = waits("x", "a", cpu=4), waits("y", "b", 1, 9, cpu=5)
    assert started(node("n1", cpu=5, gpu=8), own, other, *running, covered, borrows) == {"x"}


def test_kueue_8902_kinds_of_devices_with_names_of_their_own_count_apart() -> None:
    own = queue("a", limits=(("amd.com/gpu", 1), (GPU, 1)))
    kinds = node("n1", gpu=4, **{"amd.com/gpu": 4})
    two = waits("x", "a", gpu=1), waits("y", "a", **{"amd.com/gpu": 1})
    assert started(kinds, own, *two, waits("z", "a", gpu=1)) >= {"y"}
    assert len(started(kinds, own, *two, waits("z", "a", gpu=1))) == 2


def test_volcano_4679_gangs_wait_in_sight_while_the_cluster_is_full() -> None:
    own, other = quota("a", gpu=4), quota("b", gpu=4)
    full = runs(waits("r", "b", 8), other, *["n1"] * 8)
    plan = planned(cluster(node("n1", gpu=8), own, other, *full, waits("x", "a", 4)))
    assert [rejection.gang.name for rejection in plan.rejections] == ["x"]
    assert [use.waiting for use in plan.queues if use.name == "a"] == [1]
    assert started(node("n1", gpu=8), own, other, waits("x", "a", 4)) == {"x"}


@pytest.mark.parametrize("who", ["volcano_4925", "kueue_5243"])
def test_nothing_ends_where_amounts_suffice_and_no_node_does(who: str) -> None:
    own, other = quota("a", gpu=4), quota("b")
    left = runs(waits("r", "b", 2), other, "n1", "n2")
    plan = planned(
        cluster(node("n1", gpu=3), node("n2", gpu=3), own, other, *left, waits("x", "a", gpu=3))
    )
    assert plan.placements == (), who
    assert "no node" in sentence(plan.rejections[0]) or "room" in sentence(plan.rejections[0])


def test_volcano_3729_two_elastic_gangs_do_not_take_from_each_other() -> None:
    """Each wants all that the other has: what joined stays, and later plans change nothing."""
    queues = quota("a", gpu=2), quota("b", gpu=2)
    elastic = [waits(name, name, 4).needing(1) for name in ("a", "b")]
    snapshot = cluster(node("n1", gpu=4), *queues, *elastic)
    first = planned(snapshot)
    assert {len(placement.assignments) for placement in first.placements} == {2}
    for _ in range(3):
        snapshot = applied(snapshot, first)
        assert planned(snapshot).placements == ()


def test_kueue_7101_a_gang_that_borrows_is_not_ended_again_and_again() -> None:
    own, other = quota("a", gpu=8), quota("b")
    borrows = runs(waits("r", "b", 8), other, *["n1"] * 8)
    parts = node("n1", gpu=8), own, other, *borrows
    for n in range(5):
        assert started(*parts, *[waits(f"x{i}", "a") for i in range(n + 1)]) == set()


def test_kueue_13662_what_ends_late_is_not_given_back_to_who_borrowed_it() -> None:
    """Of a gang that ends, members leave one by one: room goes to the queue that guarantees it."""
    own, other = quota("a", gpu=4), quota("b")
    four = waits("r", "b", 4)
    for left in (3, 2, 1):
        leaving, record = runs(four, other, *["n1"] * 4)
        assert isinstance(leaving, GangBuilder)
        last = replace(leaving, members=leaving.members[:left]).each(terminating=True)
        assert started(node("n1", gpu=4), own, other, last, record, waits("x", "a", 4)) == set()
    again = [waits(f"y{i}", "b", 1, 9) for i in range(4)]
    assert started(node("n1", gpu=4), own, other, waits("x", "a", 4), *again) == {"x"}


def test_volcano_4607_gangs_start_whole_or_not_at_all_whatever_their_queue_has_left() -> None:
    own = quota("a", limit=3, gpu=3)
    assert started(node("n1", gpu=8), own, waits("x", "a", 4)) == set()
    assert started(node("n1", gpu=8), own, waits("x", "a", 4), waits("y", "a", 3)) == {"y"}


def test_kai_1750_a_queue_within_its_guarantee_does_not_hide_another_that_has_room() -> None:
    parent = quota("org", gpu=4)
    queues = parent, quota("mine", "org", gpu=4), quota("batch", "org"), quota("protected", gpu=2)
    running = runs(waits("p", "protected"), queues[3], "n1")
    some = waits("x", "mine", 4), waits("y", "batch", 5, 9)
    assert started(node("n1", gpu=6), *queues, *running, *some) == {"x"}


def test_kai_2115_pods_that_leave_count_until_they_are_gone_and_no_longer() -> None:
    own = quota("a", gpu=4)
    away = waits("x", "a").apart("hostname", peers(group="r"))
    leaving, record = runs(waits("r", "a"), own, "n1")
    assert isinstance(leaving, GangBuilder)
    there = leaving.each(terminating=True)
    room = node("n1", gpu=4).labelled(hostname="n1")
    assert started(room, own, there, record, away) == set()
    assert started(room, own, record, away) == {"x"}


def test_kai_2056_a_plan_says_what_each_queue_has_and_borrows() -> None:
    own = quota("a", gpu=2)
    running = runs(waits("r", "a", 3), own, "n1", "n1", "n1")
    plan = planned(cluster(node("n1", gpu=8), own, *running))
    (use,) = [queue for queue in plan.queues if queue.name == "a"]
    assert use.charged[GPU] == 3
    assert use.borrowed == resources(gpu=3), "a gang is covered whole or borrows whole"
    assert use.share == pytest.approx(1 / 8)


def test_kai_2058_a_gang_says_which_limit_it_waits_for_and_what_would_do() -> None:
    own = quota("a", limit=4)
    running = runs(waits("r", "a", 2), own, "n1", "n1")
    plan = planned(cluster(node("n1", gpu=8), own, *running, waits("x", "a", 3)))
    assert sentence(plan.rejections[0]) == (
        "queue a is at its limit: 2 of 4 nvidia.com/gpu are in use, 3 wanted; a limit of 5 would "
        "be enough, or the end of ml/r (2)"
    )


def test_kueue_10131_the_order_among_priorities_is_the_same_in_every_plan() -> None:
    own = quota("a", gpu=2)
    some = [waits(f"g{i}", "a", 1, i % 3) for i in range(6)]
    plans = [started(node("n1", gpu=2), own, *some[i:], *some[:i]) for i in range(6)]
    assert plans == [{"g2", "g5"}] * 6


def test_kueue_6814_a_gang_that_fits_nowhere_does_not_keep_others_of_its_queue_waiting() -> None:
    holder, high, low = quota("q", gpu=4), quota("h"), quota("l")
    some = waits("huge", "h", 5, 9), waits("x", "h", 4, 9), waits("y", "l", 4)
    assert started(node("n1", gpu=4), holder, high, low, *some) == {"x"}


def test_kueue_3948_a_guarantee_of_a_parent_covers_a_child_that_declares_none() -> None:
    parent, child, best = quota("guaranteed", gpu=4), quota("g", "guaranteed"), quota("best")
    some = waits("x", "g", 4), waits("y", "best", 4, 9)
    assert started(node("n1", gpu=4), parent, child, best, *some) == {"x"}
