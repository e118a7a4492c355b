"""Members that arrive take the slots that are held for absent members.

A member takes a slot of its role if it requests no more than the role's template, and its own rules
allow the node. Members and slots are matched: as many members as possible get a slot, the oldest
first. A member that requests more, or that may not run on the node of a slot, is placed like the
replacement of a lost member, and its slot is given back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ...filters.node_index import NodeIndex
from ...gang import slots
from ...gang.order import by_age
from ...gang.quantities import count, format_resources
from ...gang.slots import Places
from ...model.cluster import Gang, Member, PodReservation, Reservation, SlotReservation, Snapshot
from ...model.decisions import Assignment, Placement
from ...model.keys import Uid
from ...queues import charge
from . import bipartite_matching, standing_reservations
from .end_state import RuleCheck
from .standing_reservations import LostParts


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """A standing Reservation with open slots, before and after members take them."""

    before: Reservation
    after: Reservation
    lost_slots: Places  # remaining slots that cannot stay on their node
    larger: tuple[Member, ...] = ()  # members that request more than their role declares
    is_over: bool = False  # the time for absent members has ended

    @property
    def remaining_slots(self) -> Places:
        """The slots that still have room held for them."""
        return slots.places(self.after.slots) - self.lost_slots

    @property
    def without_lost_slots(self) -> Reservation:
        """The Reservation afterwards, if members or other slots take the places of lost slots."""
        return replace(self.after, slots=slots.slots_of(self.remaining_slots))

    def placement(
        self, gang: Gang, assignments: Sequence[Assignment], new: Sequence[SlotReservation]
    ) -> Placement | None:
        """The Reservation with these assignments and new slots; None if it stays as it is.

        Lost slots without other room are kept: their node may fit again.
        """
        members = {member.uid: member for member in gang.members}
        arrived = ((entry, members[entry.uid]) for entry in self.new_entries)
        new_assignments = tuple(
            Assignment(
                *(member.key, member.uid, member.version, entry.node),
                role=member.role,
                fills_slot=True,
            )
            for entry, member in arrived
        )
        new_places = slots.places(new)
        replaced = Counter[str]()
        for (_, role), n in new_places.items():
            replaced[role] += n
        held = self.remaining_slots + new_places
        lost = self._with_place(gang, assignments, held, _beyond(self.lost_slots, replaced))
        all_slots = slots.slots_of(held + lost)
        if not (assignments or new_assignments) and all_slots == self.before.slots:
            return None
        remark = self._remark(gang)
        return Placement(
            gang.key, gang.uid, gang.generation, (*new_assignments, *assignments), all_slots, remark
        )

    def _with_place(
        self, gang: Gang, assignments: Sequence[Assignment], held: Places, lost: Places
    ) -> Places:
        """The lost slots for which the record of the start has a place beside these members.

        Each slot beside its places would be charged beside what these members replace.
        """
        record = self.before.record
        if record is None or not (assignments and lost):
            return lost
        places = charge.Places.of(gang, record)
        promised = {entry.uid for entry in self.after.entries}
        there = [m for m in gang.members if m.counts_as_bound or m.uid in promised]
        roles = (
            *(m.role for m in there if not m.is_over),
            *(a.role for a in assignments),
            *(role for _, role in held.elements()),
        )
        left = Counter(places.count)
        left.subtract(places.by_role(roles))
        kept: Places = Counter()
        for node, role in sorted(lost.elements()):
            key = role if places.has_roles else ""
            kept[node, role] += left[key] > 0
            left[key] -= 1
        return +kept

    @property
    def new_entries(self) -> Sequence[PodReservation]:
        """The members that arrived, each with the node of its slot."""
        return self.after.entries[len(self.before.entries) :]

    def _remark(self, gang: Gang) -> str:
        """A sentence about members that request more than their role declares."""
        if not self.larger:
            return ""
        first = self.larger[0]
        declared = slots.declared(gang, first.role)
        requests = format_resources(first.shape.requests)
        declaration = format_resources(declared.requests) if declared is not None else "nothing"
        n_others = len(self.larger) - 1
        rest = f", and {count(n_others, 'more member')} likewise" if n_others else ""
        return (
            f"{first.key.name} asks for {requests}, and the template of role {first.role} declares "
            f"{declaration}: it is placed again{rest}"
        )


@dataclass(frozen=True, slots=True)
class SlotAssignments:
    """A Snapshot in which arrived members have their slots, and the changes by gang."""

    snapshot: Snapshot
    open: Mapping[Uid, OpenReservation]
    # Gangs that lost their Reservation before its time.
    without_reservation: frozenset[Uid] = frozenset()

    def awaits(self, gang: Gang) -> bool:
        """Whether absent members may get room that is not held for them yet."""
        open_reservation = self.open.get(gang.uid)
        return open_reservation is None or not open_reservation.is_over

    def only_of(self, gangs: AbstractSet[Uid]) -> "SlotAssignments":
        """The changes of these gangs; the Reservations of all others stay as they are."""
        if self.open.keys() <= gangs:
            return self
        unchanged = {uid: change.before for uid, change in self.open.items() if uid not in gangs}
        reservations = tuple(unchanged.get(held.uid, held) for held in self.snapshot.reservations)
        return replace(
            self,
            snapshot=replace(self.snapshot, reservations=reservations),
            open={uid: change for uid, change in self.open.items() if uid in gangs},
        )

    def room(self, gang: Gang) -> Collection[Member] | None:
        """Placeholders of a gang's absent members that have room; None if it awaits no members."""
        open_reservation = self.open.get(gang.uid)
        if open_reservation is None:
            return () if gang.uid in self.without_reservation else None
        return [
            member
            for member, _ in slots.placeholders_of_slots(
                gang, slots.slots_of(open_reservation.remaining_slots)
            )
        ]


def assign_slots(snapshot: Snapshot) -> SlotAssignments:
    """Give open slots to members that arrived, the oldest first."""
    if not (
        snapshot.lost_reservations
        or any(reservation.slots for reservation in snapshot.reservations)
    ):
        return SlotAssignments(snapshot, {})
    gangs, now = {gang.uid: gang for gang in snapshot.gangs}, snapshot.taken_at
    standing = [
        (reservation, gangs[reservation.uid])
        for reservation in snapshot.reservations
        if slots.are_open(reservation, gangs.get(reservation.uid), now)
        and _has_begun(reservation, gangs[reservation.uid])
    ]
    without_reservation = frozenset(
        uid for uid in snapshot.lost_reservations if uid in gangs and slots.may_come(gangs[uid])
    )
    if not standing:
        return SlotAssignments(snapshot, {}, without_reservation)
    nodes = NodeIndex(snapshot.nodes)
    reserved_uids = {
        entry.uid for reservation in snapshot.reservations for entry in reservation.entries
    }
    lost_by_gang = standing_reservations.lost_parts(snapshot)
    open_by_gang = {
        reservation.uid: _with_slots_assigned(
            reservation,
            gang,
            nodes,
            reserved_uids,
            lost_by_gang.get(reservation.uid, LostParts()).slots,
        )
        for reservation, gang in standing
    }
    open_by_gang = {
        uid: _without_surplus_slots(open_reservation, gangs[uid], now)
        for uid, open_reservation in open_by_gang.items()
    }
    allowed = _without_rule_breakers(snapshot, open_by_gang, gangs)
    reservations = tuple(
        allowed[reservation.uid].after if reservation.uid in allowed else reservation
        for reservation in snapshot.reservations
    )
    return SlotAssignments(
        replace(snapshot, reservations=reservations), allowed, without_reservation
    )


def _has_begun(reservation: Reservation, gang: Gang) -> bool:
    """Whether a member is bound; before that, the Reservation is carried out or released whole."""
    return not reservation.evict and any(
        member.counts_as_bound and gang.accepts(member) for member in gang.members
    )


def _with_slots_assigned(
    reservation: Reservation,
    gang: Gang,
    nodes: NodeIndex,
    reserved_uids: Collection[Uid],
    lost_slots: Places,
) -> OpenReservation:
    """Add an entry for each member that arrived, on the node of its slot."""
    free = slots.places(reservation.slots) - lost_slots
    arrived: list[Member] = []
    larger: list[Member] = []
    room = _left_to_maximum(gang, reserved_uids)
    for member in by_age(gang.members):
        if slots.declared(gang, member.role) is None or member.uid in reserved_uids:
            continue
        if not slots.is_ready(member) or room.get(member.role, 1) < 1:
            continue
        if not slots.may_take(gang, member):
            larger.append(member)
        elif charge.covers_slot(reservation.record, member):
            arrived.append(member)
            if member.role in room:
                room[member.role] -= 1
    candidates = [(member.role, member.shape) for member in arrived]
    places = sorted(free)
    allowed = {shape: nodes.allowed(shape) for shape in {shape for _, shape in candidates}}
    fits = {
        (role, shape): [at for at in places if at[1] == role and allowed[shape][nodes.rows[at[0]]]]
        for role, shape in dict.fromkeys(candidates)
    }
    places_by_index = bipartite_matching.matched(candidates, fits, free)
    entries = [
        PodReservation(arrived[i].key, arrived[i].uid, node)
        for i, (node, _) in sorted(places_by_index.items())
    ]
    remaining_slots = slots.slots_of(free - Counter(places_by_index.values()) + lost_slots)
    after = replace(reservation, entries=(*reservation.entries, *entries), slots=remaining_slots)
    return OpenReservation(reservation, after, lost_slots, tuple(larger))


def _left_to_maximum(gang: Gang, reserved_uids: Collection[Uid]) -> dict[str, int]:
    """How many more members may join each role that has a maximum."""
    maximums = {role.name: role.max_member for role in gang.roles if role.max_member is not None}
    if not maximums:
        return {}
    there = Counter(
        member.role
        for member in gang.members
        if member.counts_as_bound or (member.uid in reserved_uids and not member.is_over)
    )
    return {role: most - there[role] for role, most in maximums.items()}


def _without_rule_breakers(
    snapshot: Snapshot, open_by_gang: Mapping[Uid, OpenReservation], gangs: Mapping[Uid, Gang]
) -> Mapping[Uid, OpenReservation]:
    """The open Reservations without the new members whose slots break a rule between pods."""
    new = [
        (uid, entry)
        for uid, open_reservation in open_by_gang.items()
        for entry in open_reservation.new_entries
    ]
    if not new:
        return open_by_gang
    members = {m.uid: m for gang in snapshot.gangs for m in gang.members}
    now = snapshot.taken_at
    while True:
        reservations = tuple(
            open_by_gang[reservation.uid].after if reservation.uid in open_by_gang else reservation
            for reservation in snapshot.reservations
        )
        promised = standing_reservations.promised_members(snapshot, reservations)
        rules = RuleCheck(snapshot, [member for member, _ in promised])
        state = rules.state(promised)
        rule_breakers = {
            entry.uid for _, entry in new if not rules.allows(state, members[entry.uid], entry.node)
        }
        if not rule_breakers:
            return open_by_gang
        new = [(uid, entry) for uid, entry in new if entry.uid not in rule_breakers]
        open_by_gang = {
            uid: _without_surplus_slots(
                _without(open_reservation, rule_breakers, members), gangs[uid], now
            )
            for uid, open_reservation in open_by_gang.items()
        }


def _without(
    reservation: OpenReservation, uids: Collection[Uid], members: Mapping[Uid, Member]
) -> OpenReservation:
    """The Reservation with the slots of these members open again."""
    returned = [entry for entry in reservation.new_entries if entry.uid in uids]
    if not returned:
        return reservation
    free = slots.places(reservation.after.slots)
    free.update((entry.node, members[entry.uid].role) for entry in returned)
    entries = tuple(entry for entry in reservation.after.entries if entry not in returned)
    return replace(
        reservation, after=replace(reservation.after, entries=entries, slots=slots.slots_of(free))
    )


def _without_surplus_slots(reservation: OpenReservation, gang: Gang, now: float) -> OpenReservation:
    """The Reservation with no more slots than the gang lacks members.

    Once the time for absent members has ended, it keeps no slot if a member that could take a slot
    fits none of them.
    """
    is_over = now >= slots.expiry(reservation.before, gang)
    is_in_vain = is_over and slots.are_open(reservation.after, gang, now)
    present = Counter(gang.finished)
    present.update(m.role for m in _present(gang))
    lacking = Counter({} if is_in_vain else slots.absent(gang, present))
    kept_slots, lost_slots = (
        _at_most(reservation.remaining_slots, lacking),
        _at_most(reservation.lost_slots, lacking),
    )
    after = replace(reservation.after, slots=slots.slots_of(kept_slots + lost_slots))
    return replace(reservation, after=after, lost_slots=lost_slots, is_over=is_over)


def _beyond(places: Places, counts: Counter[str]) -> Places:
    """These slots without the first ``counts`` slots of each role."""
    remaining = counts.copy()
    rest: Places = Counter()
    for at in sorted(places.elements()):
        if remaining[at[1]] > 0:
            remaining[at[1]] -= 1
        else:
            rest[at] += 1
    return rest


def _at_most(places: Places, limits: Counter[str]) -> Places:
    """At most ``limits`` of these slots for each role; lowers ``limits`` by the number chosen."""
    chosen: Places = Counter()
    for node, role in sorted(places.elements()):
        if limits[role] > 0:
            limits[role] -= 1
            chosen[node, role] += 1
    return chosen


def _present(gang: Gang) -> Iterable[Member]:
    """The members that count as bound, or could be bound now."""
    for member in gang.members:
        if gang.accepts(member) and (member.counts_as_bound or slots.is_ready(member)):
            yield member
