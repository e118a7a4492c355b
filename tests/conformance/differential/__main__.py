"""``python -m tests.conformance.differential``: kube-scheduler and Tutti on the same pods."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import choosing, providing, storage
from .controls import unnoticed
from .kept import keep
from .ours import Ours
from .running import control_plane, run
from .telling import sentences, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .comparing import Case, Tally


SHRINKS = 3  # disagreements that are made smaller; each takes a minute or two


def main(arguments: Sequence[str]) -> int:
    """Run, say what differs, print a table; 1 if anything does."""
    options = _options(arguments)
    console = Console(width=140)
    recorded: list[Case] = []
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    said = TextColumn("{task.fields[wrong]} disagreements")
    with control_plane() as plane, Progress(*columns, said, console=console) as progress:
        bar = progress.add_task("cases", total=options.cases, wrong=0)

        def heed(cases: list[Case], tally: Tally) -> None:
            known = progress.tasks[bar].fields["wrong"]
            for case, ours in tally.wrong[known:]:
                console.print("\n".join(sentences(case, ours)), markup=False, highlight=False)
                if options.keep is not None:
                    console.print(f"kept as {keep(case, options.keep)}")
            recorded.extend(cases if options.controls else ())
            progress.update(bar, completed=tally.cases, wrong=len(tally.wrong))

        tally, plans = run(plane, options.cases, options.seed, heed, shrinks=SHRINKS)
    console.print(table(tally))
    console.print(
        f"{plans.plans} plans placed {plans.placed} of {plans.gangs} gangs; {plans.asked} members,"
        f" each as if it came last: {len(plans.wrong)} could not run where they were put,"
        f" {plans.older} as only an older minor answers",
        highlight=False,
    )
    for case, node in plans.wrong:
        console.print(f"{case.name} was put on {node}", highlight=False)
        lines = sentences(case, Ours(frozenset({node})))
        console.print("\n".join(lines), markup=False, highlight=False)
    for name, count in sorted(tally.unmodelled.items()):
        console.print(f"not modelled: {name}: {count}", highlight=False)
    missed = unnoticed(recorded, tally.modelled) if options.controls else []
    differing = 0
    if options.choices:
        with control_plane() as plane:
            choices = choosing.run(plane, options.choices, options.seed)
        console.print("\n".join(choosing.sentences(choices)), markup=False, highlight=False)
        differing = len(choices.wrong)
        missed += choosing.unnoticed(choices.agreed) if options.controls else []
    if options.volumes:
        wrong, unseen = _of_volumes(options, console)
        differing += wrong
        missed += unseen
    for name in missed:
        console.print(f"a wrong rule that nobody notices: {name}", style="red", highlight=False)
    return int(bool(tally.wrong or plans.wrong or differing or missed))


def _of_volumes(options: argparse.Namespace, console: Console) -> tuple[int, list[str]]:
    """Play clusters with volumes; answers how many pods differ, and wrong rules unnoticed."""
    cases: list[Case] = []
    with control_plane() as plane:
        tally, plans, provided = providing.run(plane, options.volumes, options.seed, cases.extend)
    wrong = [*tally.wrong, *((case, Ours(frozenset({node}))) for case, node in plans.wrong)]
    for case, ours in wrong:
        console.print("\n".join(sentences(case, ours)), markup=False, highlight=False)
    console.print(providing.sentences(tally, plans, provided), markup=False, highlight=False)
    return len(wrong), unnoticed(cases, (storage.ROW,)) if options.controls else []


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.differential", description=__doc__
    )
    parser.add_argument("--cases", type=int, default=10_000, help="pods asked about (10,000)")
    parser.add_argument("--choices", type=int, default=500, help="pods bound by wishes (500)")
    parser.add_argument("--volumes", type=int, default=1000, help="clusters with volumes (1,000)")
    parser.add_argument("--seed", type=int, default=1, help="the first cluster's number (1)")
    parser.add_argument("--controls", action="store_true", help="try every wrong rule, too")
    parser.add_argument("--keep", type=Path, help="a folder for the cases that differ")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
