"""Rules that make no sense, and very long ones: refused, or answered as kube-scheduler does."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..conformance.differential import hostile
from ..conformance.differential.ours import Reading
from ..conformance.differential.running import control_plane
from ..conformance.differential.stage import RefusedError, stage
from ..harness import operator_process
from ..harness.judge import background
from ..harness.operator_process import OperatorProcess
from ..harness.rig import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..conformance.differential.oracle import Answer
    from ..harness.controlplane.cluster import ControlPlane

    Manifest = dict[str, Any]

BAD_WORDS = ("Traceback", "Error:", "Exception")


def test_hostile_rules_are_answered_as_kube_scheduler_does_and_leave_no_trace_in_the_log() -> None:
    with control_plane() as plane, ExitStack() as stack:
        operator_process.install(plane)
        operator = OperatorProcess(plane)
        stack.callback(operator.stop)
        operator.start(ready=False)  # it hears of all that is asked of kube-scheduler, too
        answers, objects = background.run(_asked(plane))
        assert {name for name, one in answers.items() if one is None} == hostile.REFUSED.keys()
        reading = Reading(objects)
        told = {name: one for name, one in answers.items() if one is not None}
        for name, (pod, answer) in told.items():
            ours = reading.answer(pod)
            assert not ours.broken, (name, ours.broken)
            assert not ours.unmodelled, (name, ours.unmodelled)
            assert ours.nodes == answer.nodes, name
        # Some can run everywhere, some somewhere, some nowhere.
        assert {len(answer.nodes) for _, answer in told.values()} >= {0, 2}
        operator.await_ready()
        _assert_served(plane, {name: answer for name, (_, answer) in told.items()})
        log = operator.log.read_text()
        assert not [line for line in log.splitlines() if any(word in line for word in BAD_WORDS)]


async def _asked(
    plane: ControlPlane,
) -> tuple[Mapping[str, tuple[Manifest, Answer] | None], list[Manifest]]:
    """What kube-scheduler says of each, None where the API server refused it; and the cluster."""
    asked: dict[str, tuple[Manifest, Answer] | None] = {}
    async with stage(plane) as made:
        for i in range(len(hostile.pods())):
            await asyncio.to_thread(plane.create_namespace, hostile.namespace(i))
        await made.play(hostile.cluster())
        objects = await made.objects()
        for name, pod in hostile.pods().items():
            try:
                body, answer = await made.ask(pod)
            except RefusedError:
                asked[name] = None
            else:
                assert answer is not None
                asked[name] = body, answer
    return asked, objects


def _assert_served(plane: ControlPlane, answers: Mapping[str, Answer]) -> None:
    """The operator binds those that can run, and tells the others why not."""
    pods = {name: pod for name, pod in hostile.pods("tutti").items() if name in answers}
    plane.create(pods.values())
    deadline = time.monotonic() + PATIENCE
    while not all(map(_has_answer, _present(plane))) and time.monotonic() < deadline:
        time.sleep(0.2)
    found = {pod["metadata"]["name"]: pod for pod in _present(plane)}
    for name, pod in pods.items():
        now = found[pod["metadata"]["name"]]
        if nodes := answers[name].nodes:
            assert now["spec"].get("nodeName") in nodes, (name, now["status"])
        else:
            assert _says(now) == ["Unschedulable"], (name, now["spec"], now["status"])


def _present(plane: ControlPlane) -> list[Manifest]:
    query = "fieldSelector=spec.schedulerName%3Dtutti"
    return list(plane.request("GET", f"/api/v1/pods?{query}")["items"])


def _has_answer(pod: Manifest) -> bool:
    return "nodeName" in pod["spec"] or bool(_says(pod))


def _says(pod: Manifest) -> list[str]:
    lines = pod["status"].get("conditions", [])
    return [line.get("reason", "") for line in lines if line["type"] == "PodScheduled"]
