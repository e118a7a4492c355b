"""Gangs that plans leave out: refused by the API server, suspended, or with unsupported fields.

Such a gang could not use the room that a plan gives it, and other gangs would lack that room. For
the same reason, no room is held for a gang that the API server may refuse again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ..model.cluster import ApiRefusal, BoundBy, Gang, GangDeclaration, Member, Snapshot
from ..model.decisions import Reason, Rejection
from ..model.keys import GangKey
from . import domain_rules
from .findings import MembersDiffer, Quoted, UnsupportedInGroup

NAMES_TUTTI = "spec.schedulerName (its PodGroup says binding: KubeScheduler)"
HAS_THE_GATE = "spec.schedulingGates (its PodGroup does not say binding: KubeScheduler)"
SUSPENDED = "the PodGroup says spec.suspend: true; the gang starts once that is false"


def rejections(snapshot: Snapshot) -> Mapping[GangKey, Rejection]:
    """The rejections of the gangs that plans leave out; a refusal has the API server's words."""
    reserved_gangs = {reservation.gang for reservation in snapshot.reservations}
    suspended = {
        gang.key: Rejection(gang.key, Reason.PAUSED, (Quoted(SUSPENDED),))
        for gang in snapshot.gangs
        if gang.is_suspended and gang.key not in reserved_gangs and _only_waits(gang)
    }
    unsound = {
        gang.key: rejection
        for gang in snapshot.gangs
        if (gang.unsupported_fields or gang.needs_equal_members or gang.required_levels)
        and gang.key not in reserved_gangs
        and (rejection := _unsound(gang) or domain_rules.rejection(gang, snapshot)) is not None
    }
    refused = {
        gang.key: Rejection(gang.key, Reason.REFUSED, (Quoted(refusal.sentence),))
        for gang, refusals in _refused_gangs(snapshot)
        if (
            refusal := next(
                (refusal for refusal in refusals if snapshot.taken_at < refusal.until), None
            )
        )
        is not None
    }
    return suspended | unsound | refused


def recently_refused(snapshot: Snapshot) -> Collection[GangKey]:
    """The gangs whose last request to the API server was refused, however long ago."""
    return {gang.key for gang, _ in _refused_gangs(snapshot)}


def next_change_at(snapshot: Snapshot) -> float | None:
    """When Tutti may try the next refused gang again, in seconds since the epoch."""
    moments = (refusal.until for refusal in snapshot.api_refusals.values())
    return min((at for at in moments if snapshot.taken_at < at), default=None)


def _only_waits(gang: Gang) -> bool:
    """Whether a gang has members that wait, and has not started."""
    has_started = any(member.counts_as_bound for member in gang.members)
    return not has_started and any(member.may_get_a_node for member in gang.members)


def _unsound(gang: Gang) -> Rejection | None:
    """Why a gang cannot be placed as it is declared; None if no member of it waits for a node."""
    if gang.members and not any(member.may_get_a_node for member in gang.members):
        return None
    if gang.unsupported_fields:
        unsupported = UnsupportedInGroup(gang.unsupported_fields)
        return Rejection(gang.key, Reason.NOT_MODELLED, (unsupported,))
    if gang.needs_equal_members and (finding := _difference(gang)) is not None:
        return Rejection(gang.key, Reason.MEMBERS_DIFFER, (finding,))
    return None


def _difference(gang: Gang) -> MembersDiffer | None:
    """The field in which members differ but must not: kube-scheduler's validatePodGroup."""
    alive = [member for member in gang.members if not member.is_over]
    for member in alive:
        if member.priority != gang.priority:
            mine, theirs = str(gang.priority), str(member.priority)
            return MembersDiffer("priority", mine, member.key.name, theirs)
        if member.may_preempt != alive[0].may_preempt:
            first, second = (
                "PreemptLowerPriority" if pod.may_preempt else "Never" for pod in (alive[0], member)
            )
            return MembersDiffer("preemptionPolicy", first, member.key.name, second)
    return None


def _refused_gangs(snapshot: Snapshot) -> Iterator[tuple[Gang, Collection[ApiRefusal]]]:
    """The gangs for which the API server refused a Reservation or a binding.

    A refused binding of a gang with a Reservation does not count, because the Reservation is
    carried out, or released, whole.
    """
    if not snapshot.api_refusals:
        return
    reserved_gangs = {reservation.gang for reservation in snapshot.reservations}
    for gang in snapshot.gangs:
        members = () if gang.key in reserved_gangs else gang.members
        uids = (gang.uid, *(member.uid for member in members if member.may_get_a_node))
        if refusals := [snapshot.api_refusals[uid] for uid in uids if uid in snapshot.api_refusals]:
            yield gang, refusals


def members_of(group: GangDeclaration, pods: Iterable[Member]) -> tuple[Member, ...]:
    """The members of a gang among the pods that name it.

    A pod that another scheduler binds than the gang's is no member once it has a node. Until then
    it waits, and an unsupported field says what differs.
    """
    return tuple(
        pod
        if is_bound_by_its_scheduler(group, pod)
        else replace(pod, unsupported_fields=(*pod.unsupported_fields, _mismatch(pod)))
        for pod in pods
        if is_bound_by_its_scheduler(group, pod) or pod.node is None
    )


def is_bound_by_its_scheduler(group: GangDeclaration, pod: Member) -> bool:
    """Whether the scheduler that binds the gang also binds the pod."""
    return pod.bound_by is group.bound_by


def _mismatch(pod: Member) -> str:
    return HAS_THE_GATE if pod.bound_by is BoundBy.KUBE_SCHEDULER else NAMES_TUTTI
