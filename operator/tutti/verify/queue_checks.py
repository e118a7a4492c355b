"""What a plan starts, held against the Queues with code of its own: it shares none with the plan.

Each queue with limits is one cap over the gangs whose chain of parents meets it. The chain of a
queue that is its own ancestor, or whose parent does not exist, is that queue alone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil

from ..filters.node_rules import label_holds
from ..model.cluster import Gang, Member, Phase, Reservation, Role, Snapshot
from ..model.decisions import GangCap, Placement
from ..model.keys import GangKey, Uid
from ..model.queues import ROOT, Queue, QueueMode, QueueRecord, Selector, Stop
from . import cap_checks, lookup

Labels = Mapping[str, str]


def caps(snapshot: Snapshot) -> Sequence[GangCap]:
    """One cap for each queue with limits that count."""
    if not snapshot.queues:
        return ()
    tree, records = QueueChains.of(snapshot), snapshot.records
    held = {reservation.uid: reservation for reservation in snapshot.reservations}
    gangs = defaultdict[str, set[GangKey]](set)
    for gang in snapshot.gangs:
        for queue in tree.chain(tree.charged(gang, held.get(gang.uid), records.get(gang.uid))):
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
    tree, records, sentences = QueueChains.of(snapshot), snapshot.records, dict[GangKey, str]()
    held = {reservation.uid: reservation for reservation in snapshot.reservations}
    starting = {placement.gang for placement in placements}
    for gang in with_charged_pods(snapshot).gangs:
        if gang.key not in starting or any(member.counts_as_bound for member in gang.members):
            continue
        if not tree.of_gang(gang):
            sentences[gang.key] = f"gang {gang.key}: it belongs to no queue"
            continue
        name = tree.charged(gang, held.get(gang.uid), records.get(gang.uid))
        if name != tree.of_gang(gang):
            sentences[gang.key] = f"gang {gang.key}: its pods are charged to queue {name}"
        elif any(tree.is_stopped(queue, gang) for queue in tree.chain(name)):
            sentences[gang.key] = f"gang {gang.key}: queue {name} does not start it"
    return sentences


def with_charged_pods(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with a gang for each record whose PodGroup is gone, and that has pods left.

    The pods that older runs of a gang have left are among its members, as if they terminated.
    """
    if not snapshot.strays:
        return snapshot
    known = {gang.key for gang in snapshot.gangs}
    members = defaultdict[GangKey, list[Member]](list)
    for pod in snapshot.strays:
        members[pod.gang].append(pod)
    gone = [
        Gang(
            held.gang,
            held.uid,
            sum(start.members for start in held.record.minimum),
            roles=tuple(
                Role(start.role, start.members) for start in held.record.minimum if start.role
            ),
            members=tuple(members[held.gang]),
        )
        for held in (*snapshot.reservations, *snapshot.start_records)
        if held.record is not None and held.gang not in known and held.gang in members
    ]
    gangs = [_with_older(gang, members[gang.key]) for gang in snapshot.gangs]
    return replace(snapshot, gangs=(*gangs, *gone))


def _with_older(gang: Gang, pods: Sequence[Member]) -> Gang:
    leaving = [replace(pod, terminating=True) for pod in pods if pod.node is not None]
    return replace(gang, members=(*gang.members, *leaving)) if leaving else gang


def charging(snapshot: Snapshot) -> cap_checks.UseOf:
    """What gangs are charged in this Snapshot, as ``cap_checks`` asks for it."""
    return partial(charge_of, snapshot.records)


def charge_of(
    records: Mapping[Uid, QueueRecord],
    gang: Gang,
    seen: lookup.SnapshotLookup,
    held: Reservation | None,
    new: Placement | None,
) -> Counter[str]:
    """What a gang is charged: what it uses, and what its lost members requested at the start.

    A record counts for nothing if nobody holds room before the placement.
    """
    record = records.get(gang.uid)
    has_room = cap_checks.holders(gang, seen, held, None) or cap_checks.slots_by_role(held, None)
    if record is None or not has_room:
        return cap_checks.use(gang, seen, held, new)
    members = cap_checks.holders(gang, seen, held, new)
    slots = cap_checks.slots_by_role(held, new)
    done = Counter(member.role for member in gang.members if member.phase is Phase.SUCCEEDED)
    done.update(gang.finished)
    extras = _extras(gang, members, slots + done)
    basis, beyond = Counter[str](), Counter[str]()
    for member in members:
        (beyond if member.uid in extras else basis).update(lookup.needs(member.shape))
    for role, count in slots.items():
        for name, n in lookup.needs_of_slot(gang, role).items():
            basis[name] += n * count
    return (basis | _at_start(record, gang, done)) + beyond


def _extras(gang: Gang, members: Sequence[Member], there: Counter[str]) -> Collection[Uid]:
    """The members that stay and that the gang does not need, beside those that are there."""
    staying = sorted(
        (member for member in members if not member.terminating),
        key=lambda member: (member.created, member.key),
    )
    by_role = defaultdict[str, list[Uid]](list)
    for member in staying:
        by_role[member.role].append(member.uid)
    needed = {
        uid
        for role in gang.roles
        for uid in by_role[role.name][: max(role.min_member - there[role.name], 0)]
    }
    others = [member.uid for member in staying if member.uid not in needed]
    least = max(gang.min_member, sum(role.min_member for role in gang.roles), 1)
    return others[max(least - there.total() - len(needed), 0) :]


def _at_start(record: QueueRecord, gang: Gang, done: Counter[str]) -> Counter[str]:
    """What the gang started with, without the part of those who are done."""
    amounts = Counter[str]()
    for start in record.minimum:
        ended = done[start.role] if gang.roles else done.total()
        left = Fraction(max(start.members - ended, 0), start.members)
        amounts.update({name: ceil(n * left) for name, n in start.requests.amounts})
    return amounts


@dataclass(frozen=True, slots=True)
class QueueChains:
    """The Queues by name, the names of those with children, and the labels of namespaces."""

    queues: Mapping[str, Queue]
    parents: Collection[str]
    labels: Mapping[str, Labels]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "QueueChains":
        """Sort the Queues of a Snapshot; none is named as the root."""
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

    def charged(self, gang: Gang, held: Reservation | None, record: QueueRecord | None) -> str:
        """The queue that the gang is charged to: that of its record while it holds room."""
        has_node = any(member.node is not None and not member.is_over for member in gang.members)
        has_room = held is not None and bool(held.entries or held.slots)
        if record is None or not (has_node or has_room):
            return self.of_gang(gang)
        queue = self.queues.get(record.queue)
        return queue.name if queue is not None and queue.uid == record.queue_uid else ROOT

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
