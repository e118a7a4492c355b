"""Gangs that are held off, by the API server or by their users: what that means for plans.

Nobody plans around one that is not to be asked for yet: what it would be given could not be had,
and would be kept from others. Nor is room held for one that may be refused again.
"""

from collections.abc import Collection, Iterator, Mapping

from ..model.cluster import ApiRefusal, Gang, Snapshot
from ..model.decisions import Reason, Rejection
from ..model.keys import GangKey
from .findings import Quoted

SUSPENDED = "the PodGroup says spec.suspend: true; the gang starts once that is false"


def rejections(snapshot: Snapshot) -> Mapping[GangKey, Rejection]:
    """Why each that is not to be asked for yet waits: suspended, or in the API server's words."""
    held = {reservation.gang for reservation in snapshot.reservations}
    suspended = {
        gang.key: Rejection(gang.key, Reason.PAUSED, (Quoted(SUSPENDED),))
        for gang in snapshot.gangs
        if gang.is_suspended and gang.key not in held and _only_waits(gang)
    }
    return suspended | {
        gang.key: Rejection(gang.key, Reason.REFUSED, (Quoted(refusal.sentence),))
        for gang, found in _refused_gangs(snapshot)
        if (
            refusal := next(
                (refusal for refusal in found if snapshot.taken_at < refusal.until), None
            )
        )
        is not None
    }


def recently_refused(snapshot: Snapshot) -> Collection[GangKey]:
    """Those that were refused when they were asked for last, however long ago."""
    return {gang.key for gang, _ in _refused_gangs(snapshot)}


def next_change_at(snapshot: Snapshot) -> float | None:
    """When the next of them may be asked for again."""
    moments = (refusal.until for refusal in snapshot.api_refusals.values())
    return min((at for at in moments if snapshot.taken_at < at), default=None)


def _only_waits(gang: Gang) -> bool:
    """Whether it has members that wait, and has not started."""
    has_started = any(member.counts_as_bound for member in gang.members)
    return not has_started and any(member.may_get_a_node for member in gang.members)


def _refused_gangs(snapshot: Snapshot) -> Iterator[tuple[Gang, Collection[ApiRefusal]]]:
    """The gangs of which something was refused.

    A member that was refused its binding stands for its gang, unless a Reservation does: that is
    carried out, or released, whole.
    """
    if not snapshot.api_refusals:
        return
    held = {reservation.gang for reservation in snapshot.reservations}
    for gang in snapshot.gangs:
        members = () if gang.key in held else gang.members
        uids = (gang.uid, *(member.uid for member in members if member.may_get_a_node))
        if found := [snapshot.api_refusals[uid] for uid in uids if uid in snapshot.api_refusals]:
            yield gang, found
