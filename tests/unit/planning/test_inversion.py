"""No inversion: nobody waits for room that a gang of lower priority was given in the same plan.

Whether a gang would fit is found out here by trying every way to place it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings

from tutti.filters.node_rules import fits_node
from tutti.gang import finding_text
from tutti.model.cluster import Gang, Member, Node, Snapshot
from tutti.model.decisions import Objective, Plan, Policy, Reason, Rejection
from tutti.model.keys import NodeName
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Outcome, Strategy

from ...harness import generators
from ...harness.builders import AMPLE_BUDGET, Canned

BEST_FIT = BestFit()
NOBODY_STARVES = Policy(starvation_seconds=inf)

Rooms = dict[NodeName, Counter[str]]


def on_crowded_clusters(examples: int, holds: Callable[[Snapshot], None]) -> None:
    """Try a property on so many crowded clusters."""

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )
    @given(generators.crowded())
    def tried(snapshot: Snapshot) -> None:
        holds(snapshot)

    tried()


def planned(snapshot: Snapshot, by: Strategy, policy: Policy = NOBODY_STARVES) -> Plan:
    return plan(snapshot, by, BEST_FIT, AMPLE_BUDGET, policy)


def passed_over(snapshot: Snapshot, plan: Plan) -> list[Rejection]:
    """The gangs that wait although they would fit, were all that comes after them left out."""
    gangs = {gang.key: gang for gang in snapshot.gangs}
    waiting = [rejection for rejection in plan.rejections if not is_started(gangs[rejection.gang])]
    return [
        one
        for one in waiting
        if "held for gang" not in finding_text.sentence(one)
        and fits(snapshot.nodes, gangs[one.gang], rooms(snapshot, plan, gangs[one.gang]))
    ]


def is_started(gang: Gang) -> bool:
    return any(member.node for member in gang.members)


def rooms(snapshot: Snapshot, plan: Plan, before: Gang) -> Rooms:
    """The room beside what the plan gives to gangs of its own and higher priorities."""
    gangs = {gang.key: gang for gang in snapshot.gangs}
    left = {
        node.name: Counter(dict((node.allocatable - node.used).amounts)) for node in snapshot.nodes
    }
    for placement in plan.placements:
        gang = gangs[placement.gang]
        members = {member.uid: member for member in gang.members}
        for assignment in placement.assignments:
            if gang.priority >= before.priority:
                left[assignment.node].subtract(asked(members[assignment.uid]))
    return left


def asked(member: Member) -> Counter[str]:
    return Counter({**dict(member.shape.requests.amounts), "pods": 1})


def fits(nodes: Sequence[Node], gang: Gang, left: Rooms) -> bool:
    """Whether some way to place enough of its members exists."""

    def placeable(members: Sequence[Member], missing: int) -> bool:
        if missing <= 0 or len(members) < missing:
            return missing <= 0
        first, *others = members
        if placeable(others, missing):
            return True
        for node in nodes:
            room, needs = left[node.name], asked(first)
            if fits_node(first.shape, node) is None and all(room[r] >= n for r, n in needs.items()):
                room.subtract(needs)
                found = placeable(others, missing - 1)
                room.update(needs)
                if found:
                    return True
        return False

    return placeable(gang.members, gang.min_member)


def test_in_a_proved_plan_nobody_is_passed_over() -> None:
    exact = STRATEGIES["ilp"]()

    def holds(snapshot: Snapshot) -> None:
        plan = planned(snapshot, exact)
        assert plan.proved
        assert passed_over(snapshot, plan) == []

    on_crowded_clusters(150, holds)


def test_who_is_held_back_for_a_starved_gang_is_the_only_one_passed_over() -> None:
    exact = STRATEGIES["ilp"]()

    def holds(snapshot: Snapshot) -> None:
        assert passed_over(snapshot, planned(snapshot, exact, Policy())) == []

    on_crowded_clusters(40, holds)


@pytest.mark.parametrize("policy", [NOBODY_STARVES, Policy()], ids=["patient", "starving"])
def test_where_a_proof_is_missing_whoever_might_be_passed_over_is_told_so(policy: Policy) -> None:
    spent = Canned(Outcome.BUDGET_EXHAUSTED)

    def holds(snapshot: Snapshot) -> None:
        plan = planned(snapshot, spent, policy)
        reasons = {one.reason for one in passed_over(snapshot, plan)}
        assert reasons <= {Reason.BUDGET_EXHAUSTED}

    on_crowded_clusters(100, holds)


@pytest.mark.parametrize("name", ["bestfit", "ilp"])
def test_what_a_gang_gets_does_not_depend_on_lower_priorities(name: str) -> None:
    """Whoever is left out has too few members, so that the same shapes are looked at."""
    strategy = STRATEGIES[name]()
    counting = Policy(Objective.GANGS, starvation_seconds=inf)

    def holds(snapshot: Snapshot) -> None:
        plan = planned(snapshot, strategy, counting)
        for least in (1, 2):
            gangs = tuple(
                gang if gang.priority >= least or is_started(gang) else replace(gang, min_member=99)
                for gang in snapshot.gangs
            )
            alone = planned(replace(snapshot, gangs=gangs), strategy, counting)
            assert started(snapshot, alone, least) == started(snapshot, plan, least)

    on_crowded_clusters(60 if name == "bestfit" else 25, holds)


def started(snapshot: Snapshot, plan: Plan, least: int) -> Counter[int]:
    """How many gangs of these priorities and above are started, by priority."""
    gangs = {gang.key: gang for gang in snapshot.gangs}
    found: Counter[int] = Counter()
    for placement in plan.placements:
        gang = gangs[placement.gang]
        if gang.priority >= least and not is_started(gang):
            found[gang.priority] += 1
    return found
