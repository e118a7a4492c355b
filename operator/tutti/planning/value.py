"""What it is worth to admit a gang, within its priority: what users choose by the objective.

Separate from the reduction, which is the same whatever is aimed for. Values are whole numbers, so
that sums of them are exact.
"""

from collections.abc import Sequence

import numpy as np

from ..model import ports
from ..model.cluster import Member
from ..model.decisions import Objective, Policy
from ..model.volumes import is_attaching
from .demand import Want
from .order import waiting_since
from .reduce import Grid

# What the whole cluster is worth: fine enough to tell one GPU of 100,000 from another resource's
# share, coarse enough that sums stay exact in a solver's floating point.
SHARE_SCALE = 10_000_000
AGE_STEPS = 4  # in which the weight of an age grows by one: gangs of equal weight stay alike
MOST_WEIGHT = 16  # a gang that has waited for ever does not drown what all others are worth


def worths(base: Grid, wants: Sequence[Want], policy: Policy, now: float) -> Sequence[int]:
    """What each want is worth; positive."""
    match policy.objective:
        case Objective.GANGS:
            return [1] * len(wants)
        case Objective.MEMBERS:
            return [want.need for want in wants]
    prices = _prices(base)
    return [_share(base, prices, want) * _weight(want, policy, now) for want in wants]


def _prices(base: Grid) -> Sequence[tuple[int, int]]:
    """By resource: the unit that all requests share, and what one of it is worth.

    A whole number for a unit, so that gangs which differ in GPUs alone are worth multiples of one
    GPU: a solver that knows the smallest difference proves an optimum much sooner. Host ports and
    attached volumes are worth nothing: that only so many pods fit beside one another makes none of
    them larger.
    """
    totals: list[int] = base.capacity.astype(object).sum(axis=0).tolist()  # beyond 64 bits
    units = np.gcd.reduce(base.requests, axis=0, initial=0).tolist()
    return [
        (unit or 1, max(1, round(SHARE_SCALE * unit / total)) if unit and total else 0)
        for unit, total in zip(units, _counted(base, totals), strict=True)
    ]


def _counted(base: Grid, totals: Sequence[int]) -> Sequence[int]:
    return [
        0 if ports.is_port(name) or is_attaching(name) else n
        for name, n in zip(base.resources, totals, strict=True)
    ]


def _weight(want: Want, policy: Policy, now: float) -> int:
    """1 + wait / age_seconds, in steps; as a whole number of steps."""
    waited = max(0.0, now - waiting_since(want.gang, want.members))
    return AGE_STEPS + min(int(AGE_STEPS * waited / policy.age_seconds), AGE_STEPS * MOST_WEIGHT)


def _share(base: Grid, prices: Sequence[tuple[int, int]], want: Want) -> int:
    """The largest share of any resource's cluster total that the needed members ask for.

    Which members start may be open when they differ; the oldest that satisfy the roles count.
    """
    rows = [base.shapes[member.shape] for member in _oldest_needed(want)]
    asked = [int(n) for n in base.requests[rows].sum(axis=0)]
    shares = [n // unit * price for n, (unit, price) in zip(asked, prices, strict=True)]
    return max(shares, default=0) or 1


def _oldest_needed(want: Want) -> Sequence[Member]:
    left = dict(want.minimums)
    chosen: list[Member] = []
    rest: list[Member] = []
    for member in want.members:
        is_first = left.get(member.role, 0) > 0
        (chosen if is_first else rest).append(member)
        if is_first:
            left[member.role] -= 1
    return [*chosen, *rest[: want.need - len(chosen)]]
