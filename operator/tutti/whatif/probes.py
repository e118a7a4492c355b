"""The planner run on changed Snapshots, a bounded number of times.

The questions themselves are elsewhere; they differ only in how they change the Snapshot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ..gang import slots
from ..model.cluster import Snapshot
from ..model.decisions import Plan, Policy
from ..model.keys import GangKey
from ..planning import plan as planning
from ..strategies.problem import Budget, Strategy
from .results import Certainty


@dataclass(frozen=True, slots=True)
class Planner:
    """The strategies, the budget and the policy: what a plan depends on beside the Snapshot."""

    strategy: Strategy
    fallback: Strategy
    budget: Budget
    policy: Policy = planning.DEFAULT_POLICY

    def plan(self, snapshot: Snapshot) -> Plan:
        """The plan for a Snapshot."""
        return planning.plan(snapshot, self.strategy, self.fallback, self.budget, self.policy)


class ProbeResult(Enum):
    """Whether the gang starts in a changed Snapshot."""

    STARTS = "starts"
    WAITS = "waits"  # and the plan is proved
    NOT_FOUND = "not found"


class Prober:
    """One gang's questions to the planner, counted; each question has its own allowance."""

    def __init__(self, planner: Planner, gang: GangKey, members: int) -> None:
        """A plan is a yes if it places so many members of the gang."""
        self._planner, self._gang, self._members = planner, gang, members
        self._plans_left = 0
        self.plans = 0

    def allow(self, plans: int) -> None:
        """Begin a question that may cost so many plans."""
        self._plans_left = plans

    def verdict(self, snapshot: Snapshot) -> ProbeResult | None:
        """Whether the gang starts in this Snapshot; None once the allowance is used up."""
        if self._plans_left < 1:
            return None
        self._plans_left -= 1
        self.plans += 1
        plan = self._planner.plan(snapshot)
        own = [p for p in plan.placements if p.gang == self._gang]
        placed = sum(len(p.assignments) + slots.number(p.slots) for p in own)
        reservations = (
            reservation for reservation in snapshot.reservations if reservation.gang == self._gang
        )
        placed -= sum(slots.number(reservation.slots) for reservation in reservations)
        if placed >= self._members:
            return ProbeResult.STARTS
        return ProbeResult.WAITS if plan.proved else ProbeResult.NOT_FOUND


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The number that a search ended with; None: no number was a yes."""

    number: int | None
    certainty: Certainty
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SearchRange:
    """Where to search: numbers below ``least`` are a no, ``is_proved`` or only supposed."""

    least: int
    most: int
    guesses: Sequence[int]  # tried first, in this order, until one is a yes
    is_proved: bool = True


def first_yes(ask: Callable[[int], ProbeResult | None], span: SearchRange) -> SearchResult:
    """A number that is a yes while the one before is a no: the first yes, if answers do not turn.

    The guesses are tried, then ever larger numbers, then halves. Proved: that no is.
    """
    no, is_proved, yes = span.least - 1, span.is_proved, None
    guesses, step = list(span.guesses), 1
    while yes is None or yes - no > 1:
        guesses = [n for n in guesses if n > no]
        if guesses:
            number = guesses.pop(0)
        elif yes is not None:
            number = (no + yes) // 2
        elif no >= span.most:
            return SearchResult(None, Certainty.TRIED)
        else:
            number, step = min(no + step, span.most), step * 2
        match ask(number):
            case None:
                return SearchResult(yes, Certainty.TRIED, cut=True)
            case ProbeResult.STARTS:
                # Guesses are good: the number below is most often the no.
                guesses = [number - 1] if yes is None else []
                yes = number
            case answer:
                no, is_proved = number, answer is ProbeResult.WAITS
    return SearchResult(yes, Certainty.of(proved=is_proved))
