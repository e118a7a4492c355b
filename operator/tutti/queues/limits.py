"""The limits of queues as limits over gangs, and what a queue at its limit says.

A limit holds for all gangs at or below its queue. Each resource is one row of the planner.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..model.decisions import GangCap
from ..model.keys import GangKey
from ..model.queues import QueueMode
from ..model.resources import NOTHING, Resources
from .tree import QueueTree


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """One limit of one queue: ``in_use`` is charged to it now, with all queues below it.

    Gangs that wait may start while the limit is not exceeded. Where ``in_use`` is above it, nobody
    starts who asks for the resource, and nobody is ended. One in ``Shadow`` stops nobody.
    """

    queue: str
    resource: str
    limit: int
    in_use: int
    gangs: frozenset[GangKey]
    is_shadow: bool = False
    held: int = 0  # for a starved gang

    @property
    def room(self) -> int:
        """What gangs may still start with; never negative."""
        return max(self.limit - self.in_use - self.held, 0)


def limits(
    tree: QueueTree, gangs: Mapping[GangKey, str], charges: Mapping[GangKey, Resources]
) -> Sequence[QueueLimit]:
    """All limits, by queue and resource; ``gangs`` says each gang's queue, whether it runs or not.

    ``charges`` is what those are charged that run.
    """
    by_queue: dict[str, set[GangKey]] = {name: set() for name in tree.queues}
    for gang, own in gangs.items():
        for step in tree.path(own):
            by_queue[step].add(gang)
    found = []
    for name in sorted(tree.queues):
        queue, below = tree.queues[name], by_queue[name]
        for resource, limit in queue.limits:
            in_use = sum(charges.get(gang, NOTHING)[resource] for gang in below)
            is_shadow = queue.mode is QueueMode.SHADOW
            found.append(
                QueueLimit(name, resource, limit, in_use, frozenset(below), is_shadow=is_shadow)
            )
    return found


def caps(found: Iterable[QueueLimit]) -> Iterator[GangCap]:
    """The limits that count, as the planner and its checker take them, one for each queue."""
    by_queue: dict[str, list[QueueLimit]] = {}
    for limit in found:
        if not limit.is_shadow:
            by_queue.setdefault(limit.queue, []).append(limit)
    for name, rows in by_queue.items():
        amounts = {limit.resource: limit.limit for limit in rows}
        yield GangCap(f"queue {name}", rows[0].gangs, amounts)


def obstacles(
    found: Iterable[QueueLimit], gang: GangKey, minimum: Resources
) -> Iterator[QueueLimit]:
    """The limits that would be exceeded if the gang started now, those in shadow included."""
    for limit in found:
        if gang in limit.gangs and minimum[limit.resource] > limit.room:
            yield limit
