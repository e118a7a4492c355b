"""Which calls are meant, and what befalls them: the two halves of a rule."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from .exchange import Call, Exchange

PATIENCE = 30.0
PHRASES = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 503: "ServiceUnavailable"}

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
    count = 0

    def counted(call: Call) -> bool:
        nonlocal count
        count += match(call)
        return count == k and match(call)

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
