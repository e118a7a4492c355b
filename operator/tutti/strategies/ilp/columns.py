"""Which patterns the program needs: those that a better answer could use.

Column generation: the relaxation is solved with a few patterns, and its prices say which other
patterns would improve it. When no pattern does, the value of the relaxation bounds every answer. A
pattern whose reduced cost exceeds this bound minus the best known value is in no better answer. So
the program without such patterns is as good as the program with all. Sources: Gilmore and Gomory,
Operations Research 9 (1961); the closing enumeration is that of Baldacci, Christofides and
Mingozzi, Mathematical Programming 115 (2008).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..problem import Outcome
from ..shape_demand import Array
from .engine import Answer
from .program import Program

FEW = 400  # with no more patterns than this, all are taken
MOST_ROUNDS = 60
PER_CLASS = 2  # patterns that each class adds in one round
EPSILON = 1e-7  # relative error of an engine's prices


@dataclass(frozen=True, slots=True, eq=False)
class LpRelaxation:
    """The bound of the relaxation, what demands are worth at its prices, and costs of patterns."""

    bound: float  # no answer has a higher value
    prices: NDArray[np.float64]  # by row: the price of a member of the shape
    costs: NDArray[np.float64]  # reduced cost by pattern; at least zero, within tolerance
    ratios: Mapping[int, float]  # by demand of the level: its value over its price


Use: TypeAlias = frozenset[tuple[int, int]]  # of a node: (row of a shape, members)


class ColumnPool:
    """All patterns of classes with more than one pattern, and which of them are in the program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._places = [
            i for i, filling in enumerate(program.fillings) if len(filling.patterns) > 1
        ]
        self._fillings = [program.fillings[i] for i in self._places]
        sizes = [len(filling.patterns) for filling in self._fillings]
        self._starts = np.cumsum([0, *sizes])[:-1]
        nothing = np.zeros((0, len(program.shape_demand.shapes)), dtype=np.int64)
        self._all = np.concatenate([nothing, *(filling.patterns for filling in self._fillings)])
        self._is_in = np.zeros(len(self._all), dtype=np.bool_)
        self._owner = np.repeat(np.arange(len(sizes)), sizes)

    def seed(self) -> None:
        """Add all patterns if they are few; else one per class and shape, with most members."""
        if len(self._all) <= FEW:
            self.add(np.arange(len(self._all)))
        else:
            for start, filling in zip(self._starts.tolist(), self._fillings, strict=True):
                self.add(start + np.unique(filling.patterns.argmax(axis=0)))

    def cover(self, used: Mapping[int, Use]) -> None:
        """Add the patterns that an answer needs that puts these members on nodes, by node."""
        for start, filling in zip(self._starts.tolist(), self._fillings, strict=True):
            uses = {used.get(node, frozenset()) for node in filling.nodes.tolist()}
            self.add(start + np.unique([_first_cover(filling.patterns, use) for use in uses]))

    def relax(self, run: Callable[[], Answer]) -> LpRelaxation | Answer:
        """Solve the relaxation over all patterns; return the engine's answer if it failed.

        ``run`` solves the relaxation over the patterns that are in the program.
        """
        prices: Mapping[str, float] = {}
        for _ in range(MOST_ROUNDS):
            answer = run()
            if answer.outcome is Outcome.FAILED:
                return answer
            if answer.outcome is not Outcome.PROVED:
                break
            prices = answer.prices
            promising = self._promising(prices)
            self.add(promising)
            if not promising.size:
                break
        of_shapes = self._worth(prices)
        worths = self._all @ of_shapes
        best = np.zeros(len(self._fillings))
        np.maximum.at(best, self._owner, worths)
        per_node = dict(zip(self._places, best.tolist(), strict=True))
        # Bound and costs are valid for any prices, even for none; good prices make them tight.
        bound = self._program.bound(prices, per_node)
        ratios = self._program.value_per_price(prices)
        return LpRelaxation(bound, of_shapes, best[self._owner] - worths, ratios)

    def cheapest(self, relaxed: LpRelaxation) -> NDArray[np.intp]:
        """The patterns with the least reduced cost: they lead to a good answer soonest."""
        return np.argsort(relaxed.costs, kind="stable")[:FEW]

    def useful(self, relaxed: LpRelaxation, missing: float) -> NDArray[np.intp]:
        """All patterns outside the program that a better answer could use.

        ``missing`` is the bound minus the value of the best known answer.
        """
        slack = EPSILON * max(1.0, abs(relaxed.bound))
        return np.flatnonzero((relaxed.costs <= missing + slack) & ~self._is_in)

    def add(self, patterns: NDArray[np.intp]) -> None:
        """Take these patterns into the program."""
        fresh = patterns[~self._is_in[patterns]]
        self._is_in[fresh] = True
        owners = self._owner[fresh]
        for i in np.unique(owners).tolist():
            own = fresh[owners == i] - self._starts[i]
            self._program.add(self._fillings[i], own.tolist())

    def _worth(self, prices: Mapping[str, float]) -> NDArray[np.float64]:
        """The price of a member of each shape."""
        rows = self._program.shape_rows
        return np.array([max(0.0, prices.get(str(row.name), 0.0)) for row in rows])

    def _promising(self, prices: Mapping[str, float]) -> NDArray[np.intp]:
        """The best unused patterns of each class that are worth more than a node costs."""
        rows = [filling.row for filling in self._fillings]
        paid = np.array(
            [prices.get(str(row.name), 0.0) if row is not None else 0.0 for row in rows]
        )
        gains = self._all @ self._worth(prices) - paid[self._owner]
        least = EPSILON * max(1.0, float(np.abs(paid).max(initial=0)))
        candidates = np.flatnonzero((gains > least) & ~self._is_in)
        order = candidates[np.lexsort((-gains[candidates], self._owner[candidates]))]
        owners = self._owner[order]
        first = np.searchsorted(owners, owners)
        return order[np.arange(len(order)) - first < PER_CLASS]


def _first_cover(patterns: Array, use: Use) -> int:
    """The first of these patterns [pattern, row] that has all these members."""
    rows, counts = np.array([*use], dtype=np.int64).reshape(-1, 2).T
    return int((patterns[:, rows] >= counts).all(axis=1).argmax())
