"""Plans on demand, one at a time and in a thread; the newest plan is kept."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ..model.keys import GangKey
from .observation import Answers, Observation, PlanAnswer, Record, WhatIf

MOST_PLANS = 20  # plans whose summaries are kept


class Cancelled(Exception):  # noqa: N818 - named for the situation
    """The reader has left: the rest of the answer is not computed."""


class TimedPlan(NamedTuple):
    """A plan, its version of the cluster, and the seconds that it took."""

    version: int
    answer: PlanAnswer
    seconds: float
    taken_at: float  # time of the Snapshot


class PlanningJobs:
    """The questions that run the planner, one at a time."""

    def __init__(self, answers: Answers, monotonic: Callable[[], float]) -> None:
        self._answers = answers
        self._monotonic = monotonic
        self._turn = asyncio.Lock()
        self._newest: TimedPlan | None = None
        self.last: deque[Record] = deque(maxlen=MOST_PLANS)  # summaries of plans, the newest first

    async def plan(self, observation: Observation, *, is_fresh: bool) -> TimedPlan:
        """The plan of a cluster: the newest one made, or with ``is_fresh`` one of this version.

        Raises:
            WrongQuestion: there is nothing to plan.
        """
        async with self._turn:
            newest = self._newest
            if newest is None or (is_fresh and newest.version != observation.version):
                begin = self._monotonic()
                answer = await asyncio.to_thread(self._answers.plan, observation)
                took = self._monotonic() - begin
                taken_at = observation.snapshot.taken_at
                newest = self._newest = TimedPlan(observation.version, answer, took, taken_at)
                self.last.appendleft(_summary(newest))
            return newest

    async def what_if(self, observation: Observation, changes: WhatIf) -> PlanAnswer:
        """The plans before and after changes.

        Raises:
            WrongQuestion: a change names something that does not exist.
        """
        async with self._turn:
            return await asyncio.to_thread(self._answers.what_if, observation, changes)

    async def explain(
        self, observation: Observation, gang: GangKey, planned: Callable[[int], None]
    ) -> Record:
        """Why a gang waits; ``planned`` is called, in this thread, with the number of plans so far.

        Raises:
            WrongQuestion: there is no such gang.
        """
        loop = asyncio.get_running_loop()
        is_left: list[bool] = []
        number = 0

        def count() -> None:
            nonlocal number
            if is_left:
                raise Cancelled
            number += 1
            loop.call_soon_threadsafe(planned, number)

        def work() -> Any:
            return self._answers.explain(observation, gang, count)

        async with self._turn:
            job = asyncio.ensure_future(asyncio.to_thread(work))
            try:
                answer: Record = await asyncio.shield(job)
            except asyncio.CancelledError:
                is_left.append(True)
                await asyncio.wait([job])
                job.exception()
                raise
            return answer


def _summary(plan: TimedPlan) -> Record:
    """The summary of a plan; its gap is that of the first priority without a proof."""
    record = plan.answer.record
    answers = Counter(row["answer"] for row in record["gangs"])
    levels = record["levels"]
    gaps = (level["gap"] for level in levels if level["gap"] != 0)
    is_known = record["proved"] or levels
    return {
        "takenAt": plan.taken_at,
        "seconds": plan.seconds,
        "proved": record["proved"],
        "gap": next(gaps, 0.0) if is_known else None,
        "starts": answers["starts"],
        "waits": answers["waits"],
    }
