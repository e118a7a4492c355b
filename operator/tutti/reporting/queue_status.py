"""The status of a Queue: its conditions in words, its figures, and whether a condition is news.

Pure. Each sentence says what holds, and what users can do about it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ..gang.findings import HoldCause
from ..gang.quantities import cut, format_amount, quantity
from ..model.decisions import QueueUse
from ..model.keys import GangKey
from ..model.queues import ROOT, PastUse, Queue, QueueMode, Stop
from ..model.resources import NOTHING
from ..queues.share import MILLION
from ..queues.tree import Fault, Finding, QueueTree

MESSAGE_LIMIT = 800  # bytes
MOST_NAMES = 5  # that one sentence names
NO_USE = QueueUse("", NOTHING, NOTHING, NOTHING, 0, Fraction(0))


class ConditionType(StrEnum):
    """The condition types of a Queue."""

    VALID = "Valid"
    ACCEPTING = "Accepting"
    EMPTY = "Empty"
    WOULD_STOP = "WouldStop"  # only of a queue in shadow


class Why(StrEnum):
    """The reasons of conditions that report no fault."""

    DECLARED = "Declared"
    ACCEPTING = "Accepting"
    HELD = "Held"
    DRAINING = "Draining"
    DELETING = "Deleting"
    EMPTY = "Empty"
    CHARGED = "Charged"
    BEYOND_LIMIT = "BeyondLimit"
    WITHIN_LIMIT = "WithinLimit"


@dataclass(frozen=True, slots=True)
class QueueCondition:
    """One condition: its type, whether it holds, and why, in one word and in one sentence."""

    type: ConditionType
    holds: bool
    reason: str
    message: str


def conditions(
    tree: QueueTree,
    name: str,
    faults: Sequence[Finding],
    *,
    is_empty: bool,
    beyond: Sequence[GangKey] = (),
) -> Sequence[QueueCondition]:
    """The conditions of one queue.

    ``faults`` are the faults of this queue. ``beyond`` are the gangs that its limits would have
    stopped; only a queue in shadow reports them.
    """
    statements = [_valid(faults), _accepting(tree, name), _empty(is_empty=is_empty)]
    if tree.queues[name].mode is QueueMode.SHADOW:
        statements.append(_would_stop(beyond))
    return statements


def sentence(fault: Finding) -> str:
    """One fault of a queue, and how to repair it, in a sentence."""
    names = ", ".join(fault.names)
    match fault.fault:
        case Fault.RESERVED_NAME:
            return f"{ROOT} is the built-in queue above all others: create it under another name"
        case Fault.UNKNOWN_PARENT:
            return (
                f"its parent {names} does not exist, so no gang starts here: create queue {names}, "
                "or name another queue in spec.parent"
            )
        case Fault.CYCLE:
            return (
                f"its parent {names} is also below it, so no gang starts here: name another queue "
                "in spec.parent of one of them"
            )
        case Fault.OMITS_RESOURCE:
            return (
                f"it guarantees no amount of {names}, which other queues guarantee, so it covers "
                f"no gang that requests {names}, except by what its children guarantee: add an "
                "amount, which may be 0"
            )
        case Fault.UNREADABLE:
            return (
                f"{names} cannot be read, so an amount there counts as 0 and a selector selects no "
                "namespace: correct it"
            )
        case _:
            return _too_much(fault)


def _too_much(fault: Finding) -> str:
    (resource,) = fault.names
    amount, bound = (format_amount(resource, n) for n in (fault.amount, fault.bound))
    match fault.fault:
        case Fault.CHILDREN_EXCEED_PARENT:
            return (
                f"its children guarantee {amount} {resource} together, and it guarantees {bound}: "
                "raise its guarantee, or lower theirs"
            )
        case Fault.EXCEEDS_PARENT:
            return (
                f"with it, the children of its parent would guarantee {amount} {resource} "
                f"together, and the parent guarantees {bound}: lower its guarantee, or raise that "
                "of the parent"
            )
        case Fault.EXCEEDS_CLUSTER:
            return (
                f"the queues below {ROOT} guarantee {amount} {resource} together, and all nodes "
                f"have {bound}: add nodes, or lower guarantees"
            )
        case _:
            return (
                f"its limit of {bound} {resource} is below its guarantee of {amount}: raise the "
                "limit, or lower the guarantee"
            )


def listed(names: Iterable[object]) -> str:
    """Some names in one sentence, and how many more there are."""
    words = [*map(str, names)]
    more = len(words) - MOST_NAMES
    return ", ".join([*words[:MOST_NAMES], *[f"{more} more"] * (more > 0)])


def _valid(faults: Sequence[Finding]) -> QueueCondition:
    if not faults:
        message = "nothing is wrong with its declaration"
        return QueueCondition(ConditionType.VALID, holds=True, reason=Why.DECLARED, message=message)
    message = "; ".join(map(sentence, faults))
    return QueueCondition(
        ConditionType.VALID, holds=False, reason=faults[0].fault.value, message=message
    )


def _accepting(tree: QueueTree, name: str) -> QueueCondition:
    stop = next(_stops(tree, name), None)
    if stop is not None:
        reason, message = stop
        return QueueCondition(ConditionType.ACCEPTING, holds=False, reason=reason, message=message)
    message = "gangs start here"
    if not tree.is_leaf(name):
        message = "gangs start in the queues below it"
    return QueueCondition(
        ConditionType.ACCEPTING, holds=True, reason=Why.ACCEPTING, message=message
    )


def _stops(tree: QueueTree, name: str) -> Iterator[tuple[str, str]]:
    """Why a queue does not start all gangs: its own causes first, then causes of queues above."""
    path = [tree.queues[step] for step in tree.paths[name]]
    for queue in path:
        where = "" if queue.name == name else f"queue {queue.name} above it: "
        yield from ((reason, where + message) for reason, message in _own_stops(tree, queue))


def _own_stops(tree: QueueTree, queue: Queue) -> Iterator[tuple[str, str]]:
    match tree.hold_cause(queue.name):
        case HoldCause.DELETION:
            yield (
                Why.DELETING,
                "it is being deleted: no gang starts, and it goes once no gang is charged to it",
            )
        case HoldCause.PARENT:
            yield Why.HELD, "its parent cannot be used, so no gang starts"
        case HoldCause.STOP:
            yield Why.HELD, "it has stop: Hold, so no gang starts; gangs that run go on"
    if queue.stop is Stop.DRAIN:
        yield (
            Why.DRAINING,
            "it has stop: Drain, so PodGroups and pods created after the drain began do not start",
        )


def _empty(*, is_empty: bool) -> QueueCondition:
    message = "no gang is charged to it or to a queue below it"
    if is_empty:
        return QueueCondition(ConditionType.EMPTY, holds=True, reason=Why.EMPTY, message=message)
    message = "gangs are charged to it or to queues below it"
    return QueueCondition(ConditionType.EMPTY, holds=False, reason=Why.CHARGED, message=message)


def _would_stop(beyond: Sequence[GangKey]) -> QueueCondition:
    if not beyond:
        message = "mode is Shadow: its limits would have stopped no gang that runs"
        return QueueCondition(
            ConditionType.WOULD_STOP, holds=False, reason=Why.WITHIN_LIMIT, message=message
        )
    message = f"mode is Shadow: its limits would have stopped {listed(beyond)}"
    return QueueCondition(
        ConditionType.WOULD_STOP, holds=True, reason=Why.BEYOND_LIMIT, message=message
    )


def status(
    queue: Queue,
    use: QueueUse,
    conditions: Sequence[QueueCondition],
    observed: Mapping[str, Any],
    *,
    generation: int,
    scheduler: str,
    at: str,
) -> Mapping[str, Any]:
    """The status that a Queue should have; ``at`` is the time of conditions that turn now.

    ``observed`` is the status that the Queue has.
    """
    return {
        "schedulerName": scheduler,
        "observedGeneration": generation,
        "waiting": use.waiting,
        "share": percent(use),
        "use": use_text(queue, use),
        "resources": [*_resources(queue, use)],
        "conditions": [*_written(conditions, observed, generation, at)],
    }


def is_news(status: Mapping[str, Any], observed: Mapping[str, Any]) -> bool:
    """Whether a condition has turned or has another reason; such a change is written at once."""
    return _turns(status) != _turns(observed)


def percent(use: QueueUse) -> str:
    """The share of a queue, in whole percent, rounded down."""
    return f"{int(use.share * 100)}%"


def past_use(queue: Queue, use: QueueUse, half_life: float, now: float) -> PastUse | None:
    """The record of past use that a Queue should have; None if ``half_life`` is 0.

    It stays as it is while the share does.
    """
    if not half_life:
        return None
    before, share = queue.past_use, int(use.share * MILLION)
    if before is None:
        return PastUse(0, share, now, half_life)
    if (before.share, before.half_life) == (share, half_life):
        return before
    return PastUse(round(before.mean_at(now)), share, now, half_life)


def use_text(queue: Queue, use: QueueUse) -> str:
    """The charge and the limit of each resource that the queue names, for the table of kubectl."""
    limits, guaranteed = dict(queue.limits), dict(queue.guaranteed)
    return ", ".join(
        f"{format_amount(name, use.charged[name])}/"
        f"{format_amount(name, limits[name]) if name in limits else '-'} {name}"
        for name in sorted(limits.keys() | guaranteed.keys())
    )


def _resources(queue: Queue, use: QueueUse) -> Iterator[Mapping[str, str]]:
    """The charged, covered and borrowed amount of each resource that the queue names or uses."""
    declared = {name for name, _ in (*queue.guaranteed, *queue.limits)}
    for name in sorted(declared | set(use.charged.names)):
        yield {
            "name": name,
            "charged": quantity(name, use.charged[name]),
            "covered": quantity(name, use.covered[name]),
            "borrowed": quantity(name, use.borrowed[name]),
        }


def _written(
    conditions: Iterable[QueueCondition], observed: Mapping[str, Any], generation: int, at: str
) -> Iterator[Mapping[str, Any]]:
    """The conditions in the form of the API; one that has not turned keeps its transition time."""
    before = {line.get("type"): line for line in _lines(observed)}
    for condition in conditions:
        value = "True" if condition.holds else "False"
        old = before.get(condition.type.value, {})
        turned = old.get("lastTransitionTime") if old.get("status") == value else None
        yield {
            "type": condition.type.value,
            "status": value,
            "reason": condition.reason,
            "message": cut(condition.message, MESSAGE_LIMIT),
            "observedGeneration": generation,
            "lastTransitionTime": turned or at,
        }


def _turns(status: Mapping[str, Any]) -> set[tuple[object, object, object]]:
    return {(line.get("type"), line.get("status"), line.get("reason")) for line in _lines(status)}


def _lines(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    lines = status.get("conditions")
    return [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []
