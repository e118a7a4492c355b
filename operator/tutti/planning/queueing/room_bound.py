"""Who cannot start beside others wherever these are: counted by size, without a search.

A member that requests n times as much as some size, of each resource, takes the room of n pods of
that size at least, on whatever node. So the room for a size on all nodes bounds what starts of all
larger members. The sizes are those of the members; for each amount of a resource, this amount
alone; and the least that members with so much or more of it request.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import PlacementRequest
from ...model.cluster import Member
from ...strategies.capacity import fits_per_node
from ..compile.grids import Grid
from ..search.borders import Above

MOST_SIZES = 100  # of more, none are counted


@dataclass(frozen=True, slots=True, eq=False)
class RoomBound:
    """The room for each size alone, and what members take of it at least."""

    base: Grid
    room: NDArray[np.int64]  # [size]: pods that fit
    weights: NDArray[np.int64]  # [shape, size]: what a member takes of the room for a size
    used: NDArray[np.int64]  # [size]: by members that start for certain

    @classmethod
    def of(cls, base: Grid, free: NDArray[np.int64]) -> "RoomBound":
        """The bound while nobody has started."""
        requests, allowed = base.requests, base.allowed
        sizes = _sizes(requests)
        larger = np.all(requests[:, None, :] >= sizes[None, :, :], axis=2)
        room = np.zeros(len(sizes), dtype=np.int64)
        for column, size in enumerate(sizes):
            nodes = np.any(allowed[larger[:, column]], axis=0)
            room[column] = fits_per_node(free, size, nodes).sum()
        ratios = requests[:, None, :] // np.maximum(sizes, 1)[None, :, :]
        ratios = np.where(sizes[None] > 0, ratios, np.iinfo(np.int64).max)
        weights = np.where(larger, ratios.min(axis=2, initial=np.iinfo(np.int64).max), 0)
        return cls(base, room, weights, np.zeros_like(room))

    @classmethod
    def of_plan(cls, above: Above, held: NDArray[np.int64] | int) -> "RoomBound":
        """The bound beside all that has started, in the room that is not held."""
        bound = cls.of(above.base, np.maximum(above.free - held, 0))
        return bound.beside(member for want in above.joined for member in want.members)

    def beside(self, members: Iterable[Member]) -> "RoomBound":
        """The bound once these have started, too."""
        rows = [self.base.shapes[member.shape] for member in members]
        return replace(self, used=self.used + self.weights[rows].sum(axis=0))

    def excludes(self, want: PlacementRequest) -> bool:
        """Whether a gang of equal members cannot start; nothing is said of other gangs."""
        if len(want.alike) > 1:
            return False
        own = self.weights[self.base.shapes[want.members[0].shape]] * want.need
        return bool(((own > 0) & (self.used + own > self.room)).any())


def _sizes(requests: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sizes that are counted, of pods that request something."""
    resources = np.arange(requests.shape[1])
    amounts = [(r, n) for r in resources for n in np.unique(requests[:, r]) if n > 0]
    least = [requests[requests[:, r] >= n].min(axis=0) for r, n in amounts]
    alone = [np.where(resources == r, n, 0) for r, n in amounts]
    every = np.array([*requests, *least, *alone], dtype=np.int64)
    sizes = np.unique(every.reshape(-1, len(resources)), axis=0)
    sizes = sizes[(sizes > 0).any(axis=1)]
    return sizes if len(sizes) <= MOST_SIZES else sizes[:0]
