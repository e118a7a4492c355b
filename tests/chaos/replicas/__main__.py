"""``python -m tests.chaos.replicas``: a leader stopped at each of its writes."""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from .claimed import Claimed
from .pausing import MODES, Pausing
from .preempting import Preempting
from .scene import Scene


@click.command()
@click.option("--most", default=40, show_default=True, help="Writes at which it is stopped.")
@click.option("--claims", "scene", flag_value=Claimed, help="Members claim devices and volumes.")
@click.option("--preemption", "scene", flag_value=Preempting, help="Others end for each gang.")
def main(*, most: int, scene: type[Scene] | None) -> None:
    """Stop the leader at its k-th write, let another take over and plan elsewhere, wake it."""
    console = Console()
    table = Table("stopped at its write", "runs", "violations", "longest takeover s")
    for mode in MODES:
        stopped: list[float] = []
        with Pausing((scene or Scene)()) as trial:
            for k in track(range(1, most + 1), description=f"{mode} the commit", console=console):
                paused = trial.round(k, mode)
                if not paused.call:
                    break
                stopped.append(paused.seconds)
        # Leaving the context raises if the judge finds anything.
        table.add_row(f"{mode} the commit", str(len(stopped)), "0", f"{max(stopped):.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
