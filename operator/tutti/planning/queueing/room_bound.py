"""Which gangs cannot start beside others, on whatever nodes: counted by size, without a search.

A member that requests n times a size, for each resource, takes the room of at least n pods of that
size, on whatever node. So the number of pods of a size that all nodes can hold bounds how many
larger members start. The sizes are the requests of members; for each amount of a resource that a
member requests, this amount alone; and the least that members with at least this amount request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import PlacementRequest
from ...model.cluster import Member
from ..compile.capacity import FitByShape
from ..compile.grids import Grid
from ..search.borders import Above

MOST_SIZES = 100  # if there are more sizes, none is counted


@dataclass(frozen=True, slots=True, eq=False)
class RoomBound:
    """The room for each size alone, and the least that members take of it."""

    base: Grid
    room: NDArray[np.int64]  # [size]: pods that fit
    weights: NDArray[np.int64]  # [shape, size]: pods of the size that a member displaces, at least
    used: NDArray[np.int64]  # [size]: by members that have started

    @classmethod
    def of(cls, fit: FitByShape) -> "RoomBound":
        """The bound before any gang has started, in the room of ``fit``."""
        base = fit.base
        requests, allowed = base.requests, base.allowed
        sizes = _sizes(requests)
        larger = np.all(requests[:, None, :] >= sizes[None, :, :], axis=2)
        room = np.zeros(len(sizes), dtype=np.int64)
        for column, size in enumerate(sizes):
            nodes = np.any(allowed[larger[:, column]], axis=0)
            room[column] = fit.pods_of(size, nodes)
        ratios = requests[:, None, :] // np.maximum(sizes, 1)[None, :, :]
        ratios = np.where(sizes[None] > 0, ratios, np.iinfo(np.int64).max)
        weights = np.where(larger, ratios.min(axis=2, initial=np.iinfo(np.int64).max), 0)
        return cls(base, room, weights, np.zeros_like(room))

    @classmethod
    def of_plan(cls, above: Above, held: NDArray[np.int64] | int) -> "RoomBound":
        """The bound beside all gangs that have started, in the room that is not held."""
        bound = cls.of(above.fit_beside(held))
        return bound.beside(group for want in above.joined for group in want.alike)

    def beside(self, groups: Iterable[Sequence[Member]]) -> "RoomBound":
        """The bound once these members have started, too; the members of a group are equal."""
        members = np.zeros(len(self.weights), dtype=np.int64)
        for group in groups:
            members[self.base.shapes[group[0].shape]] += len(group)
        return replace(self, used=self.used + members @ self.weights)

    def excludes(self, want: PlacementRequest) -> bool:
        """Whether the gang certainly cannot start; always false if its members differ."""
        if len(want.alike) > 1:
            return False
        own = self.weights[self.base.shapes[want.members[0].shape]] * want.need
        return bool(((own > 0) & (self.used + own > self.room)).any())


def _sizes(requests: NDArray[np.int64]) -> NDArray[np.int64]:
    """[size, resource]: the sizes that are counted; none is all zero."""
    resources = np.arange(requests.shape[1])
    amounts = [(r, n) for r in resources for n in np.unique(requests[:, r]) if n > 0]
    if len(amounts) > MOST_SIZES:
        return requests[:0]
    least = [requests[requests[:, r] >= n].min(axis=0) for r, n in amounts]
    alone = [np.where(resources == r, n, 0) for r, n in amounts]
    every = np.array([*requests, *least, *alone], dtype=np.int64)
    sizes = np.unique(every.reshape(-1, len(resources)), axis=0)
    sizes = sizes[(sizes > 0).any(axis=1)]
    return sizes if len(sizes) <= MOST_SIZES else sizes[:0]
