"""Random small Snapshots, one per seed: the same questions as whole clusters and gangs.

Gangs have started whole or not at all, so that what is admitted is one decision: repairs come
first, and which nodes they take is no part of it. Those of odd seeds have rules between pods, too.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tutti.model.cluster import SlotReservation
from tutti.model.decisions import Objective, Policy
from tutti.model.keys import NodeName
from tutti.model.shapes import Toleration

from ...harness.builders import gang, node, reservation, single, snapshot_of
from . import ruling

if TYPE_CHECKING:
    from tutti.model.cluster import Reservation, Snapshot

    from ...harness.builders import GangBuilder, NodeBuilder

NOW = 10_000.0
POOLS = ("a", "b")
AXES = ("cpu", "memory", "gpu")


def policy(seed: int) -> Policy:
    """What is aimed for with this seed; nobody starves, since that is another promise."""
    chance = Random(f"policy {seed}")
    return Policy(chance.choice(list(Objective)), age_seconds=3600.0, starvation_seconds=1e9)


def cluster(seed: int) -> Snapshot:
    """The Snapshot of this seed."""
    chance = Random(f"cluster {seed}")
    names = [f"n{number}" for number in range(chance.choice([1, 2, 2, 3, 3, 4, 5, 6, 7, 8]))]
    axes = AXES[: chance.randint(1, 3)]
    nodes = [_node(chance, name, axes) for name in names]
    gangs = [_gang(chance, f"g{number}", axes) for number in range(chance.choice([2, 4, 5, 6, 6]))]
    if is_ruled(seed):
        rules = Random(f"rules {seed}")
        nodes = [ruling.node(rules, node) for node in nodes]
        gangs = [ruling.gang(rules, gang) for gang in gangs]
        gangs = ruling.following(Random(f"following {seed}"), gangs)
    started = [_started(chance, gang, names) for gang in gangs]
    held = [_held(chance, made, names) for made in started if _may_be_held(chance, made)]
    return snapshot_of(*nodes, *started, *held, *ruling.SPACES, at=NOW)


def is_ruled(seed: int) -> bool:
    """Whether the Snapshot of this seed has rules between pods."""
    return seed % 2 == 1


def _node(chance: Random, name: str, axes: tuple[str, ...]) -> NodeBuilder:
    sizes: dict[str, list[float]] = {
        "cpu": [4, 7.5, 8, 12, 16],
        "memory": [8, 9.5, 16],
        "gpu": [0, 4, 4, 8],
    }
    made = node(
        name,
        pods=chance.choice([110, 110, 110, 9, 5]),
        **{axis: chance.choice(sizes[axis]) for axis in axes},
    )
    if chance.random() < 0.5:
        made = made.labelled(pool=chance.choice(POOLS))
    if chance.random() < 0.3:
        made = made.using(cpu=chance.choice([0.5, 1, 3, 30]))
    trouble = chance.random()
    if trouble < 0.1:
        return made.tainted("dedicated", "gpu")
    if trouble < 0.13:
        return made.cordoned()
    return made.but(ready=False) if trouble < 0.16 else made


def _asked(chance: Random, axes: tuple[str, ...]) -> dict[str, float]:
    sizes: dict[str, list[float]] = {
        "cpu": [0.5, 1, 2, 3, 3.5],
        "memory": [0, 1, 2.7183, 3],  # not all in one large unit
        "gpu": [0, 0, 1, 2, 4],
    }
    return {axis: chance.choice(sizes[axis]) for axis in axes}


def _gang(chance: Random, name: str, axes: tuple[str, ...]) -> GangBuilder:
    """A gang of a kind or two, in roles or not; elastic if it has more members than it needs."""
    made = gang(name)
    if chance.random() < 0.15:
        made = single(name, **_asked(chance, axes))
    elif chance.random() < 0.6:
        for _ in range(chance.choice([1, 1, 2])):
            made = made.of(chance.randint(1, 6), role="", **_asked(chance, axes))
        made = made.needing(max(1, len(made.members) - chance.choice([0, 0, 1, 2])))
    else:
        for role in ("driver", "worker"):
            least = chance.randint(0, 3)
            made = made.role(role, least, least + chance.randint(0, 2), **_asked(chance, axes))
            if chance.random() < 0.3:
                made = made.at_most(max(1, least + chance.randint(0, 1)))
        least = sum(role.min_member for role in made.roles)
        made = made.needing(max(1, least + chance.choice([0, 0, 1])))
    if chance.random() < 0.15:
        made = made.shaped(node_selector=(("pool", chance.choice(POOLS)),))
    if chance.random() < 0.3:
        made = made.shaped(tolerations=(Toleration("dedicated", "Exists"),))
    if chance.random() < 0.15:
        late: dict[str, object] = chance.choice(
            [{"gates": ("hold",)}, {"unsupported_fields": ("spec.x",)}]
        )
        made = made.last(1, **late)
    born = float(chance.choice([0, 2000, 5000, 9000, 9999]))
    return made.priority(chance.choice([0, 0, 1, 2])).but(created=born)


def _started(chance: Random, gang: GangBuilder, names: list[str]) -> GangBuilder:
    """Now and then a gang that runs whole, wherever it came to lie."""
    if chance.random() >= 0.15:
        return gang
    return gang.bound_on(*(chance.choice(names) for _ in gang.members))


def _may_be_held(chance: Random, gang: GangBuilder) -> bool:
    is_waiting = all(member.node is None for member in gang.members)
    return is_waiting and not gang.made.is_single and chance.random() < 0.1


def _held(chance: Random, gang: GangBuilder, names: list[str]) -> Reservation:
    """A standing Reservation of a gang that waits, and now and then of members yet to come."""
    entries = [(member.key.name, chance.choice(names)) for member in gang.members]
    slots = (
        [SlotReservation(NodeName(chance.choice(names)), "worker", 1)]
        if chance.random() < 0.3
        else []
    )
    return reservation(gang, *entries, slots=slots)
