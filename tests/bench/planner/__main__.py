"""`python -m tests.bench.planner`: what is measured, how often, and how it is printed."""

from __future__ import annotations

import json
import math
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from ...harness.interruption import INTERRUPTED
from ..load.figures import Within
from . import against, contenders, plots, tables, traces
from .course import Agenda, played
from .isolation import Source
from .results import Results, plain_values
from .verdicts import verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ..e2e.verdicts import Verdict
    from .results import Measured
    from .trials import Case

_WIDTH = 240  # of tables in files and pipes


def _listed(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names or patterns, by comma or space."""
    return tuple(dict.fromkeys((text or "").replace(",", " ").split()))


def _strategies(
    context: click.Context, option: click.Parameter, text: str | None
) -> tuple[str, ...]:
    known = contenders.known()
    names = _listed(context, option, text) or tuple(n for n in contenders.DEFAULT if n in known)
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"{', '.join(unknown)}; there are {', '.join(known)}")
    return names


_File = click.Path(exists=True, dir_okay=False, path_type=Path, resolve_path=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--nodes", type=_File, help="A list of nodes as CSV; generated without.")
@click.option("--pods", type=_File, help="A list of pods as CSV; generated without.")
@click.option(
    "--scale",
    type=Within(0.001, 1.0),
    default=1.0,
    show_default=True,
    help="So much of all nodes and gangs.",
)
@click.option(
    "--only",
    "patterns",
    callback=_listed,
    help="Scenes and comparisons by name or pattern: 'x8/50/*', racks, plain; --list lists them.",
)
@click.option("--list", "is_listing", is_flag=True, help="List the names for --only, and end.")
@click.option(
    "--strategies",
    callback=_strategies,
    help="Who is measured; default: bestfit, ilp and, where HiGHS is installed, ilp-highs.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 99),
    default=5,
    show_default=True,
    help="Rounds of what decides; the survey of all sizes is measured once.",
)
@click.option(
    "--patience",
    type=Within(1, 3600),
    default=120.0,
    show_default=True,
    help="Seconds that one measurement may take, its preparation included.",
)
@click.option(
    "--kueue",
    "runs_kueue",
    is_flag=True,
    help="Build Kueue's own benchmark and run it on the same loads; needs the control plane.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of all that is drawn.")
@click.option(
    "--against",
    "commit",
    metavar="COMMIT",
    default="",
    help="Measure what decides here and in another commit of this checkout, in turn.",
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
    help="Write plots into this folder, as PNG.",
)
def main(
    *,
    nodes: Path | None,
    pods: Path | None,
    scale: float,
    patterns: tuple[str, ...],
    is_listing: bool,
    strategies: tuple[str, ...],
    rounds: int,
    patience: float,
    runs_kueue: bool,
    seed: int,
    commit: str,
    output: str,
    folder: Path | None,
) -> None:
    """Measure the planner on clusters like real ones, without a control plane.

    Every measurement runs in a process of its own, one at a time. The lists are CSV files with the
    columns of alibaba/clusterdata's cluster-trace-gpu-v2023. docs/benchmarks.md explains the rows.
    """
    source = Source(str(nodes or ""), str(pods or ""), seed)
    try:
        listed = len(traces.read(nodes, pods, seed).machines)
    except traces.TraceError as error:
        raise click.UsageError(str(error)) from error
    agenda = Agenda.of(listed, scale, strategies, patterns, runs_kueue=runs_kueue)
    if not agenda.names:
        everything = Agenda.of(listed, scale, strategies, ()).names
        raise click.BadParameter(f"nothing is called so; there are {', '.join(everything)}")
    if is_listing:
        print("\n".join(agenda.names))
        return
    progress = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH)
    if commit:
        if output == "json" or folder:
            raise click.UsageError("--against prints tables, and nothing else")
        chosen = agenda.beside
        _compare(chosen, source, rounds=rounds, patience=patience, commit=commit, console=progress)
        return
    measured = played(agenda, source, rounds, patience, progress)
    results = Results(measured)
    rows = verdicts(results)
    if output == "json":
        settings = {"scale": scale, "rounds": rounds, "patience": patience, **asdict(source)}
        print(json.dumps(_plain(settings, measured, rows), indent=1))
    else:
        _print(results, rows, scale)
    for path in plots.write(results, folder) if folder else ():
        progress.print(f"wrote {path}", highlight=False)


def _compare(
    cases: Sequence[Case],
    source: Source,
    *,
    rounds: int,
    patience: float,
    commit: str,
    console: Console,
) -> None:
    """Measure the cases here and in that commit, and print how much worse anything became."""
    try:
        with against.checkout(commit) as tree:
            pair = against.played(
                cases, source, rounds=rounds, patience=patience, tree=tree, console=console
            )
    except against.UnknownCommitError as error:
        raise click.UsageError(str(error)) from error
    out = Console(width=None if sys.stdout.isatty() else _WIDTH)
    out.print(against.beside(pair))
    out.print(against.ratios(against.worse(pair)))
    if not pair.is_whole:
        sys.exit(INTERRUPTED)


def _print(results: Results, rows: Sequence[Verdict], scale: float) -> None:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    answers = (
        tables.plans(results),
        tables.comparisons(results),
        tables.domains(results),
        tables.kueue(results),
    )
    for table in (*answers, tables.ratios(rows, scale)):
        if table.row_count:
            console.print(table)


def _plain(
    settings: dict[str, object], measured: Sequence[Measured], rows: Sequence[Verdict]
) -> dict[str, object]:
    """Everything as JSON has it: what is no number, or for ever, is null."""
    ratios = [
        {
            "text": row.text,
            "value": row.value if math.isfinite(row.value) else None,
            "sense": str(row.sense),
            "must": row.must,
            "aim": row.aim,
            "verdict": row.word,
        }
        for row in rows
    ]
    return {"settings": settings, "measured": plain_values(measured), "ratios": ratios}


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # A polite kill cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupted)
    main()
