"""Numbers in and out: what an option accepts, and what waits and spans of time come to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many percent of all do not exceed; not a number for none."""
    if not values:
        return math.nan
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def overlap(since: float, until: float, begin: float, end: float) -> float:
    """Seconds that two spans of time have in common."""
    return max(0.0, min(until, end) - max(since, begin))


class Within(click.FloatRange):
    """A number between two others, which "nan" is not."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or a refusal in a sentence."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number
