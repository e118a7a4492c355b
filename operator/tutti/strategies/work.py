"""How much may be computed beside an engine's runs; a count ends alike on every machine.

The clock is a safety net.
"""

from math import inf
from time import monotonic

from .problem import Budget

CELLS_PER_SECOND = 20_000_000  # numbers in arrays; a fraction of what machines compute
CALL = 500  # what one step costs, however small its arrays are


class Work:
    """How many numbers may still be computed."""

    def __init__(self, cells: float = inf, until: float = inf) -> None:
        """Allow ``cells`` numbers, and no work after ``until`` by the monotonic clock."""
        self.spent = 0.0
        self.cells, self._until = cells, until

    @classmethod
    def within(cls, budget: Budget, until: float) -> "Work":
        """The numbers that fit into the seconds of the budget; ``until`` ends them by the clock."""
        return cls(budget.seconds * CELLS_PER_SECOND, until)

    def part(self, share: float) -> "Work":
        """A share of the cells, for one purpose."""
        return Work(self.cells * share, self._until)

    def spend(self, cells: float) -> None:
        """Count one step that computes ``cells`` numbers."""
        self.spent += CALL + cells

    @property
    def is_over(self) -> bool:
        """Whether the cells or the time are used up."""
        return self.spent >= self.cells or monotonic() >= self._until
