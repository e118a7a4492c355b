"""Two hundred gangs by seed: twenty-five of each kind, drawn until one has a placement.

Nothing but the kind, the number and the oracle decides what is drawn; what any scheduler makes of
it does not. Room is scarce in most and ample in some, so that easy ones are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

from .cases import GANG, HOST, ZONE, Ask, Case, Ground, Kind, Other, Role, Rule
from .existing import has_placement

OF_EACH = 25
PORT = 8080
APART = (Rule(Ask.APART, HOST),)
EVEN = (Rule(Ask.EVEN, ZONE),)
BESIDE_DRIVER = (Rule(Ask.NEAR, ZONE, "role", "driver"),)

Parts = tuple[Sequence[Ground], Sequence[Role], Sequence[Other]]


ALL = tuple((kind, number) for kind in Kind for number in range(OF_EACH))


@cache
def case(kind: Kind, number: int) -> Case:
    """The first with a placement of those that this number stands for."""
    chance = Random(f"{kind.name} {number}")
    while True:
        nodes, roles, others = DRAWN[kind](chance)
        case = Case(
            f"{kind.name.lower()}-{number}", kind, tuple(nodes), tuple(roles), tuple(others)
        )
        if has_placement(case):
            return case


def _nodes(
    chance: Random, sizes: Sequence[int], least: int, most: int, zones: str = "a"
) -> list[Ground]:
    return [
        Ground(f"n{i}", zones[i % len(zones)], chance.choice(sizes))
        for i in range(chance.randint(least, most))
    ]


def _guests(chance: Random, nodes: Sequence[Ground], **about: object) -> list[Other]:
    """On some of the nodes somebody has part of the room."""
    return [
        Other(node.name, chance.randint(0, node.cpu // 2), **about)  # type: ignore[arg-type]
        for node in nodes
        if chance.random() < 0.3
    ]


def _mixed_order(chance: Random, roles: list[Role]) -> list[Role]:
    return chance.sample(roles, len(roles))


def _easy(chance: Random) -> Parts:
    """Twice the room, and at most a rule that many placements satisfy."""
    rules = chance.choice([(), APART, EVEN])
    count = chance.randint(3, 8)
    zones = chance.choice(["a", "ab", "abc"])
    nodes = [Ground(f"n{i}", zones[i % len(zones)], 8) for i in range(max(6, 2 * count))]
    return nodes, [Role("m", count, chance.randint(1, 4), rules=rules)], _guests(chance, nodes)


def _apart(chance: Random) -> Parts:
    """One member per node, and of two or three sizes; some nodes are closed to all of them."""
    nodes = _nodes(chance, [2, 4, 4, 8, 16], 4, 9)
    shy = [Other(n.name, rules=(Rule(Ask.APART, HOST),)) for n in nodes if chance.random() < 0.15]
    sizes = chance.sample([1, 2, 4, 8], chance.randint(2, 3))
    roles = [Role(f"r{size}", chance.randint(1, 3), size, rules=APART) for size in sizes]
    return nodes, _mixed_order(chance, roles), [*_guests(chance, nodes), *shy]


def _roles(chance: Random) -> Parts:
    """Two or three roles that want CPUs and GPUs in different measure, and scarce room."""
    nodes = [
        Ground(f"n{i}", cpu=chance.choice([4, 8, 12]), gpus=chance.choice([0, 0, 1, 2, 4]))
        for i in range(chance.randint(2, 5))
    ]
    roles = [
        Role(
            f"r{i}", chance.randint(1, 4), chance.choice([1, 2, 3, 5]), chance.choice([0, 0, 1, 2])
        )
        for i in range(chance.randint(2, 3))
    ]
    return nodes, roles, _guests(chance, nodes)


def _zone(chance: Random) -> Parts:
    """Workers beside their driver; zones of nodes in different numbers and sizes."""
    nodes = [
        Ground(f"{zone}{i}", zone, size)
        for zone in "abc"[: chance.randint(2, 3)]
        for size in [chance.choice([4, 8, 16])]
        for i in range(chance.randint(1, 4))
    ]
    driver = Role("driver", 1, chance.randint(1, 2))
    worker = Role("worker", chance.randint(2, 6), chance.choice([2, 3, 4]), rules=BESIDE_DRIVER)
    helper = [Role("helper", chance.randint(1, 3), 2)] if chance.random() < 0.3 else []
    return nodes, [*helper, driver, worker], _guests(chance, nodes)


def _spread(chance: Random) -> Parts:
    """Twelve over three zones with uneven room, in one size or two."""
    nodes = [
        Ground(f"{zone}{i}", zone, size)
        for zone in "abc"
        for size in [chance.choice([2, 4, 6, 8])]
        for i in range(chance.randint(1, 3))
    ]
    small = chance.choice([12, 9, 8, 6, 6])
    roles = [Role("small", small, 1, rules=EVEN)]
    if small < 12:
        roles.append(Role("big", 12 - small, chance.choice([2, 3]), rules=EVEN))
    seen = [Other(node.name, app=GANG) for node in nodes if chance.random() < 0.1]
    return nodes, _mixed_order(chance, roles), [*_guests(chance, nodes), *seen]


def _domains(chance: Random) -> Parts:
    """As many zones or hosts as there are must be used, beside a role that has no rule."""
    topology = chance.choice([ZONE, HOST])
    nodes = _nodes(chance, [4, 6, 8], 3, 5, "abc")
    least = 3 if topology == ZONE else len(nodes)
    rules = (Rule(Ask.EVEN, topology, "role", "m", min_domains=least),)
    members = Role("m", chance.randint(least, least + 3), chance.randint(2, 4), rules=rules)
    helper = Role("helper", chance.randint(1, 3), chance.randint(1, 4))
    return nodes, _mixed_order(chance, [members, helper]), _guests(chance, nodes)


def _ports(chance: Random) -> Parts:
    """Members with one port, so one per node, beside large ones that need none."""
    nodes = _nodes(chance, [4, 4, 8], 3, 7)
    listeners = Role("listener", chance.randint(2, 4), chance.randint(1, 2), port=PORT)
    big = Role("big", chance.randint(1, 3), chance.choice([3, 4]))
    taken = [Other(node.name, port=PORT) for node in nodes if chance.random() < 0.25]
    return nodes, _mixed_order(chance, [listeners, big]), [*_guests(chance, nodes), *taken]


def _mixed(chance: Random) -> Parts:
    """A driver, workers beside it that keep apart or listen, and GPUs here and there."""
    nodes = [
        Ground(f"{zone}{i}", zone, chance.choice([4, 8]), chance.choice([0, 0, 1, 2]))
        for zone in "abc"
        for i in range(chance.randint(2, 4))
    ]
    port = chance.choice([0, PORT])
    beside = (*BESIDE_DRIVER, *([] if port else [Rule(Ask.APART, HOST, "role", "worker")]))
    roles = [
        Role("driver", 1, chance.randint(1, 2), gpus=chance.choice([0, 1])),
        Role("worker", chance.randint(2, 4), chance.randint(1, 4), port=port, rules=beside),
    ]
    if chance.random() < 0.5:
        rules = (Rule(Ask.EVEN, ZONE, "role", "shard"),)
        roles.append(Role("shard", chance.randint(3, 6), chance.randint(1, 3), rules=rules))
    return nodes, _mixed_order(chance, roles), _guests(chance, nodes)


DRAWN: Mapping[Kind, Callable[[Random], Parts]] = {
    Kind.EASY: _easy,
    Kind.APART: _apart,
    Kind.ROLES: _roles,
    Kind.ZONE: _zone,
    Kind.SPREAD: _spread,
    Kind.DOMAINS: _domains,
    Kind.PORTS: _ports,
    Kind.MIXED: _mixed,
}
