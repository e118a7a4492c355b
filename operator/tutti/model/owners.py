"""The controllers that create pods, and how many failed pods a Job tolerates."""

from dataclasses import dataclass

from .keys import Uid

JobKey = tuple[str, str]  # namespace and name


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that created a pod."""

    kind: str
    name: str
    group: str = ""  # its API group, such as "batch"
    uid: Uid | None = None  # None if it was never created, as in a manifest

    @property
    def is_job(self) -> bool:
        """Whether it is a batch Job of Kubernetes, which counts failures."""
        return (self.group, self.kind) == ("batch", "Job")


@dataclass(frozen=True, slots=True)
class Job:
    """How many more failed pods a batch Job tolerates.

    An evicted pod counts as failed, unless the podFailurePolicy ignores it. ``failures_left`` is
    None if the Job does not count evictions.
    """

    namespace: str
    name: str
    failures_left: int | None

    @property
    def key(self) -> JobKey:
        """Its namespace and name."""
        return self.namespace, self.name
