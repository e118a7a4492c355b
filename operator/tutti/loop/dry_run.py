"""How much of a plan is carried out: all of it, so much per cycle, or nothing.

Separate from planning, which knows of no restraint, so that what is said while nothing starts is
what would happen.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..gang.quantities import count
from ..model.decisions import Eviction, Mode, Placement, Plan, Reason, Rejection, RolloutLimits

NONE = RolloutLimits()
SAID = {
    Mode.PAUSED: "Tutti is paused (TUTTI_MODE=paused), so nothing starts",
    Mode.SHADOW: "Tutti only watches (TUTTI_MODE=shadow), so nothing starts",
}


def as_dry_run(plan: Plan, mode: Mode) -> Plan:
    """The plan as it may be carried out: with nothing to do, unless ``mode`` is active.

    Whoever would start, or be evicted, is told so, and all that wait why nothing starts.
    """
    if mode is Mode.ACTIVE:
        return plan
    would = {one.gang: _would_start(one, mode) for one in plan.placements}
    would |= {one.gang: _would_go(one, mode) for one in plan.evictions}
    others = (_said(one, mode) for one in plan.rejections if one.gang not in would)
    return replace(plan, placements=(), evictions=(), rejections=(*would.values(), *others))


def capped(
    placements: Sequence[Placement],
    most: int,
    upheld: Callable[[Sequence[Placement]], Sequence[Placement]],
) -> Sequence[Placement]:
    """The first of these that bind ``most`` members at most, and one whatever its size.

    No gang is split, and none passes another. ``upheld`` are those that need nobody who is left
    behind: gangs that need one another by rules between pods go together, however many they are.
    """
    n = total = 0
    for placement in placements:
        total += len(placement.assignments)
        if n and total > most:
            break
        n += 1
    while n < len(placements):
        if chosen := upheld(placements[:n]):
            return chosen
        n += 1
    return placements


def _would_start(placement: Placement, mode: Mode) -> Rejection:
    members = count(len(placement.assignments), "member")
    nodes = count(len({one.node for one in placement.assignments}), "node")
    sentence = f"{SAID[mode]}; now it would be {members} on {nodes}"
    reason = Reason.WOULD_START if mode is Mode.SHADOW else Reason.PAUSED
    return Rejection(placement.gang, reason, sentence)


def _would_go(eviction: Eviction, mode: Mode) -> Rejection:
    members = count(len(eviction.members), "bound member")
    sentence = f"{SAID[mode]}; {members} would be evicted now, to start again whole"
    reason = Reason.NOT_ENOUGH_ROOM if mode is Mode.SHADOW else Reason.PAUSED
    return Rejection(eviction.gang, reason, sentence)


def _said(rejection: Rejection, mode: Mode) -> Rejection:
    """Why it would wait anyway; only a pause is the reason then, unless its time is up."""
    sentence = f"{SAID[mode]}; {rejection.sentence}"
    is_reason = mode is Mode.PAUSED and rejection.reason is not Reason.TIMED_OUT
    reason = Reason.PAUSED if is_reason else rejection.reason
    return replace(rejection, reason=reason, sentence=sentence)
