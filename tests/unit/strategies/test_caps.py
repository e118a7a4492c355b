"""Caps on what demands use together: what is counted, and where each strategy heeds it."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.strategies.best_fit import BestFit, best_fit
from tutti.strategies.capacity import CapUsage, least_use
from tutti.strategies.checks import is_sound, possible
from tutti.strategies.flow import Flow
from tutti.strategies.ilp import patterns
from tutti.strategies.ilp.exchange import Exchange
from tutti.strategies.ilp.relaxation import without_rules
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.plugins import Guarded
from tutti.strategies.problem import (
    Budget,
    Cap,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    Share,
    Solution,
    admitted_value,
)
from tutti.strategies.work import Work

from ...conformance.oracle import capping
from ...conformance.oracle.case import by_number, case_of
from ...conformance.oracle.optimum import optimum
from .generators import cap, gang, problem_of
from .test_many_shapes import few_fillings, many_shapes

BUDGET = Budget()


def starts(solution: Solution) -> list[bool]:
    """Who is admitted."""
    return [bool(shares) for shares in solution.shares]


@pytest.mark.parametrize(("limit", "in_use", "room"), [(5, 0, 5), (5, 2, 3), (5, 9, 0), (-1, 0, 0)])
def test_a_cap_below_what_is_in_use_leaves_nothing(limit: int, in_use: int, room: int) -> None:
    assert Cap(frozenset(), np.zeros(0, dtype=np.int64), limit, in_use).room == room


def test_the_least_use_takes_the_cheapest_members_that_roles_allow() -> None:
    parts = (Part(0, 0, 2), Part(1, 0, 2), Part(2, 1, 2), Part(0, 1, 1))
    uses = Cap(frozenset({0}), np.array([5, 3, 1]), 0)
    assert least_use(Demand(3, parts, (0, 0), DemandLevel(0), 1), uses) == 1 + 1 + 3
    assert least_use(Demand(3, parts, (2, 0), DemandLevel(0), 1), uses) == 3 + 3 + 1
    assert least_use(Demand(3, parts, (0, 0), DemandLevel(0), 1, (3, 1)), uses) == 1 + 3 + 3


def test_a_demand_that_a_cap_never_lets_start_is_ruled_out() -> None:
    problem = problem_of([[9]], [[1]], gang(3), gang(2), gang(3))
    assert possible(cap(problem, 4, 0, 1, in_use=2)) == [1, 2]


def test_roles_below_and_above_their_maximum_are_told_apart() -> None:
    pair = Demand(2, (Part(0, 0, 2), Part(0, 1, 2)), (0, 0), DemandLevel(0), 1, role_maximum=(1, 2))
    problem = problem_of([[9]], [[1]], pair)
    assert not is_sound(problem, ((Share(0, 0, 2),),))
    assert is_sound(problem, ((Share(0, 0, 1), Share(1, 0, 1)),))
    assert possible(problem_of([[9]], [[1]], replace(pair, role_maximum=(1, 0)))) == []
    assert possible(problem_of([[9]], [[1]], replace(pair, role_minimum=(0, 2)))) == [0]
    assert possible(problem_of([[9]], [[1]], replace(pair, role_minimum=(2, 0)))) == []


def test_shares_over_a_cap_are_found() -> None:
    problem = cap(problem_of([[9]], [[1]], gang(2), gang(2)), 3, 0, 1)
    assert is_sound(problem, ((Share(0, 0, 2),), ()))
    assert not is_sound(problem, ((Share(0, 0, 2),), (Share(0, 0, 2),)))


def test_what_does_not_fit_is_not_counted() -> None:
    problem = cap(problem_of([[9]], [[1]], gang(2), gang(3)), 4, 0, 1)
    usage = CapUsage(problem)
    assert usage.accept(0, [Share(0, 0, 2)])
    assert not usage.accept(1, [Share(0, 0, 3)])
    assert usage.left == [2]
    assert usage.most(1, 0) == 2


def test_a_strategy_of_another_package_that_ignores_a_cap_fails() -> None:
    class Greedy:
        name = "greedy"

        def solve(self, problem: Problem, budget: Budget) -> Solution:
            return BestFit().solve(replace(problem, caps=()), budget)

    problem = problem_of([[9]], [[1]], gang(2), gang(2))
    guarded = Guarded("greedy", Greedy())
    assert guarded.solve(cap(problem, 4, 0, 1), BUDGET).outcome is Outcome.PROVED
    solution = guarded.solve(cap(problem, 3, 0, 1), BUDGET)
    assert solution.outcome is Outcome.FAILED
    assert "cap" in solution.detail


# Best fit.


def test_best_fit_counts_who_stands_already() -> None:
    problem = cap(problem_of([[9]], [[1]], gang(2), gang(2), gang(1)), 3, 0, 1, 2)
    first = best_fit(problem, [1])
    assert [bool(own) for own in best_fit(problem, [0, 2], first)] == [False, True, True]


def test_best_fit_chooses_members_that_a_cap_allows() -> None:
    either = Demand(3, (Part(0, 0, 3), Part(1, 0, 3)), (0,), DemandLevel(0), 1)
    problem = problem_of([[9]], [[1], [2]], either)
    uses = Cap(frozenset({0}), np.array([1, 0]), 1)
    (shares,) = best_fit(replace(problem, caps=(uses,)))
    assert {share.part: share.count for share in shares} == {0: 1, 1: 2}


def test_a_gang_that_is_not_whole_gives_back_what_it_used() -> None:
    # The first gang places one member on the node and lacks room for the other.
    both = Demand(2, (Part(1, 0, 1), Part(1, 0, 1)), (0,), DemandLevel(0), 1)
    problem = cap(problem_of([[3]], [[1], [2]], both, gang(2)), 2, 0, 1)
    assert [bool(own) for own in best_fit(problem)] == [False, True]


# Flow.


def test_a_flow_over_a_cap_is_taken_back() -> None:
    problem = cap(problem_of([[9]], [[1]], gang(3), gang(2), gang(2)), 4, 0, 1, 2)
    assert starts(Flow().solve(problem, BUDGET)) == [True, False, False]
    assert starts(Flow().solve(cap(problem, 2, 0), BUDGET)) == [False, True, True]


def test_a_flow_passes_no_more_members_than_a_role_may_have() -> None:
    pair = Demand(4, (Part(0, 0, 3), Part(1, 1, 3)), (1, 1), DemandLevel(0), 1, role_maximum=(2, 3))
    (shares,) = Flow().solve(problem_of([[8]], [[1], [2]], pair), BUDGET).shares
    assert {share.part: share.count for share in shares} == {0: 2, 1: 2}


# The program.


def test_the_best_within_a_cap_is_found_and_proved() -> None:
    # First come first served admits 3 of 4; 2 + 2 fill the cap.
    problem = cap(problem_of([[9]], [[1]], gang(3), gang(2), gang(2)), 4, 0, 1, 2)
    solution = IlpStrategy().solve(problem, BUDGET)
    assert starts(solution) == [False, True, True]
    assert (solution.outcome, by_number(solution.bounds)) == (Outcome.PROVED, [(0, 4)])


def test_equal_gangs_in_different_caps_are_not_one_type() -> None:
    twins = [gang(2, value=3) for _ in range(4)]
    problem = cap(problem_of([[7]], [[1]], gang(3, value=2), *twins), 2, 1, 2, 3)
    solution = IlpStrategy().solve(problem, BUDGET)
    assert starts(solution) == [True, True, False, False, True]
    assert solution.outcome is Outcome.PROVED


def test_caps_in_bytes_are_exact() -> None:
    amount = 2**49 + 1
    problem = problem_of([[9]], [[1]], *(gang(1) for _ in range(5)))
    for limit, count in ((3 * amount, 3), (3 * amount - 1, 2)):
        uses = Cap(frozenset(range(5)), np.array([amount]), limit)
        solution = IlpStrategy().solve(replace(problem, caps=(uses,)), BUDGET)
        assert sum(starts(solution)) == count
        assert solution.outcome is Outcome.PROVED


def test_members_of_equal_gangs_divide_without_a_role_above_its_maximum() -> None:
    either = Demand(
        3, (Part(0, 0, 3), Part(1, 1, 3)), (0, 0), DemandLevel(0), 1, role_maximum=(2, 2)
    )
    problem = problem_of([[4, 0], [0, 5]], [[1, 0], [0, 1]], either, either, either, gang(1))
    solution = IlpStrategy().solve(problem, BUDGET)
    assert starts(solution)[:3] == [True, True, True]
    assert is_sound(problem, solution.shares)


def test_shapes_that_use_different_amounts_of_a_cap_stay_apart_without_rules() -> None:
    problem = problem_of([[9]], [[1], [1], [1]], gang(1), gang(1, 1), gang(1, 2))
    uses = Cap(frozenset({0}), np.array([2, 2, 1]), 1)
    relaxed = without_rules(replace(problem, caps=(uses, uses)))
    assert [demand.parts[0].shape for demand in relaxed.demands] == [0, 0, 2]


# Exchanges.


def exchanged(problem: Problem) -> list[bool]:
    """Who is admitted after exchanges that start from best fit's answer."""
    swaps = Exchange(problem, possible(problem), DemandLevel(0), best_fit(problem), {})
    swaps.run(100, Work())
    assert is_sound(problem, swaps.shares())
    return [bool(shares) for shares in swaps.shares()]


def test_an_exchange_keeps_caps() -> None:
    problem = problem_of([[8]], [[5], [4], [3]], *(gang(1, n, value=n + 3) for n in range(3)))
    assert exchanged(problem) == [False, True, True]
    assert exchanged(cap(problem, 1, 1, 2)) == [True, False, True]
    assert exchanged(cap(problem, 1, 0, 1, 2)) == [False, False, True]
    assert exchanged(cap(problem, 0, 2)) == [False, True, False]


@given(many_shapes(), st.integers(0, 2**16))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_exchanges_under_caps_are_sound_and_bounds_hold(problem: Problem, seed: int) -> None:
    capped = capping.capped(Random(seed), problem)
    with few_fillings():
        solution = IlpStrategy().solve(capped, BUDGET)
    assert is_sound(capped, solution.shares)
    best, value = list(optimum(case_of(capped))), by_number(admitted_value(capped, solution))
    assert value <= best
    assert solution.outcome is not Outcome.PROVED or value == best
    assert not solution.bounds or solution.bounds[0][1] >= best[0][1]


def test_nodes_counted_together_do_not_hide_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 1)
    problem = problem_of([[4], [4]], [[1], [2]], gang(3), gang(2, 1), gang(2), gang(2))
    solution = IlpStrategy().solve(cap(problem, 4, 0, 2, 3), BUDGET)
    assert starts(solution) == [False, True, True, True]
