"""Racks that gangs fill to a degree, and gangs that wait: in one rack, in segments, or anywhere.

There is room for some of them and not for all, so it matters who starts and where. Seeded.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.model.cluster import Gang, Snapshot
from tutti.model.inter_pod import DomainRule, SegmentRule, Topology

from .network import GPUS, LEVELS, NODES_PER_RACK, TAKEN_AT, gang, node

if TYPE_CHECKING:
    from collections.abc import Sequence

ZONES, BLOCKS, FEW_BLOCKS = 2, 14, 4  # blocks per zone
SEGMENT = 16  # members
RUNNING = ((1, 8), (2, 8), (4, 4), (4, 8), (4, 16))  # GPUs of a member, members in one rack
IN_A_RACK = ((4, 8), (4, 16), (2, 16), (1, 24))
IN_SEGMENTS = ((4, 32), (2, 48), (1, 64), (1, 40))
ANYWHERE = ((4, 16), (2, 32), (1, 16), (4, 48))


def snapshot(nodes: int, gangs: int, full: float, seed: int, blocks: int = BLOCKS) -> Snapshot:
    """So many nodes, of whose GPUs this share is used, and so many waiting gangs."""
    rng = random.Random(f"{seed} racks {full}")
    racks = max(1, round(nodes / (ZONES * blocks * NODES_PER_RACK)))
    paths = [
        (f"z{zone}", f"b{block:02}", f"r{rack:02}")
        for zone in range(ZONES)
        for block in range(blocks)
        for rack in range(racks)
    ]
    used = _filled(len(paths), full, rng)
    made = [
        node(path, number, n)
        for path, row in zip(paths, used, strict=True)
        for number, n in enumerate(row)
    ]
    kinds = (IN_A_RACK, IN_SEGMENTS, ANYWHERE)
    waiting = tuple(_gang(i, i % 3, rng.choice(kinds[i % 3])) for i in range(gangs))
    ordered = tuple(sorted(made, key=lambda node: node.name))
    return Snapshot(TAKEN_AT, ordered, waiting, topologies=(Topology("network", LEVELS),))


def without_topology(picture: Snapshot) -> Snapshot:
    """The same gangs, which may be anywhere."""
    gangs = tuple(replace(gang, same_domain=(), segments=()) for gang in picture.gangs)
    return replace(picture, gangs=gangs)


def with_too_large_a_gang(picture: Snapshot) -> Snapshot:
    """One waiting gang alone, which needs one node more than a rack has."""
    size = (GPUS, NODES_PER_RACK + 1)
    return replace(picture, gangs=(_gang(0, 0, size),))


def _filled(racks: int, full: float, rng: random.Random) -> Sequence[Sequence[int]]:
    """[rack][node]: used GPUs. Gangs start one after another, each in a rack that holds it."""
    used = [[0] * NODES_PER_RACK for _ in range(racks)]
    missing = round(racks * NODES_PER_RACK * GPUS * full)
    while missing > 0:
        gpus, members = rng.choice(RUNNING)
        rack = used[rng.randrange(racks)]
        seats = [i for i, n in enumerate(rack) for _ in range((GPUS - n) // gpus)][:members]
        if len(seats) < members:
            gpus, seats = 1, [i for i, n in enumerate(rack) for _ in range(GPUS - n)][:4]
        for seat in seats:
            rack[seat] += gpus
            missing -= gpus
    return used


def _gang(index: int, kind: int, size: tuple[int, int]) -> Gang:
    """A waiting gang: in one rack, in segments of one rack each, or anywhere."""
    rack = DomainRule("rack")
    return replace(
        gang(index, size),
        same_domain=(rack,) if kind == 0 else (),
        segments=(SegmentRule(rack, SEGMENT),) if kind == 1 else (),
    )
