"""Where best fit puts members, and what it misses."""

import numpy as np

from tutti.strategies.best_fit import BestFit, best_fit, most_placeable
from tutti.strategies.problem import Budget, Demand, DemandLevel, Outcome, Part, Share

from .generators import gang, grid, problem_of

EVERYWHERE = np.ones(3, dtype=np.bool_)


def test_the_node_that_is_left_with_the_least_is_taken() -> None:
    assert best_fit(problem_of([[8], [3], [5]], [[1]], gang(3))) == ((Share(0, 1, 3),),)


def test_a_member_without_gpu_avoids_the_gpu_nodes() -> None:
    problem = problem_of([[4, 2], [64, 0]], [[2, 0], [1, 1]], gang(1), gang(2, shape=1))
    assert best_fit(problem)[0] == (Share(0, 1, 1),)


def test_a_large_gang_is_spread_over_many_nodes() -> None:
    (shares,) = best_fit(problem_of([[8]] * 64, [[1]], gang(512)))
    assert [share.count for share in shares] == [8] * 64


def test_the_last_members_go_where_they_fit_tightest() -> None:
    (shares,) = best_fit(problem_of([[8], [8], [3], [8]], [[2]], gang(6)))
    assert shares == (Share(0, 0, 4), Share(0, 1, 1), Share(0, 2, 1))


def test_ties_go_to_the_first_node() -> None:
    assert best_fit(problem_of([[4], [4]], [[1]], gang(2))) == ((Share(0, 0, 2),),)


def test_roles_get_their_minimum_even_if_others_are_smaller() -> None:
    both = Demand(3, (Part(0, 0, 3), Part(1, 1, 2)), (0, 2), DemandLevel(0), 1)
    (shares,) = best_fit(problem_of([[9]], [[1], [3]], both))
    assert shares == (Share(0, 0, 1), Share(1, 0, 2))


def test_members_that_find_no_room_are_replaced_by_others_that_do() -> None:
    # Two of the small shape would fit if they were alone, but beside a large one only one does.
    either = Demand(3, (Part(0, 0, 2), Part(1, 1, 1), Part(2, 0, 1)), (1, 1), DemandLevel(0), 1)
    problem = problem_of([[5, 0], [0, 3]], [[2, 0], [3, 0], [0, 3]], either)
    (shares,) = best_fit(problem)
    assert sorted(share.part for share in shares) == [0, 1, 2]


def test_room_of_a_demand_that_is_not_whole_is_given_back() -> None:
    driver_and_workers = Demand(3, (Part(0, 0, 1), Part(1, 1, 2)), (1, 2), DemandLevel(0), 1)
    problem = problem_of([[4], [3]], [[3], [3]], driver_and_workers, gang(2))
    first, second = best_fit(problem)
    assert not first
    assert sum(share.count for share in second) == 2


def test_standing_shares_keep_their_room() -> None:
    problem = problem_of([[4]], [[1]], gang(3), gang(2))
    standing = ((Share(0, 0, 3),), ())
    assert best_fit(problem, [1], standing) == standing


def test_what_best_fit_leaves_out_is_not_proved_impossible() -> None:
    solution = BestFit().solve(problem_of([[4]], [[1]], gang(3), gang(2)), Budget())
    assert solution.outcome is Outcome.HEURISTIC


def test_most_placeable_counts_members_and_nodes() -> None:
    assert most_placeable(grid([[5], [1], [4]]), grid([[2]])[0], EVERYWHERE) == (4, 2)


def test_most_placeable_stops_at_its_limit() -> None:
    assert most_placeable(grid([[5], [1], [4]]), grid([[1]])[0], EVERYWHERE, limit=7) == (7, 3)


def test_most_placeable_of_a_shape_that_asks_nothing_is_the_limit() -> None:
    assert most_placeable(grid([[-5], [0], [4]]), grid([[0]])[0], EVERYWHERE, limit=7) == (7, 3)


def test_most_placeable_does_not_overflow() -> None:
    huge = 2**62
    count, nodes = most_placeable(grid([[huge]] * 3), grid([[1]])[0], EVERYWHERE)
    assert (count, nodes) == (2**31, 3)


def test_most_placeable_counts_no_node_that_is_not_allowed_or_overdrawn() -> None:
    allowed = np.array([True, False, True])
    assert most_placeable(grid([[5], [5], [-5]]), grid([[1]])[0], allowed) == (5, 1)
