"""How much of a plan is carried out: all of it, a limited number of members per cycle, or nothing.

Planning does not know this limit, so rejections say what would happen without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..gang.findings import NothingStarts, WouldEvict, WouldStart
from ..model.decisions import Eviction, Mode, Placement, Plan, Reason, Rejection, RolloutLimits

NONE = RolloutLimits()


def as_dry_run(plan: Plan, mode: Mode) -> Plan:
    """The plan as ``mode`` lets it be carried out: without decisions, unless the mode is active.

    Each gang that the plan would start or evict gets a rejection that says so. The rejections of
    the other gangs also say that nothing starts.
    """
    if mode is Mode.ACTIVE:
        return plan
    rejections = {placement.gang: _would_start(placement, mode) for placement in plan.placements}
    rejections |= {eviction.gang: _would_evict(eviction, mode) for eviction in plan.evictions}
    others = (
        _would_wait(rejection, mode)
        for rejection in plan.rejections
        if rejection.gang not in rejections
    )
    rejections_of_all = (*rejections.values(), *others)
    return replace(plan, placements=(), evictions=(), claims=(), rejections=rejections_of_all)


def capped(
    placements: Sequence[Placement],
    limit: int,
    upheld: Callable[[Sequence[Placement]], Sequence[Placement]],
) -> Sequence[Placement]:
    """The first placements that bind at most ``limit`` members together, but at least one.

    No gang is split, and no gang overtakes another. ``upheld`` returns the placements that need no
    pod of the placements left out. Gangs that need one another by rules between pods stay together,
    so they may exceed ``limit``.
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
    nodes = {assignment.node for assignment in placement.assignments}
    findings = NothingStarts(mode), WouldStart(len(placement.assignments), len(nodes))
    reason = Reason.WOULD_START if mode is Mode.SHADOW else Reason.PAUSED
    return Rejection(placement.gang, reason, findings)


def _would_evict(eviction: Eviction, mode: Mode) -> Rejection:
    findings = NothingStarts(mode), WouldEvict(len(eviction.members))
    reason = Reason.NOT_ENOUGH_ROOM if mode is Mode.SHADOW else Reason.PAUSED
    return Rejection(eviction.gang, reason, findings)


def _would_wait(rejection: Rejection, mode: Mode) -> Rejection:
    """The rejection with the mode as a finding; a pause becomes its reason unless it timed out."""
    is_reason = mode is Mode.PAUSED and rejection.reason is not Reason.TIMED_OUT
    reason = Reason.PAUSED if is_reason else rejection.reason
    return replace(rejection, reason=reason, findings=(NothingStarts(mode), *rejection.findings))
