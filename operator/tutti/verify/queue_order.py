"""The order of queues: whether a gang starts in the place of a gang that comes before it.

Only plans that claim to be proved are judged, and only gangs whose oldest members have room in the
place of a gang that starts. So each sentence is a certain breach, but not each breach has a
sentence. The check does not repeat the planner's walk over the queues. A gang is certainly covered
if it fits its own queue's guarantee beside all gangs there. A gang certainly borrows if it exceeds
every guarantee above it. If gangs together exceed the guarantee of their leaf, the leaf does not
cover all of them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from ..gang.findings import QueueAtLimit
from ..gang.room_findings import RoomHeldForIt, RoomHeldForOther
from ..model.cluster import Gang, Member, Snapshot
from ..model.decisions import Placement, Plan, Reason
from ..model.keys import GangKey
from ..model.queues import ROOT, QueueMode
from . import cap_checks, lookup, queue_checks
from .queue_checks import QueueChains
from .queue_places import FreeRoom

STEPS = 20
MARGIN = 1e-6  # of a step of past use: what two ways to compute it may differ by
WAITS_FOR_ROOM = (Reason.NOT_ENOUGH_ROOM, Reason.QUEUE_AT_LIMIT)
Amounts = Counter[str]


def faults(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """A sentence for each gang that borrows in the place of a gang that certainly comes first.

    The Snapshot comes from ``with_charged_pods``.
    """
    if not (snapshot.queues and plan.proved) or _is_held(plan) or lookup.may_have_rules(snapshot):
        return
    judge = _Judge.of(snapshot, plan)
    borrowers = [start for start in judge.starts if judge.exceeds_guarantees(start)]
    groups = [*judge.exceeding({start.gang for start in borrowers})]
    for waiting in judge.waiting(borrowers) if borrowers or groups else ():
        gang = waiting.gang
        if judge.is_covered(waiting):
            # A starved gang of its own queue may come before it, and other gangs before that one.
            behind = [
                group for group in groups if all(judge.fits(waiting, start) for start in group)
            ]
            if behind and not judge.is_behind_its_queue(gang):
                why = f"its queue guarantees it, and gang {behind[0][0].gang} starts in its place"
                yield f"gang {gang.key} waits although {why} beyond the guarantee of its own"
            for start in borrowers:
                if judge.chain(start) != judge.chain(gang) and judge.fits(waiting, start):
                    why = f"its queue guarantees it, and gang {start.gang} borrows in its place"
                    yield f"gang {gang.key} waits although {why}"
        heavier_borrowers = [start for start in borrowers if judge.has_borrowed_less(gang, start)]
        replaceable = [start for start in heavier_borrowers if judge.fits(waiting, start)]
        # The starved gang may borrow before its turn, and there is only one.
        if len(replaceable) > 1:
            why = f"its queue has borrowed less than that of gang {replaceable[0].gang}"
            yield f"gang {gang.key} waits although {why}, which starts in its place"


def _is_held(plan: Plan) -> bool:
    """Whether room or a limit is held for a starved gang, so that other gangs may wait for it."""
    return any(
        isinstance(finding, RoomHeldForIt | RoomHeldForOther)
        or (isinstance(finding, QueueAtLimit) and finding.held_for is not None)
        for rejection in plan.rejections
        for finding in rejection.findings
    )


class _WaitingGang(NamedTuple):
    """A gang that waits, the oldest members with which it can start, and their charge."""

    gang: Gang
    members: Sequence[Member]
    needs: Amounts


@dataclass(frozen=True, eq=False)
class _Judge:
    """The queues with their charges before and after a plan, and the room that the plan leaves."""

    snapshot: Snapshot
    plan: Plan
    index: lookup.SnapshotLookup
    gangs: Mapping[GangKey, Gang]
    starts: Sequence[Placement]  # of gangs that had not started, without slots
    queues: QueueChains
    chains: Mapping[GangKey, tuple[str, ...]]  # the queues of each gang, its own first
    before: Mapping[str, Amounts]  # charged to each queue and the queues below it
    after: Mapping[str, Amounts]
    starting: Mapping[GangKey, Amounts]
    totals: Amounts
    lines: Sequence[str]  # the resources that some queue guarantees
    children: Mapping[str, Sequence[str]]
    height: int
    taken_at: float  # seconds since the epoch
    steps: dict[tuple[tuple[str, ...], bool], tuple[int, ...]]  # filled by ``_steps``

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan) -> "_Judge":
        """Count all charges, chains and room once."""
        queues, index = QueueChains.of(snapshot), lookup.SnapshotLookup(snapshot)
        by_queue = {name: tuple(_names(queues, name)) for name in queues.queues}
        placements = {placement.gang: placement for placement in plan.placements}
        chains, before, after = _charges(snapshot, index, queues, placements)
        starts = [
            placement
            for placement in plan.placements
            if not (before[placement.gang] or placement.slots)
        ]
        children = defaultdict[str, list[str]](list)
        for name, chain in by_queue.items():
            if len(chain) > 1:
                children[chain[1]].append(name)
        totals = Counter[str]()
        for node in snapshot.nodes:
            for name, n in node.allocatable.amounts:
                totals[name] += n
        return cls(
            snapshot=snapshot,
            plan=plan,
            index=index,
            gangs=index.gangs,
            starts=starts,
            queues=queues,
            chains=chains,
            before=_by_queue(chains, before),
            after=_by_queue(chains, after),
            starting={start.gang: after[start.gang] for start in starts},
            totals=totals,
            lines=sorted({line for q in snapshot.queues for line, n in q.guaranteed if n}),
            children=children,
            height=max(len(chain) for chain in by_queue.values()),
            taken_at=snapshot.taken_at,
            steps={},
        )

    @cached_property
    def room(self) -> FreeRoom:
        """The room that the plan leaves."""
        return FreeRoom.after(self.snapshot, self.index, self.plan)

    def chain(self, start: Gang | Placement) -> tuple[str, ...]:
        """The queues of a gang, its own first; empty for the root."""
        return self.chains[start.key if isinstance(start, Gang) else start.gang]

    def waiting(self, borrowers: Sequence[Placement]) -> Iterator[_WaitingGang]:
        """The gangs that have not started and wait only for room or a limit; each kind once.

        Left out are gangs that their leaf cannot cover and that come before none of the borrowers.
        """
        kinds = set[tuple[object, ...]]()
        for rejection in self.plan.rejections:
            gang = self.gangs[rejection.gang]
            has_begun = any(member.node is not None for member in gang.members)
            may_start = rejection.reason in WAITS_FOR_ROOM and not rejection.only_extra_members
            if not may_start or has_begun or not self._may_come_first(gang, borrowers):
                continue
            if not (members := _oldest(gang)):
                continue
            kind = self.chain(gang), frozenset(Counter(m.shape for m in members).items())
            if kind not in kinds:
                kinds.add(kind)
                yield _WaitingGang(gang, members, cap_checks.needs_of(members))

    def _may_come_first(self, gang: Gang, borrowers: Sequence[Placement]) -> bool:
        leaf = self.chain(gang)[:1]
        return any(self._has_cover_left(name, Amounts()) for name in leaf) or any(
            self.has_borrowed_less(gang, start) for start in borrowers
        )

    def guarantee(self, name: str, line: str) -> int:
        """The guarantee of a queue: its own declaration, or else the sum over its children."""
        queue = self.queues.queues[name]
        declared = dict(queue.guaranteed) if queue.mode is QueueMode.ACTIVE else {}
        if line in declared:
            return declared[line]
        return sum(self.guarantee(child, line) for child in self.children[name])

    def exceeds_guarantees(self, start: Placement) -> bool:
        """Whether no guarantee above the gang is large enough for it, and it starts no extras."""
        needs = self.starting[start.gang]
        return self._starts_least(start) and not any(
            self._guarantees_any(name)
            and all(needs[line] <= self.guarantee(name, line) for line in self.lines)
            for name in self.chain(start)
        )

    def _starts_least(self, start: Placement) -> bool:
        """Whether the gang starts no member beyond the needed ones; such members may borrow."""
        gang = self.gangs[start.gang]
        least = max(gang.min_member, sum(role.min_member for role in gang.roles), 1)
        return len(start.assignments) <= least

    def exceeding(self, others: Collection[GangKey]) -> Iterator[Sequence[Placement]]:
        """The starts of the lowest priority in each queue, if its leaf cannot cover all of them.

        The ``others`` and gangs that start extras are left out.
        """
        groups = defaultdict[str, list[Placement]](list)
        for start in self.starts:
            if start.gang not in others and self._starts_least(start):
                groups[self.chain(start)[0]].append(start)
        for starts in groups.values():
            lowest = min(self.gangs[start.gang].priority for start in starts)
            group = [start for start in starts if self.gangs[start.gang].priority == lowest]
            if self.exceeds_leaf(group):
                yield group

    def exceeds_leaf(self, group: Sequence[Placement]) -> bool:
        """Whether a leaf cannot cover all of these gangs, which are in it.

        A queue with one child counts as part of the leaf.
        """
        chain = self.chain(group[0])
        above = next((n for n, name in enumerate(chain) if len(self.children[name]) > 1), None)
        used = sum((self.starting[start.gang] for start in group), Amounts())
        return any(
            all(used[line] > self.guarantee(name, line) for name in chain[:above])
            for line in self.lines
        )

    def is_covered(self, waiting: _WaitingGang) -> bool:
        """Whether its leaf guarantees the gang beside all that the leaf is charged.

        Then no gang of the leaf depends on what a parent covers, and none loses its cover.
        """
        chain = self.chain(waiting.gang)
        return bool(chain) and self._has_cover_left(chain[0], waiting.needs)

    def is_behind_its_queue(self, gang: Gang) -> bool:
        """Whether a gang of its queue starts that has no lower priority."""
        return any(
            self.chain(start)[:1] == self.chain(gang)[:1]
            and self.gangs[start.gang].priority >= gang.priority
            for start in self.starts
        )

    def _guarantees_any(self, name: str) -> bool:
        return any(self.guarantee(name, line) for line in self.lines)

    def _has_cover_left(self, name: str, needs: Amounts) -> bool:
        return self._guarantees_any(name) and all(
            self.after[name][line] + needs[line] <= self.guarantee(name, line)
            for line in self.lines
        )

    def has_borrowed_less(self, gang: Gang, start: Placement) -> bool:
        """Whether the queue of the gang has certainly borrowed less than the queue of the start.

        The first is measured after the plan, the second before it. If they are equal, and the gang
        has no lower priority, past use decides.
        """
        mine = self._steps(self.chain(gang), is_after=True)
        theirs = self._steps(self.chain(start), is_after=False)
        if mine == theirs and gang.priority >= self.gangs[start.gang].priority:
            past = self._past(self.chain(gang), MARGIN)
            return past < self._past(self.chain(start), -MARGIN)
        return mine < theirs

    def _past(self, chain: tuple[str, ...], margin: float) -> tuple[float, ...]:
        """The steps of past use of a queue and its ancestors, from the top, with this margin."""
        records = [self.queues.queues[name].past_use for name in chain[::-1]]
        if not any(queue.past_use for queue in self.queues.queues.values()):
            return ()
        steps = [math.inf] if not chain else []
        for record in records:
            weight = 1.0
            if record is not None and self.taken_at > record.since:
                weight = math.exp((record.since - self.taken_at) * math.log(2) / record.half_life)
            mean = 0.0 if record is None else record.share + (record.mean - record.share) * weight
            steps.append(math.floor(mean * STEPS / 1e6 + margin))
        return (*steps, *steps[-1:] * (self.height - len(steps)))

    def _steps(self, chain: tuple[str, ...], *, is_after: bool) -> tuple[int, ...]:
        """The steps of a queue and of its ancestors, from the top; the last step is repeated."""
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

    def fits(self, waiting: _WaitingGang, start: Placement) -> bool:
        """Whether the gang has room, and keeps limits, in the place of a gang that starts."""
        needs, start_charge = waiting.needs, self.starting[start.gang]
        freed_queues = {*self.chain(start)}
        for name in self.chain(waiting.gang):
            queue = self.queues.queues[name]
            for resource, limit in queue.limits if queue.mode is QueueMode.ACTIVE else ():
                used = self.after[name][resource] - (
                    start_charge[resource] if name in freed_queues else 0
                )
                if needs[resource] and used + needs[resource] > limit:
                    return False
        return self.room.fits(waiting.members, start)


def _oldest(gang: Gang) -> Sequence[Member]:
    """The oldest members with which a gang can start; empty if it cannot start.

    Also empty if a role has a maximum, or if its members may be absent.
    """
    if any(role.max_member is not None or role.template is not None for role in gang.roles):
        return ()
    roles = {role.name for role in gang.roles}
    ready = [
        member
        for member in sorted(gang.members, key=lambda member: (member.created, member.key))
        if member.is_waiting
        and not (member.unsupported_fields or member.lacks_claims)
        and (not roles or member.role in roles)
    ]
    required = [
        member
        for role in gang.roles
        for member in [candidate for candidate in ready if candidate.role == role.name][
            : role.min_member
        ]
    ]
    optional = [member for member in ready if member not in required]
    least = max(gang.min_member, sum(role.min_member for role in gang.roles), 1)
    chosen = [*required, *optional[: max(least - len(required), 0)]]
    by_role = Counter(member.role for member in chosen)
    is_whole = all(by_role[role.name] >= role.min_member for role in gang.roles)
    return chosen if is_whole and len(chosen) >= least else ()


def _charges(
    snapshot: Snapshot,
    index: lookup.SnapshotLookup,
    queues: QueueChains,
    placements: Mapping[GangKey, Placement],
) -> tuple[Mapping[GangKey, tuple[str, ...]], Mapping[GangKey, Amounts], Mapping[GangKey, Amounts]]:
    """The queues of each gang before the plan, its own first, and its charge before and after."""
    records = snapshot.records
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    chains, before, after = {}, dict[GangKey, Amounts](), dict[GangKey, Amounts]()
    for gang in snapshot.gangs:
        reservation = reservations.get(gang.uid)
        name = queues.charged(gang, reservation, records.get(gang.uid))
        chains[gang.key] = tuple(_names(queues, name))
        before[gang.key] = queue_checks.charge_of(records, gang, index, reservation, None)
        after[gang.key] = before[gang.key]
        if (placement := placements.get(gang.key)) is not None:
            after[gang.key] = queue_checks.charge_of(records, gang, index, reservation, placement)
    return chains, before, after


def _by_queue(
    chains: Mapping[GangKey, tuple[str, ...]], charges: Mapping[GangKey, Amounts]
) -> Mapping[str, Amounts]:
    """The charge of each queue and the queues below it; the root has only gangs without a queue."""
    charge_by_queue = defaultdict[str, Amounts](Counter)
    for key, charge in charges.items():
        for name in chains[key] or (ROOT,):
            charge_by_queue[name].update(charge)
    return charge_by_queue


def _names(queues: QueueChains, name: str) -> Iterator[str]:
    """The names of a queue and its ancestors."""
    for queue in queues.chain(name):
        yield queue.name
