"""A small API server on localhost: discovery, lists in pages, and watches, of PodGroups and pods.

It keeps to the real one's rules of versions: a watch shows what came after the version that it
begins at, and one that begins before the oldest version that is kept is told so, by an event.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
from aiohttp import web

from .kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Json = dict[str, Any]
PODS, GROUPS = "pods", "podgroups"
PATHS = {PODS: "/api/v1/pods", GROUPS: "/apis/tutti.dev/v1alpha1/podgroups"}
KINDS = {PODS: "Pod", GROUPS: "PodGroup", "namespaces": "Namespace"}


class Request(NamedTuple):
    """A list or a watch that was asked for: of what, and from which version."""

    plural: str
    verb: str
    version: str

    def __str__(self) -> str:
        """Name it without its version."""
        return f"{self.verb} {self.plural}"


class Event(NamedTuple):
    """What a watch shows, and since when."""

    version: int
    plural: str
    type: str
    body: Json


class ApiServer:
    """Its objects, what was asked of it, and what it does not answer as it should."""

    def __init__(self) -> None:
        self.version = 10
        self.oldest = 0  # no watch begins before it
        self.objects: dict[str, dict[str, Json]] = {PODS: {}, GROUPS: {}}
        self.requests: list[Request] = []
        self.selectors: list[str] = []  # the label selectors, each with what was asked for by it
        self.refuse: Callable[[Request], int] = lambda _request: 0  # a status that is answered
        self.before: Callable[[Request], None] = lambda _request: None
        self.kinds = {PODS, GROUPS}  # that discovery shows
        self.watches: list[tuple[Request, asyncio.Queue[Event | None]]] = []
        self._history: list[Event] = []
        self._runner = web.AppRunner(
            web.Application(), handler_cancellation=True, shutdown_timeout=0.1
        )

    async def __aenter__(self) -> Self:
        routes = self._runner.app.router
        routes.add_get("/api", self._answer({"versions": ["v1"]}))
        routes.add_get("/api/v1", self._core)
        routes.add_get("/apis", self._groups)
        routes.add_get("/apis/tutti.dev/v1alpha1", self._own)
        for plural, path in PATHS.items():
            routes.add_get(path, self._serve(plural))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.server = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()
        await self._runner.cleanup()

    def session(self, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
        """Do what ``Access`` does."""
        return aiohttp.ClientSession(middlewares=middlewares)

    # What happens in the cluster

    def put(self, plural: str, uid: str, **spec: Any) -> None:
        """Create or change an object; a pod with a node leaves the selection."""
        base = objects.POD if plural == PODS else objects.GROUP
        self.version += 1
        meta = {"uid": uid, "name": uid, "resourceVersion": str(self.version)}
        body = objects.merged(copy.deepcopy(base), {"metadata": meta, "spec": spec})
        if spec.get("nodeName"):
            return self._delete(plural, uid, body)
        kind = "MODIFIED" if uid in self.objects[plural] else "ADDED"
        self.objects[plural][uid] = body
        return self._tell(Event(self.version, plural, kind, body))

    def delete(self, plural: str, uid: str) -> None:
        """Delete an object."""
        self.version += 1
        meta = {"resourceVersion": str(self.version)}
        body = objects.merged(self.objects[plural][uid], {"metadata": meta})
        self._delete(plural, uid, body)

    def _delete(self, plural: str, uid: str, body: Json) -> None:
        self.objects[plural].pop(uid, None)
        self._tell(Event(self.version, plural, "DELETED", body))

    def cut(self) -> None:
        """End all watches."""
        for _, queue in self.watches:
            queue.put_nowait(None)
        self.watches.clear()

    def expire(self) -> None:
        """Let no watch begin at any version of before now."""
        self.version += 1
        self.oldest = self.version

    def fail(self, code: int) -> None:
        """Tell all watches that something went wrong."""
        status = {"kind": "Status", "status": "Failure", "code": code, "message": "so it is"}
        for _, queue in self.watches:
            queue.put_nowait(Event(0, "", "ERROR", status))

    def restore(self, version: int) -> None:
        """Go back to a version, as a backup of etcd does; objects since are lost."""
        self.cut()
        self.version, self.oldest, self._history = version, 0, []
        for item in self.objects.values():
            for uid, body in list(item.items()):
                if int(body["metadata"]["resourceVersion"]) > version:
                    del item[uid]

    def _tell(self, event: Event) -> None:
        self._history.append(event)
        for request, queue in self.watches:
            if event.plural == request.plural:
                queue.put_nowait(event)

    # What it answers

    def _answer(self, body: Json) -> Callable[[web.Request], Any]:
        async def answer(_request: web.Request) -> web.Response:
            return web.json_response(body)

        return answer

    async def _core(self, _request: web.Request) -> web.Response:
        # kopf starts no watch before it has seen that there are namespaces.
        return web.json_response({"resources": [_resource(PODS), _resource("namespaces")]})

    async def _groups(self, _request: web.Request) -> web.Response:
        version = {"groupVersion": "tutti.dev/v1alpha1", "version": "v1alpha1"}
        group = {"name": "tutti.dev", "versions": [version], "preferredVersion": version}
        return web.json_response({"groups": [group] if GROUPS in self.kinds else []})

    async def _own(self, _request: web.Request) -> web.Response:
        return web.json_response({"resources": [_resource(GROUPS)]})

    def _serve(self, plural: str) -> Callable[[web.Request], Any]:
        async def serve(request: web.Request) -> web.StreamResponse:
            verb = "watch" if "watch" in request.query else "list"
            asked = Request(plural, verb, request.query.get("resourceVersion", ""))
            if "labelSelector" in request.query:
                self.selectors.append(f"{asked} {request.query['labelSelector']}")
            if "continue" not in request.query:
                self.requests.append(asked)
            self.before(asked)
            if status := self.refuse(asked):
                body = {"kind": "Status", "code": status, "message": "refused"}
                return web.json_response(body, status=status)
            if verb == "list":
                return self._list(plural, request)
            return await self._watch(asked, request)

        return serve

    def _list(self, plural: str, request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        limit = int(request.query.get("limit", "1000000"))
        selects_none = request.query.get("labelSelector") == "none,!none"
        bodies = [] if selects_none else list(self.objects[plural].values())
        more = str(first + limit) if len(bodies) > first + limit else ""
        head = {"resourceVersion": str(self.version), "continue": more}
        body = {"kind": f"{KINDS[plural]}List", "metadata": head}
        return web.json_response({**body, "items": bodies[first : first + limit]})

    async def _watch(self, asked: Request, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        since = int(asked.version)
        if since < self.oldest:
            status = {"kind": "Status", "status": "Failure", "code": 410, "message": "too old"}
            await response.write(_line("ERROR", status))
            return response
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        for event in self._history:
            if event.plural == asked.plural:
                queue.put_nowait(event)
        self.watches.append((asked, queue))
        try:
            while (event_or_end := await queue.get()) is not None:
                if event_or_end.version > since or event_or_end.type == "ERROR":
                    await response.write(_line(event_or_end.type, event_or_end.body))
        except ConnectionResetError:
            pass
        finally:
            self.watches = [watch for watch in self.watches if watch[1] is not queue]
        return response


def _line(kind: str, body: Json) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def _resource(plural: str) -> Json:
    kind = KINDS[plural]
    names = {"name": plural, "kind": kind, "singularName": kind.lower()}
    return {**names, "namespaced": True, "verbs": ["list", "watch", "patch"]}
