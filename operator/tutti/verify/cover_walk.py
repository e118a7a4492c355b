"""Which queue covers what, stated queue by queue: the walk once more, for the check of claims.

It shares nothing with ``queues.cover``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..model.keys import GangKey
from ..model.queues import ROOT, QueueMode
from .queue_checks import QueueChains

Amounts = Counter[str]
Item = tuple[GangKey, str]  # a gang, and the name of an extra; empty for its minimum


@dataclass(frozen=True, slots=True)
class ItemGang:
    """A gang that runs, or is claimed for: what its minimum and each extra are charged."""

    key: GangKey
    queue: str
    priority: int
    started: float  # seconds since the epoch
    minimum: Amounts
    extras: Mapping[str, Amounts]  # by pod, the oldest first
    members: int
    is_protected: bool

    @property
    def charge(self) -> Amounts:
        """All of it."""
        return sum(self.extras.values(), self.minimum)


def covered(queues: QueueChains, gangs: Sequence[ItemGang]) -> Mapping[Item, str]:
    """The queue that covers each item; what borrows is absent."""
    covers: dict[Item, str] = {}
    sizes = {(gang.key, ""): gang.minimum for gang in gangs}
    sizes |= {(gang.key, pod): amounts for gang in gangs for pod, amounts in gang.extras.items()}
    lines = {line for name in queues.queues for line, n in _declared(queues, name).items() if n}
    for name in sorted(queues.queues, key=lambda name: (-depth(queues, name), name)):
        left = Counter({line: _guarantee(queues, name, line) for line in lines})
        if not any(left.values()):
            continue
        for item, queue in covers.items():
            if name in _names(queues, queue):
                left.subtract({line: sizes[item][line] for line in lines})
        inside = [gang for gang in gangs if name in _names(queues, gang.queue)]
        inside.sort(key=lambda gang: _order(gang, name))
        minimums = [(gang.key, "") for gang in inside]
        for item in (*minimums, *((gang.key, pod) for gang in inside for pod in gang.extras)):
            wanted = {line: sizes[item][line] for line in lines if sizes[item][line]}
            is_open = item not in covers and (not item[1] or (item[0], "") in covers)
            if is_open and all(n <= left[line] for line, n in wanted.items()):
                covers[item] = name
                left.subtract(wanted)
    return covers


def measure(
    queues: QueueChains, gangs: Sequence[ItemGang], priorities: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """What rises with every plan that ends something; ``priorities`` are all that there are.

    How much is covered, by depth, kind and priority, then how many members run.
    """
    covers, by_key = covered(queues, gangs), {gang.key: gang for gang in gangs}
    counts = []
    for level in sorted({depth(queues, name) for name in queues.queues}, reverse=True):
        kinds = Counter(
            _kind(by_key[item[0]], item, queue)
            for item, queue in covers.items()
            if depth(queues, queue) == level
        )
        counts.append(kinds[0, 0])
        counts += [kinds[kind, priority] for kind in (1, 2) for priority in priorities]
    use = [
        sum(g.members for g in gangs if g.queue == name and g.priority == priority)
        for name in sorted({ROOT, *queues.queues})
        for priority in priorities
    ]
    return counts, use


def depth(queues: QueueChains, queue: str) -> int:
    """How far below the root."""
    return len(_names(queues, queue))


def _kind(gang: ItemGang, item: Item, queue: str) -> tuple[int, int]:
    """The kind of a covered item, and its priority where that counts."""
    if item[1]:
        return 2, gang.priority
    return (0, 0) if gang.is_protected and gang.queue == queue else (1, gang.priority)


def _order(gang: ItemGang, queue: str) -> tuple[bool, int, float, GangKey]:
    is_first = gang.is_protected and gang.queue == queue
    return not is_first, 0 if is_first else -gang.priority, gang.started, gang.key


def _names(queues: QueueChains, queue: str) -> Sequence[str]:
    return [step.name for step in queues.chain(queue)]


def _declared(queues: QueueChains, name: str) -> Mapping[str, int]:
    queue = queues.queues[name]
    return dict(queue.guaranteed) if queue.mode is QueueMode.ACTIVE else {}


def _guarantee(queues: QueueChains, name: str, line: str) -> int:
    """What a queue guarantees: declared, or what its children do together."""
    declared = _declared(queues, name)
    if line in declared:
        return declared[line]
    children = [child for child in queues.queues if _names(queues, child)[1:2] == [name]]
    return sum(_guarantee(queues, child, line) for child in children)
