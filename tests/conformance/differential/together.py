"""Plans carried out: every member, looked at as if it came last, could run where it was put.

The original is removed, a clone without a node is asked about, and the original put back. The
watch of pods is in order, so that the oracle knows of the removal before it hears of the clone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import ours
from .comparing import Case, is_of_an_older_minor
from .drawing import drawn
from .oracle import Answer
from .pools import CLAIMS
from .scenes import SCHEDULER, joining
from .stage import RefusedError

if TYPE_CHECKING:
    from .scenes import Scene
    from .stage import Stage

    Manifest = dict[str, Any]

GANGS, SIZES = 4, (2, 3, 3, 5)
GROUP_LABEL = "tutti.dev/pod-group"
SEEDS = 7_000_000_000  # far from those of scenes


@dataclass(slots=True)
class Plans:
    """What was counted of plans."""

    plans: int = 0
    gangs: int = 0
    placed: int = 0  # gangs
    asked: int = 0  # members, each as if it came last
    older: int = 0  # could not, as this minor is known to answer, and the newest not
    wrong: list[tuple[Case, str]] = field(default_factory=list)  # where the plan put the member


def gangs(number: int) -> dict[str, list[Manifest]]:
    """The gangs of this number: members by gang, one shape or two."""
    found = {}
    for i in range(GANGS):
        name = f"gang-{number}-{i}"
        seed = SEEDS + (number * GANGS + i) * 2
        templates = [drawn(joining(), seed).pod]
        if i % 2:
            templates.append(drawn(joining(), seed + 1).pod)
            templates[1]["metadata"]["namespace"] = templates[0]["metadata"]["namespace"]
        size = SIZES[(number + i) % len(SIZES)]
        found[name] = [_member(templates[j % len(templates)], name, j) for j in range(size)]
    return found


def _member(template: Manifest, gang: str, i: int) -> Manifest:
    pod = copy.deepcopy(template)
    pod["metadata"]["name"] = f"{gang}-{i}"
    pod["metadata"]["labels"][GROUP_LABEL] = gang
    pod["spec"].pop("schedulingGates", None)
    for volume in pod["spec"].get("volumes", ()):
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            claim["claimName"] = _own(claim["claimName"], i)
    return pod


def _own(claim: str, i: int) -> str:
    """The claim of a member, as StatefulSets give each its own; what is wrong is so for all."""
    kind, _, number = claim.rpartition("-")
    return f"claim-{(int(number) + i) % CLAIMS}" if kind == "claim" else claim


async def carried_out(stage: Stage, scene: Scene, plans: Plans) -> None:
    """Plan the gangs of this scene's number on its cluster, bind them, ask about each member."""
    await stage.play(scene)
    try:
        objects = await stage.objects()
        waiting: dict[str, Manifest] = {}
        groups: list[Manifest] = []
        for name, members in gangs(scene.number).items():
            try:
                made = [await stage.rehearse(member) for member in members]
            except RefusedError:
                continue
            waiting |= {member["metadata"]["name"]: member for member in members}
            groups += [_group(name, members), *made]
        plans.plans += 1
        plans.gangs += sum(group["kind"] == "PodGroup" for group in groups)
        placed = ours.placed([*objects, *groups])
        plans.placed += len({name.rpartition("-")[0] for name in placed})
        bound = {name: await stage.bind(waiting[name], node) for name, node in placed.items()}
        there = await stage.objects()
        for name, node in placed.items():
            await stage.remove(bound[name])
            pod, answer = await stage.ask(_clone(waiting[name]))
            plans.asked += 1
            if answer is None or node not in answer.nodes:
                removed = bound[name]["metadata"]["uid"]
                others = [each for each in there if each["metadata"]["uid"] != removed]
                case = Case(name, ("plan",), others, pod, answer or Answer(frozenset()))
                if is_of_an_older_minor(case):
                    plans.older += 1
                else:
                    plans.wrong.append((case, node))
            bound[name] = await stage.bind(waiting[name], node)
    finally:
        await stage.clear()


def _group(name: str, members: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": members[0]["metadata"]["namespace"],
            "uid": f"uid-of-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"minMember": len(members)},
    }


def _clone(member: Manifest) -> Manifest:
    clone = copy.deepcopy(member)
    clone["metadata"]["name"] += "-clone"
    assert clone["spec"]["schedulerName"] == SCHEDULER
    return clone
