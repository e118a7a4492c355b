"""The ratios that count, from the medians of one run, each against what it must reach."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from .contenders import BIND_LOOP, GANG_SCHEDULERS, PLAIN, TUTTI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .accounts import Measured


class Sense(StrEnum):
    """Which side of a bound is good."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row: what was measured, and what it must reach; nothing where it was not measured."""

    text: str
    value: float
    sense: Sense
    must: float
    aim: float

    @property
    def is_measured(self) -> bool:
        """Whether this run says anything about it."""
        return not math.isnan(self.value)

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        if not self.is_measured:
            return "not measured"
        if self._meets(self.aim):
            return "reached, and the aim"
        return "reached" if self._meets(self.must) else "not reached"

    def _meets(self, bound: float) -> bool:
        return self.value >= bound if self.sense is Sense.AT_LEAST else self.value <= bound


class Medians:
    """The median over the rounds of any figure, by scheduler and scenario."""

    def __init__(self, measured: Iterable[Measured]) -> None:
        self._rounds: defaultdict[tuple[str, str], list[Measured]] = defaultdict(list)
        for each in measured:
            self._rounds[each.contender, each.scenario].append(each)

    def pairs(self) -> Sequence[tuple[str, str]]:
        """Scheduler and scenario of everything measured."""
        return tuple(self._rounds)

    def of(self, contender: str, scenario: str, figure: Callable[[Measured], float]) -> float:
        """Not a number where it was not measured."""
        return median([figure(each) for each in self._rounds.get((contender, scenario), ())])


def median(values: Sequence[float]) -> float:
    """The median of what was measured; not a number for none."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan


def verdicts(measured: Iterable[Measured]) -> Sequence[Verdict]:
    """The rows that count, in their order."""
    medians = Medians(measured)
    of = medians.of

    def over_best_gangs(scenario: str) -> float:
        others = [of(name, scenario, lambda one: one.wait_p99) for name in GANG_SCHEDULERS]
        best = min((p99 for p99 in others if not math.isnan(p99)), default=math.nan)
        return of(TUTTI, scenario, lambda one: one.wait_p99) / best

    def over(other: str, scenario: str, figure: Callable[[Measured], float]) -> float:
        divisor = of(other, scenario, figure)
        return of(TUTTI, scenario, figure) / divisor if divisor else math.nan

    speed, share = (over(other, "a", _speed) for other in (PLAIN, BIND_LOOP))
    large = [of(TUTTI, scenario, lambda one: one.large_writes_per_pod) for scenario in "bc"]
    waiting = of(TUTTI, "e", lambda one: one.watch_delay)
    cpu = over(PLAIN, "a", _cpu)
    start = over(PLAIN, "d", _start)
    least, most = Sense.AT_LEAST, Sense.AT_MOST
    return (
        Verdict("pods/s over kube-scheduler's, in (a)", speed, least, 1.6, 2.5),
        Verdict("pods/s over those of a loop that only binds, in (a)", share, least, 0.5, 0.8),
        Verdict(
            "gang p99 over the best gang scheduler's, in (a)",
            over_best_gangs("a"),
            most,
            0.4,
            0.2,
        ),
        Verdict(
            "gang p99 over the best gang scheduler's, in (b)",
            over_best_gangs("b"),
            most,
            0.5,
            0.2,
        ),
        Verdict(
            "API writes per pod, gangs of 8 in (a)",
            of(TUTTI, "a", lambda one: one.writes_per_pod),
            most,
            1.45,
            1.3,
        ),
        Verdict(
            "API writes per pod, gangs of 64 and more in (b), (c)", median(large), most, 1.15, 1.05
        ),
        Verdict("start to first binding over kube-scheduler's, in (d)", start, most, 1.5, 1.0),
        Verdict(
            "peak RSS in (d), MB",
            of(TUTTI, "d", lambda one: one.peak_megabytes),
            most,
            1500.0,
            600.0,
        ),
        Verdict(
            "p99 until the watch of bound pods shows a binding, in (e), s", waiting, most, 0.5, 0.1
        ),
        Verdict("start to first binding in (f), s", of(TUTTI, "f", _start), most, 60.0, 30.0),
        Verdict("CPU s over kube-scheduler's, in (a)", cpu, most, 0.5, 0.3),
    )


def _speed(one: Measured) -> float:
    return one.pods_per_second


def _cpu(one: Measured) -> float:
    return one.cpu_seconds


def _start(one: Measured) -> float:
    return one.start_seconds


def plain_values(measured: Iterable[Measured], rows: Iterable[Verdict]) -> Mapping[str, object]:
    """Everything as JSON has it: what is no number, or for ever, is null."""

    def number(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rounds = [{name: number(getattr(each, name)) for name in each.__slots__} for each in measured]
    ratios = [
        {
            "text": row.text,
            "value": number(row.value),
            "sense": str(row.sense),
            "must": row.must,
            "aim": row.aim,
            "verdict": row.word,
        }
        for row in rows
    ]
    return {"rounds": rounds, "ratios": ratios}
