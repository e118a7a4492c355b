"""What counting alone says about a Problem: upper bounds, the rows that bind, a cheap check.

Separate from the integer program because none of it needs an engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .problem import Demand, Outcome, Problem, Share, Shares, Solution, admitted_value
from .room import fits_per_node, most_placeable

Counts = Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class Row:
    """Shapes that compete on one node: the weighted sum of their counts is at most ``bound``."""

    node: int
    weights: tuple[tuple[int, int], ...]  # (shape, weight), the weights without common divisor
    bound: int


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The most of each shape that can be of use on each node, and the rows that bind further."""

    most: NDArray[np.int64]  # [shape, node]
    rows: tuple[Row, ...]
    crowded: NDArray[np.bool_]  # [shape, node]: is the count in some row


def possible(problem: Problem) -> list[int]:
    """The demands that counting does not rule out, even if each were alone."""
    requests, allowed = problem.requests, problem.allowed
    most = [
        most_placeable(problem.free, requests[shape], allowed[shape])[0]
        for shape in range(len(requests))
    ]
    return [i for i, demand in enumerate(problem.demands) if _could_start_alone(demand, most)]


def _could_start_alone(demand: Demand, most: Sequence[int]) -> bool:
    """Whether enough members exist and fit, shape by shape; False is a proof, True is none."""
    found: dict[tuple[int, int], int] = {}
    for part in demand.parts:
        key = (part.role, part.shape)
        found[key] = found.get(key, 0) + part.available
    roles = [0] * len(demand.role_minimum)
    shapes: dict[int, int] = {}
    for (role, shape), available in found.items():
        roles[role] += min(available, most[shape])
        shapes[shape] = shapes.get(shape, 0) + available
    placeable = sum(min(count, most[shape]) for shape, count in shapes.items())
    return placeable >= demand.need >= sum(demand.role_minimum) and all(
        count >= minimum for count, minimum in zip(roles, demand.role_minimum, strict=True)
    )


def limits(problem: Problem, candidates: Iterable[int]) -> Limits:
    """The bounds that these demands leave; rows that no choice could break are left out."""
    useful = [0] * len(problem.requests)
    for demand in (problem.demands[index] for index in candidates):
        for part in demand.parts:
            useful[part.shape] += min(part.available, demand.need)
    most = np.zeros(problem.allowed.shape, dtype=np.int64)
    for shape, limit in enumerate(useful):
        request, allowed = problem.requests[shape], problem.allowed[shape]
        most[shape] = fits_per_node(problem.free, request, allowed, limit)
    load = most.T @ problem.requests
    crowded = np.zeros(problem.allowed.shape, dtype=np.bool_)
    rows: dict[Row, None] = {}  # an ordered set: equal rows of several resources are one
    for node, resource in np.argwhere(load > problem.free.clip(0)).tolist():
        amounts = problem.requests[:, resource]
        shapes = np.flatnonzero((amounts > 0) & (most[:, node] > 0))
        unit = int(np.gcd.reduce(amounts[shapes]))
        weights = zip(shapes.tolist(), (amounts[shapes] // unit).tolist(), strict=True)
        rows[Row(node, tuple(weights), int(problem.free[node, resource]) // unit)] = None
        crowded[shapes, node] = True
    return Limits(most, tuple(rows), crowded)


def distribute(problem: Problem, room: Limits, members: Counts, counts: Counts) -> Shares:
    """Give each demand's members their nodes; ``counts`` says what the crowded pairs hold.

    Demands in order; each takes the tightest node that holds all it needs, else the roomiest.
    """
    left = np.where(room.crowded, 0, room.most)
    for (shape, node), count in counts.items():
        left[shape, node] = count
    found: list[list[Share]] = [[] for _ in problem.demands]
    for (index, part), wanted in sorted(members.items()):
        row, missing = left[problem.demands[index].parts[part].shape], wanted
        while missing > 0 and row.any():
            whole = np.flatnonzero(row >= missing)
            node = int(whole[row[whole].argmin()] if whole.size else row.argmax())
            count = min(missing, int(row[node]))
            found[index].append(Share(part, node, count))
            row[node] -= count
            missing -= count
    return tuple(tuple(shares) for shares in found)


def is_sound(problem: Problem, shares: Shares) -> bool:
    """Whether every demand is whole or absent, and every member where it may be and fits."""
    used = np.zeros_like(problem.free)
    asked = np.zeros(problem.free.shape, dtype=np.bool_)
    for demand, own in zip(problem.demands, shares, strict=True):
        if own and not _is_whole(demand, own):
            return False
        for share in own:
            shape = demand.parts[share.part].shape
            if not problem.allowed[shape, share.node]:
                return False
            used[share.node] += share.count * problem.requests[shape]
            asked[share.node] |= problem.requests[shape] > 0
    return not bool((asked & (used > problem.free)).any())


def _is_whole(demand: Demand, shares: Iterable[Share]) -> bool:
    """Whether the shares are exactly what the demand needs."""
    chosen, roles = [0] * len(demand.parts), [0] * len(demand.role_minimum)
    for share in shares:
        chosen[share.part] += share.count
        roles[demand.parts[share.part].role] += share.count
    return (
        sum(chosen) == demand.need
        and all(n <= part.available for n, part in zip(chosen, demand.parts, strict=True))
        and all(n >= minimum for n, minimum in zip(roles, demand.role_minimum, strict=True))
    )


def has_all(shares: Shares, candidates: Iterable[int]) -> bool:
    """Whether nothing that could start is left out."""
    return all(shares[index] for index in candidates)


def worth(problem: Problem, shares: Shares) -> list[tuple[int, int]]:
    """The value admitted per level, highest level first."""
    return list(admitted_value(problem, Solution(Outcome.HEURISTIC, shares)))


def reaches(problem: Problem, found: Shares, best: Shares, level: int) -> bool:
    """Whether what the engine found is as good as the best known, down to this level."""
    pairs = zip(worth(problem, found), worth(problem, best), strict=True)
    return all(ours == known for ours, known in pairs if ours[0] >= level)
