"""Which patterns the program needs: those that could be part of an answer worth more.

Column generation: the relaxation is solved with a few patterns, its prices say which others would
improve it, until none does: then its value bounds every answer. A pattern whose reduced cost is
larger than what is missing from the best known answer to that bound is in no better answer, so the
program over all others is as good as the one over all. Sources: Gilmore and Gomory, Operations
Research 9 (1961); the closing enumeration as Baldacci, Christofides and Mingozzi, Mathematical
Programming 115 (2008).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..problem import Outcome
from ..shape_demand import Array
from .engine import Answer
from .program import Program

FEW = 400  # patterns that are not worth choosing from
MOST_ROUNDS = 60
PER_CLASS = 2  # the best patterns of each class that come in at a time
EPSILON = 1e-7  # of the value: what an engine's prices may be wrong by


@dataclass(frozen=True, slots=True, eq=False)
class LpRelaxation:
    """The relaxation's value, and what each pattern would cost it."""

    bound: float  # no answer is worth more
    prices: NDArray[np.float64]  # by row: what a member of the shape costs the others
    costs: NDArray[np.float64]  # reduced cost by pattern; at least zero, up to tolerance


class ColumnPool:
    """All patterns of all classes that leave a choice, and which are in the program."""

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
        """Take in all of them if they are few, else the most of every shape for each class."""
        if len(self._all) <= FEW:
            self.add(np.arange(len(self._all)))
        else:
            for start, filling in zip(self._starts.tolist(), self._fillings, strict=True):
                self.add(start + np.unique(filling.patterns.argmax(axis=0)))

    def cover(self, used: Array) -> None:
        """Take in what an answer needs that puts ``used`` [row, node] members on the nodes."""
        for start, filling in zip(self._starts.tolist(), self._fillings, strict=True):
            known = np.unique(used[:, filling.nodes].T, axis=0)
            covering = [(filling.patterns >= pattern).all(axis=1).argmax() for pattern in known]
            self.add(start + np.unique(covering))

    def relax(self, run: Callable[[], Answer]) -> LpRelaxation | Answer:
        """Solve the relaxation over all patterns; the engine's own answer where it failed.

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
        # Bound and costs hold for any prices, none at all included; good ones make them sharp.
        bound = self._program.bound(prices, per_node)
        return LpRelaxation(bound, of_shapes, best[self._owner] - worths)

    def cheapest(self, relaxed: LpRelaxation) -> NDArray[np.intp]:
        """The patterns that cost the relaxation least: they lead to a good answer soonest."""
        return np.argsort(relaxed.costs, kind="stable")[:FEW]

    def useful(self, relaxed: LpRelaxation, missing: float) -> NDArray[np.intp]:
        """All that an answer worth more could use, and are not in the program.

        ``missing`` is what the best known answer is short of the bound.
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
        """What a member of each shape is worth."""
        rows = self._program.shape_rows
        return np.array([max(0.0, prices.get(str(row.name), 0.0)) for row in rows])

    def _promising(self, prices: Mapping[str, float]) -> NDArray[np.intp]:
        """The best few of each class that are worth more than a node costs, and not in yet."""
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
