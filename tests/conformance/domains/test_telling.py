"""The tables: who is asked, who starts what, and what counts as wrong."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from .cases import GPUS, NODES, Case, Gang, Kind, Level
from .telling import Outcome, gangs_table, misses, scenes_table, wrongs

if TYPE_CHECKING:
    from rich.table import Table

    from .telling import Results

FULL = (GPUS,) * len(NODES)


def case(name: str, *, has_placement: bool = True, gangs: int = 1) -> Case:
    """Gangs of two that are to be in one rack, and room for all of them, or none."""
    made = [Gang(f"{name}-{i}", Kind.EQUAL, Level.RACK, (2, 2)) for i in range(gangs)]
    used = (0,) * len(NODES) if has_placement else FULL
    return Case(name, used, tuple(made), has_placement)


def placed(*gangs: str, far: bool = False, **waiting: str) -> Outcome:
    """These gangs whole, the second member in another rack if it is far."""
    other = NODES[-1].name if far else NODES[0].name
    where = {f"{gang}-{i}": node for gang in gangs for i, node in enumerate((NODES[0].name, other))}
    return Outcome(where, {name.replace("_", "-"): said for name, said in waiting.items()})


def rows(table: Table) -> list[list[str]]:
    console = Console(width=200, record=True, file=StringIO())
    console.print(table)
    lines = [line for line in console.export_text().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_single_gangs_are_counted_by_what_they_ask_for() -> None:
    a, b, none = case("a"), case("b"), case("none", has_placement=False)
    results: Results = [
        (a, {"tutti": placed("a-0"), "other": placed("a-0", far=True)}),
        (b, {"tutti": placed(b_0="no room"), "other": None}),
        (none, {"tutti": placed(none_0="no room"), "other": placed("none-0")}),
    ]
    assert rows(gangs_table(results, ["tutti", "other"])) == [
        ["members of one size, one rack", "2", *"2110", *"1001"],
        ["all that have a placement", "2", *"2110", *"1001"],
        ["all that have none", "1", *"1010", *"1001"],
    ]
    assert misses(results, "tutti") == ["b, tutti: b-0 has a placement and is refused: no room"]
    assert wrongs(results, "tutti") == []
    assert wrongs(results, "other") == [
        "a, other: a-0: in 2 domains of rack",
        f"none, other: {NODES[0].name}: 4 GPUs too many",
    ]


def test_a_scene_counts_if_all_of_its_gangs_are_placed() -> None:
    one, two = case("one", gangs=2), case("two", gangs=2)
    results: Results = [
        (one, {"tutti": placed("one-0", "one-1"), "other": placed("one-0", one_1="no room")}),
        (two, {"tutti": placed("two-0", "two-1"), "other": None}),
    ]
    counts = ["2", "2", "4 of 4", "0", "1", "0", "1 of 2", "0"]
    assert rows(scenes_table(results, ["tutti", "other"])) == [
        ["of one size, or a leader and workers", "2", *counts],
        ["all", "2", *counts],
    ]
    assert misses(results, "tutti") == []
    assert misses(results, "other") == ["one, other: one-1 has a placement and is refused: no room"]
