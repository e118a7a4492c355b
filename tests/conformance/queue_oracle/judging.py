"""One plan judged: is it lawful, and is each stage worth what CP-SAT finds for it?

The judge follows the plan. A stage may decide on any of several best sets, and a plan does not say
in which stage a gang started, so all readings of it are tried: it is wrong if none is the best.
Members beyond those needed are placed by best fit: the judge takes them where they are. Once room
is held for a starved gang, it is not known which: the judge asks only what is left to that gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf
from typing import NamedTuple

from . import model
from .lawful import Placed, faults, free, has_begun, repair_faults, use
from .reading import Hold, Reading
from .starved import First, first_of, taken
from .world import Gang, Turn, World, are_covered, minus, plus, start_of, turns, walk

Step = Callable[[Reading], Iterator[Reading]]


class Answer(NamedTuple):
    """What a plan starts where, and whether it claims to be the best."""

    placed: Placed
    is_proved: bool


class Judgement(NamedTuple):
    """What is wrong, whether a gang waits that would fit alone, and whether one has starved."""

    wrong: tuple[str, ...]
    is_contended: bool
    has_starved: bool


def judge(world: World, answer: Answer) -> Judgement:
    """Hold an answer against the page, once as a whole and once stage by stage."""
    wrong = (*faults(world, answer.placed), *repair_faults(world, answer.placed))
    if answer.is_proved and not wrong:
        wrong = (*_order(world, answer.placed),)
    waits = [g for g in world.gangs if not g.at_start and g.name not in answer.placed]
    is_contended = any(model.fit(world.nodes, [gang]) for gang in waits)
    return Judgement(wrong, is_contended, first_of(world, world.gangs) is not None)


def _order(world: World, placed: Placed) -> Iterator[str]:
    repaired = tuple(
        (gang.name, pod)
        for gang in world.gangs
        if gang.missing
        for pod in placed.get(gang.name, ())
    )
    begin = Reading(world, placed, joined=repaired)
    problems: list[str] = []
    if not any(True for _ in _readings(begin, problems)):
        yield problems[0] if problems else "no reading of the plan ends with all that it starts"


def _readings(begin: Reading, problems: list[str]) -> Iterator[Reading]:
    """All readings of the plan in which each stage is the best."""
    first = first_of(begin.world, begin.now)
    steps: list[Step] = [_reset]
    if first is not None:
        gang, tier, _ = first

        def is_not_behind(one: Gang) -> bool:
            return one.team != gang.team or one.priority > gang.priority

        def is_above(one: Gang) -> bool:
            return one.team == gang.team and one.priority > gang.priority

        def is_covered(reading: Reading) -> bool:
            world = reading.world
            return tier < inf and are_covered(world, reading.running, [start_of(gang)], tier)

        def if_not_covered(reading: Reading) -> Iterator[Reading]:
            every = [*_covered(is_not_behind, first, problems, begin.world.tiers)]
            yield from _through(iter([reading]), *([] if is_covered(reading) else every))

        lower = [t for t in begin.world.tiers if t < tier]
        steps += _covered(is_not_behind, first, problems, lower)
        if tier < inf:
            steps += [*_covered(is_above, first, problems, [int(tier)]), if_not_covered]
        steps += [_alone(first, problems), _reset]
    steps += _covered(lambda _: True, first, problems, begin.world.tiers)
    steps += [_borrowers(first, problems), _end(problems)]
    yield from _through(iter([begin]), *steps)


def _reset(reading: Reading) -> Iterator[Reading]:
    """What has started counts as gangs that run."""
    yield replace(reading, together=())


def _covered(
    is_meant: Callable[[Gang], bool],
    first: First | None,
    problems: list[str],
    tiers: Sequence[int],
) -> Iterator[Step]:
    """The best covered gangs, those that leaves cover first."""
    for tier in tiers:
        yield _round(tier, is_meant, first, problems)


def _round(
    tier: int, is_meant: Callable[[Gang], bool], first: First | None, problems: list[str]
) -> Step:
    """The best gangs of a tier, priority by priority where members join after one."""

    def step(reading: Reading) -> Iterator[Reading]:
        waiting = [g for g in reading.waiting if is_meant(g) and not _is(first, g)]
        growing = [
            g
            for g in reading.now
            if is_meant(g)
            and ((has_begun(g) and g.waiting) or (g in waiting and len(g.pods) > g.need))
        ]
        some: Iterator[Reading] = iter([reading])
        together: list[Gang] = []
        for priority in sorted({g.priority for g in (*waiting, *growing)}, reverse=True):
            together = [*together, *(g for g in waiting if g.priority == priority)]
            if level := [g for g in growing if g.priority == priority]:
                some = _through(some, _best(together, tier, problems), _joins(level, tier))
                together = []
        yield from _through(some, _best(together, tier, problems))

    return step


def _through(some: Iterator[Reading], *steps: Step) -> Iterator[Reading]:
    for step in steps:
        some = _each(some, step)
    return some


def _each(some: Iterator[Reading], step: Step) -> Iterator[Reading]:
    return (later for reading in some for later in step(reading))


def _is(first: First | None, gang: Gang) -> bool:
    return first is not None and first[0].name == gang.name


def _best(gangs: Sequence[Gang], tier: int, problems: list[str]) -> Step:
    """The gangs of the plan among these that can have started as covered ones."""

    def step(reading: Reading) -> Iterator[Reading]:
        there = [g for g in gangs if g in reading.waiting]
        if not there:
            yield reading
            return
        mine = [g for g in there if g.name in reading.placed]
        world, before = reading.world, reading.covered_before
        choices = [
            some
            for n in range(len(mine), -1, -1)
            for some in combinations(mine, n)
            if are_covered(world, reading.others, [*before, *map(start_of, some)], tier)
        ]
        if reading.held is not None:
            yield from (reading.with_starts(some) for some in choices)
            return
        top = model.best(reading.stage(there, tier))
        found = [some for some in choices if model.worth(world, there, some) == top]
        if not found:
            names = [g.name for g in there]
            problems.append(f"covered gangs of {names}: the best is worth {_text(top)}")
        yield from (reading.with_starts(some) for some in found)

    return step


def _joins(level: Sequence[Gang], tier: int) -> Step:
    """The members that join as covered ones: all of the plan that would be, or else none."""

    def step(reading: Reading) -> Iterator[Reading]:
        reading = replace(reading, together=())
        open_ones = reading.extras(level)
        mine = [(name, pod) for name, pod in open_ones if pod in reading.placed.get(name, ())]
        if mine:
            covered = _covered_extras(reading, open_ones, tier)
            if mine := [one for one in mine if one in covered]:
                yield replace(reading, joined=(*reading.joined, *mine))
        yield reading

    return step


def _covered_extras(
    reading: Reading, open_ones: Sequence[tuple[str, int]], tier: int
) -> set[tuple[str, int]]:
    entries, numbers = [], dict[tuple[str, int], tuple[str, int]]()
    for one in reading.running:
        more = [pod for name, pod in open_ones if name == one.name]
        takes = [reading.gang(one.name).pods[pod].takes for pod in more]
        for i, pod in enumerate(more, len(one.extras) + 1):
            numbers[one.name, i] = (one.name, pod)
        entries.append(replace(one, extras=(*one.extras, *takes)))
    found = walk(reading.world, entries)
    return {
        numbers[item]
        for item, team in found.items()
        if item in numbers and reading.world.tier(team) <= tier
    }


def _alone(first: First, problems: list[str]) -> Step:
    """The starved gang starts if it can; else what it needs is held."""
    gang = first.gang

    def step(reading: Reading) -> Iterator[Reading]:
        can = any(model.best(reading.stage([gang])))
        starts = gang.name in reading.placed
        if starts and can:
            yield reading.with_starts([gang])
        elif not (starts or can):
            begun = frozenset(g.name for g in reading.now if has_begun(g))
            hold = Hold(gang, first.is_entitled, use(reading.world, reading.now), begun)
            yield replace(reading, held=hold)
        else:
            problems.append(f"the starved gang {gang.name} can start: {can}, starts: {starts}")

    return step


def _borrowers(first: First | None, problems: list[str]) -> Step:
    """Turn by turn the best of the gangs that borrow, and the members that join."""

    def step(reading: Reading) -> Iterator[Reading]:
        world = reading.world
        if reading.held is not None:
            later = [g for g in reading.waiting if g.name in reading.placed and not _is(first, g)]
            reading = reading.with_starts(later)
            late = [x for x in reading.extras(world.gangs) if x[1] in reading.placed.get(x[0], ())]
            yield replace(reading, joined=(*reading.joined, *late))
            return
        gangs = [g for g in reading.waiting if not _is(first, g)]
        open_ones = reading.extras([g for g in reading.now if has_begun(g)])
        while gangs or open_ones:
            gangs = [g for g in gangs if _takes_a_turn(reading, g)]
            open_ones = [x for x in open_ones if _takes_a_turn(reading, _alone_of(reading, x))]
            for together in _groups(reading, gangs, open_ones):
                level = [g for g in gangs if g.name in together]
                extras = [x for x in open_ones if _label(*x) in together]
                gangs = [g for g in gangs if g not in level]
                open_ones = [x for x in open_ones if x not in extras]
                mine = [g for g in level if g.name in reading.placed]
                if level:
                    top = model.best(reading.stage(level))
                    if model.worth(world, level, mine) != top:
                        names = [g.name for g in level]
                        problems.append(f"borrowers {names}: the best is worth {_text(top)}")
                        return
                reading = reading.with_starts(mine)
                more = reading.extras(mine)
                open_ones = [*open_ones, *more]
                joined = [x for x in extras if x[1] in reading.placed.get(x[0], ())]
                reading = replace(reading, joined=(*reading.joined, *joined))
                waits = len(mine) < len(level) or len(joined) < len(extras)
                others = [*gangs, *(_alone_of(reading, x) for x in open_ones)]
                if more or waits or not all(_takes_a_turn(reading, g) for g in others):
                    break
        yield reading

    return step


def _alone_of(reading: Reading, extra: tuple[str, int]) -> Gang:
    """A member beyond those needed as a gang of its own."""
    name, pod = extra
    gang = reading.gang(name)
    return replace(gang, need=1, pods=(gang.pods[pod],))


def _takes_a_turn(reading: Reading, gang: Gang) -> bool:
    """Whether limits and all nodes together leave enough, and it has room if it starts alone."""
    world, left = reading.world, reading.left
    for team in world.chain(gang.team):
        limits = zip(gang.minimum, left[team], strict=True)
        if any(n and limit is not None and n > limit for n, limit in limits):
            return False
    started = [reading.gang(name).minimum for name in reading.starts]
    rest = minus(plus(*reading.room), plus(*started)) if started else plus(*reading.room)
    if any(n > has for n, has in zip(gang.minimum, rest, strict=True)):
        return False
    return model.fit(free(world, world.gangs), [gang])


def _groups(
    reading: Reading, gangs: Sequence[Gang], extras: Sequence[tuple[str, int]]
) -> Sequence[set[str]]:
    """Who is decided on together: one turn, and those that follow it of its queue alone."""
    world = reading.world
    waiting = {one.name: one for one in _turns(reading, gangs, extras)}
    steps = turns(world, use(world, reading.now), [*waiting.values()])
    keys = {
        name: (steps[name], -one.priority, world.past(one.team)) for name, one in waiting.items()
    }
    groups: list[set[str]] = []
    for turn in sorted({*keys.values()}):
        more = {name for name, key in keys.items() if key == turn}
        before = groups[-1] if groups else set()
        if before and len({(waiting[n].team, waiting[n].priority) for n in before | more}) == 1:
            before |= more
        else:
            groups.append(more)
    return groups


def _turns(
    reading: Reading, gangs: Sequence[Gang], extras: Sequence[tuple[str, int]]
) -> list[Turn]:
    found = [Turn(g.name, g.team, g.priority, g.since, g.minimum) for g in gangs]
    for name, pod in extras:
        gang = reading.gang(name)
        takes = gang.pods[pod].takes
        found.append(Turn(_label(name, pod), gang.team, gang.priority, inf, takes))
    return found


def _label(name: str, pod: int) -> str:
    return f"{name}/{name}-{pod}"


def _end(problems: list[str]) -> Step:
    """All of the plan was read, and what is held for a starved gang is left to it."""

    def step(reading: Reading) -> Iterator[Reading]:
        shown = {*reading.joined, *reading.minimums}
        every = {(name, pod) for name, pods in reading.placed.items() for pod in pods}
        if shown != every:
            problems.append(f"nobody knows why these start: {sorted(every - shown)}")
        elif breaches := [*taken(reading)]:
            problems.extend(breaches)
        else:
            yield reading

    return step


def _text(some: Sequence[object]) -> str:
    return ", ".join(map(str, some))
