"""The plan checked against the promises, by code that shares nothing with what made it.

Only the node rules are asked of ``node_rules``; room, wholeness and Reservations are counted here
anew, rules between pods in ``inter_pod``, in plain Python. A violation is a bug of ours, or of a
solver.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..filters.node_rules import fits_node
from ..gang import slots
from ..gang.quantities import format_name
from ..gang.slots import Places
from ..model.cluster import Gang, Member, Node, Reservation, Snapshot
from ..model.decisions import Assignment, GangCap, Placement, Plan
from ..model.keys import GangKey, NodeName, Uid
from . import (
    cap_checks,
    domain_checks,
    inter_pod,
    lookup,
    queue_checks,
    queue_order,
    room_ledger,
    slot_checks,
)


def violations(snapshot: Snapshot, plan: Plan, caps: Sequence[GangCap] = ()) -> tuple[str, ...]:
    """What the plan breaks, one sentence each; empty if every promise holds."""
    over = cap_checks.faults(snapshot, plan.placements, caps) if caps else ()
    charged = queue_checks.with_charged_pods(snapshot)
    limits, charging = queue_checks.caps(charged), queue_checks.charging(charged)
    beyond = cap_checks.faults(charged, plan.placements, limits, charging) if limits else ()
    stopped = queue_checks.faults(snapshot, plan.placements)
    broken = (*_broken(snapshot, plan.placements), *over, *beyond, *stopped.values())
    return broken or tuple(queue_order.faults(snapshot, plan))


def upheld(
    snapshot: Snapshot, placements: Sequence[Placement], kept: Collection[Uid] | None = None
) -> tuple[Placement, ...]:
    """The placements that break nothing in this Snapshot, counted together, the first ones first.

    The world may have moved on since they were planned. Of the pods that standing Reservations hold
    a node for, rules between pods count those that are ``kept``, absent ones if their Reservation
    is; all, if None.
    """
    if not placements:
        return ()
    seen = lookup.SnapshotLookup(snapshot)
    books = _Books.of(snapshot, seen)
    sound: list[Placement] = []
    for placement in placements:
        trial = books.on_trial(_nodes(placement, books))
        new = _exchanged(placement, seen, trial)
        if not any(True for _ in _faults(placement, seen, trial, new)):
            books.ledger.left.update(trial.ledger.left)
            sound.append(placement)
    return tuple(_sociable(snapshot, _within_queues(snapshot, sound), seen, kept))


def _within_queues(snapshot: Snapshot, placements: list[Placement]) -> list[Placement]:
    """The placements that the Queues allow by now, the first ones first."""
    if not snapshot.queues:
        return placements
    stopped = queue_checks.faults(snapshot, placements)
    allowed = [placement for placement in placements if placement.gang not in stopped]
    charged = queue_checks.with_charged_pods(snapshot)
    limits = queue_checks.caps(charged)
    return cap_checks.within(charged, allowed, limits, queue_checks.charging(charged))


def _nodes(placement: Placement, books: "_Books") -> Iterator[NodeName]:
    """The nodes on which it takes room, or gives some back."""
    held = books.open.get(placement.gang)
    yield from (one.node for one in placement.assignments)
    yield from (slot.node for slot in (*placement.slots, *(held.slots if held else ())))


def _sociable(
    snapshot: Snapshot,
    sound: list[Placement],
    seen: lookup.SnapshotLookup,
    kept: Collection[Uid] | None,
) -> Sequence[Placement]:
    """Those that rules between pods let be together; whoever breaks one leaves, the last first."""
    standing = {held.gang: held for held in snapshot.reservations if held.slots}
    bystanders = _bystanders(snapshot, sound, seen, kept)
    while bystanders is not None:
        unsocial = (
            one
            for one in reversed(sound)
            if any(True for _ in _unsocial(one, seen, standing.get(one.gang), bystanders))
        )
        last = next(unsocial, None)
        if last is None:
            break
        sound = [placement for placement in sound if placement is not last]
        if last.gang in standing:  # the slots that it was to give up stand again
            bystanders = _bystanders(snapshot, sound, seen, kept)
            continue
        for member, node in _seats(last, seen, None):
            bystanders.leave(member, node)
    return sound


def _broken(snapshot: Snapshot, placements: Sequence[Placement]) -> Iterator[str]:
    if not placements:
        return
    seen = lookup.SnapshotLookup(snapshot)
    books = _Books.of(snapshot, seen)
    # What some give back, others may be planned to have, whichever comes first.
    changes = [_exchanged(placement, seen, books) for placement in placements]
    for placement, new in zip(placements, changes, strict=True):
        yield from _faults(placement, seen, books, new)
    bystanders = _bystanders(snapshot, placements, seen)
    if bystanders is not None:
        for placement in placements:
            yield from _unsocial(placement, seen, books.open.get(placement.gang), bystanders)


@dataclass(frozen=True, slots=True)
class _Books:
    """What is promised so far: room, pods, and gangs."""

    ledger: room_ledger.Ledger
    pods: set[Uid]
    gangs: set[GangKey]
    open: Mapping[GangKey, Reservation]  # standing ones with room for absent members

    @classmethod
    def of(cls, snapshot: Snapshot, seen: lookup.SnapshotLookup) -> "_Books":
        """Start from what is used and what standing Reservations hold."""
        books = cls(
            room_ledger.Ledger(seen.nodes),
            {entry.uid for held in snapshot.reservations for entry in held.entries},
            {held.gang for held in snapshot.reservations if not _is_open(held, seen)},
            {held.gang: held for held in snapshot.reservations if _is_open(held, seen)},
        )
        for held in snapshot.reservations:
            for node, asked in lookup.held_room(held, seen):
                books.ledger.take(node, asked)
        return books

    def on_trial(self, nodes: Iterable[NodeName]) -> "_Books":
        """The same books with a copy of the room on these nodes; names are not given back."""
        return _Books(self.ledger.copy(nodes), self.pods, self.gangs, self.open)


def _is_open(held: Reservation, seen: lookup.SnapshotLookup) -> bool:
    """Whether it may be changed: one of a namesake that is gone is not the gang's."""
    gang = seen.gangs.get(held.gang)
    return bool(held.slots) and gang is not None and gang.uid == held.uid


def _exchanged(placement: Placement, seen: lookup.SnapshotLookup, books: _Books) -> Places:
    """Give back what stands for its gang, and count what of it will go on; the new slots."""
    gang = seen.gangs.get(placement.gang)
    if gang is None or gang.uid != placement.uid:
        return Counter()
    return slot_checks.exchange(placement, gang, books.open.get(gang.key), books.ledger)


def _faults(
    placement: Placement, seen: lookup.SnapshotLookup, books: _Books, new: Places
) -> Iterator[str]:
    """What is wrong with one placement; its promises are added to the books."""
    gang = seen.gangs.get(placement.gang)
    if gang is None or gang.uid != placement.uid:
        yield f"gang {placement.gang}: there is no such gang"
        return
    if gang.terminating or gang.key in books.gangs:
        yield f"gang {gang.key}: it is being deleted, or has a placement already"
    books.gangs.add(gang.key)
    for one in placement.assignments:
        yield from _wrong(one, gang, seen, books.pods, books.ledger)
        books.pods.add(one.uid)
    yield from slot_checks.faults(new, gang, seen.nodes, books.ledger)
    yield from _incomplete(gang, placement)
    yield from _overfull(gang, placement)
    held = books.open.get(gang.key)
    yield from domain_checks.faults(seen.topologies, seen.nodes, gang, placement, held)


def _wrong(
    one: Assignment,
    gang: Gang,
    seen: lookup.SnapshotLookup,
    taken: set[Uid],
    ledger: room_ledger.Ledger,
) -> Iterator[str]:
    """What is wrong with one assignment; its room is taken from the ledger."""
    member, node = seen.members(gang.key).get(one.uid), seen.nodes.get(one.node)
    if member is None or member.key != one.pod:
        yield f"pod {one.pod}: it is no member of gang {gang.key}"
        return
    if node is None:
        yield f"pod {one.pod}: there is no node {one.node}"
        return
    if one.uid in taken:
        yield f"pod {one.pod}: it has a node already"
    is_ready = not (
        member.unsupported_fields or member.size_unknown_because or member.volume_problems
    )
    if not (member.is_waiting and is_ready and gang.accepts(member)):
        yield f"pod {one.pod}: it cannot be placed now"
    if (why := fits_node(member.shape, node)) is not None:
        yield f"pod {one.pod}: node {one.node} will not do: {why}"
    asked = lookup.needs(member.shape)
    if lacking := ledger.lacks(one.node, asked):
        names = ", ".join(map(format_name, lacking))
        yield f"pod {one.pod}: node {one.node} has too little {names}"
    ledger.take(one.node, asked)


def _incomplete(gang: Gang, placement: Placement) -> Iterator[str]:
    """What a gang lacks that starts with this placement; one that has started may lack members."""
    bound = [m for m in gang.members if m.counts_as_bound and gang.accepts(m)]
    if bound:
        return
    uids = {one.uid for one in placement.assignments}
    starting = [member for member in gang.members if member.uid in uids]
    starting += [member for member, _ in slots.placeholders_of_slots(gang, placement.slots)]
    if len(starting) < gang.min_member:
        yield f"gang {gang.key}: {len(starting)} of {gang.min_member} members are placed"
    for role in gang.roles:
        n = sum(member.role == role.name for member in starting)
        if n < role.min_member:
            yield f"gang {gang.key}: {n} of {role.min_member} of role {role.name} are placed"


def _overfull(gang: Gang, placement: Placement) -> Iterator[str]:
    """Roles of which more members would have a node than their maximum."""
    uids = {one.uid for one in placement.assignments}
    added = Counter(m.role for m in gang.members if m.uid in uids)
    added.update(member.role for member, _ in slots.placeholders_of_slots(gang, placement.slots))
    there = Counter(m.role for m in gang.members if m.counts_as_bound and not m.is_over)
    for role in gang.roles:
        n, most = there[role.name] + added[role.name], role.max_member
        if added[role.name] and most is not None and n > most:
            yield f"gang {gang.key}: {n} of at most {most} of role {role.name} are placed"


def _bystanders(
    snapshot: Snapshot,
    placements: Sequence[Placement],
    seen: lookup.SnapshotLookup,
    kept: Collection[Uid] | None = None,
) -> inter_pod.InterPodChecker | None:
    """Everyone once all are placed; None where no rule between pods can be in force."""
    gangs = [seen.gangs[one.gang] for one in placements if one.gang in seen.gangs]
    if not (snapshot.reservations or lookup.are_ruled(replace(snapshot, gangs=tuple(gangs)))):
        return None

    def is_kept(uid: Uid) -> bool:
        return kept is None or uid in kept

    after = {one.gang: one for one in placements}
    seats: list[inter_pod.Seat] = []
    for held in snapshot.reservations:
        named = (seat for _, seat in lookup.open_seats(held, seen))
        seats.extend(seat for seat in named if is_kept(seat[0].uid))
        if is_kept(held.uid):
            seats.extend(lookup.awaited(_going_on(held, after.get(held.gang)), seen))
    standing = {held.gang: held for held in snapshot.reservations if held.slots}
    for one in placements:
        seats.extend(_seats(one, seen, standing.get(one.gang)))
    return inter_pod.InterPodChecker(snapshot, seats)


def _going_on(held: Reservation, after: Placement | None) -> Reservation:
    """The Reservation with those of its slots that it will have still."""
    if after is None:
        return held
    left = slots.places(held.slots) & slots.places(after.slots)
    return replace(held, slots=slots.slots_of(left))


def _seats(
    placement: Placement, seen: lookup.SnapshotLookup, held: Reservation | None
) -> Iterator[inter_pod.Seat]:
    """Whom it gives a node, absent members too; ``held`` is what stands for its gang by now."""
    for one in placement.assignments:
        if (member := seen.members(placement.gang).get(one.uid)) is not None:
            yield member, one.node
    if (gang := seen.gangs.get(placement.gang)) is not None:
        before = slots.places(() if held is None else held.slots)
        yield from slots.placeholders_of_slots(
            gang, slots.slots_of(slots.places(placement.slots) - before)
        )


def _unsocial(
    placement: Placement,
    seen: lookup.SnapshotLookup,
    held: Reservation | None,
    bystanders: inter_pod.InterPodChecker,
) -> Iterator[str]:
    """What rules between pods forbid once all are placed, each looked at as if it came last."""
    for member, node in _seats(placement, seen, held):
        yield from bystanders.faults(member, node)


def takes(node: Node, member: Member) -> bool:
    """Whether the node has room for the member beside what is bound there, promises aside."""
    lacking = room_ledger.Ledger({node.name: node}).lacks(node.name, lookup.needs(member.shape))
    return not lacking and fits_node(member.shape, node) is None
