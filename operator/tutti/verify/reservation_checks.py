"""Standing Reservations checked against the world as it is: which promises cannot be kept any more.

Separate from the check of plans, with which it shares how a Snapshot is read and nothing else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..filters.node_rules import fits_node
from ..gang import slots
from ..gang.slots import Places
from ..model.cluster import Member, PodReservation, Reservation, Snapshot
from ..model.keys import Uid
from . import inter_pod, lookup, room_ledger, slot_checks


@dataclass(frozen=True, slots=True)
class Unkeepable:
    """What of one Reservation can no longer be carried out: entries, and slots by their place."""

    entries: tuple[PodReservation, ...] = ()
    slots: Places = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether anything is lost."""
        return bool(self.entries or self.slots)

    def __add__(self, other: "Unkeepable") -> "Unkeepable":
        return Unkeepable((*self.entries, *other.entries), self.slots + other.slots)


def lost(snapshot: Snapshot) -> Mapping[Uid, Unkeepable]:
    """What can no longer be carried out, by the uid of the gang.

    Where a node cannot keep all promises, the oldest Reservations keep theirs. Where rules between
    pods forbid them together, those of gangs of which somebody is bound come first. What leans on
    a promise that is lost is lost, too.
    """
    found, _ = _judged(snapshot, lookup.SnapshotLookup(snapshot))
    return {uid: one for uid, one in found.items() if one}


def _judged(
    snapshot: Snapshot, seen: lookup.SnapshotLookup
) -> tuple[Mapping[Uid, Unkeepable], Sequence[Reservation]]:
    """What is lost, by the uid of its gang, and the Reservations without it that go on."""
    ordered = sorted(snapshot.reservations, key=lambda held: (held.reserved_at, held.gang))
    begun = {held.uid for held in ordered if _is_begun(held, seen)}
    forbidden: dict[Uid, Unkeepable] = {}

    def judged() -> tuple[Mapping[Uid, Unkeepable], Sequence[Reservation]]:
        found = _lost(ordered, seen, forbidden)
        return found, [
            _without(held, found[held.uid])
            for held in sorted(ordered, key=lambda held: held.uid not in begun)
            if held.uid in begun or not (found[held.uid] or _is_orphaned(held, seen))
        ]

    found, standing = judged()
    if not lookup.are_ruled(snapshot):
        return found, standing
    for _ in range(sum(len(held.entries) + len(held.slots) for held in ordered)):
        wrong = _forbidden(snapshot, standing, seen)
        if not wrong:
            break
        # Once the last are gone, nobody may be in the way of the first. Half of them go at once,
        # so that a few passes do.
        for uid, more in wrong[len(wrong) // 2 :]:
            forbidden[uid] = forbidden.get(uid, Unkeepable()) + more
        found, standing = judged()
    return found, standing


def _is_begun(held: Reservation, seen: lookup.SnapshotLookup) -> bool:
    """Whether somebody of the gang, or of the Reservation, is bound."""
    reserved = (seen.member(entry.uid, held.gang) for entry in held.entries)
    everyone = (*seen.members(held.gang).values(), *reserved)
    return any(one is not None and one.counts_as_bound for one in everyone)


def _is_orphaned(held: Reservation, seen: lookup.SnapshotLookup) -> bool:
    gang = seen.gangs.get(held.gang)
    return gang is None or gang.uid != held.uid or gang.terminating


def _without(held: Reservation, gone: Unkeepable) -> Reservation:
    lost_ones = frozenset(gone.entries)
    entries = tuple(entry for entry in held.entries if entry not in lost_ones)
    return replace(
        held, entries=entries, slots=slots.slots_of(slots.places(held.slots) - gone.slots)
    )


def _lost(
    ordered: Sequence[Reservation], seen: lookup.SnapshotLookup, forbidden: Mapping[Uid, Unkeepable]
) -> Mapping[Uid, Unkeepable]:
    """What has no room, or is forbidden, by the uid of its gang; the first ones take theirs."""
    ledger = room_ledger.Ledger(seen.nodes)
    found: dict[Uid, Unkeepable] = {}
    for held in ordered:
        gone = forbidden.get(held.uid, Unkeepable())
        entries = tuple(
            entry for entry in held.entries if not _is_upheld(entry, held, seen, ledger, gone)
        )
        gang = seen.gangs.get(held.gang)
        places = slot_checks.lost(held, gang, seen.nodes, ledger, gone.slots)
        found[held.uid] = Unkeepable(entries, places)
    return found


def _forbidden(
    snapshot: Snapshot, standing: Sequence[Reservation], seen: lookup.SnapshotLookup
) -> Sequence[tuple[Uid, Unkeepable]]:
    """What rules between pods forbid once all these are carried out, by Reservation."""
    named = [tuple(lookup.open_seats(held, seen)) for held in standing]
    awaited = [lookup.awaited(held, seen) for held in standing]
    seats = [seat for own in named for _, seat in own]
    bystanders = inter_pod.InterPodChecker(
        snapshot, [*seats, *(seat for own in awaited for seat in own)]
    )
    found: list[tuple[Uid, Unkeepable]] = []
    for held, own, absent in zip(standing, named, awaited, strict=True):
        entries = tuple(entry for entry, seat in own if any(bystanders.faults(*seat)))
        places = Counter(
            (node, member.role) for member, node in absent if any(bystanders.faults(member, node))
        )
        if wrong := Unkeepable(entries, places):
            found.append((held.uid, wrong))
    return found


def _is_still(member: Member, held: Reservation) -> bool:
    """Whether the member waits for what the Reservation holds, and has the volumes for it."""
    return member.is_waiting and not member.volume_problems and member.gang == held.gang


def _is_upheld(
    entry: PodReservation,
    held: Reservation,
    seen: lookup.SnapshotLookup,
    ledger: room_ledger.Ledger,
    gone: Unkeepable,
) -> bool:
    """Whether the entry can be, or has been, carried out; if it can, its room is taken."""
    member, node = seen.member(entry.uid, held.gang), seen.nodes.get(entry.node)
    if member is None:
        return False
    if member.node == entry.node:
        return True
    if node is None or not _is_still(member, held) or entry in gone.entries:
        return False
    needs = lookup.needs(member.shape)
    if fits_node(member.shape, node) is not None or ledger.lacks(entry.node, needs):
        return False
    ledger.take(entry.node, needs)
    return True
