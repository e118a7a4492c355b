"""The exact strategy under rules between members, and what it says where it proves nothing."""

from dataclasses import replace

import numpy as np
import pytest
from pulp import LpProblem

from tutti.strategies.best_fit import BestFit
from tutti.strategies.checks import is_sound
from tutti.strategies.ilp.engine import Answer, Cbc, SolverLimits
from tutti.strategies.ilp.inter_pod_search import MOST_PLACES, TOO_LARGE
from tutti.strategies.ilp.levels import TOO_COARSE
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import (
    Affinity,
    AntiAffinity,
    Budget,
    EvenSpread,
    Outcome,
    Placed,
    Problem,
    admitted_value,
)

from ....conformance.oracle.case import by_number, case_of
from ....conformance.oracle.optimum import optimum
from ..generators import gang, problem_of
from ..test_best_fit_inter_pod import domain_count, with_rules

BUDGET = Budget()

# Greedily the first two take a zone each, and nobody else may; two of the second kind are worth 6.
SHUNNED = with_rules(
    problem_of([[4], [4]], [[1], [1]], gang(1, value=1), *[gang(2, 1, value=3)] * 2),
    AntiAffinity(0, 0),
    domain_counts=(domain_count([0, 0], [0, 1]),),
)
# Nobody is there whom they have to be near to.
LONELY = with_rules(
    problem_of([[4]], [[1]], gang(2)),
    Affinity(0, (0,), may_be_first=False),
    domain_counts=(domain_count([0], [0]),),
)


def values(problem: Problem, strategy: IlpStrategy | BestFit | None = None) -> list[int]:
    """What is admitted, level by level."""
    solution = (strategy or IlpStrategy()).solve(problem, BUDGET)
    assert is_sound(problem, solution.shares)
    return [value for _, value in admitted_value(problem, solution)]


def test_who_shuns_others_makes_way_for_more() -> None:
    assert values(SHUNNED, BestFit()) == [1]
    assert values(SHUNNED) == [6]


def test_what_no_rule_allows_is_proved_impossible() -> None:
    solution = IlpStrategy().solve(LONELY, BUDGET)
    assert (solution.outcome, solution.shares) == (Outcome.PROVED, ((),))
    assert by_number(solution.bounds) == [(0, 0)]


def test_a_lower_priority_may_bring_those_whom_a_higher_one_needs() -> None:
    problem = with_rules(
        problem_of([[3], [3]], [[1], [1]], gang(2, 0, 1), gang(3, 1, 0), gang(1, 1, 0)),
        Affinity(0, (0,), may_be_first=False),
        domain_counts=(domain_count([0, 1], [0, 1]),),
    )
    assert values(problem) == [2, 4]


def test_a_level_that_rules_held_back_leaves_room_for_the_next() -> None:
    # As if there were no rules, the first level would take it all.
    first = [gang(2, 0, 1), gang(2, 0, 1)]
    problem = with_rules(
        problem_of([[4]], [[1], [1]], *first, gang(2, 1, 0), gang(4, 1, 0)),
        EvenSpread(0, 0, 2, from_zero=True),
        domain_counts=(domain_count([0], [1, 0]),),
    )
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert by_number(solution.bounds) == [(1, 2), (0, 2)]


def test_without_resources_rules_still_hold() -> None:
    problem = with_rules(
        Problem(
            np.zeros((3, 0), np.int64),
            np.zeros((1, 0), np.int64),
            np.ones((1, 3), bool),
            (gang(2), gang(2), gang(4)),
        ),
        AntiAffinity(0, 0),
        domain_counts=(domain_count([0, 1, 2], [1]),),
    )
    assert values(problem) == [2]


def test_the_finest_amounts_are_added_up_exactly() -> None:
    most = 2**49
    problem = with_rules(
        problem_of([[most], [most]], [[most], [1]], gang(2), gang(1, 1, value=1), gang(2, 1)),
        AntiAffinity(1, 0),
        domain_counts=(domain_count([0, 1], [0, 1]),),
    )
    assert values(problem, BestFit()) == [2]
    assert values(replace(problem, demands=problem.demands[1:])) == [2]
    assert values(problem) == [2]


def test_a_spread_that_allows_no_difference_admits_nobody_whom_it_counts() -> None:
    problem = with_rules(
        problem_of([[4], [4]], [[1]], gang(2)),
        EvenSpread(0, 0, 0),
        domain_counts=(domain_count([0, 1], [1]),),
    )
    assert IlpStrategy().solve(problem, BUDGET).outcome is Outcome.PROVED
    assert values(problem) == [0]


@pytest.mark.parametrize(
    ("free", "worth"), [([[1], [1]], 2), ([[2], [0]], 2), ([[0], [2]], 0), ([[1], [0]], 1)]
)
def test_who_was_promised_a_node_as_the_first_gets_company_or_stays_alone(
    free: list[list[int]], worth: int
) -> None:
    problem = with_rules(
        problem_of(free, [[1], [1]], gang(1, 1), gang(1, 1)),
        Affinity(0, (0,), may_be_first=True),
        domain_counts=(domain_count([0, 1], [1, 1], [1, 0]),),
    )
    problem = replace(problem, rules=replace(problem.rules, reserved=(Placed(0, 0),)))
    assert values(problem, BestFit()) == values(problem) == [worth]
    assert optimum(case_of(problem)) == ((0, worth),)


def test_who_was_promised_a_node_and_has_company_holds_nobody_back() -> None:
    # Of the first shape nobody may start; so the program with all rules is what finds the second.
    problem = with_rules(
        problem_of([[0], [4]], [[1], [1]], gang(2, value=9), gang(2, 1)),
        *(Affinity(0, (0,), may_be_first=False), Affinity(1, (1,), may_be_first=True)),
        domain_counts=(domain_count([0, 1], [0, 0], [0, 0]), domain_count([0, 0], [0, 1], [2])),
    )
    problem = replace(problem, rules=replace(problem.rules, reserved=(Placed(1, 0),)))
    assert values(problem) == [2]
    assert optimum(case_of(problem)) == ((0, 2),)


@pytest.mark.parametrize("shape", [0, 1])
def test_who_was_promised_a_node_stays_even(shape: int) -> None:
    problem = with_rules(
        problem_of([[1], [9]], [[1], [1]], *[gang(1, 1)] * 4),
        EvenSpread(shape, 0, 1),
        domain_counts=(domain_count([0, 1], [1, 1], [1, 1]),),
    )
    problem = replace(problem, rules=replace(problem.rules, reserved=(Placed(shape, 1),)))
    full = replace(problem, free=np.array([[0], [9]]))
    assert values(problem, BestFit()) == values(problem) == [3]
    assert values(full, BestFit()) == values(full) == [1]


def test_members_of_one_gang_may_be_near_one_another_in_two_places() -> None:
    problem = with_rules(
        problem_of([[2], [2]], [[1]], gang(4)),
        Affinity(0, (0,), may_be_first=True),
        domain_counts=(domain_count([0, 1], [1]),),
    )
    assert values(problem) == [4]


def test_nobody_is_near_to_those_on_nodes_without_a_domain() -> None:
    # Who is needed in the second zone may run on the third node alone, which is in none.
    problem = with_rules(
        problem_of([[1], [4], [4]], [[1]] * 3, gang(3), gang(1, 1), gang(1, 2), gang(2, 2)),
        Affinity(0, (0,), may_be_first=False),
        AntiAffinity(1, 0),
        EvenSpread(2, 1, 50),
        domain_counts=(
            domain_count([0, 1, -1], [0, 1, 0], there=[1, 0]),
            domain_count([0, 1, -1], [0, 0, 1]),
        ),
    )
    allowed = problem.allowed.copy()
    allowed[1, :2] = False
    assert values(problem) == [5]
    assert values(replace(problem, allowed=allowed)) == [4]


def test_of_shapes_that_nobody_asks_for_no_rule_is_made() -> None:
    rules = (AntiAffinity(1, 0), Affinity(1, (0,), may_be_first=True), EvenSpread(1, 0, 1))
    problem = with_rules(
        problem_of([[3]], [[1], [1]], gang(2), gang(3)),
        *rules,
        domain_counts=(domain_count([0], [1, 1]),),
    )
    assert values(problem) == [3]


def test_too_many_places_leave_the_bound_that_there_is_without_rules() -> None:
    nodes = MOST_PLACES + 1
    vast = with_rules(
        problem_of([[4]] * nodes, [[1]], gang(2), gang(3)),
        Affinity(0, (0,), may_be_first=False),
        domain_counts=(domain_count([0] * nodes, [0]),),
    )
    solution = IlpStrategy().solve(vast, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert TOO_LARGE in solution.detail
    assert by_number(solution.bounds) == [(0, 5)]
    assert not any(solution.shares)


def test_what_a_higher_priority_got_under_rules_is_kept() -> None:
    upper = [gang(1, 0, 1, 1), gang(2, 1, 1, 3), gang(2, 1, 1, 3)]
    lower = [gang(1, 0, 0, 9), gang(1, 2, 0, 1)]
    problem = with_rules(
        problem_of([[4], [4]], [[1], [1], [9]], *upper, *lower),
        AntiAffinity(0, 0),
        domain_counts=(domain_count([0, 0], [0, 1, 0]),),
    )
    roomy = replace(problem, free=np.array([[4], [9]]))
    assert values(problem, BestFit()) == [1, 9]
    assert values(problem) == [6, 0]
    assert values(roomy) == [6, 1]


class FailsUnderRules(Cbc):
    """An engine that breaks at the flags of a program with rules."""

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Fail where there is a flag."""
        if any(variable.name.startswith("p") for variable in program.variables()):
            return Answer(Outcome.FAILED, {}, "it broke")
        return super().run(program, effort, relaxed=relaxed)


class Saying(Cbc):
    """An engine that solves relaxations, and at whole numbers of the ruled program says this."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Answer what was given, with every variable the same."""
        if relaxed:
            return super().run(program, effort, relaxed=True)
        every = self._answer.values.get("all")
        names = [variable.name for variable in program.variables()]
        return replace(self._answer, values={} if every is None else dict.fromkeys(names, every))


@pytest.mark.parametrize(
    ("answer", "bound", "word"),
    [
        (Answer(Outcome.PROVED, {"all": 0.5}), 2, TOO_COARSE),
        (Answer(Outcome.PROVED, {"all": 1.0}), 2, TOO_COARSE),
        (Answer(Outcome.BUDGET_EXHAUSTED, {}), 2, "used up its budget"),
        (Answer(Outcome.BUDGET_EXHAUSTED, {}, bound=1.2), 2, "used up its budget"),
        (Answer(Outcome.BUDGET_EXHAUSTED, {}, bound=0.0), 0, ""),
    ],
)
def test_an_answer_that_cannot_be_carried_out_is_not_believed(
    answer: Answer, bound: int, word: str
) -> None:
    solution = IlpStrategy(Saying(answer)).solve(LONELY, BUDGET)
    assert by_number(solution.bounds) == [(0, bound)]
    assert word in solution.detail
    assert (solution.outcome is Outcome.PROVED) is not bool(word)
    assert not any(solution.shares)


def test_an_optimum_below_a_known_answer_is_not_believed() -> None:
    nobody = Saying(Answer(Outcome.PROVED, {"all": 0.0}))
    solution = IlpStrategy(nobody).solve(SHUNNED, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert TOO_COARSE in solution.detail
    assert by_number(solution.bounds) == [(0, 7)]
    assert values(SHUNNED, IlpStrategy(nobody)) == [6]


def test_an_engine_that_breaks_under_rules_is_a_failure_that_says_so() -> None:
    answer = Answer(Outcome.FAILED, {}, "it broke")
    solution = IlpStrategy(Saying(answer)).solve(LONELY, BUDGET)
    assert (solution.outcome, solution.detail) == (Outcome.FAILED, "it broke")
    later = IlpStrategy(FailsUnderRules()).solve(LONELY, BUDGET)
    assert (later.outcome, later.detail) == (Outcome.FAILED, "it broke")
    missing = IlpStrategy(Cbc("/nowhere/cbc")).solve(LONELY, BUDGET)
    assert missing.outcome is Outcome.FAILED
    assert not any(missing.shares)
