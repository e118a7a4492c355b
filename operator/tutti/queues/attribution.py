"""To which gang each pod with room is charged, whatever the labels of the pod say now.

A Reservation with the record of a start names the pods that are charged to its gang. A pod that
no Reservation names is charged by itself if its gang has such a record, or if the pod got its node
after plans began to have Queues. Otherwise it is charged to the gang of its label.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..model.cluster import Gang, Member, Reservation, Role, Snapshot
from ..model.keys import POD, GangKey, Uid
from ..model.queues import Queue, QueueRecord


@dataclass(frozen=True, slots=True, eq=False)
class ChargedPods:
    """The gangs with the pods that are charged to them."""

    # The gangs of the Snapshot, gangs with a record whose PodGroup is gone, and single pods.
    gangs: Sequence[Gang]
    # By gang: pods that are charged to the gang but are not its members. They count as terminating.
    others: Mapping[GangKey, Sequence[Member]] = field(default_factory=dict)
    # Members that are charged to another gang than their own.
    charged_elsewhere: frozenset[Uid] = frozenset()
    # The pods that records name, numbered in the order in which they joined their gangs.
    joined: Mapping[Uid, int] = field(default_factory=dict)
    # By gang: the record of its own start, not that of an earlier PodGroup, while it counts. It
    # says what the gang is charged for lost members. Of an earlier PodGroup it is not known which
    # members were lost and which succeeded.
    own_records: Mapping[Uid, QueueRecord] = field(default_factory=dict)
    # The pods whose role a record says. Those of other pods may change with their labels.
    with_roles: frozenset[Uid] = frozenset()

    @classmethod
    def of(
        cls, snapshot: Snapshot, arrivals: Iterable[Uid] = (), with_slots: Collection[Uid] = ()
    ) -> "ChargedPods":
        """Attribute all pods of a Snapshot with Queues.

        ``arrivals`` take the places of slots now. A slot has its place before the members, so they
        come before those that joined earlier. Gangs ``with_slots`` hold room, though the Snapshot
        may say no more that they do.
        """
        recorded = _RecordedPods.of(snapshot)
        gangs: list[Gang] = []
        others: dict[GangKey, list[Member]] = defaultdict(list)
        charged_elsewhere: list[Member] = []
        for gang in snapshot.gangs:
            leaving = [
                pod
                for pod in gang.members
                if recorded.has_room(pod) and recorded.gang_of(pod, gang.key) != gang.key
            ]
            if leaving:
                gone_uids = {pod.uid for pod in leaving}
                own = tuple(pod for pod in gang.members if pod.uid not in gone_uids)
                gang = replace(gang, members=own)  # noqa: PLW2901
                charged_elsewhere += leaving
            gangs.append(gang)
        keys = {gang.key for gang in gangs}
        gone = recorded.latest(keys)
        for pod in (*charged_elsewhere, *filter(recorded.has_room, snapshot.strays)):
            key = recorded.gang_of(pod, pod.gang)
            if key.kind == POD or not (key in keys or key in gone):
                gangs.append(_alone(pod))
            else:
                others[key].append(pod)
        over = [pod for pod in snapshot.strays if pod.is_over]
        for key, (reservation, record) in gone.items():
            named_uids = frozenset(reservation.pods)
            pods = (*others.pop(key, ()), *(pod for pod in over if pod.gang == key))
            own = tuple(pod for pod in pods if pod.uid in named_uids or not named_uids)
            others[key] = [pod for pod in pods if not (pod.is_over or pod in own)]
            gangs.append(_recorded_gang(reservation, record, own))
        charged = {key: pods for key, pods in others.items() if pods}
        uids = frozenset(pod.uid for pod in charged_elsewhere)
        all_pods = (*snapshot.strays, *(pod for gang in snapshot.gangs for pod in gang.members))
        with_room = {pod.uid for pod in all_pods if recorded.has_room(pod)}
        records = recorded.counting(with_room, with_slots)
        own_records = {
            gang.uid: records[gang.uid] for gang in snapshot.gangs if gang.uid in records
        }
        joined = recorded.joined(snapshot.gangs) | dict.fromkeys(arrivals, -1)
        return cls(gangs, charged, uids, joined, own_records, recorded.with_roles())


@dataclass(frozen=True, slots=True, eq=False)
class _RecordedPods:
    """The pods that Reservations with a record of a start name."""

    starts: Sequence[tuple[Reservation, QueueRecord]]  # the latest start last
    gangs: Mapping[Uid, GangKey]  # by pod
    naming: Collection[GangKey]  # the gangs with a named pod
    promised: Collection[Uid]  # the pods that have room in a Reservation
    since: float  # when plans began to have Queues

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_RecordedPods":
        starts = tuple(sorted(snapshot.recorded, key=_by_start))
        gangs = {uid: reservation.gang for reservation, _ in starts for uid in reservation.pods}
        return cls(
            starts,
            gangs,
            frozenset(gangs.values()),
            frozenset(
                entry.uid for reservation in snapshot.reservations for entry in reservation.entries
            ),
            _since(snapshot.queues),
        )

    def has_room(self, pod: Member) -> bool:
        """Whether a pod has a node, or room in a Reservation."""
        return (pod.node is not None or pod.uid in self.promised) and not pod.is_over

    def gang_of(self, pod: Member, own: GangKey) -> GangKey:
        """The gang that a pod with room is charged to; ``own`` is the gang of its label.

        A pod that is created with a node has no time of its binding until a kubelet writes one.
        """
        if (key := self.gangs.get(pod.uid)) is not None:
            return key
        if pod.node is None:
            return own
        is_later = (pod.created if pod.bound_at is None else pod.bound_at) > self.since
        return _key_alone(pod) if is_later or own in self.naming else own

    def counting(
        self, uids: Collection[Uid], with_slots: Collection[Uid]
    ) -> Mapping[Uid, QueueRecord]:
        """The records that hold room or name a pod with room, by gang; ``uids`` have room.

        A record without any pod is one of an older version, and counts.
        """
        return {
            reservation.uid: record
            for reservation, record in self.starts
            if not reservation.is_spent
            or reservation.uid in with_slots
            or not reservation.charged
            or any(uid in uids for uid in reservation.charged)
        }

    def joined(self, gangs: Iterable[Gang]) -> dict[Uid, int]:
        """The named pods, numbered in the order in which they joined their gangs.

        Pods of one placement joined together. Pods of an earlier PodGroup of the same name joined
        before those of ``gangs``.
        """
        current, numbers = {gang.uid for gang in gangs}, dict[Uid, int]()
        ordered = sorted(self.starts, key=lambda start: (start[1].started, start[0].uid in current))
        for reservation, _ in ordered:
            for uid in reservation.charged:
                numbers.setdefault(uid, len(numbers))
            together = len(numbers)
            for entry in reservation.entries:
                numbers.setdefault(entry.uid, together)
        return numbers

    def with_roles(self) -> frozenset[Uid]:
        """The pods whose role a record says."""
        return frozenset(uid for reservation, _ in self.starts for uid, _ in reservation.roles)

    def latest(
        self, keys: Collection[GangKey]
    ) -> Mapping[GangKey, tuple[Reservation, QueueRecord]]:
        """The last recorded start of each gang, without the gangs in ``keys``."""
        return {start[0].gang: start for start in self.starts if start[0].gang not in keys}


def _by_start(start: tuple[Reservation, QueueRecord]) -> tuple[float, bool, Uid]:
    """The key that sorts starts by time; of the same time, Reservations that hold room come last.

    A PodGroup that is created again has the start of the earlier one.
    """
    reservation, record = start
    return record.started, not reservation.is_spent, reservation.uid


def _since(queues: Sequence[Queue]) -> float:
    """When plans began to have Queues, as recorded, or else when the first Queue was created."""
    recorded = [queue.queues_since for queue in queues if queue.queues_since is not None]
    return min(recorded or [queue.created for queue in queues], default=0.0)


def _key_alone(pod: Member) -> GangKey:
    return GangKey(pod.key.namespace, pod.key.name, POD)


def _alone(pod: Member) -> Gang:
    """The gang of a pod that is charged as a pod without a PodGroup."""
    return Gang(_key_alone(pod), pod.uid, 1, members=(pod,), created=pod.created)


def _recorded_gang(
    reservation: Reservation, record: QueueRecord, members: tuple[Member, ...]
) -> Gang:
    """A gang whose PodGroup is gone, with what the record of its start says about it."""
    return Gang(
        reservation.gang,
        reservation.uid,
        sum(start.members for start in record.minimum),
        roles=tuple(Role(start.role, start.members) for start in record.minimum if start.role),
        members=members,
    )
