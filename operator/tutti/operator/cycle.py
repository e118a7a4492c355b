"""One pass from the observed cluster to bound pods: the imperative shell around the planner.

``Cycle.run_once`` is the whole story. It is safe to stop at any line and start again from the top:
all promises are in Reservations, and standing Reservations take the same path as new ones.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ..commit.protocol import Commit
from ..dump.violations import ViolationDumps
from ..filters.devices import selectors
from ..filters.volume_choice import BIND_SECONDS
from ..kube.backoff import Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..model.cluster import Gang, Reservation, Snapshot
from ..model.decisions import Mode, Plan, Policy, Released, RolloutLimits
from ..model.keys import GangKey, LeaderTerm
from ..model.queues import Preemption
from ..planning import plan as planning
from ..reporting.metrics import Metrics, Stage
from ..reporting.queue_reporter import QueueReporter
from ..reporting.reporter import Reporter
from ..spark.pod_group_creator import DECLARE_SECONDS, PodGroupCreator
from ..state.cluster_state import ClusterState
from ..strategies.problem import Budget, Strategy
from ..verify import plan_checks
from ..verify.preemption import checks as preemption_checks
from . import check, dry_run
from .check import CheckedPlan
from .enqueuer import Enqueuer
from .plan_cache import PlanCache
from .planner import Planner

SELECTOR_SECONDS = 1.0  # before a plan; what is not evaluated then waits for the next one
PODS_AT_ONCE = 500  # whose claims are looked at before the event loop goes on
NEXT_SECONDS = 0.1  # until the next cycle, if the cap or a late watch left work


def _never() -> bool:
    return False


def _always(_term: LeaderTerm) -> bool:
    return True


class Cycle:
    """Recover, observe, plan, check, commit, report."""

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
        limits: RolloutLimits = dry_run.NONE,
        dumps: ViolationDumps | None = None,
        metrics: Metrics | None = None,
        predecessor_resigned: Callable[[], bool] = _never,
        leads: Callable[[LeaderTerm], bool] = _always,
        volume_seconds: float = BIND_SECONDS,
        usage_half_life: float = 0.0,
        declare_seconds: float = DECLARE_SECONDS,
    ) -> None:
        """``scheduler`` is the name that pods ask for; ``in_flight`` limits concurrent calls.

        Plans that break a promise are written into ``dumps``, if given; ``metrics`` counts them.
        ``predecessor_resigned`` says whether the leader before this term has ended all its calls,
        and ``leads`` whether this replica leads in a term, as far as it knows without a call.
        The claims of a gang must be bound ``volume_seconds`` after its Reservation. The past use of
        queues is recorded with ``usage_half_life`` in seconds, if it is not 0. A cycle waits for at
        most ``declare_seconds`` until missing PodGroups are created.
        """
        self._state = state
        self._strategy = strategy
        self._fallback = fallback
        self.planner = Planner(fallback, budget, policy)
        self._limits = limits
        self._preemption = policy.preemption
        self._plan_cache = PlanCache()
        self._dumps = dumps
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._commit = Commit(
            state,
            api,
            scheduler=scheduler,
            clock=clock,
            in_flight=in_flight,
            predecessor_resigned=predecessor_resigned,
            leads=leads,
            preempts=policy.preemption is not Preemption.OFF,
            metrics=self._metrics,
            limits=limits,
            volume_seconds=volume_seconds,
        )
        self._pod_group_creator = PodGroupCreator(
            state,
            api,
            scheduler=scheduler,
            clock=clock,
            in_flight=in_flight,
            patience=declare_seconds,
        )
        self._enqueuer = Enqueuer(
            state,
            api,
            scheduler=scheduler,
            clock=clock,
            in_flight=in_flight,
            starvation_seconds=policy.starvation_seconds,
        )
        self._queue_reporter = QueueReporter(state, api, scheduler, half_life=usage_half_life)
        self._reporter = Reporter(state, api, scheduler, of_pods=not self._only_watches)

    @property
    def _only_watches(self) -> bool:
        return self._limits.mode is Mode.SHADOW

    async def begin(self, term: LeaderTerm) -> None:
        """Begin a term: adopt the standing Reservations.

        The cluster state must have been listed since the term began. Shadow mode adopts nothing.

        Raises:
            errors.ApiError: the API server is away, or does not say which replica leads; begin
                again.
            Deposed: another replica leads by now.
        """
        self._pod_group_creator.forget()
        if not self._only_watches:
            await self._commit.recovery.begin(term)

    async def stand_by(self) -> None:
        """Forget what a replica that does not lead need not know; writes nothing."""
        await self._count_devices()
        self._state.tidy(self._clock())

    async def run_once(self, term: LeaderTerm) -> float | None:
        """Run one cycle; return the seconds until the next cycle, if nothing changes before.

        If the API server refuses a call for one object, that call is retried later and stops
        nothing else.

        Raises:
            errors.ApiError: the API server is away, or does not say which replica leads or which
                pods are bound; nothing is lost.
            Deposed: the Lease names another term, and new Reservations were given back; or the term
                ended while pods were bound.
        """
        stage = self._metrics.stage
        with stage(Stage.RECOVER):
            await self._recover(term)
        with stage(Stage.OBSERVE):
            snapshot = self._observe()
        with stage(Stage.PLAN):
            plan = await self._plan(snapshot, self._strategy)
        with stage(Stage.VERIFY):
            checked = await self._check(snapshot, plan)
        released = await self._carry_out(checked, snapshot, term)
        with stage(Stage.REPORT):
            await self._enqueue(snapshot)
            next_change = await self._report(snapshot, checked.plan, released)
        leaves_work = checked.is_capped or self._commit.is_late
        return NEXT_SECONDS if leaves_work else next_change

    async def _recover(self, term: LeaderTerm) -> None:
        """Settle what earlier cycles and leaders left; make the PodGroups of Spark applications."""
        await self._count_devices()
        if not self._only_watches:
            await self._commit.recovery.recover(term)
            if await self._commit.extended_claims.make():
                await self._count_devices()
            await self._commit.queues.prepare()
            await self._commit.records.write_missing(term)
        await self._pod_group_creator.declare()
        if not self._only_watches:
            await self._commit.recovery.catch_up()

    async def _count_devices(self) -> None:
        """Take in changed devices and claims: selectors in a thread, and pods part by part."""
        state = self._state.devices
        if wanted := state.unevaluated():
            state.evaluated(await asyncio.to_thread(selectors.evaluate, wanted, SELECTOR_SECONDS))
        for _ in state.refresh_in_parts(PODS_AT_ONCE):
            await asyncio.sleep(0)

    def _observe(self) -> Snapshot:
        """Freeze the known state of the cluster as a Snapshot; writes nothing."""
        return self._state.snapshot(self._clock())

    async def _plan(self, snapshot: Snapshot, strategy: Strategy) -> Plan:
        """Plan in a thread, or return the cached plan if it still holds; writes nothing."""
        plan = self._plan_cache.plan(snapshot) if strategy is self._strategy else None
        if plan is None:
            plan = await self.planner.plan(snapshot, strategy)
            self._plan_cache.keep(snapshot, plan)
            self._metrics.planned(plan)
        return plan

    async def _check(self, snapshot: Snapshot, plan: Plan) -> CheckedPlan:
        """What the cycle carries out of a plan, by rules, Jobs, mode and a fresh Snapshot."""
        plan = await self._without_violations(snapshot, plan)
        plan = await self._without_unlawful_claims(snapshot, plan)
        plan = await self._commit.evictor.without_unsafe(plan)
        plan = dry_run.as_dry_run(plan, self._limits.mode)
        if not (plan.placements or plan.evictions or plan.claims):
            return CheckedPlan(plan)
        limit, preemption = self._limits.bindings, self._preemption
        return await asyncio.to_thread(
            check.checked, plan, snapshot, self._observe(), limit, preemption
        )

    async def _without_unlawful_claims(self, snapshot: Snapshot, plan: Plan) -> Plan:
        """The plan, without its claims if one breaks a promise; that is a bug, and is dumped."""
        if not plan.claims:
            return plan
        faults = await asyncio.to_thread(preemption_checks.faults, snapshot, plan, self._preemption)
        if not faults:
            return plan
        self._metrics.broke()
        await check.dump_violations(self._dumps, snapshot, plan, "preemption", faults)
        return replace(plan, claims=())

    async def _without_violations(self, snapshot: Snapshot, plan: Plan) -> Plan:
        """The plan if it breaks no promise, else the valid placements of the fallback's plan."""
        if not await self._has_violations(snapshot, plan, self._strategy):
            return plan
        plan = await self._plan(snapshot, self._fallback)
        if not await self._has_violations(snapshot, plan, self._fallback):
            return plan
        valid = await asyncio.to_thread(plan_checks.upheld, snapshot, plan.placements)
        return replace(plan, placements=valid)

    async def _has_violations(self, snapshot: Snapshot, plan: Plan, strategy: Strategy) -> bool:
        """Whether a plan breaks a promise; that is a bug of the strategy, and is dumped."""
        violations = await asyncio.to_thread(plan_checks.violations, snapshot, plan)
        if violations:
            self._metrics.broke()
            await check.dump_violations(self._dumps, snapshot, plan, strategy.name, violations)
        return bool(violations)

    async def _carry_out(
        self, checked: CheckedPlan, planned: Snapshot, term: LeaderTerm
    ) -> Sequence[Released]:
        """Write every decision down, then bind and evict; return what was given back."""
        if self._only_watches:
            return ()
        with self._metrics.stage(Stage.RESERVE):  # the commit point
            await self._commit.reserve(checked.decisions, term)
        with self._metrics.stage(Stage.BIND):
            released = await self._commit.execute(checked.placements, term)
        await self._commit.queues.release(planned, checked.plan, term)
        return released

    async def _enqueue(self, snapshot: Snapshot) -> None:
        """Tell jobs without pods that there is room for them, by the fallback's plan."""
        if self._limits.mode is Mode.ACTIVE:
            await self._enqueuer.enqueue(
                snapshot, lambda with_pods: self.planner.plan(with_pods, self._fallback)
            )

    async def _report(
        self, planned: Snapshot, plan: Plan, released: Sequence[Released]
    ) -> float | None:
        """Report, and delete the Reservations that are done, at the same time.

        Returns the seconds until the next report or retry, or None.
        """
        next_change: float | None = None

        async def report() -> None:
            nonlocal next_change
            next_change = await self._tell(planned, plan, released)

        await ConcurrencyLimit(2).all((report, self._commit.delete_done))
        return next_change

    async def _tell(
        self, planned: Snapshot, plan: Plan, released: Sequence[Released]
    ) -> float | None:
        plan = self._commit.evictor.annotated(plan)
        now = self._clock()
        current = _without(self._commit.done, self._state.snapshot(now))
        self._metrics.saw(current, plan)
        keys = {gang.key for gang in current.gangs} | {pod.gang for pod in current.strays}
        keys |= {reservation.gang for reservation in current.reservations}
        refusals = self._state.refusals.of(keys, now)
        sentences = {gang: refusal.sentence for gang, refusal in refusals.items()}
        reportable = _only_reportable(planned, plan, current, sentences)
        rewrite = await self._reporter.report(
            reportable, plan, released, sentences, placed=_placed(planned, plan)
        )
        queue_rewrite = await self._queue_reporter.report(current, plan)
        replan = None if plan.next_change_at is None else max(0.0, plan.next_change_at - now)
        retries = (
            self._commit.evictor.next_retry(),
            self._commit.next_late_volume(),
            self._state.next_free_room(now),
            self._pod_group_creator.next_retry(),
            self._enqueuer.next_retry(),
            self._commit.queues.next_retry(),
            self._state.refusals.next_retry(now),
        )
        waits = (rewrite, queue_rewrite, replan, *retries)
        return min((wait for wait in waits if wait is not None), default=None)


def _without(reservations: Collection[Reservation], snapshot: Snapshot) -> Snapshot:
    """The Snapshot without Reservations that are being deleted."""
    if not reservations:
        return snapshot
    uids = {reservation.self_uid for reservation in reservations}
    standing = (other for other in snapshot.reservations if other.self_uid not in uids)
    return replace(snapshot, reservations=tuple(standing))


def _placed(planned: Snapshot, plan: Plan) -> Sequence[Gang]:
    """The gangs with placements in a plan, as they were planned."""
    placed = {placement.gang for placement in plan.placements}
    return [gang for gang in planned.gangs if gang.key in placed] if placed else ()


def _only_reportable(
    planned: Snapshot, plan: Plan, current: Snapshot, refused: Collection[GangKey]
) -> Snapshot:
    """The current Snapshot without the gangs about which there is nothing new and true to report.

    If a rejected gang has changed since, the rejection describes its past. The change has woken the
    next cycle, which reports on the gang. A gang that was to start, and neither started nor was
    refused, keeps its old report: the next cycle tries again.
    """
    before = {gang.key: gang for gang in planned.gangs}
    rejected = {rejection.gang for rejection in plan.rejections}
    placed = {placement.gang for placement in plan.placements}
    reserved = (reservation.gang for reservation in current.reservations)
    still_waiting = placed.difference(refused, reserved)

    def has_news(gang: Gang) -> bool:
        if gang.key in rejected:
            return before.get(gang.key) == gang
        return gang.key not in still_waiting or before.get(gang.key) != gang

    return replace(current, gangs=tuple(gang for gang in current.gangs if has_news(gang)))
