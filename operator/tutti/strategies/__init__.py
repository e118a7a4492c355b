"""Interchangeable ways from a Problem to a Solution, one file each, chosen by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .bestfit import BestFit
from .problem import Strategy


def _ilp() -> Strategy:
    """The exact strategy; its engine's library is loaded only when it is chosen."""
    from .ilp import IlpStrategy  # noqa: PLC0415 - pulp costs 0.2 s that bestfit need not pay

    return IlpStrategy()


STRATEGIES: Mapping[str, Callable[[], Strategy]] = MappingProxyType(
    {"bestfit": BestFit, "ilp": _ilp}
)
