"""Whether a plan keeps limits on the use of several gangs, counted gang by gang in plain Python.

If use is above a limit before the plan, only a plan that adds use is wrong: no running pod is ended
because of a limit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..gang.quantities import format_amount, format_name
from ..model.cluster import Gang, Member, Reservation, Snapshot
from ..model.decisions import GangCap, Placement
from ..model.keys import GangKey
from . import lookup

# What a gang uses with its Reservation, and with a Placement of a plan.
UseOf = Callable[[Gang, lookup.SnapshotLookup, Reservation | None, Placement | None], Counter[str]]


class Usage(NamedTuple):
    """What each gang uses before a plan, and once the plan is carried out."""

    before: Mapping[GangKey, Counter[str]]
    after: Mapping[GangKey, Counter[str]]


def usage(
    snapshot: Snapshot,
    index: lookup.SnapshotLookup,
    placements: Sequence[Placement],
    use_of: UseOf | None = None,
) -> Usage:
    """What each gang of a Snapshot uses; the index is of the same Snapshot."""
    use_of = use_of or use
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    before = {
        gang.key: use_of(gang, index, reservations.get(gang.uid), None) for gang in snapshot.gangs
    }
    starting = {
        placement.gang: use_of(gang, index, reservations.get(gang.uid), placement)
        for placement in placements
        if (gang := index.gangs.get(placement.gang)) is not None
    }
    return Usage(before, before | starting)


def faults(usage: Usage, caps: Iterable[GangCap]) -> Iterator[str]:
    """A sentence for each cap and resource whose limit the plan would exceed."""
    for cap in caps:
        used, planned = total_of(usage.before, cap.gangs), total_of(usage.after, cap.gangs)
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
    """The placements that exceed no cap, counted together; earlier placements come first."""
    index, use_of = lookup.SnapshotLookup(snapshot), use_of or use
    reservations = {reservation.gang: reservation for reservation in snapshot.reservations}
    before = usage(snapshot, index, (), use_of).before
    used = [total_of(before, cap.gangs) for cap in caps]
    valid: list[Placement] = []
    for placement in placements:
        gang = index.gangs[placement.gang]
        increase = use_of(gang, index, reservations.get(gang.key), placement)
        increase.subtract(before[gang.key])
        cap_indices = [i for i, cap in enumerate(caps) if gang.key in cap.gangs]
        if all(_has_room(caps[i], used[i], increase) for i in cap_indices):
            valid.append(placement)
            for i in cap_indices:
                used[i].update(increase)
    return valid


def _has_room(cap: GangCap, used: Counter[str], increase: Counter[str]) -> bool:
    return all(
        increase[name] <= 0 or used[name] + increase[name] <= limit
        for name, limit in cap.limits.items()
    )


def use(
    gang: Gang,
    index: lookup.SnapshotLookup,
    reservation: Reservation | None,
    placement: Placement | None,
) -> Counter[str]:
    """What a gang uses: its bound members, and the members and slots that have a reserved node."""
    usage = needs_of(holders(gang, index, reservation, placement))
    for role, count in slots_by_role(reservation, placement).items():
        for name, n in lookup.needs_of_slot(gang, role).items():
            usage[name] += n * count
    return usage


def needs_of(members: Iterable[Member]) -> Counter[str]:
    """The sum of the resources that these members take of nodes."""
    shapes = [member.shape for member in members]
    by_id = {id(shape): shape for shape in shapes}
    needed: Counter[str] = Counter()
    for key, number in Counter(map(id, shapes)).items():
        for name, n in lookup.needs(by_id[key]).items():
            needed[name] += n * number
    return needed


def holders(
    gang: Gang,
    index: lookup.SnapshotLookup,
    reservation: Reservation | None,
    placement: Placement | None,
) -> list[Member]:
    """The members of a gang that have a node, bound or reserved."""
    members = [member for member in gang.members if member.node is not None and not member.is_over]
    for entry in reservation.entries if reservation is not None else ():
        member = index.member(entry.uid, gang.key)
        if member is not None and member.node is None:
            members.append(member)
    if placement is not None:
        own = index.members(gang.key)
        members += [own[entry.uid] for entry in placement.assignments if entry.uid in own]
    return members


def slots_by_role(reservation: Reservation | None, placement: Placement | None) -> Counter[str]:
    """The number of absent members of each role for which room is reserved."""
    counts: Counter[str] = Counter()
    held_slots = reservation.slots if reservation is not None else ()
    for slot in held_slots if placement is None else placement.slots:
        counts[slot.role] += slot.count
    return counts


def total_of(use: Mapping[GangKey, Counter[str]], gangs: Iterable[GangKey]) -> Counter[str]:
    """The sum of the use of these gangs."""
    total: Counter[str] = Counter()
    for key in gangs:
        if amounts := use.get(key):  # a gang that waits uses nothing
            total.update(amounts)
    return total
