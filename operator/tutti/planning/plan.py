"""From a Snapshot to a Plan: which gangs start now and where, and why the others wait.

Three rounds share the room: repairs of gangs that have started, then whole gangs in one joint
decision, then members beyond those needed. The same Snapshot gives the same Plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Shape, Snapshot
from ..model.decisions import Assignment, Placement, Plan
from ..model.keys import Uid
from ..strategies.problem import Budget, Outcome, Solution, Strategy
from . import demand, explain, order, partial, reduce, shortage
from .demand import Census, Want
from .reduce import Grid
from .shortage import Rooms


@dataclass(frozen=True, slots=True)
class _Effort:
    """Who answers the rounds, and how much work they may spend."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """A plan in the making: who has a node by now, what room is left, how far it is proved."""

    base: Grid
    free: NDArray[np.int64]
    assigned: Mapping[Uid, Assignment]
    proved: bool = True
    shortfall: str = ""  # why a proof that was asked for is missing


def plan(snapshot: Snapshot, strategy: Strategy, fallback: Strategy, budget: Budget) -> Plan:
    """Decide for every gang that has no standing Reservation; ``fallback`` answers if needed."""
    effort = _Effort(strategy, fallback, budget)
    found = _censuses(snapshot)
    base = reduce.grid(snapshot, (member.shape for census in found for member in census.ready))
    repaired = _repair(_Draft(base, base.free, {}), found, effort)
    empty, before = Rooms(base, base.capacity), Rooms(base, repaired.free)
    wants = _startable(empty, found)
    draft = _extend(_start(repaired, wants, effort), found, effort)
    again = replace(effort, strategy=fallback)
    while not draft.proved:
        # A search without a proof may have overlooked what the room left still holds.
        more = _extend(_start(draft, wants, again), found, again)
        if len(more.assigned) == len(draft.assigned):
            break
        draft = more
    left = Rooms(base, draft.free)
    evidence = explain.Evidence(empty, before, left, draft.assigned, draft.shortfall)
    waiting = explain.rejections(evidence, found)
    evictions, rejections = partial.verdicts(snapshot, found, waiting)
    return Plan(
        placements=_placements(found, draft.assigned),
        rejections=rejections,
        evictions=evictions,
        proved=draft.proved,
        shortfall=draft.shortfall,
    )


def _censuses(snapshot: Snapshot) -> Sequence[Census]:
    """The gangs to decide on, in the order considered; a reserved one is being carried out."""
    reserved = {reservation.gang for reservation in snapshot.reservations}
    promised = {entry.uid for held in snapshot.reservations for entry in held.entries}
    gangs = (
        gang
        for gang in snapshot.gangs
        if gang.uid not in snapshot.settled and gang.key not in reserved
    )
    return [demand.census(gang, promised) for gang in order.considered(gangs)]


def _startable(empty: Rooms, found: Sequence[Census]) -> Sequence[Want]:
    """The gangs that have not started, without those that no node could ever hold."""
    wants = (want for census in found if (want := demand.whole(census)) is not None)
    return [want for want in wants if shortage.nowhere_member(empty, want) is None]


def _repair(draft: _Draft, found: Sequence[Census], effort: _Effort) -> _Draft:
    """Replace lost members; where one shape has no room, a waiting member of another may have."""
    refused: set[tuple[Uid, str, Shape]] = set()
    while True:
        wants = [w for c in found for w in demand.repairs(c, draft.assigned, refused)]
        if not wants:
            return draft
        draft = _round(draft, wants, effort)
        refused.update(
            (want.gang.uid, member.role, member.shape)
            for want in wants
            for member in want.members
            if member.uid not in draft.assigned
        )


def _start(draft: _Draft, wants: Sequence[Want], effort: _Effort) -> _Draft:
    """Start whole gangs: the joint decision."""
    waiting = [w for w in wants if not any(m.uid in draft.assigned for m in w.members)]
    return _round(draft, waiting, effort)


def _extend(draft: _Draft, found: Sequence[Census], effort: _Effort) -> _Draft:
    """Let further members join; which of them is no part of the proof, so best fit decides."""
    wants = [want for census in found for want in demand.extras(census, draft.assigned)]
    joined = _round(draft, wants, replace(effort, strategy=effort.fallback))
    return replace(joined, proved=draft.proved, shortfall=draft.shortfall)


def _round(draft: _Draft, wants: Sequence[Want], effort: _Effort) -> _Draft:
    """The draft after these demands were answered on the room that it had left.

    Demands that counting alone rules out are not asked: that is proof enough, and less to search.
    """
    rooms = Rooms(draft.base, draft.free)
    wants = [want for want in wants if shortage.short(rooms, want) is None]
    if not wants:
        return draft
    problem = reduce.problem(draft.base, draft.free, wants)
    solution = effort.strategy.solve(problem, effort.budget)
    shortfall = _shortfall(solution, effort)
    if solution.outcome is Outcome.FAILED:
        solution = effort.fallback.solve(problem, effort.budget)
    if solution.outcome is Outcome.FAILED:
        return replace(draft, proved=False, shortfall=draft.shortfall or shortfall)
    given = reduce.assignments(draft.base, wants, solution)
    return replace(
        draft,
        free=reduce.room_left(draft.base, draft.free, wants, solution),
        assigned={**draft.assigned, **{one.uid: one for some in given for one in some}},
        proved=draft.proved and not shortfall and _is_settled(solution),
        shortfall=draft.shortfall or shortfall,
    )


def _is_settled(solution: Solution) -> bool:
    """Whether no better admission exists: proved, or there is nothing left to admit."""
    return solution.outcome is Outcome.PROVED or all(solution.shares)


def _shortfall(solution: Solution, effort: _Effort) -> str:
    """Why a proof is missing that the strategy would have given; a heuristic promises none."""
    name = effort.strategy.name
    match solution.outcome:
        case Outcome.FAILED:
            why = solution.detail or "no reason given"
            return f"{name} failed ({why}), {effort.fallback.name} answered"
        case Outcome.BUDGET_EXHAUSTED if not all(solution.shares):
            return solution.detail or f"{name} used up its budget"
        case _:
            return ""


def _placements(
    found: Sequence[Census], assigned: Mapping[Uid, Assignment]
) -> tuple[Placement, ...]:
    """One Placement per gang that got something, of all rounds together."""
    placements = []
    for census in found:
        own = tuple(assigned[member.uid] for member in census.ready if member.uid in assigned)
        if own:
            gang = census.gang
            placements.append(Placement(gang.key, gang.uid, gang.generation, own))
    return tuple(placements)
