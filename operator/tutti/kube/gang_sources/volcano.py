"""Gangs of Volcano's PodGroups (scheduling.volcano.sh), which vcjobs and LeaderWorkerSets use.

Pods name them by an annotation. The status has no subresource. Its phase starts a vcjob: the pods
of the job are created once the phase is neither empty nor Pending. Tutti writes the phases and
conditions of Volcano's own scheduler, except ``Unknown``, which restarts jobs, and never returns to
Pending. ``queue`` names a Queue, and ``networkTopology`` a level of a Topology: its tiers are those
of the HyperNodes that Volcano makes by labels. Source: ``getPodGroupPhase``, ``plugins/gang`` and
``CheckTaskValid`` in pkg/scheduler of Volcano, and ``parseCfg`` in its hypernode/discovery/label.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ...model.cluster import Role
from ...model.decisions import Reason
from ...model.inter_pod import DomainRule, tier
from ...model.keys import ApiKind, GangKey, Uid
from ...model.resources import Resources
from ...model.shapes import Template
from .. import wire
from ..calls import Kind, Right, api_version
from ..codec.metadata import named, seconds_of
from ..codec.quantity import QuantityError, requested
from ..errors import BadObject
from .base import MOST_ROLES, GangObject, GangOutcome, GangSource, JobKind, JobPods, StatusWriter
from .pod_templates import PodTemplate, decode_template

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
TASK_ANNOTATION = "volcano.sh/task-spec"
RUN_ANNOTATION = "volcano.sh/job-version"
PENDING, INQUEUE, RUNNING, COMPLETED = "Pending", "Inqueue", "Running", "Completed"
GET_JOB = Right("batch.volcano.sh", "jobs", "get", "v1alpha1")
JOB_VERSION = api_version(GET_JOB.group, GET_JOB.version)
# Volcano's webhook writes this queue if users choose none.
DEFAULT_QUEUE = "default"
HARD, SOFT = "hard", "soft"  # the modes of a network topology
_LONGEST_RUN = 9  # digits: the version is an int32


class NetworkTopology(wire.Wire):
    """The highest tier of HyperNodes of which one must have, or should have, all pods."""

    mode: str = HARD
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class PodGroupSpec(wire.Wire):
    """The spec of a PodGroup, which the controller of a job writes."""

    min_member: int = 1
    min_task_member: dict[str, int] = Field(default_factory=dict)
    priority_class_name: str = ""
    queue: str = ""
    min_resources: wire.Quantities = Field(default_factory=dict)
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[Any, ...] = ()


class PodGroup(wire.Object):
    """A PodGroup of Volcano."""

    spec: PodGroupSpec = PodGroupSpec()
    status: dict[str, Any] = Field(default_factory=dict)


class TaskSpec(wire.Wire):
    """A number of equal pods of a vcjob."""

    name: str = ""
    replicas: int = 0
    template: PodTemplate = PodTemplate()


class JobSpec(wire.Wire):
    """The spec of a vcjob."""

    scheduler_name: str = ""  # for pods whose template names none
    tasks: tuple[TaskSpec, ...] = ()


class Job(wire.Object):
    """A vcjob; only its templates and scheduler names are read."""

    spec: JobSpec = JobSpec()


def decode_group(group: PodGroup) -> GangObject | None:
    """Read a PodGroup; None for a group that Volcano makes for a single pod without a group.

    As in Volcano, the minimums of tasks count only if ``minMember`` is at least their sum.
    """
    named(group)
    metadata, spec = group.metadata, group.spec
    if any(
        owner.kind == "Pod" and metadata.name == _automatic(owner.uid)
        for owner in metadata.owner_references
    ):
        return None
    is_default = spec.queue == DEFAULT_QUEUE
    minimums = spec.min_task_member if sum(spec.min_task_member.values()) <= spec.min_member else {}
    network = spec.network_topology or NetworkTopology()
    level = _level(network)
    fields = {
        "spec.networkTopology.mode": network.mode not in (HARD, SOFT),
        "spec.subGroupPolicy": bool(spec.sub_group_policy),
        f"spec.minTaskMember of more than {MOST_ROLES} tasks": len(minimums) > MOST_ROLES,
    }
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name, KIND.api),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, spec.min_member),
        roles=tuple(Role(task, max(0, n)) for task, n in sorted(minimums.items()))[:MOST_ROLES],
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        priority_class=spec.priority_class_name,
        version=metadata.resource_version,
        status=group.status,
        unsupported_fields=tuple(name for name, is_used in fields.items() if is_used),
        same_domain=(DomainRule(level),) if level and network.mode == HARD else (),
        preferred_domains=(DomainRule(level or tier(1)),) if network.mode == SOFT else (),
        job_awaiting_room=_job_awaiting_room(group),
        min_resources=_resources(spec.min_resources),
        queue="" if is_default else spec.queue,
        queue_if_exists=DEFAULT_QUEUE if is_default else "",
    )


def _level(network: NetworkTopology) -> str:
    """The level of a Topology; empty if the PodGroup names none, as Volcano then requires none.

    HyperNodes that Volcano makes by labels have the label as the name of their tier.
    """
    if network.highest_tier_allowed is not None:
        return tier(network.highest_tier_allowed)
    return network.highest_tier_name


def pods_of(job: Job, group: GangObject) -> JobPods:
    """The pods of a vcjob: their scheduler names, and its tasks as roles.

    As in Volcano's ``createJobPod``, a template without a scheduler name has that of the job.
    """
    spec = job.spec
    schedulers = frozenset(
        task.template.spec.scheduler_name or spec.scheduler_name for task in spec.tasks
    )
    minimums = {role.name: role.min_member for role in group.roles}
    try:
        roles = tuple(
            Role(task.name, minimums.get(task.name, 0), max(0, task.replicas), _template(task, job))
            for task in spec.tasks
        )
    except BadObject as problem:
        return JobPods(schedulers, problem=str(problem))
    return JobPods(schedulers, roles)


def _template(task: TaskSpec, job: Job) -> Template:
    """The template of the pods of a task.

    Raises:
        BadObject: the pods cannot be placed, or a request cannot be read.
    """
    labels = {"volcano.sh/job-name": job.metadata.name, TASK_ANNOTATION: task.name}
    return decode_template(task.template, job.metadata, f"task {task.name}", labels)


def _job_awaiting_room(group: PodGroup) -> tuple[str, Uid] | None:
    """The vcjob whose pods are created once the phase says that there is room; None if none."""
    if group.status.get("phase") not in (None, "", PENDING):
        return None
    owners = (owner for owner in group.metadata.owner_references if owner.controller)
    jobs = (owner for owner in owners if (owner.api_version, owner.kind) == (JOB_VERSION, "Job"))
    return next(((owner.name, Uid(owner.uid)) for owner in jobs), None)


def _resources(minimum: wire.Quantities) -> Resources:
    """The amounts of resources of nodes; names of quotas, as ``requests.cpu``, are left out.

    An amount that cannot be read is left out, too.
    """
    amounts: dict[str, int] = {}
    for name, quantity in minimum.items():
        if name == "pods" or name.startswith(("requests.", "limits.", "count/")):
            continue
        try:
            amounts[name] = requested(name, quantity)
        except QuantityError:
            continue
    return Resources.of(amounts)


def status_of(
    outcome: GangOutcome, observed: Mapping[str, Any], now: str, *, keep_sentences: bool
) -> Mapping[str, Any]:
    """The phase, condition and counters that Volcano's scheduler would write."""
    numbers = {name: getattr(outcome, name) for name in ("running", "succeeded", "failed")}
    counters = {name: n for name, n in numbers.items() if n or name in observed}
    lines = observed.get("conditions")
    old = (
        [condition for condition in lines if isinstance(condition, Mapping)]
        if isinstance(lines, list)
        else []
    )
    conditions = _conditions(outcome, old, now, keep_sentences=keep_sentences)
    phase = _phase(observed.get("phase"), outcome)
    return {**observed, "phase": phase, **counters, "conditions": conditions}


def _phase(observed: object, counts: GangOutcome) -> object:
    """The phase; it never returns to Pending, in which the controller creates no pods."""
    if counts.bound + counts.failed >= counts.needed:
        return COMPLETED if counts.bound == counts.succeeded else RUNNING
    if counts.seen:
        return observed if observed in (INQUEUE, RUNNING) else INQUEUE
    return observed or PENDING


def _conditions(
    outcome: GangOutcome, observed: list[Mapping[str, Any]], now: str, *, keep_sentences: bool
) -> list[Mapping[str, Any]]:
    """The observed conditions, with Tutti's condition in place of one of the same type."""
    if outcome.is_whole:
        line = {"type": "Scheduled", "reason": "tasks in gang are ready to be scheduled"}
    else:
        why = outcome.message
        if not outcome.seen and outcome.reason in ("", Reason.WAITING_FOR_MEMBERS):
            why = "the pods are made once there is room for them"
        missing = max(0, outcome.needed - outcome.bound)
        line = {
            "type": "Unschedulable",
            "reason": "NotEnoughResources",
            "message": f"{missing}/{outcome.seen} tasks in gang unschedulable: {why}",
        }
    line["status"] = "True"
    old = next((condition for condition in observed if condition.get("type") == line["type"]), {})
    before = {
        name: value
        for name, value in old.items()
        if name not in ("lastTransitionTime", "transitionID")
    }
    if before == line or (keep_sentences and {**before, "message": ""} == {**line, "message": ""}):
        return observed
    line |= {"lastTransitionTime": now, "transitionID": str(outcome.generation)}
    return [*(condition for condition in observed if condition.get("type") != line["type"]), line]


def _automatic(uid: str) -> str:
    """The name of the PodGroup that Volcano makes for pods that name none.

    The uid is that of the controller of the pods, or of the pod if it has none. Source:
    pg_controller_handler of Volcano.
    """
    return f"podgroup-{uid}"


def _gang_of(pod: wire.Pod) -> GangKey | None:
    metadata = pod.metadata
    name = metadata.annotations.get(GROUP_ANNOTATION)
    pods = (
        metadata.uid,
        *(owner.uid for owner in metadata.owner_references if owner.kind == "Pod"),
    )
    if not name or name in map(_automatic, pods):
        return None
    return GangKey(metadata.namespace, name, KIND.api)


def _is_automatic(pod: wire.Pod) -> bool:
    name = pod.metadata.annotations.get(GROUP_ANNOTATION)
    return name in [_automatic(owner.uid) for owner in pod.metadata.owner_references]


def _role_of(pod: wire.Pod) -> str:
    return pod.metadata.annotations.get(TASK_ANNOTATION, "")


def _run_of(pod: wire.Pod) -> int:
    """How often the vcjob had been killed when it created the pod; RestartJob increases it."""
    text = pod.metadata.annotations.get(RUN_ANNOTATION, "")
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_RUN else 0


KIND = Kind(
    ApiKind("scheduling.volcano.sh", "PodGroup"),
    "podgroups",
    PodGroup,
    decode_group,
    version="v1beta1",
)
SOURCE = GangSource(
    KIND.crd,
    80,
    _gang_of,
    (KIND,),
    rights=frozenset({KIND.right("patch"), GET_JOB}),
    status=StatusWriter(KIND.right("patch"), status_of, has_effects=True),
    job_kind=JobKind(GET_JOB, Job, pods_of, {"phase": INQUEUE}),
    is_automatic=_is_automatic,
    names_group=True,
    role_of=_role_of,
    run_of=_run_of,
    is_optional=True,
)
