"""The best admission level by level, if no rule between members applies.

A relaxation bounds the value. If the bound is above the best known answer, the engine searches
among all patterns that a better answer could use.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, product
from math import floor, gcd, prod
from operator import mul
from time import monotonic

from ..best_fit import best_fit
from ..checks import is_sound, shape_demand_of, worth
from ..domains.segment_copies import SegmentCopies
from ..problem import DemandLevel, Outcome, Problem, Shares
from ..shape_demand import ShapeDemand, condensed
from ..work import Work
from .columns import ColumnPool, LpRelaxation, Use
from .decode import split, whole_numbers
from .engine import WITHOUT_CUTS, Answer, Engine, SolverLimits
from .exchange import Exchange
from .patterns import node_classes
from .program import Program
from .relaxation import without_ample

TOO_COARSE = "its arithmetic was too coarse for a proof"
TOO_RICH = "nodes can be filled in too many ways for a proof"
TOO_MANY = "there are too many priorities for a proof"
LISTING, EXCHANGING = 0.25, 0.5  # shares of the work
MOST_LEVELS = 100  # levels that an engine runs for
CLOSE = 0.01  # relative to the bound: an exchange that comes this close is good enough
FAR = 0.02  # relative to the bound: an exchange that ends farther begins again elsewhere
CLOSEST = 0.0025  # relative to the bound: exchanges stop this close to it
SMALL = 2_000  # variables; a program with no more of them may be searched in several ways
MOST_COLUMNS = 6_000  # patterns that one program adds beyond the first
MOST_WEIGHTS, MOST_SUMS = 64, 1_000  # different values; sums of the few odd values
SLACK = 1e-9  # relative error of an engine's arithmetic in a bound


@dataclass(frozen=True, slots=True)
class LevelResult:
    """What is known of one level, given the values of the levels above."""

    level: DemandLevel
    outcome: Outcome
    bound: int
    detail: str = ""


class LevelSearch:
    """The program of one problem, and the best answer so far."""

    best: Shares

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[int],
        engine: Engine,
        best: Shares,
        work: Work,
        *,
        attempts: int = 1,
    ) -> None:
        """Search a small program in so many ways at most, until one search ends."""
        problem = without_ample(problem, candidates)
        self._problem, self._engine, self._levels_run = problem, engine, 0
        self._attempts = attempts
        self._exchanging = work.part(EXCHANGING)
        self._candidates = frozenset(candidates)
        self._copies = SegmentCopies(problem, candidates)
        copied = self._copies.problem
        self._free, self._shape_demand = condensed(copied.free, shape_demand_of(copied, candidates))
        rows = self._shape_demand.shapes
        classes = node_classes(
            self._free, copied.allowed[rows], self._shape_demand, work.part(LISTING)
        )
        self._program = Program(
            copied, candidates, self._shape_demand, classes, self._copies.by_demand
        )
        self._columns = ColumnPool(self._program)
        self._columns.seed()
        self.turn_to(best)
        self.levels = self._program.levels

    def settle(self, level: DemandLevel, effort: SolverLimits) -> LevelResult:
        """Find the best answer of one level that keeps the values of the levels above."""
        result = self.find(level, effort)
        self.keep(level)
        return result

    def find(self, level: DemandLevel, effort: SolverLimits) -> LevelResult:
        """Find the best answer of one level, as ``settle`` does, but do not keep its value yet."""
        unit = self._program.aim(level)
        everything = self._program.everything(level)
        result = LevelResult(level, Outcome.PROVED, everything)
        if self._value(level) == everything:
            return result
        if effort.seconds <= 0 or self._levels_run >= MOST_LEVELS:
            why = "" if effort.seconds <= 0 else TOO_MANY
            return LevelResult(level, Outcome.BUDGET_EXHAUSTED, everything, why)
        self._levels_run += 1
        return self._improve(level, unit, effort)

    def keep(self, level: DemandLevel) -> None:
        """Demand that later answers keep this level's value in the best answer so far."""
        self._program.keep(level, self._value(level))

    def turn_to(self, best: Shares) -> None:
        """Make this the best answer so far, although another answer may have a higher value."""
        self.best = best
        copies = self._copies
        self._columns.cover(_used(copies.problem, self._shape_demand, copies.with_copies(best)))

    def _improve(self, level: DemandLevel, unit: int, effort: SolverLimits) -> LevelResult:
        """Search for an answer that has a higher value on this level than the best so far."""
        until = monotonic() + effort.seconds
        # A gang that is alone starts or does not: no answer comes close, so it is worth the time.
        is_choice = len(self._candidates) > 1 and self._attempts == 1
        attempt = WITHOUT_CUTS if is_choice and self._program.is_rough else 0

        def run(*, relaxed: bool) -> Answer:
            remaining_effort = replace(effort, seconds=until - monotonic(), attempt=attempt)
            return self._engine.run(self._program.lp, remaining_effort, relaxed=relaxed)

        relaxed = self._columns.relax(partial(run, relaxed=True))
        if isinstance(relaxed, Answer):
            return LevelResult(level, relaxed.outcome, 0, relaxed.detail)
        bound = self._largest_sum(relaxed.bound)
        if self._program.is_counted and self._is_close(level, relaxed, bound * unit):
            return LevelResult(level, Outcome.BUDGET_EXHAUSTED, bound * unit, TOO_RICH)
        new_columns = self._columns.cheapest(relaxed)
        while bound * unit > self._value(level):
            self._columns.add(new_columns)
            answer = run(relaxed=False)
            if answer.outcome is Outcome.FAILED:
                return LevelResult(level, answer.outcome, 0, answer.detail)
            known = self._value(level)
            self._take_in(answer, level)
            value = self._value(level)
            new_columns = self._columns.useful(relaxed, relaxed.bound - value / unit)
            if answer.outcome is Outcome.PROVED and 0 < len(new_columns) <= MOST_COLUMNS:
                continue
            if not len(new_columns):
                bound = min(bound, max(value // unit, self._bound(answer, known // unit, bound)))
            attempt += 1
            is_last = attempt >= self._attempts or not self._is_small(len(new_columns))
            if bound * unit > value and (is_last or answer.outcome is Outcome.PROVED):
                why = self._why(answer, is_complete=not len(new_columns))
                return LevelResult(level, Outcome.BUDGET_EXHAUSTED, bound * unit, why)
        return LevelResult(level, Outcome.PROVED, self._value(level))

    def _is_small(self, columns: int) -> bool:
        """Whether the program is small, with so many more columns."""
        return len(self._program.lp.variables()) + columns <= SMALL

    def _is_close(self, level: DemandLevel, relaxed: LpRelaxation, bound: int) -> bool:
        """Exchange single members, and place all gangs anew by price; keep the best answer.

        Return whether it is too close to the bound for a program to help. Exchanges begin at the
        best answer so far. If that leaves much, they begin again at the answer by price, unless it
        is worse than where they began before.
        """
        known = self._value(level)
        is_choice = self._exchange(level, relaxed, bound, self.best)
        by_price = self._placed_by_price(level, relaxed.ratios)
        self._keep_better(by_price)
        is_far = bound - self._value(level) > FAR * bound
        if is_choice and is_far and self._worth(by_price, level) > known:
            self._exchange(level, relaxed, bound, by_price)
        may_close = is_choice and self._program.is_rough
        return may_close and 0 < bound - self._value(level) <= CLOSE * bound

    def _exchange(
        self, level: DemandLevel, relaxed: LpRelaxation, bound: int, start: Shares
    ) -> bool:
        """Exchange single members of an answer; return whether a gang waits to be exchanged."""
        prices = dict(zip(self._shape_demand.shapes.tolist(), relaxed.prices.tolist(), strict=True))
        exchange = Exchange(self._problem, sorted(self._candidates), level, start, prices)
        if exchange.is_choice:
            enough = floor((1 - CLOSEST) * bound) - self._worth(start, level)
            exchange.run(enough, self._exchanging)
            self._fill_up(exchange.shares(), level)
        return exchange.is_choice

    def _placed_by_price(self, level: DemandLevel, ratios: Mapping[int, float]) -> Shares:
        """All gangs of the level placed anew by best fit, the most value for its price first.

        Gangs of levels above stay where they are. A gang that is alone on its level has been tried
        like this already. Source of the order: the greedy heuristic for knapsacks with several
        constraints, by dual prices (Pirkul, Naval Research Logistics 34, 1987).
        """
        order = sorted(ratios.keys() & self._candidates, key=lambda i: (-ratios[i], i))
        if len(order) == 1:
            return self.best
        demands = self._problem.demands
        above = tuple(own if demands[i].level > level else () for i, own in enumerate(self.best))
        return self._filled_up(best_fit(self._problem, order, above), level)

    def _bound(self, answer: Answer, known: int, bound: int) -> int:
        """A bound of all answers of the present program, in the unit of its objective.

        An optimum that is not integral, or is below a known value, is not believed.
        """
        if answer.outcome is Outcome.PROVED:
            value = self._program.value(answer.values)
            is_credible = whole_numbers(answer.values) is not None and round(value) >= known
            return round(value) if is_credible else bound
        return bound if answer.bound is None else self._largest_sum(answer.bound)

    def _largest_sum(self, bound: float) -> int:
        """The largest value that a bound allows, in the unit of the objective."""
        return largest_sum(whole_bound(bound), self._program.weights())

    def _why(self, answer: Answer, *, is_complete: bool) -> str:
        """Why a level is not settled; empty if the budget ended."""
        if answer.outcome is not Outcome.PROVED:
            return ""
        if not is_complete or any(filling.whole for filling in self._program.fillings):
            return TOO_RICH
        return f"{self._engine.name}: {TOO_COARSE}"

    def _take_in(self, answer: Answer, level: DemandLevel) -> None:
        """Keep an answer if it has a higher value; best fit places the lower levels."""
        problem, numbers = self._problem, whole_numbers(answer.values)
        if numbers is None:
            return
        copies = self._copies
        shares = copies.without_copies(split(copies.problem, self._program, numbers, self._free))
        if not is_sound(problem, shares):
            # Classes counted as a whole may promise too much: the most valuable gangs come first.
            started = [i for i, own in enumerate(shares) if own]
            shares = best_fit(problem, sorted(started, key=lambda i: -problem.demands[i].value))
        self._fill_up(shares, level)

    def _fill_up(self, shares: Shares, level: DemandLevel) -> None:
        """Place gangs that have room beside these shares, and keep all if the value is higher."""
        self._keep_better(self._filled_up(shares, level))

    def _filled_up(self, shares: Shares, level: DemandLevel) -> Shares:
        """These shares, and gangs that have room beside them."""
        rest = [i for i, own in enumerate(shares) if not own and self._is_worth_a_try(i, level)]
        return best_fit(self._problem, rest, shares)

    def _keep_better(self, shares: Shares) -> None:
        if worth(self._problem, shares) > worth(self._problem, self.best):
            self.turn_to(shares)

    def _is_worth_a_try(self, index: int, level: DemandLevel) -> bool:
        return index in self._candidates and self._problem.demands[index].level <= level

    def _value(self, level: DemandLevel) -> int:
        return self._worth(self.best, level)

    def _worth(self, shares: Shares, level: DemandLevel) -> int:
        return dict(worth(self._problem, shares))[level]


def whole_bound(bound: float) -> int:
    """The largest integer that a bound allows."""
    return floor(bound + SLACK * abs(bound) + 1e-6)


def largest_sum(bound: int, counts: Mapping[int, int]) -> int:
    """An upper bound of all sums of weights that are at most ``bound``.

    ``counts`` says how often each weight may occur. Most gangs' values share a unit, and the values
    of a few gangs do not. Beside each sum of those few, the other values are a multiple of the
    unit.
    """
    if len(counts) > MOST_WEIGHTS:
        return bound
    largest = bound
    for unit in {gcd(*pair) for pair in combinations_with_replacement(counts, 2)}:
        odd = [weight for weight in counts if weight % unit]
        if prod(counts[weight] + 1 for weight in odd) <= MOST_SUMS:
            times = product(*(range(counts[weight] + 1) for weight in odd))
            sums = {sum(map(mul, odd, duration)) for duration in times}
            tops = (n + (bound - n) // unit * unit for n in sums if n <= bound)
            largest = min(largest, max(tops, default=bound))
    return largest


def _used(problem: Problem, shape_demand: ShapeDemand, shares: Shares) -> Mapping[int, Use]:
    """By node: how many members of each shape these shares put there."""
    row_of = {shape: row for row, shape in enumerate(shape_demand.shapes.tolist())}
    used = defaultdict[int, Counter[int]](Counter)
    for demand, own in zip(problem.demands, shares, strict=True):
        for share in own:
            used[share.node][row_of[demand.parts[share.part].shape]] += share.count
    return {node: frozenset(counts.items()) for node, counts in used.items()}
