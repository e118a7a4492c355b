"""What ``docs/queues.md`` claims, tried on one cluster: each breach is a sentence.

``curiosities`` are no breaches: what was claimed once, or might be expected, and does not hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from . import plans, reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plans import Answer
    from .reference import Job, World


def breaches(world: World, answer: Answer) -> Iterator[str]:
    """The claims about one plan that do not hold."""
    running = [j for j in world.jobs if j.start is not None]
    room = plans.free(world, running)
    left_out = [j for j in world.jobs if j.start is None and j not in answer.starts]
    if not plans.is_lawful(world, running, [], room):
        yield "to start nobody is not lawful"
    if not plans.is_lawful(world, running, answer.starts, room):
        yield "the plan exceeds room or a limit"
    if answer.covered:
        yield from _of_cover(world, running, answer)
    for job in left_out:
        more = [*answer.covered, job]
        if plans.are_covered(world, running, more) and plans.is_lawful(world, running, more, room):
            yield f"borrowers keep {job.name} from starting, which would be covered"
        yield from _inversions(world, running, answer, job)
        yield from _envy(world, running, answer, job)
    yield from _of_guarantees(world, running, answer)
    yield from _of_walks(world, running)


def _of_guarantees(world: World, running: list[Job], answer: Answer) -> Iterator[str]:
    """Whoever starts in the place of a gang that its leaf guarantees is covered by a leaf, too."""
    room, every = plans.free(world, running), [*running, *answer.starts]
    for job in world.jobs:
        if job.start is not None or job in answer.starts:
            continue
        leaf = [*(j for j in every if j.team == job.team), job]
        alone = reference.cover(world, leaf)
        if any(alone.get((j.name, 0)) != job.team for j in leaf):
            continue
        for other in answer.starts:
            kept = [s for s in answer.starts if s != other]
            is_late = other not in answer.by_tier[0]
            if is_late and plans.is_lawful(world, running, [*kept, job], room):
                yield f"{other.name} starts in the place of {job.name}, which its leaf guarantees"


def _of_cover(world: World, running: list[Job], answer: Answer) -> Iterator[str]:
    before = reference.cover(world, running)
    after = reference.cover(world, [*running, *answer.covered])
    every = [*running, *answer.covered]
    if not plans.are_covered(world, running, answer.covered):
        yield "the starts of all covered rounds would not be covered together"
    if not potential(world, every, after) > potential(world, running, before):
        yield "starts that are covered do not raise the potential"
    for job in running:
        own = [s for s in answer.covered if s.team == job.team]
        above = [s for s in own if s.priority > job.priority]
        had = (job.name, 0) in reference.cover(world, [*running, *above])
        if had and (job.name, 0) not in reference.cover(world, [*running, *own]):
            yield f"{job.name} loses its cover to its own queue's lower priorities"


def _inversions(world: World, running: list[Job], answer: Answer, job: Job) -> Iterator[str]:
    """P6 within a queue: among those that would be covered, and among those that borrow."""
    room = plans.free(world, running)
    before: list[Job] = []
    for tier, starts in answer.by_tier.items():
        kept = [s for s in starts if s.team != job.team or s.priority >= job.priority]
        if len(kept) < len(starts):
            more = [*before, *kept, job]
            is_covered = plans.are_covered(world, running, more, tier)
            if is_covered and plans.is_lawful(world, running, more, room):
                yield f"covered {job.name} waits behind lower priorities of its queue"
        before += starts
    kept = [s for s in answer.borrowing if s.team != job.team or s.priority >= job.priority]
    if len(kept) < len(answer.borrowing):
        more = [*answer.covered, *kept, job]
        if plans.is_lawful(world, running, more, room):
            yield f"borrower {job.name} waits behind lower priorities of its queue"


def _envy(world: World, running: list[Job], answer: Answer, job: Job) -> Iterator[str]:
    """Nobody starts as a borrower in whose place a gang of a queue with fewer steps would fit."""
    room = plans.free(world, running)
    for other in answer.borrowing:
        kept = [s for s in answer.starts if s != other]
        mine = _steps(world, [*running, *answer.starts], job)
        if mine < answer.tried[other.name] and plans.is_lawful(world, running, [*kept, job], room):
            yield f"{other.name} borrows in the place of {job.name}, whose queue has borrowed less"


def _steps(world: World, jobs: list[Job], job: Job) -> tuple[int, ...]:
    steps = tuple(reference.step(world, jobs, team) for team in reference.path(world, job.team))
    return reference.padded(world, steps)


def _of_walks(world: World, running: list[Job]) -> Iterator[str]:
    before = reference.cover(world, running)
    for team in world.teams:
        if world.children(team):
            continue
        alone = reference.cover(world, [j for j in running if j.team == team])
        if {i for i, by in before.items() if by == team} != {
            i for i, by in alone.items() if by == team
        }:
            yield f"what {team} covers itself depends on other queues"
    for job in running:
        if (job.name, 0) not in before:
            rest = [j for j in running if j != job]
            if reference.cover(world, rest) != before:
                yield f"{job.name} borrows, and its end changes who is covered"
        for extra in range(1, job.extras + 1):
            if (job.name, extra) not in before and (job.name, 0) in before:
                fewer = [replace(j, extras=j.extras - (j == job)) for j in running]
                if _minimums(reference.cover(world, fewer)) != _minimums(before):
                    yield f"an extra of {job.name} borrows, and its end changes who is covered"


def _minimums(found: dict[reference.Item, str]) -> dict[reference.Item, str]:
    return {item: by for item, by in found.items() if not item[1]}


def potential(
    world: World, jobs: list[Job], found: dict[reference.Item, str]
) -> list[tuple[int, ...]]:
    """How many are covered: the deepest first, minimums before extras, then by priority."""
    priorities = sorted({j.priority for j in world.jobs}, reverse=True)
    priority = {j.name: j.priority for j in jobs}
    count = Counter(
        (world.depth(by), bool(item[1]), priority[item[0]]) for item, by in found.items()
    )
    return [
        tuple(count[depth, is_extra, p] for is_extra in (False, True) for p in priorities)
        for depth in range(5, 0, -1)
    ]


def curiosities(world: World, answer: Answer) -> Iterator[str]:
    """Kinds of what does not hold, with the gangs that show it."""
    running = [j for j in world.jobs if j.start is not None]
    waiting = [j for j in world.jobs if j.start is None]
    room = plans.free(world, running)
    for job in waiting:
        kept = [s for s in answer.starts if s.team != job.team or s.priority >= job.priority]
        if job not in answer.starts and plans.is_lawful(world, running, [*kept, job], room):
            yield "P6 within a queue, covered and borrowing gangs together"
        if plans.are_covered(world, running, [job], as_in_the_issue=True) and any(
            plans.stripped(world, running, [job])
        ):
            yield "a start strips a gang of its own queue with the same or a higher priority"
        if job in answer.covered and not plans.are_covered(world, running, [job]):
            yield "covered together, not alone"
    for some in plans.subsets(answer.covered):
        if not plans.are_covered(world, running, some):
            yield "of starts that are covered together, some alone are not"
            break
    yield from _of_ends(world, running)
    if answer.covered:
        after = reference.cover(world, [*running, *answer.starts])
        if any((job.name, 0) not in after for job in answer.covered):
            yield "a borrower of the same plan takes the cover of a covered start"


def _of_ends(world: World, running: list[Job]) -> Iterator[str]:
    before = reference.cover(world, running)
    for job in running:
        after = reference.cover(world, [j for j in running if j != job])
        if any(item not in after for item in before if item[0] != job.name and not item[1]):
            yield "the end of a covered gang uncovers another"
            break
