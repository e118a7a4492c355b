"""What a run has measured, as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from . import contenders, kueue_load, network, queue_tree
from .cases import PLAIN_SIZES
from .stopwatch import NAMES
from .trials import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..e2e.verdicts import Verdict
    from .kueue_load import Load
    from .results import Key, Results
    from .trials import Figures

_TEXTS = ("scene", "strategy", "engine", "objective")
_ADMITTED = ("value", "bound", "gap", "gangs", "GPUs")
_COST = ("total s", "MB", "engine MB", "rounds")
_BESIDE = ("seconds", "beside it", "value", "beside it", "blocked s")


def plans(results: Results) -> Table:
    """A row per scene, objective and strategy: what was admitted, and what it cost."""
    table = Table(
        title="Plans: medians, in seconds by stage", title_justify="left", box=SIMPLE_HEAD
    )
    for heading in _TEXTS:
        table.add_column(heading, no_wrap=True)
    for heading in (*_ADMITTED, *NAMES, *_COST):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("note")
    last = ""
    for key in results.cases():
        scene = "" if key.scene == last else key.scene
        last = key.scene
        engine = contenders.engine(key.strategy)
        table.add_row(scene, key.strategy, engine, key.objective, *_cells(results, key))
    return table


def _cells(results: Results, key: Key) -> Sequence[str]:
    rounds, trouble = results.rounds(key), results.trouble(key)
    if not rounds:
        return [*("-" for _ in (*_ADMITTED, *NAMES, *_COST)), trouble]

    def of(figure: Callable[[Figures], float]) -> float:
        return results.median(key, figure)

    stages = [of(lambda one, name=stage: one.stages[name]) for stage in NAMES]  # type: ignore[misc]
    waiting = results.cases()[key].scene.gangs
    return [
        count(of(lambda one: one.value)),
        count(results.bound(key)),
        percent(1 - results.reached(key)),
        f"{of(lambda one: one.gangs):.0f}/{waiting}",
        count(of(lambda one: one.gpus)),
        *(seconds(value) for value in stages),
        seconds(of(lambda one: one.seconds)),
        count(of(lambda one: one.peak_megabytes)),
        count(of(lambda one: one.engine_megabytes)),
        f"{len(rounds)}",
        trouble or rounds[0].shortfall.partition(" (")[0],
    ]


def comparisons(results: Results) -> Table:
    """A row per comparison: the strategy, and what stands beside it."""
    table = Table(title="Side by side: medians", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("what", "scene", "strategy"):
        table.add_column(heading, no_wrap=True)
    for heading in _BESIDE:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("note")
    for kind, words in _WORDS.items():
        for key in results.cases(kind):
            cells = _beside(results, key)
            note = results.trouble(key) or _note(results, key)
            table.add_row(words, key.scene, key.strategy, *cells, note)
    return table


def _note(results: Results, key: Key) -> str:
    """Which queues keep gangs waiting by a limit, which gangs end, or bounds; else nothing."""
    if key.kind is Kind.RACK_PROGRAM:
        plan = results.median(key, lambda one: math.nan if one.bound is None else one.bound)
        program = results.median(
            key, lambda one: math.nan if one.other_bound is None else one.other_bound
        )
        return f"bounds: {count(plan)} of the plan, {count(program)} of the program"
    if key.kind is Kind.PREEMPTION:
        ended = results.median(key, lambda one: one.ended)
        cost = results.median(key, lambda one: one.cost)
        return f"{count(ended)} gangs end, for {ratio(cost)} times the bound of their cost"
    if key.kind is not Kind.QUEUES:
        return ""
    at_limit = results.median(key, lambda one: one.at_limit)
    return f"{count(at_limit)} of {queue_tree.QUEUES} queues at a limit"


def domains(results: Results) -> Table:
    """Where gangs are that prefer domains, and the largest gang that then still fits by level."""
    table = Table(
        title="Racks: gangs that prefer one, and the largest gang of whole nodes that still fits",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for heading in ("scene", "plan"):
        table.add_column(heading, no_wrap=True)
    columns = ("gangs in one rack", *reversed(network.LEVELS))
    for heading in ("racks a gang", *columns):
        table.add_column(heading, justify="right", no_wrap=True)
    for key in results.cases(Kind.NETWORK):
        for figures in results.rounds(key)[:1]:
            for plan, values in figures.where.items():
                mean = values.get("racks a gang", math.nan)
                cells = (count(values.get(column, math.nan)) for column in columns)
                table.add_row(key.scene, plan, ratio(mean), *cells)
    return table


def kueue(results: Results) -> Table:
    """A row per planner of Kueue's load, and Kueue's own published figures under each load."""
    table = Table(
        title="Kueue's load: seconds of planning count, and nothing else does",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for heading in ("scene", "planner"):
        table.add_column(heading, no_wrap=True)
    classes = [cls.name for cls in kueue_load.BASELINE.classes]
    for heading in (*_OF_LOAD, *(f"until {name} s" for name in classes)):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("note")
    keys = results.cases(Kind.KUEUE)
    for key, case in keys.items():
        table.add_row(key.scene, key.strategy, *_of_load(results, key, classes))
        following = [other for other in keys if other.scene == key.scene]
        if key == following[-1]:
            load = kueue_load.LOADS[case.scene.load]
            table.add_row(key.scene, "Kueue, published", *_published(load))
    return table


_OF_LOAD = ("gangs", "gangs/s", "cycles", "slowest s", "quota in use", "end s", "least s / end")


def _of_load(results: Results, key: Key, classes: Sequence[str]) -> Sequence[str]:
    load = kueue_load.of(results.cases(Kind.KUEUE)[key].scene)

    def of(name: str) -> float:
        return results.median(key, lambda one: one.load.get(name, math.nan))

    return [
        count(results.median(key, lambda one: one.gangs)),
        ratio(of("started per second")),
        count(of("cycles")),
        seconds(of("slowest cycle")),
        percent(of("quota in use")),
        seconds(of("end")),
        ratio(kueue_load.least_seconds(load) / of("end")),
        *(seconds(of(f"until {name}")) for name in classes),
        results.trouble(key) or _of_kueue(of("evicted")),
    ]


def _of_kueue(evicted: float) -> str:
    """What is different about a run of Kueue itself; nothing of others, which evict nobody."""
    if math.isnan(evicted):
        return ""
    return f"all of Kueue, with an API server; {count(evicted)} evictions"


def _published(load: Load) -> Sequence[str]:
    """The figures that Kueue publishes of a whole load."""
    own = load.published
    return [
        count(load.workloads),
        ratio(load.workloads / own.seconds),
        "-",
        "-",
        percent(own.usage),
        seconds(own.seconds),
        ratio(kueue_load.least_seconds(load) / own.seconds),
        *map(seconds, own.admission),
        "published, from other machines, with an API server",
    ]


_WORDS = {
    Kind.ARGMIN: "members, one argmin each",
    Kind.PLAIN: f"a variable per pod and node, {PLAIN_SIZES[0]} nodes and more",
    Kind.UNCHANGED: "nothing changed, and a full plan",
    Kind.QUEUES: "a plan with queues, and without",
    Kind.DEVICES: "a plan with devices on half of the nodes, and without",
    Kind.NETWORK: "a plan with preferred racks, and without",
    Kind.PREEMPTION: "a plan in which gangs end for one, and without",
    Kind.TOPOLOGY: "a plan with required racks and segments, and without",
    Kind.RACK_PROGRAM: "a plan with racks and segments, and one program over 48 racks",
    Kind.REFUSAL: "a plan of one gang that no rack holds, and of all gangs",
    Kind.CYCLE: "one of others' pods changed, and nothing did",
}


_BLOCKING = (Kind.CYCLE, Kind.DEVICES)  # where what blocks the event loop is measured


def _beside(results: Results, key: Key) -> Sequence[str]:
    figures: Sequence[tuple[Callable[[float], str], Callable[[Figures], float]]] = (
        (seconds, lambda one: one.seconds),
        (seconds, lambda one: one.other_seconds),
        (count, lambda one: one.value),
        (count, lambda one: one.other_value),
        (seconds, lambda one: one.blocked_seconds if key.kind in _BLOCKING else math.nan),
    )
    return [text(results.median(key, figure)) for text, figure in figures]


def ratios(rows: Iterable[Verdict], scale: float) -> Table:
    """The rows that decide; what they must reach holds for the full scale."""
    where = "" if scale == 1 else f" at scale {scale:g}, which decides nothing"
    table = Table("", title=f"Medians of this run{where}", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("value", "must reach", "aim for"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        bounds = (f"{row.sense} {ratio(row.must)}", f"{row.sense} {ratio(row.aim)}")
        table.add_row(row.text, ratio(row.value), *bounds, row.word)
    return table


def ratio(value: float) -> str:
    """A number from far below one to thousands."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "never"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if value < 2 else f"{value:.2f}"


def count(value: float) -> str:
    """A whole number; nothing where there is none."""
    return "-" if math.isnan(value) else f"{value:,.0f}"


def percent(value: float) -> str:
    """A share; nothing where there is none."""
    return "-" if math.isnan(value) else f"{value:.2%}"


def seconds(value: float) -> str:
    """Seconds, to the millisecond where they are few."""
    return "-" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"
