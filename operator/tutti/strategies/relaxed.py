"""A problem without its rules, and from an answer to that back to one that keeps them.

Without rules, shapes that ask for the same and may run in the same places are one, however many
labels tell them apart: the program is small again, and no answer that keeps the rules is worth more
than its best one.
"""

from dataclasses import replace

import numpy as np

from .bestfit import best_fit
from .counts import worth
from .endstate import EndState, domains_needed
from .problem import NO_RULES, Demand, Problem, Shares


def without_rules(problem: Problem) -> Problem:
    """The same gangs with as few shapes as there can be, each where a rule may let it be."""
    shapes, allowed = range(len(problem.requests)), problem.allowed.copy()
    for shape, nodes in domains_needed(problem).items():
        allowed[shape] &= nodes
    first: dict[tuple[bytes, bytes], int] = {}
    same = [
        first.setdefault((problem.requests[shape].tobytes(), allowed[shape].tobytes()), shape)
        for shape in shapes
    ]
    demands = tuple(
        replace(each, parts=tuple(replace(part, shape=same[part.shape]) for part in each.parts))
        for each in problem.demands
    )
    return replace(problem, allowed=allowed, demands=demands, rules=NO_RULES)


def carried_out(problem: Problem, relaxed: Problem, shares: Shares) -> Shares:
    """The gangs of an answer to the problem without rules, as far as the rules let them in.

    Each is tried in the places that the answer has for its shape, those with rules first; then in
    all of the room.
    """
    state = EndState(problem)
    started = sorted(
        (index for index, own in enumerate(shares) if own),
        key=lambda index: _urgency(state, problem.demands[index]),
    )
    places = np.zeros((len(problem.free), len(problem.requests)), dtype=np.int64)
    for demand, own in zip(relaxed.demands, shares, strict=True):
        for share in own:
            places[share.node, demand.parts[share.part].shape] += share.count
    asked = np.zeros((len(problem.requests),) * 2, dtype=np.int64)
    for demand, other in zip(problem.demands, relaxed.demands, strict=True):
        for part, same in zip(demand.parts, other.parts, strict=True):
            asked[part.shape, same.shape] = 1
    useful = asked.any(axis=0)
    seats = replace(problem, free=places[:, useful], requests=asked[:, useful])
    found = [_with_rest(problem, best_fit(seats, started)), best_fit(problem, started)]
    found[1] = _with_rest(problem, found[1])
    return max(found, key=lambda each: worth(problem, each))


def _urgency(state: EndState, demand: Demand) -> tuple[int, bool]:
    return -demand.level, not any(state.concerns(part.shape) for part in demand.parts)


def _with_rest(problem: Problem, found: Shares) -> Shares:
    """The answer, and whoever else has room beside it."""
    levels = sorted({demand.level for demand in problem.demands}, reverse=True)
    rest = [
        index
        for level in levels
        for index, demand in enumerate(problem.demands)
        if demand.level == level and not found[index]
    ]
    return best_fit(problem, rest, found)
