"""Random small clusters with queues: up to 4 nodes, 2 resources, trees to depth 3, 9 gangs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .reference import TOP, Job, Team, World


def world(seed: int) -> World:
    """One cluster; the same seed gives the same."""
    chance = Random(seed)
    resources = chance.choice((1, 2, 2, 3))
    nodes = tuple(
        tuple(chance.randint(2, 8) for _ in range(resources)) for _ in range(chance.randint(1, 3))
    )
    teams = _teams(chance, resources)
    names = [TOP, *teams] if chance.random() < 0.3 else list(teams)
    jobs: list[Job] = []
    for i in range(chance.randint(0, 4)):
        job = _job(chance, f"r{i}", chance.choice(names), resources)
        extras = chance.choice((0, 0, 1, 2))
        places = tuple(chance.randrange(len(nodes)) for _ in range(job.members + extras))
        start = chance.randint(0, 3)
        jobs.append(replace(job, start=start, extras=extras, nodes=places))
    leaves = [n for n in names if n == TOP or all(t.parent != n for t in teams.values())]
    jobs += [
        _job(chance, f"w{i}", chance.choice(leaves), resources) for i in range(chance.randint(1, 5))
    ]
    return World(_with_past(teams, seed), nodes, tuple(jobs))


def siblings(seed: int) -> World:
    """A cluster in which leaves below one parent compete for little room."""
    chance = Random(f"siblings {seed}")
    resources = chance.choice((1, 2, 2))
    teams = {"p": _team(chance, TOP, (4, 6, 8), resources)}
    parents = ["p"]
    if chance.random() < 0.5:
        parents = ["m0", "m1"]
        teams |= {name: _team(chance, "p", (None, 2, 4), resources) for name in parents}
    for i in range(chance.randint(2, 4)):
        teams[f"q{i}"] = _team(chance, chance.choice(parents), (0, 1, 2, 2, 3), resources)
    leaves = [n for n in teams if all(t.parent != n for t in teams.values())]
    room = [[chance.randint(1, 4) for _ in range(resources)] for _ in range(chance.randint(1, 3))]
    jobs: list[Job] = []
    for i in range(chance.randint(0, 4)):
        job = replace(_job(chance, f"r{i}", chance.choice(leaves), resources), members=1)
        nodes = tuple(chance.randrange(len(room)) for _ in range(chance.choice((1, 1, 2))))
        for node in nodes:
            room[node] = [a + b for a, b in zip(room[node], job.each, strict=True)]
        jobs.append(replace(job, start=chance.randint(0, 3), extras=len(nodes) - 1, nodes=nodes))
    jobs += [
        _job(chance, f"w{i}", chance.choice(leaves), resources) for i in range(chance.randint(2, 5))
    ]
    return World(_with_past(teams, seed), tuple(map(tuple, room)), tuple(jobs))


def _with_past(teams: dict[str, Team], seed: int) -> dict[str, Team]:
    """The queues; in every third cluster the past use of some of them is recorded."""
    chance = Random(f"past {seed}")
    if chance.random() < 0.67:
        return teams
    choice = (None, (0, 0, 0), (40, 0, 1), (40, 0, 3), (10, 30, 2), (5, 5, 0))
    return {name: replace(team, past=chance.choice(choice)) for name, team in teams.items()}


def _team(chance: Random, parent: str, choice: tuple[int | None, ...], resources: int) -> Team:
    guarantee = tuple(chance.choice(choice) for _ in range(resources))
    limit = tuple(4 if chance.random() < 0.1 else None for _ in range(resources))
    return Team(parent, guarantee, limit)


def _teams(chance: Random, resources: int) -> dict[str, Team]:
    teams: dict[str, Team] = {}
    depth: dict[str, int] = {TOP: 0}
    for i in range(chance.randint(1, 6)):
        parent = chance.choice([name for name, d in depth.items() if d < 3])
        name = f"q{i}"
        depth[name] = depth[parent] + 1
        guarantee = tuple(
            chance.choice((None, 0, 2, 3, 4, 6, 8)) if chance.random() < 0.8 else None
            for _ in range(resources)
        )
        limit = tuple(
            chance.randint(0, 9) if chance.random() < 0.3 else None for _ in range(resources)
        )
        teams[name] = Team(parent, guarantee, limit, chance.choice((1, 1, 2, 3)))
    return teams


def _job(chance: Random, name: str, team: str, resources: int) -> Job:
    each = tuple(chance.choice((0, 1, 1, 1, 2, 3)) for _ in range(resources))
    members, priority = chance.choice((1, 1, 2, 3)), chance.choice((0, 0, 1, 2))
    return Job(name, team, priority, members, each, since=chance.randint(0, 3))
