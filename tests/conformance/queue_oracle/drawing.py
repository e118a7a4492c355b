"""Random small clusters with queues, one for each seed.

Up to 5 nodes, 3 resources beside pods, trees to depth 3, 5 gangs that run and 7 that wait. Gangs
that run have extras, lost members, members that leave and members that wait; they may exceed
guarantees, limits and nodes. In every third cluster gangs may have starved.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

from .world import ROOT, Amounts, Gang, Pod, Team, World, plus

NOW = 1000
STARVED = 500  # seconds of wait
PODS = 100  # on each node


def world(seed: int) -> World:
    """The cluster of this seed."""
    chance = Random(f"queues {seed}")
    resources = chance.choice((1, 1, 2, 2, 3))
    nodes = tuple(
        (*(chance.randint(2, 9) for _ in range(resources)), PODS)
        for _ in range(chance.randint(1, 5))
    )
    teams = _teams(chance, resources)
    parents = {team.parent for team in teams.values()}
    leaves = [name for name in teams if name not in parents]
    leaves += [ROOT] if chance.random() < 0.3 else []
    everywhere = [*teams, ROOT] if chance.random() < 0.2 else leaves
    gangs = [
        _running(chance, f"r{i}", chance.choice(everywhere), resources, len(nodes))
        for i in range(chance.randint(0, 5))
    ]
    gangs += [
        _waiting(chance, f"w{i}", chance.choice(leaves), resources)
        for i in range(chance.randint(1, 7))
    ]
    starving = STARVED if seed % 3 == 0 else inf
    objective = chance.choice(("resources", "gangs", "members"))
    drawn = World(teams, nodes, tuple(gangs), NOW, starving, objective)
    return _with_past(_with_later_members(drawn, seed), seed)


def _teams(chance: Random, resources: int) -> dict[str, Team]:
    teams: dict[str, Team] = {}
    depths = {ROOT: 0}
    for i in range(chance.randint(1, 6)):
        parent = chance.choice([name for name, depth in depths.items() if depth < 3])
        depths[f"q{i}"] = depths[parent] + 1
        guarantee = [
            chance.choice((None, 0, 2, 3, 4, 6, 8, 12)) if chance.random() < 0.8 else None
            for _ in range(resources)
        ]
        limit = [
            chance.randint(0, 14) if chance.random() < 0.35 else None for _ in range(resources)
        ]
        pods = [chance.randint(1, 6) if chance.random() < 0.1 else None for _ in range(2)]
        weight = chance.choice((1, 1, 2, 3))
        teams[f"q{i}"] = Team(parent, (*guarantee, pods[0]), (*limit, pods[1]), weight)
    return teams


def _with_past(drawn: World, seed: int) -> World:
    """The cluster; some have queues with past use, and every eighth also has many ties."""
    chance = Random(f"past {seed}")
    has_ties = seed % 8 == 3
    if chance.random() < 0.67 and not has_ties:
        return drawn
    choice = (None, (0, 0, 0), (40, 0, 1), (40, 0, 3), (10, 30, 2), (5, 5, 0))
    teams = {name: replace(team, past=chance.choice(choice)) for name, team in drawn.teams.items()}
    if not has_ties:
        return replace(drawn, teams=teams)
    teams = {
        name: replace(team, guarantee=(None,) * len(team.guarantee)) for name, team in teams.items()
    }
    gangs = tuple(replace(gang, priority=0) for gang in drawn.gangs if not gang.at_start)
    return replace(drawn, teams=teams, gangs=gangs)


def _with_later_members(drawn: World, seed: int) -> World:
    """The cluster; in every second, whole gangs have a member that joined later, or waits to.

    It is older than the others, and perhaps of another size.
    """
    chance = Random(f"later {seed}")
    if seed % 4 not in (1, 2):
        return drawn
    gangs = [
        _with_later_member(chance, gang, len(drawn.nodes)) if gang.at_start else gang
        for gang in drawn.gangs
    ]
    return replace(drawn, gangs=tuple(gangs))


def _with_later_member(chance: Random, gang: Gang, nodes: int) -> Gang:
    if gang.missing or gang.waiting or any(pod.leaves for pod in gang.pods):
        return gang
    *amounts, _ = gang.pods[0].takes
    takes = chance.choice((gang.pods[0].takes, _takes(chance, len(amounts))))
    node = chance.choice((None, chance.randrange(nodes)))
    return replace(gang, pods=(*gang.pods, Pod(takes, node, age=50)))


def _takes(chance: Random, resources: int) -> Amounts:
    return (*(chance.choice((0, 1, 1, 1, 2, 2, 3)) for _ in range(resources)), 1)


def _waiting(chance: Random, name: str, team: str, resources: int) -> Gang:
    need = chance.choice((1, 1, 2, 2, 3, 4))
    takes = _takes(chance, resources)
    pods = [Pod(takes)] * need
    if need > 1 and chance.random() < 0.35:  # unequal pods
        pods[-1] = Pod(_takes(chance, resources))
    elif chance.random() < 0.25:  # extras
        pods += [Pod(takes)] * chance.choice((1, 1, 2))
    since = chance.choice((0, 100, 200, 700, 800, 900))
    return Gang(name, team, chance.choice((0, 0, 0, 1, 2)), since, need, tuple(pods))


def _running(chance: Random, name: str, team: str, resources: int, nodes: int) -> Gang:
    gang = _waiting(chance, name, team, resources)
    places = [replace(pod, node=chance.randrange(nodes)) for pod in gang.pods]
    at_start = plus(*(pod.takes for pod in places[: gang.need]))
    fate = chance.random()
    if fate < 0.15 and gang.need > 1:  # lost, and perhaps another waits
        last = places.pop(gang.need - 1)
        del places[gang.need - 1 :]
        if chance.random() < 0.6:
            places.append(replace(last, node=None))
    elif fate < 0.3:
        places[-1] = replace(places[-1], leaves=True)
    elif fate < 0.5 and len({pod.takes for pod in places}) == 1:
        places.append(replace(places[0], node=None))  # an extra that waits
    start = chance.randint(0, 3)
    return replace(gang, pods=tuple(places), start=start, at_start=at_start, since=0)
