"""From names to numbers and back: Snapshot → Grid → Problem, and Solution → assignments.

A Grid holds what all rounds of one plan share, so that shapes and node rules are worked out once.
Amounts are 64-bit integers; everything is in the order of the nodes' names.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import ports
from ..model.cluster import Gang, Member, Node, Reservation, Snapshot
from ..model.decisions import Assignment
from ..model.keys import NodeName, Uid
from ..model.resources import NOTHING, Resources
from ..model.shapes import Shape
from ..strategies.problem import NO_RULES, Demand, Part, Problem, Rules, Solution
from . import slots
from .demand import Want
from .feasibility import topologies
from .nodeindex import Mask, NodeIndex

PODS = "pods"
MOST_MISSING = 2  # columns for resources that one shape asks for and no node offers

# 1 Pi. Larger amounts count as this much, one less on nodes: what is asked never becomes less than
# what is there, and a gang of 5,000 cannot overflow 64 bits.
AMOUNT_LIMIT = 2**50


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The axes of all arrays of one plan, and the numbers that no round changes."""

    nodes: tuple[Node, ...]
    resources: tuple[str, ...]
    shapes: Mapping[Shape, int]
    capacity: NDArray[np.int64]  # [node, resource]: allocatable
    free: NDArray[np.int64]  # [node, resource]: before this plan; zero where overdrawn
    requests: NDArray[np.int64]  # [shape, resource]
    allowed: NDArray[np.bool_]  # [shape, node]
    index: NodeIndex  # of the nodes, for whoever says why one is not allowed
    rules: Rules = NO_RULES


def grid(snapshot: Snapshot, shapes: Iterable[Shape]) -> Grid:
    """The numbers of a Snapshot, as far as these shapes ask for them."""
    nodes = tuple(sorted(snapshot.nodes, key=lambda node: node.name))
    known = {id(shape): shape for shape in shapes}  # members that are alike share theirs
    index = {shape: i for i, shape in enumerate(dict.fromkeys(known.values()))}
    resources = _columns(index, nodes)
    held = reserved_room(snapshot)
    by_label = NodeIndex(nodes)
    capacity = _table([node.allocatable for node in nodes], resources, AMOUNT_LIMIT - 1)
    for column, name in enumerate(resources):
        if ports.is_port(name):
            capacity[:, column] = ports.offered(name)
    used = _table([node.used for node in nodes], resources)
    promised = _table([held.get(node.name, NOTHING) for node in nodes], resources)
    return Grid(
        nodes=nodes,
        resources=resources,
        shapes=index,
        capacity=capacity,
        # Overdrawn by others: nothing more of it fits, and what asks for none of it still may.
        free=np.maximum(capacity - used - promised, 0),
        requests=_table([footprint(shape) for shape in index], resources),
        allowed=_allowed(tuple(index), by_label, len(nodes)),
        index=by_label,
    )


def _columns(shapes: Iterable[Shape], nodes: Sequence[Node]) -> tuple[str, ...]:
    """The resources that tell where these shapes have room, sorted.

    Of those that a shape asks for and no node offers two are enough, whatever else it invents: one
    keeps it off every node, and the other still does where somebody asks what plenty of one would
    change. So names that a pod makes up cost two columns, not one each.
    """
    offered = {PODS, *(name for node in nodes for name, n in node.allocatable.amounts if n > 0)}
    found = {PODS}
    for shape in shapes:
        missing = 0
        for name, n in shape.requests.amounts:
            is_missing = n > 0 and name not in offered and not ports.is_port(name)
            missing += is_missing
            if not is_missing or missing <= MOST_MISSING:
                found.add(name)
    return tuple(sorted(found))


def footprint(shape: Shape) -> Resources:
    """What one member takes of a node: its requests, and one of the pods the node may run."""
    return Resources.of({**dict(shape.requests.amounts), PODS: 1})


def reserved_room(snapshot: Snapshot) -> Mapping[NodeName, Resources]:
    """Room held by standing Reservations for members that no node's ``used`` counts yet."""
    if not snapshot.reservations:
        return {}
    members = {member.uid: member for gang in snapshot.gangs for member in gang.members}
    members.update((member.uid, member) for member in snapshot.strays)
    gangs = {gang.key: gang for gang in snapshot.gangs}
    held: dict[NodeName, list[Resources]] = {}
    for reservation in snapshot.reservations:
        for node, room in _held_by(reservation, gangs.get(reservation.gang), members):
            held.setdefault(node, []).append(room)
    return {node: Resources.total(rooms) for node, rooms in held.items()}


def _held_by(
    reservation: Reservation, gang: Gang | None, members: Mapping[Uid, Member]
) -> Iterable[tuple[NodeName, Resources]]:
    """What one Reservation holds; of a member that nobody knows, the most its siblings ask for."""
    siblings = gang.members if gang is not None else ()
    for entry in reservation.entries:
        member = members.get(entry.uid)
        if member is None:
            yield entry.node, _largest(siblings)
        elif member.node is None:
            yield entry.node, footprint(member.shape)
    for slot in reservation.slots:
        declared = None if gang is None else slots.declared(gang, slot.role)
        of_role = [member for member in siblings if member.role == slot.role]
        each = _largest(of_role) if declared is None else footprint(declared)
        yield slot.node, each.scaled(slot.count)


def _largest(members: Iterable[Member]) -> Resources:
    most = NOTHING
    for member in members:
        most = most.at_least(footprint(member.shape))
    return most


def vacant(snapshot: Snapshot, base: Grid) -> NDArray[np.int64]:
    """The room of each node once every member of a gang has ended, and others' pods have not."""
    rows = {node.name: i for i, node in enumerate(base.nodes)}
    shapes: dict[Shape, int] = {}
    where, which = [], []
    for member in (*(m for gang in snapshot.gangs for m in gang.members), *snapshot.strays):
        if member.node in rows and not member.is_over:
            where.append(rows[member.node])
            which.append(shapes.setdefault(member.shape, len(shapes)))
    own = np.zeros_like(base.capacity)
    if where:
        np.add.at(own, where, _table([footprint(shape) for shape in shapes], base.resources)[which])
    staying = np.maximum(_table([node.used for node in base.nodes], base.resources) - own, 0)
    room: NDArray[np.int64] = np.maximum(base.capacity - staying, 0)
    return room


def problem(
    base: Grid, free: NDArray[np.int64], wants: Sequence[Want], worths: Sequence[int]
) -> Problem:
    """The numbers of one round: these demands, worth so much, on the room that is free by now."""
    return Problem(
        free=free,
        requests=base.requests,
        allowed=base.allowed,
        demands=tuple(
            _demand(base, want, worth) for want, worth in zip(wants, worths, strict=True)
        ),
        rules=base.rules,
    )


def parts(want: Want) -> tuple[tuple[Member, ...], ...]:
    """The want's members by role and shape, in the order in which the oldest of each came."""
    if not want.minimums:
        return want.alike
    groups: dict[tuple[str, Shape], list[Member]] = {}
    for member in want.members:
        groups.setdefault((member.role, member.shape), []).append(member)
    return tuple(tuple(group) for group in groups.values())


def _demand(base: Grid, want: Want, worth: int) -> Demand:
    minimums = want.minimums or (("", 0),)
    roles = {role: i for i, (role, _) in enumerate(minimums)}
    return Demand(
        need=want.need,
        parts=tuple(
            Part(
                shape=base.shapes[group[0].shape],
                role=roles[group[0].role] if want.minimums else 0,
                available=len(group),
            )
            for group in parts(want)
        ),
        role_minimum=tuple(least for _, least in minimums),
        level=2 * want.gang.priority + want.goes_first,
        value=worth,
    )


def assignments(
    base: Grid, wants: Sequence[Want], solution: Solution
) -> tuple[tuple[Assignment, ...], ...]:
    """Who goes where, per want: within a part the oldest members take the first nodes."""
    named: list[tuple[Assignment, ...]] = []
    for want, shares in zip(wants, solution.shares, strict=True):
        pools = [iter(_named(group)) for group in parts(want)] if shares else []
        named.append(
            tuple(
                Assignment(member.key, uid, member.version, base.nodes[share.node].name)
                for share in sorted(shares, key=lambda share: (share.part, share.node))
                for member, uid in islice(pools[share.part], share.count)
            )
        )
    return tuple(named)


def _named(group: Iterable[Member]) -> Iterator[tuple[Member, Uid]]:
    """Members of one part, each with a uid of its own: absent ones may be alike in theirs."""
    times = Counter[Uid]()
    for member in group:
        n = times[member.uid]
        yield member, slots.nth(member.uid, n) if n else member.uid
        times[member.uid] += 1


class Seated(NamedTuple):
    """So many members of one shape on one node."""

    shape: Shape
    node: int
    members: int


def seated(wants: Sequence[Want], solution: Solution) -> Iterable[Seated]:
    """Whom a solution gives a node, by shape."""
    for want, shares in zip(wants, solution.shares, strict=True):
        groups = parts(want) if shares else ()
        for share in shares:
            yield Seated(groups[share.part][0].shape, share.node, share.count)


def room_left(
    base: Grid, free: NDArray[np.int64], wants: Sequence[Want], solution: Solution
) -> NDArray[np.int64]:
    """The room that is left once a solution is carried out."""
    taken = [(at.node, base.shapes[at.shape], at.members) for at in seated(wants, solution)]
    left = free.copy()
    nodes, shapes, counts = np.array(taken, dtype=np.int64).reshape(-1, 3).T
    np.subtract.at(left, nodes, base.requests[shapes] * counts[:, None])
    return np.maximum(left, 0)


def _table(
    vectors: Sequence[Resources], resources: Sequence[str], most: int = AMOUNT_LIMIT
) -> NDArray[np.int64]:
    """Vectors as rows; amounts are cut to what 64 bits can sum."""
    amounts = [dict(vector.amounts) for vector in vectors]
    table = np.empty((len(vectors), len(resources)), dtype=np.int64)
    for i, name in enumerate(resources):
        column = [each.get(name, 0) for each in amounts]
        try:
            table[:, i] = np.array(column, dtype=np.int64).clip(-AMOUNT_LIMIT, most)
        except OverflowError:
            table[:, i] = [max(-AMOUNT_LIMIT, min(n, most)) for n in column]
    return table


def _allowed(shapes: Sequence[Shape], index: NodeIndex, nodes: int) -> NDArray[np.bool_]:
    """[shape, node]: where each may run; shapes that no rule tells apart are asked about once."""
    known: dict[object, Mask] = {}
    allowed = np.zeros((len(shapes), nodes), np.bool_)
    for row, shape in enumerate(shapes):
        wants = (shape.node_selector, shape.required, shape.tolerations, shape.reach)
        rules = (*wants, *topologies(shape))
        if rules not in known:
            known[rules] = index.allowed(shape)
        allowed[row] = known[rules]
    return allowed


def label_keys(shape: Shape) -> Iterable[str]:
    """The labels that the shape's node rules ask about."""
    yield from (key for key, _ in shape.node_selector)
    for term in shape.required or ():
        yield from (requirement.key for requirement in term.labels)
    yield from (one.key for reach in shape.reach for way in reach for one in way)
