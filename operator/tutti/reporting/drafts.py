"""The status that an object should have, compared with its status now: what is news, what may wait.

The status has the fields of the object's kind: Tutti's PodGroup, or the kind of another gang
source. The module ``status`` says what holds of a gang. The reporter decides when a status is
written.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..gang.health import is_whole
from ..gang.quantities import cut
from ..kube.gang_sources import GangObject, GangOutcome, status_writer
from ..kube.gang_sources.pod_group import COUNTED, LOST, PREEMPTION
from ..model.cluster import Gang, Phase
from ..model.decisions import Reason
from .status import ConditionType, GangCondition, GroupStatus

MESSAGE_LIMIT = 800  # bytes; with three of these and the counters a status stays under 4 kB
QUIET_SECONDS = 1.0  # a write waits until the newest pod and the last write are so old
# One gang may alternate between these reasons: whether the plan is proved depends on all gangs
# and, at worst, on the clock.
ABOUT_CLAIMS = (Reason.WAITING_FOR_VOLUMES, Reason.WAITING_FOR_DEVICES)
UNSURE = (Reason.NOT_ENOUGH_ROOM, Reason.BUDGET_EXHAUSTED)


class Draft(NamedTuple):
    """The status that an object should have, and the conditions in it that are news."""

    status: Mapping[str, Any]  # may keep old sentences that differ in words alone
    newest: Mapping[str, Any]  # with all sentences as they are now
    news: Sequence[GangCondition]
    wait: float  # for how many seconds the write may be put off, so that changes share a write
    may_stay: bool = False  # the status may stay as it is, even if it differs
    version: str = ""  # the resourceVersion that the status is for; empty for any
    overwrites: bool = False  # the Tutti of another scheduler name wrote the status last


def draft(
    gang: Gang,
    status: GroupStatus,
    group: GangObject,
    now: str,
    *,
    is_fresh: bool,
    quiet_for: float,
    since_write: float,
) -> Draft:
    """The status that an object should have at the time ``now``, in the spelling of the API.

    ``is_fresh`` is whether the object's sentences were written recently. The newest pod of the gang
    is ``quiet_for`` seconds old, and the status was written ``since_write`` seconds ago.
    """
    writer, observed = status_writer(gang.key.kind), group.status
    if writer is not None and writer.words is not None:
        outcome = outcome_of(gang, status)
        new_status = writer.words(outcome, observed, now, keep_sentences=is_fresh)
        newest = writer.words(outcome, observed, now, keep_sentences=False)
        wait = max(0.0, QUIET_SECONDS - min(quiet_for, since_write))
        return Draft(
            new_status, newest, (), 0.0 if outcome.is_whole else wait, version=group.version
        )
    new_status = merged(status, observed, now, keep_sentences=is_fresh)
    # A write has the newest sentences, so that they agree with the counters beside them.
    newest = merged(status, observed, now, keep_sentences=False)
    wait = patience(newest, observed, quiet_for=quiet_for, since_write=since_write)
    told = news(newest, observed)
    if status.lost is not None:  # while the claim stands, and from the newest total
        return Draft(new_status, newest, told, 0.0, version=group.version)
    return Draft(
        *(new_status, newest, told, wait),
        may_stay=may_stay(gang, observed, status.scheduler),
        overwrites=_is_anothers(observed, status.scheduler),
    )


def outcome_of(gang: Gang, status: GroupStatus) -> GangOutcome:
    """What a status says, as input for the status of another gang source."""
    line = next(line for line in status.conditions if line.type is ConditionType.RESERVED)
    counts = status.counts
    return GangOutcome(
        gang.generation,
        is_whole(gang),
        "" if line.holds else line.reason,
        "" if line.holds else cut(line.message, MESSAGE_LIMIT),
        status.phase,
        counts.seen,
        counts.bound,
        counts.running,
        counts.succeeded,
        counts.failed,
        counts.needed,
    )


def may_stay(gang: Gang, observed: Mapping[str, object], scheduler: str) -> bool:
    """Whether the status of a gang may stay as it is, even if it differs.

    It may if the gang has finished and its pods are being deleted. It also may if the gang has no
    pods and the Tutti of another scheduler name writes its status. Pods name their scheduler; a
    PodGroup does not.
    """
    is_over = all(member.phase is Phase.SUCCEEDED for member in gang.members)
    is_cleared = observed.get("phase") == "Finished" and is_over and not is_whole(gang)
    is_without_pods = not gang.members and not gang.finished
    return is_cleared or (is_without_pods and _is_anothers(observed, scheduler))


def _is_anothers(observed: Mapping[str, object], scheduler: str) -> bool:
    """Whether the Tutti of another scheduler name wrote a status."""
    return observed.get("schedulerName", scheduler) != scheduler


def merged(
    status: GroupStatus, observed: Mapping[str, object], now: str, *, keep_sentences: bool
) -> dict[str, object]:
    """The status in the form of the API; unchanged conditions keep their transition time.

    With ``keep_sentences``, a condition that says the same as before keeps its reason and message.
    A condition about claims does not: its sentence changes only when the claims change.
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
        is_kept = keep_sentences and line.reason not in ABOUT_CLAIMS
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
    counts, lost = status.counts, status.lost
    preemption = observed.get(PREEMPTION)
    if lost is not None:
        preemption = {LOST: lost.milliseconds, COUNTED: lost.claim}
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
        **({PREEMPTION: preemption} if preemption else {}),
    }


def news(status: Mapping[str, object], observed: Mapping[str, object]) -> list[GangCondition]:
    """The conditions that turned, one for each change of state that users care about."""
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
            or kind == ConditionType.PREEMPTED  # the eviction has an Event of its own
        )
        if not is_implied:
            conditions.append(
                GangCondition(
                    ConditionType(str(kind)), holds, str(line["reason"]), str(line["message"])
                )
            )
    return conditions


def worth_events(
    conditions: Iterable[GangCondition], observed: Mapping[str, object]
) -> list[GangCondition]:
    """The news that are also Events: all, but not the start of a gang that had no status before.

    Nothing was said of such a gang that an Event would have to correct, and its first status says
    the same, with the time.
    """
    is_first = not observed.get("conditions")
    return [
        line
        for line in conditions
        if not (is_first and line.type is ConditionType.BOUND and line.holds)
    ]


def patience(
    status: Mapping[str, object],
    observed: Mapping[str, object],
    *,
    quiet_for: float,
    since_write: float,
) -> float:
    """For how many seconds a write may still be put off, so that changes share one write.

    News about a gang that does not wait is written at once. That a gang waits, and counters that
    change without news, are written once the gang and its status have not changed for a while.
    """
    is_waiting = status.get("phase") == "Waiting"
    if not is_waiting and news(status, observed):
        return 0.0
    return max(0.0, QUIET_SECONDS - min(quiet_for, since_write))


def _says_the_same(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    is_same = old.get("status") == new.get("status")
    return is_same and _is_alike(old.get("reason"), new.get("reason"))


def _is_alike(old: object, new: object) -> bool:
    """Whether two reasons say the same; a proof that room is lacking may come and go."""
    return old == new or (old in UNSURE and new in UNSURE)


def _maps(value: object) -> Iterable[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
