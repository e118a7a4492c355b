"""A smaller Problem with the same fault: what a person wants to look at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tutti.strategies.problem import Problem, Rules


def smallest(problem: Problem, is_wrong: Callable[[Problem], bool]) -> Problem:
    """Leave out demands, nodes and resources one by one, as long as it stays wrong."""
    while (found := next(filter(is_wrong, _smaller(problem)), None)) is not None:
        problem = found
    return problem


def as_code(problem: Problem) -> str:
    """The Problem as a test would write it."""
    return "\n".join(
        (
            f"free = {problem.free.tolist()}",
            f"requests = {problem.requests.tolist()}",
            f"allowed = {problem.allowed.astype(int).tolist()}",
            *map(str, problem.demands),
            *(
                f"domain={count.domain.tolist()} counted={count.counted.astype(int).tolist()} "
                f"there={count.there.tolist()}"
                for count in problem.rules.domain_counts
            ),
            *map(
                str, (*problem.rules.anti_affinity, *problem.rules.affinity, *problem.rules.spread)
            ),
            *map(str, problem.rules.reserved),
            *(
                f"cap demands={sorted(cap.demands)} amount={cap.amount.tolist()} "
                f"limit={cap.limit} in_use={cap.in_use}"
                for cap in problem.caps
            ),
        )
    )


def _smaller(problem: Problem) -> Iterator[Problem]:
    for i in range(len(problem.demands)):
        others = problem.demands[:i] + problem.demands[i + 1 :]
        caps = tuple(
            replace(cap, demands=frozenset(n - (n > i) for n in cap.demands if n != i))
            for cap in problem.caps
        )
        yield replace(problem, demands=others, caps=caps)
    for i in range(len(problem.free)):
        free, allowed = np.delete(problem.free, i, axis=0), np.delete(problem.allowed, i, axis=1)
        domain_counts = tuple(
            replace(count, domain=np.delete(count.domain, i))
            for count in problem.rules.domain_counts
        )
        promised = tuple(
            spot._replace(node=spot.node - (spot.node > i))
            for spot in problem.rules.reserved
            if spot.node != i
        )
        rules = replace(problem.rules, domain_counts=domain_counts, reserved=promised)
        yield replace(problem, free=free, allowed=allowed, rules=rules)
    for i in range(problem.free.shape[1]):
        free, asked = np.delete(problem.free, i, axis=1), np.delete(problem.requests, i, axis=1)
        yield replace(problem, free=free, requests=asked)
    for i, demand in enumerate(problem.demands):
        for part in range(len(demand.parts)):
            if len(demand.parts) > 1:
                parts = demand.parts[:part] + demand.parts[part + 1 :]
                some = (
                    *problem.demands[:i],
                    replace(demand, parts=parts),
                    *problem.demands[i + 1 :],
                )
                yield replace(problem, demands=some)
    yield from (replace(problem, rules=rules) for rules in _fewer(problem.rules))
    for i in range(len(problem.caps)):
        yield replace(problem, caps=problem.caps[:i] + problem.caps[i + 1 :])
    for i, demand in enumerate(problem.demands):
        if demand.role_maximum:
            freed = replace(demand, role_maximum=())
            some = (*problem.demands[:i], freed, *problem.demands[i + 1 :])
            yield replace(problem, demands=some)


def _fewer(rules: Rules) -> Iterator[Rules]:
    for i in range(len(rules.anti_affinity)):
        yield replace(rules, anti_affinity=rules.anti_affinity[:i] + rules.anti_affinity[i + 1 :])
    for i in range(len(rules.affinity)):
        yield replace(rules, affinity=rules.affinity[:i] + rules.affinity[i + 1 :])
    for i in range(len(rules.spread)):
        yield replace(rules, spread=rules.spread[:i] + rules.spread[i + 1 :])
    for i in range(len(rules.reserved)):
        yield replace(rules, reserved=rules.reserved[:i] + rules.reserved[i + 1 :])
