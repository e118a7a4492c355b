"""That a bound is rounded down to what gangs can be worth together, and no further."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulp import LpProblem

from tutti.strategies.checks import worth
from tutti.strategies.ilp import levels
from tutti.strategies.ilp.engine import Answer, Cbc, SolverLimits
from tutti.strategies.ilp.levels import largest_sum
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Budget, Demand, DemandLevel, Outcome

from ..generators import gang, problem_of

some = settings(max_examples=200, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("bound", "largest"), [(39, 33), (33, 33), (32, 30), (29, 23), (2, 0), (0, 0), (-1, -1)]
)
def test_beside_a_few_odd_values_the_others_are_worth_a_multiple(bound: int, largest: int) -> None:
    assert largest_sum(bound, {10: 5, 20: 3, 3: 1}) == largest


def test_many_odd_values_or_many_values_leave_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert largest_sum(39, {10: 5, 20: 3, 3: levels.MOST_SUMS}) == 39
    assert largest_sum(39, {1: 1}) == 39
    monkeypatch.setattr(levels, "MOST_WEIGHTS", 2)
    assert largest_sum(39, {10: 5, 20: 3, 3: 1}) == 39


@given(st.dictionaries(st.integers(1, 40), st.integers(1, 3), max_size=5), st.integers(0, 200))
@some
def test_no_sum_of_weights_is_between(counts: dict[int, int], bound: int) -> None:
    sums = {0}
    for weight, count in counts.items():
        sums = {n + times * weight for n in sums for times in range(count + 1)}
    assert max(n for n in sums if n <= bound) <= largest_sum(bound, counts) <= bound


class _CountingCbc(Cbc):
    """An engine that knows how often it searched."""

    searches = 0

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Run, and count what is not relaxed."""
        self.searches += not relaxed
        return super().run(program, effort, relaxed=relaxed)


@pytest.mark.parametrize("odd", [(), (gang(1, value=3),)], ids=["alike", "one odd value"])
def test_one_gang_of_an_odd_value_costs_no_proof(odd: tuple[Demand, ...]) -> None:
    problem = problem_of([[3], [3]], [[1]], *odd, *[gang(4, value=10)] * 3)
    engine = _CountingCbc()
    solution = IlpStrategy(engine).solve(problem, Budget())
    assert solution.outcome is Outcome.PROVED
    assert worth(problem, solution.shares) == [(DemandLevel(0), 10 + 3 * len(odd))]
    assert engine.searches == 0
