"""Runs the planner on changed Snapshots, a limited number of times.

Other modules have the questions, which differ only in how they change the Snapshot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ..gang import slots
from ..model.cluster import Snapshot
from ..model.decisions import Plan, Policy
from ..model.keys import GangKey, NodeName
from ..planning import plan as planning
from ..strategies.problem import Budget, Strategy
from .results import Certainty


@dataclass(frozen=True, slots=True)
class Planner:
    """The inputs of a plan besides the Snapshot: strategies, budget and policy."""

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
    """Runs and counts the plans for questions about one gang; each question has a limit."""

    def __init__(self, planner: Planner, gang: GangKey, members: int) -> None:
        """The gang counts as started if a plan places at least ``members`` members of it."""
        self._planner, self._gang, self._members = planner, gang, members
        self._plans_left = 0
        self.plans = 0
        # Of a member, by the latest plan that starts the gang; empty if it only reserves slots.
        self.node = NodeName("")

    def allow(self, plans: int) -> None:
        """Begin a question that may use ``plans`` plans."""
        self._plans_left = plans

    def verdict(self, snapshot: Snapshot) -> ProbeResult | None:
        """Whether the gang starts in this Snapshot; None once the limit of plans is reached."""
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
            self.node = next(
                (assignment.node for p in own for assignment in p.assignments), NodeName("")
            )
            return ProbeResult.STARTS
        return ProbeResult.WAITS if plan.proved else ProbeResult.NOT_FOUND


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search; ``number`` is None if no number was a yes."""

    number: int | None
    certainty: Certainty
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SearchRange:
    """The range to search: numbers below ``least`` are a no, by proof or by assumption."""

    least: int
    most: int
    guesses: Sequence[int]  # tried first, in this order, until one is a yes
    is_proved: bool = True


def first_yes(ask: Callable[[int], ProbeResult | None], span: SearchRange) -> SearchResult:
    """A number that is a yes while the number before it is a no.

    It is the smallest yes if every number after a yes is a yes. The guesses are tried first, then
    larger and larger numbers, then halves. The result is proved if the no is proved.
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
                # Guesses are good: the number below is most often a no.
                guesses = [number - 1] if yes is None else []
                yes = number
            case answer:
                no, is_proved = number, answer is ProbeResult.WAITS
    return SearchResult(yes, Certainty.of(proved=is_proved))
