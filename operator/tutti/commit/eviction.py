"""Evicts gangs that are given up for now, and victims of claims, after reading their Jobs.

The decision is written down first, as a Reservation with ``evict`` or ``victims``, so that every
leader carries it out. If a disruption budget refuses, the Reservation is deleted: as long as it
stands, the gang is not repaired, and a budget that requires all members would refuse for ever.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial as bind
from typing import NamedTuple

from ..filters import job_failures
from ..filters.disruption_budgets import DisruptionBudgets
from ..gang import finding_text
from ..gang.findings import EvictionObstacle, EvictionRefused
from ..gang.quantities import count
from ..kube import errors
from ..kube.backoff import Wait
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.concurrency import TOO_MANY, ConcurrencyLimit, is_away
from ..model.cluster import DisruptionBudget, Member, Reservation, ReservedVictim, Snapshot
from ..model.decisions import Claim, Mode, Plan, RolloutLimits
from ..model.keys import GangKey, Uid
from ..model.owners import Job, JobKey
from ..model.queues import ROOT
from ..planning import partial_release
from ..reporting.events import create_event
from ..reporting.metrics import Metrics
from ..reporting.status import claimant
from ..state.cluster_state import ClusterState
from .eviction_limits import EvictionLimits

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0  # seconds until a Job is read again, or an eviction is tried again
# Only a try shows how many evictions a budget allows. After the eviction of a gang was partly
# refused, it is not tried for this many seconds, because it would fail again.
IN_VAIN_SECONDS = 3600.0
EVENT_SECONDS = 3600.0  # seconds for which API servers keep an Event

NO_LIMITS = RolloutLimits()


class PendingEviction(NamedTuple):
    """A Reservation that evicts, and the members that are still to go, as the commit saw them.

    The commit saw them before this cycle read the Lease. So if a later leader has changed a member
    since then, the member is not evicted.
    """

    reservation: Reservation
    members: tuple[Member, ...]
    begun: Collection[Uid] = ()  # victims that have lost members to this claim


@dataclass(frozen=True, slots=True)
class _JobRead:
    """A Job as it was last read, None if that failed; it is read again after a wait."""

    job: Job | None
    wait: Wait


class _VictimEnd(NamedTuple):
    """A victim, and its members that are still to be evicted."""

    victim: ReservedVictim
    members: Sequence[Member]


class _Outcome(Enum):
    """What becomes of a victim once its members are evicted."""

    GOES = auto()  # all of them
    WAITS = auto()  # some stay, and their eviction is tried once more
    SPARED = auto()  # the claim has been given up


class _Answer(NamedTuple):
    """Why a member stays; final if the API server would refuse again, as for a budget."""

    sentence: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class _EvictionRefusal:
    """Why members of a gang stay, and the wait until their eviction is tried again."""

    obstacle: EvictionObstacle
    wait: Wait  # of a gang that is given up: from when the plan was checked
    is_partial: bool = False  # other members of the gang had gone
    is_standing: bool = False  # the Reservation stays: the eviction is tried once more


class Evictor:
    """Reads how many failures Jobs tolerate, announces evictions, and evicts."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        give_up: Callable[[Reservation, str], Awaitable[None]],
        clock: Callable[[], float],
        in_flight: int,
        metrics: Metrics,
        limits: RolloutLimits = NO_LIMITS,
    ) -> None:
        """``give_up`` deletes a Reservation that is not to be carried out, and reports why.

        ``metrics`` counts the pods that end for claims.
        """
        self._metrics = metrics
        self._state = state
        self._give_up = give_up
        self._api = api
        self._clock = clock
        self._limit = ConcurrencyLimit(in_flight)
        self._jobs: dict[JobKey, _JobRead] = {}
        self._announced: dict[Uid, float] = {}  # when the Event of an eviction was created
        self._refusals: dict[Uid, _EvictionRefusal] = {}  # by gang, until it is whole
        self._stuck: dict[Uid, _EvictionRefusal] = {}  # by victim: its eviction is tried once more
        self._limits = EvictionLimits(limits, clock)
        # The rights of claims by claimant, for Reservations of a CRD that drops them.
        self._by_guarantee: dict[Uid, bool] = {}
        self._queues: Mapping[Uid, str] = {}  # of gangs that have started, while victims end
        self._mode = limits.mode
        self.is_capped = False  # claims wait for the next cycle
        self._checked_at = 0.0  # when this cycle's plan was checked

    async def without_unsafe(self, plan: Plan) -> Plan:
        """The plan without evictions that were refused or that would make a Job fail.

        Raises:
            errors.Unavailable: the API server is away.
        """
        self._checked_at = self._clock()
        plan = self.annotated(plan)
        members = [member for eviction in plan.evictions for member in eviction.members]
        victims = [victim for claim in plan.claims for victim in claim.victims]
        everyone = [*members, *(member for victim in victims for member in victim.members)]
        keys = job_failures.keys(everyone)
        self._jobs = {key: read for key, read in self._jobs.items() if key in keys}
        jobs = await self._read_jobs(everyone, is_fresh=False)
        plan = replace(partial_release.spared(plan, jobs), claims=self._safe_claims(plan, jobs))
        return self._within_limits(plan)

    def _within_limits(self, plan: Plan) -> Plan:
        """The plan without the claims that would exceed a limit; their rejections name the limit.

        If a queue has reached its limit, no plan chooses victims of this queue for a while.
        """
        standing = {held.uid for held in self._state.reservations if held.victims}
        self._limits.keep(standing)
        self._by_guarantee = {u: by for u, by in self._by_guarantee.items() if u in standing}
        claims, obstacle, until = self._limits.within(plan.claims)
        is_active = self._mode is Mode.ACTIVE
        self.is_capped = is_active and obstacle is not None and until is None
        if obstacle is None:
            return plan
        if until is not None:
            logger.warning("queue %s: %s", obstacle.queue, finding_text.text(obstacle))
            for uid in self._of_queue(obstacle.queue, plan.claims[len(claims)]):
                self._state.protect(uid, until)
        waiting = {claim.gang for claim in plan.claims[len(claims) :]}
        rejections = tuple(
            rejection.with_findings(obstacle) if rejection.gang in waiting else rejection
            for rejection in plan.rejections
        )
        return replace(plan, claims=claims, rejections=rejections)

    def _of_queue(self, queue: str, claim: Claim) -> Collection[Uid]:
        """The gangs that are charged to a queue, and the victims of the claim in this queue."""
        snapshot = self._state.snapshot(self._clock())
        queues = {uid: record.queue or ROOT for uid, record in snapshot.records.items()}
        uids = {gang.uid for gang in snapshot.gangs if queues.get(gang.uid, ROOT) == queue}
        return uids | {victim.uid for victim in claim.victims if victim.queue == queue}

    def _safe_claims(self, plan: Plan, jobs: Mapping[JobKey, Job]) -> tuple[Claim, ...]:
        """The claims before the first claim with a victim whose Job would fail.

        Later claims count on that claim. The next plan chooses other victims.
        """
        so_far = list[Member]()
        for number, claim in enumerate(plan.claims):
            for victim in claim.victims:
                so_far += victim.members
                obstacle = job_failures.obstacle(so_far, jobs)
                if obstacle is not None:
                    self._protect(victim.uid, victim.gang, finding_text.text(obstacle))
                    return plan.claims[:number]
        return plan.claims

    def annotated(self, plan: Plan) -> Plan:
        """The plan without evictions that were refused; their rejections have the reason."""
        return partial_release.without(
            plan, {uid: refusal.obstacle for uid, refusal in self._current_refusals.items()}
        )

    @property
    def _current_refusals(self) -> Mapping[Uid, _EvictionRefusal]:
        """The refusals of gangs whose eviction is not tried in this cycle."""
        return {
            uid: refusal
            for uid, refusal in self._refusals.items()
            if refusal.wait.left(self._checked_at)
        }

    def next_retry(self) -> float | None:
        """The seconds until a refused eviction or an unread Job is worth another try, or None."""
        now = self._clock()
        stuck = (refusal.wait.left(now) for refusal in self._stuck.values())
        waits = (
            *(read.wait.left(now) for read in self._jobs.values()),
            *(refusal.wait.left(now) for refusal in self._current_refusals.values()),
            *(left for left in stuck if left),  # the others were tried once more
            *(max(0.0, until - now) for until in self._state.protected.values()),
        )
        return min(waits, default=None)

    def begin(self, claim: Claim) -> None:
        """Count a claim that is about to be written down towards the limits."""
        self._limits.begin(claim)
        self._by_guarantee[claim.uid] = claim.by_guarantee

    async def evict(self, evictions: Sequence[PendingEviction], snapshot: Snapshot) -> None:
        """Evict members of gangs that are given up; forget refusals of all other gangs.

        A Reservation is deleted if its eviction would make a Job fail, or if it is refused.
        If some members have gone already, the eviction of the others is tried once more first.

        Raises:
            errors.Unavailable: the API server is away.
        """
        self._refusals = {
            gang.uid: self._refusals[gang.uid]
            for gang in snapshot.gangs
            if gang.uid in self._refusals and partial_release.is_given_up(gang)
        }
        uids_in_use = {eviction.reservation.uid for eviction in evictions} | self._refusals.keys()
        uids_in_use |= {
            victim.uid
            for reservation in snapshot.reservations
            for victim in reservation.victims or ()
        }
        self._announced = {uid: at for uid, at in self._announced.items() if uid in uids_in_use}
        for reservation, members, _ in evictions:
            refusal = self._current_refusals.get(reservation.uid)
            if refusal is None:
                if members:
                    await self._evict_all(reservation, members)
            elif not (
                refusal.is_standing
                or self._state.refusals.holds_off(reservation.uid, self._clock())
            ):
                await self._abandon(reservation, refusal)

    async def preempt(self, claims: Sequence[PendingEviction], snapshot: Snapshot) -> None:
        """Evict members of the victims of claims, one victim after another.

        A claim is given up before its first eviction if a Job or a budget keeps any of its victims.
        If a budget refuses the first member of a victim all the same, the claim is given up, too,
        and the next plan chooses other victims. If a victim has lost members already, or the
        refusal has another reason, the eviction of its members is tried once more first.

        Raises:
            errors.Unavailable: the API server is away.
        """
        uids = {v.uid for pending in claims for v in pending.reservation.victims or ()}
        self._stuck = {uid: refusal for uid, refusal in self._stuck.items() if uid in uids}
        if uids:
            self._queues = {uid: r.queue or ROOT for uid, r in snapshot.records.items()}
        for pending in claims:
            reservation, members = pending.reservation, pending.members
            if members and not self._state.refusals.holds_off(reservation.uid, self._clock()):
                jobs = await self._read_jobs(members, is_fresh=True)
                await self._preempt(pending, jobs)

    async def _preempt(self, pending: PendingEviction, jobs: Mapping[JobKey, Job]) -> None:
        """Evict members of the victims of one claim: what has begun to end first, as it goes whole.

        Then come victims with budgets, because they alone may be refused: if one is, none of the
        others has gone in vain.
        """
        reservation, budgets = pending.reservation, self._budgets
        ends = [
            _VictimEnd(victim, own)
            for victim in reservation.victims or ()
            if (own := [member for member in pending.members if _is_of(member, victim)])
        ]
        begun = [end for end in ends if end.victim.uid in pending.begun]
        others = [end for end in ends if end.victim.uid not in pending.begun]
        others.sort(key=lambda end: not any(map(budgets.of_pod, end.members)))
        outcomes = list[_Outcome]()
        for end in begun:
            outcomes.append(await self._end(reservation, end, is_begun=True))
            if outcomes[-1] is _Outcome.SPARED:
                return
        if _Outcome.WAITS in outcomes:  # what has not begun stays until it is known to be needed
            return
        if (kept := self._first_kept(others, jobs)) is not None:
            await self._spare(reservation, *kept)
            return
        for end in others:
            # The evictions of the victims before it took time.
            if (kept := self._first_kept([end], jobs)) is not None:
                await self._spare(reservation, *kept)
                return
            if await self._end(reservation, end) is not _Outcome.GOES:
                return

    async def _end(
        self, reservation: Reservation, end: _VictimEnd, *, is_begun: bool = False
    ) -> "_Outcome":
        """Evict these members of a victim."""
        victim = end.victim
        earlier = self._stuck.get(victim.uid)
        if earlier is not None and earlier.wait.left(self._clock()):
            return _Outcome.WAITS
        await self._announce_end(reservation, victim)
        answers: list[_Answer] = []
        first, *others = end.members
        await self._end_pod(reservation, victim, first, answers)
        if not answers:
            is_begun = True
            await self._limit.all(
                bind(self._end_pod, reservation, victim, member, answers) for member in others
            )
        if not answers:
            return _Outcome.GOES
        sentence = min(answer.sentence for answer in answers)
        is_final = any(answer.is_final for answer in answers)
        if (is_begun or not is_final) and earlier is None:
            wait = Wait.begun(self._clock(), AGAIN_SECONDS)
            refused = EvictionRefused(sentence)
            self._stuck[victim.uid] = _EvictionRefusal(refused, wait, is_partial=True)
            return _Outcome.WAITS
        await self._spare(reservation, victim, sentence)
        return _Outcome.SPARED

    async def _end_pod(
        self,
        reservation: Reservation,
        victim: ReservedVictim,
        member: Member,
        answers: list[_Answer],
    ) -> None:
        """Evict one member of a victim, and count it unless it stays or has gone by itself."""
        may_have_gone = True  # if there is no answer
        try:
            may_have_gone = await self._evict(victim.gang, member, answers)
        finally:
            if may_have_gone:
                self._count(reservation, victim, member)

    def _count(self, claim: Reservation, victim: ReservedVictim, member: Member) -> None:
        known = self._queues.get(victim.uid, ROOT)
        queue, is_new = self._limits.evicted(claim.uid, member.uid, known)
        if is_new:
            is_named = member.uid in victim.pods
            seconds = victim.lost_milliseconds / 1000 / len(victim.pods) if is_named else 0.0
            by_guarantee = self._by_guarantee.get(claim.uid, False)
            if claim.grounds is not None:
                by_guarantee = claim.grounds.by_guarantee
            self._metrics.evicted(queue, seconds, by_guarantee=by_guarantee)

    @property
    def _budgets(self) -> DisruptionBudgets:
        return DisruptionBudgets.of([*self._state.budgets])

    def _first_kept(
        self, ends: Sequence[_VictimEnd], jobs: Mapping[JobKey, Job]
    ) -> tuple[ReservedVictim, str] | None:
        """The first of these victims that cannot end whole after those before it, and why.

        A Job or a budget keeps it. None if all can end.
        """
        budgets, before = self._budgets, dict[DisruptionBudget, Collection[Uid]]()
        so_far = list[Member]()
        for victim, members in ends:
            so_far += members
            if (obstacle := job_failures.obstacle(so_far, jobs)) is not None:
                return victim, finding_text.text(obstacle)
            if (shortage := budgets.shortage(members, before)) is not None:
                names = " and ".join(map(str, shortage.budgets))
                return victim, f"{names}: too few evictions are allowed by now"
            for budget, uids in budgets.by_budget(members).items():
                before[budget] = uids.union(before.get(budget, ()))
        return None

    async def _spare(self, reservation: Reservation, victim: ReservedVictim, why: str) -> None:
        """Give up a claim, and do not choose this victim again for a while."""
        self._protect(victim.uid, victim.gang, why)
        await self._give_up(reservation, f"its victim {victim.gang} stays: {why}")

    def _protect(self, uid: Uid, gang: GangKey, why: str) -> None:
        logger.warning("gang %s: ends for no other gang: %s", gang, why)
        self._state.protect(uid, self._clock() + IN_VAIN_SECONDS)

    async def _announce_end(self, reservation: Reservation, victim: ReservedVictim) -> None:
        """Create the Event on the victim before its first eviction."""
        now = self._clock()
        announced_at = self._announced.get(victim.uid)
        if announced_at is not None and now < announced_at + EVENT_SECONDS:
            return
        self._announced[victim.uid] = now
        pods = count(len(victim.pods), "pod" if victim.is_whole else "extra pod")
        sentence = f"{pods} to evict, so that {claimant(reservation)}"
        logger.warning("gang %s: %s", victim.gang, sentence)
        about = encode.Regarding.gang(victim.gang, victim.uid)
        await create_event(self._api, encode.Event(about, "Preempted", sentence, now, warning=True))

    async def _evict_all(self, reservation: Reservation, members: Sequence[Member]) -> None:
        jobs = await self._read_jobs(members, is_fresh=True)
        if (obstacle := job_failures.obstacle(members, jobs)) is not None:
            wait = Wait.begun(self._checked_at, AGAIN_SECONDS)
            await self._abandon(reservation, _EvictionRefusal(obstacle, wait))
            return
        await self._announce(reservation, members)
        answers: list[_Answer] = []
        await self._limit.all(
            bind(self._evict, reservation.gang, member, answers) for member in members
        )
        if answers:
            sentence = min(answer.sentence for answer in answers)
            await self._refuse(reservation, len(reservation.evict) - len(answers), sentence)

    async def _refuse(self, reservation: Reservation, gone: int, message: str) -> None:
        """Note that the API server refused to evict some members; ``gone`` members have gone."""
        soon = Wait.begun(self._checked_at, AGAIN_SECONDS)
        earlier_refusal = self._refusals.get(reservation.uid)
        if not gone:
            refusal = _EvictionRefusal(EvictionRefused(message), soon)
            await self._abandon(reservation, refusal)
        elif earlier_refusal is None or not earlier_refusal.is_partial:
            self._refusals[reservation.uid] = _EvictionRefusal(
                EvictionRefused(message), soon, is_partial=True, is_standing=True
            )
        else:
            wait = Wait.begun(self._checked_at, IN_VAIN_SECONDS)
            refusal = _EvictionRefusal(EvictionRefused(message, gone), wait, is_partial=True)
            await self._abandon(reservation, refusal)

    async def _abandon(self, reservation: Reservation, refusal: _EvictionRefusal) -> None:
        """Give up the Reservation and leave the gang as it is, so that it can be repaired."""
        sentence = finding_text.text(refusal.obstacle)
        logger.warning("gang %s: stays as it is: %s", reservation.gang, sentence)
        self._refusals[reservation.uid] = refusal
        await self._give_up(reservation, sentence)

    async def _announce(self, reservation: Reservation, members: Sequence[Member]) -> None:
        """Create the Event before the first eviction, but not again for each later try."""
        now = self._clock()
        announced_at = self._announced.get(reservation.uid)
        if announced_at is not None and now < announced_at + EVENT_SECONDS:
            return
        self._announced[reservation.uid] = now
        sentence = (
            f"{count(len(members), 'bound member')} to evict: others were lost, there is no room "
            "to replace them, and onPartial is Release"
        )
        logger.warning("gang %s: %s", reservation.gang, sentence)
        about = encode.Regarding.gang(reservation.gang, reservation.uid)
        event = encode.Event(about, "Released", sentence, now, warning=True)
        await create_event(self._api, event)

    async def _evict(self, gang: GangKey, member: Member, answers: list[_Answer]) -> bool:
        """Evict one member; return whether it goes, or add the reason why it stays."""
        try:
            await self._api.evict(member)
        except (errors.Gone, errors.Conflict):
            return False  # it left by itself, or has changed: the watch will show it
        except errors.ApiError as refusal:
            # A webhook, or a budget that the answer does not name, may answer 429, too, for this
            # pod alone.
            if is_away(refusal) and refusal.status != TOO_MANY:
                raise
            logger.warning("gang %s: pod %s: not evicted: %s", gang, member.key, refusal)
            is_final = isinstance(refusal, errors.Refused)
            answers.append(_Answer(f"pod {member.key}: {refusal}", is_final))
            return False
        return True

    async def _read_jobs(
        self, members: Sequence[Member], *, is_fresh: bool
    ) -> Mapping[JobKey, Job]:
        """The Jobs of these members; with ``is_fresh``, all are read again."""
        now = self._clock()
        jobs: dict[JobKey, Job] = {}
        for key in sorted(job_failures.keys(members)):
            read = self._jobs.get(key)
            if is_fresh or read is None or not read.wait.left(now):
                read = _JobRead(await self._read_job(*key), Wait.begun(now, AGAIN_SECONDS))
                self._jobs[key] = read
            if read.job is not None:
                jobs[key] = read.job
        return jobs

    async def _read_job(self, namespace: str, name: str) -> Job | None:
        try:
            return await self._api.read_job(namespace, name)
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            logger.warning("Job %s/%s cannot be read: %s", namespace, name, problem)
            return None


def _is_of(member: Member, victim: ReservedVictim) -> bool:
    return member.uid in victim.pods or (victim.is_whole and member.gang == victim.gang)
