"""Gangs of Kubernetes' own PodGroups (scheduling.k8s.io), which pods name in spec.schedulingGroup.

Job controllers make them from Workloads (KEP-4671). A group with the basic policy is no gang: its
pods start one by one, or wait if the group uses an unsupported field. Source: validatePodGroup and
updatePodGroupCondition in kube-scheduler's schedule_one_podgroup.go. ``disruptionMode``, which is
about preemption, is not read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from ...model.decisions import Reason
from ...model.inter_pod import DomainRule
from ...model.keys import ApiKind, GangKey, Uid
from .. import wire
from ..calls import Kind
from ..codec.metadata import named, seconds_of
from .base import GangObject, GangOutcome, GangSource, StatusWriter

SCHEDULED = "PodGroupInitiallyScheduled"  # the type of the one condition that a scheduler writes


class Gang(wire.Wire):
    """The policy of a gang, whose pods start all or not at all."""

    min_count: int = 1


class SchedulingPolicy(wire.Wire):
    """One of these two policies; neither if a newer API has a third."""

    gang: Gang | None = None
    basic: dict[str, Any] | None = None


class TopologyConstraint(wire.Wire):
    """A label of nodes: all pods are on nodes with one value of it."""

    key: str = ""


class SchedulingConstraints(wire.Wire):
    """Constraints on the nodes of all pods together."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(wire.Wire):
    """The spec of a PodGroup."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    resource_claims: tuple[Any, ...] = ()
    parent_composite_pod_group_name: str = ""
    priority: int | None = None  # the API server derives it from priorityClassName


class PodGroupStatus(wire.Wire):
    """The status, which is compared before it is written; no decision reads it."""

    conditions: tuple[dict[str, Any], ...] = ()


class PodGroup(wire.Object):
    """A PodGroup of Kubernetes."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = Field(default_factory=PodGroupStatus)


def decode_group(group: PodGroup) -> GangObject:
    """Read a PodGroup."""
    named(group)
    metadata, spec = group.metadata, group.spec
    policy, unsupported = spec.scheduling_policy, tuple(_unsupported(spec))
    levels = {entry.key for entry in spec.scheduling_constraints.topology if entry.key}
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name, KIND.api),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, policy.gang.min_count) if policy.gang else 1,
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        priority_value=spec.priority or 0,
        unsupported_fields=unsupported,
        same_domain=tuple(DomainRule(level) for level in sorted(levels)) if policy.gang else (),
        needs_equal_members=True,
        is_one_by_one=policy.gang is None and policy.basic is not None and not unsupported,
        version=metadata.resource_version,
        status={"conditions": lines} if (lines := list(group.status.conditions)) else {},
    )


def _unsupported(spec: PodGroupSpec) -> Iterator[str]:
    """The fields in use that Tutti does not support; sorted."""
    policy = spec.scheduling_policy
    if spec.parent_composite_pod_group_name:
        yield "spec.parentCompositePodGroupName"
    if spec.resource_claims:
        yield "spec.resourceClaims"
    constraints = spec.scheduling_constraints.topology
    # Pods that start one by one are in no gang that could have a domain.
    if constraints and (policy.gang is None or not all(entry.key for entry in constraints)):
        yield "spec.schedulingConstraints.topology"
    if policy.gang is None and policy.basic is None:
        yield "spec.schedulingPolicy"


def status_of(
    outcome: GangOutcome, observed: Mapping[str, Any], now: str, *, keep_sentences: bool
) -> Mapping[str, Any]:
    """The conditions, of which Tutti writes one; once that is true, it stays true.

    Like kube-scheduler, Tutti reports nothing while members do not exist yet.
    """
    lines = list(observed.get("conditions", ()))
    old = next((line for line in lines if line.get("type") == SCHEDULED), None)
    was_scheduled = old is not None and old.get("status") == "True"
    if not outcome.is_whole and (was_scheduled or not _may_report(outcome, old)):
        return observed
    status, reason, message = "True", "Scheduled", ""
    if not outcome.is_whole:
        status, message = "False", outcome.message
        is_wrong = outcome.reason == Reason.MEMBERS_DIFFER
        reason = "SchedulerError" if is_wrong else "Unschedulable"
    is_same = old is not None and old.get("status") == status
    if old is not None and is_same and old.get("reason") == reason and keep_sentences:
        message = old.get("message", "")
    line = {
        "type": SCHEDULED,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": old.get("lastTransitionTime") if old and is_same else now,
    }
    if outcome.generation:  # Kubernetes 1.37 has no generation of PodGroups, and drops a 0
        line["observedGeneration"] = outcome.generation
    other_conditions = [condition for condition in lines if condition.get("type") != SCHEDULED]
    return {"conditions": [*other_conditions, line]}


def _may_report(outcome: GangOutcome, old: Mapping[str, Any] | None) -> bool:
    """Whether to report that a gang waits.

    While members are missing, it is reported only if it was reported before. If no member exists,
    it is not reported: the members may name another scheduler, which then reports.
    """
    if not (outcome.reason and outcome.seen):
        return False
    return outcome.reason != Reason.WAITING_FOR_MEMBERS or old is not None


def _gang_of(pod: wire.Pod) -> GangKey | None:
    name = (pod.spec.scheduling_group or {}).get("podGroupName")
    return GangKey(pod.metadata.namespace, str(name), KIND.api) if name else None


KIND = Kind(
    ApiKind("scheduling.k8s.io", "PodGroup"),
    "podgroups",
    PodGroup,
    decode_group,
    version="v1beta1",
)
SOURCE = GangSource(
    KIND.crd,
    20,
    _gang_of,
    (KIND,),
    frozenset({KIND.right("patch", "status")}),
    status=StatusWriter(KIND.right("patch", "status"), status_of, has_effects=True),
    pod_field="spec.schedulingGroup",
    is_optional=True,
    is_default=True,
)
