"""Which queue a gang belongs to, and which queue a gang that runs is charged to.

A gang that waits belongs to the queue that it names, or else to its namespace's default. A gang
that runs is charged to the queue that was written down when it started.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..filters.node_rules import label_holds
from ..model.queues import ROOT, QueueRecord, Selector
from .tree import QueueTree


class Refusal(StrEnum):
    """Why a gang belongs to no queue, as its condition names it."""

    UNKNOWN = "UnknownQueue"  # no Queue has the name
    FORBIDDEN = "ForbiddenQueue"  # the queue does not admit the namespace
    NOT_A_LEAF = "QueueHasChildren"
    AMBIGUOUS = "AmbiguousDefault"  # several queues are the namespace's default


@dataclass(frozen=True, slots=True)
class Membership:
    """The queue of a gang; empty if there is a refusal, and then ``candidates`` would do."""

    queue: str
    refusal: Refusal | None = None
    candidates: tuple[str, ...] = ()  # sorted


def membership(tree: QueueTree, named: str, labels: Mapping[str, str]) -> Membership:
    """The queue of a gang that names one, or names none; ``labels`` are its namespace's.

    A namespace that is the default of no queue puts its gangs into the root.
    """
    if not named:
        defaults = _usable(tree, labels, defaults_only=True)
        if len(defaults) > 1:
            return Membership("", Refusal.AMBIGUOUS, defaults)
        return Membership(defaults[0] if defaults else ROOT)
    queue = tree.queues.get(named)
    if queue is None or named == ROOT:
        return Membership("", Refusal.UNKNOWN, _usable(tree, labels))
    if not selects(queue.namespaces, labels):
        return Membership("", Refusal.FORBIDDEN, _usable(tree, labels))
    if not tree.is_leaf(named):
        below = (name for name in _usable(tree, labels) if named in tree.path(name))
        return Membership("", Refusal.NOT_A_LEAF, tuple(below))
    return Membership(named)


def charged_queue(tree: QueueTree, record: QueueRecord | None, now: Membership) -> str:
    """The queue that a gang is charged to which runs.

    Without a record (it started before there were queues) it is the queue to which it would
    belong now. The root is charged where there is none, or the queue of the record is gone.
    """
    if record is None:
        return now.queue or ROOT
    queue = tree.queues.get(record.queue)
    return ROOT if queue is None or queue.uid != record.queue_uid else queue.name


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector holds for a namespace with these labels; None holds for no namespace."""
    return selector is not None and all(
        label_holds(requirement, labels) for requirement in selector
    )


def _usable(
    tree: QueueTree, labels: Mapping[str, str], *, defaults_only: bool = False
) -> tuple[str, ...]:
    """The queues that gangs of such a namespace may name, or of which it is the default."""
    return tuple(
        sorted(
            queue.name
            for queue in tree.queues.values()
            if queue.name != ROOT
            and tree.is_leaf(queue.name)
            and selects(queue.namespaces, labels)
            and (not defaults_only or selects(queue.default_for, labels))
        )
    )
