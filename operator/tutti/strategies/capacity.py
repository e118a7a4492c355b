"""Free room as arrays, and how many members of a shape fit into it.

Separate from the strategies because all of them, and explanations, ask the same question.
"""

import numpy as np
from numpy.typing import NDArray

from .problem import Problem

# Far more than any cluster runs, and small enough that sums over all nodes stay within int64.
UNBOUNDED = 2**31


def fits_per_node(
    free: NDArray[np.int64],
    request: NDArray[np.int64],
    allowed_row: NDArray[np.bool_],
    limit: int = UNBOUNDED,
) -> NDArray[np.int64]:
    """How many members of one shape fit on each node, at most ``limit``."""
    asked = np.flatnonzero(request > 0)
    if not asked.size:
        return np.where(allowed_row, np.int64(limit), np.int64(0))
    counts = (free[:, asked] // request[asked]).min(axis=1)
    return np.where(allowed_row, counts.clip(0, limit), np.int64(0))


def most_placeable(
    free: NDArray[np.int64],
    request: NDArray[np.int64],
    allowed_row: NDArray[np.bool_],
    limit: int = UNBOUNDED,
) -> tuple[int, int]:
    """How many members of one shape fit now, at most ``limit``, and how many nodes could take one.

    A shape that asks for nothing fits ``limit`` times wherever it is allowed.
    """
    fits = fits_per_node(free, request, allowed_row, limit)
    return min(int(fits.sum()), limit), int(np.count_nonzero(fits))


class FreeCapacity:
    """The free room while members are placed; remembers how often each shape still fits."""

    def __init__(self, problem: Problem) -> None:
        """Start from the problem's free room."""
        self.free = problem.free.copy()
        self.per_unit = 1.0 / problem.free.clip(0).sum(axis=0).clip(1)
        self.spare = self.free @ self.per_unit  # [node]: free room as shares of the free total
        self.share = problem.requests @ self.per_unit  # [shape], in the same unit
        self._problem = problem
        self._fits: dict[int, NDArray[np.int64]] = {}
        self._seen: dict[int, int] = {}  # shape -> how much of _touched its counts include
        self._touched: list[NDArray[np.intp]] = []
        self._taken: list[tuple[int, NDArray[np.intp], NDArray[np.int64]]] = []
        self._is_marked = False  # until then nobody can undo anything

    def fits(self, shape: int) -> NDArray[np.int64]:
        """How many members of the shape still fit on each node."""
        problem = self._problem
        request, allowed = problem.requests[shape], problem.allowed[shape]
        known = self._fits.get(shape)
        fresh = self._touched[self._seen.get(shape, 0) :]
        if known is None:
            self._fits[shape] = known = fits_per_node(self.free, request, allowed)
        elif fresh:
            nodes = fresh[0] if len(fresh) == 1 else np.concatenate(fresh)
            known[nodes] = fits_per_node(self.free[nodes], request, allowed[nodes])
        self._seen[shape] = len(self._touched)
        return known

    def take(self, shape: int, nodes: NDArray[np.intp], counts: NDArray[np.int64]) -> None:
        """Use room for ``counts`` members on the ``nodes``, each node named once."""
        self._add(shape, nodes, -counts)
        if self._is_marked:
            self._taken.append((shape, nodes, counts))

    def mark(self) -> int:
        """A point in time that ``undo`` can return to."""
        self._is_marked = True
        return len(self._taken)

    def undo(self, mark: int) -> None:
        """Give back all room taken since the mark."""
        for shape, nodes, counts in self._taken[mark:]:
            self._add(shape, nodes, counts)
        del self._taken[mark:]

    def _add(self, shape: int, nodes: NDArray[np.intp], counts: NDArray[np.int64]) -> None:
        """Free the room of so many members; negative counts use it."""
        self.free[nodes] += counts[:, None] * self._problem.requests[shape]
        self.spare[nodes] = self.free[nodes] @ self.per_unit
        self._touched.append(nodes)
