"""What members ask of one another in numbers: what is settled by who is there, and what remains."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tutti.gang import demand
from tutti.model.cluster import Namespace, Node, PlacedPod, Snapshot
from tutti.model.inter_pod import AffinityTerm, InterPodRules, PodSelector, Requirement
from tutti.model.keys import NodeName
from tutti.model.shapes import NodeTerm, Toleration
from tutti.planning.compile import grids, pod_classes
from tutti.planning.compile.answers import PlacedCount
from tutti.planning.compile.grids import Grid
from tutti.planning.compile.inter_pod import InterPodCompiler
from tutti.planning.compile.pod_classes import PodClass, SelectorIndex
from tutti.strategies.problem import Affinity, AntiAffinity, DomainCount, EvenSpread

from ....harness.builders import (
    NodeBuilder,
    gang,
    member,
    node,
    reservation,
    shape,
    single,
    snapshot_of,
)
from ..neighbours import (
    HOST,
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

A = peers(app="a")
B = peers(app="b")


def compiled(snapshot: Snapshot) -> tuple[InterPodCompiler, Grid]:
    """The compiled rules of all that wait, and the Grid of node rules alone."""
    reserved = {reservation.gang for reservation in snapshot.reservations}
    found = [demand.count_members(gang) for gang in snapshot.gangs if gang.key not in reserved]
    there = pod_classes.placed_pods(snapshot)
    index = pod_classes.selector_index(snapshot, [m for one in found for m in one.ready], there)
    ready = [m for one in found for m in index.classify(one.ready)]
    base = grids.grid(snapshot, [m.shape for m in ready])
    coming = pod_classes.coming(snapshot)
    return InterPodCompiler.of(base, index, there, coming=coming), base


def numbers(snapshot: Snapshot) -> Grid:
    return compiled(snapshot)[0].grid()


def allowed(grid: Grid, row: int = 0) -> str:
    """The nodes that a shape is allowed on."""
    return " ".join(
        named.name
        for named, is_allowed in zip(grid.nodes, grid.allowed[row], strict=True)
        if is_allowed
    )


def alone(snapshot: Snapshot) -> str:
    """Where one member of the first shape could go if it came alone, room aside."""
    made, base = compiled(snapshot)
    nodes = base.allowed[0].copy()
    for outcome in made.outcomes(next(iter(base.shapes))):
        nodes &= outcome.allowed_now
    return allowed(replace(base, allowed=nodes[None, :]))


def domains(domain_count: DomainCount, nodes: Sequence[Node]) -> dict[str, int]:
    """Who is there, by the names of the first node of each domain."""
    firsts = {
        int(d): nodes[i].name for i, d in reversed(list(enumerate(domain_count.domain))) if d >= 0
    }
    return {firsts[d]: int(n) for d, n in enumerate(domain_count.there)}


def test_without_rules_nobody_is_looked_at() -> None:
    snapshot = beside(
        snapshot_of(host("n1"), gang("a").of(2, cpu=1).each(labels=labels(app="a"))),
        resident("r", "n1", app="a"),
    )
    made, base = compiled(snapshot)
    assert made.grid() is base
    assert not base.rules
    assert made.with_placed([PlacedCount(next(iter(base.shapes)), 0, 2)]) is made
    assert [type(each) for each in base.shapes] == [type(shape())]


def test_members_that_no_rule_tells_apart_stay_of_one_shape() -> None:
    snapshot = snapshot_of(
        host("n1"),
        asking(gang("a").of(2, cpu=1), apart(A), app="a"),
        gang("b").of(2, cpu=1).each(labels=labels(app="b")),
        gang("c").of(2, cpu=1).each(labels=labels(app="c")),
        gang("d").of(2, cpu=1).each(labels=labels(app="a", other="label")),
    )
    kinds = list(numbers(snapshot).shapes)
    assert [isinstance(kind, PodClass) for kind in kinds] == [True, False, True]
    assert all(isinstance(kind, PodClass) and kind.groups == (0,) for kind in kinds[::2])


def test_a_class_is_as_its_shape_in_all_else() -> None:
    asked = replace(
        shape(cpu=2),
        node_selector=(("a", "b"),),
        required=(NodeTerm(),),
        tolerations=(Toleration("x"),),
        rules=apart(A),
    )
    made = replace(member("m", asked), labels=labels(app="a"))
    (seen,) = SelectorIndex([(A,)], ()).classify((made,))
    assert seen.shape == PodClass(
        asked.requests,
        asked.node_selector,
        asked.required,
        asked.tolerations,
        asked.rules,
        groups=(0,),
    )
    assert seen.shape != asked
    (same,) = SelectorIndex([(A,)], ()).classify((made,))
    other = pod_classes._shape_of_class(asked, (0, 1))
    assert hash(same.shape) == hash(seen.shape)
    assert len({hash(each) for each in (asked, seen.shape, other)}) == 3


def test_members_apart_from_one_another_have_a_rule_and_may_go_anywhere() -> None:
    snapshot = snapshot_of(
        host("n1"), host("n2"), asking(gang("a").of(2, cpu=1), apart(A), app="a")
    )
    grid = numbers(snapshot)
    assert allowed(grid) == "n1 n2"
    assert grid.rules.anti_affinity == (AntiAffinity(0, 0),)
    assert (grid.rules.affinity, grid.rules.spread) == ((), ())
    (domain_count,) = grid.rules.domain_counts
    assert domain_count.counted.tolist() == [True]
    assert domains(domain_count, grid.nodes) == {"n1": 0, "n2": 0}


def test_own_anti_affinity_keeps_members_from_those_who_are_there() -> None:
    waiting = asking(gang("a").of(2, cpu=1), apart(B, on=ZONE), app="a")
    snapshot = beside(
        snapshot_of(*zones(), node("bare", cpu=8), waiting),
        resident("r1", "z0-0", app="b"),
        resident("r2", "z1-0", app="c"),
        resident("r3", "bare", app="b"),
        resident("r4", "z1-0", app="b", namespace="other"),
        resident("r5", "gone", app="b"),
        replace(resident("r6", "z2-1", app="b"), terminating=True),
    )
    grid = numbers(snapshot)
    assert allowed(grid) == "bare z1-0 z1-1"
    assert not grid.rules


def test_anti_affinity_of_those_who_are_there_binds_whoever_comes() -> None:
    guarding = replace(
        resident("r", "z0-0", app="x"), anti_affinity=apart(A, on=ZONE).anti_affinity
    )
    waiting = gang("a").of(2, cpu=1).each(labels=labels(app="a"))
    grid = numbers(beside(snapshot_of(*zones(2), waiting), guarding))
    assert allowed(grid) == "z1-0 z1-1"
    assert not grid.rules
    others = gang("a").of(2, cpu=1).each(labels=labels(app="b"))
    assert (
        allowed(numbers(beside(snapshot_of(*zones(2), others), guarding))) == "z0-0 z0-1 z1-0 z1-1"
    )


def test_entries_of_standing_reservations_are_there_with_labels_and_rules() -> None:
    held = asking(gang("held").of(3, cpu=1), apart(B), app="a").bound_on("n3")
    waiting = asking(gang("w").of(1, cpu=1), apart(A), app="b")
    kept = reservation(held, ("held-1", "n1"), ("held-0", "n3"), ("unknown", "n2"))
    snapshot = snapshot_of(host("n1"), host("n2"), host("n3"), host("n4"), held, waiting, kept)
    assert allowed(numbers(beside(snapshot))) == "n2 n4"
    indifferent = replace(beside(snapshot), gangs=(snapshot.gangs[0], gang("w").of(1, cpu=1).made))
    assert allowed(numbers(indifferent)) == "n1 n2 n3 n4"


@pytest.mark.parametrize(
    ("rules", "if_there", "if_to_come"),
    [
        (near(A), "z0-0 z0-1", ""),
        (even(A), "z1-0 z1-1 z2-0 z2-1", "z0-0 z0-1 z1-0 z1-1 z2-0 z2-1"),
        (apart(A), "z0-1 z1-0 z1-1 z2-0 z2-1", "z0-1 z1-0 z1-1 z2-0 z2-1"),
    ],
)
def test_of_pods_that_come_once_victims_have_gone_anti_affinity_alone_counts(
    rules: InterPodRules, if_there: str, if_to_come: str
) -> None:
    held = asking(gang("held").of(2, cpu=1), InterPodRules(), app="a")
    waiting = asking(gang("w").of(1, cpu=1), rules, app="b")
    kept = reservation(held, ("held-0", "z0-0"), ("held-1", "z0-0"))
    snapshot = beside(snapshot_of(*zones(), held, waiting, kept))
    assert allowed(numbers(snapshot)) == if_there
    claim = replace(snapshot, reservations=(replace(kept, victims=()),))
    assert allowed(numbers(claim)) == if_to_come
    bound = beside(replace(claim, gangs=(held.bound_on("z0-0", "z0-0").made, waiting.made)))
    assert allowed(numbers(bound)) == if_there


def test_whoever_was_placed_is_there_in_the_next_round() -> None:
    snapshot = snapshot_of(
        host("n1"),
        host("n2"),
        host("n3"),
        asking(gang("a").of(2, cpu=1), apart(A), app="a"),
        gang("b").of(1, cpu=1),
    )
    made, base = compiled(snapshot)
    ruled, plain = base.shapes
    after = made.with_placed([PlacedCount(ruled, 1, 1), PlacedCount(plain, 0, 1)])
    assert allowed(after.grid()) == "n1 n3"
    assert allowed(after.with_placed([PlacedCount(ruled, 0, 1)]).grid()) == "n3"
    assert made.with_placed([PlacedCount(plain, 0, 1)]) is made
    assert allowed(made.grid()) == "n1 n2 n3"


def after_placing(
    nodes: Sequence[NodeBuilder],
    rules: InterPodRules,
    later_rules: InterPodRules = InterPodRules(),  # noqa: B008 - frozen
    **own: str,
) -> str:
    """Where a pod with app=a may go once a member with these rules is on the first node."""
    first = asking(gang("a").of(1, cpu=1), rules, **own)
    snapshot = beside(
        snapshot_of(*nodes, first, asking(gang("b").of(1, cpu=1), later_rules, app="a"))
    )
    made, base = compiled(snapshot)
    placed, later = base.shapes
    masks = [
        outcome.allowed_now
        for outcome in made.with_placed([PlacedCount(placed, 0, 1)]).outcomes(later)
    ]
    may = np.logical_and.reduce([made.nodes(later), *masks])
    return " ".join(one.name for one, flag in zip(base.nodes, may, strict=True) if flag)


def test_a_pod_that_comes_second_has_to_be_near_the_first_whose_affinity_counts_both() -> None:
    assert after_placing(zones(), near(A), app="a") == "z0-0 z0-1"
    assert after_placing(zones(), near(B), app="b") == "z0-0 z0-1 z1-0 z1-1 z2-0 z2-1"


@pytest.mark.parametrize("rules", [near(B), even(B)])
def test_what_a_placed_member_asks_of_other_pods_does_not_concern_this_pod(
    rules: InterPodRules,
) -> None:
    assert after_placing(zones(), rules, apart(A), app="b") == "z0-0 z0-1 z1-0 z1-1 z2-0 z2-1"


def test_equal_members_have_one_rule_and_not_another_as_placed_members() -> None:
    snapshot = beside(snapshot_of(*zones(), asking(gang("a").of(2, cpu=1), near(A), app="a")))
    made, base = compiled(snapshot)
    (row,) = base.shapes
    whats = [
        outcome.description for outcome in made.with_placed([PlacedCount(row, 0, 1)]).outcomes(row)
    ]
    assert whats == ["pod affinity on zone"]


def test_a_third_pod_need_not_be_near_two_that_are_near_each_other() -> None:
    first = asking(gang("a").of(2, cpu=1), near(A), app="a")
    later = asking(gang("b").of(1, cpu=1), InterPodRules(), app="a")
    made, base = compiled(beside(snapshot_of(*zones(), first, later)))
    near_one, other = base.shapes
    assert all(
        outcome.allowed_now.all()
        for outcome in made.with_placed([PlacedCount(near_one, 0, 2)]).outcomes(other)
    )


def test_a_pod_that_comes_later_keeps_the_spread_of_those_that_are_placed() -> None:
    assert after_placing(zones(), even(A), app="a") == "z1-0 z1-1 z2-0 z2-1"
    assert after_placing(zones(), even(B), app="b") == "z0-0 z0-1 z1-0 z1-1 z2-0 z2-1"
    few = zones(2)
    assert after_placing(few, even(A, min_domains=3), app="a") == "z1-0 z1-1"


def test_affinity_to_those_who_are_there_alone_is_settled() -> None:
    waiting = asking(gang("a").of(2, cpu=1), near(B), app="a")
    snapshot = snapshot_of(*zones(), node("bare", cpu=8), waiting)
    there = beside(
        snapshot,
        resident("r1", "z1-0", app="b"),
        replace(resident("r2", "z2-0", app="b"), terminating=True),
        resident("r3", "bare", app="b"),
    )
    assert allowed(numbers(there)) == "z1-0 z1-1 z2-0 z2-1"
    assert not numbers(there).rules
    assert allowed(numbers(beside(snapshot))) == ""


def test_a_member_near_another_that_waits_may_go_where_the_other_may_come() -> None:
    driver = gang("d").of(1, cpu=1).each(labels=labels(app="b"))
    waiting = asking(gang("a").of(2, cpu=1), near(B), app="a")
    snapshot = beside(snapshot_of(*zones(), waiting, driver), resident("r1", "z1-0", app="b"))
    grid = numbers(snapshot)
    assert allowed(grid) == "z0-0 z0-1 z1-0 z1-1 z2-0 z2-1"
    assert grid.rules.affinity == (Affinity(0, (0,), may_be_first=False),)
    (domain_count,) = grid.rules.domain_counts
    assert domain_count.counted.tolist() == [False, True]
    assert domains(domain_count, grid.nodes) == {"z0-0": 0, "z1-0": 1, "z2-0": 0}
    assert alone(snapshot) == "z1-0 z1-1"


def test_affinity_that_holds_wherever_members_may_go_is_no_rule() -> None:
    waiting = asking(gang("a").of(2, cpu=1), near(A), app="a")
    everywhere = [resident(f"r{z}", f"z{z}-0", app="a") for z in range(2)]
    assert not numbers(beside(snapshot_of(*zones(2), waiting), *everywhere)).rules
    assert numbers(beside(snapshot_of(*zones(2), waiting), everywhere[0])).rules


def test_all_terms_of_affinity_are_about_the_same_pods() -> None:
    both = near(peers(app="b"), peers(tier="x"), on=(ZONE, HOST))
    waiting = asking(gang("a").of(1, cpu=1), both, app="a")
    snapshot = snapshot_of(*zones(), waiting)
    apart_ones = (resident("r1", "z0-0", app="b"), resident("r2", "z0-0", tier="x"))
    assert allowed(numbers(beside(snapshot, *apart_ones))) == ""
    one_for_all = resident("r3", "z1-1", app="b", tier="x")
    assert allowed(numbers(beside(snapshot, *apart_ones, one_for_all))) == "z1-1"


def test_terms_of_one_topology_are_one_domain_count() -> None:
    both = near(peers(app="a"), peers(tier="x"))
    snapshot = snapshot_of(*zones(2), asking(gang("a").of(2, cpu=1), both, app="a", tier="x"))
    assert numbers(snapshot).rules.affinity == (Affinity(0, (0,), may_be_first=True),)


@pytest.mark.parametrize(
    ("found", "own", "where"),
    [
        ([], "a", "z0-0 z0-1 z1-0 z1-1"),
        ([], "b", ""),
        ([resident("r", "z0-1", app="a")], "a", "z0-0 z0-1"),
        ([resident("r", "bare", app="a")], "a", "z0-0 z0-1 z1-0 z1-1"),
        ([replace(resident("r", "z1-1", app="a"), terminating=True)], "a", "z1-0 z1-1"),
    ],
)
def test_the_first_pod_may_go_anywhere_if_it_is_its_own_peer(
    found: list[PlacedPod], own: str, where: str
) -> None:
    waiting = asking(gang("w").of(1, cpu=1), near(A), app=own)
    assert alone(beside(snapshot_of(*zones(2), node("bare", cpu=8), waiting), *found)) == where


def test_a_spread_counts_who_stays_in_its_namespace() -> None:
    waiting = asking(gang("a").of(3, cpu=1), even(A), app="a")
    snapshot = beside(
        snapshot_of(*zones(), node("bare", cpu=8), waiting),
        resident("r1", "z0-0", app="a"),
        resident("r2", "z0-1", app="a"),
        replace(resident("r3", "z1-0", app="a"), terminating=True),
        resident("r4", "z1-0", app="a", namespace="other"),
        resident("r5", "z2-0", app="b"),
        resident("r6", "bare", app="a"),
    )
    grid = numbers(snapshot)
    assert allowed(grid) == "z0-0 z0-1 z1-0 z1-1 z2-0 z2-1"
    assert grid.rules.spread == (EvenSpread(0, 0, 1),)
    (domain_count,) = grid.rules.domain_counts
    assert domains(domain_count, grid.nodes) == {"z0-0": 2, "z1-0": 0, "z2-0": 0}
    assert alone(snapshot) == "z1-0 z1-1 z2-0 z2-1"


def test_a_spread_of_those_who_are_there_alone_is_settled() -> None:
    waiting = asking(gang("a").of(3, cpu=1), even(B), app="a")
    there = [resident(f"r{i}", on, app="b") for i, on in enumerate(["z0-0", "z0-1", "z1-0"])]
    grid = numbers(beside(snapshot_of(*zones(), waiting), *there))
    assert allowed(grid) == "z1-0 z1-1 z2-0 z2-1"
    assert not grid.rules


@pytest.mark.parametrize("selector", [(), None])
def test_a_spread_of_everyone_or_of_nobody_never_fails(
    selector: tuple[Requirement, ...] | None,
) -> None:
    who = PodSelector(selector, ("ml",))
    snapshot = beside(
        snapshot_of(*zones(2), node("bare", cpu=8), asking(gang("a").of(3, cpu=1), even(who))),
        *[resident(f"r{i}", "z0-0") for i in range(5)],
    )
    assert allowed(numbers(snapshot)) == "z0-0 z0-1 z1-0 z1-1"
    assert not numbers(snapshot).rules


@pytest.mark.parametrize(("demanded", "from_zero"), [(1, False), (2, False), (3, True)])
def test_fewer_domains_than_demanded_count_from_zero(demanded: int, *, from_zero: bool) -> None:
    rules = even(A, min_domains=demanded)
    there = [resident(f"r{z}", f"z{z}-0", app="a") for z in range(2)]
    snapshot = beside(
        snapshot_of(*zones(2), asking(gang("a").of(3, cpu=1), rules, app="a")), *there
    )
    assert numbers(snapshot).rules.spread == (EvenSpread(0, 0, 1, from_zero),)
    assert alone(snapshot) == ("" if from_zero else "z0-0 z0-1 z1-0 z1-1")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({}, {"z0-0": 0, "z1-0": 1}),
        ({"honors_node_affinity": False}, {"bad": 3, "z0-0": 0, "z1-0": 1}),
        ({"honors_node_taints": True}, {"z0-0": 0}),
        ({"honors_node_affinity": False, "honors_node_taints": True}, {"bad": 3, "z0-0": 0}),
    ],
)
def test_only_nodes_count_that_the_policies_leave_in(
    changes: dict[str, Any], where: dict[str, int]
) -> None:
    nodes = [
        host("z0-0", "z0").labelled(pool="a"),
        host("z1-0", "z1").labelled(pool="a").tainted("dedicated"),
        host("bad", "z2").labelled(pool="b"),
        node("bare", cpu=8).labelled(pool="a", zone="z0"),
    ]
    both = InterPodRules(spread=(*even(A, **changes).spread, *even(B, on=HOST).spread))
    waiting = asking(gang("a").of(1, cpu=1), both, app="a").shaped(node_selector=(("pool", "a"),))
    there = [resident("r", "z1-0", app="a"), resident("s", "bare", app="a")]
    bad = [resident(f"b{i}", "bad", app="a") for i in range(3)]
    grid = numbers(beside(snapshot_of(*nodes, waiting), *there, *bad))
    assert allowed(grid) == "z0-0"
    domain_count = grid.rules.domain_counts[grid.rules.spread[0].domain_count]
    assert domains(domain_count, grid.nodes) == where


def test_equal_questions_are_one_domain_count() -> None:
    first = asking(gang("a").of(2, cpu=1), apart(A), app="a")
    second = asking(gang("b").of(2, cpu=2), apart(A), app="a")
    grid = numbers(snapshot_of(*zones(1), first, second))
    assert grid.rules.anti_affinity == (AntiAffinity(0, 0), AntiAffinity(1, 0))
    assert len(grid.rules.domain_counts) == 1


def test_a_topology_that_no_node_has_parts_nobody_and_joins_nobody() -> None:
    first = asking(gang("a").of(2, cpu=1), apart(A, on="rack"), app="a")
    second = asking(gang("b").of(2, cpu=2), near(A, on=("rack",)), app="a")
    third = asking(gang("c").of(2, cpu=3), even(A, on="rack"), app="a")
    grid = numbers(
        beside(snapshot_of(*zones(1), first, second, third), resident("r", "z0-0", app="a"))
    )
    assert [allowed(grid, row) for row in range(3)] == ["z0-0 z0-1", "", ""]
    assert not grid.rules.affinity
    (rule,) = grid.rules.anti_affinity
    assert grid.rules.domain_counts[rule.domain_count].there.tolist() == []


@pytest.mark.parametrize(
    ("who", "counts"),
    [
        (PodSelector(()), ""),
        (PodSelector((), ("ml",)), "ml-a"),
        (PodSelector((), ("other",)), "other-a"),
        (PodSelector((), (), ()), "ml-a other-a"),
        (PodSelector(None, ("ml",), ()), ""),
        (PodSelector((), (), (Requirement("team", "In", ("x",)),)), "other-a"),
        (PodSelector((), (), (Requirement("team", "DoesNotExist"),)), "ml-a"),
        (PodSelector((Requirement("app", "NotIn", ("a",)),), ("ml",)), ""),
        (PodSelector((Requirement("tier", "NotIn", ("a",)),), ("ml",)), "ml-a"),
        (PodSelector((Requirement("app", "Exists"),), ("ml",)), "ml-a"),
        (PodSelector((Requirement("app", "Like", ("a",)),), ("ml",)), ""),
        (PodSelector((Requirement("app", "In", ("b", "a", "a")),), ("ml",)), "ml-a"),
        (PodSelector((Requirement("app", "In", ()),), ("ml",)), ""),
        (
            PodSelector((Requirement("app", "In", ("a",)), Requirement("x", "Exists")), ("ml",)),
            "",
        ),
    ],
)
def test_who_is_counted_by_namespace_and_labels(who: PodSelector, counts: str) -> None:
    index = SelectorIndex([(who,)], (Namespace("other", labels(team="x")),))
    found = [f"{space}-a" for space in ("ml", "other") if index.among(space, labels(app="a"))]
    assert " ".join(found) == counts


def test_of_labels_only_those_that_selectors_name_matter() -> None:
    index = SelectorIndex([(A,), (B,)], ())
    assert index.among("ml", labels(app="b", pod="1")) == (1,)
    assert index.among("ml", labels(app="b", pod="2")) == (1,)
    assert index.among("ml", labels(pod="2")) == ()


def test_nobody_is_among_the_groups_of_an_empty_roll() -> None:
    assert SelectorIndex((), ()).among("ml", labels(app="a")) == ()


def test_members_that_have_ended_their_gang_are_not_among_those_who_stay() -> None:
    running = gang("a").of(2, cpu=1).bound_on("n1", "n1")
    stray = replace(member("stray", shape(cpu=1)), node=NodeName("n1"))
    snapshot = beside(snapshot_of(host("n1"), running, strays=[stray]), resident("other", "n1"))
    snapshot = replace(
        snapshot, placed_pods=(*snapshot.placed_pods, resident(str(stray.uid), "n1"))
    )
    assert [pod.uid for pod in pod_classes.pods_of_no_gang(snapshot)] == ["other"]
    assert pod_classes.pods_of_no_gang(snapshot_of(host("n1"), running)) == ()


def test_a_gang_of_one_has_rules_too() -> None:
    gang = asking(
        single("s", cpu=1), InterPodRules(anti_affinity=(AffinityTerm(HOST, A),)), app="a"
    )
    grid = numbers(beside(snapshot_of(host("n1"), host("n2"), gang), resident("r", "n2", app="a")))
    assert allowed(grid) == "n1"
    assert np.array_equal(grid.rules.domain_counts[0].there, [0, 1])
