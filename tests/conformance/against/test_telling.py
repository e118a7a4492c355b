"""The table of wins, ties and losses."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from . import byhand
from .playing import Outcome, Turn
from .telling import sentences, table

EIGHT, SMALL = byhand.CASES[0], byhand.CASES[2]
WHERE = {
    EIGHT.name: [(f"m-{i}", f"n{i // 2}") for i in range(8)],
    SMALL.name: [("big-0", "n0"), *((f"small-{i}", f"n{i + 1}") for i in range(3))],
}


def _outcomes(**bound: tuple[int, int]) -> dict[Turn, Outcome]:
    return {
        Turn(case, who): Outcome(dict(WHERE[case.name][:n]), case.size)
        for who, counts in bound.items()
        for case, n in zip((EIGHT, SMALL), counts, strict=True)
    }


def test_wins_ties_and_losses_are_counted_by_kind() -> None:
    console = Console(width=160, record=True, file=StringIO())
    console.print(table(_outcomes(tutti=(8, 4), native=(8, 0), other=(3, 4)), "tutti", ["native"]))
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in console.export_text().splitlines()
        if line.startswith("│")
    ]
    assert rows == [
        ["room for everyone", "1", "1", "0", "1", "0", "0/1/0"],
        ["anti-affinity over few nodes", "1", "1", "0", "0", "0", "1/0/0"],
        ["in all", "2", "2", "0", "1", "0", "1/1/0"],
    ]


def test_what_is_bound_in_part_and_lost_is_counted_and_told() -> None:
    outcomes = _outcomes(tutti=(3, 4), other=(8, 0))
    console = Console(width=160, record=True, file=StringIO())
    console.print(table(outcomes, "tutti", ["other"]))
    assert "1/0/1" in console.export_text()
    lost = "eight-on-four, tutti: 3 of 8 members are bound"
    assert list(sentences(outcomes, "tutti")) == [lost]


def test_members_where_they_may_not_be_are_told_of_whoever_put_them_there() -> None:
    assert list(sentences(_outcomes(tutti=(8, 4), other=(0, 4)), "tutti")) == []
    crowded = {f"m-{i}": f"n{i // 5}" for i in range(8)}
    together = {**dict(WHERE[SMALL.name]), "small-1": "n1"}
    outcomes = {
        Turn(EIGHT, "tutti"): Outcome(crowded, 8),
        Turn(SMALL, "other"): Outcome(together, 4),
    }
    assert list(sentences(outcomes, "tutti")) == [
        "eight-on-four, tutti: somebody is where it may not be",
        "small-before-big, other: somebody is where it may not be",
    ]
