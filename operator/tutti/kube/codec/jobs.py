"""The decoder of Jobs: how many more failures a Job tolerates, which evictions depend on.

A Job is read only when an eviction may affect it.
"""

from ...model.owners import Job
from .. import wire
from .metadata import named

DISRUPTED = "DisruptionTarget"  # the condition of a pod that is evicted


def decode_job(job: wire.Job) -> Job:
    """Read how many more failures a Job tolerates; 0 if it counts failures by index.

    Evictions do not count if a rule ignores disruptions and only Ignore rules come before it. A
    rule with another action may match an evicted pod by its exit code.
    """
    named(job)
    spec, status = job.spec, job.status
    for rule in spec.pod_failure_policy.rules:
        if rule.action != "Ignore":
            break
        if any((c.type, c.status) == (DISRUPTED, "True") for c in rule.on_pod_conditions):
            return Job(job.metadata.name, None)
    if spec.backoff_limit_per_index is not None:
        return Job(job.metadata.name, 0)
    failed = status.failed + len(status.uncounted_terminated_pods.failed)
    return Job(job.metadata.name, max(0, spec.backoff_limit - failed))
