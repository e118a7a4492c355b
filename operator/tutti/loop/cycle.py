"""One pass from what is observed to what is bound: the imperative shell around the planner.

``Cycle.run_once`` is the whole story. It is safe to stop at any line and start again from the top:
what was promised is in Reservations, and standing ones take the same path as new ones.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from ..commit.eviction import Evictor
from ..commit.protocol import Commit
from ..dump.violations import ViolationDumps
from ..kube.backoff import Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..model.cluster import Gang, Reservation, Snapshot
from ..model.decisions import Eviction, Mode, Placement, Plan, Policy, Released, RolloutLimits
from ..model.keys import GangKey
from ..model.lease import LeaderTerm
from ..planning import plan as planning
from ..reporting.metrics import Metrics, Stage
from ..reporting.reporter import Reporter
from ..sources.spark.pod_group_creator import PodGroupCreator
from ..state.cluster_state import ClusterState
from ..strategies.problem import Budget, Strategy
from ..verify import plan_checks
from . import dry_run as restraining
from .plan_cache import PlanCache
from .planner import Planner

logger = logging.getLogger(__name__)

NEXT_SECONDS = 0.1  # until the next cycle begins what the cap, or a late watch, has left over
MOST_SENTENCES = 10  # about one plan that breaks promises; the dump has it whole


class Cycle:
    """Observe, plan, verify, reserve, bind, report."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        scheduler: str,
        strategy: Strategy,
        fallback: Strategy,
        budget: Budget,
        clock: Clock,
        in_flight: int = 64,
        policy: Policy = planning.DEFAULT_POLICY,
        restraint: RolloutLimits = restraining.NONE,
        dumps: ViolationDumps | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """``scheduler`` is the name that pods ask for; ``in_flight`` caps calls at a time.

        Plans that break a promise are kept in ``dumps``, if there are any; ``metrics`` counts.
        """
        self._state = state
        self._strategy = strategy
        self._fallback = fallback
        self.planner = Planner(fallback, budget, policy)
        self._restraint = restraint
        self._kept = PlanCache()
        self._dumps = dumps
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._commit = Commit(state, api, scheduler=scheduler, clock=clock, in_flight=in_flight)
        self._declarer = PodGroupCreator(
            state, api, scheduler=scheduler, clock=clock, in_flight=in_flight
        )
        self._evictor = Evictor(
            state, api, give_up=self._commit.give_up, clock=clock, in_flight=in_flight
        )
        self._reporter = Reporter(state, api, scheduler, of_pods=not self._only_watches)

    @property
    def _only_watches(self) -> bool:
        return self._restraint.mode is Mode.SHADOW

    async def begin(self, term: LeaderTerm, *, follows_resignation: bool = False) -> None:
        """Begin a term: adopt what stands. The cluster state must have been listed since it began.

        Whoever only watches adopts nothing. ``follows_resignation``: as of ``Commit.adopt``.

        Raises:
            errors.ApiError: the API server is away, or nobody knows who leads; begin again.
            Deposed: somebody else leads by now.
        """
        self._declarer.forget()
        if not self._only_watches:
            await self._commit.adopt(term, follows_resignation=follows_resignation)

    async def run_once(self, term: LeaderTerm) -> float | None:
        """Run one cycle; answers when the next is due without a change, in seconds from now.

        What the API server refuses for one object is held off, and stops nothing else.

        Raises:
            errors.ApiError: the API server is away, or nobody knows who leads, or what is bound;
                nothing is lost by it.
            Deposed: the Lease names another term; what was reserved is given back.
        """
        # 1 observe
        with self._metrics.stage(Stage.OBSERVE):
            await self._declarer.declare()
            if not self._only_watches:
                await self._commit.settle(term)
            snapshot = self._state.snapshot(self._clock())
        # 2 plan
        with self._metrics.stage(Stage.PLAN):
            plan = await self._planned(snapshot, self._strategy)
        # 3 verify
        with self._metrics.stage(Stage.VERIFY):
            plan = await self._sound(snapshot, plan)
            plan = restraining.as_dry_run(plan, self._restraint.mode)
            ready, evictions = await self._verified(snapshot, plan), self._agreed(snapshot, plan)
            placements = await self._first(ready)
        # 4 reserve, and 5 bind, or evict
        released: Sequence[Released] = ()
        if not self._only_watches:
            released = await self._carry_out(placements, evictions, term)
        # 6 report
        with self._metrics.stage(Stage.REPORT):
            due = await self._conclude(snapshot, self._evictor.told(plan), released)
        is_done = len(placements) == len(ready) and not self._commit.is_late
        return due if is_done else NEXT_SECONDS

    async def _carry_out(
        self, placements: Sequence[Placement], evictions: Sequence[Eviction], term: LeaderTerm
    ) -> Sequence[Released]:
        """Reserve, bind and evict; answers what was given back."""
        # 4 reserve: the commit point
        with self._metrics.stage(Stage.RESERVE):
            await self._commit.reserve((*placements, *evictions), term)
        # 5 bind, or evict
        with self._metrics.stage(Stage.BIND):
            released = await self._commit.execute(placements, term)
            await self._evictor.execute(term, self._commit.evicted)
        return released

    async def _planned(self, snapshot: Snapshot, strategy: Strategy) -> Plan:
        """Plan, or find that nothing has changed since; without the evictions that must not be."""
        plan = self._kept.plan(snapshot) if strategy is self._strategy else None
        if plan is None:
            plan = await self.planner.plan(snapshot, strategy)
            self._kept.keep(snapshot, plan)
            self._metrics.planned(plan)
        return await self._evictor.spared(plan)

    async def _sound(self, snapshot: Snapshot, plan: Plan) -> Plan:
        """The plan if it breaks no promise, else the fallback's without what breaks any."""
        broken = await asyncio.to_thread(plan_checks.violations, snapshot, plan)
        if not broken:
            return plan
        await self._keep(snapshot, plan, self._strategy, broken)
        plan = await self._planned(snapshot, self._fallback)
        broken = await asyncio.to_thread(plan_checks.violations, snapshot, plan)
        if not broken:
            return plan
        await self._keep(snapshot, plan, self._fallback, broken)
        sound = await asyncio.to_thread(plan_checks.upheld, snapshot, plan.placements)
        return replace(plan, placements=sound)

    async def _keep(
        self, snapshot: Snapshot, plan: Plan, strategy: Strategy, broken: Sequence[str]
    ) -> None:
        """Say what a plan breaks, and write down what it was made of."""
        self._metrics.broke()
        for sentence in broken[:MOST_SENTENCES]:
            logger.error("%s broke a promise, this is a bug: %s", strategy.name, sentence)
        if len(broken) > MOST_SENTENCES:
            logger.error("%s broke %d more", strategy.name, len(broken) - MOST_SENTENCES)
        keep = None if self._dumps is None else self._dumps.keep
        try:
            path = None if keep is None else await asyncio.to_thread(keep, snapshot, plan)
        except (OSError, ValueError, TypeError) as problem:
            logger.error("its plan is dropped; no dump of it: %r", problem)  # noqa: TRY400
        else:
            replayed = f"replay it with: tutti plan -f {path}" if path else "no dump of it"
            logger.error("its plan is dropped; %s", replayed)

    async def _verified(self, snapshot: Snapshot, plan: Plan) -> Sequence[Placement]:
        """The placements that break no promise in the world as it is by now."""
        now = self._clock()
        current = self._state.snapshot(now)
        is_unchanged = current == replace(snapshot, taken_at=now)
        if is_unchanged:
            return plan.placements
        return await asyncio.to_thread(plan_checks.upheld, current, plan.placements)

    async def _first(self, placements: Sequence[Placement]) -> Sequence[Placement]:
        """As many of these as one cycle begins; all of them without a cap."""
        most = self._restraint.bindings
        if not most:
            return placements
        # Some may break a promise without the rest of their plan.
        upheld = partial(plan_checks.upheld, self._state.snapshot(self._clock()))
        return await asyncio.to_thread(restraining.capped, placements, most, upheld)

    def _agreed(self, snapshot: Snapshot, plan: Plan) -> Sequence[Eviction]:
        """The evictions of gangs that are by now as they were when it was decided."""
        if not plan.evictions:
            return ()
        now = self._clock()
        planned = {gang.key: gang for gang in snapshot.gangs}
        current = {gang.key: gang for gang in self._state.snapshot(now).gangs}
        return [one for one in plan.evictions if planned[one.gang] == current.get(one.gang)]

    async def _conclude(
        self, planned: Snapshot, plan: Plan, released: Sequence[Released]
    ) -> float | None:
        """Report, and delete the Reservations that are over; neither waits for the other."""
        due: float | None = None

        async def report() -> None:
            nonlocal due
            due = await self._report(planned, plan, released)

        await ConcurrencyLimit(2).all((report, self._commit.clear))
        return due

    async def _report(
        self, planned: Snapshot, plan: Plan, released: Sequence[Released]
    ) -> float | None:
        """Tell people; answers when there is more to say or to try, in seconds from now."""
        now = self._clock()
        current = _without(self._commit.over, self._state.snapshot(now))
        self._metrics.saw(current, plan)
        known = {one.key for one in current.gangs} | {held.gang for held in current.reservations}
        known |= {one.gang for one in current.strays}
        refusals = self._state.refusals.of(known, now)
        sentences = {gang: one.sentence for gang, one in refusals.items()}
        snapshot = _without_the_unsaid(planned, plan, current, sentences)
        due = await self._reporter.report(snapshot, plan, released, sentences)
        retries = [one.until - now for one in refusals.values()]
        replan = None if plan.due is None else max(0.0, plan.due - now)
        waits = (due, self._evictor.next_retry(), self._declarer.next_retry(), *retries, replan)
        return min((wait for wait in waits if wait is not None), default=None)


def _without(over: Collection[Reservation], snapshot: Snapshot) -> Snapshot:
    """The picture without Reservations that are being deleted."""
    going = {held.self_uid for held in over}
    standing = (held for held in snapshot.reservations if held.self_uid not in going)
    return replace(snapshot, reservations=tuple(standing)) if over else snapshot


def _without_the_unsaid(
    planned: Snapshot, plan: Plan, now: Snapshot, refused: Collection[GangKey]
) -> Snapshot:
    """The picture now, but for gangs of which nothing true is known that is not said already.

    A rejection of a gang that has changed since speaks of what was; the change has woken the next
    cycle, which will say more. A gang that was to start, and neither did nor was refused, waits for
    what it waited for before: the next cycle tries again.
    """
    before = {gang.key: gang for gang in planned.gangs}
    rejected = {rejection.gang for rejection in plan.rejections}
    placed = {placement.gang for placement in plan.placements}
    silent = placed.difference(refused, (held.gang for held in now.reservations))

    def has_news(gang: Gang) -> bool:
        if gang.key in rejected:
            return before.get(gang.key) == gang
        return gang.key not in silent or before.get(gang.key) != gang

    return replace(now, gangs=tuple(gang for gang in now.gangs if has_news(gang)))
