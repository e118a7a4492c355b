"""What each gang is charged: its members with room, and its lost members, as its start recorded."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, inf

from ...model.cluster import Gang, Member, Phase, Reservation, Role, Snapshot
from ...model.decisions import Placement
from ...model.keys import POD, GangKey, Uid
from ...model.queues import QueueRecord
from .. import cap_checks, lookup
from ..cap_checks import Usage, UseOf
from .chains import QueueChains


@dataclass(frozen=True, slots=True)
class Starts:
    """What Reservations say about starts: the records, and the order in which pods joined."""

    # Of the PodGroups that exist, without earlier ones, while a pod that they name holds room.
    records: Mapping[Uid, QueueRecord]
    places: Mapping[Uid, tuple[float, float]]  # by pod; the pods that joined first have the lowest

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Starts":
        """Collect what all Reservations of a Snapshot say; the first that names a pod counts."""
        current = {gang.uid for gang in snapshot.gangs}
        pods = (*snapshot.strays, *(pod for gang in snapshot.gangs for pod in gang.members))
        held = {pod.uid for pod in pods if pod.node is not None and not pod.is_over}
        own = {
            start.uid: record
            for start, record in snapshot.recorded
            if start.uid in current
            and not (start.is_spent and start.charged and held.isdisjoint(start.charged))
        }
        starts = sorted(
            snapshot.recorded,
            key=lambda start: (start[1].started, start[0].uid in current, _by_room(start[0])),
        )
        places: dict[Uid, tuple[float, float]] = {}
        for number, (reservation, _) in reversed([*enumerate(starts)]):
            places |= {entry.uid: (number, inf) for entry in reservation.entries}
            places |= {uid: (number, n) for n, uid in enumerate(reservation.charged)}
        return cls(own, places)

    def ordered(
        self, members: Iterable[Member], arrivals: Collection[Uid] = ()
    ) -> Sequence[Member]:
        """Members in the order in which they joined; those that join now come last.

        Slots come before all members, and so do ``arrivals``, which take the places of slots.
        """
        places = (
            {**self.places, **dict.fromkeys(arrivals, (-1.0, 0.0))} if arrivals else self.places
        )
        last = (inf, inf)
        return sorted(members, key=lambda m: (places.get(m.uid, last), m.created, m.key))


@dataclass(frozen=True, slots=True, eq=False)
class QueueCharges:
    """The queue of each gang, and what it is charged there, before a plan and after it."""

    snapshot: Snapshot  # each pod is a member of the gang that it is charged to
    index: lookup.SnapshotLookup
    tree: QueueChains
    queues: Mapping[GangKey, str]  # before the plan; empty if the gang belongs to none
    charge_of: UseOf
    usage: Usage

    @classmethod
    def of(cls, snapshot: Snapshot, placements: Sequence[Placement]) -> "QueueCharges":
        """Charge all gangs of a Snapshot with Queues."""
        charged = with_charged_pods(snapshot)
        index, tree = lookup.SnapshotLookup(charged), QueueChains.of(charged)
        records = charged.records
        reservations = {reservation.uid: reservation for reservation in charged.reservations}
        queues = {
            gang.key: tree.charged(gang, reservations.get(gang.uid), records.get(gang.uid))
            for gang in charged.gangs
        }
        use_of = partial(charge_of, Starts.of(snapshot))
        usage = cap_checks.usage(charged, index, placements, use_of)
        return cls(charged, index, tree, queues, use_of, usage)


def with_charged_pods(snapshot: Snapshot) -> Snapshot:
    """The Snapshot in which each pod with room is a member of the gang that it is charged to.

    Pods that are in a gang only by a record are members as if they terminated. A gang whose
    PodGroup is gone gets the data of its record. A pod that is charged by itself is a gang of its
    own.
    """
    charged_to = _ChargedTo.of(snapshot)
    own, moved = list[Gang](), defaultdict[GangKey, list[Member]](list)
    for gang in snapshot.gangs:
        elsewhere = {
            pod.uid: key
            for pod in gang.members
            if (key := charged_to.key(pod, gang.key)) != gang.key
        }
        if not elsewhere:
            own.append(gang)
            continue
        own.append(
            replace(gang, members=tuple(pod for pod in gang.members if pod.uid not in elsewhere))
        )
        for pod in gang.members:
            if pod.uid in elsewhere:
                moved[elsewhere[pod.uid]].append(pod)
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
        since = pod.created if pod.bound_at is None else pod.bound_at
        is_old = since <= self.first_queue
        is_own = is_old and label not in self.named
        return label if is_own else GangKey(pod.key.namespace, pod.key.name, POD)


def _by_start(snapshot: Snapshot) -> Sequence[Reservation]:
    """The Reservations with a record, the latest start last."""
    starts = sorted(snapshot.recorded, key=lambda start: (start[1].started, _by_room(start[0])))
    return [reservation for reservation, _ in starts]


def _by_room(reservation: Reservation) -> tuple[bool, Uid]:
    """Of the same start, Reservations that hold room come last."""
    return not reservation.is_spent, reservation.uid


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


def charge_of(
    starts: Starts,
    gang: Gang,
    seen: lookup.SnapshotLookup,
    reservation: Reservation | None,
    new: Placement | None,
) -> Counter[str]:
    """The charge of a gang: what it uses, and what its lost members requested at the start.

    A record counts only if some member held room before the placement. Until a placement is written
    down, the gang is charged what it was before.
    """
    record = starts.records.get(gang.uid)
    if record is None:
        return cap_checks.use(gang, seen, reservation, new)
    if not (
        cap_checks.holders(gang, seen, reservation, None)
        or cap_checks.slots_by_role(reservation, None)
    ):
        return cap_checks.use(gang, seen, reservation, new)
    before = Counter[str]() if new is None else charge_of(starts, gang, seen, reservation, None)
    members = cap_checks.holders(gang, seen, reservation, new)
    arrivals = _arrivals(reservation, new)
    slots = cap_checks.slots_by_role(reservation, new)
    ordered = starts.ordered(members, arrivals)
    extras = extras_of(gang, record, ordered, slots)
    basis, beyond = Counter[str](), Counter[str]()
    for member in members:
        (beyond if member.uid in extras else basis).update(lookup.needs(member.shape))
    places = _places(record)
    for role, count in sorted(slots.items()):
        place = role if _has_roles(record) else ""
        with_place = min(count, max(places[place], 0))
        places[place] -= with_place
        for name, n in (lookup.needs_of_slot(gang, role) or {"pods": 1}).items():
            basis[name] += n * with_place
            beyond[name] += n * (count - with_place)
    return ((basis | _at_start(record)) + beyond) | before


def _arrivals(reservation: Reservation | None, new: Placement | None) -> Collection[Uid]:
    """The pods that take places of slots by a placement.

    There is at most one for each slot that goes.
    """
    if reservation is None or new is None:
        return ()
    left = cap_checks.slots_by_role(reservation, None) - cap_checks.slots_by_role(None, new)
    arrivals = set[Uid]()
    for assignment in new.assignments:
        if assignment.fills_slot and left[assignment.role] > 0:
            left[assignment.role] -= 1
            arrivals.add(assignment.uid)
    return arrivals


def done_by_role(gang: Gang) -> Counter[str]:
    """The number of members of each role that have succeeded in this run."""
    done = Counter(member.role for member in gang.members if member.phase is Phase.SUCCEEDED)
    done.update(gang.finished)
    return done


def extras_of(
    gang: Gang, record: QueueRecord | None, members: Iterable[Member], slots: Counter[str]
) -> Collection[Uid]:
    """The members that stay and that the gang does not need.

    ``members`` are in the order in which they joined. ``slots`` are counted by role. The gang needs
    what it started with, but for members that succeeded since; if no record says that, what its
    PodGroup says.
    """
    if record is not None and record.minimum:
        has_roles, free, there, places = _has_roles(record), 0, slots, _places(record)
    else:
        places = Counter({role.name: role.min_member for role in gang.roles})
        has_roles, free = bool(gang.roles), max(max(gang.min_member, 1) - places.total(), 0)
        there = slots + done_by_role(gang)
    without_place: list[Member | None] = []
    for role, member in (
        *((role, None) for role in there.elements()),
        *((member.role, member) for member in members if not member.terminating),
    ):
        key = role if has_roles else ""
        if places[key] > 0:
            places[key] -= 1
        else:
            without_place.append(member)
    return [member.uid for member in without_place[free:] if member is not None]


def _places(record: QueueRecord) -> Counter[str]:
    """The places of each role that the gang started with, without those of members that ended."""
    places = Counter({start.role: start.members for start in record.minimum})
    places.subtract(dict(record.succeeded))
    return places


def _has_roles(record: QueueRecord) -> bool:
    return any(start.role for start in record.minimum)


def _at_start(record: QueueRecord) -> Counter[str]:
    """What the gang started with, without the part of members that succeeded since."""
    amounts = Counter[str]()
    for start in record.minimum:
        ended = dict(record.succeeded).get(start.role, 0)
        left = Fraction(max(start.members - ended, 0), start.members)
        amounts.update({name: ceil(n * left) for name, n in start.requests.amounts})
    return amounts
