"""What finished PodGroups cost: the same cycle with and without them, in one process, by turns.

A cycle starts a gang of eight and ends that of the cycle before, on 200 nodes. The API server is
the fake one, so the cycle is as short as it can be and the share of what is finished as large.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.kube.decode import PodGroup
from tutti.kube.supply import Item
from tutti.model.cluster import Phase
from tutti.planning import status

from .. import builders, fakes

if TYPE_CHECKING:
    from tutti.model.cluster import Gang
    from tutti.world import World

NODES = 200
MEMBERS = 8
WARM_UP = 5  # cycles; the first ones also look at everything that is there
GONE_BY = 2  # every so manieth finished gang has lost its pods, as after a Job's TTL
SHARE = 0.01  # of a cycle


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of a cycle, medians."""

    finished: int
    without: float
    beside: float  # the finished ones

    @property
    def share(self) -> float:
        """What the finished ones add to a cycle."""
        return (self.beside - self.without) / self.without

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
        _add_finished(beside.life.world, number, beside.node(number))
    for number in range(WARM_UP):
        await without.cycle(number)
        await beside.cycle(number)
    # What lives for ever is looked at by a full collection alone, which is rare: it would hit one
    # of the two at random.
    gc.collect()
    gc.freeze()
    taken: dict[_Operator, list[float]] = {without: [], beside: []}
    for number in range(WARM_UP, WARM_UP + cycles):
        for one in (without, beside) if number % 2 else (beside, without):
            taken[one].append(await one.cycle(number))
    gc.unfreeze()
    return Cost(finished, statistics.median(taken[without]), statistics.median(taken[beside]))


class _Operator:
    """A cluster of its own, whose nodes run one gang after the other."""

    def __init__(self) -> None:
        self._cluster = fakes.FakeCluster()
        for number in range(NODES):
            self._cluster.add(builders.node(self.node(number), cpu=8))
        self.life = fakes.Life(self._cluster, fakes.Clock())

    @staticmethod
    def node(number: int) -> str:
        """The name of some node."""
        return f"node-{number % NODES:03}"

    async def cycle(self, number: int) -> float:
        """Start a gang; answers the CPU seconds of the cycle that binds it and tells so."""
        self._cluster.add(builders.gang(f"gang-{number}").of(MEMBERS, cpu=1))
        self.life.watch.catch_up()
        self.life.clock.now += status.QUIET_SECONDS
        began = time.process_time()
        await self.life.turn()
        seconds = time.process_time() - began
        names = [f"gang-{number}-{i}" for i in range(MEMBERS)]
        assert not self.life.problems, self.life.problems
        assert all(pod.node for pod in self._cluster.pods.values()), "the gang is bound"
        for name in names:
            self._cluster.delete_pod(name)
        self._cluster.delete_group(f"gang-{number}")
        self.life.watch.catch_up()
        await self.life.turn()
        return seconds


def _add_finished(world: World, number: int, node: str) -> None:
    """Let a World know a PodGroup that has finished and said so, with its pods or without."""
    name = f"finished-{number:05}"
    gang = builders.gang(name).of(MEMBERS, cpu=1).bound_on(*[node] * MEMBERS)
    made = gang.each(phase=Phase.SUCCEEDED).made
    group = PodGroup(
        namespace=made.key.namespace,
        name=name,
        uid=made.uid,
        generation=made.generation,
        min_member=made.min_member,
        roles=(),
        created=0.0,
        terminating=False,
        version=str(number + 1),
        status=_said_of(made),
    )
    world.groups.put(Item(group.uid, number + 1, group))
    if number % GONE_BY:
        for member in made.members:
            world.bound.put(Item(member.uid, number + 1, replace(member, created=0.0)))


def _said_of(gang: Gang) -> dict[str, object]:
    """The status that the PodGroup carries: nothing is left to write."""
    said = status.status_of(gang, None, None)
    return status.merged(said, {}, "2026-01-01T00:00:00Z", keep_sentences=False)
