"""The best admission level by level, if members have rules between them.

First comes the problem without rules. Its value is a bound, and the gangs that start in its answer
are tried under the rules. If the result is below the bound and the program with the rules is small
enough, the engine searches that program, which is exact. Otherwise the bound says how much better
an answer could be.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from ..best_fit import best_fit, with_a_resource
from ..checks import is_sound, shape_demand_of, worth
from ..problem import DemandLevel, Outcome, Problem, Shares
from ..work import Work
from .decode import split, whole_numbers
from .engine import Answer, Engine, SolverLimits
from .inter_pod_rows import InterPodProgram, node_by_node
from .levels import TOO_COARSE, LevelResult, LevelSearch, whole_bound
from .relaxation import carried_out, without_rules

TOO_LARGE = "rules between members make too many cases for a proof"
MOST_PLACES = 6_000  # pairs of shape and node; with more, engines prove nothing within a budget
# Factor for the budget's branch-and-bound nodes: rules that either hold or do not need many of
# them, and the nodes of a small program cost little.
MOST_NODES, NODES_OF_ALL_PLACES = 40, 12_000


class InterPodSearch:
    """One problem with rules, and the best answer so far."""

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[int],
        engine: Engine,
        best: Shares,
        work: Work,
    ) -> None:
        self._problem = with_a_resource(problem)
        self._candidates, self._engine = candidates, engine
        self._relaxed = without_rules(self._problem)
        self._search = LevelSearch(self._relaxed, candidates, engine, best, work)
        self.levels, self.best = self._search.levels, best
        self._kept: dict[DemandLevel, int] = {}  # by level, the value that later answers must keep
        self._shape_demand = shape_demand_of(self._problem, candidates)
        self._classes = node_by_node(self._problem, self._shape_demand)
        places = sum(int((node_class.most > 0).sum()) for node_class in self._classes)
        self._is_small = places <= MOST_PLACES
        self._nodes = min(MOST_NODES, max(1, NODES_OF_ALL_PLACES // max(places, 1)))

    def settle(self, level: DemandLevel, effort: SolverLimits) -> LevelResult:
        """Find the best answer of one level that keeps the values of the levels above."""
        until = monotonic() + effort.seconds
        result = self._search.find(level, replace(effort, seconds=effort.seconds / 2))
        if result.outcome is not Outcome.FAILED:
            if monotonic() < until:  # else the result already says that the budget has ended
                self._take_in(carried_out(self._problem, self._relaxed, self._search.best))
            if self._value(level) < result.bound:
                remaining_effort = SolverLimits(effort.nodes * self._nodes, until - monotonic())
                result = self._improve(result, remaining_effort)
            else:
                result = LevelResult(level, Outcome.PROVED, result.bound)
        self._kept[level] = self._value(level)
        self._search.turn_to(self.best)
        self._search.keep(level)
        return result

    def _improve(self, result: LevelResult, effort: SolverLimits) -> LevelResult:
        """Search for the best answer under the rules; without rules its value bounds it."""
        level, bound = result.level, result.bound
        if not self._is_small:
            why = TOO_LARGE if result.outcome is Outcome.PROVED else result.detail
            return LevelResult(level, Outcome.BUDGET_EXHAUSTED, bound, why)
        program = InterPodProgram(
            self._problem, self._candidates, self._shape_demand, self._classes
        )
        for above, value in self._kept.items():
            program.keep(above, value)
        unit = program.aim(level)
        answer = self._engine.run(program.lp, effort)
        if answer.outcome is Outcome.FAILED:
            return LevelResult(level, answer.outcome, 0, answer.detail)
        known = self._value(level)
        is_carried_out = self._is_carried_out(program, answer)
        if answer.outcome is not Outcome.PROVED:
            most = bound if answer.bound is None else whole_bound(answer.bound) * unit
            why = ""
        else:
            # An optimum that cannot be carried out, or is below a known answer, is not believed.
            claimed = round(program.value(answer.values)) * unit if is_carried_out else bound
            most = claimed if claimed >= known else bound
            why = f"{self._engine.name}: {TOO_COARSE}"
        most, value = min(most, bound), self._value(level)
        if most <= value:
            return LevelResult(level, Outcome.PROVED, value)
        return LevelResult(level, Outcome.BUDGET_EXHAUSTED, most, why)

    def _is_carried_out(self, program: InterPodProgram, answer: Answer) -> bool:
        """Keep the shares of an answer if they are sound; return whether they are."""
        numbers = whole_numbers(answer.values)
        if numbers is None:
            return False
        shares = split(self._problem, program, numbers)
        if not is_sound(self._problem, shares):
            return False
        rest = [index for index in self._candidates if not shares[index]]
        self._take_in(best_fit(self._problem, rest, shares))
        return True

    def _take_in(self, shares: Shares) -> None:
        """Keep these shares if they have a higher value."""
        if worth(self._problem, shares) > worth(self._problem, self.best):
            self.best = shares

    def _value(self, level: DemandLevel) -> int:
        return dict(worth(self._problem, self.best))[level]
