"""Gangs of JobSets (jobset.x-k8s.io), which Kubeflow's Trainer makes, too: each stage is a gang.

A replicated job that depends on the completion of another one never runs beside that one, so the
two are in different stages. Pods of a job that runs on beside a later stage are its extra members
once it has begun. A replicated job that waits until another one is ready cannot start together with
it. So its pods are extra members of the same stage. The number of pods is as in batch/v1. The
controller of JobSet writes the status.

With the annotation ``tutti.dev/hold-later-stages-seconds``, a stage also needs room for all later
stages, by the templates of their pods, and this room is held for so many seconds.
"""

from dataclasses import replace

from ...model.cluster import ABSENT_SECONDS, MadeFor, Role
from ...model.keys import ApiKind, GangKey, Uid
from ...model.shapes import Template
from .. import wire
from ..calls import Kind
from ..codec.metadata import named, seconds_of
from ..errors import BadObject
from . import coscheduling, volcano
from .base import MOST_ROLES, GangObject, GangSource
from .pod_templates import PodTemplate, decode_template
from .topology_annotations import PodTemplates, levels_of

NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
ROLE_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
UID_LABEL = "jobset.sigs.k8s.io/jobset-uid"
RUN_LABEL = "jobset.sigs.k8s.io/restart-attempt"
COMPLETE, IN_ORDER = "Complete", "InOrder"
HOLD = "tutti.dev/hold-later-stages-seconds"
MOST_HELD = 5_000  # pods of later stages, as members of a PodGroup
LONGEST_HOLD = 86_400  # seconds, as in a PodGroup
_LONGEST_RUN = 9  # digits: the attempt is an int32


class JobSpec(wire.Wire):
    """How many pods a Job has at a time, and their template."""

    parallelism: int | None = None
    completions: int | None = None
    template: PodTemplate = PodTemplate()


class JobTemplate(wire.Wire):
    """The template of the Jobs."""

    spec: JobSpec = JobSpec()


class Dependency(wire.Wire):
    """The replicated job that comes before, and the state that it must have reached."""

    name: str = ""
    status: str = ""


class ReplicatedJob(wire.Wire):
    """A number of equal Jobs."""

    name: str = ""
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[Dependency, ...] = ()


class StartupPolicy(wire.Wire):
    """Whether each replicated job waits until the one before it is ready."""

    startup_policy_order: str = ""


class JobSetSpec(wire.Wire):
    """The spec of a JobSet."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy = StartupPolicy()


class JobSet(wire.Object):
    """A JobSet."""

    spec: JobSetSpec = JobSetSpec()


def decode_set(jobset: JobSet) -> GangObject:
    """Read a JobSet; its roles are those of the first stage until a later stage has pods."""
    named(jobset)
    metadata = jobset.metadata
    stages = _stages(jobset.spec)
    has_too_many = len(jobset.spec.replicated_jobs) > MOST_ROLES
    unsupported = ["more than 100 replicatedJobs"] if has_too_many else []
    hold = ABSENT_SECONDS
    if (text := metadata.annotations.get(HOLD)) is not None:
        try:
            stages, hold = _with_templates(stages, jobset), _hold_seconds(text)
        except BadObject as problem:
            unsupported.append(f"annotation {HOLD}: {problem.sentence}")
    annotated = map(_annotated, jobset.spec.replicated_jobs)
    levels = levels_of(metadata, () if has_too_many else annotated)
    first = stages[0] if stages else ()
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name, KIND.api),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, sum(role.min_member for role in first)),
        roles=first[:MOST_ROLES],
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        unsupported_fields=(*unsupported, *levels.unsupported),
        same_domain=levels.same_domain,
        preferred_domains=levels.preferred_domains,
        segments=levels.segments,
        absent_seconds=hold,
        holds_later_stages=HOLD in metadata.annotations,
        version=metadata.resource_version,
        stages=() if has_too_many else stages,
    )


def _annotated(job: ReplicatedJob) -> PodTemplates:
    """The template of a replicated job; of several equal Jobs, indexes of pods are not unique."""
    problem = "" if job.replicas == 1 else f"there are {job.replicas} replicas of the Job, not 1"
    annotations = job.template.spec.template.metadata.annotations
    return PodTemplates(job.name, annotations, INDEX_LABEL, problem)


def _hold_seconds(text: str) -> int:
    seconds = int(text) if text.isdecimal() and len(text) <= _LONGEST_RUN else 0
    if not 1 <= seconds <= LONGEST_HOLD:
        raise BadObject(HOLD, f"{text[:20]!r} is no number from 1 to {LONGEST_HOLD}")
    return seconds


def _with_templates(
    stages: tuple[tuple[Role, ...], ...], jobset: JobSet
) -> tuple[tuple[Role, ...], ...]:
    """The stages with templates of the pods that the stages after the first need.

    Raises:
        BadObject: a template cannot be placed or read, or there would be too many of these pods.
    """
    if (held := sum(role.min_member for roles in stages[1:] for role in roles)) > MOST_HELD:
        raise BadObject(HOLD, f"later stages need {held} pods; at most {MOST_HELD} are held")
    jobs = {job.name: job for job in jobset.spec.replicated_jobs}
    later = (
        tuple(
            replace(role, template=_template(jobs[role.name], jobset)) if role.min_member else role
            for role in roles
        )
        for roles in stages[1:]
    )
    return (*stages[:1], *later)


def _template(job: ReplicatedJob, jobset: JobSet) -> Template:
    labels = {NAME_LABEL: jobset.metadata.name, ROLE_LABEL: job.name}
    part = f"replicated job {job.name}"
    return decode_template(job.template.spec.template, jobset.metadata, part, labels)


def _stages(spec: JobSetSpec) -> tuple[tuple[Role, ...], ...]:
    """The roles of each stage; a job may depend only on jobs before it in the list."""
    in_order = spec.startup_policy.startup_policy_order == IN_ORDER
    number: dict[str, int] = {}
    stages: dict[int, list[Role]] = {}
    for job in spec.replicated_jobs:
        dependencies = [
            (number.get(dependency.name, 0), dependency.status == COMPLETE)
            for dependency in job.depends_on
        ]
        stage = max((at + is_complete for at, is_complete in dependencies), default=0)
        # A job that is created while another of its stage runs is not needed for the start.
        is_later = (in_order and bool(number)) or any(at == stage for at, _ in dependencies)
        number[job.name] = stage
        stages.setdefault(stage, []).append(Role(job.name, 0 if is_later else _pods(job)))
    return tuple(
        tuple(sorted(stages[stage], key=lambda role: role.name)) for stage in sorted(stages)
    )


def _pods(job: ReplicatedJob) -> int:
    """How many pods a replicated job has at a time; as in batch/v1, at most its completions."""
    spec = job.template.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    completions = parallelism if spec.completions is None else spec.completions
    return max(0, job.replicas) * max(0, min(parallelism, completions))


def _gang_of(pod: wire.Pod) -> GangKey | None:
    labels = pod.metadata.labels
    name = labels.get(NAME_LABEL)
    return GangKey(pod.metadata.namespace, name, KIND.api) if name else None


def _same_gangs(pod: wire.Pod) -> tuple[GangKey, ...]:
    """The PodGroups that Trainer makes of a TrainJob, which has the name of its JobSet."""
    space, name = pod.metadata.namespace, pod.metadata.labels[NAME_LABEL]
    return tuple(GangKey(space, name, kind.api) for kind in (coscheduling.KIND, volcano.KIND))


def _role_of(pod: wire.Pod) -> str:
    return pod.metadata.labels.get(ROLE_LABEL, "")


def _run_of(pod: wire.Pod) -> int:
    """How often the JobSet had been restarted when it created the pod."""
    text = pod.metadata.labels.get(RUN_LABEL, "")
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_RUN else 0


def _made_for(pod: wire.Pod) -> MadeFor | None:
    uid = pod.metadata.labels.get(UID_LABEL)
    return MadeFor(KIND.api, Uid(uid)) if uid else None


KIND = Kind(ApiKind("jobset.x-k8s.io", "JobSet"), "jobsets", JobSet, decode_set, version="v1alpha2")
SOURCE = GangSource(
    KIND.crd,
    50,
    _gang_of,
    (KIND,),
    role_of=_role_of,
    run_of=_run_of,
    made_for=_made_for,
    same_gangs=_same_gangs,
    names_group=True,
    is_optional=True,
)
