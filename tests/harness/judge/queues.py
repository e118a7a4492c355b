"""Queues and namespaces as the judge reads them, and which queue is a namespace's default."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from .quantities import Amounts, amounts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .history import Body
    from .views import Key


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace at one revision."""

    key: Key
    uid: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Queue:
    """A Queue at one revision; ``observed`` is the generation that Tutti has last written about."""

    key: Key
    uid: str
    parent: str
    limits: Amounts  # none in shadow
    generation: int
    observed: int
    stop: str
    draining_since: datetime | None
    created: str
    namespaces: Body | None  # label selectors, as they are declared
    default_for: Body | None

    def stops(self, created: datetime) -> bool:
        """Whether it starts nothing that was created then."""
        if self.stop == "Drain":
            return self.draining_since is not None and created >= self.draining_since
        return self.stop == "Hold"

    def is_default_of(self, labels: Mapping[str, str]) -> bool:
        """Whether it is the default of a namespace with these labels, if no other has chosen it."""
        return selects(self.default_for, labels) and selects(self.namespaces, labels)


def read_namespace(key: Key, body: Body) -> Namespace:
    """Read one object."""
    metadata = body["metadata"]
    return Namespace(key, metadata["uid"], metadata.get("labels") or {})


def read_queue(key: Key, body: Body) -> Queue:
    """Read one object; one that is being deleted is held."""
    spec, metadata, status = body.get("spec") or {}, body["metadata"], body.get("status") or {}
    lines = [] if spec.get("mode") == "Shadow" else spec.get("resources") or ()
    since = status.get("drainingSince")
    return Queue(
        key=key,
        uid=metadata["uid"],
        parent=spec.get("parent") or "",
        limits=amounts({line["name"]: line["limit"] for line in lines if "limit" in line}),
        generation=int(metadata.get("generation") or 1),
        observed=int(status.get("observedGeneration") or 0),
        stop="Hold" if metadata.get("deletionTimestamp") else spec.get("stop") or "None",
        draining_since=datetime.fromisoformat(since) if since else None,
        created=metadata.get("creationTimestamp") or "",
        namespaces=spec.get("namespaces"),
        default_for=spec.get("defaultFor"),
    )


def default_queue(queues: Collection[Queue], labels: Mapping[str, str]) -> str:
    """The queue that is charged for what names none in a namespace; empty for the root.

    A default of all namespaces is that of those which no other has chosen. Of several, that without
    children counts, then the oldest.
    """
    willing = [queue for queue in queues if queue.is_default_of(labels)]
    chosen = [queue for queue in willing if queue.default_for or queue.namespaces] or willing
    parents = {queue.parent for queue in queues}
    leaves = [queue for queue in chosen if queue.key.name not in parents]
    oldest = min(leaves or chosen, key=lambda queue: (queue.created, queue.key), default=None)
    return "" if oldest is None else oldest.key.name


def selects(selector: Body | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels; none at all selects nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _holds(expression: Body, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
