"""Gangs by seed, one to a case: drawn until the oracle says what is wanted of them.

Nothing but the seed, what is asked for and the oracle decides what is drawn; what any scheduler
makes of it does not. Gangs need most of the room of the domain that has most, so few are easy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import ceil
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from .cases import GPUS, MOST_MEMBERS, NODES, Case, Gang, Kind, Level
from .oracle import placement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SIZES = (1, 2, 4, 8)
WITH_FOR_ONE_WITHOUT = 5  # one gang that has no placement for so many that have one


class Ask(NamedTuple):
    """What is asked for."""

    kind: Kind
    level: Level


ASKS = (
    *(Ask(kind, level) for kind in (Kind.EQUAL, Kind.LEADER, Kind.MIXED) for level in Level),
    Ask(Kind.SEGMENTS, Level.BLOCK),
    Ask(Kind.SHORT, Level.BLOCK),
)


def cases(seed: int, gangs: int) -> Iterator[Case]:
    """So many gangs that have a placement, and for five of them one that has none."""
    for i in range(gangs):
        yield case(seed, ASKS[i % len(ASKS)], i // len(ASKS), has_placement=True)
    for i in range(gangs // WITH_FOR_ONE_WITHOUT):
        yield case(seed, ASKS[i % len(ASKS)], i // len(ASKS), has_placement=False)


def case(seed: int, ask: Ask, number: int, *, has_placement: bool) -> Case:
    """The first of those that this number stands for of which the oracle says what is wanted.

    One without a placement has, in one domain, as many free GPUs as its members need.
    """
    chance = Random(f"{seed} {ask.kind.name} {ask.level.name} {number} {has_placement}")
    word = "gang" if has_placement else "none"
    name = f"{ask.kind.name.lower()}-{ask.level}-{word}-{number}"
    while True:
        used = occupied(chance, chance.uniform(0.3, 0.9))
        free = tuple(GPUS - u for u in used)
        drawn = _DRAWN[ask.kind](chance, ask.level, free)
        if drawn is None or not 1 < len(drawn[0]) <= MOST_MEMBERS:
            continue
        sizes, segment = drawn
        gang = Gang(name, ask.kind, ask.level, sizes, segment)
        if sum(sizes) > max(sum(rooms) for rooms in _rooms(ask.level, free)):
            continue
        if (placement(NODES, free, (gang,)) is not None) == has_placement:
            return Case(name, used, (gang,), has_placement)


def occupied(chance: Random, share: float) -> tuple[int, ...]:
    """The GPUs in use of each node: about this share of all, on some nodes more than on others."""
    return tuple(min(GPUS, max(0, round(chance.gauss(GPUS * share, 3)))) for _ in NODES)


Drawn = tuple[tuple[int, ...], int] | None  # the sizes of the members, and the segment's


def _rooms(level: Level, free: Sequence[int]) -> list[list[int]]:
    """The free GPUs of the nodes of each domain."""
    rooms: defaultdict[str, list[int]] = defaultdict(list)
    for ground, room in zip(NODES, free, strict=True):
        rooms[ground.domain(level)].append(room)
    return list(rooms.values())


def _most(level: Level, free: Sequence[int], size: int) -> int:
    """The most members of a size that fit in one domain."""
    return max(sum(room // size for room in rooms) for rooms in _rooms(level, free))


def _equal(chance: Random, level: Level, free: Sequence[int]) -> Drawn:
    size = chance.choice(SIZES)
    most = _most(level, free, size)
    return (size,) * chance.randint(ceil(0.7 * most), most + 1), 0


def _leader(chance: Random, level: Level, free: Sequence[int]) -> Drawn:
    leader, worker = chance.sample(SIZES, 2)
    most = _most(level, free, worker)
    sizes = [worker] * max(0, chance.randint(ceil(0.8 * most), most))
    sizes.insert(chance.randint(0, len(sizes)), leader)
    return tuple(sizes), 0


def _mixed(chance: Random, level: Level, free: Sequence[int]) -> Drawn:
    most = max(sum(rooms) for rooms in _rooms(level, free))
    wanted, sizes = round(chance.uniform(0.85, 1.0) * most), list[int]()
    while sum(sizes) < wanted:
        sizes.append(chance.choice([size for size in SIZES if size <= wanted - sum(sizes)]))
    chance.shuffle(sizes)
    return (tuple(sizes), 0) if len(set(sizes)) > 2 else None


def _segments(chance: Random, level: Level, free: Sequence[int]) -> Drawn:
    size, segment = chance.choice((1, 2, 4)), chance.randint(2, 6)
    whole: Counter[str] = Counter()  # segments that the racks of a domain have room for
    for rack, block in {ground.rack: ground.domain(level) for ground in NODES}.items():
        rooms = [free[n] // size for n, ground in enumerate(NODES) if ground.rack == rack]
        whole[block] += sum(rooms) // segment
    most = max(whole.values())
    count = segment * chance.randint(max(1, most - 1), most + 1)
    return ((size,) * count, segment) if count > segment else None


def _short(chance: Random, level: Level, free: Sequence[int]) -> Drawn:
    drawn = _segments(chance, level, free)
    if drawn is None:
        return None
    sizes, segment = drawn
    return sizes + sizes[:1] * chance.randint(1, segment - 1), segment


_DRAWN: Mapping[Kind, Callable[[Random, Level, Sequence[int]], Drawn]] = {
    Kind.EQUAL: _equal,
    Kind.LEADER: _leader,
    Kind.MIXED: _mixed,
    Kind.SEGMENTS: _segments,
    Kind.SHORT: _short,
}
