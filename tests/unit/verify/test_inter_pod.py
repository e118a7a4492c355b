"""Rules between pods as the checker sees them: whoever is placed may stay if it came last."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tutti.model.cluster import Namespace, PlacedPod, Snapshot
from tutti.model.decisions import Assignment, Placement, Plan
from tutti.model.inter_pod import CLUSTER, InterPodRules, PodSelector, Requirement
from tutti.model.keys import NodeName, Uid
from tutti.verify import plan_checks

from ...harness.builders import GangBuilder, NodeBuilder, gang, node, reservation, snapshot_of
from ..planning.neighbours import (
    HOST,
    ZONE,
    apart,
    asking,
    beside,
    even,
    labels,
    near,
    peers,
    resident,
    zones,
)

A, B = peers(app="a"), peers(app="b")
BARE = node("bare", cpu=8)
NODES = (*zones(), BARE)
GANG = gang("a").of(2, cpu=1)
TENANT = Namespace("other", labels(team="x"))

Where = Sequence[str]


def placing(gang: GangBuilder, *where: str) -> Placement:
    """Its first members on these nodes."""
    one = gang.made
    assigned = tuple(
        Assignment(m.key, m.uid, "1", NodeName(on))
        for m, on in zip(one.members, where, strict=False)
    )
    return Placement(one.key, one.uid, one.generation, assigned)


def faults(
    made: GangBuilder,
    where: Where,
    *residents: PlacedPod,
    nodes: Sequence[NodeBuilder] = NODES,
    spaces: Sequence[Namespace] = (),
) -> list[str]:
    """What forbids the members of a gang their nodes, without the common beginning."""
    made = made.needing(1)
    snapshot = beside(snapshot_of(*nodes, made), *residents, spaces=spaces)
    found = plan_checks.violations(snapshot, Plan((placing(made, *where),)))
    return [one.removeprefix("pod ml/").replace(" is forbidden by", ":") for one in found]


def test_members_without_rules_may_be_anywhere() -> None:
    assert faults(GANG, ["z0-0", "z0-0"], resident("r", "z0-0", app="a")) == []


def test_all_nodes_are_one_domain_of_the_cluster() -> None:
    gang = asking(GANG, apart(A, on=CLUSTER), app="a")
    assert faults(gang, ["bare"]) == []
    assert faults(gang, ["z0-0"], resident("r", "z1-0", app="b")) == []
    assert faults(gang, ["z0-0"], resident("r", "bare", app="a")) == [
        f"a-0: node z0-0: its anti-affinity on {CLUSTER}"
    ]
    assert faults(gang, ["z0-0", "bare"]) == [
        f"{at}: {whose} anti-affinity on {CLUSTER}"
        for at in ("a-0: node z0-0", "a-1: node bare")
        for whose in ("its", "others'")
    ]


def test_of_members_apart_from_one_another_both_are_at_fault() -> None:
    gang = asking(GANG, apart(A), app="a")
    assert faults(gang, ["z0-0", "z0-1"]) == []
    assert faults(gang, ["z0-0", "z0-0"]) == [
        "a-0: node z0-0: its anti-affinity on host",
        "a-0: node z0-0: others' anti-affinity on host",
        "a-1: node z0-0: its anti-affinity on host",
        "a-1: node z0-0: others' anti-affinity on host",
    ]


@pytest.mark.parametrize(
    ("one", "is_fault"),
    [
        (resident("r", "z0-1", app="b"), True),
        (replace(resident("r", "z0-1", app="b"), terminating=True), True),
        (resident("r", "z1-0", app="b"), False),
        (resident("r", "z0-1", app="c"), False),
        (resident("r", "z0-1", app="b", namespace="other"), False),
        (resident("r", "bare", app="b"), False),
        (resident("r", "gone", app="b"), False),
    ],
)
def test_own_anti_affinity_is_to_those_who_are_there(one: PlacedPod, *, is_fault: bool) -> None:
    gang = asking(GANG, apart(B, on=ZONE), app="a")
    fault = ["a-0: node z0-0: its anti-affinity on zone"] * is_fault
    assert faults(gang, ["z0-0"], one) == fault


def test_anti_affinity_binds_nobody_on_a_node_without_the_label() -> None:
    gang = asking(GANG, apart(A, on=ZONE), app="a")
    assert faults(gang, ["bare", "bare"]) == []


@pytest.mark.parametrize(
    ("own", "on", "is_fault"), [("b", "z0-0", True), ("b", "bare", False), ("c", "z0-0", False)]
)
def test_anti_affinity_of_those_who_are_there_binds_newcomers(
    own: str, on: str, *, is_fault: bool
) -> None:
    guard = replace(resident("r", "z0-1", app="a"), anti_affinity=apart(B, on=ZONE).anti_affinity)
    gang = GANG.each(labels=labels(app=own))
    expected = [f"a-0: node {on}: others' anti-affinity on zone"] * is_fault
    assert faults(gang, [on], guard) == expected
    out = replace(guard, node=NodeName("bare"))
    assert faults(gang, [on], out) == []


def test_a_promised_node_is_a_node() -> None:
    held = asking(gang("h").of(1, cpu=1), apart(B), app="a")
    made = gang("b").of(1, cpu=1).each(labels=labels(app="b"))
    snapshot = snapshot_of(*NODES, held, made, reservation(held, ("h-0", "z0-0")))
    assert plan_checks.violations(snapshot, Plan((placing(made, "z0-1"),))) == ()
    assert plan_checks.violations(snapshot, Plan((placing(made, "z0-0"),))) == (
        "pod ml/b-0: node z0-0 is forbidden by others' anti-affinity on host",
    )
    bound = replace(held.members[0], node=NodeName("z0-1"))
    elsewhere = replace(held, members=(bound,))
    moved = snapshot_of(*NODES, elsewhere, made, reservation(elsewhere, ("h-0", "z0-0")))
    assert plan_checks.violations(beside(moved), Plan((placing(made, "z0-0"),))) == ()


@pytest.mark.parametrize(
    ("where", "there", "is_fault"),
    [
        (["z0-0"], [resident("r", "z0-1", app="b")], False),
        (["z0-0"], [replace(resident("r", "z0-1", app="b"), terminating=True)], False),
        (["z0-0"], [resident("r", "z1-1", app="b")], True),
        (["z0-0"], [resident("r", "bare", app="b")], True),
        (["z0-0"], [], True),
        (["z0-0", "z0-1"], [], True),
    ],
)
def test_affinity_to_others_needs_one_of_them_in_the_domain(
    where: Where, there: Sequence[PlacedPod], *, is_fault: bool
) -> None:
    gang = asking(GANG, near(B), app="a")
    expected = [f"a-{i}: node {on}: its affinity" for i, on in enumerate(where)] * is_fault
    assert faults(gang, where, *there) == expected


@pytest.mark.parametrize(
    ("where", "there", "faulty"),
    [
        (["z0-0"], [], []),
        (["z0-0", "z0-1"], [], []),
        (["z0-0", "z1-0"], [], [0, 1]),
        (["z0-0"], [resident("r", "z1-0", app="a")], [0]),
        (["z0-0"], [resident("r", "bare", app="a")], []),
        (["z0-0"], [resident("r", "z1-0", app="b")], []),
        (["z0-0", "z0-0"], [resident("r", "z1-0", app="a")], []),
    ],
)
def test_the_first_of_its_kind_may_go_anywhere(
    where: Where, there: Sequence[PlacedPod], faulty: Sequence[int]
) -> None:
    gang = asking(GANG, near(A), app="a")
    assert faults(gang, where, *there) == [f"a-{i}: node {where[i]}: its affinity" for i in faulty]


def test_all_terms_of_affinity_are_about_the_same_pods() -> None:
    gang = asking(GANG, near(A, B, on=(ZONE, HOST)), app="c")
    both = PodSelector((Requirement("app", "In", ("a", "b")),), ("ml",))
    either = asking(GANG, near(A, both, on=(ZONE, HOST)), app="c")
    there = [resident("r", "z0-0", app="a"), resident("s", "z0-0", app="b")]
    assert faults(gang, ["z0-0"], *there) == ["a-0: node z0-0: its affinity"]
    assert faults(either, ["z0-0"], *there) == []
    assert faults(either, ["z0-1"], *there) == ["a-0: node z0-1: its affinity"]


def test_the_first_of_two_terms_is_none_if_one_domain_has_another() -> None:
    gang = asking(GANG, near(A, A, on=(ZONE, HOST)), app="a")
    assert faults(gang, ["z0-0"]) == []
    only_host = node("lone", cpu=8).labelled(host="lone")
    found = faults(gang, ["z0-0"], resident("r", "lone", app="a"), nodes=(*NODES, only_host))
    assert found == ["a-0: node z0-0: its affinity"]


def test_the_first_of_its_kind_needs_the_labels_of_all_terms() -> None:
    gang = asking(GANG, near(A, A, on=(ZONE, HOST)), app="a")
    hostless, lone = node("low", cpu=8).labelled(zone="z9"), node("lone", cpu=8).labelled(host="l")
    found = faults(gang, ["low"], resident("r", "lone", app="a"), nodes=[hostless, lone])
    assert found == ["a-0: node low will not do: without label host", "a-0: node low: its affinity"]


def test_affinity_is_not_met_on_a_node_without_the_label() -> None:
    gang = asking(GANG, near(A), app="a")
    assert faults(gang, ["bare"]) == [
        "a-0: node bare will not do: without label zone",
        "a-0: node bare: its affinity",
    ]


EVEN = asking(gang("a").of(6, cpu=1), even(A), app="a")


@pytest.mark.parametrize(
    ("where", "there", "faulty"),
    [
        (["z0-0", "z1-0", "z2-0"], [], []),
        (["z0-0", "z0-1"], [], [0, 1]),
        (["z0-0"], [resident("r", "z0-1", app="a")], [0]),
        (["z0-0"], [replace(resident("r", "z0-1", app="a"), terminating=True)], []),
        (["z0-0"], [resident("r", "z0-1", app="b")], []),
        (["z0-0"], [resident("r", "z0-1", app="a", namespace="other")], []),
        (["z0-0"], [resident(f"r{z}", f"z{z}-1", app="a") for z in range(3)], []),
        (["z0-0"], [resident(f"r{z}", f"z{z}-1", app="a") for z in range(2)], [0]),
        (["z0-0", "z2-0"], [resident(f"r{z}", f"z{z}-1", app="a") for z in range(2)], []),
    ],
)
def test_a_spread_counts_who_stays(
    where: Where, there: Sequence[PlacedPod], faulty: Sequence[int]
) -> None:
    expected = [f"a-{i}: node {where[i]}: its spread over zone" for i in faulty]
    assert faults(EVEN, where, *there) == expected


def test_a_spread_lets_the_skew_be_as_large_as_it_says() -> None:
    gang = EVEN.shaped(rules=even(A, max_skew=2))
    assert faults(gang, ["z0-0", "z0-0"]) == []
    assert len(faults(gang, ["z0-0", "z0-0", "z0-1"])) == 3


def test_whoever_is_not_counted_itself_adds_nothing() -> None:
    gang = asking(GANG, even(B), app="a")
    assert faults(gang, ["z0-0", "z0-0"], resident("r", "z0-0", app="b")) == []
    two = [resident("r", "z0-0", app="b"), resident("s", "z0-0", app="b")]
    assert faults(gang, ["z1-0"], *two) == []
    assert len(faults(gang, ["z0-0"], *two)) == 1


@pytest.mark.parametrize(("demanded", "is_fault"), [(3, False), (4, True)])
def test_fewer_domains_than_demanded_count_from_zero(demanded: int, *, is_fault: bool) -> None:
    gang = asking(GANG, even(A, min_domains=demanded), app="a")
    there = [resident(f"r{z}", f"z{z}-1", app="a") for z in range(3)]
    assert bool(faults(gang, ["z0-0"], *there)) == is_fault


@pytest.mark.parametrize("selector", [(), None])
def test_a_spread_of_everyone_or_of_nobody_never_fails(
    selector: tuple[Requirement, ...] | None,
) -> None:
    gang = asking(GANG, even(PodSelector(selector, ("ml",))), app="a")
    assert faults(gang, ["z0-0", "z0-0"], resident("r", "z0-0", app="a")) == []


@pytest.mark.parametrize(
    ("changes", "is_fault"),
    [({}, False), ({"honors_node_affinity": False}, True)],
)
def test_only_nodes_that_the_pod_wants_are_domains(
    changes: dict[str, Any], *, is_fault: bool
) -> None:
    nodes = [*(zone.labelled(pool="a") for zone in zones(1)), *zones(2)[2:]]
    gang = asking(GANG, even(A, **changes), app="a").shaped(node_selector=(("pool", "a"),))
    assert bool(faults(gang, ["z0-0", "z0-0"], nodes=nodes)) == is_fault


@pytest.mark.parametrize(
    ("changes", "is_fault"),
    [({}, True), ({"honors_node_taints": True}, False)],
)
def test_nodes_whose_taints_the_pod_does_not_tolerate_are_domains_unless_heeded(
    changes: dict[str, Any], *, is_fault: bool
) -> None:
    nodes = [*zones(1), *(zone.tainted("gpu") for zone in zones(2)[2:])]
    gang = asking(GANG, even(A, **changes), app="a")
    assert bool(faults(gang, ["z0-0", "z0-0"], nodes=nodes)) == is_fault


def test_domains_have_the_labels_of_all_constraints() -> None:
    both = InterPodRules(spread=(*even(A, on=HOST, max_skew=5).spread, *even(A).spread))
    gang = asking(GANG, both, app="a")
    hostless = node("z1-0", cpu=8).labelled(zone="z1")
    assert faults(gang, ["z0-0", "z0-1"], nodes=[*zones(1), hostless]) == []
    assert faults(gang, ["z0-0", "z0-1"], nodes=zones(2)) != []


def test_a_spread_forbids_nodes_that_are_in_none_of_its_domains() -> None:
    gang = asking(GANG, even(A), app="a")
    assert faults(gang, ["bare"]) == [
        "a-0: node bare will not do: without label zone",
        "a-0: node bare: its spread over zone",
    ]


def test_peers_of_no_selector_are_nobody() -> None:
    gang = asking(GANG, apart(PodSelector(None, ("ml",))), app="a")
    assert faults(gang, ["z0-0", "z0-0"], resident("r", "z0-0", app="a")) == []


@pytest.mark.parametrize(("team", "is_fault"), [("x", True), ("y", False)])
def test_namespaces_are_chosen_by_their_labels(team: str, *, is_fault: bool) -> None:
    who = PodSelector((), (), (Requirement("team", "In", (team,)),))
    gang = asking(GANG, apart(who), app="a")
    there = resident("r", "z0-0", app="b", namespace="other")
    assert bool(faults(gang, ["z0-0"], there, spaces=[TENANT])) == is_fault


@pytest.mark.parametrize(("values", "is_fault"), [(("b", "c"), True), (("a", "b"), False)])
def test_peers_are_chosen_by_labels_that_they_do_not_have(
    values: tuple[str, ...], *, is_fault: bool
) -> None:
    who = PodSelector((Requirement("app", "NotIn", values),), ("ml",))
    gang = asking(GANG, apart(who), app="b")
    assert bool(faults(gang, ["z0-0"], resident("r", "z0-0", app="a"))) == is_fault


def upheld(snapshot: Snapshot, *placements: Placement) -> list[str]:
    return [one.gang.name for one in plan_checks.upheld(snapshot, placements)]


FIRST = asking(gang("x").of(1, cpu=1), apart(A), app="a")
SECOND = asking(gang("y").of(1, cpu=1), apart(A), app="a")


def test_of_placements_that_may_not_be_together_the_first_is_upheld() -> None:
    snapshot = snapshot_of(*NODES, FIRST, SECOND)
    assert upheld(snapshot, placing(FIRST, "z0-0"), placing(SECOND, "z0-1")) == ["x", "y"]
    assert upheld(snapshot, placing(FIRST, "z0-0"), placing(SECOND, "z0-0")) == ["x"]
    assert upheld(beside(snapshot, resident("r", "z0-0", app="a")), placing(FIRST, "z0-0")) == []


def test_a_placement_that_needs_another_falls_with_it() -> None:
    driver = gang("d").of(1, cpu=9).each(labels=labels(app="b"))
    made = asking(gang("w").of(1, cpu=1), near(B), app="a")
    snapshot = snapshot_of(*NODES, driver, made)
    assert upheld(snapshot, placing(driver, "z0-0"), placing(made, "z0-0")) == []
    small = driver.shaped(rules=InterPodRules()).where(
        lambda m: replace(m, shape=made.members[0].shape)
    )
    small = small.shaped(rules=InterPodRules())
    both = snapshot_of(*NODES, small, made)
    assert upheld(both, placing(made, "z0-0"), placing(small, "z0-0")) == ["w", "d"]


def test_who_falls_takes_nobody_with_it_whom_it_was_in_the_way_of() -> None:
    loner = asking(gang("x").of(1, cpu=1), apart(B, on=ZONE), app="a")
    there = asking(gang("y").of(1, cpu=1), even(A), app="b")
    snapshot = beside(snapshot_of(*NODES, loner, there), resident("r", "z1-0", app="a"))
    both = placing(loner, "z0-0"), placing(there, "z0-1")
    assert upheld(snapshot, *both) == ["x"]
    assert upheld(snapshot, *reversed(both)) == ["y"]
    third = asking(gang("z").of(1, cpu=1), apart(B, on=ZONE), app="c")
    snapshot = beside(snapshot_of(*NODES, loner, there, third), resident("r", "z1-0", app="a"))
    assert upheld(snapshot, placing(third, "z0-0"), *both) == ["z", "x"]


@pytest.mark.parametrize("rules", [near(B), even(B), even(B, min_domains=9, max_skew=2)])
def test_who_falls_is_not_counted_by_those_who_stay(rules: InterPodRules) -> None:
    made = asking(gang("w").of(1, cpu=1), rules, app="a")
    loner = asking(gang("x").of(2, cpu=1), apart(B), app="b")
    snapshot = snapshot_of(*NODES, made, loner)
    together = placing(loner, "z0-0", "z0-0")
    assert upheld(snapshot, placing(made, "z0-0"), together) == ([] if rules.affinity else ["w"])


def test_a_gang_on_nodes_that_do_not_exist_is_told_so_and_nothing_else() -> None:
    made = asking(
        gang("w").of(1, cpu=1), InterPodRules(near(B).affinity, (), even(B).spread), app="a"
    )
    found = plan_checks.violations(snapshot_of(*NODES, made), Plan((placing(made, "nowhere"),)))
    assert found == ("pod ml/w-0: there is no node nowhere",)


def test_of_promised_pods_only_those_that_are_kept_are_company() -> None:
    driver = gang("d").of(1, cpu=1).each(labels=labels(app="b"))
    made = asking(gang("w").of(1, cpu=1), near(B), app="a")
    snapshot = snapshot_of(*NODES, driver, made, reservation(driver, ("d-0", "z0-0")))
    placements = (placing(made, "z0-1"),)
    assert plan_checks.upheld(snapshot, placements) == placements
    assert plan_checks.upheld(snapshot, placements, {driver.members[0].uid}) == placements
    assert plan_checks.upheld(snapshot, placements, ()) == ()


def test_an_assignment_of_an_unknown_pod_is_counted_nowhere() -> None:
    placement = placing(FIRST, "z0-0")
    unknown = replace(placement, assignments=(replace(placement.assignments[0], uid=Uid("gone")),))
    (fault, *_) = plan_checks.violations(snapshot_of(*NODES, FIRST), Plan((unknown,)))
    assert fault == "pod ml/x-0: it is no member of gang ml/x"


def test_an_assignment_to_an_unknown_node_is_counted_nowhere() -> None:
    found = plan_checks.violations(snapshot_of(*NODES, FIRST), Plan((placing(FIRST, "nowhere"),)))
    assert found == ("pod ml/x-0: there is no node nowhere",)
