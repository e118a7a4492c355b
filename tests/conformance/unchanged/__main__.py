"""``python -m tests.conformance.unchanged``: record plans, compare, accept changes."""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import TYPE_CHECKING

import click

from . import cases, planner, record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .cases import Case
    from .planner import Answer, Given, Outcome

PROGRESS = 250  # cases between two lines of it
SHOWN = 3  # differences of which both answers are shown

_jobs = click.option("--jobs", type=int, default=2, show_default=True, help="Worker processes.")
_number = click.option(
    "--cases", "number", type=int, default=cases.NUMBER, help="Only the first so many of them."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Compare present plans with those of a recorded revision."""


@main.command("record")
@click.option("--rev", required=True, help="The revision whose plans are recorded.")
@_jobs
def record_command(rev: str, jobs: int) -> None:
    """Plan every case with the code of a revision, and write the record."""
    from ...bench.planner.against import checkout  # noqa: PLC0415 - it imports the present tutti

    named = ["git", "-C", str(cases.ROOT), "rev-parse", "--short=12", rev]
    revision = subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()
    givens: list[Given] = [*cases.files(), *cases.numbered(range(cases.NUMBER))]
    with checkout(revision) as tree:
        outcomes = list(_outcomes(givens, jobs, tree / "operator"))
    wrong = [
        outcome.name
        for outcome in outcomes
        if cases.is_generated(outcome.name) and outcome.exit_code != 0
    ]
    if wrong:
        raise click.ClickException(f"cases that this revision refuses: {', '.join(wrong)}")
    record.write(revision, list(_worth_recording(outcomes)), record.RECORD)
    click.echo(f"recorded {revision} in {record.RECORD}")


@main.command("check")
@_number
@_jobs
def check_command(number: int, jobs: int) -> None:
    """Plan every case with the present code, and compare; 1 where something differs."""
    known = record.read(record.RECORD)
    outcomes = _present(known, number, jobs)
    verdict = record.judged(known, record.defects(record.DELIBERATE), outcomes)
    _tell_figures(outcomes)
    for name in verdict.inputs:
        click.echo(f"{name}: its input is not the recorded one: record the revision again")
    for (name, part), defect in verdict.stale:
        click.echo(f"{name}: its {part} is as recorded again; {defect} lists it: accept")
    counts = Counter(part for (_, part), _ in verdict.differing)
    if counts:
        told = ", ".join(f"{n} in {part}" for part, n in counts.items())
        names = sorted({name for (name, _), _ in verdict.differing})
        click.echo(f"{len(names)} cases differ, {told}: {' '.join(names)}")
        _show_differences(known, _worst(verdict)[:SHOWN])
    if not verdict.is_good:
        sys.exit(1)
    click.echo(f"{len(outcomes)} answers are as at {known.revision}, but for what is meant")


@main.command("accept")
@click.option("--defect", required=True, help="What was wrong, in a word or two with dashes.")
@click.option("--because", default="", help="Why plans are others now; needed the first time.")
@_jobs
def accept_command(defect: str, because: str, jobs: int) -> None:
    """Record what differs now, and is not listed yet, as meant by a defect's fix."""
    meant = record.defects(record.DELIBERATE)
    if not because and defect not in {one.name for one in meant}:
        raise click.UsageError("a new defect needs --because")
    known = record.read(record.RECORD)
    verdict = record.judged(known, meant, _present(known, cases.NUMBER, jobs))
    if verdict.inputs:
        raise click.ClickException(f"inputs changed: {', '.join(verdict.inputs)}")
    for one in record.accept(meant, record.Defect(defect, because), verdict):
        record.write_defect(one, record.DELIBERATE)
    n, m = len(verdict.differing), len(verdict.stale)
    click.echo(f"{n} differences are listed under {defect}; {m} that were listed are gone")


@main.command("show")
@click.argument("name")
def show_command(name: str) -> None:
    """Print the input of a case, for ``tutti plan -f -``."""
    click.echo(_case(record.read(record.RECORD), name).text, nl=False)


def _worth_recording(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Generated cases, and files that ``tutti plan`` reads and finds gangs in."""
    planned = {
        outcome.name
        for outcome in outcomes
        if outcome.exit_code == 0 and outcome.seen.keys() - {"proved"}
    }
    for outcome in outcomes:
        plain = outcome.name.removesuffix(".explain").removesuffix("+cluster")
        if outcome.exit_code == 0 and (cases.is_generated(outcome.name) or plain in planned):
            yield outcome


def _present(known: record.Record, number: int, jobs: int) -> Sequence[Outcome]:
    """What the present code answers to the recorded files and the first so many cases."""
    files = [name for name in known.cases if not cases.is_generated(name)]
    given: list[Given] = [_case(known, name) for name in files]
    given += cases.numbered(range(number))
    outcomes = list(_outcomes(given, jobs, planner.OPERATOR))
    # An explanation is many plans, each with a budget of its own.
    plans = (outcome for outcome in outcomes if not outcome.name.endswith(".explain"))
    slow = [plan for plan in plans if plan.seconds > planner.MOST_SECONDS]
    if slow:
        told = ", ".join(f"{one.name} {one.seconds:.0f} s" for one in slow)
        raise click.ClickException(f"so long that the clock may have ended a search: {told}")
    return outcomes


def _case(known: record.Record, name: str) -> Case:
    """A case by its name; a file that is gone or another ends the command."""
    if cases.is_generated(name):
        return cases.by_name(name)
    before = known.cases.get(name)
    found = cases.file_case(name, before.input if before else "")
    if found is None:
        raise click.ClickException(f"{name} is not there, nor a file that holds the same")
    return found if found.name == name else cases.Case(name, found.text, found.command)


def _outcomes(givens: list[Given], jobs: int, operator: Path) -> Iterator[Outcome]:
    begun = monotonic()
    with planner.workers(jobs, operator) as mapped:
        for number, one in enumerate(mapped(planner.outcome, givens), start=1):
            yield one
            if number % PROGRESS == 0 or number == len(givens):
                told = f"{number} of {len(givens)} cases, {monotonic() - begun:.0f} s"
                click.echo(told, err=True)


def _tell_figures(outcomes: Sequence[Outcome]) -> None:
    seen = sum((outcome.seen for outcome in outcomes), Counter[str]())
    click.echo(", ".join(f"{what} {n}" for what, n in seen.most_common()))
    slowest = max(outcomes, key=lambda one: one.seconds)
    work = sum(outcome.seconds for outcome in outcomes)
    click.echo(f"{work:.0f} s of planning; the slowest was {slowest.name}, {slowest.seconds:.1f} s")


def _worst(verdict: record.Verdict) -> Sequence[str]:
    """The cases that differ: first those that choose otherwise, and of these the plans."""
    choosing = {name for (name, part), _ in verdict.differing if part == "choice"}
    names = {name for (name, _), _ in verdict.differing}
    return sorted(names, key=lambda name: (name not in choosing, "explain" in name, name))


def _show_differences(known: record.Record, names: Sequence[str]) -> None:
    """Both answers to these cases, where git has the recorded revision; and how to replay."""
    from ...bench.planner.against import UnknownCommitError, checkout  # noqa: PLC0415 - as above

    givens: list[Given] = [_case(known, name) for name in names]
    after = _answers(givens, planner.OPERATOR)
    try:
        with checkout(known.revision) as tree:
            before = _answers(givens, tree / "operator")
    except UnknownCommitError as problem:
        click.echo(f"git has no {known.revision} to compare with: {problem}", err=True)
        return
    folder = Path(mkdtemp(prefix="tutti-unchanged-"))
    for case, old, new in zip(givens, before, after, strict=True):
        assert isinstance(case, cases.Case)
        path = folder / f"{case.name.replace('/', '-')}.yaml"
        path.write_bytes(case.text)
        click.echo(f"\n{case.name}: tutti {case.command} -o json -f {path}")
        lines = old.pretty().splitlines(), new.pretty().splitlines()
        click.echo("\n".join(difflib.unified_diff(*lines, known.revision, "now", lineterm="", n=4)))


def _answers(givens: list[Given], operator: Path) -> Sequence[Answer]:
    with planner.workers(1, operator) as mapped:
        return list(mapped(planner.answer, givens))


if __name__ == "__main__":
    main()
