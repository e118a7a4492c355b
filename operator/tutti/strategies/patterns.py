"""Node classes: which ways there are to fill a node, and which nodes have the same ones.

A *pattern* says how many members of each shape one node takes; a maximal one leaves room for no
further member that is wanted. Nodes with the same maximal patterns are one class, whatever room
they have: nothing is lost by treating them alike, and no coarser grouping is possible. The idea of
columns that stand for ways to fill a bin is Gilmore and Gomory's (Operations Research 9, 1961).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_UNITS = 2**18  # finer amounts than this are not rounded to sums of requests
MOST_PER_NODE = 1_000  # fillings of one node that are looked at before it counts as too rich
MOST_CELLS = 4_000_000  # numbers in one table of fillings
MOST_STEPS = 500_000  # rows looked at before the nodes that are left count as too rich
FEW_NODES = 64  # too rich, but few enough to be counted one by one
MOST_COUNTS = 20_000  # variables for nodes that are too rich


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What competes for the nodes: shapes as rows, and how many members of each could start."""

    shapes: Array  # [row]: index into Problem.requests
    requests: Array  # [row, resource]
    most: Array  # [row]: no more than this are of use


@dataclass(frozen=True, slots=True, eq=False)
class NodeClass:
    """Nodes that can be filled in the same ways, or too rich ones that are counted together.

    ``patterns`` is None for the latter: then ``room`` and ``most`` say what all of them hold.
    """

    nodes: Array  # [k]: indices into Problem.free
    patterns: Array | None  # [pattern, row]
    room: Array  # [resource]
    most: Array  # [row]: if no other shape were there


def node_classes(free: Array, allowed: Flags, wanted: Wanted) -> Sequence[NodeClass]:
    """The classes of all nodes that can take any member, in the order of their first nodes.

    ``free`` is [node, resource], ``allowed`` is [row, node]. Nodes are looked at together with
    those that the same shapes fit, and with no other shape: where every gang has a rack of its own
    there are hundreds of shapes, and few for any one node.
    """
    fits = allowed & _fits(free, wanted.requests)
    nodes = np.flatnonzero(fits.any(axis=0))
    classes: list[NodeClass] = []
    steps = 0
    for own in _alike(np.packbits(fits[:, nodes], axis=0).T):
        rows = np.flatnonzero(fits[:, nodes[own[0]]])
        some = Wanted(wanted.shapes[rows], wanted.requests[rows], wanted.most[rows])
        found, more = _classes(free[nodes[own]].clip(0), some, MOST_STEPS - steps)
        classes += [_widened(each, nodes[own], rows, wanted) for each in found]
        steps += more
    listed = [each for each in classes if each.patterns is not None]
    rich = [each for each in classes if each.patterns is None]
    return sorted([*listed, *_grouped(rich)], key=lambda each: int(each.nodes[0]))


def _alike(rows: NDArray[Any]) -> Sequence[Array]:
    """The positions of equal rows, each group in its order."""
    if not len(rows):
        return ()
    _, owner = np.unique(rows, axis=0, return_inverse=True)
    owner = owner.ravel()
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1])


def _classes(room: Array, wanted: Wanted, steps: int) -> tuple[Sequence[NodeClass], int]:
    """The classes of nodes that every shape fits, by their positions, and the work it took.

    Rich nodes are a class for each room.
    """
    room = _trimmed(room, wanted)
    groups = _alike(room)
    first = np.array([own[0] for own in groups])
    found, work = _enumerated(room[first], wanted, steps)
    classes: list[NodeClass] = []
    listed: dict[bytes, list[Array]] = {}
    patterns: dict[bytes, Array] = {}
    for own, ways in zip(groups, found, strict=True):
        if ways is None:
            most = _alone(room[own], wanted).sum(axis=0)
            classes.append(NodeClass(own, None, room[own].sum(axis=0), most))
        else:
            patterns[ways.tobytes()] = ways
            listed.setdefault(ways.tobytes(), []).append(own)
    nothing = np.zeros(room.shape[1], dtype=np.int64)
    for mark, same in listed.items():
        own = np.sort(np.concatenate(same))
        classes.append(NodeClass(own, patterns[mark], nothing, wanted.most * 0))
    return classes, work


def _widened(each: NodeClass, nodes: Array, rows: Array, wanted: Wanted) -> NodeClass:
    """The class with these nodes and with all rows, of which only some fit it."""
    most = np.zeros(len(wanted.most), dtype=np.int64)
    most[rows] = each.most
    if each.patterns is None:
        return NodeClass(nodes[each.nodes], None, each.room, most)
    patterns = np.zeros((len(each.patterns), len(most)), dtype=np.int64)
    patterns[:, rows] = each.patterns
    return NodeClass(nodes[each.nodes], patterns, each.room, most)


def _grouped(rich: Sequence[NodeClass]) -> Iterable[NodeClass]:
    """Nodes too rich to list their fillings: one by one if few, together if far too many."""
    if sum(len(each.nodes) for each in rich) <= FEW_NODES:
        for each in rich:
            k = len(each.nodes)
            yield from (
                NodeClass(each.nodes[i : i + 1], None, each.room // k, each.most // k)
                for i in range(k)
            )
        return
    if sum(np.count_nonzero(each.most) for each in rich) <= MOST_COUNTS:
        yield from rich
        return
    groups: dict[bytes, list[NodeClass]] = {}
    for each in rich:
        groups.setdefault((each.most > 0).tobytes(), []).append(each)
    for own in groups.values():
        nodes = np.sort(np.concatenate([each.nodes for each in own]))
        room, most = sum(each.room for each in own), sum(each.most for each in own)
        yield NodeClass(nodes, None, np.asarray(room), np.asarray(most))


def _fits(free: Array, requests: Array) -> Flags:
    """[row, node]: has the node room for one member; what is not asked for need not be there."""
    return np.stack([(free[:, ask > 0] >= ask[ask > 0]).all(axis=1) for ask in requests])


def _trimmed(room: Array, wanted: Wanted) -> Array:
    """The room without what no filling could use; cheap, and the same nodes become equal early."""
    asks = wanted.requests
    room = np.minimum(room, _alone(room, wanted) @ asks)
    used = np.flatnonzero(asks.any(axis=0)).tolist()
    for r in used:
        for q in used:
            top = int(room[:, q].max(initial=0))
            if q != r and not ((asks[:, r] > 0) & (asks[:, q] == 0)).any():
                # Nothing uses r without q: so no more of r is used than q allows.
                pairs = [(int(a), int(b)) for a, b in asks[asks[:, q] > 0][:, [r, q]]]
                a, b = max(pairs, key=lambda pair: Fraction(*pair))
                if a * top < 2**62:
                    room[:, r] = np.minimum(room[:, r], room[:, q] * a // b)
    for r in used:
        room[:, r] = _rounded(room[:, r], asks[:, r])
    return room


def _alone(room: Array, wanted: Wanted) -> Array:
    """[node, row]: how many members of each shape fit, if no other shape is there."""
    counts = np.stack([_counts(room, ask) for ask in wanted.requests], axis=1)
    return np.minimum(counts, wanted.most)


def _counts(room: Array, ask: Array) -> Array:
    """How many members of one shape fit on each node, if nothing else is there."""
    asked = np.flatnonzero(ask)
    if not asked.size:
        return np.full(len(room), np.iinfo(np.int32).max, dtype=np.int64)
    counts: Array = (room[:, asked] // ask[asked]).min(axis=1)
    return counts


def _rounded(room: Array, amounts: Array) -> Array:
    """Each room as the largest sum of requests that it holds, of one resource alone."""
    amounts = np.unique(amounts[amounts > 0])
    unit = int(np.gcd.reduce(amounts))
    units = room // unit
    top = int(units.max(initial=0))
    if top > MOST_UNITS:
        return units * unit
    reachable = np.zeros(top + 1, dtype=np.bool_)
    reachable[0] = True
    for step in (amounts // unit).tolist():
        for start in range(step, top + 1, step):
            reachable[start : start + step] |= reachable[start - step : start][: top + 1 - start]
    largest = np.maximum.accumulate(np.where(reachable, np.arange(top + 1), 0))
    rounded: Array = largest[units] * unit
    return rounded


def _enumerated(room: Array, wanted: Wanted, most_steps: int) -> tuple[Sequence[Array | None], int]:
    """For each node its maximal fillings, in one order for all, and the work it took.

    None where they are too many; the nodes that promise few come first, until the work is used up.
    """
    found: list[Array | None] = [None] * len(room)
    promise = np.log1p(_alone(room, wanted)).sum(axis=1)
    order = np.argsort(promise, kind="stable")
    size = max(1, MOST_CELLS // (MOST_PER_NODE * (len(wanted.most) + room.shape[1])))
    work = 0
    for start in range(0, len(room), size):
        if work > most_steps:
            break
        part = order[start : start + size]
        owner, counts, steps = _fillings(room[part], wanted)
        ends = np.searchsorted(owner, np.arange(len(part) + 1))
        for i, node in enumerate(part.tolist()):
            if ends[i + 1] > ends[i]:
                found[node] = counts[ends[i] : ends[i + 1]]
        work += steps
    return found, work


def _fillings(room: Array, wanted: Wanted) -> tuple[Array, Array, int]:
    """All maximal fillings, as (node, counts) in the order of the nodes; none of nodes too rich.

    Shape by shape, the largest first: every row is a node filled so far. The last number is how
    many rows were looked at.
    """
    asks = wanted.requests
    size = (asks / asks.max(axis=0).clip(1)).max(axis=1)
    order = sorted(range(len(asks)), key=lambda row: (-float(size[row]), row))
    owner, left = np.arange(len(room)), room
    counts = np.zeros((len(room), len(asks)), dtype=np.int64)
    steps = 0
    for at, row in enumerate(order):
        most = np.minimum(_counts(left, asks[row]), wanted.most[row])
        least = np.minimum(most, _counts(_spare(left, wanted, order[at + 1 :]), asks[row]))
        ways = most - least + 1
        keep = np.bincount(owner, weights=ways, minlength=len(room))[owner] <= MOST_PER_NODE
        source = np.repeat(np.flatnonzero(keep), ways[keep])
        starts = np.repeat(np.cumsum(ways[keep]) - ways[keep], ways[keep])
        take = least[source] + np.arange(len(source)) - starts
        owner, counts = owner[source], counts[source]
        left = left[source] - take[:, None] * asks[row]
        counts[:, row] = take
        steps += len(owner)
    could = np.stack([(left >= ask).all(axis=1) | (ask == 0).all() for ask in asks], axis=1)
    is_maximal = ~(could & (counts < wanted.most)).any(axis=1)
    return owner[is_maximal], counts[is_maximal], steps


def _spare(left: Array, wanted: Wanted, later: Sequence[int]) -> Array:
    """The room that the later shapes cannot use up: a maximal filling leaves none of it."""
    load = np.zeros_like(left)
    for row in later:
        ask = wanted.requests[row]
        load += np.minimum(_counts(left, ask), wanted.most[row])[:, None] * ask
    spare: Array = np.maximum(left - load, 0)
    return spare
