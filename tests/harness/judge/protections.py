"""PodDisruptionBudgets and Jobs as the judge reads them: how many evictions they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .queues import selects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .history import Body
    from .views import Key


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget at one revision."""

    key: Key
    uid: str
    selector: Body | None
    allowed: int

    def __str__(self) -> str:
        """Name it."""
        return f"PodDisruptionBudget {self.key}"

    def is_of(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is one of its pods."""
        return namespace == self.key.namespace and selects(self.selector, labels)


@dataclass(frozen=True, slots=True)
class Job:
    """A batch Job at one revision; ``allowed`` is None where it does not count evictions."""

    key: Key
    uid: str
    allowed: int | None  # failures after which it still goes on

    def __str__(self) -> str:
        """Name it."""
        return f"Job {self.key}"


def read_budget(key: Key, body: Body) -> Budget:
    """Read a PodDisruptionBudget; one without a status allows nothing yet."""
    allowed = int((body.get("status") or {}).get("disruptionsAllowed") or 0)
    return Budget(key, body["metadata"]["uid"], body["spec"].get("selector"), allowed)


def read_job(key: Key, body: Body) -> Job:
    """Read a Job; one that ignores any failures is taken not to count evictions."""
    spec, status = body["spec"], body.get("status") or {}
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    is_lenient = any(rule["action"] == "Ignore" for rule in rules)
    failed = int(status.get("failed") or 0)
    failed += len((status.get("uncountedTerminatedPods") or {}).get("failed") or ())
    allowed = None if is_lenient else max(int(spec["backoffLimit"]) - failed, 0)
    return Job(key, body["metadata"]["uid"], allowed)


def job_of(body: Body) -> str:
    """The uid of the Job that made a pod; empty if none did."""
    owners = body["metadata"].get("ownerReferences") or ()
    jobs = (
        str(owner["uid"])
        for owner in owners
        if owner.get("controller") and owner["kind"] == "Job" and "batch/" in owner["apiVersion"]
    )
    return next(jobs, "")
