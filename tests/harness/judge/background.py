"""Event loops that end only when every connection made in them has ended.

A session of aiohttp forgets the connections that still say goodbye over TLS, and a loop that ends
before they have leaves their sockets open.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

HANG_UP_SECONDS = 10.0
LOOPS_OWN = 1  # the socket by which other threads wake a loop
Answer = TypeVar("Answer")


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Give what ``work`` answers, as ``asyncio.run`` does, once it has hung up."""
    selector = selectors.DefaultSelector()
    with asyncio.Runner(loop_factory=partial(asyncio.SelectorEventLoop, selector)) as runner:
        try:
            return runner.run(work)
        finally:
            runner.run(_hang_up(selector))


async def _hang_up(selector: selectors.BaseSelector) -> None:
    """End all else that this loop does; raises ``TimeoutError`` if a connection stays."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    deadline = loop.time() + HANG_UP_SECONDS
    while open_ones := len(selector.get_map()) - LOOPS_OWN:  # no event tells of it
        if loop.time() > deadline:
            raise TimeoutError(f"{threading.current_thread().name} left {open_ones} sockets open")
        await asyncio.sleep(0.005)
    await asyncio.sleep(0)  # what was closed in this turn of the loop is told so in the next


class Background:
    """A loop in a thread of its own, for what stands beside a test while it runs."""

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self.loop = asyncio.SelectorEventLoop(self._selector)
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not been left."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Let the loop run."""
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer], seconds: float) -> Answer:
        """Give what ``work`` answers; raises ``TimeoutError`` when that takes longer."""

        async def limited() -> Answer:
            async with asyncio.timeout(seconds):
                return await work

        return asyncio.run_coroutine_threadsafe(limited(), self.loop).result()

    def leave(self) -> None:
        """End the loop; whoever has sessions in it closes them before."""
        asyncio.run_coroutine_threadsafe(_hang_up(self._selector), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
