"""What standing Reservations still hold: pods and slots that have room and that no rule forbids.

Planning counts this for itself: ``verify`` judges Reservations with code of its own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...filters.node_index import Mask, NodeIndex
from ...gang import slots
from ...gang.slots import Places
from ...model import ports
from ...model.cluster import PodReservation, Reservation, Snapshot
from ...model.keys import NodeName, Uid
from ...model.resources import Resources
from ...model.shapes import Shape
from . import grids
from .end_state import MemberOnNode, RuleCheck


@dataclass(frozen=True, slots=True)
class LostParts:
    """What of one Reservation can no longer be carried out."""

    entries: frozenset[PodReservation] = frozenset()
    slots: Places = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether anything is lost."""
        return bool(self.entries or self.slots)

    def __add__(self, other: "LostParts") -> "LostParts":
        return LostParts(self.entries | other.entries, self.slots + other.slots)


def lost_parts(snapshot: Snapshot) -> Mapping[Uid, LostParts]:
    """What can no longer be carried out, by the uid of the gang."""
    lost, _ = _Judgement(snapshot).result()
    return {uid: parts for uid, parts in lost.items() if parts}


def standing_members(snapshot: Snapshot) -> Sequence[MemberOnNode]:
    """The members that will be bound as they are promised, absent ones last, and their nodes."""
    judgement = _Judgement(snapshot)
    _, standing = judgement.result()
    return judgement.promised(standing)


def members_with_lasting_rules(snapshot: Snapshot) -> Sequence[MemberOnNode]:
    """The standing members whose affinity or spread has to hold in the end, too."""
    if not snapshot.reservations:
        return ()
    return [pair for pair in standing_members(snapshot) if has_lasting_rules(pair[0].shape)]


def has_lasting_rules(shape: Shape) -> bool:
    """Whether pods that come later may break a rule of the shape."""
    return bool(shape.rules.affinity or shape.rules.spread)


def promised_members(
    snapshot: Snapshot, reservations: Sequence[Reservation]
) -> Sequence[MemberOnNode]:
    """The members that these Reservations hold a node for, whether they can be bound or not."""
    return _Judgement(snapshot).promised(reservations)


class _Judgement:
    """The standing Reservations of one Snapshot, the oldest first.

    Where a node cannot keep all promises, the oldest Reservations keep theirs. Where rules between
    pods forbid them together, those of gangs with a bound member come first. What depends on a
    promise that is lost is lost, too.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._gangs = {gang.key: gang for gang in snapshot.gangs}
        self._members = {member.uid: member for member in snapshot.strays}
        for gang in snapshot.gangs:
            self._members.update((member.uid, member) for member in gang.members)
        self._ordered = sorted(
            snapshot.reservations, key=lambda held: (held.reserved_at, held.gang)
        )
        self._started = {held.uid for held in self._ordered if self._is_started(held)}
        self._index = NodeIndex(snapshot.nodes)
        self._allowed: dict[Shape, Mask] = {}
        self._snapshot = snapshot

    def result(self) -> tuple[Mapping[Uid, LostParts], Sequence[Reservation]]:
        """What is lost, by the uid of the gang, and the Reservations that go on, without it."""
        lost, standing = self._judge({})
        rules = RuleCheck(self._snapshot, [member for member, _ in self.promised(self._ordered)])
        if not rules.is_needed:
            return lost, standing
        forbidden: dict[Uid, LostParts] = {}
        for _ in range(sum(len(held.entries) + len(held.slots) for held in self._ordered)):
            wrong = self._forbidden(rules, standing)
            if not wrong:
                break
            # Once the last are gone, the first may break no rule any more. Half of them go at once,
            # so that a few passes do.
            for uid, parts in wrong[len(wrong) // 2 :]:
                forbidden[uid] = forbidden.get(uid, LostParts()) + parts
            lost, standing = self._judge(forbidden)
        return lost, standing

    def promised(self, reservations: Sequence[Reservation]) -> Sequence[MemberOnNode]:
        """The members that these hold a node for, those that exist first."""
        named = [place for held in reservations for _, place in self._unbound_entries(held)]
        return [*named, *(place for held in reservations for place in self._absent(held))]

    def _unbound_entries(self, held: Reservation) -> Iterator[tuple[PodReservation, MemberOnNode]]:
        """The entries whose pods are not bound yet."""
        for entry in held.entries:
            member = self._members.get(entry.uid)
            if member is not None and member.may_get_a_node:
                yield entry, (member, entry.node)

    def _absent(self, held: Reservation) -> Sequence[MemberOnNode]:
        """The absent members that the Reservation holds room for."""
        gang = self._gangs.get(held.gang) if held.slots else None
        return (
            ()
            if gang is None or gang.uid != held.uid
            else slots.placeholders_of_slots(gang, held.slots)
        )

    def _judge(
        self, forbidden: Mapping[Uid, LostParts]
    ) -> tuple[Mapping[Uid, LostParts], Sequence[Reservation]]:
        """What has no room or is forbidden, and the Reservations that go on, without it."""
        room = _Room(self._snapshot)
        lost = {
            held.uid: self._lost(held, room, forbidden.get(held.uid, LostParts()))
            for held in self._ordered
        }
        standing = [
            _without(held, lost[held.uid])
            for held in sorted(self._ordered, key=lambda held: held.uid not in self._started)
            if held.uid in self._started or not (lost[held.uid] or self._is_orphaned(held))
        ]
        return lost, standing

    def _lost(self, held: Reservation, room: "_Room", forbidden: LostParts) -> LostParts:
        """What of one Reservation is lost; the room of the rest is taken."""
        entries = frozenset(
            entry
            for entry in held.entries
            if not self._is_kept(entry, held, room, is_forbidden=entry in forbidden.entries)
        )
        gang, lost = self._gangs.get(held.gang), Counter[tuple[NodeName, str]]()
        for slot in held.slots:
            place, amounts = (slot.node, slot.role), grids.slot_footprint(gang, slot.role)
            members = () if gang is None else slots.placeholders(gang, slot.role, 1)
            is_suitable = slot.node in self._index.rows and all(
                self._suits(member.shape, slot.node) for member in members
            )
            for number in range(slot.count):
                is_allowed = is_suitable and number >= forbidden.slots[place]
                if not (is_allowed and room.take(slot.node, amounts)):
                    lost[place] += 1
        return LostParts(entries, lost)

    def _is_kept(
        self, entry: PodReservation, held: Reservation, room: "_Room", *, is_forbidden: bool
    ) -> bool:
        """Whether the entry is carried out, or can be; then its room is taken."""
        member = self._members.get(entry.uid)
        if member is None:
            return False
        if member.node == entry.node:
            return True
        is_bindable = member.is_waiting and not member.volume_problems and member.gang == held.gang
        if is_forbidden or not is_bindable or not self._suits(member.shape, entry.node):
            return False
        return room.take(entry.node, grids.footprint(member.shape))

    def _suits(self, shape: Shape, node: NodeName) -> bool:
        """Whether the node exists and will do by the shape's own rules, room aside."""
        rows = self._index.rows
        if shape not in self._allowed:
            self._allowed[shape] = self._index.allowed(shape)
        return node in rows and bool(self._allowed[shape][rows[node]])

    def _forbidden(
        self, rules: RuleCheck, standing: Sequence[Reservation]
    ) -> Sequence[tuple[Uid, LostParts]]:
        """What rules between pods forbid once all these are carried out, by Reservation."""
        named = [tuple(self._unbound_entries(held)) for held in standing]
        absent = [self._absent(held) for held in standing]
        promised = [place for own in named for _, place in own]
        state = rules.state([*promised, *(place for own in absent for place in own)])
        wrong: list[tuple[Uid, LostParts]] = []
        for held, own, others in zip(standing, named, absent, strict=True):
            entries = frozenset(entry for entry, at in own if not rules.allows(state, *at))
            places = Counter((at[1], at[0].role) for at in others if not rules.allows(state, *at))
            if parts := LostParts(entries, places):
                wrong.append((held.uid, parts))
        return wrong

    def _is_started(self, held: Reservation) -> bool:
        """Whether a pod of the gang, or of the Reservation, is bound."""
        gang = self._gangs.get(held.gang)
        reserved = (self._members.get(entry.uid) for entry in held.entries)
        members = (*(gang.members if gang is not None else ()), *reserved)
        return any(member is not None and member.counts_as_bound for member in members)

    def _is_orphaned(self, held: Reservation) -> bool:
        gang = self._gangs.get(held.gang)
        return gang is None or gang.uid != held.uid or gang.terminating


class _Room:
    """What is left of each node while promises are counted one by one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._left: dict[NodeName, dict[str, int]] = {}  # of nodes that were asked about

    def take(self, node: NodeName, amounts: Resources) -> bool:
        """Take the amounts off the node, if it has them."""
        left = self._left.get(node)
        if left is None:
            known = self._nodes[node]
            left = self._left[node] = dict(known.allocatable.amounts)
            _subtract(left, known.used)
        if any(n > max(left.get(name, ports.offered(name)), 0) for name, n in amounts.amounts):
            return False
        _subtract(left, amounts)
        return True


def _subtract(left: dict[str, int], amounts: Resources) -> None:
    """Take the amounts away; of a host port that nothing has asked for yet, all is left."""
    for name, n in amounts.amounts:
        left[name] = left.get(name, ports.offered(name)) - n


def _without(held: Reservation, lost: LostParts) -> Reservation:
    entries = tuple(entry for entry in held.entries if entry not in lost.entries)
    places = slots.places(held.slots) - lost.slots
    return replace(held, entries=entries, slots=slots.slots_of(places))
