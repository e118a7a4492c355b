"""The order of a plan by enumeration: every subset of the gangs that wait is tried.

The stages are those of ``docs/queues.md`` without repairs: gangs that would be covered, those
by their leaves first, then borrowers by their turns. Starvation is in ``histories``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from . import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .reference import Amounts, Job, World


PODS = 1000  # on each node


class Answer(NamedTuple):
    """What starts: covered by tier, as a borrower, and the steps of each borrower that starts."""

    by_tier: dict[int, list[Job]]  # the lowest first
    borrowing: list[Job]
    tried: dict[str, tuple[int, ...]]

    @property
    def covered(self) -> list[Job]:
        """All that start covered."""
        return [job for jobs in self.by_tier.values() for job in jobs]

    @property
    def starts(self) -> list[Job]:
        """All of them."""
        return [*self.covered, *self.borrowing]


def plan(world: World) -> Answer:
    """The best plan, stage by stage; of equal values the first by names."""
    running = [j for j in world.jobs if j.start is not None]
    waiting = [j for j in world.jobs if j.start is None]
    room = free(world, running)
    by_tier = _covered(world, running, waiting, room)
    covered = [job for jobs in by_tier.values() for job in jobs]
    left = [j for j in waiting if j not in covered]
    borrowing: list[Job] = []
    tried: dict[str, tuple[int, ...]] = {}
    while left := _that_may_borrow(world, (running, room), [*covered, *borrowing], left):
        there = [*running, *covered, *borrowing]
        steps = reference.turns(world, there, left)
        level = _next(world, steps, left)
        before = [*covered, *borrowing]
        more = _best(
            level,
            lambda some: _value(world, some),
            lambda some, before=before: is_lawful(world, running, [*before, *some], room),  # type: ignore[misc]
        )
        left = [j for j in left if j not in level]
        # Those of its queue that do not start in its favour no longer count.
        again = reference.turns(world, there, [*more, *left])
        tried |= {j.name: again[j.name] for j in more}
        borrowing += more
    return Answer(by_tier, borrowing, tried)


def outcomes(world: World) -> set[frozenset[str]]:
    """The starts of all best plans: of sets of equal value any may be decided on."""
    running = [j for j in world.jobs if j.start is not None]
    waiting = [j for j in world.jobs if j.start is None]
    room = free(world, running)
    found = set[frozenset[str]]()
    for covered in _all_covered(world, running, waiting, room):
        left = [j for j in waiting if j not in covered]
        _borrow(world, (running, room), covered, left, found)
    return found


def _all_covered(
    world: World, running: list[Job], waiting: list[Job], room: list[Amounts]
) -> list[list[Job]]:
    """All sets that the covered rounds may start, one round after another."""
    found: list[list[Job]] = [[]]
    for tier in tiers(world):
        found = [
            [*before, *more]
            for before in found
            for more in _all_best(
                [j for j in waiting if j not in before],
                _worth(world, waiting),
                _may_join(world, running, before, room, tier),
            )
        ]
    return found


def tiers(world: World) -> list[int]:
    """The tiers of queues, the lowest first."""
    return sorted({world.tier(team) for team in world.teams})


def _may_join(
    world: World, running: list[Job], before: list[Job], room: list[Amounts], tier: int
) -> Callable[[list[Job]], bool]:
    """Whether all that start by now would be covered up to this tier, and are lawful."""

    def is_allowed(some: list[Job]) -> bool:
        starts = [*before, *some]
        return is_lawful(world, running, starts, room) and are_covered(world, running, starts, tier)

    return is_allowed


def _borrow(
    world: World,
    there: tuple[list[Job], list[Amounts]],
    before: list[Job],
    left: list[Job],
    found: set[frozenset[str]],
) -> None:
    """All ways in which the borrowers that are left may start."""
    running, room = there
    left = _that_may_borrow(world, there, before, left)
    if not left:
        found.add(frozenset(j.name for j in before))
        return
    steps = reference.turns(world, [*running, *before], left)
    level = _next(world, steps, left)
    others = [j for j in left if j not in level]
    for more in _all_best(
        level,
        lambda some: (_value(world, some),),
        lambda some: is_lawful(world, running, [*before, *some], room),
    ):
        _borrow(world, there, [*before, *more], others, found)


def _that_may_borrow(
    world: World, there: tuple[list[Job], list[Amounts]], before: list[Job], left: list[Job]
) -> list[Job]:
    """Who would start if it alone could say where all others are, as far as totals tell."""
    running, room = there
    rest = [sum(node[r] for node in room) - sum(j.size[r] for j in before) for r in world.resources]
    return [
        j
        for j in left
        if all(n <= most for n, most in zip(j.size, rest, strict=True))
        and is_lawful(world, running, [j], room)
        and reference.within_limits(world, running, [*running, *before, j])
    ]


def _next(world: World, steps: dict[str, tuple[int, ...]], left: list[Job]) -> list[Job]:
    """Who is decided on next: the first turn, and what follows it of its queue alone."""
    own = {j.name: (steps[j.name], -j.priority, reference.past_steps(world, j.team)) for j in left}
    turns = sorted({*own.values()})
    level: list[Job] = []
    for turn in turns:
        more = [j for j in left if own[j.name] == turn]
        if level and len({(j.team, j.priority) for j in (*level, *more)}) > 1:
            break
        level += more
    return level


def _worth(world: World, waiting: list[Job]) -> Callable[[list[Job]], tuple[Fraction, ...]]:
    """The value of a set, priority by priority from the top."""
    priorities = sorted({j.priority for j in waiting}, reverse=True)
    return lambda some: tuple(
        _value(world, [j for j in some if j.priority == p]) for p in priorities
    )


def _all_best(
    choice: list[Job],
    worth: Callable[[list[Job]], tuple[Fraction, ...]],
    is_allowed: Callable[[list[Job]], bool],
) -> list[list[Job]]:
    """The allowed subsets that are worth most."""
    best: list[list[Job]] = [[]]
    for some in subsets(choice):
        if worth(some) >= worth(best[0]) and is_allowed(some):
            best = [some] if worth(some) > worth(best[0]) else [*best, some]
    return [some for i, some in enumerate(best) if some not in best[:i]]


def subsets(jobs: list[Job]) -> Iterator[list[Job]]:
    """All of them, the empty one first."""
    for n in range(len(jobs) + 1):
        yield from map(list, combinations(jobs, n))


def free(world: World, running: Iterable[Job]) -> list[Amounts]:
    """What the nodes have left; never below nothing."""
    left = [list(node) for node in world.nodes]
    for job in running:
        for node in job.nodes:
            for r, n in enumerate(job.each):
                left[node][r] -= n
    return [tuple(max(n, 0) for n in node) for node in left]


def fits(jobs: list[Job], room: list[Amounts]) -> bool:
    """Whether all members have a place: every way of placing them is tried."""
    members = sorted((job.each for job in jobs for _ in range(job.members)), reverse=True)
    return _placed(members, tuple(room), set())


def _placed(
    members: list[Amounts], room: tuple[Amounts, ...], dead: set[tuple[int, tuple[Amounts, ...]]]
) -> bool:
    if not members:
        return True
    state = (len(members), tuple(sorted(room)))
    if state in dead:
        return False
    for i, node in enumerate(room):
        if all(a <= b for a, b in zip(members[0], node, strict=True)):
            less = tuple(b - a for a, b in zip(members[0], node, strict=True))
            if _placed(members[1:], (*room[:i], less, *room[i + 1 :]), dead):
                return True
    dead.add(state)
    return False


def is_lawful(world: World, running: list[Job], starts: list[Job], room: list[Amounts]) -> bool:
    """Whether these can start together: room for all, and no limit exceeded."""
    return reference.within_limits(world, running, [*running, *starts]) and fits(starts, room)


def are_covered(
    world: World,
    running: list[Job],
    starts: list[Job],
    tier: float = inf,
    *,
    as_in_the_issue: bool = False,
) -> bool:
    """Whether the walk covers each start, and no start strips a gang of its queue above it.

    Only queues up to this ``tier`` may cover a start. Without the second half it is the first
    statement of the rule, which did not hold.
    """
    found = reference.cover(world, [*running, *starts])
    if not all((job.name, 0) in found and world.tier(found[job.name, 0]) <= tier for job in starts):
        return False
    return as_in_the_issue or not any(stripped(world, running, starts))


def stripped(world: World, running: list[Job], starts: list[Job]) -> Iterator[str]:
    """Gangs that starts of their own queue with no higher priority uncover, without the others."""
    for job in running:
        own = [s for s in starts if s.team == job.team]
        above = [s for s in own if s.priority > job.priority]
        if (
            len(above) < len(own)
            and (job.name, 0) in reference.cover(world, [*running, *above])
            and (job.name, 0) not in reference.cover(world, [*running, *own])
        ):
            yield job.name


def _covered(
    world: World, running: list[Job], waiting: list[Job], room: list[Amounts]
) -> dict[int, list[Job]]:
    """The best set for each tier: value by value from the top priority down."""
    found: dict[int, list[Job]] = {}
    for tier in tiers(world):
        before = [job for jobs in found.values() for job in jobs]
        left = [j for j in waiting if j not in before]
        is_allowed = _may_join(world, running, before, room, tier)
        found[tier] = _best(left, _worth(world, waiting), is_allowed)
    return found


def _best(
    choice: list[Job], worth: Callable[[list[Job]], Any], is_allowed: Callable[[list[Job]], bool]
) -> list[Job]:
    """The first of the subsets worth most that is allowed."""
    found: list[Job] = []
    for some in subsets(sorted(choice, key=lambda j: j.name)):
        if worth(some) > worth(found) and is_allowed(some):
            found = some
    return found


def _value(world: World, jobs: list[Job]) -> Fraction:
    """The dominant shares of gangs, pods included."""
    return sum((_share(world, job) for job in jobs), Fraction(0))


def _share(world: World, job: Job) -> Fraction:
    shares = [Fraction(n, total) for n, total in zip(job.size, world.total, strict=True) if total]
    return max([*shares, Fraction(job.members, PODS * len(world.nodes))])


def started(job: Job, at: int) -> Job:
    """The gang as it runs."""
    return replace(job, start=at)
