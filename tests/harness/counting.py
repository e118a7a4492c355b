"""Work that is counted: a count is the same on every machine, a duration is not."""

import sys
from collections.abc import Callable

from tutti.strategies import STRATEGIES
from tutti.strategies.problem import Budget, Problem, Solution


def calls_of(work: Callable[[], object]) -> int:
    """How many functions of Python a piece of work calls."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


class Counting:
    """The strategy ``ilp``, and how many problems it has been given."""

    name = "counting"

    def __init__(self) -> None:
        self.solved = 0
        self._inner = STRATEGIES["ilp"]()

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Count a problem, and solve it."""
        self.solved += 1
        return self._inner.solve(problem, budget)
