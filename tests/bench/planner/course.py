"""A whole run: round by round, so that what is compared is measured side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import cases
from .contenders import ILP
from .isolation import alone
from .results import Measured
from .scenes import small
from .trials import KUEUE_SECONDS, PLAIN_SECONDS, Case, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rich.console import Console

    from .isolation import Source


@dataclass(frozen=True, slots=True)
class Agenda:
    """What to measure: some of it in every round, some once, and the ladder of small scenes."""

    decisive: tuple[Case, ...]
    survey: tuple[Case, ...]
    climbs: bool

    @classmethod
    def of(
        cls,
        listed: int,
        scale: float,
        strategies: Sequence[str],
        patterns: Collection[str],
        *,
        runs_kueue: bool = False,
    ) -> Agenda:
        """All that the patterns match; Kueue itself is measured only if ``runs_kueue``."""
        climbs = ILP in strategies and cases.is_chosen(Kind.PLAIN, patterns)
        decisive = cases.chosen(cases.decisive(listed, scale, strategies), patterns)
        survey = cases.chosen(cases.survey(listed, scale, strategies), patterns)
        of_kueue = cases.of_kueue(scale, strategies, patterns, runs_kueue=runs_kueue)
        return cls(tuple(decisive), (*survey, *of_kueue), climbs)

    @property
    def names(self) -> Sequence[str]:
        """What it measures, by the names that choose it."""
        found = [cases.label(case) for case in (*self.decisive, *self.survey)]
        return tuple(dict.fromkeys([*found, *([Kind.PLAIN.value] if self.climbs else [])]))

    @property
    def beside(self) -> Sequence[Case]:
        """What another commit is held against: what decides, and of the ladder one rung."""
        rung = Case(Kind.PLAIN, small(cases.PLAIN_RUNG), ILP)
        return (*self.decisive, *([rung] if self.climbs else []))


def played(
    agenda: Agenda, source: Source, rounds: int, patience: float, console: Console
) -> Sequence[Measured]:
    """Measure all of it, and tell how far it is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    measured = []
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("measuring", total=_total(agenda, rounds))
        for each in _measured(agenda, source, rounds, patience):
            measured.append(each)
            console.print(_line(each), highlight=False, markup=False)
            progress.advance(bar)
    return measured


def _total(agenda: Agenda, rounds: int) -> int | None:
    """How many measurements there will be; not known before the ladder is climbed."""
    return None if agenda.climbs else rounds * len(agenda.decisive) + len(agenda.survey)


def _measured(agenda: Agenda, source: Source, rounds: int, patience: float) -> Iterator[Measured]:
    for number in range(rounds):
        # Another one begins each time: whatever drifts meets all of them alike.
        start = number * max(1, len(agenda.decisive) // rounds)
        for case in (*agenda.decisive[start:], *agenda.decisive[:start]):
            yield Measured(case, alone(case, source, patience), number)
    if agenda.climbs:
        yield from _climbed(source, rounds, patience)
    for case in agenda.survey:
        more = KUEUE_SECONDS if case.kind is Kind.KUEUE else 0.0
        yield Measured(case, alone(case, source, patience + more))


def _climbed(source: Source, rounds: int, patience: float) -> Iterator[Measured]:
    """Ever larger scenes for the plain program, and the largest that it solved again."""
    limit = PLAIN_SECONDS + patience
    solved: Case | None = None
    for size in cases.PLAIN_SIZES:
        case = Case(Kind.PLAIN, small(size), ILP)
        found = Measured(case, alone(case, source, limit))
        yield found
        if found.figures.unfinished:
            break
        solved = case
    for number in range(1, rounds if solved else 1):
        assert solved is not None
        yield Measured(solved, alone(solved, source, limit), number)


def _line(one: Measured) -> str:
    case, figures = one.case, one.figures
    what = f"round {one.round + 1}  {case.kind:9} {case.scene.name:11} {case.strategy:9}"
    told = figures.unfinished or f"{figures.seconds:.3f} s"
    if not figures.unfinished and case.kind is Kind.PLAN:
        told += f", {figures.gangs} gangs, {figures.gpus} GPUs, {figures.peak_megabytes:.0f} MB"
    elif not figures.unfinished and case.kind is Kind.KUEUE:
        told += f" for {figures.gangs} gangs"
    elif not figures.unfinished:
        told += f" beside {figures.other_seconds:.3f} s"
    return f"{what} {case.objective:9} {told}"
