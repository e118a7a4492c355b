"""What a run has measured, as pictures: a file per scenario, a panel per figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from .contenders import TUTTI
from .tables import figures_of, text_of
from .verdicts import Medians

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .accounts import Measured
    from .scenarios import Scenario

_PANELS_IN_A_ROW = 4
_COLOUR, _OTHERS_COLOUR = "tab:orange", "tab:blue"  # of Tutti, and of the other schedulers


def write(scenarios: Iterable[Scenario], measured: Sequence[Measured], folder: Path) -> list[Path]:
    """Write the pictures as PNG files; answers their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for scenario in scenarios:
        paths.append(folder / f"{scenario.name}.png")
        picture(scenario, measured).savefig(paths[-1], dpi=120)
    return paths


def picture(scenario: Scenario, measured: Sequence[Measured]) -> Figure:
    """The medians of a scenario: a bar for each scheduler in a panel for each figure.

    A figure that only one of several schedulers has gets no panel.
    """
    medians = Medians([round_ for round_ in measured if round_.scenario == scenario.name])
    schedulers = [name for name, _ in medians.pairs()]
    colours = [_COLOUR if name == TUTTI else _OTHERS_COLOUR for name in schedulers]
    panels = {
        heading: values
        for heading, figure in figures_of(scenario).items()
        if (values := [medians.of(name, scenario.name, figure) for name in schedulers])
        and sum(not math.isnan(value) for value in values) >= min(2, len(schedulers))
    }
    rows = max(1, math.ceil(len(panels) / _PANELS_IN_A_ROW))
    size = (3.2 * _PANELS_IN_A_ROW, rows * (1 + 0.3 * len(schedulers)))
    drawing = Figure(figsize=size, layout="constrained")
    drawing.suptitle(f"({scenario.name}) {scenario.title}", fontsize="medium")
    axes = drawing.subplots(rows, _PANELS_IN_A_ROW, squeeze=False, sharey=True).ravel()
    for panel, (heading, values) in zip(axes, panels.items(), strict=False):
        # What never ends has no bar, but a word.
        lengths = [value if math.isfinite(value) else 0.0 for value in values]
        bars = panel.barh(schedulers, lengths, color=colours)
        panel.bar_label(bars, [text_of(value) for value in values], fontsize="small", padding=2)
        panel.set_title(heading, fontsize="medium")
        panel.margins(x=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[len(panels) :]:
        panel.set_axis_off()
    axes[0].invert_yaxis()
    return drawing
