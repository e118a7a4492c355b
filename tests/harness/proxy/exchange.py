"""One call under way from a client to the API server, and what can be done with it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from aiohttp import web
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from .server import Proxy

OWN_TO_A_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


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
            send_at, piece = await pieces.get()
            await asyncio.sleep(max(0.0, send_at - time.monotonic()))
            if piece is None:
                return
            yield piece
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in OWN_TO_A_HOP}
