"""Threads whose answers come in an order that a test can repeat."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class RepeatableThreads(ThreadPoolExecutor):
    """Runs each call in the thread of the event loop, and answers some turns of the loop later.

    As the default executor of a loop, it stands behind ``asyncio.to_thread``.
    """

    def __init__(self, turns: Callable[[], int]) -> None:
        """``turns`` says for each call how long its answer takes."""
        super().__init__(max_workers=1)
        self._turns = turns

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call; its answer comes later, an exception at once."""
        answer: Future[Any] = Future()
        result = fn(*args, **kwargs)
        _later(self._turns(), lambda: answer.set_result(result))
        return answer


def _later(turns: int, act: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    if turns > 0:
        loop.call_soon(_later, turns - 1, act)
    else:
        loop.call_soon(act)
