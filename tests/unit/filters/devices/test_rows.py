"""Counts of devices: exact beside a search that tries every device for every request."""

import random
from collections.abc import Callable, Sequence

import pytest

from tests.harness.counting import calls_of
from tutti.filters.devices import rows
from tutti.model.devices.claims import Selection

ABC = tuple(Selection(name) for name in "abc")


def test_selections_that_no_device_shares_are_one_row_each() -> None:
    assert rows.rows(ABC, [[0b001, 0b010, 0b100, 0]]) == {
        0b001: "device:a",
        0b010: "device:b",
        0b100: "device:c",
    }


def test_of_nested_selections_the_wider_row_counts_the_requests_of_both() -> None:
    """A device for a is one for b, too: so b alone says no more than a and b together."""
    named = rows.rows(ABC[:2], [[0b11, 0b10]])
    assert named == {0b01: "device:a", 0b10: "device:b", 0b11: "device:a|b"}
    assert rows.counts([0b11, 0b10], named).amounts == (
        ("device:a", 1),
        ("device:a|b", 2),
        ("device:b", 2),
    )
    assert rows.requested([(0, 1), (1, 2)], named).amounts == (
        ("device:a", 1),
        ("device:a|b", 3),
        ("device:b", 2),
    )


def test_too_many_overlaps_are_refused() -> None:
    selections = [Selection(f"s{i}") for i in range(12)]
    pairs = [(1 << i) | (1 << j) for i in range(12) for j in range(i)]
    with pytest.raises(rows.TooManyRowsError):
        rows.rows(selections, [pairs])
    with pytest.raises(rows.TooManyRowsError):
        rows.rows([Selection(f"s{i}") for i in range(300)], [[1]])


def test_however_selections_overlap_no_more_rows_are_made_than_may_be() -> None:
    selections = [Selection(f"s{i}") for i in range(256)]
    nested = [(1 << 128) - (1 << i) << 128 * (i % 2) for i in range(128)]
    apart = [1 << i for i in range(256)]
    assert len(rows.rows(selections, [apart])) == 256

    def refuse() -> None:
        with pytest.raises(rows.TooManyRowsError):
            rows.rows(selections, [[*nested, (1 << 256) - 1]])

    assert calls_of(refuse) < 100 * rows.MOST_ROWS


def is_possible(devices: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether every wanted selection gets a device of its own: tries all ways."""
    if not wanted:
        return True
    return any(
        mask >> wanted[0] & 1 and is_possible([*devices[:i], *devices[i + 1 :]], wanted[1:])
        for i, mask in enumerate(devices)
    )


@pytest.mark.parametrize("seed", range(60))
def test_pods_fit_a_node_exactly_if_every_row_has_room(seed: int) -> None:
    chance = random.Random(seed)
    width = chance.randint(1, 4)
    selections = [Selection(f"s{i}") for i in range(width)]
    nodes = [[chance.randrange(1 << width) for _ in range(chance.randint(0, 5))] for _ in range(3)]
    named = rows.rows(selections, nodes)
    for devices in nodes:
        for _ in range(15):
            taken = [mask for mask in devices if chance.random() < 0.2]
            free = list(devices)
            for mask in taken:
                free.remove(mask)
            wanted = [chance.randrange(width) for _ in range(chance.randint(0, 5))]
            room = rows.counts(devices, named) - rows.counts(taken, named)
            asked = rows.requested([(index, 1) for index in wanted], named)
            assert asked.fits(room) is is_possible(free, wanted)


def at_most(most: int) -> Callable[[int], bool]:
    return lambda mask: mask.bit_count() <= most


@pytest.mark.parametrize(
    ("groups", "most", "passed", "kept"),
    [
        ([], 0, 8, 0),
        ([0b1, 0b10, 0b100], 3, 8, 0b111),
        ([0b1, 0b10, 0b100], 2, 8, 0b11),
        ([0b1, 0b1110, 0b10000], 2, 8, 0b10001),
        ([0b1, 0b1110, 0b10000], 2, 0, 0b1),
        ([0b11, 0b11, 0b100], 1, 1, 0),
        ([0b11, 0b11, 0b100], 1, 2, 0b100),
    ],
)
def test_groups_that_do_not_fit_are_passed_over(
    groups: list[int], most: int, passed: int, kept: int
) -> None:
    assert rows.fitting(groups, at_most(most), passed) == kept


@pytest.mark.parametrize(("guess", "most"), [(1, 13), (20, 9), (37, 2), (38, 13), (99, 13)])
def test_a_guess_of_how_many_groups_fit_changes_only_how_long_it_takes(
    guess: int, most: int
) -> None:
    calls = []

    def fits(mask: int) -> bool:
        calls.append(mask)
        return mask.bit_count() <= 37

    groups = [1 << i for i in range(40)]
    assert rows.fitting(groups, fits, 0, guess) == (1 << 37) - 1
    assert len(calls) <= most


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_is_what_taking_one_group_after_another_keeps(seed: int) -> None:
    chance = random.Random(seed)
    groups = [1 << chance.randrange(12) | 1 << chance.randrange(12) for _ in range(10)]
    fits = at_most(chance.randint(0, 8))
    expected = 0
    for group in groups:
        expected |= group if fits(expected | group) else 0
    assert rows.fitting(groups, fits, passed=len(groups)) == expected


def test_the_rows_are_those_of_the_selections_that_are_kept() -> None:
    selections = [Selection(f"s{i}") for i in range(20)]
    star = [1 << i for i in range(19)] + [(1 << 19) - 1]
    other = [1 << 19]
    groups = [1 << i for i in range(20)]
    kept, named = rows.fitting_rows(selections, [star, other], groups)
    assert len(named) <= rows.MOST_ROWS
    assert kept == 0b1111_1111 | 1 << 19  # eight that share a device are 255 rows
    assert rows.rows(selections, [star, other], kept) == named
    few = rows.fitting_rows(selections[:3], [star], groups[:3])
    assert few == (0b111, rows.rows(selections[:3], [star], 0b111))


def test_nodes_of_which_no_two_are_alike_cost_no_more_than_their_number() -> None:
    """Rows are made for the parts in which selections overlap, and these are alike."""
    chance = random.Random(1)
    star = range(60, 250)
    nodes = [
        frozenset(
            {
                *(1 << chance.randrange(60) for _ in range(100)),
                *(sum(1 << i for i in chance.sample(star, 8)) for _ in range(4)),
            }
        )
        for _ in range(3000)
    ]
    selections = [Selection(f"s{i}") for i in range(250)]
    groups = [1 << i for i in range(250)]
    kept, named = rows.fitting_rows(selections, nodes, groups)
    assert kept.bit_count() > 60
    assert len(named) <= rows.MOST_ROWS
    few = calls_of(lambda: rows.fitting_rows(selections, nodes[:300], groups))
    assert calls_of(lambda: rows.fitting_rows(selections, nodes, groups)) < 11 * few
