"""A Snapshot by name, and the room that standing Reservations hold.

The checks of plans and of Reservations both use it. It imports nothing of the planner.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from ..filters.selectors import has_rules
from ..gang import slots
from ..model import ports
from ..model.cluster import Gang, Member, Node, PodReservation, Reservation, Snapshot
from ..model.keys import GangKey, NodeName, Uid
from ..model.shapes import Shape
from ..model.volumes import Claim, ClaimKey, Volume
from .inter_pod import PlacedMember

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The free room of each node, reduced promise by promise."""

    nodes: Mapping[NodeName, Node]
    free: dict[NodeName, dict[str, int]] = field(
        default_factory=dict
    )  # filled node by node, by ``room``

    def room(self, name: NodeName) -> dict[str, int] | None:
        """The free amounts of a node, by resource; None if there is no such node."""
        room = self.free.get(name)
        if room is None and (node := self.nodes.get(name)) is not None:
            self.free[name] = room = dict(node.allocatable.amounts)
            for resource, n in node.used.amounts:
                room[resource] = _free(room, resource) - n
        return room

    def lacks(self, node: NodeName, amounts: Amounts) -> Sequence[str]:
        """The resources of which the node has less free than these amounts."""
        room = self.room(node) or {}
        return [name for name, n in amounts.items() if n > max(_free(room, name), 0)]

    def take(self, node: NodeName, amounts: Amounts) -> None:
        """Count a promise, whether or not there is room for it."""
        room = self.room(node)
        if room is not None:
            for name, n in amounts.items():
                room[name] = _free(room, name) - n

    def copy(self, names: Iterable[NodeName]) -> "Ledger":
        """A ledger of these nodes alone; changes of the copy do not change this ledger."""
        rooms = {name: self.room(name) for name in names}
        return Ledger(
            self.nodes, {name: dict(room) for name, room in rooms.items() if room is not None}
        )


def _free(room: Amounts, resource: str) -> int:
    """The free amount of a resource; a host port that no promise has used is free."""
    known = room.get(resource)
    return ports.offered(resource) if known is None else known


class SnapshotLookup:
    """The nodes, gangs and members of a Snapshot by name; members are indexed at the first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.gangs = {gang.key: gang for gang in snapshot.gangs}
        self.topologies = snapshot.topologies
        self.storage = snapshot.storage
        self._snapshot = snapshot
        self._members: dict[GangKey, Mapping[Uid, Member]] = {}
        self._members_by_uid: dict[Uid, Member] = {}

    @cached_property
    def nodes(self) -> Mapping[NodeName, Node]:
        """The nodes by name."""
        return {node.name: node for node in self._snapshot.nodes}

    @cached_property
    def claims(self) -> Mapping[ClaimKey, Claim]:
        """The claims by namespace and name."""
        return {claim.key: claim for claim in self.storage.claims}

    @cached_property
    def volumes(self) -> Mapping[str, Volume]:
        """The volumes by name."""
        return {volume.name: volume for volume in self.storage.volumes}

    def members(self, key: GangKey) -> Mapping[Uid, Member]:
        """The members of one gang."""
        if key not in self._members:
            gang = self.gangs.get(key)
            self._members[key] = {m.uid: m for m in (gang.members if gang is not None else ())}
        return self._members[key]

    def member(self, uid: Uid, expected_in: GangKey) -> Member | None:
        """A member, in whichever gang: a pod's label may have changed, or its PodGroup be gone."""
        return self.members(expected_in).get(uid) or self._anywhere().get(uid)

    def _anywhere(self) -> Mapping[Uid, Member]:
        if not self._members_by_uid:
            self._members_by_uid.update((member.uid, member) for member in self._snapshot.strays)
            for gang in self._snapshot.gangs:
                self._members_by_uid.update((member.uid, member) for member in gang.members)
        return self._members_by_uid


def may_have_rules(snapshot: Snapshot) -> bool:
    """Whether a rule between pods may be in force."""
    members = (*snapshot.strays, *(m for gang in snapshot.gangs for m in gang.members))
    shapes = {id(member.shape): member.shape for member in members}
    templates = (role.template for gang in snapshot.gangs for role in gang.roles)
    declared = (template.shape for template in templates if template is not None)
    return bool(snapshot.placed_pods) or any(map(has_rules, (*shapes.values(), *declared)))


def needs(shape: Shape) -> Amounts:
    """The resources that one member of this shape takes of a node."""
    return {**dict(shape.requests.amounts), "pods": 1}


def needs_of_slot(gang: Gang | None, role: str) -> Amounts:
    """The room of one slot: its role's template, or else the maximum of its siblings' requests."""
    if gang is None:
        return {}
    if (declared := slots.declared(gang, role)) is not None:
        return needs(declared)
    return _maximum(member for member in gang.members if member.role == role)


def _maximum(members: Iterable[Member]) -> Amounts:
    """The maximum of these members' requests, resource by resource."""
    maximum: dict[str, int] = {}
    for member in members:
        for name, n in needs(member.shape).items():
            maximum[name] = max(n, maximum.get(name, 0))
    return maximum


def unbound_members(
    reservation: Reservation, index: SnapshotLookup
) -> Iterator[tuple[PodReservation, PlacedMember]]:
    """The members that a Reservation holds a node for and that are not bound yet."""
    for entry in reservation.entries:
        member = index.member(entry.uid, reservation.gang)
        if member is not None and member.may_get_a_node:
            yield entry, (member, entry.node)


def coming(snapshot: Snapshot) -> AbstractSet[Uid]:
    """The pods for which standing claims hold nodes: they come once victims have gone."""
    return {
        entry.uid
        for reservation in snapshot.reservations
        if reservation.victims is not None
        for entry in reservation.entries
    }


def absent_members(reservation: Reservation, index: SnapshotLookup) -> Sequence[PlacedMember]:
    """The absent members that a Reservation holds room for."""
    gang = index.gangs.get(reservation.gang) if reservation.slots else None
    return (
        ()
        if gang is None or gang.uid != reservation.uid
        else slots.placeholders_of_slots(gang, reservation.slots)
    )


def held_room(
    reservation: Reservation, index: SnapshotLookup
) -> Iterator[tuple[NodeName, Amounts]]:
    """The room that a Reservation holds and that ``used`` of no node includes."""
    gang = index.gangs.get(reservation.gang)
    siblings = gang.members if gang is not None else ()
    for entry in reservation.entries:
        member = index.member(entry.uid, reservation.gang)
        if member is None:
            yield entry.node, _maximum(siblings)
        elif member.node is None:
            yield entry.node, needs(member.shape)
    for slot in reservation.slots:
        amounts = needs_of_slot(gang, slot.role)
        yield slot.node, {name: n * slot.count for name, n in amounts.items()}
