"""What a run has measured, as pictures: how it grows, where the time goes, what was admitted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from tutti.model.decisions import Objective

from .stopwatch import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .results import Key, Results

_GRID = "x"  # how scenes of the grid are named: x8/50/13


def write(results: Results, folder: Path) -> Sequence[Path]:
    """Write the pictures as PNG files; those that this run has figures for."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"growth": _growth(results), "stages": _stages(results), "value": _value(results)}
    written = []
    for name, figure in pictures.items():
        if figure is not None:
            written.append(folder / f"{name}.png")
            figure.savefig(written[-1], dpi=120, bbox_inches="tight")
    return written


def _growth(results: Results) -> Figure | None:
    """Seconds of a whole plan by the number of nodes, a panel per fullness and shapes."""
    panels: dict[str, dict[str, dict[int, float]]] = {}
    for key in _finished(results):
        if key.scene.startswith(_GRID):
            _, full, shapes = key.scene.split("/")
            lines = panels.setdefault(f"{full} % full, {shapes} shapes", {})
            taken = results.median(key, lambda one: one.seconds)
            lines.setdefault(key.strategy, {})[results.cases()[key].scene.nodes] = taken
    panels = {name: lines for name, lines in panels.items() if len(next(iter(lines.values()))) > 1}
    if not panels:
        return None
    figure = Figure(figsize=(4 * len(panels), 4), layout="constrained")
    row = figure.subplots(ncols=len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, lines) in zip(row, panels.items(), strict=True):
        for strategy, points in lines.items():
            axes.plot(*zip(*sorted(points.items()), strict=True), marker="o", label=strategy)
        axes.set(xscale="log", yscale="log", xlabel="nodes", title=name)
        sizes = sorted({nodes for points in lines.values() for nodes in points})
        axes.set_xticks(sizes, [f"{nodes:,}" for nodes in sizes])
        axes.minorticks_off()
        axes.grid(visible=True, alpha=0.3)
    row[0].set(ylabel="seconds of a whole plan")
    row[0].legend(fontsize="small")
    return figure


def _stages(results: Results) -> Figure | None:
    """Seconds by stage, a bar per case."""
    keys = _finished(results)
    if not keys:
        return None
    figure = Figure(figsize=(9, 1.5 + 0.28 * len(keys)))
    axes = figure.subplots()
    left = [0.0] * len(keys)
    names = [f"{key.scene} {key.strategy}" for key in keys]
    for stage in NAMES:
        widths = [results.median(key, lambda one, s=stage: one.stages[s]) for key in keys]  # type: ignore[misc]
        axes.barh(names, widths, left=left, label=stage)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="seconds", title="Whole plan, by stage")
    axes.legend(fontsize="x-small", ncols=len(NAMES))
    return figure


def _value(results: Results) -> Figure | None:
    """The value admitted over the bound, a bar per case."""
    keys = [key for key in _finished(results) if not math.isnan(results.reached(key))]
    if not keys:
        return None
    figure = Figure(figsize=(9, 1.5 + 0.28 * len(keys)))
    axes = figure.subplots()
    bars = axes.barh(
        [f"{key.scene} {key.strategy}" for key in keys],
        [100 * results.reached(key) for key in keys],
    )
    axes.bar_label(bars, fmt="%.2f", fontsize="x-small")
    axes.invert_yaxis()
    axes.set(xlabel="% of what no answer exceeds", title="Value admitted")
    return figure


def _finished(results: Results) -> Sequence[Key]:
    return [
        key
        for key in results.cases()
        if key.objective is Objective.RESOURCES and results.rounds(key)
    ]
