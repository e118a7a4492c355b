"""This tree beside another commit of it: the same cases, in turn, each with its own operator.

What is compared is what a checkout measures of itself: its own scenes, told the same case, list and
seed, in seconds of CPU time, so that other work on the machine decides nothing. A case that the
other commit does not know has no ratio.
"""

from __future__ import annotations

import io
import math
import subprocess
import tarfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..e2e.verdicts import Sense
from .isolation import ROOT, alone
from .results import Key, Measured, Results
from .tables import count, ratio, seconds
from .trials import Kind
from .verdicts import verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from .isolation import Source
    from .trials import Case, Figures

MOST = 1.1  # times as much as the other commit, and no row may be worse


class UnknownCommitError(Exception):
    """There is no such commit in this checkout."""


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The tree of that commit in a directory of its own, for as long as this lasts.

    Raises:
        UnknownCommitError: git knows none of that name.
    """
    command = ["git", "-C", str(ROOT), "archive", commit, "operator", "tests"]
    packed = subprocess.run(command, capture_output=True, check=False)
    if packed.returncode != 0:
        raise UnknownCommitError(packed.stderr.decode(errors="replace").strip())
    with TemporaryDirectory(prefix="tutti-against-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same cases here and there; of an interrupted run, those that it has measured."""

    here: Results
    there: Results
    is_whole: bool = True


def played(
    cases: Sequence[Case],
    source: Source,
    *,
    rounds: int,
    patience: float,
    tree: Path,
    console: Console,
) -> Pair:
    """Measure every case here and there, round by round; who is first changes every time.

    An interrupt ends it before its last round: what was measured by then counts.
    """
    measured: dict[Path, list[Measured]] = {ROOT: [], tree: []}
    is_whole = False
    with suppress(KeyboardInterrupt):
        for number in range(rounds):
            for index, case in enumerate(cases):
                for where in (ROOT, tree) if (number + index) % 2 else (tree, ROOT):
                    figures = alone(case, source, patience, where)
                    measured[where].append(Measured(case, figures, number))
                    side = "here " if where is ROOT else "there"
                    line = f"round {number + 1}  {side}  {_told(case, figures)}"
                    console.print(line, highlight=False, markup=False)
        is_whole = True
    pairs = min(map(len, measured.values()))  # a case that was measured on one side is left out
    return Pair(Results(measured[ROOT][:pairs]), Results(measured[tree][:pairs]), is_whole)


def _told(case: Case, figures: Figures) -> str:
    told = figures.unfinished or f"{figures.seconds:.3f} s"
    return f"{case.kind:9} {case.scene.name:11} {case.strategy:9} {case.objective:9} {told}"


def beside(pair: Pair) -> Table:
    """A row per case: seconds of CPU time, memory and value here and there."""
    table = Table(
        title="Here and there: medians, seconds of CPU time", title_justify="left", box=SIMPLE_HEAD
    )
    for heading in ("what", "scene", "strategy", "objective"):
        table.add_column(heading, no_wrap=True)
    for heading in ("s here", "s there", "ratio", "MB here", "MB there", "value here", "there"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("note")
    for key in (key for kind in Kind for key in pair.here.cases(kind)):
        table.add_row(key.kind, key.scene, key.strategy, key.objective, *_cells(pair, key))
    return table


def _cells(pair: Pair, key: Key) -> Sequence[str]:
    def both(figure: Callable[[Figures], float]) -> tuple[float, float]:
        return pair.here.median(key, figure), pair.there.median(key, figure)

    took, held, worth = (
        both(lambda one: one.seconds),
        both(lambda one: one.peak_megabytes + one.engine_megabytes),
        both(lambda one: one.value),
    )
    slower = took[0] / took[1] if took[1] else math.nan
    notes = [pair.here.trouble(key), pair.there.trouble(key)]
    if not any(notes) and slower > MOST:
        notes.append("slower")
    values = [*map(seconds, took), ratio(slower), *map(count, held), *map(count, worth)]
    return [*values, "; ".join(note for note in notes if note)]


@dataclass(frozen=True, slots=True)
class Worse:
    """A row of the ratios that decide, here and there."""

    text: str
    here: float
    there: float
    sense: Sense

    @property
    def times(self) -> float:
        """How many times worse it is here; below one it is better."""
        bad, good = (
            (self.here, self.there) if self.sense is Sense.AT_MOST else (self.there, self.here)
        )
        if good:
            return bad / good
        return math.nan if math.isnan(bad) else 1.0 if bad == good else math.inf

    @property
    def word(self) -> str:
        """Whether that is too much."""
        if math.isnan(self.times):
            return "not measured"
        return "worse" if self.times > MOST else "kept"


def worse(pair: Pair) -> Sequence[Worse]:
    """All rows that decide, beside those of the other commit."""
    rows = zip(verdicts(pair.here), verdicts(pair.there), strict=True)
    return [Worse(ours.text, ours.value, theirs.value, ours.sense) for ours, theirs in rows]


def ratios(rows: Sequence[Worse]) -> Table:
    """The rows that decide, as a table."""
    title = f"Ratios of this run: at most {MOST:g} times worse than there"
    table = Table("", title=title, title_justify="left", box=SIMPLE_HEAD)
    for heading in ("here", "there", "times worse"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        table.add_row(row.text, *map(ratio, (row.here, row.there, row.times)), row.word)
    return table
