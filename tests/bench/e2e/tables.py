"""What a run has measured, as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table

from .verdicts import Medians

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .accounts import Measured
    from .scenarios import Scenario
    from .verdicts import Verdict

_SPEED: Mapping[str, Callable[[Measured], float]] = {
    "pods/s": lambda one: one.pods_per_second,
    "created/s": lambda one: one.created_per_second,
    "p50 s": lambda one: one.wait_p50,
    "p99 s": lambda one: one.wait_p99,
    "writes/pod": lambda one: one.writes_per_pod,
    "watch p99 s": lambda one: one.watch_delay,
}
_ENDING: Mapping[str, Callable[[Measured], float]] = {
    "all bound s": lambda one: one.bound / one.pods_per_second if one.pods_per_second else math.inf,
    "p50 s": lambda one: one.wait_p50,
    "p99 s": lambda one: one.wait_p99,
    "ended": lambda one: one.ended,
    "writes/pod": lambda one: one.writes_per_pod,
}
_START: Mapping[str, Callable[[Measured], float]] = {
    "first binding s": lambda one: one.start_seconds,
    "pods/s": lambda one: one.pods_per_second,
}
_STARVING: Mapping[str, Callable[[Measured], float]] = {
    "whole": lambda one: one.whole,
    "starve": lambda one: one.starving,
    "p50 s": lambda one: one.wait_p50,
    "p99 s": lambda one: one.wait_p99,
    "longest s": lambda one: one.wait_longest,
    "bound, never fits": lambda one: one.never_bound,
    "GPU-s not whole": lambda one: one.partial_gpu_seconds,
}
_CHURN: Mapping[str, Callable[[Measured], float]] = {
    "started": lambda one: one.started,
    "p50 s": lambda one: one.wait_p50,
    "p99 s": lambda one: one.wait_p99,
    "GPUs used": lambda one: one.utilisation,
    "GPU-s not whole": lambda one: one.partial_gpu_seconds,
    "writes/pod": lambda one: one.writes_per_pod,
    "late s": lambda one: one.late_seconds,
}
_COST: Mapping[str, Callable[[Measured], float]] = {
    "CPU s": lambda one: one.cpu_seconds,
    "server CPU s": lambda one: one.server_cpu_seconds,
    "peak MB": lambda one: one.peak_megabytes,
}


def table_of(scenario: Scenario, measured: Sequence[Measured]) -> Table:
    """One scenario: a row per scheduler, medians over its rounds."""
    figures = figures_of(scenario)
    table = Table(title=f"({scenario.name}) {scenario.title}", title_justify="left")
    table.add_column("scheduler", no_wrap=True)
    for heading in (*figures, "bound", "rounds"):
        table.add_column(heading, justify="right")
    ours = [each for each in measured if each.scenario == scenario.name]
    medians = Medians(ours)
    for name, _ in medians.pairs():
        mine = [each for each in ours if each.contender == name]
        values = [text_of(medians.of(name, scenario.name, figure)) for figure in figures.values()]
        bound = f"{min(each.bound for each in mine)}/{scenario.pods}"
        table.add_row(name, *values, bound, str(len(mine)))
    return table


def figures_of(scenario: Scenario) -> Mapping[str, Callable[[Measured], float]]:
    """What is measured in a scenario, by the heading of its column."""
    if scenario.is_start:
        own = _START
    elif scenario.running:
        own = _ENDING
    elif scenario.never:
        own = _STARVING
    else:
        own = _CHURN if scenario.arrivals else _SPEED
    return {**own, **_COST}


def ratios(rows: Iterable[Verdict], scale: float) -> Table:
    """The rows that count; what they must reach holds for the full scale."""
    where = "" if scale == 1 else f" at scale {scale:g}, which decides nothing"
    table = Table("", title=f"Tutti, medians of this run{where}", title_justify="left")
    for heading in ("value", "must reach", "aim for"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in rows:
        bounds = (f"{row.sense} {text_of(row.must)}", f"{row.sense} {text_of(row.aim)}")
        table.add_row(row.text, text_of(row.value), *bounds, row.word)
    return table


def text_of(value: float) -> str:
    """A figure as people read it: '-' was not measured."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
