"""Whether gangs that have starved would fit the empty cluster: who is tried, and with which limits.

Separate from ``starvation``, which knows their order. Best fit looks at every kind of them: that is
cheap, so no number of gangs without a place keeps it from the ones that have one. Of those for
which it finds none, the strategy searches a place for some: always the first, others in turn.
"""

from collections.abc import Collection, Iterable, Sequence

from ...strategies.problem import Demand, Outcome, Problem, Share, Solution
from .limits import SearchLimits

MOST_TRIALS = 8  # kinds of gangs that the strategy searches a place for, in one plan
ALWAYS = MOST_TRIALS // 2  # of these, the first ones in every plan; the rest in turn
UNSURE = (Outcome.BUDGET_EXHAUSTED, Outcome.FAILED)
TURN_SECONDS = 600.0  # long enough for held room to fill, where it is a turn that finds a place


class StarvationSearch:
    """The answers for problems of one demand each; equal ones are solved once.

    All searches together may take the plan's seconds once, and so may all looks under rules.
    """

    def __init__(self, limits: SearchLimits, most: int) -> None:
        """``most``: the number of gangs to try."""
        self._search = limits.with_share(MOST_TRIALS)
        self._look = limits.with_share(max(most, MOST_TRIALS))
        self._is_exact = limits.strategy.name != limits.fallback.name
        self._looked: dict[Demand, Solution] = {}
        self._searched: dict[Demand, Solution] = {}
        self._turn: Collection[Demand] = ()
        self.shortfall = ""  # why one of them may have been passed over wrongly

    def look(self, problem: Problem) -> Sequence[Share]:
        """A place by best fit; empty if it finds none."""
        (demand,) = problem.demands
        if demand not in self._looked:
            self._look.progress.step()
            fallback, budget = self._look.fallback, self._look.budget
            self._looked[demand] = fallback.solve(problem, budget)
        return self._looked[demand].shares[0]

    def choose(self, problems: Iterable[Problem]) -> None:
        """Name the problems for which best fit finds no place, by priority, then by age."""
        kinds = list(dict.fromkeys(problem.demands[0] for problem in problems))
        if len(kinds) > MOST_TRIALS:
            always, rotating = kinds[:ALWAYS], kinds[ALWAYS:]
            turn = int(self._search.taken_at // TURN_SECONDS)
            first = turn * (MOST_TRIALS - ALWAYS) % len(rotating)
            kinds = [*always, *(rotating[first:] + rotating)[: MOST_TRIALS - ALWAYS]]
        self._turn = kinds

    def search(self, problem: Problem) -> Sequence[Share]:
        """A place by the strategy for one of those; empty if it finds none, or if not its turn."""
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
