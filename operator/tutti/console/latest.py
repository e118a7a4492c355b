"""What is worked out of the newest observation: once, and in a thread, so that others are answered.

In a cluster of 12,000 nodes one such answer takes a quarter of a second.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from .observation import Observation

T = TypeVar("T")


class Latest(Generic[T]):
    """The value of a function of the observation, for the newest version that was asked for."""

    def __init__(self, function: Callable[[Observation], T]) -> None:
        self._function = function
        self._turn = asyncio.Lock()
        self._newest: tuple[int, T] | None = None

    async def of(self, observation: Observation) -> T:
        """The value for this observation; raises what the function raises."""
        async with self._turn:
            if self._newest is None or self._newest[0] != observation.version:
                value = await asyncio.to_thread(self._function, observation)
                self._newest = observation.version, value
            return self._newest[1]
