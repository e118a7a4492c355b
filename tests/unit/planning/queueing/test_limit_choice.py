"""The best choice within rows, beside all choices enumerated."""

from itertools import product
from random import Random

import pytest

from tutti.planning.queueing import limit_choice
from tutti.planning.queueing.limit_choice import Row, Worth, best_choice

TOP, LOW = (1, 0), (0, 0)


def enumerated(worths: list[Worth], rows: list[Row]) -> list[int]:
    """What the best choice is worth, level by level from the top."""
    levels = sorted({worth.level for worth in worths}, reverse=True)
    choices = (
        [gang for gang, is_in in enumerate(bits) if is_in]
        for bits in product((0, 1), repeat=len(worths))
    )
    return max(
        values(worths, choice, levels)
        for choice in choices
        if all(sum(row.amounts.get(gang, 0) for gang in choice) <= row.room for row in rows)
    )


def values(worths: list[Worth], choice: list[int], levels: list[tuple[int, int]]) -> list[int]:
    return [sum(worths[gang].value for gang in choice if worths[gang].level == n) for n in levels]


def drawn(seed: int) -> tuple[list[Worth], list[Row]]:
    """Some gangs in a tree of rows, with further rows across it."""
    chance = Random(seed)
    gangs = chance.randint(1, 10)
    levels = [(chance.randint(0, chance.choice((0, 2))), 0) for _ in range(gangs)]
    large = chance.choice((1, 1, 10**17))
    worths = [Worth(level, large * chance.randint(1, 9) + seed % 2) for level in levels]
    rows = []
    for _ in range(chance.randint(0, 6)):
        some = chance.sample(range(gangs), chance.randint(1, gangs))
        amounts = {gang: chance.randint(0, 7) for gang in some}
        rows.append(Row(amounts, chance.randint(0, 1 + sum(amounts.values()))))
    return worths, rows


@pytest.mark.parametrize("changes", [{}, {"MOST_LISTED": 2}, {"MOST_LISTED": 1, "MOST_CELLS": 0}])
def test_no_other_choice_is_worth_more(
    changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in changes.items():
        monkeypatch.setattr(limit_choice, name, value)
    for seed in range(100):
        worths, rows = drawn(seed)
        choice = best_choice(worths, rows)
        assert choice is not None
        for row in rows:
            assert sum(row.amounts.get(gang, 0) for gang in choice) <= row.room
        levels = sorted({worth.level for worth in worths}, reverse=True)
        assert values(worths, [*choice], levels) == enumerated(worths, rows), seed


def test_a_higher_level_is_worth_more_than_all_of_a_lower_one() -> None:
    worths = [Worth(TOP, 1), Worth(LOW, 10**18), Worth(LOW, 10**18)]
    assert best_choice(worths, [Row({0: 1, 1: 1, 2: 1}, 1)]) == [0]


def test_sums_that_are_no_machine_numbers_are_exact() -> None:
    worths = [Worth(LOW, 2**62 + n) for n in range(3)]
    assert best_choice(worths, [Row({0: 1, 1: 1, 2: 1}, 1)]) == [2]


def test_without_rows_all_are_chosen() -> None:
    assert best_choice([Worth(LOW, 1)] * 3, []) == [0, 1, 2]


def test_a_gang_that_exceeds_a_row_alone_is_left_out() -> None:
    assert best_choice([Worth(LOW, 9), Worth(LOW, 1)], [Row({0: 2, 1: 1}, 1)]) == [1]


@pytest.mark.parametrize("most", ["MOST_PAIRS", "MOST_WORK"])
def test_too_many_choices_are_no_answer(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worths = [Worth(LOW, n) for n in range(1, 20)]
    rows = [Row(dict.fromkeys(range(19), 1), 9), Row(dict.fromkeys(range(10), 1), 5)]
    assert best_choice(worths, rows) is not None
    monkeypatch.setattr(limit_choice, most, 0)
    assert best_choice(worths, rows) is None
