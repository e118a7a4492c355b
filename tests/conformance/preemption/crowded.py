"""Larger random clusters in which many gangs run: more victims than sets of them can be tried."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from . import instances, plans
from .plans import State
from .rules import FULL, RECLAIM, Extra, World, is_protected

if TYPE_CHECKING:
    from .rules import Job

NODES, JOBS, NEW = (3, 10), (8, 40), (2, 4)


def state(seed: int) -> State:
    """A cluster that gangs have filled one after another, and some gangs that came last."""
    chance = Random(seed * 104_729)
    resources = chance.choice((2, 2, 3))
    nodes = tuple(
        tuple(chance.randint(4, 12) for _ in range(resources))
        for _ in range(chance.randint(*NODES))
    )
    teams = instances.teams(chance, resources)
    budgets = {name: chance.choice((2, 4, 6, 9)) for name in instances.BUDGETS}
    made = State(World(teams, nodes, chance.choice((FULL, FULL, RECLAIM)), budgets), ())
    for i in range(chance.randint(*JOBS)):
        made = replace(made, now=made.now + chance.randint(1, 9))
        job = instances.job(chance, made.world, f"j{i}", made.now)
        made = _with_started(replace(made, jobs=(*made.jobs, job)), job)
    running = tuple(made.running)  # what found no room is left out
    made = replace(made, jobs=running, now=made.now + chance.randint(1, 40))
    for i in range(chance.randint(*NEW)):
        job = instances.job(chance, made.world, f"new{i}", made.now - chance.randint(0, 3))
        job = replace(job, priority=job.priority + 1, members=job.members + chance.randint(0, 3))
        if job.single:
            job = replace(job, members=1)
        job = replace(job, protected=is_protected(made.world, job))
        made = replace(made, jobs=(*made.jobs, job))
    return made.with_budgets()


def _with_started(state: State, job: Job) -> State:
    """The same in which the gang runs with all its extras, as far as there is room."""
    nodes = plans.room_with(state, job, frozenset())
    if nodes is None:
        return state
    started = replace(job, start=state.now, nodes=nodes)
    state = state.with_job(started)
    while len(started.extras) < job.wishes:
        places = plans.places(job, state.room(once_gone=True), 1)
        if places is None or not state.keeps_limits(job, job.each, once_gone=True):
            break
        number = len(started.extras) + 1
        extras = (*started.extras, Extra(number, places[0], state.now))
        started = replace(started, extras=extras)
        state = state.with_job(started)
    return state
