"""The agent: one watch of all bound pods, and the writes of the kubelets of its nodes.

Works in a thread of its own, like the Witness. Pods are admitted in the order of the API server's
events, which is that of their bindings.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from ..controlplane.nodes import node_manifest
from ..judge.background import Background
from ..judge.kubeconfig import read_door
from .admission import UNEXPECTED, Ledger, Rejection
from .containers import Imagined

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from concurrent.futures import Future
    from types import TracebackType

    from ..controlplane.access import Access
    from .containers import Containers

WATCH_SECONDS = 300
RETRY_SECONDS = 0.1
START_SECONDS = 20.0
UNKNOWN = "unknown"  # the uid of a burden
OVER = ("Succeeded", "Failed")
BOUND = {"fieldSelector": "spec.nodeName!="}
_PODS = "/api/v1/pods"
_STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
_TROUBLE = (aiohttp.ClientError, OSError, TimeoutError, json.JSONDecodeError)


class Kubelet:
    """The kubelets of the nodes made here; ``rejected`` tells whom they turned away, and why."""

    def __init__(self, access: Access, containers: Containers | None = None) -> None:
        """Without `containers`, they are imagined."""
        self._access = access
        self._containers = containers or Imagined()
        self._ledgers: dict[str, Ledger] = {}
        self._refusals: dict[str, list[Rejection]] = {}
        self._seen: dict[str, str] = {}  # what was done about each pod last, by uid
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: list[BaseException] = []  # what no kubelet should meet
        self._background = Background("kubelet")
        self._stopping = asyncio.Event()
        self._listed = threading.Event()
        self._running: Future[None] | None = None
        self.rejected: list[tuple[str, str, Rejection]] = []  # pod, node, why

    # What a test says

    def nodes(self, n: int, prefix: str = "node", **about: Any) -> list[str]:
        """Make ready nodes that these kubelets alone look after; answers their names."""
        names = [f"{prefix}-{i:03}" for i in range(n)]
        bodies = [node_manifest(name, **about) for name in names]
        for body in bodies:
            body["metadata"]["annotations"] = {}  # kwok looks away
        # Known before they exist: a pod may be bound the moment that they do.
        self._ledgers |= {body["metadata"]["name"]: Ledger.of(body) for body in bodies}
        self._access.create(bodies)
        for body in bodies:
            # Admission taints a new node; with kube-controller-manager, either lifts it.
            taints = body["spec"].get("taints", [])
            path = f"/api/v1/nodes/{body['metadata']['name']}"
            self._access.request("PATCH", path, {"spec": {"taints": taints}})
        return names

    def refuse(self, node: str, times: int = 1, why: Rejection = UNEXPECTED) -> None:
        """Turn away the next pods of a node, whatever room there is."""
        self._refusals.setdefault(node, []).extend([why] * times)

    def burden(self, node: str, **requests: str) -> None:
        """Let a node's kubelet count this as used by a pod that nobody else knows; or no more."""
        ledger = self._ledgers[node]
        ledger.leave(UNKNOWN)
        if requests:
            ledger.take(UNKNOWN, {"containers": [{"resources": {"requests": requests}}]})

    def finish(self, pod: Mapping[str, Any]) -> None:
        """Let a pod's containers end well, now."""
        self._run(self._write(pod, _ended(pod, "Succeeded", 0)))

    def vanish(self, node: str) -> None:
        """Do nothing more on a node and let it be NotReady, as when its power is cut."""
        self._ledgers.pop(node, None)
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        patch = {"status": {"conditions": [{**lost, "message": "Kubelet stopped posting"}]}}
        self._run(self._send("PATCH", f"/api/v1/nodes/{node}/status", patch, _STRATEGIC))

    # The thread

    def __enter__(self) -> Self:
        self._background.start()
        self._running = asyncio.run_coroutine_threadsafe(self._live(), self._background.loop)
        if not self._listed.wait(START_SECONDS):
            self._leave()
            raise TimeoutError("the kubelets could not list the pods")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        for problem in self._problems:
            if error is None:
                raise problem
            error.add_note(f"the kubelets failed: {problem!r}")

    def _leave(self) -> None:
        self._background.loop.call_soon_threadsafe(self._stopping.set)
        try:
            if self._running is not None:
                self._running.result(timeout=START_SECONDS)
        finally:
            self._background.leave()

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        self._background.run(work, START_SECONDS)

    async def _live(self) -> None:
        door = read_door(self._access.kubeconfig)
        connector = aiohttp.TCPConnector(ssl=door.tls or True)
        async with aiohttp.ClientSession(
            door.server, headers=door.headers, connector=connector
        ) as self._session:
            self._begin(self._follow())
            await self._stopping.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._problems.append(problem)

    # The watch

    async def _follow(self) -> None:
        while True:
            try:
                await self._list_and_watch()
            except _TROUBLE:
                await asyncio.sleep(RETRY_SECONDS)

    async def _list_and_watch(self) -> None:
        async with self._session.get(_PODS, params=BOUND) as response:
            response.raise_for_status()
            listed = await response.json(content_type=None)
        here = {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in [uid for uid in self._seen if uid not in here]:
            self._gone(uid)
        for pod in sorted(listed["items"], key=_version):
            self._take(pod)
        self._listed.set()
        query = {
            **BOUND,
            "watch": "1",
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        limit = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(_PODS, params=query, timeout=limit) as response:
            response.raise_for_status()
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._hear(json.loads(line))

    def _hear(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "ERROR":
            raise aiohttp.ClientError(event["object"].get("message"))
        if event["type"] == "DELETED":
            self._gone(event["object"]["metadata"]["uid"])
        elif event["type"] in ("ADDED", "MODIFIED"):
            self._take(event["object"])

    def _gone(self, uid: str) -> None:
        self._seen.pop(uid, None)
        for ledger in self._ledgers.values():
            ledger.leave(uid)

    def _take(self, pod: Mapping[str, Any]) -> None:
        """Decide at once, in the order of events; write side by side."""
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        ledger = self._ledgers.get(node)
        if ledger is None:
            return
        phase = pod["status"].get("phase", "Pending")
        if phase in OVER:
            ledger.leave(uid)
        if pod["metadata"].get("deletionTimestamp"):
            if self._seen.get(uid) != "stopping":
                self._seen[uid] = "stopping"
                self._begin(self._stop(pod))
        elif uid not in self._seen and phase not in OVER:
            self._seen[uid] = "asked"
            self._admit(pod, ledger)

    def _admit(self, pod: Mapping[str, Any], ledger: Ledger) -> None:
        metadata, node = pod["metadata"], pod["spec"]["nodeName"]
        if pod["status"].get("phase") == "Running":
            ledger.take(metadata["uid"], pod["spec"])
            return
        refusals = self._refusals.get(node)
        if refusals:
            why: Rejection | None = refusals.pop(0)
        else:
            why = ledger.admit(metadata["uid"], pod["spec"])
        if why is None:
            self._begin(self._play(pod))
            return
        self.rejected.append((metadata["name"], node, why))
        status = {
            "phase": "Failed",
            "reason": why.reason,
            "message": why.message,
            "startTime": _now(),
        }
        self._begin(self._write(pod, status))

    # A pod's life

    async def _play(self, pod: Mapping[str, Any]) -> None:
        about = await self._containers.start(pod)
        await self._write(pod, {**_running(pod), **about})
        code = await self._containers.ended(pod)
        if code is not None and self._is_played(pod):
            await self._write(pod, _ended(pod, "Failed" if code else "Succeeded", code))

    def _is_played(self, pod: Mapping[str, Any]) -> bool:
        is_here = pod["spec"]["nodeName"] in self._ledgers
        return is_here and self._seen.get(pod["metadata"]["uid"]) == "asked"

    async def _stop(self, pod: Mapping[str, Any]) -> None:
        """End its containers, say so, and let go of the object."""
        await self._containers.stop(pod)
        if pod["spec"]["nodeName"] not in self._ledgers:
            return
        if pod["status"].get("phase") not in OVER:
            await self._write(pod, _ended(pod, "Failed", 137))
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        await self._send("DELETE", _path(pod), body)

    async def _write(self, pod: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._send("PATCH", f"{_path(pod)}/status", patch, _STRATEGIC)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send until there is an answer; a refusal is one: the object is gone or another's."""
        while True:
            with suppress(*_TROUBLE):
                async with self._session.request(
                    method, path, json=body, headers=headers
                ) as response:
                    await response.read()
                    if response.status < 429:
                        return
            await asyncio.sleep(RETRY_SECONDS)


def _path(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _version(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"]["resourceVersion"])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _running(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    now = _now()
    state = {"running": {"startedAt": now}}
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": _conditions(now, "True"),
        "containerStatuses": _containers(pod, state, ready=True),
    }


def _ended(pod: Mapping[str, Any], phase: str, code: int) -> Mapping[str, Any]:
    now = _now()
    reason = "Completed" if code == 0 else "Error"
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}}
    return {
        "phase": phase,
        "conditions": _conditions(now, "False"),
        "containerStatuses": _containers(pod, state, ready=False),
    }


def _conditions(now: str, value: str) -> list[Mapping[str, Any]]:
    types = ("Initialized", "ContainersReady", "Ready")
    return [{"type": each, "status": value, "lastTransitionTime": now} for each in types]


def _containers(
    pod: Mapping[str, Any], state: Mapping[str, Any], *, ready: bool
) -> list[Mapping[str, Any]]:
    return [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "restartCount": 0,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
