"""Members that succeeded: they count in their own run, and in no other.

A gang that is finishing is not broken, and a PodGroup that is used again starts a new run. The pods
of one controller are in one run, from the creation of the first pod to the end of the last. A pod
without a controller counts as a controller of one pod. If such periods overlap, they are one run.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..model.cluster import Gang, Member, Phase, Reservation
from ..model.keys import Uid
from . import demand
from .order import by_age


@dataclass(frozen=True, slots=True)
class GangRun:
    """The run that a gang is in: the controllers of its pods, and when the first was created."""

    makers: Collection[Uid]  # values of ``Member.controller_uid``
    began: float  # seconds since the epoch; infinite while there is no pod
    since: float  # an older pod without a known end counts as ended at its creation

    def has(self, member: Member) -> bool:
        """Whether a member that is over belongs to the run."""
        return member.controller_uid in self.makers or _ended(member, self.since) >= self.began

    def of(self, gang: Gang) -> Gang:
        """The gang without members that succeeded in another run."""
        members = tuple(m for m in gang.members if m.phase is not Phase.SUCCEEDED or self.has(m))
        return gang if len(members) == len(gang.members) else replace(gang, members=members)


def run(gang: Gang, reservation: Reservation | None) -> GangRun:
    """The run of the members that are not over; once all are over, the run of the newest member.

    Pods that ended before the PodGroup was created are not in the run. The pods of ``reservation``
    are in the run that it was made for, and so are the members that were created for its slots.
    """
    current: Sequence[Member] = [member for member in gang.members if not member.is_over]
    is_yet_to_begin = bool(current) and all(member.node is None for member in current)
    since = inf if is_yet_to_begin else gang.created
    if not current:
        # A driver belongs to the run although it is older than the PodGroup that was made for it.
        own = [
            member
            for member in gang.members
            if member.key.name == gang.owner_pod or _ended(member, since) >= gang.created
        ]
        current = by_age(own)[-1:]
    reserved = {entry.uid for entry in reservation.entries} if reservation is not None else set()
    makers = {member.controller_uid for member in gang.members if member.uid in reserved}
    makers.update(reserved)  # the uids of pods without a controller, which may be gone
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
    """For each controller: when its last pod succeeded, when its first was created, and its uid."""
    spans: dict[Uid, tuple[float, float, Uid]] = {}
    for member in gang.members:
        end = _ended(member, since) if member.phase is Phase.SUCCEEDED else -inf
        latest_end, first, maker = spans.get(
            member.controller_uid, (-inf, inf, member.controller_uid)
        )
        spans[maker] = (max(latest_end, end), min(first, member.created), maker)
    return spans.values()


def _ended(member: Member, since: float) -> float:
    """When a member ended by the clock of its node, but not before it was created."""
    if member.ended is not None:
        return max(member.ended, member.created)
    return inf if member.created >= since else member.created


def with_finished(gang: Gang, roles: Sequence[str]) -> Gang:
    """The gang with these ``roles`` of members that have finished and are gone."""
    if not roles or not any(member.counts_as_bound for member in gang.members):
        return gang
    role_names = {role.name for role in gang.roles}
    finished = tuple(role for role in roles if not role_names or role in role_names)
    return replace(gang, finished=finished)


def recalled(gang: Gang, succeeded: int) -> tuple[Member, ...]:
    """Stand-ins for finished members that only the status from before a restart still counts.

    ``succeeded`` is how many it counts. There are no more stand-ins than the gang lacks, and none
    for a member that still exists or finished after the status was written: to overlook a lost
    member is worse than to overlook a finished one. They are in the run of the members that still
    exist.
    """
    if not succeeded:
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
