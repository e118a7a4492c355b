"""Plans in a thread beside the event loop, with a fallback if a strategy is overdue.

A strategy gets a budget and keeps to it. If it does not, killing the process would not help: the
next leader would plan the same. So the fallback answers until the overdue plan has ended. At most
one overdue plan runs at a time.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from ..model.cluster import Snapshot
from ..model.decisions import Plan, Policy
from ..planning import plan as planning
from ..strategies.problem import Budget, Strategy

logger = logging.getLogger(__name__)

GRACE_SECONDS = 30.0  # seconds beyond the budget, for the parts of a plan that do not search


class PlanProgress:
    """When a plan last made progress, and whether it is late."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        """``clock`` gives seconds since any moment; the plan is late after ``seconds`` of them."""
        self._clock = clock
        self.stepped_at = clock()
        self._late_at = self.stepped_at + seconds

    @property
    def is_late(self) -> bool:
        """Whether the plan should have been finished by now."""
        return self._clock() >= self._late_at

    def step(self) -> None:
        """Record that the plan makes progress."""
        self.stepped_at = self._clock()


class Planner:
    """Makes plans in a thread, one after the other."""

    def __init__(self, fallback: Strategy, budget: Budget, policy: Policy) -> None:
        """All plans get the same budget and policy."""
        self._fallback = fallback
        self._budget = budget
        self._policy = policy
        self.overdue: asyncio.Task[Plan] | None = None
        self._progress: PlanProgress | None = None  # of the latest plan

    @property
    def stepped_at(self) -> float:
        """When the latest plan last made progress, in seconds of the monotonic clock."""
        return 0.0 if self._progress is None else self._progress.stepped_at

    @property
    def is_overdue(self) -> bool:
        """Whether a plan still runs whose answer will not be used."""
        return self.overdue is not None and not self.overdue.done()

    async def plan(self, snapshot: Snapshot, strategy: Strategy) -> Plan:
        """The strategy's plan; the fallback's plan if the strategy is overdue."""
        if strategy is self._fallback:
            return await self._plan_by(snapshot, strategy)
        if not self.is_overdue:
            making = asyncio.create_task(self._plan_by(snapshot, strategy))
            seconds = self._budget.seconds + GRACE_SECONDS
            await asyncio.wait([making], timeout=seconds)
            if making.done():
                return making.result()
            self.overdue = making
            making.add_done_callback(_forget)
            logger.error(
                "%s has not answered within %.0f s, this is a bug: %s answers until it has",
                strategy.name,
                seconds,
                self._fallback.name,
            )
        plan = await self._plan_by(snapshot, self._fallback)
        why = f"{strategy.name} is overdue, {self._fallback.name} answered"
        return plan if plan.proved else replace(plan, shortfall=plan.shortfall or why)

    async def _plan_by(self, snapshot: Snapshot, strategy: Strategy) -> Plan:
        seconds = self._budget.seconds + GRACE_SECONDS
        progress = PlanProgress(time.monotonic, seconds)
        self._progress = progress
        return await asyncio.to_thread(
            planning.plan,
            snapshot,
            strategy,
            self._fallback,
            self._budget,
            self._policy,
            progress=progress,
        )


def _forget(made: asyncio.Task[Plan]) -> None:
    """Drop the overdue plan, whose Snapshot is out of date; log its error, if any."""
    if not made.cancelled() and (problem := made.exception()) is not None:
        logger.error("the overdue plan has failed", exc_info=problem)
