"""What answers the questions of a plan, and how much work and time that may take."""

from dataclasses import dataclass, replace
from typing import Protocol

from ...model.decisions import Policy
from ...strategies.problem import Budget, Outcome, Problem, Solution, Strategy


class Progress(Protocol):
    """How far a plan is, for the thread that waits for it."""

    @property
    def is_late(self) -> bool:
        """Whether the plan should have been finished by now."""

    def step(self) -> None:
        """Say that a stage of the plan, or a part of one, begins."""


class NoProgress:
    """A plan that nothing waits for and that is never late."""

    is_late = False

    def step(self) -> None:
        """Say nothing."""


NO_PROGRESS = NoProgress()


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Who answers the rounds, and how much work they may spend."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget
    policy: Policy
    taken_at: float  # seconds since the epoch
    progress: Progress = NO_PROGRESS

    def ask(self, problem: Problem) -> Solution:
        """The strategy's answer, which may be none; the fallback's once the plan is late."""
        self.progress.step()
        if not self.is_late:
            return self.strategy.solve(problem, self.budget)
        answer = self.fallback.solve(problem, self.budget)
        if answer.outcome in (Outcome.PROVED, Outcome.FAILED):
            return answer
        detail = f"the plan is late, {self.fallback.name} answered"
        return replace(answer, outcome=Outcome.BUDGET_EXHAUSTED, detail=detail)

    @property
    def is_late(self) -> bool:
        """Whether only what is needed for a sound plan should still be done."""
        return self.progress.is_late

    def with_share(self, of: float) -> "SearchLimits":
        """The same with one of so many shares of the seconds, so that all of a plan has an end."""
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds / of))
