"""The starved gang: which it is, and what is held for it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from . import model
from .lawful import has_begun, use
from .world import Gang, are_covered, entry, start_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .reading import Reading
    from .world import Entry, World


class First(NamedTuple):
    """The starved gang that goes first."""

    gang: Gang
    tier: float  # of the queue that would cover it beside all that run; infinite if none would
    is_entitled: bool


def first_of(world: World, running: Sequence[Gang]) -> First | None:
    """The starved gang that goes first."""
    late = [g for g in world.gangs if not has_begun(g) and world.now - g.since >= world.starving]
    late = [g for g in late if model.fit(world.nodes, [g]) and _keeps_limits_alone(world, g)]
    late.sort(key=lambda g: (-g.priority, g.since, g.name))
    entries = [entry(g) for g in running if has_begun(g)]
    firsts = [First(g, tier_of(world, entries, g), is_entitled(world, entries, g)) for g in late]
    candidates = {
        (one.gang.team, one.tier, one.is_entitled): one for one in reversed(firsts)
    }.values()
    return min(
        candidates,
        key=lambda one: (one.tier, not one.is_entitled, one.gang.since, one.gang.name),
        default=None,
    )


def tier_of(world: World, running: Sequence[Entry], gang: Gang) -> float:
    """The lowest tier up to which queues would cover it beside these."""
    start = start_of(gang)
    return next((t for t in world.tiers if are_covered(world, running, [start], t)), inf)


def _keeps_limits_alone(world: World, gang: Gang) -> bool:
    return all(
        limit is None or n <= limit or not n
        for team in world.chain(gang.team)
        for n, limit in zip(gang.minimum, world.teams[team].limit, strict=True)
    )


def is_entitled(world: World, running: Sequence[Entry], gang: Gang) -> bool:
    """Whether it would be covered without the gangs of its queue that come after it."""
    others = [e for e in running if e.team != gang.team or e.priority > gang.priority]
    return are_covered(world, others, [start_of(gang)])


def taken(reading: Reading) -> Iterator[str]:
    """What is held of limits or of cover for a starved gang, and was given to others."""
    if (hold := reading.held) is None:
        return
    world, used = reading.world, use(reading.world, reading.now)
    for team in world.chain(hold.gang.team):
        for r, limit in enumerate(world.teams[team].limit):
            need = hold.gang.minimum[r]
            if need and limit is not None and used[team][r] > max(limit - need, hold.use[team][r]):
                yield f"{team}: resource {r} is held for {hold.gang.name}, and others take of it"
    new = [g for g in reading.now if has_begun(g) and g.name not in hold.begun]
    is_own = [g.team == hold.gang.team for g in new]
    if hold.is_entitled and any(is_own) and all(is_own):
        behind = any(g.priority <= hold.gang.priority for g in new)
        if behind and not are_covered(world, reading.running, [start_of(hold.gang)]):
            yield f"the cover of {hold.gang.name} is held, and gangs of its queue take it"
