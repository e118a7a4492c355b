"""What happens to a cluster from outside: arrivals, ends, edits, lost nodes and time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from . import instances, plans, rules

if TYPE_CHECKING:
    from random import Random

    from .plans import State
    from .rules import Job


def outside(state: State, chance: Random, event: int) -> State:
    """A gang ends or comes, a quota is edited, members fail, a node is lost or time passes."""
    if chance.random() < 0.13:
        jump = chance.choice((instances.LEAST_RUN, instances.LEAST_RUN, plans.STARVATION))
        return replace(state, now=state.now + jump)
    if chance.random() < 0.14:
        return _other_nodes(state, chance)
    what = chance.random()
    if what < 0.25 and state.running:
        over = chance.choice(state.running).name
        return replace(state, jobs=tuple(job for job in state.jobs if job.name != over))
    if what < 0.85 or not state.world.teams:
        new = [
            instances.job(chance, state.world, f"e{event}{i}", state.now)
            for i in range(chance.randint(1, 2))
        ]
        return replace(state, jobs=(*state.jobs, *new)[-instances.MOST_JOBS :])
    return _edited(state, chance)


def _edited(state: State, chance: Random) -> State:
    """Another budget, a Job that tolerates fewer failures, or another guarantee."""
    if state.world.budgets and chance.random() < 0.5:
        return _with_budget(state, chance.choice(sorted(state.world.budgets)), chance.randint(0, 6))
    if chance.random() < 0.3:
        return _with_failed_members(state, chance)
    name = chance.choice(sorted(state.world.teams))
    team = state.world.teams[name]
    guarantee = tuple(chance.choice((None, 0, 2, 4, 6)) for _ in team.guarantee)
    teams = {**state.world.teams, name: replace(team, guarantee=guarantee)}
    return replace(state, world=replace(state.world, teams=teams))


def _with_failed_members(state: State, chance: Random) -> State:
    """Members of some gang fail: its Job tolerates fewer, which protects no gang that runs."""
    if not state.jobs:
        return state
    job = plans.with_failures(chance.choice(state.jobs), chance.randint(1, 3))
    if job.start is None:
        job = replace(job, protected=rules.is_protected(state.world, job))
    return state.with_job(job)


def _with_budget(state: State, name: str, most: int) -> State:
    """Another budget: it protects gangs that start from now on, and no gang that runs."""
    world = replace(state.world, budgets={**state.world.budgets, name: most})
    jobs = tuple(
        job if job.start is not None else replace(job, protected=rules.is_protected(world, job))
        for job in state.jobs
    )
    return replace(state, world=world, jobs=jobs)


def _other_nodes(state: State, chance: Random) -> State:
    """The same with one node less, or one more, of three at most."""
    nodes = state.world.nodes
    if len(nodes) > 1 and chance.random() < 0.7:
        return without_node(state, chance.randrange(len(nodes)))
    new = tuple(chance.randint(2, 9) for _ in state.world.resources)
    world = replace(state.world, nodes=(*nodes, new)[: instances.MOST_NODES])
    return replace(state, world=world)


def without_node(state: State, lost: int) -> State:
    """The same without a node: a gang that loses a member it needs ends whole, and waits again."""
    nodes = tuple(node for n, node in enumerate(state.world.nodes) if n != lost)
    world = replace(state.world, nodes=nodes)
    jobs = tuple(_without_node(world, job, lost) for job in state.jobs)
    leaving = tuple(
        member._replace(node=_renumbered(member.node, lost))
        for member in state.leaving
        if member.node != lost
    )
    return replace(state, world=world, jobs=jobs, leaving=leaving)


def _without_node(world: rules.World, job: Job, lost: int) -> Job:
    if lost in job.nodes:
        waiting = replace(job, start=None, nodes=(), extras=())
        return replace(waiting, protected=rules.is_protected(world, waiting))
    extras = tuple(
        extra._replace(node=_renumbered(extra.node, lost))
        for extra in job.extras
        if extra.node != lost
    )
    return replace(job, nodes=tuple(_renumbered(n, lost) for n in job.nodes), extras=extras)


def _renumbered(node: int, lost: int) -> int:
    return node - 1 if node > lost else node
