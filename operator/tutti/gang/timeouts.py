"""Gangs that were to start within a time and have not: said, and given up where users want that.

It follows from the Snapshot and its time alone. A gang whose members are all made anew waits anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from ..model.cluster import OnTimeout
from ..model.decisions import Reason, Rejection
from ..model.keys import GangKey
from . import order
from .demand import MemberCounts


def deadline(found: MemberCounts) -> float:
    """Until when the gang should have started, in seconds since the epoch."""
    gang = found.gang
    if gang.timeout_seconds is None or found.is_committed:
        return inf
    others = (*found.surplus, *found.gated, *found.unmodelled, *found.lacking)
    waiting = order.by_age((*found.ready, *others))
    return order.waiting_since(gang, waiting) + gang.timeout_seconds if waiting else inf


def is_given_up(found: MemberCounts, now: float) -> bool:
    """Whether the gang is not tried any more."""
    return found.gang.on_timeout is OnTimeout.FAIL and deadline(found) <= now


def due(found: Iterable[MemberCounts], now: float) -> float | None:
    """When the next gang runs out of time."""
    moments = (deadline(census) for census in found)
    return min((at for at in moments if now < at < inf), default=None)


def said(
    rejections: Iterable[Rejection], found: Sequence[MemberCounts], now: float
) -> tuple[Rejection, ...]:
    """The rejections, with a word about time to those that have run out of it."""
    late = {census.gang.key: census for census in found if deadline(census) <= now}
    return tuple(_said(one, late) for one in rejections)


def _said(rejection: Rejection, late: Mapping[GangKey, MemberCounts]) -> Rejection:
    census = late.get(rejection.gang)
    if census is None:
        return rejection
    sentence = f"not started within {census.gang.timeout_seconds:g} s"
    if census.gang.on_timeout is OnTimeout.FAIL:
        sentence += "; given up, since onTimeout is Fail: it is tried again if its members are "
        sentence += "made anew, or scheduleTimeoutSeconds is raised"
        return Rejection(rejection.gang, Reason.TIMED_OUT, sentence)
    sentence = f"{sentence}; {rejection.sentence}"
    return replace(
        rejection, reason=Reason.TIMED_OUT, sentence=sentence, underlying_reason=rejection.reason
    )
