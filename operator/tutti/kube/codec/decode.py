"""Decoders from wire objects to model values: here absent, odd and broken fields get a meaning.

The counterpart of ``encode``. A field that cannot be read raises ``errors.BadObject`` with a
sentence, or counts in the way that allows fewer placements.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from ...model import ports
from ...model.applications import DRIVER
from ...model.cluster import (
    GRACE_SECONDS,
    ClaimGrounds,
    ForeignPod,
    Member,
    Node,
    Phase,
    PodReservation,
    Reservation,
    ReservedVictim,
    ScheduledCondition,
    SlotReservation,
)
from ...model.devices.extended import ContainerRequests
from ...model.keys import POD_GROUP, ApiKind, GangKey, Lease, NodeName, PodKey, Uid
from ...model.owners import Job, Owner
from ...model.queues import QueueRecord, RoleAtStart
from ...model.resources import Resources
from ...model.shapes import NO_PREFERENCES, Shape, Taint
from ...model.volumes import VolumeChoice
from .. import wire
from ..errors import BadObject
from ..gang_sources import (
    ALWAYS,
    FIELDS,
    GangSource,
    application_of,
    membership_of,
    unread_gang_of,
)
from ..gang_sources.spark import SPARK_LABEL, role_of
from .devices import pod_claims, reserved_claims
from .inter_pod import decode_apart, decode_labels, decode_rules
from .metadata import named, seconds_of
from .preferences import decode_preferences, decode_scored_terms
from .quantity import QuantityError, offered, requested
from .requests import extended_requests
from .shapes import (
    DEVICE_CLAIMS,
    claims,
    decode_requests,
    decode_shape,
    own_claims,
    pinned_to,
    unmodelled,
)

OVER = (Phase.SUCCEEDED, Phase.FAILED)
BY_GUARANTEE, BY_PRIORITY = "Guarantee", "Priority"  # the right of a claim
DISRUPTED = "DisruptionTarget"  # the condition of a pod that is evicted
PHASES = {str(phase): phase for phase in Phase}
LEASE_MODE = "tutti.dev/mode"  # the annotation with the mode of the Tutti that leads
NO_CONDITION = ScheduledCondition()
NO_AFFINITY = wire.Affinity()


def decode_node(node: wire.Node) -> Node:
    """Read a node; its amounts are rounded up, and an amount that cannot be read counts as 0."""
    name = named(node)
    return Node(
        name=NodeName(name),
        allocatable=_shared_resources(Resources.of(_offers(node.status.allocatable))),
        labels=decode_labels(node.metadata.labels),
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints),
        unschedulable=node.spec.unschedulable,
        ready=any(
            condition.type == "Ready" and condition.status == "True"
            for condition in node.status.conditions
        ),
    )


def decode_member(pod: wire.Pod, sources: Collection[GangSource] = ALWAYS) -> Member:
    """Read a pod that names our scheduler; the first source with a gang for it decides."""
    name = named(pod)
    metadata, spec = pod.metadata, pod.spec
    try:
        shape, malformed, extended, unsupported = _latest.needs_of(pod)
    except QuantityError as problem:
        raise BadObject(name, f"its request cannot be read: {problem}") from problem
    extended_claim, extended_resources = _extended_claim(pod.status) if extended else ("", ())
    labels, phase, membership = metadata.labels, _phase(pod), membership_of(pod, sources)
    grace = spec.termination_grace_period_seconds
    if unsupported:
        read = {DEVICE_CLAIMS, *(source.pod_field for source in sources)}
        unsupported = tuple(_explained(field) for field in unsupported if field not in read)
    return Member(
        key=PodKey(intern(metadata.namespace), metadata.name),
        uid=Uid(metadata.uid),
        version=metadata.resource_version,
        shape=shape,
        created=seconds_of(metadata.creation_timestamp),
        group=intern(membership.group),
        group_kind=membership.kind,
        other_gangs=membership.other_gangs,
        role=intern(role_of(labels) if membership.role is None else membership.role),
        priority=spec.priority,
        node=NodeName(intern(spec.node_name)) if spec.node_name else None,
        phase=phase,
        terminating=metadata.deletion_timestamp is not None,
        gone_by=_gone_by(metadata),
        finalizers=() if metadata.deletion_timestamp is None else metadata.finalizers,
        gates=tuple(sorted({gate.name for gate in spec.scheduling_gates})),
        unsupported_fields=(*malformed, *unsupported),
        owner=_owner(metadata),
        scheduled_condition=_scheduled_condition(pod.status),
        is_driver=labels.get(SPARK_LABEL) == DRIVER,
        failure=pod.status.reason if phase is Phase.FAILED else "",
        labels=decode_labels(labels),
        application=application_of(pod, sources),
        claims=claims(spec, metadata.name),
        own_claims=own_claims(spec, metadata.name),
        ended=_ended(pod) if phase is Phase.SUCCEEDED else None,
        may_preempt=spec.preemption_policy != "Never",
        grace_seconds=GRACE_SECONDS if grace is None else max(grace, 0),
        run=membership.run,
        made_for=membership.made_for,
        bound_at=_bound_at(pod.status) if spec.node_name else None,
        device_claims=pod_claims(pod) if spec.resource_claims else (),
        extended_requests=extended,
        extended_claim=extended_claim,
        extended_resources=extended_resources,
        unread_gang=None if membership.group else unread_gang_of(pod, sources),
    )


class _Needs(NamedTuple):
    """What the spec of a pod asks of its node, and its fields that are not supported."""

    shape: Shape
    malformed: tuple[str, ...]  # fields in which a selector cannot be read
    extended: tuple[ContainerRequests, ...]
    unsupported: tuple[str, ...]


def _needs(pod: wire.Pod) -> _Needs:
    """Read the spec of a pod; raises ``QuantityError``."""
    rules, malformed = decode_rules(pod)
    # A pod with malformed rules cannot be placed, so its preferences do not matter.
    preferences = NO_PREFERENCES if malformed else decode_preferences(pod)
    shape = decode_shape(pod, rules, preferences)
    return _Needs(shape, malformed, extended_requests(pod.spec), unmodelled(pod.spec))


class _LatestPod:
    """The pod that was read last: pods of a gang follow each other in lists, with equal specs."""

    def __init__(self) -> None:
        self._latest = wire.Pod(), _needs(wire.Pod())

    def needs_of(self, pod: wire.Pod) -> _Needs:
        """The needs of a pod: those of the pod before if both are alike.

        The API server writes amounts as text. Pods in files may have 1 or true, which are equal in
        Python, and only one of them is an amount.
        """
        before, needs = self._latest
        if not _need_the_same(pod, before):
            needs = _needs(pod)
            if all(isinstance(amount, str) for amount in _amounts(pod.spec)):
                self._latest = pod, needs
        return needs


def _amounts(spec: wire.PodSpec) -> Iterator[object]:
    """The amounts that the spec of a pod requests."""
    yield from spec.overhead.values()
    yield from spec.resources.requests.values()
    for container in (*spec.containers, *spec.init_containers):
        yield from container.resources.requests.values()


def _need_the_same(pod: wire.Pod, other: wire.Pod) -> bool:
    """Whether pods are alike in all that their needs depend on.

    The status counts for pods with a node. Namespace and labels count for rules between pods.
    """
    spec = pod.spec
    if spec.node_name or spec != other.spec:
        return False
    if not spec.topology_spread_constraints and spec.affinity == NO_AFFINITY:
        return True
    own, others = pod.metadata, other.metadata
    return own.namespace == others.namespace and own.labels == others.labels


_latest = _LatestPod()


def _extended_claim(status: wire.PodStatus) -> tuple[str, tuple[str, ...]]:
    """The claim that stands for extended resources of a pod, and these; empty without a claim."""
    claim = status.extended_resource_claim_status
    if claim is None:
        return "", ()
    resources = {mapping.resource_name for mapping in claim.request_mappings}
    return claim.resource_claim_name, tuple(sorted(resources))


def _gone_by(metadata: wire.Metadata) -> float | None:
    """The end of the grace period, in seconds since the epoch; None if it does not terminate."""
    moment = metadata.deletion_timestamp
    return None if moment is None else seconds_of(moment)


def _explained(field: str) -> str:
    """The name of an unsupported field; if its gang source is turned off, with the setting."""
    name = FIELDS.get(field)
    return f"{field} (settings.gangSources lacks {name})" if name else field


def decode_occupant(pod: wire.Pod) -> ForeignPod | None:
    """Read a pod of another scheduler; None if it uses no room.

    A bound pod uses room until it is gone or over, also while it terminates. A waiting pod that is
    pinned to one node, as DaemonSet pods are, uses room there unless it is gated or terminating.
    """
    name = named(pod)
    if _phase(pod) in OVER:
        return None
    node: NodeName | None
    if pod.spec.node_name:
        node = NodeName(intern(pod.spec.node_name))
    elif pod.spec.scheduling_gates or pod.metadata.deletion_timestamp is not None:
        return None
    else:
        node = pinned_to(pod)
    if node is None:
        return None
    try:
        return ForeignPod(
            Uid(pod.metadata.uid),
            node,
            decode_requests(pod),
            intern(pod.metadata.namespace),
            decode_labels(pod.metadata.labels),
            decode_apart(pod),
            terminating=pod.metadata.deletion_timestamp is not None,
            scored_terms=decode_scored_terms(pod),
            claims=claims(pod.spec, pod.metadata.name),
        )
    except QuantityError as problem:
        raise BadObject(name, f"its request cannot be read: {problem}") from problem


def decode_reservation(reservation: wire.Reservation) -> Reservation:
    """Read a Reservation; entries and slots are sorted by node, then by name."""
    name = named(reservation)
    metadata, spec = reservation.metadata, reservation.spec
    devices = {claims.pod: claims for on in spec.placement for claims in on.claims}
    entries = [
        PodReservation(
            PodKey(metadata.namespace, pod_name),
            Uid(uid),
            NodeName(on.node),
            reserved_claims(devices[uid]) if uid in devices else (),
        )
        for on in spec.placement
        for pod_name, uid in (
            *((pod.name, pod.uid) for pod in on.pods),
            *(("", u) for u in on.uids),
        )
    ]
    slots = [
        SlotReservation(NodeName(on.node), role, count)
        for on in spec.placement
        for role, count in on.slots.items()
    ]
    if any(slot.count < 1 for slot in slots):
        raise BadObject(name, "a slot counts less than 1 member")
    if len({entry.uid for entry in entries}) < len(entries):
        raise BadObject(name, "it places the same pod twice")
    roles = {Uid(uid): intern(joined.role) for joined in spec.roles for uid in joined.pods}
    declared = spec.pod_group
    # Older versions of Tutti write no kind, because they know only Tutti's PodGroups.
    kind = ApiKind(declared.api_group, declared.kind) if declared.kind else POD_GROUP
    return Reservation(
        gang=GangKey(metadata.namespace, declared.name, kind),
        uid=Uid(declared.uid),
        generation=declared.generation,
        scheduler=spec.scheduler_name,
        term=spec.term,
        reserved_at=spec.reserved_at.timestamp(),
        entries=tuple(sorted(entries, key=lambda entry: (entry.node, entry.pod, entry.uid))),
        slots=tuple(sorted(slots, key=lambda slot: (slot.node, slot.role))),
        evict=tuple(Uid(uid) for uid in spec.evict),
        version=metadata.resource_version,
        self_uid=Uid(metadata.uid),
        record=None if spec.queue is None else _record(spec.queue, spec.succeeded, name),
        charged=tuple(dict.fromkeys(map(Uid, spec.charged))),
        roles=tuple(sorted(roles.items())),
        victims=(victims := _victims(reservation)),
        grounds=None if victims is None else _grounds(reservation),
        volumes=tuple(
            VolumeChoice(v.claim, v.uid, v.version, NodeName(v.node), v.volume)
            for v in sorted(spec.volumes, key=lambda v: v.claim)
        ),
    )


def _victims(reservation: wire.Reservation) -> tuple[ReservedVictim, ...] | None:
    """The pods that end before the placement is carried out; None if the Reservation is no claim.

    A replica of an older version does not change the field when it uses the object for another
    placement. So the field counts only if its time is the time of the Reservation.
    """
    spec = reservation.spec
    if spec.claim is None or spec.claim.reserved_at != spec.reserved_at or not spec.placement:
        return None
    victims = [
        ReservedVictim(
            GangKey(victim.namespace, victim.name, ApiKind(victim.api_group, victim.kind)),
            Uid(victim.uid),
            tuple(sorted(map(Uid, victim.pods))),
            victim.is_whole,
            max(0, victim.lost_milliseconds),
        )
        for victim in spec.claim.victims
    ]
    return tuple(sorted(victims, key=lambda victim: victim.gang))


def _grounds(reservation: wire.Reservation) -> ClaimGrounds | None:
    """The grounds of a claim; None if an older version made it."""
    claim = reservation.spec.claim
    if claim is None or not claim.right:
        return None
    return ClaimGrounds(
        claim.right == BY_GUARANTEE,
        max(0, claim.cost_milliseconds),
        max(0, claim.bound_milliseconds),
        tuple((amount.name, amount.guaranteed) for amount in claim.guarantee),
    )


def _record(record: wire.QueueRecord, succeeded: Mapping[str, int], name: str) -> QueueRecord:
    if any(start.members < 1 for start in record.minimum):
        raise BadObject(name, "spec.queue.minimum: it counts less than 1 member of a role")
    try:
        minimum = [
            RoleAtStart(
                start.role,
                start.members,
                Resources.of({key: requested(key, n) for key, n in start.requests.items()}),
            )
            for start in record.minimum
        ]
    except QuantityError as problem:
        raise BadObject(name, f"spec.queue.minimum cannot be read: {problem}") from problem
    return QueueRecord(
        record.name,
        Uid(record.uid),
        seconds_of(record.started_at),
        tuple(sorted(minimum, key=lambda start: start.role)),
        record.protected,
        tuple(sorted((role, n) for role, n in succeeded.items() if n > 0)),
    )


def decode_lease(lease: wire.Lease) -> Lease:
    """Read a Lease."""
    spec = lease.spec
    return Lease(
        holder=spec.holder_identity,
        acquired=spec.acquire_time,
        renewed=spec.renew_time,
        seconds=spec.lease_duration_seconds,
        transitions=spec.lease_transitions,
        version=lease.metadata.resource_version,
        mode=lease.metadata.annotations.get(LEASE_MODE, ""),
    )


def _offers(allocatable: wire.Quantities) -> Mapping[str, int]:
    amounts: dict[str, int] = {}
    for name, quantity in allocatable.items():
        if ports.is_port(name):
            continue  # the API server accepts no such name
        try:
            amounts[name] = offered(name, quantity)
        except QuantityError:
            amounts[name] = 0  # an amount that cannot be read must not admit a pod
    return amounts


def _phase(pod: wire.Pod) -> Phase:
    return PHASES.get(pod.status.phase, Phase.UNKNOWN)


def _owner(metadata: wire.Metadata) -> Owner | None:
    for reference in metadata.owner_references:
        if reference.controller:
            group = reference.api_version.rpartition("/")[0]
            return _shared_owner(
                reference.kind, reference.name, group, Uid(reference.uid) if reference.uid else None
            )
    return None


@lru_cache(maxsize=4096)
def _shared_owner(kind: str, name: str, group: str, uid: Uid | None) -> Owner:
    return Owner(kind, name, group, uid)


def _ended(pod: wire.Pod) -> float | None:
    """When the last container of a pod ended, by the clock of its node; None if unknown."""
    moments = [status.state.terminated.finished_at for status in pod.status.container_statuses]
    return max((seconds_of(at) for at in moments if at is not None), default=None)


def _bound_at(status: wire.PodStatus) -> float | None:
    """When the API server took the binding; None if unknown. No tenant can write this time."""
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            moment = condition.last_transition_time
            return None if moment is None else seconds_of(moment)
    return None


def _scheduled_condition(status: wire.PodStatus) -> ScheduledCondition:
    for condition in status.conditions:
        if condition.type == "PodScheduled":
            return (
                _shared_condition(condition.reason, condition.message)
                if condition.status == "False"
                else NO_CONDITION
            )
    return NO_CONDITION


# The pods of a gang wait for the same reason, and nodes of one kind offer the same: tens of
# thousands of objects share few values, which are kept once.


@lru_cache(maxsize=4096)
def _shared_condition(reason: str, message: str) -> ScheduledCondition:
    return ScheduledCondition(reason, message)


@lru_cache(maxsize=1024)
def _shared_resources(amounts: Resources) -> Resources:
    return amounts


def decode_job(job: wire.Job) -> Job:
    """Read how many more failures a Job tolerates; 0 if it counts failures by index.

    Evictions do not count if a rule ignores disruptions and only Ignore rules come before it. A
    rule with another action may match an evicted pod by its exit code.
    """
    named(job)
    key = job.metadata.namespace, job.metadata.name
    spec, status = job.spec, job.status
    for rule in spec.pod_failure_policy.rules:
        if rule.action != "Ignore":
            break
        if any((c.type, c.status) == (DISRUPTED, "True") for c in rule.on_pod_conditions):
            return Job(*key, None)
    if spec.backoff_limit_per_index is not None:
        return Job(*key, 0)
    failed = status.failed + len(status.uncounted_terminated_pods.failed)
    return Job(*key, max(0, spec.backoff_limit - failed))
