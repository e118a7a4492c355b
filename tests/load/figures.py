"""Percentiles, and what a list of gangs' waits comes to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many percent of all do not exceed; not a number for none."""
    if not values:
        return math.nan
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]
