"""A sample of the attack, what earlier statements do, and that it shares no code with the project.

All of it: ``python -m tests.conformance.preemption``.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tutti.planning.queueing import victims

from . import attacks, crowded, events, planner, plans, program, rules
from .plans import State
from .rules import RULES, Extra, Job, Team, World

if TYPE_CHECKING:
    from tutti.model.decisions import Claim

SAMPLE, PART = 120, 30
SPEAKS_TO_THE_PROJECT = {"planner.py"}
FREE = (None,)  # no limit


def running(name: str, team: str, size: int, priority: int = 0, *, start: int = 1) -> Job:
    return Job(name, team, priority, size, (1,), start=start, nodes=(0,) * size)


def waiting(name: str, team: str, size: int, priority: int = 0) -> Job:
    return Job(name, team, priority, size, (1,), since=2)


def state(teams: dict[str, Team], room: int, *jobs: Job) -> State:
    return State(World(teams, ((room,),)), jobs, now=5)


def ended(before: State, rule: rules.Rules = RULES) -> set[rules.Item]:
    made = plans.plan(before, Random(1), rule)
    return {item for end in made.ended for item in end.victims}


@pytest.mark.parametrize("first", range(1, SAMPLE + 1, PART))
def test_what_the_page_claims_holds_in_histories(first: int) -> None:
    for seed in range(first, first + PART):
        assert attacks.history(seed).breaches == [], seed


def test_whole_plans_with_claims_are_lawful_and_leave_claims_their_room() -> None:
    for seed in range(1, 19):
        for before in attacks.history(seed).states:
            assert [*planner.faults_of_plans(before)] == [], (seed, before.now)


@pytest.mark.parametrize(
    ("rule", "seed"),
    [
        ("counted", 125),
        ("spares_own", 8),
        ("strips_nobody", 130),
        ("own_queue_only", 45),
        ("spares_young", 33),
    ],
)
def test_the_attack_finds_a_rule_that_is_off(rule: str, seed: int) -> None:
    assert attacks.history(seed, replace(RULES, **{rule: False})).breaches


def test_tutti_claims_what_the_enumeration_claims() -> None:
    claims: list[Claim] = []
    for seed in range(1, SAMPLE + 1):
        for before in attacks.history(seed).states:
            claimed = planner.claim(before)
            assert [*planner.differences(before, claimed)] == [], seed
            claims += claimed.claims
    assert sum(bool(claim.victims) for claim in claims) > SAMPLE / 2
    assert all(claim.is_proved for claim in claims)


def test_what_counting_proves_costs_what_the_enumeration_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(victims.cheapest, "__defaults__", ((), 1))  # sets by cost
    claims: list[Claim] = []
    for seed in range(1, SAMPLE + 1):
        for before in attacks.history(seed).states:
            claimed = planner.claim(before)
            assert [*planner.differences(before, claimed)] == [], seed
            claims += (claim for claim in claimed.claims if claim.victims)
    proved = sum(claim.is_proved for claim in claims)
    assert len(claims) / 2 < proved < len(claims)


def test_an_extra_of_its_own_queue_makes_way_for_a_minimum_of_the_same_priority() -> None:
    teams = {"a": Team("root", (3,), FREE)}
    elastic = replace(running("old", "a", 2), wishes=1, extras=(Extra(1, 0, 2),))
    before = state(teams, 3, elastic, waiting("new", "a", 1))
    assert ended(before) == {("old", 1)}
    assert ended(before, replace(RULES, extras_first=False)) == set()


def test_who_borrows_is_asked_once_the_claimant_is_counted() -> None:
    teams = {
        "p": Team("root", (4,), FREE),
        "a": Team("p", FREE, FREE),
        "b": Team("p", FREE, FREE),
    }
    before = state(teams, 4, running("old", "a", 4), waiting("new", "b", 4, 1))
    assert ended(before) == {("old", 0)}
    assert ended(before, replace(RULES, counted=False)) == set()


def test_a_gang_that_would_take_the_cover_of_starts_of_this_plan_ends_nobody() -> None:
    teams = {
        "p": Team("root", (4,), FREE),
        "a": Team("p", FREE, FREE, rules.RECLAIM),
        "b": Team("p", FREE, FREE),
    }
    starts = [running(name, "b", 2, start=5) for name in ("b1", "b2")]
    before = state(teams, 8, running("old", "root", 4), *starts, waiting("a1", "a", 4))
    assert ended(before) == set()
    assert ended(before, replace(RULES, rises=False)) == {("old", 0)}


def test_a_pod_without_a_pod_group_counts_from_its_start_and_not_from_its_creation() -> None:
    teams = {"p": Team("root", (4,), FREE), "a": Team("p", FREE, FREE), "b": Team("p", FREE, FREE)}
    pod = Job("pod", "a", 0, 1, (4,), single=True, since=0)
    before = state(teams, 4, running("b1", "b", 2), running("b2", "b", 2), pod)
    assert rules.cover(before.world, [*before.running, pod], 5).keys() == {("b1", 0), ("b2", 0)}
    assert planner.claim(before).claims == ()


def test_a_protected_gang_keeps_the_cover_of_its_queue_so_that_others_can_be_ended() -> None:
    teams = {"a": Team("root", (4,), FREE), "b": Team("root", (4,), FREE)}
    old = replace(running("old", "a", 4), protected=True)
    before = state(teams, 8, old, running("above", "a", 4, 9, start=2), waiting("new", "b", 4))
    assert ended(before) == {("above", 0)}
    assert ended(before, replace(RULES, protected_first=False)) == set()


def test_a_protected_gang_does_not_borrow() -> None:
    teams = {"a": Team("root", (2,), FREE)}
    before = state(teams, 4, replace(waiting("new", "a", 4), protected=True))
    assert plans.plan(before, Random(1)).state.running == []
    lax = replace(RULES, protected_covered=False)
    assert [job.name for job in plans.plan(before, Random(1), lax).state.running] == ["new"]


def test_a_gang_that_a_budget_would_leave_as_half_a_gang_does_not_borrow() -> None:
    teams = {"a": Team("root", (2,), FREE)}
    gang = replace(waiting("new", "a", 4), budgets=("x",))
    for most, starts in ((3, False), (4, True)):
        world = World(teams, ((4,),), budgets={"x": most})
        new = replace(gang, protected=rules.is_protected(world, gang))
        assert new.protected is not starts
        after = plans.plan(State(world, (new,), now=5), Random(1)).state
        assert [job.name for job in after.running] == ["new"] * starts


def test_a_gang_whose_job_would_fail_by_its_end_does_not_borrow() -> None:
    teams = {"a": Team("root", (2,), FREE)}
    for left, starts in ((None, True), (0, False), (4, False), (5, True)):
        new = replace(waiting("new", "a", 4), failures_left=left)
        world = World(teams, ((4,),))
        new = replace(new, protected=rules.is_protected(world, new))
        before = State(world, (new,), now=5)
        after = plans.plan(before, Random(1)).state
        assert [job.name for job in after.running] == ["new"] * starts
        assert [*planner.faults_of_plans(before)] == []
        assert bool(planner.starts(before)) is starts


def test_evictions_of_a_job_count_as_its_failures() -> None:
    teams = {"a": Team("root", (4,), FREE), "b": Team("root", (0,), FREE)}
    old = replace(running("old", "b", 4), failures_left=7)
    before = state(teams, 4, old, waiting("new", "a", 4))
    after = plans.plan(before, Random(1)).state
    assert [(job.failures_left, job.protected) for job in after.jobs] == [(3, True), (None, False)]


def test_a_gang_that_takes_longer_to_end_than_its_queue_admits_is_protected() -> None:
    team = Team("root", (2,), FREE, most_grace=30)
    world = World({"a": team, "b": replace(team, most_grace=None)}, ((4,),))
    for name, grace, protected in (("a", 30, False), ("a", 31, True), ("b", 31, False)):
        gang = replace(waiting("new", name, 4), grace=grace)
        assert rules.is_protected(world, gang) is protected
        assert not rules.is_protected(replace(world, teams={}), replace(gang, team="root"))


@pytest.mark.parametrize(("most", "victims"), [(4, {("y", 0)}), (1, {("z", 0)}), (5, {("y", 0)})])
def test_of_victims_that_share_a_budget_those_that_cost_least_end(
    most: int, victims: set[rules.Item]
) -> None:
    teams = {"a": Team("root", (4,), FREE), "b": Team("root", (0,), FREE)}
    dear, cheap = (
        replace(running(name, "b", 4, start=start), budgets=("x",), nodes=(node,) * 4)
        for name, start, node in (("dear", 1, 0), ("y", 4, 1))
    )
    other = replace(running("z", "b", 4, start=2), nodes=(2,) * 4)
    world = World(teams, ((4,), (4,), (4,)), budgets={"x": most})
    before = State(world, (dear, cheap, other, waiting("new", "a", 4)), now=5).with_budgets()
    assert ended(before) == victims
    claimed = planner.claim(before)
    assert [*planner.differences(before, claimed)] == []
    assert [planner.victims(before, claim) for claim in claimed.claims] == [victims]


def test_a_gang_of_a_lost_node_waits_and_others_keep_their_nodes() -> None:
    lost = replace(running("lost", "root", 2), nodes=(0, 1), extras=(Extra(1, 2, 2),))
    kept = replace(running("kept", "root", 2), nodes=(0, 2), extras=(Extra(1, 1, 2),))
    world = World({}, ((4,), (5,), (6,)))
    after = events.without_node(State(world, (lost, kept), now=5), 1)
    assert after.world.nodes == ((4,), (6,))
    assert after.waiting == [replace(lost, start=None, nodes=(), extras=())]
    assert after.running == [replace(kept, nodes=(0, 1), extras=())]


@pytest.mark.parametrize(("now", "victims"), [(20, set()), (21, {("old", 0)})])
def test_a_gang_is_no_victim_within_the_minimum_run_time_of_its_queue(
    now: int, victims: set[rules.Item]
) -> None:
    teams = {"a": Team("root", (4,), FREE), "b": Team("root", (0,), FREE, least_run=20)}
    world = World(teams, ((4,),))
    before = State(world, (running("old", "b", 4), waiting("new", "a", 4)), now=now)
    assert ended(before) == victims
    assert [planner.victims(before, claim) for claim in planner.claim(before).claims] == (
        [victims] if victims else []
    )


@pytest.mark.parametrize(("now", "first"), [(101, "high"), (102, "low")])
def test_a_starved_gang_claims_before_gangs_of_a_higher_priority(now: int, first: str) -> None:
    teams = {"a": Team("root", (4,), FREE), "b": Team("root", (0,), FREE)}
    low, high = waiting("low", "a", 4), replace(waiting("high", "a", 4, 9), since=3)
    before = State(World(teams, ((4,),)), (running("old", "b", 4), low, high), now=now)
    assert [end.claimant for end in plans.plan(before, Random(1)).ended] == [first]


def test_a_protected_pod_takes_no_cover_of_a_protected_gang_that_this_plan_starts() -> None:
    teams = {"p": Team("root", (8,), FREE), "a": Team("p", (2,), FREE)}
    gang = replace(running("old", "a", 1, start=5), protected=True)
    pod = Job("new", "a", 0, 1, (2,), never=True, protected=True, single=True, since=0)
    before = state(teams, 4, gang, running("other", "root", 3), pod)
    assert rules.cover(before.world, [*before.running, pod], 5)["old", 0] == "p"
    assert ended(before) == set()
    assert planner.claim(before).claims == ()
    assert ended(before.with_job(replace(pod, never=False, protected=False))) == {("other", 0)}


def test_a_program_costs_victims_as_the_enumeration_does() -> None:
    asked = 0
    for seed in range(1, 19):
        for before in attacks.history(seed).states:
            for job in before.waiting:
                right = rules.claim(before.world, before.running, job, before.now)
                if right is not None:
                    asked += 1
                    least = plans.least_cost(before, job, right)
                    assert program.least_cost(before, job, right) == least, (seed, job.name)
    assert asked > 50


def test_claims_in_crowded_clusters_cost_what_a_program_says() -> None:
    claims = 0
    for seed in range(1, 41):
        before = crowded.state(seed)
        claimed = planner.claim(before)
        claims += sum(bool(claim.victims) for claim in claimed.claims)
        assert [*planner.differences(before, claimed, program.least_cost)] == [], seed
    assert claims > 10


def test_a_claim_that_costs_too_much_is_noticed() -> None:
    before = crowded.state(11)
    claimed = planner.claim(before)
    assert claimed.claims[0].victims
    told = [*planner.differences(before, claimed, lambda *_: (Fraction(0), 0, 0))]
    assert any("suffices" in line for line in told)


def test_it_shares_no_code_with_what_it_attacks() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        if path.name in SPEAKS_TO_THE_PROJECT or path.name == Path(__file__).name:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "tutti" for name in names), path.name
