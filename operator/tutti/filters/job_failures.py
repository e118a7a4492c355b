"""Which evictions Jobs tolerate: an evicted pod of a Job counts as a failed one.

Source: "Pod backoff failure policy" in the documentation of Jobs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..gang.findings import JobNotRead, JobWouldFail
from ..model.cluster import Member
from ..model.owners import Job, JobKey


def keys(members: Iterable[Member]) -> Counter[JobKey]:
    """The Jobs that created members, and how many of them each created."""
    return Counter(
        (member.key.namespace, member.owner.name)
        for member in members
        if member.owner is not None and member.owner.is_job
    )


def obstacle(
    members: Sequence[Member], jobs: Mapping[JobKey, Job]
) -> JobNotRead | JobWouldFail | None:
    """The first Job that the eviction of these members would make fail, or that is unknown."""
    for key, evictions in sorted(keys(members).items()):
        job = jobs.get(key)
        if job is None:
            return JobNotRead(key[1])
        if job.failures_left is not None and evictions >= job.failures_left:
            return JobWouldFail(job.name, job.failures_left, evictions)
    return None
