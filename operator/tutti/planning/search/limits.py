"""The strategy that answers the searches of a plan, and how much work and time it may take."""

from dataclasses import dataclass, replace
from typing import Protocol

from ...model.decisions import Policy
from ...strategies.problem import Budget, Outcome, Problem, Solution, Strategy


class Progress(Protocol):
    """The progress of a plan, for the thread that waits for it."""

    @property
    def is_late(self) -> bool:
        """Whether the plan should have been finished by now."""

    def step(self) -> None:
        """Record that a stage of the plan, or a part of a stage, begins."""


class NoProgress:
    """The progress of a plan that no thread waits for; it is never late."""

    is_late = False

    def step(self) -> None:
        """Do nothing."""


NO_PROGRESS = NoProgress()


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The strategies that answer the rounds, and how much work they may spend."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget
    policy: Policy
    taken_at: float  # seconds since the epoch
    progress: Progress = NO_PROGRESS

    def ask(self, problem: Problem) -> Solution:
        """The strategy's answer, perhaps FAILED; the fallback's answer once the plan is late."""
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
        """Whether the plan should skip everything that it does not need to be sound."""
        return self.progress.is_late

    def with_share(self, of: float) -> "SearchLimits":
        """The same limits with 1 / ``of`` of the seconds, so that all searches end in time."""
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds / of))
