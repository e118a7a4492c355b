"""Removes room of nodes that no filling can use, and resources that never run short.

The possible fillings stay the same. With fewer different rooms and fewer resources, more nodes are
equal.
"""

from fractions import Fraction

import numpy as np

from ..shape_demand import Array, ShapeDemand, alone, blocks
from ..work import Work

MOST_UNITS = 2**18  # with more units than this, amounts are not rounded to sums of requests
MOST_PAIRS = 24  # resources that are compared in pairs; with more, none are
SLACK = 1e-9  # the largest relative error of sums in floats
EXACT = 2.0**53  # sums of integers below this are exact in floats


def trimmed(room: Array, shape_demand: ShapeDemand, work: Work) -> tuple[Array, Array]:
    """The room without what no filling can use, and the resources that may run short.

    This is cheap, and makes nodes equal early.
    """
    asks = shape_demand.requests
    work.spend(room.size * len(asks))
    short = _ever_short(room, shape_demand)
    room, used = _used_alone(room, shape_demand), short.tolist()
    if len(used) <= MOST_PAIRS:
        for r in used:
            for q in used:
                if q != r:
                    work.spend(len(asks))
                    _bound_by(room, asks, r, q)
    for r in used:
        room[:, r] = _rounded(room[:, r], asks[:, r], work)
    return room, short


def _used_alone(room: Array, shape_demand: ShapeDemand) -> Array:
    """The room, limited to what all shapes could use, each of them alone."""
    asks = shape_demand.requests.astype(np.float64)
    loads = [
        alone(room[part], shape_demand).astype(np.float64) @ asks
        for part in blocks(len(room), len(shape_demand.most))
    ]
    load = np.concatenate(loads)
    is_less = (load < EXACT) & (load < room)
    return np.where(is_less, load.clip(0, EXACT).astype(np.int64), room)


def _ever_short(room: Array, shape_demand: ShapeDemand) -> Array:
    """The resources of which some node has less than the whole demand requests."""
    total = shape_demand.most.astype(np.float64) @ shape_demand.requests.astype(np.float64)
    return np.flatnonzero(total * (1 + SLACK) > room.min(axis=0))


def _bound_by(room: Array, asks: Array, r: int, q: int) -> None:
    """Limit the room of r by that of q, if every shape that requests r also requests q."""
    if ((asks[:, r] > 0) & (asks[:, q] == 0)).any():
        return
    top = int(room[:, q].max(initial=0))
    a, b = _steepest(asks[asks[:, q] > 0][:, [r, q]])
    if a * top < 2**62:
        room[:, r] = np.minimum(room[:, r], room[:, q] * a // b)


def _steepest(pairs: Array) -> tuple[int, int]:
    """The first pair with the largest ratio, exactly; floats select the candidates."""
    ratios = pairs[:, 0] / pairs[:, 1]
    close = pairs[ratios >= ratios.max() * (1 - 1e-9)]
    a, b = max(((int(a), int(b)) for a, b in close), key=lambda pair: Fraction(*pair))
    return a, b


def _rounded(room: Array, amounts: Array, work: Work) -> Array:
    """Each room rounded down to the largest sum of requests of this resource that it holds."""
    amounts = np.unique(amounts[amounts > 0])
    unit = int(np.gcd.reduce(amounts))
    units = room // unit
    top = int(units.max(initial=0))
    if top > MOST_UNITS:
        return units * unit
    reachable = np.zeros(top + 1, dtype=np.bool_)
    reachable[0] = True
    for step in (amounts // unit).tolist():
        if work.is_over:
            return units * unit
        if step <= top and not reachable[step]:  # else sums of smaller requests reach the same
            work.spend(top)
            while step <= top:
                reachable[step:] |= reachable[:-step].copy()
                step *= 2  # noqa: PLW2901 - once, twice, four times, …
    largest = np.maximum.accumulate(np.where(reachable, np.arange(top + 1), 0))
    rounded: Array = largest[units] * unit
    return rounded
