"""Is a plan lawful: room on nodes, whole gangs, limits, and a lost member replaced if it can be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .world import charge, charged, minus, plus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .world import Amounts, Gang, World

Placed = dict[str, dict[int, int]]  # by gang: pods by number, and their nodes


def after(world: World, placed: Placed) -> list[Gang]:
    """The gangs once the plan is carried out."""
    return [
        replace(
            gang,
            pods=tuple(
                replace(pod, node=placed.get(gang.name, {}).get(i, pod.node))
                for i, pod in enumerate(gang.pods)
            ),
        )
        for gang in world.gangs
    ]


def free(world: World, gangs: Sequence[Gang]) -> list[Amounts]:
    """What nodes have left; never below nothing."""
    used = [tuple(0 for _ in node) for node in world.nodes]
    for gang in gangs:
        for pod in gang.pods:
            if pod.node is not None:
                used[pod.node] = plus(used[pod.node], pod.takes)
    return [minus(node, taken) for node, taken in zip(world.nodes, used, strict=True)]


def faults(world: World, placed: Placed) -> Iterator[str]:
    """A sentence for each law that the plan breaks."""
    gangs = {gang.name: gang for gang in world.gangs}
    for name, nodes in placed.items():
        gang = gangs[name]
        if not gang.at_start and len(nodes) < gang.need:
            yield f"{name} starts with {len(nodes)} of {gang.need} members"
        if not {*nodes} <= {*gang.waiting}:
            yield f"{name}: a pod has a node already"
    yield from _room_faults(world, placed)
    before, later = use(world, world.gangs), use(world, after(world, placed))
    for team, declared in world.teams.items():
        for r, limit in enumerate(declared.limit):
            if limit is not None and later[team][r] > max(limit, before[team][r]):
                yield f"{team} is charged {later[team][r]} of {limit} of resource {r}"


def _room_faults(world: World, placed: Placed) -> Iterator[str]:
    room = [list(node) for node in free(world, world.gangs)]
    gangs = {gang.name: gang for gang in world.gangs}
    for name, nodes in placed.items():
        for number, node in nodes.items():
            for r, n in enumerate(gangs[name].pods[number].takes):
                room[node][r] -= n
    for i, left in enumerate(room):
        if min(left) < 0:
            yield f"node {i} has not the room"


def use(world: World, gangs: Sequence[Gang]) -> dict[str, Amounts]:
    """What queues are charged with all below them."""
    charges = {g.name: charge(g).total for g in gangs if has_begun(g)}
    return charged(world, charges, gangs)


def has_begun(gang: Gang) -> bool:
    """Whether a pod of the gang has a node."""
    return any(pod.node is not None for pod in gang.pods)


def repair_faults(world: World, placed: Placed) -> Iterator[str]:
    """Where one lost member could be replaced and no other, it is."""
    open_ones = [(g, g.waiting[0]) for g in world.gangs if g.missing and g.waiting]
    if len(open_ones) != 1:
        return
    ((gang, pod),) = open_ones
    if gang.name in placed:
        return
    room = free(world, world.gangs)
    for node, left in enumerate(room):
        takes = gang.pods[pod].takes
        fits = all(n <= has for n, has in zip(takes, left, strict=True))
        if fits and not [*faults(world, {gang.name: {pod: node}})]:
            yield f"{gang.name} lacks a member, for which node {node} has room"
            return
