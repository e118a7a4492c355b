"""The map: for each node, how much each gang has of the resource that is counted there.

On a node with devices this is the device that most members request, on other nodes it is CPU.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..gang import domain_rules, slots
from ..gang.quantities import listed, quantity
from ..model import ports, volumes
from ..model.cluster import Gang, Node, Reservation, SlotReservation, Snapshot
from ..model.decisions import Claim, Placement, Plan
from ..model.devices.claims import is_counting
from ..model.inter_pod import HOSTNAME, Topology
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import Resources
from .latest import RowHistory

CPU = "cpu"
KIND = "node.kubernetes.io/instance-type"
TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
WORDS_OF_LEVELS = ("topology", "zone", "rack", "block", "switch", "pool")
BOUND, RESERVED, PLANNED = "bound", "reserved", "planned"
ENDING = "ending"  # bound, and evicted so that another gang starts
CLAIMED = "claimed"  # promised once the pods that end for the gang have gone
NO_UIDS: frozenset[Uid] = frozenset()

Row = tuple[Any, ...]
Promise = tuple[str, Reservation | Placement | Claim]  # the status of members with this promise
Hold = tuple[str, str, int, int]  # gang, one of the statuses above, amount, members


def unit_of(node: Node, demand: Mapping[str, int]) -> str:
    """The resource that is counted on a node."""
    devices = [
        name for name in node.allocatable.names if "/" in name and not volumes.counts_volumes(name)
    ]
    return min(devices, key=lambda name: (-demand.get(name, 0), name), default=CPU)


@lru_cache(maxsize=1024)
def _is_level(label: str) -> bool:
    return any(word in label.lower() for word in WORDS_OF_LEVELS)


class Grouping(NamedTuple):
    """A way to group nodes: by the values that they have for some labels."""

    name: str  # the last of these labels
    labels: tuple[str, ...]  # of a level of a Topology, those of wider levels, too

    def of(self, labels_of_node: Mapping[str, str]) -> str:
        """The group of a node: its values, joined; empty if it lacks one."""
        values = [labels_of_node.get(label) for label in self.labels]
        known = [value for value in values if value is not None]
        return "/".join(known) if len(known) == len(values) else ""


def groupings(snapshot: Snapshot) -> Sequence[Grouping]:
    """How the map can group nodes: by levels of Topologies, the widest first; then by other labels.

    These are labels whose names sound like a level, the usual ones first.
    """
    levels = [
        level
        for topology in snapshot.topologies
        for level in topology.levels
        if level != HOSTNAME  # a group for each node groups nothing
    ]
    values: dict[str, set[str]] = defaultdict(set)
    for node in snapshot.nodes:
        for label, value in node.labels:
            if label in levels or _is_level(label):
                values[label].add(value)
    most = max(2, len(snapshot.nodes) // 2)
    declared = [label for label in levels if label in values]
    usual = [label for label in TOPOLOGY if label in values]
    few = [label for label in sorted(values) if len(values[label]) <= most]
    return [
        Grouping(label, domain_rules.labels_of(label, snapshot.topologies) or (label,))
        for label in dict.fromkeys([*declared, *usual, *few])
    ]


def gang_name(key: GangKey) -> str:
    """The name of a gang in URLs and data: ``namespace/name``, with the kind if no PodGroup."""
    return str(key) if key.kind.kind == "PodGroup" else f"{key}/{key.kind.kind}"


class Place(NamedTuple):
    """The node of a member, bound or promised."""

    node: NodeName
    status: str
    requests: Resources


class _Gang(NamedTuple):
    """A gang, the promises of room to it, its pods that end, and the places of its members."""

    gang: Gang
    promises: tuple[Promise, ...]
    ending: frozenset[Uid]
    places: Sequence[Place]
    demand: Counter[str]  # how many members request each device


class Holdings:
    """The amounts that gangs have on each node; a newer Snapshot costs only its changes.

    A Snapshot shares unchanged objects with the Snapshot before it.
    """

    def __init__(self) -> None:
        self._gangs: dict[GangKey, _Gang] = {}
        self._nodes: dict[NodeName, Node] = {}
        self._places: dict[NodeName, dict[GangKey, list[Place]]] = defaultdict(dict)
        self._demand: Counter[str] = Counter()
        self._devices: Sequence[str] = ()  # the device that most members request comes first

    def take(self, snapshot: Snapshot, plan: Plan | None = None) -> set[NodeName]:
        """Take a newer Snapshot and a plan's placements; return the nodes whose rows changed."""
        promises, ending = _promises(snapshot, plan), ending_pods(snapshot, plan)
        gangs = {gang.key: gang for gang in snapshot.gangs}
        changed = {node.name for node in snapshot.nodes if self._nodes.get(node.name) is not node}
        for key in self._gangs.keys() - gangs.keys():
            changed |= self._remove(key)
        for key, gang in gangs.items():
            old, own, ends = self._gangs.get(key), promises.get(key, ()), ending.get(key, NO_UIDS)
            if old is None or old.gang is not gang or old[1:3] != (own, ends):
                changed |= self._remove(key) | self._add(gang, own, ends)
        self._nodes = {node.name: node for node in snapshot.nodes}
        devices = sorted(self._demand, key=lambda name: (-self._demand[name], name))
        if devices != self._devices:
            self._devices = devices
            return set(self._nodes)
        return changed & self._nodes.keys()

    def _remove(self, key: GangKey) -> set[NodeName]:
        old = self._gangs.pop(key, None)
        if old is None:
            return set()
        self._demand -= old.demand
        nodes = {place.node for place in old.places}
        for node in nodes:
            self._places[node].pop(key, None)
        return nodes

    def _add(
        self, gang: Gang, promises: tuple[Promise, ...], ending: frozenset[Uid]
    ) -> set[NodeName]:
        places = [*_places(gang, promises, ending)]
        demand = Counter(
            name for member in gang.members for name in member.shape.requests.names if "/" in name
        )
        self._gangs[gang.key] = _Gang(gang, promises, ending, places, demand)
        self._demand += demand
        for place in places:
            self._places[place.node].setdefault(gang.key, []).append(place)
        return {place.node for place in places}

    def row(self, name: NodeName, groups: Iterable[Grouping]) -> Row:
        """The row of a node: kind, groups, flags, unit, capacity, other pods' use, and gangs."""
        node = self._nodes[name]
        unit = unit_of(node, self._demand)
        labels_of_node = dict(node.labels)
        holds: list[Hold] = []
        for key, places in self._places.get(name, {}).items():
            amounts: dict[str, list[int]] = defaultdict(list)
            for place in places:
                amounts[place.status].append(place.requests[unit])
            gang = gang_name(key)
            holds += [(gang, status, sum(own), len(own)) for status, own in amounts.items()]
        holds.sort()
        ours = sum(amount for _, status, amount, _ in holds if status in (BOUND, ENDING))
        flags = "notready" * (not node.ready) or "cordoned" * node.unschedulable
        return (
            node.name,
            labels_of_node.get(KIND, ""),
            [grouping.of(labels_of_node) for grouping in groups],
            flags,
            unit,
            node.allocatable[unit],
            max(0, node.used[unit] - ours),
            holds,
        )


def rows(snapshot: Snapshot, plan: Plan | None = None) -> Mapping[NodeName, Row]:
    """The row of each node; with a ``plan``, also what it would start there."""
    holdings, groups = Holdings(), groupings(snapshot)
    holdings.take(snapshot, plan)
    return {node.name: holdings.row(node.name, groups) for node in snapshot.nodes}


def _promises(snapshot: Snapshot, plan: Plan | None) -> Mapping[GangKey, tuple[Promise, ...]]:
    being_ended = snapshot.being_ended
    all_promises: list[Promise] = [
        (
            CLAIMED if any(v.gang in being_ended for v in reservation.victims or ()) else RESERVED,
            reservation,
        )
        for reservation in snapshot.reservations
    ]
    if plan is not None:
        all_promises += [(PLANNED, placement) for placement in plan.placements]
        all_promises += [(CLAIMED, claim) for claim in plan.claims]
    promises: dict[GangKey, tuple[Promise, ...]] = {}
    for promise in all_promises:
        gang = promise[1].gang
        promises[gang] = (*promises.get(gang, ()), promise)
    return promises


def ending_pods(snapshot: Snapshot, plan: Plan | None = None) -> Mapping[GangKey, frozenset[Uid]]:
    """The pods of each gang that end so that others start, by standing claims and by a plan."""
    pods: dict[GangKey, set[Uid]] = defaultdict(set)
    for reservation in snapshot.reservations:
        for reserved_victim in reservation.victims or ():
            pods[reserved_victim.gang].update(reserved_victim.pods)
    for claim in () if plan is None else plan.claims:
        for victim in claim.victims:
            pods[victim.gang].update(member.uid for member in victim.members)
    return {gang: frozenset(uids) for gang, uids in pods.items()}


def _places(
    gang: Gang, promises: Iterable[Promise], ending: frozenset[Uid] = NO_UIDS
) -> Iterator[Place]:
    """The places of a gang's members, bound or promised, including absent members."""
    nodes: dict[str, tuple[NodeName, str]] = {}
    absent: Sequence[SlotReservation] = ()
    absent_status = RESERVED
    for status, promise in promises:
        entries = promise.entries if isinstance(promise, Reservation) else promise.assignments
        for entry in entries:
            nodes.setdefault(entry.uid, (entry.node, status))
        if not isinstance(promise, Claim):
            # The slots of a plan include those of the Reservation.
            absent, absent_status = promise.slots, status
    for stand_in, node in slots.placeholders_of_slots(gang, absent):
        yield Place(node, absent_status, stand_in.shape.requests)
    for member in gang.members:
        if member.is_over:
            continue
        if member.node is not None:
            status = ENDING if member.uid in ending else BOUND
            yield Place(member.node, status, member.shape.requests)
        elif member.uid in nodes:
            yield Place(*nodes[member.uid], member.shape.requests)


class MapHistory:
    """The newest rows of the map; a reader gets the rows that changed since a version."""

    def __init__(self) -> None:
        self._holdings = Holdings()
        self._history = RowHistory()
        self._topologies: tuple[Topology, ...] = ()
        self._groupings: Sequence[Grouping] = ()

    @property
    def version(self) -> int:
        """The version of the newest Snapshot."""
        return self._history.version

    def take(self, version: int, snapshot: Snapshot) -> None:
        """Take in a newer Snapshot."""
        if version <= self.version:
            return
        names = [node.name for node in snapshot.nodes]
        changed = self._holdings.take(snapshot)
        is_same = not changed and snapshot.topologies == self._topologies
        groups = self._groupings if is_same else groupings(snapshot)
        self._topologies = snapshot.topologies
        if groups != self._groupings:
            self._groupings, self._history = groups, RowHistory(version)
            changed = set(names)
        new_rows = {name: self._holdings.row(name, groups) for name in names if name in changed}
        self._history.take(version, new_rows, names)

    def since(self, version: int) -> Mapping[str, Any]:
        """The rows that changed after this version; all rows for version 0."""
        labels = [grouping.name for grouping in self._groupings]
        return {**self._history.since(version), "labels": labels}


def node_record(snapshot: Snapshot, name: str) -> Mapping[str, Any] | None:
    """Everything about one node; None if there is no such node."""
    node = next((node for node in snapshot.nodes if node.name == name), None)
    if node is None:
        return None
    members: Counter[tuple[str, str]] = Counter()
    promises, ending = _promises(snapshot, None), ending_pods(snapshot)
    for gang in snapshot.gangs:
        own, ends = promises.get(gang.key, ()), ending.get(gang.key, NO_UIDS)
        if own or any(member.node == name for member in gang.members):
            places = [place for place in _places(gang, own, ends) if place.node == name]
            members.update((gang_name(gang.key), place.status) for place in places)
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
            if not (
                ports.is_port(resource) or volumes.counts_volumes(resource) or is_counting(resource)
            )
        ],
        "gangs": [
            {"gang": gang, "status": status, "members": n}
            for (gang, status), n in sorted(members.items())
        ],
    }


def requests_of(gang: Gang) -> Sequence[Mapping[str, Any]]:
    """The requests of a gang's members, each with the number of members."""
    shapes = Counter(member.shape.requests for member in gang.members)
    return [{"members": n, "requests": dict(listed(requests))} for requests, n in shapes.items()]
