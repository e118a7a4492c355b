"""Gangs that arrive at random and run for a random time: drawn by a seed, the same in every run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from ..load.figures import overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZES = (2, 4, 8, 16, 32, 64)
LOAD = 0.8  # of all GPU-seconds, for which gangs run
_MEAN_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 60.0, 5.0, 300.0
_SEED = 8


@dataclass(frozen=True, slots=True)
class Arrival:
    """A gang that comes, runs and ends."""

    at: float  # seconds since the round began
    size: int  # members, with one GPU each
    run_seconds: float  # from the binding of its last member to its end


def drawn(gpus: int, seconds: float) -> tuple[Arrival, ...]:
    """Gangs whose run times are `LOAD` of the GPU-seconds, with exponential gaps between them.

    The gaps are stretched so that the gang after the last would arrive at the end. Gangs of each
    size have as many members, on average.
    """
    source = random.Random(_SEED)
    gangs: list[tuple[int, float]] = []
    needed = LOAD * gpus * seconds
    while needed > 0:
        (size,) = source.choices(SIZES, [1 / size for size in SIZES])
        run = min(max(source.expovariate(1 / _MEAN_SECONDS), _LEAST_SECONDS), _MOST_SECONDS)
        gangs.append((size, run))
        needed -= size * run
    *times, end = accumulate(source.expovariate(1.0) for _ in range(len(gangs) + 1))
    return tuple(
        Arrival(at / end * seconds, size, run) for at, (size, run) in zip(times, gangs, strict=True)
    )


def use_without_waiting(arrivals: Iterable[Arrival], gpus: int, begin: float, end: float) -> float:
    """The share of the GPUs between these seconds of a round if each gang started at once."""
    used = sum(
        arrival.size * overlap(arrival.at, arrival.at + arrival.run_seconds, begin, end)
        for arrival in arrivals
    )
    return used / (gpus * (end - begin))
