"""Which queue a gang belongs to, and which queue a gang that runs is charged to.

A gang that waits belongs to the queue that it names, or else to its namespace's default. A gang
that runs is charged to the queue that was written down when it started.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..filters.node_rules import label_holds
from ..model.cluster import Gang, Namespace
from ..model.keys import GangKey
from ..model.queues import ROOT, QueueRecord, Selector
from .tree import QueueTree


class Refusal(StrEnum):
    """Why a gang belongs to no queue, as its condition names it."""

    UNKNOWN = "UnknownQueue"  # no Queue has the name
    FORBIDDEN = "ForbiddenQueue"  # the queue does not admit the namespace
    NOT_A_LEAF = "QueueHasChildren"
    AMBIGUOUS = "AmbiguousDefault"  # several queues are the namespace's default
    UNKNOWN_NAMESPACE = "UnknownNamespace"  # no watch has shown the namespace yet


@dataclass(frozen=True, slots=True)
class Membership:
    """The queue of a gang; empty if the gang is refused.

    ``candidates`` are the queues that a refused gang may name instead. ``refused`` is the queue
    that the refusal is about, if there is one. ``fallback`` is charged if a refused gang runs and
    has no record of its start, so that a refusal lifts no limit.
    """

    queue: str
    refusal: Refusal | None = None
    candidates: tuple[str, ...] = ()  # sorted
    refused: str = ""
    fallback: str = ROOT

    @property
    def charged(self) -> str:
        """The queue that is charged if the gang runs and has no record of its start."""
        return self.queue or self.fallback


def membership(tree: QueueTree, named: str, labels: Mapping[str, str] | None) -> Membership:
    """The queue of a gang; ``named`` is the queue that the gang names, empty if it names none.

    ``labels`` are those of its namespace; None if the namespace is not known. Gangs that name no
    queue belong to the root if their namespace has no default queue.
    """
    if labels is None:
        return Membership("", Refusal.UNKNOWN_NAMESPACE)
    if not named:
        return _default(tree, labels)
    queue = tree.queues.get(named)
    if queue is None or named == ROOT:
        refusal = Refusal.UNKNOWN
    elif not selects(queue.namespaces, labels):
        refusal = Refusal.FORBIDDEN
    elif not tree.is_leaf(named):
        return _not_a_leaf(tree, named, labels)
    else:
        return Membership(named)
    fallback = _default(tree, labels).charged
    return Membership("", refusal, _usable(tree, labels), named, fallback)


def _default(tree: QueueTree, labels: Mapping[str, str]) -> Membership:
    """The default queue of a namespace with these labels.

    A queue that is the default of all namespaces counts only if the namespace has no other default.
    Defaults with children count only if all have children. Gangs do not start if all defaults have
    children, or if several have none.
    """
    queues = [
        queue
        for queue in tree.queues.values()
        if queue.name != ROOT
        and selects(queue.default_for, labels)
        and selects(queue.namespaces, labels)
    ]
    chosen = [queue for queue in queues if queue.default_for or queue.namespaces] or queues
    defaults = [queue for queue in chosen if tree.is_leaf(queue.name)]
    if len(defaults) == 1:
        return Membership(defaults[0].name)
    if not chosen:
        return Membership(ROOT)
    oldest = min(defaults or chosen, key=lambda queue: (queue.created, queue.name)).name
    if not defaults:
        return _not_a_leaf(tree, oldest, labels)
    names = tuple(sorted(queue.name for queue in defaults))
    return Membership("", Refusal.AMBIGUOUS, names, fallback=oldest)


def _not_a_leaf(tree: QueueTree, name: str, labels: Mapping[str, str]) -> Membership:
    below = tuple(leaf for leaf in _usable(tree, labels) if name in tree.paths[leaf])
    return Membership("", Refusal.NOT_A_LEAF, below, name, name)


def memberships(
    tree: QueueTree, namespaces: Iterable[Namespace], gangs: Iterable[Gang]
) -> Mapping[GangKey, Membership]:
    """The queue of each gang if it started now."""
    labels = {namespace.name: dict(namespace.labels) for namespace in namespaces}
    known: dict[tuple[str, str], Membership] = {}
    by_gang = {}
    for gang in gangs:
        names = gang.key.namespace, gang.queue
        if names not in known:
            known[names] = membership(tree, gang.queue, labels.get(gang.key.namespace))
        by_gang[gang.key] = known[names]
    return by_gang


def charged_queue(tree: QueueTree, record: QueueRecord | None, now: Membership) -> str:
    """The queue to which a gang that runs is charged.

    Without a queue in its record, it is the queue to which the gang would belong now. If the queue
    of the record is gone, the root is charged.
    """
    if record is None or not record.queue:
        return now.charged
    queue = tree.queues.get(record.queue)
    return ROOT if queue is None or queue.uid != record.queue_uid else queue.name


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector holds for a namespace with these labels; None holds for no namespace."""
    return selector is not None and all(
        label_holds(requirement, labels) for requirement in selector
    )


def _usable(tree: QueueTree, labels: Mapping[str, str]) -> tuple[str, ...]:
    """The queues that gangs of a namespace with these labels may name, sorted."""
    return tuple(
        sorted(
            queue.name
            for queue in tree.queues.values()
            if queue.name != ROOT and tree.is_leaf(queue.name) and selects(queue.namespaces, labels)
        )
    )
