"""A full cluster amid gangs that never fit: which of the gangs that do fit start, and when."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ..load.figures import percentile

if TYPE_CHECKING:
    from collections.abc import Collection

    from .accounts import Measured
    from .histories import History

# Two of the 60 s for which coscheduling lets members wait for the others of their gang, and some.
QUIET_SECONDS = 130.0


def with_starving(
    measured: Measured, fitting: Collection[History], never: Collection[History], end: float
) -> Measured:
    """The figures of a round that ended at this time, in seconds since the epoch."""
    waits = [gang.wait if gang.whole_at <= end else math.inf for gang in fitting]
    starving = sum(map(math.isinf, waits))
    return replace(
        measured,
        whole=len(waits) - starving,
        starving=starving,
        wait_p50=percentile(waits, 50),
        wait_p99=percentile(waits, 99),
        wait_longest=max(waits),
        never_bound=sum(len(gang.bound) for gang in never),
        partial_gpu_seconds=sum(
            gang.partial_gpu_seconds(-math.inf, end) for gang in (*fitting, *never)
        ),
    )
