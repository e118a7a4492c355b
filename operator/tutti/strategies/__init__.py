"""Interchangeable strategies from a Problem to a Solution, chosen by name.

Strategies of other packages join them through the entry points in ``plugins``.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from . import plugins
from .best_fit import BestFit, FirstFit, Spread
from .plugins import StrategyError
from .problem import Strategy

__all__ = ["STRATEGIES", "StrategyError", "load", "names"]


def _ilp() -> Strategy:
    """The exact strategy; the library of its engine is loaded only if the strategy is chosen."""
    from .ilp.strategy import IlpStrategy  # noqa: PLC0415 - pulp takes 0.2 s to load

    return IlpStrategy()


def _ilp_by_highs() -> Strategy:
    """The exact strategy with HiGHS, an engine that proves more but is not installed with Tutti."""
    from .ilp.engine import Highs  # noqa: PLC0415 - as above
    from .ilp.strategy import IlpStrategy  # noqa: PLC0415

    try:
        import_module("highspy")
    except ImportError as error:
        sentence = (
            "strategy 'ilp-highs' needs HiGHS: pip install 'highspy<1.15', or use Tutti's image"
        )
        raise StrategyError(sentence) from error
    return IlpStrategy(Highs(), "ilp-highs")


def _flow() -> Strategy:
    """The strategy with OR-Tools, which is not installed with Tutti."""
    try:
        from .flow import Flow  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise StrategyError(
            f"strategy 'flow' needs OR-Tools ({error}): pip install 'ortools>=9.15'"
        ) from error
    return Flow()


# The strategies of Tutti; no other package can take one of these names.
STRATEGIES: Mapping[str, Callable[[], Strategy]] = MappingProxyType(
    {
        "bestfit": BestFit,
        "firstfit": FirstFit,
        "flow": _flow,
        "ilp": _ilp,
        "ilp-highs": _ilp_by_highs,
        "spread": Spread,
    }
)


def names() -> Sequence[str]:
    """The names that ``load`` knows, sorted: Tutti's own and those of installed packages."""
    return sorted({*STRATEGIES, *plugins.offered()})


def load(name: str) -> Strategy:
    """Make the strategy of this name.

    Raises:
        StrategyError: no strategy has this name, or it cannot be used; the message is a sentence.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]()
    points = plugins.offered()
    if name not in points:
        raise StrategyError(f"strategy {name!r} is not one of {', '.join(names())}")
    return plugins.load(points[name])
