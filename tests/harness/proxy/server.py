"""The reverse proxy: it listens, looks up the rule for each call, and can be away."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import yaml
from aiohttp import web

from ..controlplane.components import free_ports
from ..judge.background import Background
from .exchange import Call, Exchange

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path
    from types import TracebackType

    from .actions import Action, Match

PATIENCE = 30.0
LARGEST_BODY = 16 * 1024 * 1024


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
        self._background = Background("proxy")
        self._rules: list[Rule] = []
        self._streams: set[Exchange] = set()
        self._stragglers: set[asyncio.Task[None]] = set()
        self._port = free_ports("proxy")["proxy"]
        self.calls: list[Call] = []

    def __enter__(self) -> Self:
        self._background.start()
        self._run(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._close())
        self._background.leave()

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
        sent = self._background.loop.create_task(straggler)
        self._stragglers.add(sent)
        sent.add_done_callback(self._stragglers.discard)

    def go_away(self) -> None:
        """Refuse connections and break those that stand, as a server that is down does."""
        self._run(self._silence())

    def come_back(self) -> None:
        """Listen again, at the same address."""
        self._run(self._listen())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.run(work, PATIENCE)

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
        self._socket = socket.create_server(("127.0.0.1", self._port))
        self._site = web.SockSite(self._runner, self._socket)
        await self._site.start()

    async def _silence(self) -> None:
        # asyncio forgets to close a connection that it has accepted but not yet taken in.
        asyncio.get_running_loop().remove_reader(self._socket)
        await asyncio.sleep(0)
        await self._site.stop()
        server = self._runner.server
        for connection in list(server.connections) if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def _close(self) -> None:
        if self._socket.fileno() >= 0:  # else it is away
            await self._silence()
        await self._runner.cleanup()
        await asyncio.gather(*self._stragglers)
        await self.session.close()

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
