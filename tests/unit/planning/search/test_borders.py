"""Nobody waits who would fit if those above it, whom a round of their own placed, were elsewhere.

Further members of a gang, and those that replace lost ones, are placed by rounds of their own. What
is checked here by brute force: a plan that is called proved is the best one in which the same of
them have nodes, nobody waits who fits beside it, and explanations agree with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.filters.node_rules import fits_node
from tutti.model.cluster import Gang, Member, Snapshot
from tutti.model.decisions import Objective, Plan, Policy, Reason
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.shapes import NodeTerm, Preferences
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Solution
from tutti.verify import plan_checks
from tutti.whatif import Planner, advise_all
from tutti.whatif.results import Certainty

from ....harness.builders import (
    AMPLE_BUDGET,
    Canned,
    GangBuilder,
    NodeBuilder,
    gang,
    node,
    peers,
    single,
    snapshot_of,
)

BEST_FIT, ILP = BestFit(), STRATEGIES["ilp"]()
GANGS = Policy(Objective.GANGS)
SSD = NodeTerm((Requirement("disk", "In", ("ssd",)),))
SHY = "PreferNoSchedule"


def planned(snapshot: Snapshot, policy: Policy = GANGS) -> Plan:
    made = plan(snapshot, ILP, BEST_FIT, AMPLE_BUDGET, policy)
    assert plan_checks.violations(snapshot, made) == ()
    return made


def where(plan: Plan) -> dict[str, str]:
    """The node of each pod that got one."""
    return {
        assignment.pod.name: assignment.node
        for placed in plan.placements
        for assignment in placed.assignments
    }


def on_ssd(gang: GangBuilder) -> GangBuilder:
    return gang.shaped(node_selector=(("disk", "ssd"),))


def broken(on: str) -> GangBuilder:
    """A gang that has lost one of its two members; the one that waits asks for one CPU."""
    return gang("broken").of(1, cpu=0).bound_on(on).of(1, cpu=1).needing(2)


TIGHT = node("a", cpu=1).labelled(disk="ssd")
WIDE = node("b", cpu=2)
WAITS = on_ssd(single("waits", cpu=1))
# Each of its members has room on the only node that they may run on, and not both.
TWO_KINDS = on_ssd(gang("large").of(1, cpu=1).of(1, cpu=1, memory=0.5))


@pytest.mark.parametrize("tight", [TIGHT, TIGHT.tainted("old", effect=SHY)])
def test_a_replacement_leaves_the_only_node_of_a_gang_to_it(tight: NodeBuilder) -> None:
    plan = planned(snapshot_of(tight, WIDE, broken("b"), WAITS))
    assert where(plan) == {"broken-1": "b", "waits": "a"}
    assert plan.proved
    assert plan.rejections == ()


@pytest.mark.parametrize("tight", [TIGHT, TIGHT.tainted("old", effect=SHY)])
def test_a_further_member_leaves_the_only_node_of_a_gang_to_it(tight: NodeBuilder) -> None:
    grows = gang("grows").of(2, cpu=1).needing(1).priority(10)
    plan = planned(snapshot_of(tight, WIDE, grows, WAITS))
    assert where(plan) == {"grows-0": "b", "grows-1": "b", "waits": "a"}
    assert plan.proved


def test_a_further_member_of_a_started_gang_leaves_the_only_node_of_a_gang_to_it() -> None:
    grown = gang("grown").of(1, cpu=0).bound_on("b").of(1, cpu=1).needing(1).priority(10)
    plan = planned(snapshot_of(TIGHT, WIDE, grown, WAITS))
    assert where(plan) == {"grown-1": "b", "waits": "a"}
    assert plan.proved


def test_who_was_decided_above_stays_where_nobody_else_would_start() -> None:
    """The same plan as without those who wait: the search of the border changes nothing."""
    alone = planned(snapshot_of(TIGHT, WIDE, broken("b")))
    plan = planned(snapshot_of(TIGHT, WIDE, broken("b"), TWO_KINDS))
    assert where(alone) == where(plan) == {"broken-1": "a"}
    assert plan.proved


def test_equal_gangs_above_a_border_are_exchanged_for_who_comes_below() -> None:
    """Either of two may start, and only beside the younger one is room for a third."""
    room = node("a", cpu=2).labelled(disk="ssd"), node("b", cpu=2)
    old, young = (
        on_ssd(single(name, cpu=n)).priority(10) for name, n in (("old", 2), ("young", 1))
    )
    young = young.but(created=1.0)
    grows = gang("grows").of(2, cpu=1).needing(1).priority(10)
    plan = planned(snapshot_of(*room, old, grows, WAITS))
    assert where(plan) == {"old": "a", "grows-0": "b", "grows-1": "b"}
    assert plan.proved
    plan = planned(snapshot_of(*room, old, young, grows, WAITS))
    assert where(plan) == {"young": "a", "waits": "a", "grows-0": "b", "grows-1": "b"}
    assert plan.proved


def test_who_fits_once_members_have_moved_joins_them() -> None:
    """The first member takes the SSD and leaves it for a node that shuns nobody."""
    grows = gang("grows").of(1, cpu=1).of(1, cpu=1, memory=0.5).needing(1)
    asks = grows.members[1].shape
    grows = grows.only("grows-1", shape=replace(asks, node_selector=(("disk", "ssd"),)))
    shy = TIGHT.but(allocatable=node("a", cpu=1, memory=1).made.allocatable)
    plan = planned(snapshot_of(shy.tainted("old", effect=SHY), node("b", cpu=1, memory=1), grows))
    assert where(plan) == {"grows-0": "b", "grows-1": "a"}
    assert plan.proved
    assert [(level.admitted, level.bound) for level in plan.levels] == [(1, 1)]


def test_a_further_member_joins_once_a_border_has_made_room_for_it() -> None:
    """The pod that waits takes a place of the gang's first member, which has another one then."""
    wide, ssd = node("a", cpu=4, memory=1), node("b", cpu=2, memory=1).labelled(disk="ssd")
    grows = gang("grows").of(1, cpu=1).of(1, cpu=1, memory=0.5).needing(1).priority(10)
    asks = grows.members[1].shape
    grows = grows.only("grows-1", shape=replace(asks, node_selector=(("disk", "ssd"),)))
    beside = single("beside", cpu=1).priority(10)
    plan = planned(snapshot_of(wide, ssd, beside, grows, WAITS))
    assert where(plan) == {"beside": "a", "grows-0": "a", "grows-1": "b", "waits": "b"}
    assert plan.proved


def follower(name: str, cpu: int) -> GangBuilder:
    """A gang that has started, and one more of it that has to be where a leader is."""
    one = gang(name).of(1, cpu=0).bound_on("b").of(1, cpu=cpu).needing(1).priority(10)
    rules = one.near("hostname", peers(app="leader")).members[1].shape
    return one.only(f"{name}-1", shape=rules)


HOSTS = [node(name, cpu=3, memory=4).labelled(hostname=name, disk="ssd") for name in "ab"]
LEADER = single("leader", cpu=1).labelled(app="leader")


def test_a_further_member_follows_a_gang_of_a_lower_priority() -> None:
    plan = planned(snapshot_of(*HOSTS, follower("follows", 1), LEADER))
    assert where(plan)["follows-1"] == where(plan)["leader"]
    assert plan.proved


def test_who_follows_at_last_takes_the_proof_away_where_others_wait() -> None:
    """It might have let others start, by rules between pods."""
    rest = gang("rest").of(1, cpu=3).of(1, cpu=3, memory=0.5)
    plan = planned(snapshot_of(*HOSTS, follower("follows", 1), LEADER, WAITS, rest))
    assert set(where(plan)) == {"follows-1", "leader", "waits"}
    assert not plan.proved


def test_another_kind_of_member_replaces_a_lost_one_beside_the_first() -> None:
    """The older is placed first, and goes elsewhere for the sake of the younger."""
    one = gang("broken").of(1, cpu=0).bound_on("b").of(2, cpu=1).needing(3)
    picky = one.of(1, cpu=1, memory=0.5).members[-1]
    asks = replace(picky.shape, node_selector=(("disk", "ssd"),))
    one = replace(one, members=(*one.members, replace(picky, shape=asks)))
    room = node("a", cpu=1, memory=1).labelled(disk="ssd"), node("b", cpu=1, memory=1)
    plan = planned(snapshot_of(*room, one))
    assert len(where(plan)) == 2
    narrow = node("a", cpu=1, memory=1).labelled(disk="ssd"), node("b", cpu=0, memory=1)
    plan = planned(snapshot_of(*narrow, one))
    assert where(plan) == {"broken-1": "a"}
    assert plan.proved
    wide = gang("broken").of(1, cpu=0).bound_on("b").of(1, cpu=1).of(1, cpu=2).needing(3)
    wide = replace(wide, members=(*wide.members, replace(picky, shape=asks)))
    plan = planned(snapshot_of(*room, wide))
    assert where(plan) == {"broken-1": "b", "broken-3": "a"}
    assert plan.proved


class Unsure:
    """Exact but for programs of more than so many demands: there it has no proof."""

    name = "unsure"

    def __init__(self, most: int, outcome: Outcome = Outcome.BUDGET_EXHAUSTED) -> None:
        self.most, self.outcome = most, outcome

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as the program does, or as best fit does and unproved."""
        if len(problem.demands) <= self.most:
            return ILP.solve(problem, budget)
        return Canned(self.outcome, "too large").solve(problem, budget)


@pytest.mark.parametrize("outcome", [Outcome.BUDGET_EXHAUSTED, Outcome.FAILED, Outcome.HEURISTIC])
def test_nothing_is_proved_across_a_border_that_was_not_searched(outcome: Outcome) -> None:
    counted = on_ssd(gang("counted").of(2, cpu=1))
    snapshot = snapshot_of(TIGHT, WIDE, broken("b"), counted, single("small", cpu=1))
    made = plan(snapshot, Unsure(2, outcome), BEST_FIT, AMPLE_BUDGET, GANGS)
    assert where(made) == {"broken-1": "a", "small": "b"}
    assert made.proved
    snapshot = snapshot_of(TIGHT, node("b", cpu=1), broken("b"), WAITS, single("v", cpu=1))
    made = plan(snapshot, Unsure(2, outcome), BEST_FIT, AMPLE_BUDGET, GANGS)
    assert len(where(made)) == 2
    assert not made.proved
    assert [level.bound for level in made.levels] == [None]
    is_promised = outcome is not Outcome.HEURISTIC
    reason = Reason.BUDGET_EXHAUSTED if is_promised else Reason.NOT_ENOUGH_ROOM
    assert [rejection.reason for rejection in made.rejections] == [reason]


class Counting:
    """The program, and how many demands it was asked about each time."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as the program does."""
        self.asked.append(len(problem.demands))
        return ILP.solve(problem, budget)


def test_a_border_is_searched_only_where_somebody_above_it_may_be_in_the_way() -> None:
    plain = [single(f"s{n}", cpu=1).priority(n) for n in range(4)]
    counting = Counting()
    plan(snapshot_of(node("a", cpu=2), *plain), counting, BEST_FIT, AMPLE_BUDGET)
    assert counting.asked == [4]
    counting = Counting()
    plan(snapshot_of(TIGHT, WIDE, broken("b"), WAITS), counting, BEST_FIT, AMPLE_BUDGET)
    assert counting.asked == [1, 2]
    counting = Counting()
    large = on_ssd(gang("large").of(2, cpu=1))
    plan(snapshot_of(TIGHT, WIDE, broken("b"), large), counting, BEST_FIT, AMPLE_BUDGET)
    assert counting.asked == [1]


def free_room(snapshot: Snapshot, beside: Mapping[Uid, NodeName]) -> list[list[int]]:
    """Of each node what is free of cpu, memory and pods, with these on their nodes."""
    members = [member for gang in snapshot.gangs for member in gang.members]
    room = []
    for one in snapshot.nodes:
        used = [m.shape.requests for m in members if beside.get(m.uid) == one.name]
        room.append(
            [
                one.allocatable[name] - one.used[name] - sum(each[name] for each in used)
                for name in ("cpu", "memory", "pods")
            ]
        )
    return room


def fit(snapshot: Snapshot, members: Sequence[Member], room: list[list[int]]) -> bool:
    """Whether all of these find a node, whatever way it takes."""
    if not members:
        return True
    first, *others = members
    asks = [first.shape.requests[name] for name in ("cpu", "memory")] + [1]
    known = set()
    for left, on in zip(room, snapshot.nodes, strict=True):
        alike = (*left, on.labels)  # others may ask for a label
        if alike in known or fits_node(first.shape, on) is not None:
            continue
        known.add(alike)
        if all(n <= has for n, has in zip(asks, left, strict=True)):
            left[:] = [has - n for n, has in zip(asks, left, strict=True)]
            does = fit(snapshot, others, room)
            left[:] = [has + n for n, has in zip(asks, left, strict=True)]
            if does:
                return True
    return False


def waiting(gang: Gang) -> list[Member]:
    return [member for member in gang.members if member.node is None]


def has_started(gang: Gang) -> bool:
    return any(member.node is not None for member in gang.members)


def best(snapshot: Snapshot, plan: Plan) -> list[int]:
    """The most gangs that start, priority by priority, with the same who join or replace others."""
    placed = {assignment.uid for p in plan.placements for assignment in p.assignments}
    staying: list[Member] = []
    growing, free = [], []
    for one in snapshot.gangs:
        own = [member for member in one.members if member.uid in placed]
        if has_started(one) or len(own) > one.min_member:
            staying += own
            growing += [] if has_started(one) else [one]
        elif len(waiting(one)) >= one.min_member:
            free.append(one)
    found = []
    for choice in (some for n in range(len(free) + 1) for some in combinations(free, n)):
        ways = product(*(combinations(waiting(one), one.min_member) for one in choice))
        whole = [[*staying, *(m for some in way for m in some)] for way in ways]
        if any(fit(snapshot, members, free_room(snapshot, {})) for members in whole):
            found.append(worth(snapshot, [*growing, *choice]))
    return max(found)


def worth(snapshot: Snapshot, started: Iterable[Gang]) -> list[int]:
    priorities = sorted({gang.priority for gang in snapshot.gangs}, reverse=True)
    counts = [one.priority for one in started]
    return [counts.count(priority) for priority in priorities]


def admitted(snapshot: Snapshot, plan: Plan) -> list[int]:
    given = {placement.gang for placement in plan.placements}
    return worth(snapshot, (g for g in snapshot.gangs if g.key in given and not has_started(g)))


def left_out(snapshot: Snapshot, plan: Plan) -> Iterator[Sequence[Member]]:
    """Who waits and fits beside the plan: whole gangs, and members of others one by one."""
    nodes = {
        assignment.uid: assignment.node for p in plan.placements for assignment in p.assignments
    }
    room = free_room(snapshot, nodes)
    for one in snapshot.gangs:
        others = [member for member in waiting(one) if member.uid not in nodes]
        starts = has_started(one) or len(others) < len(waiting(one))
        for some in combinations(others, 1 if starts else one.min_member):
            if fit(snapshot, some, room):
                yield some


@st.composite
def crossings(draw: st.DrawFn) -> Snapshot:
    """Little room, some of it shunned; gangs that lost members, that may grow, and plain ones."""
    room = []
    for name in "abc"[: draw(st.integers(2, 3))]:
        made = node(name, cpu=draw(st.integers(1, 4)), memory=draw(st.integers(1, 4)))
        made = made.labelled(disk="ssd") if draw(st.booleans()) else made
        room.append(made.tainted("old", effect=SHY) if draw(st.booleans()) else made)
    names = [one.made.name for one in room]
    found = []
    for n in range(draw(st.integers(2, 4))):
        one, is_broken = gang(f"g{n}"), draw(st.integers(0, 2)) == 0
        if is_broken:
            there = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))
            one = one.of(len(there), cpu=0).bound_on(*there)
        bound = len(one.members)
        for _ in range(draw(st.integers(1, 2))):
            cpu, memory = draw(st.integers(0, 2)), draw(st.integers(0, 2))
            one = one.of(draw(st.integers(1, 2)), cpu=cpu, memory=memory)
        one = one.needing(draw(st.integers(1, len(one.members) - bound)) + bound * is_broken)
        if draw(st.booleans()):
            one = one.where(picky if draw(st.booleans()) else choosy)
        found.append(one.priority(draw(st.integers(0, 1))))
    return snapshot_of(*room, *found)


def picky(member: Member) -> Member:
    """One that runs on an SSD or not at all."""
    return _asking(member, node_selector=(("disk", "ssd"),))


def choosy(member: Member) -> Member:
    """One that would rather have an SSD."""
    return _asking(member, preferences=Preferences(((SSD, 1),)))


def _asking(member: Member, **asks: object) -> Member:
    shape = replace(member.shape, **asks)  # type: ignore[arg-type]
    return member if member.node is not None else replace(member, shape=shape)


@given(crossings())
def test_a_plan_that_is_called_proved_is_the_best(seen: Snapshot) -> None:
    plan = planned(seen)
    if plan.proved:
        assert admitted(seen, plan) == best(seen, plan)
    assert admitted(seen, plan) <= best(seen, plan)


@given(crossings(), st.sampled_from(["bestfit", "ilp"]))
def test_nobody_waits_who_fits_beside_the_plan(seen: Snapshot, name: str) -> None:
    made = plan(seen, STRATEGIES[name](), BEST_FIT, AMPLE_BUDGET, GANGS)
    assert plan_checks.violations(seen, made) == ()
    assert list(left_out(seen, made)) == []


@given(crossings())
def test_explanations_know_of_no_room_for_who_waits(seen: Snapshot) -> None:
    planner = Planner(ILP, BEST_FIT, AMPLE_BUDGET, GANGS)
    made = planner.plan(seen)
    for advice in advise_all(seen, made, planner):
        known = advice.diagnosis
        if known is not None and known.beside.certainty is Certainty.PROVED:
            assert known.beside.members < advice.needed, advice
