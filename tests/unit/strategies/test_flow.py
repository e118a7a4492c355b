"""What flow sees that gang by gang is missed, what it cannot see, and what it does then."""

from dataclasses import replace

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from tutti.strategies.best_fit import BestFit
from tutti.strategies.flow import MOST_FLOWS, Flow
from tutti.strategies.problem import (
    Budget,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    Share,
    Solution,
)

from .generators import gang, problem_of


def solve(problem: Problem) -> Solution:
    return Flow().solve(problem, Budget())


def members(shares: tuple[Share, ...]) -> dict[tuple[int, int], int]:
    """Counts by part and node."""
    return {(share.part, share.node): share.count for share in shares}


def test_a_gang_makes_way_for_one_that_may_run_nowhere_else() -> None:
    # Best fit puts the first gang on the node that only the second may use.
    problem = problem_of([[2], [3]], [[1], [1]], gang(2), gang(2, shape=1))
    pinned = replace(problem, allowed=np.array([[True, True], [True, False]]))
    assert not all(BestFit().solve(pinned, Budget()).shares)
    solution = solve(pinned)
    assert [members(shares) for shares in solution.shares] == [{(0, 1): 2}, {(0, 0): 2}]
    assert solution.outcome is Outcome.PROVED


def test_fuller_nodes_are_cheaper() -> None:
    assert solve(problem_of([[8], [3], [5]], [[1]], gang(3))).shares == ((Share(0, 1, 3),),)


def test_the_earlier_gang_is_the_dearer_to_leave_out() -> None:
    solution = solve(problem_of([[4]], [[1]], gang(3), gang(4), gang(1)))
    assert [bool(shares) for shares in solution.shares] == [True, False, True]
    assert solution.outcome is Outcome.HEURISTIC


def test_what_a_gang_that_is_not_whole_got_goes_to_the_next() -> None:
    solution = solve(problem_of([[5]], [[1]], gang(4), gang(3), gang(1)))
    assert [bool(shares) for shares in solution.shares] == [True, False, True]


def test_roles_get_their_minimum() -> None:
    both = Demand(3, (Part(0, 0, 3), Part(1, 1, 2)), (0, 2), DemandLevel(0), 1)
    (shares,) = solve(problem_of([[9]], [[1], [3]], both)).shares
    assert members(shares) == {(0, 0): 1, (1, 0): 2}


def test_what_flowed_onto_a_node_and_does_not_fit_there_is_taken_back() -> None:
    # Two of the smaller shape fit on the node, so two members flow there; one of each do not fit.
    mixed = Demand(2, (Part(0, 0, 1), Part(1, 0, 1)), (0,), DemandLevel(0), 1)
    solution = solve(problem_of([[4]], [[3], [2]], mixed, gang(2, shape=1)))
    assert [members(shares) for shares in solution.shares] == [{}, {(0, 0): 2}]


def test_nodes_that_are_alike_are_one_kind_and_filled_one_by_one() -> None:
    (shares,) = solve(problem_of([[4]] * 5, [[1]], gang(10))).shares
    assert sorted(share.count for share in shares) == [2, 4, 4]


def test_a_lower_priority_flows_through_what_is_left() -> None:
    solution = solve(problem_of([[4]], [[1]], gang(2, level=0), gang(3, level=1), gang(1)))
    assert [bool(shares) for shares in solution.shares] == [False, True, True]


class Idle(SimpleMinCostFlow):  # type: ignore[misc]
    """An engine that answers as if it had been asked for too much."""

    def solve(self) -> SimpleMinCostFlow.Status:
        """Find nothing."""
        return SimpleMinCostFlow.BAD_COST_RANGE


def test_an_engine_without_an_answer_is_a_failure_that_says_so() -> None:
    solution = Flow(Idle).solve(problem_of([[4]], [[1]], gang(2)), Budget())
    assert solution.outcome is Outcome.FAILED
    assert solution.shares == ((),)
    assert solution.detail == "OR-Tools found no flow: BAD_COST_RANGE"


def test_flows_are_few_and_best_fit_does_the_rest() -> None:
    flows: list[SimpleMinCostFlow] = []

    class Counted(SimpleMinCostFlow):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            flows.append(self)

    # One of each shape fits on the node, so one member in all flows there at a time.
    many = MOST_FLOWS + 2
    each = [[int(own == other) for own in range(many)] for other in range(many)]
    problem = problem_of([[1] * many], each, *(gang(1, shape=n) for n in range(many)))
    assert all(Flow(Counted).solve(problem, Budget()).shares)
    assert len(flows) == MOST_FLOWS
