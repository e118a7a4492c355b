"""The console's web server: its page, its data as JSON, and a stream of changes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from ..model.cluster import Gang
from . import cluster_map, gang_views, page_data, security
from .latest import Latest, RowHistory
from .observation import Answers, Cluster, Observation, Record, WrongQuestion
from .planning_jobs import PlanningJobs
from .responses import TYPES, compact, harden, json_body, line_of, open_stream, page_files

LOOPBACK = "127.0.0.1"
LARGEST_BODY = 4 << 20  # bytes; enough for a manifest with many pods
SHORTEST_TURN = 1.0  # seconds between two messages to a page
SILENCE = 10.0  # seconds without a change, after which a page gets a sign of life

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The handlers of one console, and the session that they answer."""

    def __init__(
        self,
        cluster: Cluster,
        answers: Answers,
        session: security.Session,
        *,
        monotonic: Callable[[], float],
    ) -> None:
        self.port = 0  # set once the server listens
        self._cluster = cluster
        self._session = session
        self._jobs = PlanningJobs(answers, monotonic)
        self._files = page_files()
        self._map = cluster_map.MapHistory()
        self._map_turn = asyncio.Lock()
        self._rows = {"waiting": RowHistory(), "gangs": RowHistory()}
        self._answers = answers
        self._gangs = Latest(lambda observation: _gangs(observation, answers))
        self._room = Latest(answers.room)
        self._queues = Latest(lambda observation: _queues(observation, answers))

    def application(self) -> web.Application:
        """The aiohttp application of the console."""
        app = web.Application(middlewares=[self._guard], client_max_size=LARGEST_BODY)
        app.on_response_prepare.append(harden)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/static/{name:.*}", self._file),
                web.post("/api/session", self._open),
                web.get("/api/about", self._data(self._about)),
                web.get("/api/map", self._data(self._tell_map)),
                web.get("/api/node", self._data(self._tell_node)),
                web.get("/api/room", self._data(self._tell_room)),
                web.get("/api/waiting", self._data(self._tell_waiting)),
                web.get("/api/gangs", self._data(self._tell_gangs)),
                web.get("/api/claims", self._data(self._tell_claims)),
                web.get("/api/queues", self._data(self._tell_queues)),
                web.get("/api/gang", self._data(self._tell_gang)),
                web.get("/api/events", self._data(self._tell_events)),
                web.get("/api/plan", self._data(self._tell_plan)),
                web.get("/api/operators", self._data(self._tell_operators)),
                web.post("/api/what-if", self._data(self._tell_what_if)),
                web.get("/api/explain", self._explain),
                web.get("/api/changes", self._changes),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer only this console's own page, in the browser that used the token."""
        if why := security.refusal(request.method, request.headers, self.port):
            return web.Response(status=403, text=why)
        if request.path.startswith("/api/"):
            if why := security.refusal_of_data(request.headers):
                return web.Response(status=403, text=why)
            cookie = request.cookies.get(security.cookie_name(self.port), "")
            key = request.headers.get(security.KEY_HEADER, "")
            if request.path != "/api/session" and not self._session.is_open_to(cookie, key):
                return web.Response(status=401, text="open the console by its own link")
        return await handler(request)

    async def _page(self, _request: web.Request) -> web.Response:
        return self._serve("index.html")

    async def _file(self, request: web.Request) -> web.Response:
        return self._serve(request.match_info["name"])

    def _serve(self, name: str) -> web.Response:
        body = self._files.get(name)
        if body is None:
            return web.Response(status=404, text="there is no such file")
        kind = TYPES[name.rpartition(".")[2]]
        return web.Response(body=body, content_type=kind, charset="utf-8")

    async def _open(self, request: web.Request) -> web.Response:
        """Exchange the token, once, for a cookie and a key."""
        body = await json_body(request)
        secrets = self._session.open(str(body.get("token", "")))
        if secrets is None:
            return web.Response(status=403, text="this token is not valid, or was used before")
        cookie, key = secrets
        response = web.json_response({"key": key})
        name = security.cookie_name(self.port)
        response.set_cookie(name, cookie, httponly=True, samesite="Strict", path="/")
        return response

    def _data(self, answer: Callable[[web.Request], Awaitable[Mapping[str, Any]]]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return web.json_response(await answer(request), dumps=compact)
            except WrongQuestion as problem:
                return web.json_response({"problem": str(problem)}, status=422)

        return handle

    async def _about(self, _request: web.Request) -> Mapping[str, Any]:
        observation = self._cluster.observe()
        return {
            "title": self._cluster.title,
            "live": self._cluster.is_live,
            "settings": self._answers.settings(),
            **page_data.news(observation),
        }

    async def _tell_map(self, request: web.Request) -> Mapping[str, Any]:
        async with self._map_turn:
            return await asyncio.to_thread(
                self._map_since, self._cluster.observe(), _version_seen(request)
            )

    def _map_since(self, observation: Observation, seen: int) -> Mapping[str, Any]:
        self._map.take(observation.version, observation.snapshot)
        return self._map.since(seen)

    async def _tell_node(self, request: web.Request) -> Mapping[str, Any]:
        name = request.query.get("name", "")
        record = cluster_map.node_record(self._cluster.observe().snapshot, name)
        if record is None:
            raise WrongQuestion(f"there is no node {name}")
        return record

    async def _tell_room(self, _request: web.Request) -> Mapping[str, Any]:
        return await self._room.of(self._cluster.observe())

    async def _tell_waiting(self, request: web.Request) -> Mapping[str, Any]:
        return await self._news_of_gangs("waiting", request)

    async def _tell_gangs(self, request: web.Request) -> Mapping[str, Any]:
        return await self._news_of_gangs("gangs", request)

    async def _news_of_gangs(self, which: str, request: web.Request) -> Mapping[str, Any]:
        """The rows of a list of gangs that changed, and the number of gangs in each state."""
        observation = self._cluster.observe()
        states, lists = await self._gangs.of(observation)
        history, rows = self._rows[which], lists[which]
        history.take(observation.version, rows, rows)
        news = history.since(_version_seen(request))
        return {**news, "takenAt": observation.snapshot.taken_at, "states": states}

    async def _tell_claims(self, _request: web.Request) -> Mapping[str, Any]:
        snapshot = self._cluster.observe().snapshot
        return {"claims": gang_views.claims(snapshot), "takenAt": snapshot.taken_at}

    async def _tell_queues(self, _request: web.Request) -> Mapping[str, Any]:
        return await self._queues.of(self._cluster.observe())

    async def _tell_gang(self, request: web.Request) -> Mapping[str, Any]:
        observation = self._cluster.observe()
        record = gang_views.gang_record(observation, _gang(observation, request.query.get("name")))
        return {**record, "takenAt": observation.snapshot.taken_at}

    async def _tell_events(self, request: web.Request) -> Mapping[str, Any]:
        gang = _gang(self._cluster.observe(), request.query.get("gang"))
        return {"events": await self._cluster.events(gang.key)}

    async def _tell_plan(self, request: web.Request) -> Mapping[str, Any]:
        is_fresh = request.query.get("fresh") == "1"
        observation = self._cluster.observe()
        plan = await self._jobs.plan(observation, is_fresh=is_fresh)
        return {
            "plan": plan.answer.record,
            "seconds": plan.seconds,
            "version": plan.version,
            "maps": page_data.maps(plan.answer),
            "takenAt": plan.taken_at,
            "last": list(self._jobs.last),
        }

    async def _tell_operators(self, _request: web.Request) -> Mapping[str, Any]:
        return {"replicas": await self._cluster.operators()}

    async def _tell_what_if(self, request: web.Request) -> Mapping[str, Any]:
        changes = page_data.what_if(await json_body(request))
        answer = await self._jobs.what_if(self._cluster.observe(), changes)
        return {"plan": answer.record, "maps": page_data.maps(answer)}

    async def _explain(self, request: web.Request) -> web.StreamResponse:
        """Send one JSON line for each plan that is made, then one with the answer."""
        observation = self._cluster.observe()
        try:
            gang = _gang(observation, request.query.get("gang"))
        except WrongQuestion as problem:
            return web.json_response({"problem": str(problem)}, status=422)
        response = await open_stream(request)
        lines: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        job = asyncio.create_task(
            self._jobs.explain(
                observation, gang.key, lambda number: lines.put_nowait({"plans": number})
            )
        )
        job.add_done_callback(lambda done: lines.put_nowait(_outcome(done)))
        try:
            while True:
                line = await lines.get()
                await response.write(line_of(line))
                if "plans" not in line:
                    return response
        except ConnectionError:  # the reader has left
            return response
        finally:
            job.cancel()

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Send server-sent events: the version and the missing kinds, whenever either changes."""
        response = await open_stream(request, "text/event-stream")
        version = -1
        try:
            while True:
                observation = self._cluster.observe()
                news = compact(page_data.news(observation))
                event = "changed" if observation.version != version else "still"
                await response.write(f"event: {event}\ndata: {news}\n\n".encode())
                version = observation.version
                await asyncio.sleep(SHORTEST_TURN)
                try:
                    async with asyncio.timeout(SILENCE):
                        await self._cluster.changed(version)
                        if not self._cluster.is_live:
                            await asyncio.sleep(SILENCE)
                except TimeoutError:
                    continue
        except ConnectionError:  # the page was closed
            return response


def _gangs(
    observation: Observation, answers: Answers
) -> tuple[Record, Mapping[str, Mapping[str, Record]]]:
    """The number of gangs in each state; all gangs by name, and those that need attention."""
    states, status_rows = answers.gangs(observation)
    records = gang_views.gangs(observation, status_rows)
    return states, {"gangs": records, "waiting": gang_views.needing_attention(records)}


def _queues(observation: Observation, answers: Answers) -> Record:
    """The queues, and the amounts at which a bar without a limit ends."""
    answer = answers.queues(observation)
    offered = page_data.offered(observation.snapshot) if answer["queues"] else {}
    return {"answer": answer, "offered": offered}


def _gang(observation: Observation, name: str | None) -> Gang:
    gang = gang_views.find(observation.snapshot, name or "")
    if gang is None:
        raise WrongQuestion(f"there is no gang {name}")
    return gang


def _version_seen(request: web.Request) -> int:
    """The version that a page has seen; 0 if none."""
    since = request.query.get("since", "")
    return int(since) if since.isdecimal() else 0


def _outcome(done: "asyncio.Task[Mapping[str, Any]]") -> Mapping[str, Any]:
    if done.cancelled():
        return {"problem": "cancelled"}
    problem = done.exception()
    if problem is not None:
        return {"problem": str(problem) or type(problem).__name__}
    return {"answer": done.result()}


@asynccontextmanager
async def serving(console: Console, port: int) -> AsyncIterator[int]:
    """Serve while the context is open; yields the port, which is a free one for 0.

    Raises:
        OSError: the port is in use.
    """
    runner = web.AppRunner(console.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        console.port = runner.addresses[0][1]
        yield console.port
    finally:
        await runner.cleanup()
