"""From a Snapshot to a Plan: which gangs start now and where, and why the others wait.

Repairs of gangs that have started come first, then whole gangs in one joint decision; members
beyond those needed follow the whole gangs of their priority. The same Snapshot gives the same Plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..model.cluster import Resident, Slots, Snapshot
from ..model.decisions import Assignment, Placement, Plan, Policy
from ..model.keys import GangKey, Uid
from ..strategies.problem import Budget, Strategy
from . import (
    choosing,
    demand,
    drafting,
    explain,
    filling,
    looks,
    moves,
    order,
    partial,
    reduce,
    refused,
    rounds,
    shortage,
    slots,
    starving,
    tally,
    timeouts,
    value,
)
from .company import Company
from .crowds import Crowds
from .demand import Census, Want
from .drafting import Draft, Effort
from .filling import Filled
from .reduce import Grid
from .rounds import Round
from .shortage import Rooms
from .trials import Trials

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
    effort = Effort(strategy, fallback, budget, policy, snapshot.taken_at)
    slots_due = slots.due(snapshot)  # of those too that this plan gives back
    came = filling.filled(snapshot)
    snapshot = came.snapshot
    held_off = refused.rejections(snapshot)
    wishing = _censuses(came, held_off)
    found = choosing.plain(wishing)
    residents = looks.there(snapshot)
    promised = looks.promised(snapshot)
    members = (member for one in found for member in one.waiting)
    roll = looks.roll(snapshot, (*members, *(member for member, _ in promised)), residents)
    if roll.number:
        found = [
            replace(one, ready=roll.told_apart(one.ready), absent=roll.told_apart(one.absent))
            for one in found
        ]
        promised = [(seen, on) for one, on in promised for seen in roll.told_apart((one,))]
    members = (member for one in found for member in one.waiting)
    everyone = (*members, *(member for member, _ in promised))
    base = reduce.grid(snapshot, (member.shape for member in everyone))
    crowds = Crowds.of(base, roll, residents, promised)
    repairing = effort.with_a_share(drafting.MOST_REPAIRS)
    begun = Draft.blank(crowds, base.free)
    repaired = replace(drafting.repair(begun, found, repairing), tally={})
    empty, before = Rooms(base, base.capacity), Rooms(begun.base, begun.free)
    tried = [one for one in found if not timeouts.is_given_up(one, snapshot.taken_at)]
    wants = _startable(empty, tried)
    trials = Trials(effort, len(wants))

    def cleared() -> Grid:
        return Crowds.of(base, roll, looks.staying(snapshot)).grid()

    doubtful = refused.doubtful(snapshot)
    granted = [want for want in wants if want.gang.key not in doubtful]
    starved = starving.starved(snapshot, cleared, granted, policy, trials)
    steps = rounds.rounds(tried, wants, starved)
    rounded = ROUNDED if base.is_rounded else ""
    start = replace(
        repaired,
        proved=repaired.proved and not (trials.shortfall or rounded),
        shortfall=repaired.shortfall or trials.shortfall or rounded,
    )
    draft = drafting.search(start, steps, effort)
    picture = (snapshot, residents, begun.base)
    draft, found = _improved(draft, found, wishing, picture, steps=steps, effort=effort)
    evidence = explain.Evidence(
        empty=empty,
        before=before,
        left=Rooms(draft.base, draft.free),
        behind=Rooms(draft.base, draft.room),
        crowds=draft.crowds,
        placed=draft.assigned,
        shortfall=draft.shortfall,
        hold=draft.hold,
    )
    waiting = timeouts.said(explain.rejections(evidence, found), found, snapshot.taken_at)
    company = Company(roll, tried, Rooms(base, base.free), draft.assigned)
    evictions, rejections = partial.verdicts(snapshot, found, waiting, company)
    dues = (
        starving.due(granted, starved, snapshot, policy),
        refused.due(snapshot),
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
        levels=tally.levels(draft.tally, value.scale(policy)),
    )


def _censuses(came: Filled, held_off: Collection[GangKey]) -> Sequence[Census]:
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
    draft: Draft,
    plain: Sequence[Census],
    wishing: Sequence[Census],
    picture: tuple[Snapshot, Sequence[Resident], Grid],
    *,
    steps: Sequence[Round],
    effort: Effort,
) -> tuple[Draft, Sequence[Census]]:
    """The draft with members where they prefer to be, and with whoever fits beside them then."""
    snapshot = picture[0]
    tried = [one for one in plain if not timeouts.is_given_up(one, snapshot.taken_at)]
    work = choosing.WORK
    while True:
        plain, wishing = (
            [demand.numbered(one, draft.assigned) for one in censuses]
            for censuses in (plain, wishing)
        )
        ground = moves.Ground(*picture, draft.room)
        nodes = choosing.improved(ground, wishing, plain, draft.assigned, work)
        if nodes != draft.assigned:
            draft = drafting.moved(draft, plain, nodes)
        elif not drafting.may_join_late(draft, tried):
            return draft, plain
        settled, draft = draft, drafting.completed(draft, tried, steps, effort)
        if draft is settled:
            return draft, plain
        work //= 4  # those who joined move, too, and others again


def _startable(empty: Rooms, found: Sequence[Census]) -> Sequence[Want]:
    """The gangs that have not started, without those that no node could ever hold."""
    wants = (want for census in found if (want := demand.whole(census)) is not None)
    return [want for want in wants if shortage.nowhere_member(empty, want) is None]


def _placements(
    found: Sequence[Census], assigned: Mapping[Uid, Assignment], came: Filled
) -> tuple[Placement, ...]:
    """One Placement per gang that got something, of all rounds together."""
    placements = []
    for census in found:
        gang = census.gang
        own = tuple(assigned[member.uid] for member in census.ready if member.uid in assigned)
        new = tuple(
            Slots(assigned[member.uid].node, member.role, 1)
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
