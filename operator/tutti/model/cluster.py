"""The Snapshot that decisions are made from: nodes, gangs, standing Reservations.

A Snapshot is immutable and complete: it has everything that a decision uses, and nothing else.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import NamedTuple, Self

from . import ports
from .applications import ApplicationPod
from .devices.claims import NO_DEVICES, ClaimAllocation, DeviceRoom, PodClaim
from .devices.extended import ContainerRequests
from .inter_pod import (
    AffinityTerm,
    DomainRule,
    Labels,
    Requirement,
    SegmentRule,
    Topology,
    WeightedAffinityTerm,
)
from .keys import POD, POD_GROUP, ApiKind, GangKey, NodeName, PodKey, Uid
from .owners import Job, JobKey, Owner
from .queues import Queue, QueueRecord
from .resources import NOTHING, Resources
from .shapes import Shape, Taint, Template
from .volumes import NO_STORAGE, Storage, VolumeChoice

# The pod of an executor usually exists within seconds; ten minutes allow for a slow image pull.
ABSENT_SECONDS = 600.0

GRACE_SECONDS = 30  # of a pod that does not say how long it may take to end
STUCK_SECONDS = 60.0  # so long after its grace period Tutti stops waiting for a terminating pod

GATE = "tutti.dev/gang"  # the scheduling gate that Tutti removes from pods that it hands over


class BoundBy(StrEnum):
    """The scheduler that binds the members of a gang; Tutti chooses the nodes either way."""

    TUTTI = "Tutti"
    KUBE_SCHEDULER = "KubeScheduler"


class Phase(StrEnum):
    """The phase of a pod, as in the API."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ScheduledCondition:
    """The PodScheduled condition that a pod has now; read only to avoid writing it twice."""

    reason: str = ""
    message: str = ""


class MadeFor(NamedTuple):
    """The object whose controller created a pod."""

    kind: ApiKind
    uid: Uid


@dataclass(frozen=True, slots=True)
class Member:
    """One pod that names our scheduler, or that we hand over to kube-scheduler."""

    key: PodKey
    uid: Uid
    version: str  # metadata.resourceVersion, the precondition of its binding
    shape: Shape
    created: float  # seconds since the epoch
    group: str = ""  # the name of the object that declares its gang; empty for a single pod
    role: str = ""
    priority: int = 0
    node: NodeName | None = None
    phase: Phase = Phase.PENDING
    terminating: bool = False
    # Its scheduling gates, sorted; other controllers remove all but ``GATE``.
    gates: tuple[str, ...] = ()
    unsupported_fields: tuple[str, ...] = ()  # fields that Tutti does not support yet
    owner: Owner | None = None
    scheduled_condition: ScheduledCondition = ScheduledCondition()
    is_driver: bool = False  # a Spark driver: no controller creates it again
    failure: str = ""  # why it failed, in one word; empty if its own containers failed
    labels: Labels = ()  # for the selectors of rules between pods
    application: ApplicationPod | None = None  # for pods of Spark that name no PodGroup
    # Why the size of its gang is not known yet, in words; it waits until the size is known.
    size_unknown_because: str = ""
    claims: tuple[str, ...] = ()  # names of the claims of its volumes, in its namespace; sorted
    own_claims: tuple[str, ...] = ()  # of its ephemeral volumes, which must be its own; sorted
    volume_problems: tuple[str, ...] = ()  # problems of its claims, in words; it waits for them
    # Claims that are not bound and wait for the pod to get a node, or for their volume; sorted.
    unbound_claims: tuple[str, ...] = ()
    ended: float | None = None  # when it succeeded, in seconds since the epoch; None if unknown
    group_kind: ApiKind = POD_GROUP  # of the object that declares its gang
    other_gangs: tuple[GangKey, ...] = ()  # further gangs that it names; it is in none of them
    may_preempt: bool = True  # False if its preemptionPolicy is Never
    grace_seconds: int = GRACE_SECONDS  # that it may take to end
    run: int = 0  # the run of its gang that it was created for; pods of older runs do not count
    made_for: MadeFor | None = None  # the object whose controller created it, if known
    bound_at: float | None = None  # by the API server's clock; None if it has no node, or unknown
    unread_gang: GangKey | None = None  # a gang that it names, of a kind that is turned off
    device_claims: tuple[PodClaim, ...] = ()  # its claims for devices; sorted
    device_problems: tuple[str, ...] = ()  # problems of these, in words; it waits for them
    # Of extended resources, by position. They never change, so they need not be compared.
    extended_requests: tuple[ContainerRequests, ...] = field(default=(), compare=False)
    extended_claim: str = ""  # the claim that stands for some of these, by the status of the pod
    extended_resources: tuple[str, ...] = ()  # those that it stands for, by the same status; sorted
    bound_by: BoundBy = BoundBy.TUTTI
    # Whether it is pinned to ``node`` and ungated, and kube-scheduler has not bound it yet.
    is_handed_over: bool = False
    handed_over_at: float | None = None  # in seconds since the epoch; None if unknown
    # By when a terminating pod should be gone, in seconds since the epoch; None if unknown.
    gone_by: float | None = field(default=None, compare=False)
    # That hold a pod that terminates; of other pods none are read.
    finalizers: tuple[str, ...] = field(default=(), compare=False)
    # Whether its containers have ended, so that it holds no room any more.
    is_over: bool = field(init=False, repr=False, compare=False)
    # Whether it counts for its gang: it has succeeded, or is bound and not terminating.
    counts_as_bound: bool = field(init=False, repr=False, compare=False)
    # Whether the pod by itself could be bound, or handed over, now.
    is_waiting: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute what plans ask of each member many times."""
        is_over = self.phase is Phase.SUCCEEDED or self.phase is Phase.FAILED
        object.__setattr__(self, "is_over", is_over)
        is_bound = self.phase is Phase.SUCCEEDED or (
            self.node is not None and not (self.terminating or is_over)
        )
        object.__setattr__(self, "counts_as_bound", is_bound)
        own_gates = (GATE,) if self.bound_by is BoundBy.KUBE_SCHEDULER else ()
        is_waiting = self.may_get_a_node and self.gates == own_gates
        object.__setattr__(self, "is_waiting", is_waiting)

    @property
    def gang(self) -> GangKey:
        """The gang that the pod belongs to: its group, or the pod alone."""
        if self.group:
            return GangKey(self.key.namespace, self.group, self.group_kind)
        return GangKey(self.key.namespace, self.key.name, POD)

    @property
    def controller_uid(self) -> Uid:
        """The uid of its controller, or its own uid if it has no controller."""
        return self.uid if self.owner is None or self.owner.uid is None else self.owner.uid

    @property
    def foreign_gates(self) -> tuple[str, ...]:
        """The scheduling gates that other controllers remove (kube-scheduler's SchedulingGates)."""
        if self.bound_by is BoundBy.KUBE_SCHEDULER:
            return tuple(gate for gate in self.gates if gate != GATE)
        return self.gates

    @property
    def gated(self) -> bool:
        """Whether other controllers hold it back by scheduling gates."""
        return bool(self.foreign_gates)

    @property
    def may_get_a_node(self) -> bool:
        """Whether it could be bound, now or once its scheduling gates are removed."""
        return self.node is None and not (self.terminating or self.is_over)

    def is_stuck(self, now: float) -> bool:
        """Whether it terminates, and should have been gone for ``STUCK_SECONDS``."""
        return self.terminating and self.gone_by is not None and now >= self.gone_by + STUCK_SECONDS

    def is_leaving(self, now: float) -> bool:
        """Whether it terminates, and its end is to be waited for."""
        return self.terminating and not (self.is_over or self.is_stuck(now))

    @property
    def lacks_claims(self) -> bool:
        """Whether it waits for its claims: for volumes, or for devices."""
        return bool(self.volume_problems or self.device_problems)


@dataclass(frozen=True, slots=True)
class ForeignPod:
    """A pod of another scheduler, or one pinned to a node: it uses room, and rules may count it."""

    uid: Uid
    node: NodeName
    requests: Resources
    namespace: str = ""
    labels: Labels = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()  # required; it also binds pods that come later
    terminating: bool = False
    # Terms by which other pods prefer or avoid the domain of this pod; sorted.
    scored_terms: tuple[WeightedAffinityTerm, ...] = ()
    claims: tuple[str, ...] = ()  # names of the claims of its volumes, in its namespace; sorted


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod that has a node, with the fields that rules between pods use."""

    uid: Uid
    node: NodeName
    namespace: str
    labels: Labels = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()  # its required anti-affinity
    terminating: bool = False
    # Terms by which other pods prefer or avoid the domain of this pod; sorted.
    scored_terms: tuple[WeightedAffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, with the fields that namespace selectors use."""

    name: str
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node, and the room that pods use on it: pods that we observed or bound."""

    name: NodeName
    allocatable: Resources
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    used: Resources = NOTHING

    def offers(self, name: str) -> int:
        """How much the empty node has of a resource; every node has every host port."""
        return ports.offered(name) or self.allocatable[name]


class OnPartial(StrEnum):
    """What Tutti does with a gang that lost members and has no room to replace them."""

    COMPLETE = "Complete"
    RELEASE = "Release"


class OnTimeout(StrEnum):
    """What Tutti does with a gang that has not started in time."""

    KEEP_WAITING = "KeepWaiting"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class Role:
    """A named part of a gang, and how many members of it the gang needs to start.

    At most ``max_member`` of them have a node at a time; None means no maximum. Room is reserved
    for absent members only if the role has a ``template`` that can be read.
    """

    name: str
    min_member: int
    max_member: int | None = None
    template: Template | None = None
    unreadable: tuple[str, ...] = ()  # problems of its template, which is then None; sorted


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A name for a priority."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget, and how many evictions of its pods the API server takes by now."""

    namespace: str
    name: str
    selector: tuple[Requirement, ...] | None  # of its pods, by their labels; None for none
    allowed: int  # evictions that the API server takes now
    most: int  # evictions that it would take if all of its pods were healthy

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GangDeclaration:
    """How an API object declares a gang: all fields that users may set, without the gang's pods.

    A PodGroup declares a gang. A pod that is in no other gang declares a gang of one. What earlier
    ends lost is of the status of a PodGroup, which only Tutti writes.
    """

    key: GangKey
    uid: Uid
    min_member: int
    roles: tuple[Role, ...] = ()
    created: float = 0.0  # seconds since the epoch
    generation: int = 0
    terminating: bool = False
    on_partial: OnPartial = OnPartial.COMPLETE
    priority_class: str = ""  # the PriorityClass that it names, if any
    timeout_seconds: float | None = None  # within which it should start
    on_timeout: OnTimeout = OnTimeout.KEEP_WAITING
    absent_seconds: float = ABSENT_SECONDS  # how long room is held for absent members
    is_suspended: bool = False  # users let it wait; no effect once it has started
    queue: str = ""  # the queue that it names, if any
    owner_pod: str = ""  # the pod that owns the PodGroup and creates its members, if any
    priority_value: int | None = None  # its priority as a number, which overrides any class
    unsupported_fields: tuple[str, ...] = ()  # its fields that Tutti does not support yet
    needs_equal_members: bool = False  # all must have its priority and one preemption policy
    # Its absent members are of later stages: they come once all present members have succeeded.
    has_later_stages: bool = False
    other_stages: tuple[str, ...] = ()  # the roles of stages whose pods do not start now, sorted
    is_one_by_one: bool = False  # its pods start like pods that name no gang
    same_domain: tuple[DomainRule, ...] = ()  # sorted, without repetition
    preferred_domains: tuple[DomainRule, ...] = ()  # the same, of levels that are only preferred
    segments: tuple[SegmentRule, ...] = ()  # sorted; no two cover one role
    is_protected: bool = False  # never ends for another gang; while there are Queues, never borrows
    bound_by: BoundBy = BoundBy.TUTTI
    # The work that ends for other gangs have lost, as milliseconds of the whole cluster.
    lost_milliseconds: int = 0

    @property
    def required_levels(self) -> tuple[DomainRule, ...]:
        """The levels without which it does not start: of domains, and of segments."""
        if not self.segments:
            return self.same_domain
        return (*self.same_domain, *(segments.of for segments in self.segments))


@dataclass(frozen=True, slots=True)
class Gang(GangDeclaration):
    """Pods that start together or not at all: their declaration, and the pods themselves."""

    members: tuple[Member, ...] = ()  # by name; without pods that succeeded in earlier runs
    finished: tuple[str, ...] = ()  # the roles of members that succeeded and were deleted
    class_value: int | None = None  # of its PriorityClass; None if there is no such class
    # The priority of its class, or else the highest priority among its pods.
    priority: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the priority once, because plans compare it many times."""
        priority = self.class_value
        if priority is None:
            priority = max([member.priority for member in self.members], default=0)
        object.__setattr__(self, "priority", priority)

    @classmethod
    def of(
        cls,
        declaration: GangDeclaration,
        members: tuple[Member, ...],
        class_value: int | None = None,
    ) -> Self:
        """The gang of a declaration with these pods, which are sorted by name."""
        declared = {name: getattr(declaration, name) for name in _DECLARED}
        return cls(**declared, members=members, class_value=class_value)

    @property
    def is_single(self) -> bool:
        """Whether this is one pod that names no group, whose binding is the commit."""
        return self.key.kind == POD

    @property
    def is_idle(self) -> bool:
        """Whether no member waits or runs, so that there is nothing to decide."""
        return all(member.is_over for member in self.members)

    @property
    def is_finished(self) -> bool:
        """Whether the Spark driver that creates its members succeeded: it needs no more members."""
        return bool(self.owner_pod) and any(
            member.is_driver
            and member.phase is Phase.SUCCEEDED
            and member.key.name == self.owner_pod
            for member in self.members
        )

    def accepts(self, member: Member) -> bool:
        """Whether a member counts for this gang: if there are roles, it must name one of them."""
        return not self.roles or any(member.role == role.name for role in self.roles)


_DECLARED = tuple(declared.name for declared in fields(GangDeclaration))


@dataclass(frozen=True, slots=True)
class PodReservation:
    """One pod of a Reservation, and its node.

    The uid identifies the pod. Its name is for users, and is empty if it was read from a
    Reservation that was too large for names.
    """

    pod: PodKey
    uid: Uid
    node: NodeName
    claims: tuple[ClaimAllocation, ...] = ()  # the devices for each of its claims


@dataclass(frozen=True, slots=True, order=True)
class SlotReservation:
    """Room on a node for ``count`` members of a role that do not exist yet."""

    node: NodeName
    role: str
    count: int


@dataclass(frozen=True, slots=True)
class ReservedVictim:
    """Pods of a gang that are evicted so that the gang of a Reservation can start."""

    gang: GangKey
    uid: Uid
    pods: tuple[Uid, ...]  # sorted
    is_whole: bool  # False: these are extra members, and the gang runs on
    lost_milliseconds: int = 0  # the work that is lost, as milliseconds of the whole cluster


@dataclass(frozen=True, slots=True)
class ClaimGrounds:
    """Why a claim may end its victims, and what their end costs.

    Work is in milliseconds of the whole cluster. No other choice of victims costs less than
    ``bound_milliseconds``.
    """

    by_guarantee: bool  # False: by its priority alone
    cost_milliseconds: int  # the work that is lost, and what earlier ends of the same gangs lost
    bound_milliseconds: int
    # What the queue of the gang guarantees of the resources that it requests: quantities by name.
    guarantee: tuple[tuple[str, str], ...] = ()

    @property
    def is_proved(self) -> bool:
        """Whether it is proved that no other choice of victims costs less."""
        return self.bound_milliseconds >= self.cost_milliseconds


@dataclass(frozen=True, slots=True)
class Reservation:
    """The whole placement of a gang, written down before its first pod is bound.

    kube-scheduler's Reserve is in memory. A Reservation is an API object, and the commit point.
    """

    gang: GangKey
    uid: Uid  # of the gang; also the name of the Reservation object
    generation: int
    scheduler: str  # the scheduler name of the Tutti that owns it
    term: str  # the leader term that signed it
    reserved_at: float  # seconds since the epoch
    entries: tuple[PodReservation, ...]
    slots: tuple[SlotReservation, ...] = ()
    evict: tuple[Uid, ...] = ()  # members to evict so that the gang can start again whole
    version: str = ""  # metadata.resourceVersion; empty until the server has answered
    self_uid: Uid | None = None  # metadata.uid of the Reservation object itself
    record: QueueRecord | None = None  # of the gang's start; None if there were no Queues then
    # Pods that are charged to the queue of the record, whatever their labels say, in the order in
    # which they joined the gang. Pods of ``entries`` that are not named here joined last, together.
    # Some may be gone.
    charged: tuple[Uid, ...] = ()
    # By pod, sorted: the role with which it joined the gang, whatever its labels say now. Empty if
    # the record has no roles.
    roles: tuple[tuple[Uid, str], ...] = ()
    # For a claim: the pods that end before the first pod is bound, sorted by gang. None if the room
    # was free from the start.
    victims: tuple[ReservedVictim, ...] | None = None
    grounds: ClaimGrounds | None = None  # of a claim; None if an older version made it
    # The volumes of claims that are bound before the first pod; sorted by claim.
    volumes: tuple[VolumeChoice, ...] = ()

    @property
    def pods(self) -> Iterator[Uid]:
        """The pods that it holds room for, and the pods charged to the queue of its record."""
        yield from self.charged
        yield from (entry.uid for entry in self.entries)

    @property
    def evictable(self) -> Iterator[Uid]:
        """The pods for which it may have sent evictions."""
        yield from self.evict
        for victim in self.victims or ():
            yield from victim.pods

    @property
    def is_spent(self) -> bool:
        """Whether it holds no room any more, and is kept only for its record of the start."""
        return self.record is not None and not (self.entries or self.slots or self.evict)


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """A request that the API server refused: its words, and when Tutti may try again."""

    sentence: str
    until: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a decision may use, at one moment."""

    taken_at: float  # seconds since the epoch
    nodes: tuple[Node, ...] = ()  # sorted by name
    gangs: tuple[Gang, ...] = ()  # sorted by key
    reservations: tuple[Reservation, ...] = ()  # standing ones, sorted by gang
    # Pods whose PodGroup does not exist or was created again, and pods of older runs that still
    # have a node.
    strays: tuple[Member, ...] = field(default=())
    # All pods that have a node and are not over, ours included, sorted by uid. Empty while no rule
    # between pods is in force. If no pod of ours has rules or preferences about pods, only foreign
    # pods with anti-affinity or preferences are listed.
    placed_pods: tuple[PlacedPod, ...] = ()
    # Sorted by name. Empty while no rule between pods is in force and there are no Queues.
    namespaces: tuple[Namespace, ...] = ()
    storage: Storage = NO_STORAGE  # the claims that members name, with their volumes and classes
    # Gangs whose Reservation is gone although members may still be created for its slots.
    lost_reservations: frozenset[Uid] = frozenset()
    # By gang or pod: requests that the API server refused twice in a row and has not granted since.
    api_refusals: Mapping[Uid, ApiRefusal] = field(default_factory=dict)
    # Gangs about which there is nothing to decide, except for their Reservation. Planning skips
    # them if they have none; it would come to the same answer without this field.
    settled: frozenset[Uid] = field(default=frozenset(), compare=False)
    queues: tuple[Queue, ...] = ()  # sorted by name
    # Reservations that hold no room and keep the record of a start, sorted by gang.
    start_records: tuple[Reservation, ...] = ()
    topologies: tuple[Topology, ...] = ()  # sorted by ``order``
    # Gangs that no plan ends for another gang, because their eviction was refused recently.
    protected: frozenset[Uid] = frozenset()
    # Sorted by namespace and name; none are read while Tutti ends no gang for another.
    budgets: tuple[DisruptionBudget, ...] = ()
    # Of members that wait in gangs; None while Tutti ends no gang for another.
    jobs: Mapping[JobKey, Job] | None = None
    devices: DeviceRoom = NO_DEVICES  # and the claims for them

    @property
    def pods(self) -> Iterator[Member]:
        """The members of all gangs, and the strays."""
        for gang in self.gangs:
            yield from gang.members
        yield from self.strays

    @property
    def allocatable(self) -> Resources:
        """What all nodes offer together."""
        # Nodes of one kind share a vector, and comparing identities is cheaper than adding up.
        vectors = [node.allocatable for node in self.nodes]
        by_id = {id(vector): vector for vector in vectors}
        counts = Counter(map(id, vectors))
        return Resources.total(by_id[key].scaled(n) for key, n in counts.items())

    @property
    def being_ended(self) -> frozenset[GangKey]:
        """The gangs with pods that still hold room and will be evicted for standing claims."""
        pods = {
            pod
            for reservation in self.reservations
            for victim in reservation.victims or ()
            for pod in victim.pods
        }
        if not pods:
            return frozenset()
        return frozenset(
            gang.key
            for gang in self.gangs
            for member in gang.members
            if member.uid in pods and member.node is not None and not member.is_over
        )

    @property
    def recorded(self) -> Iterator[tuple[Reservation, QueueRecord]]:
        """The Reservations that have the record of a start, each with its record."""
        for reservation in (*self.reservations, *self.start_records):
            if reservation.record is not None:
                yield reservation, reservation.record

    @property
    def records(self) -> Mapping[Uid, QueueRecord]:
        """The records of the starts of gangs, by the uid of the gang.

        A gang without a record gets the latest record of an earlier gang with its key. The pods of
        that gang may still run, and are now members of this one.
        """
        own: dict[Uid, QueueRecord] = {}
        earlier: dict[GangKey, tuple[float, Uid]] = {}
        for reservation, record in self.recorded:
            own[reservation.uid] = record
            start = record.started, reservation.uid
            earlier[reservation.gang] = max(start, earlier.get(reservation.gang, start))
        if not own:
            return own
        inherited = {
            gang.uid: own[earlier[gang.key][1]] for gang in self.gangs if gang.key in earlier
        }
        return {**inherited, **own}
