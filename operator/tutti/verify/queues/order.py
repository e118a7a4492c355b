"""The order of queues: whether a gang starts in the place of a gang that comes before it.

Only plans that claim to be proved are judged, and only gangs whose oldest members have room in the
place of a gang that starts. So each sentence is a certain breach, but not each breach has a
sentence. The check does not repeat the planner's walk over the queues. A gang is certainly covered
if it fits its own queue's guarantee beside all gangs there. A gang certainly borrows if it exceeds
every guarantee above it. If gangs together exceed the guarantee of their leaf, the leaf does not
cover all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...gang.findings import LimitHeldForIt, QueueAtLimit
from ...gang.room_findings import RoomHeldForIt, RoomHeldForOther
from ...model.cluster import Gang, Member
from ...model.decisions import Placement, Plan, Reason
from ...model.keys import GangKey
from ...model.queues import QueueMode
from .. import cap_checks, lookup
from .borrowing import QueueBorrowing
from .charges import QueueCharges
from .places import FreeRoom

MARGIN = 1e-6  # of a step of past use: what two ways to compute it may differ by
WAITS_FOR_ROOM = (Reason.NOT_ENOUGH_ROOM, Reason.QUEUE_AT_LIMIT)
Amounts = Counter[str]


def faults(charges: QueueCharges, plan: Plan) -> Iterator[str]:
    """A sentence for each gang that borrows in the place of a gang that certainly comes first."""
    if not plan.proved or _is_held(plan) or lookup.may_have_rules(charges.snapshot):
        return
    judge = _Judge.of(charges, plan)
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
        isinstance(finding, RoomHeldForIt | RoomHeldForOther | LimitHeldForIt)
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
    """The gangs that a plan starts, the queues before and after it, and the room that it leaves."""

    charges: QueueCharges
    plan: Plan
    starts: Sequence[Placement]  # of gangs that had not started, without slots
    borrowing: QueueBorrowing
    chains: Mapping[str, tuple[str, ...]]  # each queue and its ancestors; empty for the root

    @classmethod
    def of(cls, charges: QueueCharges, plan: Plan) -> "_Judge":
        """Measure all queues once."""
        chains = {
            name: tuple(queue.name for queue in charges.tree.chain(name))
            for name in {*charges.queues.values(), *charges.tree.queues}
        }
        before = charges.usage.before
        starts = [start for start in plan.placements if not (before[start.gang] or start.slots)]
        return cls(charges, plan, starts, QueueBorrowing.of(charges, chains), chains)

    @cached_property
    def room(self) -> FreeRoom:
        """The room that the plan leaves."""
        return FreeRoom.after(self.charges.snapshot, self.charges.index, self.plan)

    def gang(self, start: Placement) -> Gang:
        """The gang that starts."""
        return self.charges.index.gangs[start.gang]

    def start_charge(self, start: Placement) -> Amounts:
        """What the gang is charged once it has started."""
        return self.charges.usage.after[start.gang]

    def chain(self, start: Gang | Placement) -> tuple[str, ...]:
        """The queues of a gang, its own first; empty for the root."""
        key = start.key if isinstance(start, Gang) else start.gang
        return self.chains[self.charges.queues[key]]

    def waiting(self, borrowers: Sequence[Placement]) -> Iterator[_WaitingGang]:
        """The gangs that have not started and wait only for room or a limit; each kind once.

        Left out are gangs that their leaf cannot cover and that come before none of the borrowers.
        """
        kinds = set[tuple[object, ...]]()
        known = dict[tuple[tuple[str, ...], int], bool]()
        for rejection in self.plan.rejections:
            gang = self.charges.index.gangs[rejection.gang]
            if rejection.reason not in WAITS_FOR_ROOM or rejection.only_extra_members:
                continue
            place = self.chain(gang), gang.priority
            if place not in known:
                known[place] = self._may_come_first(gang, borrowers)
            if not known[place] or any(member.node is not None for member in gang.members):
                continue
            if not (members := _oldest(gang)):
                continue
            kind = place[0], frozenset(Counter(m.shape for m in members).items())
            if kind not in kinds:
                kinds.add(kind)
                yield _WaitingGang(gang, members, cap_checks.needs_of(members))

    def _may_come_first(self, gang: Gang, borrowers: Sequence[Placement]) -> bool:
        leaf = self.chain(gang)[:1]
        return any(self.borrowing.has_cover_left(name, Amounts()) for name in leaf) or any(
            self.has_borrowed_less(gang, start) for start in borrowers
        )

    def exceeds_guarantees(self, start: Placement) -> bool:
        """Whether no guarantee above the gang is large enough for it, and it starts no extras."""
        needs = self.start_charge(start)
        return self._starts_least(start) and not any(
            self.borrowing.guarantees(name, needs) for name in self.chain(start)
        )

    def _starts_least(self, start: Placement) -> bool:
        """Whether the gang starts no member beyond the needed ones; such members may borrow."""
        gang = self.gang(start)
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
            lowest = min(self.gang(start).priority for start in starts)
            group = [start for start in starts if self.gang(start).priority == lowest]
            if self.exceeds_leaf(group):
                yield group

    def exceeds_leaf(self, group: Sequence[Placement]) -> bool:
        """Whether a leaf cannot cover all of these gangs, which are in it.

        A queue with one child counts as part of the leaf.
        """
        chain = self.chain(group[0])
        above = next(
            (n for n, name in enumerate(chain) if len(self.borrowing.children[name]) > 1), None
        )
        used = sum((self.start_charge(start) for start in group), Amounts())
        return any(
            all(used[line] > self.borrowing.guarantee(name, line) for name in chain[:above])
            for line in self.borrowing.lines
        )

    def is_covered(self, waiting: _WaitingGang) -> bool:
        """Whether its leaf guarantees the gang beside all that the leaf is charged.

        Then no gang of the leaf depends on what a parent covers, and none loses its cover.
        """
        chain = self.chain(waiting.gang)
        return bool(chain) and self.borrowing.has_cover_left(chain[0], waiting.needs)

    def is_behind_its_queue(self, gang: Gang) -> bool:
        """Whether a gang of its queue starts that has no lower priority."""
        return any(
            self.chain(start)[:1] == self.chain(gang)[:1]
            and self.gang(start).priority >= gang.priority
            for start in self.starts
        )

    def has_borrowed_less(self, gang: Gang, start: Placement) -> bool:
        """Whether the queue of the gang has certainly borrowed less than the queue of the start.

        The first is measured after the plan, the second before it. If they are equal, and the gang
        has no lower priority, past use decides.
        """
        own, other, borrowing = self.chain(gang), self.chain(start), self.borrowing
        mine, theirs = borrowing.steps(own, is_after=True), borrowing.steps(other, is_after=False)
        if mine == theirs and gang.priority >= self.gang(start).priority:
            return borrowing.past(own, MARGIN) < borrowing.past(other, -MARGIN)
        return mine < theirs

    def fits(self, waiting: _WaitingGang, start: Placement) -> bool:
        """Whether the gang has room, and keeps limits, in the place of a gang that starts."""
        needs, start_charge = waiting.needs, self.start_charge(start)
        freed_queues = {*self.chain(start)}
        for name in self.chain(waiting.gang):
            queue = self.charges.tree.queues[name]
            for resource, limit in queue.limits if queue.mode is QueueMode.ACTIVE else ():
                used = self.borrowing.after[name][resource] - (
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
