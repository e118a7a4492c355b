"""Smaller problems: without resources that never run short, or without rules.

Without rules, shapes become one that request the same, may run on the same nodes and use caps
alike, whatever their labels. The program is then small, and its value bounds every answer that
keeps the rules. ``carried_out`` turns its answer into one that keeps the rules.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..best_fit import best_fit
from ..checks import shape_demand_of, worth
from ..inter_pod_state import InterPodState, domains_needed
from ..problem import NO_RULES, Problem, Shares
from ..shape_demand import Flags
from .trimming import EXACT, MOST_PAIRS, SLACK


def without_rules(problem: Problem) -> Problem:
    """The same gangs with as few shapes as possible, on nodes where their rules may allow them."""
    allowed = problem.allowed.copy()
    for shape, nodes in domains_needed(problem).items():
        allowed[shape] &= nodes
    return replace(_with_fewest_shapes(problem, allowed), rules=NO_RULES)


def without_ample(problem: Problem, candidates: Sequence[int]) -> Problem:
    """The same gangs without resources that cannot run short, if that makes the problem smaller.

    A node has enough of such a resource for all members of the candidates together, or too little
    for any member that requests it; such a member then may not run there. So pods that differ only
    in their host ports are one shape, unless two of them request the same port. If no shapes become
    one and resources are few, the problem stays as it is.
    """
    shape_demand = shape_demand_of(problem, candidates)
    total = shape_demand.most.astype(np.float64) @ shape_demand.requests.astype(np.float64)
    requested = np.where(shape_demand.requests > 0, shape_demand.requests, np.iinfo(np.int64).max)
    is_missing = problem.free < requested.min(axis=0)
    total = np.where(total < EXACT, total, total * (1 + SLACK))
    is_ample = problem.free >= total
    is_short = ~(is_ample | is_missing).all(axis=0)
    is_short[:1] |= not is_short.any()  # at least one resource stays
    allowed = problem.allowed.copy()
    for resource in np.flatnonzero(is_missing.any(axis=0) & ~is_short).tolist():
        allowed[problem.requests[:, resource] > 0] &= ~is_missing[:, resource]
    narrow = replace(
        problem, free=problem.free[:, is_short], requests=problem.requests[:, is_short]
    )
    reduced = _with_fewest_shapes(narrow, allowed)
    has_fewer_shapes = len(shape_demand_of(reduced, candidates).shapes) < len(shape_demand.shapes)
    is_wide = problem.free.shape[1] > MOST_PAIRS
    return reduced if has_fewer_shapes or is_wide else problem


def _with_fewest_shapes(problem: Problem, allowed: Flags) -> Problem:
    """The same gangs, with one shape for all that have equal requests, nodes and use of caps."""
    shapes = range(len(problem.requests))
    first: dict[tuple[bytes, ...], int] = {}
    amounts = list({id(cap.amount): cap.amount for cap in problem.caps}.values())
    use = np.stack(amounts, axis=1) if amounts else np.zeros((len(shapes), 0), dtype=np.int64)
    tables = (problem.requests, allowed, use)
    same = [
        first.setdefault(tuple(table[shape].tobytes() for table in tables), shape)
        for shape in shapes
    ]
    if same == [*shapes]:
        return replace(problem, allowed=allowed)
    demands = tuple(
        replace(demand, parts=tuple(replace(part, shape=same[part.shape]) for part in demand.parts))
        for demand in problem.demands
    )
    return replace(problem, allowed=allowed, demands=demands)


def carried_out(problem: Problem, relaxed: Problem, shares: Shares) -> Shares:
    """The gangs of an answer to the problem without rules, as far as the rules admit them.

    They are tried on the seats that the answer has for their shapes, gangs with rules first: once
    in their order, and once the largest first. Then they are tried in all of the room.
    """
    state, demands = InterPodState(problem), problem.demands
    levels = sorted({demand.level for demand in demands}, reverse=True)
    place = {level: number for number, level in enumerate(levels)}
    rank = {
        index: (place[demand.level], not any(state.concerns(part.shape) for part in demand.parts))
        for index, demand in enumerate(demands)
    }
    started = sorted((i for i, own in enumerate(shares) if own), key=lambda i: rank[i])
    largest_first = sorted(started, key=lambda i: (rank[i], -demands[i].need))
    seats = _seats(problem, relaxed, shares)
    best: Shares = ((),) * len(demands)
    for where, order in ((seats, started), (seats, largest_first), (problem, started)):
        answer = _with_rest(problem, best_fit(where, order))
        best = max(best, answer, key=lambda candidate: worth(problem, candidate))
        if worth(problem, best) >= worth(relaxed, shares):
            break
    return best


def _seats(problem: Problem, relaxed: Problem, shares: Shares) -> Problem:
    """The same gangs, with room on each node only for the members that the answer has there."""
    shapes = len(problem.requests)
    places = np.zeros((len(problem.free), shapes), dtype=np.int64)
    for demand, own in zip(relaxed.demands, shares, strict=True):
        for share in own:
            places[share.node, demand.parts[share.part].shape] += share.count
    requests = np.zeros((shapes, shapes), dtype=np.int64)
    for demand, same in zip(problem.demands, relaxed.demands, strict=True):
        for part, relaxed_part in zip(demand.parts, same.parts, strict=True):
            requests[part.shape, relaxed_part.shape] = 1
    useful = requests.any(axis=0)
    return replace(problem, free=places[:, useful], requests=requests[:, useful])


def _with_rest(problem: Problem, shares: Shares) -> Shares:
    """The answer, with all other gangs that have room beside it."""
    levels = sorted({demand.level for demand in problem.demands}, reverse=True)
    rest = [
        index
        for level in levels
        for index, demand in enumerate(problem.demands)
        if demand.level == level and not shares[index]
    ]
    return best_fit(problem, rest, shares)
