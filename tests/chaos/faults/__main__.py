"""`python -m tests.chaos.faults`: every fault at every write of the scenario, and chance on top."""

from __future__ import annotations

import itertools
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from . import trials
from .arena import Arena
from .table import account, table
from .writes import Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .run import Outcome
    from .trials import Trial

AWAY_SECONDS = 120.0
WRITES_MORE = 1.15  # than in an unbroken run, which makes a few more or less as reports share one
LEASE_WRITES = 4  # a run has one every two seconds, and one at each start
SECONDS_AFTER = (1, 2, 4, 8)  # the write after a restart at which it is killed again, in turn
LINE_EVERY = 50  # runs, where no bar is drawn
SERIES = ("kills", "leases", "twice", "answers", "roads", "chance")


class Soak:
    """The series, once it is known how many writes an unbroken run makes."""

    def __init__(self, seed: int, runs: int, first: int, kinds: Sequence[Write] = ()) -> None:
        """``kinds`` of writes are made in this scene alone."""
        self._seed = seed
        self._kinds = (*trials.STRUCK, *kinds)
        self._numbers = range(first, first + runs)

    def trials(self, series: str, writes: int) -> Iterator[Trial]:
        """All of one series."""
        last = round(writes * WRITES_MORE)
        every: dict[str, Callable[[], Iterator[Trial]]] = {
            "kills": lambda: _each(trials.kills(k) for k in range(1, last + 1)),
            "leases": lambda: _each(trials.lease_kills(k) for k in range(1, LEASE_WRITES + 1)),
            "twice": lambda: _each(
                trials.second_kills(k, SECONDS_AFTER[k % len(SECONDS_AFTER)])
                for k in range(1, last + 1)
            ),
            "answers": lambda: trials.answers(self._kinds),
            "roads": lambda: trials.roads(AWAY_SECONDS, self._kinds),
            "chance": lambda: (
                trials.chance(self._seed, i, writes, has_claims=Write.SELECT_NODE in self._kinds)
                for i in self._numbers
            ),
        }
        return every[series]()


def _each(parts: Iterator[Iterator[Trial]]) -> Iterator[Trial]:
    return itertools.chain.from_iterable(parts)


@click.command()
@click.option("--series", multiple=True, type=click.Choice(SERIES), help="Only these; all else.")
@click.option("--foreign", is_flag=True, help="Gangs that other projects' PodGroups declare.")
@click.option("--queues", is_flag=True, help="Gangs in a tree of queues.")
@click.option("--hand-over", is_flag=True, help="Gangs that kube-scheduler binds.")
@click.option("--preemption", is_flag=True, help="Gangs that end so that others start.")
@click.option("--domains", is_flag=True, help="Gangs in one rack, and in segments.")
@click.option("--claims", is_flag=True, help="Gangs with claims of devices and of volumes.")
@click.option("--jobs", is_flag=True, help="Gangs of Jobs and with budgets that end for others.")
@click.option("--only", default="", help="Only runs whose name contains this.")
@click.option("--seed", default=1, show_default=True, help="Of the random runs.")
@click.option("--runs", default=1000, show_default=True, help="How many random runs.")
@click.option("--first", default=0, show_default=True, help="Number of the first random run.")
def main(
    *,
    series: Sequence[str],
    foreign: bool,
    queues: bool,
    hand_over: bool,
    preemption: bool,
    domains: bool,
    claims: bool,
    jobs: bool,
    only: str,
    seed: int,
    runs: int,
    first: int,
) -> None:
    """Kill the operator and break its road to the API server at every write; judge each run."""
    console = Console()
    kinds = (
        *trials.QUEUE_WRITES * (queues or preemption or jobs),
        *(Write.HAND_OVER,) * hand_over,
        *(Write.EVICT,) * (preemption or jobs),
        *trials.CLAIM_WRITES * claims,
    )
    soak = Soak(seed, runs, first, kinds)
    outcomes: list[Outcome] = []
    console.print(f"seed {seed}, random runs {first} to {first + runs - 1}")
    arena = Arena(
        is_foreign=foreign,
        is_queued=queues,
        is_handed=hand_over,
        is_preempting=preemption,
        has_domains=domains,
        has_claims=claims,
        has_jobs=jobs,
    )
    with arena:
        outcomes.append(arena.run(trials.UNBROKEN))
        chosen = [
            trial
            for name in SERIES
            if not series or name in series
            for trial in soak.trials(name, arena.writes)
            if only in str(trial)
        ]
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        text = TextColumn("{task.description}")
        # Who stops it after an hour wants to see that hour's table.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with suppress(KeyboardInterrupt), Progress(*columns, text, console=console) as progress:
            bar = progress.add_task("", total=len(chosen))
            for trial in chosen:
                progress.update(bar, description=str(trial))
                outcomes.append(arena.run(trial))
                progress.advance(bar)
                if outcomes[-1].violations:
                    console.print(account(outcomes[-1]), markup=False, highlight=False)
                if not console.is_terminal and len(outcomes) % LINE_EVERY == 0:
                    console.print(f"{len(outcomes)} of {len(chosen) + 1} runs")
    console.print(table(outcomes, f"{arena.writes} writes in an unbroken run, seed {seed}"))
    sys.exit(any(outcome.violations for outcome in outcomes))


if __name__ == "__main__":
    main()
