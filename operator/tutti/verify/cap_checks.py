"""Whether a plan keeps limits on what gangs use together, counted gang by gang in plain Python.

Use that is above a limit already is no fault of a plan, as long as the plan adds none: nothing that
runs is ended for a limit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..gang.quantities import format_amount, format_name
from ..model.cluster import Gang, Member, Reservation, Snapshot
from ..model.decisions import GangCap, Placement
from ..model.keys import GangKey
from . import lookup

# What a gang uses: with its Reservation, and as a Placement would have it.
UseOf = Callable[[Gang, lookup.SnapshotLookup, Reservation | None, Placement | None], Counter[str]]


def faults(
    snapshot: Snapshot,
    placements: Sequence[Placement],
    caps: Iterable[GangCap],
    use_of: UseOf | None = None,
) -> Iterator[str]:
    """One sentence for each cap and resource of which the placements use too much."""
    seen, use_of = lookup.SnapshotLookup(snapshot), use_of or use
    held = {reservation.gang: reservation for reservation in snapshot.reservations}
    new = {placement.gang: placement for placement in placements}
    before = {gang.key: use_of(gang, seen, held.get(gang.key), None) for gang in snapshot.gangs}
    after = {
        gang.key: use_of(gang, seen, held.get(gang.key), new[gang.key])
        for gang in snapshot.gangs
        if gang.key in new
    }
    for cap in caps:
        used = _total(before, cap.gangs)
        planned = _total({**before, **after}, cap.gangs)
        for name, limit in sorted(cap.limits.items()):
            if planned[name] > max(limit, used[name]):
                amounts = (format_amount(name, n) for n in (planned[name], limit))
                yield f"cap {cap.name}: {' of '.join(amounts)} {format_name(name)} would be in use"


def within(
    snapshot: Snapshot,
    placements: Sequence[Placement],
    caps: Sequence[GangCap],
    use_of: UseOf | None = None,
) -> list[Placement]:
    """The placements that exceed no cap, counted together, the first ones first."""
    seen, use_of = lookup.SnapshotLookup(snapshot), use_of or use
    held = {reservation.gang: reservation for reservation in snapshot.reservations}
    usage = {gang.key: use_of(gang, seen, held.get(gang.key), None) for gang in snapshot.gangs}
    used = [_total(usage, cap.gangs) for cap in caps]
    sound: list[Placement] = []
    for placement in placements:
        gang = seen.gangs[placement.gang]
        more = use_of(gang, seen, held.get(gang.key), placement)
        more.subtract(usage[gang.key])
        counting = [i for i, cap in enumerate(caps) if gang.key in cap.gangs]
        if all(_has_room(caps[i], used[i], more) for i in counting):
            sound.append(placement)
            for i in counting:
                used[i].update(more)
    return sound


def _has_room(cap: GangCap, used: Counter[str], more: Counter[str]) -> bool:
    return all(
        more[name] <= 0 or used[name] + more[name] <= limit for name, limit in cap.limits.items()
    )


def use(
    gang: Gang,
    seen: lookup.SnapshotLookup,
    held: Reservation | None,
    new: Placement | None,
) -> Counter[str]:
    """What a gang uses: bound members, and members and slots with a node that is held."""
    usage = Counter[str]()
    for member in holders(gang, seen, held, new):
        usage.update(lookup.needs(member.shape))
    for role, count in slots_by_role(held, new).items():
        for name, n in lookup.needs_of_slot(gang, role).items():
            usage[name] += n * count
    return usage


def holders(
    gang: Gang,
    seen: lookup.SnapshotLookup,
    held: Reservation | None,
    new: Placement | None,
) -> list[Member]:
    """The members of a gang that have a node, or for which one is held."""
    members = [member for member in gang.members if member.node is not None and not member.is_over]
    for entry in held.entries if held is not None else ():
        promised = seen.member(entry.uid, gang.key)
        if promised is not None and promised.node is None:
            members.append(promised)
    own = seen.members(gang.key)
    assigned = new.assignments if new is not None else ()
    members += [own[assignment.uid] for assignment in assigned if assignment.uid in own]
    return members


def slots_by_role(held: Reservation | None, new: Placement | None) -> Counter[str]:
    """For how many absent members of each role room is held."""
    counts = Counter[str]()
    standing = held.slots if held is not None else ()
    for slot in standing if new is None else new.slots:
        counts[slot.role] += slot.count
    return counts


def _total(use: Mapping[GangKey, Counter[str]], gangs: Iterable[GangKey]) -> Counter[str]:
    """What these gangs use together."""
    total = Counter[str]()
    for key in gangs:
        total.update(use.get(key, Counter()))
    return total
