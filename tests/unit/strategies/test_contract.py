"""What every strategy promises, whichever it is: the suite runs over the whole registry."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.strategies import STRATEGIES
from tutti.strategies.problem import (
    Budget,
    Cap,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    Solution,
)

from ...conformance.oracle.case import by_number, case_of
from ...conformance.oracle.comparing import wrong_bounds
from ...conformance.oracle.faults import faults, worth
from ...conformance.oracle.optimum import optimum
from .generators import (
    by_priority,
    cap,
    capped_problems,
    gang,
    problem_of,
    problems,
    ruled_problems,
    vast_problems,
)

BUDGET = Budget()
BUDGETS = [Budget(), Budget(nodes=1), Budget(nodes=0), Budget(seconds=0.0)]
every_strategy = pytest.mark.parametrize("name", sorted(STRATEGIES))
any_problems = st.one_of(problems(), vast_problems(), ruled_problems(), capped_problems())
few = settings(max_examples=25, deadline=None, derandomize=True)  # an engine's run takes 20-50 ms


def solve(name: str, problem: Problem, budget: Budget = BUDGET) -> Solution:
    """One answer of a fresh strategy."""
    return STRATEGIES[name]().solve(problem, budget)


def starts(solution: Solution) -> list[bool]:
    """Who is admitted."""
    return [bool(shares) for shares in solution.shares]


# Sound: whole demands only, never over what is free, never where not allowed.


@every_strategy
@given(problem=any_problems, budget=st.sampled_from(BUDGETS))
@settings(few, max_examples=100)
def test_an_answer_is_sound_whatever_the_problem_and_the_budget(
    name: str, problem: Problem, budget: Budget
) -> None:
    assert faults(problem, solve(name, problem, budget)) == []


@every_strategy
@given(problem=any_problems, budget=st.sampled_from(BUDGETS))
@few
def test_counts_are_plain_integers(name: str, problem: Problem, budget: Budget) -> None:
    for shares in solve(name, problem, budget).shares:
        for share in shares:
            assert {type(share.part), type(share.node), type(share.count)} == {int}


# Honest: a proof is one, a bound is one, a failure admits nobody.


@every_strategy
@given(problem=any_problems, budget=st.sampled_from(BUDGETS))
@few
def test_what_is_called_proved_is_the_best_and_bounds_are_not_below_it(
    name: str, problem: Problem, budget: Budget
) -> None:
    solution = solve(name, problem, budget)
    best = optimum(case_of(problem))
    if solution.outcome is Outcome.PROVED:
        assert worth(problem, solution) == best
    if solution.outcome is Outcome.FAILED:
        assert not any(starts(solution))
        assert solution.detail
    assert list(wrong_bounds(by_number(solution.bounds), best)) == []


@every_strategy
def test_all_admitted_is_a_proof(name: str) -> None:
    solution = solve(name, problem_of([[4], [4]], [[1]], gang(3), gang(3)))
    assert solution.outcome is Outcome.PROVED
    assert all(solution.shares)


# In order: a lower priority never costs a higher one anything.


@every_strategy
@given(problem=by_priority(problems()))
@few
def test_lower_priorities_cost_higher_ones_nothing(name: str, problem: Problem) -> None:
    top = max(demand.level for demand in problem.demands)
    only = replace(problem, demands=tuple(d for d in problem.demands if d.level == top))
    assert worth(problem, solve(name, problem))[0] == worth(only, solve(name, only))[0]


# Within caps: what is in use already stays, and stops nothing that uses none of it.


@every_strategy
@given(problem=capped_problems(), budget=st.sampled_from(BUDGETS))
@few
def test_caps_are_kept_and_what_is_called_proved_is_the_best_within_them(
    name: str, problem: Problem, budget: Budget
) -> None:
    solution = solve(name, problem, budget)
    assert faults(problem, solution) == []
    best = optimum(case_of(problem))
    assert list(wrong_bounds(by_number(solution.bounds), best)) == []
    assert solution.outcome is not Outcome.PROVED or worth(problem, solution) == best


@every_strategy
@pytest.mark.parametrize(("limit", "in_use", "count"), [(5, 0, 2), (4, 0, 1), (9, 5, 1), (1, 5, 0)])
def test_demands_share_what_a_cap_leaves(name: str, limit: int, in_use: int, count: int) -> None:
    problem = problem_of([[9], [9]], [[1]], gang(2), gang(3), gang(4))
    solution = solve(name, cap(problem, limit, 0, 1, in_use=in_use))
    assert sum(starts(solution)[:2]) == count
    assert starts(solution)[2]


@every_strategy
def test_a_cap_counts_nothing_of_members_without_an_amount(name: str) -> None:
    problem = problem_of([[9]], [[1], [1]], gang(2), gang(3, shape=1))
    uses = Cap(frozenset({0, 1}), np.array([1, 0]), limit=1, in_use=7)
    assert starts(solve(name, replace(problem, caps=(uses,)))) == [False, True]


@every_strategy
def test_nested_caps_hold_together(name: str) -> None:
    problem = problem_of([[99]], [[1]], *(gang(2) for _ in range(6)))
    tree = cap(cap(cap(problem, 4, 0, 1, 2), 5, 3, 4, 5), 6, *range(6))
    chosen = starts(solve(name, tree))
    assert (sum(chosen[:3]), sum(chosen[3:])) in {(2, 1), (1, 2)}


@every_strategy
def test_no_more_members_of_a_role_start_than_its_maximum(name: str) -> None:
    pair = Demand(3, (Part(0, 0, 3), Part(0, 1, 3)), (0, 1), DemandLevel(0), 1, role_maximum=(1, 2))
    (shares,) = solve(name, problem_of([[9]], [[1]], pair)).shares
    assert {share.part: share.count for share in shares} == {0: 1, 1: 2}
    over = replace(pair, role_maximum=(1, 1))
    assert starts(solve(name, problem_of([[9]], [[1]], over))) == [False]


@every_strategy
@given(problem=by_priority(ruled_problems()))
@few
def test_with_rules_lower_priorities_can_only_help_higher_ones(name: str, problem: Problem) -> None:
    top = max(demand.level for demand in problem.demands)
    only = replace(problem, demands=tuple(d for d in problem.demands if d.level == top))
    assert worth(problem, solve(name, problem))[0] >= worth(only, solve(name, only))[0]


@every_strategy
def test_of_two_equal_demands_the_earlier_one_starts(name: str) -> None:
    assert starts(solve(name, problem_of([[4]], [[1]], gang(3), gang(3)))) == [True, False]


@every_strategy
def test_a_higher_priority_starts_before_a_larger_value(name: str) -> None:
    problem = problem_of([[4]], [[1]], gang(1, level=5, value=1), gang(4, value=100))
    assert starts(solve(name, problem)) == [True, False]


# Repeatable: the answer depends on the question alone, and the question stays as it was.


@every_strategy
@given(problem=any_problems)
@few
def test_the_same_problem_gets_the_same_answer(name: str, problem: Problem) -> None:
    strategy = STRATEGIES[name]()
    again = [strategy.solve(problem, BUDGET), strategy.solve(_copy(problem), BUDGET)]
    assert again == [solve(name, problem)] * 2


@every_strategy
@given(problem=any_problems)
@few
def test_a_problem_is_only_read(name: str, problem: Problem) -> None:
    domain_counts = problem.rules.domain_counts
    numbers = [
        each
        for domain_count in domain_counts
        for each in (domain_count.domain, domain_count.counted, domain_count.there)
    ]
    numbers += [cap.amount for cap in problem.caps]
    for array in (problem.free, problem.requests, problem.allowed, *numbers):
        array.setflags(write=False)
    assert starts(solve(name, problem)) == starts(solve(name, _copy(problem)))


def _copy(problem: Problem) -> Problem:
    return replace(
        problem,
        free=problem.free.copy(),
        requests=problem.requests.copy(),
        allowed=problem.allowed.copy(),
    )


# At the edges.


@every_strategy
def test_a_shape_that_asks_for_nothing_fits_even_an_overdrawn_node(name: str) -> None:
    assert all(solve(name, problem_of([[-5]], [[0]], gang(40))).shares)


@every_strategy
def test_an_overdrawn_resource_does_not_matter_to_a_shape_that_does_not_ask_for_it(
    name: str,
) -> None:
    assert all(solve(name, problem_of([[-5, 3]], [[0, 1]], gang(3))).shares)


@every_strategy
def test_a_shape_that_asks_for_nothing_runs_where_it_is_allowed_alone(name: str) -> None:
    problem = problem_of([[1], [1]], [[0]], gang(7))
    here = replace(problem, allowed=np.array([[False, True]]))
    assert [(s.node, s.count) for s in solve(name, here).shares[0]] == [(1, 7)]
    nowhere = replace(problem, allowed=np.array([[False, False]]))
    assert starts(solve(name, nowhere)) == [False]


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
@pytest.mark.parametrize("shapes", [0, 1])
@pytest.mark.parametrize("resources", [0, 1])
@pytest.mark.parametrize("nodes", [0, 1])
def test_a_problem_without_demands_is_solved(
    name: str, nodes: int, resources: int, shapes: int
) -> None:
    empty = Problem(
        np.ones((nodes, resources), np.int64),
        np.ones((shapes, resources), np.int64),
        np.ones((shapes, nodes), np.bool_),
        (),
    )
    solution = solve(name, empty)
    assert solution.shares == ()
    assert solution.outcome is Outcome.PROVED


@every_strategy
def test_a_gang_of_five_thousand_is_admitted_whole(name: str) -> None:
    solution = solve(name, problem_of([[2**50 - 1, 110]] * 50, [[2**40, 1]], gang(5000)))
    assert sum(share.count for share in solution.shares[0]) == 5000


@every_strategy
def test_more_than_any_node_has_is_not_admitted(name: str) -> None:
    problem = problem_of([[2**50 - 1]] * 2, [[2**50], [2**49]], gang(1), gang(2, shape=1))
    assert starts(solve(name, problem)) == [False, True]


@every_strategy
def test_a_demand_with_too_few_members_is_not_admitted(name: str) -> None:
    short = Demand(3, (Part(0, 0, 1), Part(0, 0, 1)), (0,), DemandLevel(0), 1)
    lacks_a_role = Demand(1, (Part(0, 0, 2),), (0, 1), DemandLevel(0), 1)
    assert starts(solve(name, problem_of([[9]], [[1]], short, lacks_a_role))) == [False, False]


@every_strategy
def test_parts_of_one_shape_are_told_apart(name: str) -> None:
    pair = Demand(3, (Part(0, 0, 2), Part(0, 1, 2)), (1, 2), DemandLevel(0), 1)
    (shares,) = solve(name, problem_of([[2], [1]], [[1]], pair)).shares
    chosen = Counter[int]()
    for share in shares:
        chosen[share.part] += share.count
    assert chosen == {0: 1, 1: 2}


@given(problem=any_problems)
@few
def test_ilp_is_never_worse_than_any_other(problem: Problem) -> None:
    exact = worth(problem, solve("ilp", problem))
    for name in STRATEGIES:
        assert exact >= worth(problem, solve(name, problem))


@every_strategy
def test_a_strategy_knows_its_name(name: str) -> None:
    assert STRATEGIES[name]().name == name
