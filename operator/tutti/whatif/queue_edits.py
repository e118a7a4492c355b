"""Snapshots with other queues: another quota, weight, parent or stop, or one more queue.

A change is written as ``vision.limit.nvidia.com/gpu=48``: a queue, a field of it, and for a quota
its resource. The resource may be left out if the queue has one quota of this kind.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from ..kube.codec.quantity import QuantityError, granted
from ..model.cluster import Namespace, Snapshot
from ..model.queues import ROOT, Amounts, Preemption, Queue, QueueMode, Stop
from .edits import WrongChange

QUOTAS = ("limit", "guaranteed")  # the fields of a queue that are for one resource
RESOURCE = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?")
NONE = "none"  # removes a quota or a parent
EXAMPLE = "write it as QUEUE.FIELD=VALUE, such as vision.limit.nvidia.com/gpu=48"
MOST_WEIGHT = 10_000

Word = TypeVar("Word", bound=StrEnum)


def changed(of: Snapshot, words: str) -> Snapshot:
    """The cluster with one field of one queue changed.

    Raises:
        WrongChange: the words name no queue or no field, or the value is not valid.
    """
    where, sign, value = words.partition("=")
    queue = _named(of, where, words)
    field, _, resource = where[len(queue.name) + 1 :].partition(".")
    if not sign or not value or not field:
        raise WrongChange(f"--set-queue {words}: {EXAMPLE}")
    if field not in FIELDS:
        names = ", ".join(FIELDS)
        raise WrongChange(f"--set-queue {words}: {field} is no such field; there are {names}")
    if resource and field not in QUOTAS:
        raise WrongChange(f"--set-queue {words}: {field} has no resource; {EXAMPLE}")
    edited = FIELDS[field](queue, resource, value, words)
    if edited.parent != queue.parent:
        _assert_is_parent(of, edited, words)
    return _with(of, edited)


def _assert_is_parent(of: Snapshot, queue: Queue, words: str) -> None:
    """Refuse a parent that does not exist, or that the queue itself is above."""
    parents = {other.name: other.parent for other in of.queues}
    above = queue.parent
    if above and above not in parents:
        names = ", ".join(sorted(parents.keys() - {queue.name})) or "none"
        raise WrongChange(f"--set-queue {words}: there is no queue {above}; there are {names}")
    for _ in parents:
        if above == queue.name:
            raise WrongChange(f"--set-queue {words}: {queue.name} would be its own ancestor")
        above = parents.get(above, "")


def with_queue(of: Snapshot, queue: Queue, known: Iterable[Namespace] = ()) -> Snapshot:
    """The Snapshot with this queue, as if it were created now, after all that has got a node.

    A queue with the same name is replaced; its uid and all that is recorded about it are kept. A
    Snapshot without queues has no namespaces, so ``known`` are those whose labels are known.
    """
    namesake = next((old for old in of.queues if old.name == queue.name), None)
    if namesake is None:
        queue = replace(queue, created=_now(of), queues_since=None)
    else:
        queue = replace(
            queue,
            uid=namesake.uid,
            created=namesake.created,
            draining_since=namesake.draining_since,
            past_use=namesake.past_use,
            queues_since=namesake.queues_since,
            is_terminating=namesake.is_terminating,
        )
    if not of.queues:
        by_name = {gang.key.namespace: Namespace(gang.key.namespace) for gang in of.gangs}
        by_name |= {namespace.name: namespace for namespace in (*of.namespaces, *known)}
        of = replace(of, namespaces=tuple(by_name[name] for name in sorted(by_name)))
    return _with(of, queue)


def _with(of: Snapshot, queue: Queue) -> Snapshot:
    """The Snapshot with this queue, in place of any other of its name; a new drain begins now."""
    if queue.stop is Stop.DRAIN and queue.draining_since is None:
        queue = replace(queue, draining_since=math.floor(_now(of)) + 1.0)
    others = (old for old in of.queues if old.name != queue.name)
    return replace(of, queues=tuple(sorted((*others, queue), key=lambda other: other.name)))


def _now(of: Snapshot) -> float:
    """When the Snapshot was taken, or when its last pod got a node, if that is later.

    The time of files that are no dump is the creation of their newest object.
    """
    return max([of.taken_at, *(pod.bound_at for pod in of.pods if pod.bound_at is not None)])


def _named(of: Snapshot, where: str, words: str) -> Queue:
    """The queue whose name the words begin with; names may have dots, so the longest counts."""
    names = {queue.name: queue for queue in of.queues}
    meant = [name for name in names if where == name or where.startswith(f"{name}.")]
    if meant:
        return names[max(meant, key=len)]
    if not names:
        raise WrongChange(
            f"--set-queue {words}: there are no queues; add one with --add-queue FILE"
        )
    first = where.partition(".")[0]
    nearest = difflib.get_close_matches(first, names, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(sorted(names))}"
    raise WrongChange(f"--set-queue {words}: there is no queue {first}; {hint}")


def _limit(queue: Queue, resource: str, value: str, words: str) -> Queue:
    return replace(queue, limits=_with_amount(queue.limits, resource, value, words))


def _guarantee(queue: Queue, resource: str, value: str, words: str) -> Queue:
    return replace(queue, guaranteed=_with_amount(queue.guaranteed, resource, value, words))


def _with_amount(amounts: Amounts, resource: str, value: str, words: str) -> Amounts:
    quotas = dict(amounts)
    if resource and not RESOURCE.fullmatch(resource):
        raise WrongChange(f"--set-queue {words}: {resource!r} is no name of a resource")
    if not resource:
        if len(quotas) != 1:
            choice = f"of {', '.join(quotas)}" if quotas else "such as nvidia.com/gpu"
            before = words.partition("=")[0]
            raise WrongChange(
                f"--set-queue {words}: name the resource, {choice}: {before}.RESOURCE={value}"
            )
        (resource,) = quotas
    if value == NONE:
        quotas.pop(resource, None)
    else:
        try:
            quotas[resource] = granted(resource, value)
        except QuantityError as problem:
            raise WrongChange(
                f"--set-queue {words}: {problem}; {NONE} takes the quota away"
            ) from problem
    return tuple(sorted(quotas.items()))


def _weight(queue: Queue, _resource: str, value: str, words: str) -> Queue:
    if not value.isdecimal() or not 1 <= int(value) <= MOST_WEIGHT:
        raise WrongChange(f"--set-queue {words}: a weight is a number from 1 to {MOST_WEIGHT}")
    return replace(queue, weight=int(value))


def _parent(queue: Queue, _resource: str, value: str, _words: str) -> Queue:
    return replace(queue, parent="" if value in (NONE, ROOT) else value)


def _stop(queue: Queue, _resource: str, value: str, words: str) -> Queue:
    stop = _word(Stop, value, words)
    return queue if stop is queue.stop else replace(queue, stop=stop, draining_since=None)


def _mode(queue: Queue, _resource: str, value: str, words: str) -> Queue:
    return replace(queue, mode=_word(QueueMode, value, words))


def _preemption(queue: Queue, _resource: str, value: str, words: str) -> Queue:
    declared = None if value == NONE else _word(Preemption, value, words)
    return replace(queue, preemption=declared)


def _word(kind: type[Word], value: str, words: str) -> Word:
    try:
        return kind(value)
    except ValueError as problem:
        words_of_kind = ", ".join(kind)
        raise WrongChange(f"--set-queue {words}: {value} is none of {words_of_kind}") from problem


FIELDS: Mapping[str, Callable[[Queue, str, str, str], Queue]] = {
    "limit": _limit,
    "guaranteed": _guarantee,
    "weight": _weight,
    "parent": _parent,
    "stop": _stop,
    "mode": _mode,
    "preemption": _preemption,
}
