"""Claims checked against ``docs/preemption.md``, by code that shares nothing with the planner.

Claims are judged one by one. Each is judged as if the victims of earlier claims had gone and their
claimants ran.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import inf

from ..filters.node_rules import fits_node
from ..filters.selectors import is_budgeted
from ..model.cluster import DisruptionBudget, Gang, Member, PodReservation, Reservation, Snapshot
from ..model.decisions import Claim, Placement, Plan, Victim
from ..model.keys import GangKey, Uid
from ..model.queues import ROOT, Preemption, Queue, QueueMode
from . import lookup, queue_checks, room_ledger
from .queue_checks import QueueChains

Amounts = Counter[str]
Item = tuple[GangKey, str]  # a gang, and the name of an extra; empty for its minimum
Modes = Mapping[str, Preemption]


@dataclass(frozen=True, slots=True)
class ItemGang:
    """A gang that runs, or claims: the charge of its minimum and of each extra."""

    key: GangKey
    queue: str
    priority: int
    started: float  # seconds since the epoch
    minimum: Amounts
    extras: Mapping[str, Amounts]  # by pod, the oldest first
    members: int
    is_protected: bool

    @property
    def charge(self) -> Amounts:
        """The charge of the minimum and all extras."""
        return sum(self.extras.values(), self.minimum)


def faults(snapshot: Snapshot, plan: Plan, setting: Preemption) -> tuple[str, ...]:
    """What is wrong with the claims of a plan, once its placements are carried out.

    The ``setting`` holds for queues without a declaration of their own. If it is off, no gang may
    claim.
    """
    if not plan.claims:
        return ()
    modes = {queue.name: _mode(queue, setting) for queue in snapshot.queues} | {ROOT: setting}
    if setting is Preemption.OFF:
        modes = {}
    refused = {gang.uid for gang in snapshot.gangs if gang.uid in snapshot.protected}
    spared = [
        f"gang {claim.gang}: its victim {victim.gang} could not be evicted a while ago"
        for claim in plan.claims
        for victim in claim.victims
        if victim.uid in refused
    ]
    placed, after = {p.gang for p in plan.placements}, _once_placed(snapshot, plan.placements)
    protected = _protected(after)
    found = violations(after, plan.claims, modes, protected)
    if found and placed:
        # Borrowers start after the claims by guarantee, but a walk may take them earlier.
        found = violations(after, plan.claims, modes, protected, later=placed)
    return (*spared, *_beyond_budgets(snapshot, plan.claims), *found)


def _beyond_budgets(snapshot: Snapshot, claims: Sequence[Claim]) -> Iterator[str]:
    """A sentence for each victim with pods that the eviction API would refuse to evict."""
    standing = {pod for r in snapshot.reservations for v in r.victims or () for pod in v.pods}
    holders = [pod for gang in snapshot.gangs if standing for pod in _holders(gang)]
    going = _by_budget(snapshot, [pod for pod in holders if pod.uid in standing])
    for victim in (victim for claim in claims for victim in claim.victims):
        if any(len(_budgets_of(snapshot, pod)) > 1 for pod in victim.members):
            yield f"victim {victim.gang} has pods of two budgets, which are never evicted"
        for budget, uids in _by_budget(snapshot, victim.members).items():
            going[budget] |= uids
            if len(going[budget]) > budget.allowed:
                why = f"{len(going[budget])} pods of {budget} would go, {budget.allowed} may"
                yield f"victim {victim.gang} would be left as half a gang: {why}"


def _by_budget(
    snapshot: Snapshot, pods: Sequence[Member]
) -> defaultdict[DisruptionBudget, set[Uid]]:
    uids = defaultdict[DisruptionBudget, set[Uid]](set)
    for pod in pods:
        for budget in _budgets_of(snapshot, pod):
            uids[budget].add(pod.uid)
    return uids


def _budgets_of(snapshot: Snapshot, pod: Member) -> Sequence[DisruptionBudget]:
    space = pod.key.namespace
    return [b for b in snapshot.budgets if is_budgeted(b, space, pod.labels)]


def _mode(queue: Queue, setting: Preemption) -> Preemption:
    if queue.mode is QueueMode.SHADOW:
        return Preemption.OFF
    return setting if queue.preemption is None else queue.preemption


def borrowers(snapshot: Snapshot, placements: Sequence[Placement]) -> Mapping[GangKey, str]:
    """A sentence for each gang that starts, cannot be ended, and is not covered by its own queue.

    The Snapshot comes from ``with_charged_pods``.
    """
    if not snapshot.queues:
        return {}
    starts = {placement.gang: placement for placement in placements}
    gangs = {gang.key: gang for gang in snapshot.gangs if gang.key in starts}
    new = {key for key, gang in gangs.items() if not any(map(_runs, gang.members))}
    after = _once_placed(snapshot, [starts[key] for key in new])
    protected = _protected(after)
    sentences = {
        key: f"gang {key}: its record does not say whether it can be ended"
        for key in sorted(new)
        if (record := starts[key].record) is not None
        and record.is_protected is not gangs[key].is_protected
    }
    if not new & protected:
        return sentences
    judge = _Judge.of(after, {}, protected)
    running = [
        replace(gang, started=inf) if key in new else gang for key, gang in judge.running.items()
    ]
    covers = _covered(judge.queues, running)
    for gang in running:
        if gang.key in new & protected and covers.get((gang.key, "")) != gang.queue:
            sentences[gang.key] = f"gang {gang.key}: it cannot be ended, and it would borrow"
    return sentences


def _runs(member: Member) -> bool:
    return member.counts_as_bound and not member.is_over


def _protected(snapshot: Snapshot) -> AbstractSet[GangKey]:
    """The gangs that cannot be ended: by their PodGroup, or by the record of their start.

    While there are Queues, a gang that holds room is as it was when it started.
    """
    records = snapshot.records if snapshot.queues else {}
    has_room = {r.uid for r in snapshot.reservations if r.entries or r.slots}
    return {
        gang.key
        for gang in snapshot.gangs
        if (
            (record := records.get(gang.uid)) is not None and record.is_protected
            if snapshot.queues and (gang.uid in has_room or _present(gang))
            else gang.is_protected
        )
    }


def _present(gang: Gang) -> bool:
    return any(member.node is not None and not member.is_over for member in gang.members)


def _once_placed(snapshot: Snapshot, placements: Sequence[Placement]) -> Snapshot:
    """The Snapshot in which the placements have Reservations."""
    placed = {placement.uid: placement for placement in placements}
    standing = {reservation.uid: reservation for reservation in snapshot.reservations}
    for uid, placement in placed.items():
        before = standing.get(uid)
        new = [PodReservation(one.pod, one.uid, one.node) for one in placement.assignments]
        standing[uid] = Reservation(
            placement.gang,
            uid,
            placement.generation,
            "",
            "",
            snapshot.taken_at,
            (*(before.entries if before is not None else ()), *new),
            placement.slots,
            record=placement.record if before is None else before.record,
        )
    return replace(snapshot, reservations=tuple(standing.values()))


def violations(
    snapshot: Snapshot,
    claims: Sequence[Claim],
    modes: Modes,
    protected: Collection[GangKey],
    *,
    later: Collection[GangKey] = (),
) -> tuple[str, ...]:
    """A sentence for each claim that is not allowed or has no room.

    ``modes`` are by queue; a queue that is missing is off. Gangs that start ``later`` are counted
    after the claims by guarantee, but their room is taken before.
    """
    judge = _Judge.of(snapshot, modes, protected)
    before = judge.measure()
    borrowers = {key: judge.running.pop(key) for key in later if key in judge.running}
    sentences = [s for claim in claims if claim.by_guarantee for s in judge.judged(claim)]
    judge.running |= borrowers
    sentences += [s for claim in claims if not claim.by_guarantee for s in judge.judged(claim)]
    if any(claim.victims for claim in claims) and judge.measure() <= before:
        sentences.append("gangs end, and the plan comes no closer to rest")
    return tuple(sentences)


@dataclass(eq=False)
class _Judge:
    """The gangs that run, and the room that is left, after the claims judged so far."""

    gangs: Mapping[GangKey, Gang]
    queues: QueueChains
    modes: Modes
    protected: Collection[GangKey]
    running: dict[GangKey, ItemGang]
    ledger: room_ledger.Ledger
    over: set[Uid]  # members that have ended, or leave
    claimed: set[GangKey]
    being_bound: Collection[GangKey]  # or being ended
    taken_at: float

    @classmethod
    def of(cls, snapshot: Snapshot, modes: Modes, protected: Collection[GangKey]) -> "_Judge":
        """The state before the first claim; terminating pods count as gone."""
        seen, queues = lookup.SnapshotLookup(snapshot), QueueChains.of(snapshot)
        ledger = room_ledger.Ledger(seen.nodes)
        for reservation in snapshot.reservations:
            for node, asked in lookup.held_room(reservation, seen):
                ledger.take(node, asked)
        bound = {reservation.gang for reservation in snapshot.reservations}
        bound |= {v.gang for r in snapshot.reservations for v in r.victims or ()}
        judge = cls(
            seen.gangs, queues, modes, protected, {}, ledger, set(), set(), bound, snapshot.taken_at
        )
        records = snapshot.records
        reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
        for gang in snapshot.gangs:
            now = snapshot.taken_at
            leaving = [
                m for m in gang.members if m.terminating and not (m.is_over or m.is_stuck(now))
            ]
            judge._end(leaving)
            staying = replace(gang, members=tuple(m for m in gang.members if m not in leaving))
            record, standing = records.get(gang.uid), reservations.get(gang.uid)
            charge = queue_checks.charge_of(records, staying, seen, standing, None)
            if not charge:
                continue
            extras = _extras(staying)
            judge.running[gang.key] = ItemGang(
                gang.key,
                queues.charged(gang, standing, record) or ROOT,
                gang.priority,
                _started_at(gang) if record is None else record.started,
                charge - sum(extras.values(), Counter()),
                extras,
                len(_holders(staying)),
                gang.key in protected,
            )
        return judge

    def measure(self) -> tuple[Sequence[int], Sequence[int]]:
        """A measure that rises with every plan that ends gangs."""
        priorities = sorted({gang.priority for gang in self.gangs.values()}, reverse=True)
        return _measure(self.queues, [*self.running.values()], priorities)

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
                *_record_faults(claim, gang),
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

    def _rights(self, claim: Claim, counted: ItemGang) -> Iterator[str]:
        """Whether the gang has the right to claim."""
        before = _covered(self.queues, [*self.running.values()])
        after = _covered(self.queues, [*self.running.values(), counted])
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
        after = _covered(self.queues, [*self.running.values(), counted])
        for victim in claim.victims:
            gang = self.running.get(victim.gang)
            if gang is None or victim.gang in self.claimed or victim.gang in self.being_bound:
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
        placed = [members[one.uid] for one in claim.assignments if one.uid in members]
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
        return [m for m in _holders(gang) if m.uid not in self.over] if gang is not None else []

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


def _record_faults(claim: Claim, gang: Gang) -> Iterator[str]:
    if claim.record is not None and claim.record.is_protected is not gang.is_protected:
        yield "its record does not say whether it can be ended"


def _holders(gang: Gang) -> Sequence[Member]:
    return [m for m in gang.members if m.node is not None and not (m.is_over or m.terminating)]


def _started_at(gang: Gang) -> float:
    """When a gang without a record started: its first binding, or else its creation."""
    moments = [m.bound_at for m in gang.members if m.node is not None and m.bound_at is not None]
    return min(moments, default=gang.created)


def _extras(gang: Gang) -> Mapping[str, Amounts]:
    """By pod, the charge of each member that the gang does not need."""
    members = {member.uid: member for member in _holders(gang)}
    uids = queue_checks.extras_of(gang, [*members.values()], queue_checks.done_by_role(gang))
    return {members[uid].key.name: Counter(lookup.needs(members[uid].shape)) for uid in uids}


def _covered(queues: QueueChains, gangs: Sequence[ItemGang]) -> Mapping[Item, str]:
    """The queue that covers each item; items that borrow are absent."""
    covers: dict[Item, str] = {}
    sizes = {(gang.key, ""): gang.minimum for gang in gangs}
    sizes |= {(gang.key, pod): amounts for gang in gangs for pod, amounts in gang.extras.items()}
    lines = {line for name in queues.queues for line, n in _declared(queues, name).items() if n}
    for name in sorted(queues.queues, key=lambda name: (-_depth(queues, name), name)):
        left = Counter({line: _guarantee(queues, name, line) for line in lines})
        if not any(left.values()):
            continue
        for item, queue in covers.items():
            if name in _names(queues, queue):
                left.subtract({line: sizes[item][line] for line in lines})
        inside = [gang for gang in gangs if name in _names(queues, gang.queue)]
        inside.sort(key=lambda gang: _order(gang, name))
        minimums = [(gang.key, "") for gang in inside]
        for item in (*minimums, *((gang.key, pod) for gang in inside for pod in gang.extras)):
            wanted = {line: sizes[item][line] for line in lines if sizes[item][line]}
            is_open = item not in covers and (not item[1] or (item[0], "") in covers)
            if is_open and all(n <= left[line] for line, n in wanted.items()):
                covers[item] = name
                left.subtract(wanted)
    return covers


def _measure(
    queues: QueueChains, gangs: Sequence[ItemGang], priorities: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """A measure that rises with every plan that ends gangs.

    It has the number of covered items, by depth, kind and priority, and then the number of members
    that run. ``priorities`` has all priorities that exist.
    """
    covers, by_key = _covered(queues, gangs), {gang.key: gang for gang in gangs}
    counts = []
    for level in sorted({_depth(queues, name) for name in queues.queues}, reverse=True):
        kinds = Counter(
            _kind(by_key[item[0]], item, queue)
            for item, queue in covers.items()
            if _depth(queues, queue) == level
        )
        counts.append(kinds[0, 0])
        counts += [kinds[kind, priority] for kind in (1, 2) for priority in priorities]
    use = [
        sum(g.members for g in gangs if g.queue == name and g.priority == priority)
        for name in sorted({ROOT, *queues.queues})
        for priority in priorities
    ]
    return counts, use


def _depth(queues: QueueChains, queue: str) -> int:
    """The number of levels below the root."""
    return len(_names(queues, queue))


def _kind(gang: ItemGang, item: Item, queue: str) -> tuple[int, int]:
    """The kind of a covered item, and its priority if that counts."""
    if item[1]:
        return 2, gang.priority
    return (0, 0) if gang.is_protected and gang.queue == queue else (1, gang.priority)


def _order(gang: ItemGang, queue: str) -> tuple[bool, int, float, GangKey]:
    is_first = gang.is_protected and gang.queue == queue
    return not is_first, 0 if is_first else -gang.priority, gang.started, gang.key


def _names(queues: QueueChains, queue: str) -> Sequence[str]:
    return [step.name for step in queues.chain(queue)]


def _declared(queues: QueueChains, name: str) -> Mapping[str, int]:
    queue = queues.queues[name]
    return dict(queue.guaranteed) if queue.mode is QueueMode.ACTIVE else {}


def _guarantee(queues: QueueChains, name: str, line: str) -> int:
    """The guarantee of a queue: its own declaration, or else the sum over its children."""
    declared = _declared(queues, name)
    if line in declared:
        return declared[line]
    children = [child for child in queues.queues if _names(queues, child)[1:2] == [name]]
    return sum(_guarantee(queues, child, line) for child in children)
