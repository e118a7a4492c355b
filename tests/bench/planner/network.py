"""A network of racks in blocks in zones, partly used, and small and large gangs that prefer racks.

All gangs have room, so who starts does not depend on the preference: what differs is where. Seeded.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.model.cluster import Gang, Member, Node, Snapshot
from tutti.model.inter_pod import DomainRule, Topology
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.model.decisions import Plan

GPU = "nvidia.com/gpu"
LEVELS = ("zone", "block", "rack")
ZONES, BLOCKS, NODES_PER_RACK, GPUS = 2, 7, 18, 4  # per zone, per block and so on
FULL = 0.7  # of all GPUs, before
SMALL = ((1, 4), (1, 8), (1, 16))  # GPUs of a member, members
LARGE = ((GPUS, 4), (GPUS, 8), (GPUS, 12), (GPUS, 24))
TAKEN_AT = 1_700_000_000.0


def snapshot(nodes: int, gangs: int, seed: int) -> Snapshot:
    """So many nodes and waiting gangs; every second gang is small."""
    rng = random.Random(f"{seed} network")
    racks = max(1, round(nodes / (ZONES * BLOCKS * NODES_PER_RACK)))
    made = []
    for zone in range(ZONES):
        for block in range(BLOCKS):
            for rack in range(racks):
                # Racks differ in how full they are, and nodes of a rack are full or empty, mostly.
                used = min(1.0, max(0.0, rng.gauss(FULL, 0.4)))
                made += [
                    node((f"z{zone}", f"b{block}", f"r{rack}"), number, _used(used, rng))
                    for number in range(NODES_PER_RACK)
                ]
    sizes = [rng.choice(LARGE if i % 2 else SMALL) for i in range(gangs)]
    preferred = (DomainRule("rack"),)
    waiting = tuple(
        replace(gang(i, size), preferred_domains=preferred) for i, size in enumerate(sizes)
    )
    ordered = tuple(sorted(made, key=lambda node: node.name))
    return Snapshot(TAKEN_AT, ordered, waiting, topologies=(Topology("network", LEVELS),))


def without_preferences(picture: Snapshot) -> Snapshot:
    """The same gangs, which prefer nothing."""
    gangs = tuple(replace(gang, preferred_domains=()) for gang in picture.gangs)
    return replace(picture, gangs=gangs)


def spread(picture: Snapshot, plan: Plan) -> Mapping[str, float]:
    """In how many racks the gangs of a plan are, and what room is left then."""
    from ...harness.builders import applied  # noqa: PLC0415 - it loads what a planner is free of

    labels = {node.name: dict(node.labels) for node in picture.nodes}
    counts = [
        len({_path(labels[assignment.node], "rack") for assignment in placement.assignments})
        for placement in plan.placements
    ]
    mean = sum(counts) / len(counts) if counts else 0.0
    left = largest(applied(picture, plan).nodes)
    return {"racks a gang": mean, "gangs in one rack": counts.count(1), **left}


def largest(nodes: Sequence[Node]) -> Mapping[str, int]:
    """By level: the empty nodes of the domain that has most of them; one gang could have them."""
    rooms: dict[str, Counter[tuple[str, ...]]] = {level: Counter() for level in LEVELS}
    for node in nodes:
        free = node.allocatable[GPU] - node.used[GPU]
        for level in LEVELS:
            rooms[level][_path(dict(node.labels), level)] += free // GPUS
    return {level: max(rooms[level].values(), default=0) for level in reversed(LEVELS)}


def _path(labels: Mapping[str, str], level: str) -> tuple[str, ...]:
    return tuple(labels[key] for key in LEVELS[: LEVELS.index(level) + 1])


def _used(full: float, rng: random.Random) -> int:
    """GPUs that pods use of a node: mostly all or none."""
    return rng.choice((1, 2, 3)) if rng.random() < 0.1 else GPUS * (rng.random() < full)


def node(path: Sequence[str], number: int, used: int) -> Node:
    """A node of a rack, of whose GPUs so many are used."""
    return Node(
        name=NodeName(f"{'-'.join(path)}-{number:02}"),
        allocatable=Resources.of({GPU: GPUS, "cpu": 128_000, "pods": 110}),
        labels=tuple(sorted(zip(LEVELS, path, strict=True))),
        used=Resources.of({GPU: used, "cpu": 8_000 * used, "pods": used}),
    )


def gang(index: int, size: tuple[int, int]) -> Gang:
    """A waiting gang; ``size`` is the GPUs of a member and the number of members."""
    gpus, count = size
    name, shape = f"gang-{index:04}", Shape(Resources.of({GPU: gpus, "cpu": 8_000 * gpus}))
    members = []
    for number in range(count):
        key = PodKey("bench", f"{name}-{number:03}")
        uid = Uid(f"uid-{key.name}")
        members.append(Member(key, uid, "1", shape, TAKEN_AT - index, group=name))
    return Gang(
        GangKey("bench", name),
        Uid(f"uid-{name}"),
        count,
        members=tuple(members),
        created=TAKEN_AT - index,
    )
