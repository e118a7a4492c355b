"""A faulty road between a client and the API server: a reverse proxy on loopback with rules.

A rule is a match and an action; the first that matches decides, else the call is forwarded. It
runs on a thread of its own, so that a test can turn rules on and off while the operator works.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

PATIENCE = 30.0
LARGEST_BODY = 16 * 1024 * 1024
OWN_TO_A_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")
PHRASES = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 503: "ServiceUnavailable"}


class Call(NamedTuple):
    """One request, as rules see it."""

    method: str
    path: str
    query: Mapping[str, str]

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"

    @property
    def is_watch(self) -> bool:
        """Whether its answer is a stream without an end."""
        return self.query.get("watch", "0") in ("1", "true")

    @property
    def is_binding(self) -> bool:
        """Whether it binds a pod."""
        return self.path.endswith("/binding")

    def creates(self, resource: str) -> bool:
        """Whether it creates an object of this resource."""
        return self.method == "POST" and self.path.endswith(f"/{resource}")


class Exchange:
    """One call under way: what an action may do with it."""

    def __init__(self, call: Call, request: web.Request, proxy: Proxy) -> None:
        self.call = call
        self._request = request
        self._proxy = proxy

    async def forward(self, lag: float = 0.0) -> web.StreamResponse:
        """Let it through; a watch comes back piece by piece, each ``lag`` seconds late."""
        if not self.call.is_watch:
            return await self.ask()
        async with self._send() as answer:
            stream = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
            await stream.prepare(self._request)
            async for chunk in _late(answer.content.iter_any(), lag):
                await stream.write(chunk)
            await stream.write_eof()
            return stream

    async def ask(self) -> web.Response:
        """Let it through and keep the answer: the server has done its part."""
        # Read whole, so that the same call can be sent again.
        content = await self._request.read() if self._request.body_exists else None
        async with self._send(content) as answer:
            body = await answer.read()
            return web.Response(body=body, status=answer.status, headers=_passed_on(answer.headers))

    async def ask_later(self, seconds: float) -> None:
        """Let it through so much later, whatever has become of the client by then."""
        await self._request.read()

        async def straggle() -> None:
            await asyncio.sleep(seconds)
            with suppress(aiohttp.ClientError, OSError):
                await self.ask()

        self._proxy.send_off(straggle())

    def cut(self) -> web.Response:
        """Break the connection without an answer."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return web.Response()

    def _send(self, content: bytes | None = None) -> Any:
        request = self._request
        return self._proxy.session.request(
            request.method,
            URL(self._proxy.server + request.raw_path, encoded=True),
            headers=_passed_on(request.headers),
            data=content,
            allow_redirects=False,
        )


async def _late(chunks: AsyncIterator[bytes], lag: float) -> AsyncIterator[bytes]:
    """Give every piece exactly so much later than it came, however many come meanwhile."""
    if not lag:
        async for chunk in chunks:
            yield chunk
        return
    pieces: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue()

    async def take() -> None:
        try:
            async for chunk in chunks:
                pieces.put_nowait((time.monotonic() + lag, chunk))
        finally:
            pieces.put_nowait((time.monotonic() + lag, None))

    taking = asyncio.create_task(take())
    try:
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if piece is None:
                return
            yield piece
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in OWN_TO_A_HOP}


Match = Callable[[Call], bool]
Action = Callable[[Exchange], Awaitable[web.StreamResponse]]


def anything(_call: Call) -> bool:
    """Match every call."""
    return True


def watches(call: Call) -> bool:
    """Match every watch."""
    return call.is_watch


def writes(call: Call) -> bool:
    """Match every write."""
    return call.is_write


def nth(k: int, match: Match) -> Match:
    """Match the k-th call that another match finds, and no other; the first is 1."""
    seen = 0

    def counted(call: Call) -> bool:
        nonlocal seen
        seen += match(call)
        return seen == k and match(call)

    return counted


def refuse(
    status: int, message: str = "", retry_after: int | None = None, *, after_commit: bool = False
) -> Action:
    """Answer with this error, and let nothing through unless the server is to do its part."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        if after_commit:
            await exchange.ask()
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return web.json_response(_status(status, message), status=status, headers=headers)

    return action


async def lose(exchange: Exchange) -> web.StreamResponse:
    """Break the connection before the server has heard of it."""
    return exchange.cut()


async def lose_answer(exchange: Exchange) -> web.StreamResponse:
    """Break the connection after the server has done its part."""
    await exchange.ask()
    return exchange.cut()


async def duplicate(exchange: Exchange) -> web.StreamResponse:
    """Send it twice, one after the other; the client is told the first answer."""
    first = await exchange.ask()
    await exchange.ask()
    return first


async def duplicate_unanswered(exchange: Exchange) -> web.StreamResponse:
    """Send it twice, as who got no answer does; the client is told the second answer."""
    await exchange.ask()
    return await exchange.ask()


def echo(seconds: float) -> Action:
    """Let it through, and so much later a second time that nobody waits for."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        answer = await exchange.ask()
        await exchange.ask_later(seconds)
        return answer

    return action


def delay(seconds: float) -> Action:
    """Let it through, late; of a watch every piece."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        if not exchange.call.is_watch:
            await asyncio.sleep(seconds)
        return await exchange.forward(lag=seconds)

    return action


async def expire(exchange: Exchange) -> web.StreamResponse:
    """Tell a watch that its version is too old, as the API server does: an event in the stream."""
    if not exchange.call.is_watch:
        return await exchange.forward()
    event = {"type": "ERROR", "object": _status(410, "too old resource version")}
    return web.Response(text=json.dumps(event) + "\n", content_type="application/json")


def before(act: Callable[[], object]) -> Action:
    """Do something while the server has not heard of it, then break the connection."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        await asyncio.to_thread(act)
        return exchange.cut()

    return action


def after(act: Callable[[], object]) -> Action:
    """Do something once the server has done its part, then break the connection."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        await exchange.ask()
        await asyncio.to_thread(act)
        return exchange.cut()

    return action


class Gate:
    """Holds calls until it is opened: on their way to the server, or on their way back."""

    def __init__(self, *, after_commit: bool = False) -> None:
        self._after_commit = after_commit
        self._is_open = threading.Event()
        self.held = 0

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        """Hold one call."""
        answer = await exchange.ask() if self._after_commit else None
        self.held += 1
        while not self._is_open.is_set():  # noqa: ASYNC110 - a test's thread opens it
            await asyncio.sleep(0.01)
        return answer if answer is not None else await exchange.forward()

    def await_held(self, n: int) -> None:
        """Wait until so many calls have arrived."""
        deadline = time.monotonic() + PATIENCE
        while self.held < n:
            assert time.monotonic() < deadline, f"{self.held} of {n} calls came to the gate"
            time.sleep(0.01)

    def open(self) -> None:
        """Let everything through from now on."""
        self._is_open.set()


def _status(code: int, message: str) -> dict[str, Any]:
    reason = PHRASES.get(code, "InternalError")
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
    }


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What to do with the calls that match."""

    match: Match
    action: Action


class Proxy:
    """The reverse proxy itself; a context manager."""

    def __init__(self, server: str, authority: Path) -> None:
        """Forward to ``server``, whose certificate ``authority`` vouches for."""
        self.server = server
        self._authority = authority
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._rules: list[Rule] = []
        self._streams: set[Exchange] = set()
        self._stragglers: set[asyncio.Task[None]] = set()
        self._port = 0
        self.calls: list[Call] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    def kubeconfig(self, original: Path) -> Path:
        """Write a copy of a kubeconfig that comes through here."""
        content = yaml.safe_load(original.read_text())
        for cluster in content["clusters"]:
            cluster["cluster"] = {"server": self.url}
        path = original.with_suffix(f".proxy-{self._port}")
        path.write_text(yaml.safe_dump(content))
        path.chmod(0o600)
        return path

    @contextmanager
    def rule(self, match: Match, action: Action) -> Iterator[None]:
        """Have a rule while the context is open; the newest comes first."""
        rule = Rule(match, action)
        self._rules.insert(0, rule)
        try:
            yield
        finally:
            self._rules.remove(rule)

    def cut_watches(self) -> None:
        """Break every watch that is open now."""

        async def cut() -> None:
            for exchange in self._streams:
                exchange.cut()

        self._run(cut())

    @property
    def has_stragglers(self) -> bool:
        """Whether some call is still to be let through that nobody waits for."""
        return bool(self._stragglers)

    def send_off(self, straggler: Coroutine[Any, Any, None]) -> None:
        """Carry on with a call that nobody waits for."""
        sent = self._loop.create_task(straggler)
        self._stragglers.add(sent)
        sent.add_done_callback(self._stragglers.discard)

    def go_away(self) -> None:
        """Refuse connections and break those that stand, as a server that is down does."""
        self._run(self._silence())

    def come_back(self) -> None:
        """Listen again, at the same address."""
        self._run(self._listen())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _open(self) -> None:
        trusted = ssl.create_default_context(cafile=str(self._authority))
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._answer)
        # A client that leaves its watch takes the server's end of it along.
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await self._site.start()
        self._port = self._runner.addresses[0][1]

    async def _silence(self) -> None:
        await self._site.stop()
        server = self._runner.server
        for connection in list(server.connections) if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def _close(self) -> None:
        with suppress(RuntimeError):  # it may be away
            await self._silence()
        await self._runner.cleanup()
        await asyncio.gather(*self._stragglers)
        await self.session.close()
        await asyncio.sleep(0.05)  # transports say good-bye in a later turn of the loop

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path, dict(request.query))
        self.calls.append(call)
        exchange = Exchange(call, request, self)
        action = next((rule.action for rule in self._rules if rule.match(call)), Exchange.forward)
        if call.is_watch:
            self._streams.add(exchange)
        try:
            return await action(exchange)
        except (aiohttp.ClientError, OSError):
            return exchange.cut()
        finally:
            self._streams.discard(exchange)
