"""Standing Reservations checked against the world as it is: which promises cannot be kept any more.

Separate from the check of plans, with which it shares how a Snapshot is read and nothing else.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..model.cluster import Entry, Reservation, Snapshot
from ..model.keys import Uid
from . import accounts, beside, picture
from .feasibility import fits_node


def lost_entries(snapshot: Snapshot) -> Mapping[Uid, tuple[Entry, ...]]:
    """The entries that can no longer be carried out, by the uid of their gang.

    Where a node cannot keep all promises, the oldest Reservations keep theirs. Where rules between
    pods forbid them together, those of gangs of which somebody is bound come first. What leans on
    a promise that is lost is lost, too.
    """
    lost, _ = _judged(snapshot, picture.Picture(snapshot))
    return {uid: entries for uid, entries in lost.items() if entries}


def kept(snapshot: Snapshot) -> Sequence[beside.Seat]:
    """The members that will be bound as they are promised, and where."""
    seen = picture.Picture(snapshot)
    _, standing = _judged(snapshot, seen)
    return [seat for held in standing for _, seat in picture.open_seats(held, seen)]


def _judged(
    snapshot: Snapshot, seen: picture.Picture
) -> tuple[Mapping[Uid, tuple[Entry, ...]], Sequence[Reservation]]:
    """What is lost, by the uid of its gang, and the Reservations without it that go on."""
    ordered = sorted(snapshot.reservations, key=lambda held: (held.reserved_at, held.gang))
    begun = {held.uid for held in ordered if _is_begun(held, seen)}
    forbidden: set[Entry] = set()

    def judged() -> tuple[Mapping[Uid, tuple[Entry, ...]], Sequence[Reservation]]:
        lost = _lost(ordered, seen, forbidden)
        return lost, [
            _without(held, lost[held.uid])
            for held in sorted(ordered, key=lambda held: held.uid not in begun)
            if held.uid in begun or not (lost[held.uid] or _is_orphaned(held, seen))
        ]

    lost, standing = judged()
    for _ in range(sum(len(held.entries) for held in ordered)):
        wrong = _forbidden(snapshot, standing, seen)
        if not wrong:
            break
        # Once the last are gone, nobody may be in the way of the first. Half of them go at once,
        # so that a few passes do.
        forbidden.update(*wrong[len(wrong) // 2 :])
        lost, standing = judged()
    return lost, standing


def _is_begun(held: Reservation, seen: picture.Picture) -> bool:
    """Whether somebody of the gang, or of the Reservation, is bound."""
    reserved = (seen.member(entry.uid, held.gang) for entry in held.entries)
    everyone = (*seen.members(held.gang).values(), *reserved)
    return any(one is not None and one.counts_as_bound for one in everyone)


def _is_orphaned(held: Reservation, seen: picture.Picture) -> bool:
    gang = seen.gangs.get(held.gang)
    return gang is None or gang.uid != held.uid or gang.terminating


def _without(held: Reservation, lost: Collection[Entry]) -> Reservation:
    gone = frozenset(lost)
    return replace(held, entries=tuple(entry for entry in held.entries if entry not in gone))


def _lost(
    ordered: Sequence[Reservation], seen: picture.Picture, forbidden: Collection[Entry]
) -> Mapping[Uid, tuple[Entry, ...]]:
    """What has no room, or is forbidden, by the uid of its gang; the first ones take theirs."""
    ledger = accounts.Ledger(seen.nodes)
    lost: dict[Uid, tuple[Entry, ...]] = {}
    for held in ordered:
        lost[held.uid] = tuple(
            entry for entry in held.entries if not _is_upheld(entry, held, seen, ledger, forbidden)
        )
        for node, asked in picture.held_room(replace(held, entries=()), seen):
            ledger.take(node, asked)
    return lost


def _forbidden(
    snapshot: Snapshot, standing: Sequence[Reservation], seen: picture.Picture
) -> Sequence[Sequence[Entry]]:
    """What rules between pods forbid once all these are carried out, by Reservation."""
    seats = [tuple(picture.open_seats(held, seen)) for held in standing]
    neighbours = beside.Neighbours(snapshot, [seat for own in seats for _, seat in own])
    if not neighbours.are_ruled:
        return ()
    found = ([one for one, seat in own if any(neighbours.faults(*seat))] for own in seats)
    return [entries for entries in found if entries]


def _is_upheld(
    entry: Entry,
    held: Reservation,
    seen: picture.Picture,
    ledger: accounts.Ledger,
    forbidden: Collection[Entry],
) -> bool:
    """Whether the entry can be, or has been, carried out; if it can, its room is taken."""
    member, node = seen.member(entry.uid, held.gang), seen.nodes.get(entry.node)
    if member is None:
        return False
    if member.node == entry.node:
        return True
    if node is None or not member.is_waiting or member.gang != held.gang or entry in forbidden:
        return False
    if fits_node(member.shape, node) is not None or ledger.lacks(entry.node, picture.needs(member)):
        return False
    ledger.take(entry.node, picture.needs(member))
    return True
