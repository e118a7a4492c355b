"""The gangs that would be covered, as one program: its rows are necessary, and the walk decides.

Where the walk refuses starts of an answer, they are left out and the program is solved again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...gang.demand import PlacementRequest
from ...model.keys import GangKey
from ...queues import cover, cover_rows
from ...queues.cover import QueuedGang
from ...queues.limits import QueueLimit
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from ..search.round_proof import LaterRounds
from . import fixed_round
from .ledger import QueueLedger

MOST_ATTEMPTS = 6  # programs for one round; then the starts that the walk allows are the answer
MOST_TRIED = 64  # starts of one answer that are tried one by one
SENTENCE = "other gangs might be covered together"


@dataclass(frozen=True, slots=True, eq=False)
class HeldCover:
    """A starved gang whose cover is held from gangs of its queue that come after it."""

    gang: QueuedGang

    def binds(self, start: QueuedGang) -> bool:
        """Whether a start may not take the cover."""
        return start.queue == self.gang.queue and start.priority <= self.gang.priority


@dataclass(frozen=True, slots=True, eq=False)
class RoundContext:
    """What a round is decided beside: the gangs that are charged, and what is held."""

    ledger: QueueLedger
    held: HeldCover | None
    limits: SearchLimits
    later: LaterRounds


def covered_round(
    plan: PartialPlan, wants: Sequence[PlacementRequest], context: RoundContext
) -> PartialPlan:
    """The plan with the best set of these gangs that would be covered."""
    ledger = context.ledger
    starts = [ledger.least_start(want) for want in wants]
    again = {start.key for start in starts}
    running = [gang for gang in ledger.running if gang.key not in again]
    found = cover_rows.cover_rows(ledger.tree, running, starts)
    candidates = {start.key for start in found.starts}
    left = [want for want in wants if want.gang.key in candidates]
    rows = [QueueLimit(row.queue, row.line, row.room, 0, row.gangs) for row in found.rows]
    return _checked_round(plan, left, _Covered(context), rows)


def borrowing_round(
    plan: PartialPlan, wants: Sequence[PlacementRequest], context: RoundContext
) -> PartialPlan:
    """The plan with the best set of these gangs, whatever covers them."""
    return _checked_round(plan, wants, _Borrowing(context), ())


@dataclass(frozen=True, slots=True, eq=False)
class _Borrowing:
    """Any set of starts that leaves a starved gang its cover."""

    context: RoundContext

    def allows(self, starts: Sequence[QueuedGang]) -> bool:
        """Whether these may start together."""
        held = self.context.held
        if held is None or not any(held.binds(start) for start in starts):
            return True
        running = (*self.running(starts), *starts)
        return cover.would_be_covered(self.context.ledger.tree, running, [held.gang])

    def running(self, starts: Sequence[QueuedGang]) -> Sequence[QueuedGang]:
        """The gangs that run, without pods that are left of an earlier run of these."""
        again = {start.key for start in starts}
        return [gang for gang in self.context.ledger.running if gang.key not in again]


@dataclass(frozen=True, slots=True, eq=False)
class _Covered(_Borrowing):
    """Sets of starts that would be covered, too."""

    def allows(self, starts: Sequence[QueuedGang]) -> bool:
        """Whether these would be covered together, and leave a starved gang its cover."""
        tree, running = self.context.ledger.tree, self.running(starts)
        is_covered = not starts or cover.would_be_covered(tree, running, starts)
        return is_covered and _Borrowing.allows(self, starts)


def _checked_round(
    plan: PartialPlan,
    wants: Sequence[PlacementRequest],
    sets: _Borrowing,
    rows: Sequence[QueueLimit],
) -> PartialPlan:
    """The plan with the best set of these gangs that is allowed.

    It is not proved if an answer had to be cut, unless what is left is worth as much.
    """
    first, ledger, context = None, sets.context.ledger, sets.context
    for attempt in range(MOST_ATTEMPTS):
        answer = fixed_round.decide(plan, wants, context.limits, rows, context.later)
        first = first or answer
        placed = [want for want in wants if answer.has_placed(want)]
        after = ledger.with_assigned([want.gang.key for want in placed], answer.assigned)
        starts = [after.gangs[want.gang.key] for want in placed]
        if sets.allows(starts):
            return _judged(answer, first)
        allowed = _allowed(sets, starts)
        if attempt == MOST_ATTEMPTS - 2:
            wants = [want for want in placed if want.gang.key in allowed]
        else:
            refused = {start.key for start in starts} - allowed
            wants = [want for want in wants if want.gang.key not in refused]
    return replace(plan, proved=False, shortfall=plan.shortfall or SENTENCE)


def _judged(answer: PartialPlan, first: PartialPlan) -> PartialPlan:
    """The answer, held against the first one: no allowed set is worth more than that."""
    if answer is first:
        return answer
    tally = {
        level: (answer.tally.get(level, (0, None))[0], bound)
        for level, (_, bound) in first.tally.items()
    }
    if first.proved and tally == first.tally:
        return replace(answer, proved=True, shortfall=first.shortfall, tally=tally)
    shortfall = first.shortfall or answer.shortfall or SENTENCE
    return replace(answer, proved=False, shortfall=shortfall, tally=tally)


def _allowed(sets: _Borrowing, starts: Sequence[QueuedGang]) -> set[GangKey]:
    """Some of these starts that are allowed together, the highest priorities and oldest first."""
    allowed: list[QueuedGang] = []
    for start in sorted(starts, key=lambda start: (-start.priority, start.key))[:MOST_TRIED]:
        if sets.allows([*allowed, start]):
            allowed.append(start)
    return {start.key for start in allowed}
