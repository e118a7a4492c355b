"""Who is measured: every registered strategy by its name, and which engine it runs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from tutti.strategies import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.strategies.problem import Strategy

BESTFIT, ILP, ILP_HIGHS = "bestfit", "ilp", "ilp-highs"
KUEUE = "Kueue"  # itself, on its own load alone
DEFAULT = (BESTFIT, ILP, ILP_HIGHS)


def known() -> Sequence[str]:
    """The names of all that can be measured here; ``ilp-highs`` where HiGHS is installed."""
    return [name for name in STRATEGIES if name != ILP_HIGHS or find_spec("highspy")]


def made(name: str) -> Strategy:
    """A new strategy of that name."""
    return STRATEGIES[name]()


def engine(name: str) -> str:
    """The engine that it runs; nothing for a strategy without one."""
    return {ILP: "CBC", ILP_HIGHS: "HiGHS"}.get(name, "")
