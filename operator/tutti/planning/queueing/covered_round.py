"""The gangs that would be covered, chosen by one program and judged by the walk.

The rows of the program are necessary conditions of cover, and the walk decides. If the walk refuses
starts of an answer, they are left out and the program is solved again.

Starts and claims also leave the starved gang what is held for it, as ``docs/queues.md`` says.
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
from ..compile.quotas import Quotas
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from ..search.round_proof import LaterRounds
from ..search.starvation import HeldCapacity, QueuedHolder
from . import fixed_round
from .ledger import QueueLedger

MOST_ATTEMPTS = 6  # programs for one round; the last decides on allowed starts alone
MOST_TRIED = 64  # starts of one answer that the walk judges one by one
SENTENCE = "other gangs might be covered together"


@dataclass(frozen=True, slots=True, eq=False)
class HeldCover:
    """A starved gang; gangs of its queue that come after it may not take its cover."""

    gang: QueuedGang

    def binds(self, start: QueuedGang) -> bool:
        """Whether the cover is held against this start."""
        return start.queue == self.gang.queue and start.priority <= self.gang.priority


@dataclass(frozen=True, slots=True, eq=False)
class RoundContext:
    """The conditions of a round: the gangs that are charged, and the cover that is held."""

    ledger: QueueLedger
    held: HeldCover | None
    limits: SearchLimits
    later: LaterRounds
    tier: float = inf  # the highest tier of a queue that may cover a start
    started: Sequence[QueuedGang] = ()  # to be covered together with the starts of this round


class CoveredRound(NamedTuple):
    """A plan, and the gangs on which it decides; the other gangs wait for another round."""

    plan: PartialPlan
    decided: Sequence[PlacementRequest]


def covered_round(
    plan: PartialPlan, wants: Sequence[PlacementRequest], context: RoundContext
) -> CoveredRound:
    """The plan with the best set of these gangs that would be covered.

    If the walk refuses the first answer, the round decides on the top priority alone, provided that
    all its gangs that may be covered can start. The rows for the other gangs are tighter after
    that.
    """
    ledger, sets = context.ledger, _Covered(context)
    starts = [ledger.least_start(want) for want in wants]
    running, together = sets.running(starts), {gang.key for gang in context.started}
    cover = cover_rows.cover_rows(ledger.tree, running, starts, context.tier, together)
    candidates = {start.key for start in cover.starts}
    left = [want for want in wants if want.gang.key in candidates]
    rows = [QueueLimit(row.queue, row.line, row.room, 0, row.gangs) for row in cover.rows]
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
    """The plan with the best set of these gangs, whether they are covered or borrow."""
    sets = _Borrowing(context)
    answer = fixed_round.decide(plan, wants, context.limits, (), context.later)
    if sets.allows(_starts(answer, wants, context.ledger)):
        return answer
    return _cut_round(plan, wants, sets, (), answer)


@dataclass(frozen=True, slots=True, eq=False)
class _Borrowing:
    """The rule for borrowers: a set of starts leaves the held gang its cover."""

    context: RoundContext

    def allows(self, starts: Sequence[QueuedGang]) -> bool:
        """Whether these may start together."""
        held = self.context.held
        if held is None or not any(held.binds(start) for start in starts):
            return True
        running = (*self.running(starts), *starts)
        return cover.would_be_covered(self.context.ledger.tree, running, [held.gang])

    def running(self, starts: Sequence[QueuedGang]) -> Sequence[QueuedGang]:
        """The gangs that run, without gangs of ``starts`` that are charged for an earlier run."""
        again = {start.key for start in starts}
        return [gang for gang in self.context.ledger.running if gang.key not in again]


@dataclass(frozen=True, slots=True, eq=False)
class _Covered(_Borrowing):
    """The rule for covered gangs: a set of starts would also be covered."""

    def allows(self, starts: Sequence[QueuedGang]) -> bool:
        """Whether these would be covered together, and leave the held gang its cover."""
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
    """The plan with an allowed set of these gangs; the ``first`` answer is not allowed.

    The plan is proved only if the first answer is proved and the plan is worth as much.
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
    """The answer with the bounds of the first one: no allowed set is worth more than those."""
    tally = {
        level: (answer.tally.get(level, (0, None))[0], bound)
        for level, (_, bound) in first.tally.items()
    }
    if first.proved and tally == first.tally:
        return replace(answer, proved=True, shortfall=first.shortfall, tally=tally)
    shortfall = first.shortfall or answer.shortfall or SENTENCE
    return replace(answer, proved=False, shortfall=shortfall, tally=tally)


def _allowed(sets: _Borrowing, starts: Sequence[QueuedGang]) -> set[GangKey]:
    """Some of these starts that are allowed together; high priorities are tried first."""
    allowed: list[QueuedGang] = []
    for start in sorted(starts, key=lambda start: (-start.priority, start.key))[:MOST_TRIED]:
        if sets.allows([*allowed, start]):
            allowed.append(start)
    return {start.key for start in allowed}


def limits_for(
    start: QueuedGang, quotas: Quotas, hold: HeldCapacity | None, ledger: QueueLedger
) -> Quotas:
    """The limits for the claim of a gang, less what is held of them unless it comes first."""
    if hold is None or hold.holder is None:
        return quotas
    is_apart = start.key == hold.gang.key or not _share_a_limit(quotas, start.key, hold.gang.key)
    if is_apart or _comes_first(start, hold.holder, ledger):
        return quotas
    return quotas.held_for(hold.gang.key, hold.requests)


def leaves_cover(start: QueuedGang, hold: HeldCapacity | None, ledger: QueueLedger) -> bool:
    """Whether a gang that claims leaves the starved gang its cover, if that is held from it."""
    holder = None if hold is None else hold.holder
    if holder is None or not holder.is_entitled or not HeldCover(holder.gang).binds(start):
        return True
    running = (*ledger.without(holder.gang.key), start)
    return cover.would_be_covered(ledger.tree, running, [holder.gang])


def _share_a_limit(quotas: Quotas, gang: GangKey, other: GangKey) -> bool:
    return not {*quotas.of_gang.get(gang, ())}.isdisjoint(quotas.of_gang.get(other, ()))


def _comes_first(start: QueuedGang, holder: QueuedHolder, ledger: QueueLedger) -> bool:
    """Whether a gang comes before the starved gang in the order of a plan."""
    if start.queue == holder.gang.queue:
        return start.priority > holder.gang.priority
    return cover.covering_tier(ledger.tree, ledger.running, start) < holder.tier
