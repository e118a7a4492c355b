"""The best gangs of a stage, by CP-SAT: rooms of nodes, limits, and the walk as it is stated.

The plainest model there is. The walk is one Boolean for each queue and item, so a set of starts is
covered in the model if and only if it is by ``world.are_covered``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from .world import start_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .world import Amounts, Entry, Gang, World

Worth = tuple[Fraction, ...]  # by priority, the highest first


class NoAnswerError(Exception):
    """CP-SAT proved no optimum."""


@dataclass(frozen=True)
class Stage:
    """What a stage decides: these gangs, beside gangs that start in any case."""

    world: World
    room: Sequence[Amounts]  # of each node
    before: Sequence[Gang]  # they start too, on any nodes
    gangs: Sequence[Gang]
    left: Mapping[str, Sequence[int | None]]  # of the limit of each queue, beside ``before``
    running: Sequence[Entry]  # all that are charged, ``before`` among them, but for
    together: Sequence[Entry]  # those that must be covered with the gangs of the stage
    tier: int | None  # of the queues that may cover them, at most; None if they may borrow


def priorities(gangs: Sequence[Gang]) -> list[int]:
    """The highest first."""
    return sorted({gang.priority for gang in gangs}, reverse=True)


def worth(world: World, among: Sequence[Gang], starts: Sequence[Gang]) -> Worth:
    """What starts are worth, priority by priority of all these gangs."""
    return tuple(
        sum((world.value(gang) for gang in starts if gang.priority == p), Fraction(0))
        for p in priorities(among)
    )


def best(stage: Stage) -> Worth:
    """The most that can start, priority by priority.

    Raises:
        NoAnswerError: CP-SAT gave up, or the gangs before have no place together.
    """
    model, world = cp_model.CpModel(), stage.world
    starts = {gang.name: model.new_bool_var(gang.name) for gang in stage.gangs}
    _add_rooms(model, stage, starts)
    for team, limits in stage.left.items():
        inside = [gang for gang in stage.gangs if team in world.chain(gang.team)]
        for r, left in enumerate(limits):
            if left is not None:
                model.add(sum(g.minimum[r] * starts[g.name] for g in inside) <= left)
    if stage.tier is not None:
        _add_cover(model, stage, starts, stage.tier)
    fractions: list[Fraction] = []
    unit = lcm(*(world.value(gang).denominator for gang in stage.gangs))
    for priority in priorities(stage.gangs):
        level = [gang for gang in stage.gangs if gang.priority == priority]
        aim = sum(int(world.value(gang) * unit) * starts[gang.name] for gang in level)
        most = _most(model, aim)
        model.add(aim == most)
        fractions.append(Fraction(most, unit))
    return tuple(fractions)


def fit(room: Sequence[Amounts], gangs: Sequence[Gang]) -> bool:
    """Whether all these gangs have room together."""
    model = cp_model.CpModel()
    _add_places(model, room, [(gang, 1) for gang in gangs])
    return solved(model) is not None


def _add_rooms(
    model: cp_model.CpModel, stage: Stage, starts: Mapping[str, cp_model.IntVar]
) -> None:
    wanted: list[tuple[Gang, cp_model.LinearExprT]] = [(gang, 1) for gang in stage.before]
    wanted += [(gang, starts[gang.name]) for gang in stage.gangs]
    _add_places(model, stage.room, wanted)


def _add_places(
    model: cp_model.CpModel,
    room: Sequence[Amounts],
    wanted: Sequence[tuple[Gang, cp_model.LinearExprT]],
) -> None:
    used: list[list[list[cp_model.LinearExprT]]] = [[[] for _ in node] for node in room]
    for gang, start in wanted:
        kinds = [pod.takes for pod in gang.pods[: gang.need]]
        for takes in sorted(set(kinds)):
            counts = [model.new_int_var(0, kinds.count(takes), "") for _ in room]
            model.add(sum(counts) == kinds.count(takes) * start)
            for node, count in enumerate(counts):
                for r, n in enumerate(takes):
                    used[node][r].append(n * count)
    for node, amounts in enumerate(room):
        for r, n in enumerate(amounts):
            model.add(sum(used[node][r]) <= n)


def _add_cover(
    model: cp_model.CpModel, stage: Stage, starts: Mapping[str, cp_model.IntVar], tier: int
) -> None:
    """Queues up to the tier cover every start, and no queue's starts strip a gang of this queue."""
    new = [*stage.together, *map(start_of, stage.gangs)]
    covers = _walk(model, stage, new, starts)
    for name in (one.name for one in new):
        low = [by for team, by in covers[name].items() if stage.world.tier(team) <= tier]
        start = starts.get(name, model.new_constant(1))
        model.add_implication(start, _any(model, low))
    teams = {one.team for one in new}
    for team in sorted(teams & {one.team for one in stage.running}):
        own = [one for one in new if one.team == team]
        with_own = _walk(model, stage, own, starts)
        for priority in sorted({one.priority for one in stage.running if one.team == team}):
            above = [one for one in own if one.priority > priority]
            if len(above) == len(own):
                continue
            without = _walk(model, stage, above, starts)
            for one in stage.running:
                if (one.team, one.priority) == (team, priority):
                    before = _any(model, [*without[one.name].values()])
                    model.add_implication(before, _any(model, [*with_own[one.name].values()]))


def _walk(
    model: cp_model.CpModel,
    stage: Stage,
    new: Sequence[Entry],
    starts: Mapping[str, cp_model.IntVar],
) -> Mapping[str, Mapping[str, cp_model.IntVar]]:
    """For each gang whether each queue covers it, over all that run and these new ones."""
    world = stage.world
    entries = sorted([*stage.running, *new], key=lambda one: one.place)
    yes = model.new_constant(1)
    there = {entry.name: starts.get(entry.name, yes) for entry in entries}
    found: dict[str, dict[str, cp_model.IntVar]] = {entry.name: {} for entry in entries}
    open_items: dict[tuple[str, int], list[cp_model.IntVar]] = {}  # item: covered by which queue
    by_team: dict[str, list[tuple[cp_model.IntVar, Amounts]]] = {t: [] for t in world.teams}
    for team in world.walked:
        inside = [entry for entry in entries if team in world.chain(entry.team)]
        items = [(one.name, 0, one.minimum) for one in inside]
        items += [(one.name, i, x) for one in inside for i, x in enumerate(one.extras, 1)]
        for name, number, amounts in items:
            earlier = open_items.setdefault((name, number), [])
            conditions = [~each for each in earlier]
            conditions.append(_any(model, open_items[name, 0]) if number else there[name])
            for r in world.lines:
                if amounts[r]:
                    use = sum(each * taken[r] for each, taken in by_team[team])
                    fits = model.new_bool_var("")
                    rest = world.guarantee(team, r) - amounts[r]
                    model.add(use <= rest).only_enforce_if(fits)
                    model.add(use >= rest + 1).only_enforce_if(~fits)
                    conditions.append(fits)
            covers = model.new_bool_var("")
            model.add_bool_and(conditions).only_enforce_if(covers)
            model.add_bool_or([*(~condition for condition in conditions), covers])
            earlier.append(covers)
            if not number:
                found[name][team] = covers
            for above in world.chain(team):
                by_team[above].append((covers, amounts))
    return found


def _any(model: cp_model.CpModel, some: Sequence[cp_model.IntVar]) -> cp_model.IntVar:
    found = model.new_bool_var("")
    model.add_max_equality(found, some) if some else model.add(found == 0)
    return found


def _most(model: cp_model.CpModel, aim: cp_model.LinearExprT) -> int:
    model.maximize(aim)
    if (most := solved(model)) is None:
        raise NoAnswerError("the gangs before have no place together")
    return most


def solved(model: cp_model.CpModel) -> int | None:
    """The optimum; None if there is no solution.

    Raises:
        NoAnswerError: CP-SAT proved neither.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 60.0
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise NoAnswerError(f"CP-SAT ended with {solver.status_name(status)}")
    return round(solver.objective_value)
