"""The commands; each prints a table and ends with 1 when something does not hold."""

from __future__ import annotations

import statistics
import sys

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ...harness import operator_process
from ...harness.controlplane import ControlPlane
from ...harness.operator_process import OperatorProcess
from ...harness.rig import Rig
from . import finished, flood, lives, long_life, one_object

NODES = 200


@click.group(invoke_without_command=True)
@click.pass_context
def soak(context: click.Context) -> None:
    """See what lasts; without a command, all of it."""
    if context.invoked_subcommand is None:
        ends = [_code(context, command) for command in soak.commands.values()]
        sys.exit(max(ends))


def _code(context: click.Context, command: click.Command) -> int:
    """The exit code of one command, run with its defaults."""
    try:
        context.invoke(command)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@soak.command("long-life")
@click.option("--gangs", default=10_000, show_default=True, help="Gangs that live and go.")
@click.option("--seed", default=0, show_default=True, help="Other numbers, other lives.")
@click.option("--at-once", default=64, show_default=True, help="Gangs alive at the same time.")
@click.option("--kept", default=500, show_default=True, help="Finished PodGroups that stay.")
def long_life_command(gangs: int, seed: int, at_once: int, kept: int) -> None:
    """Let gangs live and go on one operator: memory, Reservations, tasks, World."""
    casting = lives.Casting(gangs, seed, at_once, kept)
    with ControlPlane.start(components=("kwok",)) as plane, Progress() as progress:
        operator_process.install(plane)
        long_life.add_nodes(plane, NODES)
        operator = OperatorProcess(plane, **long_life.WATCHED)
        operator.start()
        bar = progress.add_task("gangs", total=gangs)
        try:
            outcome = long_life.run(
                plane, operator, casting, lambda done: progress.update(bar, completed=done)
            )
        finally:
            operator.stop()
    _say(f"{gangs:,} gangs on {NODES} nodes, seed {seed}", _rows(outcome))


@soak.command("finished")
@click.option("--finished", "count", default=10_000, show_default=True, help="PodGroups.")
@click.option("--cycles", default=60, show_default=True, help="Cycles of each kind.")
def finished_command(count: int, cycles: int) -> None:
    """Measure what finished PodGroups cost a cycle."""
    cost = finished.measure(count, cycles)
    said = (
        f"{cost.share:.2%} of {1e3 * cost.busy:.1f} ms CPU "
        f"(still: {1e3 * cost.still:.2f} ms without, {1e3 * cost.beside:.2f} ms beside)"
    )
    rows = [(f"{count:,} finished PodGroups", said, f"< {finished.SHARE:.0%}", cost.holds)]
    _say("What finished PodGroups cost", rows)


@soak.command("one-object")
@click.option("--members", default=one_object.MEMBERS, show_default=True, help="One per node.")
def one_object_command(members: int) -> None:
    """Bind one gang whose Reservation is as large as any can be."""
    with ControlPlane.start(components=()) as plane:
        operator_process.install(plane)
        one_object.prepare(plane, members)
        operator = OperatorProcess(plane)
        operator.start()
        try:
            sizes = one_object.run(plane, members)
        finally:
            operator.stop()
    said = f"{sizes.bound:,} pods on {sizes.nodes:,} nodes in {sizes.seconds:.0f} s"
    names = f"{sizes.named:,} of {sizes.entries:,} entries with names"
    _say(
        f"One gang of {members:,} members, one per node, longest names",
        [
            ("bound", said, f"{members:,}", sizes.bound == sizes.nodes == members),
            (
                "Reservation",
                f"{sizes.reservation:,} bytes as stored, {names}",
                f"{members:,} entries",
                sizes.entries == members,
            ),
            ("Reservations left", str(sizes.left), "0", sizes.left == 0),
            (
                "PodGroup status",
                f"{sizes.status:,} bytes at most ({' > '.join(sizes.phases)})",
                f"< {one_object.STATUS_BYTES:,}",
                0 < sizes.status < one_object.STATUS_BYTES,
            ),
        ],
    )


@soak.command("flood")
@click.option("--groups", default=10_000, show_default=True, help="PodGroups of one tenant.")
def flood_command(groups: int) -> None:
    """Start gangs while another tenant makes as many PodGroups as the API server takes."""
    with Rig.start() as rig:
        found = flood.run(rig, groups)
    parts = (
        ("before", found.calm),
        ("while they come", found.rising),
        ("while they are told", found.telling),
        ("afterwards", found.standing),
    )
    growth = f"{1e3 * found.calm.cycles.mean:.0f} ms, then {1e3 * found.standing.cycles.mean:.0f}"
    _say(
        f"{groups:,} PodGroups in {found.rising_seconds:.0f} s, told why they wait in "
        f"{found.telling_seconds:.0f} s more; every tenth has a pod that fits nowhere",
        [
            *(
                (
                    f"{len(part.waits)} gangs of {flood.MEMBERS} {when}, s",
                    _waits(part),
                    f"< {flood.WAIT:.0f}",
                    part.longest < flood.WAIT,
                )
                for when, part in parts
            ),
            (
                "a cycle, before and afterwards",
                f"{growth}: {found.growth:.1f} times",
                f"< {flood.GROWTH}",
                found.growth < flood.GROWTH,
            ),
        ],
    )


def _waits(part: flood.Part) -> str:
    middle = statistics.median(part.waits)
    cycles = f"{part.cycles.number:.0f} cycles of {1e3 * part.cycles.mean:.0f} ms"
    return f"{middle:.1f} in the middle, {part.longest:.1f} at most; {cycles}"


Row = tuple[str, str, str, bool]


def _rows(outcome: long_life.Outcome) -> list[Row]:
    memory, after = outcome.memory, outcome.after
    quarters = ", ".join(f"{memory.quarter(n):.0f}" for n in (1, 2, 3, 4))
    limit = long_life.GROWTH
    played = ", ".join(f"{n} {fate}" for fate, n in sorted(outcome.played.items()))
    leaked = ", ".join(f"{n} {name}" for name, n in outcome.leaked.items())
    state = "; ".join(after.differences) or ", ".join(f"{n} {k}" for k, n in after.sizes.items())
    return [
        ("lives", f"{played} in {outcome.seconds:.0f} s", "all", True),
        ("resident MB by quarter", quarters, "flat", True),
        (
            "growth, last on second",
            f"{memory.growth:+.1%}",
            f"<= {limit:.0%}",
            memory.growth <= limit,
        ),
        ("Reservations left", str(len(outcome.reservations)), "0", not outcome.reservations),
        (
            f"asyncio tasks: {sum(outcome.before.tasks.values())} before",
            f"{sum(after.tasks.values())}: {leaked or 'none leaked'}",
            "no more",
            not outcome.leaked,
        ),
        ("the World against a list", state, "equal", not after.differences),
    ]


def _say(title: str, rows: list[Row]) -> None:
    table = Table("", "found", "must be", "holds", title=title)
    for what, found, must, holds in rows:
        table.add_row(what, found, must, "yes" if holds else "[red]NO[/red]")
    Console().print(table)
    if not all(holds for *_, holds in rows):
        sys.exit(1)


if __name__ == "__main__":
    soak()
