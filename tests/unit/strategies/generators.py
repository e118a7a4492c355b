"""Small random Problems, and an answer by exhaustive search that shares no code with Tutti's.

Separate from the tests because the contract suite and the exactness tests draw the same ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from random import Random

import numpy as np
from hypothesis import strategies as st

from tutti.strategies.problem import Cap, Demand, DemandLevel, Part, Problem

from ...conformance.oracle import capping, relations

Room = tuple[tuple[int, ...], ...]


def grid(rows: Sequence[Sequence[int]]) -> "np.typing.NDArray[np.int64]":
    """Rows of whole numbers as the array that a Problem wants."""
    return np.array(rows, dtype=np.int64)


def problem_of(
    free: Sequence[Sequence[int]], requests: Sequence[Sequence[int]], *demands: Demand
) -> Problem:
    """A Problem in which every shape may run everywhere."""
    allowed = np.ones((len(requests), len(free)), dtype=np.bool_)
    return Problem(grid(free), grid(requests), allowed, demands)


def cap(problem: Problem, limit: int, *demands: int, in_use: int = 0) -> Problem:
    """The problem with a cap more: on members of these demands, whatever they ask for."""
    amount = np.ones(len(problem.requests), dtype=np.int64)
    caps = (*problem.caps, Cap(frozenset(demands), amount, limit, in_use))
    return replace(problem, caps=caps)


def gang(need: int, shape: int = 0, level: int = 0, value: int | None = None) -> Demand:
    """A demand of one shape; by default it is worth its size."""
    return Demand(need, (Part(shape, 0, need),), (0,), DemandLevel(level), value or need)


@st.composite
def demands(draw: st.DrawFn, shapes: int, values: st.SearchStrategy[int]) -> Demand:
    """A demand of one to three parts; now and then one that cannot be met."""
    parts = tuple(
        Part(draw(st.integers(0, shapes - 1)), draw(st.integers(0, 1)), draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, 3)))
    )
    available = sum(part.available for part in parts)
    minimum = (draw(st.integers(0, 2)), draw(st.integers(0, 1)))
    need = max(1, sum(minimum), draw(st.integers(1, available + 1)))
    return Demand(need, parts, minimum, DemandLevel(draw(st.integers(0, 1))), draw(values))


@st.composite
def problems(draw: st.DrawFn, values: st.SearchStrategy[int] | None = None) -> Problem:
    """At most three nodes, three shapes, three resources and four demands."""
    nodes, shapes, resources = (draw(st.integers(1, 3)) for _ in range(3))
    amounts = st.integers(-1, 6)
    free = [[draw(amounts) for _ in range(resources)] for _ in range(nodes)]
    asks = [[draw(st.integers(0, 4)) for _ in range(resources)] for _ in range(shapes)]
    allowed = [[draw(st.integers(0, 9)) > 0 for _ in range(nodes)] for _ in range(shapes)]
    worth = st.integers(1, 9) if values is None else values
    some = draw(st.lists(demands(shapes, worth), min_size=1, max_size=4))
    return Problem(grid(free), grid(asks), np.array(allowed, dtype=np.bool_), tuple(some))


@st.composite
def vast_problems(draw: st.DrawFn) -> Problem:
    """The same in amounts as large as a Problem may have: 1 Pi, and one less on nodes."""
    small = draw(problems())
    scale = draw(st.sampled_from([2**20, 2**40, 2**47]))
    most = 2**50
    free = (small.free * scale + draw(st.integers(-1, 1))).clip(-most, most - 1)
    return replace(small, free=free, requests=(small.requests * scale).clip(0, most))


@st.composite
def ruled_problems(draw: st.DrawFn) -> Problem:
    """Either of them, with one to four rules between members."""
    drawn = draw(st.one_of(problems(), problems(), vast_problems()))
    chance = Random(draw(st.integers(0, 2**16)))
    rules = relations.drawn(chance, len(drawn.free), len(drawn.requests))
    return replace(drawn, rules=rules)


@st.composite
def capped_problems(draw: st.DrawFn) -> Problem:
    """Any of them, with caps on nested sets of demands and maximums of roles."""
    drawn = draw(st.one_of(problems(), vast_problems(), ruled_problems()))
    return capping.capped(Random(draw(st.integers(0, 2**16))), drawn)


@st.composite
def by_priority(draw: st.DrawFn, of: st.SearchStrategy[Problem]) -> Problem:
    """Demands in the order of a plan: by level from the top, in theirs within it."""
    drawn = draw(of)
    ordered = sorted(drawn.demands, key=lambda demand: -demand.level.priority)
    return replace(drawn, demands=tuple(ordered))


def best_by_search(problem: Problem) -> list[tuple[DemandLevel, int]]:
    """The most valuable admission, level by level from the top, by trying every subset."""
    indices = range(len(problem.demands))
    subsets = [s for size in range(len(indices) + 1) for s in combinations(indices, size)]
    by_worth = sorted(subsets, key=lambda subset: _worth(problem, subset), reverse=True)
    free: Room = tuple(tuple(row) for row in problem.free.tolist())
    return next(_worth(problem, s) for s in by_worth if _can_start(problem, free, s))


def _worth(problem: Problem, subset: Sequence[int]) -> list[tuple[DemandLevel, int]]:
    """The value of a subset per level, highest level first."""
    levels = sorted({demand.level for demand in problem.demands}, reverse=True)
    chosen = [problem.demands[index] for index in subset]
    return [(level, sum(d.value for d in chosen if d.level == level)) for level in levels]


def _can_start(problem: Problem, free: Room, subset: Sequence[int]) -> bool:
    """Whether all demands of the subset fit together, whichever of their members start."""
    wholes = product(*(list(_wholes(problem.demands[index])) for index in subset))
    counts = {tuple(sorted(shape for whole in some for shape in whole)) for some in wholes}
    return any(_fits(problem, free, shapes) for shapes in counts)


def _wholes(demand: Demand) -> Iterator[list[int]]:
    """Every choice of exactly ``need`` members, as the list of their shapes."""
    for chosen in product(*(range(part.available + 1) for part in demand.parts)):
        pairs = list(zip(demand.parts, chosen, strict=True))
        enough = all(
            sum(n for part, n in pairs if part.role == role) >= minimum
            for role, minimum in enumerate(demand.role_minimum)
        )
        if enough and sum(chosen) == demand.need:
            yield [part.shape for part, n in pairs for _ in range(n)]


def _fits(
    problem: Problem, free: Room, shapes: Sequence[int], failed: set[object] | None = None
) -> bool:
    """Whether members of these shapes can be placed, tried one by one on every node."""
    failed = set() if failed is None else failed
    if not shapes:
        return True
    if (free, len(shapes)) in failed:
        return False
    asked = problem.requests[shapes[0]].tolist()
    for node, room in enumerate(free):
        if problem.allowed[shapes[0], node] and all(
            ask <= have for ask, have in zip(asked, room, strict=True) if ask
        ):
            left = tuple(have - ask for have, ask in zip(room, asked, strict=True))
            if _fits(problem, (*free[:node], left, *free[node + 1 :]), shapes[1:], failed):
                return True
    failed.add((free, len(shapes)))
    return False
