"""``python -m tests.conformance.oracle``: compare a strategy with the oracle at random.

Half of them are Problems and half are Snapshots, every other one of each with rules between pods,
and two of every four Problems with caps; the seeds follow one another from ``--seed`` on.
An instance for which CP-SAT finds no optimum is named and counted; the command fails, as if it were
wrong.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tutti.strategies import load

from . import instances, smaller, snapshots
from .comparing import Comparison, compared, planned
from .optimum import NoAnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.strategies.problem import Problem, Strategy

PROGRESS = 100  # instances between two lines of it
PROBLEMS, SNAPSHOTS, RULED, CAPPED = "problems", "snapshots", " with rules", " with caps"


@dataclass(slots=True)
class Tally:
    """What was counted on one level."""

    runs: int = 0
    contended: int = 0
    proved: int = 0
    bounded: int = 0
    seconds: float = 0.0
    wrong: list[int] = field(default_factory=list)  # their seeds
    without_answer: list[int] = field(default_factory=list)  # likewise

    def add(self, seed: int, comparison: Comparison, seconds: float) -> None:
        """Count one comparison."""
        self.runs += 1
        self.contended += comparison.is_contended
        self.proved += comparison.is_proved
        self.bounded += comparison.is_bounded
        self.seconds += seconds
        if comparison.wrong:
            self.wrong.append(seed)

    def add_without_answer(self, seed: int, seconds: float) -> None:
        """Count one instance for which the oracle has no answer."""
        self.runs += 1
        self.seconds += seconds
        self.without_answer.append(seed)


def on_problem(seed: int, strategy: Strategy) -> Comparison:
    """Compare on the Problem of this seed."""
    return compared(instances.problem(seed), strategy)


def on_snapshot(seed: int, strategy: Strategy) -> Comparison:
    """Compare on the Snapshot of this seed."""
    return planned(snapshots.cluster(seed), snapshots.policy(seed), strategy)


def main(arguments: Sequence[str]) -> int:
    """Run, print a table; 1 if anything was wrong or the oracle had no answer."""
    options = _options(arguments)
    strategy = load(options.strategy)
    levels: dict[str, Callable[[int, Strategy], Comparison]] = {
        PROBLEMS: on_problem,
        PROBLEMS + RULED: on_problem,
        PROBLEMS + CAPPED: on_problem,
        PROBLEMS + RULED + CAPPED: on_problem,
        SNAPSHOTS: on_snapshot,
        SNAPSHOTS + RULED: on_snapshot,
    }
    tallies = {name: Tally() for name in levels}
    for number in range(options.runs):
        seed = options.seed + number // 2
        if number % 2:
            name = SNAPSHOTS + RULED * snapshots.is_ruled(seed)
        else:
            name = PROBLEMS + RULED * bool(instances.problem(seed).rules)
            name += CAPPED * instances.is_capped(seed)
        begun = monotonic()
        try:
            found = levels[name](seed, strategy)
        except NoAnswerError as error:
            tallies[name].add_without_answer(seed, monotonic() - begun)
            print(f"{name} {seed}: no answer: {error}", flush=True)
        else:
            tallies[name].add(seed, found, monotonic() - begun)
            if found.wrong:
                _tell(name, seed, found, strategy)
        if (number + 1) % PROGRESS == 0:
            print(f"{number + 1} of {options.runs} instances compared", flush=True)
    Console().print(_table(options.strategy, tallies))
    return int(any(tally.wrong or tally.without_answer for tally in tallies.values()))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.oracle", description=__doc__)
    parser.add_argument("--runs", type=int, default=3000, help="instances in all (3000)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument(
        "--strategy",
        default="ilp",
        help="whose answers are compared; only ilp and ilp-highs claim to be exact",
    )
    return parser.parse_args(arguments)


def _tell(name: str, seed: int, comparison: Comparison, strategy: Strategy) -> None:
    """Say what is wrong, with the smallest Problem that shows it."""
    for sentence in comparison.wrong:
        print(f"{name} {seed}: {sentence}", flush=True)
    if name.startswith(PROBLEMS):
        small = smaller.smallest(instances.problem(seed), lambda one: _is_wrong(one, strategy))
        print(smaller.as_code(small), flush=True)


def _is_wrong(problem: Problem, strategy: Strategy) -> bool:
    """Whether the comparison shows a fault; without an answer it shows none."""
    try:
        return bool(compared(problem, strategy).wrong)
    except NoAnswerError:
        return False


def _table(who: str, tallies: dict[str, Tally]) -> Table:
    columns = ("instances", "contended", "proved", "bounded", "wrong", "no answer", "ms each")
    table = Table("", *columns)
    table.title = f"{who} beside CP-SAT"
    for name, tally in tallies.items():
        milliseconds = 1000 * tally.seconds / max(tally.runs, 1)
        counts = (tally.runs, tally.contended, tally.proved, tally.bounded)
        failures = (len(tally.wrong), len(tally.without_answer))
        table.add_row(name, *map(str, (*counts, *failures)), f"{milliseconds:.1f}")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
