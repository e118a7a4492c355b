"""Whether starved gangs would fit the empty cluster: which gangs are tried, and with which limits.

``starvation`` has their order. Best fit tries every kind of gang. That is cheap, so gangs that have
no place never keep it from a gang that has one. Of the kinds that best fit cannot place, the
strategy searches some: the first kinds in every plan, the other kinds in turn.
"""

from collections.abc import Collection, Iterable, Sequence

from ...strategies.problem import Demand, Outcome, Problem, Share, Solution
from .limits import SearchLimits

MOST_TRIALS = 8  # kinds of gangs that the strategy searches in one plan
ALWAYS = MOST_TRIALS // 2  # the first kinds, which every plan searches; the other kinds take turns
UNSURE = (Outcome.BUDGET_EXHAUSTED, Outcome.FAILED)
TURN_SECONDS = 600.0  # a turn that finds a place lasts long enough for held room to fill


class StarvationSearch:
    """The answers for problems of one demand each; equal problems are solved once.

    All searches together may take the plan's seconds once, and so may all tries of best fit with
    rules.
    """

    def __init__(self, limits: SearchLimits, most: int) -> None:
        """``most`` is the number of gangs to try."""
        self._search = limits.with_share(MOST_TRIALS)
        self._look = limits.with_share(max(most, MOST_TRIALS))
        self._is_exact = limits.strategy.name != limits.fallback.name
        self._looked: dict[Demand, Solution] = {}
        self._searched: dict[Demand, Solution] = {}
        self._turn: Collection[Demand] = ()
        self.shortfall = ""  # why a gang may have been passed over wrongly

    def look(self, problem: Problem) -> Sequence[Share]:
        """A place found by best fit; empty if there is none."""
        (demand,) = problem.demands
        if demand not in self._looked:
            self._look.progress.step()
            fallback, budget = self._look.fallback, self._look.budget
            self._looked[demand] = fallback.solve(problem, budget)
        return self._looked[demand].shares[0]

    def choose(self, problems: Iterable[Problem]) -> None:
        """Choose the kinds to search, of the kinds that best fit cannot place."""
        kinds = list(dict.fromkeys(problem.demands[0] for problem in problems))
        if len(kinds) > MOST_TRIALS:
            always, rotating = kinds[:ALWAYS], kinds[ALWAYS:]
            turn = int(self._search.taken_at // TURN_SECONDS)
            first = turn * (MOST_TRIALS - ALWAYS) % len(rotating)
            kinds = [*always, *(rotating[first:] + rotating)[: MOST_TRIALS - ALWAYS]]
        self._turn = kinds

    def search(self, problem: Problem) -> Sequence[Share]:
        """A place found by the strategy; empty if there is none or it is not the kind's turn."""
        (demand,) = problem.demands
        if demand not in self._searched:
            self._searched[demand] = self._answer(problem)
        solution = self._searched[demand]
        if solution.outcome in UNSURE and not solution.shares[0]:
            self.shortfall = "not all that have starved could be looked at"
        return solution.shares[0]

    def _answer(self, problem: Problem) -> Solution:
        (demand,) = problem.demands
        if not self._is_exact:
            return self._looked[demand]
        if demand not in self._turn:
            return Solution(Outcome.BUDGET_EXHAUSTED, ((),))
        return self._search.ask(problem)
