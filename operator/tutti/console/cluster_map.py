"""The map: of each node, who has how much of the resource that people count there.

On a node with devices that is the device that most members ask for, elsewhere it is CPU.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ..gang import slots
from ..gang.quantities import listed, quantity
from ..model import ports, volumes
from ..model.cluster import Gang, Node, Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey, NodeName

CPU = "cpu"
KIND = "node.kubernetes.io/instance-type"
TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
WORDS_OF_LEVELS = ("topology", "zone", "rack", "block", "switch", "pool")
BOUND, RESERVED, PLANNED = "bound", "reserved", "planned"

Row = tuple[Any, ...]
Hold = tuple[str, str, int, int]  # gang, bound or reserved or planned, amount, members


def unit_of(node: Node, demand: Mapping[str, int]) -> str:
    """The resource that is counted on a node."""
    devices = [
        name for name in node.allocatable.names if "/" in name and not volumes.is_attaching(name)
    ]
    return min(devices, key=lambda name: (-demand.get(name, 0), name), default=CPU)


@lru_cache(maxsize=1024)
def _is_level(label: str) -> bool:
    return any(word in label.lower() for word in WORDS_OF_LEVELS)


def group_labels(nodes: Sequence[Node]) -> Sequence[str]:
    """The labels by which the map can group nodes: those of topology, the usual ones first."""
    values: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for label, value in node.labels:
            if _is_level(label):
                values[label].add(value)
    usual = [label for label in TOPOLOGY if label in values]
    few = [label for label in sorted(values) if len(values[label]) <= max(2, len(nodes) // 2)]
    return list(dict.fromkeys([*usual, *few]))


def gang_name(key: GangKey) -> str:
    """A gang in addresses and in data: ``namespace/name``, with the kind if it is no PodGroup."""
    return str(key) if key.kind.kind == "PodGroup" else f"{key}/{key.kind.kind}"


def rows(snapshot: Snapshot, plan: Plan | None = None) -> Mapping[NodeName, Row]:
    """A row for each node: kind, labels, flags, unit, capacity, use of others, and the gangs there.

    With a ``plan``, also what it would start.
    """
    labels = group_labels(snapshot.nodes)
    return {use.node.name: _row(use, labels) for use in _uses(snapshot, plan)}


class Use(NamedTuple):
    """What the row of a node follows from, but for the labels of the map."""

    node: Node
    unit: str
    holdings: Mapping[tuple[str, str], tuple[int, int]]  # by gang and status: amount, members


def _uses(snapshot: Snapshot, plan: Plan | None = None) -> Iterator[Use]:
    demand = Counter(
        name
        for gang in snapshot.gangs
        for member in gang.members
        for name in member.shape.requests.names
        if "/" in name
    )
    units = {node.name: unit_of(node, demand) for node in snapshot.nodes}
    holdings: dict[NodeName, dict[tuple[str, str], tuple[int, int]]] = defaultdict(dict)
    for node, gang, status, requests in _places(snapshot, plan):
        amount = requests[units.get(node, CPU)]
        sum_of_amounts, members = holdings[node].get((gang, status), (0, 0))
        holdings[node][gang, status] = (sum_of_amounts + amount, members + 1)
    return (Use(node, units[node.name], holdings.get(node.name, {})) for node in snapshot.nodes)


def _row(use: Use, labels: Sequence[str]) -> Row:
    node, unit, holdings = use
    labels_of_node = dict(node.labels)
    holds: list[Hold] = [(*who, n, members) for who, (n, members) in sorted(holdings.items())]
    ours = sum(amount for _, status, amount, _ in holds if status == BOUND)
    flags = "notready" * (not node.ready) or "cordoned" * node.unschedulable
    return (
        node.name,
        labels_of_node.get(KIND, ""),
        [labels_of_node.get(label, "") for label in labels],
        flags,
        unit,
        node.allocatable[unit],
        max(0, node.used[unit] - ours),
        holds,
    )


def _places(snapshot: Snapshot, plan: Plan | None) -> Iterator[tuple[NodeName, str, str, Any]]:
    """Every member that has a node or is promised one: the node, the gang, how, its requests."""
    reserved_nodes = {
        entry.uid: entry.node
        for reservation in snapshot.reservations
        for entry in reservation.entries
    }
    planned = {
        assignment.uid: assignment.node
        for placement in (() if plan is None else plan.placements)
        for assignment in placement.assignments
    }
    gangs = {gang.key: gang for gang in snapshot.gangs}
    for gang in snapshot.gangs:
        name = ""
        for member in gang.members:
            if member.is_over:
                continue
            if member.node is not None:
                node, status = member.node, BOUND
            elif member.uid in reserved_nodes:
                node, status = reserved_nodes[member.uid], RESERVED
            elif member.uid in planned:
                node, status = planned[member.uid], PLANNED
            else:
                continue
            name = name or gang_name(gang.key)
            yield node, name, status, member.shape.requests
    for reservation in snapshot.reservations:
        yield from _absent(gangs.get(reservation.gang), reservation.slots, RESERVED)
    for placement in () if plan is None else plan.placements:
        yield from _absent(gangs.get(placement.gang), placement.slots, PLANNED)


def _absent(
    gang: Gang | None, places: Iterable[Any], status: str
) -> Iterator[tuple[NodeName, str, str, Any]]:
    if gang is not None:
        for member, node in slots.placeholders_of_slots(gang, tuple(places)):
            yield node, gang_name(gang.key), status, member.shape.requests


@dataclass(slots=True)
class MapHistory:
    """The newest rows, each with the version that it is from: a reader asks for what changed."""

    version: int = 0
    _labels: Sequence[str] = ()
    _rows: dict[NodeName, tuple[Row, int, Use]] = field(default_factory=dict)
    _gone: dict[NodeName, int] = field(default_factory=dict)
    _begin: int = 0  # who knows less than this version gets everything

    def take(self, version: int, snapshot: Snapshot) -> None:
        """Take in a newer picture."""
        if version <= self.version:
            return
        labels = group_labels(snapshot.nodes)
        if labels != self._labels:
            self._labels, self._begin, self._gone, self._rows = labels, version, {}, {}
        newest = {use.node.name: self._newest(use, version) for use in _uses(snapshot)}
        for name in self._rows.keys() - newest.keys():
            self._gone[name] = version
        self._rows = newest
        self._gone = {name: at for name, at in self._gone.items() if name not in newest}
        self.version = version

    def _newest(self, use: Use, version: int) -> tuple[Row, int, Use]:
        """The row of a node; the same one while nothing about the node changes."""
        old_row, since, old_use = self._rows.get(use.node.name, (None, version, None))
        if old_row is not None and old_use == use:
            return old_row, since, use
        row = _row(use, self._labels)
        return row, since if row == old_row else version, use

    def since(self, version: int) -> Mapping[str, Any]:
        """What a reader lacks who has seen this version; everything if it has seen none."""
        is_whole = version < max(self._begin, 1) or version > self.version
        return {
            "version": self.version,
            "whole": is_whole,
            "labels": self._labels,
            "nodes": [row for row, at, _ in self._rows.values() if is_whole or at > version],
            "gone": [] if is_whole else [name for name, at in self._gone.items() if at > version],
        }


def node_record(snapshot: Snapshot, name: str) -> Mapping[str, Any] | None:
    """Everything about one node; None if there is no such node."""
    node = next((node for node in snapshot.nodes if node.name == name), None)
    if node is None:
        return None
    members: Counter[tuple[str, str]] = Counter()
    for where, gang, status, _ in _places(snapshot, None):
        if where == name:
            members[gang, status] += 1
    free = node.allocatable - node.used
    return {
        "name": node.name,
        "ready": node.ready,
        "cordoned": node.unschedulable,
        "labels": dict(node.labels),
        "taints": [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints],
        "resources": [
            {
                "name": resource,
                "allocatable": quantity(resource, n),
                "used": quantity(resource, node.used[resource]),
                "free": quantity(resource, max(0, free[resource])),
            }
            for resource, n in node.allocatable.amounts
            if not (ports.is_port(resource) or volumes.is_attaching(resource))
        ],
        "gangs": [
            {"gang": gang, "status": status, "members": n}
            for (gang, status), n in sorted(members.items())
        ],
    }


def requests_of(gang: Gang) -> Sequence[Mapping[str, Any]]:
    """What the members of a gang ask for: how many ask for the same."""
    shapes = Counter(member.shape.requests for member in gang.members)
    return [{"members": n, "requests": dict(listed(requests))} for requests, n in shapes.items()]
