"""The order in which gangs are considered, which decides between gangs that want the same room.

All other parts of planning keep this order.
"""

from collections.abc import Iterable, Sequence

from ..model.cluster import Gang, Member
from ..model.keys import GangKey


def considered(gangs: Iterable[Gang]) -> tuple[Gang, ...]:
    """Gangs by priority from the top, then the oldest first, then by name."""
    return tuple(sorted(gangs, key=_rank))


def by_age(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members from the oldest to the newest; equal ages by name."""
    return tuple(sorted(members, key=lambda member: (member.created, member.key)))


def waiting_since(gang: Gang, waiting: Sequence[Member]) -> float:
    """Since when the gang waits, in seconds since the epoch.

    It is the creation of the gang, or of its oldest waiting member if that is later. So a gang that
    lost all its members waits since its new members were created. ``waiting`` is sorted by age.
    """
    return max([gang.created, *(member.created for member in waiting[:1])])


def _rank(gang: Gang) -> tuple[int, float, GangKey]:
    return (-gang.priority, gang.created, gang.key)
