"""Random rules between members: over one to three topologies, with nodes that are in no domain.

Shapes belong to gangs of any level, so rules reach across gangs and levels. Some members have their
nodes by an earlier decision, and what they ask still has to hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tutti.strategies.problem import (
    Affinity,
    AntiAffinity,
    DomainCount,
    EvenSpread,
    Outcome,
    Placed,
    Problem,
    Rules,
    Solution,
)

from .breaches import broken_rules
from .case import case_of

if TYPE_CHECKING:
    from random import Random

Domains = tuple[list[int], int]  # of each node, and how many there are


def drawn(chance: Random, nodes: int, shapes: int) -> Rules:
    """One to four rules on Problems of this size."""
    topologies = [_topology(chance, nodes) for _ in range(chance.choice([1, 2, 3]))]
    domain_counts: list[DomainCount] = []
    apart: list[AntiAffinity] = []
    near: list[Affinity] = []
    even: list[EvenSpread] = []
    for _ in range(chance.choice([1, 1, 2, 3, 4])):
        shape = chance.randrange(shapes)
        counted = [each == shape or chance.random() < 0.3 for each in range(shapes)]
        counted[shape] = chance.random() < 0.75
        which = chance.sample(topologies, chance.choice([1, 1, min(2, len(topologies))]))
        kind = chance.choice(["apart", "near", "even"])
        used = which if kind == "near" else which[:1]
        numbers = tuple(range(len(domain_counts), len(domain_counts) + len(used)))
        occupied = chance.choice([0.0, 0.0, 0.3, 0.6])
        domain_counts += [_domain_count(chance, each, counted, occupied) for each in used]
        if kind == "apart":
            apart.append(AntiAffinity(shape, numbers[0]))
        elif kind == "near":
            near.append(Affinity(shape, numbers, may_be_first=counted[shape]))
        else:
            skew, is_short = chance.choice([1, 1, 1, 2, 3]), chance.random() < 0.15
            even.append(EvenSpread(shape, numbers[0], skew, from_zero=is_short))
    rules = Rules(tuple(domain_counts), tuple(apart), tuple(near), tuple(even))
    for _ in range(chance.choice([0, 1, 1, 2])):
        rules = _promising(chance, rules, nodes, shapes)
    return rules


def _promising(chance: Random, rules: Rules, nodes: int, shapes: int) -> Rules:
    """The rules with one more who is promised a node, unless what it or others ask fails there."""
    asking = [*(rule.shape for rule in rules.affinity), *(rule.shape for rule in rules.spread)]
    if not asking:
        return rules
    spot = Placed(chance.choice(asking), chance.randrange(nodes))
    domain_counts = tuple(_joined(domain_count, spot) for domain_count in rules.domain_counts)
    made = replace(rules, domain_counts=domain_counts, reserved=(*rules.reserved, spot))
    free = np.zeros((nodes, 1), dtype=np.int64)
    anywhere = np.ones((shapes, nodes), dtype=np.bool_)
    problem = Problem(free, free[:1].repeat(shapes, axis=0), anywhere, (), made)
    nobody = Solution(Outcome.HEURISTIC, ())
    return rules if any(broken_rules(case_of(problem), nobody)) else made


def _joined(domain_count: DomainCount, spot: Placed) -> DomainCount:
    """The domain_count with one more there, if it counts that shape."""
    there, own = domain_count.there.copy(), domain_count.domain[spot.node]
    if domain_count.counted[spot.shape] and own >= 0:
        there[own] += 1
    return replace(domain_count, there=there)


def _topology(chance: Random, nodes: int) -> Domains:
    """A domain for each node, for some none; now and then a domain that no node is in."""
    if chance.random() < 0.3:
        return list(range(nodes)), nodes
    number = chance.choice([1, 2, 2, 3])
    lost = chance.choice([0.0, 0.0, 0.2])
    own = [-1 if chance.random() < lost else chance.randrange(number) for _ in range(nodes)]
    return own, number + (chance.random() < 0.1)


def _domain_count(
    chance: Random, topology: Domains, counted: list[bool], occupied: float
) -> DomainCount:
    own, number = topology
    there = [chance.choice([1, 2]) if chance.random() < occupied else 0 for _ in range(number)]
    return DomainCount(
        np.array(own, dtype=np.intp),
        np.array(counted, dtype=np.bool_),
        np.array(there, dtype=np.int64),
    )
