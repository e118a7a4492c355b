"""Kueue's load, planned: gangs come, start, run for their time and end, while the clock goes on.

The first steps of a real ``Cycle`` on a real cluster state: observe, plan, verify. The seconds that
they take count, and nothing else does: there is no API server, and what a plan starts runs as soon
as the plan is checked.
"""

from __future__ import annotations

import gc
import heapq
import math
import statistics
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

from tutti.kube.codec.queues import QueueObject
from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item
from tutti.model.cluster import Member, Namespace, Reservation
from tutti.model.keys import GangKey, PodKey, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.operator.cycle import Cycle
from tutti.operator.main import GC_THRESHOLD
from tutti.operator.runner import SETTLE_SECONDS
from tutti.state.cluster_state import ClusterState
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from . import kueue_load
from .kueue_load import CORE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.kube.client import Api
    from tutti.model.cluster import Node
    from tutti.model.decisions import Placement
    from tutti.strategies.problem import Strategy

    from .kueue_load import Arrival, Load

BEGAN = 1_700_000_000.0  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class _Workload:
    arrival: Arrival
    group: GangObject
    pod: Member


@dataclass(slots=True)
class Tally:
    """What has happened so far, in seconds from the start."""

    cycles: int = 0
    planning: float = 0.0  # seconds of all cycles together
    slowest: float = 0.0  # seconds of one cycle
    ended: float = 0.0  # when the last workload ended
    waiting: float = 0.0  # seconds in which any workload waited
    used: float = 0.0  # core seconds while any waited
    waits: dict[str, list[float]] = field(default_factory=dict)  # until each started, by class

    @property
    def started(self) -> int:
        """How many workloads have started."""
        return sum(map(len, self.waits.values()))

    def figures(self, load: Load) -> Mapping[str, float]:
        """What became of the load; until the start, the mean of each class."""
        waits = {f"until {name}": statistics.fmean(own) for name, own in self.waits.items()}
        return {
            "started per second": self.started / self.planning if self.planning else math.nan,
            "cycles": self.cycles,
            "slowest cycle": self.slowest,
            "quota in use": self.used / (self.waiting * load.cores) if self.waiting else 1.0,
            "end": self.ended,
            **waits,
        }


class Simulation:
    """An operator without an API server, and a load for it."""

    def __init__(
        self,
        load: Load,
        nodes: Sequence[Node],
        strategy: Strategy,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """``clock`` gives seconds since any moment; it measures the cycles."""
        self.tally = Tally()
        self._clock = clock
        self._now = 0.0
        self._cores = 0  # that run
        self._state = ClusterState(lambda: None)
        self._version = 0
        self._arrivals = [*reversed(kueue_load.arrivals(load))]
        self._shapes = {
            of.name: Shape(Resources.of({"cpu": of.cores * CORE, "pods": 1})) for of in load.classes
        }
        self._waiting: dict[Uid, _Workload] = {}
        self._running: dict[Uid, tuple[_Workload, Reservation]] = {}
        self._ends: list[tuple[float, Uid]] = []  # of these, a heap
        self._cycle = Cycle(
            self._state,
            cast("Api", None),
            scheduler="tutti",
            strategy=strategy,
            fallback=BestFit(),
            budget=Budget(),
            clock=lambda: BEGAN + self._now,
        )
        for node in nodes:
            self._state.nodes.put(Item(Uid(f"uid-{node.name}"), self._next_version(), node))
        for queue in kueue_load.queues(load):
            version = self._next_version()
            self._state.queues.put(Item(queue.uid, version, QueueObject(queue, str(version))))
        for name in sorted({arrival.queue for arrival in self._arrivals}):
            namespace = Namespace(name)
            uid = Uid(f"uid-namespace-{name}")
            self._state.namespaces.put(Item(uid, self._next_version(), namespace))

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    async def run(self) -> str:
        """Play the load to its end; answers that workloads never start, if that is so."""
        thresholds = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)  # as the operator does when it begins
        try:
            return await self._play()
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()

    async def _play(self) -> str:
        while self._arrivals or self._waiting:
            if not await self._run_cycle() and not self._wait_for_event():
                return f"{len(self._waiting)} workloads never start"
        while self._ends:
            self._wait_for_event()
        return ""

    async def _run_cycle(self) -> bool:
        """Plan once, and start what is planned; answers whether anything has changed meanwhile."""
        self._pass_time(self._now + SETTLE_SECONDS)
        start = self._clock()
        snapshot = self._cycle._observe()
        plan = await self._cycle._plan(snapshot, self._cycle._strategy)
        checked = await self._cycle._check(snapshot, plan)
        seconds = self._clock() - start
        assert tuple(checked.placements) == plan.placements  # else the plan broke a promise
        self.tally.cycles += 1
        self.tally.planning += seconds
        self.tally.slowest = max(self.tally.slowest, seconds)
        version = self._version
        self._pass_time(self._now + seconds)
        for placement in checked.placements:
            self._start(placement)
        return self._version > version

    def _wait_for_event(self) -> bool:
        """Let time pass until a workload comes or ends; answers whether any will."""
        moments = [arrival.at for arrival in self._arrivals[-1:]]
        moments += [moment for moment, _ in self._ends[:1]]
        if moments:
            self._pass_time(max(self._now, min(moments)))
        return bool(moments)

    def _pass_time(self, until: float) -> None:
        """Take in all that comes and ends until then."""
        while True:
            comes = self._arrivals[-1].at if self._arrivals else math.inf
            ends = self._ends[0][0] if self._ends else math.inf
            moment = min(comes, ends, until)
            if self._waiting:
                self.tally.waiting += moment - self._now
                self.tally.used += (moment - self._now) * self._cores
            self._now = moment
            if ends <= min(comes, until):
                self._end(heapq.heappop(self._ends)[1])
            elif comes <= until:
                self._create(self._arrivals.pop())
            else:
                return

    def _create(self, arrival: Arrival) -> None:
        key = GangKey(arrival.queue, arrival.name)
        created = BEGAN + arrival.at
        group = GangObject(
            *(key, Uid(f"uid-{key}"), 1, (), created),
            generation=1,
            version="1",
            queue=arrival.queue,
        )
        pod = Member(
            PodKey(arrival.queue, arrival.name),
            Uid(f"uid-pod-{key}"),
            "1",
            self._shapes[arrival.of.name],
            created,
            group=arrival.name,
            priority=arrival.of.priority,
        )
        self._waiting[group.uid] = _Workload(arrival, group, pod)
        self._state.groups.put(Item(group.uid, self._next_version(), group))
        self._state.pods.pending.put(Item(pod.uid, self._next_version(), pod))

    def _start(self, placement: Placement) -> None:
        """Show the pod as bound, and the record of the start as the commit leaves it."""
        workload = self._waiting.pop(placement.uid)
        (assignment,) = placement.assignments
        reservation = Reservation(
            *(placement.gang, placement.uid, placement.generation, "tutti", "term"),
            BEGAN + self._now,
            entries=(),
            version=str(self._version),
            self_uid=Uid(f"uid-reservation-{placement.uid}"),
            record=placement.record,
            charged=(workload.pod.uid,),
        )
        self._state.reservations.put(reservation)
        bound = replace(workload.pod, node=assignment.node, bound_at=BEGAN + self._now)
        self._state.pods.bound.put(Item(bound.uid, self._next_version(), bound))
        self._running[placement.uid] = workload, reservation
        of = workload.arrival.of
        self._cores += of.cores
        self.tally.waits.setdefault(of.name, []).append(self._now - workload.arrival.at)
        heapq.heappush(self._ends, (self._now + of.runtime, placement.uid))

    def _end(self, uid: Uid) -> None:
        """The pod and its PodGroup are deleted, and so is the record."""
        workload, reservation = self._running.pop(uid)
        self._state.pods.bound.drop(workload.pod.uid)
        self._state.groups.drop(uid)
        self._state.reservations.drop(reservation)
        self._cores -= workload.arrival.of.cores
        self._version += 1
        self.tally.ended = self._now
