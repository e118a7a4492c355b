"""The expressions: those written by hand first, then as many as are asked for, drawn by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .byhand import BY_HAND
from .grammar import KINDS, drawn

if TYPE_CHECKING:
    from collections.abc import Iterator


class Case(NamedTuple):
    """An expression, and what kind of expression it is."""

    kind: str
    expression: str


def corpus(seed: int, count: int) -> tuple[Case, ...]:
    """So many different expressions, and never fewer than are written by hand."""
    found: dict[str, Case] = {}
    for case in _endless(seed):
        if len(found) >= count and len(found) >= sum(map(len, BY_HAND.values())):
            break
        found.setdefault(case.expression, case)
    return tuple(found.values())


def _endless(seed: int) -> Iterator[Case]:
    for kind, expressions in BY_HAND.items():
        yield from (Case(kind, text) for text in expressions)
    number = 0
    while True:
        for kind in KINDS:
            yield Case(kind, drawn(seed, kind, number))
        number += 1
