"""Rules between pods from end to end: planned jointly, and verified one by one."""

from collections import Counter
from dataclasses import replace

import pytest

from tutti.gang import finding_text
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.inter_pod import InterPodRules
from tutti.model.keys import Uid
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness.builders import AMPLE_BUDGET, gang, node, reservation, snapshot_of
from .neighbours import (
    ZONE,
    apart,
    asking,
    beside,
    even,
    host,
    labels,
    near,
    peers,
    resident,
    zones,
)

A, B = peers(app="a"), peers(app="b")
BOTH = pytest.mark.parametrize("name", ["bestfit", "ilp"])


def planned(snapshot: Snapshot, name: str = "bestfit", policy: Policy | None = None) -> Plan:
    made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET, policy or Policy())
    assert plan_checks.violations(snapshot, made) == ()
    return made


def where(plan: Plan) -> dict[str, str]:
    """The node of each pod that got one."""
    return {
        assignment.pod.name: assignment.node
        for placed in plan.placements
        for assignment in placed.assignments
    }


def zone_counts(plan: Plan) -> list[int]:
    return sorted(Counter(on.split("-")[0] for on in where(plan).values()).values())


def said(plan: Plan, name: str) -> tuple[Reason, str]:
    (found,) = [rejection for rejection in plan.rejections if rejection.gang.name == name]
    return found.reason, finding_text.sentence(found)


@BOTH
def test_eight_members_apart_from_one_another_land_on_eight_nodes(name: str) -> None:
    made = asking(gang("a").of(8, cpu=1), apart(A), app="a")
    snapshot = snapshot_of(*[host(f"n{i}") for i in range(8)], made)
    assert len(set(where(planned(snapshot, name)).values())) == 8


@BOTH
def test_eight_members_apart_from_one_another_do_not_start_on_seven_nodes(name: str) -> None:
    made = asking(gang("a").of(8, cpu=1), apart(A), app="a")
    snapshot = snapshot_of(*[host(f"n{i}") for i in range(7)], made)
    plan = planned(snapshot, name)
    assert plan.placements == ()
    reason, sentence = said(plan, "a")
    assert reason is Reason.NOT_ENOUGH_ROOM
    assert sentence.endswith(
        "left unused by this plan; what its pods ask of others: pod anti-affinity on host"
    )


@BOTH
def test_a_worker_follows_its_driver_into_the_zone_that_has_room(name: str) -> None:
    driver = gang("d").of(1, cpu=2).each(labels=labels(app="b")).members
    workers = asking(gang("d").of(3, cpu=2), near(B), app="a")
    workers = workers.where(lambda m: replace(m, key=m.key._replace(name=f"w{m.key.name}")))
    workers = workers.where(lambda m: replace(m, uid=Uid(m.uid + "w")))
    made = replace(workers, members=(*driver, *workers.members))
    nodes = [*zones(1, 1, cpu=6), *zones(2, 2, cpu=4)[2:], host("z2-0", "z2", cpu=7)]
    plan = planned(snapshot_of(*nodes, made), name)
    assert zone_counts(plan) == [4]
    assert where(plan)["d-0"].startswith("z1")


@BOTH
def test_twelve_members_spread_evenly_over_three_zones(name: str) -> None:
    made = asking(gang("a").of(12, cpu=1), even(A), app="a")
    assert zone_counts(planned(snapshot_of(*zones(3, 2, cpu=8), made), name)) == [4, 4, 4]


@BOTH
def test_gangs_planned_together_keep_their_rules_between_them(name: str) -> None:
    first = asking(gang("a").of(2, cpu=1), apart(B, on=ZONE), app="a")
    second = gang("b").of(2, cpu=1).each(labels=labels(app="b"))
    found = where(planned(snapshot_of(*zones(2, 1), first, second), name))
    assert len(found) == 4
    assert {found["a-0"], found["a-1"]}.isdisjoint({found["b-0"], found["b-1"]})


def test_a_later_round_heeds_who_was_placed_before() -> None:
    grown = asking(gang("a").of(3, cpu=1).needing(2), apart(A), app="a").priority(2)
    lower = asking(gang("b").of(1, cpu=1), apart(A), app="a").priority(1)
    plan = planned(snapshot_of(*[host(f"n{i}") for i in range(3)], grown, lower))
    assert set(where(plan)) == {"a-0", "a-1", "a-2"}
    reason, sentence = said(plan, "b")
    assert reason is Reason.NOT_ENOUGH_ROOM
    assert sentence == (
        "1 member needs 1 cpu; room for none; short 1; "
        "3 nodes excluded by pod anti-affinity on host"
    )


@BOTH
def test_further_members_leave_those_even_who_were_placed_before(name: str) -> None:
    made = gang("e").role("worker", 2, cpu=1).role("extra", 0, 2, cpu=1).needing(2)
    made = made.labelled(app="a").even("zone", A, by="worker")
    found = where(planned(snapshot_of(host("z0-0", "z0", cpu=1), host("z1-0", "z1"), made), name))
    assert found == {"e-0": "z0-0", "e-1": "z1-0", "e-2": "z1-0"}


@BOTH
def test_further_members_join_the_first_who_wants_them_near_or_nobody(name: str) -> None:
    made = gang("e").role("driver", 1, cpu=2).role("extra", 0, 1, cpu=1).needing(1)
    made = made.labelled(app="a").near("zone", A, by="driver")
    tight = host("z1-0", "z1", cpu=1)
    found = where(planned(snapshot_of(host("z0-0", "z0", cpu=4), tight, made), name))
    assert found == {"e-0": "z0-0", "e-1": "z0-0"}
    found = where(planned(snapshot_of(host("z0-0", "z0", cpu=2), tight, made), name))
    assert found == {"e-0": "z0-0"}


@BOTH
def test_a_lower_round_leaves_what_was_decided_above_it_as_it_is(name: str) -> None:
    grown = gang("x").of(2, gpu=1).needing(1).priority(2)
    first = asking(gang("a").of(1, cpu=1), near(A), app="a").priority(2)
    lower = gang("b").of(1, cpu=2).labelled(app="a").priority(1)
    nodes = [host("z0-0", "z0", cpu=1), host("z1-0", "z1", cpu=2), host("z2-0", "z2", gpu=2)]
    plan = planned(snapshot_of(*nodes, grown, first, lower), name)
    assert set(where(plan)) == {"x-0", "x-1", "a-0"}
    wider = [host("z0-1", "z0", cpu=2), nodes[0], host("z1-0", "z1", cpu=4), nodes[2]]
    plan = planned(snapshot_of(*wider, grown, first, lower), name)
    assert where(plan)["b-0"] == "z0-1"


def test_who_was_decided_above_goes_where_a_lower_round_can_follow() -> None:
    grown = gang("x").of(2, gpu=1).needing(1).priority(2)
    first = asking(gang("a").of(1, cpu=1), near(A), app="a").priority(2)
    lower = gang("b").of(1, cpu=2).labelled(app="a").priority(1)
    nodes = [host("z0-0", "z0", cpu=1), host("z1-0", "z1", cpu=4), host("z2-0", "z2", gpu=2)]
    plan = planned(snapshot_of(*nodes, grown, first, lower), "ilp")
    assert set(where(plan)) == {"x-0", "x-1", "a-0", "b-0"}
    assert where(plan)["a-0"] == where(plan)["b-0"] == "z1-0"
    assert plan.proved


@BOTH
def test_members_of_a_later_round_follow_one_who_is_the_only_one_so_far(name: str) -> None:
    made = gang("e").role("driver", 1, cpu=1).role("extra", 0, 1, cpu=1).needing(1)
    made = asking(made, near(A), app="a")
    found = where(planned(snapshot_of(host("z0-0", "z0", cpu=2), made), name))
    assert found == {"e-0": "z0-0", "e-1": "z0-0"}


def test_rounds_that_part_those_who_belong_together_prove_nothing() -> None:
    grown = gang("e").of(2, gpu=1).needing(1).priority(2)
    follower = asking(gang("w").of(1, cpu=6), near(B), app="a").priority(2)
    leader = gang("b").of(1, cpu=1).each(labels=labels(app="b")).priority(1)
    nodes = [host("z0-0", "z0", cpu=1), host("z1-0", "z1", cpu=7), host("z2-0", "z2", gpu=2)]
    plan = planned(snapshot_of(*nodes, grown, follower, leader), "ilp")
    assert set(where(plan)) == {"e-0", "e-1", "b-0"}
    assert not plan.proved
    assert said(plan, "w")[0] is Reason.BUDGET_EXHAUSTED
    assert all(level.bound is None for level in plan.levels)
    alone = planned(snapshot_of(*nodes, follower, leader), "ilp")
    assert set(where(alone)) == {"w-0", "b-0"}
    assert alone.proved


def test_a_repaired_gang_heeds_its_own_members() -> None:
    made = asking(gang("a").of(3, cpu=1), apart(A), app="a").bound_on("n0", "n1")
    snapshot = beside(snapshot_of(*[host(f"n{i}") for i in range(3)], made))
    assert where(planned(snapshot)) == {"a-2": "n2"}
    short = beside(snapshot_of(host("n0"), host("n1"), made))
    reason, sentence = said(planned(short), "a")
    assert reason is Reason.NOT_ENOUGH_ROOM
    assert sentence == (
        "1 member to replace lost ones needs 1 cpu; room for none; "
        "2 nodes excluded by pod anti-affinity on host"
    )


def test_standing_reservations_are_heeded() -> None:
    held = asking(gang("h").of(1, cpu=1), apart(A), app="a")
    made = gang("a").of(1, cpu=1).each(labels=labels(app="a"))
    snapshot = snapshot_of(host("n0"), host("n1"), held, made, reservation(held, ("h-0", "n0")))
    assert where(planned(snapshot)) == {"a-0": "n1"}


@BOTH
def test_what_is_promised_stays_as_it_is_promised(name: str) -> None:
    held = asking(gang("h").of(2, cpu=1), even(A), app="a")
    standing = reservation(held, ("h-0", "z0-0"), ("h-1", "z1-0"))
    nodes = host("z0-0", "z0", cpu=1), host("z1-0", "z1", cpu=4)
    others = [gang(f"b{i}").of(1, cpu=1).labelled(app="a") for i in range(2)]
    plan = planned(snapshot_of(*nodes, held, *others, standing), name)
    assert where(plan) == {"b0-0": "z1-0"}


@BOTH
def test_whoever_is_promised_to_be_the_first_is_followed_or_left_alone(name: str) -> None:
    held = asking(gang("h").of(1, cpu=1), near(A), app="a")
    standing = reservation(held, ("h-0", "z0-0"))
    other = gang("b").of(1, cpu=1).labelled(app="a")
    nodes = [host("z0-0", "z0", cpu=2), host("z1-0", "z1", cpu=1)]
    plan = planned(snapshot_of(*nodes, held, other, standing), name)
    assert where(plan) == {"b-0": "z0-0"}
    tight = [host("z0-0", "z0", cpu=1), nodes[1]]
    assert where(planned(snapshot_of(*tight, held, other, standing), name)) == {}


def test_a_rule_on_a_label_that_no_node_has_is_named_as_a_kind_of_node() -> None:
    made = asking(gang("a").of(2, cpu=1), even(A, on="rack"), app="a")
    plan = planned(snapshot_of(node("n1", cpu=1), node("n2", cpu=1), made))
    assert said(plan, "a") == (
        Reason.NO_NODE_FITS,
        "no node of the kinds present fits member ml/a-0: 2 nodes: 2 without label rack",
    )


def test_a_starved_gang_with_rules_has_room_held_as_it_would_be_placed() -> None:
    running = gang("r").of(2, cpu=2).bound_on("n0", "n1").each(labels=labels(app="a"))
    made = asking(gang("a").of(2, cpu=2), apart(A), app="a")
    greedy = gang("g").of(1, cpu=2)
    nodes = [host("n0", cpu=2), host("n1", cpu=2), host("n2", cpu=4)]
    plan = planned(beside(snapshot_of(*nodes, running, made, greedy, at=7200.0)))
    assert "room is held for it on 2 nodes as it frees up" in said(plan, "a")[1]
    assert where(plan) == {"g-0": "n2"}


def test_rules_of_others_who_stay_hold_in_the_empty_cluster() -> None:
    made = asking(gang("a").of(1, cpu=1), apart(B), app="a")
    snapshot = beside(snapshot_of(host("n0"), made, at=7200.0), resident("r", "n0", app="b"))
    plan = planned(snapshot)
    assert "held" not in said(plan, "a")[1]


def test_a_gang_with_all_kinds_of_rules_says_the_first_few() -> None:
    rules = InterPodRules(
        affinity=near(A).affinity,
        anti_affinity=(*apart(A).anti_affinity, *apart(A, on="rack").anti_affinity),
        spread=even(A).spread,
    )
    made = asking(gang("a").of(8, cpu=1), rules, app="a")
    plan = planned(snapshot_of(*zones(2, 2), made))
    assert said(plan, "a")[1].endswith(
        "what its pods ask of others: pod anti-affinity on host, pod anti-affinity on rack, "
        "pod affinity on zone"
    )
