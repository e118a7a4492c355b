"""What can happen to a call of the operator's, and to the operator: a fault's name and its deed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...harness import proxy
from .writes import stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from ...harness.proxy import Action, Call, Exchange
    from .run import Run

    Deed = Callable[["Run"], Action]

LATE_SECONDS = 3.0


def kill(run: Run) -> Action:
    """Kill the operator before the server has heard of the call."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        run.kill()
        return exchange.cut()

    return action


def kill_after_commit(run: Run) -> Action:
    """Kill the operator once the server has done its part, before it can know."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        await exchange.ask()
        run.kill()
        return exchange.cut()

    return action


def kill_and_straggle(run: Run) -> Action:
    """Kill the operator; what it asked for reaches the server when its successor is at work."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        await exchange.ask_later(LATE_SECONDS)
        run.kill()
        return exchange.cut()

    return action


def plain(action: Action) -> Deed:
    """Do something to the call alone."""
    return lambda _run: action


def away(seconds: float) -> Deed:
    """Break every connection and refuse new ones for so long."""

    def deed(run: Run) -> Action:
        async def action(exchange: Exchange) -> web.StreamResponse:
            run.later(seconds, run.proxy.come_back)  # first: this call ends with its connection
            await asyncio.to_thread(run.proxy.go_away)
            return exchange.cut()

        return action

    return deed


def cut_watches(run: Run) -> Action:
    """Break every watch."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        await asyncio.to_thread(run.proxy.cut_watches)
        return await exchange.forward()

    return action


def expire_watches(run: Run) -> Action:
    """Break every watch, and tell each that comes back that its version is too old."""

    async def action(exchange: Exchange) -> web.StreamResponse:
        told: set[str] = set()

        def is_first(call: Call) -> bool:
            is_new = call.is_watch and stream_of(call) not in told
            told.update([stream_of(call)] if is_new else [])
            return is_new

        run.weather(is_first, proxy.expire)
        await asyncio.to_thread(run.proxy.cut_watches)
        return await exchange.forward()

    return action


def lag_watches(seconds: float) -> Deed:
    """From now on every watch tells everything so much later."""

    def deed(run: Run) -> Action:
        async def action(exchange: Exchange) -> web.StreamResponse:
            run.weather(proxy.watches, proxy.delay(seconds))
            await asyncio.to_thread(run.proxy.cut_watches)
            return await exchange.forward()

        return action

    return deed


KILLS = {
    "killed before the write": kill,
    "killed after the commit": kill_after_commit,
    "killed, the write 3 s late": kill_and_straggle,
}

ANSWERS: dict[str, Deed] = {
    "lost on its way": plain(proxy.lose),
    "answer cut after the commit": plain(proxy.lose_answer),
    f"{LATE_SECONDS:g} s late": plain(proxy.delay(LATE_SECONDS)),
    "sent twice, first answer": plain(proxy.duplicate),
    "sent twice, second answer": plain(proxy.duplicate_unanswered),
    f"sent again after {LATE_SECONDS:g} s": plain(proxy.echo(LATE_SECONDS)),
    **{f"answered {status}": plain(proxy.refuse(status)) for status in (409, 429, 500, 503)},
    "answered 429, to come back": plain(proxy.refuse(429, retry_after=1)),
    "answered 500 after the commit": plain(proxy.refuse(500, after_commit=True)),
}

STREAMS: dict[str, Deed] = {
    "watches cut": cut_watches,
    "watches expired (410)": expire_watches,
    "watches 5 s late": lag_watches(5.0),
}


def outage(seconds: float) -> tuple[str, Deed]:
    """An API server that is away for so long, with its name."""
    return f"API server away for {seconds:g} s", away(seconds)
