"""Whether a plan keeps limits on what gangs use together, counted gang by gang in plain Python.

Use that is above a limit already is no fault of a plan, as long as the plan adds none: nothing that
runs is ended for a limit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..gang.quantities import format_amount, format_name
from ..model.cluster import Gang, Reservation, Snapshot
from ..model.decisions import GangCap, Placement
from ..model.keys import GangKey
from . import lookup


def faults(
    snapshot: Snapshot, placements: Sequence[Placement], caps: Iterable[GangCap]
) -> Iterator[str]:
    """One sentence for each cap and resource of which the placements use too much."""
    seen = lookup.SnapshotLookup(snapshot)
    held = {reservation.gang: reservation for reservation in snapshot.reservations}
    new = {placement.gang: placement for placement in placements}
    before = {gang.key: _use(gang, seen, held.get(gang.key), None) for gang in snapshot.gangs}
    after = {
        gang.key: _use(gang, seen, held.get(gang.key), new[gang.key])
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
    snapshot: Snapshot, placements: Sequence[Placement], caps: Sequence[GangCap]
) -> list[Placement]:
    """The placements that exceed no cap, counted together, the first ones first."""
    seen = lookup.SnapshotLookup(snapshot)
    held = {reservation.gang: reservation for reservation in snapshot.reservations}
    use = {gang.key: _use(gang, seen, held.get(gang.key), None) for gang in snapshot.gangs}
    used = [_total(use, cap.gangs) for cap in caps]
    sound: list[Placement] = []
    for placement in placements:
        gang = seen.gangs[placement.gang]
        more = _use(gang, seen, held.get(gang.key), placement)
        more.subtract(use[gang.key])
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


def _use(
    gang: Gang,
    seen: lookup.SnapshotLookup,
    held: Reservation | None,
    new: Placement | None,
) -> Counter[str]:
    """What a gang uses: bound members, and members and slots with a node that is held."""
    shapes = [m.shape for m in gang.members if m.node is not None and not m.is_over]
    for entry in held.entries if held is not None else ():
        promised = seen.member(entry.uid, gang.key)
        if promised is not None and promised.node is None:
            shapes.append(promised.shape)
    members = seen.members(gang.key)
    assigned = new.assignments if new is not None else ()
    shapes += [members[one.uid].shape for one in assigned if one.uid in members]
    use = Counter[str]()
    for shape in shapes:
        use.update(lookup.needs(shape))
    standing = held.slots if held is not None else ()
    for slot in standing if new is None else new.slots:
        for name, n in lookup.needs_of_slot(gang, slot.role).items():
            use[name] += n * slot.count
    return use


def _total(use: Mapping[GangKey, Counter[str]], gangs: Iterable[GangKey]) -> Counter[str]:
    """What these gangs use together."""
    total = Counter[str]()
    for key in gangs:
        total.update(use.get(key, Counter()))
    return total
