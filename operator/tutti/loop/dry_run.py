"""How much of a plan is carried out: all of it, so much per cycle, or nothing.

Separate from planning, which knows no such limit: what people are told while nothing starts is what
would happen.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..gang.quantities import count
from ..model.decisions import Eviction, Mode, Placement, Plan, Reason, Rejection, RolloutLimits

NONE = RolloutLimits()
WHY_NOTHING_STARTS = {
    Mode.PAUSED: "Tutti is paused (TUTTI_MODE=paused), so nothing starts",
    Mode.SHADOW: "Tutti only watches (TUTTI_MODE=shadow), so nothing starts",
}


def as_dry_run(plan: Plan, mode: Mode) -> Plan:
    """The plan as it may be carried out: with nothing to do, unless ``mode`` is active.

    Each gang that would start, or be evicted, gets a rejection that says so. The rejections of the
    others say why nothing starts.
    """
    if mode is Mode.ACTIVE:
        return plan
    rejections = {placement.gang: _would_start(placement, mode) for placement in plan.placements}
    rejections |= {eviction.gang: _would_evict(eviction, mode) for eviction in plan.evictions}
    others = (
        _held_back(rejection, mode)
        for rejection in plan.rejections
        if rejection.gang not in rejections
    )
    return replace(plan, placements=(), evictions=(), rejections=(*rejections.values(), *others))


def capped(
    placements: Sequence[Placement],
    limit: int,
    upheld: Callable[[Sequence[Placement]], Sequence[Placement]],
) -> Sequence[Placement]:
    """The first placements that bind at most ``limit`` members together, and at least one.

    No gang is split, and none passes another. ``upheld`` are those that need nobody who is left
    behind: gangs that need one another by rules between pods go together, however many they are.
    """
    n = total = 0
    for placement in placements:
        total += len(placement.assignments)
        if n and total > limit:
            break
        n += 1
    while n < len(placements):
        if chosen := upheld(placements[:n]):
            return chosen
        n += 1
    return placements


def _would_start(placement: Placement, mode: Mode) -> Rejection:
    members = count(len(placement.assignments), "member")
    nodes = count(len({assignment.node for assignment in placement.assignments}), "node")
    sentence = f"{WHY_NOTHING_STARTS[mode]}; now it would be {members} on {nodes}"
    reason = Reason.WOULD_START if mode is Mode.SHADOW else Reason.PAUSED
    return Rejection(placement.gang, reason, sentence)


def _would_evict(eviction: Eviction, mode: Mode) -> Rejection:
    members = count(len(eviction.members), "bound member")
    sentence = f"{WHY_NOTHING_STARTS[mode]}; {members} would be evicted now, to start again whole"
    reason = Reason.NOT_ENOUGH_ROOM if mode is Mode.SHADOW else Reason.PAUSED
    return Rejection(eviction.gang, reason, sentence)


def _held_back(rejection: Rejection, mode: Mode) -> Rejection:
    """Why it would wait anyway; only a pause is the reason then, unless its time is up."""
    sentence = f"{WHY_NOTHING_STARTS[mode]}; {rejection.sentence}"
    is_reason = mode is Mode.PAUSED and rejection.reason is not Reason.TIMED_OUT
    reason = Reason.PAUSED if is_reason else rejection.reason
    return replace(rejection, reason=reason, sentence=sentence)
