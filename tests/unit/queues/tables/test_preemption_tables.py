"""Public tables of Kueue, KAI-Scheduler and Armada about ending what runs, beside our answers."""

from collections import Counter
from pathlib import Path

import pytest

from .differences import EndDifference
from .reading import Case, cases

CASES = tuple(cases("preemption"))
PAGE = Path(__file__).parents[4] / "docs" / "coming-from.md"
NAMES = {"armada": "Armada", "kai": "KAI-Scheduler", "kueue": "Kueue"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_gangs_start_and_end_or_the_table_says_why_not(case: Case) -> None:
    answer = case.question.answer()
    assert answer in (case.ours or (case.theirs,))
    assert bool(case.ours) == (case.why is not None)
    assert case.theirs not in case.ours


def test_no_case_is_there_twice() -> None:
    places = Counter((case.project, case.path, case.name) for case in CASES)
    assert [place for place, count in places.items() if count > 1] == []
    assert len(CASES) >= 150


def test_seven_in_ten_answers_are_equal_and_few_differences_explain_the_others() -> None:
    assert sum(case.why is None for case in CASES) >= 0.7 * len(CASES)
    assert len(EndDifference) <= 10
    assert {case.why for case in CASES} == {None, *EndDifference}


def test_gangs_end_in_many_of_the_cases() -> None:
    assert sum(any(n < 0 for n in case.theirs.values()) for case in CASES) >= 100


@pytest.mark.parametrize("project", NAMES)
def test_the_page_has_the_figures_of_each_project(project: str) -> None:
    own = [case for case in CASES if case.project == project]
    equal = sum(case.why is None for case in own)
    assert f"| {NAMES[project]}, preemption | {len(own)} | {equal} |" in PAGE.read_text()


@pytest.mark.parametrize("difference", EndDifference)
def test_the_page_argues_for_each_difference(difference: EndDifference) -> None:
    count = sum(case.why is difference for case in CASES)
    assert f"| {difference.name.lower()} | {count} | {difference} |" in PAGE.read_text()
