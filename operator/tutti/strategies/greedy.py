"""One demand placed whole or undone: the part that all greedy strategies share."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from .capacity import UNBOUNDED, FreeCapacity
from .domains import segments
from .domains.regions import Region, region_work, regions
from .problem import Part, Problem, Segments, Share
from .shape_demand import Array, Flags

MOST_REGIONS = 8  # regions that are tried for one gang


class NodeScoring:
    """Scores nodes by scarce and by wasted resources, for one problem."""

    at_once = UNBOUNDED  # members of a part that a node takes before it is scored again

    def __init__(self, problem: Problem, room: FreeCapacity) -> None:
        self._requests = problem.requests
        is_requested = (problem.requests > 0).any(axis=0)
        self._waste = np.where(is_requested & (problem.requests == 0), room.per_unit, 0.0)
        self._wastes = [bool(row.any()) for row in self._waste]
        shares = problem.requests * room.per_unit
        self._scarcest = [int(row.argmax()) for row in shares]
        self.sizes = [float(row.max()) for row in shares]

    def spread(
        self, room: FreeCapacity, shape: int, count: int, within: Flags | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64]]]:
        """Nodes with the members that each takes, tightest first, at most ``count`` in all.

        ``within`` says which nodes may take members; None means all.
        """
        fits = room.fits(shape)
        if within is not None:
            fits = np.where(within, fits, 0)
        nodes = np.flatnonzero(fits)
        fits = fits[nodes]
        while count > 0 and nodes.size:
            take = np.minimum(fits, min(count, self.at_once))
            keys = self.keys(room, shape, nodes, take)
            best = first(keys)
            if take[best] == count:
                yield nodes[best : best + 1], take[best : best + 1]
                return
            # All nodes before the first that would overflow; after them the scores change.
            order = np.lexsort(keys[::-1])
            order = order[np.cumsum(take[order]) <= count]
            yield nodes[order], take[order]
            count -= int(take[order].sum())
            rest = np.ones(nodes.size, dtype=np.bool_)
            rest[order] = False
            nodes, fits = nodes[rest], fits[rest]

    def keys(
        self, room: FreeCapacity, shape: int, nodes: NDArray[np.intp], take: NDArray[np.int64]
    ) -> list[NDArray[np.float64]]:
        """Sort keys, most important first; smaller comes first.

        The keys are: free resources that the shape does not request but other shapes do; what is
        left of the scarcest resource that it requests; the number of members, more first; what is
        left of all resources.
        """
        keys = [-1.0 * take, room.spare[nodes] - take * room.share[shape]]
        scarce = self._scarcest[shape]
        keys.insert(0, room.free[nodes, scarce] - 1.0 * take * self._requests[shape, scarce])
        if self._wastes[shape]:
            keys.insert(0, room.free[nodes] @ self._waste[shape])
        return keys


def first(keys: list[NDArray[np.float64]]) -> int:
    """The row that would come first in a stable sort by the keys; cheaper than sorting."""
    rows = np.flatnonzero(keys[0] == keys[0].min())
    for key in keys[1:]:
        if rows.size == 1:
            break
        values = key[rows]
        rows = rows[values == values.min()]
    return int(rows[0])


class GreedyPlacement:
    """One demand, placed whole or undone."""

    def __init__(
        self,
        problem: Problem,
        index: int,
        room: FreeCapacity,
        scoring: NodeScoring,
    ) -> None:
        """``room`` is the room that is left; a demand that is placed takes from it."""
        demand = problem.demands[index]
        self._problem, self._demand, self._index = problem, demand, index
        self._within: list[Flags | None] = [None] * len(demand.parts)
        self._room, self._caps, self._scoring = room, room.caps, scoring
        self._placed = [0] * len(demand.parts)
        self._of_role = [0] * len(demand.role_minimum)  # placed members by role
        self._shares: dict[tuple[int, int], int] = {}
        self._in_segments = {part for own in demand.segments for part in own.parts}
        sizes = [(scoring.sizes[part.shape], i) for i, part in enumerate(demand.parts)]
        self._smallest_first = [i for _, i in sorted(sizes)]
        self._largest_first = self._smallest_first[::-1]

    def shares(self) -> tuple[Share, ...]:
        """The demand's shares; or none, with all room given back."""
        for _ in self._regions_tried():
            mark = self._room.mark()
            if self._is_placed():
                return self._result()
            self._undo(mark)
        return ()

    def _regions_tried(self) -> Iterator[Region]:
        """Each region in which members may be together; sets the nodes of the parts."""
        demand = self._demand
        if not demand.names_levels:
            yield Region()
            return
        work = region_work(self._problem, demand)
        own_regions = regions(self._problem, demand, self._room.fits, work)
        for region in islice(own_regions, MOST_REGIONS):
            parts = range(len(demand.parts))
            self._within = [region.nodes(self._problem, demand, part) for part in parts]
            # Members with the fewest nodes to choose from come first.
            self._largest_first.sort(key=self._choice)
            yield region

    def _choice(self, index: int) -> int:
        """How many nodes the region leaves to the part."""
        within = self._within[index]
        return len(self._room.free) if within is None else int(np.count_nonzero(within))

    def _undo(self, mark: int) -> None:
        """Give back the room since the mark, and what members use of caps."""
        if not any(self._placed):
            return
        self._room.undo(mark)
        for part, count in zip(self._demand.parts, self._placed, strict=True):
            self._caps.take(self._index, part.shape, -count)
        self._placed = [0] * len(self._placed)
        self._of_role = [0] * len(self._of_role)
        self._shares.clear()

    def _is_placed(self) -> bool:
        """Place all that is needed, as far as it goes."""
        most = [self._most(index) for index in range(len(self._placed))]
        if sum(most) < self._demand.need:
            return False
        members_by_part = self._choose(most)
        if sum(members_by_part) < self._demand.need:
            return False
        for own in self._demand.segments:
            if not self._are_placed(own, members_by_part):
                return False
        for index in self._largest_first:
            if index not in self._in_segments:
                self._place(index, members_by_part[index])
        if sum(self._placed) < self._demand.need:
            self._fill_up()
        return self._is_whole()

    def _result(self) -> tuple[Share, ...]:
        return tuple(Share(i, node, n) for (i, node), n in sorted(self._shares.items()))

    def _choose(self, most: Sequence[int]) -> list[int]:
        """Members wanted per part: role minimums first, then up to need, the smallest first.

        ``most`` is how many members of each part have room, were the part alone.
        """
        demand, parts = self._demand, self._demand.parts
        members_by_part, missing = [0] * len(parts), demand.need
        of_role = [0] * len(demand.role_minimum)
        for role, minimum in [*enumerate(demand.role_minimum), (None, demand.need)]:
            lacking = min(minimum, missing)
            for index in self._smallest_first:
                if role is None or parts[index].role == role:
                    may_add = self._may_add(parts[index], of_role)
                    extra = min(lacking, most[index] - members_by_part[index], may_add)
                    members_by_part[index] += extra
                    of_role[parts[index].role] += extra
                    self._caps.take(self._index, parts[index].shape, extra)
                    missing -= extra
                    lacking -= extra
        for part, count in zip(parts, members_by_part, strict=True):
            self._caps.take(self._index, part.shape, -count)
        return members_by_part

    def _may_add(self, part: Part, of_role: Sequence[int]) -> int:
        """How many more members of a part its role and caps allow, beside ``of_role`` members."""
        role = self._demand.maximum(part.role) - of_role[part.role]
        return min(role, self._caps.most(self._index, part.shape))

    def _most(self, index: int) -> int:
        """How many members of the part could be placed if it were alone."""
        part, within = self._demand.parts[index], self._within[index]
        if within is None:
            return min(part.available, self._room.total(part.shape))
        return min(part.available, int(self._room.fits(part.shape)[within].sum()))

    def _are_placed(self, own: Segments, members_by_part: Sequence[int]) -> bool:
        """Place so many members of these parts in segments; return whether all have a node.

        The short segment comes first. The domains with the least room get whole segments first, as
        many as they hold. This is exact for members of one shape.
        """
        missing = {i: n for i in own.parts if (n := members_by_part[i])}
        if not missing:
            return True
        short = sum(missing.values()) % own.size
        domain, rooms = self._problem.domains[own.level], self._rooms(own, missing)
        if short:
            tried = segments.domains_for_short(rooms, own.size, short)
            used = next((d for d in tried if self._takes(missing, domain == d, short)), None)
            if used is None:
                return False
            rooms = self._rooms(own, missing)
        for number in segments.domains_for_whole(rooms, own.size):
            whole = min(sum(missing.values()), int(rooms[number])) // own.size
            if not whole:
                break
            inside = domain == number
            while whole and not self._takes(missing, inside, whole * own.size):
                whole -= 1
        return not any(missing.values())

    def _rooms(self, own: Segments, missing: Mapping[int, int]) -> Array:
        """[domain]: for how many missing members there is room, each shape counted by itself."""
        domain, by_shape = self._problem.domains[own.level], dict[int, list[int]]()
        for index in missing:
            by_shape.setdefault(self._demand.parts[index].shape, []).append(index)
        rooms = []
        for shape, indices in by_shape.items():
            fits, is_open = self._room.fits(shape), np.zeros(len(domain), dtype=np.bool_)
            for index in indices:
                within = self._within[index]
                is_open |= True if within is None else within
            room = segments.by_domain(domain, np.where(is_open, fits, 0))
            most = sum(missing[index] for index in indices)
            rooms.append(room if len(by_shape) == 1 else np.minimum(room, most))
        total: Array = np.sum(rooms, axis=0)
        return total

    def _takes(self, missing: dict[int, int], inside: Flags, count: int) -> bool:
        """Place so many of the missing members on these nodes; undo it if not all have room."""
        mark, placed, shares = self._room.mark(), [*self._placed], dict(self._shares)
        lacking = count
        for index in self._largest_first:
            if lacking and missing.get(index):
                within, before = self._within[index], self._placed[index]
                self._within[index] = inside if within is None else within & inside
                self._place(index, min(lacking, missing[index]))
                self._within[index] = within
                lacking -= self._placed[index] - before
        if lacking:
            self._take_back(mark, placed, shares)
            return False
        for index in missing:
            missing[index] -= self._placed[index] - placed[index]
        return True

    def _take_back(
        self, mark: int, placed: Sequence[int], shares: Mapping[tuple[int, int], int]
    ) -> None:
        """Give back what members use that were placed since the mark."""
        self._room.undo(mark)
        for index, part in enumerate(self._demand.parts):
            count = self._placed[index] - placed[index]
            self._caps.take(self._index, part.shape, -count)
            self._of_role[part.role] -= count
        self._placed, self._shares = [*placed], dict(shares)

    def _place(self, index: int, count: int) -> None:
        """Place up to ``count`` members of one part, no more than its role and caps allow."""
        part, before = self._demand.parts[index], self._placed[index]
        self._spread(index, min(count, self._may_add(part, self._of_role)))
        placed = self._placed[index] - before
        self._of_role[part.role] += placed
        self._caps.take(self._index, part.shape, placed)

    def _spread(self, index: int, count: int) -> None:
        """Place up to ``count`` members of one part where there is room."""
        shape = self._demand.parts[index].shape
        until = self._placed[index] + count
        before = -1
        while before < self._placed[index] < until:
            before = self._placed[index]
            missing, within = until - before, self._within[index]
            for nodes, counts in self._scoring.spread(self._room, shape, missing, within):
                self._room.take(shape, nodes, counts)
                self._placed[index] += int(counts.sum())
                for node, members in zip(nodes.tolist(), counts.tolist(), strict=True):
                    self._shares[index, node] = self._shares.get((index, node), 0) + members

    def _fill_up(self) -> None:
        """Replace members without room by other members of their role, then by any others."""
        parts = self._demand.parts
        for role, minimum in [*enumerate(self._demand.role_minimum), (None, self._demand.need)]:
            for index in self._largest_first:
                is_free = index not in self._in_segments
                if is_free and (role is None or parts[index].role == role):
                    lacking = minimum - self._count(role)
                    self._place(index, min(lacking, parts[index].available - self._placed[index]))

    def _count(self, role: int | None) -> int:
        """The number of members placed so far, of one role or of all."""
        return sum(self._of_role) if role is None else self._of_role[role]

    def _is_whole(self) -> bool:
        """Whether exactly ``need`` members are placed, with at least each role's minimum."""
        minimums = enumerate(self._demand.role_minimum)
        return self._count(None) == self._demand.need and all(
            self._count(role) >= minimum for role, minimum in minimums
        )
