"""The status that a PodGroup should have; users read it, and plans read ``LostWork`` of it.

Pure. ``drafts`` compares this status with the status that the object has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ..gang import demand, finding_text, health
from ..gang.health import Readiness, is_whole
from ..gang.quantities import count
from ..kube.codec import encode
from ..kube.gang_sources.pod_group import COUNTED, PREEMPTION, lost_milliseconds
from ..model.cluster import Gang, OnTimeout, Phase, Reservation, ReservedVictim
from ..model.decisions import Reason, Rejection

MOST_VICTIMS = 3  # gangs that one sentence names


class ConditionType(StrEnum):
    """The condition types of a PodGroup."""

    RESERVED = "Reserved"
    BOUND = "Bound"
    HEALTHY = "Healthy"
    PREEMPTED = "Preempted"  # only of gangs of which members end for another gang


@dataclass(frozen=True, slots=True)
class GangCondition:
    """One condition: its type, whether it holds, and why, in one word and in one sentence."""

    type: ConditionType
    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """How many members a gang needs, and how many are in each state."""

    needed: int
    seen: int
    bound: int
    running: int
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class LostWork:
    """The work that the ends of a gang for other gangs have lost, which makes its next end dearer.

    A claim is counted once its first pod goes. ``claim`` is the one that was counted last, so that
    no claim counts twice, whatever crashes.
    """

    milliseconds: int  # of the whole cluster
    claim: str


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status of a PodGroup."""

    scheduler: str  # the name of the scheduler that writes this status
    observed_generation: int
    phase: str
    counts: StatusCounts
    conditions: tuple[GangCondition, ...]
    lost: LostWork | None = None  # None if nothing changes


def status_of(
    gang: Gang,
    reservation: Reservation | None,
    rejection: Rejection | None,
    nodes: Readiness,
    observed: Mapping[str, object],
    *,
    scheduler: str,
    preference_note: str = "",
    claim: Reservation | None = None,
) -> GroupStatus:
    """The status of one gang after a cycle; ``observed`` is the one that it carries now.

    ``preference_note`` says which preferred levels of a topology its nodes do without. Members of
    the gang end for the gang of ``claim``.
    """
    counts = _counts(gang)
    healthy = _healthy(gang, reservation, nodes, observed)
    conditions = tuple(
        line
        for line in (
            _with_note(_reserved(gang, reservation, rejection, counts), preference_note),
            _bound(gang, reservation, rejection, counts, nodes),
            healthy,
            _preempted(gang, claim, observed),
        )
        if line is not None
    )
    is_well = healthy is not None and healthy.holds
    phase = _phase(
        None if health.is_bound(gang) else reservation,
        counts,
        is_well=is_well,
        has_begun=healthy is not None or counts.bound > 0,
    )
    if gang.is_finished:
        phase = "Finished"
    if phase == "Waiting" and _has_failed(gang, rejection):
        phase = "Failed"
    lost = None if claim is None else _newly_lost(gang, claim, observed)
    return GroupStatus(scheduler, gang.generation, phase, counts, conditions, lost)


def _counts(gang: Gang) -> StatusCounts:
    members = [member for member in gang.members if gang.accepts(member)]
    phases = [member.phase for member in members]
    finished = len(gang.finished)
    return StatusCounts(
        needed=gang.min_member,
        seen=len(members),
        bound=sum(m.counts_as_bound and not m.is_handed_over for m in members) + finished,
        running=phases.count(Phase.RUNNING),
        succeeded=phases.count(Phase.SUCCEEDED) + finished,
        failed=phases.count(Phase.FAILED),
    )


def _reserved(
    gang: Gang, reservation: Reservation | None, rejection: Rejection | None, counts: StatusCounts
) -> GangCondition:
    if is_whole(gang):
        sentence = "every needed member has its node"
        return GangCondition(
            ConditionType.RESERVED, holds=True, reason="Reserved", message=sentence
        )
    if reservation is not None and reservation.evict:
        sentence = f"evicting {count(len(reservation.evict), 'bound member')}, to start again whole"
        return GangCondition(
            ConditionType.RESERVED, holds=False, reason=Reason.NOT_ENOUGH_ROOM, message=sentence
        )
    if reservation is not None and not (reservation.slots and _is_short(rejection)):
        sentence = _room(reservation, counts)
        return GangCondition(
            ConditionType.RESERVED, holds=True, reason="Reserved", message=sentence
        )
    if rejection is not None:
        return GangCondition(
            ConditionType.RESERVED,
            holds=False,
            reason=rejection.reason,
            message=finding_text.sentence(rejection),
        )
    sentence = f"{counts.seen} of {counts.needed} members exist"
    if counts.bound:
        sentence = f"{counts.bound} of {counts.needed} members are bound"
    return GangCondition(
        ConditionType.RESERVED, holds=False, reason=Reason.WAITING_FOR_MEMBERS, message=sentence
    )


def _with_note(condition: GangCondition, note: str) -> GangCondition:
    """The condition with the note, if the gang has nodes that it speaks of."""
    if not (condition.holds and note):
        return condition
    return replace(condition, message=f"{condition.message}; {note}")


def _is_short(rejection: Rejection | None) -> bool:
    """Whether needed members have no room, although room is reserved for other members."""
    if rejection is None or rejection.only_extra_members:
        return False
    return rejection.reason not in (Reason.REFUSED, Reason.WAITING_FOR_MEMBERS)


def _room(reservation: Reservation, counts: StatusCounts) -> str:
    """What a standing Reservation holds, in words."""
    nodes = len({entry.node for entry in reservation.entries})
    placement = f"{count(len(reservation.entries), 'member')} on {count(nodes, 'node')}"
    if reservation.victims:
        pods = count(sum(len(victim.pods) for victim in reservation.victims), "pod")
        return f"{placement}, once {pods} of {_names(reservation.victims)} have gone"
    if not reservation.slots:
        return placement
    absent = count(sum(slot.count for slot in reservation.slots), "absent member")
    places = len({slot.node for slot in reservation.slots})
    absent_room = f"room on {count(places, 'node')} is reserved for {absent}"
    return f"{counts.seen} of {counts.needed} members exist; {absent_room}"


def _names(victims: Sequence[ReservedVictim]) -> str:
    names = ", ".join(str(victim.gang) for victim in victims[:MOST_VICTIMS])
    others = len(victims) - MOST_VICTIMS
    return f"{names} and {others} more" if others > 0 else names


def _bound(
    gang: Gang,
    reservation: Reservation | None,
    rejection: Rejection | None,
    counts: StatusCounts,
    nodes: Readiness,
) -> GangCondition | None:
    sentence = f"{counts.bound} of {counts.needed} members are bound"
    if health.is_bound(gang):
        return GangCondition(ConditionType.BOUND, holds=True, reason="Bound", message=sentence)
    if reservation is not None and rejection is not None and rejection.reason is Reason.REFUSED:
        sentence = f"{sentence}; {finding_text.sentence(rejection)}"
        return GangCondition(
            ConditionType.BOUND, holds=False, reason=Reason.REFUSED, message=sentence
        )
    if reservation is not None and reservation.evict:
        return GangCondition(ConditionType.BOUND, holds=False, reason="Released", message=sentence)
    if reservation is not None or counts.bound or is_whole(gang):
        if refused := health.refused(gang, nodes):
            # A reason of its own, because a message that changes alone may wait for a minute.
            reason, sentence = health.Cause.NOT_BOUND, f"{sentence}{refused}"
            return GangCondition(ConditionType.BOUND, holds=False, reason=reason, message=sentence)
        return GangCondition(ConditionType.BOUND, holds=False, reason="Binding", message=sentence)
    return None


def _healthy(
    gang: Gang, reservation: Reservation | None, nodes: Readiness, observed: Mapping[str, object]
) -> GangCondition | None:
    """The condition Healthy; None for a gang that is being bound for the first time."""
    previous = health.before(observed)
    ailment = health.ailment(gang, nodes, previous, is_reserved=reservation is not None)
    if ailment is None:
        sentence = "no needed member is missing"
        return GangCondition(ConditionType.HEALTHY, holds=True, reason="Whole", message=sentence)
    has_started = reservation is None or previous.was_whole or health.is_bound(gang)
    if has_started and any(member.counts_as_bound for member in gang.members):
        return GangCondition(
            ConditionType.HEALTHY, holds=False, reason=ailment.cause, message=ailment.sentence
        )
    return None


def _preempted(
    gang: Gang, claim: Reservation | None, observed: Mapping[str, object]
) -> GangCondition | None:
    """The condition Preempted, kept until the gang is whole and none of its pods waits for room."""
    kind = ConditionType.PREEMPTED
    if claim is not None and _has_begun_to_end(gang, victim := _victim(gang, claim)):
        pods = count(len(victim.pods), "pod" if victim.is_whole else "extra pod")
        sentence = f"{pods} evicted, so that {claimant(claim)}"
    else:
        lines = observed.get("conditions")
        earlier = (
            line
            for line in (lines if isinstance(lines, list) else ())
            if isinstance(line, Mapping) and line.get("type") == kind
            if not is_whole(gang) or demand.count_members(gang).ready
        )
        sentence = next((str(line.get("message", "")) for line in earlier), "")
    if not sentence:
        return None
    return GangCondition(kind, holds=True, reason="Preempted", message=sentence)


def claimant(claim: Reservation) -> str:
    """Which gang starts by a claim, by which right, and at which cost, in words.

    Right and cost are left out if an older version made the claim.
    """
    queue = "" if claim.record is None else f" of queue {claim.record.queue}"
    sentence, grounds = f"gang {claim.gang}{queue} starts", claim.grounds
    if grounds is None:
        return sentence
    right = "a guarantee covers it" if grounds.by_guarantee else "its priority is higher"
    if grounds.guarantee:
        amounts = ", ".join(f"{amount} {name}" for name, amount in grounds.guarantee)
        right = f"{right} (its queue guarantees {amounts})"
    lost = sum(victim.lost_milliseconds for victim in claim.victims or ())
    cost = f"all that end for it lose {_seconds(lost)} of the whole cluster's work"
    if (earlier := grounds.cost_milliseconds - lost) > 0:
        cost = f"{cost}, and have lost {_seconds(earlier)} by earlier ends"
    least = f"at least {_seconds(grounds.bound_milliseconds)}"
    return f"{sentence}: {right}; {cost}, {'proved least' if grounds.is_proved else least}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def _newly_lost(gang: Gang, claim: Reservation, observed: Mapping[str, object]) -> LostWork | None:
    """What the gang has lost with this claim; None if that is counted, or if no pod has gone.

    Extras that end do not count: the gang goes on with its work.
    """
    victim = _victim(gang, claim)
    name = f"{claim.uid} {encode.timestamp(claim.reserved_at)}"
    is_begun = _has_begun_to_end(gang, victim)
    before = observed.get(PREEMPTION)
    is_counted = isinstance(before, Mapping) and before.get(COUNTED) == name
    if is_counted or not (victim.is_whole and is_begun and victim.lost_milliseconds):
        return None
    return LostWork(lost_milliseconds(observed) + victim.lost_milliseconds, name)


def _has_begun_to_end(gang: Gang, victim: ReservedVictim) -> bool:
    """Whether a pod that a claim names terminates or has gone."""
    staying = {member.uid for member in gang.members if not member.terminating}
    return not staying.issuperset(victim.pods)


def _victim(gang: Gang, claim: Reservation) -> ReservedVictim:
    return next(victim for victim in claim.victims or () if victim.uid == gang.uid)


def _phase(
    reservation: Reservation | None, counts: StatusCounts, *, is_well: bool, has_begun: bool
) -> str:
    if is_well:
        if counts.succeeded >= counts.needed:
            return "Finished"
        return "Running" if counts.running + counts.succeeded >= counts.needed else "Bound"
    if reservation is not None and not reservation.evict:
        return "Reserved"
    return "Degraded" if has_begun else "Waiting"


def _has_failed(gang: Gang, rejection: Rejection | None) -> bool:
    """Whether a gang did not start in time and Tutti does not try it any more."""
    is_late = rejection is not None and rejection.reason is Reason.TIMED_OUT
    return is_late and gang.on_timeout is OnTimeout.FAIL
