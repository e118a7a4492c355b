"""That gangs with domains start exactly where an independent solver says so.

A few hundred instances here; ``python -m tests.conformance.topology --runs N`` has more.
"""

from __future__ import annotations

import pytest

from tutti.strategies.best_fit import BestFit
from tutti.strategies.ilp.engine import Cbc, Engine, Highs
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Outcome

from ...harness.builders import AMPLE_BUDGET
from ..oracle.case import by_number, case_of
from ..oracle.comparing import compared, wrong_bounds
from ..oracle.faults import faults, worth
from ..oracle.optimum import optimum
from .instances import problem

with_each_engine = pytest.mark.parametrize("engine", [Cbc(), Highs()], ids=lambda one: one.name)


@with_each_engine
def test_the_best_admission_with_domains_is_found_and_proved(engine: Engine) -> None:
    exact, seeds = IlpStrategy(engine), range(1, 121)
    answers = {seed: compared(problem(seed), exact) for seed in seeds}
    assert {seed: answer.wrong for seed, answer in answers.items() if answer.wrong} == {}
    assert all(answer.is_proved for answer in answers.values())
    assert sum(answer.is_contended for answer in answers.values()) > len(seeds) / 3


@with_each_engine
def test_the_best_admission_in_segments_is_found_and_proved(engine: Engine) -> None:
    exact, seeds = IlpStrategy(engine), range(1, 121)
    answers = {seed: compared(problem(seed, segments=True), exact) for seed in seeds}
    assert {seed: answer.wrong for seed, answer in answers.items() if answer.wrong} == {}
    assert all(answer.is_proved for answer in answers.values())
    assert sum(answer.is_contended for answer in answers.values()) > len(seeds) / 3


def test_one_gang_in_segments_starts_wherever_it_could_and_a_refusal_is_proved() -> None:
    exact, seeds = IlpStrategy(), range(1, 201)
    answers = {seed: compared(problem(seed, gangs=1, segments=True), exact) for seed in seeds}
    assert {seed: answer.wrong for seed, answer in answers.items() if answer.wrong} == {}
    assert all(answer.is_proved for answer in answers.values())


def test_one_gang_starts_wherever_it_could_and_a_refusal_is_proved() -> None:
    exact, seeds = IlpStrategy(), range(1, 201)
    answers = {seed: compared(problem(seed, gangs=1), exact) for seed in seeds}
    assert {seed: answer.wrong for seed, answer in answers.items() if answer.wrong} == {}
    assert all(answer.is_proved for answer in answers.values())


def test_beside_rules_between_pods_the_answer_is_sound_and_bounded() -> None:
    exact = IlpStrategy()
    for seed in range(1, 121):
        asked = problem(seed, with_rules=True)
        solution, best = exact.solve(asked, AMPLE_BUDGET), optimum(case_of(asked))
        assert faults(asked, solution) == [], seed
        assert list(wrong_bounds(by_number(solution.bounds), best)) == [], seed
        assert solution.outcome is not Outcome.PROVED or worth(asked, solution) == best, seed


def test_best_fit_places_no_gang_across_domains() -> None:
    for seed in range(1, 201):
        asked = problem(seed, with_rules=seed % 2 == 0)
        assert faults(asked, BestFit().solve(asked, AMPLE_BUDGET)) == [], seed
