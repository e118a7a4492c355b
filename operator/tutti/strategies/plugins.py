"""Strategies of other packages, found by their entry points and never trusted.

A package offers a strategy under the group ``tutti.strategies``: a name, and a callable without
arguments that makes the strategy. If a strategy raises an error or answers wrongly, the failure has
a sentence that says so.
"""

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .checks import is_sound
from .problem import Budget, Demand, DemandLevel, Outcome, Part, Problem, Share, Solution, Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

GROUP = "tutti.strategies"

# One pod, and one node that has room for it: a strategy must solve this problem before its use.
TRIAL = Problem(
    free=np.ones((1, 1), dtype=np.int64),
    requests=np.ones((1, 1), dtype=np.int64),
    allowed=np.ones((1, 1), dtype=np.bool_),
    demands=(Demand(1, (Part(0, 0, 1),), (0,), DemandLevel(0), 1),),
)


class StrategyError(Exception):
    """A strategy cannot be used; the message is one sentence that names it and says why."""


def offered() -> "Mapping[str, EntryPoint]":
    """The entry points of installed packages by name; of equal names, the smallest value wins."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it loads 2 MB

    points = sorted(entry_points(group=GROUP), key=lambda point: point.value, reverse=True)
    return {point.name: point for point in points}


def load(point: "EntryPoint") -> Strategy:
    """The strategy of an entry point, guarded.

    Raises:
        StrategyError: it cannot be made, does not keep the protocol, or fails at a trial.
    """
    where = f"strategy {point.name!r} of entry point {point.value!r}"
    try:
        strategy = point.load()()
        inspect.signature(strategy.solve).bind(TRIAL, Budget())
        name = strategy.name
    except Exception as error:
        raise StrategyError(f"{where} cannot be made: {_error_text(error)}") from error
    if name != point.name:
        raise StrategyError(f"{where} calls itself {name!r}")
    guarded = Guarded(name, strategy)
    if (answer := guarded.solve(TRIAL, Budget())).outcome is Outcome.FAILED:
        raise StrategyError(f"{where} does not work: {answer.detail}")
    return guarded


@dataclass(frozen=True, slots=True)
class Guarded:
    """A strategy whose errors and wrong answers become failures, so that the fallback answers."""

    name: str
    inner: Strategy

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Return the strategy's answer, or a failure with the reason."""
        nothing = ((),) * len(problem.demands)
        try:
            solution = self.inner.solve(problem, budget)
            wrong = _wrong(problem, solution)
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            return Solution(Outcome.FAILED, nothing, _error_text(error))
        return Solution(Outcome.FAILED, nothing, wrong) if wrong else solution


def _wrong(problem: Problem, solution: object) -> str:
    """Why this is not a valid answer; empty if it is valid."""
    if not isinstance(solution, Solution) or not isinstance(solution.outcome, Outcome):
        return f"it answered {type(solution).__name__}, not a Solution with an Outcome"
    if solution.outcome is Outcome.FAILED:
        return solution.detail or "it gave no reason"
    if len(solution.shares) != len(problem.demands):
        return f"it answered {len(solution.shares)} of {len(problem.demands)} demands"
    pairs = zip(problem.demands, solution.shares, strict=True)
    if not all(_exists(problem, demand, share) for demand, own in pairs for share in own):
        return "it named a part or a node that does not exist, or a count below 1"
    if not is_sound(problem, solution.shares):
        return (
            "it admitted a gang in part, or where it may not run, has no room, "
            "exceeds a cap or breaks a rule"
        )
    return ""


def _exists(problem: Problem, demand: Demand, share: Share) -> bool:
    return (
        0 <= share.part < len(demand.parts)
        and 0 <= share.node < len(problem.free)
        and share.count > 0
    )


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
