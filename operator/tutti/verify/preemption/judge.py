"""Judges claims one by one.

Each is judged as if the victims of earlier claims had gone and their claimants ran.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ...filters.node_rules import fits_node
from ...model.cluster import Gang, Member, Reservation, Snapshot
from ...model.decisions import Claim, Victim
from ...model.keys import GangKey, Uid
from ...model.queues import ROOT, Preemption, QueueMode
from .. import lookup, volume_checks
from ..queues import charges
from ..queues.chains import QueueChains
from . import covers
from .covers import Amounts, ItemGang

Modes = Mapping[str, Preemption]

MOST_VICTIMS = 1_000  # gangs that may end for one, by the CRD of Reservations


@dataclass(eq=False)
class ClaimJudge:
    """The gangs that run, and the room that is left, after the claims judged so far."""

    gangs: Mapping[GangKey, Gang]
    queues: QueueChains
    modes: Modes
    protected: Collection[GangKey]
    running: dict[GangKey, ItemGang]
    ledger: lookup.Ledger
    over: set[Uid]  # members that have ended, or leave
    claimed: set[GangKey]
    being_bound: Collection[GangKey]  # or being ended
    awaiting: Collection[GangKey]  # they run, and have slots for absent members
    taken_at: float
    seen: lookup.SnapshotLookup
    volumes: dict[str, str]  # that claims have been given, with their uids

    @classmethod
    def of(cls, snapshot: Snapshot, modes: Modes, protected: Collection[GangKey]) -> "ClaimJudge":
        """The state before the first claim; terminating pods count as gone."""
        seen, queues = lookup.SnapshotLookup(snapshot), QueueChains.of(snapshot)
        ledger = lookup.Ledger(seen.nodes)
        for reservation in snapshot.reservations:
            for node, asked in lookup.held_room(reservation, seen):
                ledger.take(node, asked)
        awaiting = {held.gang for held in snapshot.reservations if _has_slots_alone(held, seen)}
        bound = {held.gang for held in snapshot.reservations} - awaiting
        bound |= {v.gang for r in snapshot.reservations for v in r.victims or ()}
        judge = cls(
            seen.gangs,
            queues,
            modes,
            protected,
            {},
            ledger,
            set(),
            set(),
            bound,
            awaiting,
            snapshot.taken_at,
            seen,
            volume_checks.chosen_before(snapshot),
        )
        records, starts = snapshot.records, charges.Starts.of(snapshot)
        reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
        leaving = {m.uid: m for m in snapshot.pods if m.is_leaving(snapshot.taken_at)}
        judge._end(leaving.values())
        for gang in snapshot.gangs:
            staying = replace(gang, members=tuple(m for m in gang.members if m.uid not in leaving))
            record, standing = records.get(gang.uid), reservations.get(gang.uid)
            charge = charges.charge_of(starts, staying, seen, standing, None)
            if not charge:
                continue
            promised = {entry.uid for entry in standing.entries} if standing is not None else set()
            extras = _extras(staying, promised, starts)
            judge.running[gang.key] = ItemGang(
                gang.key,
                queues.charged(gang, standing, record) or ROOT,
                gang.priority,
                _started_at(gang) if record is None else record.started,
                charge - sum(extras.values(), Counter()),
                extras,
                len(members_with_room(staying)),
                gang.key in protected,
            )
        return judge

    def measure(self) -> tuple[Sequence[int], Sequence[int]]:
        """A measure that rises with every plan that ends gangs."""
        priorities = sorted({gang.priority for gang in self.gangs.values()}, reverse=True)
        return covers.measure(self.queues, [*self.running.values()], priorities)

    def judged(self, claim: Claim) -> Iterator[str]:
        """What is wrong with one claim; afterwards it counts as carried out."""
        gang = self.gangs.get(claim.gang)
        if gang is None or gang.uid != claim.uid or claim.gang in self.claimed:
            yield f"{claim.gang} claims room, and there is no such gang that waits"
            return
        counted = self._claimant(claim, gang)
        yield from (
            f"gang {claim.gang}: {sentence}"
            for sentence in (
                *self._placement(claim, gang),
                *volume_checks.faults(
                    claim.assignments, claim.volumes, gang, self.seen, self.volumes
                ),
                *self._record_faults(claim),
                *self._rights(claim, counted),
                *self._victims(claim, counted),
            )
        )
        for victim in claim.victims:
            members = self._members(victim)
            self._end(members)
            self._leave(victim.gang, members, is_whole=victim.is_whole)
        for sentence in (*self._room(claim, gang), *self._limits(counted)):
            yield f"gang {claim.gang}: {sentence}"
        self.claimed.add(claim.gang)
        self.running[claim.gang] = counted

    def _placement(self, claim: Claim, gang: Gang) -> Iterator[str]:
        """Whether the claim places enough waiting members, each once, where they may run."""
        waiting = {member.uid: member for member in gang.members if member.is_waiting}
        uids = [assignment.uid for assignment in claim.assignments]
        if len({*uids}) < len(uids) or not waiting.keys() >= {*uids}:
            yield "it places a member that does not wait, or one twice"
            return
        roles = Counter(waiting[uid].role for uid in uids)
        is_short = any(roles[role.name] < role.min_member for role in gang.roles)
        if is_short or len(uids) < max(gang.min_member, 1):
            yield "it places fewer members than the gang needs"
        for assignment in claim.assignments:
            node = self.ledger.nodes.get(assignment.node)
            if node is None or fits_node(waiting[assignment.uid].shape, node) is not None:
                yield f"{assignment.pod} may not run on {assignment.node}"

    def _record_faults(self, claim: Claim) -> Iterator[str]:
        is_protected = claim.gang in self.protected
        if claim.record is not None and claim.record.is_protected is not is_protected:
            yield "its record does not say whether it can be ended"

    def _rights(self, claim: Claim, counted: ItemGang) -> Iterator[str]:
        """Whether the gang has the right to claim."""
        before = covers.covered(self.queues, [*self.running.values()])
        after = covers.covered(self.queues, [*self.running.values(), counted])
        mode = self.modes.get(counted.queue, Preemption.OFF)
        queue = after.get((counted.key, ""))
        if mode is Preemption.OFF:
            yield "its queue lets it end nobody"
        elif not claim.by_guarantee and mode is not Preemption.FULL:
            yield "its queue lets it end nobody by priority"
        if counted.is_protected and self.queues.queues and queue != counted.queue:
            yield "it cannot be ended, and it would borrow"
        if claim.by_guarantee and queue is None:
            yield "it claims by a guarantee that does not cover it"
        for other in self.running.values() if claim.by_guarantee else ():
            item = other.key, ""
            is_above = other.queue == counted.queue and other.priority >= counted.priority
            if is_above and item in before and item not in after:
                yield f"gang {other.key} of its queue would lose its cover"

    def _victims(self, claim: Claim, counted: ItemGang) -> Iterator[str]:
        """Whether the gang may end its victims, and whether no victim is left as half a gang."""
        if len(claim.victims) > MOST_VICTIMS:
            yield f"{len(claim.victims)} gangs would end for it, {MOST_VICTIMS} may"
        after = covers.covered(self.queues, [*self.running.values(), counted])
        for victim in claim.victims:
            gang = self.running.get(victim.gang)
            is_part = victim.gang in self.awaiting and not victim.is_whole
            is_early = victim.gang in self.claimed or victim.gang in self.being_bound
            if gang is None or is_early or is_part:
                yield f"its victim {victim.gang} does not run, or not yet"
                continue
            queue = self.queues.queues.get(gang.queue)
            if queue is not None and self.taken_at < gang.started + queue.min_run_seconds:
                yield f"its victim {victim.gang} has not run for long enough"
            names = {member.key.name for member in self._members(victim)}
            yield from self._victim(claim, counted, gang, names, is_whole=victim.is_whole)
            ending = [(victim.gang, name) for name in names & gang.extras.keys()]
            ending += [(victim.gang, "")] if victim.is_whole else []
            if any(item in after for item in ending):
                yield f"its victim {victim.gang} would not borrow"

    def _victim(
        self,
        claim: Claim,
        counted: ItemGang,
        other: ItemGang,
        names: set[str],
        *,
        is_whole: bool,
    ) -> Iterator[str]:
        staying = {m.key.name for m in self._staying(other.key)}
        if not names:
            yield f"of its victim {other.key} no member that runs ends"
        elif is_whole and names != staying:
            yield f"its victim {other.key} would be half a gang"
        elif not is_whole and not names <= other.extras.keys():
            yield f"its victim {other.key} would lose members that it needs"
        if is_whole and other.is_protected:
            yield f"its victim {other.key} cannot be ended"
        is_own = other.queue == counted.queue
        if is_own and other.priority >= counted.priority and (is_whole or not claim.by_guarantee):
            yield f"its victim {other.key} is of its queue and has no lower priority"
        if not is_own and not claim.by_guarantee:
            yield f"its victim {other.key} is of another queue"

    def _room(self, claim: Claim, gang: Gang) -> Iterator[str]:
        """Whether the nodes have room for the claimant's members after the victims have gone."""
        shapes = {member.uid: member.shape for member in gang.members}
        for assignment in claim.assignments:
            asked = lookup.needs(shapes[assignment.uid]) if assignment.uid in shapes else {}
            if lacks := self.ledger.lacks(assignment.node, asked):
                yield f"{assignment.node} has too little {', '.join(lacks)} for {assignment.pod}"
            self.ledger.take(assignment.node, asked)

    def _limits(self, claimant: ItemGang) -> Iterator[str]:
        """Whether limits hold after the victims have gone."""
        for queue in self.queues.chain(claimant.queue):
            for resource, limit in queue.limits if queue.mode is QueueMode.ACTIVE else ():
                used = sum(
                    other.charge[resource]
                    for other in self.running.values()
                    if queue in self.queues.chain(other.queue)
                )
                wanted = claimant.minimum[resource]
                if wanted and used + wanted > limit:
                    yield f"queue {queue.name} would use more {resource} than its limit"

    def _claimant(self, claim: Claim, gang: Gang) -> ItemGang:
        members = {member.uid: member for member in gang.members}
        placed = [
            members[assignment.uid] for assignment in claim.assignments if assignment.uid in members
        ]
        minimum = Counter[str]()
        for member in placed:
            minimum.update(lookup.needs(member.shape))
        queue = self.queues.of_gang(gang) if self.queues.queues else ROOT
        is_protected = gang.key in self.protected
        return ItemGang(gang.key, queue, gang.priority, inf, minimum, {}, len(placed), is_protected)

    def _members(self, victim: Victim) -> Sequence[Member]:
        """The members of the victim that still run, as the Snapshot has them."""
        uids = {member.uid for member in victim.members}
        return [member for member in self._staying(victim.gang) if member.uid in uids]

    def _staying(self, key: GangKey) -> Sequence[Member]:
        gang = self.gangs.get(key)
        return (
            [m for m in members_with_room(gang) if m.uid not in self.over]
            if gang is not None
            else []
        )

    def _end(self, members: Collection[Member]) -> None:
        for member in members:
            self.over.add(member.uid)
            if member.node is not None:
                needs = lookup.needs(member.shape)
                self.ledger.take(member.node, {name: -n for name, n in needs.items()})

    def _leave(self, key: GangKey, members: Collection[Member], *, is_whole: bool) -> None:
        gang = self.running.get(key)
        if gang is None or is_whole:
            self.running.pop(key, None)
            return
        names = {member.key.name for member in members}
        extras = {pod: amounts for pod, amounts in gang.extras.items() if pod not in names}
        self.running[key] = replace(gang, extras=extras, members=gang.members - len(names))


def _has_slots_alone(held: Reservation, seen: lookup.SnapshotLookup) -> bool:
    """Whether a gang waits for absent members, and all others that its Reservation names run."""
    if held.evict or held.victims is not None:
        return False
    return bool(held.slots) and not [*lookup.held_room(replace(held, slots=()), seen)]


def members_with_room(gang: Gang, promised: Collection[Uid] = ()) -> Sequence[Member]:
    """The members that stay, and that have a node or are ``promised`` one by a Reservation."""
    return [
        member
        for member in gang.members
        if (member.node is not None or member.uid in promised)
        and not (member.is_over or member.terminating)
    ]


def _started_at(gang: Gang) -> float:
    """When a gang without a record started: its first binding, or else its creation."""
    moments = [m.bound_at for m in gang.members if m.node is not None and m.bound_at is not None]
    return min(moments, default=gang.created)


def _extras(gang: Gang, promised: Collection[Uid], starts: charges.Starts) -> Mapping[str, Amounts]:
    """By pod, the charge of each member with room that the gang does not need."""
    ordered = starts.ordered(members_with_room(gang, promised))
    members = {member.uid: member for member in ordered}
    record = starts.records.get(gang.uid)
    uids = charges.extras_of(gang, record, ordered, Counter())
    return {members[uid].key.name: Counter(lookup.needs(members[uid].shape)) for uid in uids}
