"""Where first fit puts members."""

from tutti.strategies.best_fit import FirstFit
from tutti.strategies.problem import Budget, Outcome, Share

from .generators import gang, problem_of


def test_the_first_node_that_has_room_is_filled() -> None:
    solution = FirstFit().solve(problem_of([[1], [8], [3]], [[2]], gang(5)), Budget())
    assert solution.shares == ((Share(0, 1, 4), Share(0, 2, 1)),)


def test_what_is_left_over_does_not_matter() -> None:
    wasteful = problem_of([[8, 4], [8, 0]], [[1, 0]], gang(2))
    assert FirstFit().solve(wasteful, Budget()).shares == ((Share(0, 0, 2),),)


def test_what_first_fit_leaves_out_is_not_proved_impossible() -> None:
    solution = FirstFit().solve(problem_of([[4]], [[1]], gang(3), gang(2)), Budget())
    assert solution.outcome is Outcome.HEURISTIC
