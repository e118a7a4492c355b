"""Tables at terminals: folded where there is room for that, else whole lines as kubectl prints."""

import io
import re

import pytest
from rich.console import Console

from tutti.cli.output import table

TITLES = ["NAME", "REASON", "MESSAGE"]
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
