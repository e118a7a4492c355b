"""Members that ended well: they count in the run that they were part of, and in no other.

A gang that is finishing is not broken, and a PodGroup that is used again starts a new run. The pods
of one controller, from the creation of the first to the end of the last, are of one run, and so is
each pod without a controller. Where such periods overlap, they are one run.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..model.cluster import Gang, Member, Phase, Reservation
from ..model.keys import Uid
from . import demand
from .order import by_age

UNDER_WAY = ("Bound", "Running")  # the phases in which a gang may have begun to finish


@dataclass(frozen=True, slots=True)
class GangRun:
    """The run that a gang is in: the makers of its pods, and since when it has pods."""

    makers: Collection[Uid]  # as ``Member.controller_uid`` has them
    began: float  # seconds since the epoch; infinite while there is no pod
    since: float  # a pod created before, whose end is unknown, is taken to have ended at once

    def has(self, member: Member) -> bool:
        """Whether a member that is over was part of the run."""
        return member.controller_uid in self.makers or _ended(member, self.since) >= self.began

    def of(self, gang: Gang) -> Gang:
        """The gang without members that succeeded in another run."""
        members = tuple(m for m in gang.members if m.phase is not Phase.SUCCEEDED or self.has(m))
        return gang if len(members) == len(gang.members) else replace(gang, members=members)


def run(gang: Gang, reservation: Reservation | None) -> GangRun:
    """The run of the members that are not over; once all are over, the run of the youngest.

    Pods that ended before the PodGroup was created are not of its run. The pods of ``reservation``
    are of the run that it was made for, and so are members that came later for one of its slots.
    """
    current: Sequence[Member] = [member for member in gang.members if not member.is_over]
    is_yet_to_begin = bool(current) and all(member.node is None for member in current)
    since = inf if is_yet_to_begin else gang.created
    if not current:
        # A driver is older than the PodGroup that was made for it.
        own = [
            member
            for member in gang.members
            if member.key.name == gang.owner_pod or _ended(member, since) >= gang.created
        ]
        current = by_age(own)[-1:]
    reserved = {entry.uid for entry in reservation.entries} if reservation is not None else set()
    makers = {member.controller_uid for member in gang.members if member.uid in reserved}
    makers.update(reserved)  # a bare pod, gone by now, has made itself
    makers.update(member.controller_uid for member in current)
    began = min((m.created for m in gang.members if m.controller_uid in makers), default=inf)
    if reservation is not None and reservation.slots:
        began = min(began, reservation.reserved_at)
    for last, first, maker in sorted(_spans(gang, since), reverse=True):
        if last < began:
            break
        makers.add(maker)
        began = min(began, first)
    return GangRun(makers, began, since)


def _spans(gang: Gang, since: float) -> Collection[tuple[float, float, Uid]]:
    """When the last pod of a maker succeeded, when its first was created, and who it is."""
    spans: dict[Uid, tuple[float, float, Uid]] = {}
    for member in gang.members:
        end = _ended(member, since) if member.phase is Phase.SUCCEEDED else -inf
        latest_end, first, maker = spans.get(
            member.controller_uid, (-inf, inf, member.controller_uid)
        )
        spans[maker] = (max(latest_end, end), min(first, member.created), maker)
    return spans.values()


def _ended(member: Member, since: float) -> float:
    """When a member ended, which its node's clock says: never before it was made."""
    if member.ended is not None:
        return max(member.ended, member.created)
    return inf if member.created >= since else member.created


def with_finished(gang: Gang, roles: Sequence[str]) -> Gang:
    """The gang with its members of these roles that have finished and are gone."""
    if not roles or not any(member.counts_as_bound for member in gang.members):
        return gang
    role_names = {role.name for role in gang.roles}
    finished = tuple(role for role in roles if not role_names or role in role_names)
    return replace(gang, finished=finished)


def recalled(gang: Gang, status: Mapping[str, object]) -> tuple[Member, ...]:
    """Stand-ins of those that only a status written before a restart still tells of.

    No more than the gang lacks, and none in place of one that has finished since it was written:
    better to miss a finished member than not to miss a lost one. They are of the run of those that
    are still there.
    """
    counts = status.get("members")
    succeeded = counts.get("succeeded") if isinstance(counts, Mapping) else None
    if status.get("phase") not in UNDER_WAY or not isinstance(succeeded, int):
        return ()
    census = demand.count_members(gang)
    if not census.bound:
        return ()
    gone = succeeded - sum(member.phase is Phase.SUCCEEDED for member in census.bound)
    lacking = [role for role, n in census.missing_by_role.items() for _ in range(n)]
    lacking += [""] * (census.missing - len(lacking))
    like = replace(census.bound[-1], phase=Phase.SUCCEEDED, ended=census.bound[-1].created)
    return tuple(
        replace(like, uid=Uid(f"{gang.uid}/finished/{i}"), role=role)
        for i, role in enumerate(lacking[: max(gone, 0)])
    )
