"""What is ruled out, or found wrong, by counting alone."""

import numpy as np
import pytest

from tutti.strategies.checks import is_sound, possible, shape_demand_of
from tutti.strategies.problem import Demand, DemandLevel, Part, Problem, Share

from .generators import gang, grid, problem_of

ROLES = Demand(3, (Part(0, 0, 2), Part(0, 1, 2)), (1, 1), DemandLevel(0), 1)


def test_a_demand_larger_than_the_room_is_ruled_out() -> None:
    assert possible(problem_of([[3], [3]], [[2]], gang(2), gang(3))) == [0]


def test_a_demand_with_too_few_members_is_ruled_out() -> None:
    assert (
        possible(problem_of([[9]], [[1]], Demand(3, (Part(0, 0, 2),), (0,), DemandLevel(0), 1)))
        == []
    )


def test_a_demand_whose_role_has_no_room_is_ruled_out() -> None:
    both = Demand(2, (Part(0, 0, 2), Part(1, 1, 1)), (0, 1), DemandLevel(0), 1)
    assert possible(problem_of([[4]], [[1], [5]], both)) == []


def test_no_more_members_are_wanted_than_could_start() -> None:
    problem = problem_of([[9]], [[2], [1], [3]], gang(3), gang(3, shape=2), gang(4, shape=2))
    shape_demand = shape_demand_of(problem, [0, 1, 2])
    assert (shape_demand.shapes.tolist(), shape_demand.most.tolist()) == ([0, 2], [3, 7])
    assert shape_demand.requests.tolist() == [[2], [3]]


@pytest.mark.parametrize(
    "shares",
    [
        (Share(0, 0, 2),),  # not whole
        (Share(0, 0, 3),),  # more than there are
        (Share(0, 0, 2), Share(1, 0, 1)),  # more than the node has room for
        (Share(0, 2, 2), Share(1, 1, 1)),  # not allowed there
    ],
    ids=str,
)
def test_wrong_shares_are_found(shares: tuple[Share, ...]) -> None:
    allowed = np.array([[True, True, False]])
    problem = Problem(grid([[2], [2], [9]]), grid([[1]]), allowed, (ROLES,))
    assert not is_sound(problem, (shares,))


def test_right_shares_are_found_right() -> None:
    shares = (Share(0, 0, 1), Share(1, 0, 1), Share(1, 1, 1))
    assert is_sound(problem_of([[2], [2]], [[1]], ROLES), (shares,))


def test_a_role_below_its_minimum_is_found() -> None:
    demand = Demand(2, (Part(0, 0, 2), Part(0, 1, 2)), (1, 1), DemandLevel(0), 1)
    assert not is_sound(problem_of([[9]], [[1]], demand), ((Share(0, 0, 2),),))
