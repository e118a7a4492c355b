"""Which gangs end so that others start: claims one by one, in the room that earlier claims leave.

``docs/preemption.md`` states the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ...filters import volume_choice
from ...filters.disruption_budgets import Shortage
from ...gang import order
from ...gang.demand import PlacementRequest
from ...model.cluster import Gang, Member, Snapshot
from ...model.decisions import Claim, Victim
from ...model.keys import GangKey
from ...model.queues import ROOT, Preemption
from ...model.resources import NOTHING, Resources
from ...model.shapes import Shape
from ...queues import charge, claims, share
from ...queues.attribution import ChargedPods
from ...queues.charge import GangCharge
from ...queues.claims import Entitlement
from ...queues.cover import QueuedGang
from ...queues.tree import QueueTree
from ...queues.use import ChargedGangs
from ...strategies.problem import Rules
from ..compile import problems
from ..compile.quotas import Quotas
from ..compiled_demand import CompiledDemand
from ..queued_gangs import QueuedGangs
from ..search import round_answer
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from ..search.starvation import HeldCapacity
from . import covered_round, victims
from .ledger import Kind, QueueLedger
from .victim_pool import Freed, PreemptionRules, Room, VictimPool, holders
from .victims import Candidate, CandidateName, Missing, Victims

MOST_VICTIMS = 1_000  # gangs that a Reservation names, by its CRD
MOST_CLAIMANTS = 64  # gangs for which one plan searches victims
MOST_LATE = 8  # kinds of gangs for which a plan that is late looks whether they may claim
SHARES = 16  # each search for a place may take this fraction (1/16) of the plan's seconds


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedPlan:
    """What a plan claims so far; room and limits are as if all pods that leave had gone.

    The assignments of ``plan`` have no claimant: a claimant starts only after its victims have
    gone.
    """

    pool: VictimPool
    rules: PreemptionRules
    limits: SearchLimits
    plan: PartialPlan
    ledger: QueueLedger
    room: Room  # negative where a node is overdrawn; without what is held
    hold: HeldCapacity | None = None  # for the starved gang: its limits, and its cover
    # The gangs whose pods share a claim without a volume. Their nodes may not reach it once it is
    # there, and their victims would have ended by then.
    sharing: frozenset[GangKey] = frozenset()
    claims: tuple[Claim, ...] = ()
    # By gang without a claim: the gangs that could end for it, and the budgets that keep them.
    kept: Mapping[GangKey, Mapping[GangKey, Shortage]] = field(default_factory=dict)
    # By gang without a claim, because they are too many: how many would have to end.
    crowds: Mapping[GangKey, int] = field(default_factory=dict)
    # By gang without a claim, although a guarantee would cover it: other queues that are within
    # their guarantees.
    within: Mapping[GangKey, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        compiled: CompiledDemand,
        plan: PartialPlan,
        ledger: QueueLedger,
        rules: PreemptionRules,
        limits: SearchLimits,
    ) -> "ClaimedPlan":
        """The plan before its first claim; the ledger has all that the plan has started."""
        pool = VictimPool.of(compiled.snapshot, compiled.grid, plan, rules)
        room: Room = pool.room_once_gone() + (plan.room - compiled.blank.free)
        ledger, leaving = _once_gone(compiled.snapshot, ledger)
        gangs = {key: _marked(rules, gang) for key, gang in ledger.gangs.items()}
        return cls(
            pool,
            rules,
            limits.with_share(SHARES),
            replace(plan, hold=None, quotas=_less(plan.quotas, leaving)),
            replace(ledger, gangs=gangs),
            room,
            plan.hold,
            volume_choice.sharing_gangs(compiled.snapshot),
        )


def _once_gone(
    snapshot: Snapshot, ledger: QueueLedger
) -> tuple[QueueLedger, Mapping[GangKey, Resources]]:
    """The ledger once all pods that leave have gone, and what each gang is charged for them now.

    A gang without a member that stays has ended: it is neither covered nor charged. Pods that are
    stuck stay; what they request beyond lost members must be covered, too.
    """
    now, pods = snapshot.taken_at, ledger.queued.pods
    starting = ledger.begun | {reservation.gang for reservation in snapshot.reservations}
    ended = {
        gang.key
        for gang in _charged_gangs(snapshot, ledger)
        if gang.key in ledger.gangs and gang.key not in starting and not _stays(gang, now)
    }
    stuck = {
        gang.key: Resources.total(map(charge.requests_of, _stuck(gang, now)))
        for gang in pods.gangs or snapshot.gangs
    }
    left = {
        key: charged.once_gone(stuck.get(key, NOTHING))
        for key, charged in ledger.charges.items()
        if key not in ended
    }
    own = {key: charged for key, charged in ledger.charges.items() if key not in pods.others}
    leaving = {
        key: charged.total - (left[key].total if key in left else NOTHING)
        for key, charged in own.items()
    }
    present = {gang.key for gang in snapshot.gangs} & left.keys()
    gangs = {
        key: _with_surplus(gang, left[key]) if key in present else gang
        for key, gang in ledger.gangs.items()
        if key not in ended
    }
    charges = {key: left[key] if key in own else ledger.charges[key] for key in left}
    return replace(ledger, gangs=gangs, charges=charges), leaving


def _charged_gangs(snapshot: Snapshot, ledger: QueueLedger) -> Iterator[Gang]:
    """The gangs of the Snapshot, and those whose PodGroup has gone but that are still charged."""
    yield from snapshot.gangs
    known = {gang.key for gang in snapshot.gangs}
    yield from (gang for gang in ledger.queued.pods.gangs if gang.key not in known)


def _stays(gang: Gang, now: float) -> bool:
    """Whether a member holds room for longer."""
    return bool(holders(gang) or _stuck(gang, now))


def _stuck(gang: Gang, now: float) -> Sequence[Member]:
    """The members that are stuck while they terminate, and hold room."""
    return [m for m in gang.members if m.is_stuck(now) and m.node is not None and not m.is_over]


def _with_surplus(gang: QueuedGang, charged: GangCharge) -> QueuedGang:
    """The gang with all that is charged beside its extras as its minimum."""
    surplus = charged.leaving + charged.given_back
    return replace(gang, minimum=gang.minimum + surplus) if surplus.amounts else gang


def charged_gangs(queued: QueuedGangs) -> ChargedGangs:
    """The gangs that run, in their queues; if there are no Queues, all are in the root."""
    if queued.charged is not None:
        return queued.charged
    snapshot = queued.observed.snapshot
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    records, pods = snapshot.records, ChargedPods.of(snapshot)
    charges, running = {}, []
    for gang in snapshot.gangs:
        record = records.get(gang.uid)
        left, standing = pods.others.get(gang.key, ()), reservations.get(gang.uid)
        minimum = pods.own_records.get(gang.uid)
        own = charge.gang_charge(gang, standing, minimum, left, pods.joined)
        if own.total.amounts:
            started = charge.started_at(gang) if record is None else record.started
            charges[gang.key] = own
            running.append(
                QueuedGang(
                    gang.key,
                    ROOT,
                    gang.priority,
                    own.minimum,
                    own.extras,
                    started,
                    gang.is_protected,
                )
            )
    totals = dict(snapshot.allocatable.amounts)
    return ChargedGangs(QueueTree.of(()), totals, tuple(running), charges)


def claim_by_guarantee(
    claimed: ClaimedPlan, wants: Sequence[PlacementRequest], first: GangKey | None = None
) -> ClaimedPlan:
    """The plan with claims of gangs that would be covered.

    The gang ``first`` claims first; the others follow by priority, age and name.
    """
    ordered = sorted(
        wants,
        key=lambda want: (
            want.gang.key != first,
            -want.gang.priority,
            order.waiting_since(want.gang, want.members),
            want.gang.key,
        ),
    )
    return _claim(claimed, ordered, by_guarantee=True)


def claim_by_priority(claimed: ClaimedPlan, wants: Sequence[PlacementRequest]) -> ClaimedPlan:
    """The plan with claims of gangs that would borrow, by the turns of their queues."""
    ledger = claimed.ledger
    borrowers = {ledger.borrower(w): w for w in wants if w.gang.key not in ledger.begun}
    turns = share.turns(ledger.shares, borrowers)
    return _claim(claimed, [borrowers[turn.gang] for turn in turns], by_guarantee=False)


def _claim(
    claimed: ClaimedPlan, wants: Sequence[PlacementRequest], *, by_guarantee: bool
) -> ClaimedPlan:
    """The plan with the claims of these gangs that can be met, one after the other."""
    entitlements, searches = _Entitlements(claimed), 0
    for want in wants:
        claimed.limits.progress.step()
        if claimed.limits.is_late and (searches or entitlements.kinds >= MOST_LATE):
            break  # a plan that is late still makes a first claim, if it finds it soon
        if not _may_claim(claimed, want):
            continue
        if entitlements.ledger is not claimed.ledger:
            entitlements = _Entitlements(claimed)
        entitlement = entitlements.of(want)
        if entitlement is None or entitlement.by_guarantee is not by_guarantee:
            continue
        claimed = _permitted(claimed, want, entitlement, entitlements)
        searches += 1
        if searches == MOST_CLAIMANTS:
            break
    return claimed


NO_ENTITLEMENT = Entitlement(by_guarantee=False, gangs=frozenset(), extras=frozenset())


class _Entitlements:
    """What may end for gangs that wait; gangs of one kind share the answer for a ledger."""

    def __init__(self, claimed: ClaimedPlan) -> None:
        self.ledger, self._rules, self._hold = claimed.ledger, claimed.rules, claimed.hold
        self._known: dict[Kind, Entitlement | None] = {}

    @property
    def kinds(self) -> int:
        """How many kinds of gangs were asked for; each takes walks over all gangs that run."""
        return len(self._known)

    def of(self, want: PlacementRequest) -> Entitlement | None:
        """What may end so that the gang starts; None if it has no claim.

        It has none if it would take the cover that is held for the starved gang.
        """
        return self._of(_marked(self._rules, self.ledger.started(want)))

    def permit(self, claimed: ClaimedPlan, want: PlacementRequest) -> bool:
        """Whether the last claim, of this gang, ends only what its placed members may end."""
        if len(want.alike) == 1 or want.gang.key not in claimed.ledger.begun:
            return True
        start = replace(claimed.ledger.gangs[want.gang.key], extras=())
        claim, entitlement = claimed.claims[-1], self._of(start) or NO_ENTITLEMENT
        whole = {victim.gang for victim in claim.victims if victim.is_whole}
        parts = (victim for victim in claim.victims if not victim.is_whole)
        extras = {(victim.gang, m.key.name) for victim in parts for m in victim.members}
        is_same = entitlement.by_guarantee is claim.by_guarantee
        return is_same and whole <= entitlement.gangs and extras <= entitlement.extras

    def _of(self, start: QueuedGang) -> Entitlement | None:
        kind = self.ledger.kind(start)
        if kind not in self._known:
            mode = self._rules.modes.get(start.queue, Preemption.OFF)
            running = self.ledger.running
            entitlement = claims.entitlement(self.ledger.tree, running, start, mode)
            is_free = entitlement is None or covered_round.leaves_cover(
                start, self._hold, self.ledger
            )
            self._known[kind] = entitlement if is_free else None
        return self._known[kind]


def _with_oldest(want: PlacementRequest) -> PlacementRequest:
    """The request with the members alone with which the gang is charged before they are chosen."""
    places = charge.Places.of(want.gang, None)
    return replace(want, members=tuple(places.filled(want.members, Counter())))


def _permitted(
    claimed: ClaimedPlan,
    want: PlacementRequest,
    entitlement: Entitlement,
    entitlements: _Entitlements,
) -> ClaimedPlan:
    """The plan with the claim of a gang, if its placed members may end what it ends.

    The oldest members may end what others, which request less, may not.
    """
    made = _claimed(claimed, want, entitlement)
    if entitlements.permit(made, want):
        return made
    return _claimed(claimed, _with_oldest(want), entitlement)


def _may_claim(claimed: ClaimedPlan, want: PlacementRequest) -> bool:
    """Whether the gang may claim.

    No member has a node or is absent, and each may preempt. None shares a claim that has no volume
    yet, or has a rule of affinity or spread, which victims might satisfy. Such rules of other gangs
    count no pod before it has its node, so they do not matter here.
    """
    ledger = claimed.ledger
    return not (
        want.gang.key in ledger.begun
        or want.gang.key in claimed.sharing
        or any(member.node is not None and not member.is_over for member in want.gang.members)
        or ledger.counts[want.gang.key].absent
        or any(_needs_others(group[0].shape) for group in want.alike)
        or not all(member.may_preempt for member in want.members)
    )


def _needs_others(shape: Shape) -> bool:
    """Whether other pods may have to stay where they are for a member to have its node."""
    rules = shape.rules
    return bool(rules.affinity) or any(spread.peers.selector for spread in rules.spread)


def _within_guarantees(
    claimed: ClaimedPlan, want: PlacementRequest, entitlement: Entitlement
) -> tuple[str, ...]:
    """The other queues of which no gang may end by this entitlement; none if it is by priority."""
    borrowers = {*entitlement.gangs, *(gang for gang, _ in entitlement.extras)}
    own = claimed.ledger.queued.queue_of(want.gang)
    gangs = claimed.ledger.running if entitlement.by_guarantee else ()
    others = {gang.queue for gang in gangs} - {own, ROOT}
    return tuple(sorted(others - {gang.queue for gang in gangs if gang.key in borrowers}))


def _claimed(claimed: ClaimedPlan, want: PlacementRequest, entitlement: Entitlement) -> ClaimedPlan:
    """The plan with the claim of a gang; if there is none, the plan with what keeps the gang."""
    candidates, kept = claimed.pool.within_budgets(
        claimed.pool.candidates(want, claimed.ledger, entitlement)
    )
    freed = claimed.pool.freed(candidates)
    chosen = _cheapest(claimed, want, candidates, freed)
    if chosen is not None and (crowd := len(_gangs(chosen.candidates))) > MOST_VICTIMS:
        names = {candidate.name for candidate in chosen.candidates}
        domains = claimed.pool.domains(want, claimed.room, freed)
        domain = max(domains, key=lambda domain: len(domain.candidates & names))
        fewer = _cheapest(claimed, want, _of_most_helpful(candidates, domain.missing), freed)
        if fewer is None:
            return replace(claimed, crowds={**claimed.crowds, want.gang.key: crowd})
        chosen = replace(fewer, bound=chosen.bound)
    if chosen is None and kept:
        return replace(claimed, kept={**claimed.kept, want.gang.key: kept})
    if chosen is None:
        queues = _within_guarantees(claimed, want, entitlement)
        return replace(claimed, within={**claimed.within, want.gang.key: queues})
    room, after = _room_without(claimed, chosen.candidates, freed), chosen.answer
    quotas = after.quotas.with_nothing_held()
    left: Room = after.free + np.minimum(room, 0)
    return replace(
        claimed,
        pool=claimed.pool.with_claim(want.gang.key, chosen.candidates),
        plan=replace(after, assigned=claimed.plan.assigned, quotas=quotas),
        ledger=_ledger_after(claimed, want, chosen),
        room=left,
        claims=(*claimed.claims, _decision(claimed, want, entitlement, chosen)),
    )


def _cheapest(
    claimed: ClaimedPlan,
    want: PlacementRequest,
    candidates: Sequence[Candidate],
    freed: Mapping[CandidateName, Freed],
) -> Victims[PartialPlan] | None:
    """The cheapest victims with which the gang is placed, and the plan with it."""
    quick = replace(claimed.limits, strategy=claimed.limits.fallback)  # any place will do
    start, ledger = claimed.ledger.started(want), claimed.ledger
    limits_before = covered_round.limits_for(start, claimed.plan.quotas, claimed.hold, ledger)
    base = replace(claimed.plan.base, rules=_of_anti_affinity(claimed.plan.base.rules))

    def placed(some: Sequence[Candidate]) -> PartialPlan | None:
        quotas = _less(limits_before, _charges(some)) if limits_before.limits else limits_before
        if problems.exceeded(claimed.plan.base, want, quotas):
            return None
        room = np.maximum(_room_without(claimed, some, freed), 0)
        before = replace(claimed.plan, base=base, free=room, quotas=quotas)
        for limits in (quick, claimed.limits):
            after = round_answer.answer_round(before, [want], limits)
            if after.has_placed(want):
                return after
        return None

    domains = claimed.pool.domains(want, claimed.room, freed)
    return victims.cheapest(candidates, placed, domains, together=claimed.pool.together)


def _room_without(
    claimed: ClaimedPlan, some: Sequence[Candidate], freed: Mapping[CandidateName, Freed]
) -> Room:
    room = claimed.room.copy()
    if some:
        rows, amounts = zip(*(freed[candidate.name] for candidate in some), strict=True)
        np.add.at(room, np.concatenate(rows), np.concatenate(amounts))
    return room


def _gangs(some: Sequence[Candidate]) -> AbstractSet[GangKey]:
    return {candidate.gang for candidate in some}


def _of_most_helpful(
    candidates: Sequence[Candidate], missing: Sequence[Missing]
) -> Sequence[Candidate]:
    """The candidates of as many gangs as may end for one: those that free most of what is missing.

    Of gangs that free as much, those of which most members may end.
    """
    shares: dict[GangKey, Fraction] = {}
    members = Counter[GangKey]()
    for candidate in candidates:
        parts = (Fraction(lack.freed.get(candidate.name, 0), lack.amount) for lack in missing)
        freed = sum((min(part, Fraction(1)) for part in parts), Fraction(0))
        shares[candidate.gang] = max(shares.get(candidate.gang, Fraction(0)), freed)
        members[candidate.gang] = max(members[candidate.gang], len(candidate.members))
    order = sorted(shares, key=lambda gang: (-shares[gang], -members[gang], gang))
    helpful = {*order[:MOST_VICTIMS]}
    return [candidate for candidate in candidates if candidate.gang in helpful]


def _of_anti_affinity(rules: Rules) -> Rules:
    """The rules of anti-affinity alone: what else is placed is bound before a claimant comes."""
    return Rules(rules.domain_counts, rules.anti_affinity)


def _less(quotas: Quotas, charges: Mapping[GangKey, Resources]) -> Quotas:
    """The limits, with these charges of gangs taken off what is in use."""
    limits = tuple(
        replace(
            limit,
            in_use=limit.in_use
            - sum(charges[gang][limit.resource] for gang in limit.gangs & charges.keys()),
        )
        for limit in quotas.limits
    )
    return replace(quotas, limits=limits)


def _charges(some: Sequence[Candidate]) -> Mapping[GangKey, Resources]:
    charges: dict[GangKey, Resources] = {}
    for candidate in some:
        charges[candidate.gang] = charges.get(candidate.gang, NOTHING) + candidate.charge
    return charges


def _ledger_after(
    claimed: ClaimedPlan,
    want: PlacementRequest,
    chosen: Victims[PartialPlan],
) -> QueueLedger:
    """The ledger once the victims have gone and the claimant runs."""
    gangs, charges = dict(claimed.ledger.gangs), dict(claimed.ledger.charges)
    for candidate in chosen.candidates:
        key, pods = candidate.gang, {member.key.name for member in candidate.members}
        if candidate.is_whole:
            del gangs[key], charges[key]
            continue
        extras = tuple(extra for extra in gangs[key].extras if extra[0] not in pods)
        gangs[key] = replace(gangs[key], extras=extras)
        charges[key] = replace(charges[key], extras=extras)
    ledger = replace(claimed.ledger, gangs=gangs, charges=charges)
    ledger = ledger.with_assigned([want.gang.key], chosen.answer.assigned)
    start = _marked(claimed.rules, ledger.gangs[want.gang.key])
    return replace(ledger, gangs={**ledger.gangs, want.gang.key: start})


def _decision(
    claimed: ClaimedPlan,
    want: PlacementRequest,
    entitlement: Entitlement,
    chosen: Victims[PartialPlan],
) -> Claim:
    uids = {gang.key: gang.uid for gang in claimed.pool.snapshot.gangs}
    by_gang: dict[GangKey, list[Candidate]] = {}
    for candidate in chosen.candidates:
        by_gang.setdefault(candidate.gang, []).append(candidate)
    assigned = chosen.answer.assigned
    return Claim(
        want.gang.key,
        want.gang.uid,
        want.gang.generation,
        tuple(assigned[member.uid] for member in want.members if member.uid in assigned),
        tuple(
            Victim(
                key,
                uids[key],
                tuple(member for candidate in some for member in candidate.members),
                is_whole=some[0].is_whole,
                queue=claimed.ledger.gangs[key].queue,
                lost=sum((candidate.lost for candidate in some), Fraction(0)),
            )
            for key, some in sorted(by_gang.items())
        ),
        by_guarantee=entitlement.by_guarantee,
        cost=chosen.cost.work,
        bound=chosen.bound.work,
    )


def _marked(rules: PreemptionRules, gang: QueuedGang) -> QueuedGang:
    """The gang, protected if the rules say so."""
    return replace(gang, is_protected=True) if gang.key in rules.protected else gang
