"""Cycles of an operator that many pods stand beside, and how long each keeps its event loop busy.

The first three steps of a real ``Cycle`` on a real World: observe, plan, verify. What a cycle
writes is not measured here; there is no API server.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item
from tutti.model.cluster import ForeignPod, Member
from tutti.model.inter_pod import AffinityTerm, PodSelector, Requirement
from tutti.model.keys import Uid
from tutti.model.resources import Resources
from tutti.operator.cycle import Cycle
from tutti.state.cluster_state import ClusterState
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from .pictures import TAKEN_AT
from .single_pods import HOST_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.kube.client import Api
    from tutti.model.cluster import Snapshot
    from tutti.model.decisions import Plan
    from tutti.model.keys import NodeName
    from tutti.strategies.problem import Strategy

PODS_PER_NODE, APPS, NAMESPACES = 10, 500, 20
_TICK = 0.001  # seconds between two looks at whether the loop still turns


@dataclass(frozen=True, slots=True)
class Taken:
    """What deciding took, in seconds."""

    seconds: float
    blocked: float  # the longest that nothing else could run


def show(state: ClusterState, picture: Snapshot) -> None:
    """Let the state take in all nodes, and all gangs with their pods, which wait."""
    for node in picture.nodes:
        state.nodes.put(Item(Uid(f"uid-{node.name}"), 1, node))
    for gang in picture.gangs:
        of = (gang.key, gang.uid, gang.min_member, gang.roles, gang.created)
        state.groups.put(Item(gang.uid, 1, GangObject(*of, generation=1, version="1")))
        for member in gang.members:
            state.pods.pending.put(Item(member.uid, 1, member))


class Operator:
    """A World and the Cycle that decides on it; nothing is ever written."""

    def __init__(self, picture: Snapshot, strategy: Strategy) -> None:
        self.state, self.residents = ClusterState(lambda: None), 0
        self._version = 1
        self._cycle = Cycle(
            self.state,
            cast("Api", None),
            scheduler="tutti",
            strategy=strategy,
            fallback=BestFit(),
            budget=Budget(),
            clock=lambda: TAKEN_AT,
        )
        show(self.state, picture)
        for pod in _pods([node.name for node in picture.nodes]):
            self.take_in(pod)

    def take_in(self, pod: Member | ForeignPod) -> None:
        """A pod with a node, as the watch shows it."""
        self._version += 1
        self.residents += not self.state.pods.bound.has_seen(pod.uid)
        self.state.pods.bound.put(Item(pod.uid, self._version, pod))

    def bind(self, plan: Plan) -> None:
        """Show all that a plan places as bound."""
        members = {m.uid: m for gang in self.state.snapshot(TAKEN_AT).gangs for m in gang.members}
        for placement in plan.placements:
            for assignment in placement.assignments:
                self.take_in(replace(members[assignment.uid], node=assignment.node))

    def change(self) -> None:
        """Somebody else's pod has another label."""
        first = next(one for one in self.state.pods.bound if isinstance(one, ForeignPod))
        self.take_in(replace(first, labels=(*first.labels, ("version", str(self._version)))))

    async def decide(self) -> tuple[Plan, Taken]:
        """Observe, plan and verify once."""
        watch = asyncio.create_task(_longest_wait())
        await asyncio.sleep(_TICK)
        start = perf_counter()
        snapshot = self._cycle._observe()
        plan = await self._cycle._plan(snapshot, self._cycle._strategy)
        checked = await self._cycle._check(snapshot, plan)
        seconds = perf_counter() - start
        assert tuple(checked.placements) == plan.placements
        await asyncio.sleep(2 * _TICK)
        watch.cancel()
        return plan, Taken(seconds, await watch)


async def _longest_wait() -> float:
    """The longest that the loop came late, until it is cancelled."""
    longest = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            before = perf_counter()
            await asyncio.sleep(_TICK)
            longest = max(longest, perf_counter() - before - _TICK)
    return longest


def _pods(nodes: list[NodeName]) -> Iterator[ForeignPod]:
    """Small pods of many applications; one keeps apart from those of its own."""
    own = PodSelector((Requirement("app", "In", ("app-0",)),), ("space-0",))
    for i in range(PODS_PER_NODE * len(nodes)):
        app = i % APPS
        labels = (("app", f"app-{app}"), ("pod-template-hash", f"{app:08x}"))
        apart = () if i else (AffinityTerm(HOST_LABEL, own),)
        yield ForeignPod(
            Uid(f"pod-{i:07}"),
            nodes[i % len(nodes)],
            Resources.of({"cpu": 10, "pods": 1}),
            f"space-{app % NAMESPACES}",
            labels,
            apart,
        )
