"""One tenant floods the cluster with PodGroups; the gangs of another start all the same.

Every tenth of the flood has its pods, which ask for more than any node has: it is planned for, told
why it waits, and waits for ever. The others have no pods. What counts is that each gang starts and
none waits long; how long a cycle takes depends on the machine, so cycles are compared with those
before the flood came.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...harness.rig import members, pod_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ...harness.rig import Rig

NODES = 4
MEMBERS = 4
ASKING = 10  # every so manieth has pods
FLOODED = "flood"
PAUSE_SECONDS = 0.5
FEW = 3  # gangs that come before the flood, and when all of it was told
GROWTH = 10.0  # times as long as before a cycle may take once the flood was told why it waits
# Seconds that a gang may wait at most, before the flood, beside it and afterwards: ten times the
# 5.9 that `python -m tests.chaos.soak flood` has printed at most on two cores: it was 36.7 while
# others kept these busy. An operator that stands still until the flood is told takes minutes.
WAIT = 60.0
LOOK_SECONDS = 5.0  # between two looks at who was told: a list of them all is no small thing
PATIENCE = 600.0  # seconds; longer than WAIT, so that what is too long is printed, too


class Cycles(NamedTuple):
    """How many cycles there were, and how many seconds they took, as the operator counts them."""

    number: float
    seconds: float

    @classmethod
    def so_far(cls, rig: Rig) -> Cycles:
        """Since the operator began."""
        lines = [line.rpartition(" ") for line in rig.operator.probe("metrics").splitlines()]
        stages = [float(n) for name, _, n in lines if name.startswith(f"{_STAGES}_sum")]
        (number,) = [
            float(n) for name, _, n in lines if name == f'{_STAGES}_count{{stage="report"}}'
        ]
        return cls(number, sum(stages))

    def since(self, before: Cycles) -> Cycles:
        """Those that came after others."""
        return Cycles(self.number - before.number, self.seconds - before.seconds)

    @property
    def mean(self) -> float:
        """Seconds of one."""
        return self.seconds / max(self.number, 1.0)


@dataclass(frozen=True, slots=True)
class Part:
    """Seconds from a gang's last pod to its last binding, and the cycles meanwhile."""

    waits: tuple[float, ...]
    cycles: Cycles

    @property
    def longest(self) -> float:
        """What the one waited that waited longest."""
        return max(self.waits)


@dataclass(frozen=True, slots=True)
class Flood:
    """What gangs waited before the flood, while it rose, was told why it waits, and had been."""

    rising_seconds: float  # until all of it was there
    telling_seconds: float  # from then on, until each of it had a status
    calm: Part
    rising: Part
    telling: Part
    standing: Part

    @property
    def longest(self) -> float:
        """What any gang waited at most."""
        return max(part.longest for part in (self.calm, self.rising, self.telling, self.standing))

    @property
    def growth(self) -> float:
        """How many times as long a cycle takes once the flood was told."""
        return self.standing.cycles.mean / self.calm.cycles.mean


def run(rig: Rig, groups: int) -> Flood:
    """Let so many PodGroups come at once, and gangs of another namespace before and beside them."""
    rig.nodes(NODES, cpu=64, memory="256Gi", pods=1000)
    rig.plane.create_namespace(FLOODED)
    starter = _Starter(rig)
    calm = starter.part(FEW)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        flood = pool.submit(rig.plane.create, _flood(groups))
        rising = starter.part(1, until=flood.done)
        flood.result()
    risen = time.monotonic()
    told = _Told(rig, groups)
    telling = starter.part(FEW, until=told)
    ended = time.monotonic()
    standing = starter.part(FEW)
    return Flood(risen - began, ended - risen, calm, rising, telling, standing)


_GROUPS = f"/apis/tutti.dev/v1alpha1/namespaces/{FLOODED}/podgroups"
_STAGES = "tutti_cycle_stage_seconds"


def _flood(groups: int) -> Iterator[Mapping[str, Any]]:
    names = [f"flood-{number}" for number in range(groups)]
    for name in names:
        yield pod_group(name, 1, namespace=FLOODED)
    for name in names[::ASKING]:
        yield from members(name, 1, namespace=FLOODED, cpu=1000)


class _Told:
    """Whether each PodGroup of the flood has a status, as far as was seen a moment ago."""

    def __init__(self, rig: Rig, groups: int) -> None:
        self._rig = rig
        self._groups = groups
        self._again = 0.0
        self._deadline = time.monotonic() + PATIENCE

    def __call__(self) -> bool:
        now = time.monotonic()
        if now < self._again:
            return False
        there = self._rig.plane.request("GET", _GROUPS)["items"]
        assert len(there) == self._groups, f"{len(there)} of {self._groups} PodGroups were made"
        told = sum(bool(group.get("status")) for group in there)
        assert now < self._deadline, f"{told} of {self._groups} were told why they wait"
        self._again = time.monotonic() + LOOK_SECONDS
        return told == self._groups


class _Starter:
    """Starts one gang after the other, each with a name of its own."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._started = 0

    def part(self, least: int, until: Callable[[], bool] = lambda: True) -> Part:
        """Start so many gangs at least, and more until something is so."""
        before = Cycles.so_far(self._rig)
        waits: list[float] = []
        while len(waits) < least or not until():
            waits.append(self._start())
            time.sleep(PAUSE_SECONDS)
        return Part(tuple(waits), Cycles.so_far(self._rig).since(before))

    def _start(self) -> float:
        """Start a gang, and answer how long that took."""
        name, self._started = f"train-{self._started}", self._started + 1
        self._rig.create(pod_group(name, MEMBERS), *members(name, MEMBERS, cpu="100m"))
        created = time.monotonic()
        self._rig.until(
            lambda: self._rig.bound(name) == MEMBERS, f"{name} is bound", seconds=PATIENCE
        )
        return time.monotonic() - created
