"""Tutti gives devices to claims as its cycle does, and kube-scheduler decides on the next pods.

The real API server takes what the codec of the operator writes. Then kube-scheduler is asked about
other pods, and about each pod of the plan as if it came last: its claim without devices again.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tutti.kube.codec.devices import ClaimWrite, encode_allocation, encode_consumers
from tutti.model.devices.claims import Consumer
from tutti.model.keys import Uid

from . import devices, ours
from .comparing import Case, asked
from .oracle import Answer
from .stage import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.model.cluster import Snapshot
    from tutti.model.decisions import Assignment
    from tutti.model.devices.claims import ClaimAllocation

    from .comparing import Tally
    from .scenes import Probe, Scene
    from .stage import Stage
    from .together import Plans

    Manifest = dict[str, Any]

PLANNED = 5  # pods of a scene that are planned; the others come next
AFTER = "after Tutti"  # the row of the pods that come next


async def allocated(stage: Stage, scene: Scene, tally: Tally, plans: Plans) -> list[Case]:
    """Plan some pods of a scene that name claims for devices, write the plan, ask about others."""
    await stage.play(scene)
    try:
        probes = [probe for probe in scene.probes if "devices" in probe.rows]
        first, rest = probes[:PLANNED], probes[PLANNED:]
        written = await _planned(stage, first)
        cases = await asked(stage, [_after(probe) for probe in rest], tally)
        for writer in written:
            await writer.take_back()
            await stage.hear_claims()
            pod, answer = await stage.ask(writer.pod("-clone"))
            plans.asked += 1
            if answer is None or writer.node not in answer.nodes:
                there = await stage.objects()
                case = Case(pod["metadata"]["name"], (AFTER,), there, pod, answer or Answer(NONE))
                plans.wrong += () if case.gave_up else [(case, writer.node)]
            await writer.write()
        return cases
    finally:
        await stage.clear()


NONE: frozenset[str] = frozenset()


def _after(probe: Probe) -> Probe:
    return type(probe)(probe.pod, (*probe.rows, AFTER))


async def _planned(stage: Stage, probes: Iterable[Probe]) -> list[_Writer]:
    """Plan these pods together and write what the plan says."""
    waiting: dict[str, Manifest] = {}
    made = []
    for probe in probes:
        try:
            made.append(await stage.rehearse(probe.pod))
        except RefusedError:
            continue
        waiting[probe.pod["metadata"]["name"]] = probe.pod
    snapshot, assigned = ours.assignments([*await stage.objects(), *made])
    written = [
        _Writer(stage, snapshot, waiting[name], assignment)
        for name, assignment in assigned.items()
        if any(allocation.results for allocation in assignment.claims)
    ]
    for writer in written:
        await writer.write()
    await stage.hear_claims()
    return written


class _Writer:
    """Writes one pod of a plan: its claims, and the pod on its node."""

    def __init__(
        self, stage: Stage, snapshot: Snapshot, manifest: Manifest, assignment: Assignment
    ) -> None:
        self._stage, self._snapshot = stage, snapshot
        self._manifest, self._assignment = manifest, assignment
        self._bound: Manifest = {}
        self.node = str(assignment.node)

    def pod(self, ending: str = "") -> Manifest:
        """The pod as its user writes it."""
        made = copy.deepcopy(self._manifest)
        made["metadata"]["name"] += ending
        return made

    async def write(self) -> None:
        """Put the pod on its node, with the devices of its claims."""
        self._bound = await self._stage.bind(self.pod(), self.node)
        metadata = self._bound["metadata"]
        consumer = Consumer(Uid(metadata["uid"]), metadata["name"])
        for allocation in self._assignment.claims:
            claim = self._claim(allocation)
            classes = {known.name: known for known in self._snapshot.devices.classes}
            write = ClaimWrite(allocation.results, self._assignment.node, (consumer,), classes)
            await self._patch(allocation, encode_allocation(claim, write))

    async def take_back(self) -> None:
        """Remove the pod, and the devices of the claims that it alone has."""
        await self._stage.remove(self._bound)
        for allocation in self._assignment.claims:
            if allocation.results:
                await self._patch(allocation, encode_consumers(self._claim(allocation), ()))

    def _claim(self, allocation: ClaimAllocation) -> Any:
        namespace = self._assignment.pod.namespace
        return self._snapshot.devices.claim(namespace, allocation.claim)

    async def _patch(self, allocation: ClaimAllocation, patch: Manifest) -> None:
        del patch["metadata"]["resourceVersion"]
        body = devices.named_claim(allocation.claim, self._assignment.pod.namespace)
        await self._stage.patch_status(body, patch)
