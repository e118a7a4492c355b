"""Random small clusters: 3 nodes, 3 resources, trees to depth 3, 10 gangs, budgets and Jobs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plans import State
from .rules import FULL, OFF, RECLAIM, TOP, Job, Team, World, is_protected

MOST_JOBS, MOST_NODES = 10, 3
BUDGETS = ("x", "y")
MOST_GRACE = 30
FAILURES_LEFT = (0, 1, 2, 3, 4, 6, 9, 9)
LEAST_RUN = 20


def state(seed: int) -> State:
    """A cluster in which all gangs wait; the same seed gives the same."""
    chance = Random(seed)
    resources = chance.choice((1, 1, 2, 2, 3))
    nodes = tuple(
        tuple(chance.randint(2, 9) for _ in range(resources))
        for _ in range(chance.randint(1, MOST_NODES))
    )
    has_queues = chance.random() < 0.85
    tree = teams(chance, resources) if has_queues else {}
    mode = chance.choice((FULL, FULL, RECLAIM, OFF))
    budgets = {name: chance.choice((0, 1, 2, 4, 6)) for name in BUDGETS[: chance.randint(0, 2)]}
    world = World(tree, nodes, mode, budgets)
    jobs = tuple(job(chance, world, f"j{i}", 0) for i in range(chance.randint(3, 6)))
    return State(world, jobs)


def job(chance: Random, world: World, name: str, since: int) -> Job:
    """A gang that waits."""
    leaves = [n for n in world.teams if all(t.parent != n for t in world.teams.values())]
    team = TOP if not leaves or chance.random() < 0.08 else chance.choice(leaves)
    each = tuple(chance.choice((0, 1, 1, 1, 2, 3)) for _ in world.resources)
    job = Job(
        name,
        team,
        chance.choice((0, 0, 1, 2)),
        chance.choice((1, 1, 2, 3)),
        each,
        wishes=chance.choice((0, 0, 0, 1, 2)),
        never=chance.random() < 0.1,
        grace=chance.choice((0, 0, 0, 2 * MOST_GRACE)),
        budgets=tuple(b for b in sorted(world.budgets) if chance.random() < 0.2),
        failures_left=chance.choice(FAILURES_LEFT) if chance.random() < 0.3 else None,
        since=since,
    )
    if chance.random() < 0.1:
        job = replace(job, members=1, wishes=0, single=True)
    return replace(job, protected=is_protected(world, job))


def teams(chance: Random, resources: int) -> dict[str, Team]:
    """A random tree of queues."""
    made: dict[str, Team] = {}
    depth = {TOP: 0}
    for i in range(chance.randint(1, 6)):
        parent = chance.choice([name for name, d in depth.items() if d < 3])
        name = f"q{i}"
        depth[name] = depth[parent] + 1
        guarantee = tuple(
            chance.choice((None, 0, 2, 3, 4, 6, 8)) if chance.random() < 0.8 else None
            for _ in range(resources)
        )
        limit = tuple(
            chance.randint(2, 9) if chance.random() < 0.15 else None for _ in range(resources)
        )
        mode = chance.choice((FULL, FULL, RECLAIM, OFF))
        grace, least_run = chance.choice((None, MOST_GRACE)), chance.choice((0, 0, 0, LEAST_RUN))
        made[name] = Team(parent, guarantee, limit, mode, grace, least_run)
    return made
