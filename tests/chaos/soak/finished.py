"""What finished PodGroups cost: the same cycle with and without them, in one process, by turns.

A busy cycle starts a gang of eight on 200 nodes. The API server is the fake one, so the cycle is
as short as it can be and the share of what is finished as large. What they add is seen in still
cycles, which look at all there is and find nothing new: there a microsecond is not lost in noise.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item
from tutti.model.cluster import Phase
from tutti.reporting import drafts, status

from ...harness import builders, fakes

if TYPE_CHECKING:
    from tutti.model.cluster import Gang
    from tutti.state.cluster_state import ClusterState

NODES = 200
MEMBERS = 8
WARM_UP = 5  # cycles; the first ones also look at everything that is there
GONE_BY = 2  # every so manieth finished gang has lost its pods, as after a Job's TTL
SHARE = 0.01  # of a cycle


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, medians: of a busy cycle, and of still ones without and beside the finished."""

    finished: int
    busy: float
    still: float
    beside: float

    @property
    def share(self) -> float:
        """What the finished ones add to a busy cycle."""
        return (self.beside - self.still) / self.busy

    @property
    def holds(self) -> bool:
        """Whether they cost next to nothing."""
        return self.share < SHARE


def measure(finished: int, cycles: int) -> Cost:
    """Run as many cycles beside so many finished PodGroups as without any, by turns."""
    return asyncio.run(_measure(finished, cycles))


async def _measure(finished: int, cycles: int) -> Cost:
    without, beside = _Operator(), _Operator()
    for number in range(finished):
        _add_finished(beside.life.state, number, beside.node(number))
    for one in (without, beside):
        for number in range(WARM_UP):
            await one.busy_cycle(number)
    # What lives for ever is looked at by a full collection alone, which is rare: it would hit one
    # of the two at random.
    gc.collect()
    gc.freeze()
    busy = [await without.busy_cycle(WARM_UP + number) for number in range(cycles)]
    still: dict[_Operator, list[float]] = {without: [], beside: []}
    for number in range(cycles):
        for one in (without, beside) if number % 2 else (beside, without):
            still[one].append(await one.cycle())
    gc.unfreeze()
    medians = (statistics.median(taken) for taken in (busy, still[without], still[beside]))
    return Cost(finished, *medians)


class _Operator:
    """A cluster of its own: nodes, a gang that fits nowhere, and gangs that come and go."""

    def __init__(self) -> None:
        self._cluster = fakes.FakeCluster()
        for number in range(NODES):
            self._cluster.add(builders.node(self.node(number), cpu=8))
        self._cluster.add(builders.gang("waits").of(MEMBERS, cpu=16))
        self.life = fakes.Life(self._cluster, fakes.Clock())

    @staticmethod
    def node(number: int) -> str:
        """The name of some node."""
        return f"node-{number % NODES:03}"

    async def cycle(self) -> float:
        """Answer the CPU seconds of a cycle."""
        self.life.clock.now += drafts.QUIET_SECONDS
        began = time.process_time()
        await self.life.turn()
        seconds = time.process_time() - began
        assert not self.life.problems, self.life.problems
        return seconds

    async def busy_cycle(self, number: int) -> float:
        """Answer the CPU seconds of a cycle that starts a gang; it is deleted afterwards."""
        name = f"gang-{number}"
        self._cluster.add(builders.gang(name).of(MEMBERS, cpu=1))
        self.life.watch.catch_up()
        seconds = await self.cycle()
        pods = [pod for pod in self._cluster.pods.values() if pod.group == name]
        assert all(pod.node for pod in pods), "the gang is bound"
        for pod in pods:
            self._cluster.delete_pod(pod.key.name)
        self._cluster.delete_group(name)
        self.life.watch.catch_up()
        await self.cycle()
        return seconds


def _add_finished(state: ClusterState, number: int, node: str) -> None:
    """Let a World know a PodGroup that has finished and said so, with its pods or without."""
    name = f"finished-{number:05}"
    gang = builders.gang(name).of(MEMBERS, cpu=1).bound_on(*[node] * MEMBERS)
    made = gang.each(phase=Phase.SUCCEEDED).made
    group = GangObject(
        key=made.key,
        uid=made.uid,
        generation=made.generation,
        min_member=made.min_member,
        version=str(number + 1),
        status=_said_of(made),
    )
    state.groups.put(Item(group.uid, number + 1, group))
    if number % GONE_BY:
        for member in made.members:
            state.pods.bound.put(Item(member.uid, number + 1, replace(member, created=0.0)))


def _said_of(gang: Gang) -> dict[str, object]:
    """The status that the PodGroup carries: nothing is left to write."""
    said = status.status_of(gang, None, None, {}, {}, scheduler="tutti")
    return drafts.merged(said, {}, "2026-01-01T00:00:00Z", keep_sentences=False)
