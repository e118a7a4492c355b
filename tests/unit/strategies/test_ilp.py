"""That ilp is exact and joint, and that it says so only when it is."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulp import constants

from tutti.strategies.bestfit import BestFit
from tutti.strategies.ilp import OUTCOMES, TOO_COARSE, IlpStrategy
from tutti.strategies.problem import Budget, Demand, Outcome, Part, Problem, admitted_value

from .generators import best_by_search, gang, problem_of, problems

BUDGET = Budget()
few = settings(max_examples=50, deadline=None, derandomize=True)

# First come first served admits 3 + 3 of 8; jointly 4 + 4 fit.
JOINT = problem_of([[8]], [[1]], gang(3), gang(3), gang(4), gang(4))

# A line that writes the solution file, whose path is CBC's last argument, and what to write there.
WRITE = 'for last; do :; done; printf > "$last"'
LAST_TWO = "\\n2 X0000002 1 0\\n3 X0000003 1 0\\n"

Engine = Callable[[str], str]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Make an executable out of the lines of a shell script."""

    def make(script: str) -> str:
        path = tmp_path / "cbc"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


@given(problem=problems())
@few
def test_a_proved_value_is_the_best_that_exhaustive_search_finds(problem: Problem) -> None:
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(problem, solution)) == best_by_search(problem)


@given(problem=problems(values=st.integers(999_999_990, 1_000_000_000)))
@few
def test_large_values_that_differ_little_are_told_apart(problem: Problem) -> None:
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(problem, solution)) == best_by_search(problem)


def test_gangs_that_fill_the_cluster_together_win_over_those_that_came_first() -> None:
    solution = IlpStrategy().solve(JOINT, BUDGET)
    assert [bool(shares) for shares in solution.shares] == [False, False, True, True]
    assert solution.outcome is Outcome.PROVED
    assert sum(map(bool, BestFit().solve(JOINT, BUDGET).shares)) == 2


def test_a_placement_that_best_fit_misses_is_found() -> None:
    # 6 + 4 + 2 and 5 + 5 + 2 fill both nodes; one 5 beside the 6 is tighter, and spoils it.
    parts = (Part(0, 0, 1), Part(1, 1, 2), Part(2, 2, 1), Part(3, 3, 2))
    mixed = Demand(6, parts, (1, 2, 1, 2), 0, 1)
    problem = problem_of([[12], [12]], [[6], [5], [4], [2]], mixed)
    assert not BestFit().solve(problem, BUDGET).shares[0]
    assert IlpStrategy().solve(problem, BUDGET).shares[0]


def test_room_scattered_over_nodes_is_not_summed_up() -> None:
    problem = problem_of([[3], [3], [2]], [[2], [4]], gang(2, shape=1), gang(4))
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert solution.shares == ((), ())


def test_what_a_higher_priority_got_is_not_given_up_for_lower_ones() -> None:
    lower = [gang(4, level=0, value=1000) for _ in range(2)]
    upper = [gang(n, level=1) for n in (3, 3, 4, 4)]
    solution = IlpStrategy().solve(problem_of([[8]], [[1]], *upper, *lower), BUDGET)
    assert [bool(shares) for shares in solution.shares] == [False, False, True, True, False, False]


def test_the_value_of_a_higher_priority_is_kept_to_the_last_digit() -> None:
    # As one row with these weights, CBC called the second level infeasible.
    needs = [22, 28, 26, 16, 28, 29, 29, 4]
    missing = [4, 23, 28, 29, 27, 11, 21, 29]
    demands = [
        gang(need, shape=n % 2, level=-(n // 3), value=10**9 - less)
        for n, (need, less) in enumerate(zip(needs, missing, strict=True))
    ]
    problem = problem_of([[4, 9]] * 31 + [[3, 9]], [[1, 1], [1, 2]], *demands)
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(problem, solution)) == _best_by_sums(problem, room=127)


def _best_by_sums(problem: Problem, room: int) -> list[tuple[int, int]]:
    """The best admission where only the sum of members counts."""
    best: list[tuple[int, int]] = []
    for chosen in product((False, True), repeat=len(problem.demands)):
        pairs = list(zip(chosen, problem.demands, strict=True))
        if sum(demand.need for is_in, demand in pairs if is_in) <= room:
            worth = {demand.level: 0 for demand in problem.demands}
            for is_in, demand in pairs:
                worth[demand.level] += demand.value * is_in
            best = max(best, sorted(worth.items(), reverse=True))
    return best


def test_amounts_in_bytes_are_exact() -> None:
    gibi = 2**30
    problem = problem_of(
        [[512 * gibi - 1], [512 * gibi]], [[128 * gibi], [64 * gibi]], gang(8), gang(7), gang(2, 1)
    )
    solution = IlpStrategy().solve(problem, BUDGET)
    assert [bool(shares) for shares in solution.shares] == [False, True, False]
    assert solution.outcome is Outcome.PROVED


def test_a_thousand_crowded_nodes_are_answered() -> None:
    free = [[8, 8]] * 1000
    many = [gang(4, shape=n % 2) for n in range(6)]
    solution = IlpStrategy().solve(problem_of(free, [[1, 2], [2, 1]], gang(9000), *many), BUDGET)
    assert [bool(shares) for shares in solution.shares] == [False] + [True] * 6


def test_a_missing_engine_is_a_failure_that_says_so() -> None:
    solution = IlpStrategy("/nowhere/cbc").solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.FAILED
    assert not any(solution.shares)
    assert "/nowhere/cbc" in solution.detail


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 1", "status 1"),
        ("kill -9 $$", "status -9"),
        ("exit 0", "without a solution file"),
        ("echo nonsense", "without a solution file"),
        (f"{WRITE} 'not a word of sense'", "status -3"),
        (f"{WRITE} ''", "could not be read"),
        (f"{WRITE} 'Optimal - objective value 1\nnonsense'", "could not be read"),
        (f"{WRITE} 'Optimal - objective value 1\n0 X0000000 one 0'", "could not be read"),
        (f"{WRITE} '\\377\\376'", "could not be read"),
        (f"{WRITE} 'Infeasible - objective value 0'", "status -1"),
        (f"{WRITE} 'Integer infeasible - objective value 0'", "status -1"),
        (f"{WRITE} 'Unbounded - objective value 0'", "status -2"),
    ],
)
def test_a_broken_engine_is_a_failure_that_says_so(engine: Engine, script: str, words: str) -> None:
    solution = IlpStrategy(engine(script)).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.FAILED
    assert not any(solution.shares)
    assert words in solution.detail


def test_a_hanging_engine_is_stopped_and_best_fit_answers(engine: Engine) -> None:
    strategy = IlpStrategy(engine("exec sleep 60"), grace_seconds=0.1)
    solution = strategy.solve(JOINT, Budget(seconds=0.1))
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.shares == BestFit().solve(JOINT, BUDGET).shares
    assert "0.1 seconds in all" in solution.detail


def test_without_time_best_fit_answers() -> None:
    solution = IlpStrategy().solve(JOINT, Budget(seconds=0))
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.shares == BestFit().solve(JOINT, BUDGET).shares


@pytest.mark.parametrize(
    "answer",
    [
        "Stopped on time - objective value 8" + LAST_TWO,
        "Stopped on iterations - objective value 8" + LAST_TWO,
    ],
)
def test_what_the_engine_found_in_its_budget_is_used(engine: Engine, answer: str) -> None:
    solution = IlpStrategy(engine(f"{WRITE} '{answer}'")).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert [bool(shares) for shares in solution.shares] == [False, False, True, True]
    assert "20000 nodes" in solution.detail


def test_a_stopped_engine_without_a_solution_leaves_best_fit(engine: Engine) -> None:
    answer = "Stopped on time (no integer solution - continuous used) - objective value 8"
    solution = IlpStrategy(engine(f"{WRITE} '{answer}'")).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.shares == BestFit().solve(JOINT, BUDGET).shares


@pytest.mark.parametrize(
    "lines",
    [
        "\n0 X0000000 1 0\n1 X0000001 1 0\n2 X0000002 1 0\n3 X0000003 1 0",  # overfull
        "\n2 X0000002 1 0\n3 X0000003 0.5 0",  # half a gang
        "\n0 X0000000 1 0",  # less than best fit has
    ],
)
def test_a_proof_that_does_not_hold_is_not_believed(engine: Engine, lines: str) -> None:
    script = f"{WRITE} 'Optimal - objective value 14{lines}'"
    solution = IlpStrategy(engine(script)).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.detail == TOO_COARSE
    assert solution.shares == BestFit().solve(JOINT, BUDGET).shares


def test_no_file_is_left_behind(engine: Engine, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    IlpStrategy(engine(f'echo "$1" > {seen}; exit 1')).solve(JOINT, BUDGET)
    assert not Path(seen.read_text().strip()).parent.exists()


@pytest.mark.parametrize(
    "status",
    list(product(sorted(constants.LpStatus), sorted(constants.LpSolution))),
    ids=str,
)
def test_every_status_that_cbc_can_give_has_its_outcome(status: tuple[int, int]) -> None:
    expected = {
        (1, 1): Outcome.PROVED,
        (1, 2): Outcome.BUDGET_EXHAUSTED,
        (0, 0): Outcome.BUDGET_EXHAUSTED,
    }
    assert OUTCOMES.get(status, Outcome.FAILED) is expected.get(status, Outcome.FAILED)
