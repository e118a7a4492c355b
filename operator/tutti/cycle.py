"""One pass from what is observed to what is bound: the imperative shell around the planner.

``Cycle.run_once`` is the whole story. It is safe to stop at any line and start again from the top:
what was promised is in Reservations, and standing ones take the same path as new ones.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from .commit import Clock, Commit, Released
from .evicting import Evictor
from .kube.client import Api
from .model.cluster import Snapshot
from .model.decisions import Eviction, Placement, Plan
from .model.lease import Term
from .planning import plan as planning
from .planning import verify
from .reporting import Reporter
from .strategies.problem import Budget, Strategy
from .world import World

logger = logging.getLogger(__name__)


class Cycle:
    """Observe, plan, verify, reserve, bind, report."""

    def __init__(
        self,
        world: World,
        api: Api,
        *,
        scheduler: str,
        strategy: Strategy,
        fallback: Strategy,
        budget: Budget,
        clock: Clock,
        in_flight: int = 64,
    ) -> None:
        """``scheduler`` is the name that pods ask for; ``in_flight`` caps calls at a time."""
        self._world = world
        self._strategy = strategy
        self._fallback = fallback
        self._budget = budget
        self._clock = clock
        self._commit = Commit(world, api, scheduler=scheduler, clock=clock, in_flight=in_flight)
        self._evictor = Evictor(world, api, clock=clock, in_flight=in_flight)
        self._reporter = Reporter(world, api)

    async def begin(self, term: Term) -> None:
        """Begin a term: adopt what stands. The World must have been listed since it began.

        Raises:
            errors.ApiError: not all could be adopted; list again, and begin again.
        """
        await self._commit.adopt(term)

    async def run_once(self, term: Term) -> float | None:
        """Run one cycle; answers when the next is due without a change, in seconds from now.

        Raises:
            errors.ApiError: the API server refuses or cannot be reached; nothing is lost by it.
            Deposed: the Lease names another term; what was reserved is given back.
        """
        # 1 observe
        problems = list(await self._commit.settle())
        snapshot = self._world.snapshot(self._clock())
        # 2 plan
        plan = await asyncio.to_thread(
            planning.plan, snapshot, self._strategy, self._fallback, self._budget
        )
        plan = await self._evictor.spared(plan)
        # 3 verify
        placements, evictions = self._verified(snapshot, plan), self._agreed(snapshot, plan)
        # 4 reserve: the commit point
        problems += await self._commit.reserve((*placements, *evictions), term)
        # 5 bind, or evict
        released, failed = await self._commit.carry_out(placements, term)
        problems += failed
        problems += await self._evictor.carry_out(term)
        # 6 report
        due = await self._report(snapshot, plan, released)
        if problems:
            raise problems[0]
        return due

    def _verified(self, snapshot: Snapshot, plan: Plan) -> Sequence[Placement]:
        """The placements that break no promise in the world as it is by now."""
        broken = verify.violations(snapshot, plan)
        for sentence in broken:
            logger.error("left out of the plan, this is a bug of Tutti's: %s", sentence)
        now = self._clock()
        waiting = tuple(p for p in plan.placements if not self._commit.is_held_off(p.uid, now))
        current = self._world.snapshot(now)
        is_unchanged = current == replace(snapshot, taken_at=now)
        return waiting if is_unchanged and not broken else verify.upheld(current, waiting)

    def _agreed(self, snapshot: Snapshot, plan: Plan) -> Sequence[Eviction]:
        """The evictions of gangs that are by now as they were when it was decided."""
        if not plan.evictions:
            return ()
        now = self._clock()
        planned = {gang.key: gang for gang in snapshot.gangs}
        current = {gang.key: gang for gang in self._world.snapshot(now).gangs}
        return [
            one
            for one in plan.evictions
            if planned[one.gang] == current.get(one.gang)
            and not self._commit.is_held_off(one.uid, now)
        ]

    async def _report(
        self, planned: Snapshot, plan: Plan, released: Sequence[Released]
    ) -> float | None:
        """Tell people; answers when there is more to say or to try, in seconds from now."""
        now = self._clock()
        current = self._world.snapshot(now)
        snapshot = _without_the_outdated(planned, plan, current)
        refusals = self._commit.refusals({gang.key for gang in current.gangs}, now)
        sentences = {gang: one.sentence for gang, one in refusals.items()}
        due = await self._reporter.report(snapshot, plan, released, sentences)
        retries = [one.until - now for one in refusals.values()]
        waits = (due, self._evictor.again_in(), *retries)
        return min((wait for wait in waits if wait is not None), default=None)


def _without_the_outdated(planned: Snapshot, plan: Plan, now: Snapshot) -> Snapshot:
    """The picture now, but for rejected gangs that have changed since they were planned for.

    Their rejection speaks of what was; the change has woken the next cycle, which will say more.
    """
    rejected = {rejection.gang for rejection in plan.rejections}
    spoken_of = {gang.key: gang for gang in planned.gangs if gang.key in rejected}
    kept = tuple(gang for gang in now.gangs if spoken_of.get(gang.key, gang) == gang)
    return replace(now, gangs=kept)
