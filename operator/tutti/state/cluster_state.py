"""The live state of the cluster: model values by uid, from watches and from our own writes.

``snapshot(now)`` freezes it. A binding is assumed from the moment it is sent until the watch shows
it, so no cycle sees a state that is older than its own last write.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..kube import kinds
from ..kube.backoff import ApiBackoffs
from ..kube.codec.queues import QueueObject
from ..kube.gang_sources import GangObject
from ..kube.list_watch import Item
from ..model.cluster import (
    BoundBy,
    DisruptionBudget,
    ForeignPod,
    Gang,
    Member,
    Namespace,
    Node,
    PriorityClass,
    Reservation,
    Snapshot,
)
from ..model.devices.claims import DeviceClaim
from ..model.inter_pod import Topology
from ..model.keys import POD_GROUP, ApiKind, GangKey, NodeName, Uid
from ..model.resources import NOTHING, Resources
from .devices.index import DeviceIndex
from .gang_index import GangIndex
from .lost_members import LostMembers
from .lost_reservations import LostReservations
from .node_usage import NOTHING_ATTACHED, NodeUsage, VolumeUsage
from .placed_pods import PlacedPods
from .storage.claim_index import ClaimIndex
from .store import Store

if TYPE_CHECKING:
    from ..model.queues import Queue

MOST_LATE = 15.0  # seconds for which an unseen binding of ours counts as a late watch


def _ignore_lag(_confirmed: float | None) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Assumption:
    """A binding that we sent and that no watch has shown yet."""

    member: Member
    node: NodeName
    lists: int  # how many lists of bound pods were taken in before the binding was sent
    confirmed: float | None = None  # when the API server confirmed it, in seconds since the epoch
    list_mark: int = 0  # ``Store.began`` of the bound pods when it was confirmed


class ClusterState:
    """The stores, the volume claims, the assumed bindings, and the indexes for Snapshots."""

    def __init__(
        self,
        wake: Callable[[], None],
        *,
        is_declaring: bool = False,
        reads_task_groups: bool = False,
        reads_devices: bool = False,
        binds_volumes: bool = True,
        shown: Callable[[float | None], None] = _ignore_lag,
    ) -> None:
        """``wake`` is called at every change that may matter to a decision.

        If ``is_declaring``, this operator makes the PodGroups of Spark applications, and their
        drivers wait for it; if it ``reads_task_groups``, the same holds for applications of
        YuniKorn. Unless it ``reads_devices``, pods that claim devices are not placed; unless it
        ``binds_volumes``, claims that wait for their pod are not modelled. ``shown`` is called for
        each binding of ours that the watch of bound pods shows. Its argument is when the API server
        confirmed the binding, in seconds since the epoch; None if the watch was faster than the
        answer.
        """
        self._wake = wake
        self._observe_lag = shown
        self.nodes: Store[Node] = Store(self._node_changed, self._listed)
        self.pending: Store[Member] = Store(self._member_changed, self._listed)
        self.bound: Store[Member | ForeignPod] = Store(self._bound_changed, self._bound_listed)
        self.pinned: Store[Member | ForeignPod] = Store(self._pinned_changed, self._listed)
        self.classes: Store[PriorityClass] = Store(self._class_changed, self._listed)
        self.namespaces: Store[Namespace] = Store(self._namespace_changed, self._listed)
        self.queues: Store[QueueObject] = Store(self._queue_changed, self._listed)
        self.topologies: Store[Topology] = Store(self._topology_changed, self._listed)
        self.budgets: Store[DisruptionBudget] = Store(self._budget_changed, self._listed)
        self.reservations: Store[Reservation] = Store(self._reservation_changed, self._listed)
        self.storage = ClaimIndex(self._refresh, self._attached_changed, wake, binds=binds_volumes)
        self.devices = DeviceIndex(self._refresh, self._attached_changed, wake, is_on=reads_devices)
        self.gang_objects: Mapping[ApiKind, Store[GangObject]] = {
            api: Store(self._group_changed, self._listed) for api in kinds.GANGS
        }
        # By kind; without pods, which come in several streams.
        self.stores: Mapping[kinds.AnyKind, Store[Any]] = {
            **{kinds.GANGS[api]: store for api, store in self.gang_objects.items()},
            kinds.NODE: self.nodes,
            kinds.RESERVATION: self.reservations,
            kinds.PRIORITY_CLASS: self.classes,
            kinds.NAMESPACE: self.namespaces,
            kinds.QUEUE: self.queues,
            kinds.TOPOLOGY: self.topologies,
            kinds.BUDGET: self.budgets,
            **self.storage.stores,
            **self.devices.stores,
            kinds.CAPACITY: self.storage.capacities,
        }
        self._node_usage = NodeUsage(self._beside)
        self._assumed: dict[Uid, Assumption] = {}
        self._bound_lists = 0
        self._placed_pods = PlacedPods(self._resolved_pod)
        self._gangs = GangIndex(
            self._value_of,
            self._holding,
            is_declaring=is_declaring,
            reads_task_groups=reads_task_groups,
        )
        self._lost_reservations = LostReservations(self.group)
        self._lost_members = LostMembers(self._node_usage, self._gangs.gang)
        self.refusals = ApiBackoffs(wake)
        self._sorted_reservations: tuple[Reservation, ...] | None = None  # None: outdated
        self._spent: dict[Uid, Reservation] = {}  # Reservations that hold no room, by gang
        self._start_records: tuple[Reservation, ...] = ()  # the same, sorted
        self._lost_records: dict[Uid, Reservation] = {}  # deleted too early, by gang
        self._queues: tuple[Queue, ...] = ()  # sorted by name
        self._topologies: tuple[Topology, ...] = ()  # sorted by name
        self._budgets: tuple[DisruptionBudget, ...] = ()  # sorted by namespace and name
        self.protected: dict[Uid, float] = {}  # gangs that end for no other one, until when

    @property
    def is_synced(self) -> bool:
        """Whether every stream has been listed once; before that, Tutti decides nothing."""
        always = (self.stores[kind] for kind in (*kinds.PRESENT_GANGS, *kinds.CLUSTER))
        pods: tuple[Store[Any], ...] = (self.pending, self.bound, self.pinned)
        return all(store.is_synced for store in (*pods, *always))

    @property
    def groups(self) -> Store[GangObject]:
        """Tutti's own PodGroups."""
        return self.gang_objects[POD_GROUP]

    def snapshot(self, now: float) -> Snapshot:
        """Freeze the state at ``now``, in seconds since the epoch.

        Unchanged parts are the same objects as in the last Snapshot.
        """
        self.devices.refresh()
        self.storage.settle()
        self._gangs.look()
        self._lost_members.settle(now, self._evictable)
        if self._sorted_reservations is None:
            ordered = sorted(self.reservations, key=lambda reservation: reservation.gang)
            self._sorted_reservations = tuple(
                reservation for reservation in ordered if not reservation.is_spent
            )
            self._start_records = tuple(
                sorted(self._spent.values(), key=lambda reservation: reservation.gang)
            )
        return Snapshot(
            now,
            self._node_usage.nodes(),
            self._gangs.gangs,
            self._sorted_reservations,
            self._gangs.strays,
            placed_pods=self._placed_pods.snapshot(self._node_usage.placed),
            namespaces=self._placed_pods.namespaces(self.namespaces, always=bool(self._queues)),
            storage=self.storage.snapshot(),
            lost_reservations=self._lost_reservations.snapshot(now),
            api_refusals=self.refusals.snapshot(now),
            settled=self._gangs.settled,
            queues=self._queues,
            start_records=self._start_records,
            topologies=self._topologies,
            protected=self._protected_at(now),
            budgets=self._budgets,
            devices=self.devices.snapshot(),
        )

    def protect(self, gang: Uid, until: float) -> None:
        """Let no plan end this gang for another before ``until``, in seconds since the epoch."""
        self.protected[gang] = until
        self._wake()

    def next_free_room(self, now: float) -> float | None:
        """The seconds until room that is held for replacements is free; None if none is held."""
        return self._lost_members.next_end(now)

    def _evictable(self) -> frozenset[Uid]:
        """The pods for which a standing Reservation may have sent evictions."""
        return frozenset(chain.from_iterable(r.evictable for r in self.reservations))

    def _protected_at(self, now: float) -> frozenset[Uid]:
        self.protected = {uid: until for uid, until in self.protected.items() if now < until}
        return frozenset(self.protected)

    def node(self, name: NodeName) -> Node | None:
        """One node with its used amounts at this moment, our own bindings included."""
        return self._node_usage.node(name)

    def is_known(self, uid: Uid) -> bool:
        """Whether a list or watch shows a pod, or Tutti has just bound it."""
        return self._raw_pod(uid) is not None

    def rest(self, gang: Gang) -> None:
        """Leave a gang out of Snapshots until something about it changes.

        The gang has no live pod, and its status is final. So thousands of finished gangs cost a
        cycle nothing. A gang with a standing Reservation stays in Snapshots.
        """
        if not any(self._holding(gang.key)):
            self._gangs.rest(gang)

    def group(self, key: GangKey) -> GangObject | None:
        """The object that declares a gang, with its current status."""
        return self._gangs.group(key)

    def one_by_one(self) -> Iterable[Gang]:
        """The groups whose pods start one by one, each with a pod that has a node, for reports."""
        return self._gangs.one_by_one()

    def awaiting_room(self) -> Iterable[tuple[GangObject, Gang]]:
        """The gangs without pods whose pods are created once there is room, with their objects."""
        return self._gangs.awaiting_room()

    def claim_job(self, group: GangObject) -> None:
        """Record that the pods that a job will create for this group name our scheduler."""
        if not self._gangs.is_own_job(group.key, group.uid):
            self._gangs.claim_job(group)
            self._wake()

    def is_own_job(self, gang: Gang) -> bool:
        """Whether the job of a gang was claimed."""
        return self._gangs.is_own_job(gang.key, gang.uid)

    def spent_reservation(self, gang: Uid) -> Reservation | None:
        """The Reservation that is kept only for its record of the gang's start."""
        return self._spent.get(gang)

    def unneeded_records(self) -> Sequence[Reservation]:
        """The spent Reservations whose record no longer counts."""
        return [
            reservation
            for reservation in self._spent.values()
            if not self.needs_record(reservation)
        ]

    def needs_record(self, reservation: Reservation) -> bool:
        """Whether the record of a start counts: Queues exist, and one of its pods holds room."""
        if reservation.record is None or not self._queues:
            return False
        return any(self.holds_room(uid) for uid in reservation.pods)

    def lost_records(self) -> Sequence[Reservation]:
        """The Reservations that other clients deleted although their record still counts."""
        standing = {reservation.uid for reservation in self.reservations}
        self._lost_records = {
            uid: reservation
            for uid, reservation in self._lost_records.items()
            if uid not in standing and self.needs_record(reservation)
        }
        return tuple(self._lost_records.values())

    def holds_room(self, uid: Uid) -> bool:
        """Whether a pod that names our scheduler has a node and is not over."""
        pod = self._raw_pod(uid)
        return isinstance(pod, Member) and pod.node is not None and not pod.is_over

    def may_hold_room(self, uid: Uid) -> bool:
        """Whether ``holds_room`` is true of a pod, or no list or watch shows the pod."""
        return self.holds_room(uid) or not self.is_known(uid)

    def standing(self, reservation: Reservation) -> Reservation | None:
        """The Reservation as the API server last showed it; None if it is gone."""
        return None if reservation.self_uid is None else self.reservations.get(reservation.self_uid)

    def undeclared(self) -> tuple[Member, ...]:
        """The Spark pods from which the PodGroups of their applications can be made."""
        return self._gangs.undeclared()

    def explain(self, uid: Uid, sentence: str) -> None:
        """Record why the PodGroup that a Spark pod waits for is not made yet."""
        self._gangs.explain(uid, sentence)

    # Our own writes

    def assume(self, member: Member, node: NodeName) -> None:
        """Count a member as bound from the moment that its binding is sent."""
        if self.bound.has_seen(member.uid):
            return  # the watch was faster
        if member.node is None:
            member = self._unbound(member.uid) or member
        known = self._assumed.get(member.uid)
        lists = self._bound_lists if known is None else known.lists
        self._assumed[member.uid] = Assumption(member, node, lists)
        self._refresh(member.uid)

    def confirm(self, uid: Uid, now: float) -> None:
        """Take in that the API server confirmed a binding: the pod is never pending again."""
        if (known := self._assumed.get(uid)) is None:
            return
        if known.lists == self._bound_lists:
            known.confirmed = now
            known.list_mark = self.bound.began()
        else:
            # A list came in between. Either it is older than the binding, or the pod is gone
            # already: only the next list can tell.
            known.lists = self._bound_lists
        self.pending.drop(uid)
        if known.member.bound_by is BoundBy.KUBE_SCHEDULER:
            self.pinned.drop(uid)

    def retract(self, uid: Uid) -> None:
        """Drop the assumption of a binding that did not happen."""
        if self._assumed.pop(uid, None) is not None:
            self._refresh(uid)

    def unconfirmed_bindings(self) -> tuple[Member, ...]:
        """The members whose binding was sent and is not confirmed."""
        return tuple(known.member for known in self._assumed.values() if known.confirmed is None)

    def late(self, now: float) -> float:
        """A lower bound on how many seconds the watch of bound pods is late at ``now``.

        It is the age of our oldest confirmed binding that the watch has not shown. A watch shows
        pods in the order in which they were bound, so it shows no later binding before that one. A
        binding unseen for ``MOST_LATE`` no longer counts.
        """
        confirmations = (known.confirmed for known in self._assumed.values())
        ages = (now - confirmed_at for confirmed_at in confirmations if confirmed_at is not None)
        return max((age for age in ages if age < MOST_LATE), default=0.0)

    def forget(self, uid: Uid) -> None:
        """Forget an unbound member that turned out to be gone."""
        self.pending.drop(uid)
        if isinstance(self.pinned.get(uid), Member):
            self.pinned.drop(uid)
        self.retract(uid)

    def learn(self, member: Member) -> None:
        """Take in an unbound member as the API server just showed it."""
        uid, version = member.uid, int(member.version)
        if member.bound_by is BoundBy.KUBE_SCHEDULER:
            if member.is_handed_over or member.node is None:
                self.pinned.put(Item(uid, version, member))
        elif member.node is None:
            self.pending.put(Item(uid, version, member))

    def learn_group(self, group: GangObject) -> None:
        """Take in an object that declares a gang as the API server just showed it."""
        self.gang_objects[group.key.kind].put(Item(group.uid, int(group.version), group))

    def learn_queue(self, queue: QueueObject) -> None:
        """Take in a Queue as the API server just showed it."""
        self.queues.put(Item(queue.queue.uid, int(queue.version), queue))

    def learn_claim(self, claim: DeviceClaim) -> None:
        """Take in a claim for devices as the API server just showed it."""
        self.devices.claims.put(Item(claim.uid, int(claim.version), claim))

    def forget_claim(self, claim: DeviceClaim) -> None:
        """Forget a claim for devices that turned out to be gone."""
        self.devices.claims.drop(claim.uid)

    def hold(self, reservation: Reservation) -> None:
        """Take in a Reservation that was just created."""
        if reservation.self_uid is not None:
            version = int(reservation.version)
            self.reservations.put(Item(reservation.self_uid, version, reservation))

    def remove_reservation(self, reservation: Reservation) -> None:
        """Forget a Reservation that was just deleted."""
        if reservation.self_uid is not None:
            self.reservations.drop(reservation.self_uid)

    # Calls of the stores

    def _node_changed(self, uid: Uid, old: Node | None, new: Node | None) -> None:
        if old == new:
            return
        if new is not None:
            self._node_usage.learn(uid, new)
        elif old is not None:
            self._node_usage.forget(uid, old.name)
        self._wake()

    def _reservation_changed(
        self, _uid: Uid, old: Reservation | None, new: Reservation | None
    ) -> None:
        self.devices.reservation_changed(old, new)
        # A gang with a Reservation is not at rest, whatever its state.
        self._gangs.touch(reservation.gang for reservation in (old, new) if reservation is not None)
        self._sorted_reservations = None
        keys = {reservation.gang for reservation in (old, new) if reservation is not None}
        if old is not None:
            self._spent.pop(old.uid, None)
        if new is not None and new.is_spent:
            self._spent[new.uid] = new
        if old is not None and new is None and old.record is not None:
            self._lost_records[old.uid] = old
        # A spent Reservation holds no room. Except for its record, it counts as deleted.
        old, new = (
            None if reservation is None or reservation.is_spent else reservation
            for reservation in (old, new)
        )
        self._lost_reservations.changed(old, new)
        self.storage.chosen(old, new)
        if old is None or new is None:
            for key in keys:
                self._gangs.look_at_app(key)
        self._wake()

    def _holding(self, key: GangKey) -> Iterable[Reservation]:
        return (
            reservation
            for reservation in self.reservations
            if reservation.gang == key and not reservation.is_spent
        )

    def _group_changed(self, uid: Uid, old: GangObject | None, new: GangObject | None) -> None:
        self._gangs.group_changed(old, new)
        roles = () if new is None else new.roles
        self._placed_pods.declared(uid, [r.template for r in roles if r.template is not None])
        self._wake()

    def _class_changed(
        self, _uid: Uid, _old: PriorityClass | None, _new: PriorityClass | None
    ) -> None:
        self._gangs.class_changed()
        self._wake()

    def _value_of(self, name: str) -> int | None:
        return next(
            (
                priority_class.value
                for priority_class in self.classes
                if priority_class.name == name
            ),
            None,
        )

    def _namespace_changed(self, _uid: Uid, old: Namespace | None, new: Namespace | None) -> None:
        if old != new:
            self._placed_pods.namespace_changed()
            self._wake()

    def _queue_changed(self, _uid: Uid, old: QueueObject | None, new: QueueObject | None) -> None:
        before, after = (
            None if queue_object is None else queue_object.queue for queue_object in (old, new)
        )
        if before != after:
            # Of several Queues of one name, the latest counts.
            by_name = {queue_object.queue.name: queue_object.queue for queue_object in self.queues}
            self._queues = tuple(by_name[name] for name in sorted(by_name))
            self._gangs.queues_changed(frozenset(by_name))
        if old != new:  # the next report corrects a status that is not what it should be
            self._wake()

    def _topology_changed(self, _uid: Uid, old: Topology | None, new: Topology | None) -> None:
        if old != new:
            # Of several Topologies of one name, the latest counts.
            by_name = {topology.name: topology for topology in self.topologies}
            self._topologies = tuple(by_name[name] for name in sorted(by_name))
            self._wake()

    def _budget_changed(
        self, _uid: Uid, old: DisruptionBudget | None, new: DisruptionBudget | None
    ) -> None:
        if old != new:
            # Of several budgets of one name, the latest counts.
            by_name = {str(budget): budget for budget in self.budgets}
            self._budgets = tuple(by_name[name] for name in sorted(by_name))
            self._wake()

    def _bound_changed(
        self, uid: Uid, old: Member | ForeignPod | None, new: Member | ForeignPod | None
    ) -> None:
        if old == new:
            return  # a running foreign pod changed in a way that matters to no decision
        known = self._assumed.pop(uid, None)
        if new is not None:
            if known is not None:
                self._observe_lag(known.confirmed)
            self.pending.drop(uid)  # the stream of pending pods may be late and still show it
        elif isinstance(old, Member):
            self._lost_members.deleted(old)
        self._refresh(uid)

    def _listed(self, _began: int) -> None:
        self._wake()

    def _bound_listed(self, began: int) -> None:
        """Retract the assumptions that this list lacks and that were confirmed before it began."""
        self._bound_lists += 1
        self._wake()
        for uid, known in list(self._assumed.items()):
            if known.confirmed is not None and known.list_mark < began:
                self.retract(uid)

    def _member_changed(self, uid: Uid, _old: Member | None, _new: Member | None) -> None:
        self._refresh(uid)

    def _pinned_changed(
        self, uid: Uid, old: Member | ForeignPod | None, new: Member | ForeignPod | None
    ) -> None:
        if old != new:
            self._refresh(uid)

    def _refresh(self, uid: Uid) -> None:
        """Compute again the value of a pod and the node whose room it uses."""
        raw_pod = self._raw_pod(uid)
        self.storage.pod_changed(uid, raw_pod)
        self.devices.pod_changed(uid, raw_pod)
        pod, resolved_pod = raw_pod or self.pinned.get(uid), self._resolved_pod(uid)
        self._gangs.member_changed(uid, resolved_pod if isinstance(resolved_pod, Member) else None)
        if isinstance(pod, Member):
            self._occupy(uid, None if pod.is_over else pod.node, pod.shape.requests)
        elif pod is not None:
            self._occupy(uid, pod.node, pod.requests)
        else:
            self._occupy(uid, None, NOTHING)
        self._placed_pods.changed(uid, resolved_pod)
        self._wake()

    def _occupy(self, uid: Uid, node: NodeName | None, requests: Resources) -> None:
        """Count what a pod uses of its node; a pod that is new there may be a replacement."""
        if node is not None and not self._node_usage.is_on(uid, node):
            self._lost_members.taken(node)
        self._node_usage.occupy(uid, node, requests)

    def _beside(self, node: Node) -> VolumeUsage:
        """The volumes and devices of a node, which no request of a pod includes."""
        volumes, devices = self.storage.attached(node), self.devices.counted(node.name)
        if devices is NOTHING_ATTACHED:
            return volumes
        return VolumeUsage(volumes.offered + devices.offered, volumes.used + devices.used)

    def _attached_changed(self, names: Iterable[NodeName] | None) -> None:
        self._node_usage.touch(names)
        self._wake()

    def _resolved_pod(self, uid: Uid) -> Member | ForeignPod | None:
        """A bound, assumed or pending pod with the volumes and devices of its claims."""
        pod = self._raw_pod(uid)
        if not isinstance(pod, Member):
            return pod
        return self.devices.with_devices(self.storage.with_volumes(pod))

    def _raw_pod(self, uid: Uid) -> Member | ForeignPod | None:
        """A pod without the volumes and devices of its claims.

        It is bound, assumed, or a member that is not bound.

        A foreign pod that is pinned is not included. It uses room on its node, but no rule counts
        it before it is bound, as in kube-scheduler.
        """
        if (bound := self.bound.get(uid)) is not None:
            return bound
        unbound = self._unbound(uid)
        if (assumed := self._assumed.get(uid)) is not None:
            member = unbound or assumed.member
            # A member that the API server showed with its node is bound.
            is_bound = member.node is not None and not member.is_handed_over
            return replace(
                member,
                node=assumed.node,
                bound_at=assumed.confirmed,
                is_handed_over=member.bound_by is BoundBy.KUBE_SCHEDULER and not is_bound,
            )
        return unbound

    def _unbound(self, uid: Uid) -> Member | None:
        """A member that waits, or that is handed over."""
        pinned = self.pinned.get(uid)
        return self.pending.get(uid) or (pinned if isinstance(pinned, Member) else None)
