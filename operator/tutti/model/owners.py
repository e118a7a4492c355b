"""Controllers: who makes pods, and what they stand when one is evicted.

Separate from the cluster, of which a decision knows only which pods have the same controller.
"""

from dataclasses import dataclass

from .keys import Uid


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that made a pod."""

    kind: str
    name: str
    group: str = ""  # of its API: "batch" of a Job
    uid: Uid | None = None  # None where it was never created, as in a manifest

    @property
    def is_job(self) -> bool:
        """Whether it is a Job of Kubernetes' own, which counts failures."""
        return (self.group, self.kind) == ("batch", "Job")


@dataclass(frozen=True, slots=True)
class Job:
    """What a batch Job still stands: an evicted pod counts as failed, unless its policy says not.

    ``failures_left`` is how many more failures it survives; None where it does not count them.
    """

    name: str
    failures_left: int | None
