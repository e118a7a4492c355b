"""The faults of one run, struck one after the other while the operator's writes are counted."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from .writes import Write, write_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from ...harness.proxy import Exchange
    from .run import Run
    from .trials import Strike


class Course:
    """An action of the proxy's for every call."""

    def __init__(self, run: Run, strikes: Sequence[Strike]) -> None:
        self._run = run
        self._left = deque(strikes)
        self._seen = 0
        self._under_way = 0
        self._latest = time.monotonic()
        self.written: Counter[Write] = Counter()

    @property
    def is_over(self) -> bool:
        """Whether every strike has happened."""
        return not self._left

    @property
    def quiet_since(self) -> float:
        """When the last write ended, but for Leases; now, while one is under way."""
        return time.monotonic() if self._under_way else self._latest

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        """Count one call and do with it what is due."""
        write = write_of(exchange.call)
        if write is None:
            return await exchange.forward()
        self.written[write] += 1
        strike = self._due(write)
        if write is Write.LEASE and strike is None:
            return await exchange.forward()
        self._under_way += 1
        try:
            if strike is None:
                return await exchange.forward()
            self._run.begin(strike)
            return await strike.deed(self._run)(exchange)
        finally:
            self._under_way -= 1
            self._latest = time.monotonic()

    def _due(self, write: Write) -> Strike | None:
        if not self._left or write not in self._left[0].kinds:
            return None
        self._seen += 1
        if self._seen < self._left[0].n:
            return None
        self._seen = 0
        return self._left.popleft()
