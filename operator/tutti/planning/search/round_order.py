"""The order of a plan's rounds: what is decided together, and what comes later.

Whole gangs of all priorities are one joint decision, in which a higher priority is worth more than
all lower priorities together. Two things split the decision. Members beyond those needed come
before lower priorities. And room may be held for a starved gang from all gangs that come later.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from ...gang import demand
from ...gang.demand import MemberCounts, PlacementRequest
from ...model.keys import GangKey
from .starvation import StarvedGang


class Round(NamedTuple):
    """Whole gangs that are decided on together, and gangs that may grow afterwards.

    If the gang in ``starved`` does not start in this round, room is held for it from all later
    rounds.
    """

    wants: tuple[PlacementRequest, ...]
    growing: tuple[MemberCounts, ...] = ()
    starved: StarvedGang | None = None


def rounds(
    gangs: Sequence[MemberCounts],
    wants: Sequence[PlacementRequest],
    firsts: Sequence[StarvedGang] = (),
    stopped: Collection[GangKey] = (),
) -> Sequence[Round]:
    """The rounds in order; ``gangs`` and ``firsts`` are by priority, the highest first.

    Gangs that are ``stopped`` do not grow.
    """
    by_gang = {want.gang.key: want for want in wants}
    by_priority = {starved_gang.want.gang.priority: starved_gang for starved_gang in firsts}
    order: list[Round] = []
    together: list[PlacementRequest] = []
    for priority, level in groupby(gangs, key=lambda census: census.gang.priority):
        censuses = tuple(level)
        if (first := by_priority.get(priority)) is not None:
            together.append(replace(by_gang.pop(first.want.gang.key), is_starved=True))
            order.append(Round(tuple(together), starved=first))
            together = []
        together += [by_gang[c.gang.key] for c in censuses if c.gang.key in by_gang]
        growing = tuple(
            census
            for census in censuses
            if census.gang.key not in stopped and demand.may_grow(census)
        )
        if growing:
            order.append(Round(tuple(together), growing))
            together = []
    return [*order, Round(tuple(together))] if together else order


def once_held(remaining: Sequence[Round]) -> Sequence[Round]:
    """The remaining rounds, once room is held for a starved gang.

    Room is held for one gang at a time, so no other starved gang divides a round.
    """
    order: list[Round] = []
    together: tuple[PlacementRequest, ...] = ()
    for step in remaining:
        together += step.wants
        if step.growing:
            order.append(Round(together, step.growing))
            together = ()
    return [*order, Round(together)] if together else order
