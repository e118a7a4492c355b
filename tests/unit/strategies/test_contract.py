"""What every strategy promises, whichever it is: the suite runs over the whole registry."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from tutti.strategies import STRATEGIES
from tutti.strategies.problem import Budget, Outcome, Problem, Solution, admitted_value

from .generators import gang, problem_of, problems

BUDGET = Budget()
every_strategy = pytest.mark.parametrize("name", sorted(STRATEGIES))
few = settings(max_examples=25, deadline=None, derandomize=True)  # an engine's run takes 20-50 ms


def solve(name: str, problem: Problem) -> Solution:
    """One answer of a fresh strategy."""
    return STRATEGIES[name]().solve(problem, BUDGET)


@every_strategy
@given(problem=problems())
@few
def test_a_demand_gets_exactly_what_it_needs_or_nothing(name: str, problem: Problem) -> None:
    solution = solve(name, problem)
    assert len(solution.shares) == len(problem.demands)
    for demand, shares in zip(problem.demands, solution.shares, strict=True):
        assert sum(share.count for share in shares) == (demand.need if shares else 0)


@every_strategy
@given(problem=problems())
@few
def test_parts_and_roles_are_respected(name: str, problem: Problem) -> None:
    for demand, shares in zip(problem.demands, solve(name, problem).shares, strict=True):
        chosen = Counter[int]()
        for share in shares:
            assert share.count > 0
            chosen[share.part] += share.count
        for index, part in enumerate(demand.parts):
            assert chosen[index] <= part.available
        for role, minimum in enumerate(demand.role_minimum):
            of_role = sum(n for i, n in chosen.items() if demand.parts[i].role == role)
            assert not shares or of_role >= minimum


@every_strategy
@given(problem=problems())
@few
def test_no_node_is_asked_for_more_than_it_has(name: str, problem: Problem) -> None:
    used = np.zeros_like(problem.free)
    touched = np.zeros(problem.free.shape, dtype=np.bool_)
    for demand, shares in zip(problem.demands, solve(name, problem).shares, strict=True):
        for share in shares:
            shape = demand.parts[share.part].shape
            assert problem.allowed[shape, share.node]
            used[share.node] += share.count * problem.requests[shape]
            touched[share.node] |= problem.requests[shape] > 0
    assert (used[touched] <= problem.free[touched]).all()


@every_strategy
@given(problem=problems())
@few
def test_the_same_problem_gets_the_same_answer(name: str, problem: Problem) -> None:
    assert solve(name, problem) == solve(name, problem)


@every_strategy
@given(problem=problems())
@few
def test_counts_are_plain_integers(name: str, problem: Problem) -> None:
    for shares in solve(name, problem).shares:
        for share in shares:
            assert {type(share.part), type(share.node), type(share.count)} == {int}


@every_strategy
def test_of_two_equal_demands_the_earlier_one_starts(name: str) -> None:
    problem = problem_of([[4]], [[1]], gang(3), gang(3))
    assert [bool(shares) for shares in solve(name, problem).shares] == [True, False]


@every_strategy
def test_a_higher_priority_starts_before_a_larger_value(name: str) -> None:
    problem = problem_of([[4]], [[1]], gang(1, level=5, value=1), gang(4, value=100))
    assert [bool(shares) for shares in solve(name, problem).shares] == [True, False]


@every_strategy
def test_all_admitted_is_a_proof(name: str) -> None:
    solution = solve(name, problem_of([[4], [4]], [[1]], gang(3), gang(3)))
    assert solution.outcome is Outcome.PROVED
    assert all(solution.shares)


@every_strategy
def test_a_shape_that_asks_for_nothing_fits_even_an_overdrawn_node(name: str) -> None:
    assert all(solve(name, problem_of([[-5]], [[0]], gang(40))).shares)


@every_strategy
def test_an_overdrawn_resource_does_not_matter_to_a_shape_that_does_not_ask_for_it(
    name: str,
) -> None:
    assert all(solve(name, problem_of([[-5, 3]], [[0, 1]], gang(3))).shares)


@every_strategy
@pytest.mark.parametrize("nodes", [0, 1])
def test_without_room_nothing_is_admitted(name: str, nodes: int) -> None:
    free, allowed = np.zeros((nodes, 1), np.int64), np.ones((1, nodes), np.bool_)
    problem = Problem(free, np.ones((1, 1), np.int64), allowed, (gang(1),))
    assert solve(name, problem).shares == ((),)


@every_strategy
def test_without_resources_everything_fits(name: str) -> None:
    problem = Problem(
        np.zeros((2, 0), np.int64), np.zeros((1, 0), np.int64), np.ones((1, 2), bool), (gang(9),)
    )
    assert all(solve(name, problem).shares)


@every_strategy
def test_a_problem_without_demands_is_solved(name: str) -> None:
    assert solve(name, problem_of([[1]], [[1]])).shares == ()


@given(problem=problems())
@few
def test_ilp_is_never_worse_than_best_fit(problem: Problem) -> None:
    exact, greedy = solve("ilp", problem), solve("bestfit", problem)
    assert list(admitted_value(problem, exact)) >= list(admitted_value(problem, greedy))


@every_strategy
def test_a_strategy_knows_its_name(name: str) -> None:
    assert STRATEGIES[name]().name == name
