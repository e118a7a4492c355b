"""From names to numbers: the nodes, shapes and amounts of a Snapshot as a Grid.

A Grid holds what all rounds of one plan share, so that shapes and node rules are computed once.
Amounts are 64-bit integers. Nodes are in the order of their names; if there is a Topology, in that
of their domains first, the widest first. Of equally good nodes the first counts, so gangs fill
domain after domain. This order does not depend on what runs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...filters.node_index import Mask, NodeIndex
from ...filters.node_rules import topologies
from ...filters.topology import NestedDomains
from ...gang import slots
from ...model import ports
from ...model.cluster import Gang, Member, Node, Reservation, Snapshot
from ...model.inter_pod import Topology
from ...model.keys import NodeName, Uid
from ...model.resources import NOTHING, Resources
from ...model.shapes import Shape
from ...strategies.problem import NO_RULES, Rules

PODS = "pods"
MOST_MISSING = 2  # columns for resources that a shape requests and no node offers
MOST_PORTS = 256  # columns for host ports; in small clusters more
MOST_PORT_CELLS = 3_000_000  # numbers that the columns for host ports may have

# No amount of a Grid is larger, and every amount of a node is smaller, so the sum for a gang of
# 5,000 cannot overflow 64 bits. If a node has more of a resource, the Grid counts it in a larger
# unit.
AMOUNT_LIMIT = 2**50

Amounts = NDArray[Any]  # [row, resource]: int64, or Python integers if larger


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The resources that a Grid counts, by column.

    Pods may want very many host ports. Beyond a number of them, ports at all IPs that the same
    shapes want are one column, with the sum of their amounts: each of these shapes needs all of it,
    so this is exact. If there are still too many, the ports that are left are the last column. A
    shape with one of them requests all of it, and shares no node with a pod that uses another.
    """

    names: tuple[str, ...]
    by_name: Mapping[str, int]  # the column of each resource
    together: Mapping[str, int]  # the same, for host ports that share a column
    sizes: Mapping[int, int]  # by such a column: how many host ports share it
    offered_ports: Mapping[int, int]  # by column of host ports: what each node has of them
    has_rest: bool = False  # whether the last column is for the ports that are left

    @classmethod
    def of(cls, shapes: Collection[Shape], nodes: Sequence[Node]) -> "Columns":
        """The resources that decide where these shapes have room, sorted; ports together last.

        A shape may request many resources that no node offers. Two columns for them are enough:
        one keeps the shape off every node, and the other still does so when an explanation assumes
        plenty of the first. So resource names that a pod invents cost two columns, not one column
        each.
        """
        offered = {PODS, *(name for node in nodes for name, n in node.allocatable.amounts if n > 0)}
        resources = {PODS}
        for shape in shapes:
            missing = 0
            for name, n in shape.requests.amounts:
                if not ports.is_port(name):
                    is_missing = n > 0 and name not in offered
                    missing += is_missing
                    if not is_missing or missing <= MOST_MISSING:
                        resources.add(name)
        most = max(MOST_PORTS, MOST_PORT_CELLS // (len(nodes) + len(shapes) + 1))
        groups, rest = _port_groups(shapes, most)
        names = sorted({*resources, *(group[0] for group in groups if len(group) == 1)})
        together = [*(group for group in groups if len(group) > 1), *([rest] if rest else [])]
        own = {name: column for column, name in enumerate(names)}
        shared = dict[str, int]()
        for group in together:
            shared.update(dict.fromkeys(group, len(names)))
            names.append(f"{group[0]} and {len(group) - 1} more")
        by_name, sizes = {**own, **shared}, Counter(shared.values())
        offered_ports = Counter[int]()
        for name in chain(rest, *groups):
            offered_ports[by_name[name]] += ports.offered(name)
        return cls(tuple(names), by_name, shared, sizes, offered_ports, has_rest=bool(rest))

    def ports_with(self, port: str) -> int:
        """How many host ports count together with this one, itself included."""
        return self.sizes.get(self.by_name[port], 1)

    def offered(self, nodes: Sequence[Node]) -> Amounts:
        """[node, column]: the amounts of empty nodes."""
        table = self.amounts([node.allocatable for node in nodes])
        for column, n in self.offered_ports.items():
            table[:, column] = n
        return table

    def amounts(self, vectors: Sequence[Resources]) -> Amounts:
        """[vector, column]: the exact amounts."""
        by_name = [dict(vector.amounts) for vector in vectors]
        columns = [[values.get(name, 0) for values in by_name] for name in self.names]
        extremes = [n for column in columns if column for n in (max(column), -min(column))]
        is_small = all(n < AMOUNT_LIMIT for n in extremes)
        table = np.empty((len(vectors), len(self.names)), dtype=np.int64 if is_small else object)
        for i, column in enumerate(columns):
            table[:, i] = column
        if self.together:
            for row, values in enumerate(by_name):
                for name in self.together.keys() & values.keys():
                    table[row, self.together[name]] += values[name]
        return table

    def requests(self, shapes: Iterable[Shape]) -> Amounts:
        """[shape, column]: what one more member needs."""
        table = self.amounts([footprint(shape) for shape in shapes])
        if self.has_rest:
            table[table[:, -1] > 0, -1] = self.offered_ports[len(self.names) - 1]
        return table


def _port_groups(
    shapes: Collection[Shape], most: int
) -> tuple[Sequence[Sequence[str]], Sequence[str]]:
    """The host ports that these shapes want, by column, and those that are left.

    Shapes with few ports come first, so what a pod with thousands of ports wants is left.
    """
    wanted: dict[str, list[tuple[int, int]]] = {}  # by port: the shapes that want it, and how much
    by_shape = [
        {name: n for name, n in shape.requests.amounts if ports.is_port(name)} for shape in shapes
    ]
    for index in sorted(range(len(by_shape)), key=lambda index: len(by_shape[index])):
        for name, n in by_shape[index].items():
            wanted.setdefault(name, []).append((index, n))
    if len(wanted) <= most:
        return [(name,) for name in wanted], ()
    groups: dict[object, list[str]] = {}
    for name, by in wanted.items():
        is_whole = all(n == ports.WHOLE for _, n in by)
        groups.setdefault(tuple(index for index, _ in by) if is_whole else name, []).append(name)
    some = [*groups.values()]
    return some[:most], [name for group in some[most:] for name in group]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The axes of all arrays of one plan, and the numbers that no round changes."""

    nodes: tuple[Node, ...]
    columns: Columns
    shapes: Mapping[Shape, int]
    capacity: NDArray[np.int64]  # [node, resource]: allocatable
    free: NDArray[np.int64]  # [node, resource]: before this plan; zero if overcommitted
    requests: NDArray[np.int64]  # [shape, resource]
    allowed: NDArray[np.bool_]  # [shape, node]
    index: NodeIndex  # index of the nodes, which explains why a node is not allowed
    units: tuple[int, ...]  # [resource]: the unit of all the amounts above
    is_rounded: bool = False  # some request is not a multiple of the unit, and is rounded up
    rules: Rules = NO_RULES
    topologies: tuple[Topology, ...] = ()
    domains: NestedDomains = field(default_factory=lambda: NestedDomains(()))  # of the nodes

    @property
    def resources(self) -> tuple[str, ...]:
        """The resource of each column."""
        return self.columns.names


def grid(snapshot: Snapshot, shapes: Iterable[Shape]) -> Grid:
    """The numbers of a Snapshot, for the resources that these shapes request."""
    domains = _in_order(snapshot)
    nodes = tuple(domains.nodes)
    known = {id(shape): shape for shape in shapes}  # equal members share one Shape object
    index = {shape: i for i, shape in enumerate(dict.fromkeys(known.values()))}
    columns = Columns.of(index, nodes)
    reserved = reserved_room(snapshot)
    by_label = NodeIndex(nodes)
    capacity = columns.offered(nodes)
    units = _units(snapshot, capacity, columns)
    unused = capacity - columns.amounts([node.used for node in nodes])
    if reserved:
        unused = unused - columns.amounts([reserved.get(node.name, NOTHING) for node in nodes])
    requests = columns.requests(index)
    fractions = (requests % _row(units) != 0) & (requests <= capacity.max(axis=0, initial=0))
    return Grid(
        nodes=nodes,
        columns=columns,
        shapes=index,
        capacity=_rounded_down(capacity, units),
        # Where other pods overcommit a resource, only members that do not request it can still fit.
        free=_rounded_down(np.maximum(unused, 0), units),
        requests=rounded_up(requests, units),
        allowed=_allowed(tuple(index), by_label, len(nodes)),
        index=by_label,
        units=units,
        is_rounded=bool(fractions.any()),
        topologies=snapshot.topologies,
        domains=domains,
    )


def _in_order(snapshot: Snapshot) -> NestedDomains:
    """The nodes by domain and name, with their domains; those in no domain come first."""
    by_name = NestedDomains(sorted(snapshot.nodes, key=attrgetter("name")))
    first = min(snapshot.topologies, key=lambda topology: topology.order, default=None)
    if first is None:
        return by_name
    # Domains are numbered in the order of their values.
    return by_name.reordered(np.argsort(by_name.domains(first.levels), kind="stable"))


def room_less(base: Grid, amounts_taken: Sequence[Resources]) -> NDArray[np.int64]:
    """The capacity of each node minus these amounts; negative where the amounts are larger."""
    offered = base.columns.offered(base.nodes)
    return _rounded_down(offered - base.columns.amounts(amounts_taken), base.units)


def _units(snapshot: Snapshot, offered: Amounts, columns: Columns) -> tuple[int, ...]:
    """The unit of each resource: a power of two, so that amounts in Ki, Mi or more are exact.

    The unit is 1 if each node has less than 1 Pi of the resource, or its pods cannot request so
    much.
    """
    largest: list[int] = offered.max(axis=0, initial=0).tolist()
    if max(largest, default=0) < AMOUNT_LIMIT:
        return (1,) * len(columns.names)
    members = [*(m for gang in snapshot.gangs for m in gang.members), *snapshot.strays]
    templates = (role.template for gang in snapshot.gangs for role in gang.roles)
    declared = (template.shape for template in templates if template is not None)
    shapes = dict.fromkeys([*(member.shape for member in members), *declared])
    requests = columns.requests(shapes).T.tolist()
    pods = largest[columns.by_name[PODS]]
    useful = [
        pods * max((n for n in column if n <= most), default=0)
        for column, most in zip(requests, largest, strict=True)
    ]
    excess = [
        min(pair).bit_length() - AMOUNT_LIMIT.bit_length() + 1
        for pair in zip(largest, useful, strict=True)
    ]
    return tuple(2 ** max(0, bits) for bits in excess)


def _rounded_down(table: Amounts, units: Sequence[int]) -> NDArray[np.int64]:
    return _cut(table if max(units) == 1 else table // _row(units), AMOUNT_LIMIT - 1)


def rounded_up(table: Amounts, units: Sequence[int]) -> NDArray[np.int64]:
    """Requested amounts in these units, rounded up; amounts larger than any node's are cut."""
    return _cut(-(-table // _row(units)), AMOUNT_LIMIT)


def _row(units: Sequence[int]) -> Amounts:
    small = all(unit < AMOUNT_LIMIT for unit in units)
    return np.array(units, dtype=np.int64 if small else object)


def _cut(table: Amounts, most: int) -> NDArray[np.int64]:
    return np.clip(table, -AMOUNT_LIMIT, most).astype(np.int64, copy=False)


def footprint(shape: Shape) -> Resources:
    """The resources that one member takes of a node: its requests, and one pod."""
    return Resources.of({**dict(shape.requests.amounts), PODS: 1})


def reserved_room(snapshot: Snapshot) -> Mapping[NodeName, Resources]:
    """The room that Reservations hold, by node, for members that ``used`` does not count yet."""
    if not snapshot.reservations:
        return {}
    members = {member.uid: member for gang in snapshot.gangs for member in gang.members}
    members.update((member.uid, member) for member in snapshot.strays)
    gangs = {gang.key: gang for gang in snapshot.gangs}
    amounts_by_node: dict[NodeName, list[Resources]] = {}
    for reservation in snapshot.reservations:
        for node, room in _held_by(reservation, gangs.get(reservation.gang), members):
            amounts_by_node.setdefault(node, []).append(room)
    return {node: Resources.total(rooms) for node, rooms in amounts_by_node.items()}


def _held_by(
    reservation: Reservation, gang: Gang | None, members: Mapping[Uid, Member]
) -> Iterable[tuple[NodeName, Resources]]:
    """The room that a Reservation holds, by node.

    An unknown member counts as the largest request of its siblings, resource by resource.
    """
    siblings = gang.members if gang is not None else ()
    for entry in reservation.entries:
        member = members.get(entry.uid)
        if member is None:
            yield entry.node, _largest(siblings)
        elif member.node is None:
            yield entry.node, footprint(member.shape)
    for slot in reservation.slots:
        yield slot.node, slot_footprint(gang, slot.role).scaled(slot.count)


def slot_footprint(gang: Gang | None, role: str) -> Resources:
    """The room held for one absent member: its role's template, or else its siblings' maximum."""
    if gang is None:
        return NOTHING
    if (declared := slots.declared(gang, role)) is not None:
        return footprint(declared)
    return _largest(member for member in gang.members if member.role == role)


def _largest(members: Iterable[Member]) -> Resources:
    most = NOTHING
    for member in members:
        most = most.at_least(footprint(member.shape))
    return most


def vacant(snapshot: Snapshot, base: Grid) -> NDArray[np.int64]:
    """The room of each node once all members of gangs have ended; other pods stay."""
    rows = {node.name: i for i, node in enumerate(base.nodes)}
    shapes: dict[Shape, int] = {}
    node_rows, shape_rows = [], []
    for member in (*(m for gang in snapshot.gangs for m in gang.members), *snapshot.strays):
        if member.node in rows and not member.is_over:
            node_rows.append(rows[member.node])
            shape_rows.append(shapes.setdefault(member.shape, len(shapes)))
    footprints = base.columns.amounts([footprint(shape) for shape in shapes])
    own = np.zeros(base.capacity.shape, dtype=footprints.dtype)
    np.add.at(own, node_rows, footprints[shape_rows])
    used = base.columns.amounts([node.used for node in base.nodes])
    staying = np.maximum(used - own, 0)
    room = np.maximum(base.columns.offered(base.nodes) - staying, 0)
    return _rounded_down(room, base.units)


def _allowed(shapes: Sequence[Shape], index: NodeIndex, nodes: int) -> NDArray[np.bool_]:
    """[shape, node]: where each shape may run; equal node rules are evaluated once."""
    known: dict[object, Mask] = {}
    allowed = np.zeros((len(shapes), nodes), np.bool_)
    for row, shape in enumerate(shapes):
        wants = (shape.node_selector, shape.required, shape.tolerations, shape.volume_reach)
        rules = (*wants, *topologies(shape))
        if rules not in known:
            known[rules] = index.allowed(shape)
        allowed[row] = known[rules]
    return allowed


def label_keys(shape: Shape) -> Iterable[str]:
    """The label keys that the shape's node rules use."""
    yield from (key for key, _ in shape.node_selector)
    for term in shape.required or ():
        yield from (requirement.key for requirement in term.labels)
    yield from (
        requirement.key for reach in shape.volume_reach for way in reach for requirement in way
    )
