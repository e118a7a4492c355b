"""What the rules between members mean, beside the oracle's own words for them."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.strategies.checks import is_sound
from tutti.strategies.inter_pod_state import InterPodState, domains_needed, rules_hold
from tutti.strategies.problem import (
    Affinity,
    AntiAffinity,
    DomainCount,
    EvenSpread,
    Outcome,
    Problem,
    Rules,
    Share,
    Shares,
    Solution,
)

from ...conformance.oracle.breaches import broken_rules
from ...conformance.oracle.case import case_of
from .generators import gang, problem_of, ruled_problems

ZONES = np.array([0, 0, 1, -1])  # of four nodes; the last is in none


def ruled(
    *rules: AntiAffinity | Affinity | EvenSpread,
    there: tuple[int, ...] = (0, 0),
    counted: tuple[int, ...] = (0,),
) -> Problem:
    """Two shapes of no size on four nodes in two zones, with one domain_count by zone."""
    flags = np.array([shape in counted for shape in range(2)])
    domain_count = DomainCount(ZONES, flags, np.array(there, dtype=np.int64))
    return replace(
        problem_of([[9]] * 4, [[0], [0]], gang(1, 0), gang(1, 1)),
        rules=Rules(
            (domain_count,),
            tuple(rule for rule in rules if isinstance(rule, AntiAffinity)),
            tuple(rule for rule in rules if isinstance(rule, Affinity)),
            tuple(rule for rule in rules if isinstance(rule, EvenSpread)),
        ),
    )


def shares(*counts: tuple[int, int, int]) -> Shares:
    """Members as (shape, node, how many)."""
    return tuple(
        tuple(Share(0, node, n) for one, node, n in counts if one == shape) for shape in range(2)
    )


APART, EVEN = AntiAffinity(0, 0), EvenSpread(0, 0, 1)
NEAR, FIRST = Affinity(0, (0,), may_be_first=False), Affinity(0, (0,), may_be_first=True)


@pytest.mark.parametrize(
    ("problem", "placed", "holds"),
    [
        (ruled(APART), [(0, 0, 1), (0, 2, 1)], True),
        (ruled(APART), [(0, 0, 1), (0, 1, 1)], False),
        (ruled(APART), [(0, 0, 2)], False),
        (ruled(APART), [(0, 3, 2)], True),  # in no zone
        (ruled(APART, there=(1, 1)), [(0, 0, 1)], True),  # settled by who is allowed where
        (ruled(APART, counted=(1,)), [(0, 0, 2), (1, 2, 2)], True),
        (ruled(APART, counted=(1,)), [(0, 0, 2), (1, 1, 1)], False),
        (ruled(NEAR), [(0, 0, 1), (0, 1, 1)], True),
        (ruled(NEAR), [(0, 0, 1)], False),
        (ruled(NEAR, there=(1, 0)), [(0, 0, 1)], True),
        (ruled(NEAR, there=(1, 0)), [(0, 2, 1)], False),
        (ruled(NEAR), [(0, 3, 2)], False),
        (ruled(NEAR, counted=(1,)), [(0, 0, 3), (1, 1, 1)], True),
        (ruled(NEAR, counted=(1,)), [(0, 0, 3), (1, 2, 1)], False),
        (ruled(FIRST), [(0, 0, 1)], True),
        (ruled(FIRST), [(0, 3, 1)], False),
        (ruled(FIRST), [(0, 0, 1), (0, 2, 1)], False),
        (ruled(FIRST, there=(0, 1)), [(0, 0, 1)], False),
        (ruled(FIRST, there=(0, 1)), [(0, 2, 1)], True),
        (ruled(EVEN), [(0, 0, 2), (0, 2, 1)], True),
        (ruled(EVEN), [(0, 0, 2)], False),
        (ruled(EVEN, there=(0, 1)), [(0, 0, 2)], True),
        (ruled(EVEN), [(0, 3, 1)], False),
        (ruled(EVEN, there=(0, 2), counted=()), [(0, 0, 5)], True),
        (ruled(EVEN, there=(0, 2), counted=()), [(0, 2, 1)], False),
        (ruled(EVEN, counted=(0, 1)), [(0, 0, 1), (1, 1, 1)], False),
        (ruled(EvenSpread(0, 0, 1, from_zero=True)), [(0, 0, 2), (0, 2, 2)], False),
        (ruled(EvenSpread(0, 0, 1, from_zero=True)), [(0, 0, 1), (0, 2, 1)], True),
        (ruled(EvenSpread(0, 0, 0)), [(0, 0, 1), (0, 2, 1)], False),
        (ruled(EvenSpread(0, 0, 0)), [(1, 0, 9)], True),
    ],
)
def test_a_rule_holds_or_not_in_the_end(
    problem: Problem,
    placed: list[tuple[int, int, int]],
    *,
    holds: bool,
) -> None:
    found = shares(*placed)
    assert rules_hold(problem, found) is holds
    broken = list(broken_rules(case_of(problem), Solution(Outcome.HEURISTIC, found)))
    assert bool(broken) is not holds


def test_an_answer_that_breaks_a_rule_is_not_sound() -> None:
    alone = shares((0, 0, 1))
    assert not is_sound(ruled(NEAR), alone)
    assert is_sound(ruled(FIRST), alone)


@given(problem=ruled_problems(), seed=st.integers(0, 2**16))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_whatever_is_placed_the_rules_mean_what_the_oracle_says(
    problem: Problem, seed: int
) -> None:
    chance = Random(seed)
    chosen = [demand if chance.random() < 0.5 else None for demand in problem.demands]
    shares: Shares = tuple(
        tuple(
            Share(part, chance.randrange(len(problem.free)), chance.randint(1, 2))
            for part in range(len(demand.parts) if demand else 0)
        )
        for demand in chosen
    )
    broken = list(broken_rules(case_of(problem), Solution(Outcome.HEURISTIC, shares)))
    assert rules_hold(problem, shares) is not bool(broken)


@given(problem=ruled_problems(), seed=st.integers(0, 2**16))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_who_is_taken_away_again_was_never_there(problem: Problem, seed: int) -> None:
    chance, state = Random(seed), InterPodState(problem)
    moves = [
        (chance.randrange(len(problem.requests)), chance.randrange(len(problem.free)), 1)
        for _ in range(4)
    ]
    for move in moves:
        state.add(*move)
    for shape, node, count in moves:
        state.add(shape, node, -count)
    fresh = InterPodState(problem)
    assert state.holds()
    for shape in filter(fresh.concerns, range(len(problem.requests))):
        assert (state.open_to(shape) == fresh.open_to(shape)).all()
        assert (state.affinity_now(shape) == fresh.affinity_now(shape)).all()


@given(problem=ruled_problems(), seed=st.integers(0, 2**16))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_only_the_rules_that_speak_of_a_shape_can_break_by_it(problem: Problem, seed: int) -> None:
    chance, state = Random(seed), InterPodState(problem)
    for _ in range(3):
        held = state.holds()
        shape = chance.randrange(len(problem.requests))
        state.add(shape, chance.randrange(len(problem.free)), 1)
        if held:
            assert state.holds([shape]) is state.holds()


def test_where_a_rule_needs_a_domain_nodes_without_one_are_ruled_out() -> None:
    assert domains_needed(ruled(APART)) == {}
    for rules in ((NEAR,), (EVEN,), (NEAR, EVEN)):
        (found,) = domains_needed(ruled(*rules)).values()
        assert found.tolist() == [True, True, True, False]


def test_a_spread_over_no_domains_holds_nowhere() -> None:
    domain_count = DomainCount(
        np.full(1, -1), np.ones(1, dtype=np.bool_), np.zeros(0, dtype=np.int64)
    )
    nowhere = replace(
        problem_of([[9]], [[1]], gang(1)),
        rules=Rules((domain_count,), spread=(EvenSpread(0, 0, 1),)),
    )
    assert not rules_hold(nowhere, ((Share(0, 0, 1),),))
    assert not InterPodState(nowhere).open_to(0).any()
