"""A sample of the attack, and that it shares no code with what it attacks.

All of it: ``python -m tests.conformance.queues``.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import attacks, charges, comparing, histories, instances, planner, plans, running
from .reference import Job, Team, World

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE, PART = 200, 50
PROVED = {"ilp": 0.95, "bestfit": 0.5}  # of the sample, at least
SPEAKS_TO_THE_PROJECT = {"comparing.py", "planner.py", "running.py"}


@pytest.mark.parametrize("draw", [instances.world, instances.siblings])
@pytest.mark.parametrize("first", range(1, SAMPLE + 1, PART))
def test_what_the_page_claims_holds_on_small_clusters(
    first: int, draw: Callable[[int], World]
) -> None:
    for seed in range(first, first + PART):
        world = draw(seed)
        answer = plans.plan(world)
        assert [*attacks.breaches(world, answer)] == [], seed
        assert [*comparing.differences(world, answer)] == [], seed


@pytest.mark.parametrize("strategy", ["ilp", "bestfit"])
def test_a_plan_that_is_proved_is_the_best_by_the_order_of_queues(strategy: str) -> None:
    judgements = [planner.judge(instances.world(seed), strategy) for seed in range(1, SAMPLE + 1)]
    assert [judgement.breaches for judgement in judgements if judgement.breaches] == []
    assert sum(judgement.is_proved for judgement in judgements) >= SAMPLE * PROVED[strategy]


def test_a_plan_for_siblings_that_compete_is_the_best_by_the_order_of_queues() -> None:
    judgements = [planner.judge(instances.siblings(seed), "ilp") for seed in range(1, SAMPLE + 1)]
    assert [judgement.breaches for judgement in judgements if judgement.breaches] == []
    assert sum(judgement.is_proved for judgement in judgements) >= SAMPLE * 0.9


def test_a_gang_that_its_queue_guarantees_never_starves() -> None:
    for seed in range(30):
        assert not histories.waits(histories.scene(seed), seed).is_too_long, seed


def test_the_planner_lets_no_gang_starve_that_its_queue_guarantees() -> None:
    for seed in range(32, 40):  # in two of these, a planner that holds nothing does
        wait = histories.waits(histories.scene(seed), seed, starts=planner.starts)
        assert not wait.is_too_long, seed


def test_a_starved_gang_that_borrows_does_not_starve_one_that_its_queue_guarantees() -> None:
    scene = histories.scene(725)
    assert not histories.waits(scene, 725).is_too_long
    assert not histories.waits(scene, 725, starts=planner.starts).is_too_long


def test_newer_gangs_of_its_queue_with_a_guarantee_left_do_not_overtake_a_starved_one() -> None:
    for seed in (50397, 51353):
        assert not histories.waits(histories.scene(seed), seed).is_too_long


def test_covered_gangs_of_its_own_queue_starve_a_gang_if_they_may_take_held_room() -> None:
    world = World({"a": Team("root", (2,), (None,)), "b": Team("root", (1,), (None,))}, ((3,),), ())
    scene = histories.Scene(world, Job("big", "a", 0, 2, (1,)), (Job("a0", "a", 0, 1, (1,)),))
    seeds = range(40)
    assert not any(histories.waits(scene, seed).is_too_long for seed in seeds)
    first_rule = (histories.waits(scene, seed, as_in_the_issue=True) for seed in seeds)
    assert any(wait.turns == histories.TURNS for wait in first_rule)


def test_a_start_may_strip_a_gang_of_its_own_queue_of_the_parent_s_cover() -> None:
    teams = {"p": Team("root", (6,), (None,)), "a": Team("p", (2,), (None,))}
    large = Job("large", "a", 9, 1, (5,), start=1, nodes=(0,))
    small = Job("small", "a", 5, 1, (2,))
    world = World(teams, ((9,),), (large, small))
    assert plans.are_covered(world, [large], [small], as_in_the_issue=True)
    assert [*plans.stripped(world, [large], [small])] == ["large"]
    assert not plans.are_covered(world, [large], [small])
    assert plans.plan(world).borrowing == [small]


SIBLINGS = {
    "p": Team("root", (6,), (None,)),
    "a": Team("p", (2,), (None,)),
    "b": Team("p", (2,), (None,)),
}


def test_a_leaf_s_guarantee_comes_before_what_a_parent_covers() -> None:
    crowd = tuple(Job(f"x{i}", "a", 9, 1, (1,)) for i in range(6))
    own = Job("own", "b", 0, 1, (2,))
    answer = plans.plan(World(SIBLINGS, ((6,),), (*crowd, own)))
    assert {tier: len(starts) for tier, starts in answer.by_tier.items()} == {0: 3, 1: 2}
    assert own in answer.covered


def test_starts_of_other_queues_do_not_keep_a_gang_from_its_leaf_s_guarantee() -> None:
    large = Job("large", "a", 2, 1, (3,), start=1, nodes=(0,))
    small = Job("small", "a", 2, 1, (1,), start=2, nodes=(0,))
    first, other = Job("first", "a", 1, 1, (1,)), Job("other", "b", 0, 1, (2,))
    world = World(SIBLINGS, ((7,),), (large, small, first, other))
    assert plans.plan(world).by_tier[0] == [first, other]
    more = Job("more", "a", 1, 1, (2,))
    assert plans.plan(replace(world, jobs=(large, more, other))).by_tier[0] == [more, other]
    jobs = replace(large, each=(5,)), more, other
    assert plans.plan(replace(world, jobs=jobs)).covered == [other]


def test_a_covered_start_comes_before_a_higher_priority_that_must_borrow() -> None:
    teams = {"a": Team("root", (2,), (None,))}
    large, small = Job("large", "a", 9, 1, (4,)), Job("small", "a", 0, 1, (2,))
    world = World(teams, ((4,),), (large, small))
    answer = plans.plan(world)
    assert answer.starts == [small]
    assert "P6 within a queue, covered and borrowing gangs together" in attacks.curiosities(
        world, answer
    )


def test_no_limit_is_exceeded_for_a_moment_and_charges_are_equal() -> None:
    for seed in range(40):
        assert [*charges.breaches(seed)] == []
        for _, crews in charges.history(seed):
            assert [w for crew in crews for w in comparing.charge_differences(crew)] == [], seed


@pytest.mark.parametrize("first", range(1, SAMPLE + 1, PART))
def test_planner_and_verify_charge_gangs_that_run_the_same(first: int) -> None:
    for seed in range(first, first + PART):
        assert [*running.breaches(seed)] == []


def test_it_shares_no_code_with_what_it_attacks() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        if path.name in SPEAKS_TO_THE_PROJECT or path.name == Path(__file__).name:
            continue
        for at in ast.walk(ast.parse(path.read_text())):
            names = [at.module or ""] if isinstance(at, ast.ImportFrom) else []
            names += [alias.name for alias in at.names] if isinstance(at, ast.Import) else []
            assert not any(name.split(".")[0] == "tutti" for name in names), path.name
