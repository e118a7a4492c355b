"""From names to numbers and back: Snapshot → Grid → Problem, and Solution → assignments.

A Grid holds what all rounds of one plan share, so that shapes and node rules are worked out once.
Amounts are 64-bit integers; everything is in the order of the nodes' names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Gang, Member, Node, Reservation, Shape, Snapshot
from ..model.decisions import Assignment
from ..model.keys import NodeName, Uid
from ..model.resources import NOTHING, Resources
from ..strategies.problem import Demand, Part, Problem, Solution
from .demand import Want
from .feasibility import fits_node

PODS = "pods"

# 1 Pi. Larger amounts count as this much, one less on nodes: what is asked never becomes less than
# what is there, and a gang of 5,000 cannot overflow 64 bits.
AMOUNT_LIMIT = 2**50

# A gang's value is its share of the cluster in millionths: fine enough to tell one GPU of 100,000
# apart, coarse enough that sums stay exact in a solver's floating point.
SHARE_SCALE = 1_000_000


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


def grid(snapshot: Snapshot, shapes: Iterable[Shape]) -> Grid:
    """The numbers of a Snapshot, as far as these shapes ask for them."""
    nodes = tuple(sorted(snapshot.nodes, key=lambda node: node.name))
    index = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    resources = tuple(sorted({PODS, *(n for shape in index for n in shape.requests.names)}))
    held = reserved_room(snapshot)
    capacity = _table([node.allocatable for node in nodes], resources, AMOUNT_LIMIT - 1)
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
        allowed=_allowed(tuple(index), nodes),
    )


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
    for slots in reservation.slots:
        of_role = [member for member in siblings if member.role == slots.role]
        yield slots.node, _largest(of_role).scaled(slots.count)


def _largest(members: Iterable[Member]) -> Resources:
    most = NOTHING
    for member in members:
        most = most.at_least(footprint(member.shape))
    return most


def problem(base: Grid, free: NDArray[np.int64], wants: Sequence[Want]) -> Problem:
    """The numbers of one round: these demands, on the room that is free by now."""
    totals: list[int] = base.capacity.astype(object).sum(axis=0).tolist()  # beyond 64 bits
    return Problem(
        free=free,
        requests=base.requests,
        allowed=base.allowed,
        demands=tuple(_demand(base, totals, want) for want in wants),
    )


def parts(want: Want) -> tuple[tuple[Member, ...], ...]:
    """The want's members by role and shape, in the order in which the oldest of each came."""
    groups: dict[tuple[str, Shape], list[Member]] = {}
    for member in want.members:
        role = member.role if want.minimums else ""
        groups.setdefault((role, member.shape), []).append(member)
    return tuple(tuple(group) for group in groups.values())


def _demand(base: Grid, totals: Sequence[int], want: Want) -> Demand:
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
        level=want.gang.priority,
        value=_value(base, totals, want),
    )


def _value(base: Grid, totals: Sequence[int], want: Want) -> int:
    """The largest share of any resource's cluster total that the needed members ask for.

    Which members start may be open when they differ; the oldest that satisfy the roles count.
    """
    rows = [base.shapes[member.shape] for member in _oldest_needed(want)]
    asked = [int(n) for n in base.requests[rows].sum(axis=0)]
    shares = [n * SHARE_SCALE // total for n, total in zip(asked, totals, strict=True) if total]
    return max(shares, default=0) or 1


def _oldest_needed(want: Want) -> Sequence[Member]:
    chosen: list[Member] = []
    for role, least in want.minimums:
        chosen.extend(islice((m for m in want.members if m.role == role), least))
    taken = {member.uid for member in chosen}
    rest = (member for member in want.members if member.uid not in taken)
    chosen.extend(islice(rest, want.need - len(chosen)))
    return chosen


def assignments(
    base: Grid, wants: Sequence[Want], solution: Solution
) -> tuple[tuple[Assignment, ...], ...]:
    """Who goes where, per want: within a part the oldest members take the first nodes."""
    named: list[tuple[Assignment, ...]] = []
    for want, shares in zip(wants, solution.shares, strict=True):
        pools = [iter(group) for group in parts(want)] if shares else []
        named.append(
            tuple(
                Assignment(member.key, member.uid, member.version, base.nodes[share.node].name)
                for share in sorted(shares, key=lambda share: (share.part, share.node))
                for member in islice(pools[share.part], share.count)
            )
        )
    return tuple(named)


def room_left(
    base: Grid, free: NDArray[np.int64], wants: Sequence[Want], solution: Solution
) -> NDArray[np.int64]:
    """The room that is left once a solution is carried out."""
    left = free.copy()
    for want, shares in zip(wants, solution.shares, strict=True):
        rows = [base.shapes[group[0].shape] for group in parts(want)] if shares else []
        for share in shares:
            left[share.node] -= base.requests[rows[share.part]] * share.count
    return np.maximum(left, 0)


def _table(
    vectors: Sequence[Resources], resources: Sequence[str], most: int = AMOUNT_LIMIT
) -> NDArray[np.int64]:
    """Vectors as rows; amounts are cut to what 64 bits can sum. Equal vectors are read once."""
    rows: dict[Resources, list[int]] = {}
    for vector in vectors:
        if vector not in rows:
            rows[vector] = [max(-AMOUNT_LIMIT, min(vector[name], most)) for name in resources]
    table = np.array([rows[vector] for vector in vectors], dtype=np.int64)
    return table.reshape(len(vectors), len(resources))


def _allowed(shapes: Sequence[Shape], nodes: Sequence[Node]) -> NDArray[np.bool_]:
    """Where each shape may run; nodes that no rule of these shapes tells apart are asked once."""
    allowed = np.zeros((len(shapes), len(nodes)), dtype=np.bool_)
    by_name = [i for i, shape in enumerate(shapes) if _reads_names(shape)]
    by_labels = [i for i, shape in enumerate(shapes) if not _reads_names(shape)]
    for group in _alike(nodes, frozenset(k for i in by_labels for k in _keys(shapes[i]))):
        for i in by_labels:
            allowed[i, group] = fits_node(shapes[i], nodes[group[0]]) is None
    for i in by_name:
        allowed[i] = [fits_node(shapes[i], node) is None for node in nodes]
    return allowed


def _reads_names(shape: Shape) -> bool:
    return any(term.fields for term in shape.required or ())


def _keys(shape: Shape) -> Iterable[str]:
    yield from (key for key, _ in shape.node_selector)
    for term in shape.required or ():
        yield from (requirement.key for requirement in term.labels)


def _alike(nodes: Sequence[Node], keys: frozenset[str]) -> Iterable[Sequence[int]]:
    """Positions of nodes that differ in nothing but room, names and labels nobody asks about."""
    groups: dict[object, list[int]] = {}
    for i, node in enumerate(nodes):
        labels = tuple(label for label in node.labels if label[0] in keys)
        looks = (labels, node.taints, node.unschedulable, node.ready)
        groups.setdefault(looks, []).append(i)
    return groups.values()
