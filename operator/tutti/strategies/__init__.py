"""Interchangeable ways from a Problem to a Solution, one file each, chosen by name."""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from .bestfit import BestFit
from .problem import Strategy


class UnknownStrategyError(ValueError):
    """A name that no strategy has; the message lists those that exist."""


def _ilp() -> Strategy:
    """The exact strategy; its engine's library is loaded only when it is chosen."""
    from .ilp import IlpStrategy  # noqa: PLC0415 - pulp costs 0.2 s that bestfit need not pay

    return IlpStrategy()


STRATEGIES: Mapping[str, Callable[[], Strategy]] = MappingProxyType(
    {"bestfit": BestFit, "ilp": _ilp}
)


def strategy_named(name: str) -> Strategy:
    """Make the strategy of this name; UnknownStrategyError where there is none."""
    if name in STRATEGIES:
        return STRATEGIES[name]()
    nearest = difflib.get_close_matches(name, STRATEGIES, n=1, cutoff=0.0)[0]
    known = ", ".join(sorted(STRATEGIES))
    raise UnknownStrategyError(
        f"there is no strategy {name!r}; known are {known}; the nearest is {nearest!r}"
    )
