"""The shapes that compete for the nodes: their requests, and how many members could start."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_CELLS = 4_000_000  # numbers in one table


@dataclass(frozen=True, slots=True, eq=False)
class ShapeDemand:
    """The shapes that compete for the nodes, as rows, and how many members of each could start."""

    shapes: Array  # [row]: index into Problem.requests
    requests: Array  # [row, resource]
    most: Array  # [row]: more members than this cannot start


def condensed(free: Array, shape_demand: ShapeDemand) -> tuple[Array, ShapeDemand]:
    """The same, with one resource for all resources that shapes request in equal proportions.

    For example, host ports of a pod that no other pod requests become one resource. Resources that
    no shape requests are left out.
    """
    asks = shape_demand.requests
    used = np.flatnonzero(asks.any(axis=0))
    if not used.size:
        return free[:, :1], ShapeDemand(shape_demand.shapes, asks[:, :1], shape_demand.most)
    units = np.gcd.reduce(asks[:, used], axis=0)
    same: dict[bytes, list[int]] = {}
    for at, column in enumerate((asks[:, used] // units).T):
        same.setdefault(column.tobytes(), []).append(at)
    first = [own[0] for own in same.values()]
    # The first resource keeps its amounts, for the engine's sake; the others are counted in its
    # units.
    rooms = [
        (free[:, used[own]] // units[own]).min(axis=1) * units[own[0]]
        if len(own) > 1
        else free[:, used[own[0]]]
        for own in same.values()
    ]
    return np.stack(rooms, axis=1), ShapeDemand(
        shape_demand.shapes, asks[:, used[first]], shape_demand.most
    )


def alone(room: Array, shape_demand: ShapeDemand) -> Array:
    """[node, row]: how many members of each shape fit, if no other shape is on the node."""
    counts = np.repeat(shape_demand.most[None, :], len(room), axis=0)
    for resource, column in enumerate(shape_demand.requests.T):
        rows = slice(None) if column.all() else np.flatnonzero(column)  # a slice copies nothing
        most = room[:, resource, None] // column[rows]
        counts[:, rows] = np.minimum(counts[:, rows], most)
    return counts


def blocks(nodes: int, rows: int) -> Iterator[slice]:
    """Slices of the nodes, so that a table with ``rows`` numbers per node stays small."""
    size = max(1, MOST_CELLS // max(1, rows))
    yield from (slice(a, b) for a, b in pairwise([*range(0, nodes, size), nodes]))
