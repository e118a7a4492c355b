"""What a plan starts, held against the Queues with code of its own: it shares none with the plan.

Each queue with limits is one cap over the gangs whose chain of parents meets it. The chain of a
queue that is its own ancestor, or whose parent does not exist, is that queue alone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..filters.node_rules import label_holds
from ..model.cluster import Gang, Snapshot
from ..model.decisions import GangCap, Placement
from ..model.keys import GangKey
from ..model.queues import ROOT, Queue, QueueMode, Selector, Stop

Labels = Mapping[str, str]


def caps(snapshot: Snapshot) -> Sequence[GangCap]:
    """One cap for each queue with limits that count."""
    if not snapshot.queues:
        return ()
    tree = _Queues.of(snapshot)
    gangs = defaultdict[str, set[GangKey]](set)
    for gang in snapshot.gangs:
        for queue in tree.chain(tree.of_gang(gang)):
            gangs[queue.name].add(gang.key)
    return [
        GangCap(f"queue {queue.name}", frozenset(gangs[queue.name]), dict(queue.limits))
        for queue in snapshot.queues
        if queue.limits and queue.mode is QueueMode.ACTIVE and queue.name in gangs
    ]


def faults(snapshot: Snapshot, placements: Sequence[Placement]) -> Mapping[GangKey, str]:
    """A sentence for each gang that starts in a queue where it may not start."""
    if not snapshot.queues:
        return {}
    tree, sentences = _Queues.of(snapshot), dict[GangKey, str]()
    starting = {placement.gang for placement in placements}
    for gang in snapshot.gangs:
        if gang.key not in starting or any(member.counts_as_bound for member in gang.members):
            continue
        name = tree.of_gang(gang)
        if not name:
            sentences[gang.key] = f"gang {gang.key}: it belongs to no queue"
        elif any(tree.is_stopped(queue, gang) for queue in tree.chain(name)):
            sentences[gang.key] = f"gang {gang.key}: queue {name} does not start it"
    return sentences


@dataclass(frozen=True, slots=True)
class _Queues:
    """The Queues by name, the names of those with children, and the labels of namespaces."""

    queues: Mapping[str, Queue]
    parents: Collection[str]
    labels: Mapping[str, Labels]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Queues":
        queues = {queue.name: queue for queue in snapshot.queues if queue.name != ROOT}
        labels = {namespace.name: dict(namespace.labels) for namespace in snapshot.namespaces}
        tree = cls(queues, (), labels)
        parents = {queue.parent for queue in queues.values() if not tree.is_astray(queue)}
        return cls(queues, parents, labels)

    def of_gang(self, gang: Gang) -> str:
        """The queue in which the gang starts; empty if there is none, or no single one."""
        labels = self.labels.get(gang.key.namespace, {})
        usable = [
            queue
            for queue in self.queues.values()
            if queue.name not in self.parents and _selects(queue.namespaces, labels)
        ]
        if gang.queue:
            return next((queue.name for queue in usable if queue.name == gang.queue), "")
        defaults = [queue.name for queue in usable if _selects(queue.default_for, labels)]
        return "" if len(defaults) > 1 else next(iter(defaults), ROOT)

    def chain(self, name: str) -> Iterator[Queue]:
        """The queue and the queues above it; none for the root."""
        while (queue := self.queues.get(name)) is not None:
            yield queue
            name = "" if self.is_astray(queue) else queue.parent

    def is_astray(self, queue: Queue) -> bool:
        """Whether its parent does not exist, or it is its own ancestor."""
        if queue.parent not in ("", ROOT) and queue.parent not in self.queues:
            return True
        met, name = set[str](), queue.parent
        while name in self.queues and name not in met:
            met.add(name)
            name = self.queues[name].parent
        return queue.name in met

    def is_stopped(self, queue: Queue, gang: Gang) -> bool:
        """Whether the queue starts nothing, or nothing as new as the gang."""
        if queue.is_terminating or queue.stop is Stop.HOLD or self.is_astray(queue):
            return True
        since = queue.draining_since
        return queue.stop is Stop.DRAIN and since is not None and since <= gang.created


def _selects(selector: Selector | None, labels: Labels) -> bool:
    return selector is not None and all(label_holds(one, labels) for one in selector)
