"""What Jobs say of the failures that they stand: all that evictions need to know of them.

Separate from the other decoding because Jobs are read one by one, and only when one may suffer.
"""

from ...model.owners import Job
from .. import wire
from .metadata import named

DISRUPTED = "DisruptionTarget"  # the condition of a pod that is evicted


def decode_job(job: wire.Job) -> Job:
    """Read what a Job still stands; one that counts by index is taken to stand nothing.

    A rule before that for disruptions may match an evicted pod too, by its exit code.
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
