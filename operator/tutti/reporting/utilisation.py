"""A picture in figures: gangs by what they have come to, and what becomes of the room.

Separate from planning, which decides nothing by them; metrics and ``tutti status`` show them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..gang import demand
from ..model import ports, volumes
from ..model.cluster import Gang, Node, Snapshot
from ..model.keys import Uid
from ..model.resources import NOTHING, Resources
from ..planning.compile import grids

WITHOUT = ("cpu", "memory", "pods")  # a node that has none of these left takes no pod


class GangState(StrEnum):
    """What a gang that has not ended has come to."""

    WAITING = "waiting"
    RESERVED = "reserved"  # and being bound
    STARTED = "started"
    DEGRADED = "degraded"  # it has started, and lacks members


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Of one resource: what all nodes offer, and what becomes of it."""

    allocatable: int
    allocated: int  # to pods, whoever bound them
    reserved: int  # promised to members that are not bound yet
    free: int
    stranded: int  # of what is free, what no pod can use: see ``is_closed``


def states(snapshot: Snapshot) -> Mapping[GangState, int]:
    """How many gangs there are of each state; of those that have ended, none."""
    reserved_uids = {reservation.uid for reservation in snapshot.reservations}
    counts = Counter(_state(gang, reserved_uids, snapshot.settled) for gang in snapshot.gangs)
    return {state: counts[state] for state in GangState}


def state_of(gang: Gang, snapshot: Snapshot) -> GangState | None:
    """What one gang has come to; None where it has ended."""
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
    """What becomes of each resource that some node offers, by name."""
    reserved = grids.reserved_room(snapshot)
    free: list[Resources] = []
    stranded: list[Resources] = []
    for node in snapshot.nodes:
        free_on_node = _free_on(node, reserved.get(node.name, NOTHING))
        free.append(free_on_node)
        stranded.append(free_on_node if is_closed(node, free_on_node) else NOTHING)
    offered = Resources.total(node.allocatable for node in snapshot.nodes)
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
        if not (ports.is_port(name) or volumes.is_attaching(name))
    }


def is_closed(node: Node, free: Resources) -> bool:
    """Whether no pod can use what is left of a node: it takes none, or lacks what each needs."""
    return node.unschedulable or not node.ready or any(not free[name] for name in WITHOUT)


def _free_on(node: Node, reserved: Resources) -> Resources:
    """What is left of a node; nothing of what others have overdrawn."""
    free = node.allocatable - node.used - reserved
    return Resources(tuple((name, n) for name, n in free.amounts if n > 0))
