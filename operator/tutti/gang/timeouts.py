"""Gangs that did not start within their timeout, and the time that kube-scheduler has to bind.

With ``onTimeout: Fail``, gangs that did not start in time are given up.

The answers depend only on the Snapshot and its time. If all members are created again, the time
starts again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from ..model.cluster import STUCK_SECONDS, BoundBy, Gang, Member, OnTimeout, Snapshot
from ..model.decisions import Reason, Rejection
from . import order
from .demand import MemberCounts
from .findings import GivenUp, NotStartedInTime

BINDING_SECONDS = 300.0  # within which kube-scheduler should bind a pod that is handed over


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
        for member in snapshot.pods
        if member.terminating and member.gone_by is not None
    )
    return min((at for at in moments if at > snapshot.taken_at), default=None)


def may_be_bound(members: Iterable[Member], now: float) -> bool:
    """Whether kube-scheduler may still bind some of these members in time."""
    return any(member.is_handed_over and now < _binding_deadline(member, now) for member in members)


def next_unbound_at(snapshot: Snapshot) -> float | None:
    """When kube-scheduler runs out of time with the next member, in seconds since the epoch.

    None if no member of a gang with a Reservation is handed over.
    """
    reserved = {reservation.uid for reservation in snapshot.reservations}
    moments = (
        _binding_deadline(member, snapshot.taken_at)
        for gang in snapshot.gangs
        if gang.bound_by is BoundBy.KUBE_SCHEDULER and gang.uid in reserved
        for member in gang.members
        if member.is_handed_over
    )
    return min((at for at in moments if snapshot.taken_at < at), default=None)


def _binding_deadline(member: Member, now: float) -> float:
    """When kube-scheduler should have bound a member; users may have written a time to come."""
    at = member.handed_over_at
    if at is None or at > now + BINDING_SECONDS:
        at = member.created
    return at + BINDING_SECONDS


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
