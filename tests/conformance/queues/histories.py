"""Starvation over time: gangs come, run for a while and end; does one that starves ever start?

Stages and holds are those of ``docs/queues.md``, with gangs placed one by one. ``as_in_the_issue``
leaves out what the page adds: then gangs starve that the page protects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from . import plans, reference
from .reference import Job, Team, World

if TYPE_CHECKING:
    from .reference import Amounts

LONGEST = 3  # life of a gang in turns
STARVED = 4  # turns until a gang has starved
TURNS = 60


@dataclass(frozen=True)
class Scene:
    """An empty cluster, the gang that should start, and the gangs that keep coming."""

    world: World
    big: Job
    crowd: tuple[Job, ...]  # kinds of gangs; each turn some of each arrive


def scene(seed: int) -> Scene:
    """A big gang that its own leaf's guarantee covers, and small ones of equal priority."""
    chance = Random(seed)
    nodes = tuple((chance.randint(1, 3),) for _ in range(chance.randint(1, 3)))
    total = sum(n for (n,) in nodes)
    own = chance.randint(1, total)
    limit = chance.choice((None, None, own, total))
    teams = {"a": Team("root", (own,), (limit,)), "b": Team("root", (total - own,), (None,))}
    largest = max(n for (n,) in nodes)
    kinds = [
        Job("big", "a", 0, members, (each,))
        for members in range(1, 4)
        for each in range(1, largest + 1)
        if members * each <= own and plans.fits([Job("", "a", 0, members, (each,))], list(nodes))
    ]
    crowd = tuple(
        Job(f"{team}{i}", team, 0, 1, (chance.randint(1, 2),))
        for team in ("a", "b")
        for i in range(chance.randint(0, 2))
    )
    return Scene(World(teams, nodes, ()), chance.choice(kinds), crowd)


class Wait(NamedTuple):
    """How many turns the big gang waits, in all and on end as the one that is covered and first."""

    turns: int  # TURNS if it never starts
    as_first: int = 0

    @property
    def is_too_long(self) -> bool:
        """Whether it does not start once all have ended that ran when room was first held."""
        return self.turns == TURNS or self.as_first > LONGEST


# The gangs that start in one turn, placed: of those that run, those that wait, and the turn.
Starts = Callable[["World", list["Job"], list["Job"], int], list["Job"]]


def waits(
    scene: Scene, seed: int, *, as_in_the_issue: bool = False, starts: Starts | None = None
) -> Wait:
    """Play a history until the big gang starts; ``starts`` decides instead of the page's rules."""

    def decided(turn: int) -> list[Job]:
        if starts is not None:
            return starts(scene.world, running, queue, turn)
        return _started(scene.world, running, queue, turn, as_in_the_issue=as_in_the_issue)

    chance = Random(seed)
    running: list[Job] = []
    ends: dict[str, int] = {}
    queue: list[Job] = []
    as_first = longest = 0
    for turn in range(TURNS):
        running = [j for j in running if ends[j.name] > turn]
        if turn == LONGEST:
            queue.append(replace(scene.big, since=turn))
        for kind in scene.crowd:
            copies = chance.randint(1, 3) if sum(j.team == kind.team for j in queue) < 6 else 0
            queue += [
                replace(kind, name=f"{kind.name}-{turn}-{i}", since=turn) for i in range(copies)
            ]
        first, _ = _first(scene.world, running, queue, turn, as_in_the_issue=as_in_the_issue)
        is_first = first is not None and first.name == "big"
        is_first = is_first and plans.are_covered(scene.world, running, [scene.big])
        as_first = as_first + 1 if is_first else 0
        longest = max(longest, as_first - 1)
        for job in decided(turn):
            if job.name == "big":
                return Wait(turn - LONGEST, longest)
            running.append(job)
            queue = [j for j in queue if j.name != job.name]
            ends[job.name] = turn + chance.randint(1, LONGEST)
    return Wait(TURNS, longest)


def _first(
    world: World, running: list[Job], queue: list[Job], turn: int, *, as_in_the_issue: bool
) -> tuple[Job | None, list[Job]]:
    """The starved gang that goes first, and those that a guarantee covers but for their queue."""
    starving = [j for j in queue if turn - j.since >= STARVED and _fits_alone(world, j)]
    entitled = [] if as_in_the_issue else [j for j in starving if _is_entitled(world, running, j)]

    def rank(job: Job) -> tuple[bool, bool, int, str]:
        is_late = as_in_the_issue or not plans.are_covered(world, running, [job])
        return is_late, job not in entitled, job.since, job.name

    return min(starving, key=rank, default=None), entitled


def _started(
    world: World, running: list[Job], queue: list[Job], turn: int, *, as_in_the_issue: bool
) -> list[Job]:
    """Who starts in one turn, placed."""
    first, entitled = _first(world, running, queue, turn, as_in_the_issue=as_in_the_issue)
    there, held = list(running), None
    is_covered = first is not None and plans.are_covered(world, running, [first])
    is_covered = is_covered and not as_in_the_issue
    last = "" if first is None or as_in_the_issue else first.team

    def order(job: Job) -> tuple[int, int, str]:
        if first is not None and job.name == first.name:
            return (0 if is_covered else 2), 0, ""
        return _stage(world, running, job, last)

    for job in sorted(queue, key=order):
        is_first = first is not None and job.name == first.name
        room = plans.free(world, there)
        if not is_first and held is not None and first is not None:
            own = not as_in_the_issue and job.team == first.team
            if is_covered or own or not plans.are_covered(world, there, [job]):
                room = [
                    tuple(max(a - b, 0) for a, b in zip(x, y, strict=True))
                    for x, y in zip(room, held, strict=True)
                ]
            if not as_in_the_issue and not _leaves(world, there, job, first, entitled):
                continue
        nodes = _place(job, room)
        placed = replace(job, nodes=nodes, start=turn)
        if nodes and reference.within_limits(world, there, [*there, placed]):
            there.append(placed)
        elif is_first:
            held = _held(world, job, plans.free(world, there))
    return there[len(running) :]


def _is_entitled(world: World, running: list[Job], job: Job) -> bool:
    """Whether it would be covered without the gangs of its queue that come after it."""
    others = [j for j in running if j.team != job.team or j.priority > job.priority]
    return plans.are_covered(world, others, [job])


def _stage(world: World, running: list[Job], job: Job, last: str) -> tuple[int, int, str]:
    """Covered gangs, then those of the queue that is ``last``, then borrowers; by age."""
    stage = 4
    if plans.are_covered(world, running, [job]):
        stage = 3 if job.team == last else 1
    return stage, job.since, job.name


def _leaves(world: World, there: list[Job], job: Job, first: Job, entitled: list[Job]) -> bool:
    """Whether a start of its queue leaves the first gang what it needs of limits, and its cover."""
    if job.team != first.team:
        return True
    after = [*there, replace(job, start=TURNS)]
    has_cover = first in entitled and plans.are_covered(world, there, [first])
    if has_cover and not plans.are_covered(world, after, [first]):
        return False
    return reference.within_limits(world, there, [*after, first])


def _fits_alone(world: World, job: Job) -> bool:
    return plans.fits([job], list(world.nodes)) and reference.within_limits(world, [], [job])


def _place(job: Job, room: list[Amounts]) -> tuple[int, ...]:
    """The first nodes with room, member by member; empty if they do not suffice."""
    left = [list(node) for node in room]
    nodes: list[int] = []
    for _ in range(job.members):
        for i, node in enumerate(left):
            if all(a <= b for a, b in zip(job.each, node, strict=True)):
                left[i] = [b - a for a, b in zip(job.each, node, strict=True)]
                nodes.append(i)
                break
        else:
            return ()
    return tuple(nodes)


def _held(world: World, job: Job, room: list[Amounts]) -> list[Amounts]:
    """The room of the placement in the empty cluster that misses the least; the first of equal."""
    best: tuple[int, list[Amounts]] | None = None
    for nodes in product(range(len(room)), repeat=job.members):
        counts = [nodes.count(i) for i in range(len(room))]
        needed = [tuple(n * each for each in job.each) for n in counts]
        if _missing(needed, list(world.nodes)):
            continue
        missing = _missing(needed, room)
        if best is None or missing < best[0]:
            best = missing, needed
    assert best is not None
    return best[1]


def _missing(needed: list[Amounts], room: list[Amounts]) -> int:
    """How much of what is needed there is not, over all nodes and resources."""
    return sum(
        max(a - b, 0)
        for need, have in zip(needed, room, strict=True)
        for a, b in zip(need, have, strict=True)
    )
