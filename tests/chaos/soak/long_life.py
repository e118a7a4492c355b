"""A long life: thousands of gangs on one operator process, and what is left of them in it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...harness import rig
from ...harness.controlplane.nodes import node_manifest
from ...harness.judge import background
from ...harness.operator_process import ROOT
from . import lives
from .watched import ANSWER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...harness.controlplane.cluster import ControlPlane
    from ...harness.operator_process import OperatorProcess

T = TypeVar("T")

SAMPLE_SECONDS = 0.5
ANSWER_SECONDS = 60.0
REST_SECONDS = 90.0  # until everything that the gangs have set off is over; kopf's workers linger
FIRST = "first"  # a PodGroup that shows that the operator's start is over
WORKER = "worker"  # a task of kopf's, for each object that it was shown a moment ago
GROWTH = 0.10  # of the resident memory in the second quarter
PAGE = os.sysconf("SC_PAGE_SIZE")

# How to start an operator that can be looked into, as options of ``OperatorProcess``.
WATCHED: Mapping[str, Any] = {
    "command": (sys.executable, "-m", "tests.chaos.soak.watched"),
    "environment": {"PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"},
}


@dataclass(frozen=True, slots=True)
class Look:
    """What one look into the operator's process has shown."""

    tasks: Mapping[str, int]  # asyncio's, by coroutine
    differences: Sequence[str]  # between its World and a fresh list
    sizes: Mapping[str, int]  # of the World's stores


@dataclass(slots=True)
class Memory:
    """Resident memory over time: how many gangs were over, and bytes."""

    gangs: int
    samples: list[tuple[int, int]] = field(default_factory=list)

    def quarter(self, number: int) -> float:
        """The mean in MB while this quarter of the gangs lived, counted from 1."""
        first, last = (self.gangs * n / 4 for n in (number - 1, number))
        within = [held for done, held in self.samples if first <= done < last]
        return statistics.mean(within) / 1e6 if within else 0.0

    @property
    def growth(self) -> float:
        """From the second quarter to the last."""
        return self.quarter(4) / self.quarter(2) - 1 if self.quarter(2) else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has left."""

    played: Mapping[lives.Fate, int]
    seconds: float
    memory: Memory
    reservations: Sequence[str]
    before: Look
    after: Look

    @property
    def leaked(self) -> Mapping[str, int]:
        """The asyncio tasks that were not there before."""
        more = {name: n - self.before.tasks.get(name, 0) for name, n in self.after.tasks.items()}
        return {name: n for name, n in more.items() if n > 0}


def run(
    plane: ControlPlane,
    operator: OperatorProcess,
    casting: lives.Casting,
    tell: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Play all lives on a cluster with nodes and an operator that can be looked into."""
    plane.create_namespace(lives.NAMESPACE)
    before = _begun(plane, operator)
    memory = Memory(casting.gangs)
    began = time.monotonic()
    played = background.run(_play(plane, operator, casting, memory, tell))
    seconds = time.monotonic() - began

    def outcome() -> Outcome:
        after = look(plane, operator)
        return Outcome(played, seconds, memory, _standing(plane), before, after)

    return _at_rest(
        outcome, lambda one: not (one.reservations or one.leaked or one.after.differences)
    )


def add_nodes(plane: ControlPlane, count: int) -> None:
    """Make nodes that kwok keeps alive, and wait until pods may run there."""
    plane.create(node_manifest(f"node-{i:03}", cpu=8, memory="32Gi") for i in range(count))
    deadline = time.monotonic() + ANSWER_SECONDS
    while any(
        node["spec"].get("taints") for node in plane.request("GET", "/api/v1/nodes")["items"]
    ):
        assert time.monotonic() < deadline, "the nodes do not become ready"
        time.sleep(0.2)


def look(plane: ControlPlane, operator: OperatorProcess) -> Look:
    """Ask the operator's process what is in it."""
    path = plane.directory / "service-accounts" / ANSWER
    path.unlink(missing_ok=True)
    assert operator.process is not None, "the operator runs"
    operator.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + ANSWER_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"no answer:\n{operator.tail()}"
        time.sleep(0.05)
    return Look(**json.loads(path.read_text()))


def _begun(plane: ControlPlane, operator: OperatorProcess) -> Look:
    """What is in an operator whose start is over: it has followed one PodGroup to its end.

    Who is ready knows the cluster, but may still be about to watch it: tasks that were counted then
    are too few.
    """
    path = f"{lives.GROUPS}/{FIRST}"
    plane.create([rig.pod_group(FIRST, 1, namespace=lives.NAMESPACE)])
    told = _at_rest(lambda: plane.request("GET", path), lambda group: "status" in group)
    assert "status" in told, f"the first PodGroup was told nothing:\n{operator.tail()}"
    plane.request("DELETE", path)
    return _at_rest(
        lambda: look(plane, operator), lambda one: not (one.differences or WORKER in one.tasks)
    )


def _at_rest(see: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    """What is seen once it is so, or has not become so in the time that rest may take."""
    deadline = time.monotonic() + REST_SECONDS
    while not is_so(seen := see()) and time.monotonic() < deadline:
        time.sleep(1)
    return seen


async def _play(
    plane: ControlPlane,
    operator: OperatorProcess,
    casting: lives.Casting,
    memory: Memory,
    tell: Callable[[int], None],
) -> Mapping[lives.Fate, int]:
    assert operator.process is not None, "the operator runs"
    process = operator.process.pid
    async with lives.Stage(plane.kubeconfig) as stage:
        play = lives.Play(stage, casting)

        async def sample() -> None:
            while True:
                memory.samples.append((play.played.total(), _resident(process)))
                await asyncio.sleep(SAMPLE_SECONDS)

        sampling = asyncio.create_task(sample())
        try:
            await play.run(tell)
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
    return play.played


def _resident(process: int) -> int:
    """Bytes of memory that a process has now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE


def _standing(plane: ControlPlane) -> Sequence[str]:
    listed = plane.request("GET", "/apis/tutti.dev/v1alpha1/reservations")["items"]
    return [str(one["metadata"]["name"]) for one in listed]
