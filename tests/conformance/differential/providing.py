"""Tutti chooses volumes for claims as its cycle does, and kube-scheduler decides on the next pods.

The real API server takes what the codec of the operator writes: the claim that a volume is for, or
the node for which a claim is provisioned. Then both are asked about other pods, about each pod of
the plan while its choice stands, and about each as if it came last: without its choice.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti.kube.codec.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    encode_binding,
    encode_selected_node,
)
from tutti.model.volumes import Claim, ClaimKey

from ...harness.judge import background
from . import ours
from .comparing import Case, Tally, asked
from .oracle import Answer
from .scenes import Probe
from .stage import RefusedError, stage
from .storage import ROW, scene
from .together import Plans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.model.decisions import Assignment
    from tutti.model.volumes import VolumeChoice

    from ...harness.controlplane.cluster import ControlPlane
    from .scenes import Scene
    from .stage import Stage

    Manifest = dict[str, Any]

PLANNED = 5  # pods of a cluster that are planned; the others come next


@dataclass(slots=True)
class Provided:
    """What was counted of choices of volumes."""

    volumes: int = 0  # choices of a volume that is there
    nodes: int = 0  # choices of a node for which a volume is to be made


def run(
    plane: ControlPlane, clusters: int, seed: int, heed: Callable[[list[Case]], None]
) -> tuple[Tally, Plans, Provided]:
    """Play so many clusters with volumes; ``heed`` hears of the cases of each."""

    async def all_of_them() -> tuple[Tally, Plans, Provided]:
        tally, plans, provided = Tally(), Plans(), Provided()
        async with stage(plane) as theirs:
            for number in range(seed, seed + clusters):
                heed(await _played(theirs, scene(number), tally, plans, provided))
        return tally, plans, provided

    return background.run(all_of_them())


async def _played(
    stage: Stage, made: Scene, tally: Tally, plans: Plans, provided: Provided
) -> list[Case]:
    await stage.play(made)
    try:
        await stage.hear_volumes()
        cases = await asked(stage, made.probes, tally)
        writers = await _planned(stage, made.probes[:PLANNED], provided)
        plans.plans += 1
        plans.placed += len(writers)
        cases += await asked(stage, made.probes[PLANNED:], tally)
        for writer in writers:
            await stage.remove(writer.bound)
            cases += await asked(stage, [Probe(writer.pod("-same"), (ROW,))], tally)
            await writer.take_back()
            await stage.hear_volumes()
            pod, answer = await stage.ask(writer.pod("-last"))
            plans.asked += 1
            if answer is None or writer.node not in answer.nodes:
                there = await stage.objects()
                name = pod["metadata"]["name"]
                case = Case(name, (ROW,), there, pod, answer or Answer(frozenset()))
                plans.wrong.append((case, writer.node))
            await writer.write()
            await stage.hear_volumes()
        return cases
    finally:
        await stage.clear()


async def _planned(stage: Stage, probes: Sequence[Probe], provided: Provided) -> list[_Writer]:
    """Plan these pods together and write what the plan says; then each that is left by itself."""
    made = []
    for probe in probes:
        try:
            made.append((await stage.rehearse(probe.pod), probe.pod))
        except RefusedError:
            continue
    writers = await _written(stage, made, provided)
    placed = {writer.name for writer in writers}
    for pod, manifest in made:
        if pod["metadata"]["name"] not in placed:
            writers += await _written(stage, [(pod, manifest)], provided)
    return writers


async def _written(
    stage: Stage, pods: Sequence[tuple[Manifest, Manifest]], provided: Provided
) -> list[_Writer]:
    """Plan some pods, as they would be kept and as their users write them; write the plan."""
    waiting = {manifest["metadata"]["name"]: manifest for _, manifest in pods}
    assigned, chosen = ours.choices([*await stage.objects(), *(pod for pod, _ in pods)])
    writers = []
    for name, assignment in assigned.items():
        claims = {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in waiting[name]["spec"]["volumes"]
        }
        own = [
            choice
            for key, choice in chosen.items()
            if key.namespace == assignment.pod.namespace and choice.claim in claims
        ]
        writers.append(_Writer(stage, waiting[name], assignment, own))
        provided.volumes += sum(bool(choice.volume) for choice in own)
        provided.nodes += sum(not choice.volume for choice in own)
    for writer in writers:
        await writer.write()
    if writers:
        await stage.hear_volumes()
    return writers


class _Writer:
    """Writes one pod of a plan: what is chosen for its claims, and the pod on its node."""

    def __init__(
        self,
        stage: Stage,
        manifest: Manifest,
        assignment: Assignment,
        choices: Sequence[VolumeChoice],
    ) -> None:
        self._stage, self._manifest, self._choices = stage, manifest, choices
        self._namespace = assignment.pod.namespace
        self.bound: Manifest = {}
        self.name, self.node = assignment.pod.name, str(assignment.node)

    def pod(self, ending: str = "") -> Manifest:
        """The pod as its user writes it."""
        made = copy.deepcopy(self._manifest)
        made["metadata"]["name"] += ending
        return made

    async def write(self) -> None:
        """Write the choices, and put the pod on its node."""
        for choice in self._choices:
            if choice.volume:
                claim = Claim(ClaimKey(self._namespace, choice.claim), uid=choice.uid)
                await self._patch(choice, encode_binding("", claim))
            else:
                await self._patch(choice, encode_selected_node(choice.node, ""))
        self.bound = await self._stage.bind(self.pod(), self.node)

    async def take_back(self) -> None:
        """Undo what is chosen, as if nothing had been."""
        for choice in self._choices:
            if choice.volume:
                annotations = {BOUND_BY_CONTROLLER: None}
                nothing = {"metadata": {"annotations": annotations}, "spec": {"claimRef": None}}
                await self._patch(choice, nothing)
            else:
                await self._patch(choice, {"metadata": {"annotations": {SELECTED_NODE: None}}})

    async def _patch(self, choice: VolumeChoice, patch: Any) -> None:
        sent = copy.deepcopy(patch)
        sent["metadata"].pop("resourceVersion", None)
        kind = "PersistentVolume" if choice.volume else "PersistentVolumeClaim"
        metadata = {"name": choice.volume or choice.claim}
        metadata |= {} if choice.volume else {"namespace": self._namespace}
        await self._stage.patch({"apiVersion": "v1", "kind": kind, "metadata": metadata}, sent)


def sentences(tally: Tally, plans: Plans, provided: Provided) -> str:
    """What was asked, in one sentence."""
    unmodelled = ", ".join(f"{name}: {n}" for name, n in sorted(tally.unmodelled.items()))
    return (
        f"{plans.plans} clusters with volumes: {tally.cases} pods, {tally.telling} of which may run"
        f" on some nodes and not on all: {len(tally.wrong)} differ ({tally.late} answers taken"
        f" back, {tally.early} as only before a claim is bound to its volume,"
        f" {tally.refused} refused; not modelled: {unmodelled or 'none'});"
        f" {plans.placed} pods placed, {provided.volumes} volumes and {provided.nodes} nodes"
        f" written; {plans.asked} pods, each as if it came last: {len(plans.wrong)} could not run"
        " where they were put"
    )
