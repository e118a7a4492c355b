"""The claims of a whole plan: by guarantee before any gang borrows, by priority after all starts.

A claim by guarantee becomes a standing Reservation in the Snapshot from which the rest of the plan
is made. So no other gang gets its room, in this plan and in every later one. ``docs/preemption.md``
states the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from ...filters.disruption_budgets import Shortage
from ...gang.demand import PlacementRequest
from ...gang.findings import KeptByBudget, MayNotBorrow, TooManyVictims, WithinGuarantee
from ...model.cluster import PodReservation, Reservation, ReservedVictim, Snapshot
from ...model.decisions import Assignment, Claim, Finding, Policy, Reason, Rejection
from ...model.keys import GangKey
from ...model.queues import ROOT, Preemption
from ...queues import claims
from ...queues.cover import QueuedGang
from ...queues.use import ChargedGangs
from ..compiled_demand import CompiledDemand
from ..queued_gangs import QueuedGangs
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from . import preemption
from .ledger import Kind, QueueLedger
from .preemption import ClaimedPlan
from .victim_pool import PreemptionRules


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRound:
    """The claims of gangs, and what keeps other gangs from a claim, by gang."""

    claims: tuple[Claim, ...] = ()
    obstacles: Mapping[GangKey, Finding] = field(default_factory=dict)


NO_CLAIMS = ClaimRound()


def by_guarantee(
    compiled: CompiledDemand,
    queued: QueuedGangs,
    plan: PartialPlan,
    first: PlacementRequest | None,
    limits: SearchLimits,
) -> ClaimRound:
    """The claims of gangs that a guarantee would cover; the plan has started no borrower yet.

    ``first`` is the entitled starved gang, if there is one. If it claims, what is held for it is
    released; otherwise it stays held.
    """
    wants = _waiting(compiled, plan)
    claimed = _claimed(compiled, queued, plan, limits)
    if first is not None and plan.hold is not None:
        own = _claimed(compiled, queued, replace(plan, hold=None), limits)
        own = preemption.claim_by_guarantee(own, [want for want in wants if _is(want, first)])
        claimed = own if own.claims else claimed
        wants = [want for want in wants if not _is(want, first)]
    claimed = preemption.claim_by_guarantee(claimed, wants)
    return _claim_round(compiled, queued, claimed)


def by_priority(
    compiled: CompiledDemand, queued: QueuedGangs, plan: PartialPlan, limits: SearchLimits
) -> ClaimRound:
    """The claims of gangs by their priority; the plan has started all gangs that it starts.

    The gang for which the plan holds room claims with this room, after those of higher priority.
    """
    wants = _waiting(compiled, plan)
    claimed = _claimed(compiled, queued, plan, limits)
    if plan.hold is not None:
        holder = plan.hold.gang
        ahead = [want for want in wants if want.gang.priority > holder.priority]
        claimed = preemption.claim_by_priority(claimed, ahead)
        own = replace(claimed, room=claimed.room + plan.hold.room, hold=None)
        own = preemption.claim_by_priority(own, [w for w in wants if w.gang.key == holder.key])
        claimed = own if len(own.claims) > len(claimed.claims) else claimed
    claimed = preemption.claim_by_priority(claimed, wants)
    return _claim_round(compiled, queued, claimed)


def barred(
    compiled: CompiledDemand, queued: QueuedGangs, plan: PartialPlan
) -> Mapping[GangKey, Rejection]:
    """The rejection of each protected gang that waits and is not covered after the plan.

    It says what the members want that request least. If they alone would be covered, line by line,
    it says what the oldest want.
    """
    if queued.charged is None:
        return {}
    wants = [
        want
        for want in compiled.requests
        if (want.gang.is_protected or want.gang.key in queued.charges) and not plan.has_placed(want)
    ]
    if not wants:
        return {}
    ledger = QueueLedger.of(queued, queued.charged, compiled.tried)
    ledger = ledger.with_assigned(ledger.counts, plan.assigned)
    rejections = {}
    known: dict[tuple[Kind, Kind], MayNotBorrow | None] = {}
    for want in wants:
        start, least = ledger.started(want), ledger.least_start(want)
        if not start.is_protected:
            continue
        kind = ledger.kind(least), ledger.kind(start)
        if kind not in known:
            known[kind] = _why_not_covered(ledger, least) or _why_not_covered(ledger, start)
        if (finding := known[kind]) is not None:
            finding = replace(finding, obstacle=queued.unendable.get(start.key))
            rejections[start.key] = Rejection(start.key, Reason.MAY_NOT_BORROW, (finding,))
    return rejections


def _why_not_covered(ledger: QueueLedger, start: QueuedGang) -> MayNotBorrow | None:
    return claims.why_not_covered(ledger.tree, ledger.without(start.key), start)


def may_claim(snapshot: Snapshot, policy: Policy, *, by_guarantee: bool) -> bool:
    """Whether some queue lets its gangs claim: by guarantee or, without the flag, by priority."""
    if policy.preemption is Preemption.OFF:
        return False
    declared = _modes(snapshot, policy).values()
    if by_guarantee:
        return bool(snapshot.queues) and any(mode is not Preemption.OFF for mode in declared)
    return Preemption.FULL in declared


def next_change_at(queued: QueuedGangs, now: float, policy: Policy) -> float | None:
    """When the next gang has run for its queue's minimum run time, in seconds since the epoch.

    None if no gang is younger, or if preemption is off.
    """
    if policy.preemption is Preemption.OFF:
        return None
    return min((until for _, until in _young(queued.charged, now)), default=None)


def with_claims(snapshot: Snapshot, added: Sequence[Claim]) -> Snapshot:
    """The Snapshot with a standing Reservation for each of these claims."""
    reservations = [*snapshot.reservations, *(_reservation(snapshot, claim) for claim in added)]
    ordered = sorted(reservations, key=lambda reservation: reservation.gang)
    return replace(snapshot, reservations=tuple(ordered))


def victims_of(claim: Claim) -> tuple[ReservedVictim, ...]:
    """The victims of a claim, as a Reservation names them."""
    return tuple(
        ReservedVictim(
            victim.gang,
            victim.uid,
            tuple(sorted(member.uid for member in victim.members)),
            victim.is_whole,
            ceil(victim.lost * 1000),
        )
        for victim in claim.victims
    )


def _modes(snapshot: Snapshot, policy: Policy) -> Mapping[str, Preemption]:
    """Which claims each queue allows its gangs, by queue."""
    modes = {queue.name: claims.mode(queue, policy.preemption) for queue in snapshot.queues}
    return {**modes, ROOT: policy.preemption}


def _young(charged: ChargedGangs | None, now: float) -> Iterator[tuple[QueuedGang, float]]:
    """The gangs within the minimum run time of their queue, and when it ends, in epoch seconds."""
    if charged is None:
        return
    for gang in charged.running:
        queue = charged.tree.queues[gang.queue]
        if now < (until := gang.started + queue.min_run_seconds):
            yield gang, until


def _claimed(
    compiled: CompiledDemand, queued: QueuedGangs, plan: PartialPlan, limits: SearchLimits
) -> ClaimedPlan:
    """The plan before its first claim."""
    snapshot = compiled.snapshot
    ledger = QueueLedger.of(queued, preemption.charged_gangs(queued), compiled.tried)
    ledger = ledger.with_assigned(ledger.counts, plan.assigned)
    protected = {gang.key for gang in snapshot.gangs if gang.uid in snapshot.protected}
    young = {gang.key for gang, _ in _young(queued.charged, snapshot.taken_at)}
    rules = PreemptionRules(
        _modes(snapshot, limits.policy),
        spent={
            gang.key: Fraction(gang.lost_milliseconds, 1000)
            for gang in snapshot.gangs
            if gang.lost_milliseconds
        },
        spared=frozenset(protected | young),
    )
    return ClaimedPlan.of(compiled, plan, ledger, rules, limits)


def _waiting(compiled: CompiledDemand, plan: PartialPlan) -> Sequence[PlacementRequest]:
    """The requests without a place that may claim room.

    Not those for devices: which devices a gang gets cannot be said before its victims have gone.
    """
    tried = {members.gang.key for members in compiled.tried}
    return [
        want
        for want in compiled.requests
        if want.gang.key in tried
        and not plan.has_placed(want)
        and not any(member.device_claims for member in want.members)
    ]


def _is(want: PlacementRequest, other: PlacementRequest) -> bool:
    return want.gang.key == other.gang.key


def _claim_round(compiled: CompiledDemand, queued: QueuedGangs, claimed: ClaimedPlan) -> ClaimRound:
    obstacles: dict[GangKey, Finding] = {
        gang: WithinGuarantee(queues) for gang, queues in claimed.within.items() if queues
    }
    obstacles |= {gang: _kept_by_budgets(kept) for gang, kept in claimed.kept.items()}
    obstacles |= {gang: _too_many(victims) for gang, victims in claimed.crowds.items()}
    return ClaimRound(_recorded(compiled, queued, claimed.claims), obstacles)


def _too_many(victims: int) -> TooManyVictims:
    return TooManyVictims(victims, preemption.MOST_VICTIMS)


def _kept_by_budgets(kept: Mapping[GangKey, Shortage]) -> KeptByBudget:
    first = min(kept)
    budgets, pods = kept[first]
    names = tuple(str(budget) for budget in budgets)
    return KeptByBudget(first, names, pods, budgets[0].allowed, more=len(kept) - 1)


def _recorded(
    compiled: CompiledDemand, queued: QueuedGangs, made: Sequence[Claim]
) -> tuple[Claim, ...]:
    """The claims, each with the record of its start."""
    counts = {members.gang.key: members for members in compiled.gangs}
    records = []
    for claim in made:
        members = counts[claim.gang]
        placed = {assignment.uid for assignment in claim.assignments}
        record = queued.start_record(members, [m for m in members.waiting if m.uid in placed])
        records.append(replace(claim, record=record))
    return tuple(records)


def _reservation(snapshot: Snapshot, claim: Claim) -> Reservation:
    return Reservation(
        claim.gang,
        claim.uid,
        claim.generation,
        scheduler="",
        term="",
        reserved_at=snapshot.taken_at,
        entries=tuple(map(_entry, claim.assignments)),
        record=claim.record,
        victims=victims_of(claim),
    )


def _entry(assignment: Assignment) -> PodReservation:
    return PodReservation(assignment.pod, assignment.uid, assignment.node)
