"""FakeCluster: an API server in memory, as honest as the seam shows it, and the operator's lives.

It stands behind ``Api`` alone. Its rules for bindings, creations and deletions are the real
server's; every commit is judged at once for room and for a Reservation; any call can be made to
fail, before its commit or after.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from tutti.filters.selectors import is_budgeted
from tutti.filters.volume_rules import is_reached
from tutti.kube import errors, wire
from tutti.kube.client import Written
from tutti.kube.codec import decode, encode
from tutti.kube.codec import devices as claims
from tutti.kube.codec.queues import (
    QueueObject,
    decode_queue,
    encode_finalizers,
    encode_status,
)
from tutti.kube.codec.volumes import encode_selected_node
from tutti.kube.gang_sources import GangObject, JobPods, job_kind, pod_group
from tutti.kube.leader_election import Deposed
from tutti.kube.list_watch import Item, ObjectList
from tutti.model.applications import ConfigMapKey
from tutti.model.cluster import (
    GATE,
    BoundBy,
    DisruptionBudget,
    ForeignPod,
    Member,
    Namespace,
    Node,
    Phase,
    PriorityClass,
    Reservation,
    Role,
    ScheduledCondition,
)
from tutti.model.decisions import Assignment, Policy, RolloutLimits
from tutti.model.devices.claims import ClaimName, Consumer, DeviceClaim, DeviceRequest
from tutti.model.devices.extended import RequestMapping, pod_claim, without
from tutti.model.inter_pod import Topology
from tutti.model.keys import (
    POD_GROUP,
    ApiKind,
    GangKey,
    LeaderTerm,
    Lease,
    NodeName,
    PodKey,
    Uid,
)
from tutti.model.owners import Job, JobKey
from tutti.model.queues import Preemption, Queue
from tutti.model.resources import Resources
from tutti.model.volumes import (
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    ClaimRef,
    NodeDrivers,
    Volume,
)
from tutti.operator.cycle import Cycle
from tutti.reporting.metrics import Metrics
from tutti.state.cluster_state import ClusterState
from tutti.state.store import Store
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Strategy

from .builders import AMPLE_BUDGET, NAMESPACE, GangBuilder, NodeBuilder, budget, labels
from .fake_devices import DeviceValue, FakeDevices, Shown

T = TypeVar("T")

STREAMS = (
    "nodes",
    "pending",
    "bound",
    "pinned",
    "groups",
    "reservations",
    "classes",
    "namespaces",
    "queues",
    "topologies",
    "kueue_topologies",
    "kai_topologies",
    "budgets",
    "jobs",
    "devices.slices",
    "devices.classes",
    "devices.rules",
    "devices.claims",
    "storage.claims",
    "storage.volumes",
    "storage.classes",
    "storage.nodes",
    "storage.drivers",
    "storage.attachments",
    "storage.capacities",
)
# Where the cluster state has a store that is not an attribute of the stream's name.
_STORES = {
    "pending": "pods.pending",
    "bound": "pods.bound",
    "pinned": "pods.pinned",
    "reservations": "reservations.store",
}


def store_of(state: ClusterState, stream: str) -> Store[Any]:
    """The store that a stream feeds."""
    store: Store[Any] = attrgetter(_STORES.get(stream, stream))(state)
    return store


class Crash(BaseException):
    """The operator dies; every further call of the same life raises it too."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at one call: raised before the commit, or after it."""

    what: BaseException
    is_committed: bool = False


@dataclass(slots=True)
class Clock:
    """A clock that tests wind."""

    now: float = 1_000.0

    def __call__(self) -> float:
        """The present."""
        return self.now


@dataclass(frozen=True, slots=True)
class _Told:
    """One watch event: of which stream, and what it does to a World."""

    stream: str
    tell: Callable[[ClusterState], None]


async def _go_on(_number: int, _is_committed: bool) -> None:  # noqa: FBT001 - as ``pause`` is called
    pass


@dataclass(slots=True)
class FakeCluster:
    """Nodes, pods, PodGroups and Reservations, and what was called."""

    version: int = 100
    nodes: dict[NodeName, Item[Node]] = field(default_factory=dict)
    pods: dict[PodKey, Member] = field(default_factory=dict)
    others: dict[Uid, Item[Any]] = field(default_factory=dict)
    groups: dict[GangKey, GangObject] = field(default_factory=dict)
    reservations: dict[tuple[str, Uid], Reservation] = field(default_factory=dict)
    classes: dict[str, Item[PriorityClass]] = field(default_factory=dict)
    has_old_crds: bool = False  # they drop the fields queuesSince, succeeded and roles
    queues: dict[str, QueueObject] = field(default_factory=dict)
    topologies: dict[str, Item[Topology]] = field(default_factory=dict)
    budgets: dict[str, Item[DisruptionBudget]] = field(default_factory=dict)
    namespaces: dict[str, Item[Namespace]] = field(default_factory=dict)
    devices: FakeDevices = field(default_factory=FakeDevices)
    drops_claim_names: bool = False  # it is older than the field of the status
    mapped: dict[Uid, dict[str, Any]] = field(default_factory=dict)  # extendedResourceClaimStatus
    storage: dict[str, dict[Any, Item[Any]]] = field(default_factory=dict)  # by stream, by name
    unanswered: set[str] = field(default_factory=set)  # streams whose list has no answer yet
    work: Callable[[], None] = lambda: None  # what controllers do after each turn
    events: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    jobs: dict[JobKey, Item[Job]] = field(default_factory=dict)
    roles: dict[GangKey, tuple[Role, ...]] = field(default_factory=dict)  # of jobs without pods
    job_scheduler: str = "tutti"  # that these jobs name
    config_maps: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    declared: dict[GangKey, dict[str, Any]] = field(default_factory=dict)  # PodGroups, as sent
    protected: set[str] = field(default_factory=set)  # names of pods that a budget protects
    calls: list[str] = field(default_factory=list)  # the names of all calls so far
    subjects: dict[int, str] = field(default_factory=dict)  # of calls by number, if of matter
    broken: list[str] = field(default_factory=list)  # promises that a commit has broken
    fault: Callable[[int, str], Fault | None] = lambda _number, _name: None
    before: Callable[[str], None] = lambda _name: None  # called when a call reaches the server
    bound: Callable[[Member], None] = lambda _pod: None  # called when a pod was bound
    pause: Callable[[int, bool], Awaitable[None]] = _go_on  # before a commit, and after it
    is_dead: bool = False
    lease: Lease = field(default_factory=Lease)
    log: list[_Told] = field(default_factory=list)

    # What users and nodes do

    def add(self, *parts: NodeBuilder | GangBuilder) -> None:
        """Create nodes, and PodGroups with their pods, or pods alone."""
        for part in parts:
            if isinstance(part, NodeBuilder):
                self.put_node(part.made)
                continue
            built_gang = part.made
            if not built_gang.is_single:
                self.add_group(part)
            for member in built_gang.members:
                self.add_pod(member)

    def add_group(self, part: GangBuilder) -> None:
        """Create a PodGroup without its pods."""
        built_gang = part.made
        group = GangObject(
            key=built_gang.key,
            uid=self._uid(),
            generation=1,
            min_member=built_gang.min_member,
            roles=built_gang.roles,
            created=built_gang.created,
            priority_class=built_gang.priority_class,
            timeout_seconds=built_gang.timeout_seconds,
            on_timeout=built_gang.on_timeout,
            absent_seconds=built_gang.absent_seconds,
            is_suspended=built_gang.is_suspended,
            owner_pod=built_gang.owner_pod,
            bound_by=built_gang.bound_by,
            same_domain=built_gang.same_domain,
            preferred_domains=built_gang.preferred_domains,
            segments=built_gang.segments,
        )
        self._put_group(group)

    def add_pod(self, member: Member) -> None:
        """Create a pod; a namesake must be gone."""
        assert member.key not in self.pods
        self._put_pod(replace(member, uid=self._uid(), node=None))
        if member.node is not None:
            bound_at = float(self.version)
            self._put_pod(replace(self.pods[member.key], node=member.node, bound_at=bound_at))

    def change_pod(self, name: str, **changes: object) -> None:
        """Change fields of a pod."""
        pod = self.pods[PodKey(NAMESPACE, name)]
        self._put_pod(replace(pod, **changes))  # type: ignore[arg-type]

    def delete_pod(self, name: str) -> None:
        """Delete a pod at once."""
        gone = self.pods.pop(PodKey(NAMESPACE, name))
        stream = _stream_of(gone)
        self._tell(stream, lambda state: store_of(state, stream).drop(gone.uid))

    def change_group(self, name: str, kind: ApiKind = POD_GROUP, **changes: object) -> None:
        """Change fields of a PodGroup."""
        group = self.groups[GangKey(NAMESPACE, name, kind)]
        self._put_group(replace(group, **changes))  # type: ignore[arg-type]

    def delete_group(self, name: str, kind: ApiKind = POD_GROUP) -> None:
        """Delete a PodGroup; its Reservation stays until ``collect``."""
        gone = self.groups.pop(GangKey(NAMESPACE, name, kind))
        self._tell("groups", lambda state: state.groups.drop(gone.uid))

    def delete_reservation(self, name: str) -> None:
        """Delete the Reservation of a gang by hand."""
        uid = self.groups[GangKey(NAMESPACE, name)].uid
        self._drop_reservation((NAMESPACE, uid))

    def collect(self) -> None:
        """Delete Reservations whose PodGroup is gone, as the garbage collector does."""
        uids = {group.uid for group in self.groups.values()}
        owned = [
            key for key, reservation in self.reservations.items() if reservation.record is None
        ]
        for key in [key for key in owned if key[1] not in uids]:
            self._drop_reservation(key)

    def put_node(self, node: Node) -> None:
        """Create or change a node."""
        old = self.nodes.get(node.name)
        item = Item(self._uid() if old is None else old.uid, self._next(), node)
        self.nodes[node.name] = item
        self._tell("nodes", lambda state: state.nodes.put(item))

    def change_node(self, name: str, **changes: object) -> None:
        """Change fields of a node."""
        known = self.nodes[NodeName(name)].value
        self.put_node(replace(known, **changes))  # type: ignore[arg-type]

    def delete_node(self, name: str) -> None:
        """Delete a node; its pods stay."""
        gone = self.nodes.pop(NodeName(name))
        self._tell("nodes", lambda state: state.nodes.drop(gone.uid))

    def occupy(self, node: str, requests: Resources, **by_name: str) -> None:
        """Let another scheduler bind a pod with these labels."""
        uid = self._uid()
        other = ForeignPod(uid, NodeName(node), requests, NAMESPACE, labels(**by_name))
        item: Item[Any] = Item(uid, self._next(), other)
        self.others[uid] = item
        self._tell("bound", lambda state: state.pods.bound.put(item))

    def add_class(self, name: str, value: int) -> None:
        """Create a PriorityClass."""
        item = Item(self._uid(), self._next(), PriorityClass(name, value))
        self.classes[name] = item
        self._tell("classes", lambda state: state.classes.put(item))

    def add_queue(self, queue: Queue) -> None:
        """Create a Queue, in a cluster that has the namespace of the tests."""
        if NAMESPACE not in self.namespaces:
            self.add_namespace(NAMESPACE)
        made = replace(queue, created=queue.created or float(self.version))
        self._put_queue(QueueObject(made, generation=1))

    def change_queue(self, name: str, **changes: object) -> None:
        """Change fields of a Queue."""
        old = self.queues[name]
        queue = replace(old.queue, **changes)  # type: ignore[arg-type]
        self._put_queue(replace(old, queue=queue, generation=old.generation + 1))

    def delete_queue(self, name: str, *, by_force: bool = False) -> None:
        """Delete a Queue, at once or once it has no finalizers."""
        if by_force:
            self.queues[name] = replace(self.queues[name], finalizers=())
        self.change_queue(name, is_terminating=True)

    def _put_queue(self, queue: QueueObject) -> QueueObject:
        fresh = replace(queue, version=str(self._next()))
        uid = fresh.queue.uid
        if fresh.queue.is_terminating and not fresh.finalizers:
            del self.queues[fresh.queue.name]
            self._tell("queues", lambda state: state.queues.drop(uid))
            return fresh
        self.queues[fresh.queue.name] = fresh
        item = Item(uid, int(fresh.version), fresh)
        self._tell("queues", lambda state: state.queues.put(item))
        return fresh

    def _queue(self, queue: QueueObject, metadata: Mapping[str, Any]) -> QueueObject:
        """The Queue that is to be written to."""
        current = self.queues.get(queue.queue.name)
        if current is None:
            raise errors.Gone("there is no such Queue", status=404)
        is_same = metadata["uid"] == current.queue.uid
        if not is_same or metadata.get("resourceVersion", current.version) != current.version:
            raise errors.Conflict("it is another, or has changed", status=409)
        return current

    def add_topology(self, topology: Topology) -> None:
        """Create a Topology."""
        item = Item(self._uid(), self._next(), topology)
        self.topologies[topology.name] = item
        self._tell("topologies", lambda state: state.topologies.put(item))

    def put_budget(self, name: str, allowed: int, **by_name: str) -> None:
        """Create or change a PodDisruptionBudget of the pods with these labels."""
        old = self.budgets.get(name)
        uid = self._uid() if old is None else old.uid
        item = Item(uid, self._next(), budget(name, allowed, most=allowed, **by_name))
        self.budgets[name] = item
        self._tell("budgets", lambda state: state.budgets.put(item))

    def put_job(self, name: str, failures_left: int | None) -> None:
        """Create or change a Job."""
        job = Job(NAMESPACE, name, failures_left)
        old = self.jobs.get(job.key)
        item = Item(self._uid() if old is None else old.uid, self._next(), job)
        self.jobs[job.key] = item
        self._tell("jobs", lambda state: state.jobs.put(item))

    def put_storage(self, kind: str, value: Any) -> Item[Any]:
        """Create or change a claim, a volume or another object of storage."""
        stream = f"storage.{kind}"
        known = self.storage.setdefault(stream, {})
        name = _storage_name(value)
        uid = known[name].uid if name in known else self._uid()
        if isinstance(value, Claim):
            version = "" if value.is_bound else str(self.version + 1)
            value = replace(value, uid=uid, version=version)
        item: Item[Any] = Item(uid, self._next(), value)
        known[name] = item
        self._tell(stream, lambda state: _store(state, stream).put(item))
        return item

    def stored(self, kind: str, name: Any) -> Any:
        """A claim by its key, or another object of storage by its name."""
        item = self.storage.get(f"storage.{kind}", {}).get(name)
        if item is None:
            raise errors.Gone(f"there is no {name} among {kind}", status=404)
        return item.value

    def add_namespace(self, name: str, **by_name: str) -> None:
        """Create a namespace."""
        item = Item(self._uid(), self._next(), Namespace(name, labels(**by_name)))
        self.namespaces[name] = item
        self._tell("namespaces", lambda state: state.namespaces.put(item))

    def put_devices(self, *values: DeviceValue) -> None:
        """Create or change slices, classes, taint rules and claims."""
        for value in values:
            self._show(self.devices.put(value, self._next()))

    def drop_devices(self, stream: str, name: str) -> None:
        """Delete a slice, a class or a taint rule."""
        gone = self.devices.items[stream].pop(name)
        self._tell(stream, lambda state: store_of(state, stream).drop(gone.uid))

    def delete_claim(self, name: str) -> None:
        """Delete a claim; with finalizers, it terminates."""
        self._show(self.devices.delete(ClaimName(NAMESPACE, name), self._next()))

    def _show(self, shown: Shown) -> None:
        stream, item = shown
        if item.value is None:
            self._tell(stream, lambda state: store_of(state, stream).drop(item.uid))
        else:
            self._tell(stream, lambda state: store_of(state, stream).put(item))

    def collect_claims(self) -> None:
        """Delete claims whose pod is gone, as controllers do."""
        uids = {pod.uid for pod in self.pods.values()}
        for item in [*self.devices.items["devices.claims"].values()]:
            if item.value.owner is not None and item.value.owner not in uids:
                raw = self.devices.raw[item.value.key]
                raw["metadata"]["finalizers"] = []
                self.delete_claim(item.value.key.name)

    def run_pods(self, phase: Phase = Phase.RUNNING) -> None:
        """Let all bound pods of ours come to something."""
        for member in list(self.pods.values()):
            if member.node is not None and member.phase is not phase:
                self._put_pod(replace(member, phase=phase))

    # Api

    async def bind(self, assignment: Assignment) -> None:
        """See ``Api.bind``."""

        def commit() -> None:
            pod = self._pod(assignment.pod)
            _demand(encode.binding(assignment)["metadata"], pod)
            if not pod.is_waiting:
                raise errors.Conflict(f"pod {pod.key} cannot be bound.", status=409)
            self._judge(pod, assignment.node)
            self.broken += self.devices.judged(_claiming(pod), assignment.node)
            self._put_pod(
                replace(
                    pod,
                    node=assignment.node,
                    scheduled_condition=ScheduledCondition(),
                    bound_at=float(self.version),
                )
            )
            self.bound(self.pods[pod.key])

        await self._call("bind", commit, f"{_seen(assignment)} to {assignment.node}")

    async def hand_over(self, assignment: Assignment, at: float) -> Member:
        """See ``Api.hand_over``; a gate is removed once, and a pin is for good."""

        def commit() -> Member:
            pod = self._pod(assignment.pod)
            _demand(encode.binding(assignment)["metadata"], pod)
            if pod.gates != (GATE,):
                raise errors.Refused(f"pod {pod.key} has no gate, or others too", status=422)
            self._judge(pod, assignment.node)
            pin = replace(
                pod, gates=(), node=assignment.node, is_handed_over=True, handed_over_at=at
            )
            self._put_pod(pin)
            return self.pods[pod.key]

        subject = f"{_seen(assignment)} to {assignment.node}"
        return await self._call("hand_over", commit, subject)

    def schedule(self, *names: str, unless: str = "") -> None:
        """Let kube-scheduler bind the pods that were handed over: all, or these.

        ``unless`` is what it says of a pod instead.
        """
        for pod in list(self.pods.values()):
            if not pod.is_handed_over or (names and pod.key.name not in names):
                continue
            if unless:
                condition = ScheduledCondition("Unschedulable", unless)
                self._put_pod(replace(pod, scheduled_condition=condition))
                continue
            bound_at = float(self.version)
            condition = ScheduledCondition()
            self._put_pod(
                replace(pod, is_handed_over=False, bound_at=bound_at, scheduled_condition=condition)
            )
            self.bound(self.pods[pod.key])

    async def read_member(self, key: PodKey) -> Member:
        """See ``Api.read_member``."""
        return await self._call("read_member", lambda: self._pod(key), str(key))

    async def say_of_pod(self, member: Member, why: encode.Why) -> Member:
        """See ``Api.say_of_pod``."""

        def commit() -> Member:
            pod = self._pod(member.key)
            _demand(encode.pod_condition(member, why)["metadata"], pod)
            if why.condition != encode.SCHEDULED:
                self._put_pod(pod)  # its words name a version, so they are new
                return self.pods[member.key]
            reported = ScheduledCondition(why.reason, why.message)
            if pod.scheduled_condition != reported:
                self._put_pod(replace(pod, scheduled_condition=reported))
            return self.pods[member.key]

        subject = f"{member.key} {member.uid} at {member.version}: {why.reason}"
        return await self._call("say_of_pod", commit, subject)

    async def bind_claim(self, claim: Claim, volume: str) -> Written[Volume]:
        """See ``Api.bind_claim``."""

        def commit() -> Written[Volume]:
            current, found = self.stored("claims", claim.key), self.stored("volumes", volume)
            if current.uid != claim.uid or current.volume or current.terminating:
                raise errors.Conflict("it is another claim", status=409)
            if not found.is_for(claim):
                if not found.is_available:
                    raise errors.Conflict("the volume is not available", status=409)
                taken = replace(found, claim=ClaimRef(claim.key, claim.uid))
                return Written(*self.put_storage("volumes", taken))
            return Written(*self.storage["storage.volumes"][volume])

        return await self._call("bind_claim", commit)

    async def select_node(self, claim: Claim, node: NodeName | None) -> Written[Claim]:
        """See ``Api.select_node``."""

        def commit() -> Written[Claim]:
            current = self.stored("claims", claim.key)
            if encode_selected_node(node, claim.version)["metadata"]["resourceVersion"] != str(
                self.storage["storage.claims"][claim.key].version
            ):
                raise errors.Conflict("the claim has changed", status=409)
            return Written(*self.put_storage("claims", replace(current, selected_node=node)))

        return await self._call("select_node", commit)

    async def evict(self, member: Member) -> None:
        """See ``Api.evict``; the pod stays, terminating, until it is deleted."""

        def commit() -> None:
            pod = self._pod(member.key)
            if pod.key.name in self.protected:
                raise errors.Refused("it would violate the pod's disruption budget", status=429)
            self._disrupt(pod)
            _demand(encode.eviction(member)["deleteOptions"]["preconditions"], pod)
            if not any(
                pod.uid in _ending(reservation) for reservation in self.reservations.values()
            ):
                self.broken.append(f"{pod.key} is evicted without a Reservation")
            self._put_pod(replace(pod, terminating=True))

        await self._call("evict", commit, f"{member.key} {member.uid} at {member.version}")

    def _disrupt(self, pod: Member) -> None:
        """Take the eviction of a pod off its budget."""
        items = [
            (name, item)
            for name, item in self.budgets.items()
            if is_budgeted(item.value, pod.key.namespace, pod.labels)
        ]
        if len(items) > 1:
            raise errors.Unavailable("it has more than one budget", status=500)
        for name, item in items:
            if not item.value.allowed:
                raise errors.Refused("it would violate the pod's disruption budget", status=429)
            value = replace(item.value, allowed=item.value.allowed - 1)
            changed = Item(item.uid, self._next(), value)
            self.budgets[name] = changed
            self._tell("budgets", partial(_put_budget, changed))

    async def read_job(self, namespace: str, name: str) -> Job:
        """See ``Api.read_job``."""

        def commit() -> Job:
            if (namespace, name) not in self.jobs:
                raise errors.Gone("there is no such Job", status=404)
            return self.jobs[namespace, name].value

        return await self._call("read_job", commit)

    async def read_text(self, namespace: str, key: ConfigMapKey) -> str | None:
        """See ``Api.read_text``."""

        def commit() -> str | None:
            if (namespace, key.config_map) not in self.config_maps:
                raise errors.Gone("there is no such ConfigMap", status=404)
            return self.config_maps[namespace, key.config_map].get(key.key)

        return await self._call("read_text", commit)

    async def declare(self, namespace: str, group: Mapping[str, Any]) -> GangObject:
        """See ``Api.declare``; what is stored is what was encoded."""

        def commit() -> GangObject:
            body = json.loads(json.dumps(group))
            assert body["metadata"]["namespace"] == namespace
            key = GangKey(namespace, body["metadata"]["name"])
            if key in self.groups:
                raise errors.Conflict("it exists already", status=409)
            body["metadata"] |= {"uid": self._uid(), "resourceVersion": "0", "generation": 1}
            self.declared[key] = body
            self._put_group(pod_group.decode_group(wire.parse_one(body, pod_group.PodGroup)))
            return self.groups[key]

        return await self._call("declare", commit)

    async def reserve(self, reservation: Reservation) -> Reservation:
        """See ``Api.reserve``; what is stored is what was encoded."""

        def commit() -> Reservation:
            key = (reservation.gang.namespace, reservation.uid)
            if key in self.reservations:
                raise errors.Conflict("it exists already", status=409)
            body = json.loads(json.dumps(encode.reservation(reservation)))
            body["metadata"] |= {"uid": self._uid(), "resourceVersion": str(self._next())}
            body["spec"] = self._served(body["spec"])
            stored = decode.decode_reservation(wire.parse_one(body, wire.Reservation))
            self._keep_reservation(key, stored)
            return stored

        return await self._call("reserve", commit, _subject(reservation))

    def _served(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The fields of a Reservation that its CRD knows."""
        dropped = ("succeeded", "roles") if self.has_old_crds else ()
        return {name: value for name, value in spec.items() if name not in dropped}

    async def release(self, reservation: Reservation) -> None:
        """See ``Api.release``."""

        def commit() -> None:
            key = (reservation.gang.namespace, reservation.uid)
            stored = self.reservations.get(key)
            if stored is None:
                raise errors.Gone("there is no such Reservation", status=404)
            preconditions = encode.delete_options(reservation)["preconditions"]
            if preconditions != {"uid": stored.self_uid, "resourceVersion": stored.version}:
                raise errors.Conflict("it is another, or has changed", status=409)
            self._drop_reservation(key)

        await self._call("release", commit, _subject(reservation))

    async def adopt(self, reservation: Reservation, term: LeaderTerm) -> Reservation:
        """See ``Api.adopt``."""

        def commit() -> Reservation:
            key = (reservation.gang.namespace, reservation.uid)
            stored = self.reservations.get(key)
            if stored is None:
                raise errors.Gone("there is no such Reservation", status=404)
            if stored.version != reservation.version:
                raise errors.Conflict("it has changed", status=409)
            adopted = replace(stored, term=term, version=str(self._next()))
            self._keep_reservation(key, adopted)
            return adopted

        return await self._call("adopt", commit, f"{_subject(reservation)} for {term}")

    async def amend(self, reservation: Reservation) -> Reservation:
        """See ``Api.amend``; what is stored is what was encoded."""

        def commit() -> Reservation:
            key = (reservation.gang.namespace, reservation.uid)
            stored = self.reservations.get(key)
            if stored is None:
                raise errors.Gone("there is no such Reservation", status=404)
            patch = json.loads(json.dumps(encode.amendment(reservation)))
            if stored.version != patch["metadata"]["resourceVersion"]:
                raise errors.Conflict("it has changed", status=409)
            body = _merged(encode.reservation(stored), patch)
            body["spec"] = self._served(body["spec"])
            names = {"uid": stored.self_uid, "resourceVersion": str(self._next())}
            body["metadata"] = {**body["metadata"], **names}
            amended = decode.decode_reservation(wire.parse_one(body, wire.Reservation))
            self._keep_reservation(key, amended)
            return amended

        return await self._call("amend", commit, _subject(reservation))

    async def read_lease(self) -> Lease:
        """See ``Api.read_lease``."""
        return await self._call("read_lease", lambda: self.lease, "for the term")

    def take_lease(self, identity: str) -> LeaderTerm:
        """Let a replica lead from now on, whoever led before."""
        version = str(self._next())
        self.lease = Lease(identity, version, version, 10, version=version)
        return self.lease.term

    async def write_status(
        self, gang: GangKey, status: Mapping[str, Any], version: str = ""
    ) -> GangObject:
        """See ``Api.write_status``; a merge patch that changes nothing makes no new version."""

        def commit() -> GangObject:
            group = self.groups.get(gang)
            if group is None:
                raise errors.Gone("there is no such PodGroup", status=404)
            if version and version != group.version:
                raise errors.Conflict("the PodGroup is newer", status=409)
            patched = _merged(group.status, json.loads(json.dumps(status)))
            if patched != group.status:
                kind = job_kind(gang.kind)
                awaits = group.job_awaiting_room
                if kind is not None and patched.items() >= kind.status_with_room.items():
                    awaits = None
                group = replace(
                    group,
                    status=patched,
                    lost_milliseconds=pod_group.lost_milliseconds(patched),
                    succeeded_before=pod_group.succeeded_before(patched),
                )
                self._put_group(replace(group, job_awaiting_room=awaits))
            return self.groups[gang]

        return await self._call("write_status", commit)

    async def read_job_pods(self, group: GangObject) -> JobPods:
        """See ``Api.read_job_pods``."""

        def commit() -> JobPods:
            return JobPods(frozenset({self.job_scheduler}), self.roles[group.key])

        return await self._call("read_job_pods", commit)

    async def set_finalizers(self, queue: QueueObject, finalizers: Sequence[str]) -> QueueObject:
        """See ``Api.set_finalizers``; what is being deleted gets no more of them."""

        def commit() -> QueueObject:
            metadata = encode_finalizers(queue, finalizers)["metadata"]
            current, new_finalizers = self._queue(queue, metadata), tuple(metadata["finalizers"])
            if current.queue.is_terminating and not {*new_finalizers} <= {*current.finalizers}:
                raise errors.Refused("no new finalizers can be added", status=422)
            return self._put_queue(replace(current, finalizers=new_finalizers))

        return await self._call("set_finalizers", commit)

    async def write_queue_status(
        self, queue: QueueObject, status: Mapping[str, Any]
    ) -> QueueObject:
        """See ``Api.write_queue_status``; a patch that changes nothing makes no new version."""

        def commit() -> QueueObject:
            patch = json.loads(json.dumps(encode_status(queue, status)))
            current, new_status = self._queue(queue, patch["metadata"]), patch["status"]
            merged, declared = _merged(current.status, new_status), current.queue
            if "drainingSince" in new_status:
                merged.pop("drainingSince", None)
                since = new_status["drainingSince"]
                since = None if since is None else datetime.fromisoformat(since).timestamp()
                declared = replace(declared, draining_since=since)
            if self.has_old_crds:
                merged.pop("queuesSince", None)
            elif "queuesSince" in new_status:
                since = datetime.fromisoformat(merged.pop("queuesSince")).timestamp()
                declared = replace(declared, queues_since=since)
            if "pastUse" in new_status:
                merged.pop("pastUse", None)
                read = wire.Queue.model_validate(
                    {"metadata": {"name": "q", "uid": "q"}, "status": new_status}
                )
                declared = replace(declared, past_use=decode_queue(read).queue.past_use)
            changed = replace(current, queue=declared, status=merged)
            return current if changed == current else self._put_queue(changed)

        return await self._call("write_queue_status", commit)

    async def make_claim(
        self, member: Member, name: str, requests: Sequence[DeviceRequest]
    ) -> DeviceClaim:
        """See ``Api.make_claim``; what is stored is what was encoded."""

        def commit() -> DeviceClaim:
            body = json.loads(json.dumps(claims.encode_extended_claim(member, name, requests)))
            if ClaimName(member.key.namespace, name) in self.devices.raw:
                raise errors.Conflict("it exists already", status=409)
            self._show(self.devices.put(body, self._next()))
            return self.devices.claim(name)

        return await self._call("make_claim", commit)

    async def name_claim(
        self, member: Member, claim: str, mappings: Sequence[RequestMapping]
    ) -> Member:
        """See ``Api.name_claim``."""

        def commit() -> Member:
            pod = self._pod(member.key)
            patch = claims.encode_extended_status(member, claim, mappings)
            _demand(patch["metadata"], pod)
            if self.drops_claim_names:
                return pod
            self.mapped[pod.uid] = patch["status"]["extendedResourceClaimStatus"]
            resources = tuple(sorted({mapping.resource for mapping in mappings}))
            self._put_pod(replace(pod, extended_claim=claim, extended_resources=resources))
            return self.pods[pod.key]

        return await self._call("name_claim", commit, str(member.key))

    async def protect_claim(self, claim: DeviceClaim, *, protected: bool) -> DeviceClaim:
        """See ``Api.protect_claim``."""
        patch = claims.encode_finalizers(claim, protected=protected)
        return await self._call("protect_claim", lambda: self._patch_claim(claim, patch))

    async def allocate(self, claim: DeviceClaim, write: claims.ClaimWrite) -> DeviceClaim:
        """See ``Api.allocate``."""
        patch = claims.encode_allocation(claim, write)
        return await self._call("allocate", lambda: self._patch_claim(claim, patch))

    async def leave_claim(self, claim: DeviceClaim, consumers: Sequence[Consumer]) -> DeviceClaim:
        """See ``Api.leave_claim``."""
        patch = claims.encode_consumers(claim, consumers)
        return await self._call("leave_claim", lambda: self._patch_claim(claim, patch))

    def _patch_claim(self, claim: DeviceClaim, patch: Mapping[str, Any]) -> DeviceClaim:
        shown, broken = self.devices.patch(claim, patch, self._next())
        self.broken += broken
        self._show(shown)
        value = shown[1].value
        assert value is None or isinstance(value, DeviceClaim)
        return claim if value is None else value

    async def say(self, event: encode.Event) -> None:
        """See ``Api.say``."""

        def commit() -> None:
            body = encode.event(event)
            name = f"{event.regarding.namespace}/{body['metadata']['name']}"
            if name in self.events:
                raise errors.Conflict("it exists already", status=409)
            self.events[name] = body

        await self._call("say", commit)

    # What a World is shown

    def list_into(self, state: ClusterState) -> None:
        """Let a World list everything again, as a watch that expired makes it do."""
        for name in STREAMS:
            if name in self.unanswered:
                continue
            store = store_of(state, name)
            store.replace(ObjectList(self._listed(name)), self.version, store.began())

    def _listed(self, stream: str) -> Sequence[Item[Any]]:
        pods: list[Item[Any]] = [Item(pod.uid, int(pod.version), pod) for pod in self.pods.values()]
        lists: Mapping[str, Callable[[], Sequence[Item[Any]]]] = {
            "nodes": lambda: [*self.nodes.values()],
            "classes": lambda: [*self.classes.values()],
            "namespaces": lambda: [*self.namespaces.values()],
            "pending": lambda: [item for item in pods if _stream_of(item.value) == "pending"],
            "pinned": lambda: [item for item in pods if _stream_of(item.value) == "pinned"],
            "bound": lambda: [
                *(item for item in pods if _stream_of(item.value) == "bound"),
                *self.others.values(),
            ],
            "groups": lambda: [Item(g.uid, int(g.version), g) for g in self.groups.values()],
            "queues": lambda: [Item(q.queue.uid, int(q.version), q) for q in self.queues.values()],
            "topologies": lambda: [*self.topologies.values()],
            "kueue_topologies": list,
            "kai_topologies": list,
            "budgets": lambda: [*self.budgets.values()],
            "jobs": lambda: [*self.jobs.values()],
            "reservations": lambda: [
                Item(Uid(str(r.self_uid)), int(r.version), r) for r in self.reservations.values()
            ],
        }
        if stream in self.devices.items:
            return [*self.devices.items[stream].values()]
        if stream.startswith("storage."):
            return [*self.storage.get(stream, {}).values()]
        return lists.get(stream, list)()

    # Behind it all

    async def _call(self, name: str, commit: Callable[[], T], subject: str = "") -> T:
        await asyncio.sleep(0)
        if self.is_dead:
            raise Crash
        self.calls.append(name)
        number = len(self.calls)
        self.subjects[number] = subject
        await self.pause(number, False)  # noqa: FBT003
        fault = self.fault(number, name)
        if fault is not None and not fault.is_committed:
            self._raise(fault)
        self.before(name)
        answer = commit()
        if fault is not None:
            self._raise(fault)
        await self.pause(number, True)  # noqa: FBT003
        await asyncio.sleep(0)
        if self.is_dead:
            raise Crash
        return answer

    def _raise(self, fault: Fault) -> None:
        self.is_dead = isinstance(fault.what, Crash)
        raise fault.what

    def _judge(self, pod: Member, node: NodeName) -> None:
        """Every binding fits the node as it is, and a group's has a Reservation that names it."""
        if pod.group and not any(
            entry.uid == pod.uid and entry.node == node
            for reservation in self.reservations.values()
            for entry in reservation.entries
        ):
            self.broken.append(f"{pod.key} is bound without a Reservation")
        for name in pod.claims:
            claim = self.stored("claims", ClaimKey(pod.key.namespace, name))
            if not claim.is_bound:
                self.broken.append(f"{pod.key} is bound before its claim {name}")
                continue
            volume = self.stored("volumes", claim.volume)
            at = self.nodes.get(node)
            if at is not None and not is_reached(volume, dict(at.value.labels)):
                self.broken.append(f"{pod.key} cannot reach {volume.name} from {node}")
        item = self.nodes.get(node)
        if item is not None:
            used = Resources.total([*self._used(node), self._counted(pod)])
            if not used.fits(item.value.allocatable):
                self.broken.append(f"{pod.key} does not fit {node}: {used}")

    def _counted(self, pod: Member) -> Resources:
        """What a kubelet counts of a pod that it admits: not what its claim stands for."""
        mappings = self.mapped.get(pod.uid, {}).get("requestMappings", ())
        return without(pod.shape.requests, {mapping["resourceName"] for mapping in mappings})

    def _used(self, node: NodeName) -> Iterable[Resources]:
        for pod in self.pods.values():
            if pod.node == node and not pod.is_over:
                yield self._counted(pod)
        for item in self.others.values():
            if item.value.node == node:
                yield item.value.requests

    def _pod(self, key: PodKey) -> Member:
        if key not in self.pods:
            raise errors.Gone(f"there is no pod {key}", status=404)
        return self.pods[key]

    def _put_pod(self, member: Member) -> None:
        before = self.pods.get(member.key)
        fresh = replace(member, version=str(self._next()))
        self.pods[member.key] = fresh
        item: Item[Any] = Item(fresh.uid, int(fresh.version), fresh)
        stream = _stream_of(fresh)
        if before is not None and (left := _stream_of(before)) != stream:
            self._tell(left, lambda state: store_of(state, left).drop(fresh.uid))
        self._tell(stream, lambda state: store_of(state, stream).put(item))

    def _put_group(self, group: GangObject) -> None:
        fresh = replace(group, version=str(self._next()))
        self.groups[group.key] = fresh
        item = Item(fresh.uid, int(fresh.version), fresh)
        self._tell("groups", lambda state: state.groups.put(item))

    def _keep_reservation(self, key: tuple[str, Uid], reservation: Reservation) -> None:
        self.reservations[key] = reservation
        item = Item(Uid(str(reservation.self_uid)), int(reservation.version), reservation)
        self._tell("reservations", lambda state: state.reservations.store.put(item))

    def _drop_reservation(self, key: tuple[str, Uid]) -> None:
        gone = Uid(str(self.reservations.pop(key).self_uid))
        self._tell("reservations", lambda state: state.reservations.store.drop(gone))

    def _tell(self, stream: str, tell: Callable[[ClusterState], None]) -> None:
        self.log.append(_Told(stream, tell))

    def _next(self) -> int:
        self.version += 1
        return self.version

    def _uid(self) -> Uid:
        return Uid(f"uid-{self._next()}")


def _storage_name(value: Any) -> Any:
    """What identifies an object of storage among those of its kind."""
    match value:
        case Claim():
            return value.key
        case NodeDrivers():
            return value.node
        case Attachment() | Capacity():
            return value
        case _:
            return value.name


def _store(state: ClusterState, stream: str) -> Any:
    return store_of(state, stream)


def _stream_of(pod: Member) -> str:
    """The stream that shows a pod."""
    if pod.node is not None and not pod.is_handed_over:
        return "bound"
    return "pinned" if pod.bound_by is BoundBy.KUBE_SCHEDULER else "pending"


def _claiming(pod: Member) -> Member:
    """The pod with the claim that its status names, if any."""
    if not pod.extended_claim:
        return pod
    return replace(pod, device_claims=(*pod.device_claims, pod_claim(pod.extended_claim)))


def _seen(assignment: Assignment) -> str:
    """The pod of a binding, as its author saw it."""
    return f"{assignment.pod} {assignment.uid} at {assignment.version}"


def _subject(reservation: Reservation) -> str:
    """A Reservation as its author saw it, or wants it."""
    places = ", ".join(f"{entry.pod.name} to {entry.node}" for entry in reservation.entries)
    return f"{reservation.gang} at {reservation.version or 'first'} of {reservation.term}: {places}"


def _put_budget(item: Item[DisruptionBudget], state: ClusterState) -> None:
    state.budgets.put(item)


def _ending(reservation: Reservation) -> set[Uid]:
    """The pods that a Reservation ends."""
    victims = reservation.victims or ()
    return {*reservation.evict, *(pod for victim in victims for pod in victim.pods)}


def _demand(preconditions: Mapping[str, Any], pod: Member) -> None:
    """Refuse a write to a pod that is no longer as its author saw it, as far as that is said."""
    is_same = preconditions.get("uid", pod.uid) == pod.uid
    if not is_same or preconditions.get("resourceVersion", pod.version) != pod.version:
        raise errors.Conflict(f"pod {pod.key} is another, or has changed", status=409)


def _merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7386: maps merge, null deletes, everything else replaces."""
    result = dict(old)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            inner = result.get(key)
            result[key] = _merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            result[key] = value
    return result


class Watch:
    """What one World has been told so far; a stream may lag behind the others."""

    def __init__(self, cluster: FakeCluster, state: ClusterState) -> None:
        self._cluster = cluster
        self._state = state
        self.relist()

    def relist(self) -> None:
        """Forget what was not told yet and list everything."""
        self._cluster.list_into(self._state)
        self._at = dict.fromkeys(STREAMS, len(self._cluster.log))

    def catch_up(self, *streams: str, events: int | None = None) -> None:
        """Tell what has happened, of these streams or of all; so many events of each at most."""
        for stream in streams or STREAMS:
            count = 0
            while self._at[stream] < len(self._cluster.log) and count != events:
                event = self._cluster.log[self._at[stream]]
                self._at[stream] += 1
                if event.stream == stream:
                    event.tell(self._state)
                    count += 1


class Life:
    """One process of the operator, from its first lists to its end."""

    def __init__(
        self,
        cluster: FakeCluster,
        clock: Clock,
        strategy: Strategy | None = None,
        identity: str = "tutti-0",
        rollout_limits: RolloutLimits = RolloutLimits(),  # noqa: B008 - a value, frozen
        *,
        is_declaring: bool = False,
        metrics: Metrics | None = None,
        preemption: Preemption = Preemption.OFF,
        usage_half_life: float = 0.0,
        in_flight: int = 64,
    ) -> None:
        cluster.is_dead = False
        self.cluster = cluster
        self.clock = clock
        self.is_woken = False
        self.is_deposed = False
        self.problems: list[errors.ApiError] = []
        self.late: tuple[str, ...] = ()  # streams that show nothing after a turn
        self.term = cluster.take_lease(identity)
        self.follows_resignation = False  # until a test says so
        self.leads = True  # as it knows without a call, until a test says otherwise
        self._begun = False
        self.state = ClusterState(
            self._wake,
            is_declaring=is_declaring,
            reads_task_groups=is_declaring,
            reads_devices=True,
            preempts=True,
        )
        self.watch = Watch(cluster, self.state)
        self.cycle = Cycle(
            self.state,
            cluster,
            scheduler="tutti",
            strategy=strategy or BestFit(),
            fallback=BestFit(),
            budget=AMPLE_BUDGET,
            clock=clock,
            policy=Policy(preemption=preemption),
            limits=rollout_limits,
            metrics=metrics,
            predecessor_resigned=lambda: self.follows_resignation,
            leads=lambda _term: self.leads,
            usage_half_life=usage_half_life,
            in_flight=in_flight,
            declare_seconds=3600.0,  # so that a slow machine changes no test
        )

    def _wake(self) -> None:
        self.is_woken = True

    async def begin(self) -> None:
        """Take over, unless that is done."""
        if not self._begun:
            await self.cycle.begin(self.term)
            self._begun = True

    async def turn(self) -> float | None:
        """One cycle, with what it may raise noted, then the news of it."""
        next_in: float | None = 1.0
        try:
            await self.begin()
            next_in = await self.cycle.run_once(self.term)
        except errors.ApiError as problem:
            self.problems.append(problem)
        except Deposed:
            self.is_deposed = True
        self.cluster.work()
        self.watch.catch_up(*(stream for stream in STREAMS if stream not in self.late))
        return next_in

    async def settle(self, *, most: int = 40) -> None:
        """Cycle until nothing is called, nothing changes and nothing is due."""
        for _ in range(most):
            if self.is_deposed:
                return
            calls_before, self.is_woken = len(self.cluster.calls), False
            next_in = await self.turn()
            if len(self.cluster.calls) == calls_before and not self.is_woken:
                if next_in is None:
                    return
                self.clock.now += next_in
        raise AssertionError(f"not settled after {most} cycles: {self.cluster.calls[-20:]}")
