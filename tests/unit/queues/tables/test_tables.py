"""Public tables of Kueue, KAI-Scheduler, Volcano and Koordinator beside our answers."""

from collections import Counter
from pathlib import Path

import pytest

from .differences import Difference
from .reading import Case, cases

CASES = tuple(cases())
PAGE = Path(__file__).parents[4] / "docs" / "coming-from.md"
NAMES = {
    "kai": "KAI-Scheduler",
    "koordinator": "Koordinator",
    "kueue": "Kueue",
    "volcano": "Volcano",
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_our_answer_is_theirs_or_differs_as_the_table_says(case: Case) -> None:
    answer = case.question.answer()
    assert answer in (case.ours or (case.theirs,))
    assert bool(case.ours) == (case.why is not None)
    assert case.theirs not in case.ours


def test_no_case_is_there_twice() -> None:
    names = Counter(map(str, CASES))
    assert [name for name, count in names.items() if count > 1] == []
    assert len(CASES) >= 120


def test_seven_in_ten_answers_are_equal_and_few_differences_explain_the_others() -> None:
    equal = [case for case in CASES if case.why is None]
    assert len(equal) >= 0.7 * len(CASES)
    assert len(Difference) <= 10
    assert {case.why for case in CASES} == {None, *Difference}


def test_the_page_has_the_figures_of_each_project() -> None:
    page = PAGE.read_text()
    for project, name in NAMES.items():
        own = [case for case in CASES if case.project == project]
        equal = sum(case.why is None for case in own)
        assert f"| {name} | {len(own)} | {equal} |" in page
    assert {case.project for case in CASES} == set(NAMES)


@pytest.mark.parametrize("difference", Difference)
def test_the_page_argues_for_each_difference(difference: Difference) -> None:
    count = sum(case.why is difference for case in CASES)
    assert f"| {difference.name.lower()} | {count} | {difference} |" in PAGE.read_text()
