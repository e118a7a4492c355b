"""Random small Problems, one per seed: a few nodes, and gangs that compete for them.

Drawn so that the choice matters: most have room for some of the gangs and not for all. Six kinds
of amounts and four of values; each kind has brought down some model or other. Those of odd seeds
have rules between members, too, and two of every four have caps and role maximums.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tutti.strategies.problem import NO_RULES, Demand, DemandLevel, Part, Problem

from . import capping
from .relations import drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_NODES, MOST_GANGS, MOST_RESOURCES, MOST_SHAPES = 8, 6, 4, 4

Amounts = tuple[list[int], list[int]]  # what a node may have, what a pod may ask for
GIBI = 2**30

# By the name of the kind: one line for each resource, in turn.
AMOUNTS: Mapping[str, tuple[Amounts, ...]] = {
    "small": (([0, 2, 4, 5, 6, 8], [0, 1, 1, 2, 3]),),
    "gpus": (
        ([8, 16, 16, 32], [1, 2, 4]),
        ([0, 4, 8, 8], [0, 1, 1, 2, 4]),
        ([16, 32, 64], [1, 2, 8, 16]),
        ([3, 110, 110], [1]),
    ),
    "awkward": (([11, 13, 17, 24, 30], [3, 5, 6, 7, 11]), ([19, 21, 30], [0, 2, 5, 9])),
    "bytes": (
        ([16000, 32000, 31850], [500, 4000, 8000, 15925]),
        ([64 * GIBI - 1, 64 * GIBI, 95 * GIBI + 7], [GIBI, 16 * GIBI, 21 * GIBI + 1, 32 * GIBI]),
    ),
    "overdrawn": (([-3, 0, 2, 4, 6], [0, 0, 1, 2]), ([-1, 3, 5], [0, 1, 2])),
    "huge": (([2**50 - 1, 2**49], [2**50, 2**49, 2**47, 1]), ([4, 8], [0, 1, 3])),
}
VALUES: Mapping[str, Callable[[Random, int], int]] = {
    "gangs": lambda _, __: 1,
    "members": lambda _, need: need,
    "any": lambda chance, _: chance.randint(1, 9),
    "large": lambda chance, _: 1_000_000_000 - chance.randint(0, 9),
}


def problem(seed: int) -> Problem:
    """The Problem of this seed."""
    chance = Random(seed)
    nodes, shapes = (
        chance.choice([1, 2, 2, 3, 3, 4, 5, 6, 7, MOST_NODES]),
        chance.randint(1, MOST_SHAPES),
    )
    kinds = AMOUNTS[chance.choice(sorted(AMOUNTS))]
    axes = [kinds[i % len(kinds)] for i in range(chance.randint(1, MOST_RESOURCES))]
    free = _rows(chance, nodes, [axis[0] for axis in axes])
    requests = _rows(chance, shapes, [axis[1] for axis in axes])
    strict = chance.choice([0.0, 0.1, 0.4])
    allowed = np.array(
        [[chance.random() >= strict for _ in range(nodes)] for _ in range(shapes)], dtype=np.bool_
    )
    value = VALUES[chance.choice(sorted(VALUES))]
    levels = chance.choice([1, 1, 2, 3])
    demands: list[Demand] = []
    for _ in range(chance.choice([2, 4, 5, MOST_GANGS, MOST_GANGS])):
        is_twin = bool(demands) and chance.random() < 0.25  # gangs of one type
        demands.append(
            chance.choice(demands) if is_twin else _demand(chance, shapes, levels, value)
        )
    rules = drawn(chance, nodes, shapes) if seed % 2 else NO_RULES
    problem = Problem(free, requests, allowed, tuple(demands), rules)
    return capping.capped(Random(f"caps {seed}"), problem) if is_capped(seed) else problem


def is_capped(seed: int) -> bool:
    """Whether the Problem of this seed has caps."""
    return seed % 4 in (2, 3)


def _rows(chance: Random, count: int, choices: list[list[int]]) -> np.typing.NDArray[np.int64]:
    """Vectors, some of them equal to earlier ones."""
    rows: list[list[int]] = []
    for _ in range(count):
        is_again = bool(rows) and chance.random() < 0.3
        rows.append(chance.choice(rows) if is_again else [chance.choice(axis) for axis in choices])
    return np.array(rows, dtype=np.int64)


def _demand(
    chance: Random, shapes: int, levels: int, value: Callable[[Random, int], int]
) -> Demand:
    """A gang of one to three parts in one or two roles; often with more members than it needs."""
    roles = chance.choice([1, 1, 2])
    parts = tuple(
        Part(chance.randrange(shapes), chance.randrange(roles), chance.choice([1, 1, 2, 3, 4, 6]))
        for _ in range(chance.choice([1, 1, 2, 3]))
    )
    available = sum(part.available for part in parts)
    most = [sum(p.available for p in parts if p.role == role) for role in range(roles)]
    least = tuple(chance.randint(0, n) if roles > 1 else 0 for n in most)
    need = max(1, sum(least), available - chance.choice([0, 0, 0, 1, 2, 3]))
    if chance.random() < 0.03:
        need = available + 1  # more than there are: it never starts
    return Demand(need, parts, least, DemandLevel(chance.randrange(levels)), value(chance, need))
