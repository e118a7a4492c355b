"""Tutti's Queues: how they are read, and how a dump writes them.

A field that cannot be read guarantees nothing and allows nothing, and the Queue stays in the tree.
If the Queue were left out, its gangs would count in the root, which has no limit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from ...model import ports
from ...model.inter_pod import Requirement
from ...model.keys import POD_GROUP, Uid
from ...model.queues import Amounts, PastUse, Preemption, Queue, QueueMode, Selector, Stop
from .. import wire
from ..calls import TUTTI_VERSION, api_version
from ..errors import BadObject
from .encode import moment
from .inter_pod import MalformedSelector, read_selector
from .metadata import named, seconds_of
from .quantity import QuantityError, as_text, granted

FINALIZER = f"{POD_GROUP.group}/charged"  # keeps a Queue while gangs are charged to it

MOST_RUN_SECONDS = 86_400  # of the CRD: no queue refuses a guarantee for longer

_STOPS = {str(stop): stop for stop in Stop}
_PREEMPTIONS = {str(preemption): preemption for preemption in Preemption}


@dataclass(frozen=True, slots=True)
class QueueObject:
    """A Queue with the fields that Tutti writes; decisions read only ``queue``."""

    queue: Queue
    version: str = "0"
    generation: int = 0
    finalizers: tuple[str, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)  # without the fields that ``queue`` has


def decode_queue(read: wire.Queue) -> QueueObject:
    """Read a Queue with its status.

    Raises:
        BadObject: it names a resource twice, or has no name or uid.
    """
    metadata = read.metadata
    return QueueObject(
        _declared(read),
        metadata.resource_version,
        metadata.generation,
        metadata.finalizers,
        read.status.rest,
    )


def encode_finalizers(read: QueueObject, finalizers: Iterable[str]) -> dict[str, Any]:
    """A patch that sets the finalizers of the Queue with this uid and resourceVersion."""
    preconditions = {"uid": read.queue.uid, "resourceVersion": read.version}
    return {"metadata": {**preconditions, "finalizers": [*finalizers]}}


def encode_past_use(past: PastUse) -> dict[str, Any]:
    """The record of past use in the form of the API."""
    return {
        "meanShare": past.mean,
        "share": past.share,
        "since": moment(past.since),
        "halfLifeSeconds": int(past.half_life),
    }


def encode_status(read: QueueObject, status: Mapping[str, Any]) -> dict[str, Any]:
    """A patch that merges fields into the status of the Queue with this uid."""
    return {"metadata": {"uid": read.queue.uid}, "status": dict(status)}


def _declared(queue: wire.Queue) -> Queue:
    name = named(queue)
    metadata, spec, unreadable = queue.metadata, queue.spec, set[str]()
    resources = [entry.name for entry in spec.resources]
    if len(set(resources)) < len(resources):
        raise BadObject(name, "spec.resources: it names the same resource twice")
    guaranteed = {r.name: r.guaranteed for r in spec.resources if r.guaranteed is not None}
    limits = {r.name: r.limit for r in spec.resources if r.limit is not None}
    since, began = queue.status.draining_since, queue.status.queues_since
    grace = spec.max_grace_seconds
    return Queue(
        name=metadata.name,
        uid=Uid(metadata.uid),
        parent=spec.parent,
        guaranteed=_amounts(guaranteed, "guaranteed", unreadable),
        limits=_amounts(limits, "limit", unreadable),
        weight=max(1, spec.weight),
        namespaces=_selector(spec.namespaces, "namespaces", unreadable),
        default_for=_selector(spec.default_for, "defaultFor", unreadable),
        stop=_STOPS.get(spec.stop, Stop.HOLD),
        draining_since=None if since is None else seconds_of(since),
        mode=QueueMode.SHADOW if spec.mode == QueueMode.SHADOW else QueueMode.ACTIVE,
        preemption=_preemption(spec.preemption),
        min_run_seconds=min(max(0, spec.min_run_seconds), MOST_RUN_SECONDS),
        max_grace_seconds=inf if grace is None else max(grace, 0),
        is_terminating=metadata.deletion_timestamp is not None,
        created=seconds_of(metadata.creation_timestamp),
        past_use=_past_use(queue.status.past_use),
        queues_since=None if began is None else seconds_of(began),
        unreadable=tuple(sorted(unreadable)),
    )


def _past_use(read: wire.queues.PastUse | None) -> PastUse | None:
    if read is None:
        return None
    since = seconds_of(read.since)
    return PastUse(read.mean_share, read.share, since, float(read.half_life_seconds))


def _seconds(queue: Queue) -> dict[str, int]:
    seconds: dict[str, int] = {}
    if queue.min_run_seconds:
        seconds["minRunSeconds"] = int(queue.min_run_seconds)
    if queue.max_grace_seconds < inf:
        seconds["maxGraceSeconds"] = int(queue.max_grace_seconds)
    return seconds


def _preemption(word: str | None) -> Preemption | None:
    """The declared preemption; an unknown word counts as Off."""
    return None if word is None else _PREEMPTIONS.get(word, Preemption.OFF)


def encode_queue(queue: Queue, taken_at: float) -> dict[str, Any]:
    """A Queue in the form of the API that is read as this value; for dumps."""
    spec: dict[str, Any] = {"weight": queue.weight, "stop": queue.stop, "mode": queue.mode}
    if queue.parent:
        spec["parent"] = queue.parent
    if queue.preemption is not None:
        spec["preemption"] = queue.preemption
    spec |= _seconds(queue)
    unreadable = frozenset(queue.unreadable)
    guaranteed, limits = dict(queue.guaranteed), dict(queue.limits)
    spec["resources"] = [
        {
            "name": name,
            **_quantity(name, "guaranteed", guaranteed, unreadable),
            **_quantity(name, "limit", limits, unreadable),
        }
        for name in sorted(guaranteed.keys() | limits.keys())
    ]
    for name, selector in (("namespaces", queue.namespaces), ("defaultFor", queue.default_for)):
        if f"spec.{name}" in unreadable:
            spec[name] = {"matchExpressions": [{"key": "", "operator": ""}]}
        elif selector is not None:
            spec[name] = {"matchExpressions": [*map(_requirement, selector)]}
    metadata = {"name": queue.name, "uid": queue.uid}
    if queue.created:
        metadata["creationTimestamp"] = moment(queue.created)
    if queue.is_terminating:
        metadata["deletionTimestamp"] = moment(taken_at)
    raw = {
        "apiVersion": api_version(POD_GROUP.group, TUTTI_VERSION),
        "kind": "Queue",
        "metadata": metadata,
        "spec": spec,
    }
    status = _status_for_plans(queue)
    return {**raw, "status": status} if status else raw


def _status_for_plans(queue: Queue) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if queue.draining_since is not None:
        status["drainingSince"] = moment(queue.draining_since)
    if queue.past_use is not None:
        status["pastUse"] = encode_past_use(queue.past_use)
    if queue.queues_since is not None:
        status["queuesSince"] = moment(queue.queues_since)
    return status


def _amounts(quantities: Mapping[str, object], field: str, unreadable: set[str]) -> Amounts:
    """The amounts by resource; an amount that cannot be read is 0, and its field is noted."""
    amounts: dict[str, int] = {}
    for name, quantity in quantities.items():
        try:
            amount = None if ports.is_port(name) else granted(name, quantity)
        except QuantityError:
            amount = None
        amounts[name] = amount or 0
        if amount is None:
            unreadable.add(_field(name, field))
    return tuple(sorted(amounts.items()))


def _field(resource: str, field: str) -> str:
    return f"spec.resources[{resource}].{field}"


def _selector(
    selector: wire.LabelSelector | None, field: str, unreadable: set[str]
) -> Selector | None:
    """The requirements of a selector; a selector that cannot be read selects no namespace."""
    try:
        return read_selector(selector)
    except MalformedSelector:
        unreadable.add(f"spec.{field}")
        return None


def _quantity(
    name: str, field: str, amounts: Mapping[str, int], unreadable: Iterable[str]
) -> dict[str, str]:
    if name not in amounts:
        return {}
    if _field(name, field) in unreadable:
        return {field: "?"}
    return {field: as_text(name, amounts[name])}


def _requirement(requirement: Requirement) -> dict[str, Any]:
    return {
        "key": requirement.key,
        "operator": requirement.operator,
        "values": [*requirement.values],
    }
