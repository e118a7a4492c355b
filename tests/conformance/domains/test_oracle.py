"""The oracle beside a search through all placements, on clusters small enough for that."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING

from .cases import Gang, Ground, Kind, Level
from .oracle import faults, placement

if TYPE_CHECKING:
    from collections.abc import Sequence

# One block of two racks of two nodes, and one of one rack of one node.
SMALL = (
    *(Ground(f"a{rack}{node}", "z", "a", f"a{rack}") for rack in "01" for node in "01"),
    Ground("b00", "z", "b", "b0"),
)


def gang(*sizes: int, level: Level = Level.RACK, segment: int = 0, name: str = "g") -> Gang:
    return Gang(name, Kind.MIXED, level, sizes, segment)


def exists(free: Sequence[int], *gangs: Gang) -> bool:
    """Whether one of all ways to give nodes to members has no fault."""
    pods = [each.member(i) for each in gangs for i in range(len(each.sizes))]
    ways = product([ground.name for ground in SMALL], repeat=len(pods))
    return any(not [*faults(SMALL, free, gangs, dict(zip(pods, way)))] for way in ways)  # noqa: B905


def drawn(chance: Random, name: str, most: int) -> Gang:
    sizes = [chance.choice((1, 2, 3)) for _ in range(chance.randint(1, most))]
    level = chance.choice(list(Level))
    return gang(*sizes, level=level, segment=chance.choice((0, 0, 1, 2, 3)), name=name)


def test_it_agrees_with_a_search_through_all_placements() -> None:
    answers = []
    for seed in range(120):
        chance, number = Random(seed), seed % 2 + 1
        free = [chance.randint(0, 4) for _ in SMALL]
        gangs = [drawn(chance, name, 4 // number) for name in "ab"[:number]]
        found = placement(SMALL, free, gangs)
        assert (found is not None) == exists(free, *gangs), (seed, free, gangs)
        assert found is None or [*faults(SMALL, free, gangs, found)] == []
        assert found is None or len(found) == sum(len(each.sizes) for each in gangs)
        answers.append(found is not None)
    assert 30 < sum(answers) < 90


def test_one_rack_or_one_block_is_what_a_gang_asks_for() -> None:
    four, free = (2, 2, 2, 2), (4, 0, 4, 0, 6)
    assert placement(SMALL, free, [gang(*four)]) is None
    assert placement(SMALL, free, [gang(*four, level=Level.BLOCK)]) is not None
    assert placement(SMALL, free, [gang(2, 2, 2)]) == dict.fromkeys(("g-0", "g-1", "g-2"), "b00")


def test_gangs_share_the_room() -> None:
    free = (4, 0, 2, 0, 0)
    assert placement(SMALL, free, [gang(2, 2, name="a"), gang(2, name="b")]) is not None
    assert placement(SMALL, free, [gang(2, 2, name="a"), gang(1, 2, name="b")]) is None


def test_one_segment_may_be_short_and_no_other() -> None:
    free = (3, 0, 4, 0, 0)
    block = Level.BLOCK
    assert placement(SMALL, free, [gang(*(1,) * 7, level=block, segment=4)]) is not None
    assert placement(SMALL, free, [gang(*(1,) * 7, level=block, segment=2)]) is not None
    assert placement(SMALL, free, [gang(*(1,) * 6, level=block, segment=3)]) is not None
    assert placement(SMALL, free, [gang(*(1,) * 7, level=block, segment=5)]) is None
    assert placement(SMALL, free, [gang(*(1,) * 4, level=block, segment=2)]) is not None


def test_every_fault_is_told() -> None:
    free = (2, 0, 2, 0, 1)
    pair = gang(1, 1)

    def told(one: Gang, *nodes: str) -> list[str]:
        where = {one.member(i): node for i, node in enumerate(nodes)}
        return [*faults(SMALL, free, [one], where)]

    assert told(pair) == []
    assert told(pair, "a00", "a00") == []
    assert told(pair, "a00") == ["g: 1 of 2 members have a node"]
    assert told(pair, "a00", "a10") == ["g: in 2 domains of rack"]
    assert told(pair, "b00", "b00") == ["b00: 1 GPUs too many"]
    three = gang(1, 1, 1, level=Level.BLOCK, segment=3)
    assert told(three, "a00", "a00", "a10") == ["g: 2 segments of 3 are not whole"]
