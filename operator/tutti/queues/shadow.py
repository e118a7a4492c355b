"""Which gangs the limits of a queue in shadow would have stopped; such limits stop no gang."""

from collections.abc import Iterable, Mapping, Sequence

from ..model.keys import GangKey
from ..model.queues import QueueMode
from ..model.resources import Resources
from .cover import QueuedGang, take
from .tree import QueueTree


def stopped(
    tree: QueueTree, running: Iterable[QueuedGang], charges: Mapping[GangKey, Resources]
) -> Mapping[str, tuple[GangKey, ...]]:
    """For each queue in shadow, the gangs that run although its limits would have stopped them.

    The gangs at or below the queue are counted as if they started one by one, in the order of their
    starts. A gang that then exceeds a limit is stopped, and uses nothing of the limit. Extras are
    counted after their gang, one by one; an extra that exceeds a limit stops no gang, and uses
    nothing of the limit either.
    """
    below: dict[str, list[QueuedGang]] = {
        name: [] for name, queue in tree.queues.items() if queue.mode is QueueMode.SHADOW
    }
    if not below:
        return {}
    for gang in sorted(running, key=lambda gang: (gang.started, gang.key)):
        for name in tree.paths[gang.queue]:
            if name in below:
                below[name].append(gang)
    return {name: _stopped(tree, name, gangs, charges) for name, gangs in below.items()}


def _stopped(
    tree: QueueTree,
    name: str,
    gangs: Sequence[QueuedGang],
    charges: Mapping[GangKey, Resources],
) -> tuple[GangKey, ...]:
    room, keys = dict(tree.queues[name].limits), []
    for gang in gangs:
        extras = [requests for _, requests in gang.extras]
        if not take(room, charges[gang.key] - Resources.total(extras)):
            keys.append(gang.key)
            continue
        for extra in extras:
            take(room, extra)
    return tuple(keys)
