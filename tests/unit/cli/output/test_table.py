"""Tables at terminals: folded where there is room for that, else whole lines as kubectl prints."""

import io
import re

import pytest
from rich.console import Console

from tutti.cli.output import table
from tutti.model.decisions import Level, Plan

TITLES = ["NAME", "REASON", "MESSAGE"]
FIRST = "the highest priority without a proof"
MESSAGE = "9 members need 1 cpu each; even the empty cluster has room for only 8; short 1"
ROWS = [["a-name-of-thirty-characters-xx", "NotEnoughRoom", MESSAGE], ["b", "-", "all is well"]]


def shown(columns: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What such a terminal gets; ``show`` writes either through rich or through click."""
    drawn = io.StringIO()
    out = Console(file=drawn, force_terminal=True, width=columns, highlight=False)
    table.show(out, table.of_rows(TITLES, ROWS))
    assert out.width == columns
    return re.sub(r"\x1b\[[0-9;]*m", "", drawn.getvalue() + capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("columns", [200, 80])
def test_where_there_is_room_the_last_column_folds(
    columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(columns, capsys)
    assert max(len(line) for line in lines) <= columns
    assert " ".join(" ".join(lines).split()).count("empty") == 1
    assert len(lines) == (3 if columns == 200 else 5)


@pytest.mark.parametrize("columns", [60, 20])
def test_where_there_is_none_a_line_is_a_line(
    columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is cut off, and no blanks are left at the end for the terminal to fold."""
    header, first, second = shown(columns, capsys)
    assert header.split() == TITLES
    assert first.endswith(f"NotEnoughRoom  {MESSAGE}")
    assert second.endswith("all is well")
    assert header == header.rstrip()


def test_cells_and_titles_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    out = table.console()
    table.show(out, table.of_rows(["[/x]", "B\x1b"], [["[red]lots", "[/y]\t"]]))
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["[/x]", r"B\x1b"],
        ["[red]lots", r"[/y]\t"],
    ]


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((), "not proved: why"),
        ((Level(0, 90, 100),), "not proved: why; at most 10.00% below the best"),
        ((Level(0, 90),), "not proved: why"),
        (
            (Level(9, 5, 5), Level(5, 90, 100), Level(0, 1, 100)),
            f"not proved: why; {FIRST} is 5: at most 10.00% below the best",
        ),
        (
            (Level(9, 5, 5), Level(5, 90), Level(0, 1, 100)),
            f"not proved: why; {FIRST} is 5",
        ),
        ((Level(9, 5, 5), Level(5, 9, 9)), "not proved: why; at most 0.00% below the best"),
    ],
)
def test_the_gap_is_that_of_the_highest_priority_without_a_proof(
    levels: tuple[Level, ...], words: str
) -> None:
    plan = Plan(proved=False, shortfall="why", levels=levels)
    assert table.summary((), plan) == f"0 gangs would start, 0 would wait; {words}"
