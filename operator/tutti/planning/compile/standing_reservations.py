"""What standing Reservations still hold: pods and slots that have room and break no rule.

``verify`` judges Reservations with code of its own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...filters.node_index import Mask, NodeIndex
from ...gang import slots
from ...gang.slots import Places
from ...model import ports
from ...model.cluster import PodReservation, Reservation, Snapshot
from ...model.keys import NodeName, Uid
from ...model.resources import Resources
from ...model.shapes import Shape
from . import grids
from .end_state import MemberOnNode, RuleCheck


@dataclass(frozen=True, slots=True)
class LostParts:
    """The parts of a Reservation that can no longer be carried out."""

    entries: frozenset[PodReservation] = frozenset()
    slots: Places = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether any entry or slot is lost."""
        return bool(self.entries or self.slots)

    def __add__(self, other: "LostParts") -> "LostParts":
        return LostParts(self.entries | other.entries, self.slots + other.slots)


def lost_parts(snapshot: Snapshot) -> Mapping[Uid, LostParts]:
    """The parts of Reservations that can no longer be carried out, by the uid of the gang."""
    lost_by_gang, _ = _ReservationCheck(snapshot).result()
    return {uid: parts for uid, parts in lost_by_gang.items() if parts}


def standing_members(snapshot: Snapshot) -> Sequence[MemberOnNode]:
    """The members that will be bound as reserved, with their nodes; absent members come last."""
    check = _ReservationCheck(snapshot)
    _, remaining = check.result()
    return check.promised(remaining)


def members_with_lasting_rules(snapshot: Snapshot) -> Sequence[MemberOnNode]:
    """The standing members with rules that pods that come later may break."""
    if not snapshot.reservations:
        return ()
    return [pair for pair in standing_members(snapshot) if has_lasting_rules(pair[0].shape)]


def has_lasting_rules(shape: Shape) -> bool:
    """Whether pods that come later may break a rule of the shape."""
    return bool(shape.rules.affinity or shape.rules.spread)


def promised_members(
    snapshot: Snapshot, reservations: Sequence[Reservation]
) -> Sequence[MemberOnNode]:
    """The members that these Reservations hold a node for, whether or not they can be bound."""
    return _ReservationCheck(snapshot).promised(reservations)


class _ReservationCheck:
    """Separates what the standing Reservations of a Snapshot can keep from what is lost.

    If a node does not have room for all promises, the oldest Reservations keep theirs. If rules
    between pods exclude some promises, the Reservations of gangs with a bound member come first. A
    promise that depends on a lost promise is lost, too.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._gangs = {gang.key: gang for gang in snapshot.gangs}
        self._members = {member.uid: member for member in snapshot.strays}
        for gang in snapshot.gangs:
            self._members.update((member.uid, member) for member in gang.members)
        self._ordered = sorted(
            snapshot.reservations,
            key=lambda reservation: (reservation.reserved_at, reservation.gang),
        )
        self._started = {
            reservation.uid for reservation in self._ordered if self._has_started(reservation)
        }
        self._index = NodeIndex(snapshot.nodes)
        self._allowed: dict[Shape, Mask] = {}
        self._snapshot = snapshot

    def result(self) -> tuple[Mapping[Uid, LostParts], Sequence[Reservation]]:
        """The lost parts by uid of the gang, and the Reservations that stay, without lost parts."""
        lost_by_gang, remaining = self._separate({})
        rules = RuleCheck(self._snapshot, [member for member, _ in self.promised(self._ordered)])
        if not rules.is_needed:
            return lost_by_gang, remaining
        forbidden: dict[Uid, LostParts] = {}
        for _ in range(
            sum(len(reservation.entries) + len(reservation.slots) for reservation in self._ordered)
        ):
            violations = self._rule_violations(rules, remaining)
            if not violations:
                break
            # Once the last parts are removed, the first may break no rule. Half of the parts are
            # removed at a time, so that a few passes are enough.
            for uid, parts in violations[len(violations) // 2 :]:
                forbidden[uid] = forbidden.get(uid, LostParts()) + parts
            lost_by_gang, remaining = self._separate(forbidden)
        return lost_by_gang, remaining

    def promised(self, reservations: Sequence[Reservation]) -> Sequence[MemberOnNode]:
        """The members that these Reservations hold a node for; existing members come first."""
        unbound = [
            place for reservation in reservations for _, place in self._unbound_entries(reservation)
        ]
        return [
            *unbound,
            *(place for reservation in reservations for place in self._absent(reservation)),
        ]

    def _unbound_entries(
        self, reservation: Reservation
    ) -> Iterator[tuple[PodReservation, MemberOnNode]]:
        """The entries whose pods are not bound yet."""
        for entry in reservation.entries:
            member = self._members.get(entry.uid)
            if member is not None and member.may_get_a_node:
                yield entry, (member, entry.node)

    def _absent(self, reservation: Reservation) -> Sequence[MemberOnNode]:
        """The absent members that the Reservation holds room for."""
        gang = self._gangs.get(reservation.gang) if reservation.slots else None
        return (
            ()
            if gang is None or gang.uid != reservation.uid
            else slots.placeholders_of_slots(gang, reservation.slots)
        )

    def _separate(
        self, forbidden: Mapping[Uid, LostParts]
    ) -> tuple[Mapping[Uid, LostParts], Sequence[Reservation]]:
        """The parts that are forbidden or lack room, and the Reservations without these parts."""
        room = _Room(self._snapshot)
        lost_by_gang = {
            reservation.uid: self._lost_parts(
                reservation, room, forbidden.get(reservation.uid, LostParts())
            )
            for reservation in self._ordered
        }
        remaining = [
            _without(reservation, lost_by_gang[reservation.uid])
            for reservation in sorted(
                self._ordered, key=lambda reservation: reservation.uid not in self._started
            )
            if reservation.uid in self._started
            or not (lost_by_gang[reservation.uid] or self._is_orphaned(reservation))
        ]
        return lost_by_gang, remaining

    def _lost_parts(
        self, reservation: Reservation, room: "_Room", forbidden: LostParts
    ) -> LostParts:
        """The lost parts of a Reservation; takes the room of its other parts."""
        entries = frozenset(
            entry
            for entry in reservation.entries
            if not self._is_keepable(
                entry, reservation, room, is_forbidden=entry in forbidden.entries
            )
        )
        gang, lost_slots = self._gangs.get(reservation.gang), Counter[tuple[NodeName, str]]()
        for slot in reservation.slots:
            place, amounts = (slot.node, slot.role), grids.slot_footprint(gang, slot.role)
            members = () if gang is None else slots.placeholders(gang, slot.role, 1)
            is_suitable = slot.node in self._index.rows and all(
                self._suits(member.shape, slot.node) for member in members
            )
            for number in range(slot.count):
                is_allowed = is_suitable and number >= forbidden.slots[place]
                if not (is_allowed and room.take(slot.node, amounts)):
                    lost_slots[place] += 1
        return LostParts(entries, lost_slots)

    def _is_keepable(
        self, entry: PodReservation, reservation: Reservation, room: "_Room", *, is_forbidden: bool
    ) -> bool:
        """Whether the entry is bound or can be; takes the room of an entry that can be bound."""
        member = self._members.get(entry.uid)
        if member is None:
            return False
        if member.node == entry.node:
            return True
        is_bindable = (
            member.is_waiting and not member.lacks_claims and member.gang == reservation.gang
        )
        if is_forbidden or not is_bindable or not self._suits(member.shape, entry.node):
            return False
        return room.take(entry.node, grids.footprint(member.shape))

    def _suits(self, shape: Shape, node: NodeName) -> bool:
        """Whether the node exists and the shape's node rules allow it, whatever its room."""
        rows = self._index.rows
        if shape not in self._allowed:
            self._allowed[shape] = self._index.allowed(shape)
        return node in rows and bool(self._allowed[shape][rows[node]])

    def _rule_violations(
        self, rules: RuleCheck, standing: Sequence[Reservation]
    ) -> Sequence[tuple[Uid, LostParts]]:
        """The parts that rules between pods forbid once all of these are carried out, by gang."""
        unbound = [tuple(self._unbound_entries(reservation)) for reservation in standing]
        absent_by_reservation = [self._absent(reservation) for reservation in standing]
        promised = [place for own in unbound for _, place in own]
        state = rules.state([*promised, *(place for own in absent_by_reservation for place in own)])
        violations: list[tuple[Uid, LostParts]] = []
        for reservation, own, absent_members in zip(
            standing, unbound, absent_by_reservation, strict=True
        ):
            entries = frozenset(entry for entry, at in own if not rules.allows(state, *at))
            places = Counter(
                (at[1], at[0].role) for at in absent_members if not rules.allows(state, *at)
            )
            if parts := LostParts(entries, places):
                violations.append((reservation.uid, parts))
        return violations

    def _has_started(self, reservation: Reservation) -> bool:
        """Whether a pod of the gang, or of the Reservation, is bound."""
        gang = self._gangs.get(reservation.gang)
        reserved = (self._members.get(entry.uid) for entry in reservation.entries)
        members = (*(gang.members if gang is not None else ()), *reserved)
        return any(member is not None and member.counts_as_bound for member in members)

    def _is_orphaned(self, reservation: Reservation) -> bool:
        gang = self._gangs.get(reservation.gang)
        return gang is None or gang.uid != reservation.uid or gang.terminating


class _Room:
    """The free room of each node, reduced promise by promise."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._free: dict[NodeName, dict[str, int]] = {}  # filled by ``take``

    def take(self, node: NodeName, amounts: Resources) -> bool:
        """Take the amounts from the node if it has room for them; return whether it has."""
        free = self._free.get(node)
        if free is None:
            known = self._nodes[node]
            free = self._free[node] = dict(known.allocatable.amounts)
            _subtract(free, known.used)
        if any(n > max(free.get(name, ports.offered(name)), 0) for name, n in amounts.amounts):
            return False
        _subtract(free, amounts)
        return True


def _subtract(free: dict[str, int], amounts: Resources) -> None:
    """Subtract the amounts; a host port that is not in ``free`` yet is free."""
    for name, n in amounts.amounts:
        free[name] = free.get(name, ports.offered(name)) - n


def _without(reservation: Reservation, lost_parts: LostParts) -> Reservation:
    entries = tuple(entry for entry in reservation.entries if entry not in lost_parts.entries)
    places = slots.places(reservation.slots) - lost_parts.slots
    return replace(reservation, entries=entries, slots=slots.slots_of(places))
