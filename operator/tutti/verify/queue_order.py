"""The order of queues, judged where nothing is open: who starts in the place of somebody else.

Only plans that claim to be proved are judged, and only gangs of equal pods that could take the very
nodes of one that starts. So a sentence is a breach for certain, and many breaches have none. It
knows nothing of the walk: a gang that fits its own queue's guarantee beside all others there is
covered, and one that exceeds every guarantee above it is not.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..filters.node_rules import fits_node
from ..gang.findings import QueueAtLimit
from ..gang.room_findings import RoomHeldForIt, RoomHeldForOther
from ..model.cluster import Gang, Member, Snapshot
from ..model.decisions import Placement, Plan, Reason
from ..model.keys import GangKey, NodeName
from ..model.queues import ROOT, QueueMode
from ..model.shapes import Shape
from . import lookup, queue_checks, room_ledger
from .queue_checks import QueueChains

STEPS = 20
WAITS_FOR_ROOM = (Reason.NOT_ENOUGH_ROOM, Reason.QUEUE_AT_LIMIT)
Amounts = Counter[str]


def faults(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """A sentence for each gang that borrows in the place of one that comes first for certain."""
    if not (snapshot.queues and plan.proved) or _is_held(plan) or lookup.are_ruled(snapshot):
        return
    judge = _Judge.of(queue_checks.with_charged_pods(snapshot), plan)
    borrowers = [start for start in judge.starts if judge.is_loose(start)]
    for gang in judge.waiting(plan) if borrowers else ():
        if judge.is_secure(gang):
            for start in borrowers:
                if judge.chain(start) != judge.chain(gang) and judge.fits(gang, start):
                    why = f"its queue guarantees it, and gang {start.gang} borrows in its place"
                    yield f"gang {gang.key} waits although {why}"
        before = [start for start in borrowers if judge.has_borrowed_less(gang, start)]
        others = [start for start in before if judge.fits(gang, start)]
        # The starved gang may borrow before its turn, and there is only one.
        if len(others) > 1:
            why = f"its queue has borrowed less than that of gang {others[0].gang}"
            yield f"gang {gang.key} waits although {why}, which starts in its place"


def _is_held(plan: Plan) -> bool:
    """Whether something is held for a starved gang, so that others may wait for it."""
    return any(
        isinstance(finding, RoomHeldForIt | RoomHeldForOther)
        or (isinstance(finding, QueueAtLimit) and finding.held_for is not None)
        for rejection in plan.rejections
        for finding in rejection.findings
    )


@dataclass(frozen=True, eq=False)
class _Judge:
    """The queues with what is charged to them before and after a plan, and the room it leaves."""

    gangs: Mapping[GangKey, Gang]
    starts: Sequence[Placement]  # of gangs that had not started, without slots
    queues: QueueChains
    chains: Mapping[GangKey, tuple[str, ...]]  # the queues of each gang, its own first
    before: Mapping[str, Amounts]  # charged to each queue and those below
    after: Mapping[str, Amounts]
    starting: Mapping[GangKey, Amounts]
    totals: Amounts
    ledger: room_ledger.Ledger
    lines: Sequence[str]  # the resources that some queue guarantees
    children: Mapping[str, Sequence[str]]
    used_below: Mapping[str, Collection[str]]  # the queues of gangs, by the child of the root
    height: int
    room: dict[Shape, int]  # for how many pods the plan leaves room, once it is counted
    steps: dict[tuple[tuple[str, ...], bool], tuple[int, ...]]  # likewise

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan) -> "_Judge":
        """Count everything once."""
        queues, seen = QueueChains.of(snapshot), lookup.SnapshotLookup(snapshot)
        by_queue = {name: tuple(_names(queues, name)) for name in queues.queues}
        chains, before = _charges(snapshot, seen, queues, {})
        placements = {placement.gang: placement for placement in plan.placements}
        _, after = _charges(snapshot, seen, queues, placements)
        starts = [
            placement
            for placement in plan.placements
            if not (before[placement.gang] or placement.slots)
        ]
        children, used = defaultdict[str, list[str]](list), defaultdict[str, set[str]](set)
        for name, chain in by_queue.items():
            if len(chain) > 1:
                children[chain[1]].append(name)
        for chain in filter(None, chains.values()):
            used[chain[-1]].add(chain[0])
        totals = Counter[str]()
        for node in snapshot.nodes:
            totals.update(dict(node.allocatable.amounts))
        return cls(
            gangs=seen.gangs,
            starts=starts,
            queues=queues,
            chains=chains,
            before=_by_queue(chains, before),
            after=_by_queue(chains, after),
            starting={start.gang: after[start.gang] for start in starts},
            totals=totals,
            ledger=_room_after(snapshot, seen, plan),
            lines=sorted({line for q in snapshot.queues for line, n in q.guaranteed if n}),
            children=children,
            used_below=used,
            height=max(len(chain) for chain in by_queue.values()),
            room={},
            steps={},
        )

    def chain(self, start: Gang | Placement) -> tuple[str, ...]:
        """The queues of a gang, its own first; none for the root."""
        return self.chains[start.key if isinstance(start, Gang) else start.gang]

    def waiting(self, plan: Plan) -> Iterator[Gang]:
        """The gangs that have not started, and wait for room or a limit alone; one of each kind."""
        kinds = set[tuple[object, ...]]()
        for rejection in plan.rejections:
            gang = self.gangs[rejection.gang]
            has_begun = any(member.node is not None for member in gang.members)
            may_start = rejection.reason in WAITS_FOR_ROOM and not rejection.only_extra_members
            ready = [member for member in gang.members if member.is_waiting]
            shapes = {member.shape for member in ready}
            is_plain = len(shapes) == 1 and len(ready) >= max(gang.min_member, 1)
            if not (may_start and is_plain) or has_begun or gang.roles:
                continue
            (shape,) = shapes
            kind = self.chain(gang), max(gang.min_member, 1), shape
            if kind not in kinds:
                kinds.add(kind)
                yield gang

    def needs(self, gang: Gang) -> Amounts:
        """What a gang of equal pods is charged if it starts."""
        member = next(member for member in gang.members if member.is_waiting)
        needed = max(gang.min_member, 1)
        each = lookup.needs(member.shape)
        return Counter({name: n * needed for name, n in each.items()})

    def guarantee(self, name: str, line: str) -> int:
        """What a queue guarantees: declared, or what its children do together."""
        queue = self.queues.queues[name]
        declared = dict(queue.guaranteed) if queue.mode is QueueMode.ACTIVE else {}
        if line in declared:
            return declared[line]
        return sum(self.guarantee(child, line) for child in self.children[name])

    def is_loose(self, start: Placement) -> bool:
        """Whether no guarantee above the gang is large enough for it."""
        wanted = self.starting[start.gang]
        return not any(
            self._guarantees_any(name)
            and all(wanted[line] <= self.guarantee(name, line) for line in self.lines)
            for name in self.chain(start)
        )

    def _guarantees_any(self, name: str) -> bool:
        return any(self.guarantee(name, line) for line in self.lines)

    def is_secure(self, gang: Gang) -> bool:
        """Whether its own queue's guarantee has room for it beside all that are there.

        So has every queue under the same child of the root for its own: then nobody there depends
        on the guarantee of a parent.
        """
        chain, wanted = self.chain(gang), self.needs(gang)
        if not chain:
            return False
        return all(
            self._has_cover_left(name, wanted if name == chain[0] else Counter())
            for name in self.used_below[chain[-1]]
        )

    def _has_cover_left(self, name: str, wanted: Amounts) -> bool:
        return self._guarantees_any(name) and all(
            self.after[name][line] + wanted[line] <= self.guarantee(name, line)
            for line in self.lines
        )

    def has_borrowed_less(self, gang: Gang, start: Placement) -> bool:
        """Whether its queue has borrowed less after the plan than that of the start before it."""
        mine = self._steps(self.chain(gang), is_after=True)
        return mine < self._steps(self.chain(start), is_after=False)

    def _steps(self, chain: tuple[str, ...], *, is_after: bool) -> tuple[int, ...]:
        """The steps of a queue and of those above it, from the top; the last is repeated."""
        if (chain, is_after) not in self.steps:
            charged = self.after if is_after else self.before
            steps = [self._step(name, charged[name]) for name in chain[::-1] or (ROOT,)]
            padded = (*steps, *steps[-1:] * (self.height - len(steps)))
            self.steps[chain, is_after] = padded
        return self.steps[chain, is_after]

    def _step(self, name: str, charged: Amounts) -> int:
        weight = 1 if name == ROOT else self.queues.queues[name].weight
        parts = [
            Fraction(
                n - (self.guarantee(name, line) if name != ROOT and line in self.lines else 0),
                self.totals[line],
            )
            for line, n in charged.items()
            if self.totals[line] > 0
        ]
        return int(max([*parts, Fraction(0)]) * STEPS / weight)

    def fits(self, gang: Gang, start: Placement) -> bool:
        """Whether the gang has room, and keeps limits, in the place of one that starts."""
        wanted, given = self.needs(gang), self.starting[start.gang]
        freed = {*self.chain(start)}
        for name in self.chain(gang):
            queue = self.queues.queues[name]
            for resource, limit in queue.limits if queue.mode is QueueMode.ACTIVE else ():
                used = self.after[name][resource] - (given[resource] if name in freed else 0)
                if wanted[resource] and used + wanted[resource] > limit:
                    return False
        member = next(member for member in gang.members if member.is_waiting)
        return self._room(member) + self._gain(member, start) >= max(gang.min_member, 1)

    def _room(self, member: Member) -> int:
        """For how many such pods all nodes have room after the plan."""
        shape = member.shape
        if shape not in self.room:
            asked = lookup.needs(shape)
            self.room[shape] = sum(
                _count(self.ledger.room(name) or {}, asked)
                for name, node in self.ledger.nodes.items()
                if fits_node(shape, node) is None
            )
        return self.room[shape]

    def _gain(self, member: Member, start: Placement) -> int:
        """For how many more there is room without those of a start."""
        asked, members = lookup.needs(member.shape), self.gangs[start.gang].members
        shapes = {own.uid: own.shape for own in members}
        freed = defaultdict[NodeName, Amounts](Counter)
        for assignment in start.assignments:
            freed[assignment.node].update(lookup.needs(shapes[assignment.uid]))
        gain = 0
        for name, amounts in freed.items():
            if fits_node(member.shape, self.ledger.nodes[name]) is None:
                left = self.ledger.room(name) or {}
                more = {key: left.get(key, 0) + amounts[key] for key in {*left, *amounts}}
                gain += _count(more, asked) - _count(left, asked)
        return gain


def _charges(
    snapshot: Snapshot,
    seen: lookup.SnapshotLookup,
    queues: QueueChains,
    placements: Mapping[GangKey, Placement],
) -> tuple[Mapping[GangKey, tuple[str, ...]], Mapping[GangKey, Amounts]]:
    """The queues of each gang before the plan, its own first, and its charge with placements."""
    records = snapshot.records
    held = {reservation.uid: reservation for reservation in snapshot.reservations}
    chains, charges = {}, {}
    for gang in snapshot.gangs:
        standing = held.get(gang.uid)
        name = queues.charged(gang, standing, records.get(gang.uid))
        chains[gang.key] = tuple(_names(queues, name))
        placement = placements.get(gang.key)
        charges[gang.key] = queue_checks.charge_of(records, gang, seen, standing, placement)
    return chains, charges


def _by_queue(
    chains: Mapping[GangKey, tuple[str, ...]], charges: Mapping[GangKey, Amounts]
) -> Mapping[str, Amounts]:
    """What is charged to each queue and those below; to the root only what is in no queue."""
    found = defaultdict[str, Amounts](Counter)
    for key, charge in charges.items():
        for name in chains[key] or (ROOT,):
            found[name].update(charge)
    return found


def _room_after(snapshot: Snapshot, seen: lookup.SnapshotLookup, plan: Plan) -> room_ledger.Ledger:
    """The room that a plan leaves."""
    ledger = room_ledger.Ledger(seen.nodes)
    for reservation in snapshot.reservations:
        for node, asked in lookup.held_room(reservation, seen):
            ledger.take(node, asked)
    for placement in plan.placements:
        own = seen.members(placement.gang)
        for assignment in placement.assignments:
            ledger.take(assignment.node, lookup.needs(own[assignment.uid].shape))
        gang = seen.gangs[placement.gang]
        for slot in placement.slots:
            one = lookup.needs_of_slot(gang, slot.role)
            ledger.take(slot.node, {name: n * slot.count for name, n in one.items()})
    return ledger


def _count(room: Mapping[str, int], asked: Mapping[str, int]) -> int:
    """How many pods have room."""
    return max(min((room.get(name, 0) // n for name, n in asked.items() if n), default=0), 0)


def _names(queues: QueueChains, name: str) -> Iterator[str]:
    """The queue and those above it."""
    for queue in queues.chain(name):
        yield queue.name
