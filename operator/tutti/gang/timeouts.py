"""Gangs that did not start within their timeout; with ``onTimeout: Fail`` they are given up.

The answers depend only on the Snapshot and its time. If all members are created again, the time
starts again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from ..model.cluster import STUCK_SECONDS, Gang, OnTimeout, Snapshot
from ..model.decisions import Reason, Rejection
from . import order
from .demand import MemberCounts
from .findings import GivenUp, NotStartedInTime


def deadline(census: MemberCounts) -> float:
    """Until when the gang should start, in seconds since the epoch; infinite if never."""
    gang = census.gang
    if gang.timeout_seconds is None or census.is_committed:
        return inf
    not_ready = (*census.surplus, *census.gated, *census.unsupported, *census.without_volumes)
    waiting = order.by_age((*census.ready, *not_ready))
    return order.waiting_since(gang, waiting) + gang.timeout_seconds if waiting else inf


def is_given_up(census: MemberCounts, now: float) -> bool:
    """Whether the gang is not tried any more."""
    return census.gang.on_timeout is OnTimeout.FAIL and deadline(census) <= now


def next_change_at(censuses: Iterable[MemberCounts], now: float) -> float | None:
    """When the next gang runs out of time, in seconds since the epoch; None if none will."""
    moments = (deadline(census) for census in censuses)
    return min((at for at in moments if now < at < inf), default=None)


def next_stuck_at(snapshot: Snapshot) -> float | None:
    """When the next terminating pod will count as stuck, in seconds since the epoch.

    None if there is none, or no claim waits for pods to end.
    """
    if all(reservation.victims is None for reservation in snapshot.reservations):
        return None
    moments = (
        member.gone_by + STUCK_SECONDS
        for gang in snapshot.gangs
        for member in gang.members
        if member.terminating and member.gone_by is not None
    )
    return min((at for at in moments if at > snapshot.taken_at), default=None)


def with_time_limits(
    rejections: Iterable[Rejection], censuses: Sequence[MemberCounts], now: float
) -> tuple[Rejection, ...]:
    """The rejections; the rejection of a gang that has not started in time says so."""
    late = {census.gang.key: census.gang for census in censuses if deadline(census) <= now}
    return tuple(
        _timed_out(rejection, late[rejection.gang]) if rejection.gang in late else rejection
        for rejection in rejections
    )


def _timed_out(rejection: Rejection, gang: Gang) -> Rejection:
    not_started = NotStartedInTime(gang.timeout_seconds or 0.0)
    if gang.on_timeout is OnTimeout.FAIL:
        return Rejection(rejection.gang, Reason.TIMED_OUT, (not_started, GivenUp()))
    return replace(
        rejection,
        reason=Reason.TIMED_OUT,
        findings=(not_started, *rejection.findings),
        underlying_reason=rejection.reason,
    )
