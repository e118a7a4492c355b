"""A Snapshot in figures: gangs by state, and the room of nodes by use.

Metrics and ``tutti status`` show these figures. Planning does not use them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..gang import demand
from ..model import ports, volumes
from ..model.cluster import Gang, Node, Snapshot
from ..model.devices.claims import is_counting
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
        if not (ports.is_port(name) or volumes.counts_volumes(name) or is_counting(name))
    }


def is_closed(node: Node, free: Resources) -> bool:
    """Whether no pod can use the free room of a node.

    The node takes no pods, or it lacks cpu, memory or pods, which each pod needs.
    """
    return node.unschedulable or not node.ready or any(not free[name] for name in WITHOUT)


def _free_on(node: Node, reserved: Resources) -> Resources:
    """The free room of a node, without resources that are used up or over-committed."""
    free = node.allocatable - node.used - reserved
    return Resources(tuple((name, n) for name, n in free.amounts if n > 0))
