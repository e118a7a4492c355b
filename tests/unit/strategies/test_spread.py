"""Where spread puts members."""

from tutti.strategies.best_fit import Spread
from tutti.strategies.problem import Budget, Problem, Share

from .generators import gang, problem_of


def spread(problem: Problem) -> dict[int, int]:
    """Members of the first demand by node."""
    return {share.node: share.count for share in Spread().solve(problem, Budget()).shares[0]}


def test_every_node_gets_one_before_any_gets_a_second() -> None:
    assert spread(problem_of([[4], [4], [4]], [[1]], gang(4))) == {0: 2, 1: 1, 2: 1}


def test_the_emptiest_nodes_come_first() -> None:
    assert spread(problem_of([[2], [5], [4]], [[1]], gang(2))) == {1: 1, 2: 1}


def test_a_full_node_leaves_its_share_to_the_others() -> None:
    assert spread(problem_of([[1], [9], [9]], [[1]], gang(9))) == {0: 1, 1: 4, 2: 4}


def test_a_gang_that_fills_everything_is_whole() -> None:
    assert sum(spread(problem_of([[3], [7], [5]], [[2]], gang(6))).values()) == 6


def test_one_node_takes_all_if_there_is_no_other() -> None:
    (shares,) = Spread().solve(problem_of([[9]], [[1]], gang(9)), Budget()).shares
    assert shares == (Share(0, 0, 9),)
