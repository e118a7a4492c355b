"""Why a gang waits for its own members: how many exist, and what would bring the others.

These findings need the gang alone, not the room of the cluster, so no nodes are added for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ..gang.demand import (
    MemberCounts,
    are_all_absent,
    is_enough,
    min_members,
    too_few_claims,
)
from ..gang.findings import (
    BeingDeleted,
    BeyondMaximum,
    CreatesOneByOne,
    DevicesNotReady,
    Failed,
    Gated,
    MaximumReached,
    MembersBound,
    MembersExist,
    MembersLost,
    NamesOneClaim,
    NobodyToStart,
    ParallelismTooSmall,
    Quoted,
    RoleMembersExist,
    TemplateNotRead,
    Unsupported,
    VolumesNotReady,
    WithoutRole,
)
from ..model.cluster import Member, Phase
from ..model.decisions import Finding, Reason, Rejection

MOST_GATES = 3  # gates named in one finding
MOST_CLAIMS = 3  # claims named in one finding


def absence(members: MemberCounts) -> Rejection | None:
    """Why the gang cannot ask for room yet; None if it can, or if no member waits."""
    if members.gang.terminating:
        waits = members.ready or members.unsupported or members.without_volumes or members.gated
        return _waiting(members, BeingDeleted()) if waits else None
    if members.gang.is_single:
        return _single(members)
    if members.is_committed:
        return _after_the_start(members)
    if not is_enough(members.gang, members.waiting) or are_all_absent(members):
        return _too_few(members)
    if (short := too_few_claims(members.gang, members.waiting)) is not None:
        finding = NamesOneClaim(short.claim, short.members, short.needed, short.role)
        return Rejection(members.gang.key, Reason.WAITING_FOR_VOLUMES, (finding,))
    return None


def _too_few(members: MemberCounts) -> Rejection:
    """Why too few members of a gang that has not started could be bound now."""
    if is_enough(members.gang, members.waiting):
        roles = (role.name for role in members.gang.roles if role.min_member)
        return _waiting(members, NobodyToStart(tuple(roles)))
    candidates = members.waiting + members.unsupported
    if members.unsupported and is_enough(members.gang, candidates):
        return _not_modelled(members)
    if members.without_volumes and is_enough(members.gang, candidates + members.without_volumes):
        return _without_volumes(members)
    return _waiting(members, *_before_the_start(members))


def _waiting(members: MemberCounts, *findings: Finding) -> Rejection:
    return Rejection(members.gang.key, Reason.WAITING_FOR_MEMBERS, findings)


def _not_modelled(members: MemberCounts) -> Rejection:
    fields = sorted({name for member in members.unsupported for name in member.unsupported_fields})
    n, is_single = len(members.unsupported), members.gang.is_single
    unsupported = Unsupported(n, tuple(fields), is_single=is_single)
    return Rejection(members.gang.key, Reason.NOT_MODELLED, (unsupported,))


def _without_volumes(members: MemberCounts) -> Rejection:
    waiting = members.without_volumes
    if not any(member.volume_problems for member in waiting):
        findings = (devices_not_ready(waiting),)
        return Rejection(members.gang.key, Reason.WAITING_FOR_DEVICES, findings)
    lacking = [member for member in waiting if member.volume_problems]
    return Rejection(members.gang.key, Reason.WAITING_FOR_VOLUMES, (volumes_not_ready(lacking),))


def volumes_not_ready(members: Sequence[Member]) -> VolumesNotReady:
    """The problems of the claims of these members; Tutti cannot solve them."""
    return VolumesNotReady(len(members), *_first(m.volume_problems for m in members))


def devices_not_ready(members: Sequence[Member]) -> DevicesNotReady:
    """The problems of the claims for devices of these members; Tutti cannot solve them."""
    return DevicesNotReady(len(members), *_first(m.device_problems for m in members))


def _first(problems: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], int]:
    """The first different problems, and how many more there are."""
    different = tuple(dict.fromkeys(chain.from_iterable(problems)))
    return different[:MOST_CLAIMS], max(0, len(different) - MOST_CLAIMS)


def _single(members: MemberCounts) -> Rejection | None:
    gang = members.gang
    if unread := next((m.size_unknown_because for m in gang.members if m.size_unknown_because), ""):
        return Rejection(gang.key, Reason.WAITING_FOR_CONFIGURATION, (Quoted(unread),))
    if members.without_volumes:
        return _without_volumes(members)
    if members.unsupported:
        return _not_modelled(members)
    return _waiting(members, *_gated(members, is_single=True)) if members.gated else None


def _after_the_start(members: MemberCounts) -> Rejection | None:
    """Why a started gang waits for its own members; None if it does not."""
    lacks = members.missing - len(members.ready)
    if members.without_volumes:
        return _without_volumes(members)
    if members.unsupported:
        return _not_modelled(members)
    if lacks <= 0:
        return _waiting(members, maximum_reached(members.surplus)) if members.surplus else None
    bound = len(members.bound) + len(members.gang.finished)
    has_slots = any(role.template is not None for role in members.gang.roles)
    return _waiting(
        members,
        MembersBound(bound, min_members(members.gang)),
        MembersLost(lacks, has_slots=has_slots),
        *_gated(members, is_started=True),
    )


def _before_the_start(members: MemberCounts) -> Iterator[Finding]:
    present = members.ready + members.unsupported + members.without_volumes + members.gated
    gang = members.gang
    by_role = {role.name: [m for m in present if m.role == role.name] for role in gang.roles}
    short = [
        RoleMembersExist(role.name, len(by_role[role.name]), role.min_member)
        for role in gang.roles
        if len(by_role[role.name]) < role.min_member and (role.template is None or not present)
    ]
    yield from short
    if not short:
        yield MembersExist(len(present), min_members(gang))
    yield from _gated(members)
    if failed := sum(member.phase is Phase.FAILED for member in gang.members):
        yield Failed(failed)
    if roleless := sum(member.role not in gang.other_stages for member in members.roleless):
        yield WithoutRole(roleless)
    if members.surplus:
        yield BeyondMaximum(len(members.surplus))
    for role in gang.roles:
        if role.unreadable:
            yield TemplateNotRead(role.name, role.unreadable)
    if not is_enough(gang, present):
        yield from _advice(min_members(gang), present)


def _gated(
    members: MemberCounts, *, is_single: bool = False, is_started: bool = False
) -> Iterator[Gated]:
    """The gates that hold members back."""
    if not members.gated:
        return
    names = sorted({name for member in members.gated for name in member.foreign_gates})
    unnamed = max(0, len(names) - MOST_GATES)
    n, gates = len(members.gated), tuple(names[:MOST_GATES])
    yield Gated(n, gates, unnamed, is_single=is_single, is_started=is_started)


def maximum_reached(surplus: Sequence[Member]) -> MaximumReached:
    """Members beyond the maximum of their roles; they wait for other members, not for room."""
    return MaximumReached(tuple(sorted({member.role for member in surplus})), len(surplus))


def _advice(least: int, present: Iterable[Member]) -> Iterator[Finding]:
    """What to change in controllers that create too few pods at a time."""
    owners = {member.owner.kind: member.owner.name for member in present if member.owner}
    if (name := owners.get("StatefulSet")) is not None:
        yield CreatesOneByOne(name)
    if (name := owners.get("Job")) is not None:
        yield ParallelismTooSmall(name, least)
