"""Gangs in few domains of a level that they prefer: planned, and beside a search of all choices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import TYPE_CHECKING

import pytest

from tutti.model.cluster import SlotReservation
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.shapes import NodeTerm, Preferences
from tutti.planning import preferred_domains
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Share, Solution
from tutti.verify import plan_checks

from ...harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    NodeBuilder,
    Part,
    gang,
    node,
    peers,
    reservation,
    snapshot_of,
    topology,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tutti.model.cluster import Snapshot
    from tutti.model.decisions import Plan
    from tutti.strategies.problem import Problem

LEVELS = ("zone", "block", "rack")
HOST = "kubernetes.io/hostname"
NETWORK = topology(*LEVELS)
EVERY = pytest.mark.parametrize("name", ["bestfit", "ilp", "flow"])


def rack(name: str, nodes: int, *, block: str = "b1", cpu: int = 4) -> list[NodeBuilder]:
    """So many nodes of one rack."""
    return [
        node(f"{block}-{name}-{i}", cpu=cpu).labelled(zone="z", block=block, rack=name)
        for i in range(nodes)
    ]


def planned(snapshot: Snapshot, name: str = "ilp") -> Plan:
    made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(snapshot, made) == ()
    return made


def nodes_of(plan: Plan, name: str) -> list[str]:
    """The nodes of a gang's new members."""
    placements = [placement for placement in plan.placements if placement.gang.name == name]
    return sorted(
        [assignment.node for placement in placements for assignment in placement.assignments]
        + [slot.node for placement in placements for slot in placement.slots]
    )


def racks_of(plan: Plan, name: str) -> list[str]:
    return sorted({on.rsplit("-", 1)[0] for on in nodes_of(plan, name)})


# One gang.


@EVERY
def test_a_gang_is_in_one_rack_where_one_has_room(name: str) -> None:
    parts: list[Part] = [*rack("r1", 3, cpu=2), *rack("r2", 4, cpu=2), NETWORK]
    assert racks_of(
        planned(snapshot_of(*parts, gang("a").of(8, cpu=1).preferring("rack")), name), "a"
    ) == ["b1-r2"]


@EVERY
def test_no_gang_waits_for_what_it_prefers(name: str) -> None:
    parts: list[Part] = [*rack("r1", 3, cpu=2), *rack("r2", 4, cpu=2), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(14, cpu=1).preferring("rack")), name)
    assert racks_of(plan, "a") == ["b1-r1", "b1-r2"]


def test_two_racks_of_one_block_come_before_two_of_two_blocks() -> None:
    """The two largest racks hold the gang, too, but they are in two blocks."""
    parts: list[Part] = [*rack("r1", 3), *rack("r2", 2), *rack("r3", 2), *rack("r1", 3, block="b2")]
    plan = planned(snapshot_of(*parts, NETWORK, gang("a").of(20, cpu=1).preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r1", "b1-r2"]


def test_fewer_racks_come_before_one_block() -> None:
    parts: list[Part] = [
        *(n for i in range(5) for n in rack(f"r{i}", 1)),
        *rack("r1", 3, block="b2"),
    ]
    parts += rack("r1", 3, block="b3")
    plan = planned(snapshot_of(*parts, NETWORK, gang("a").of(20, cpu=1).preferring("rack")))
    assert racks_of(plan, "a") == ["b2-r1", "b3-r1"]


def test_a_required_block_and_a_preferred_rack_hold_together() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 1), *rack("r3", 1), *rack("r1", 3, block="b2")]
    wide = gang("a").of(12, cpu=1).together("block").preferring("rack")
    assert racks_of(planned(snapshot_of(*parts, NETWORK, wide)), "a") == ["b2-r1"]
    wider = gang("a").of(13, cpu=1).together("block").preferring("rack")
    assert racks_of(planned(snapshot_of(*parts, NETWORK, wider)), "a") == [
        "b1-r1",
        "b1-r2",
        "b1-r3",
    ]


def test_a_role_has_a_preference_of_its_own_inside_that_of_the_gang() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), *rack("r1", 3, block="b2")]
    made = gang("a").role("driver", 1, cpu=4).role("worker", 8, cpu=1)
    made = made.preferring("block").preferring("rack", "worker")
    plan = planned(snapshot_of(*parts, NETWORK, made))
    assert {on.split("-")[0] for on in nodes_of(plan, "a")} == {"b2"}
    workers = {member.uid for member in made.members if member.role == "worker"}
    racks = {a.node.rsplit("-", 1)[0] for a in plan.placements[0].assignments if a.uid in workers}
    assert len(racks) == 1


def test_a_level_that_no_topology_has_is_left_out() -> None:
    plan = planned(snapshot_of(*rack("r1", 2), NETWORK, gang("a").of(2, cpu=1).preferring("row")))
    assert len(nodes_of(plan, "a")) == 2


def test_a_node_without_labels_is_a_domain_of_its_own() -> None:
    parts: list[Part] = [node("n1", cpu=3), node("n2", cpu=3), *rack("r1", 3, cpu=2), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(6, cpu=1).preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r1"]
    plan = planned(snapshot_of(*parts, gang("a").of(3, cpu=1).preferring("rack")))
    assert len(set(nodes_of(plan, "a"))) == 1


def test_a_required_level_takes_no_node_without_labels() -> None:
    parts: list[Part] = [node("n1", cpu=3), *rack("r1", 4, cpu=1), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(3, cpu=1).together("rack").preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r1"]


# Room to spare.


def test_a_small_gang_fills_a_rack_that_is_partly_used() -> None:
    parts: list[Part] = [*rack("r1", 4), *rack("r2", 4), NETWORK]
    parts += [gang("old").of(2, cpu=4).bound_on("b1-r2-0", "b1-r2-1")]
    plan = planned(snapshot_of(*parts, gang("a").of(2, cpu=4).preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r2"]


def test_of_equal_racks_one_of_the_block_that_is_partly_used_comes_first() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), *rack("r1", 2, block="b2")]
    parts += [*rack("r2", 2, block="b2"), gang("old").of(2, cpu=4).bound_on("b2-r1-0", "b2-r1-1")]
    plan = planned(snapshot_of(*parts, NETWORK, gang("a").of(2, cpu=4).preferring("rack")))
    assert racks_of(plan, "a") == ["b2-r2"]


def test_two_racks_with_least_room_come_before_two_with_most() -> None:
    parts: list[Part] = [*rack("r1", 8, cpu=1), *rack("r2", 6, cpu=1), *rack("r3", 5, cpu=1)]
    parts += [*rack("r4", 5, cpu=1), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(10, cpu=1).preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r3", "b1-r4"]


@EVERY
def test_gangs_with_a_required_rack_leave_the_largest_racks_whole(name: str) -> None:
    parts: list[Part] = [*rack("r1", 6, cpu=1), *rack("r2", 4, cpu=1), *rack("r3", 6, cpu=1)]
    small = [gang(f"s{i}").of(2, cpu=1).together("rack") for i in range(2)]
    plan = planned(snapshot_of(*parts, NETWORK, *small), name)
    assert [racks_of(plan, "s0"), racks_of(plan, "s1")] == [["b1-r2"], ["b1-r2"]]


# Members of several shapes.


def test_members_that_no_rack_holds_together_though_it_holds_each_shape_start() -> None:
    """Beside the large one, a rack has two places for four small ones."""
    parts: list[Part] = [NETWORK]
    for name in ("r1", "r2"):
        parts += [*rack(name, 1, cpu=4), *rack(f"{name}", 2, cpu=2)[1:]]
    made = gang("a").of(1, cpu=4).of(4, cpu=1).preferring("rack")
    other = gang("b").of(1, cpu=4).preferring("rack")
    names = planned(snapshot_of(*parts, made, other))
    assert (racks_of(names, "a"), len(racks_of(names, "b"))) == (["b1-r1", "b1-r2"], 1)


def test_members_of_two_shapes_have_a_rack_more_than_counting_asks_for() -> None:
    """No rack has room for the large one beside seven small ones, and no rack seems too small."""
    parts: list[Part] = [NETWORK]
    for number, size in enumerate((5, 5, 5, 4)):
        block, name = f"b{number // 2}", f"r{number}"
        parts += [*rack(name, 1, block=block, cpu=size), *rack(name, 4, block=block, cpu=1)[1:]]
    made = gang("a").of(1, cpu=4).of(7, cpu=1).preferring("rack")
    assert racks_of(planned(snapshot_of(*parts, made), "spread"), "a") == ["b1-r2", "b1-r3"]


def test_members_that_best_fit_cannot_place_again_stay() -> None:
    """The large one leaves least room on the smaller node, and then the small ones lack one."""
    parts: list[Part] = [*rack("r1", 1, cpu=5), *rack("r1", 2, cpu=4)[1:], NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(1, cpu=3).of(3, cpu=2).together("rack")))
    assert len(nodes_of(plan, "a")) == 4


# Limits of effort.


@pytest.mark.parametrize("most", range(0, 30, 2))
def test_a_search_that_is_cut_off_leaves_a_sound_plan(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preferred_domains, "MOST_PLACED", most)
    monkeypatch.setattr(preferred_domains, "MOST_SWEEPS", 1)
    racks: list[Part] = [n for i in range(3) for n in rack(f"r{i}", 8, cpu=1)]
    gangs = [
        gang(f"g{i}").of(n, cpu=1).preferring("rack") for i, n in enumerate([6, 5, 4, 3, 3, 2])
    ]
    plan = planned(snapshot_of(*racks, NETWORK, *gangs), "spread")
    assert len(plan.placements) == len(gangs)
    split = sum(len(racks_of(plan, f"g{i}")) - 1 for i in range(len(gangs)))
    assert most < 26 or split == 0


# Beside what pods prefer.


def test_nodes_that_pods_prefer_are_chosen_within_the_domain() -> None:
    fast = NodeTerm((Requirement("fast", "Exists"),))
    likes_fast = Preferences(node_affinity=((fast, 1),))
    parts: list[Part] = [*rack("r1", 2), NETWORK]
    parts += [node("b1-r1-9", cpu=4).labelled(zone="z", block="b1", rack="r1", fast="1")]
    parts += [node("b1-r3-9", cpu=8).labelled(zone="z", block="b1", rack="r3", fast="1")]
    made = gang("a").of(9, cpu=1).preferring("rack").shaped(preferences=likes_fast)
    names = nodes_of(planned(snapshot_of(*parts, made)), "a")
    assert {on.rsplit("-", 1)[0] for on in names} == {"b1-r1"}
    assert names.count("b1-r1-9") == 4


def test_a_member_on_a_node_without_labels_stays_there() -> None:
    fast = NodeTerm((Requirement("fast", "Exists"),))
    likes_fast = Preferences(node_affinity=((fast, 1),))
    parts: list[Part] = [node("n1", cpu=2), node("n2", cpu=3).labelled(fast="1"), NETWORK]
    made = gang("a").of(2, cpu=1).preferring("rack").shaped(preferences=likes_fast)
    assert set(nodes_of(planned(snapshot_of(*parts, made)), "a")) == {"n1"}


# Members that have a node.


def test_further_members_go_to_the_rack_of_the_gang_though_another_is_tighter() -> None:
    parts: list[Part] = [*rack("r1", 4, cpu=2), *rack("r2", 1, cpu=2), NETWORK]
    grown = gang("a").of(4, cpu=1).needing(2).preferring("rack").bound_on("b1-r1-0", "b1-r1-0")
    assert racks_of(planned(snapshot_of(*parts, grown)), "a") == ["b1-r1"]


def test_what_the_rack_of_the_gang_cannot_take_goes_to_one_near_it() -> None:
    parts: list[Part] = [*rack("r1", 2, cpu=1), *rack("r1", 1, cpu=4, block="b2")]
    parts += [*rack("r2", 4, cpu=1), *rack("r3", 3, cpu=1), NETWORK]
    grown = gang("a").of(5, cpu=1).needing(1).preferring("rack").bound_on("b1-r1-0")
    assert racks_of(planned(snapshot_of(*parts, grown)), "a") == ["b1-r1", "b1-r3"]


def test_members_in_two_blocks_keep_to_their_racks() -> None:
    parts: list[Part] = [*rack("r1", 2, cpu=1), *rack("r1", 2, cpu=1, block="b2"), *rack("r2", 2)]
    grown = gang("a").of(4, cpu=1).needing(2).preferring("rack").bound_on("b1-r1-0", "b2-r1-0")
    assert racks_of(planned(snapshot_of(*parts, NETWORK, grown)), "a") == ["b1-r1", "b2-r1"]


def test_a_replacement_goes_to_the_rack_of_the_others() -> None:
    parts: list[Part] = [*rack("r1", 4, cpu=2), *rack("r2", 1, cpu=1), NETWORK]
    hurt = gang("a").of(3, cpu=1).preferring("rack").bound_on("b1-r1-0", "b1-r1-1")
    assert racks_of(planned(snapshot_of(*parts, hurt)), "a") == ["b1-r1"]


def test_room_for_absent_members_is_held_in_the_same_rack() -> None:
    parts: list[Part] = [*rack("r1", 3, cpu=1), *rack("r2", 5, cpu=1), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 0, cpu=1).declaring(cpu=1)
    plan = planned(snapshot_of(*parts, made.preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r2"]
    assert sum(slot.count for slot in plan.placements[0].slots) == 3


def test_room_that_a_reservation_holds_counts() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 2, cpu=1).declaring(cpu=1)
    made = made.preferring("rack", "worker").bound_on("b1-r1-0")
    held = reservation(made, slots=[SlotReservation(NodeName("b1-r2-0"), "worker", 1)])
    assert racks_of(planned(snapshot_of(*parts, made, held)), "a") == ["b1-r2"]


def test_members_of_a_required_rack_stay_there() -> None:
    parts: list[Part] = [*rack("r1", 4, cpu=1), *rack("r2", 2, cpu=1), NETWORK]
    grown = gang("a").of(3, cpu=1).needing(1).together("rack").bound_on("b1-r1-0")
    assert racks_of(planned(snapshot_of(*parts, grown)), "a") == ["b1-r1"]


# Several gangs.


@EVERY
def test_each_gang_gets_a_rack_where_all_can(name: str) -> None:
    sizes = [6, 5, 4, 3, 3, 2]
    racks: list[Part] = [n for i in range(3) for n in rack(f"r{i}", 8, cpu=1)]
    gangs = [gang(f"g{i}").of(n, cpu=1).preferring("rack") for i, n in enumerate(sizes)]
    plan = planned(snapshot_of(*racks, NETWORK, *gangs), name)
    assert [len(racks_of(plan, f"g{i}")) for i in range(len(sizes))] == [1] * len(sizes)


def test_gangs_without_a_preference_make_room_in_the_same_plan() -> None:
    parts: list[Part] = [*rack("r1", 4, cpu=1), *rack("r2", 4, cpu=1), NETWORK]
    others = [gang(f"o{i}").of(1, cpu=1) for i in range(4)]
    plan = planned(
        snapshot_of(*parts, *others, gang("z").of(4, cpu=1).preferring("rack")), "spread"
    )
    assert len(racks_of(plan, "z")) == 1
    assert len(plan.placements) == 5


@dataclass(frozen=True, slots=True)
class Given:
    """A strategy with one answer: the shares of gangs by the number of members that they need."""

    shares: dict[int, list[tuple[Share, ...]]]
    name: str = "given"

    def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - spends nothing
        """Take the shares of gangs of one size in their order."""
        left = {need: list(shares) for need, shares in self.shares.items()}
        shares = tuple(left[demand.need].pop(0) for demand in problem.demands)
        return Solution(Outcome.PROVED, shares)


def test_a_rack_is_cleared_for_a_gang_where_not_all_gangs_can_be_placed_again() -> None:
    """Two pods are on the large nodes of two racks; a third rack has room for one of them.

    Best fit cannot place the gang of the pool again, so all gangs together stay.
    """
    parts: list[Part] = [NETWORK, node("p1", cpu=5).labelled(pool="x")]
    parts += [node("p2", cpu=4).labelled(pool="x")]
    for name in ("r1", "r2"):
        parts += [*rack(name, 4, cpu=1), *rack(name, 5, cpu=2)[4:]]
    parts += rack("r3", 5, cpu=2)[4:]
    pooled = gang("t").of(1, cpu=3).of(3, cpu=2).shaped(node_selector=(("pool", "x"),))
    gangs = [gang("a").of(1, cpu=2), gang("b").of(1, cpu=2), pooled]
    given: dict[int, list[tuple[Share, ...]]] = {
        1: [(Share(0, 6, 1),), (Share(0, 11, 1),)],
        4: [(Share(0, 0, 1), Share(1, 0, 1), Share(1, 1, 2))],
        5: [tuple(Share(0, place, 1) for place in (2, 3, 4, 5, 7))],
    }
    snapshot = snapshot_of(*parts, *gangs, gang("z").of(5, cpu=1).preferring("rack"))
    made = plan(snapshot, Given(given), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(snapshot, made) == ()
    assert racks_of(made, "z") == ["b1-r1"]
    assert sorted(nodes_of(made, "a") + nodes_of(made, "b")) == ["b1-r2-4", "b1-r3-4"]


def test_the_top_priority_comes_first() -> None:
    parts: list[Part] = [*rack("r1", 4, cpu=1), *rack("r2", 2, cpu=1), NETWORK]
    low = gang("a").of(3, cpu=1).preferring("rack")
    high = gang("b").of(3, cpu=1).preferring("rack").priority(5)
    plan = planned(snapshot_of(*parts, low, high))
    assert (len(racks_of(plan, "a")), len(racks_of(plan, "b"))) == (2, 1)


def test_rules_between_pods_come_before_what_a_gang_prefers() -> None:
    parts: list[Part] = [*rack("r1", 2), *rack("r2", 2), NETWORK]
    plan = planned(snapshot_of(*parts, gang("a").of(2, cpu=1).apart("rack").preferring("rack")))
    assert racks_of(plan, "a") == ["b1-r1", "b1-r2"]


@EVERY
def test_members_that_keep_apart_by_node_are_in_one_rack(name: str) -> None:
    parts: list[Part] = [
        part.labelled(**{HOST: part.made.name})
        for part in (*rack("r1", 2, cpu=2), *rack("r2", 4), *rack("r3", 3, cpu=3))
    ]
    apart = gang("a").of(4, cpu=1).apart(HOST).preferring("rack")
    others = [gang(f"o{i}").of(1, cpu=1).near("rack", peers(group="a")) for i in range(2)]
    plan = planned(snapshot_of(*parts, NETWORK, apart, *others), name)
    assert racks_of(plan, "a") == ["b1-r2"]
    assert len(plan.placements) == 3


def test_a_large_gang_under_rules_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preferred_domains, "MOST_RULED", 1)
    parts: list[Part] = [
        part.labelled(**{HOST: part.made.name}) for part in (*rack("r1", 1), *rack("r2", 2))
    ]
    spread_out = gang("a").of(2, cpu=1).apart(HOST).preferring("rack")
    plan = planned(snapshot_of(*parts, NETWORK, spread_out), "spread")
    assert racks_of(plan, "a") == ["b1-r1", "b1-r2"]


# All choices.


def cluster(chance: Random) -> list[NodeBuilder]:
    """Six nodes at most, in zones, blocks and racks; some lack a label."""
    nodes = []
    for i in range(chance.randint(2, 6)):
        made = node(f"n{i}", cpu=chance.randint(0, 3))
        depth = chance.choice([0, 1, 2, 3, 3, 3, 3, 3])
        labels = {level: chance.choice("xy") for level in LEVELS[:depth]}
        nodes.append(made.labelled(**labels) if labels else made)
    return nodes


def domain_of(name: str, labels: dict[str, str], level: int) -> tuple[str, ...]:
    """The domain of a node at a level; its own name where it lacks a label."""
    wanted = LEVELS[: level + 1]
    return tuple(labels[key] for key in wanted) if wanted[-1] in labels else (name,)


def cost(snapshot: Snapshot, names: Collection[str], level: int) -> tuple[int, int]:
    """Domains beyond one, and levels up to one domain of all; by labels alone."""
    labels = {str(node.name): dict(node.labels) for node in snapshot.nodes}
    counts = [
        len({domain_of(name, labels[name], wide) for name in names})
        for wide in range(level, -1, -1)
    ]
    return max(counts[0] - 1, 0), sum(count > 1 for count in counts)


def least_cost(
    snapshot: Snapshot, members: int, staying: Sequence[str], level: int
) -> tuple[int, int]:
    """The least cost of all sets of nodes that hold so many members of one CPU."""
    room = {
        node.name: node.offers("cpu") // 1000 - node.used["cpu"] // 1000 for node in snapshot.nodes
    }
    return min(
        cost(snapshot, {*chosen, *staying}, level)
        for size in range(1, members + 1)
        for chosen in combinations([name for name in room if room[name] > 0], size)
        if sum(room[name] for name in chosen) >= members
    )


@pytest.mark.parametrize("strategy", ["bestfit", "ilp"])
def test_one_gang_is_in_no_more_domains_than_any_choice_of_nodes(strategy: str) -> None:
    seen_costs = set()
    for seed in range(120):
        chance = Random(seed)
        nodes, level = cluster(chance), chance.randrange(3)
        made = gang("a").of(chance.randint(1, 6), cpu=1).preferring(LEVELS[level])
        snapshot = snapshot_of(*nodes, NETWORK, made)
        names = nodes_of(planned(snapshot, strategy), "a")
        if names:
            least = least_cost(snapshot, len(names), (), level)
            assert cost(snapshot, names, level) == least, seed
            seen_costs.add(least)
    assert len(seen_costs) > 4


def test_members_that_join_are_in_no_more_domains_than_any_choice_of_nodes() -> None:
    for seed in range(120):
        chance = Random(seed)
        nodes, level = cluster(chance), chance.randrange(3)
        with_room = [node.name for node in snapshot_of(*nodes).nodes if node.offers("cpu")]
        staying = [chance.choice(with_room or ["n0"])]
        grown = gang("a").of(chance.randint(2, 5), cpu=1).needing(1).preferring(LEVELS[level])
        snapshot = snapshot_of(*nodes, NETWORK, grown.bound_on(*staying))
        names = nodes_of(planned(snapshot, "bestfit"), "a")
        if names:
            least = least_cost(snapshot, len(names), staying, level)
            assert cost(snapshot, {*names, *staying}, level) == least, seed


def test_admission_is_the_same_with_and_without_preferences() -> None:
    """Several gangs with and without rules: the same members start, and sums of costs only fall."""
    before_all, after_all = 0, 0
    for seed in range(80):
        chance = Random(seed)
        gangs = []
        for number in range(chance.randint(2, 4)):
            made = gang(f"g{number}").of(chance.randint(1, 3), cpu=chance.randint(1, 2))
            made = made.priority(chance.choice([0, 0, 5]))
            if chance.random() < 0.3:
                made = made.together(chance.choice(LEVELS))
            gangs.append(made)
        nodes, level = cluster(chance), chance.randrange(3)
        named = [made.preferring(LEVELS[level]) for made in gangs]
        plain, seen = snapshot_of(*nodes, NETWORK, *gangs), snapshot_of(*nodes, NETWORK, *named)
        before, after = planned(plain), planned(seen)
        started = [
            {a.uid for placement in one.placements for a in placement.assignments}
            for one in (before, after)
        ]
        assert started[0] == started[1], seed
        assert (before.proved, before.levels) == (after.proved, after.levels), seed
        names = [f"g{number}" for number in range(len(gangs))]
        before_all += sum(cost(seen, nodes_of(before, name), level)[0] for name in names)
        after_all += sum(cost(seen, nodes_of(after, name), level)[0] for name in names)
    assert after_all < before_all


def under_rules(gang: GangBuilder, chance: Random) -> GangBuilder:
    """The gang with one rule between pods, or none."""
    draw = chance.random()
    if draw < 0.25:
        return gang.apart(chance.choice([HOST, "rack"]))
    if draw < 0.45:
        return gang.near(chance.choice(LEVELS))
    if draw < 0.55:
        return gang.near("zone", peers(group=f"g{chance.randrange(3)}"))
    return gang.even(chance.choice(["zone", "rack"])) if draw < 0.7 else gang


@pytest.mark.parametrize("strategy", ["bestfit", "ilp"])
def test_under_rules_between_pods_no_gang_loses_its_start_to_a_preference(strategy: str) -> None:
    """Where the plan without preferences is proved, the very same members start."""
    for seed in range(60):
        chance = Random(seed)
        nodes = [one.labelled(**{HOST: one.made.name}) for one in cluster(chance)]
        level = chance.choice(LEVELS)
        gangs = [
            under_rules(gang(f"g{i}").of(chance.randint(1, 3), cpu=chance.randint(1, 2)), chance)
            for i in range(3)
        ]
        named = [made.preferring(level) for made in gangs]
        before = planned(snapshot_of(*nodes, NETWORK, *gangs), strategy)
        after = planned(snapshot_of(*nodes, NETWORK, *named), strategy)
        started = [
            {a.uid for placement in one.placements for a in placement.assignments}
            for one in (before, after)
        ]
        assert started[0] <= started[1], seed
        assert not before.proved or started[0] == started[1], seed


def least_splits(rooms: Sequence[int], sizes: Sequence[int]) -> int:
    """The least sum of racks beyond one, over all ways to give gangs room in racks."""
    if not sizes:
        return 0
    needed, rest = sizes[0], sizes[1:]
    ways = (
        taken
        for taken in product(*(range(min(room, needed) + 1) for room in rooms))
        if sum(taken) == needed
    )
    left = {
        tuple(sorted(room - n for room, n in zip(rooms, taken, strict=True))): sum(map(bool, taken))
        for taken in sorted(ways, key=lambda taken: -sum(map(bool, taken)))
    }
    return min(used - 1 + least_splits(after, rest) for after, used in left.items())


def test_gangs_together_are_in_hardly_more_racks_than_in_the_best_plan() -> None:
    """Nothing is proved for several gangs; of these clusters next to all reach the best sum."""
    sums, least = 0, 0
    for seed in range(120):
        chance = Random(seed)
        rooms = [chance.randint(2, 6) for _ in range(3)]
        sizes = [chance.randint(1, 5) for _ in range(5)]
        while sum(sizes) > sum(rooms):
            sizes.pop()
        racks: list[Part] = [n for i, room in enumerate(rooms) for n in rack(f"r{i}", room, cpu=1)]
        gangs = [gang(f"g{i}").of(n, cpu=1).preferring("rack") for i, n in enumerate(sizes)]
        plan = planned(snapshot_of(*racks, NETWORK, *gangs), "spread")
        splits = sum(len(racks_of(plan, f"g{i}")) - 1 for i in range(len(sizes)))
        best = least_splits(rooms, sizes)
        assert splits >= best, seed
        sums, least = sums + splits, least + best
    assert least > 20
    assert sums <= least * 1.05
