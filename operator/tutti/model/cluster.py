"""The picture that decisions are made from: nodes, gangs, standing Reservations.

A Snapshot is immutable and complete: whatever a decision uses is in it, and nothing else is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Self

from . import ports
from .inter_pod import (
    AffinityTerm,
    DomainRule,
    Labels,
    Requirement,
    Topology,
    WeightedAffinityTerm,
)
from .keys import POD, POD_GROUP, ApiKind, GangKey, NodeName, PodKey, Uid
from .owners import Owner
from .queues import Queue, QueueRecord
from .resources import NOTHING, Resources
from .shapes import Shape, Taint, Template
from .spark import SparkPod
from .volumes import NO_STORAGE, Storage

ABSENT_SECONDS = 600.0  # an executor's pod is there within seconds; ten minutes forgive a slow pull

STUCK_SECONDS = 60.0  # after its grace period a pod that still terminates is not waited for


class Phase(StrEnum):
    """A pod's phase, as the API says it."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ScheduledCondition:
    """The PodScheduled condition a pod carries now; read only to avoid writing it twice."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One pod that names our scheduler."""

    key: PodKey
    uid: Uid
    version: str  # metadata.resourceVersion, the precondition of its binding
    shape: Shape
    created: float  # seconds since the epoch
    group: str = ""  # the name of what declares its gang; empty for a gang of one
    role: str = ""
    priority: int = 0
    node: NodeName | None = None
    phase: Phase = Phase.PENDING
    terminating: bool = False
    gates: tuple[str, ...] = ()  # scheduling gates, which others remove; sorted
    unsupported_fields: tuple[str, ...] = ()  # fields whose rules we do not know yet
    owner: Owner | None = None
    scheduled_condition: ScheduledCondition = ScheduledCondition()
    is_driver: bool = False  # a Spark driver: nobody makes it anew
    failure: str = ""  # why it failed, in one word; empty where its own containers did
    labels: Labels = ()  # as rules between pods see them
    spark: SparkPod | None = None  # of a Spark application whose pods name no PodGroup
    size_unknown_because: str = (
        ""  # why nobody knows yet how large its gang is; it waits until then
    )
    claims: tuple[str, ...] = ()  # that its volumes name, in its own namespace; sorted
    volume_problems: tuple[
        str, ...
    ] = ()  # what is wrong with them, in words: until it is put right
    ended: float | None = None  # when it succeeded, in seconds since the epoch; None if unknown
    group_kind: ApiKind = POD_GROUP  # of what declares its gang
    other_gangs: tuple[GangKey, ...] = ()  # that it names as well, and is not in
    may_preempt: bool = True  # by its preemptionPolicy; Tutti preempts nothing
    run: int = 0  # of its gang, that it was made for; older pods are no members
    bound_at: float | None = None  # by the API server's clock; None if it has no node, or unknown
    unread_gang: GangKey | None = None  # that it names, of a kind that is turned off
    # When a pod that terminates should have gone; None if unknown.
    gone_by: float | None = field(default=None, compare=False)
    # That hold a pod that terminates; of other pods none are read.
    finalizers: tuple[str, ...] = field(default=(), compare=False)

    @property
    def gang(self) -> GangKey:
        """The gang that it belongs to: its group, or itself alone."""
        if self.group:
            return GangKey(self.key.namespace, self.group, self.group_kind)
        return GangKey(self.key.namespace, self.key.name, POD)

    @property
    def controller_uid(self) -> Uid:
        """The uid of its controller; its own where it has none."""
        return self.uid if self.owner is None or self.owner.uid is None else self.owner.uid

    @property
    def is_over(self) -> bool:
        """Whether its containers have ended: it holds no room any more."""
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)

    @property
    def counts_as_bound(self) -> bool:
        """Whether its gang may rely on it: bound and staying, or finished well."""
        if self.phase is Phase.SUCCEEDED:
            return True
        return self.node is not None and not self.terminating and self.phase is not Phase.FAILED

    @property
    def gated(self) -> bool:
        """Whether somebody else holds it back (kube-scheduler's SchedulingGates)."""
        return bool(self.gates)

    @property
    def may_get_a_node(self) -> bool:
        """Whether the API server might still take a binding of it, now or once it is ungated."""
        return self.node is None and not (self.terminating or self.is_over)

    def is_stuck(self, now: float) -> bool:
        """Whether it terminates, and should have gone long ago."""
        return self.terminating and self.gone_by is not None and now >= self.gone_by + STUCK_SECONDS

    @property
    def is_waiting(self) -> bool:
        """Whether it could be bound now, as far as the pod itself goes."""
        return self.may_get_a_node and not self.gates


@dataclass(frozen=True, slots=True)
class ForeignPod:
    """A pod of another scheduler, or one pinned to a node: it uses room, and rules may count it."""

    uid: Uid
    node: NodeName
    requests: Resources
    namespace: str = ""
    labels: Labels = ()
    anti_affinity: tuple[
        AffinityTerm, ...
    ] = ()  # its required anti-affinity, which binds whoever comes later
    terminating: bool = False
    scored_terms: tuple[
        WeightedAffinityTerm, ...
    ] = ()  # what draws others to it or keeps them off; sorted
    claims: tuple[str, ...] = ()  # that its volumes name, in its own namespace; sorted


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod that has a node, as the rules between pods see it."""

    uid: Uid
    node: NodeName
    namespace: str
    labels: Labels = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()  # its required anti-affinity
    terminating: bool = False
    scored_terms: tuple[
        WeightedAffinityTerm, ...
    ] = ()  # what draws others to it or keeps them off; sorted


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, as namespace selectors see it."""

    name: str
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node, and what is used of it by pods that we observed or bound."""

    name: NodeName
    allocatable: Resources
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    used: Resources = NOTHING

    def offers(self, name: str) -> int:
        """How much it has of a resource while nobody is there; every node has every host port."""
        return ports.offered(name) or self.allocatable[name]


class OnPartial(StrEnum):
    """What is done with a gang that lost members and finds no room to replace them."""

    COMPLETE = "Complete"
    RELEASE = "Release"


class OnTimeout(StrEnum):
    """What becomes of a gang that has not started in time."""

    KEEP_WAITING = "KeepWaiting"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class Role:
    """A named part of a gang, and how many members of it the gang cannot start without.

    At most ``max_member`` of them have a node at a time; None is as many as there are. Room is
    reserved for absent ones only where a ``template`` says for what, and can be read.
    """

    name: str
    min_member: int
    max_member: int | None = None
    template: Template | None = None
    unreadable: tuple[str, ...] = ()  # what is wrong with its template, which is None then; sorted


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
    """What an API object says of a gang: every field that users may set, and nothing of its pods.

    A PodGroup declares a gang, and a pod that is in no other declares itself alone.
    """

    key: GangKey
    uid: Uid
    min_member: int
    roles: tuple[Role, ...] = ()
    created: float = 0.0  # seconds since the epoch
    generation: int = 0
    terminating: bool = False
    on_partial: OnPartial = OnPartial.COMPLETE
    priority_class: str = ""  # that it names, if any
    timeout_seconds: float | None = None  # in which it should start
    on_timeout: OnTimeout = OnTimeout.KEEP_WAITING
    absent_seconds: float = ABSENT_SECONDS  # for which room is held for absent members
    is_suspended: bool = False  # users let it wait, unless it has started
    queue: str = ""  # that it names, if any
    owner_pod: str = ""  # the pod that owns the PodGroup and makes its members, if one does
    priority_value: int | None = None  # that it states as a number; then no class counts
    unsupported_fields: tuple[str, ...] = ()  # of it, whose rules we do not know yet
    needs_equal_members: bool = False  # of its own priority, and of one preemption policy
    is_one_by_one: bool = False  # its pods start as pods that name no gang
    same_domain: tuple[DomainRule, ...] = ()  # sorted, without repetition
    preferred_domains: tuple[DomainRule, ...] = ()  # the same, of levels that are only preferred
    is_protected: bool = False  # never ends for another gang; while there are Queues, never borrows


@dataclass(frozen=True, slots=True)
class Gang(GangDeclaration):
    """Pods that start together or not at all: what declares them, and the pods themselves."""

    members: tuple[Member, ...] = ()  # sorted by name; without those that succeeded in earlier runs
    finished: tuple[str, ...] = ()  # the roles of members that succeeded and were cleared away
    class_value: int | None = None  # of its PriorityClass; None where there is no such class

    @classmethod
    def of(
        cls,
        declaration: GangDeclaration,
        members: tuple[Member, ...],
        class_value: int | None = None,
    ) -> Self:
        """The gang that a declaration makes with these pods, sorted by name."""
        declared = {name: getattr(declaration, name) for name in _DECLARED}
        return cls(**declared, members=members, class_value=class_value)

    @property
    def is_single(self) -> bool:
        """Whether this is one pod that names no group: its binding is the commit."""
        return self.key.kind == POD

    @property
    def is_idle(self) -> bool:
        """Whether none of its members waits or runs: there is nothing to decide about it."""
        return all(member.is_over for member in self.members)

    @property
    def is_finished(self) -> bool:
        """Whether the Spark driver that makes its members has ended well: it needs no more."""
        return bool(self.owner_pod) and any(
            member.is_driver
            and member.phase is Phase.SUCCEEDED
            and member.key.name == self.owner_pod
            for member in self.members
        )

    def accepts(self, member: Member) -> bool:
        """Whether a member counts towards this gang: with roles, it must name one of them."""
        return not self.roles or any(member.role == role.name for role in self.roles)

    @property
    def priority(self) -> int:
        """That of its class, else the highest among its pods."""
        if self.class_value is not None:
            return self.class_value
        return max([member.priority for member in self.members], default=0)


_DECLARED = tuple(declared.name for declared in fields(GangDeclaration))


@dataclass(frozen=True, slots=True)
class PodReservation:
    """One pod of a Reservation, and the node that is held for it.

    The pod is known by its uid alone: its name is for people, and empty where a Reservation too
    large for names was read back.
    """

    pod: PodKey
    uid: Uid
    node: NodeName


@dataclass(frozen=True, slots=True, order=True)
class SlotReservation:
    """Room on a node for members that do not exist yet."""

    node: NodeName
    role: str
    count: int


@dataclass(frozen=True, slots=True)
class ReservedVictim:
    """Pods of a gang that end so that the gang of a Reservation starts."""

    gang: GangKey
    uid: Uid
    pods: tuple[Uid, ...]  # sorted
    is_whole: bool  # otherwise these are extras, and the gang runs on


@dataclass(frozen=True, slots=True)
class Reservation:
    """A gang's whole placement, written down before its first pod is bound.

    kube-scheduler's Reserve is in memory; this one is an API object, and the commit point.
    """

    gang: GangKey
    uid: Uid  # of the gang; the object's name
    generation: int
    scheduler: str  # the scheduler name whose Tutti owns it
    term: str
    reserved_at: float  # seconds since the epoch
    entries: tuple[PodReservation, ...]
    slots: tuple[SlotReservation, ...] = ()
    evict: tuple[Uid, ...] = ()  # members to be evicted, of a gang that is given up for now
    version: str = ""  # metadata.resourceVersion; empty until the server has answered
    self_uid: Uid | None = None  # metadata.uid of the Reservation object itself
    record: QueueRecord | None = None  # of the gang's start; None if there were no Queues then
    # The pods that have left ``entries`` because they are bound: they stay charged to the queue of
    # the record, whatever their labels say. Sorted; some may be gone.
    charged: tuple[Uid, ...] = ()
    # Of a claim: who ends before the first pod is bound, sorted by gang. None where the room was
    # free from the start.
    victims: tuple[ReservedVictim, ...] | None = None

    @property
    def pods(self) -> Iterator[Uid]:
        """The pods that it holds room for, and those charged to the queue of its record."""
        yield from (entry.uid for entry in self.entries)
        yield from self.charged

    @property
    def is_spent(self) -> bool:
        """Whether it holds nothing any more, and stays for the record of the start alone."""
        return self.record is not None and not (self.entries or self.slots or self.evict)


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """What the API server has refused, in its own words, and until when it is not asked again."""

    sentence: str
    until: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a decision may use, at one moment."""

    taken_at: float  # seconds since the epoch
    nodes: tuple[Node, ...] = ()  # sorted by name
    gangs: tuple[Gang, ...] = ()  # sorted by key
    reservations: tuple[Reservation, ...] = ()  # standing ones, sorted by gang
    # Pods whose PodGroup does not exist, and pods with a node that an older run has left.
    strays: tuple[Member, ...] = field(default=())
    # Everyone who has a node and is not over, by uid, ours included, and all namespaces, by name:
    # only while some rule between pods is in force, else nobody. While none of ours asks anything
    # of other pods, only foreign pods with anti-affinity or preferences are listed.
    placed_pods: tuple[PlacedPod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    storage: Storage = NO_STORAGE  # what the claims of members lead to
    # Gangs whose Reservation went although members may still come for the slots in it.
    lost_reservations: frozenset[Uid] = frozenset()
    # By gang or pod, what the API server refused twice in a row and has not granted since.
    api_refusals: Mapping[Uid, ApiRefusal] = field(default_factory=dict)
    # Gangs known to have nothing to decide but the fate of a Reservation: without one, planning
    # passes over them, and would do so anyway.
    settled: frozenset[Uid] = field(default=frozenset(), compare=False)
    queues: tuple[Queue, ...] = ()  # sorted by name; while there are any, namespaces are shown
    # Reservations that hold nothing any more and keep the record of a start, sorted by gang.
    start_records: tuple[Reservation, ...] = ()
    topologies: tuple[Topology, ...] = ()  # sorted by name
    # Gangs that end for no other gang, for their eviction was refused a while ago.
    protected: frozenset[Uid] = frozenset()
    # Sorted by namespace and name; none are read while Tutti ends no gang for another.
    budgets: tuple[DisruptionBudget, ...] = ()

    @property
    def being_ended(self) -> frozenset[GangKey]:
        """The gangs with pods that hold room and are to end for standing claims."""
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
        """The Reservations with the record of a start, and the record."""
        for reservation in (*self.reservations, *self.start_records):
            if reservation.record is not None:
                yield reservation, reservation.record

    @property
    def records(self) -> Mapping[Uid, QueueRecord]:
        """What is written down of the starts of gangs, by the uid of the gang.

        A gang without a record has the latest one of earlier gangs of its key: their pods may run
        on, and are its members.
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
