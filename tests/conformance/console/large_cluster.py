"""An API server that holds a large cluster in memory and changes it: `python -m` this, and a port.

It answers lists and watches only, so that 12,000 nodes are there at once and cost nobody else.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
from typing import Any

from aiohttp import web

from tests.harness.controlplane.nodes import node_manifest
from tests.harness.rig import pod, pod_group
from tutti.kube import gang_sources, kinds

ZONE, KIND = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
GPUS, MEMBERS, WAITING_MEMBERS = 8, 8, 4
CREATED = "2026-01-01T00:00:00Z"
NODES, PODS, GROUPS = (
    kinds.NODE.stream().path,
    kinds.POD.stream().path,
    gang_sources.ALWAYS[0].kinds[0].stream().path,
)

Manifest = dict[str, Any]


class LargeCluster:
    """Nodes, gangs that run, gangs that wait; each change is an event of a watch."""

    def __init__(self, nodes: int, waiting: int, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._version = itertools.count(2)
        self._watches: dict[asyncio.Queue[bytes], str] = {}
        self.objects: dict[str, dict[str, Manifest]] = {NODES: {}, PODS: {}, GROUPS: {}}
        self._nodes = [f"gpu-{n:05}" for n in range(nodes)]
        for n, name in enumerate(self._nodes):
            labels = {ZONE: f"zone-{'abcdef'[n % 6]}", KIND: f"gpu-{1 + n % 4}"}
            manifest = node_manifest(name, cpu=64, memory="512Gi", gpus=GPUS, labels=labels)
            self._put(NODES, name, manifest)
        for n in range(nodes // MEMBERS):
            self._gang(f"runs-{n:05}", MEMBERS, self._nodes[n * MEMBERS : (n + 1) * MEMBERS])
        for n in range(waiting):
            self._gang(f"waits-{n:05}", WAITING_MEMBERS, ())

    def _gang(self, name: str, members: int, nodes: Any) -> None:
        group = pod_group(name, members)
        why = {"reason": "NotEnoughRoom", "message": f"{members} members need 8 GPUs each"}
        condition = {"type": "Reserved", "status": "False", "lastTransitionTime": CREATED, **why}
        group["status"] = {"conditions": [] if nodes else [condition]}
        self._put(GROUPS, name, group)
        for n in range(members):
            made = pod(f"{name}-{n}", name, gpu=4 if nodes else GPUS, cpu=8)
            if nodes:
                made["spec"]["nodeName"] = nodes[n]
            made["status"] = {"phase": "Running" if nodes else "Pending"}
            self._put(PODS, f"{name}-{n}", made)

    def _put(self, path: str, name: str, manifest: Manifest) -> None:
        meta = manifest["metadata"]
        event = "MODIFIED" if name in self.objects[path] else "ADDED"
        meta |= {"resourceVersion": str(next(self._version)), "creationTimestamp": CREATED}
        meta.setdefault("uid", f"{manifest['kind']}-{meta['resourceVersion']}")
        self.objects[path][name] = manifest
        self._tell(path, event, manifest)

    def _tell(self, path: str, event: str, manifest: Manifest) -> None:
        line = json.dumps({"type": event, "object": manifest}).encode() + b"\n"
        for queue, watched in self._watches.items():
            if _is_watched(watched, path, manifest):
                queue.put_nowait(line)

    def change(self) -> None:
        """A member of a running gang goes, and comes again on another node."""
        running = [name for name in self.objects[PODS] if name.startswith("runs-")]
        name = self._random.choice(running)
        gone = self.objects[PODS].pop(name)
        gone["metadata"]["resourceVersion"] = str(next(self._version))
        self._tell(PODS, "DELETED", gone)
        fresh = json.loads(json.dumps(gone))
        del fresh["metadata"]["uid"]
        fresh["spec"]["nodeName"] = self._random.choice(self._nodes)
        self._put(PODS, name, fresh)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a list, page by page, or a watch."""
        selector = request.query.get("fieldSelector", "")
        watched = f"{request.path}?{selector}"
        if request.query.get("watch"):
            return await self._watch(request, watched)
        if request.path not in self.objects:
            return _page([], 1)
        first, size = int(request.query.get("continue", 0)), int(request.query.get("limit", 500))
        found = [
            manifest
            for manifest in self.objects[request.path].values()
            if _is_watched(watched, request.path, manifest)
        ]
        after = first + size if first + size < len(found) else 0
        return _page(found[first : first + size], next(self._version), after)

    async def _watch(self, request: web.Request, watched: str) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._watches[queue] = watched
        try:
            while True:
                await response.write(await queue.get())
        except ConnectionError:
            return response
        finally:
            del self._watches[queue]


def _is_watched(watched: str, path: str, manifest: Manifest) -> bool:
    own, _, selector = watched.partition("?")
    if own != path:
        return False
    if "schedulerName!=" in selector:
        return False  # pods of other schedulers: there are none
    is_bound = bool(manifest.get("spec", {}).get("nodeName"))
    wants_bound = selector == kinds.BOUND.selector
    return not selector or is_bound == wants_bound


def _page(items: list[Manifest], version: int, after: int = 0) -> web.Response:
    meta = {"resourceVersion": str(version), "continue": str(after or "")}
    return web.Response(
        body=json.dumps({"metadata": meta, "items": items}), content_type="application/json"
    )


async def serve(nodes: int, waiting: int, changes: float) -> None:
    """Serve on a free port, which is printed, and make so many changes a second."""
    cluster = LargeCluster(nodes, waiting)
    app = web.Application()
    app.router.add_get("/{path:.*}", cluster.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    parent = asyncio.to_thread(sys.stdin.read)  # ends with whoever started this
    reading = asyncio.ensure_future(parent)
    while not reading.done():
        await asyncio.sleep(2 / changes)
        cluster.change()  # two events


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=12_000)
    parser.add_argument("--waiting", type=int, default=2_000)
    parser.add_argument("--changes", type=float, default=20.0, help="a second")
    words = parser.parse_args()
    asyncio.run(serve(words.nodes, words.waiting, words.changes))


if __name__ == "__main__":
    main()
