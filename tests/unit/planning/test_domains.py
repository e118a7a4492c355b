"""Gangs in one domain from end to end: planned, and verified by code of its own."""

from dataclasses import replace
from random import Random

import pytest

from tutti.filters.node_index import Mask, NodeIndex
from tutti.gang import finding_text
from tutti.model.cluster import Phase, SlotReservation, Snapshot
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.keys import NodeName
from tutti.model.shapes import Shape, Toleration
from tutti.planning import observed_demand
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness.builders import (
    AMPLE_BUDGET,
    NodeBuilder,
    Part,
    gang,
    labels,
    node,
    reservation,
    snapshot_of,
    topology,
)

NETWORK = topology("block", "rack")
EVERY = pytest.mark.parametrize("name", ["bestfit", "ilp", "flow"])
EXACT = pytest.mark.parametrize("name", ["ilp", "ilp-highs"])


def rack(name: str, nodes: int, *, block: str = "b1", cpu: int = 4) -> list[NodeBuilder]:
    """So many nodes of one rack."""
    return [
        node(f"{block}-{name}-{i}", cpu=cpu).labelled(block=block, rack=name) for i in range(nodes)
    ]


def planned(snapshot: Snapshot, name: str = "ilp", policy: Policy | None = None) -> Plan:
    made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET, policy or Policy())
    assert plan_checks.violations(snapshot, made) == ()
    return made


def nodes_of(plan: Plan, name: str) -> set[str]:
    """The nodes of a gang's members."""
    placements = (placement for placement in plan.placements if placement.gang.name == name)
    return {assignment.node for placement in placements for assignment in placement.assignments}


def racks_of(plan: Plan, name: str) -> set[str]:
    return {on.rsplit("-", 1)[0] for on in nodes_of(plan, name)}


def why(plan: Plan, name: str) -> tuple[Reason, str]:
    (rejection,) = [one for one in plan.rejections if one.gang.name == name]
    return rejection.reason, finding_text.sentence(rejection)


@EVERY
def test_a_gang_starts_in_the_rack_that_holds_it(name: str) -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 2), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(8, cpu=1).together("rack")), name)
    assert racks_of(plan, "a") == {"b1-r2"}


@EVERY
def test_domains_of_one_and_two_nodes_hold_a_gang_of_two(name: str) -> None:
    """kueue#5375: the first domain is too small, and the second is not."""
    parts: list[Part] = [*rack("r1", 1, cpu=1), *rack("r2", 2, cpu=1), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(2, cpu=1).together("rack")), name)
    assert racks_of(plan, "a") == {"b1-r2"}


@EXACT
def test_pods_of_two_one_and_one_share_a_rack_of_two_nodes(name: str) -> None:
    """kueue#4474: members of several sizes."""
    parts: list[Part] = [*rack("r1", 3, cpu=1), *rack("r2", 2, cpu=2), NETWORK]
    made = gang("a").of(1, cpu=1).of(1, cpu=2).of(1, cpu=1).together("rack")
    assert racks_of(planned(snapshot_of(*parts, made), name), "a") == {"b1-r2"}


def test_small_gangs_share_a_rack_and_leave_the_others_whole() -> None:
    """Kueue PR#10406: pods of one GPU scattered over racks; here a small gang is never cut."""
    parts: list[Part] = [*rack("r1", 4, cpu=1), *rack("r2", 4, cpu=1), NETWORK]
    small = [gang(f"s{i}").of(2, cpu=1).together("rack") for i in range(2)]
    large = gang("z").of(4, cpu=1).together("rack")
    plan = planned(snapshot_of(*parts, *small, large))
    assert racks_of(plan, "s0") == racks_of(plan, "s1") != racks_of(plan, "z") != set()


@EVERY
def test_gangs_without_a_level_fill_rack_after_rack(name: str) -> None:
    """Whatever the names of nodes are; nodes in no domain come first."""
    names = [f"n{i:02}" for i in range(24)]
    Random(7).shuffle(names)
    places = {node_name: f"r{i // 6}" for i, node_name in enumerate(names)}
    nodes = [node(n, cpu=4).labelled(block="b1", rack=place) for n, place in places.items()]
    gangs = [gang(f"g{i}").of(3, cpu=n) for i, n in enumerate((1, 4, 2, 4))]
    parts: list[Part] = [*nodes, node("z", cpu=4).labelled(block="b1"), *gangs]

    def used(*more: Part) -> set[str]:
        made = planned(snapshot_of(*parts, *more), name)
        return {places.get(on, "none") for g in gangs for on in nodes_of(made, g.key.name)}

    assert used(NETWORK) == {"none", "r0", "r1"}
    assert len(used()) == 4


@EVERY
def test_a_refusal_names_the_largest_domain(name: str) -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 3), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(16, cpu=1).together("rack")), name)
    reason, sentence = why(plan, "a")
    assert reason is Reason.NOT_ENOUGH_ROOM
    assert "the largest domain of rack is b1/r2: it has room for 12 of 16 members" in sentence


def test_a_refusal_says_that_no_choice_of_domains_has_room() -> None:
    """Each rack has room for each size alone, and no rack for both."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    made = gang("a").of(1, cpu=3).of(1, cpu=2).together("rack").together("block")
    tried = "no choice of domains of block and rack has room for it"
    assert why(planned(snapshot_of(*parts, made)), "a")[1].endswith(f"; {tried}")
    assert tried not in why(planned(snapshot_of(*parts, made), "bestfit"), "a")[1]
    ghost = gang("a").of(2, cpu=3).of(2, cpu=2).together("rack", "ghost")
    assert "domain" not in why(planned(snapshot_of(*parts, ghost)), "a")[1]


def test_a_refusal_says_that_a_rack_may_be_in_a_block_that_is_too_small() -> None:
    """Each rule by itself could be kept: the rack in one block, the gang in the other."""
    parts: list[Part] = [*rack("r1", 1, cpu=6), *rack("r2", 1, block="b2"), NETWORK]
    parts += [*rack("r3", 1, block="b2"), *rack("r4", 1, block="b2")]
    made = gang("a").role("driver", 4, cpu=1).role("worker", 5, cpu=1)
    made = made.together("block").together("rack", "worker")
    tried = "no choice of domains of block and rack has room for it"
    assert why(planned(snapshot_of(*parts, made)), "a")[1].endswith(f"; {tried}")


def test_without_labels_no_node_is_in_a_domain() -> None:
    plan = planned(snapshot_of(node("n", cpu=4), NETWORK, gang("a").of(2, cpu=1).together("rack")))
    assert "no node is in a domain of the level rack" in why(plan, "a")[1]


def test_a_rack_of_the_same_name_in_another_block_is_another_rack() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r1", 1, block="b2"), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(8, cpu=1).together("rack")))
    assert plan.placements == ()
    wide = topology("rack")
    plan = planned(snapshot_of(*parts[:-1], wide, gang("a").of(8, cpu=1).together("rack")))
    assert racks_of(plan, "a") == {"b1-r1", "b2-r1"}


def test_a_rule_of_roles_that_have_no_members_yet_asks_nothing() -> None:
    """A later stage of a JobSet has rules of its own."""
    waits = gang("a").role("load", 4, cpu=1).together("rack", "node").preferring("rack", "node")
    for made in (waits, waits.in_segments(2, "rack", "node")):
        plan = planned(snapshot_of(*rack("r1", 1), NETWORK, made))
        assert racks_of(plan, "a") == {"b1-r1"}


def test_an_unknown_level_keeps_a_gang_waiting() -> None:
    plan = planned(snapshot_of(node("n", cpu=4), NETWORK, gang("a").of(2, cpu=1).together("row")))
    expected = "no Topology has the level row: the levels are block, rack"
    assert why(plan, "a") == (Reason.UNKNOWN_LEVEL, expected)
    plan = planned(snapshot_of(node("n", cpu=4), gang("a").of(2, cpu=1).together("row")))
    assert why(plan, "a")[1] == "no Topology has the level row: there is none"


def test_an_unknown_level_ends_nothing_that_runs() -> None:
    plan = planned(
        snapshot_of(
            *rack("r1", 1), gang("a").of(2, cpu=1).together("row").bound_on("b1-r1-0", "b1-r1-0")
        )
    )
    assert plan.rejections == ()


@EXACT
def test_two_gangs_start_jointly_where_one_by_one_the_second_would_not(name: str) -> None:
    """The first would take the wide rack by its size alone: the second fits nowhere else."""
    parts: list[Part] = [*rack("r1", 3, cpu=2), *rack("r2", 2, cpu=3), NETWORK]
    first = gang("a").of(2, cpu=2).of(2, cpu=1).together("rack")
    second = gang("b").of(2, cpu=3).together("rack")
    plan = planned(snapshot_of(*parts, first, second), name)
    assert (racks_of(plan, "a"), racks_of(plan, "b")) == ({"b1-r1"}, {"b1-r2"})
    assert plan.proved


@EVERY
def test_roles_have_domains_of_their_own_inside_that_of_the_gang(name: str) -> None:
    parts: list[Part] = [
        *rack("r1", 2),
        *rack("r2", 1),
        *rack("r3", 2, block="b2"),
        NETWORK,
    ]
    made = gang("a").role("driver", 1, cpu=4).role("worker", 8, cpu=1)
    made = made.together("block").together("rack", "worker")
    plan = planned(snapshot_of(*parts, made), name)
    assert racks_of(plan, "a") == {"b1-r1", "b1-r2"}


@EVERY
def test_roles_together_leave_a_third_role_free(name: str) -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, block="b2"), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1).role("store", 1, cpu=2)
    plan = planned(snapshot_of(*parts, made.together("rack", "driver", "worker")), name)
    assert len(racks_of(plan, "a")) == 2


@EVERY
def test_a_replacement_returns_to_the_domain_of_the_bound_members(name: str) -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").of(3, cpu=2).together("rack").bound_on("b1-r2-0", "b1-r2-0")
    assert nodes_of(planned(snapshot_of(*parts, made), name), "a") == {"b1-r2-1"}


def test_a_replacement_waits_while_its_domain_is_full() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 1), NETWORK]
    made = gang("a").of(3, cpu=2).together("rack").bound_on("b1-r2-0", "b1-r2-0")
    plan = planned(snapshot_of(*parts, made))
    assert plan.placements == ()
    assert why(plan, "a")[0] is Reason.NOT_ENOUGH_ROOM


def test_a_full_domain_is_named_with_the_gangs_that_are_there() -> None:
    """They come by what they have of the scarcest resource, which is cpu."""
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2, cpu=12), NETWORK]
    made = gang("a").of(3, cpu=8).together("rack").together("block").bound_on("b1-r2-0")
    alone = snapshot_of(*parts[:2], *rack("r2", 1, cpu=12), NETWORK, made)
    told = "2 members to replace lost ones need 8 cpu each; room for none"
    assert why(planned(alone), "a")[1] == f"{told}; its domain of rack is b1/r2"
    names = ["u", "v", "w"]
    small = [gang(name).of(1, cpu=n).bound_on("b1-r2-1") for n, name in enumerate(names, 1)]
    held = gang("x").of(1, cpu=2).of(1, cpu=1).bound_on("b1-r1-0")
    slots = gang("y").role("worker", 5, 1, cpu=1).declaring(cpu=1).bound_on("b1-r1-0")
    full = snapshot_of(
        *parts,
        made,
        *small,
        held,
        slots,
        reservation(held, ("x-1", "b1-r2-1"), ("x-9", "b1-r2-1"), ("x-0", "b1-r1-0")),
        reservation(slots, slots=[SlotReservation(NodeName("b1-r2-0"), "worker", 4)]),
    )
    where = "its domain of rack is b1/r2, where ml/y, ml/w, ml/v and 2 other gangs are, too"
    assert why(planned(full), "a") == (Reason.NOT_ENOUGH_ROOM, f"{told}; {where}")


def test_pods_of_no_gang_that_fill_a_domain_are_named() -> None:
    """Of what is scarcest, by how much they have; those that have ended have none."""
    other, full = rack("r1", 2)[0], node("b1-r2-0", cpu=12).labelled(block="b1", rack="r2")
    made = gang("a").of(2, cpu=4).together("rack").bound_on("b1-r2-0")
    over = gang("b").of(1, cpu=6).bound_on("b1-r2-0").only("b-0", phase=Phase.SUCCEEDED)
    plan = planned(snapshot_of(other, full.using(cpu=6), NETWORK, made, over))
    assert why(plan, "a")[1].endswith(
        "its domain of rack is b1/r2; pods of no gang have 6 cpu there"
    )


def test_a_domain_without_a_node_that_fits_is_named() -> None:
    made = gang("a").of(2, cpu=1).together("rack").bound_on("b1-r2-0")
    cordoned = node("b1-r2-0", cpu=12).labelled(block="b1", rack="r2").cordoned()
    plan = planned(snapshot_of(*rack("r1", 2), cordoned, NETWORK, made))
    assert why(plan, "a")[0] is Reason.NO_NODE_FITS
    assert why(plan, "a")[1].endswith("its domain of rack is b1/r2")
    # Before a gang has started, its own selectors fix no domain.
    selector = labels(block="b1", rack="r2")
    new = gang("a").of(2, cpu=1).together("rack")
    new = new.where(lambda m: replace(m, shape=replace(m.shape, node_selector=selector)))
    assert "domain" not in why(planned(snapshot_of(cordoned, NETWORK, new)), "a")[1]


def test_a_member_that_no_rule_covers_has_no_domain_in_its_sentence() -> None:
    parts: list[Part] = [*rack("r1", 1), NETWORK]
    made = gang("a").role("driver", 1, cpu=4).role("worker", 1, cpu=1).together("rack", "worker")
    waits = snapshot_of(*parts, made.only("a-1", node=NodeName("b1-r1-0")))
    assert "domain" not in why(planned(waits), "a")[1]


def test_where_bound_members_are_in_several_domains_most_of_them_count() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").of(4, cpu=1).together("rack").bound_on("b1-r1-0", "b1-r2-0", "b1-r2-0")
    assert racks_of(planned(snapshot_of(*parts, made)), "a") == {"b1-r2"}


def test_replacements_of_all_members_of_a_role_go_to_one_domain() -> None:
    parts: list[Part] = [*rack("r1", 1, cpu=2), *rack("r2", 1), *rack("r3", 1, cpu=3), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1).together("rack", "worker")
    made = made.only("a-0", node=NodeName("b1-r1-0"))
    assert racks_of(planned(snapshot_of(*parts, made)), "a") == {"b1-r2"}


def test_replacements_go_to_a_rack_of_the_block_that_the_gang_runs_in() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=8, block="b2"), node("x", cpu=1)]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1)
    made = made.together("block").together("rack", "worker").bound_on("b1-r1-0")
    assert nodes_of(planned(snapshot_of(*parts, NETWORK, made)), "a") == {"b1-r1-0"}


def test_replacements_go_to_the_block_of_the_rack_that_others_run_in() -> None:
    """No member of the wide rule has a node, but one of the narrow rule has."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=8, block="b2"), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 2, cpu=1).role("store", 1, cpu=1)
    made = made.together("rack", "driver", "worker").together("block", "store", "worker")
    assert nodes_of(planned(snapshot_of(*parts, made.bound_on("b1-r1-0"))), "a") == {"b1-r1-0"}


def test_the_members_of_a_wide_rule_go_where_its_members_of_a_narrow_one_have_to_be() -> None:
    """Block 2 has room for more of them, but the worker has to be in the rack of its driver."""
    parts: list[Part] = [*rack("r1", 1, cpu=4), *rack("r2", 2, cpu=8, block="b2"), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, cpu=1).role("store", 5, cpu=1)
    made = made.together("rack", "driver", "worker").together("block", "store", "worker")
    placed = planned(snapshot_of(*parts, made.bound_on("b1-r1-0")))
    assert nodes_of(placed, "a") == {"b1-r1-0"}


def test_thousands_of_different_replacements_are_not_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes: list[Shape] = []
    allowed = NodeIndex.allowed

    def counted(index: NodeIndex, shape: Shape) -> Mask:
        shapes.append(shape)
        return allowed(index, shape)

    monkeypatch.setattr(NodeIndex, "allowed", counted)
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, cpu=1)
    for n in range(2, 300):
        made = made.of(1, role="worker", cpu=n)
    made = made.together("rack", "worker").bound_on("b1-r1-0")
    demand = observed_demand.observe(snapshot_of(*rack("r1", 1, cpu=2), NETWORK, made))
    assert len(demand.gangs[0].waiting) == 299
    assert len(shapes) == observed_demand.MOST_SHAPES


def test_two_gangs_that_have_lost_their_workers_each_get_a_domain() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=2), NETWORK]
    for name in ("a", "b"):
        made = gang(name).role("driver", 1, cpu=1).role("worker", 1, cpu=1)
        parts.append(made.together("rack", "worker").bound_on("b1-r2-0"))
    placed = planned(snapshot_of(*parts))
    assert nodes_of(placed, "a") == nodes_of(placed, "b") == {"b1-r1-0"}


def test_a_resource_that_no_node_has_or_ever_could_have_makes_no_room() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, cpu=1)
    for more in ({"gpu": 1}, {"cpu": 2**62}):
        made = made.of(1, role="worker", **more)
    placed = planned(
        snapshot_of(*rack("r1", 1), NETWORK, made.together("rack", "worker").bound_on("b1-r1-0"))
    )
    assert nodes_of(placed, "a") == {"b1-r1-0"}


def test_of_two_rules_without_members_the_wider_one_gets_its_domain_first() -> None:
    """The roomiest rack is in the other block."""
    parts: list[Part] = [*rack("r1", 1, cpu=9), *rack("r2", 2, block="b2")]
    more: list[Part] = [*rack("r4", 1, block="b2"), node("bare", cpu=1), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("store", 1, cpu=4).role("worker", 7, cpu=1)
    made = made.together("rack", "worker").together("block", "store", "worker").bound_on("bare")
    assert racks_of(planned(snapshot_of(*parts, *more, made)), "a") == {"b2-r2", "b2-r4"}


def test_lost_members_of_two_sizes_go_to_a_rack_that_holds_both() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=5), node("bare", cpu=1), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("store", 1, cpu=2).role("worker", 1, cpu=3)
    made = made.together("rack", "store", "worker").bound_on("bare")
    assert nodes_of(planned(snapshot_of(*parts, made)), "a") == {"b1-r2-0"}


def test_lost_members_of_two_sizes_fill_the_tightest_nodes_first() -> None:
    """In rack 2, each member has a node of its own; rack 1 has room for one of them alone."""
    sizes = {"r1": [5, 1, 1], "r2": [4, 3]}
    parts: list[Part] = [
        *(
            node(f"b1-{name}-{i}", cpu=cpu).labelled(block="b1", rack=name)
            for name, own in sizes.items()
            for i, cpu in enumerate(own)
        ),
        node("bare", cpu=1),
        NETWORK,
    ]
    made = gang("a").role("driver", 1, cpu=1).role("store", 1, cpu=4).role("worker", 1, cpu=3)
    made = made.together("rack", "store", "worker").bound_on("bare")
    assert nodes_of(planned(snapshot_of(*parts, made)), "a") == {"b1-r2-0", "b1-r2-1"}


def test_room_that_is_reserved_makes_no_domain_the_roomiest() -> None:
    parts: list[Part] = [*rack("r1", 1, cpu=6), *rack("r2", 1), node("bare", cpu=1), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1).together("rack", "worker")
    other = gang("other").of(2, cpu=3)
    held = reservation(other, ("other-0", "b1-r1-0"), ("other-1", "b1-r1-0"))
    seen = snapshot_of(*parts, made.bound_on("bare"), other, held)
    assert racks_of(planned(seen), "a") == {"b1-r2"}


def test_lost_members_wait_while_no_node_of_a_domain_may_run_them() -> None:
    cordoned = [rack_node.cordoned() for rack_node in rack("r1", 1)]
    parts: list[Part] = [*cordoned, node("bare", cpu=9), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1).together("rack", "worker")
    assert planned(snapshot_of(*parts, made.bound_on("bare"))).placements == ()


def test_members_that_have_ended_fix_no_domain() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    made = gang("a").of(3, cpu=3).together("rack").bound_on("b1-r1-0", "b1-r1-0")
    made = made.only("a-0", phase=Phase.SUCCEEDED).only("a-1", phase=Phase.SUCCEEDED)
    full = snapshot_of(*parts, made, gang("other").of(1, cpu=4).bound_on("b1-r1-0"))
    assert racks_of(planned(full), "a") == {"b1-r2"}


@EVERY
def test_further_members_join_the_domain_in_which_the_gang_starts(name: str) -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 2, cpu=3), NETWORK]
    made = gang("a").of(6, cpu=1).needing(5).together("rack")
    plan = planned(snapshot_of(*parts, made), name)
    assert racks_of(plan, "a") == {"b1-r2"}
    assert sum(len(placement.assignments) for placement in plan.placements) == 6


def test_a_further_member_does_not_leave_the_domain() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1, cpu=3), NETWORK]
    made = gang("a").of(6, cpu=1).needing(4).together("rack")
    plan = planned(snapshot_of(*parts, made))
    assert racks_of(plan, "a") == {"b1-r1"}
    assert sum(len(placement.assignments) for placement in plan.placements) == 4


def test_a_gang_that_grows_above_a_border_stays_in_one_domain() -> None:
    """The program of the border decides on the gang and its further members together."""
    parts: list[Part] = [*rack("r1", 2, cpu=2), *rack("r2", 2, cpu=3), NETWORK]
    high = gang("a").of(3, cpu=1).needing(2).together("rack").priority(1)
    low = gang("b").of(2, cpu=2).together("rack")
    plan = planned(snapshot_of(*parts, high, low))
    assert len(racks_of(plan, "a")) == len(racks_of(plan, "b")) == 1


def test_room_for_absent_members_is_held_in_the_domain() -> None:
    parts: list[Part] = [*rack("r1", 2, cpu=1), *rack("r2", 2, cpu=2), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 0, cpu=1).declaring(cpu=1)
    plan = planned(snapshot_of(*parts, made.together("rack")))
    assert racks_of(plan, "a") == {"b1-r2"}
    (placement,) = plan.placements
    assert {slot.node.rsplit("-", 1)[0] for slot in placement.slots} == {"b1-r2"}


def test_members_move_to_better_nodes_inside_their_domain_alone() -> None:
    """Another rack has better nodes; the gang stays where best fit put it, in the tighter one."""
    slow = [part.tainted("slow", effect="PreferNoSchedule") for part in rack("r1", 2, cpu=2)]
    fast = rack("r1", 1, cpu=3)[0].but(name=NodeName("b1-r1-9"))
    other = rack("r2", 4, cpu=5)
    made = gang("a").of(2, cpu=1).together("rack")
    plan = planned(snapshot_of(*slow, fast, *other, NETWORK, made))
    assert nodes_of(plan, "a") == {"b1-r1-9"}


def test_a_rule_on_some_roles_does_not_keep_members_of_others_from_better_nodes() -> None:
    slow = [part.tainted("slow", effect="PreferNoSchedule") for part in rack("r1", 2, cpu=2)]
    other = rack("r2", 4, cpu=5)
    made = gang("a").role("driver", 1, cpu=1).role("worker", 2, cpu=2).together("rack", "worker")
    plan = planned(snapshot_of(*slow, *other, NETWORK, made))
    (placement,) = plan.placements
    racks = [
        (assignment.pod.name.split("-")[1], assignment.node[:5])
        for assignment in placement.assignments
    ]
    assert sorted(racks) == [("0", "b1-r2"), ("1", "b1-r1"), ("2", "b1-r1")]


def test_members_of_two_racks_do_not_change_places() -> None:
    """Each would be better off in the other rack, by its own preference."""
    nodes = [*rack("r1", 1, cpu=2), *rack("r2", 1, cpu=2)]
    nodes[0] = nodes[0].tainted("a", effect="PreferNoSchedule")
    nodes[1] = nodes[1].tainted("b", effect="PreferNoSchedule")
    first = gang("a").of(2, cpu=1).together("rack").shaped(tolerations=(Toleration("b"),))
    second = gang("b").of(2, cpu=1).together("rack").shaped(tolerations=(Toleration("a"),))
    plan = planned(snapshot_of(*nodes, NETWORK, first, second))
    assert len(racks_of(plan, "a")) == len(racks_of(plan, "b")) == 1


def test_room_for_a_starved_gang_is_held_in_the_domain_that_lacks_least() -> None:
    policy = Policy(starvation_seconds=100.0)
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    running = [
        gang("x").of(1, cpu=4).bound_on("b1-r1-0"),
        gang("y").of(1, cpu=2).bound_on("b1-r2-0"),
    ]
    starved = gang("a").of(4, cpu=2).together("rack")
    small = [gang(f"s{i}").of(1, cpu=2).but(created=150.0).each(created=150.0) for i in range(5)]
    plan = planned(snapshot_of(*parts, *running, starved, *small, at=200.0), policy=policy)
    taken = [on for placement in plan.placements for on in {a.node for a in placement.assignments}]
    assert taken == ["b1-r1-1", "b1-r1-1"]


def test_for_a_starved_gang_with_a_rule_on_some_roles_room_is_held_all_the_same() -> None:
    policy = Policy(starvation_seconds=100.0)
    parts: list[Part] = [*rack("r1", 2), NETWORK]
    running = gang("x").of(1, cpu=4).bound_on("b1-r1-0")
    starved = gang("a").role("driver", 1, cpu=2).role("worker", 3, cpu=2)
    small = gang("s").of(2, cpu=2).but(created=150.0).each(created=150.0)
    parts += [running, starved.together("rack", "worker"), small]
    plan = planned(snapshot_of(*parts, at=200.0), policy=policy)
    assert not plan.placements


def test_what_breaks_a_domain_is_refused_before_it_is_written() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    free = gang("a").of(5, cpu=1)
    plan = planned(snapshot_of(*parts, free))
    bound = snapshot_of(*parts, free.together("rack"))
    expected = "gang team-a/a: it would be in these domains of rack: b1/r1, b1/r2"
    assert [violation.split(": ", 1)[1] for violation in plan_checks.violations(bound, plan)] == [
        expected.split(": ", 1)[1]
    ]
    assert plan_checks.upheld(bound, plan.placements) == ()
    unknown = snapshot_of(*parts[:-1], free.together("rack"))
    assert any(
        "no topology has the level" in violation
        for violation in plan_checks.violations(unknown, plan)
    )


def test_a_replacement_beside_its_domain_is_refused() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    free = gang("a").of(3, cpu=2).bound_on("b1-r2-0", "b1-r2-0")
    plan = planned(snapshot_of(*parts, free))
    assert racks_of(plan, "a") == {"b1-r1"}
    assert plan_checks.violations(snapshot_of(*parts, free.together("rack")), plan) != ()


def test_a_reservation_fixes_the_domain_of_a_gang_that_has_started() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 2, cpu=1).declaring(cpu=1)
    made = made.together("rack", "worker").bound_on("b1-r1-0")
    held = reservation(made, slots=[SlotReservation(NodeName("b1-r2-0"), "worker", 1)])
    assert racks_of(planned(snapshot_of(*parts, made, held)), "a") == {"b1-r2"}


def test_a_promised_member_fixes_the_domain_of_a_gang_that_has_started() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 2, cpu=1).declaring(cpu=1)
    made = made.together("rack", "worker").bound_on("b1-r1-0")
    slots = [SlotReservation(NodeName("b1-r2-0"), "worker", 1)]
    held = reservation(made, ("a-1", "b1-r2-1"), slots=slots)
    assert racks_of(planned(snapshot_of(*parts, made, held)), "a") == {"b1-r2"}


def test_members_of_roles_without_a_rule_go_anywhere() -> None:
    """The driver is lost, and so are the workers, whose rack another one has left."""
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), node("bare", cpu=9), NETWORK]
    made = gang("a").role("driver", 1, 2, cpu=4).role("worker", 3, cpu=1)
    made = made.together("rack", "worker").bound_on("b1-r1-0")
    made = made.only("a-2", node=NodeName("b1-r2-0"))
    plan = planned(snapshot_of(*parts, made))
    assert nodes_of(plan, "a") == {"bare", "b1-r2-0"}


def test_lost_members_that_no_domain_holds_wait() -> None:
    parts: list[Part] = [*rack("r1", 1), node("bare", cpu=9), NETWORK]
    made = gang("a").role("driver", 1, cpu=4).role("worker", 3, cpu=1).together("rack", "worker")
    assert planned(snapshot_of(*parts, made.bound_on("b1-r1-0"))).placements == ()


def test_a_level_of_the_second_topology_counts_and_a_rule_of_nobody_does_not() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 2), topology("zone", name="first"), NETWORK]
    made = gang("a").role("worker", 8, cpu=1).role("ghost", 0)
    made = made.together("rack").together("block", "ghost")
    assert racks_of(planned(snapshot_of(*parts, made)), "a") == {"b1-r2"}


def test_a_role_in_two_racks_is_refused_and_other_roles_are_not_judged() -> None:
    parts: list[Part] = [*rack("r1", 1), *rack("r2", 1), NETWORK]
    free = gang("a").role("driver", 1, cpu=4).role("worker", 4, cpu=1)
    plan = planned(snapshot_of(*parts, free))
    assert racks_of(plan, "a") == {"b1-r1", "b1-r2"}
    assert plan_checks.violations(snapshot_of(*parts, free.together("rack", "worker")), plan) == ()
    assert plan_checks.violations(snapshot_of(*parts, free.together("rack")), plan) != ()
