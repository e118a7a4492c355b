"""From a Snapshot to a Plan: which gangs start now and where, and why the others wait.

Repairs of gangs that have started come first, then whole gangs in one joint decision; members
beyond those needed follow the whole gangs of their priority. The same Snapshot gives the same Plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..gang import demand, order, refusals, slots, timeouts
from ..gang.demand import MemberCounts, PlacementRequest
from ..model.cluster import PlacedPod, SlotReservation, Snapshot
from ..model.decisions import Assignment, Placement, Plan, Policy
from ..model.keys import GangKey, Uid
from ..strategies.problem import Budget, Strategy
from . import explain, local_search, partial_release, preferences
from .awaited_pods import AwaitedPods
from .compile import (
    capacity,
    gang_value,
    grids,
    pod_classes,
    slot_assignment,
    standing_reservations,
)
from .compile.capacity import FitByShape
from .compile.grids import Grid
from .compile.inter_pod import InterPodCompiler
from .compile.slot_assignment import SlotAssignments
from .search import bounds, round_order, round_runner, starvation
from .search.round_order import Round
from .search.round_runner import PartialPlan, SearchLimits
from .search.starvation_trials import StarvationSearch

DEFAULT_POLICY = Policy()
ROUNDED = "a node has more than 1 Pi of a resource, and a request for it was rounded up"


def plan(
    snapshot: Snapshot,
    strategy: Strategy,
    fallback: Strategy,
    budget: Budget,
    policy: Policy = DEFAULT_POLICY,
) -> Plan:
    """Decide for every gang that has no standing Reservation; ``fallback`` answers if needed."""
    effort = SearchLimits(strategy, fallback, budget, policy, snapshot.taken_at)
    slots_due = slots.due(snapshot)  # of those too that this plan gives back
    came = slot_assignment.filled(snapshot)
    snapshot = came.snapshot
    held_off = refusals.rejections(snapshot)
    wishing = _censuses(came, held_off)
    found = preferences.plain(wishing)
    residents = pod_classes.there(snapshot)
    promised = [
        (member, node)
        for member, node in standing_reservations.kept_members(snapshot)
        if member.shape.rules.near or member.shape.rules.even
    ]
    members = (member for one in found for member in one.waiting)
    roll = pod_classes.roll(snapshot, (*members, *(member for member, _ in promised)), residents)
    if roll.number:
        found = [
            replace(one, ready=roll.told_apart(one.ready), absent=roll.told_apart(one.absent))
            for one in found
        ]
        promised = [(seen, on) for one, on in promised for seen in roll.told_apart((one,))]
    members = (member for one in found for member in one.waiting)
    everyone = (*members, *(member for member, _ in promised))
    base = grids.grid(snapshot, (member.shape for member in everyone))
    crowds = InterPodCompiler.of(base, roll, residents, promised)
    repairing = effort.with_a_share(round_runner.MOST_REPAIRS)
    begun = PartialPlan.blank(crowds, base.free)
    repaired = replace(round_runner.repair(begun, found, repairing), tally={})
    empty, before = FitByShape(base, base.capacity), FitByShape(begun.base, begun.free)
    tried = [one for one in found if not timeouts.is_given_up(one, snapshot.taken_at)]
    wants = _startable(empty, tried)
    trials = StarvationSearch(effort, len(wants))

    def cleared() -> Grid:
        return InterPodCompiler.of(base, roll, pod_classes.staying(snapshot)).grid()

    doubtful = refusals.doubtful(snapshot)
    granted = [want for want in wants if want.gang.key not in doubtful]
    starved = starvation.starved(snapshot, cleared, granted, policy, trials)
    steps = round_order.rounds(tried, wants, starved)
    rounded = ROUNDED if base.is_rounded else ""
    start = replace(
        repaired,
        proved=repaired.proved and not (trials.shortfall or rounded),
        shortfall=repaired.shortfall or trials.shortfall or rounded,
    )
    draft = round_runner.search(start, steps, effort)
    picture = (snapshot, residents, begun.base)
    draft, found = _improved(draft, found, wishing, picture, steps=steps, effort=effort)
    evidence = explain.ExplainContext(
        empty=empty,
        before=before,
        left=FitByShape(draft.base, draft.free),
        behind=FitByShape(draft.base, draft.room),
        crowds=draft.crowds,
        placed=draft.assigned,
        shortfall=draft.shortfall,
        hold=draft.hold,
    )
    waiting = timeouts.said(explain.rejections(evidence, found), found, snapshot.taken_at)
    company = AwaitedPods(roll, tried, FitByShape(base, base.free), draft.assigned)
    evictions, rejections = partial_release.verdicts(snapshot, found, waiting, company)
    dues = (
        starvation.due(granted, starved, snapshot, policy),
        refusals.due(snapshot),
        timeouts.due(found, snapshot.taken_at),
        slots_due,
    )
    return Plan(
        placements=_placements(found, draft.assigned, came),
        rejections=(*rejections, *held_off.values()),
        evictions=evictions,
        proved=draft.proved,
        shortfall=draft.shortfall,
        due=min((at for at in dues if at is not None), default=None),
        levels=bounds.levels(draft.tally, gang_value.scale(policy)),
    )


def _censuses(came: SlotAssignments, held_off: Collection[GangKey]) -> Sequence[MemberCounts]:
    """The gangs to decide on, in the order considered; a reserved one is being carried out.

    One whose Reservation is open for absent members may be repaired, and grow, all the same; if it
    lacks nobody any more, their room is given back.
    """
    snapshot = came.snapshot
    reserved = {held.gang for held in snapshot.reservations if held.uid not in came.open}
    promised = {entry.uid for held in snapshot.reservations for entry in held.entries}
    gangs = (
        gang
        for gang in snapshot.gangs
        if (gang.uid not in snapshot.settled or gang.uid in came.open)
        and not (gang.key in reserved or gang.key in held_off)
    )
    found = ((g, demand.census(g, promised, came.room(g))) for g in order.considered(gangs))
    return [one if came.awaits(gang) else replace(one, absent=()) for gang, one in found]


def _improved(
    draft: PartialPlan,
    plain: Sequence[MemberCounts],
    wishing: Sequence[MemberCounts],
    picture: tuple[Snapshot, Sequence[PlacedPod], Grid],
    *,
    steps: Sequence[Round],
    effort: SearchLimits,
) -> tuple[PartialPlan, Sequence[MemberCounts]]:
    """The draft with members where they prefer to be, and with whoever fits beside them then."""
    snapshot = picture[0]
    tried = [one for one in plain if not timeouts.is_given_up(one, snapshot.taken_at)]
    work = preferences.WORK
    while True:
        plain, wishing = (
            [demand.numbered(one, draft.assigned) for one in censuses]
            for censuses in (plain, wishing)
        )
        ground = local_search.MoveContext(*picture, draft.room)
        nodes = preferences.improved(ground, wishing, plain, draft.assigned, work)
        if nodes != draft.assigned:
            draft = round_runner.moved(draft, plain, nodes)
        elif not round_runner.may_join_late(draft, tried):
            return draft, plain
        settled, draft = draft, round_runner.completed(draft, tried, steps, effort)
        if draft is settled:
            return draft, plain
        work //= 4  # those who joined move, too, and others again


def _startable(empty: FitByShape, found: Sequence[MemberCounts]) -> Sequence[PlacementRequest]:
    """The gangs that have not started, without those that no node could ever hold."""
    wants = (want for census in found if (want := demand.whole(census)) is not None)
    return [want for want in wants if capacity.nowhere_member(empty, want) is None]


def _placements(
    found: Sequence[MemberCounts], assigned: Mapping[Uid, Assignment], came: SlotAssignments
) -> tuple[Placement, ...]:
    """One Placement per gang that got something, of all rounds together."""
    placements = []
    for census in found:
        gang = census.gang
        own = tuple(assigned[member.uid] for member in census.ready if member.uid in assigned)
        new = tuple(
            SlotReservation(assigned[member.uid].node, member.role, 1)
            for member in census.absent
            if member.uid in assigned
        )
        if (standing := came.open.get(gang.uid)) is not None:
            one = standing.placement(gang, own, new)
            placements.extend([] if one is None else [one])
        elif own or (new and census.is_committed):
            held = slots.slots_of(slots.places(new))
            placements.append(Placement(gang.key, gang.uid, gang.generation, own, held))
    return tuple(placements)
