"""Concurrent calls, with a limit on how many run at a time; a failed call stops no other call.

The cycle and its reports use it. So they do not send thousands of requests to an API server that
gives no answer, and one object with an error does not delay the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from . import errors

Calling = Callable[[], Awaitable[object]]

TOO_MANY = 429


def is_away(problem: errors.ApiError) -> bool:
    """Whether the server itself is the problem, so that other requests would fail, too.

    With status 429, an overloaded server names the seconds to wait (API Priority and Fairness). A
    webhook that answers 429 does not, and refuses one object only.
    """
    if not isinstance(problem, errors.Unavailable):
        return False
    return not problem.status or (problem.status == TOO_MANY and problem.retry_after is not None)


class ConcurrencyLimit:
    """Runs at most ``width`` calls at a time."""

    def __init__(self, width: int) -> None:
        self._slots = asyncio.Semaphore(width)

    async def all(self, calls: Iterable[Calling]) -> None:
        """Make all calls, even if some of them fail, unless the server is away.

        Raises:
            errors.Unavailable: the server is away; calls that had not begun are not made.
            errors.ApiError: the first error of a call.
        """
        problems: list[errors.ApiError] = []

        async def limited(call: Calling) -> None:
            async with self._slots:
                if any(is_away(problem) for problem in problems):
                    return
                try:
                    await call()
                except errors.ApiError as problem:
                    problems.append(problem)

        results = await asyncio.gather(*(limited(call) for call in calls), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if problems:
            raise next(filter(is_away, problems), problems[0])
