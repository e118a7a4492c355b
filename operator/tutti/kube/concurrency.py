"""Calls side by side, so many at a time, each to its end; one that fails stops no other.

The cycle and its reports both use it. Neither sends thousands of requests to an API server that
gives no answer at all, and one broken object does not hold up the rest.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from . import errors

Calling = Callable[[], Awaitable[object]]

TOO_MANY = 429


def is_away(problem: errors.ApiError) -> bool:
    """Whether the server itself is the problem, so that asking for something else is no use.

    One that has too much to do says when to come back (apiserver's priority and fairness);
    a webhook that answers so does not, and means one object.
    """
    if not isinstance(problem, errors.Unavailable):
        return False
    return not problem.status or (problem.status == TOO_MANY and problem.retry_after is not None)


class ConcurrencyLimit:
    """Lets ``width`` calls through at a time."""

    def __init__(self, width: int) -> None:
        self._slots = asyncio.Semaphore(width)

    async def all(self, calls: Iterable[Calling]) -> None:
        """Make the calls, all of them whatever one of them meets, unless the server is away.

        Raises:
            errors.Unavailable: the server is away; calls that had not begun are left undone.
            errors.ApiError: what a call met and did not deal with itself.
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
