"""The numbers that strategies see, and the one protocol they serve.

No names, labels or clocks: a Problem is a Snapshot reduced to arrays, a Solution is counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Part:
    """Interchangeable members of one gang: ``available`` pods of one shape in one role."""

    shape: int  # index into Problem.requests
    role: int  # index into Demand.role_minimum
    available: int


@dataclass(frozen=True, slots=True)
class Demand:
    """A gang as numbers: choose exactly ``need`` members from its parts, or none at all.

    ``role_minimum[r]`` of them at least come from role r. A gang without roles has one role
    of minimum 0.
    """

    need: int
    parts: tuple[Part, ...]
    role_minimum: tuple[int, ...]
    level: int  # larger comes first: twice the priority, one more for who goes first within it
    value: int  # what admitting it is worth within its level; positive


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Free room, shapes and demands; demands come in the order in which they are considered."""

    free: NDArray[np.int64]  # [node, resource]; may be negative where a node is overdrawn
    requests: NDArray[np.int64]  # [shape, resource]
    allowed: NDArray[np.bool_]  # [shape, node]: may this shape run there, room aside
    demands: tuple[Demand, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """The effort a strategy may spend: the solver's own work first, the clock as the last net."""

    nodes: int = 500  # branch-and-bound nodes per priority level; more have rarely found more
    seconds: float = 30.0  # wall time in all


class Outcome(StrEnum):
    """How far a solution can be trusted to be the best one."""

    PROVED = "proved"
    HEURISTIC = "heuristic"
    BUDGET_EXHAUSTED = "budget exhausted"
    FAILED = "failed"  # no answer: the engine is missing or broke


@dataclass(frozen=True, slots=True)
class Share:
    """So many members of one part of a demand on one node."""

    part: int
    node: int
    count: int


Shares = tuple[tuple[Share, ...], ...]  # parallel to Problem.demands


@dataclass(frozen=True, slots=True)
class Solution:
    """Shares per demand; an empty tuple is a demand that is not admitted."""

    outcome: Outcome
    shares: Shares
    detail: str = ""  # for FAILED and BUDGET_EXHAUSTED: what happened, in one sentence
    bounds: tuple[tuple[int, int], ...] = ()  # (level, no answer is worth more), as far as known


class Strategy(Protocol):
    """A way to get from a Problem to a Solution."""

    @property
    def name(self) -> str:
        """The name by which settings choose it."""

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer with whole demands only, never over ``free``, never where not ``allowed``."""


def admitted_value(problem: Problem, solution: Solution) -> Sequence[tuple[int, int]]:
    """The value admitted per level, highest level first: what two solutions are compared by."""
    values: dict[int, int] = {demand.level: 0 for demand in problem.demands}
    for demand, shares in zip(problem.demands, solution.shares, strict=True):
        values[demand.level] += demand.value if shares else 0
    return sorted(values.items(), reverse=True)
