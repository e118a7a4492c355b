"""The cluster that the scenes are played on: made once, filled and emptied for each of them.

Writes go side by side over kept-alive connections. Before anything is asked, a sentinel shows that
the scheduler has heard of all of it: the watch of each kind is in order, and the sentinel's node
and pod were written last.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp

from ...harness.controlplane.api import collection
from ...harness.controlplane.nodes import node_manifest
from ...harness.judge.kubeconfig import read_door
from . import devices, extended, pools
from .oracle import Answer, Oracle
from .scenes import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from ...harness.controlplane.cluster import ControlPlane
    from .scenes import Scene

    Manifest = dict[str, Any]

IN_FLIGHT = 12
SENTINEL = "sentinel"
HEARD_SECONDS = 10.0
EVERYTHING = {"operator": "Exists"}
LEAVES = "tests/leaves"  # the annotation of a pod that terminates
OVER = ("Succeeded", "Failed")
SEEN = ("nodes", "pods", "namespaces", "persistentvolumes", "persistentvolumeclaims")
SEEN_STORAGE = (
    "csinodes",
    "storageclasses",
    "volumeattachments",
    "csidrivers",
    "csistoragecapacities",
)
# Kinds of which a scene may have its own, beside those that all scenes share.
OF_A_SCENE = (
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CSIStorageCapacity",
)
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"


class RefusedError(Exception):
    """The API server would not take an object."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass(slots=True)
class Stage:
    """The API server's side; all in one event loop."""

    session: aiohttp.ClientSession
    oracle: Oracle
    refused: list[str] = field(default_factory=list)  # residents that cannot be
    _heard: int = 0  # sentinels, of which no two are alike
    _storage: list[Manifest] = field(default_factory=list)  # that goes with the scene
    _limit: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_FLIGHT))

    async def found(self) -> None:
        """Make what all scenes share."""
        names = (*pools.NAMESPACES, pools.SENTINELS)
        labels = {**pools.NAMESPACES, pools.SENTINELS: {}}
        await self.create(
            {**_named("Namespace", name), "metadata": {"name": name, "labels": labels[name]}}
            for name in names
        )
        await self.create(
            {
                **_named("ServiceAccount", "default"),
                "metadata": {"name": "default", "namespace": name},
            }
            for name in names
        )
        await self.create((*pools.runtime_classes(), *pools.storage_classes(), pools.csi_driver()))
        await self.create(
            (*pools.classes_of_open_claims(), *devices.classes(), *extended.classes())
        )
        for volume in await self.create(pools.local_volumes()):
            status = {"status": {"phase": "Available"}}
            await self._send("PATCH", f"{_path(volume)}/status", status, _MERGE)
        for namespace in pools.NAMESPACES:
            await self.create(pools.open_claims(namespace))
            made = await self.create(pools.claims(namespace))
            await self.create(pools.volume(claim, i) for i, claim in enumerate(made))
            spoilt = await self.create(pools.phantoms(namespace))
            for claim in (*made, *spoilt):
                name = claim["metadata"]["name"]
                phase = {"lost": "Lost", "unbound-now": "Pending", "unbound-later": "Pending"}
                status = {"status": {"phase": phase.get(name, "Bound")}}
                await self._send("PATCH", f"{_path(claim)}/status", status, _MERGE)
            # Protected as long as somebody might use it: it only begins to leave.
            leaving = next(claim for claim in spoilt if claim["metadata"]["name"] == "leaving")
            await self._send("DELETE", _path(leaving))

    async def play(self, scene: Scene) -> None:
        """Put up a scene's cluster, and wait until the oracle knows it."""
        nodes = await self.create(scene.nodes)
        for node, wanted in zip(nodes, scene.nodes, strict=True):
            # Admission taints a new node.
            taints = {"spec": {"taints": wanted["spec"].get("taints", [])}}
            await self._send("PATCH", _path(node), taints, _MERGE)
        for made in await self.create(copy.deepcopy(scene.beside)):
            status = devices.status(made)
            if made["kind"] == "PersistentVolume":  # "Pending" until somebody says otherwise
                status = {"phase": "Available"}
            if status is not None:
                await self.patch_status(made, {"status": status})
            if made["kind"] in OF_A_SCENE:
                self._storage.append(made)
        residents = await self.create(scene.residents, may_refuse=True)
        statuses = {
            resident["metadata"]["name"]: resident["status"] for resident in scene.residents
        }
        await asyncio.gather(*(self._become(pod, statuses) for pod in residents))
        await self._until_heard()

    async def ask(self, pod: Manifest) -> tuple[Manifest, Answer | None]:
        """The pod as the API server keeps it, and what the oracle found; None for a gated one.

        Raises:
            RefusedError: there can be no such pod.
        """
        made = await self._send("POST", collection(pod), pod)
        if made["spec"].get("schedulingGates"):
            await self.remove(made)
            return made, None
        try:
            return made, await self.oracle.answer(made["metadata"]["uid"])
        finally:
            await self.remove(made)

    async def rehearse(self, pod: Manifest) -> Manifest:
        """The pod as the API server would keep it; there is none afterwards.

        Raises:
            RefusedError: there can be no such pod.
        """
        made = await self._send("POST", f"{collection(pod)}?dryRun=All", pod)
        return {"apiVersion": "v1", "kind": "Pod", **made}

    async def bind(self, pod: Manifest, node: str) -> Manifest:
        """Create the pod on a node; answers it."""
        on_it = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        return await self._send("POST", collection(pod), on_it)

    async def objects(self) -> list[Manifest]:
        """All that either side may look at, as the API server has it."""
        paths = [f"/api/v1/{each}" for each in SEEN]
        paths += [f"/apis/storage.k8s.io/v1/{each}" for each in SEEN_STORAGE]
        paths += [f"/apis/{devices.GROUP}/{each}" for each in devices.seen()]
        lists = await asyncio.gather(*(self._send("GET", path) for path in paths))
        return [
            {"apiVersion": one["apiVersion"], "kind": one["kind"].removesuffix("List"), **item}
            for one in lists
            for item in one["items"]
        ]

    async def clear(self) -> None:
        """Take a scene's cluster away."""
        now = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for name in (*pools.NAMESPACES, pools.SENTINELS):
            await self._send("DELETE", f"/api/v1/namespaces/{name}/pods", now)
            claims = f"/apis/{devices.GROUP}/namespaces/{name}/resourceclaims"
            await self._send("DELETE", claims, now)
        await self._send("DELETE", "/api/v1/nodes", now)
        for kind in ("csinodes", "volumeattachments"):
            await self._send("DELETE", f"/apis/storage.k8s.io/v1/{kind}", now)
        for kind in {"resourceslices", "devicetaintrules"}.intersection(devices.seen()):
            await self._send("DELETE", f"/apis/{devices.GROUP}/{kind}", now)
        await asyncio.gather(*(self._let_go(item) for item in self._storage))
        self._storage.clear()
        self.oracle.forget()

    async def hear_volumes(self) -> None:
        """Wait until the oracle knows all that was written to claims of volumes, and to volumes.

        A pod waits until its own claim and volume are known, and the watch of each kind is in
        order.
        """
        self._heard += 1
        mark = f"{SENTINEL}-{self._heard}"
        (claim,) = await self.create([pools.sentinel_claim(mark)])
        (volume,) = await self.create([pools.volume(claim, pools.ANYWHERE)])
        self._storage += [claim, volume]
        source = {"persistentVolumeClaim": {"claimName": mark}}
        await self._until_placed(mark, {"volumes": [{"name": "v0", **source}]})

    async def hear_claims(self) -> None:
        """Wait until the oracle knows all that was written to claims for devices.

        A pod waits until its own claim is known, and the watch of claims is in order.
        """
        self._heard += 1
        mark = f"{SENTINEL}-{self._heard}"
        await self.create([devices.named_claim(mark, pools.SENTINELS)])
        wanted = [{"name": "claim", "resourceClaimName": mark}]
        await self._until_placed(mark, {"resourceClaims": wanted})

    async def create(
        self, objects: Iterable[Manifest], *, may_refuse: bool = False
    ) -> list[Manifest]:
        """Create side by side; answers what the API server made of those it took."""
        made = await asyncio.gather(*(self._create(item, may_refuse) for item in objects))
        return [each for each in made if each is not None]

    async def patch_status(self, body: Manifest, patch: Manifest) -> None:
        """Merge a patch into the status of an object."""
        await self._send("PATCH", f"{_path(body)}/status", patch, _MERGE)

    async def patch(self, body: Manifest, patch: Manifest) -> None:
        """Merge a patch into an object."""
        await self._send("PATCH", _path(body), patch, _MERGE)

    async def _let_go(self, body: Manifest) -> None:
        """Delete an object that nobody protects any more: no controller is here to see to that."""
        await self.patch(body, {"metadata": {"finalizers": None}})
        await self._send("DELETE", _path(body), {"gracePeriodSeconds": 0})

    async def remove(self, pod: Manifest) -> None:
        """Delete a pod at once."""
        await self._send("DELETE", _path(pod), {"gracePeriodSeconds": 0})

    async def _create(self, body: Manifest, may_refuse: bool) -> Manifest | None:  # noqa: FBT001
        try:
            made = await self._send("POST", collection(body), body)
        except RefusedError as problem:
            if not may_refuse:
                raise
            self.refused.append(problem.message)
            return None
        return {"apiVersion": body["apiVersion"], "kind": body["kind"], **made}

    async def _become(self, pod: Manifest, statuses: Mapping[str, Manifest]) -> None:
        """Give a resident its status, and let those leave that do."""
        status = {"status": statuses[pod["metadata"]["name"]]}
        try:
            await self._send("PATCH", f"{_path(pod)}/status", status, _STRATEGIC)
        except RefusedError as problem:
            self.refused.append(problem.message)
        is_over = status["status"].get("phase") in OVER
        if LEAVES in (pod["metadata"].get("annotations") or {}) and not is_over:
            await self._send("DELETE", _path(pod))

    async def _until_heard(self) -> None:
        """Wait until a pod that needs this scene's last node and last resident has one."""
        self._heard += 1
        mark = f"{SENTINEL}-{self._heard}"
        node = node_manifest(SENTINEL, cpu="1", memory="1Gi", labels={SENTINEL: mark})
        node["metadata"]["labels"] = {SENTINEL: mark}
        node["metadata"]["annotations"] = {}
        node["spec"]["taints"] = [{"key": SENTINEL, "effect": "NoSchedule"}]
        await self.create([node])
        resident = _sentinel(f"{mark}-here")
        resident["metadata"]["labels"] = {SENTINEL: mark}
        resident["spec"]["nodeName"] = SENTINEL
        await self.create([resident])
        term = {"topologyKey": SENTINEL, "labelSelector": {"matchLabels": {SENTINEL: mark}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        affinity = {"podAffinity": required}
        await self._until_placed(mark, {"nodeSelector": {SENTINEL: mark}, "affinity": affinity})

    async def _until_placed(self, mark: str, spec: Manifest) -> None:
        """Ask about sentinels of this specification until the oracle lets one onto its node."""
        async with asyncio.timeout(HEARD_SECONDS):
            for attempt in itertools.count(1):
                asking = _sentinel(f"{mark}-{attempt}")
                asking["spec"] |= spec
                _, answer = await self.ask(asking)
                if answer is not None and SENTINEL in answer.nodes:
                    return
                await asyncio.sleep(0.02)

    async def _send(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Manifest:
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} if raw is not None else None
        async with (
            self._limit,
            self.session.request(method, path, data=raw, headers=headers) as response,
        ):
            answer: Manifest = json.loads(await response.read())
            if response.status >= 400:
                raise RefusedError(response.status, str(answer.get("message")))
            return answer


@asynccontextmanager
async def stage(plane: ControlPlane, kind: type[Oracle] = Oracle) -> AsyncIterator[Stage]:
    """A stage on a fresh control plane, ready for its first scene."""
    door = read_door(plane.kubeconfig)
    connector = aiohttp.TCPConnector(ssl=door.tls or True, limit=IN_FLIGHT + 2)
    async with aiohttp.ClientSession(
        door.server, headers=door.headers, connector=connector
    ) as session:
        oracle = kind(plane, session)
        stage = Stage(session, oracle)
        await asyncio.to_thread(plane.create_namespace, "kube-system")
        await stage.found()
        await oracle.start()
        try:
            yield stage
        finally:
            await oracle.stop()


def _sentinel(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": pools.SENTINELS},
        "spec": {
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [EVERYTHING],
            "containers": [{"name": "c0", "image": "pause"}],
        },
    }


def _named(kind: str, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _path(body: Mapping[str, Any]) -> str:
    whole = {"apiVersion": "v1", "kind": "Pod", **body}
    return f"{collection(whole)}/{quote(body['metadata']['name'])}"
