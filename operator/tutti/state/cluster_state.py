"""The live state of the cluster: model values by uid, from watches and from our own writes.

``snapshot(now)`` freezes it. A binding is assumed from the moment it is sent until the watch shows
it, so no cycle sees a state that is older than its own last write.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..filters import job_failures
from ..kube import kinds
from ..kube.backoff import ApiBackoffs
from ..kube.codec.queues import QueueObject
from ..kube.gang_sources import GangObject
from ..kube.list_watch import Item
from ..model.cluster import (
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
from ..model.owners import Job, JobKey
from ..model.resources import NOTHING, Resources
from .devices.index import DeviceIndex
from .gang_index import GangIndex
from .lost_members import LostMembers
from .node_usage import NOTHING_ATTACHED, NodeUsage, VolumeUsage
from .placed_pods import PlacedPods
from .pod_index import PodIndex
from .reservation_index import LostReservations, ReservationIndex
from .storage.claim_index import ClaimIndex
from .store import Store

if TYPE_CHECKING:
    from ..model.queues import Queue


def _ignore_lag(_confirmed: float | None) -> None:
    """Do nothing."""


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
        preempts: bool = False,
        shown: Callable[[float | None], None] = _ignore_lag,
    ) -> None:
        """``wake`` is called at every change that may matter to a decision.

        If ``is_declaring``, this operator makes the PodGroups of Spark applications, and their
        drivers wait for it; if it ``reads_task_groups``, the same holds for applications of
        YuniKorn. Unless it ``reads_devices``, pods that claim devices are not placed; unless it
        ``binds_volumes``, claims that wait for their pod are not modelled. If it ``preempts``, it
        decides nothing before PodDisruptionBudgets and Jobs are listed. ``shown`` is called for
        each binding of ours that the watch of bound pods shows. Its argument is when the API server
        confirmed the binding, in seconds since the epoch; None if the watch was faster than the
        answer.
        """
        self._wake = wake
        self._preempts = preempts
        self.nodes: Store[Node] = Store(self._node_changed, self._listed)
        self.pods = PodIndex(self._pod_changed, self._member_deleted, wake, shown)
        self.classes: Store[PriorityClass] = Store(self._class_changed, self._listed)
        self.namespaces: Store[Namespace] = Store(self._namespace_changed, self._listed)
        self.queues: Store[QueueObject] = Store(self._queue_changed, self._listed)
        self.topologies: Store[Topology] = Store(self._topology_changed, self._listed)
        self.kueue_topologies: Store[Topology] = Store(self._topology_changed, self._listed)
        self.kai_topologies: Store[Topology] = Store(self._topology_changed, self._listed)
        self.budgets: Store[DisruptionBudget] = Store(self._budget_changed, self._listed)
        self.jobs: Store[Job] = Store(self._job_changed, self._listed)
        self.reservations = ReservationIndex(
            self._reservation_changed, self._listed, self._is_charged
        )
        self.storage = ClaimIndex(
            self._pod_changed, self._attached_changed, wake, binds=binds_volumes
        )
        self.devices = DeviceIndex(
            *(self._pod_changed, self._resolve, self._attached_changed, wake), is_on=reads_devices
        )
        self.gang_objects: Mapping[ApiKind, Store[GangObject]] = {
            api: Store(self._group_changed, self._listed) for api in kinds.GANGS
        }
        # By kind; without pods, which come in several streams.
        self.stores: Mapping[kinds.AnyKind, Store[Any]] = {
            **{kinds.GANGS[api]: store for api, store in self.gang_objects.items()},
            kinds.NODE: self.nodes,
            kinds.RESERVATION: self.reservations.store,
            kinds.PRIORITY_CLASS: self.classes,
            kinds.NAMESPACE: self.namespaces,
            kinds.QUEUE: self.queues,
            kinds.TOPOLOGY: self.topologies,
            kinds.KUEUE_TOPOLOGY: self.kueue_topologies,
            kinds.KAI_TOPOLOGY: self.kai_topologies,
            kinds.BUDGET: self.budgets,
            kinds.JOB: self.jobs,
            **self.storage.stores,
            **self.devices.stores,
            kinds.CAPACITY: self.storage.capacities,
        }
        self._node_usage = NodeUsage(self._beside)
        self._placed_pods = PlacedPods(self._resolved_pod)
        self._gangs = GangIndex(
            self._value_of,
            self.reservations.of,
            self.reservations.roles,
            is_declaring=is_declaring,
            reads_task_groups=reads_task_groups,
        )
        self._lost_reservations = LostReservations(self.group)
        self._lost_members = LostMembers(self._node_usage, self._gangs.gang)
        self.refusals = ApiBackoffs(wake)
        self._queues: tuple[Queue, ...] = ()  # sorted by name
        self._topologies: tuple[Topology, ...] = ()  # sorted by ``order``
        self._budgets: tuple[DisruptionBudget, ...] = ()  # sorted by namespace and name
        self._jobs: dict[JobKey, dict[Uid, Job]] = {}  # of each name, the latest comes last
        self.protected: dict[Uid, float] = {}  # gangs that end for no other one, until when

    @property
    def is_synced(self) -> bool:
        """Whether every stream has been listed once; before that, Tutti decides nothing."""
        preemption = kinds.PREEMPTION if self._preempts else ()
        needed = (*kinds.PRESENT_GANGS, *kinds.CLUSTER, *preemption)
        always = (self.stores[kind] for kind in needed)
        return all(store.is_synced for store in (*self.pods.stores, *always))

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
        return Snapshot(
            now,
            self._node_usage.nodes(),
            self._gangs.gangs,
            self.reservations.holding_room,
            self._gangs.strays,
            placed_pods=self._placed_pods.snapshot(self._node_usage.placed),
            namespaces=self._placed_pods.namespaces(self.namespaces, always=bool(self._queues)),
            storage=self.storage.snapshot(),
            lost_reservations=self._lost_reservations.snapshot(now),
            api_refusals=self.refusals.snapshot(now),
            settled=self._gangs.settled,
            queues=self._queues,
            start_records=self.reservations.start_records,
            topologies=self._topologies,
            protected=self._protected_at(now),
            budgets=self._budgets,
            jobs=self._jobs_that_count(),
            devices=self.devices.snapshot(),
        )

    def tidy(self, now: float) -> None:
        """Forget what matters no more at ``now``; for a replica that takes no Snapshot.

        All streams must have been listed.
        """
        self.devices.refresh()
        self._gangs.tidy()
        self._node_usage.tidy()
        self._placed_pods.tidy()
        self._lost_reservations.snapshot(now)
        self.reservations.tidy(self.pods.has_ended)
        self.storage.abandoned()

    def protect(self, gang: Uid, until: float) -> None:
        """Let no plan end this gang for another before ``until``, in seconds since the epoch."""
        self.protected[gang] = max(until, self.protected.get(gang, until))
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

    def rest(self, gang: Gang) -> None:
        """Leave a gang out of Snapshots until something about it changes.

        The gang has no live pod, and its status is final. So thousands of finished gangs cost a
        cycle nothing. A gang with a Reservation stays in Snapshots: while a pod that its record
        names holds room, the gang is charged.
        """
        if not self.reservations.has(gang.key):
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

    def undeclared(self) -> tuple[Member, ...]:
        """The Spark pods from which the PodGroups of their applications can be made."""
        return self._gangs.undeclared()

    def explain(self, uid: Uid, sentence: str) -> None:
        """Record why the PodGroup that a Spark pod waits for is not made yet."""
        self._gangs.explain(uid, sentence)

    # Our own writes

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

    # Calls of the stores

    def _node_changed(self, uid: Uid, old: Node | None, new: Node | None) -> None:
        if old == new:
            return
        if new is not None:
            self._node_usage.learn(uid, new)
        elif old is not None:
            self._node_usage.forget(uid, old.name)
        self.devices.node_changed(old, new)
        self._wake()

    def _reservation_changed(self, old: Reservation | None, new: Reservation | None) -> None:
        self.devices.reservation_changed(old, new)
        keys = {reservation.gang for reservation in (old, new) if reservation is not None}
        self._gangs.touch(keys)  # a gang with a Reservation is not at rest, whatever its state
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

    def _is_charged(self, reservation: Reservation) -> bool:
        """Whether Queues exist, and one of the pods of a Reservation holds room."""
        return bool(self._queues) and any(map(self.pods.holds_room, reservation.pods))

    def _group_changed(self, uid: Uid, old: GangObject | None, new: GangObject | None) -> None:
        self._gangs.group_changed(old, new)
        roles = () if new is None else (*new.roles, *chain.from_iterable(new.stages))
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
            # Of several Topologies of one name and group, the latest counts.
            topologies = chain(self.topologies, self.kueue_topologies, self.kai_topologies)
            by_order = {topology.order: topology for topology in topologies}
            self._topologies = tuple(by_order[order] for order in sorted(by_order))
            self._wake()

    def _budget_changed(
        self, _uid: Uid, old: DisruptionBudget | None, new: DisruptionBudget | None
    ) -> None:
        if old != new:
            # Of several budgets of one name, the latest counts.
            by_name = {str(budget): budget for budget in self.budgets}
            self._budgets = tuple(by_name[name] for name in sorted(by_name))
            self._wake()

    def _job_changed(self, uid: Uid, old: Job | None, new: Job | None) -> None:
        if new is not None:
            self._jobs.setdefault(new.key, {})[uid] = new
        elif old is not None:
            of_name = self._jobs[old.key]
            del of_name[uid]
            if not of_name:
                del self._jobs[old.key]
        if old != new:
            self._wake()

    def _jobs_that_count(self) -> Mapping[JobKey, Job] | None:
        """The Jobs of members that wait in gangs; None if Jobs have never been listed."""
        if not self.jobs.is_synced:
            return None
        gangs = (gang for gang in self._gangs.gangs if gang.uid not in self._gangs.settled)
        members = (member for gang in gangs if not gang.is_single for member in gang.members)
        keys = job_failures.keys(member for member in members if member.is_waiting)
        return {
            key: next(reversed(self._jobs[key].values()))
            for key in sorted(keys)
            if key in self._jobs
        }

    def _listed(self, _began: int) -> None:
        self._wake()

    def _member_deleted(self, member: Member) -> None:
        self._lost_members.deleted(member)

    def _pod_changed(self, uid: Uid) -> None:
        """Compute again the value of a pod and the node whose room it uses."""
        raw_pod = self.pods.get(uid)
        self.storage.pod_changed(uid, raw_pod)
        self.devices.pod_changed(uid, raw_pod)
        pod = raw_pod or self.pods.pinned.get(uid)  # a foreign pod that is pinned uses room, too
        if isinstance(pod, Member):
            self._occupy(uid, None if pod.is_over else pod.node, pod.shape.requests)
        elif pod is not None:
            self._occupy(uid, pod.node, pod.requests)
        else:
            self._occupy(uid, None, NOTHING)
        self._put_pod(uid, raw_pod)

    def _resolve(self, uid: Uid) -> None:
        """Compute again what the claims of a pod require."""
        self._put_pod(uid, self.pods.get(uid))

    def _put_pod(self, uid: Uid, raw_pod: Member | ForeignPod | None) -> None:
        pod = self._with_claims(raw_pod)
        self._gangs.member_changed(uid, pod if isinstance(pod, Member) else None)
        self._placed_pods.changed(uid, pod)
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
        return self._with_claims(self.pods.get(uid))

    def _with_claims(self, pod: Member | ForeignPod | None) -> Member | ForeignPod | None:
        if not isinstance(pod, Member):
            return pod
        return self.devices.with_devices(self.storage.with_volumes(pod))
