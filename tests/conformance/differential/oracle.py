"""kube-scheduler as the oracle: an extender hears which nodes passed, a watch hears the rest.

The extender is called with the nodes that passed every filter, and with none it is not called at
all: then the pod's PodScheduled condition says so.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from ..collisions import kubescheduler
from .scenes import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...harness.controlplane.cluster import ControlPlane

PATIENCE = 30.0
AGES = 3600  # seconds; nobody is asked about twice
RETRY_SECONDS = 0.05
NOWHERE, ERROR = "Unschedulable", "SchedulerError"


@dataclass(frozen=True, slots=True)
class Answer:
    """What kube-scheduler found: where a pod may run, and what it says where that is nowhere."""

    nodes: frozenset[str]
    reason: str = ""
    message: str = ""


class Oracle:
    """One kube-scheduler that binds nobody; lives in the event loop that starts it."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self._plane = plane
        self._session = session
        self._answers: dict[str, asyncio.Future[Answer]] = {}  # by uid
        self._runner: web.AppRunner | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the extender, run the scheduler, watch the pods that wait."""
        application = web.Application(client_max_size=1 << 26)
        application.router.add_post("/filter", self._filter)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        settings = _settings(f"http://127.0.0.1:{port}")
        await asyncio.to_thread(kubescheduler.start, self._plane, SCHEDULER, **settings)
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Hear no more; the scheduler ends with the control plane."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    async def answer(self, uid: str, seconds: float = PATIENCE) -> Answer:
        """What was found for the pod of this uid; raises ``TimeoutError``."""
        async with asyncio.timeout(seconds):
            return await asyncio.shield(self._expected(uid))

    def forget(self) -> None:
        """Drop what was heard; nobody waits any more."""
        self._answers.clear()

    def _expected(self, uid: str) -> asyncio.Future[Answer]:
        return self._answers.setdefault(uid, asyncio.get_running_loop().create_future())

    def _note(self, uid: str, answer: Answer) -> None:
        expected = self._expected(uid)
        if not expected.done():  # the first time counts: later the pod may be deleted, and all else
            expected.set_result(answer)

    async def _filter(self, request: web.Request) -> web.Response:
        asked = await request.json()
        names = asked.get("nodenames") or asked.get("NodeNames") or []
        self._note(asked["pod" if "pod" in asked else "Pod"]["metadata"]["uid"], _passed(names))
        return web.json_response({"nodenames": [], "failedNodes": dict.fromkeys(names, "asked")})

    async def _watch(self) -> None:
        query = {"fieldSelector": f"spec.schedulerName={SCHEDULER}"}
        while True:
            try:
                async with self._session.get("/api/v1/pods", params=query) as response:
                    version = (await response.json())["metadata"]["resourceVersion"]
                await self._follow({**query, "watch": "1", "resourceVersion": version})
            except (aiohttp.ClientError, OSError, TimeoutError, KeyError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, query: Mapping[str, str]) -> None:
        limit = aiohttp.ClientTimeout(total=None)
        async with self._session.get("/api/v1/pods", params=query, timeout=limit) as response:
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._hear(json.loads(line))

    def _hear(self, event: Mapping[str, Any]) -> None:
        pod = event["object"]
        if event["type"] != "MODIFIED" or pod["spec"].get("nodeName"):
            return
        for line in pod["status"].get("conditions", ()):
            if line["type"] == "PodScheduled" and line.get("reason") in (NOWHERE, ERROR):
                answer = Answer(frozenset(), line["reason"], line.get("message", ""))
                self._note(pod["metadata"]["uid"], answer)


def _passed(names: list[str]) -> Answer:
    return Answer(frozenset(names))


def _settings(address: str) -> dict[str, Any]:
    """Every node is looked at, nobody is preempted, and nobody looks twice."""
    nothing = {"disabled": [{"name": "*"}]}
    return {
        "profiles": [{"schedulerName": SCHEDULER, "plugins": {"postFilter": nothing}}],
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": AGES,
        "podMaxBackoffSeconds": AGES,
        "extenders": [
            {
                "urlPrefix": address,
                "filterVerb": "filter",
                "weight": 1,
                "nodeCacheCapable": True,
                "httpTimeout": "30s",
            }
        ],
    }
