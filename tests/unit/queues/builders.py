"""Queues and gangs in few words."""

from math import inf

from tutti.model.keys import GangKey, Uid
from tutti.model.queues import Amounts, Queue
from tutti.model.resources import Resources
from tutti.queues.cover import QueuedGang


def amounts(**given: int) -> Amounts:
    return tuple(sorted(given.items()))


def queue(name: str, parent: str = "", *, limits: Amounts = (), **guaranteed: int) -> Queue:
    return Queue(name, Uid(f"{name}-uid"), parent, amounts(**guaranteed), limits)


def key(name: str) -> GangKey:
    return GangKey("ml", name)


def queued(
    name: str,
    queue: str,
    priority: int = 0,
    *,
    started: float = inf,
    extras: tuple[int, ...] = (),
    **minimum: int,
) -> QueuedGang:
    """A gang in a queue; each extra is an amount of GPUs."""
    more = tuple((f"x{i}", Resources.of({"gpu": n})) for i, n in enumerate(extras))
    return QueuedGang(key(name), queue, priority, Resources.of(minimum), more, started)
