"""What a PodGroup and its pods should say of themselves; written for people, read by no decision.

Pure: the cycle compares the answer with what stands there and writes the difference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..gang import finding_text, health
from ..gang.health import Readiness, is_whole
from ..gang.quantities import count, cut
from ..model.cluster import Gang, OnTimeout, Phase, Reservation
from ..model.decisions import Reason, Rejection

MESSAGE_LIMIT = 800  # bytes; with three of these and the counters a status stays under 4 kB
QUIET_SECONDS = 1.0  # a gang still being created, or counters still moving, is left alone so long
# Whether the plan is proved depends on all gangs and, at worst, on the clock.
UNSURE = (Reason.NOT_ENOUGH_ROOM, Reason.BUDGET_EXHAUSTED)


class ConditionType(StrEnum):
    """The condition types of a PodGroup."""

    RESERVED = "Reserved"
    BOUND = "Bound"
    HEALTHY = "Healthy"


@dataclass(frozen=True, slots=True)
class GangCondition:
    """One condition: its type, whether it holds, why in one word, and in one sentence."""

    type: ConditionType
    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """Members by what they have come to."""

    needed: int
    seen: int
    bound: int
    running: int
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A PodGroup's status."""

    scheduler: str  # the name of the scheduler that says all this
    observed_generation: int
    phase: str
    counts: StatusCounts
    conditions: tuple[GangCondition, ...]


def may_stay(gang: Gang, observed: Mapping[str, object], scheduler: str) -> bool:
    """Whether its status may stay as it is, whatever could be said.

    It has finished and its pods are being cleared away; or it has no pods, and the Tutti of another
    scheduler name speaks for it: pods name their scheduler, a PodGroup does not.
    """
    is_over = all(member.phase is Phase.SUCCEEDED for member in gang.members)
    is_cleared = observed.get("phase") == "Finished" and is_over and not is_whole(gang)
    is_anothers = observed.get("schedulerName", scheduler) != scheduler
    return is_cleared or (is_anothers and not gang.members and not gang.finished)


def status_of(
    gang: Gang,
    reservation: Reservation | None,
    rejection: Rejection | None,
    nodes: Readiness,
    observed: Mapping[str, object],
    *,
    scheduler: str,
) -> GroupStatus:
    """The status of one gang after a cycle; ``observed`` is the one that it carries now."""
    counts = _counts(gang)
    healthy = _healthy(gang, reservation, nodes, observed)
    conditions = tuple(
        line
        for line in (
            _reserved(gang, reservation, rejection, counts),
            _bound(gang, reservation, rejection, counts),
            healthy,
        )
        if line is not None
    )
    is_well = healthy is not None and healthy.holds
    phase = _phase(None if is_whole(gang) else reservation, counts, is_well=is_well)
    if gang.is_finished:
        phase = "Finished"
    if phase == "Waiting" and _has_failed(gang, rejection):
        phase = "Failed"
    return GroupStatus(scheduler, gang.generation, phase, counts, conditions)


def _counts(gang: Gang) -> StatusCounts:
    members = [member for member in gang.members if gang.accepts(member)]
    phases = [member.phase for member in members]
    finished = len(gang.finished)
    return StatusCounts(
        needed=gang.min_member,
        seen=len(members),
        bound=sum(member.counts_as_bound for member in members) + finished,
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


def _is_short(rejection: Rejection | None) -> bool:
    """Whether members have no room that the gang needs, though others' room is reserved."""
    if rejection is None or rejection.only_extra_members:
        return False
    return rejection.reason not in (Reason.REFUSED, Reason.WAITING_FOR_MEMBERS)


def _room(reservation: Reservation, counts: StatusCounts) -> str:
    """What a standing Reservation holds."""
    nodes = len({entry.node for entry in reservation.entries})
    placement = f"{count(len(reservation.entries), 'member')} on {count(nodes, 'node')}"
    if not reservation.slots:
        return placement
    absent = count(sum(slot.count for slot in reservation.slots), "absent member")
    places = len({slot.node for slot in reservation.slots})
    absent_room = f"room on {count(places, 'node')} is reserved for {absent}"
    return f"{counts.seen} of {counts.needed} members exist; {absent_room}"


def _bound(
    gang: Gang, reservation: Reservation | None, rejection: Rejection | None, counts: StatusCounts
) -> GangCondition | None:
    sentence = f"{counts.bound} of {counts.needed} members are bound"
    if is_whole(gang):
        return GangCondition(ConditionType.BOUND, holds=True, reason="Bound", message=sentence)
    if reservation is not None and rejection is not None and rejection.reason is Reason.REFUSED:
        sentence = f"{sentence}; {finding_text.sentence(rejection)}"
        return GangCondition(
            ConditionType.BOUND, holds=False, reason=Reason.REFUSED, message=sentence
        )
    if reservation is not None and reservation.evict:
        return GangCondition(ConditionType.BOUND, holds=False, reason="Released", message=sentence)
    if reservation is not None or counts.bound:
        return GangCondition(ConditionType.BOUND, holds=False, reason="Binding", message=sentence)
    return None


def _healthy(
    gang: Gang, reservation: Reservation | None, nodes: Readiness, observed: Mapping[str, object]
) -> GangCondition | None:
    """Nothing is said of a gang that is being bound for the first time."""
    previous = health.before(observed)
    ailment = health.ailment(gang, nodes, previous)
    if ailment is None:
        sentence = "no needed member is missing"
        return GangCondition(ConditionType.HEALTHY, holds=True, reason="Whole", message=sentence)
    has_started = reservation is None or previous.was_whole or is_whole(gang)
    if has_started and any(member.counts_as_bound for member in gang.members):
        return GangCondition(
            ConditionType.HEALTHY, holds=False, reason=ailment.cause, message=ailment.sentence
        )
    return None


def _phase(reservation: Reservation | None, counts: StatusCounts, *, is_well: bool) -> str:
    if is_well:
        if counts.succeeded >= counts.needed:
            return "Finished"
        return "Running" if counts.running + counts.succeeded >= counts.needed else "Bound"
    if reservation is not None and not reservation.evict:
        return "Reserved"
    return "Degraded" if counts.bound else "Waiting"


def _has_failed(gang: Gang, rejection: Rejection | None) -> bool:
    """Whether it has run out of time and is not tried any more."""
    is_late = rejection is not None and rejection.reason is Reason.TIMED_OUT
    return is_late and gang.on_timeout is OnTimeout.FAIL


def merged(
    status: GroupStatus, observed: Mapping[str, object], now: str, *, keep_sentences: bool
) -> dict[str, object]:
    """The status as the API keeps it; unchanged conditions keep their transition time.

    ``keep_sentences`` leaves reason and message of a condition that says the same as before, but
    for claims: what is said of these changes with them alone.
    """
    before = {
        str(line["type"]): line
        for line in _maps(observed.get("conditions"))
        if isinstance(line.get("type"), str)
    }
    conditions = []
    for line in status.conditions:
        value = "True" if line.holds else "False"
        old = before.get(line.type, {})
        is_same = old.get("status") == value
        is_kept = keep_sentences and line.reason != Reason.WAITING_FOR_VOLUMES
        keeps = is_same and is_kept and _is_alike(old.get("reason"), line.reason)
        conditions.append(
            {
                "type": line.type.value,
                "status": value,
                "reason": old.get("reason") if keeps else line.reason,
                "message": old.get("message") if keeps else cut(line.message, MESSAGE_LIMIT),
                "observedGeneration": status.observed_generation,
                "lastTransitionTime": old.get("lastTransitionTime") if is_same else now,
            }
        )
    counts = status.counts
    return {
        "schedulerName": status.scheduler,
        "observedGeneration": status.observed_generation,
        "phase": status.phase,
        "conditions": conditions,
        "members": {
            "needed": counts.needed,
            "seen": counts.seen,
            "bound": counts.bound,
            "running": counts.running,
            "succeeded": counts.succeeded,
            "failed": counts.failed,
        },
    }


def _says_the_same(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    is_same = old.get("status") == new.get("status")
    return is_same and _is_alike(old.get("reason"), new.get("reason"))


def _is_alike(old: object, new: object) -> bool:
    """Whether two reasons say the same: a proof of too little room may come and go."""
    return old == new or (old in UNSURE and new in UNSURE)


def news(status: Mapping[str, object], observed: Mapping[str, object]) -> list[GangCondition]:
    """The conditions that turned, as far as people care: one line per change of state."""
    before = {line.get("type"): line for line in _maps(observed.get("conditions"))}
    after = {line.get("type"): line for line in _maps(status.get("conditions"))}
    is_bound = after.get("Bound", {}).get("status") == "True"
    conditions = []
    for kind, line in after.items():
        old = before.get(kind)
        holds = line.get("status") == "True"
        if old is not None and _says_the_same(old, line):
            continue
        is_implied = (
            (kind == ConditionType.RESERVED and holds and is_bound)
            or (kind == ConditionType.BOUND and not holds and line["reason"] != Reason.REFUSED)
            or (kind == ConditionType.HEALTHY and holds and old is None)
        )
        if not is_implied:
            conditions.append(
                GangCondition(
                    ConditionType(str(kind)), holds, str(line["reason"]), str(line["message"])
                )
            )
    return conditions


def patience(
    status: Mapping[str, object],
    observed: Mapping[str, object],
    *,
    quiet_for: float,
    since_write: float,
) -> float:
    """For how many seconds a write may still be put off, so that changes share one.

    What a gang has come to is said at once; that it waits, and counters alone, when it is quiet.
    """
    is_waiting = status.get("phase") == "Waiting"
    if not is_waiting and news(status, observed):
        return 0.0
    return max(0.0, QUIET_SECONDS - min(quiet_for, since_write))


def _maps(value: object) -> Iterable[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
