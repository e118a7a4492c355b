"""The value that a plan admits, by level, and upper bounds of that value.

Plans are compared by these values.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from ...model.decisions import Level
from ...strategies.problem import DemandLevel, Outcome, Problem, Solution, admitted_value

# For each level: the value that is admitted, and an upper bound of it, or None if no bound is
# known.
Tally = Mapping[DemandLevel, tuple[int, int | None]]


def is_settled(solution: Solution) -> bool:
    """Whether no better admission exists: it is proved, or nothing is left to admit."""
    return solution.outcome is Outcome.PROVED or all(solution.shares)


def most(problem: Problem, solution: Solution) -> Mapping[DemandLevel, int | None]:
    """An upper bound of the admitted value, by level; None if no bound is known."""
    bounds = dict(solution.bounds)
    return {
        level: worth if is_settled(solution) else bounds.get(level)
        for level, worth in admitted_value(problem, solution)
    }


def counted(tally: Tally, problem: Problem, solution: Solution) -> Tally:
    """The tally with one more round; a level keeps the bound of its first round."""
    bounds, added = most(problem, solution), dict(tally)
    for level, worth in admitted_value(problem, solution):
        before, known = tally.get(level, (0, bounds[level]))
        added[level] = (before + worth, known)
    return added


def raised(
    tally: Tally,
    before: Sequence[tuple[DemandLevel, int]],
    after: Sequence[tuple[DemandLevel, int]],
) -> Tally:
    """The tally after the values of these levels have changed; the bounds stay."""
    added = dict(tally)
    for (level, known), (_, new_worth) in zip(before, after, strict=True):
        worth, bound = tally.get(level, (0, None))
        added[level] = (worth + new_worth - known, bound)
    return added


def added(tally: Tally, addition: Tally) -> Tally:
    """The sum of two tallies that count different gangs."""
    sums = dict(tally)
    for level, (worth, bound) in addition.items():
        before, known = tally.get(level, (0, 0))
        total = None if bound is None or known is None else known + bound
        sums[level] = before + worth, total
    return sums


def settled(tally: Tally, priorities: Collection[int] | None = None) -> Tally:
    """The tally with each bound equal to its value, for these priorities; None means all.

    Levels without a known bound and without a started gang are left out.
    """
    return {
        level: (worth, worth if _is_among(level, priorities) else bound)
        for level, (worth, bound) in tally.items()
        if worth or bound is not None
    }


def unbounded(tally: Tally, priorities: Collection[int] | None = None) -> Tally:
    """The tally without bounds for these priorities; None means all."""
    return {
        level: (worth, None if _is_among(level, priorities) else bound)
        for level, (worth, bound) in tally.items()
    }


def _is_among(level: DemandLevel, priorities: Collection[int] | None) -> bool:
    return priorities is None or level.priority in priorities


def levels(tally: Tally, scale: Fraction) -> tuple[Level, ...]:
    """The tally by priority, the highest first; starved gangs count in their priority.

    Values are multiplied by ``scale`` and rounded.
    """
    by_priority: dict[int, Level] = {}
    for level, (worth, bound) in sorted(tally.items(), reverse=True):
        priority = level.priority
        known = by_priority.get(priority, Level(priority, 0, 0))
        is_known = bound is not None and known.bound is not None
        both = (bound or 0) + (known.bound or 0) if is_known else None
        by_priority[priority] = Level(priority, known.admitted + worth, both)
    return tuple(_scaled(level, scale) for level in by_priority.values())


def _scaled(level: Level, scale: Fraction) -> Level:
    bound = None if level.bound is None else round(level.bound * scale)
    return Level(level.priority, round(level.admitted * scale), bound)
