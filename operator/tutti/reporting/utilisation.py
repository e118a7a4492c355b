"""A Snapshot in figures: gangs by state, and the room of nodes by use.

Metrics and ``tutti status`` show these figures. Planning does not use them. The room of a domain is
that of its nodes: taints and requests of gangs do not matter to it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter
from typing import Self

from ..gang import demand
from ..model import ports, volumes
from ..model.cluster import Gang, Node, Snapshot
from ..model.devices.claims import is_counting
from ..model.inter_pod import Topology
from ..model.keys import Uid
from ..model.resources import NOTHING, Resources
from ..planning.compile import grids

WITHOUT = ("cpu", "memory", "pods")  # a node that lacks any of these takes no pod


class GangState(StrEnum):
    """The state of a gang that has not ended."""

    WAITING = "waiting"
    RESERVED = "reserved"  # it has a Reservation, and its members are being bound
    STARTED = "started"
    DEGRADED = "degraded"  # it has started, and lacks members


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Amounts of one resource, summed over all nodes, in the units of ``Resources``."""

    allocatable: int
    allocated: int  # requested by bound pods, of any scheduler
    reserved: int  # for members that are not bound yet
    free: int
    stranded: int  # the part of ``free`` that no pod can use: see ``is_closed``


@dataclass(frozen=True, slots=True)
class DomainRoom:
    """The room of one domain."""

    nodes: int
    free: Resources  # without what is stranded
    whole_nodes: Resources  # by device: nodes that have all devices of this resource free

    @classmethod
    def total(cls, rooms: Sequence["DomainRoom"]) -> Self:
        """The room of all these together."""
        return cls(
            sum(room.nodes for room in rooms),
            Resources.total(room.free for room in rooms),
            Resources.total(room.whole_nodes for room in rooms),
        )


@dataclass(frozen=True, slots=True)
class LevelRoom:
    """The room of each domain of one level of a Topology."""

    topology: str
    level: str
    domains: Mapping[tuple[str, ...], DomainRoom]  # by the values of the labels, sorted

    def largest_free(self, resource: str) -> tuple[int, tuple[str, ...]]:
        """The most of a resource that is free in one domain, and which one: the first of equals."""
        return _largest((room.free[resource], path) for path, room in self.domains.items())

    def largest_whole_nodes(self, device: str) -> tuple[int, tuple[str, ...]]:
        """The most nodes in one domain that have all these devices free, and which one."""
        return _largest((room.whole_nodes[device], path) for path, room in self.domains.items())


def states(snapshot: Snapshot) -> Mapping[GangState, int]:
    """How many gangs are in each state, without the gangs that have ended."""
    reserved_uids = {reservation.uid for reservation in snapshot.reservations}
    counts = Counter(_state(gang, reserved_uids, snapshot.settled) for gang in snapshot.gangs)
    return {state: counts[state] for state in GangState}


def state_of(gang: Gang, snapshot: Snapshot) -> GangState | None:
    """The state of one gang; None if it has ended."""
    return _state(
        gang, {reservation.uid for reservation in snapshot.reservations}, snapshot.settled
    )


def _state(gang: Gang, reserved_uids: Iterable[Uid], settled: Iterable[Uid]) -> GangState | None:
    if gang.uid in reserved_uids:
        return GangState.RESERVED
    if gang.members and gang.is_idle:
        return None
    if not any(member.counts_as_bound for member in gang.members):
        return GangState.WAITING
    is_short = gang.uid not in settled and demand.count_members(gang).missing > 0
    return GangState.DEGRADED if is_short else GangState.STARTED


def rooms(snapshot: Snapshot) -> Mapping[str, Utilisation]:
    """The use of each resource that some node offers, by name, without ports and attachments."""
    reserved = grids.reserved_room(snapshot)
    free: list[Resources] = []
    stranded: list[Resources] = []
    for node in snapshot.nodes:
        free_on_node = _free_on(node, reserved.get(node.name, NOTHING))
        free.append(free_on_node)
        stranded.append(free_on_node if is_closed(node, free_on_node) else NOTHING)
    offered = snapshot.allocatable
    used = dict(Resources.total(node.used for node in snapshot.nodes).amounts)
    reserved_amounts = dict(Resources.total(reserved.values()).amounts)
    unused, unusable = dict(Resources.total(free).amounts), dict(Resources.total(stranded).amounts)
    return {
        name: Utilisation(
            n,
            used.get(name, 0),
            reserved_amounts.get(name, 0),
            unused.get(name, 0),
            unusable.get(name, 0),
        )
        for name, n in offered.amounts
        if _is_shown(name)
    }


def levels(snapshot: Snapshot) -> Sequence[LevelRoom]:
    """The room of each domain, by Topology and level, the widest first; none without a Topology.

    Free room counts as for ``rooms``, without what is stranded.
    """
    if not snapshot.topologies:
        return ()
    reserved = grids.reserved_room(snapshot)
    on_nodes = [_room_of(node, reserved.get(node.name, NOTHING)) for node in snapshot.nodes]
    return [
        level
        for topology in snapshot.topologies
        for level in _levels(topology, snapshot.nodes, on_nodes)
    ]


def _levels(
    topology: Topology, nodes: Sequence[Node], on_nodes: Sequence[DomainRoom]
) -> Iterator[LevelRoom]:
    """The levels of one Topology; nodes in the same domain of every level are added up once."""
    by_path: dict[tuple[str, ...], list[DomainRoom]] = {}
    for node, room in zip(nodes, on_nodes, strict=True):
        by_path.setdefault(_path(node, topology.levels), []).append(room)
    sums = {path: DomainRoom.total(own) for path, own in by_path.items()}
    for depth, level in enumerate(topology.levels, 1):
        domains: dict[tuple[str, ...], list[DomainRoom]] = {}
        for path, room in sums.items():
            if len(path) >= depth:
                domains.setdefault(path[:depth], []).append(room)
        total = {path: DomainRoom.total(domains[path]) for path in sorted(domains)}
        yield LevelRoom(topology.title, level, total)


def _path(node: Node, levels: Sequence[str]) -> tuple[str, ...]:
    """The values of the labels on a node, up to the first label that it lacks."""
    labels = dict(node.labels)
    known = takewhile(labels.__contains__, levels)
    return tuple(labels[level] for level in known)


def _room_of(node: Node, reserved: Resources) -> DomainRoom:
    """The room of one node; it is whole for a device if none of these is taken."""
    free = _free_on(node, reserved)
    if is_closed(node, free):
        return DomainRoom(1, NOTHING, NOTHING)
    amounts = dict(node.allocatable.amounts)
    shown = [(name, n) for name, n in free.amounts if _is_shown(name)]
    whole = [(name, 1) for name, n in shown if "/" in name and n == amounts[name]]
    return DomainRoom(1, Resources(tuple(shown)), Resources(tuple(whole)))


def _largest(amounts: Iterable[tuple[int, tuple[str, ...]]]) -> tuple[int, tuple[str, ...]]:
    """The largest amount, and its domain; none if there is no domain."""
    return max(amounts, key=itemgetter(0), default=(0, ()))


@lru_cache(maxsize=1024)
def _is_shown(resource: str) -> bool:
    """Whether a resource is an amount of a node, and not a port or a limit that Tutti counts."""
    return not (
        ports.is_port(resource) or volumes.counts_volumes(resource) or is_counting(resource)
    )


def is_closed(node: Node, free: Resources) -> bool:
    """Whether no pod can use the free room of a node.

    The node takes no pods, or it lacks cpu, memory or pods, which each pod needs.
    """
    return node.unschedulable or not node.ready or any(not free[name] for name in WITHOUT)


def _free_on(node: Node, reserved: Resources) -> Resources:
    """The free room of a node, without resources that are used up or over-committed."""
    taken = dict(node.used.amounts)
    for name, n in reserved.amounts:
        taken[name] = taken.get(name, 0) + n
    free = ((name, n - taken.get(name, 0)) for name, n in node.allocatable.amounts)
    return Resources(tuple((name, n) for name, n in free if n > 0))
