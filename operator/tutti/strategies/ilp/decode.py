"""From numbers per type and class to shares: which gangs start, with which members, on which nodes.

Splitting loses nothing. The members of identical gangs divide evenly, since a gang's rules are
nested sums (total unimodularity: Baum and Trotter, 1978). The nodes of one class can be filled in
the same ways.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

import numpy as np

from ..problem import Demand, Problem, Share, Shares
from ..shape_demand import Array, ShapeDemand
from .program import ClassVariables, GangType, Program

CLOSE_ENOUGH = 1e-4  # an engine's integers are within 1e-6 of whole; otherwise it has not finished

Members = Mapping[tuple[int, int], int]  # (demand, part) -> how many


def whole_numbers(values: Mapping[str, float]) -> Mapping[str, int] | None:
    """An engine's values rounded to integers; None if a value is not close to an integer."""
    rounded = {name: round(value) for name, value in values.items()}
    if not values or any(abs(values[name] - n) > CLOSE_ENOUGH for name, n in rounded.items()):
        return None
    return rounded


def split(
    problem: Problem, program: Program, numbers: Mapping[str, int], free: Array | None = None
) -> Shares:
    """The shares that the values of the variables stand for.

    ``free`` is the room in the program's resources, if these differ from the problem's. If classes
    were counted as a whole, the shares may be unsound.
    """
    room = problem.free if free is None else free
    members: dict[tuple[int, int], int] = {}
    for gang_type in program.types:
        members.update(_members(gang_type, numbers))
    places = np.zeros((len(program.shape_demand.shapes), len(problem.free)), dtype=np.int64)
    for filling in program.fillings:
        _fill(places, room, program.shape_demand, filling, numbers)
    return _distribute(problem, program.shape_demand, members, places)


def _members(gang_type: GangType, numbers: Mapping[str, int]) -> Members:
    """The number of members of each part that each demand of the type starts with.

    The first demands of the type start.
    """
    totals = [numbers[variable.name] * count for variable, count in gang_type.members]
    members: dict[tuple[int, int], int] = {}
    remaining = numbers[gang_type.starts.name]
    for index in gang_type.indices[:remaining]:
        for part, count in enumerate(_fair(gang_type.demand, totals, remaining)):
            members[index, part] = count
            totals[part] -= count
        remaining -= 1
    return members


def _fair(demand: Demand, totals: Sequence[int], gangs: int) -> Sequence[int]:
    """One gang's share of the totals: rounded down or up, part by part and role by role."""
    counts = [total // gangs for total in totals]
    roles = range(len(demand.role_minimum))
    own = {role: [i for i, part in enumerate(demand.parts) if part.role == role] for role in roles}
    sums = {role: sum(totals[i] for i in own[role]) for role in roles}
    extra = demand.need - sum(sums[role] // gangs for role in roles)
    for role in roles:
        aim = sums[role] // gangs
        if extra and sums[role] % gangs:
            aim, extra = aim + 1, extra - 1
        for i in own[role]:
            if totals[i] % gangs and sum(counts[j] for j in own[role]) < aim:
                counts[i] += 1
    return counts


def _fill(
    places: Array,
    room: Array,
    shape_demand: ShapeDemand,
    filling: ClassVariables,
    numbers: Mapping[str, int],
) -> None:
    """Fill in how many members of each shape may go to each node of a class."""
    nodes, patterns = filling.nodes, filling.patterns
    if filling.whole:
        _pack(places, room, shape_demand, filling, numbers)
    elif len(patterns) == 1:
        places[:, nodes] = patterns[0][:, None]
    else:
        uses = [(index, numbers[variable.name]) for index, variable in filling.chosen.items()]
        chosen = [index for index, n in sorted(uses) for _ in range(n)][: len(nodes)]
        places[:, nodes[: len(chosen)]] = patterns[chosen].T


def _pack(
    places: Array,
    room: Array,
    shape_demand: ShapeDemand,
    filling: ClassVariables,
    numbers: Mapping[str, int],
) -> None:
    """Spread the members of a class counted as a whole over its nodes, the largest first."""
    nodes = filling.nodes
    free = room[nodes].clip(0)
    size = (shape_demand.requests / free.max(axis=0).clip(1)).max(axis=1)
    for row, variable in sorted(filling.whole, key=lambda pair: (-size[pair[0]], pair[0])):
        ask, missing = shape_demand.requests[row], numbers[variable.name]
        requested = np.flatnonzero(ask)
        fits = np.full(len(nodes), missing, dtype=np.int64)
        if requested.size:
            fits = (free[:, requested] // ask[requested]).min(axis=1)
        order = np.argsort(fits, kind="stable")
        before = np.cumsum(fits[order]) - fits[order]
        take = np.clip(missing - before, 0, fits[order])
        places[row, nodes[order]] = take
        free[order] -= take[:, None] * ask


def _distribute(
    problem: Problem, shape_demand: ShapeDemand, members: Members, places: Array
) -> Shares:
    """Give each demand's members their nodes; ``free_seats`` is what nodes take, by row.

    Demands are in order. Each takes the tightest node that holds all it needs, or else the
    roomiest.
    """
    row_of = {int(shape): row for row, shape in enumerate(shape_demand.shapes)}
    free_seats = [_FreeSeats(row) for row in places]
    shares_by_demand: list[list[Share]] = [[] for _ in problem.demands]
    for (index, part), missing in sorted(members.items()):
        own = free_seats[row_of[problem.demands[index].parts[part].shape]]
        for node, count in own.take(missing):
            shares_by_demand[index].append(Share(part, node, count))
    return tuple(tuple(shares) for shares in shares_by_demand)


class _FreeSeats:
    """The nodes of one row, indexed by how many members they still take."""

    def __init__(self, seats: Array) -> None:
        self._nodes = {  # each list is a heap, since it is sorted
            int(count): np.flatnonzero(seats == count).tolist()
            for count in np.unique(seats[seats > 0])
        }
        self._counts = sorted(self._nodes)

    def take(self, missing: int) -> Iterable[tuple[int, int]]:
        """Nodes and the members that each gets; between equal nodes, the first."""
        while missing > 0 and self._counts:
            at = min(bisect_left(self._counts, missing), len(self._counts) - 1)
            room = self._counts[at]
            node = heappop(self._nodes[room])
            if not self._nodes[room]:
                del self._counts[at]
            count = min(missing, room)
            if room > count:
                self._put(node, room - count)
            missing -= count
            yield node, count

    def _put(self, node: int, room: int) -> None:
        nodes = self._nodes.setdefault(room, [])
        if not nodes:
            insort(self._counts, room)
        heappush(nodes, node)
