"""A Snapshot by name, and what standing Reservations hold in it, for the checks.

Apart from them because the check of a plan and that of standing promises read the same; it shares
nothing with what makes plans.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..filters.selectors import has_rules
from ..gang import slots
from ..model.cluster import Gang, Member, PodReservation, Reservation, Snapshot
from ..model.keys import GangKey, NodeName, Uid
from ..model.shapes import Shape
from .inter_pod import Seat
from .room_ledger import Amounts


class SnapshotLookup:
    """A Snapshot by name; whom nobody asks about is not looked up."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.gangs = {gang.key: gang for gang in snapshot.gangs}
        self.topologies = snapshot.topologies
        self._snapshot = snapshot
        self._members: dict[GangKey, Mapping[Uid, Member]] = {}
        self._everyone: dict[Uid, Member] = {}

    def members(self, key: GangKey) -> Mapping[Uid, Member]:
        """The members of one gang."""
        if key not in self._members:
            gang = self.gangs.get(key)
            self._members[key] = {m.uid: m for m in (gang.members if gang is not None else ())}
        return self._members[key]

    def member(self, uid: Uid, expected_in: GangKey) -> Member | None:
        """A member, wherever it is now: a pod's label may have changed, or its PodGroup gone."""
        return self.members(expected_in).get(uid) or self._anywhere().get(uid)

    def _anywhere(self) -> Mapping[Uid, Member]:
        if not self._everyone:
            self._everyone.update((member.uid, member) for member in self._snapshot.strays)
            for gang in self._snapshot.gangs:
                self._everyone.update((member.uid, member) for member in gang.members)
        return self._everyone


def are_ruled(snapshot: Snapshot) -> bool:
    """Whether some rule between pods may be in force."""
    members = (*snapshot.strays, *(m for gang in snapshot.gangs for m in gang.members))
    shapes = {id(member.shape): member.shape for member in members}
    templates = (role.template for gang in snapshot.gangs for role in gang.roles)
    declared = (one.shape for one in templates if one is not None)
    return bool(snapshot.placed_pods) or any(map(has_rules, (*shapes.values(), *declared)))


def needs(shape: Shape) -> Amounts:
    """What one member of this shape takes of a node."""
    return {**dict(shape.requests.amounts), "pods": 1}


def needs_of_slot(gang: Gang | None, role: str) -> Amounts:
    """What is held for one absent member: what its role declares, else the most siblings ask."""
    if gang is None:
        return {}
    if (declared := slots.declared(gang, role)) is not None:
        return needs(declared)
    return _most(member for member in gang.members if member.role == role)


def _most(members: Iterable[Member]) -> Amounts:
    """The most that any of these asks for, resource by resource."""
    most: dict[str, int] = {}
    for member in members:
        for name, n in needs(member.shape).items():
            most[name] = max(n, most.get(name, 0))
    return most


def open_seats(held: Reservation, seen: SnapshotLookup) -> Iterator[tuple[PodReservation, Seat]]:
    """The members that a Reservation holds a node for and that are not bound yet."""
    for entry in held.entries:
        member = seen.member(entry.uid, held.gang)
        if member is not None and member.may_get_a_node:
            yield entry, (member, entry.node)


def awaited(held: Reservation, seen: SnapshotLookup) -> Sequence[Seat]:
    """The absent members that a Reservation holds room for."""
    gang = seen.gangs.get(held.gang) if held.slots else None
    return (
        ()
        if gang is None or gang.uid != held.uid
        else slots.placeholders_of_slots(gang, held.slots)
    )


def held_room(held: Reservation, seen: SnapshotLookup) -> Iterator[tuple[NodeName, Amounts]]:
    """The room that a Reservation holds and no node counts as used."""
    gang = seen.gangs.get(held.gang)
    siblings = gang.members if gang is not None else ()
    for entry in held.entries:
        member = seen.member(entry.uid, held.gang)
        if member is None:
            yield entry.node, _most(siblings)
        elif member.node is None:
            yield entry.node, needs(member.shape)
    for slot in held.slots:
        one = needs_of_slot(gang, slot.role)
        yield slot.node, {name: n * slot.count for name, n in one.items()}
