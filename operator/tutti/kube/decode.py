"""Wire objects to model values: the one place where absent, odd and broken fields get a meaning.

The counterpart of ``encode``. What cannot be read raises ``errors.BadObject`` with a sentence;
nothing here guesses in favour of a placement.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any

from ..model import ports
from ..model.cluster import (
    ABSENT_SECONDS,
    Entry,
    Gang,
    Member,
    Namespace,
    Node,
    Occupant,
    OnPartial,
    OnTimeout,
    Phase,
    PriorityClass,
    Reservation,
    Role,
    Said,
    Slots,
)
from ..model.keys import GangKey, NodeName, PodKey, Uid
from ..model.lease import Lease
from ..model.owners import Owner
from ..model.resources import Resources
from ..model.shapes import NO_WISHES, Taint, Template
from ..model.spark import DRIVER
from . import wire
from .errors import BadObject
from .quantity import QuantityError, offered
from .rules import decode_apart, decode_labels, decode_rules
from .shapes import claims, decode_requests, decode_shape, pinned_to, unmodelled
from .spark import GROUP_LABEL, SPARK_LABEL, decode_spark, joining, role_of
from .wishes import decode_likings, decode_wishes

OVER = (Phase.SUCCEEDED, Phase.FAILED)
PHASES = {str(phase): phase for phase in Phase}
NOTHING_SAID = Said()


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A PodGroup object as the API has it now; with its pods it makes a Gang."""

    namespace: str
    name: str
    uid: Uid
    generation: int
    min_member: int
    roles: tuple[Role, ...]
    created: float  # seconds since the epoch
    terminating: bool
    version: str  # metadata.resourceVersion
    on_partial: OnPartial = OnPartial.COMPLETE
    priority_class: str = ""
    timeout_seconds: float | None = None
    on_timeout: OnTimeout = OnTimeout.KEEP_WAITING
    absent_seconds: float = ABSENT_SECONDS
    maker: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)  # compared before it is written
    owner: Uid | None = None  # of the pod that it was made for, and goes with

    def with_members(self, members: tuple[Member, ...], class_value: int | None) -> Gang:
        """The gang that it makes with these pods; the value is that of its PriorityClass."""
        return Gang(
            GangKey(self.namespace, self.name),
            self.uid,
            self.min_member,
            roles=self.roles,
            members=members,
            created=self.created,
            generation=self.generation,
            terminating=self.terminating,
            on_partial=self.on_partial,
            priority_class=self.priority_class,
            class_value=class_value,
            timeout_seconds=self.timeout_seconds,
            on_timeout=self.on_timeout,
            absent_seconds=self.absent_seconds,
            maker=self.maker,
        )


def decode_node(node: wire.Node) -> Node:
    """Read a node; what it offers rounds up, and an amount that cannot be read counts as 0."""
    name = named(node)
    return Node(
        name=NodeName(name),
        allocatable=Resources.of(_offers(node.status.allocatable)),
        labels=tuple(sorted(node.metadata.labels.items())),
        taints=tuple(Taint(each.key, each.value, each.effect) for each in node.spec.taints),
        unschedulable=node.spec.unschedulable,
        ready=any(
            each.type == "Ready" and each.status == "True" for each in node.status.conditions
        ),
    )


def decode_member(pod: wire.Pod) -> Member:
    """Read a pod that names our scheduler."""
    name = named(pod)
    metadata, spec = pod.metadata, pod.spec
    rules, malformed = decode_rules(pod)
    try:
        # Whoever cannot be placed has no choice of nodes.
        shape = decode_shape(pod, rules, NO_WISHES if malformed else decode_wishes(pod))
    except QuantityError as problem:
        raise BadObject(name, f"its request cannot be read: {problem}") from problem
    labels, phase = metadata.labels, _phase(pod)
    return Member(
        key=PodKey(metadata.namespace, metadata.name),
        uid=Uid(metadata.uid),
        version=metadata.resource_version,
        shape=shape,
        created=_seconds(metadata.creation_timestamp),
        group=labels.get(GROUP_LABEL, ""),
        role=role_of(labels),
        priority=spec.priority,
        node=NodeName(spec.node_name) if spec.node_name else None,
        phase=phase,
        terminating=metadata.deletion_timestamp is not None,
        gates=tuple(sorted({gate.name for gate in spec.scheduling_gates})),
        unmodelled=(*malformed, *unmodelled(spec)),
        owner=_owner(metadata),
        said=_said(pod.status),
        is_driver=labels.get(SPARK_LABEL) == DRIVER,
        failure=pod.status.reason if phase is Phase.FAILED else "",
        labels=decode_labels(labels),
        spark=decode_spark(pod) if SPARK_LABEL in labels else None,
        claims=claims(spec),
    )


def decode_occupant(pod: wire.Pod) -> Occupant | None:
    """Read a pod of another scheduler; None where it uses no room.

    A pod uses room where it is bound, until it is gone or over, a terminating one included; and
    where it waits pinned to one node, as DaemonSet pods do, unless it is gated or terminating.
    """
    name = named(pod)
    if _phase(pod) in OVER:
        return None
    node: NodeName | None
    if pod.spec.node_name:
        node = NodeName(pod.spec.node_name)
    elif pod.spec.scheduling_gates or pod.metadata.deletion_timestamp is not None:
        return None
    else:
        node = pinned_to(pod)
    if node is None:
        return None
    try:
        return Occupant(
            Uid(pod.metadata.uid),
            node,
            decode_requests(pod),
            intern(pod.metadata.namespace),
            decode_labels(pod.metadata.labels),
            decode_apart(pod),
            terminating=pod.metadata.deletion_timestamp is not None,
            likings=decode_likings(pod),
            claims=claims(pod.spec, pod.metadata.name),
        )
    except QuantityError as problem:
        raise BadObject(name, f"its request cannot be read: {problem}") from problem


def decode_group(group: wire.PodGroup) -> PodGroup:
    """Read a PodGroup; ``minMember`` is the sum over its roles where it is absent, at least 1."""
    named(group)
    metadata, spec = group.metadata, group.spec
    roles = tuple(_role(each, metadata) for each in spec.roles)
    absent = spec.absent_member_timeout_seconds
    needed = spec.min_member
    if needed is None:
        needed = sum(role.min_member for role in roles)
    return PodGroup(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, needed),
        roles=roles,
        created=_seconds(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        version=metadata.resource_version,
        on_partial=OnPartial.RELEASE
        if spec.on_partial == OnPartial.RELEASE
        else OnPartial.COMPLETE,
        priority_class=spec.priority_class_name,
        timeout_seconds=spec.schedule_timeout_seconds,
        on_timeout=OnTimeout.FAIL if spec.on_timeout == OnTimeout.FAIL else OnTimeout.KEEP_WAITING,
        absent_seconds=ABSENT_SECONDS if absent is None else max(0, absent),
        maker=next((each.name for each in metadata.owner_references if each.kind == "Pod"), ""),
        status=group.status,
        owner=next((Uid(o.uid) for o in metadata.owner_references if o.kind == "Pod"), None),
    )


def _role(role: wire.Role, group: wire.Metadata) -> Role:
    least, most = max(0, role.min_member), role.max_member
    template = None if role.template is None else _template(role.template, role.name, group)
    return Role(role.name, least, None if most is None else max(least, most), template)


def _template(template: wire.Template, role: str, group: wire.Metadata) -> Template:
    """Read a template as the pod that will be made of it is read, which joins the gang."""
    labels = dict(joining(template.labels, group.name, role))
    asked = wire.ResourceAmounts(requests=template.resources)
    spec = wire.PodSpec(
        containers=(wire.Container(resources=asked),),
        node_selector=template.node_selector,
        tolerations=template.tolerations,
        affinity=template.affinity,
        topology_spread_constraints=template.topology_spread_constraints,
    )
    pod = wire.Pod(metadata=wire.Metadata(namespace=group.namespace, labels=labels), spec=spec)
    name = f"{group.namespace}/{group.name}"
    rules, malformed = decode_rules(pod)
    if malformed:
        raise BadObject(name, f"the template of role {role} has {', '.join(malformed)}")
    try:
        return Template(decode_shape(pod, rules, decode_wishes(pod)), decode_labels(labels))
    except QuantityError as problem:
        sentence = f"the template of role {role} cannot be read: {problem}"
        raise BadObject(name, sentence) from problem


def decode_namespace(one: wire.Namespace) -> Namespace:
    """Read a namespace."""
    named(one)
    return Namespace(one.metadata.name, decode_labels(one.metadata.labels))


def decode_priority_class(one: wire.PriorityClass) -> PriorityClass:
    """Read a PriorityClass; the API server lets nobody change its value."""
    named(one)
    return PriorityClass(one.metadata.name, one.value)


def decode_reservation(held: wire.Reservation) -> Reservation:
    """Read a Reservation; entries and slots come sorted by node, then by name."""
    name = named(held)
    metadata, spec = held.metadata, held.spec
    entries = [
        Entry(PodKey(metadata.namespace, pod_name), Uid(uid), NodeName(on.node))
        for on in spec.placement
        for pod_name, uid in (
            *((pod.name, pod.uid) for pod in on.pods),
            *(("", u) for u in on.uids),
        )
    ]
    slots = [
        Slots(NodeName(on.node), role, count)
        for on in spec.placement
        for role, count in on.slots.items()
    ]
    if any(slot.count < 1 for slot in slots):
        raise BadObject(name, "a slot counts less than 1 member")
    if len({entry.uid for entry in entries}) < len(entries):
        raise BadObject(name, "it places the same pod twice")
    return Reservation(
        gang=GangKey(metadata.namespace, spec.pod_group.name),
        uid=Uid(spec.pod_group.uid),
        generation=spec.pod_group.generation,
        scheduler=spec.scheduler_name,
        term=spec.term,
        reserved_at=spec.reserved_at.timestamp(),
        entries=tuple(sorted(entries, key=lambda entry: (entry.node, entry.pod, entry.uid))),
        slots=tuple(sorted(slots, key=lambda slot: (slot.node, slot.role))),
        evict=tuple(Uid(uid) for uid in spec.evict),
        version=metadata.resource_version,
        self_uid=Uid(metadata.uid),
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
    )


def named(one: wire.Object) -> str:
    """Answer ``namespace/name``; whatever has no name or uid cannot be told from its namesakes."""
    metadata = one.metadata
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    if not metadata.name or not metadata.uid:
        missing = "uid" if metadata.name else "name"
        kind = type(one).__name__
        raise BadObject(name or f"a {kind} without a name", f"its metadata has no {missing}")
    return name


def _offers(allocatable: wire.Quantities) -> Mapping[str, int]:
    amounts: dict[str, int] = {}
    for name, quantity in allocatable.items():
        if ports.is_port(name):
            continue  # no name that the API server takes
        try:
            amounts[name] = offered(name, quantity)
        except QuantityError:
            amounts[name] = 0  # never more than what can be read
    return amounts


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def _phase(pod: wire.Pod) -> Phase:
    return PHASES.get(pod.status.phase, Phase.UNKNOWN)


def _owner(metadata: wire.Metadata) -> Owner | None:
    for each in metadata.owner_references:
        if each.controller:
            return _shared_owner(each.kind, each.name, each.api_version.rpartition("/")[0])
    return None


@lru_cache(maxsize=4096)
def _shared_owner(kind: str, name: str, group: str) -> Owner:
    return Owner(kind, name, group)


def _said(status: wire.PodStatus) -> Said:
    for each in status.conditions:
        if each.type == "PodScheduled":
            return Said(each.reason, each.message) if each.status == "False" else NOTHING_SAID
    return NOTHING_SAID
