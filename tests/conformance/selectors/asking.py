"""What kube-scheduler makes of an expression: first at all nodes at once, then node by node.

It gives a pod up at a device at which an expression fails, whatever other nodes have. So a pod
that is given up is asked about once more for each node, and only there.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti.dump.decode import read
from tutti.dump.documents import Text
from tutti.kube.kinds import RESOURCE_SLICE

from ...harness.judge import background
from ..differential.devices import GROUP
from ..differential.scenes import SCHEDULER
from ..differential.stage import RefusedError, stage
from .inventory import NODES, cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.model.devices.inventory import Device

    from ...harness.controlplane.cluster import ControlPlane
    from ..differential.oracle import Answer
    from ..differential.stage import Stage
    from .corpus import Case

    Manifest = dict[str, Any]

NAMESPACE, CLASS = "red", "any"  # of the stage; the class has no selectors
AT_ONCE = 24  # expressions that are asked about side by side
HOST = "kubernetes.io/hostname"
FAILED = "CEL runtime error"
PATIENCE = 60.0
INVALID = 422


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an expression: the nodes whose devices it selects, or why it is refused."""

    case: Case
    selected: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()  # nodes at whose devices it fails
    refusal: str = ""  # of the API server


def judged(
    plane: ControlPlane, cases: Sequence[Case], heed: Callable[[int], None]
) -> tuple[list[Verdict], Mapping[str, Device]]:
    """The verdicts of kube-scheduler, and the devices by node as Tutti reads them.

    ``heed`` hears how many cases have been judged.
    """

    async def all_of_them() -> tuple[list[Verdict], Mapping[str, Device]]:
        verdicts: list[Verdict] = []
        async with stage(plane) as ours:
            await ours.play(cluster())
            await _until_known(ours)
            for start in range(0, len(cases), AT_ONCE):
                some = cases[start : start + AT_ONCE]
                verdicts += await asyncio.gather(
                    *(_verdict(ours, f"e{start + i}", case) for i, case in enumerate(some))
                )
                heed(len(verdicts))
            return verdicts, devices(await ours.objects())

    return background.run(all_of_them())


def devices(objects: Sequence[Manifest]) -> Mapping[str, Device]:
    """The device of each node, as Tutti reads it from what the API server has."""
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    found = read([Text("cluster", content.encode())], SCHEDULER).of(RESOURCE_SLICE)
    return {str(piece.node): piece.devices[0] for piece in found}


async def _until_known(ours: Stage) -> None:
    """Wait until kube-scheduler knows the devices of all nodes."""
    await ours.create([_claim("known", "true")])
    async with asyncio.timeout(PATIENCE):
        for i in range(1000):
            if (await _ask(ours, f"known-{i}", "known")).nodes == {*NODES}:
                return
            await asyncio.sleep(0.1)


async def _verdict(ours: Stage, name: str, case: Case) -> Verdict:
    try:
        await ours.create([_claim(name, case.expression)])
    except RefusedError as problem:
        if problem.status != INVALID:
            raise
        return Verdict(case, refusal=problem.message)
    answer = await _ask(ours, name, name)
    if FAILED not in answer.message:
        return Verdict(case, answer.nodes)
    singly = await asyncio.gather(*(_ask(ours, f"{name}-{node}", name, node) for node in NODES))
    by_node = dict(zip(NODES, singly, strict=True))
    return Verdict(
        case,
        frozenset(node for node, one in by_node.items() if node in one.nodes),
        frozenset(node for node, one in by_node.items() if FAILED in one.message),
    )


async def _ask(ours: Stage, name: str, claim: str, node: str = "") -> Answer:
    _, answer = await ours.ask(_pod(name, claim, node))
    assert answer is not None  # no gates
    return answer


def _pod(name: str, claim: str, node: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": "c0", "image": "pause"}],
            "resourceClaims": [{"name": "c", "resourceClaimName": claim}],
            **({"nodeSelector": {HOST: node}} if node else {}),
        },
    }


def _claim(name: str, expression: str) -> Manifest:
    exactly = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": expression}}]}
    return {
        "apiVersion": GROUP,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }
