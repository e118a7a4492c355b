"""Scenes by seed: several gangs that have a placement together, because they are drawn from one.

A placement is drawn and forgotten; most of the room that it leaves is then in use.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

from .cases import GPUS, NODES, Case, Gang, Kind, Level
from .drawn import SIZES, occupied

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FEWEST, MOST = 5, 8  # gangs of a scene
MOST_OF_A_GANG = 14
_FULL = 0.7  # the chance that nothing of a node stays free


class Scene(StrEnum):
    """Which gangs are in a scene."""

    EQUAL = "of one size, or a leader and workers"
    MIXED = "of several sizes, too"
    SEGMENTS = "of one size, or whole segments in racks"
    SHORT = "of one size, or segments in racks, some short"


_KINDS: Mapping[Scene, Sequence[Kind]] = {
    Scene.EQUAL: (Kind.EQUAL, Kind.EQUAL, Kind.LEADER),
    Scene.MIXED: (Kind.EQUAL, Kind.LEADER, Kind.MIXED, Kind.MIXED),
    Scene.SEGMENTS: (Kind.EQUAL, Kind.SEGMENTS),
    Scene.SHORT: (Kind.EQUAL, Kind.SEGMENTS, Kind.SHORT, Kind.SHORT),
}
_FOUR = (Scene.EQUAL, Scene.MIXED, Scene.EQUAL, Scene.MIXED)
_IN_TURN = (*_FOUR, Scene.SEGMENTS, *_FOUR, Scene.SHORT)


def scene_of(case: Case) -> Scene:
    """Which kind of scene a case is."""
    kinds = {gang.kind for gang in case.gangs}
    if Kind.SHORT in kinds:
        return Scene.SHORT
    if Kind.SEGMENTS in kinds:
        return Scene.SEGMENTS
    return Scene.MIXED if Kind.MIXED in kinds else Scene.EQUAL


def scenes(seed: int, number: int) -> Iterator[Case]:
    """So many scenes."""
    for i in range(number):
        yield scene(seed, _IN_TURN[i % len(_IN_TURN)], i)


def scene(seed: int, of: Scene, number: int) -> Case:
    """The scene that this number stands for: five to eight gangs, in no order."""
    chance = Random(f"{seed} scene {of.name} {number}")
    name = f"{of.name.lower()}-scene-{number}"
    while True:
        before = occupied(chance, chance.uniform(0.2, 0.5))
        left = [GPUS - used for used in before]
        names = [f"{name}-{i}" for i in range(chance.randint(FEWEST, MOST))]
        gangs = [gang for each in names if (gang := _gang(chance, of, each, left))]
        chance.shuffle(gangs)
        besides = [room if chance.random() < _FULL else chance.randint(0, room) for room in left]
        used = tuple(a + b for a, b in zip(before, besides, strict=True))
        case = Case(name, used, tuple(gangs), has_placement=True)
        if len(gangs) >= FEWEST and scene_of(case) is of:
            return case


def _gang(chance: Random, of: Scene, name: str, left: list[int]) -> Gang | None:
    """A gang that is placed in the room that is left, and takes it; None if there is too little."""
    kind = chance.choice(_KINDS[of])
    level = Level.BLOCK if kind in (Kind.SEGMENTS, Kind.SHORT) else chance.choice(list(Level))
    domain = chance.choice(sorted({ground.domain(level) for ground in NODES}))
    nodes = [n for n, ground in enumerate(NODES) if ground.domain(level) == domain]
    segment = 0
    match kind:
        case Kind.LEADER:
            leader, worker = chance.sample(SIZES, 2)
            sizes = _taken(chance, nodes, left, [leader])
            sizes += _taken(chance, nodes, left, [worker] * chance.randint(2, MOST_OF_A_GANG))
        case Kind.MIXED:
            asked = chance.choices(SIZES, k=chance.randint(4, MOST_OF_A_GANG))
            sizes = _taken(chance, nodes, left, asked)
        case Kind.SEGMENTS | Kind.SHORT:
            segment, size = chance.randint(2, 4), chance.choice((1, 2, 4))
            sizes = []
            names = sorted({NODES[n].rack for n in nodes})
            of_racks = [[n for n in nodes if NODES[n].rack == rack] for rack in names]
            for rack in of_racks:
                whole = sum(left[n] // size for n in rack) // segment
                count = segment * chance.randint(0, min(2, whole))
                sizes += _taken(chance, rack, left, [size] * count)
            if kind is Kind.SHORT:
                asked = [size] * chance.randint(1, segment - 1)
                sizes += _taken(chance, chance.choice(of_racks), left, asked)
        case _:
            size = chance.choice(SIZES)
            sizes = _taken(chance, nodes, left, [size] * chance.randint(2, MOST_OF_A_GANG))
    chance.shuffle(sizes)
    is_whole = bool(segment) and len(sizes) % segment == 0
    if len(sizes) <= max(1, segment) or (kind is Kind.SHORT and is_whole):
        return None
    return Gang(name, kind, level, tuple(sizes), segment)


def _taken(chance: Random, nodes: Sequence[int], left: list[int], asked: list[int]) -> list[int]:
    """Those of the members asked for that these nodes still hold, each placed on any of them."""
    placed = []
    for size in asked:
        fitting = [n for n in nodes if left[n] >= size]
        if fitting:
            left[chance.choice(fitting)] -= size
            placed.append(size)
    return placed
