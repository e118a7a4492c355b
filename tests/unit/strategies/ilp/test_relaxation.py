"""That a problem becomes smaller without resources that cannot run short, and loses no answer."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pulp import LpProblem

from tutti.strategies.checks import is_sound, possible
from tutti.strategies.ilp.engine import Answer, Cbc, SolverLimits
from tutti.strategies.ilp.relaxation import without_ample
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Budget, Outcome, Problem, admitted_value

from ..generators import best_by_search, cap, gang, problem_of

some = settings(max_examples=60, deadline=None, derandomize=True)


def with_ports(pods: int, free: list[list[int]], ports: int) -> Problem:
    """Pods that request a host port each, one after the other, beside gangs without ports."""
    own = np.eye(ports, dtype=np.int64)[np.arange(pods) % ports].tolist()
    gangs = [gang(n, 0, value=10 * n) for n in (3, 5, 4)]
    singles = [gang(1, shape, value=3) for shape in range(1, pods + 1)]
    requests = [[2, *[0] * ports], *([1, *ports_of_pod] for ports_of_pod in own)]
    return problem_of(free, requests, *gangs, *singles)


def shapes_in_use(problem: Problem) -> set[int]:
    return {part.shape for demand in problem.demands for part in demand.parts}


def test_pods_that_differ_in_their_host_ports_alone_are_one_shape() -> None:
    problem = with_ports(40, [[9, *[1] * 40]] * 4, ports=40)
    reduced = without_ample(problem, possible(problem))
    assert reduced.free.tolist() == [[9]] * 4
    assert shapes_in_use(reduced) == {0, 1}
    assert reduced.allowed.all()


def test_a_port_in_use_keeps_its_pod_off_that_node() -> None:
    problem = with_ports(3, [[9, 1, 1, 1], [9, 1, 0, 1]], ports=3)
    reduced = without_ample(problem, possible(problem))
    assert reduced.free.tolist() == [[9], [9]]
    assert shapes_in_use(reduced) == {0, 1, 2}
    assert reduced.allowed[[0, 1, 2]].tolist() == [[True, True], [True, True], [True, False]]


def test_a_port_that_two_pods_request_stays_a_resource() -> None:
    problem = with_ports(4, [[9, 1, 1, 1]] * 2, ports=3)
    reduced = without_ample(problem, possible(problem))
    assert reduced.free.tolist() == [[9, 1]] * 2
    assert shapes_in_use(reduced) == {0, 1, 2}


def test_a_problem_that_would_not_become_smaller_stays_as_it_is() -> None:
    ample = problem_of([[4, 99]] * 2, [[2, 1], [3, 1]], gang(2), gang(2, 1))
    assert without_ample(ample, possible(ample)) is ample


def test_many_resources_of_one_pod_each_are_left_out() -> None:
    own = np.eye(30, dtype=np.int64).tolist()
    requests = [[shape + 1, *own[shape]] for shape in range(30)]
    problem = problem_of([[9, *[1] * 30]] * 2, requests, *(gang(1, i) for i in range(30)))
    assert without_ample(problem, possible(problem)).free.tolist() == [[9], [9]]


def test_where_nothing_runs_short_a_resource_is_left() -> None:
    problem = problem_of([[9, 9, 9]], [[0, 1, 0], [0, 0, 1]], gang(2), gang(2, 1))
    assert without_ample(problem, possible(problem)).free.shape == (1, 1)


def test_shapes_that_use_a_cap_differently_stay_two() -> None:
    problem = cap(with_ports(2, [[9, 1, 1]] * 2, ports=2), 1, 3, 4)
    problem.caps[0].amount[2] = 2
    assert shapes_in_use(without_ample(problem, possible(problem))) == {0, 1, 2}


class MeasuringCbc(Cbc):
    """An engine that knows how large its largest program was."""

    most_columns = 0

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Run, and look at the program's size."""
        self.most_columns = max(self.most_columns, len(program.variables()))
        return super().run(program, effort, relaxed=relaxed)


def test_pods_with_a_host_port_each_make_no_larger_program() -> None:
    """Each was a shape of its own: on 500 nodes that cost the proof, and left a gap of 22 %."""
    chance = Random(1)
    free = [[chance.randint(5, 9), *[1] * 400] for _ in range(12)]
    engine = MeasuringCbc()
    solution = IlpStrategy(engine).solve(with_ports(400, free, ports=400), Budget())
    assert solution.outcome is Outcome.PROVED
    assert 0 < engine.most_columns < 50


@given(st.integers(0, 2**20))
@some
def test_the_best_answer_is_found_whichever_ports_are_free(seed: int) -> None:
    chance = Random(seed)
    ports, pods = chance.randint(1, 4), chance.randint(2, 5)
    free = [
        [chance.randint(1, 7), *(chance.choice([1, 1, 0, -1]) for _ in range(ports))]
        for _ in range(chance.randint(1, 3))
    ]
    problem = with_ports(pods, free, ports)
    solution = IlpStrategy().solve(problem, Budget())
    assert solution.outcome is Outcome.PROVED
    assert is_sound(problem, solution.shares)
    assert list(admitted_value(problem, solution)) == best_by_search(problem)
