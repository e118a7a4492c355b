"""Exact and joint: which demands start is one integer program over all of them.

Best fit first. Where that leaves out what could start, ``levels`` looks for the best, level by
level; where members have rules between them, ``inter_pod_search`` does. A function of its
arguments unless the clock ends it.
"""

from dataclasses import replace
from time import monotonic

from ..best_fit import best_fit
from ..best_fit_inter_pod import WorkBudget
from ..checks import has_all, possible, worth
from ..problem import Budget, Outcome, Problem, Solution
from ..work import Work
from .engine import Cbc, Engine, SolverLimits
from .inter_pod_search import InterPodSearch
from .levels import LevelSearch


class IlpStrategy:
    """The best admission there is, level by level, or an honest word on why it is not proved."""

    def __init__(self, engine: Engine | None = None, name: str = "ilp") -> None:
        """Use this engine, under this name; None is the CBC that comes with PuLP."""
        self._engine = engine or Cbc()
        self.name = name

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Admit by best fit; where that leaves something out, look for the best."""
        until = monotonic() + budget.seconds
        half = WorkBudget.within(replace(budget, seconds=budget.seconds / 2))
        best, candidates = best_fit(problem, patience=half), possible(problem)
        if has_all(best, candidates):
            return Solution(Outcome.PROVED, best, bounds=tuple(worth(problem, best)))
        kind = InterPodSearch if problem.rules else LevelSearch
        search = kind(problem, candidates, self._engine, best, Work.within(budget, until))
        settled = []
        for level in search.levels:
            # Half of the time left, so that the levels below have some, too.
            seconds = (until - monotonic()) / (1 if level == search.levels[-1] else 2)
            settled.append(search.settle(level, SolverLimits(budget.nodes, seconds)))
            if settled[-1].outcome is Outcome.FAILED:
                return Solution(Outcome.FAILED, ((),) * len(best), settled[-1].detail)
        known = {result.level: result.bound for result in settled}
        bounds = tuple((level, known.get(level, 0)) for level, _ in worth(problem, best))
        short = [result for result in settled if result.outcome is not Outcome.PROVED]
        if not short or has_all(search.best, candidates):
            return Solution(Outcome.PROVED, search.best, bounds=bounds)
        why = short[0].detail or (
            f"{self._engine.name} used up its budget ({budget.nodes} nodes for a priority, "
            f"{budget.seconds:g} seconds in all)"
        )
        detail = f"{why}; a better admission may exist"
        return Solution(Outcome.BUDGET_EXHAUSTED, search.best, detail, bounds)
