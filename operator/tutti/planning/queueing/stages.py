"""The stages of a plan while there are Queues, as ``docs/queues.md`` orders them.

The stages are: covered gangs, tier by tier, with the starved gang at the beginning of its tier, or
after all of them if it would not be covered, and borrowers by turns. Each stage is decided in the
room and the limits that earlier stages leave.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeVar

import numpy as np

from ...gang import demand
from ...gang.demand import MemberCounts, PlacementRequest
from ...model.cluster import Gang
from ...model.decisions import Policy
from ...model.keys import GangKey
from ...queues import cover, share
from ...queues.cover import QueuedGang
from ...queues.share import Borrower
from ..compile import capacity, problems
from ..compile.capacity import FitByShape
from ..search import bounds, round_answer, starvation
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from ..search.round_order import Round
from ..search.round_proof import LaterRounds
from ..search.starvation import HeldCapacity, QueuedHolder, StarvedGang
from . import covered_round, fixed_round, room_choice, turns_round
from .covered_round import HeldCover, RoundContext
from .fixed_round import NotCountedError
from .ledger import Entitlements, QueueLedger, extra_of, extras_at_start

Wants = Sequence[PlacementRequest]
_PartOfGang = TypeVar("_PartOfGang", PlacementRequest, MemberCounts)


@dataclass(frozen=True, slots=True)
class StarvedQueueGang:
    """The starved gang, whether it is entitled, and the tier of the queue that covers it.

    It is entitled if it would be covered without the gangs of its queue that come after it. The
    tier is infinite if it would not be covered beside all gangs that run.
    """

    gang: StarvedGang
    is_entitled: bool
    tier: float

    @property
    def want(self) -> PlacementRequest:
        """The request of the gang for places."""
        return self.gang.want


@dataclass(frozen=True, slots=True, eq=False)
class QueueStages:
    """All stages of a plan with queues; ``run`` carries them out once."""

    ledger: QueueLedger  # before the plan
    wants: Wants  # the gangs that have not started, in the order considered
    starved: StarvedQueueGang | None
    stopped: Collection[GangKey]  # gangs that may not grow
    has_borrowers: bool = True  # otherwise no gang borrows

    def most_searches(self, plan: PartialPlan) -> float:
        """The assumed number of searches of all stages, each with a share of the budget.

        Best fit answers most turns of borrowers, so the turns add no searches to it.
        """
        searches = 4.0 + 2 * (self.starved is not None)
        rules = plan.base.rules
        return searches * (1.5 if rules.affinity or rules.spread else 1.0)

    def run(self, plan: PartialPlan, limits: SearchLimits) -> PartialPlan:
        """Start gangs, and let gangs grow, stage by stage.

        If counting decides all stages, nodes are decided once, after the last stage.
        """
        counted = self._counted(plan, limits) if self.starved is None and plan.proved else None
        return self._run(plan, limits) if counted is None else counted

    def _counted(self, plan: PartialPlan, limits: SearchLimits) -> PartialPlan | None:
        """The plan if counting decides each stage and best fit places all gangs; else None."""
        unplaced = np.zeros(plan.base.requests.shape[1], dtype=np.int64)
        try:
            counted = self._run(replace(plan, unplaced=unplaced), limits)
        except NotCountedError:
            return None
        return room_choice.with_nodes(counted, limits)

    def _run(self, plan: PartialPlan, limits: SearchLimits) -> PartialPlan:
        ledger = self.ledger.with_assigned(self.ledger.counts, plan.assigned)
        stage = _Stage(self, replace(plan, hold=None), ledger, limits)
        first = self.starved
        if first is not None and not plan.has_placed(first.want):
            stage.start_first(first)
        stage.start_covered(lambda _: True)
        if self.has_borrowers:
            stage.start_borrowers()
        if stage.plan.proved:
            return stage.plan
        rules, tally = plan.base.rules, stage.plan.tally
        if all(map(stage.plan.has_placed, self.wants)):
            settled = bounds.settled(tally)
            return replace(stage.plan, proved=plan.proved, shortfall=plan.shortfall, tally=settled)
        if rules.affinity or rules.spread:
            return replace(stage.plan, tally=bounds.unbounded(tally))
        return stage.plan


def order(
    entitlements: Entitlements,
    wants: Wants,
    *,
    candidates: Sequence[StarvedGang],
    policy: Policy,
) -> QueueStages:
    """The stages for these gangs.

    ``candidates`` are starved gangs: of each queue the first that is entitled, and the first that
    is not.
    """
    ledger = entitlements.ledger
    starved = _starved(entitlements, candidates, policy)
    return QueueStages(ledger, wants, starved, ledger.queued.stopped)


def _starved(
    entitlements: Entitlements, candidates: Sequence[StarvedGang], policy: Policy
) -> StarvedQueueGang | None:
    """The first candidate: by the tier that covers it, then the entitled, then the longest wait.

    A protected gang that is not entitled is left out: it must not borrow.
    """
    ranked = [
        (entitlements.of(gang.want), starvation.falls_due(gang.want, policy), gang)
        for gang in candidates
        if not (
            entitlements.of(gang.want).must_borrow
            and entitlements.ledger.started(gang.want).is_protected
        )
    ]
    if not ranked:
        return None
    entitlement, _, first = min(ranked, key=lambda rank: (*rank[:2], rank[2].want.gang.key))
    return StarvedQueueGang(first, not entitlement.must_borrow, entitlement.tier)


@dataclass(eq=False)
class _Stage:
    """A plan while it is made, with its ledger; each public method is one stage."""

    stages: QueueStages
    plan: PartialPlan
    ledger: QueueLedger
    limits: SearchLimits
    held: HeldCover | None = None
    started: list[GangKey] = field(default_factory=list)  # covered together since members joined

    @property
    def waiting(self) -> Wants:
        """The gangs that wait, without the starved gang, which has a stage of its own."""
        starved = self.stages.starved
        first = None if starved is None else starved.want.gang.key
        return [
            want
            for want in self.stages.wants
            if want.gang.key != first and not self.plan.has_placed(want)
        ]

    def start_first(self, first: StarvedQueueGang) -> None:
        """Start the starved gang after all that comes before it, or else hold what it needs.

        Gangs of its queue that come after it wait for that in any tier. Gangs that a lower tier
        covers come before it, and so do all covered gangs if it would not be covered itself.
        """
        ledger, gang, start = self.ledger, first.want.gang, self.ledger.started(first.want)

        def is_not_behind(other: Gang) -> bool:
            return not _is_of_queue(ledger, other, gang) or other.priority > gang.priority

        def is_above(other: Gang) -> bool:
            return _is_of_queue(ledger, other, gang) and other.priority > gang.priority

        self.start_covered(is_not_behind, up_to=first.tier)
        is_covered = first.tier < inf
        if is_covered:
            self._start_of_tier(first.tier, is_above)
            running = self.ledger.running
            is_covered = cover.would_be_covered(ledger.tree, running, [start], first.tier)
            if not is_covered:
                self.start_covered(is_not_behind)
        if is_covered or not start.is_protected:
            self._start_alone(first)
        if not self.plan.has_placed(first.want):
            self._hold(first, start)
            self.held = HeldCover(start) if first.is_entitled else None
        self.started = []

    def start_covered(self, is_meant: Callable[[Gang], bool], up_to: float = inf) -> None:
        """Start the gangs that ``is_meant`` accepts and that would be covered; let gangs grow.

        The lowest tier comes first; tiers from ``up_to`` on are left out. So no gang that a parent
        covers takes the room of a gang that its own leaf covers.
        """
        for tier in self.ledger.tree.covering_tiers:
            if tier < up_to:
                self._start_of_tier(tier, is_meant)

    def _start_of_tier(self, tier: float, is_meant: Callable[[Gang], bool]) -> None:
        """Start the gangs that queues up to this tier would cover, and let gangs grow with them.

        Successive priorities are decided together, up to each priority at which gangs may grow.
        """
        waiting = [want for want in self.waiting if is_meant(want.gang)]
        growing = [
            counts
            for counts in self._growing(want.gang.key for want in waiting)
            if is_meant(counts.gang)
        ]
        # Grouped once, because each gang may have a priority of its own.
        wants, levels = _by_priority(waiting), _by_priority(growing)
        together: list[PlacementRequest] = []
        for priority in sorted(wants.keys() | levels.keys(), reverse=True):
            together += wants.get(priority, ())
            if level := levels.get(priority):
                self._start_together(together, tier)
                self._extend_covered(level, tier)
                self.started, together = [], []
        self._start_together(together, tier)

    def start_borrowers(self) -> None:
        """Start gangs that borrow, and let gangs grow, by turns.

        The turns count earlier gangs as started, so they are computed again once a gang does not
        start.
        """
        gangs = [want for want in self.waiting if not self.ledger.started(want).is_protected]
        left = [*gangs, *self._extras(self._growing(None))]
        while left := [*self._that_may_start(left)]:
            borrowers = {self.ledger.borrower(want): want for want in left}
            if self._start_all_turns(borrowers):
                return
            turns = share.turns(self.ledger.shares, borrowers)
            for together in share.decided_together(turns):
                level = [borrowers[gang] for gang in together]
                tried = {id(want) for want in level}
                left = [want for want in left if id(want) not in tried]
                more = self._borrow(level)
                left += more
                is_whole = all(self.plan.has_placed(want) for want in level)
                if more or not is_whole or len(self._that_may_start(left)) < len(left):
                    break

    def _start_all_turns(self, borrowers: Mapping[Borrower, PlacementRequest]) -> bool:
        """Start the gangs of all turns by one decision, and return whether that was possible.

        It is possible only if the decision is proved and no gang may grow.
        """
        plan, rules = self.plan, self.plan.base.rules
        is_open = plan.proved and self.limits.strategy is not self.limits.fallback
        growing = self._growing({borrower.key for borrower in borrowers}) if is_open else ()
        if not is_open or self.held is not None or growing or rules.affinity or rules.spread:
            return False
        answer = turns_round.decide(plan, borrowers, self.ledger.shares, self.limits)
        if answer is not None:
            self._take(answer, [*borrowers.values()])
        return answer is not None

    def _borrow(self, level: Wants) -> Wants:
        """Start the gangs of one turn, and let further members of this turn join.

        Returns the further members of the gangs that started, which wait for turns of their own.
        """
        gangs = [want for want in level if want.gang.key not in self.ledger.begun]
        extras = [want for want in level if want.gang.key in self.ledger.begun]
        if gangs:
            context = self._context(gangs)
            self._take(covered_round.borrowing_round(self.plan, gangs, context), gangs)
        if extras:
            self._extend(extras)
        new = [want.gang.key for want in gangs if self.plan.has_placed(want)]
        return self._extras([self.ledger.counts[key] for key in new])

    def _start_together(self, wants: Wants, tier: float) -> None:
        while wants := self._that_may_start(wants):
            started = [self.ledger.gangs[key] for key in self.started]
            context = replace(self._context(wants), tier=tier, started=started)
            answer = covered_round.covered_round(self.plan, wants, context)
            self._take(answer.plan, answer.decided)
            decided = {want.gang.key for want in answer.decided}
            placed = (want for want in answer.decided if self.plan.has_placed(want))
            self.started += (want.gang.key for want in placed)
            wants = [want for want in wants if want.gang.key not in decided]

    def _context(self, wants: Wants) -> RoundContext:
        rules, later = self.plan.base.rules, LaterRounds(self.plan.base, (), ())
        if rules.affinity or rules.spread:
            keys = {want.gang.key for want in wants}
            others = tuple(want for want in self.waiting if want.gang.key not in keys)
            growing = self._growing(self.ledger.counts)
            later = replace(later, growing=growing, remaining=[Round(others)])
        return RoundContext(self.ledger, self.held, self.limits, later)

    def _start_alone(self, first: StarvedQueueGang) -> None:
        want = replace(first.want, is_starved=True)
        later = self._context([want]).later
        self._take(fixed_round.decide(self.plan, [want], self.limits, (), later), [want])
        if not self.plan.has_placed(want):
            started = round_answer.start_as_in_the_empty_cluster(
                replace(self.plan, tally={}), first.gang, self.limits
            )
            self._take(started, [want])

    def _hold(self, first: StarvedQueueGang, start: QueuedGang) -> None:
        """Hold what the starved gang needs; no room on nodes while a limit keeps it waiting."""
        if problems.exceeded(self.plan.base, first.want, self.plan.quotas):
            hold = HeldCapacity(first.want.gang, np.zeros_like(self.plan.free), nodes=0)
        else:
            hold = starvation.hold(first.gang, self.plan.free)
        holder = QueuedHolder(start, first.tier, first.is_entitled)
        hold = replace(hold, is_from_all=True, requests=start.minimum, holder=holder)
        self.plan = replace(self.plan, hold=hold)

    def _take(self, answer: PartialPlan, wants: Wants) -> None:
        """Go on with an answer; its tally counts its round alone."""
        tally = bounds.added(self.plan.tally, answer.tally)
        self.plan = replace(answer, tally=tally)
        placed = (want.gang.key for want in wants if self.plan.has_placed(want))
        self.ledger = self.ledger.with_assigned(placed, self.plan.assigned)

    def _that_may_start(self, wants: Wants) -> Wants:
        """The gangs that neither counts of room nor limits rule out now.

        While borders are decided, gangs that have started count as if they could move.
        """
        plan = self.plan
        totals = fixed_round.room_in_total(plan)
        has_borders = plan.proved and self.limits.strategy is not self.limits.fallback
        rooms = plan.above.fit if has_borders else FitByShape(plan.base, plan.room)
        known: dict[tuple[int, int], bool] = {}  # by what a gang of equal members requests

        def has_room(want: PlacementRequest) -> bool:
            kind = want.need, id(want.members[0].shape)
            is_equal = len(want.alike) == 1 and not want.minimums
            if not (is_equal and kind in known):
                fits = fixed_round.fits_by_totals(plan, want, totals)
                fits = fits and capacity.short(rooms, want) is None
                if not is_equal:
                    return fits
                known[kind] = fits
            return known[kind]

        return [
            want
            for want in wants
            if has_room(want) and not problems.exceeded(plan.base, want, plan.quotas)
        ]

    def _growing(self, new: Iterable[GangKey] | None) -> Sequence[MemberCounts]:
        """The gangs that could grow: of the gangs that have begun, and of the ``new`` ones."""
        among = None if new is None else {*new}
        return [
            counts
            for key, counts in self.ledger.counts.items()
            if (key in self.ledger.begun or (among is not None and key in among))
            and key not in self.stages.stopped
            and self._may_grow(counts)
        ]

    def _may_grow(self, counts: MemberCounts) -> bool:
        """Whether members beyond those needed wait; a replacement of a lost member is needed."""
        if counts.is_committed:
            return bool(demand.growth_requests(counts, self.plan.assigned))
        return self.ledger.may_grow(counts)

    def _extras(self, growing: Iterable[MemberCounts]) -> Wants:
        return [
            want
            for counts in growing
            if counts.gang.key not in self.stages.stopped
            for want in self._growth_requests(counts)
        ]

    def _growth_requests(self, counts: MemberCounts) -> Wants:
        """A request for each further member; of a gang that starts, members that stay extras."""
        wants = demand.growth_requests(counts, self.plan.assigned)
        if counts.is_committed:
            return wants
        extras = extras_at_start(counts, self.plan.assigned)
        return [want for want in wants if extras >= {*want.uids}]

    def _extend_covered(self, growing: Sequence[MemberCounts], tier: float) -> None:
        """Let members join that a queue up to this tier would cover."""
        if extras := self._extras(growing):
            tree = self.ledger.tree
            queues = cover.walk(tree, self._running_with(extras)).extras
            covered = {extra for extra, queue in queues.items() if tree.tiers[queue] <= tier}
            self._extend([w for w in extras if (w.gang.key, extra_of(w)[0]) in covered])

    def _extend(self, wants: Wants) -> None:
        """Let further members join by best fit; the proof does not cover which of them join."""
        before, wants = self.plan, self._without_held_cover(wants)
        quick = replace(self.limits, strategy=self.limits.fallback)
        plan = fixed_round.decide(before, wants, quick)
        self.plan = replace(
            plan, proved=before.proved, shortfall=before.shortfall, tally=before.tally
        )
        placed = (want.gang.key for want in wants if self.plan.has_placed(want))
        self.ledger = self.ledger.with_assigned(placed, self.plan.assigned)

    def _without_held_cover(self, extras: Wants) -> Wants:
        """The further members that leave the starved gang its cover.

        If the members against which the cover is held would take it together, all of these are left
        out.
        """
        if self.held is None:
            return extras
        held = self.held
        keys = {want.gang.key for want in extras}
        bound = {key for key in keys if held.binds(self.ledger.gang(key))}
        joining = [want for want in extras if want.gang.key in bound]
        if cover.would_be_covered(self.ledger.tree, self._running_with(joining), [held.gang]):
            return extras
        return [want for want in extras if want.gang.key not in bound]

    def _running_with(self, extras: Wants) -> Sequence[QueuedGang]:
        """The gangs that run, as if these members had joined them."""
        gangs = {**self.ledger.gangs}
        for want in extras:
            known = gangs.get(want.gang.key) or self.ledger.gang(want.gang.key)
            gangs[want.gang.key] = replace(known, extras=(*known.extras, extra_of(want)))
        return [*gangs.values()]


def _is_of_queue(ledger: QueueLedger, gang: Gang, first: Gang) -> bool:
    """Whether a gang is of the queue of the starved gang, which is ``first``."""
    return ledger.queued.queue_of(gang) == ledger.queued.queue_of(first)


def _by_priority(parts: Iterable[_PartOfGang]) -> Mapping[int, Sequence[_PartOfGang]]:
    """The parts by the priority of their gang, in the same order."""
    by_priority: dict[int, list[_PartOfGang]] = {}
    for part in parts:
        by_priority.setdefault(part.gang.priority, []).append(part)
    return by_priority
