"""The order in which gangs are considered: what decides between two that want the same room.

Separate so that fairness has one place; every other part of planning keeps the order it is given.
"""

from collections.abc import Iterable, Sequence

from ..model.cluster import Gang, Member
from ..model.keys import GangKey


def considered(gangs: Iterable[Gang]) -> tuple[Gang, ...]:
    """Gangs by priority from the top, the oldest first, names last."""
    return tuple(sorted(gangs, key=_rank))


def by_age(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members from the oldest to the newest; equal ages by name."""
    return tuple(sorted(members, key=lambda member: (member.created, member.key)))


def waiting_since(gang: Gang, waiting: Sequence[Member]) -> float:
    """Since when the gang waits: it was created, or the oldest of its ``waiting`` members was.

    So a gang that lost all its members waits from the moment that new ones were made.
    """
    return max([gang.created, *(member.created for member in waiting[:1])])


def _rank(gang: Gang) -> tuple[int, float, GangKey]:
    return (-gang.priority, gang.created, gang.key)
