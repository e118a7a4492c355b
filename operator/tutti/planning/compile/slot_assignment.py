"""Who takes the room that is held for absent members: the picture once those that came have theirs.

A member takes a slot of its role if it asks for no more than the role's template, and its node
will do by its own rules; they are matched, so that as many as can have one, the oldest first.
Whoever asks for more, or may not run there, is placed anew as a lost member's successor is; the
slot that it leaves is given back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...filters.node_index import NodeIndex
from ...gang import slots
from ...gang.order import by_age
from ...gang.quantities import count, format_resources
from ...gang.slots import Places
from ...model.cluster import Gang, Member, PodReservation, Reservation, SlotReservation, Snapshot
from ...model.decisions import Assignment, Placement
from ...model.keys import Uid
from . import bipartite_matching, standing_reservations
from .end_state import RuleCheck
from .standing_reservations import LostParts


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """A standing Reservation with open slots, as it will be, and what came to light."""

    before: Reservation
    after: Reservation
    lost: Places  # of the slots that remain, those whose node will not do any more
    larger: tuple[Member, ...] = ()  # members that ask for more than they declared
    is_over: bool = False  # time is up for those that do not exist

    @property
    def remaining_slots(self) -> Places:
        """The slots that room is still held for."""
        return slots.places(self.after.slots) - self.lost

    def placement(
        self, gang: Gang, own: Sequence[Assignment], new: Sequence[SlotReservation]
    ) -> Placement | None:
        """The Reservation as it is to be, with what was found beside it; None if it may stay.

        Lost slots for which there is no other room are kept: their node may do again.
        """
        members = {member.uid: member for member in gang.members}
        taken = tuple(
            Assignment(entry.pod, entry.uid, members[entry.uid].version, entry.node)
            for entry in self.taken
        )
        found = slots.places(new)
        replaced = Counter[str]()
        for (_, role), n in found.items():
            replaced[role] += n
        held = slots.slots_of(self.remaining_slots + _beyond(self.lost, replaced) + found)
        if not (own or taken) and held == self.before.slots:
            return None
        remark = self._remark(gang)
        return Placement(gang.key, gang.uid, gang.generation, (*taken, *own), held, remark)

    @property
    def taken(self) -> Sequence[PodReservation]:
        """The members that came, each with the node of its slot."""
        return self.after.entries[len(self.before.entries) :]

    def _remark(self, gang: Gang) -> str:
        """What people are told of members that ask for more than their role declares."""
        if not self.larger:
            return ""
        first = self.larger[0]
        declared = slots.declared(gang, first.role)
        asked = format_resources(first.shape.requests)
        said = format_resources(declared.requests) if declared is not None else "nothing"
        others = len(self.larger) - 1
        more = f", and {count(others, 'more member')} likewise" if others else ""
        return (
            f"{first.key.name} asks for {asked}, and the template of role {first.role} declares "
            f"{said}: it is placed anew{more}"
        )


@dataclass(frozen=True, slots=True)
class SlotAssignments:
    """A Snapshot in which those that came have taken their slots, and by gang what it changed."""

    snapshot: Snapshot
    open: Mapping[Uid, OpenReservation]
    bereft: frozenset[Uid] = frozenset()  # gangs that lost their Reservation before its time

    def awaits(self, gang: Gang) -> bool:
        """Whether absent members may get room that is not held for them yet."""
        open_reservation = self.open.get(gang.uid)
        return open_reservation is None or not open_reservation.is_over

    def room(self, gang: Gang) -> Collection[Member] | None:
        """Stand-ins for the absent members of a gang that have room; None if nobody is awaited."""
        open_reservation = self.open.get(gang.uid)
        if open_reservation is None:
            return () if gang.uid in self.bereft else None
        return [
            member
            for member, _ in slots.placeholders_of_slots(
                gang, slots.slots_of(open_reservation.remaining_slots)
            )
        ]


def filled(snapshot: Snapshot) -> SlotAssignments:
    """Give the slots that are open to members that came for them, the oldest first."""
    if not (snapshot.lost_reservations or any(held.slots for held in snapshot.reservations)):
        return SlotAssignments(snapshot, {})
    gangs, now = {gang.uid: gang for gang in snapshot.gangs}, snapshot.taken_at
    standing = [
        (held, gangs[held.uid])
        for held in snapshot.reservations
        if slots.are_open(held, gangs.get(held.uid), now) and _has_begun(held, gangs[held.uid])
    ]
    bereft = frozenset(
        uid for uid in snapshot.lost_reservations if uid in gangs and slots.may_come(gangs[uid])
    )
    if not standing:
        return SlotAssignments(snapshot, {}, bereft)
    nodes = NodeIndex(snapshot.nodes)
    named = {entry.uid for held in snapshot.reservations for entry in held.entries}
    lost = standing_reservations.lost_parts(snapshot)
    found = {
        held.uid: _with_slots_assigned(
            held, gang, nodes, named, lost.get(held.uid, LostParts()).slots
        )
        for held, gang in standing
    }
    found = {
        uid: _no_more_than_lacks(reservation, gangs[uid], now) for uid, reservation in found.items()
    }
    social = _sociable(snapshot, found, gangs)
    reservations = tuple(
        social[held.uid].after if held.uid in social else held for held in snapshot.reservations
    )
    return SlotAssignments(replace(snapshot, reservations=reservations), social, bereft)


def _has_begun(held: Reservation, gang: Gang) -> bool:
    """Whether a member is bound; until then the Reservation is carried out, or released, whole."""
    return not held.evict and any(
        member.counts_as_bound and gang.accepts(member) for member in gang.members
    )


def _with_slots_assigned(
    held: Reservation,
    gang: Gang,
    nodes: NodeIndex,
    named: Collection[Uid],
    lost: Places,
) -> OpenReservation:
    """Name those that came, each on the node of a slot that is to be its own."""
    free = slots.places(held.slots) - lost
    came: list[Member] = []
    larger: list[Member] = []
    for member in by_age(gang.members):
        if slots.declared(gang, member.role) is None or member.uid in named:
            continue
        if slots.is_ready(member):
            (came if slots.may_take(gang, member) else larger).append(member)
    asking = [(member.role, member.shape) for member in came]
    places = sorted(free)
    allowed = {shape: nodes.allowed(shape) for shape in {shape for _, shape in asking}}
    fits = {
        (role, shape): [at for at in places if at[1] == role and allowed[shape][nodes.rows[at[0]]]]
        for role, shape in dict.fromkeys(asking)
    }
    given = bipartite_matching.matched(asking, fits, free)
    entries = [
        PodReservation(came[i].key, came[i].uid, node) for i, (node, _) in sorted(given.items())
    ]
    left = slots.slots_of(free - Counter(given.values()) + lost)
    after = replace(held, entries=(*held.entries, *entries), slots=left)
    return OpenReservation(held, after, lost, tuple(larger))


def _sociable(
    snapshot: Snapshot, found: Mapping[Uid, OpenReservation], gangs: Mapping[Uid, Gang]
) -> Mapping[Uid, OpenReservation]:
    """The same without those whom rules between pods forbid their slot."""
    new = [(uid, entry) for uid, reservation in found.items() for entry in reservation.taken]
    if not new:
        return found
    members = {m.uid: m for gang in snapshot.gangs for m in gang.members}
    now = snapshot.taken_at
    while True:
        reservations = tuple(
            found[held.uid].after if held.uid in found else held for held in snapshot.reservations
        )
        promised = standing_reservations.promised_members(snapshot, reservations)
        rules = RuleCheck(snapshot, [member for member, _ in promised])
        state = rules.state(promised)
        unsocial = {
            entry.uid for _, entry in new if not rules.allows(state, members[entry.uid], entry.node)
        }
        if not unsocial:
            return found
        new = [(uid, entry) for uid, entry in new if entry.uid not in unsocial]
        found = {
            uid: _no_more_than_lacks(_without(reservation, unsocial, members), gangs[uid], now)
            for uid, reservation in found.items()
        }


def _without(
    reservation: OpenReservation, uids: Collection[Uid], members: Mapping[Uid, Member]
) -> OpenReservation:
    """Give the slots of these members back to whoever comes next."""
    back = [entry for entry in reservation.taken if entry.uid in uids]
    if not back:
        return reservation
    free = slots.places(reservation.after.slots)
    free.update((entry.node, members[entry.uid].role) for entry in back)
    entries = tuple(entry for entry in reservation.after.entries if entry not in back)
    return replace(
        reservation, after=replace(reservation.after, entries=entries, slots=slots.slots_of(free))
    )


def _no_more_than_lacks(reservation: OpenReservation, gang: Gang, now: float) -> OpenReservation:
    """Hold no more slots than the gang lacks members: who exists takes one, or is placed anew.

    Once time is up, none are left if one who could take a slot can take none of these.
    """
    is_over = now >= slots.expiry(reservation.before, gang)
    is_in_vain = is_over and slots.are_open(reservation.after, gang, now)
    here = Counter(gang.finished)
    here.update(m.role for m in _present(gang))
    left = Counter({} if is_in_vain else slots.absent(gang, here))
    kept, lost = _at_most(reservation.remaining_slots, left), _at_most(reservation.lost, left)
    after = replace(reservation.after, slots=slots.slots_of(kept + lost))
    return replace(reservation, after=after, lost=lost, is_over=is_over)


def _beyond(found: Places, taken: Counter[str]) -> Places:
    """These slots without the first so many of each role."""
    left = taken.copy()
    rest: Places = Counter()
    for at in sorted(found.elements()):
        if left[at[1]] > 0:
            left[at[1]] -= 1
        else:
            rest[at] += 1
    return rest


def _at_most(found: Places, left: Counter[str]) -> Places:
    """No more of these slots than are left of each role; what is taken is not left."""
    taken: Places = Counter()
    for node, role in sorted(found.elements()):
        if left[role] > 0:
            left[role] -= 1
            taken[node, role] += 1
    return taken


def _present(gang: Gang) -> Iterable[Member]:
    """The members that count as bound, or could be bound now."""
    for member in gang.members:
        if gang.accepts(member) and (member.counts_as_bound or slots.is_ready(member)):
            yield member
