"""The example of a strategy that a number stands for: the same in every run, on every machine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    Draw = Callable[[SearchStrategy[Any]], Any]

T = TypeVar("T")

_SETTINGS = settings(
    max_examples=2,  # the first is always the plainest; later ones would be like those before
    database=None,
    derandomize=False,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@cache  # hypothesis looks at every strategy before its first use
def among(options: tuple[T, ...]) -> SearchStrategy[T]:
    """One of these; twice named is twice as likely."""
    return st.sampled_from(options)


def drawn(strategy: SearchStrategy[T], number: int) -> T:
    """The example of this number."""
    found: list[T] = []

    @seed(number)
    @_SETTINGS
    @given(strategy)
    def note(example: T) -> None:
        found.append(example)

    note()
    return found[-1]
