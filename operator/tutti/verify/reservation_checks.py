"""Standing Reservations checked against a Snapshot: which parts can no longer be carried out.

It shares ``lookup`` with the check of plans, and nothing else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..filters.node_rules import fits_node
from ..gang import slots
from ..gang.slots import Places
from ..model.cluster import Member, PodReservation, Reservation, Snapshot
from ..model.keys import NodeName, Uid
from ..model.resources import NOTHING, Resources
from . import inter_pod, lookup, slot_checks


@dataclass(frozen=True, slots=True)
class Unkeepable:
    """The parts of a Reservation that can no longer be carried out: entries, and slots by place."""

    entries: tuple[PodReservation, ...] = ()
    slots: Places = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether any entry or slot is lost."""
        return bool(self.entries or self.slots)

    def __add__(self, other: "Unkeepable") -> "Unkeepable":
        return Unkeepable((*self.entries, *other.entries), self.slots + other.slots)


def lost(snapshot: Snapshot) -> Mapping[Uid, Unkeepable]:
    """The parts of Reservations that can no longer be carried out, by the uid of the gang.

    If a node has too little room, the oldest Reservations keep theirs. If rules between pods forbid
    some, the Reservations of gangs with a bound member come first. A part that depends on a lost
    part is lost, too.
    """
    unkeepable, _ = _separate(snapshot, lookup.SnapshotLookup(snapshot))
    return {uid: parts for uid, parts in unkeepable.items() if parts}


def lost_for_good(snapshot: Snapshot) -> Mapping[Uid, Unkeepable]:
    """The lost parts after all victims of standing claims, and pods that terminate, have gone.

    Pods that should have gone by now count as staying.
    """
    now, leaving = snapshot.taken_at, dict[NodeName | None, Resources]()
    victims = {
        pod
        for reservation in snapshot.reservations
        for victim in reservation.victims or ()
        for pod in victim.pods
    }
    for member in snapshot.pods:
        ends = (member.terminating or member.uid in victims) and not member.is_stuck(now)
        if ends and not member.is_over:
            needs = Resources.of(lookup.needs(member.shape))
            leaving[member.node] = leaving.get(member.node, NOTHING) + needs
    nodes = tuple(
        replace(node, used=node.used - leaving[node.name]) if node.name in leaving else node
        for node in snapshot.nodes
    )
    return lost(replace(snapshot, nodes=nodes))


def _separate(
    snapshot: Snapshot, index: lookup.SnapshotLookup
) -> tuple[Mapping[Uid, Unkeepable], Sequence[Reservation]]:
    """The lost parts, by the uid of the gang, and the Reservations that stay without them."""
    ordered = sorted(
        snapshot.reservations, key=lambda reservation: (reservation.reserved_at, reservation.gang)
    )
    started = {reservation.uid for reservation in ordered if _has_started(reservation, index)}
    forbidden: dict[Uid, Unkeepable] = {}

    def separate() -> tuple[Mapping[Uid, Unkeepable], Sequence[Reservation]]:
        unkeepable = _unkeepable(ordered, index, forbidden)
        return unkeepable, [
            _without(reservation, unkeepable[reservation.uid])
            for reservation in sorted(
                ordered, key=lambda reservation: reservation.uid not in started
            )
            if reservation.uid in started
            or not (unkeepable[reservation.uid] or _is_orphaned(reservation, index))
        ]

    unkeepable, remaining = separate()
    if not lookup.may_have_rules(snapshot):
        return unkeepable, remaining
    for _ in range(
        sum(len(reservation.entries) + len(reservation.slots) for reservation in ordered)
    ):
        violations = _rule_violations(snapshot, remaining, index)
        if not violations:
            break
        # Once the last parts are removed, the first may break no rule. Half of the parts are
        # removed at a time, so that a few passes are enough.
        for uid, parts in violations[len(violations) // 2 :]:
            forbidden[uid] = forbidden.get(uid, Unkeepable()) + parts
        unkeepable, remaining = separate()
    return unkeepable, remaining


def _has_started(reservation: Reservation, index: lookup.SnapshotLookup) -> bool:
    """Whether a member of the gang, or a pod of the Reservation, is bound."""
    reserved = (index.member(entry.uid, reservation.gang) for entry in reservation.entries)
    members = (*index.members(reservation.gang).values(), *reserved)
    return any(member is not None and member.counts_as_bound for member in members)


def _is_orphaned(reservation: Reservation, index: lookup.SnapshotLookup) -> bool:
    gang = index.gangs.get(reservation.gang)
    return gang is None or gang.uid != reservation.uid or gang.terminating


def _without(reservation: Reservation, unkeepable: Unkeepable) -> Reservation:
    lost_entries = frozenset(unkeepable.entries)
    entries = tuple(entry for entry in reservation.entries if entry not in lost_entries)
    return replace(
        reservation,
        entries=entries,
        slots=slots.slots_of(slots.places(reservation.slots) - unkeepable.slots),
    )


def _unkeepable(
    ordered: Sequence[Reservation],
    index: lookup.SnapshotLookup,
    forbidden: Mapping[Uid, Unkeepable],
) -> Mapping[Uid, Unkeepable]:
    """The parts without room and the forbidden parts, by the uid of the gang, in this order."""
    ledger = lookup.Ledger(index.nodes)
    unkeepable: dict[Uid, Unkeepable] = {}
    for reservation in ordered:
        forbidden_parts = forbidden.get(reservation.uid, Unkeepable())
        entries = tuple(
            entry
            for entry in reservation.entries
            if not _is_keepable(entry, reservation, index, ledger, forbidden_parts)
        )
        gang = index.gangs.get(reservation.gang)
        places = slot_checks.unkeepable_slots(
            reservation, gang, index.nodes, ledger, forbidden_parts.slots
        )
        unkeepable[reservation.uid] = Unkeepable(entries, places)
    return unkeepable


def _rule_violations(
    snapshot: Snapshot, standing: Sequence[Reservation], index: lookup.SnapshotLookup
) -> Sequence[tuple[Uid, Unkeepable]]:
    """The parts that rules between pods forbid once all of these are carried out, by gang."""
    unbound = [tuple(lookup.unbound_members(reservation, index)) for reservation in standing]
    absent_by_reservation = [lookup.absent_members(reservation, index) for reservation in standing]
    members = [placed for own in unbound for _, placed in own]
    checker = inter_pod.InterPodChecker(
        snapshot,
        [*members, *(placed for own in absent_by_reservation for placed in own)],
        lookup.coming(snapshot),
    )
    violations: list[tuple[Uid, Unkeepable]] = []
    for reservation, own, absent in zip(standing, unbound, absent_by_reservation, strict=True):
        entries = tuple(entry for entry, placed in own if any(checker.faults(*placed)))
        places = Counter(
            (node, member.role) for member, node in absent if any(checker.faults(member, node))
        )
        if parts := Unkeepable(entries, places):
            violations.append((reservation.uid, parts))
    return violations


def _waits_for(member: Member, reservation: Reservation) -> bool:
    """Whether the member waits for this Reservation, and its volumes are ready."""
    return member.is_waiting and not member.lacks_claims and member.gang == reservation.gang


def _is_keepable(
    entry: PodReservation,
    reservation: Reservation,
    index: lookup.SnapshotLookup,
    ledger: lookup.Ledger,
    forbidden: Unkeepable,
) -> bool:
    """Whether the entry is bound or can be; takes the room of an entry that can be bound."""
    member, node = index.member(entry.uid, reservation.gang), index.nodes.get(entry.node)
    if member is None:
        return False
    if member.node == entry.node:
        return True
    if node is None or not _waits_for(member, reservation) or entry in forbidden.entries:
        return False
    needs = lookup.needs(member.shape)
    if fits_node(member.shape, node) is not None or ledger.lacks(entry.node, needs):
        return False
    ledger.take(entry.node, needs)
    return True
