"""The limits of queues as limits over gangs.

A limit holds for all gangs at or below its queue. Each limited resource is one row of the planner.
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
    """One limit of one queue; ``in_use`` is charged now to the queue and all queues below it.

    Gangs that wait may start while the limit is not exceeded. While ``in_use`` is above it, no gang
    that requests the resource starts, and no gang ends for it. A limit of a queue in shadow stops
    no gang.
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
        """The amount that starts may still use; never negative."""
        return max(self.limit - self.in_use - self.held, 0)


def limits(
    tree: QueueTree, gangs: Mapping[GangKey, str], charges: Mapping[GangKey, Resources]
) -> Sequence[QueueLimit]:
    """All limits, by queue and resource.

    ``gangs`` has the queue of each gang, whether it runs or waits. ``charges`` has what each gang
    that runs is charged.
    """
    by_queue: dict[str, set[GangKey]] = {name: set() for name in tree.queues}
    for gang, own in gangs.items():
        for step in tree.paths[own]:
            by_queue[step].add(gang)
    limits = []
    for name in sorted(tree.queues):
        queue, below = tree.queues[name], by_queue[name]
        for resource, limit in queue.limits:
            in_use = sum(charges.get(gang, NOTHING)[resource] for gang in below)
            is_shadow = queue.mode is QueueMode.SHADOW
            limits.append(
                QueueLimit(name, resource, limit, in_use, frozenset(below), is_shadow=is_shadow)
            )
    return limits


def caps(limits: Iterable[QueueLimit]) -> Iterator[GangCap]:
    """The limits that count, in the form that checks of plans take: one cap for each queue.

    Limits of queues in shadow do not count.
    """
    by_queue: dict[str, list[QueueLimit]] = {}
    for limit in limits:
        if not limit.is_shadow:
            by_queue.setdefault(limit.queue, []).append(limit)
    for name, rows in by_queue.items():
        amounts = {limit.resource: limit.limit for limit in rows}
        yield GangCap(f"queue {name}", rows[0].gangs, amounts)


def obstacles(
    limits: Iterable[QueueLimit], gang: GangKey, minimum: Resources
) -> Iterator[QueueLimit]:
    """The limits that the gang would exceed if it started now, also limits of queues in shadow."""
    for limit in limits:
        if gang in limit.gangs and minimum[limit.resource] > limit.room:
            yield limit
