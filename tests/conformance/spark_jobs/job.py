"""One application from `spark-submit` to its result: every pod of it placed by Tutti, and run.

PyPI's pyspark carries Spark's examples in Python, and no jar of those in Scala: so it is `pi.py`,
which computes what SparkPi does. Driver and executors are JVMs; tasks run in the executors' Python.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...harness.kubelet import Kubelet
from ...harness.rig import Rig
from ..spark_sizes import environment
from ..spark_sizes.asked import NAMESPACE, Door
from . import page
from .processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ..spark_sizes.pins import Pin
    from .processes import Ran

EXECUTORS, TASKS = 3, 30  # as docs/spark.md says
RUN_SECONDS = 600.0  # four JVMs, on two cores that may be busy
OVER = ("Succeeded", "Failed")
SUBMIT = ("spark-submit", "pi.py", f"spark.executor.instances={EXECUTORS}")
_PI = re.compile(r"Pi is roughly (\d\.\d+)")
_FINISHED = re.compile(r"Finished task \S+ in stage .* on (\S+) \(executor \d+\)")


@dataclass(frozen=True, slots=True)
class Done:
    """What came out of it: the driver's words, and what each pod did on which node."""

    spark: str
    pi: float
    driver: Ran
    executors: Mapping[str, tuple[str, int]]  # its pod's name: node and number of tasks

    def check(self) -> None:
        """Refuse what is not an application that ran whole."""
        nodes = {self.driver.node, *(node for node, _ in self.executors.values())}
        counts = [n for _, n in self.executors.values()]
        assert 3.1 < self.pi < 3.2, self
        assert len(nodes) == 1 + len(self.executors) == 1 + EXECUTORS, self
        assert sum(counts) == TASKS, self
        assert all(counts), self

    def __str__(self) -> str:
        parts = [f"{name} on {node}: {n}" for name, (node, n) in sorted(self.executors.items())]
        return (
            f"Spark {self.spark}: Pi is roughly {self.pi}; driver on {self.driver.node}; "
            f"tasks of {', '.join(parts)}"
        )


@contextmanager
def cluster(*components: str) -> Iterator[Rig]:
    """A cluster whose Tutti makes gangs of Spark applications."""
    enabled = {"TUTTI_SPARK_ENABLED": "true"}
    with Rig.start(*components, values=["spark.enabled=true"], environment=enabled) as rig:
        yield rig


def done(pin: Pin, folder: Path) -> Done:
    """Run it where it just fits; the judge looks at all of it."""
    spark = environment.installed(pin)
    with cluster() as rig:
        door = Door(rig.plane)
        shell = page.Shell.opened(pin, door, folder)
        with (
            Processes(rig.plane, spark, folder) as processes,
            Kubelet(rig.plane, processes) as kubelet,
        ):
            kubelet.nodes(1 + EXECUTORS, cpu=1, memory="2Gi")
            shell.run(page.command(*SUBMIT))
            try:
                return _followed(pin, rig, processes)
            except AssertionError as problem:
                for ran in processes.ran.values():
                    problem.add_note(f"{ran.name}:\n{ran.tail()}")
                raise


def _followed(pin: Pin, rig: Rig, processes: Processes) -> Done:
    """The application from its driver's binding to the moment when all room is given back."""

    def driver() -> Mapping[str, Any]:
        (found,) = [pod for pod in rig.pods(namespace=NAMESPACE) if _part(pod) == "driver"]
        return found

    rig.until(lambda: driver()["spec"].get("nodeName"), "the driver is bound")
    group = driver()["metadata"]["labels"]["spark-app-selector"]
    held = rig.until(lambda: rig.reservations(NAMESPACE), "room for the executors is held")
    slots = sum(each.get("slots", {}).get("executor", 0) for each in held[0]["spec"]["placement"])
    assert slots == EXECUTORS, held
    rig.until(lambda: driver()["status"]["phase"] in OVER, "it ends", RUN_SECONDS)
    ran = processes.ran_as(driver()["metadata"]["name"])
    assert driver()["status"]["phase"] == "Succeeded"
    rig.until(lambda: rig.group(group, NAMESPACE)["status"]["phase"] == "Finished", "it says so")
    rig.until(lambda: not _holding(rig), "all room is given back")
    said = ran.log.read_text(errors="replace")
    found = _PI.search(said)
    assert found is not None, "no word of Pi"
    tasks = Counter(_FINISHED.findall(said))
    others = [each for each in processes.ran.values() if each.labels["spark-role"] == "executor"]
    return Done(
        pin.name,
        float(found[1]),
        ran,
        {each.name: (each.node, tasks[each.address]) for each in others},
    )


def _holding(rig: Rig) -> list[object]:
    """Who still has room: Reservations, and pods that are not over."""
    pods = [pod for pod in rig.pods(namespace=NAMESPACE) if pod["status"]["phase"] not in OVER]
    return [*rig.reservations(NAMESPACE), *pods]


def _part(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["spark-role"])
