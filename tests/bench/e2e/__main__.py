"""`python -m tests.bench.e2e`: what is measured, how often, and how it is printed."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from ...harness.controlplane.errors import ControlPlaneError
from ..load.figures import Within
from . import plots
from .accounts import Measured
from .contenders import BIND_LOOP, CONTENDERS, KUEUE, NATIVE, PLAIN, TUTTI
from .rounds import FallenError, Patience, measure
from .scenarios import MINUTES, scenarios
from .stage import staged
from .tables import ratios, table_of
from .verdicts import plain_values, verdicts

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import FrameType

    from .contenders import Contender
    from .scenarios import Scenario


def _chosen(_context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    known = tuple(CONTENDERS) if option.name == "schedulers" else tuple(scenarios(1.0))
    names = tuple(dict.fromkeys(name for name in text.replace(",", " ").split() if name))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = ", ".join(unknown) or "nothing"
        raise click.BadParameter(f"{wrong}; there are {', '.join(known)}")
    return names


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--scenarios",
    "letters",
    default="a,b,c,d,e,f,g,h,i,j,k",
    show_default=True,
    callback=_chosen,
    help="Which of them: a gangs of 8; b large and small gangs; c one large gang; d a start among "
    "many bound pods; e gangs of 8 amid a burst of pods that wait; f a start among such (e and f: "
    "Tutti alone; d: without Kueue, which marks pods when they are created); g one pod for which "
    "another ends; h many such pods; i gangs for which pods end (g, h and i: Tutti and "
    "kube-scheduler; i: also with its gangs); j gangs that fill all nodes amid gangs that never "
    "fit; k gangs that arrive, run and end.",
)
@click.option(
    "--schedulers",
    default=",".join(CONTENDERS),
    show_default=True,
    callback=_chosen,
    help="Who is measured, in this order, which turns from round to round. bind-loop is no "
    "scheduler: it binds each pod to the next node, in a, b and c.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 99),
    default=3,
    show_default=True,
    help="Rounds of each scenario and scheduler; tables show medians.",
)
@click.option(
    "--scale",
    type=Within(0.001, 1.0),
    default=1.0,
    show_default=True,
    help="So much of all nodes and pods.",
)
@click.option(
    "--patience",
    type=Within(1, 3600),
    default=300.0,
    show_default=True,
    help="Seconds after which what is not bound counts as never bound; not in k.",
)
@click.option(
    "--minutes",
    type=Within(0.1, 600),
    default=MINUTES,
    show_default=True,
    help="Minutes for which gangs arrive in k; its figures leave out the first fifth.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How the figures are printed; progress goes to stderr.",
)
@click.option(
    "--plots",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a picture of each scenario into this folder, as PNG.",
)
def main(
    *,
    letters: tuple[str, ...],
    schedulers: tuple[str, ...],
    rounds: int,
    scale: float,
    patience: float,
    minutes: float,
    output: str,
    folder: Path | None,
) -> None:
    """Measure Tutti beside other schedulers: the same pods, the same nodes, one run.

    Each round starts one scheduler on an otherwise idle API server, shows it a few pods, then
    creates all gangs as fast as the API server takes them, or in k as they arrive. pods/s counts
    from the first pod's creation to the last binding; p50 and p99 are a gang's last member created
    to its last binding. Times and writes are the API server's audit log's, CPU and memory are
    /proc's. docs/benchmarks.md explains all scenarios and columns.
    """
    os.environ.pop("KUBECONFIG", None)
    contenders = [CONTENDERS[name] for name in schedulers]
    measured: list[Measured] = []
    console, progress = (Console(stderr=is_aside, width=_width()) for is_aside in (False, True))
    played = [scenarios(scale, minutes)[letter] for letter in letters]
    for scenario in played:
        progress.print(f"({scenario.name}) {scenario.title}", highlight=False)
        measured += _play(scenario, contenders, rounds, Patience(patience), progress)
        if output == "table":
            console.print(table_of(scenario, measured))
    rows = verdicts(measured)
    if output == "json":
        print(json.dumps({"scale": scale, **plain_values(measured, rows)}, indent=1))
    else:
        console.print(ratios(rows, scale))
    for path in plots.write(played, measured, folder) if folder else ():
        progress.print(f"wrote {path}", highlight=False)


def _width() -> int | None:
    """Tables keep their shape in files and pipes."""
    return None if sys.stdout.isatty() else 130


def _play(
    scenario: Scenario,
    contenders: Collection[Contender],
    rounds: int,
    patience: Patience,
    progress: Console,
) -> list[Measured]:
    measured = []
    order = [one for one in contenders if _takes_part(one, scenario)]
    with staged(scenario, contenders) as stage:
        for i in range(rounds):
            for contender in order:
                prefix = f"r{i}-{contender.name}-"
                try:
                    one = measure(stage, scenario, contender, prefix, patience)
                except FallenError as problem:
                    one = Measured.fallen(contender.name, scenario)
                    progress.print(str(problem), markup=False, highlight=False)
                measured.append(one)
                progress.print(f"  round {i + 1}  {_line(one)}", highlight=False)
            order = order[1:] + order[:1]
    return measured


def _takes_part(contender: Contender, scenario: Scenario) -> bool:
    if contender.name == BIND_LOOP:
        return scenario.is_throughput
    if scenario.waiting:
        return contender.name == TUTTI
    if scenario.running:
        return contender.name in (TUTTI, PLAIN) or (
            contender.name == NATIVE and max(scenario.sizes) > 1
        )
    # Kueue marks pods when they are created, which is before a start.
    return not (scenario.is_start and contender.name == KUEUE)


def _line(one: Measured) -> str:
    waits = "" if math.isnan(one.wait_p99) else f"p99 {one.wait_p99:.2f} s, "
    start = "" if math.isnan(one.start_seconds) else f"first binding {one.start_seconds:.2f} s, "
    cost = f"CPU {one.cpu_seconds:.1f} s, {one.peak_megabytes:.0f} MB"
    speed = f"{one.pods_per_second:.0f} pods/s"
    return f"{one.contender:15} {one.bound}/{one.pods} bound, {speed}, {waits}{start}{cost}"


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # A polite kill cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        main()
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
