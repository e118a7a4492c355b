"""From a Snapshot to a Plan: which gangs start now and where, and why the others wait.

``plan`` has a line for each stage. Repairs of started gangs come first, then whole gangs in one
joint decision. Members beyond those needed follow the whole gangs of their priority. The same
Snapshot gives the same Plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..filters import volume_choice
from ..gang import demand, refusals, slots, timeouts
from ..gang.demand import MemberCounts, PlacementRequest
from ..gang.findings import ClaimsRoom
from ..model.cluster import SlotReservation, Snapshot
from ..model.decisions import (
    Assignment,
    Claim,
    Eviction,
    Finding,
    Placement,
    Plan,
    Policy,
    Reason,
    Rejection,
)
from ..model.keys import GangKey, Uid
from ..model.queues import Preemption
from ..strategies.problem import Budget, Strategy
from . import (
    compiled_demand,
    explain,
    local_search,
    observed_demand,
    partial_release,
    preferences,
    preferred_domains,
    queued_gangs,
)
from .compile import gang_value, problems
from .compile.capacity import FitByShape
from .compile.quotas import Quotas
from .compiled_demand import CompiledDemand
from .devices.assignment import allocations
from .observed_demand import ObservedDemand
from .queued_gangs import QueuedGangs
from .queueing import claim_rounds, stages
from .queueing.claim_rounds import ClaimRound
from .queueing.ledger import Entitlements, QueueLedger
from .search import bounds, late_joins, repairs, round_order, round_runner, starvation
from .search.limits import NO_PROGRESS, Progress, SearchLimits
from .search.partial_plan import PartialPlan
from .search.round_runner import PriorityOrder, SearchOrder
from .search.starvation import StarvedGang
from .search.starvation_trials import StarvationSearch

DEFAULT_POLICY = Policy()
EXPLAINED_BY_ROOM = (Reason.NOT_ENOUGH_ROOM, Reason.BUDGET_EXHAUSTED)
PORTS_TOGETHER = "pods want so many host ports that some of them count as one"
SHARED = "pods share volumes of a driver with a limit, and each of them counts these volumes"
ROUNDED = "a node has more than 1 Pi of a resource, and a request for it was rounded up"


def with_budgets_that_count(snapshot: Snapshot, policy: Policy) -> Snapshot:
    """The Snapshot, without budgets of evictions and Jobs if preemption is off: no gang ends."""
    if policy.preemption is not Preemption.OFF:
        return snapshot
    return replace(snapshot, budgets=(), jobs=None)


def plan(
    snapshot: Snapshot,
    strategy: Strategy,
    fallback: Strategy,
    budget: Budget,
    policy: Policy = DEFAULT_POLICY,
    *,
    progress: Progress = NO_PROGRESS,
) -> Plan:
    """Decide for every gang that has no standing Reservation.

    ``fallback`` answers where ``strategy`` fails, and answers everything that is left once the plan
    is late. PodDisruptionBudgets and Jobs count unless preemption is off.
    """
    limits = SearchLimits(strategy, fallback, budget, policy, snapshot.taken_at, progress)
    snapshot = with_budgets_that_count(snapshot, policy)
    first = begin(snapshot, limits)
    begun, searched, guaranteed = search_with_claims(snapshot, first, limits)
    queued, compiled = begun.queued, begun.compiled
    improved = as_proved(compiled, improve(compiled, searched, begun.order, limits))
    waiting = explain_waiting(queued, compiled, improved, limits)
    released = release_partial(compiled, improved, waiting)
    prioritized = claim_by_priority(begun, improved, limits)
    placements, claims = volume_choice.with_volumes(
        snapshot,
        placements_of(improved, queued),
        guaranteed.claims + prioritized.claims,
    )
    obstacles = {**guaranteed.obstacles, **prioritized.obstacles}
    rejections = (*released.rejections, *queued.observed.refused.values())
    return Plan(
        placements=placements,
        rejections=with_claimants(rejections, claims, obstacles),
        evictions=released.evictions,
        proved=improved.plan.proved,
        shortfall=improved.plan.shortfall,
        next_change_at=next_change_at(snapshot, queued, compiled, begun.starved, policy),
        levels=bounds.levels(improved.plan.tally, gang_value.scale(policy)),
        queues=first.queued.use,
        claims=claims,
    )


@dataclass(frozen=True, slots=True, eq=False)
class BegunPlan:
    """A plan before its rounds: the demand, the repairs, and the order of the rounds."""

    observed: ObservedDemand
    queued: QueuedGangs
    compiled: CompiledDemand
    repaired: PartialPlan
    starved: "StarvedGangs"
    order: SearchOrder


@dataclass(frozen=True, slots=True, eq=False)
class StarvedGangs:
    """The gangs that go first in their priority, and whether the search may have missed one.

    While there are Queues, ``gangs`` are candidates, at most two of each queue.
    """

    candidates: Sequence[PlacementRequest]  # gangs for which room may be held
    gangs: tuple[StarvedGang, ...]
    shortfall: str  # why the search may have missed a gang; empty if it has missed none


@dataclass(frozen=True, slots=True, eq=False)
class ImprovedPlan:
    """The final placements, and the gangs with a uid for each absent member that has a node."""

    plan: PartialPlan
    gangs: Sequence[MemberCounts]


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedGangs:
    """The gangs to evict so that they start again whole, and why all waiting gangs wait."""

    evictions: tuple[Eviction, ...]
    rejections: tuple[Rejection, ...]


def begin(snapshot: Snapshot, limits: SearchLimits) -> BegunPlan:
    """Carry out the stages before the rounds."""
    observed = observed_demand.observe(snapshot)
    queued = queued_gangs.queue_gangs(observed)
    quotas = Quotas.of(queued.limits, queued.credit_of)
    compiled = compiled_demand.compile_demand(queued.observed, quotas)
    repaired = repair_gangs(compiled, limits)
    entitlements = find_entitlements(compiled, queued)
    starved = find_starved(compiled, queued, entitlements, limits)
    order = order_rounds(compiled, entitlements, starved, limits.policy)
    return BegunPlan(observed, queued, compiled, repaired, starved, order)


def search_with_claims(
    snapshot: Snapshot, begun: BegunPlan, limits: SearchLimits
) -> tuple[BegunPlan, PartialPlan, ClaimRound]:
    """The plan once all rounds are answered, and what gangs claim that a guarantee would cover.

    Claims are decided after all gangs that do not borrow have started. The room that is claimed is
    given to no other gang. If one of the started gangs could not start beside the claims, there are
    no claims now: the next plan decides them.
    """
    order, compiled = begun.order, begun.compiled
    is_meant = claim_rounds.may_claim(snapshot, limits.policy, by_guarantee=True)
    if is_meant and compiled.requests and isinstance(order, stages.QueueStages):
        covered = search(replace(begun, order=replace(order, has_borrowers=False)), limits)
        first = order.starved.want if order.starved and order.starved.is_entitled else None
        claimed = claim_rounds.by_guarantee(compiled, begun.queued, covered, first, limits)
        if claimed.claims:
            beside = begin(claim_rounds.with_claims(snapshot, claimed.claims), limits)
            plan = search(beside, limits)
            starts = (want for want in compiled.requests if covered.has_placed(want))
            if all(plan.has_placed(want) for want in starts):
                return beside, plan, claimed
        else:
            return begun, search(begun, limits), claimed
    return begun, search(begun, limits), claim_rounds.NO_CLAIMS


def search(begun: BegunPlan, limits: SearchLimits) -> PartialPlan:
    """The plan after all rounds."""
    return search_rounds(begun.compiled, begun.repaired, begun.starved, begun.order, limits)


def claim_by_priority(begun: BegunPlan, improved: ImprovedPlan, limits: SearchLimits) -> ClaimRound:
    """What gangs claim by their priority, once the plan has started all that it starts."""
    if not claim_rounds.may_claim(begun.compiled.snapshot, limits.policy, by_guarantee=False):
        return claim_rounds.NO_CLAIMS
    return claim_rounds.by_priority(begun.compiled, begun.queued, improved.plan, limits)


def with_claimants(
    rejections: Sequence[Rejection],
    claims: Sequence[Claim],
    obstacles: Mapping[GangKey, Finding],
) -> tuple[Rejection, ...]:
    """The rejections, in which each claimant says who ends before it starts.

    Gangs without a claim say what keeps them from it.
    """
    by_gang = {rejection.gang: rejection for rejection in rejections}
    for claim in claims:
        before = by_gang.get(claim.gang) or Rejection(claim.gang, Reason.NOT_ENOUGH_ROOM, ())
        members = sum(len(victim.members) for victim in claim.victims)
        victims = tuple(victim.gang for victim in claim.victims)
        finding = ClaimsRoom(members, victims, by_guarantee=claim.by_guarantee)
        by_gang[claim.gang] = before.with_findings(finding)
    for gang in obstacles.keys() & by_gang.keys():
        by_gang[gang] = by_gang[gang].with_findings(obstacles[gang])
    return tuple(by_gang.values())


def repair_gangs(compiled: CompiledDemand, limits: SearchLimits) -> PartialPlan:
    """The plan with lost members replaced where there is room; its bounds are of whole gangs."""
    share = limits.with_share(repairs.MOST_REPAIRS)
    return replace(repairs.repair(compiled.blank, compiled.gangs, share), tally={})


def find_entitlements(compiled: CompiledDemand, queued: QueuedGangs) -> Entitlements | None:
    """Which gangs a guarantee would cover, if there are Queues; each is walked on demand."""
    if queued.charged is None:
        return None
    return Entitlements(QueueLedger.of(queued, queued.charged, compiled.tried))


def find_starved(
    compiled: CompiledDemand,
    queued: QueuedGangs,
    entitlements: Entitlements | None,
    limits: SearchLimits,
) -> StarvedGangs:
    """The gangs that have waited too long, and fit the empty cluster and the limits without use.

    Gangs that the API server refused recently are left out.
    """
    snapshot = compiled.snapshot
    refused = refusals.recently_refused(snapshot)
    quotas = compiled.blank.quotas.without_use()
    candidates = [
        request
        for request in compiled.requests
        if request.gang.key not in refused
        and queued.may_ever_start(request)
        and not problems.exceeded(compiled.grid, request, quotas)
    ]
    trials = StarvationSearch(limits, len(compiled.requests))
    gangs = starvation.starved(
        snapshot,
        compiled.grid_without_gangs,
        candidates,
        limits.policy,
        trials,
        level_of=starvation.priority_of if entitlements is None else entitlements.candidacy,
    )
    return StarvedGangs(candidates, gangs, trials.shortfall)


def order_rounds(
    compiled: CompiledDemand,
    entitlements: Entitlements | None,
    starved: StarvedGangs,
    policy: Policy,
) -> SearchOrder:
    """The order of the rounds: by priority, or by the stages of queues."""
    if entitlements is not None:
        return stages.order(
            entitlements, compiled.requests, candidates=starved.gangs, policy=policy
        )
    return PriorityOrder(round_order.rounds(compiled.tried, compiled.requests, starved.gangs))


def search_rounds(
    compiled: CompiledDemand,
    repaired: PartialPlan,
    starved: StarvedGangs,
    order: SearchOrder,
    limits: SearchLimits,
) -> PartialPlan:
    """The plan after all rounds, and whether it is proved."""
    grid = compiled.grid
    roughly = (grid.is_rounded and ROUNDED) or (grid.columns.has_rest and PORTS_TOGETHER) or ""
    shortfall = starved.shortfall or roughly
    begun = replace(
        repaired,
        proved=repaired.proved and not shortfall,
        shortfall=repaired.shortfall or shortfall,
    )
    return round_runner.search(begun, order, limits)


def improve(
    compiled: CompiledDemand, plan: PartialPlan, order: SearchOrder, limits: SearchLimits
) -> ImprovedPlan:
    """The plan with members moved to nodes that they prefer, and with members that then fit.

    Gangs that start still start. After members have joined, all members may move again. Once the
    plan is late, nothing is improved.
    """
    gangs, work = compiled.gangs, preferences.WORK
    while True:
        limits.progress.step()
        gangs = [demand.numbered(gang, plan.assigned) for gang in gangs]
        if limits.is_late:
            return ImprovedPlan(plan, gangs)
        before = plan.assigned
        plan = preferred_domains.together(plan, gangs, compiled.snapshot, limits)
        context = local_search.MoveContext(
            compiled.snapshot, compiled.placed_pods, compiled.blank.base, plan.room
        )
        assigned = preferred_domains.improved(context, gangs, plan.assigned, limits.progress)
        if assigned != plan.assigned:
            plan = plan.with_moved_members(gangs, assigned)
            context = replace(context, room=plan.room)
        assigned = preferences.improved(context, gangs, assigned, work, limits.progress)
        if assigned != plan.assigned:
            plan = plan.with_moved_members(gangs, assigned)
        if plan.assigned == before and not late_joins.may_join_late(plan, compiled.tried):
            return ImprovedPlan(plan, gangs)
        joined = late_joins.join_late(plan, compiled.tried, order, limits)
        if joined is plan:
            return ImprovedPlan(plan, gangs)
        plan, work = joined, work // 4


def as_proved(compiled: CompiledDemand, improved: ImprovedPlan) -> ImprovedPlan:
    """The plan without proof and bounds, if more might start than the numbers say."""
    if not compiled.may_count_twice():
        return improved
    plan = improved.plan
    tally = bounds.unbounded(plan.tally)
    shortfall = plan.shortfall or SHARED
    return replace(improved, plan=replace(plan, proved=False, shortfall=shortfall, tally=tally))


def explain_waiting(
    queued: QueuedGangs, compiled: CompiledDemand, improved: ImprovedPlan, limits: SearchLimits
) -> tuple[Rejection, ...]:
    """Why each gang without a placement waits, including gangs that timed out."""
    plan, blank = improved.plan, compiled.blank
    context = explain.ExplainContext(
        empty=compiled.empty,
        before=FitByShape(blank.base, blank.free),
        left=FitByShape(plan.base, plan.free),
        behind=FitByShape(plan.base, plan.room),
        inter_pod=plan.inter_pod,
        placed=plan.assigned,
        occupants=explain.Occupants(compiled.snapshot),
        shortfall=plan.shortfall,
        is_proved=plan.proved,
        hold=plan.hold,
        quotas=plan.quotas,
        limited=queued.limited(improved.gangs, plan.assigned),
        requests={want.gang.key: want for want in compiled.requests},
    )
    rejections = explain.rejections(context, improved.gangs, limits.progress)
    barred = claim_rounds.barred(compiled, queued, plan)
    rejections = tuple(
        barred.get(rejection.gang, rejection)
        if rejection.reason in EXPLAINED_BY_ROOM
        else rejection
        for rejection in map(queued.explained, rejections)
    )
    return timeouts.with_time_limits(rejections, improved.gangs, compiled.snapshot.taken_at)


def release_partial(
    compiled: CompiledDemand, improved: ImprovedPlan, waiting: Sequence[Rejection]
) -> ReleasedGangs:
    """The gangs to evict because they cannot be repaired, where their PodGroup asks for that."""
    room = FitByShape(compiled.grid, compiled.grid.free)
    assigned = improved.plan.assigned
    awaited = partial_release.AwaitedPods(compiled.index, compiled.tried, room, assigned)
    return ReleasedGangs(
        *partial_release.verdicts(compiled.snapshot, improved.gangs, waiting, awaited)
    )


def placements_of(improved: ImprovedPlan, queued: QueuedGangs) -> tuple[Placement, ...]:
    """One Placement per gang for which the plan assigns a node or reserves slots."""
    assigned = _with_devices(improved, queued.observed.snapshot)
    placements = (_placement(gang, assigned, queued) for gang in improved.gangs)
    return tuple(placement for placement in placements if placement is not None)


def _with_devices(improved: ImprovedPlan, snapshot: Snapshot) -> Mapping[Uid, Assignment]:
    """The assignments of the plan, each with the devices for the claims of its member."""
    assigned = improved.plan.assigned
    if not snapshot.devices.selections and not snapshot.devices.claims:
        return assigned
    places = [
        (member, assigned[member.uid].node)
        for members in improved.gangs
        for member in members.ready
        if member.uid in assigned
    ]
    claims = allocations(snapshot.devices, places)
    return {
        uid: replace(assignment, claims=claims[uid]) if uid in claims else assignment
        for uid, assignment in assigned.items()
    }


def _placement(
    members: MemberCounts,
    assigned: Mapping[Uid, Assignment],
    queued: QueuedGangs,
) -> Placement | None:
    gang = members.gang
    own = tuple(assigned[member.uid] for member in members.ready if member.uid in assigned)
    new = tuple(
        SlotReservation(assigned[member.uid].node, member.role, 1)
        for member in members.absent
        if member.uid in assigned
    )
    if (standing := queued.observed.slots.open.get(gang.uid)) is not None:
        return standing.placement(gang, own, new)
    if own or (new and members.is_committed):
        places = slots.slots_of(slots.places(new))
        record = queued.start_record(
            members, [member for member in members.waiting if member.uid in assigned]
        )
        return Placement(gang.key, gang.uid, gang.generation, own, places, record=record)
    return None


def next_change_at(
    snapshot: Snapshot,
    queued: QueuedGangs,
    compiled: CompiledDemand,
    starved: StarvedGangs,
    policy: Policy,
) -> float | None:
    """When time alone calls for another plan, in seconds since the epoch; None if it never does."""
    # With Queues, any gang that becomes starved may come before the gang that is starved now.
    firsts = () if snapshot.queues else starved.gangs
    moments = (
        starvation.next_change_at(starved.candidates, firsts, snapshot, policy),
        refusals.next_change_at(snapshot),
        timeouts.next_change_at(compiled.gangs, snapshot.taken_at),
        slots.next_change_at(snapshot),  # including slots that this plan gives back
        timeouts.next_unbound_at(snapshot),
        timeouts.next_stuck_at(snapshot),
        claim_rounds.next_change_at(queued, snapshot.taken_at, policy),
    )
    return min((moment for moment in moments if moment is not None), default=None)
