"""Exact and joint: one integer program decides which demands start.

Best fit comes first. If it leaves out demands that could start, ``levels`` searches for the best
answer, level by level. ``inter_pod_search`` does so if members have rules between them, and
``DomainSearch`` if they must be in one domain. The answer depends only on the arguments, unless the
clock ends the search.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from ..best_fit import best_fit, with_a_resource
from ..best_fit_inter_pod import WorkBudget
from ..checks import has_all, possible, worth
from ..domains.alternatives import Alternatives
from ..domains.regions import region_work, without_domains
from ..problem import Budget, DemandLevel, Outcome, Problem, Shares, Solution
from ..work import Work
from .engine import ATTEMPTS, Cbc, Engine, SolverLimits
from .inter_pod_search import InterPodSearch
from .levels import LevelResult, LevelSearch
from .relaxation import without_rules

TOO_MANY_DOMAINS = "gangs may start in too many domains for a proof"
MOST_ALTERNATIVES = 1_000  # pairs of a kind of gangs and a domain, in one program


class IlpStrategy:
    """The best admission, level by level; if it is not proved, the solution says why."""

    def __init__(self, engine: Engine | None = None, name: str = "ilp") -> None:
        """Use this engine under this name; None means the CBC that comes with PuLP."""
        self._engine = engine or Cbc()
        self.name = name

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Admit by best fit; if that leaves out demands that could start, search for the best."""
        until = monotonic() + budget.seconds
        half = WorkBudget.within(replace(budget, seconds=budget.seconds / 2))
        best, candidates = best_fit(problem, patience=half), possible(problem)
        if has_all(best, candidates):
            return Solution(Outcome.PROVED, best, bounds=tuple(worth(problem, best)))
        search = self._search(problem, candidates, best, Work.within(budget, until))
        settled = []
        for level in search.levels:
            # Half of the time that is left, so that the levels below have some, too.
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

    def _search(
        self, problem: Problem, candidates: Sequence[int], best: Shares, work: Work
    ) -> "LevelSearch | InterPodSearch | SingleGangSearch | DomainSearch":
        """The search for problems of this kind."""
        if any(problem.demands[index].names_levels for index in candidates):
            if len(candidates) == 1 and not problem.rules:
                return SingleGangSearch(problem, candidates[0], self._engine, best, work)
            return DomainSearch(problem, candidates, self._engine, best, work)
        kind = InterPodSearch if problem.rules else LevelSearch
        return kind(problem, candidates, self._engine, best, work)


class SingleGangSearch:
    """One gang whose members must be in one domain: complete for any number of domains."""

    def __init__(
        self, problem: Problem, candidate: int, engine: Engine, best: Shares, work: Work
    ) -> None:
        self._problem, self._candidate, self._engine = problem, candidate, engine
        self._work, self.best = work, best
        self.levels = [problem.demands[candidate].level]

    def settle(self, level: DemandLevel, effort: SolverLimits) -> LevelResult:
        """Try every region that counting does not rule out; best fit has not placed the gang."""
        until, is_proved, detail = monotonic() + effort.seconds, True, ""
        value = self._problem.demands[self._candidate].value
        regions = region_work(self._problem, self._problem.demands[self._candidate])
        for region in Alternatives.one_by_one(self._problem, self._candidate, regions):
            left = until - monotonic()
            if left <= 0:
                is_proved = False
                break
            search = LevelSearch(region.problem, [0], self._engine, ((),), self._work)
            result = search.find(level, replace(effort, seconds=left))
            if result.outcome is Outcome.FAILED:
                return result
            if all(search.best):
                self.best = region.with_domains(search.best)
                return LevelResult(level, Outcome.PROVED, value)
            if result.outcome is not Outcome.PROVED:
                is_proved, detail = False, detail or result.detail
        if regions.is_over:
            is_proved, detail = False, detail or TOO_MANY_DOMAINS
        if is_proved:
            return LevelResult(level, Outcome.PROVED, 0)
        return LevelResult(level, Outcome.BUDGET_EXHAUSTED, value, detail)


class DomainSearch:
    """One problem in which members of gangs must be in one domain, and the best answer so far.

    If gangs have few alternatives, one exact program decides on all of them. Otherwise the program
    without domains and rules gives a bound, and best fit tries the gangs that start in it.
    """

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[int],
        engine: Engine,
        best: Shares,
        work: Work,
    ) -> None:
        self._problem, self._candidates, self.best = problem, candidates, best
        few = None if problem.rules else Alternatives.of(problem, candidates, MOST_ALTERNATIVES)
        if few is None:
            relaxed = without_rules(with_a_resource(without_domains(problem)))
            self._search = LevelSearch(relaxed, candidates, engine, best, work)
        else:
            every = range(len(few.problem.demands))
            start, attempts = few.without(best), len(ATTEMPTS)
            self._search = LevelSearch(few.problem, every, engine, start, work, attempts=attempts)
        self._alternatives, self.levels = few, self._search.levels

    def settle(self, level: DemandLevel, effort: SolverLimits) -> LevelResult:
        """Find the best answer of one level that keeps the values of the levels above."""
        result = self._search.find(level, effort)
        if result.outcome is Outcome.FAILED:
            return result
        self._take_in(level)
        own = (self._problem.demands[index] for index in self._candidates)
        most = sum(demand.value for demand in own if demand.level == level)
        bound, value = min(result.bound, most), dict(worth(self._problem, self.best))[level]
        if self._alternatives is None:
            self._search.turn_to(self.best)
        self._search.keep(level)
        if bound <= value:
            return LevelResult(level, Outcome.PROVED, value)
        detail = result.detail or ("" if result.outcome is not Outcome.PROVED else TOO_MANY_DOMAINS)
        return LevelResult(level, Outcome.BUDGET_EXHAUSTED, bound, detail)

    def _take_in(self, level: DemandLevel) -> None:
        """Keep what domains and rules allow of the search's result, if its value is higher."""
        shares = self._search.best
        if self._alternatives is not None:
            shares = self._alternatives.with_domains(shares)
        else:
            started = [index for index, own in enumerate(shares) if own]
            rest = [index for index in self._candidates if not shares[index]]
            rest = [index for index in rest if self._problem.demands[index].level <= level]
            shares = best_fit(self._problem, [*started, *rest])
        if worth(self._problem, shares) > worth(self._problem, self.best):
            self.best = shares
