"""The best gangs to start, by CP-SAT: a Boolean for each pod and node.

The plainest model there is: it is to be believed, not to be fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from ..queue_oracle.model import NoAnswerError, solved
from . import device_rows, volume_rows
from .world import priorities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .world import Gang, World

Worth = tuple[Fraction, ...]  # by priority, the highest first
Place = tuple[str, int, int]  # a gang, the number of a pod, a node
Grown = dict[str, frozenset[int]]  # gangs that start with exactly these pods


@dataclass(frozen=True)
class Program:
    """Who starts, and where."""

    model: cp_model.CpModel
    starts: Mapping[str, cp_model.IntVar]
    on: Mapping[Place, cp_model.IntVar]


def program(world: World, grown: Grown) -> Program:
    """All that the cluster allows, in which these gangs start with exactly these pods."""
    model = cp_model.CpModel()
    starts = {gang.name: model.new_bool_var(gang.name) for gang in world.gangs}
    on = {
        (gang.name, i, node): model.new_bool_var("")
        for gang in world.gangs
        for i in range(len(gang.pods))
        for node in range(len(world.nodes))
    }
    made = Program(model, starts, on)
    for gang in world.gangs:
        _add_gang(made, world, gang, grown.get(gang.name))
    _add_room(made, world)
    device_rows.add(model, world, on)
    volume_rows.add(model, world, on)
    return made


def best(world: World, grown: Grown) -> Worth:
    """The most that can start, priority by priority, beside gangs that start with these pods.

    Raises:
        NoAnswerError: CP-SAT gave up, or those gangs cannot start.
    """
    made, found = program(world, grown), list[Fraction]()
    unit = lcm(*(world.value(gang).denominator for gang in world.gangs))
    for priority in priorities(world.gangs):
        level = [gang for gang in world.gangs if gang.priority == priority]
        aim = sum(int(world.value(gang) * unit) * made.starts[gang.name] for gang in level)
        made.model.maximize(aim)
        if (most := solved(made.model)) is None:
            raise NoAnswerError("the gangs that grow cannot start together")
        made.model.add(aim == most)
        found.append(Fraction(most, unit))
    return tuple(found)


def is_possible(
    world: World,
    grown: Grown,
    starts: Sequence[str],
    places: Mapping[tuple[str, int], int] | None = None,
) -> bool:
    """Whether all of these start together; pods that have a place are there, and on no other."""
    made = program(world, grown)
    for name in starts:
        made.model.add(made.starts[name] == 1)
    for (name, pod), node in (places or {}).items():
        made.model.add(made.on[name, pod, node] == 1)
    return solved(made.model) is not None


def worth(world: World, starts: Sequence[str]) -> Worth:
    """What starts are worth, by priority."""
    return tuple(
        sum(
            (world.value(g) for g in world.gangs if g.priority == p and g.name in starts),
            Fraction(0),
        )
        for p in priorities(world.gangs)
    )


def _add_gang(made: Program, world: World, gang: Gang, exactly: frozenset[int] | None) -> None:
    """As many pods as it needs, or none; or exactly these pods."""
    model, start = made.model, made.starts[gang.name]
    nodes = range(len(world.nodes))
    placed = [sum(made.on[gang.name, i, node] for node in nodes) for i in range(len(gang.pods))]
    for i, (pod, times) in enumerate(zip(gang.pods, placed, strict=True)):
        model.add(times <= (0 if pod.is_blocked else 1))
        if exactly is not None:
            model.add(times == int(i in exactly))
        for node in nodes:
            if world.nodes[node].is_closed:
                model.add(made.on[gang.name, i, node] == 0)
    if exactly is not None:
        model.add(start == 1)
    else:
        model.add(sum(placed) == gang.need * start)
    for role, least in gang.least.items():
        own = [n for pod, n in zip(gang.pods, placed, strict=True) if pod.role == role]
        model.add(sum(own) >= least * start)


def _add_room(made: Program, world: World) -> None:
    for number, node in enumerate(world.nodes):
        there = [
            (pod, made.on[gang.name, i, number])
            for gang in world.gangs
            for i, pod in enumerate(gang.pods)
        ]
        made.model.add(sum(is_on for _, is_on in there) <= max(node.free_pods, 0))
        made.model.add(sum(pod.cpu * is_on for pod, is_on in there) <= max(node.free_cpu, 0))
