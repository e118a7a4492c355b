"""However many shapes wait: the work is counted, the answer is good, and the bound holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulp import LpProblem

from tutti.strategies import shape_demand as wanting
from tutti.strategies import work as counted_work
from tutti.strategies.best_fit import best_fit
from tutti.strategies.checks import is_sound, possible, shape_demand_of, worth
from tutti.strategies.ilp import levels, patterns, strategy, trimming
from tutti.strategies.ilp.engine import ATTEMPTS, WITHOUT_CUTS, Answer, Cbc, SolverLimits
from tutti.strategies.ilp.exchange import Exchange
from tutti.strategies.ilp.levels import TOO_MANY, TOO_RICH
from tutti.strategies.ilp.patterns import node_classes
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import (
    Budget,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    SameDomain,
    admitted_value,
)
from tutti.strategies.shape_demand import ShapeDemand, alone, blocks, condensed
from tutti.strategies.work import CALL, CELLS_PER_SECOND, Work

from .generators import best_by_search, gang, grid, problem_of, problems

BUDGET = Budget()
some = settings(max_examples=60, deadline=None, derandomize=True)


def plain_pods(pods: int, nodes: int, seed: int = 1) -> Problem:
    """Pods without a gang, no two alike, and nodes of which no two have the same room."""
    chance = Random(seed)
    free = [
        [32_000 - chance.randint(1, 12_000), 128_000 - chance.randint(1, 40_000), 110]
        for _ in range(nodes)
    ]
    asks = [[chance.randint(500, 8_000), chance.randint(500, 60_000), 1] for _ in range(pods)]
    shares = [max(cpu / 32_000, memory / 128_000) for cpu, memory, _ in asks]
    demands = [gang(1, i, value=round(100_000 * share)) for i, share in enumerate(shares)]
    return problem_of(free, asks, *demands)


@contextmanager
def few_fillings() -> Iterator[None]:
    """Make nodes too rich that could be listed, and too many to be counted one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "MOST_PER_NODE", 2)
        patch.setattr(patterns, "FEW_NODES", 1)
        yield


class CountingCbc(Cbc):
    """An engine that knows how often it was asked."""

    runs = 0

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Run, and count it."""
        self.runs += 1
        return super().run(program, effort, relaxed=relaxed)


@pytest.fixture
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no clock end a search, which would end it sooner on a slow machine."""
    for module in (counted_work, strategy, levels):
        monkeypatch.setattr(module, "monotonic", lambda: 0.0)


@pytest.mark.usefixtures("no_clock")
@pytest.mark.parametrize(("pods", "nodes"), [(400, 50), (1000, 100)])
def test_plain_pods_of_all_sizes_come_close_to_the_bound(pods: int, nodes: int) -> None:
    problem, engine = plain_pods(pods, nodes), CountingCbc()
    solution = IlpStrategy(engine).solve(problem, BUDGET)
    assert is_sound(problem, solution.shares)
    ((_, value),), ((_, bound),) = admitted_value(problem, solution), solution.bounds
    assert value <= bound <= 1.01 * value
    assert solution.detail.startswith(TOO_RICH)
    assert engine.runs <= 2  # nothing is searched that can prove nothing


class RecordingCbc(Cbc):
    """An engine that knows how it was asked to search for whole numbers."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        super().__init__()
        self.attempts: list[int] = []

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Run, and record the attempt."""
        if not relaxed:
            self.attempts.append(effort.attempt)
        return super().run(program, effort, relaxed=relaxed)


@pytest.mark.usefixtures("no_clock")
def test_the_engine_adds_no_cuts_to_a_program_that_hardly_proves_anything() -> None:
    problem, few_nodes = gangs_on_nodes_short_of_cpu(400, 100), Budget(seconds=30, nodes=20)
    engine = RecordingCbc()
    solution = IlpStrategy(engine).solve(problem, few_nodes)
    assert ATTEMPTS[WITHOUT_CUTS] == ("-cuts", "off")
    assert set(engine.attempts) == {WITHOUT_CUTS}
    ((_, value),), ((_, bound),) = admitted_value(problem, solution), solution.bounds
    assert value <= bound <= 1.01 * value
    engine = RecordingCbc()
    IlpStrategy(engine).solve(singles_of_three_resources(14), few_nodes)
    assert engine.attempts[0] == 0


@pytest.mark.usefixtures("no_clock")
def test_programs_of_required_domains_are_searched_with_cuts_first() -> None:
    """In such programs cuts prove bounds."""
    problem = gangs_on_nodes_short_of_cpu(80, 100)
    racks, in_rack = np.arange(100, dtype=np.intp) // 50, (SameDomain(0, (0,)),)
    demands = tuple(replace(demand, same_domain=in_rack) for demand in problem.demands)
    engine = RecordingCbc()
    in_racks = replace(problem, demands=demands, domains=(racks,))
    IlpStrategy(engine).solve(in_racks, Budget(seconds=30, nodes=20))
    assert engine.attempts[0] == 0


@pytest.mark.usefixtures("no_clock")
def test_for_a_gang_that_is_alone_the_engine_adds_cuts() -> None:
    chance = Random(35)
    free = [[chance.randint(32, 35), chance.randint(64, 70)] for _ in range(60)]
    asks = [[chance.randint(5, 17), chance.randint(8, 35)] for _ in range(40)]
    parts = tuple(Part(shape, 0, 4) for shape in range(40))
    engine = RecordingCbc()
    alone = problem_of(free, asks, Demand(160, parts, (0,), DemandLevel(0), 160))
    IlpStrategy(engine).solve(alone, Budget(seconds=30, nodes=20))
    assert engine.attempts[:1] == [0]


class FruitlessCbc(Cbc):
    """An engine that solves relaxations and finds no answer in whole numbers."""

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Run relaxations alone."""
        if relaxed:
            return super().run(program, effort, relaxed=True)
        return Answer(Outcome.BUDGET_EXHAUSTED, {})


def gangs_on_nodes_short_of_cpu(gangs: int, nodes: int, seed: int = 1) -> Problem:
    """Gangs of many shapes, a quarter of them with GPUs; CPU is scarce, and GPUs are worth most."""
    chance = Random(seed)
    free = [[chance.randint(20_000, 90_000), 8, 110] for _ in range(nodes)]
    asks = [[chance.randint(500, 20_000), 2 ** chance.randint(0, 3), 1] for _ in range(gangs // 4)]
    asks += [[chance.randint(500, 20_000), 0, 1] for _ in range(gangs - len(asks))]
    cpu = sum(room for room, _, _ in free)
    demands = []
    for shape, (milli, gpus, _) in enumerate(asks):
        need = 2 ** chance.randint(1, 5)
        share = max(milli / cpu, gpus / (8 * nodes))
        demands.append(gang(need, shape, value=round(1e6 * need * share)))
    return problem_of(free, asks, *demands)


@pytest.mark.usefixtures("no_clock")
@pytest.mark.parametrize("seed", range(1, 6))
def test_gangs_come_close_to_the_bound_without_an_answer_of_the_engine(seed: int) -> None:
    problem = gangs_on_nodes_short_of_cpu(400, 200, seed)
    solution = IlpStrategy(FruitlessCbc()).solve(problem, BUDGET)
    assert is_sound(problem, solution.shares)
    ((_, value),), ((_, bound),) = admitted_value(problem, solution), solution.bounds
    assert value <= bound <= 1.05 * value
    ((_, greedy),) = worth(problem, best_fit(problem))
    assert bound > 1.1 * greedy


def test_gangs_of_higher_levels_stay_where_gangs_are_placed_by_price() -> None:
    problem = gangs_on_nodes_short_of_cpu(120, 40)
    demands = tuple(
        replace(demand, level=DemandLevel(index % 3))
        for index, demand in enumerate(problem.demands)
    )
    problem = replace(problem, demands=demands)
    solution = IlpStrategy(FruitlessCbc()).solve(problem, BUDGET)
    assert is_sound(problem, solution.shares)
    bounds = dict(solution.bounds)
    for level, value in admitted_value(problem, solution):
        assert value <= bounds[level]
    assert list(admitted_value(problem, solution)) >= list(worth(problem, best_fit(problem)))


def singles_of_three_resources(seed: int) -> Problem:
    """More pods without a gang than the nodes hold; CPU, memory and GPUs run out by turns."""
    chance = Random(seed)
    free = [
        [chance.choice([80, 160, 320]), chance.choice([160, 640]), chance.choice([0, 4, 8])]
        for _ in range(6)
    ]
    asks = [
        [chance.randrange(10, 90), chance.randrange(10, 200), chance.choice([0, 0, 1, 2])]
        for _ in range(60)
    ]
    values = [1_000 * max(cpu // 9, memory // 20, 5 * gpus) for cpu, memory, gpus in asks]
    return problem_of(free, asks, *(gang(1, i, value=value) for i, value in enumerate(values)))


@pytest.mark.parametrize("seed", [14, 25, 30])
def test_exchanges_begin_again_at_the_answer_by_price_if_they_end_far_from_the_bound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = singles_of_three_resources(seed)
    with few_fillings():
        ((_, value),) = admitted_value(problem, IlpStrategy(FruitlessCbc()).solve(problem, BUDGET))
        monkeypatch.setattr(levels, "FAR", 1.0)
        ((_, once),) = admitted_value(problem, IlpStrategy(FruitlessCbc()).solve(problem, BUDGET))
    assert value > once


@pytest.mark.parametrize(
    ("pods", "nodes", "seconds"), [(1000, 100, 30), (1000, 100, 1), (300, 100, 0.01)]
)
def test_the_work_of_listing_fillings_ends_with_the_budget(
    pods: int, nodes: int, seconds: float
) -> None:
    problem = plain_pods(pods, nodes)
    competing = shape_demand_of(problem, possible(problem))
    work = Work(seconds * CELLS_PER_SECOND)
    classes = node_classes(problem.free, problem.allowed, competing, work)
    table = problem.free.size * pods  # the largest step: all shapes on all nodes
    assert work.spent <= seconds * CELLS_PER_SECOND + 3 * table
    assert sorted(n for cls in classes for n in cls.nodes.tolist()) == list(range(nodes))


def test_shapes_that_share_no_node_with_others_cost_no_more_each_the_more_there_are() -> None:
    def spent(racks: int) -> float:
        free, asks = [[8]] * racks, [[n % 3 + 2] for n in range(2 * racks)]
        problem = problem_of(free, asks, *(gang(2, shape) for shape in range(2 * racks)))
        own = np.arange(2 * racks)[:, None] // 2 == np.arange(racks)
        work = Work()
        node_classes(problem.free, own, shape_demand_of(problem, range(2 * racks)), work)
        return work.spent

    assert spent(80) <= 2.1 * spent(40)


def test_without_any_work_left_nodes_are_counted_together_by_where_shapes_may_run() -> None:
    asks = grid([[2], [3]])
    competing = ShapeDemand(np.arange(2), asks, np.array([9, 9]))
    allowed = np.array([[True, True, True, False], [True, True, False, True]])
    classes = node_classes(grid([[6], [7], [6], [9]]), allowed, competing, Work(0))
    assert [cls.nodes.tolist() for cls in classes] == [[0, 1], [2], [3]]
    assert [cls.room.tolist() for cls in classes] == [[13], [6], [9]]
    assert [cls.most.tolist() for cls in classes] == [[6, 4], [3, 0], [0, 3]]


def test_far_too_many_rich_nodes_are_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 1)
    monkeypatch.setattr(patterns, "FEW_NODES", 0)
    competing = ShapeDemand(np.arange(3), grid([[4], [3], [2]]), np.array([9, 9, 9]))
    free, allowed = grid([[8], [9], [2]]), np.ones((3, 3), dtype=np.bool_)
    monkeypatch.setattr(patterns, "MOST_COUNTS", 4)
    classes = node_classes(free, allowed, competing)
    assert [cls.nodes.tolist() for cls in classes] == [[0, 1], [2]]
    # By where shapes may run there would be two.
    allowed = np.array([[True, True, True], [True, True, True], [True, False, True]])
    monkeypatch.setattr(patterns, "MOST_COUNTS", 3)
    (one, *_) = (cls for cls in node_classes(free, allowed, competing) if cls.patterns is None)
    assert (one.nodes.tolist(), one.room.tolist(), one.most.tolist()) == ([0, 1], [17], [4, 5, 4])


def test_few_nodes_of_many_shapes_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PER_NODE", 1)
    monkeypatch.setattr(patterns, "MOST_COUNTS", 3)
    competing = ShapeDemand(np.arange(2), grid([[4], [3]]), np.array([9, 9]))
    (one,) = node_classes(grid([[8], [8]]), np.ones((2, 2), dtype=np.bool_), competing)
    assert (one.nodes.tolist(), one.room.tolist(), one.most.tolist()) == ([0, 1], [16], [4, 4])


@st.composite
def proportional(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """Room, and requests in which some resources are multiples of others."""
    nodes, shapes = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    base = [[draw(st.integers(0, 3)) for _ in range(2)] for _ in range(shapes)]
    times = [(draw(st.integers(0, 1)), draw(st.integers(1, 3))) for _ in range(4)]
    asks = [[row[of] * k for of, k in times] for row in base]
    free = [[draw(st.integers(-1, 9)) for _ in times] for _ in range(nodes)]
    return free, asks


@given(proportional())
@some
def test_resources_in_the_same_proportions_are_one_and_nothing_is_lost(
    made: tuple[list[list[int]], list[list[int]]],
) -> None:
    free, asks = grid(made[0]), grid(made[1])
    competing = ShapeDemand(np.arange(len(asks)), asks, np.full(len(asks), 3))
    allowed = np.ones((len(asks), len(free)), dtype=np.bool_)
    room, fewer = condensed(free, competing)
    assert fewer.requests.shape[1] == room.shape[1] <= 2
    before = node_classes(free, allowed, competing)
    after = node_classes(room, allowed, fewer)

    def listed(classes: object) -> list[object]:
        return [
            (cls.nodes.tolist(), {tuple(row) for row in cls.patterns.tolist()})
            for cls in classes  # type: ignore[attr-defined]
        ]

    assert listed(before) == listed(after)


def test_the_host_ports_of_one_pod_are_one_resource() -> None:
    ports = 500
    asks = [[1, 0, *[0] * ports], [2, 1, *[1] * ports], [1, 1, *[0] * ports]]
    competing = ShapeDemand(np.arange(3), grid(asks), np.array([5, 1, 5]))
    free = grid([[8, 8, *[1] * ports], [8, 8, *[1] * (ports - 1), 0]])
    room, fewer = condensed(free, competing)
    assert fewer.requests.shape == (3, 3)
    assert room.tolist() == [[8, 8, 1], [8, 8, 0]]


def test_nobody_who_asks_for_anything_leaves_one_resource() -> None:
    competing = ShapeDemand(np.arange(1), grid([[0, 0]]), np.array([5]))
    room, fewer = condensed(grid([[1, 2]]), competing)
    assert (room.tolist(), fewer.requests.tolist()) == ([[1]], [[0]])


def test_many_resources_are_not_looked_at_two_by_two(monkeypatch: pytest.MonkeyPatch) -> None:
    competing = ShapeDemand(np.arange(2), grid([[4, 1], [3, 1]]), np.array([9, 9]))
    room = grid([[8, 10]])
    assert trimming.trimmed(room, competing, Work())[0].tolist() == [[8, 2]]
    monkeypatch.setattr(trimming, "MOST_PAIRS", 1)
    assert trimming.trimmed(room, competing, Work())[0].tolist() == [[8, 4]]


def test_without_work_left_room_is_not_rounded() -> None:
    competing = ShapeDemand(np.arange(2), grid([[4], [7]]), np.array([9, 9]))
    assert trimming.trimmed(grid([[13]]), competing, Work())[0].tolist() == [[12]]
    assert trimming.trimmed(grid([[13]]), competing, Work(0))[0].tolist() == [[13]]


def test_what_is_beyond_exact_sums_is_left_alone() -> None:
    huge, rows = 2**50, 16
    competing = ShapeDemand(
        np.arange(rows), grid([[huge // 2 + n] for n in range(rows)]), np.full(16, 9)
    )
    room, _ = trimming.trimmed(grid([[huge - 1]]), competing, Work())
    assert room.tolist() == [[huge - 1]]


def test_tables_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanting, "MOST_CELLS", 10)
    assert [(part.start, part.stop) for part in blocks(5, 4)] == [(0, 2), (2, 4), (4, 5)]
    assert list(blocks(0, 4)) == []


@given(problems())
@some
def test_alone_is_how_many_of_each_shape_fit(problem: Problem) -> None:
    most = np.full(len(problem.requests), 7)
    free = problem.free.clip(0)
    counts = alone(free, ShapeDemand(np.arange(len(most)), problem.requests, most))
    for node, room in enumerate(free.tolist()):
        for row, ask in enumerate(problem.requests.tolist()):
            fits = [have // n for have, n in zip(room, ask, strict=True) if n]
            assert counts[node, row] == min([7, *fits])


@st.composite
def many_shapes(draw: st.DrawFn) -> Problem:
    """Four to nine single pods or pairs of two levels on two or three nodes, no two alike."""
    chance = Random(draw(st.integers(0, 2**16)))
    nodes, shapes = draw(st.integers(2, 3)), draw(st.integers(4, 9))
    free = [[chance.randint(4, 12), chance.randint(4, 12)] for _ in range(nodes)]
    asks = [[chance.randint(1, 6), chance.randint(0, 6)] for _ in range(shapes)]
    demands = [
        Demand(
            need,
            (Part(shape, 0, need),),
            (0,),
            DemandLevel(chance.randint(0, 1)),
            chance.randint(1, 30),
        )
        for shape in range(shapes)
        for need in [1 if chance.random() < 0.8 else 2]
    ]
    drawn = problem_of(free, asks, *sorted(demands, key=lambda each: -each.level.priority))
    drawn.allowed[:] = [[chance.random() < 0.9 for _ in range(nodes)] for _ in range(shapes)]
    return drawn


@given(many_shapes())
@some
def test_exchanges_are_sound_and_bounds_hold(problem: Problem) -> None:
    with few_fillings():
        solution = IlpStrategy().solve(problem, BUDGET)
    assert is_sound(problem, solution.shares)
    best, found = best_by_search(problem), list(admitted_value(problem, solution))
    greedy = best_fit(problem)
    assert worth(problem, greedy) <= found <= best
    assert solution.outcome is not Outcome.PROVED or found == best
    assert solution.bounds[0][1] >= best[0][1]
    with few_fillings():
        assert IlpStrategy().solve(problem, BUDGET) == solution


def exchange(problem: Problem, level: int = 0) -> Exchange:
    """Exchanges that start from best fit's answer, at no price."""
    return Exchange(problem, possible(problem), DemandLevel(level), best_fit(problem), {})


def test_two_come_for_one_who_leaves() -> None:
    problem = problem_of([[8]], [[5], [4], [3]], *(gang(1, n, value=4 - n % 2) for n in range(3)))
    swaps = exchange(problem)
    swaps.run(100, Work())
    assert [bool(shares) for shares in swaps.shares()] == [True, False, True]
    problem = problem_of([[7]], [[5], [4], [3]], *(gang(1, n, value=3) for n in range(3)))
    swaps = exchange(problem)
    swaps.run(100, Work())
    assert [bool(shares) for shares in swaps.shares()] == [False, True, True]


def test_a_node_that_lacks_a_resource_takes_members_that_request_none_of_it() -> None:
    singles = [gang(1, 0, value=3), gang(1, 1, value=5), gang(1, 2, value=9)]
    problem = problem_of([[-3, 5]], [[0, 4], [0, 5], [1, 1]], *singles)
    swaps = exchange(problem)
    swaps.run(100, Work())
    assert [bool(shares) for shares in swaps.shares()] == [False, True, False]


def test_exchanges_leave_higher_levels_alone_and_lower_ones_out() -> None:
    singles = [gang(1, 0, level=2, value=1), gang(1, 1, value=1), gang(1, 2, level=-2, value=99)]
    problem = problem_of([[6]], [[3], [1], [2], [3]], *singles, gang(1, 3, value=5))
    swaps = exchange(problem)
    swaps.run(100, Work())
    assert [bool(shares) for shares in swaps.shares()] == [True, False, False, True]


def test_exchanges_end_when_enough_is_gained_or_no_work_is_left() -> None:
    problem = plain_pods(60, 3)
    for enough, work in ((0, Work()), (100, Work(0))):
        swaps = exchange(problem)
        swaps.run(enough, work)
        assert swaps.shares() == best_fit(problem)
    work = Work(100_000)
    exchange(problem).run(10**9, work)
    table = 5_000 * 3
    assert 100_000 <= work.spent <= 100_000 + 200 * (CALL + table)


def test_the_engine_is_asked_for_so_many_levels_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(levels, "MOST_LEVELS", 2)
    engine = CountingCbc()
    gangs = [gang(n, level=level) for level in range(6, 0, -1) for n in (3, 2, 2)]
    solution = IlpStrategy(engine).solve(problem_of([[4]], [[1]], *gangs), BUDGET)
    assert engine.runs <= 4
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert TOO_MANY in solution.detail
    assert [value for _, value in admitted_value(problem_of([[4]], [[1]], *gangs), solution)] == [
        4,
        *[0] * 5,
    ]
    assert solution.bounds[-1] == (DemandLevel(1), 7)


def test_work_ends_with_the_clock() -> None:
    assert Work(until=0).is_over
    assert not Work().is_over
    assert Work.within(Budget(seconds=2), 1e12).part(0.5).cells == CELLS_PER_SECOND
