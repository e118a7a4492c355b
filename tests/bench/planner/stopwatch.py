"""Where the time of a plan goes, by timing public functions from outside.

The planner itself knows no clock. A stage's time is its own: what it spends in another stage counts
there.
"""

from __future__ import annotations

import functools
import importlib
from collections import defaultdict
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tutti.strategies.problem import Budget, Problem, Solution, Strategy

# The functions of each stage, as ``module:name`` where the planner looks them up.
STAGES: Mapping[str, tuple[str, ...]] = {
    "order": (
        "gang.order:considered",
        "gang.demand:count_members",
        "gang.demand:start_request",
        "gang.demand:growth_requests",
        "gang.demand:repair_requests",
        "planning.search.round_order:rounds",
        "planning.search.starvation:starved",
    ),
    "reduce": (
        "planning.compile.grids:grid",
        "planning.compile.problems:problem",
        "planning.compile.gang_value:worths",
    ),
    "solve": (),  # the strategy's own ``solve``
    "split": ("planning.compile.answers:assignments", "planning.compile.answers:room_left"),
    "explain": (
        "planning.explain:rejections",
        "planning.compile.capacity:nowhere_member",
        "planning.compile.capacity:short",
    ),
    "verify": ("verify.plan_checks:violations",),
}
NAMES = (*STAGES, "rest")


class Stopwatch:
    """Seconds by stage; nested stages are told apart."""

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._now = now
        self._inner = [0.0]

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; its time is counted."""

        @functools.wraps(call)
        def run(*args: Any, **named: Any) -> Any:
            start = self._now()
            self._inner.append(0.0)
            try:
                return call(*args, **named)
            finally:
                took = self._now() - start
                self.seconds[stage] += took - self._inner.pop()
                self._inner[-1] += took

        return run

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Time the functions of all stages while this lasts."""
        places = [(stage, *_found(place)) for stage, own in STAGES.items() for place in own]
        for stage, module, name, call in places:
            setattr(module, name, self.timed(stage, call))
        try:
            yield
        finally:
            for _, module, name, call in places:
                setattr(module, name, call)


def _found(place: str) -> tuple[Any, str, Callable[..., Any]]:
    path, name = place.split(":")
    module = importlib.import_module(f"tutti.{path}")
    return module, name, getattr(module, name)


class Watched:
    """A strategy whose answers are timed and kept."""

    def __init__(self, strategy: Strategy, stopwatch: Stopwatch) -> None:
        self.name = strategy.name
        self.answers: list[tuple[Problem, Solution]] = []
        self._solve = stopwatch.timed("solve", strategy.solve)

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as the strategy does."""
        solution: Solution = self._solve(problem, budget)
        self.answers.append((problem, solution))
        return solution
