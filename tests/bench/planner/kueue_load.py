"""The load of Kueue's own benchmark, as Queues and gangs.

The numbers are those of ``test/performance/scheduler/configs`` of kubernetes-sigs/kueue v0.19.2:
``generator.yaml`` for the load, ``rangespec.yaml`` for the figures that Kueue publishes (means of
runs on its own test machines), and ``tas/generator.yaml`` for the nodes, because the others have
none. The code is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.model.cluster import Node
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue
from tutti.model.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .scenes import Scene

NODES = 640  # tas/generator.yaml: 10 racks of 64
NODE = Resources.of({"cpu": 96_000, "memory": 256 * 2**30, "pods": 110})
CORE = 1_000  # of the resource cpu, which counts thousandths


@dataclass(frozen=True, slots=True)
class WorkloadClass:
    """The workloads of one class in each queue; each is one pod."""

    name: str
    count: int
    every: float  # seconds from one to the next; the first comes after as many
    runtime: float  # seconds
    priority: int
    cores: int


@dataclass(frozen=True, slots=True)
class Published:
    """What Kueue publishes of this load: means of runs on other machines."""

    seconds: float  # from the start of Kueue to its end
    usage: float  # of the nominal quota, by its own count
    admission: Sequence[float]  # mean seconds until a workload is admitted, by class


@dataclass(frozen=True, slots=True)
class Load:
    """Cohorts of equal queues. A queue may borrow all that the others of its cohort leave."""

    name: str
    cohorts: int
    queues: int  # in each cohort
    classes: tuple[WorkloadClass, ...]
    published: Published
    nominal: int = 20  # cores of each queue
    borrowing: int = 100  # cores that a queue may use beyond them

    @property
    def cores(self) -> int:
        """The quota of all queues together."""
        return self.cohorts * self.queues * self.nominal

    @property
    def workloads(self) -> int:
        """How many there are in all."""
        return self.cohorts * self.queues * sum(cls.count for cls in self.classes)

    @property
    def core_seconds(self) -> float:
        """What all of them use together."""
        own = sum(cls.count * cls.cores * cls.runtime for cls in self.classes)
        return self.cohorts * self.queues * own

    def scaled(self, scale: float) -> Load:
        """Fewer cohorts; and where less than one were left, fewer workloads in one cohort."""
        cohorts = max(1, round(self.cohorts * scale))
        part = min(1.0, self.cohorts * scale)
        classes = (replace(cls, count=max(1, round(cls.count * part))) for cls in self.classes)
        return replace(self, cohorts=cohorts, classes=tuple(classes))


@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """A workload that is created."""

    at: float  # seconds from the start
    queue: str
    name: str
    of: WorkloadClass


BASELINE = Load(
    "baseline",
    cohorts=5,
    queues=6,
    classes=(
        WorkloadClass("small", 350, 0.1, 0.2, 50, 1),
        WorkloadClass("medium", 100, 0.5, 0.5, 100, 5),
        WorkloadClass("large", 50, 1.2, 1.0, 200, 20),
    ),
    published=Published(351.1, 0.559, (215.5, 76.8, 16.5)),
)
LARGE_SCALE = Load(
    "large-scale",
    cohorts=10,
    queues=100,
    classes=(
        WorkloadClass("small", 35, 0.06, 0.15, 50, 1),
        WorkloadClass("medium", 11, 0.3, 0.35, 100, 5),
        WorkloadClass("large", 4, 0.7, 0.7, 200, 20),
    ),
    published=Published(1_179.4, 0.3864, (700.4, 256.4, 105.6)),
)
LOADS = {load.name: load for load in (BASELINE, LARGE_SCALE)}


def of(scene: Scene) -> Load:
    """The load of a scene."""
    return LOADS[scene.load].scaled(scene.scale)


def queues(load: Load) -> Iterator[Queue]:
    """A queue per cohort, which lends nothing to others, and below it the queues of the cohort."""
    for c in range(load.cohorts):
        cohort = f"cohort-{c}"
        yield Queue(
            cohort,
            Uid(f"uid-{cohort}"),
            limits=(("cpu", load.queues * load.nominal * CORE),),
        )
        for name in queue_names(load, c):
            yield Queue(
                name,
                Uid(f"uid-{name}"),
                parent=cohort,
                guaranteed=(("cpu", load.nominal * CORE),),
                limits=(("cpu", (load.nominal + load.borrowing) * CORE),),
            )


def queue_names(load: Load, cohort: int) -> Iterator[str]:
    """The queues of a cohort."""
    return (f"cq-{q}-cohort-{cohort}" for q in range(load.queues))


def nodes(count: int) -> Iterator[Node]:
    """Empty nodes."""
    return (Node(NodeName(f"node-{n:05}"), NODE) for n in range(count))


def arrivals(load: Load) -> Sequence[Arrival]:
    """All workloads in the order in which they are created; all queues begin together."""
    return sorted(
        Arrival(cls.every * (n + 1), queue, f"{cls.name}-{n}", cls)
        for c in range(load.cohorts)
        for queue in queue_names(load, c)
        for cls in load.classes
        for n in range(cls.count)
    )


def least_seconds(load: Load) -> float:
    """No schedule ends earlier: the quota is not exceeded, and nothing starts before it is there.

    What is created at or after a moment uses at least this many core seconds after it.
    """
    each = load.cohorts * load.queues
    moments = [0.0, *(cls.every * (n + 1) for cls in load.classes for n in range(cls.count))]
    latest = max(cls.every * cls.count + cls.runtime for cls in load.classes)

    def later(moment: float, workload_class: WorkloadClass) -> int:
        return sum(workload_class.every * (n + 1) >= moment for n in range(workload_class.count))

    bounds = (
        moment
        + sum(each * later(moment, cls) * cls.cores * cls.runtime for cls in load.classes)
        / load.cores
        for moment in moments
    )
    return max(latest, *bounds)
