"""Standing Reservations checked against the world as it is: which promises cannot be kept any more.

Separate from the check of plans, with which it shares how a Snapshot is read and nothing else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..model.cluster import Entry, Member, Reservation, Snapshot
from ..model.keys import Uid
from . import accounts, beside, picture, slotchecks, slots
from .feasibility import fits_node
from .slots import Places


@dataclass(frozen=True, slots=True)
class Lost:
    """What of one Reservation can no longer be carried out: entries, and slots by their place."""

    entries: tuple[Entry, ...] = ()
    slots: Places = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether anything is lost."""
        return bool(self.entries or self.slots)

    def __add__(self, other: "Lost") -> "Lost":
        return Lost((*self.entries, *other.entries), self.slots + other.slots)


def lost(snapshot: Snapshot) -> Mapping[Uid, Lost]:
    """What can no longer be carried out, by the uid of the gang.

    Where a node cannot keep all promises, the oldest Reservations keep theirs. Where rules between
    pods forbid them together, those of gangs of which somebody is bound come first. What leans on
    a promise that is lost is lost, too.
    """
    found, _ = _judged(snapshot, picture.Picture(snapshot))
    return {uid: one for uid, one in found.items() if one}


def kept(snapshot: Snapshot) -> Sequence[beside.Seat]:
    """The members that will be bound as they are promised, absent ones too, and where."""
    seen = picture.Picture(snapshot)
    _, standing = _judged(snapshot, seen)
    named = [seat for held in standing for _, seat in picture.open_seats(held, seen)]
    return [*named, *(seat for held in standing for seat in picture.awaited(held, seen))]


def _judged(
    snapshot: Snapshot, seen: picture.Picture
) -> tuple[Mapping[Uid, Lost], Sequence[Reservation]]:
    """What is lost, by the uid of its gang, and the Reservations without it that go on."""
    ordered = sorted(snapshot.reservations, key=lambda held: (held.reserved_at, held.gang))
    begun = {held.uid for held in ordered if _is_begun(held, seen)}
    forbidden: dict[Uid, Lost] = {}

    def judged() -> tuple[Mapping[Uid, Lost], Sequence[Reservation]]:
        found = _lost(ordered, seen, forbidden)
        return found, [
            _without(held, found[held.uid])
            for held in sorted(ordered, key=lambda held: held.uid not in begun)
            if held.uid in begun or not (found[held.uid] or _is_orphaned(held, seen))
        ]

    found, standing = judged()
    if not picture.are_ruled(snapshot):
        return found, standing
    for _ in range(sum(len(held.entries) + len(held.slots) for held in ordered)):
        wrong = _forbidden(snapshot, standing, seen)
        if not wrong:
            break
        # Once the last are gone, nobody may be in the way of the first. Half of them go at once,
        # so that a few passes do.
        for uid, more in wrong[len(wrong) // 2 :]:
            forbidden[uid] = forbidden.get(uid, Lost()) + more
        found, standing = judged()
    return found, standing


def _is_begun(held: Reservation, seen: picture.Picture) -> bool:
    """Whether somebody of the gang, or of the Reservation, is bound."""
    reserved = (seen.member(entry.uid, held.gang) for entry in held.entries)
    everyone = (*seen.members(held.gang).values(), *reserved)
    return any(one is not None and one.counts_as_bound for one in everyone)


def _is_orphaned(held: Reservation, seen: picture.Picture) -> bool:
    gang = seen.gangs.get(held.gang)
    return gang is None or gang.uid != held.uid or gang.terminating


def _without(held: Reservation, gone: Lost) -> Reservation:
    lost_ones = frozenset(gone.entries)
    entries = tuple(entry for entry in held.entries if entry not in lost_ones)
    return replace(
        held, entries=entries, slots=slots.slots_of(slots.places(held.slots) - gone.slots)
    )


def _lost(
    ordered: Sequence[Reservation], seen: picture.Picture, forbidden: Mapping[Uid, Lost]
) -> Mapping[Uid, Lost]:
    """What has no room, or is forbidden, by the uid of its gang; the first ones take theirs."""
    ledger = accounts.Ledger(seen.nodes)
    found: dict[Uid, Lost] = {}
    for held in ordered:
        gone = forbidden.get(held.uid, Lost())
        entries = tuple(
            entry for entry in held.entries if not _is_upheld(entry, held, seen, ledger, gone)
        )
        gang = seen.gangs.get(held.gang)
        places = slotchecks.lost(held, gang, seen.nodes, ledger, gone.slots)
        found[held.uid] = Lost(entries, places)
    return found


def _forbidden(
    snapshot: Snapshot, standing: Sequence[Reservation], seen: picture.Picture
) -> Sequence[tuple[Uid, Lost]]:
    """What rules between pods forbid once all these are carried out, by Reservation."""
    named = [tuple(picture.open_seats(held, seen)) for held in standing]
    awaited = [picture.awaited(held, seen) for held in standing]
    seats = [seat for own in named for _, seat in own]
    bystanders = beside.Bystanders(snapshot, [*seats, *(seat for own in awaited for seat in own)])
    found: list[tuple[Uid, Lost]] = []
    for held, own, absent in zip(standing, named, awaited, strict=True):
        entries = tuple(entry for entry, seat in own if any(bystanders.faults(*seat)))
        places = Counter(
            (node, member.role) for member, node in absent if any(bystanders.faults(member, node))
        )
        if wrong := Lost(entries, places):
            found.append((held.uid, wrong))
    return found


def _is_still(member: Member, held: Reservation) -> bool:
    """Whether the member waits for what the Reservation holds, and has the volumes for it."""
    return member.is_waiting and not member.lacking and member.gang == held.gang


def _is_upheld(
    entry: Entry, held: Reservation, seen: picture.Picture, ledger: accounts.Ledger, gone: Lost
) -> bool:
    """Whether the entry can be, or has been, carried out; if it can, its room is taken."""
    member, node = seen.member(entry.uid, held.gang), seen.nodes.get(entry.node)
    if member is None:
        return False
    if member.node == entry.node:
        return True
    if node is None or not _is_still(member, held) or entry in gone.entries:
        return False
    needs = picture.needs(member.shape)
    if fits_node(member.shape, node) is not None or ledger.lacks(entry.node, needs):
        return False
    ledger.take(entry.node, needs)
    return True
