"""Random caps and role maximums for a Problem: trees of sets of gangs, as queues have them.

Limits are tight, zero, below what is in use, or too wide to matter. What a member uses is a
resource that it asks for, one for each member, or anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tutti.strategies.problem import Cap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from numpy.typing import NDArray

    from tutti.strategies.problem import Demand, Problem

MOST_DEPTH = 3


def capped(chance: Random, problem: Problem) -> Problem:
    """The Problem with caps on nested sets of its demands, and maximums of some roles."""
    problem = replace(
        problem, demands=tuple(_with_maximums(chance, demand) for demand in problem.demands)
    )
    lines = [_amounts(chance, problem) for _ in range(chance.choice([1, 1, 2]))]
    sets = list(_tree(chance, range(len(problem.demands)), MOST_DEPTH))
    if chance.random() < 0.3:  # no tree at all
        sets.append([i for i in range(len(problem.demands)) if chance.random() < 0.5])
    caps = tuple(
        _cap(chance, problem, members, amount)
        for members in sets
        for amount in lines
        if chance.random() < 0.6
    )
    return replace(problem, caps=caps)


def _tree(chance: Random, members: Sequence[int], depth: int) -> Iterator[Sequence[int]]:
    """The members, and below them disjoint sets of some of them."""
    yield members
    if depth > 1 and len(members) > 1:
        children: list[list[int]] = [[] for _ in range(chance.choice([1, 2, 2, 3]))]
        for member in members:
            if chance.random() < 0.9:
                chance.choice(children).append(member)
        for child in children:
            yield from _tree(chance, child, depth - 1)


def _amounts(chance: Random, problem: Problem) -> NDArray[np.int64]:
    """What a member of each shape uses: a resource, one for each member, or anything."""
    shapes, resources = problem.requests.shape
    kind = chance.choice(["resource", "resource", "members", "any"])
    if kind == "resource":
        return problem.requests[:, chance.randrange(resources)].clip(0)
    if kind == "members":
        return np.ones(shapes, dtype=np.int64)
    return np.array([chance.choice([0, 1, 2, 5, 2**31 + 1]) for _ in range(shapes)], dtype=np.int64)


def _cap(
    chance: Random, problem: Problem, members: Sequence[int], amount: NDArray[np.int64]
) -> Cap:
    demands = [problem.demands[index] for index in members]
    everything = sum(_about(demand, amount) for demand in demands)
    share = chance.choice([0.3, 0.5, 0.6, 0.7, 0.8, 0.8, 0.9, 1.0, 2.0])
    in_use = chance.choice([0, 0, 1, int(everything * 0.3)])
    limit = int(everything * share) + in_use + chance.choice([-1, 0, 0, 0, 1])
    if chance.random() < 0.06:
        limit = in_use // 2  # nothing is left, or less than is in use
    return Cap(frozenset(members), amount, limit, in_use)


def _about(demand: Demand, amount: NDArray[np.int64]) -> int:
    """What the demand uses if its first members start."""
    use, missing = 0, demand.need
    for part in demand.parts:
        count = min(part.available, missing)
        use += count * int(amount[part.shape])
        missing -= count
    return use


def _with_maximums(chance: Random, demand: Demand) -> Demand:
    if chance.random() < 0.6:
        return demand
    available = [0] * len(demand.role_minimum)
    for part in demand.parts:
        available[part.role] += part.available
    pairs = zip(demand.role_minimum, available, strict=True)
    most = [chance.randint(least, max(least, n)) for least, n in pairs]
    if sum(most) < demand.need and chance.random() < 0.9:
        most[chance.randrange(len(most))] += demand.need - sum(most)
    return replace(demand, role_maximum=tuple(most))
