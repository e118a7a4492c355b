"""A Snapshot and its Plan as the cluster picture: the counted unit, and each gang's slots."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...filters.topology import path_of
from ...gang import domain_rules
from ...model.cluster import Gang, Member, Node, Snapshot
from ...model.decisions import Plan
from ...model.inter_pod import HOSTNAME
from ...model.keys import NodeName, Uid
from ...model.terminal import visible
from .picture import Block, ClusterPicture, Hold, NodeRow

CPU = "cpu"
MOST_SLOTS = 16  # on a node whose CPUs are drawn
MOST_DEVICES = 64  # on a node whose devices are drawn one by one
MOST_ROWS = 40  # nodes of one kind or domain, before the others are summed up
MOST_DOMAINS = 24  # of a level by which nodes are drawn
KIND = "node.kubernetes.io/instance-type"
UNNAMED = "nodes"


@dataclass(frozen=True, slots=True)
class _Unit:
    """The unit that is counted: this amount of the resource is one slot."""

    resource: str
    amount: int

    @property
    def name(self) -> str:
        """The unit's name in the titles of the picture."""
        if self.resource != CPU:
            device = visible(self.resource.rpartition("/")[2].upper())
            return device if self.amount == 1 else f"× {_short(self.amount)} {device}"  # noqa: RUF001 - a multiplication
        return "CPU" if self.amount == 1000 else f"× {self.amount // 1000} CPU"  # noqa: PLR2004, RUF001 - thousandths; a multiplication

    def slots(self, amount: int) -> int:
        """The number of slots that the amount uses, rounded up."""
        return -(-amount // self.amount)


def drawn(snapshot: Snapshot, plan: Plan, namespace: str = "") -> ClusterPicture:
    """The nodes that have the counted resource, with their slots once the plan is carried out.

    They are drawn by domain if a level of a Topology has few of them, or else by kind. With a
    ``namespace``, gangs of other namespaces are drawn like pods of other schedulers.
    """
    unit = _unit(snapshot)
    names = _names([gang for gang in snapshot.gangs if namespace in ("", gang.key.namespace)])
    reserved = _reserved_blocks(snapshot, plan, names, unit)
    nodes = [node for node in snapshot.nodes if node.allocatable[unit.resource] >= unit.amount]
    domains = _domains(snapshot, nodes)
    in_domains = [node for node in nodes if node.name in domains]
    in_none = [node for node in nodes if node.name not in domains]
    rows = [
        _row(node, reserved.get(node.name, ()), unit, domains.get(node.name, ""))
        for node in (*sorted(in_domains, key=lambda node: domains[node.name]), *in_none)
    ]
    placed = {placement.gang for placement in plan.placements}
    first = [gang for gang in snapshot.gangs if gang.key in placed and gang.key in names]
    order = [names[gang.key] for gang in first]
    return ClusterPicture(rows, order, unit.name, MOST_ROWS)


def _domains(snapshot: Snapshot, nodes: Sequence[Node]) -> Mapping[NodeName, str]:
    """The domain of each node that is in one, of the level with most domains that can be drawn."""
    best: Mapping[NodeName, str] = {}
    for topology in snapshot.topologies:
        for level in topology.levels:
            labels = domain_rules.labels_of(level, snapshot.topologies)
            paths = {node.name: path_of(node, labels) for node in nodes}
            name = level.rpartition("/")[2]
            titles = {node: f"{name} {'/'.join(path)}" for node, path in paths.items() if path}
            n = len(set(titles.values()))
            if level != HOSTNAME and len(set(best.values())) < n <= MOST_DOMAINS:
                best = titles
    return best


def _unit(snapshot: Snapshot) -> _Unit:
    """The device that most members request, or else a number of CPUs; a node fits on one line."""
    offered = {name for node in snapshot.nodes for name in node.allocatable.names if "/" in name}
    requested: Counter[str] = Counter(
        name
        for gang in snapshot.gangs
        for member in gang.members
        for name in member.shape.requests.names
        if name in offered
    )
    if requested:
        device = min(requested, key=lambda name: (-requested[name], name))
        largest = max(node.allocatable[device] for node in snapshot.nodes)
        return _Unit(device, _round_number(-(-largest // MOST_DEVICES)))
    largest = max((node.allocatable[CPU] for node in snapshot.nodes), default=0)
    return _Unit(CPU, max(1, -(-largest // (1000 * MOST_SLOTS))) * 1000)


def _round_number(least: int) -> int:
    """The first of 1, 2, 5, 10, 20, 50 and so on that is large enough."""
    power = int("1" + "0" * (len(str(least)) - 1))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= least)


def _short(n: int) -> str:
    """A round number as a Kubernetes quantity: 500M."""
    suffixes = iter(("", "k", "M", "G", "T", "P"))
    suffix = next(suffixes)
    while n % 1000 == 0 and (larger := next(suffixes, "")):
        n, suffix = n // 1000, larger
    return f"{n}{suffix}"


def _names(gangs: Sequence[Gang]) -> Mapping[object, str]:
    """Names of gangs, without the namespace if that is unique."""
    several = Counter(gang.key.name for gang in gangs)
    return {
        gang.key: visible(gang.key.name if several[gang.key.name] == 1 else str(gang.key))
        for gang in gangs
    }


def _reserved_blocks(
    snapshot: Snapshot, plan: Plan, names: Mapping[object, str], unit: _Unit
) -> Mapping[NodeName, list[Block]]:
    reserved_nodes: dict[Uid, NodeName] = {
        entry.uid: entry.node
        for reservation in snapshot.reservations
        for entry in reservation.entries
    }
    for placement in plan.placements:
        reserved_nodes.update(
            (assignment.uid, assignment.node) for assignment in placement.assignments
        )
    blocks: dict[NodeName, list[Block]] = {}
    for gang in snapshot.gangs:
        for member in gang.members:
            at = None if member.is_over else member.node or reserved_nodes.get(member.uid)
            block = _block(member, names.get(gang.key, ""), unit)
            if at is not None and block is not None:
                blocks.setdefault(at, []).append(block)
    return blocks


def _block(member: Member, name: str, unit: _Unit) -> Block | None:
    """The slots of one member; None if it has none, or if ``_row`` counts it as foreign."""
    slots = _slots(member, unit)
    if not slots or not (name or member.node is None):
        return None
    if not name:
        return Block("", slots, Hold.FOREIGN)
    return Block(name, slots, Hold.RESERVED if member.node is None else Hold.BOUND)


def _slots(member: Member, unit: _Unit) -> int:
    return unit.slots(member.shape.requests[unit.resource])


def _row(node: Node, blocks: Sequence[Block], unit: _Unit, domain: str) -> NodeRow:
    """A node's row, by its domain if it has one.

    On an overcommitted node, no block is longer than the node.
    """
    ours = sum(block.slots for block in blocks if block.hold is Hold.BOUND)
    foreign = unit.slots(node.used[unit.resource]) - ours
    others = (Block("", foreign, Hold.FOREIGN),) if foreign > 0 else ()
    kind = visible(domain or dict(node.labels).get(KIND, UNNAMED))
    slots = node.allocatable[unit.resource] // unit.amount
    visible_blocks = (replace(block, slots=min(block.slots, slots)) for block in (*blocks, *others))
    return NodeRow(visible(node.name), kind, slots, tuple(visible_blocks))
