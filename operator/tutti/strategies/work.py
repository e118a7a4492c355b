"""How much may be computed beside an engine's runs: counted, so that it ends alike everywhere.

The clock is the last net.
"""

from math import inf
from time import monotonic

from .problem import Budget

CELLS_PER_SECOND = 20_000_000  # numbers in arrays; a fraction of what machines compute
CALL = 500  # what one step costs, however small its arrays are


class Work:
    """How many numbers may still be computed."""

    def __init__(self, cells: float = inf, until: float = inf) -> None:
        """So many, and until this moment of the monotonic clock."""
        self.spent = 0.0
        self.cells, self._until = cells, until

    @classmethod
    def within(cls, budget: Budget, until: float) -> "Work":
        """As many as fit into the budget's seconds, the clock aside."""
        return cls(budget.seconds * CELLS_PER_SECOND, until)

    def part(self, share: float) -> "Work":
        """A share of it, for one purpose."""
        return Work(self.cells * share, self._until)

    def spend(self, cells: float) -> None:
        """Count one step that computes so many numbers."""
        self.spent += CALL + cells

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.spent >= self.cells or monotonic() >= self._until
