"""Plans on demand, one at a time and in a thread: the newest is kept until the cluster changes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..model.keys import GangKey
from .observation import Answers, Observation, PlanAnswer, Record, WhatIf

T = TypeVar("T")


class Cancelled(Exception):  # noqa: N818 - named for the situation
    """The reader has left: the rest of the answer is not worked out."""


@dataclass(frozen=True, slots=True)
class TimedPlan:
    """A plan, of which version of the cluster it is, and the seconds that it took."""

    version: int
    answer: PlanAnswer
    seconds: float


class PlanningJobs:
    """The questions that take the planner's time."""

    def __init__(self, answers: Answers, monotonic: Callable[[], float]) -> None:
        self._answers = answers
        self._monotonic = monotonic
        self._turn = asyncio.Lock()
        self._newest: TimedPlan | None = None

    async def plan(self, observation: Observation, *, is_fresh: bool) -> TimedPlan:
        """The plan of a cluster; the last one made, unless a fresh one is asked for.

        Raises:
            WrongQuestion: nothing can be planned so.
        """
        async with self._turn:
            newest = self._newest
            if newest is None or (is_fresh and newest.version != observation.version):
                begin = self._monotonic()
                answer = await asyncio.to_thread(self._answers.plan, observation)
                took = self._monotonic() - begin
                newest = self._newest = TimedPlan(observation.version, answer, took)
            return newest

    async def what_if(self, observation: Observation, changes: WhatIf) -> PlanAnswer:
        """The plans before and after changes.

        Raises:
            WrongQuestion: a change names something that is not there.
        """
        async with self._turn:
            return await asyncio.to_thread(self._answers.what_if, observation, changes)

    async def explain(
        self, observation: Observation, gang: GangKey, planned: Callable[[int], None]
    ) -> Record:
        """Why a gang waits; ``planned`` is told, in this thread, how many plans were made so far.

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
