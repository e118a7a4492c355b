"""What a plan starts, checked against the Queues by code that shares nothing with the planner.

Each queue with limits is one cap over the gangs that have the queue in their chain of parents. If a
queue is its own ancestor, or if its parent does not exist, its chain is the queue alone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil

from ..filters.node_rules import label_holds
from ..model.cluster import Gang, Member, Phase, Reservation, Role, Snapshot
from ..model.decisions import GangCap, Placement
from ..model.keys import POD, GangKey, Uid
from ..model.queues import ROOT, Queue, QueueMode, QueueRecord, Selector, Stop
from . import cap_checks, lookup

Labels = Mapping[str, str]


def caps(snapshot: Snapshot) -> Sequence[GangCap]:
    """One cap for each queue with limits that count."""
    if not snapshot.queues:
        return ()
    tree, records = QueueChains.of(snapshot), snapshot.records
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    gangs = defaultdict[str, set[GangKey]](set)
    for gang in snapshot.gangs:
        for queue in tree.chain(
            tree.charged(gang, reservations.get(gang.uid), records.get(gang.uid))
        ):
            gangs[queue.name].add(gang.key)
    return [
        GangCap(f"queue {queue.name}", frozenset(gangs[queue.name]), dict(queue.limits))
        for queue in snapshot.queues
        if queue.limits and queue.mode is QueueMode.ACTIVE and queue.name in gangs
    ]


def faults(snapshot: Snapshot, placements: Sequence[Placement]) -> Mapping[GangKey, str]:
    """A sentence for each gang that starts in a queue where it may not start.

    The Snapshot comes from ``with_charged_pods``.
    """
    if not snapshot.queues:
        return {}
    tree, records, sentences = QueueChains.of(snapshot), snapshot.records, dict[GangKey, str]()
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    starts = {placement.gang: placement for placement in placements}
    for gang in snapshot.gangs:
        placement = starts.get(gang.key)
        if placement is None or any(map(_runs, gang.members)):
            continue
        if not tree.of_gang(gang):
            sentences[gang.key] = f"gang {gang.key}: it belongs to no queue"
            continue
        name = tree.charged(gang, reservations.get(gang.uid), records.get(gang.uid))
        if name != tree.of_gang(gang):
            sentences[gang.key] = f"gang {gang.key}: its pods are charged to queue {name}"
        elif any(tree.is_stopped(queue, gang, placement) for queue in tree.chain(name)):
            sentences[gang.key] = f"gang {gang.key}: queue {name} does not start it"
        elif tree.is_stale(placement, name):
            sentences[gang.key] = f"gang {gang.key}: its record is not that of queue {name}"
    return sentences


def _runs(member: Member) -> bool:
    return member.counts_as_bound and not member.is_over


def with_charged_pods(snapshot: Snapshot) -> Snapshot:
    """The Snapshot in which each pod with room is a member of the gang that it is charged to.

    Pods that are in a gang only by a record are members as if they terminated. A gang whose
    PodGroup is gone gets the data of its record. A pod that is charged by itself is a gang of its
    own.
    """
    if not snapshot.queues:
        return snapshot
    charged_to = _ChargedTo.of(snapshot)
    own, moved = list[Gang](), defaultdict[GangKey, list[Member]](list)
    for gang in snapshot.gangs:
        keys = [charged_to.key(pod, gang.key) for pod in gang.members]
        if all(key == gang.key for key in keys):
            own.append(gang)
            continue
        by_key = list(zip(keys, gang.members, strict=True))
        own.append(replace(gang, members=tuple(pod for key, pod in by_key if key == gang.key)))
        for key, pod in by_key:
            if key != gang.key:
                moved[key].append(pod)
    for pod in snapshot.strays:
        if charged_to.has_room(pod) or pod.is_over:
            moved[charged_to.key(pod, pod.gang)].append(pod)
    gangs = [_with_leaving(gang, moved.pop(gang.key, ())) for gang in own]
    starts = {reservation.gang: reservation for reservation in _by_start(snapshot)}
    for key, pods in moved.items():
        if key.kind != POD and (start := starts.get(key)) is not None:
            gangs.append(_gone_gang(start, pods))
        else:
            gangs += (_alone(pod) for pod in pods if not pod.is_over)
    records = snapshot.records
    return replace(snapshot, gangs=tuple(_as_started(g, records.get(g.uid)) for g in gangs))


@dataclass(frozen=True, slots=True)
class _ChargedTo:
    """The data that decides which gang a pod is charged to."""

    gangs: Mapping[Uid, GangKey]  # by pod, from records
    named: Collection[GangKey]  # gangs whose records name pods
    reserved: Collection[Uid]  # pods with room in a Reservation
    first_queue: float  # when plans began to have Queues

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_ChargedTo":
        gangs = {
            uid: reservation.gang for reservation in _by_start(snapshot) for uid in reservation.pods
        }
        return cls(
            gangs,
            frozenset(gangs.values()),
            {entry.uid for reservation in snapshot.reservations for entry in reservation.entries},
            min(
                (since for q in snapshot.queues if (since := q.queues_since) is not None),
                default=min(queue.created for queue in snapshot.queues),
            ),
        )

    def has_room(self, pod: Member) -> bool:
        return not pod.is_over and (pod.node is not None or pod.uid in self.reserved)

    def key(self, pod: Member, label: GangKey) -> GangKey:
        """The gang whose record names the pod, or else the gang of its label, or the pod itself."""
        if (pod.node is None and pod.uid not in self.reserved) or pod.is_over:
            return label
        if pod.uid in self.gangs or pod.node is None:
            return self.gangs.get(pod.uid, label)
        is_old = pod.bound_at is None or pod.bound_at <= self.first_queue
        is_own = is_old and label not in self.named
        return label if is_own else GangKey(pod.key.namespace, pod.key.name, POD)


def _by_start(snapshot: Snapshot) -> Sequence[Reservation]:
    """The Reservations with a record, the latest start last."""
    starts = (
        (record.started, reservation.uid, reservation) for reservation, record in snapshot.recorded
    )
    return [reservation for _, _, reservation in sorted(starts, key=lambda start: start[:2])]


def _gone_gang(reservation: Reservation, pods: Sequence[Member]) -> Gang:
    minimum = () if reservation.record is None else reservation.record.minimum
    named = frozenset(reservation.pods)
    own = [pod for pod in pods if pod.uid in named or not named]
    gang = Gang(
        reservation.gang,
        reservation.uid,
        sum(start.members for start in minimum),
        roles=tuple(Role(start.role, start.members) for start in minimum if start.role),
        members=tuple(own),
    )
    return _with_leaving(gang, [pod for pod in pods if pod not in own])


def _alone(pod: Member) -> Gang:
    key = GangKey(pod.key.namespace, pod.key.name, POD)
    return Gang(key, pod.uid, 1, members=(pod,), created=pod.created)


def _as_started(gang: Gang, record: QueueRecord | None) -> Gang:
    """The gang, with a minimum no larger than the one that it started with."""
    if record is None:
        return gang
    started = Counter({start.role: start.members for start in record.minimum})
    roles = (replace(r, min_member=min(r.min_member, started[r.name])) for r in gang.roles)
    return replace(gang, min_member=min(gang.min_member, started.total()), roles=tuple(roles))


def _with_leaving(gang: Gang, pods: Sequence[Member]) -> Gang:
    leaving = [replace(pod, terminating=True) for pod in pods if not pod.is_over]
    return replace(gang, members=(*gang.members, *leaving)) if leaving else gang


def charging(snapshot: Snapshot) -> cap_checks.UseOf:
    """The charges of gangs in this Snapshot, in the form that ``cap_checks`` needs."""
    return partial(charge_of, snapshot.records)


def charge_of(
    records: Mapping[Uid, QueueRecord],
    gang: Gang,
    seen: lookup.SnapshotLookup,
    reservation: Reservation | None,
    new: Placement | None,
) -> Counter[str]:
    """The charge of a gang: what it uses, and what its lost members requested at the start.

    A record counts only if some member held room before the placement.
    """
    record = records.get(gang.uid)
    if record is None:
        return cap_checks.use(gang, seen, reservation, new)
    if not (
        cap_checks.holders(gang, seen, reservation, None)
        or cap_checks.slots_by_role(reservation, None)
    ):
        return cap_checks.use(gang, seen, reservation, new)
    members = cap_checks.holders(gang, seen, reservation, new)
    slots = cap_checks.slots_by_role(reservation, new)
    done = done_by_role(gang)
    extras = extras_of(gang, members, slots + done)
    basis, beyond = Counter[str](), Counter[str]()
    for member in members:
        (beyond if member.uid in extras else basis).update(lookup.needs(member.shape))
    for role, count in slots.items():
        for name, n in lookup.needs_of_slot(gang, role).items():
            basis[name] += n * count
    return (basis | _at_start(record, gang, done)) + beyond


def done_by_role(gang: Gang) -> Counter[str]:
    """The number of members of each role that have succeeded in this run."""
    done = Counter(member.role for member in gang.members if member.phase is Phase.SUCCEEDED)
    done.update(gang.finished)
    return done


def extras_of(gang: Gang, members: Sequence[Member], there: Counter[str]) -> Collection[Uid]:
    """The members that stay and that the gang does not need.

    ``there`` has the number of slots and succeeded members of each role, which count as needed.
    """
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
    """What the gang started with, without the part of members that are done."""
    amounts = Counter[str]()
    for start in record.minimum:
        ended = done[start.role] if gang.roles else done.total()
        left = Fraction(max(start.members - ended, 0), start.members)
        amounts.update({name: ceil(n * left) for name, n in start.requests.amounts})
    return amounts


@dataclass(frozen=True, slots=True)
class QueueChains:
    """The Queues by name, the names of queues with children, and the labels of namespaces."""

    queues: Mapping[str, Queue]
    parents: Collection[str]
    labels: Mapping[str, Labels]
    chains: dict[str, Sequence[Queue]] = field(default_factory=dict)  # filled by ``chain``

    @classmethod
    def of(cls, snapshot: Snapshot) -> "QueueChains":
        """Index the Queues of a Snapshot; a Queue with the name of the root does not count."""
        queues = {queue.name: queue for queue in snapshot.queues if queue.name != ROOT}
        labels = {namespace.name: dict(namespace.labels) for namespace in snapshot.namespaces}
        tree = cls(queues, (), labels)
        parents = {queue.parent for queue in queues.values() if not tree.is_astray(queue)}
        return cls(queues, parents, labels)

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
        if record is None:
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
            name = "" if self.is_astray(queue) else queue.parent

    def is_astray(self, queue: Queue) -> bool:
        """Whether the parent of the queue does not exist, or the queue is its own ancestor."""
        if queue.parent not in ("", ROOT) and queue.parent not in self.queues:
            return True
        met, name = set[str](), queue.parent
        while name in self.queues and name not in met:
            met.add(name)
            name = self.queues[name].parent
        return queue.name in met

    def is_stopped(self, queue: Queue, gang: Gang, placement: Placement) -> bool:
        """Whether the queue does not start this gang.

        It starts nothing, or it drains and the gang or a pod that starts is too new.
        """
        if queue.is_terminating or queue.stop is Stop.HOLD or self.is_astray(queue):
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


def _selects(selector: Selector | None, labels: Labels) -> bool:
    return selector is not None and all(label_holds(one, labels) for one in selector)
