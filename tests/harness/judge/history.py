"""What a witness saw: objects of a few kinds, each change with its revision.

All kinds share one etcd and so one revision counter: revisions order changes across kinds exactly.
Main value: ``History``, plain enough to be written by hand in a test.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

Body = Mapping[str, Any]


class Kind(StrEnum):
    """The kinds that are watched, by the end of their address."""

    PODS = "/api/v1/pods"
    NODES = "/api/v1/nodes"
    NAMESPACES = "/api/v1/namespaces"
    POD_GROUPS = "/apis/tutti.dev/v1alpha1/podgroups"
    RESERVATIONS = "/apis/tutti.dev/v1alpha1/reservations"
    QUEUES = "/apis/tutti.dev/v1alpha1/queues"
    TOPOLOGIES = "/apis/tutti.dev/v1alpha1/topologies"
    KUEUE_TOPOLOGIES = "/apis/kueue.x-k8s.io/v1beta2/topologies"
    KAI_TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"
    VOLUME_CLAIMS = "/api/v1/persistentvolumeclaims"
    VOLUMES = "/api/v1/persistentvolumes"
    DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
    DEVICE_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
    BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
    JOBS = "/apis/batch/v1/jobs"
    # What declares gangs besides, and exists in some clusters only.
    KUBERNETES_GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
    PLUGINS_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
    VOLCANO_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
    RAY_CLUSTERS = "/apis/ray.io/v1/rayclusters"
    JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"

    @property
    def api_group(self) -> str:
        """The API group; empty for the core API."""
        parts = self.value.split("/")
        return parts[2] if parts[1] == "apis" else ""


# By the name by which Tutti is told to read them.
FOREIGN = {
    f"{kind.value.rpartition('/')[2]}.{kind.api_group}": kind
    for kind in (
        Kind.KUBERNETES_GROUPS,
        Kind.PLUGINS_GROUPS,
        Kind.VOLCANO_GROUPS,
        Kind.RAY_CLUSTERS,
        Kind.JOB_SETS,
    )
}
TUTTI_READS = ("podgroups.scheduling.k8s.io",)  # unless it is told otherwise


class Change(StrEnum):
    """What happened to an object; INITIAL is the state in which the witness found it."""

    INITIAL = "INITIAL"
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one object, at the revision at which etcd made it."""

    kind: Kind
    change: Change
    revision: int
    body: Body


@dataclass(frozen=True, slots=True)
class Gap:
    """Revisions (after, upto] in which changes of one kind may have been missed."""

    kind: Kind
    after: int
    upto: int

    def __str__(self) -> str:
        """Name the kind and the revisions."""
        return f"{self.kind.value.rpartition('/')[2]} of revisions {self.after + 1} to {self.upto}"


@dataclass(frozen=True, slots=True)
class History:
    """Everything seen between the start and the end of a witness, ordered by revision."""

    events: tuple[Event, ...]
    start: int = 0
    gaps: tuple[Gap, ...] = ()
    began: datetime | None = None  # None: the audit log is read from its first line
    ended: datetime | None = None

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        *,
        start: int = 0,
        gaps: Iterable[Gap] = (),
        began: datetime | None = None,
        ended: datetime | None = None,
    ) -> "History":
        """Order the events, initial ones first; the sort is stable for one revision."""
        return cls(
            events=tuple(sorted(events, key=_place)),
            start=start,
            gaps=tuple(gaps),
            began=began,
            ended=ended,
        )

    def gap_at(self, revision: int) -> Gap | None:
        """Find the gap that this revision lies in."""
        return next((gap for gap in self.gaps if gap.after < revision <= gap.upto), None)


def _place(event: Event) -> tuple[bool, int]:
    return (event.change is not Change.INITIAL, event.revision)
