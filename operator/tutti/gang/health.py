"""What a bound gang has lost: which member, on which node, and why, in words for users.

Unlike the other conditions, this one depends on the last status: lost members disappear, and then
only that status has the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ..model.cluster import Gang, Member, Phase
from ..model.keys import NodeName
from . import demand

NAMED = 3  # members named in a sentence; more are counted

# Reasons of pods that a kubelet rejected, besides OutOfcpu and others that begin with OutOf.
REJECTIONS = frozenset(
    {
        "AppArmor",
        "EmptyPodSharedPoolError",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "NodeUnschedulable",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "ResourceAllocationError",
        "SMTAlignmentError",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
        "VolumeAttachmentLimitExceeded",
    }
)
OUT_OF = "OutOf"

# The reason of PodScheduled that the API server gives to a gated pod; kube-scheduler replaces it,
# unless it waits for an object that the pod names.
GATED = "SchedulingGated"

# What users can do about a member that was handed over: Tutti cannot gate or move it, and its
# deletion is up to them.
REMEDY = (
    "; kube-scheduler still tries; delete what it cannot bind there, and the successor is planned "
    "before other gangs"
)

Readiness = Mapping[NodeName, bool]  # whether each node is ready; nodes that are gone are absent


class Cause(StrEnum):
    """Why a gang is not whole any more: the reason of its ``Healthy`` condition."""

    NODE_LOST = "NodeLost"
    NOT_BOUND = "NotBound"  # kube-scheduler has not bound a member that was handed over to it
    REJECTED = "Rejected"
    MEMBER_LOST = "MemberLost"


@dataclass(frozen=True, slots=True)
class PreviousStatus:
    """The last status of a PodGroup: whether the gang was ever whole, and why it no longer was."""

    was_whole: bool = False
    cause: str = ""
    sentence: str = ""
    failed: int = 0  # how many members had failed


@dataclass(frozen=True, slots=True)
class Degradation:
    """What a gang lacks, and why, as far as that is known."""

    cause: Cause
    sentence: str


def before(observed: Mapping[str, object]) -> PreviousStatus:
    """Read the status of a PodGroup."""
    lines, counts = observed.get("conditions"), observed.get("members")
    failed = counts.get("failed") if isinstance(counts, Mapping) else 0
    previous = PreviousStatus(failed=failed if isinstance(failed, int) else 0)
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, Mapping) and line.get("type") == "Healthy":
            previous = replace(previous, was_whole=True)
            if line.get("status") == "False":
                reason, message = str(line.get("reason")), str(line.get("message"))
                previous = replace(previous, cause=reason, sentence=message)
    return previous


def is_whole(gang: Gang) -> bool:
    """Whether enough members count as bound, in all and of each role."""
    return _suffice(gang, _bound_members(gang))


def is_bound(gang: Gang) -> bool:
    """Whether enough members are bound, without those that kube-scheduler has not bound yet."""
    return _suffice(gang, (m for m in _bound_members(gang) if not m.is_handed_over))


def refused(gang: Gang, nodes: Readiness) -> str:
    """The members that kube-scheduler has refused so far, in words; empty if there are none."""
    return _member_names([member for member in gang.members if _is_refused(member)], nodes)


def ailment(
    gang: Gang, nodes: Readiness, previous: PreviousStatus, *, is_reserved: bool = False
) -> Degradation | None:
    """What the gang lacks; None while enough members have succeeded or are on ready nodes.

    While the gang ``is_reserved``, kube-scheduler may still bind what was handed over to it.
    """
    well = [m for m in _bound_members(gang) if m.phase is Phase.SUCCEEDED or _is_well(m, nodes)]
    if _suffice(gang, well):
        return None
    failed = _newly_failed(gang, previous)
    gone = {m.uid for m in well} | {m.uid for m in gang.members if m.phase is Phase.FAILED}
    remaining = [m for m in gang.members if m.node is not None and m.uid not in gone]
    dark = [m for m in (*remaining, *failed) if not _is_ready(m, nodes)]
    rejected = [m for m in failed if is_rejection(m.failure) and _is_ready(m, nodes)]
    unbound = [m for m in remaining if m.is_handed_over and not is_reserved]
    cause = _cause(dark, rejected, unbound, previous)
    bound, minimum = len(well) + len(gang.finished), demand.min_members(gang)
    lacks = f"{bound} of {minimum} members are bound, {max(minimum - bound, 1)} missing"
    names = _member_names(dark or rejected or unbound or (*failed, *remaining), nodes)
    if not names and previous.cause == cause and previous.sentence.startswith(lacks):
        # It names members that are gone now.
        return Degradation(cause, previous.sentence.removesuffix(REMEDY))
    remedy = REMEDY if unbound and cause is Cause.NOT_BOUND else ""
    return Degradation(cause, f"{lacks}{names}{remedy}")


def is_rejection(failure: str) -> bool:
    """Whether a kubelet rejected the pod, which then has never run."""
    return failure.startswith(OUT_OF) or failure in REJECTIONS


def _bound_members(gang: Gang) -> Iterable[Member]:
    return (m for m in gang.members if m.counts_as_bound and gang.accepts(m))


def _suffice(gang: Gang, bound: Iterable[Member]) -> bool:
    return demand.MemberCounts(gang, bound=tuple(bound)).missing <= 0


def _is_well(member: Member, nodes: Readiness) -> bool:
    return _is_ready(member, nodes) and not member.is_handed_over


def _is_ready(member: Member, nodes: Readiness) -> bool:
    return member.node is not None and nodes.get(member.node, False)


def _newly_failed(gang: Gang, previous: PreviousStatus) -> Sequence[Member]:
    """The failed members that may be the missing ones, the newest first.

    Members that failed while the gang was whole have been replaced. Members that were rejected
    before that were counted while the Reservation stood, and nobody was told.
    """
    failed = [m for m in gang.members if m.phase is Phase.FAILED and gang.accepts(m)]
    if len(failed) <= previous.failed and previous.cause != Cause.REJECTED:
        failed = [m for m in failed if is_rejection(m.failure) and not previous.was_whole]
    missing = demand.count_members(gang).missing
    return sorted(failed, key=lambda m: (-m.created, m.key))[: max(missing, 1)]


def _cause(
    dark: Sequence[Member],
    rejected: Sequence[Member],
    unbound: Sequence[Member],
    previous: PreviousStatus,
) -> Cause:
    """The cause according to the members that exist, or else the cause in the last status."""
    if dark:
        return Cause.NODE_LOST
    if rejected:
        return Cause.REJECTED
    if unbound:
        return Cause.NOT_BOUND
    return Cause(previous.cause) if previous.cause in set(Cause) else Cause.MEMBER_LOST


def _member_names(members: Sequence[Member], nodes: Readiness) -> str:
    if not members:
        return ""
    names = ", ".join(_fate(member, nodes) for member in members[:NAMED])
    rest = f", and {len(members) - NAMED} more" if len(members) > NAMED else ""
    return f": {names}{rest}"


def _fate(member: Member, nodes: Readiness) -> str:
    """What happened to one member, and on which node."""
    name, node = member.key.name, member.node
    if not _is_ready(member, nodes):
        return f"{name} on node {node}, which is {'not ready' if node in nodes else 'gone'}"
    if member.is_handed_over:
        condition = member.scheduled_condition
        why = f" ({condition.reason}: {condition.message})" * _is_refused(member)
        return f"{name} is not bound to node {node} by kube-scheduler{why}"
    if is_rejection(member.failure):
        return f"{name} was rejected by node {node} ({member.failure})"
    if member.phase is Phase.FAILED:
        return f"{name} failed on node {node}" + (f" ({member.failure})" * bool(member.failure))
    return f"{name} is being deleted on node {node}"


def _is_refused(member: Member) -> bool:
    """Whether kube-scheduler says why it has not bound a member that was handed over to it."""
    return member.is_handed_over and member.scheduled_condition.reason not in ("", GATED)
