"""Which nodes can be filled in the same ways, and in which."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.strategies.ilp import patterns
from tutti.strategies.ilp.patterns import NodeClass, node_classes
from tutti.strategies.shape_demand import ShapeDemand

from ..generators import grid

Rows = Sequence[Sequence[int]]
some = settings(max_examples=200, deadline=None, derandomize=True)


def classes_of(free: Rows, asks: Rows, most: Sequence[int] | None = None) -> Sequence[NodeClass]:
    """The classes where every shape may run everywhere, by default a hundred of each."""
    limits = np.array(most or [100] * len(asks), dtype=np.int64)
    wanted = ShapeDemand(np.arange(len(asks)), grid(asks), limits)
    return node_classes(grid(free), np.ones((len(asks), len(free)), dtype=np.bool_), wanted)


def listed(node_class: NodeClass) -> set[tuple[int, ...]]:
    """The patterns of a class."""
    assert node_class.patterns is not None
    return {tuple(row) for row in node_class.patterns.tolist()}


def maximal(
    room: Sequence[int], asks: Rows, fits: Sequence[bool], most: Sequence[int]
) -> set[tuple[int, ...]]:
    """All maximal fillings of one node, by trying every one."""

    def holds(counts: Sequence[int]) -> bool:
        used = [
            sum(n * ask[r] for n, ask in zip(counts, asks, strict=True)) for r in range(len(room))
        ]
        asked = [
            any(n and ask[r] for n, ask in zip(counts, asks, strict=True)) for r in range(len(room))
        ]
        return all(u <= free or not a for u, free, a in zip(used, room, asked, strict=True))

    ranges = [range(limit + 1) if may else range(1) for limit, may in zip(most, fits, strict=True)]
    found = [counts for counts in product(*ranges) if holds(counts)]
    known = set(found)

    def one_more(counts: Sequence[int], row: int) -> tuple[int, ...]:
        return tuple(n + (i == row) for i, n in enumerate(counts))

    return {
        counts
        for counts in found
        if not any(one_more(counts, row) in known for row in range(len(asks)))
    }


def test_nodes_with_the_same_fillings_are_one_class_whatever_their_room() -> None:
    (one,) = classes_of([[8, 110], [9, 54], [8, 2]], [[4, 1]])
    assert one.nodes.tolist() == [0, 1, 2]
    assert listed(one) == {(2,)}


def test_patterns_are_the_ways_to_fill_a_node() -> None:
    (one,) = classes_of([[8]], [[4], [3]])
    assert listed(one) == {(2, 0), (1, 1), (0, 2)}


def test_a_filling_holds_no_more_than_is_wanted() -> None:
    (one,) = classes_of([[8]], [[4], [3]], most=[1, 1])
    assert listed(one) == {(1, 1)}


def test_a_node_that_can_take_nothing_is_in_no_class() -> None:
    assert not classes_of([[1], [0]], [[2]])
    (one,) = classes_of([[1], [2]], [[2]])
    assert one.nodes.tolist() == [1]


def test_what_is_not_asked_for_need_not_be_there() -> None:
    (one,) = classes_of([[4, -3]], [[2, 0]])
    assert listed(one) == {(2,)}


def test_a_shape_that_asks_for_nothing_fits_as_often_as_it_is_wanted() -> None:
    (one,) = classes_of([[0]], [[0]], most=[5])
    assert listed(one) == {(5,)}


def test_amounts_in_bytes_are_not_tabled() -> None:
    (one,) = classes_of([[2**40 + 5], [2**40 + 7]], [[2**20 + 1], [2**20 + 3]], most=[2, 2])
    assert one.nodes.tolist() == [0, 1]


def test_amounts_beyond_sixty_four_bits_together_are_left_alone() -> None:
    huge = 2**49
    (one,) = classes_of([[huge, huge]], [[huge - 1, huge - 3]], most=[9])
    assert listed(one) == {(1,)}


def test_ratios_that_are_equal_in_floats_are_told_apart() -> None:
    much = 2**30
    (one,) = classes_of([[much, much + 1]], [[much - 1, much], [much, much + 1]])
    assert listed(one) == {(1, 0), (0, 1)}


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Rows, Rows, list[list[bool]], list[int]]:
    """Room, requests, where each shape may run, and how many are wanted."""
    n_nodes, n_shapes, n_resources = (draw(st.integers(1, 3)) for _ in range(3))
    room = [[draw(st.integers(-1, 7)) for _ in range(n_resources)] for _ in range(n_nodes)]
    asks = [[draw(st.integers(0, 4)) for _ in range(n_resources)] for _ in range(n_shapes)]
    allowed = [[draw(st.integers(0, 4)) > 0 for _ in range(n_nodes)] for _ in range(n_shapes)]
    return room, asks, allowed, [draw(st.integers(1, 4)) for _ in range(n_shapes)]


@given(nodes())
@some
def test_every_node_has_exactly_its_maximal_fillings(
    made: tuple[Rows, Rows, list[list[bool]], list[int]],
) -> None:
    room, asks, allowed, most = made
    wanted = ShapeDemand(np.arange(len(asks)), grid(asks), np.array(most))
    found = node_classes(grid(room), np.array(allowed), wanted)
    of_node = {node: listed(each) for each in found for node in each.nodes.tolist()}
    for i, free in enumerate(room):
        fits = [
            row[i] and all(n <= f or not n for n, f in zip(ask, free, strict=True))
            for row, ask in zip(allowed, asks, strict=True)
        ]
        nothing = {(0,) * len(asks)}
        assert of_node.get(i, nothing) == maximal(free, asks, fits, most)
    # And no two classes have the same.
    assert len({frozenset(listed(each)) for each in found}) == len(found)


def test_few_nodes_too_rich_to_list_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 2)
    node_classes = classes_of([[8], [8], [4]], [[4], [3]])
    assert [(cls.nodes.tolist(), cls.patterns is None) for cls in node_classes] == [
        ([0], True),
        ([1], True),
        ([2], False),
    ]
    assert (node_classes[0].room.tolist(), node_classes[0].most.tolist()) == ([8], [2, 2])


def test_many_nodes_too_rich_to_list_are_counted_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 2)
    monkeypatch.setattr(patterns, "FEW_NODES", 2)
    node_classes = classes_of([[8], [8], [9]], [[4], [3]])
    assert [cls.nodes.tolist() for cls in node_classes] == [[0, 1], [2]]
    assert (node_classes[0].room.tolist(), node_classes[0].most.tolist()) == ([16], [4, 4])


def test_far_too_many_rich_nodes_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 2)
    monkeypatch.setattr(patterns, "FEW_NODES", 2)
    monkeypatch.setattr(patterns, "MOST_COUNTS", 2)
    (one,) = classes_of([[8], [8], [9]], [[4], [3]])
    assert one.nodes.tolist() == [0, 1, 2]
    assert (one.room.tolist(), one.most.tolist()) == ([25], [6, 7])


def test_once_the_work_is_used_up_the_nodes_that_are_left_count_as_rich(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "MOST_STEPS", 1)
    monkeypatch.setattr(patterns, "MOST_CELLS", 1)
    node_classes = classes_of([[4], [8]], [[4], [3]])
    assert [cls.patterns is None for cls in node_classes] == [False, True]
