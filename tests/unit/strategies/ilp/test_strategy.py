"""That ilp is exact and joint, and that it says so only when it is."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulp import LpProblem, constants

from tutti.strategies import checks
from tutti.strategies.best_fit import BestFit
from tutti.strategies.checks import is_sound
from tutti.strategies.ilp import columns, levels, patterns
from tutti.strategies.ilp.engine import OUTCOMES, Answer, Cbc, Highs, SolverLimits
from tutti.strategies.ilp.levels import TOO_COARSE, TOO_RICH
from tutti.strategies.ilp.program import Program
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import (
    Budget,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    admitted_value,
)

from ....conformance.oracle.case import by_number
from ..generators import best_by_search, gang, problem_of, problems

BUDGET = Budget()
few = settings(max_examples=50, deadline=None, derandomize=True)
loose = settings(few, suppress_health_check=[HealthCheck.function_scoped_fixture])

# First come first served admits 3 + 3 of 8; jointly 4 + 4 fit.
JOINT = problem_of([[8]], [[1]], gang(3), gang(3), gang(4), gang(4))

CHOICES = problem_of(
    [[8], [15], [7], [10]], [[2], [3], [5]], gang(2, 1), gang(5, 1), gang(5), gang(2, 1), gang(2, 1)
)

# A line that writes the solution file, whose path is CBC's last argument, and what to write there.
WRITE = 'for last; do :; done; printf > "$last"'
LAST_TWO = "\\n1 X0000001 2 0\\n"

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
    mixed = Demand(6, parts, (1, 2, 1, 2), DemandLevel(0), 1)
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


def _best_by_sums(problem: Problem, room: int) -> list[tuple[DemandLevel, int]]:
    """The best admission where only the sum of members counts."""
    best: list[tuple[DemandLevel, int]] = []
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


@given(problem=problems())
@few
def test_highs_finds_the_same_values(problem: Problem) -> None:
    solution = IlpStrategy(Highs()).solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(problem, solution)) == best_by_search(problem)
    assert list(solution.bounds) == best_by_search(problem)


@pytest.fixture
def many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any choice of patterns too large to be taken in whole."""
    monkeypatch.setattr(columns, "FEW", 0)


@pytest.fixture
def rich_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every node that leaves a choice too rich for its patterns to be listed."""
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 1)


@pytest.mark.usefixtures("many_patterns")
@given(problem=problems())
@loose
def test_patterns_that_come_in_as_prices_ask_for_them_lose_nothing(problem: Problem) -> None:
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(problem, solution)) == best_by_search(problem)


@pytest.mark.usefixtures("rich_nodes")
@given(problem=problems())
@loose
def test_nodes_counted_one_by_one_lose_nothing(problem: Problem) -> None:
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(problem, solution)) == best_by_search(problem)


@pytest.mark.usefixtures("rich_nodes")
@given(problem=problems())
@loose
def test_nodes_counted_together_give_a_bound_and_never_a_false_proof(problem: Problem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "FEW_NODES", 0)
        patch.setattr(patterns, "MOST_COUNTS", 0)
        solution = IlpStrategy().solve(problem, BUDGET)
    assert is_sound(problem, solution.shares)
    best, found = best_by_search(problem), list(admitted_value(problem, solution))
    assert found <= best
    assert solution.outcome is not Outcome.PROVED or found == best
    assert solution.bounds[0][1] >= best[0][1]


@pytest.mark.usefixtures("rich_nodes")
def test_nodes_that_promise_more_together_than_they_hold_are_said_to_be_too_rich(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "FEW_NODES", 0)
    # A node of 5 holds a 3 and a 2, or two of 2; four of them seem to hold two of 3 and seven of 2.
    problem = problem_of([[5]] * 4, [[3], [2]], gang(2), gang(7, shape=1))
    solution = IlpStrategy().solve(problem, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert TOO_RICH in solution.detail
    assert by_number(admitted_value(problem, solution)) == [(0, 7)]
    assert by_number(solution.bounds) == [(0, 9)]


def test_too_many_patterns_for_one_program_end_without_a_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "FEW", 1)
    monkeypatch.setattr(levels, "MOST_COLUMNS", 0)
    solution = IlpStrategy().solve(CHOICES, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert TOO_RICH in solution.detail
    assert solution.bounds[0][1] >= best_by_search(CHOICES)[0][1]


MIXED = Demand(
    6, (Part(0, 0, 1), Part(1, 1, 2), Part(2, 2, 1), Part(3, 3, 2)), (1, 2, 1, 2), DemandLevel(0), 1
)
TWIN = Demand(3, (Part(0, 0, 2), Part(1, 1, 2), Part(1, 0, 2)), (1, 0), DemandLevel(0), 3)


@pytest.mark.parametrize("setting", ["plain", "many_patterns", "rich_nodes"])
@pytest.mark.parametrize(
    "problem",
    [
        problem_of([[12, 99], [12, 99]], [[6, 1], [5, 1], [4, 1], [2, 1]], MIXED),
        problem_of([[5], [6], [4]], [[2], [3]], TWIN, TWIN, TWIN, gang(1, 1), gang(1)),
    ],
    ids=["mixed", "twins"],
)
def test_what_best_fit_misses_is_found_however_nodes_are_counted(
    problem: Problem, setting: str, request: pytest.FixtureRequest
) -> None:
    if setting != "plain":
        request.getfixturevalue(setting)
    solution = IlpStrategy().solve(problem, BUDGET)
    found, greedy = admitted_value(problem, solution), BestFit().solve(problem, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(found) == best_by_search(problem) > list(admitted_value(problem, greedy))


@pytest.mark.usefixtures("many_patterns")
def test_prices_that_have_not_settled_still_give_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_ROUNDS", 1)
    solution = IlpStrategy().solve(CHOICES, BUDGET)
    assert solution.outcome is Outcome.PROVED
    assert list(admitted_value(CHOICES, solution)) == best_by_search(CHOICES)


class FailsAtWholeNumbers(Cbc):
    """An engine that solves relaxations only."""

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Fail unless whole numbers are let go of."""
        if relaxed:
            return super().run(program, effort, relaxed=True)
        return Answer(Outcome.FAILED, {}, "it broke")


def test_an_engine_that_breaks_later_is_a_failure_that_says_so() -> None:
    solution = IlpStrategy(FailsAtWholeNumbers()).solve(JOINT, BUDGET)
    assert (solution.outcome, solution.detail) == (Outcome.FAILED, "it broke")


@pytest.mark.usefixtures("rich_nodes")
def test_a_shape_that_asks_for_nothing_is_no_trouble_on_nodes_counted_as_a_whole() -> None:
    problem = problem_of([[12], [12]], [[6], [5], [4], [2], [0]], MIXED, gang(4, 4))
    solution = IlpStrategy().solve(problem, BUDGET)
    assert list(admitted_value(problem, solution)) == best_by_search(problem)


def test_prices_of_the_wrong_sign_are_no_proof() -> None:
    shape_demand = checks.shape_demand_of(JOINT, range(4))
    classes = patterns.node_classes(JOINT.free, JOINT.allowed, shape_demand)
    program = Program(JOINT, range(4), shape_demand, classes)
    assert program.aim(DemandLevel(0)) == 1
    (row,) = program.shape_rows
    assert program.bound({str(row.name): -5.0}, {}) == program.everything(DemandLevel(0)) == 14
    assert program.bound({str(row.name): 1.0}, {}) == 8


def test_highs_says_when_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulp.apis.highs_api.HiGHS.available", lambda _: False)
    solution = IlpStrategy(Highs()).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.FAILED
    assert "pip install 'highspy<1.15'" in solution.detail


@pytest.mark.parametrize("engine", [Cbc(), Highs()], ids=lambda engine: engine.name)
def test_an_engine_stops_at_its_limits(engine: Cbc | Highs) -> None:
    assert IlpStrategy(engine).solve(JOINT, Budget(seconds=0)).outcome is Outcome.BUDGET_EXHAUSTED
    nothing = engine.run(LpProblem("empty"), SolverLimits(1, seconds=0))  # type: ignore[no-untyped-call]
    assert nothing.outcome is Outcome.BUDGET_EXHAUSTED


def test_a_missing_engine_is_a_failure_that_says_so() -> None:
    solution = IlpStrategy(Cbc("/nowhere/cbc")).solve(JOINT, BUDGET)
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
    solution = IlpStrategy(Cbc(engine(script))).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.FAILED
    assert not any(solution.shares)
    assert words in solution.detail


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'Welcome'; echo 'Version: 2.10.3 '", "2.10.3"),
        ("echo nothing of the kind; exit 3", "ended with status 3"),
    ],
)
def test_cbc_says_its_version_or_why_not(engine: Engine, script: str, said: str) -> None:
    assert Cbc(engine(script)).version().startswith(said)


def test_cbc_that_hangs_has_no_version(engine: Engine) -> None:
    assert Cbc(engine("exec sleep 60")).version(seconds=0.1).startswith("could not be run: ")


def test_a_hanging_engine_is_stopped_and_best_fit_answers(engine: Engine) -> None:
    strategy = IlpStrategy(Cbc(engine("exec sleep 60"), grace_seconds=0.1 - BUDGET.seconds))
    solution = strategy.solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.shares == BestFit().solve(JOINT, BUDGET).shares
    assert "30 seconds in all" in solution.detail


@pytest.mark.parametrize("values", [(144_000_001, 144_000_042), (10**9 - 7, 10**9 + 9)])
def test_what_cbc_prints_with_six_digits_is_no_bound(values: tuple[int, int]) -> None:
    # At once out of nodes: the relaxation's value, cut to six digits, is less than the optimum.
    some = [gang(3 + n % 2, value=values[n % 2] + n) for n in range(7)]
    problem = problem_of([[5], [8], [4]], [[1]], *some)
    solution = IlpStrategy().solve(problem, Budget(nodes=0))
    assert solution.bounds[0][1] >= best_by_search(problem)[0][1]


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
    solution = IlpStrategy(Cbc(engine(f"{WRITE} '{answer}'"))).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert [bool(shares) for shares in solution.shares] == [False, False, True, True]
    assert "500 nodes" in solution.detail


def test_a_stopped_engine_without_a_solution_leaves_best_fit(engine: Engine) -> None:
    answer = "Stopped on time (no integer solution - continuous used) - objective value 8"
    solution = IlpStrategy(Cbc(engine(f"{WRITE} '{answer}'"))).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.shares == BestFit().solve(JOINT, BUDGET).shares


@pytest.mark.parametrize(
    "lines",
    [
        "\n0 X0000000 2 0\n1 X0000001 2 0",  # overfull
        "\n1 X0000001 1.5 0",  # half a gang
        "\n0 X0000000 1 0",  # less than best fit has
    ],
)
def test_a_proof_that_does_not_hold_is_not_believed(engine: Engine, lines: str) -> None:
    script = f"{WRITE} 'Optimal - objective value 14{lines}'"
    solution = IlpStrategy(Cbc(engine(script))).solve(JOINT, BUDGET)
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert TOO_COARSE in solution.detail
    assert is_sound(JOINT, solution.shares)
    greedy = BestFit().solve(JOINT, BUDGET)
    assert list(admitted_value(JOINT, solution)) >= list(admitted_value(JOINT, greedy))


def test_no_file_is_left_behind(engine: Engine, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    IlpStrategy(Cbc(engine(f'echo "$1" > {seen}; exit 1'))).solve(JOINT, BUDGET)
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
