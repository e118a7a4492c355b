"""Random small Problems with domains, one per seed: the oracle's, on racks within blocks.

Odd levels of nesting come in on purpose: nodes without a label, levels with one domain, rules of a
whole gang beside rules of its roles.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tutti.strategies.problem import NO_RULES, Demand, Problem, SameDomain, Segments

from ..oracle.instances import problem as without_domains

if TYPE_CHECKING:
    from collections.abc import Sequence


def problem(
    seed: int,
    *,
    with_rules: bool = False,
    gangs: int | None = None,
    segments: bool = False,
) -> Problem:
    """The Problem of this seed; of so many gangs at most, and some of them in segments."""
    chance = Random(seed)
    drawn = without_domains(seed)
    if not with_rules:
        drawn = replace(drawn, rules=NO_RULES)
    if gangs is not None:
        few = drawn.demands[:gangs]
        caps = tuple(
            replace(cap, demands=frozenset(i for i in cap.demands if i < len(few)))
            for cap in drawn.caps
        )
        drawn = replace(drawn, demands=few, caps=caps)
    domains = nested(chance, len(drawn.free))
    demands = tuple(_with_rules(chance, demand) for demand in drawn.demands)
    if segments:
        demands = tuple(_in_segments(chance, demand) for demand in demands)
    return replace(drawn, domains=domains, demands=demands)


def nested(chance: Random, nodes: int) -> tuple[np.typing.NDArray[np.intp], ...]:
    """Two levels, the wide one first; a node without a wide domain has no narrow one."""
    wide = [chance.choice([-1, 0, 0, 1, 1, 1]) for _ in range(nodes)]
    parts = [chance.choice([-1, 0, 0, 0, 1, 1, 1, 2]) for _ in range(nodes)]
    paths = [
        (block, rack) if block >= 0 and rack >= 0 else None
        for block, rack in zip(wide, parts, strict=True)
    ]
    return numbered([None if block < 0 else (block,) for block in wide]), numbered(paths)


def numbered(names: Sequence[tuple[int, ...] | None]) -> np.typing.NDArray[np.intp]:
    """By node the number of its domain, in the order in which the first node of each comes."""
    numbers: dict[tuple[int, ...], int] = {}
    return np.array(
        [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names],
        dtype=np.intp,
    )


def _with_rules(chance: Random, demand: Demand) -> Demand:
    every = tuple(range(len(demand.parts)))
    of_role = [
        tuple(i for i in every if demand.parts[i].role == role)
        for role in range(len(demand.role_minimum))
    ]
    roles = [SameDomain(chance.choice([0, 1, 1]), parts) for parts in of_role if parts]
    whole = [SameDomain(chance.choice([0, 1, 1]), every)]
    rules = chance.choice(
        [[], whole, whole, whole, roles, roles[:1], [SameDomain(0, every), *roles]]
    )
    return replace(demand, same_domain=tuple(dict.fromkeys(rules)))


def _in_segments(chance: Random, demand: Demand) -> Demand:
    """The gang in segments; its domain rules stay half of the time."""
    every = tuple(range(len(demand.parts)))
    of_role = [
        tuple(i for i in every if demand.parts[i].role == role)
        for role in range(len(demand.role_minimum))
    ]
    sizes = [chance.choice([1, 2, 2, 3, 3, 4, 5]) for _ in of_role]
    levels = [chance.choice([0, 1, 1]) for _ in of_role]
    roles = [
        Segments(level, parts, size)
        for level, parts, size in zip(levels, of_role, sizes, strict=True)
        if parts
    ]
    whole = [Segments(levels[0], every, sizes[0])]
    same = chance.choice([demand.same_domain, ()])
    return replace(
        demand,
        same_domain=same,
        segments=tuple(chance.choice([[], whole, whole, roles, roles[:1]])),
    )
