"""What counting alone says about a Problem: what could start at all, and a cheap check.

None of this needs an engine.
"""

from collections.abc import Iterable

import numpy as np

from .capacity import CapUsage, caps_by_demand, least_use, most_placeable
from .domains import regions
from .inter_pod_state import rules_hold
from .problem import (
    Cap,
    Demand,
    DemandLevel,
    Outcome,
    Problem,
    Share,
    Shares,
    Solution,
    admitted_value,
)
from .shape_demand import ShapeDemand


def possible(problem: Problem) -> list[int]:
    """The demands that counting does not rule out, even if each were alone."""
    requests, allowed = problem.requests, problem.allowed
    most = [
        most_placeable(problem.free, requests[shape], allowed[shape])[0]
        for shape in range(len(requests))
    ]
    caps, fits = caps_by_demand(problem), regions.empty_fits(problem)
    return [
        i
        for i, demand in enumerate(problem.demands)
        if regions.could_start(demand, [(part.shape, most[part.shape]) for part in demand.parts])
        and all(_holds(problem.caps[index], demand) for index in caps.get(i, ()))
        and (not demand.names_levels or _may_have_a_region(problem, demand, fits))
    ]


def _may_have_a_region(problem: Problem, demand: Demand, fits: regions.Fits) -> bool:
    """Whether there is a region for the demand, or too many choices to rule all of them out."""
    work = regions.region_work(problem, demand)
    return any(True for _ in regions.regions(problem, demand, fits, work)) or work.is_over


def _holds(cap: Cap, demand: Demand) -> bool:
    """Whether a cap lets the demand start, if no other demand does."""
    return least_use(demand, cap) <= cap.room


def shape_demand_of(problem: Problem, candidates: Iterable[int]) -> ShapeDemand:
    """The shapes of these demands, with the most members of each that could start."""
    useful: dict[int, int] = {}
    for demand in (problem.demands[index] for index in candidates):
        for part in demand.parts:
            useful[part.shape] = useful.get(part.shape, 0) + min(part.available, demand.need)
    shapes = np.array(sorted(useful), dtype=np.int64)
    most = np.array([useful[shape] for shape in sorted(useful)], dtype=np.int64)
    return ShapeDemand(shapes, problem.requests[shapes], most)


def is_sound(problem: Problem, shares: Shares) -> bool:
    """Whether demands are whole or absent, members fit on their nodes, and caps and rules hold."""
    placed: list[tuple[int, int, int]] = []  # node, shape, members
    for demand, own in zip(problem.demands, shares, strict=True):
        if own and not (_is_whole(demand, own) and regions.are_together(problem, demand, own)):
            return False
        placed.extend((share.node, demand.parts[share.part].shape, share.count) for share in own)
    nodes, shapes, counts = np.array(placed, dtype=np.int64).reshape(-1, 3).T
    if not problem.allowed[shapes, nodes].all():
        return False
    asks = problem.requests[shapes]
    used = np.zeros_like(problem.free)
    np.add.at(used, nodes, asks * counts[:, None])
    is_requested = np.zeros(problem.free.shape, dtype=np.bool_)
    np.logical_or.at(is_requested, nodes, asks > 0)
    if (is_requested & (used > problem.free)).any():
        return False
    caps = CapUsage(problem)
    is_within = all(caps.accept(index, own) for index, own in enumerate(shares))
    return is_within and (not problem.rules or rules_hold(problem, shares))


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
        and all(n <= demand.maximum(role) for role, n in enumerate(roles))
    )


def has_all(shares: Shares, candidates: Iterable[int]) -> bool:
    """Whether every candidate starts."""
    return all(shares[index] for index in candidates)


def worth(problem: Problem, shares: Shares) -> list[tuple[DemandLevel, int]]:
    """The value admitted per level, highest level first."""
    return list(admitted_value(problem, Solution(Outcome.HEURISTIC, shares)))
