"""Gangs that users declare: Tutti's PodGroups, which pods name by the label tutti.dev/pod-group.

This module has all fields of a PodGroup: their spelling in the API, how they are read, and how a
dump writes them. The template of a role is read like the pods that will be created from it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from ...model.cluster import (
    ABSENT_SECONDS,
    BoundBy,
    GangDeclaration,
    OnPartial,
    OnTimeout,
    Role,
)
from ...model.inter_pod import DomainRule, SegmentRule
from ...model.keys import POD_GROUP, GangKey, Uid
from ...model.shapes import Template
from .. import wire
from ..calls import TUTTI_VERSION, Kind
from ..codec.inter_pod import decode_labels, decode_rules
from ..codec.metadata import named, seconds_of
from ..codec.preferences import decode_preferences
from ..codec.quantity import QuantityError
from ..codec.shapes import decode_shape
from ..errors import BadObject
from .base import GangObject, GangSource, StatusWriter
from .spark import TUTTI_GROUP_LABEL, joining

NEVER = "Never"  # of spec.preemption
# Of the status: what ends for other gangs have lost, and the claim that was counted last.
PREEMPTION, LOST, COUNTED = "preemption", "lostMilliseconds", "countedClaim"
UNDER_WAY = ("Bound", "Running")  # the phases in which a gang may have begun to finish


class TemplateSpec(wire.Wire):
    """The template of the members of a role that do not exist yet."""

    resources: wire.Quantities = Field(default_factory=dict)
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[wire.Toleration, ...] = ()
    affinity: wire.Affinity = wire.Affinity()
    topology_spread_constraints: tuple[wire.SpreadConstraint, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)


MOST_IN_SEGMENT = 5_000  # as in the CRD; files may have any number


class SegmentsSpec(wire.Wire):
    """Segments of equal size, each in one domain of a level."""

    size: int = 0
    level: str = ""
    index_label: str = ""


class RoleTopologySpec(wire.Wire):
    """The levels at which the members of a role are in one domain, or preferably are."""

    required: str = ""
    preferred: str = ""
    segments: SegmentsSpec | None = None


class RoleGroupSpec(RoleTopologySpec):
    """Roles whose members are in one domain of a level together."""

    roles: tuple[str, ...] = ()


class TopologySpec(RoleTopologySpec):
    """Which members of a gang are in one domain."""

    role_groups: tuple[RoleGroupSpec, ...] = ()


class RoleSpec(wire.Wire):
    """A named part of a gang."""

    name: str
    min_member: int = 0
    max_member: int | None = None
    template: TemplateSpec | None = None
    topology: RoleTopologySpec = RoleTopologySpec()


class PodGroupSpec(wire.Wire):
    """The spec of a PodGroup, which users write."""

    min_member: int | None = None
    roles: tuple[RoleSpec, ...] = ()
    on_partial: str = OnPartial.COMPLETE
    priority_class_name: str = ""
    schedule_timeout_seconds: int | None = None
    on_timeout: str = OnTimeout.KEEP_WAITING
    absent_member_timeout_seconds: int | None = None
    suspend: bool = False
    binding: str = BoundBy.TUTTI
    queue: str = ""
    preemption: str = ""
    topology: TopologySpec = TopologySpec()


class PodGroup(wire.Object):
    """A tutti.dev PodGroup; its status is compared with the new status."""

    spec: PodGroupSpec = PodGroupSpec()
    status: dict[str, Any] = Field(default_factory=dict)


def decode_group(group: PodGroup) -> GangObject:
    """Read a PodGroup; if ``minMember`` is absent, it is the sum over its roles, at least 1."""
    named(group)
    metadata, spec = group.metadata, group.spec
    roles = tuple(_role(role, metadata) for role in spec.roles)
    absent = spec.absent_member_timeout_seconds
    min_member = spec.min_member
    if min_member is None:
        min_member = sum(role.min_member for role in roles)
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, min_member),
        roles=roles,
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        version=metadata.resource_version,
        on_partial=OnPartial.RELEASE
        if spec.on_partial == OnPartial.RELEASE
        else OnPartial.COMPLETE,
        priority_class=spec.priority_class_name,
        timeout_seconds=spec.schedule_timeout_seconds,
        on_timeout=OnTimeout.FAIL if spec.on_timeout == OnTimeout.FAIL else OnTimeout.KEEP_WAITING,
        absent_seconds=ABSENT_SECONDS if absent is None else max(0, absent),
        is_suspended=spec.suspend,
        bound_by=BoundBy.KUBE_SCHEDULER
        if spec.binding == BoundBy.KUBE_SCHEDULER
        else BoundBy.TUTTI,
        owner_pod=next(
            (owner.name for owner in metadata.owner_references if owner.kind == "Pod"), ""
        ),
        queue=spec.queue,
        is_protected=spec.preemption == NEVER,
        lost_milliseconds=lost_milliseconds(group.status),
        same_domain=_domain_rules(spec, lambda level: level.required),
        preferred_domains=_domain_rules(spec, lambda level: level.preferred),
        segments=_segments(spec),
        status=group.status,
        succeeded_before=succeeded_before(group.status),
        owner=next((Uid(o.uid) for o in metadata.owner_references if o.kind == "Pod"), None),
    )


def encode_spec(gang: GangDeclaration, roles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec of a PodGroup that declares this gang, with these roles; for dumps."""
    spec: dict[str, Any] = {"minMember": gang.min_member}
    if roles:
        spec["roles"] = [*roles]
    spec["onPartial"] = gang.on_partial.value
    if gang.priority_class:
        spec["priorityClassName"] = gang.priority_class
    if gang.timeout_seconds is not None:
        spec["scheduleTimeoutSeconds"] = int(gang.timeout_seconds)
    spec["onTimeout"] = gang.on_timeout.value
    spec["absentMemberTimeoutSeconds"] = int(gang.absent_seconds)
    if gang.is_suspended:
        spec["suspend"] = True
    if gang.bound_by is not BoundBy.TUTTI:
        spec["binding"] = gang.bound_by.value
    if gang.queue:
        spec["queue"] = gang.queue
    if gang.is_protected:
        spec["preemption"] = NEVER
    if gang.same_domain or gang.preferred_domains or gang.segments:
        spec["topology"] = _topology(gang)
    return spec


def lost_milliseconds(status: Mapping[str, Any]) -> int:
    """The work that ends of a gang for other gangs have lost, as its status says; at least 0."""
    preemption = status.get(PREEMPTION)
    lost = preemption.get(LOST) if isinstance(preemption, Mapping) else None
    return max(0, lost) if isinstance(lost, int) else 0


def succeeded_before(status: Mapping[str, Any]) -> int:
    """How many members of a gang under way have succeeded, as its status says; at least 0."""
    members = status.get("members")
    succeeded = members.get("succeeded") if isinstance(members, Mapping) else None
    if status.get("phase") not in UNDER_WAY or not isinstance(succeeded, int):
        return 0
    return max(0, succeeded)


def encode_status(gang: GangDeclaration) -> dict[str, Any]:
    """The fields of the status that plans read; for dumps."""
    return {PREEMPTION: {LOST: gang.lost_milliseconds}} if gang.lost_milliseconds else {}


def _domain_rules(
    spec: PodGroupSpec, level_of: Callable[[RoleTopologySpec], str]
) -> tuple[DomainRule, ...]:
    """The rules of the gang, of its roles, and of several roles together."""
    rules = {DomainRule(level_of(fields), roles) for fields, roles in _topologies(spec)}
    return tuple(sorted(rule for rule in rules if rule.level))


def _topologies(spec: PodGroupSpec) -> Iterator[tuple[RoleTopologySpec, tuple[str, ...]]]:
    """What is said of the gang, of its roles, and of several roles together, with the roles."""
    yield spec.topology, ()
    yield from ((role.topology, (role.name,)) for role in spec.roles)
    for group in spec.topology.role_groups:
        if group.roles:
            yield group, tuple(sorted(set(group.roles)))


def _segments(spec: PodGroupSpec) -> tuple[SegmentRule, ...]:
    """The rules on segments; of several for one role, which the CRD refuses, the first counts."""
    rules: list[SegmentRule] = []
    covered: set[str] = set()
    for fields, roles in _topologies(spec):
        segments = fields.segments
        if segments is None or segments.size <= 0 or not segments.level:
            continue
        if not covered.isdisjoint(roles) or (rules and not rules[0].of.roles):
            continue
        covered.update(roles)
        of, size = DomainRule(segments.level, roles), min(segments.size, MOST_IN_SEGMENT)
        rules.append(SegmentRule(of, size, segments.index_label))
    return tuple(sorted(rules))


def _topology(gang: GangDeclaration) -> dict[str, Any]:
    """The same rules; those of one role are written as a group of it."""
    topology: dict[str, Any] = {}
    rules = [("required", rule) for rule in gang.same_domain]
    rules += [("preferred", rule) for rule in gang.preferred_domains]
    for field, rule in rules:
        if rule.roles:
            group = {"roles": [*rule.roles], field: rule.level}
            topology.setdefault("roleGroups", []).append(group)
        else:
            topology[field] = rule.level
    for segments in gang.segments:
        body: dict[str, Any] = {"size": segments.size, "level": segments.of.level}
        if segments.index:
            body["indexLabel"] = segments.index
        if segments.of.roles:
            of_roles: dict[str, Any] = {"roles": [*segments.of.roles], "segments": body}
            topology.setdefault("roleGroups", []).append(of_roles)
        else:
            topology["segments"] = body
    return topology


def _role(role: RoleSpec, group: wire.Metadata) -> Role:
    least, most = max(0, role.min_member), role.max_member
    template, unreadable = _template(role, group)
    return Role(role.name, least, None if most is None else max(least, most), template, unreadable)


def _template(role: RoleSpec, group: wire.Metadata) -> tuple[Template | None, tuple[str, ...]]:
    """Read the template of a role like the pods that will be created from it.

    If a selector cannot be read, the pods cannot be placed. Then there is no template, and the
    second value has the malformed fields.
    """
    template = role.template
    if template is None:
        return None, ()
    labels = dict(joining(template.labels, group.name, role.name))
    resources = wire.ResourceAmounts(requests=template.resources)
    spec = wire.PodSpec(
        containers=(wire.Container(resources=resources),),
        node_selector=template.node_selector,
        tolerations=template.tolerations,
        affinity=template.affinity,
        topology_spread_constraints=template.topology_spread_constraints,
    )
    pod = wire.Pod(metadata=wire.Metadata(namespace=group.namespace, labels=labels), spec=spec)
    rules, malformed = decode_rules(pod)
    if malformed:
        return None, malformed
    try:
        return Template(
            decode_shape(pod, rules, decode_preferences(pod)), decode_labels(labels)
        ), ()
    except QuantityError as problem:
        sentence = f"the template of role {role.name} cannot be read: {problem}"
        raise BadObject(f"{group.namespace}/{group.name}", sentence) from problem


def _gang_of(pod: wire.Pod) -> GangKey | None:
    name = pod.metadata.labels.get(TUTTI_GROUP_LABEL)
    return GangKey(pod.metadata.namespace, name) if name else None


KIND = Kind(POD_GROUP, "podgroups", PodGroup, decode_group, version=TUTTI_VERSION)
SOURCE = GangSource(
    "tutti",
    10,
    _gang_of,
    (KIND,),
    frozenset({KIND.right("patch", "status")}),
    status=StatusWriter(KIND.right("patch", "status")),
)
