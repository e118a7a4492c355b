"""Gangs of Kubernetes' own PodGroups (scheduling.k8s.io), which pods name in spec.schedulingGroup.

Job controllers make them of Workloads (KEP-4671). A group of the basic policy is no gang: its pods
start one by one, or wait if it uses a field that Tutti does not place by. The rules are
kube-scheduler's: validatePodGroup and updatePodGroupCondition in its schedule_one_podgroup.go.
``disruptionMode`` speaks of preemption, and Tutti preempts nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from ...model.decisions import Reason
from ...model.keys import ApiKind, GangKey, Uid
from .. import wire
from ..calls import Kind
from ..codec.metadata import named, seconds_of
from .base import GangObject, GangOutcome, GangSource, StatusWriter

SCHEDULED = "PodGroupInitiallyScheduled"  # the type of the one condition that a scheduler writes


class Gang(wire.Wire):
    """All or nothing."""

    min_count: int = 1


class SchedulingPolicy(wire.Wire):
    """One of the two, or what a newer API has besides."""

    gang: Gang | None = None
    basic: dict[str, Any] | None = None


class SchedulingConstraints(wire.Wire):
    """What the nodes of the pods have in common."""

    topology: tuple[Any, ...] = ()


class PodGroupSpec(wire.Wire):
    """What the maker of a group asks for."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    resource_claims: tuple[Any, ...] = ()
    parent_composite_pod_group_name: str = ""
    priority: int | None = None  # the API server makes it of priorityClassName


class PodGroupStatus(wire.Wire):
    """What is compared before it is written, and read by no decision."""

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
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name, KIND.api),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, policy.gang.min_count) if policy.gang else 1,
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        priority_value=spec.priority or 0,
        unsupported_fields=unsupported,
        needs_equal_members=True,
        is_one_by_one=policy.gang is None and policy.basic is not None and not unsupported,
        version=metadata.resource_version,
        status={"conditions": lines} if (lines := list(group.status.conditions)) else {},
    )


def _unsupported(spec: PodGroupSpec) -> Iterator[str]:
    """The fields in use that Tutti does not place by; sorted."""
    if spec.parent_composite_pod_group_name:
        yield "spec.parentCompositePodGroupName"
    if spec.resource_claims:
        yield "spec.resourceClaims"
    if spec.scheduling_constraints.topology:
        yield "spec.schedulingConstraints.topology"
    if spec.scheduling_policy.gang is None and spec.scheduling_policy.basic is None:
        yield "spec.schedulingPolicy"


def status_of(
    outcome: GangOutcome, observed: Mapping[str, Any], now: str, *, keep_sentences: bool
) -> Mapping[str, Any]:
    """The conditions: one is Tutti's, and once it is true it stays true.

    Like kube-scheduler, it reports nothing while members do not exist yet.
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
    if outcome.generation:  # the API server of 1.37 counts none, and drops a 0
        line["observedGeneration"] = outcome.generation
    other_conditions = [condition for condition in lines if condition.get("type") != SCHEDULED]
    return {"conditions": [*other_conditions, line]}


def _may_report(outcome: GangOutcome, old: Mapping[str, Any] | None) -> bool:
    """Whether to report that a gang waits; while members are missing, only if it was reported.

    Where no member exists, they may be another scheduler's, which then reports.
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
