"""The picture of the cluster fits its width, and says everything without colour."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tutti.cli.output.picture import (
    PALETTE,
    Block,
    ClusterPicture,
    Hold,
    NodeRow,
    by_kind,
    ink_on,
    marks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

GANGS = ("training", "roles", "too-large", "next")


def _drawn(
    nodes: Sequence[NodeRow],
    width: int,
    gangs: Sequence[str] = GANGS,
    *,
    rows: int | None = None,
    colour: bool = False,
) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        color_system="truecolor" if colour else None,
        force_terminal=colour,
    )
    console.print(ClusterPicture(nodes, gangs, rows=rows))
    return out.getvalue()


def _row(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if f" {name} " in line)


def _fleet() -> list[NodeRow]:
    kinds = (("h100", 10, 8), ("a100", 14, 8), ("l4", 16, 4))
    return [
        NodeRow(f"{kind}-{number:02}", kind, slots)
        for kind, count, slots in kinds
        for number in range(count)
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200])
def test_three_kinds_of_nodes_stand_side_by_side(width: int) -> None:
    text = _drawn(_fleet(), width)
    assert max(map(len, text.splitlines())) <= width
    assert all(name in _row(text, "h100-00") for name in ("a100-00", "l4-00"))
    assert len(text.splitlines()) <= 16 + 2 + 3


def test_kinds_that_do_not_fit_side_by_side_stand_below_each_other() -> None:
    nodes = [NodeRow(f"{kind}-0", kind, 16) for kind in ("a", "b", "c")]
    text = _drawn(nodes, 40)
    assert max(map(len, text.splitlines())) <= 40
    assert "b-0" not in _row(text, "a-0")


def test_members_are_told_apart_by_gaps_and_gangs_by_letters() -> None:
    blocks = (Block("training", 4), Block("training", 2), Block("roles", 1))
    text = _drawn([NodeRow("n", "k", 8, blocks)], 24)
    assert "T─T─T─T T─T R · " in _row(text, "n")


def test_reserved_foreign_and_free_slots_differ_without_colour() -> None:
    blocks = (Block("next", 2, Hold.RESERVED), Block("", 1, Hold.FOREIGN))
    text = _drawn([NodeRow("n", "k", 4, blocks)], 80)
    assert "╱N╱╱╱N╱ ▒▒▒  · " in _row(text, "n")  # noqa: RUF001 - what is drawn
    assert "next reserved 2" in text
    assert "others 1" in text
    assert "1 of 4 free" in text


def test_a_slot_has_its_gangs_colour_and_letters_that_can_be_read_on_it() -> None:
    text = _drawn([NodeRow("n", "k", 1, (Block("training", 1),))], 80, colour=True)
    assert "48;2;230;159;0" in text
    assert ink_on(PALETTE[3]) == "#000000"
    assert ink_on(PALETTE[4]) == "#FFFFFF"


def test_every_gang_gets_its_own_letter_and_looks_different() -> None:
    many = [f"train-{number}" for number in range(36)]
    looks = marks(many)
    assert len({mark.letter for mark in looks.values()}) == len(many)
    assert [marks(GANGS)[gang].letter for gang in GANGS] == ["T", "R", "O", "N"]


def test_more_gangs_than_letters_still_get_marks() -> None:
    assert len(marks(f"gang-{number}" for number in range(100))) == 100


def test_a_gang_that_nobody_announced_is_drawn_all_the_same() -> None:
    text = _drawn([NodeRow("n", "k", 1, (Block("surprise", 1),))], 80, ())
    assert "surprise 1" in text


def test_rows_beyond_the_limit_are_summed_up() -> None:
    text = _drawn(_fleet(), 80, rows=3)
    assert "… 7 more: 56 of" in text
    assert "h100-03" not in text


def test_a_long_name_keeps_both_ends() -> None:
    name = "ip-10-0-17-3.eu-central-1.compute.internal"
    text = _drawn([NodeRow(name, "k", 2)], 80)
    assert "ip-10-0…" in text
    assert "compute.internal" in text


def test_a_cluster_without_nodes_says_so() -> None:
    assert _drawn([], 80) == "no nodes\n"


def test_kinds_keep_the_order_of_their_first_node() -> None:
    nodes = [NodeRow("1", "b", 1), NodeRow("2", "a", 1), NodeRow("3", "b", 1)]
    assert [(kind, [n.name for n in found]) for kind, found in by_kind(nodes)] == [
        ("b", ["1", "3"]),
        ("a", ["2"]),
    ]
