"""Free room as arrays, the room below caps, and how many members of a shape fit.

All strategies and the explanations use these counts.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .problem import Cap, Demand, Problem, Share

# Far more than any cluster runs, and small enough that sums over all nodes stay within int64.
UNBOUNDED = 2**31


def fits_per_node(
    free: NDArray[np.int64],
    request: NDArray[np.int64],
    allowed_row: NDArray[np.bool_],
    limit: int = UNBOUNDED,
) -> NDArray[np.int64]:
    """How many members of one shape fit on each node, at most ``limit``."""
    requested = (request > 0).nonzero()[0]
    if not requested.size:
        return np.where(allowed_row, np.int64(limit), np.int64(0))
    counts: NDArray[np.int64] = (free[:, requested] // request[requested]).min(axis=1)
    # In place: with few nodes, calls of numpy cost more than the counting.
    np.maximum(counts, 0, out=counts)
    np.minimum(counts, limit, out=counts)
    counts *= allowed_row
    return counts


def most_placeable(
    free: NDArray[np.int64],
    request: NDArray[np.int64],
    allowed_row: NDArray[np.bool_],
    limit: int = UNBOUNDED,
) -> tuple[int, int]:
    """How many members of one shape fit now, at most ``limit``, and how many nodes could take one.

    A shape without requests fits ``limit`` times wherever it is allowed.
    """
    fits = fits_per_node(free, request, allowed_row, limit)
    return min(int(fits.sum()), limit), int(np.count_nonzero(fits))


class FreeCapacity:
    """The free room while members are placed; caches how many members of each shape still fit."""

    def __init__(self, problem: Problem) -> None:
        """Start from the problem's free room."""
        self.free = problem.free.copy()
        self.caps = CapUsage(problem)  # counted separately: ``undo`` gives back room alone
        self.per_unit = 1.0 / problem.free.clip(0).sum(axis=0).clip(1)
        self.spare = self.free @ self.per_unit  # [node]: free room as shares of the free total
        self.share = problem.requests @ self.per_unit  # [shape], in the same unit
        self._problem = problem
        self._fits: dict[int, NDArray[np.int64]] = {}
        self._totals: dict[int, int] = {}  # the sums of _fits, as far as they are known
        self._seen: dict[int, int] = {}  # shape -> how much of _touched its counts include
        self._touched: list[NDArray[np.intp]] = []
        self._taken: list[tuple[int, NDArray[np.intp], NDArray[np.int64]]] = []
        self._is_marked = False  # without a mark there is nothing to undo

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
            self._totals.pop(shape, None)
        self._seen[shape] = len(self._touched)
        return known

    def total(self, shape: int) -> int:
        """How many members of the shape still fit on all nodes together."""
        fits = self.fits(shape)
        if shape not in self._totals:
            self._totals[shape] = int(fits.sum())
        return self._totals[shape]

    def take(self, shape: int, nodes: NDArray[np.intp], counts: NDArray[np.int64]) -> None:
        """Use room for ``counts`` members on the ``nodes``, which has each node once."""
        self._add(shape, nodes, -counts)
        if self._is_marked:
            self._taken.append((shape, nodes, counts))

    def mark(self) -> int:
        """Return a point that ``undo`` can go back to."""
        self._is_marked = True
        return len(self._taken)

    def undo(self, mark: int) -> None:
        """Give back all room taken since the mark."""
        for shape, nodes, counts in self._taken[mark:]:
            self._add(shape, nodes, counts)
        del self._taken[mark:]

    def _add(self, shape: int, nodes: NDArray[np.intp], counts: NDArray[np.int64]) -> None:
        """Free the room of ``counts`` members per node; negative counts use room."""
        self.free[nodes] += counts[:, None] * self._problem.requests[shape]
        self.spare[nodes] = self.free[nodes] @ self.per_unit
        self._touched.append(nodes)


class CapUsage:
    """The room below each cap while members are placed."""

    def __init__(self, problem: Problem) -> None:
        """Start from the room of the caps."""
        self.left = [cap.room for cap in problem.caps]
        self._problem, self._caps = problem, problem.caps
        self._of_demand = caps_by_demand(problem)

    def most(self, demand: int, shape: int) -> int:
        """How many more members of the shape the demand may place, by caps alone."""
        most = UNBOUNDED
        for index in self._of_demand.get(demand, ()):
            amount = int(self._caps[index].amount[shape])
            if amount:
                most = min(most, self.left[index] // amount)
        return most

    def take(self, demand: int, shape: int, count: int) -> None:
        """Count ``count`` more members of a demand; a negative count gives back what they use."""
        for index in self._of_demand.get(demand, ()):
            self.left[index] -= count * int(self._caps[index].amount[shape])

    def accept(self, demand: int, shares: Sequence[Share]) -> bool:
        """Count the members of a demand if they exceed no cap; return whether that is so."""
        self.take_shares(demand, shares)
        if all(self.left[index] >= 0 for index in self._of_demand.get(demand, ())):
            return True
        self.take_shares(demand, shares, -1)
        return False

    def take_shares(self, demand: int, shares: Sequence[Share], times: int = 1) -> None:
        """Count the members of a demand, even if they exceed caps."""
        if demand in self._of_demand:
            for share in shares:
                shape = self._problem.demands[demand].parts[share.part].shape
                self.take(demand, shape, times * share.count)


def caps_by_demand(problem: Problem) -> Mapping[int, Sequence[int]]:
    """By demand, the indices of the caps that count it; demands without a cap are left out."""
    caps: dict[int, list[int]] = {}
    for index, cap in enumerate(problem.caps):
        for demand in cap.demands:
            caps.setdefault(demand, []).append(index)
    return caps


def least_use(demand: Demand, cap: Cap) -> int:
    """The least that the demand uses of a cap once it starts, if room were unlimited.

    These are the cheapest members of each role up to its minimum, then the cheapest of all. This is
    exact, since the cost of a role is convex in the number of its members.
    """
    cheapest = sorted((int(cap.amount[part.shape]), i) for i, part in enumerate(demand.parts))
    chosen, of_role = [0] * len(demand.parts), [0] * len(demand.role_minimum)
    use, missing = 0, demand.need
    for role, minimum in [*enumerate(demand.role_minimum), (None, demand.need)]:
        lacking = min(minimum, missing)
        for amount, i in cheapest:
            part = demand.parts[i]
            if role is None or part.role == role:
                may_have = demand.maximum(part.role) - of_role[part.role]
                count = max(0, min(lacking, part.available - chosen[i], may_have))
                chosen[i] += count
                of_role[part.role] += count
                lacking -= count
                missing -= count
                use += count * amount
    return use
