"""Node classes: the ways to fill a node, and the nodes that have the same ways.

A *pattern* says how many members of each shape one node takes. A maximal pattern leaves room for no
further member that could start. Nodes with the same maximal patterns are one class, whatever room
they have: treating them alike loses nothing, and no coarser grouping is possible. The idea of
columns that stand for ways to fill a bin is Gilmore and Gomory's (Operations Research 9, 1961).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..shape_demand import Array, Flags, ShapeDemand, alone, blocks
from ..work import Work
from .trimming import trimmed

MOST_PER_NODE = 1_000  # fillings of one node; a node with more is too rich to list
MOST_CELLS = 4_000_000  # numbers in one table of fillings
MOST_STEPS = 500_000  # rows visited; after that the remaining nodes count as too rich
MOST_LISTED = 10_000_000  # numbers in all patterns together
FEW_NODES = 64  # at most this many nodes that are too rich are counted one by one
MOST_COUNTS = 20_000  # variables for nodes that are too rich


@dataclass(frozen=True, slots=True, eq=False)
class NodeClass:
    """Nodes that can be filled in the same ways, or nodes that are too rich and counted together.

    The latter have no ``patterns``; ``room`` and ``most`` say what all of them hold together.
    """

    nodes: Array  # [k]: indices into Problem.free
    patterns: Array | None  # [pattern, row]
    room: Array  # [resource]
    most: Array  # [row]: if no other shape were there


class Listing:
    """How much may still be listed: rows visited, numbers in patterns, and work."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._steps = self._cells = 0

    def add(self, steps: int, cells: int) -> None:
        """Count the rows that were visited, and the numbers that were kept."""
        self._steps += steps
        self._cells += cells

    @property
    def is_over(self) -> bool:
        """Whether the remaining nodes count as too rich."""
        return self._steps > MOST_STEPS or self._cells > MOST_LISTED or self.work.is_over


def node_classes(
    free: Array, allowed: Flags, shape_demand: ShapeDemand, work: Work | None = None
) -> Sequence[NodeClass]:
    """The classes of all nodes that can take any member, in the order of their first nodes.

    ``free`` is [node, resource], ``allowed`` is [row, node]. Nodes are grouped by the shapes that
    fit them, and each group ignores all other shapes. If every gang has a rack of its own, for
    example, there are hundreds of shapes, but few for any one node. Once the work is used up, the
    remaining nodes are counted together, by where shapes may run.
    """
    work = work or Work()
    fits = allowed & _fits(free, shape_demand.requests)
    nodes = np.flatnonzero(fits.any(axis=0))
    listing, classes = Listing(work), list[NodeClass]()
    remaining: list[Array] = []
    for own in _alike(np.packbits(fits[:, nodes], axis=0).T):
        if work.is_over:
            remaining.append(nodes[own])
            continue
        rows = np.flatnonzero(fits[:, nodes[own[0]]])
        own_demand = ShapeDemand(
            shape_demand.shapes[rows], shape_demand.requests[rows], shape_demand.most[rows]
        )
        own_classes = _classes(free[nodes[own]].clip(0), own_demand, listing)
        classes += [
            _widened(node_class, nodes[own], rows, shape_demand) for node_class in own_classes
        ]
    listed = [node_class for node_class in classes if node_class.patterns is not None]
    rich = (
        []
        if remaining
        else _grouped([node_class for node_class in classes if node_class.patterns is None])
    )
    if remaining or _variables(rich) > MOST_COUNTS:
        remaining += [node_class.nodes for node_class in classes if node_class.patterns is None]
        rich = _by_place(free, allowed, shape_demand, np.sort(np.concatenate(remaining)))
    if _variables(rich) > MOST_COUNTS:
        rich = [_together(rich)]
    return sorted([*listed, *rich], key=lambda node_class: int(node_class.nodes[0]))


def _alike(rows: NDArray[Any]) -> Sequence[Array]:
    """The positions of equal rows, each group in its order."""
    if not rows.size:
        return (np.arange(len(rows)),) if len(rows) else ()
    _, owner = np.unique(rows, axis=0, return_inverse=True)
    owner = owner.ravel()
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1])


def _classes(room: Array, shape_demand: ShapeDemand, listing: Listing) -> Sequence[NodeClass]:
    """The classes of nodes that every shape fits, by their positions.

    Nodes that are too rich form a class for each different room.
    """
    room, short = trimmed(room, shape_demand, listing.work)
    groups = _alike(room[:, short])
    first = np.array([own[0] for own in groups])
    order = _largest_first(shape_demand.requests)
    short_demand = ShapeDemand(
        shape_demand.shapes, shape_demand.requests[:, short], shape_demand.most
    )
    fillings = _enumerated(room[first][:, short], short_demand, order, listing)
    classes: list[NodeClass] = []
    listed: dict[bytes, list[Array]] = {}
    patterns: dict[bytes, Array] = {}
    for own, ways in zip(groups, fillings, strict=True):
        if ways is None:
            most = alone(room[own[:1]], shape_demand)[0] * len(own)
            classes.append(NodeClass(own, None, room[own].sum(axis=0), most))
        else:
            patterns[ways.tobytes()] = ways
            listed.setdefault(ways.tobytes(), []).append(own)
    nothing = np.zeros(room.shape[1], dtype=np.int64)
    for mark, same in listed.items():
        own = np.sort(np.concatenate(same))
        classes.append(NodeClass(own, patterns[mark], nothing, shape_demand.most * 0))
    return classes


def _widened(
    node_class: NodeClass, nodes: Array, rows: Array, shape_demand: ShapeDemand
) -> NodeClass:
    """The class with these nodes and with all rows, of which only some fit it."""
    most = np.zeros(len(shape_demand.most), dtype=np.int64)
    most[rows] = node_class.most
    if node_class.patterns is None:
        return NodeClass(nodes[node_class.nodes], None, node_class.room, most)
    patterns = np.zeros((len(node_class.patterns), len(most)), dtype=np.int64)
    patterns[:, rows] = node_class.patterns
    return NodeClass(nodes[node_class.nodes], patterns, node_class.room, most)


def _grouped(rich: Sequence[NodeClass]) -> Sequence[NodeClass]:
    """Classes of nodes that are too rich: one per node if they are few, merged if too many."""
    if sum(len(node_class.nodes) for node_class in rich) <= FEW_NODES:
        single = [single_node for node_class in rich for single_node in _one_by_one(node_class)]
        if _variables(single) <= MOST_COUNTS:
            return single
    if _variables(rich) <= MOST_COUNTS:
        return rich
    groups: dict[bytes, list[NodeClass]] = {}
    for node_class in rich:
        groups.setdefault((node_class.most > 0).tobytes(), []).append(node_class)
    return [_together(own) for own in groups.values()]


def _variables(classes: Sequence[NodeClass]) -> int:
    """The number of variables that these classes need."""
    return sum(int(np.count_nonzero(node_class.most)) for node_class in classes)


def _one_by_one(node_class: NodeClass) -> Iterable[NodeClass]:
    """One class for each node of the class; all nodes have equal room."""
    k = len(node_class.nodes)
    for i in range(k):
        yield NodeClass(
            node_class.nodes[i : i + 1], None, node_class.room // k, node_class.most // k
        )


def _together(own: Sequence[NodeClass]) -> NodeClass:
    """All these classes as one class."""
    nodes = np.sort(np.concatenate([node_class.nodes for node_class in own]))
    room, most = (
        sum(node_class.room for node_class in own),
        sum(node_class.most for node_class in own),
    )
    return NodeClass(nodes, None, np.asarray(room), np.asarray(most))


def _by_place(
    free: Array, allowed: Flags, shape_demand: ShapeDemand, nodes: Array
) -> Sequence[NodeClass]:
    """These nodes, counted together if the same shapes may run on them."""
    classes = []
    for own in _alike(np.packbits(allowed[:, nodes], axis=0).T):
        own_nodes = nodes[own]
        most = np.zeros(len(shape_demand.most), dtype=np.int64)
        for part in blocks(len(own_nodes), len(most)):
            most += alone(free[own_nodes[part]].clip(0), shape_demand).sum(axis=0)
        most[~allowed[:, own_nodes[0]]] = 0
        classes.append(NodeClass(own_nodes, None, free[own_nodes].clip(0).sum(axis=0), most))
    return classes


def _fits(free: Array, requests: Array) -> Flags:
    """[row, node]: whether the node has room for one member; only requested amounts count."""
    return np.stack([(free[:, ask > 0] >= ask[ask > 0]).all(axis=1) for ask in requests])


def _counts(room: Array, ask: Array) -> Array:
    """How many members of one shape fit on each node, if nothing else runs on it."""
    requested = np.flatnonzero(ask)
    if not requested.size:
        return np.full(len(room), np.iinfo(np.int32).max, dtype=np.int64)
    counts: Array = (room[:, requested] // ask[requested]).min(axis=1)
    return counts


def _largest_first(asks: Array) -> Sequence[int]:
    """The rows by their largest share of any resource."""
    size = (asks / asks.max(axis=0).clip(1)).max(axis=1)
    return sorted(range(len(asks)), key=lambda row: (-float(size[row]), row))


def _enumerated(
    room: Array, shape_demand: ShapeDemand, order: Sequence[int], listing: Listing
) -> Sequence[Array | None]:
    """For each node its maximal fillings, in one order for all.

    None if there are too many. Nodes that promise few fillings come first, until the work is used
    up.
    """
    fillings: list[Array | None] = [None] * len(room)
    rows = len(shape_demand.most)
    listing.work.spend(room.size * rows)
    promise = np.concatenate(
        [np.log1p(alone(room[part], shape_demand)).sum(axis=1) for part in blocks(len(room), rows)]
    )
    by_promise = np.argsort(promise, kind="stable")
    size = max(1, MOST_CELLS // (MOST_PER_NODE * (rows + room.shape[1])))
    for start in range(0, len(room), size):
        if listing.is_over:
            break
        part = by_promise[start : start + size]
        owner, counts, steps = _fillings(room[part], shape_demand, order, listing.work)
        ends = np.searchsorted(owner, np.arange(len(part) + 1))
        for i, node in enumerate(part.tolist()):
            if ends[i + 1] > ends[i]:
                fillings[node] = counts[ends[i] : ends[i + 1]]
        listing.add(steps, counts.size)
    return fillings


def _fillings(
    room: Array, shape_demand: ShapeDemand, order: Sequence[int], work: Work
) -> tuple[Array, Array, int]:
    """All maximal fillings, as (node, counts) in the order of the nodes; none of nodes too rich.

    Shapes are added in ``order``; every row is a node filled so far. The last number is how many
    rows were visited.
    """
    asks = shape_demand.requests
    owner, free = np.arange(len(room)), room
    counts = np.zeros((len(room), len(asks)), dtype=np.int64)
    steps = 0
    for at, row in enumerate(order):
        most = np.minimum(_counts(free, asks[row]), shape_demand.most[row])
        minimum = _minimum(free, shape_demand, row, order[at + 1 :], work)
        least = np.minimum(most, minimum)
        ways = most - least + 1
        keep = np.bincount(owner, weights=ways, minlength=len(room))[owner] <= MOST_PER_NODE
        source = np.repeat(np.flatnonzero(keep), ways[keep])
        starts = np.repeat(np.cumsum(ways[keep]) - ways[keep], ways[keep])
        take = least[source] + np.arange(len(source)) - starts
        owner, counts = owner[source], counts[source]
        free = free[source] - take[:, None] * asks[row]
        counts[:, row] = take
        steps += len(owner)
        work.spend(counts.size + free.size)
        if work.is_over or not len(owner):
            return owner[:0], counts[:0], steps
    could = np.stack([(free >= ask).all(axis=1) | (ask == 0).all() for ask in asks], axis=1)
    is_maximal = ~(could & (counts < shape_demand.most)).any(axis=1)
    return owner[is_maximal], counts[is_maximal], steps


def _minimum(
    free: Array, shape_demand: ShapeDemand, row: int, later: Sequence[int], work: Work
) -> Array:
    """The least number of members of the row in a maximal filling.

    This is the number that fits into the room that later shapes cannot use up: a maximal filling
    leaves none of that room. Later shapes are added up only until they could use all of it.
    """
    ask = shape_demand.requests[row]
    requested = np.flatnonzero(ask)
    if not requested.size:
        return _counts(free, ask)
    spare, start, size = free[:, requested], 0, 8
    minimum = _counts(spare, ask[requested])
    while start < len(later) and minimum.any():
        rows = np.array(later[start : start + size])
        part = ShapeDemand(rows, shape_demand.requests[rows], shape_demand.most[rows])
        spare = spare - alone(free, part) @ part.requests[:, requested]
        minimum = _counts(spare.clip(0), ask[requested])
        work.spend(len(free) * part.requests.size)
        start, size = start + size, 2 * size
    return minimum
