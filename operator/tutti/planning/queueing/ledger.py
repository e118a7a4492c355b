"""What each queue is charged: the gangs that run, and the gangs that the plan has started."""

from bisect import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

from ...gang import demand, order
from ...gang.demand import MemberCounts, PlacementRequest
from ...model.cluster import Gang, Member, Reservation
from ...model.decisions import Assignment
from ...model.keys import GangKey, NodeName, Uid
from ...model.queues import QueueRecord
from ...model.resources import NOTHING, Resources
from ...queues import charge, cover
from ...queues.charge import GangCharge
from ...queues.cover import QueuedGang
from ...queues.share import Borrower, Shares
from ...queues.tree import QueueTree
from ...queues.use import ChargedGangs
from ..queued_gangs import QueuedGangs

Assigned = Mapping[Uid, Assignment]
# Of a gang that waits: queue, priority, lines, whether it is protected, and as ``kind`` says.
Kind = tuple[str, int, Resources, bool, int, GangKey | None]


@dataclass(frozen=True, eq=False)
class QueueLedger:
    """The gangs that are charged, with the members that the plan places; no start is undone."""

    gangs: Mapping[GangKey, QueuedGang]
    charges: Mapping[GangKey, GangCharge]
    queued: QueuedGangs
    tree: QueueTree
    totals: Mapping[str, int]
    taken_at: float  # seconds since the epoch
    counts: Mapping[GangKey, MemberCounts]  # of the gangs to decide on
    reservations: Mapping[Uid, Reservation]
    records: Mapping[Uid, QueueRecord]
    begun: frozenset[GangKey]  # the gangs to decide on that run, or start by the plan
    waiting: dict[GangKey, QueuedGang]  # gangs that wait, as if started; filled on demand
    growing: dict[GangKey, bool]  # whether gangs that have not started may grow; filled on demand
    # The charge of a gang with these members on these nodes; filled on demand.
    starts: dict[tuple[GangKey, tuple[tuple[Uid, NodeName], ...]], GangCharge]

    @classmethod
    def of(
        cls, queued: QueuedGangs, charged: ChargedGangs, counts: Iterable[MemberCounts]
    ) -> "QueueLedger":
        """The ledger before the plan has started anything."""
        snapshot = queued.observed.snapshot
        by_gang = {members.gang.key: members for members in counts}
        return cls(
            {gang.key: gang for gang in charged.running},
            charged.charges,
            queued,
            charged.tree,
            charged.totals,
            charged.taken_at,
            by_gang,
            {reservation.uid: reservation for reservation in snapshot.reservations},
            snapshot.records,
            frozenset(key for key, members in by_gang.items() if members.is_committed),
            {},
            {},
            {},
        )

    @cached_property
    def running(self) -> tuple[QueuedGang, ...]:
        """The gangs that run, and the gangs that the plan has started."""
        return tuple(self.gangs.values())

    def without(self, key: GangKey) -> Sequence[QueuedGang]:
        """The gangs that run, without this one, which may be charged for pods that leave."""
        return [gang for gang in self.running if gang.key != key]

    @cached_property
    def shares(self) -> Shares:
        """What each queue is charged by itself."""
        gangs = ChargedGangs(self.tree, self.totals, self.running, self.charges, self.taken_at)
        return gangs.shares

    def with_assigned(self, keys: Iterable[GangKey], assigned: Assigned) -> "QueueLedger":
        """The ledger with the members of these gangs that ``assigned`` gives a node."""
        gangs, charges, begun = dict(self.gangs), dict(self.charges), set(self.begun)
        for key in dict.fromkeys(keys):
            numbered = demand.numbered(self.counts[key], assigned)
            placed = [member for member in numbered.waiting if member.uid in assigned]
            if placed:
                start = key, tuple((m.uid, assigned[m.uid].node) for m in placed)
                if start not in self.starts:
                    self.starts[start] = self._charge(numbered, placed, assigned)
                charges[key] = self.starts[start]
                gangs[key] = self._queued_gang(numbered, charges[key])
                begun.add(key)
        return replace(self, gangs=gangs, charges=charges, begun=frozenset(begun))

    def may_grow(self, counts: MemberCounts) -> bool:
        """Whether members beyond those needed could join a gang that has not started."""
        key = counts.gang.key
        if key not in self.growing:
            self.growing[key] = demand.may_grow(counts)
        return self.growing[key]

    def gang(self, key: GangKey) -> QueuedGang:
        """A gang as it runs; with a minimum of nothing if it is not charged."""
        gang = self.counts[key].gang if key not in self.gangs else None
        return self.gangs[key] if gang is None else self._new(gang, NOTHING)

    def started(self, want: PlacementRequest) -> QueuedGang:
        """A gang that waits, as if it started with its oldest members."""
        gang = want.gang
        if gang.key not in self.waiting:
            self.waiting[gang.key] = self._new(gang, self._minimum(want))
        return self.waiting[gang.key]

    def kind(self, start: QueuedGang) -> Kind:
        """What the walk sees of a gang that waits: gangs of one kind have the same fate.

        Gangs that the plan starts count as started at the same moment, so a name matters only by
        its place among those of its priority. A gang that is charged already is its own kind.
        """
        place = bisect(self._starting.get(start.priority, ()), start.key)
        lines = cover.on_lines(self.tree, start.minimum)
        charged = start.key if start.key in self.gangs else None
        return start.queue, start.priority, lines, start.is_protected, place, charged

    @cached_property
    def _starting(self) -> Mapping[int, Sequence[GangKey]]:
        """By priority: the gangs that the plan starts, sorted."""
        starting: dict[int, list[GangKey]] = {}
        for key in sorted(gang.key for gang in self.running if gang.started == inf):
            starting.setdefault(self.gangs[key].priority, []).append(key)
        return starting

    def least_start(self, want: PlacementRequest) -> QueuedGang:
        """A gang that waits, as if it started with the members that request least, by resource."""
        start = self.started(want)
        if len(want.alike) == 1:
            return start
        groups = [(charge.requests_of(group[0]), len(group)) for group in want.alike]
        names = {name for requests, _ in groups for name in requests.names}
        least = {
            name: _least(want.need, [(requests[name], count) for requests, count in groups])
            for name in names
        }
        return replace(start, minimum=Resources.of(least))

    def borrower(self, want: PlacementRequest) -> Borrower:
        """The gang in the order of turns, or its next member if it has begun.

        Such a member, beyond those needed, comes after the gangs of its queue and priority.
        """
        gang = want.gang
        queue = self.queued.queue_of(gang)
        if gang.key not in self.begun:
            since = order.waiting_since(gang, want.members)
            return Borrower(gang.key, queue, gang.priority, since, self.started(want).minimum)
        (member,) = want.members
        name = f"{gang.key.name}/{member.key.name}"
        requests = charge.requests_of(member)
        return Borrower(gang.key._replace(name=name), queue, gang.priority, inf, requests)

    def _minimum(self, want: PlacementRequest) -> Resources:
        """What the gang is charged if it starts with its oldest members."""
        gang = want.gang
        if len(want.alike) == 1 and len(want.members) == len(gang.members):
            return charge.requests_of(want.members[0]).scaled(want.need)
        return Resources.total(
            start.requests for start in charge.start_charge(gang, order.by_age(want.members))
        )

    def _charge(
        self, members: MemberCounts, placed: Sequence[Member], assigned: Assigned
    ) -> GangCharge:
        gang = members.gang
        pods, is_charged = self.queued.pods, gang.key in self.queued.charges
        record = pods.own_records.get(gang.uid) if is_charged else None
        reservation = self.reservations.get(gang.uid)
        others = pods.others.get(gang.key, ())
        is_first = reservation is None and record is None and not (others or gang.finished)
        all_wait = len(members.ready) == len(gang.members) and not members.absent
        if is_first and all_wait and len(placed) == demand.min_members(gang):
            minimum = charge.requests_together(placed)
            return GangCharge(minimum, held_minimum=minimum)
        new = {m.uid: replace(m, node=assigned[m.uid].node) for m in placed}
        elsewhere = new.keys() | pods.charged_elsewhere
        there = (member for member in gang.members if member.uid not in elsewhere)
        with_nodes = replace(gang, members=(*there, *new.values()))
        return charge.gang_charge(with_nodes, reservation, record, others, pods.joined)

    def _queued_gang(self, members: MemberCounts, own: GangCharge) -> QueuedGang:
        gang = members.gang
        known = self.gangs.get(gang.key)
        if known is not None and gang.key in self.begun:
            return replace(known, minimum=own.minimum, extras=own.extras)
        return self._new(gang, own.minimum, own.extras)

    def _new(
        self, gang: Gang, minimum: Resources, extras: tuple[tuple[str, Resources], ...] = ()
    ) -> QueuedGang:
        """A gang that starts, in its queue."""
        queue = self.queued.queue_of(gang)
        # If the gang is charged for pods of an earlier run, the record of that run counts.
        record = self.records.get(gang.uid) if gang.key in self.queued.charges else None
        is_protected = gang.is_protected if record is None else record.is_protected
        return QueuedGang(
            gang.key, queue, gang.priority, minimum, extras, is_protected=is_protected
        )


class Entitlement(NamedTuple):
    """Whether a gang is entitled, and the tier that would cover it now; lower ones come first.

    The tier is infinite if the gang would not be covered beside all gangs that run.
    """

    tier: float
    must_borrow: bool


@dataclass(frozen=True, slots=True, eq=False)
class Entitlements:
    """Which gangs are entitled before the plan; gangs that request the same share their walks."""

    ledger: QueueLedger
    known: dict[tuple[str, int, Resources, bool], Entitlement] = field(default_factory=dict)

    def of(self, want: PlacementRequest) -> Entitlement:
        """Whether the gang is entitled, and its tier.

        It is entitled if it would be covered without the gangs of its queue that have no higher
        priority.
        """
        start, tree = self.ledger.started(want), self.ledger.tree
        lines = cover.on_lines(tree, start.minimum)
        kind = start.queue, start.priority, lines, start.is_protected
        if kind not in self.known:
            others = [
                gang
                for gang in self.ledger.running
                if gang.queue != start.queue or gang.priority > start.priority
            ]
            must_borrow = not cover.would_be_covered(tree, others, [start])
            tier = inf if must_borrow else cover.covering_tier(tree, self.ledger.running, start)
            self.known[kind] = Entitlement(tier, must_borrow)
        return self.known[kind]

    def candidacy(self, want: PlacementRequest) -> tuple[str, Entitlement]:
        """The queue of the gang, and whether and how it is entitled.

        The first gang of each such pair is a candidate for the starved gang.
        """
        return self.ledger.queued.queue_of(want.gang), self.of(want)


def _least(need: int, groups: Iterable[tuple[int, int]]) -> int:
    """The least that so many members request; a group has an amount and a number of members."""
    total = 0
    for amount, count in sorted(groups):
        chosen = min(count, need)
        total, need = total + amount * chosen, need - chosen
    return total


def extra_of(want: PlacementRequest) -> tuple[str, Resources]:
    """A member beyond those needed, as the walk sees it: its pod, and what it requests."""
    (member,) = want.members
    return member.key.name, charge.requests_of(member)


def extras_at_start(members: MemberCounts, placed: Collection[Uid]) -> AbstractSet[Uid]:
    """The members that may join a gang in the plan that starts it, so that its minimum stays.

    The record of the start counts the oldest members as the minimum. So an older member that
    requests something else than a chosen one joins by a later plan.
    """
    gang, extras = members.gang, set[Uid]()
    by_role = gang.roles and demand.min_members(gang) == sum(r.min_member for r in gang.roles)
    younger: dict[str, set[Resources]] = {}  # what chosen members request
    for member in reversed(members.ready):
        chosen = younger.setdefault(member.role if by_role else "", set())
        if member.uid in placed:
            chosen.add(member.shape.requests)
        elif chosen <= {member.shape.requests}:
            extras.add(member.uid)
    return extras
