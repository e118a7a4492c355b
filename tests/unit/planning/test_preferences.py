"""Wishes choose among equal admissions: better nodes for those who start anyway."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.gang import demand, order
from tutti.model.cluster import Gang, Node, Role, Snapshot
from tutti.model.decisions import Assignment, Plan
from tutti.model.inter_pod import NO_RULES, Requirement, TopologySpread, WeightedAffinityTerm
from tutti.model.keys import Uid
from tutti.model.shapes import NO_PREFERENCES, NodeTerm, Preferences, Shape, Toleration
from tutti.planning import local_search, preferences
from tutti.planning.compile import grids, pod_classes
from tutti.planning.compile.inter_pod import InterPodCompiler
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness import generators
from ...harness.builders import (
    AMPLE_BUDGET,
    NodeBuilder,
    gang,
    labels,
    node,
    peers,
    single,
    snapshot_of,
    term,
)

EVERY = pytest.mark.parametrize("name", ["bestfit", "ilp", "spread", "firstfit"])
SSD = NodeTerm((Requirement("disk", "In", ("ssd",)),))
FAST = Preferences(node_affinity=((SSD, 1),))
NEAR_G = (WeightedAffinityTerm(term("hostname", peers(group="g0")), 1),)
PREFER = "PreferNoSchedule"


def planned(snapshot: Snapshot, name: str = "bestfit") -> Plan:
    made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(snapshot, made) == ()
    return made


def where(plan: Plan) -> dict[str, str]:
    """The node of each pod that got one."""
    return {
        assignment.pod.name: assignment.node
        for placed in plan.placements
        for assignment in placed.assignments
    }


def liking(topology: str, weight: int, **given: str) -> Preferences:
    """A preference to be near such pods, or apart from them."""
    return Preferences(pod_affinity=(WeightedAffinityTerm(term(topology, peers(**given)), weight),))


def evenly(topology: str, **given: str) -> Preferences:
    """A soft spread of such pods."""
    return Preferences(spread=(TopologySpread(labels(**{topology: ""})[0][0], peers(**given), 1),))


def hosts(zones: str, each: int = 1, **amounts: Any) -> Sequence[NodeBuilder]:
    """Nodes ``a0``, ``a1``, … in zones of one letter."""
    found = [(f"{zone}{i}", zone) for zone in zones for i in range(each)]
    return [node(name, **amounts).labelled(zone=z, hostname=name) for name, z in found]


@EVERY
def test_a_preferred_node_is_taken_though_another_would_be_fuller(name: str) -> None:
    tight, fast = node("a", cpu=1), node("b", cpu=9).labelled(disk="ssd")
    gang = single("s", cpu=1)
    if name != "spread":
        assert where(planned(snapshot_of(tight, fast, gang), name)) == {"s": "a"}
    assert where(planned(snapshot_of(tight, fast, gang.shaped(preferences=FAST)), name)) == {
        "s": "b"
    }


@EVERY
def test_a_node_that_would_rather_not_is_avoided_by_who_does_not_tolerate_it(name: str) -> None:
    shy = node("a", cpu=1).tainted("busy", effect=PREFER)
    snapshot = snapshot_of(shy, node("b", cpu=9), single("s", cpu=1))
    assert where(planned(snapshot, name)) == {"s": "b"}
    pass_ = (Toleration("busy", "Exists"),)
    snapshot = snapshot_of(shy, node("b", cpu=9), single("s", cpu=1).shaped(tolerations=pass_))
    assert where(planned(snapshot, "bestfit")) == {"s": "a"}


def test_no_wish_keeps_a_gang_waiting() -> None:
    shy = node("a", cpu=4).tainted("busy", effect=PREFER)
    made = gang("g").of(4, cpu=1).shaped(preferences=liking("hostname", -100, group="g"))
    assert set(where(planned(snapshot_of(shy, made)))) == {"g-0", "g-1", "g-2", "g-3"}


def test_members_who_prefer_to_be_apart_take_a_node_each_as_long_as_there_are_any() -> None:
    made = gang("g").of(4, cpu=1).shaped(preferences=liking("hostname", -1, group="g"))
    found = where(planned(snapshot_of(*hosts("abc", cpu=8), made)))
    assert sorted(Counter(found.values()).values()) == [1, 1, 2]


def test_members_who_prefer_to_be_together_gather_in_the_zone_that_holds_them() -> None:
    made = gang("g").of(4, cpu=2).shaped(preferences=liking("zone", 1, group="g"))
    room = [*hosts("a", 2, cpu=2), *hosts("b", 4, cpu=3)]
    assert {on[0] for on in where(planned(snapshot_of(*room, made))).values()} == {"b"}


def test_members_who_prefer_to_be_even_are_spread_over_the_zones() -> None:
    made = gang("g").of(6, cpu=1).shaped(preferences=evenly("zone", group="g"))
    found = where(planned(snapshot_of(*hosts("abc", 2, cpu=8), made)))
    assert Counter(on[0] for on in found.values()) == {"a": 2, "b": 2, "c": 2}


def test_a_node_in_no_domain_of_a_soft_spread_is_the_last_choice() -> None:
    gang = single("s", cpu=1).labelled(app="x").shaped(preferences=evenly("zone", app="x"))
    snapshot = snapshot_of(node("a", cpu=1), *hosts("b", cpu=8), gang)
    assert where(planned(snapshot)) == {"s": "b0"}
    nowhere = snapshot_of(node("a", cpu=1), node("b", cpu=8), gang)
    assert where(planned(nowhere)) == {"s": "a"}


def test_who_terminates_is_not_spread_and_a_spread_of_everyone_counts_nobody() -> None:
    gang = single("s", cpu=1).labelled(app="x").shaped(preferences=evenly("hostname", app="x"))
    full, room = (host.hosting("r", app="x") for host in hosts("ab", cpu=8))
    leaving = replace(full, others=(replace(full.others[0], terminating=True),))
    assert where(planned(snapshot_of(full, node("z", cpu=9), gang)))["s"] == "a0"
    snapshot = snapshot_of(leaving, *hosts("b", cpu=9), gang)
    assert where(planned(snapshot)) == {"s": "a0"}
    everyone = TopologySpread("kubernetes.io/hostname", replace(peers(), selector=None), 1)
    anyone = gang.shaped(preferences=Preferences(spread=(everyone,)))
    assert where(planned(snapshot_of(full, room.but(name="b0"), anyone)))["s"] == "a0"


def test_pods_that_are_there_draw_others_to_them_and_keep_them_off() -> None:
    tight, roomy = hosts("ab", cpu=8)
    tight = tight.using(cpu=6)
    made = single("s", cpu=1).labelled(app="x")
    about = term("zone", peers(app="x"))
    assert where(planned(snapshot_of(tight, roomy, made))) == {"s": "a0"}
    drawn = roomy.hosting("r", scored_terms=(WeightedAffinityTerm(about, 5),))
    assert where(planned(snapshot_of(tight, drawn, made))) == {"s": "b0"}
    kept_off = tight.hosting("r", scored_terms=(WeightedAffinityTerm(about, -5),))
    assert where(planned(snapshot_of(kept_off, roomy, made))) == {"s": "b0"}
    other = single("s", cpu=1).labelled(app="y")
    assert where(planned(snapshot_of(tight, drawn, other))) == {"s": "a0"}


def test_required_affinity_of_one_member_draws_another() -> None:
    tight, roomy = hosts("ab", cpu=8)
    needs = gang("w").of(1, cpu=1).near("zone", peers(app="x")).bound_on("b0")
    made = single("s", cpu=1).labelled(app="x")
    assert where(planned(snapshot_of(tight.using(cpu=6), roomy, needs, made))) == {"s": "b0"}


def test_two_members_change_places_where_both_together_are_better_off() -> None:
    slow, fast = node("a", cpu=2), node("b", cpu=2).labelled(disk="ssd")
    first = gang("f").of(1, cpu=2)
    # Best fit gives the first gang the first node, and nobody has room to move.
    assert where(planned(snapshot_of(slow, fast, first, gang("g").of(1, cpu=2)))) == {
        "f-0": "a",
        "g-0": "b",
    }
    one, two = first.shaped(preferences=FAST), gang("g").of(1, cpu=2)
    assert where(planned(snapshot_of(slow, fast, one, two))) == {"f-0": "b", "g-0": "a"}
    both = snapshot_of(
        slow, fast, one, two.shaped(preferences=Preferences(node_affinity=((SSD, 50),)))
    )
    assert where(planned(both)) == {"f-0": "a", "g-0": "b"}


@pytest.mark.parametrize("small", [True, False])
def test_nobody_changes_places_with_one_whose_node_is_too_small(small: bool) -> None:  # noqa: FBT001
    slow, fast = node("a", cpu=2), node("b", cpu=3).labelled(disk="ssd")
    wants, large = gang("f").of(1, cpu=1 if small else 2), gang("g").of(1, cpu=3)
    snapshot = snapshot_of(slow, fast, wants.shaped(preferences=FAST), large)
    assert where(planned(snapshot)) == {"f-0": "a", "g-0": "b"}
    turned = snapshot_of(
        slow, fast, gang("f").of(1, cpu=2), large.shaped(preferences=Preferences())
    )
    assert where(planned(turned)) == {"f-0": "a", "g-0": "b"}


def test_nobody_moves_where_a_rule_would_break() -> None:
    fast, *others = hosts("abc", cpu=8)
    room = [fast.labelled(disk="ssd"), *others]
    made = gang("g").of(2, cpu=1).shaped(preferences=FAST)
    assert set(where(planned(snapshot_of(*room, made))).values()) == {"a0"}
    found = where(planned(snapshot_of(*room, made.apart("hostname"))))
    assert len(set(found.values())) == 2
    assert "a0" in found.values()
    together = snapshot_of(*room, made.apart("hostname").near("zone", peers(group="g")))
    assert where(planned(together)) == {}


def test_who_is_needed_by_another_stays_where_it_is_needed() -> None:
    slow, fast = hosts("ab", cpu=2)
    driver = gang("d").of(1, cpu=1).shaped(preferences=FAST)
    stays = single("w", cpu=1).near("zone", peers(group="d"))
    slow = slow.tainted("busy", effect=PREFER)  # which alone outweighs who needs it there
    room = [slow, fast.labelled(disk="ssd").but(allocatable=node("x", cpu=1).made.allocatable)]
    assert where(planned(snapshot_of(*room, driver))) == {"d-0": "b0"}
    found = where(planned(snapshot_of(*room, driver, stays), "firstfit"))
    assert found == {"d-0": "a0", "w": "a0"}


def pieces(snapshot: Snapshot) -> tuple[local_search.MoveContext, list[demand.MemberCounts]]:
    """What a plan hands on once it is settled who starts; nothing of the room is taken yet."""
    found = [demand.count_members(one) for one in order.considered(snapshot.gangs)]
    residents = pod_classes.placed_pods(snapshot)
    index = pod_classes.selector_index(
        snapshot, (member for one in found for member in one.ready), residents
    )
    found = [replace(one, ready=index.classify(one.ready)) for one in found]
    base = grids.grid(snapshot, (member.shape for one in found for member in one.ready))
    base = InterPodCompiler.of(base, index, residents).grid()
    return local_search.MoveContext(snapshot, residents, base, base.free), found


def assigned(plan: Plan) -> dict[Uid, Assignment]:
    """All that a plan assigns."""
    return {
        assignment.uid: assignment
        for placed in plan.placements
        for assignment in placed.assignments
    }


def total(snapshot: Snapshot, plan: Plan) -> int:
    """How well all are off."""
    ground, found = pieces(snapshot)
    seats = preferences.member_places(ground.base, found, assigned(plan))
    return local_search.LocalSearch(ground, seats, preferences.WORK).total()


def test_room_that_is_not_to_be_given_away_is_not_moved_into() -> None:
    snapshot = snapshot_of(
        node("a", cpu=1), node("b", cpu=1).labelled(disk="ssd"), single("s", cpu=1)
    )
    plan = planned(snapshot)
    rather = snapshot_of(
        *(node("a", cpu=1), node("b", cpu=1).labelled(disk="ssd")),
        single("s", cpu=1).shaped(preferences=FAST),
    )
    ground, found = pieces(rather)
    left = ground.room - np.array([[1000, 1], [0, 0]])
    open_to = preferences.improved(replace(ground, room=left), found, assigned(plan))
    assert [one.node for one in open_to.values()] == ["b"]
    held = preferences.improved(
        replace(ground, room=left - np.array([[0, 0], [1000, 1]])), found, assigned(plan)
    )
    assert held == assigned(plan)


def test_little_work_ends_early_and_with_less_nobody_is_looked_at_beside_others() -> None:
    made = gang("g").of(4, cpu=1).shaped(preferences=liking("hostname", -1, group="g"))
    plainly = planned(snapshot_of(*hosts("abc", cpu=8), made.shaped(preferences=NO_PREFERENCES)))
    ground, found = pieces(snapshot_of(*hosts("abc", cpu=8), made))
    left = replace(ground, room=ground.room - np.array([[4000, 4], [0, 0], [0, 0]]))

    def nodes(work: int) -> int:
        better = preferences.improved(left, found, assigned(plainly), work)
        return len({one.node for one in better.values()})

    assert [nodes(work) for work in (11, 12, 10_000)] == [1, 2, 3]


@pytest.mark.parametrize(("terms", "on"), [(1, "b0"), (2, "a0")])
def test_what_somebody_elses_pod_likes_is_work_term_by_term(terms: int, on: str) -> None:
    tight, roomy = hosts("ab", cpu=8)
    own = {f"key-{i}": "v" for i in range(terms)}
    likes = tuple(WeightedAffinityTerm(term("zone", peers(**{key: "v"})), 1) for key in own)
    room = tight.using(cpu=6), roomy.hosting("r", scored_terms=likes)
    snapshot = snapshot_of(*room, single("s", cpu=1).labelled(**own))
    plainly = planned(without_wishes(snapshot))
    ground, found = pieces(snapshot)
    better = preferences.improved(ground, found, assigned(plainly), 4)
    assert [one.node for one in better.values()] == [on]


@pytest.mark.parametrize("work", range(0, 48, 6))
def test_whenever_the_work_ends_nobody_is_worse_off(work: int) -> None:
    fast = [node(f"f{i}", cpu=1).labelled(disk="ssd") for i in range(4)]
    room = [node("a", cpu=1), *fast]
    each = [gang(f"g{i}").of(1, cpu=1).shaped(preferences=FAST) for i in range(5)]
    each[4] = each[4].shaped(
        preferences=Preferences(node_affinity=((SSD, 1),), pod_affinity=NEAR_G)
    )
    snapshot = snapshot_of(*room, *each)
    plainly = plan(without_wishes(snapshot), BestFit(), BestFit(), AMPLE_BUDGET)
    ground, found = pieces(snapshot)
    left = replace(ground, room=np.zeros_like(ground.room))
    better = preferences.improved(left, found, assigned(plainly), work)
    assert better.keys() == assigned(plainly).keys()
    assert len({one.node for one in better.values()}) == 5


def test_gangs_with_the_same_wish_gather_in_one_place() -> None:
    both = [gang(name).of(1, cpu=cpu).labelled(app="x") for name, cpu in (("g", 1), ("h", 2))]
    made = [one.shaped(preferences=liking("zone", 1, app="x")) for one in both]
    room = [*hosts("a", cpu=1), *hosts("b", cpu=4), *hosts("c", cpu=1)]
    assert where(planned(snapshot_of(*room, *both), "firstfit")) == {"g-0": "a0", "h-0": "b0"}
    assert where(planned(snapshot_of(*room, *made), "firstfit")) == {"g-0": "b0", "h-0": "b0"}


def test_where_a_rule_is_broken_already_nobody_moves() -> None:
    fast, other = hosts("ab", cpu=8)
    room = [fast.labelled(disk="ssd"), other]
    made = gang("g").of(2, cpu=1).shaped(preferences=FAST)
    plainly = planned(snapshot_of(other, made))
    ground, found = pieces(snapshot_of(*room, made.apart("hostname")))
    assert preferences.improved(ground, found, assigned(plainly)) == assigned(plainly)


def without_wishes(seen: Snapshot) -> Snapshot:
    """The same with nobody who would rather have anything."""

    def modest(gang: Gang) -> Gang:
        members = (
            replace(m, shape=replace(m.shape, preferences=NO_PREFERENCES)) for m in gang.members
        )
        return replace(gang, members=tuple(members))

    def hard(node: Node) -> Node:
        return replace(node, taints=tuple(taint for taint in node.taints if taint.effect != PREFER))

    return replace(
        seen,
        nodes=tuple(hard(one) for one in seen.nodes),
        gangs=tuple(modest(one) for one in seen.gangs),
        placed_pods=tuple(replace(pod, scored_terms=()) for pod in seen.placed_pods),
    )


@given(st.data(), st.sampled_from(["bestfit", "ilp"]))
def test_the_same_members_start_for_the_same_reasons_and_none_the_worse(
    data: st.DataObject, name: str
) -> None:
    seen = data.draw(generators.snapshots(with_rules=data.draw(st.booleans()), with_wishes=True))
    modest = plan(without_wishes(seen), STRATEGIES[name](), BestFit(), AMPLE_BUDGET)
    made = plan(seen, STRATEGIES[name](), BestFit(), AMPLE_BUDGET)
    assert assigned(made).keys() == assigned(modest).keys()
    assert made.rejections == modest.rejections
    assert (made.levels, made.proved) == (modest.levels, modest.proved)
    if not plan_checks.violations(seen, modest):
        assert plan_checks.violations(seen, made) == ()
    if assigned(made) and not seen.reservations:
        assert total(seen, made) >= total(seen, modest)


@given(st.data())
def test_wishes_are_answered_alike_in_any_order_of_input(data: st.DataObject) -> None:
    seen = data.draw(generators.snapshots(with_rules=True, with_wishes=True))
    mixed = data.draw(generators.shuffled(seen))
    assert plan(mixed, BestFit(), BestFit(), AMPLE_BUDGET) == plan(
        seen, BestFit(), BestFit(), AMPLE_BUDGET
    )


def indifferent(seen: Snapshot) -> Snapshot:
    """The same with members who ask nothing of other pods; pods of others still do."""

    def of(shape: Shape) -> Shape:
        return replace(shape, rules=NO_RULES, preferences=NO_PREFERENCES)

    def role(role: Role) -> Role:
        known = role.template
        made = None if known is None else replace(known, shape=of(known.shape))
        return replace(role, template=made)

    def content(gang: Gang) -> Gang:
        members = tuple(replace(m, shape=of(m.shape)) for m in gang.members)
        return replace(gang, members=members, roles=tuple(map(role, gang.roles)))

    ours = {m.uid for one in seen.gangs for m in one.members}
    residents = (
        replace(pod, anti_affinity=(), scored_terms=()) if pod.uid in ours else pod
        for pod in seen.placed_pods
    )
    gangs = tuple(content(one) for one in seen.gangs)
    return replace(seen, gangs=gangs, placed_pods=tuple(residents))


@given(st.data())
def test_while_no_member_asks_nobody_is_missed_who_asks_nothing_either(data: st.DataObject) -> None:
    """They are not shown then."""
    snapshot = indifferent(data.draw(generators.snapshots(with_rules=True, with_wishes=True)))
    guards = tuple(pod for pod in snapshot.placed_pods if pod.anti_affinity or pod.scored_terms)
    few = replace(snapshot, placed_pods=guards)
    made = plan(few, BestFit(), BestFit(), AMPLE_BUDGET)
    assert made == plan(snapshot, BestFit(), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(few, made) == plan_checks.violations(snapshot, made)
