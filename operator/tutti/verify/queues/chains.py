"""The queue of each gang and the queues above it, by code that imports nothing of the planner.

If a queue is its own ancestor, or if its parent does not exist, its chain is the queue alone.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...filters.node_rules import label_holds
from ...model.cluster import Gang, Reservation, Snapshot
from ...model.decisions import Placement
from ...model.keys import POD
from ...model.queues import ROOT, Queue, QueueRecord, Selector, Stop

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QueueChains:
    """The Queues by name, the names of queues with children, and the labels of namespaces."""

    queues: Mapping[str, Queue]
    parents: Collection[str]
    labels: Mapping[str, Labels]
    misplaced: Collection[str]  # the queues without a parent that exists, and their own ancestors
    chains: dict[str, Sequence[Queue]] = field(default_factory=dict)  # filled by ``chain``

    @classmethod
    def of(cls, snapshot: Snapshot) -> "QueueChains":
        """Index the Queues of a Snapshot; a Queue with the name of the root does not count."""
        queues = {queue.name: queue for queue in snapshot.queues if queue.name != ROOT}
        labels = {namespace.name: dict(namespace.labels) for namespace in snapshot.namespaces}
        misplaced = _misplaced(queues)
        parents = {queue.parent for queue in queues.values() if queue.name not in misplaced}
        return cls(queues, parents, labels, misplaced)

    def of_gang(self, gang: Gang) -> str:
        """The queue in which the gang starts; empty if there is none, or more than one."""
        labels = self.labels.get(gang.key.namespace)
        if labels is None:
            return ""
        if gang.queue:
            queue = self.queues.get(gang.queue)
            is_usable = queue is not None and _selects(queue.namespaces, labels)
            return gang.queue if is_usable and gang.queue not in self.parents else ""
        defaults = self._defaults(labels)
        leaves = [queue.name for queue in defaults if queue.name not in self.parents]
        if len(leaves) == 1 or not defaults:
            return next(iter(leaves), ROOT)
        return ""

    def _defaults(self, labels: Labels) -> Sequence[Queue]:
        """The defaults of a namespace; defaults for all namespaces count only without others."""
        defaults = [
            queue
            for queue in self.queues.values()
            if _selects(queue.namespaces, labels) and _selects(queue.default_for, labels)
        ]
        return [
            queue for queue in defaults if (queue.namespaces, queue.default_for) != ((), ())
        ] or defaults

    def without_record(self, gang: Gang) -> str:
        """The queue that a gang without a record is charged to if it runs."""
        if name := self.of_gang(gang):
            return name
        labels = self.labels.get(gang.key.namespace)
        named = self.queues.get(gang.queue)
        if labels is None:
            return ROOT
        if named is not None and _selects(named.namespaces, labels):
            return named.name
        defaults = self._defaults(labels)
        leaves = [queue for queue in defaults if queue.name not in self.parents]
        ordered = sorted(leaves or defaults, key=lambda queue: (queue.created, queue.name))
        return next((queue.name for queue in ordered), ROOT)

    def charged(
        self, gang: Gang, reservation: Reservation | None, record: QueueRecord | None
    ) -> str:
        """The queue that the gang is charged to: the queue of its record while it holds room."""
        has_node = any(member.node is not None and not member.is_over for member in gang.members)
        has_room = reservation is not None and bool(reservation.entries or reservation.slots)
        if not (has_node or has_room):
            return self.of_gang(gang)
        if record is None or record.queue == "":
            return self.without_record(gang)
        queue = self.queues.get(record.queue)
        return queue.name if queue is not None and queue.uid == record.queue_uid else ROOT

    def chain(self, name: str) -> Sequence[Queue]:
        """The queue and the queues above it; empty for the root."""
        if name not in self.chains:
            self.chains[name] = tuple(self._chain(name))
        return self.chains[name]

    def _chain(self, name: str) -> Iterator[Queue]:
        while (queue := self.queues.get(name)) is not None:
            yield queue
            name = "" if queue.name in self.misplaced else queue.parent

    def is_stopped(self, queue: Queue, gang: Gang, placement: Placement) -> bool:
        """Whether the queue does not start this gang.

        It starts nothing, or it drains and the gang or a pod that starts is too new.
        """
        if queue.is_terminating or queue.stop is Stop.HOLD or queue.name in self.misplaced:
            return True
        if queue.stop is not Stop.DRAIN or queue.draining_since is None:
            return False
        uids = {assignment.uid for assignment in placement.assignments}
        pods = (member.created for member in gang.members if member.uid in uids)
        return max([gang.created, *pods]) >= queue.draining_since

    def is_stale(self, placement: Placement, name: str) -> bool:
        """Whether the record of a start is not that of the queue in which the gang starts now."""
        if placement.gang.kind == POD:
            return False
        record, queue = placement.record, self.queues.get(name)
        uid = "" if queue is None else queue.uid
        return record is not None and (record.queue, record.queue_uid) != (name, uid)


def _misplaced(queues: Mapping[str, Queue]) -> Collection[str]:
    """The queues whose parent does not exist, and the queues that are their own ancestors.

    The latter are those that remain once queues without children are removed again and again.
    """
    children = Counter(queue.parent for queue in queues.values())
    childless = [name for name in queues if not children[name]]
    for name in childless:
        parent = queues[name].parent
        children[parent] -= 1
        if parent in queues and not children[parent]:
            childless.append(parent)
    known = {"", ROOT, *queues}
    lost = {q.name for q in queues.values() if q.parent not in known}
    return (queues.keys() - childless) | lost


def _selects(selector: Selector | None, labels: Labels) -> bool:
    return selector is not None and all(
        label_holds(requirement, labels) for requirement in selector
    )
