"""Gangs that come and end all the time: how long they wait, and what the GPUs do meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..load.figures import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .accounts import Measured
    from .arrivals import Arrival
    from .histories import History

_WARM_UP = 1 / 5  # of the time of arrivals


@dataclass(frozen=True, slots=True)
class Span:
    """The time of arrivals, in seconds since the epoch; figures are of the part that counts."""

    began: float
    seconds: float

    @property
    def counts_from(self) -> float:
        """When enough gangs run that figures count."""
        return self.began + self.seconds * _WARM_UP

    @property
    def end(self) -> float:
        """When no more gangs arrive."""
        return self.began + self.seconds


def with_churn(
    measured: Measured,
    gangs: Mapping[str, History],
    arrivals: Mapping[str, Arrival],
    span: Span,
    gpus: int,
) -> Measured:
    """The figures of a round on this many GPUs."""
    begin, end = span.counts_from, span.end
    waits = [
        min(gang.whole_at, end) - gang.created_at
        for gang in gangs.values()
        if gang.created_at < end and gang.whole_at >= begin
    ]
    held = sum(gang.gpu_seconds(begin, end) for gang in gangs.values())
    return replace(
        measured,
        started=sum(begin <= gang.whole_at < end for gang in gangs.values()),
        wait_p50=percentile(waits, 50),
        wait_p99=percentile(waits, 99),
        wait_longest=max(waits, default=math.nan),
        utilisation=held / (gpus * (end - begin)),
        partial_gpu_seconds=sum(gang.partial_gpu_seconds(begin, end) for gang in gangs.values()),
        late_seconds=max(_late(gangs, arrivals, span), default=math.nan),
    )


def _late(
    gangs: Mapping[str, History], arrivals: Mapping[str, Arrival], span: Span
) -> Iterator[float]:
    """Seconds by which the benchmark, not the scheduler, created or ended each gang too late."""
    for name, arrival in arrivals.items():
        gang, due = gangs[name], span.began + arrival.at
        yield min(gang.created_at, span.end) - due
        due = gang.whole_at + arrival.run_seconds
        if due < span.end:
            yield min(gang.ended_at, span.end) - due
