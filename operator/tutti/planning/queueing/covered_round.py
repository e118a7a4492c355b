"""The gangs that would be covered, as one program: its rows are necessary, and the walk decides.

Where the walk refuses starts of an answer, they are left out and the program is solved again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

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
    tier: float = inf  # of the queues that may cover what starts, at most
    started: Sequence[QueuedGang] = ()  # covered together with what this round starts


class CoveredRound(NamedTuple):
    """A plan, and the gangs on which it decides; others wait for another round."""

    plan: PartialPlan
    decided: Sequence[PlacementRequest]


def covered_round(
    plan: PartialPlan, wants: Sequence[PlacementRequest], context: RoundContext
) -> CoveredRound:
    """The plan with the best set of these gangs that would be covered.

    Where the walk refuses the first answer, and all gangs of the top priority can start that may
    be covered at all, these are decided on: the rows of the others are closer once they start.
    """
    ledger, sets = context.ledger, _Covered(context)
    starts = [ledger.least_start(want) for want in wants]
    running, together = sets.running(starts), {gang.key for gang in context.started}
    found = cover_rows.cover_rows(ledger.tree, running, starts, context.tier, together)
    candidates = {start.key for start in found.starts}
    left = [want for want in wants if want.gang.key in candidates]
    rows = [QueueLimit(row.queue, row.line, row.room, 0, row.gangs) for row in found.rows]
    answer = fixed_round.decide(plan, left, context.limits, rows, context.later)
    if sets.allows(_starts(answer, left, ledger)):
        return CoveredRound(answer, wants)
    top = max(want.gang.priority for want in left)
    level = [want for want in left if want.gang.priority == top]
    if len(level) < len(left):
        alone = fixed_round.decide(plan, level, context.limits, rows, context.later)
        starts = _starts(alone, level, ledger)
        if len(starts) == len(level) and sets.allows(starts):
            return CoveredRound(alone, level)
    return CoveredRound(_cut_round(plan, left, sets, rows, answer), wants)


def borrowing_round(
    plan: PartialPlan, wants: Sequence[PlacementRequest], context: RoundContext
) -> PartialPlan:
    """The plan with the best set of these gangs, whatever covers them."""
    sets = _Borrowing(context)
    answer = fixed_round.decide(plan, wants, context.limits, (), context.later)
    if sets.allows(_starts(answer, wants, context.ledger)):
        return answer
    return _cut_round(plan, wants, sets, (), answer)


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
        tree, together = self.context.ledger.tree, (*self.context.started, *starts)
        running = self.running(together)
        tier = self.context.tier
        is_covered = not starts or cover.would_be_covered(tree, running, together, tier)
        return is_covered and _Borrowing.allows(self, starts)


def _cut_round(
    plan: PartialPlan,
    wants: Sequence[PlacementRequest],
    sets: _Borrowing,
    rows: Sequence[QueueLimit],
    first: PartialPlan,
) -> PartialPlan:
    """The plan with an allowed set of these gangs, for the ``first`` answer is not allowed.

    It is not proved, unless it is worth as much as that.
    """
    answer, context = first, sets.context
    for attempt in range(MOST_ATTEMPTS):
        starts = _starts(answer, wants, context.ledger)
        if sets.allows(starts):
            return _judged(answer, first)
        allowed = _allowed(sets, starts)
        placed = {start.key for start in starts}
        is_last = attempt == MOST_ATTEMPTS - 2
        wants = [
            want
            for want in wants
            if want.gang.key in allowed or not (is_last or want.gang.key in placed)
        ]
        answer = fixed_round.decide(plan, wants, context.limits, rows, context.later)
    return replace(plan, proved=False, shortfall=plan.shortfall or SENTENCE, tally={})


def _starts(
    answer: PartialPlan, wants: Sequence[PlacementRequest], ledger: QueueLedger
) -> list[QueuedGang]:
    """The gangs that start by an answer, with what their chosen members request."""
    placed = [want.gang.key for want in wants if answer.has_placed(want)]
    after = ledger.with_assigned(placed, answer.assigned)
    return [after.gangs[key] for key in placed]


def _judged(answer: PartialPlan, first: PartialPlan) -> PartialPlan:
    """The answer, held against the first one: no allowed set is worth more than that."""
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
