"""Which gangs a guarantee covers, and how far a cluster is from rest."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.keys import GangKey
from ...model.queues import ROOT, QueueMode
from ..queues.chains import QueueChains

Amounts = Counter[str]
Item = tuple[GangKey, str]  # a gang, and the name of an extra; empty for its minimum


@dataclass(frozen=True, slots=True)
class ItemGang:
    """A gang that runs, or claims: the charge of its minimum and of each extra."""

    key: GangKey
    queue: str
    priority: int
    started: float  # seconds since the epoch
    minimum: Amounts
    extras: Mapping[str, Amounts]  # by pod, in the order in which they joined
    members: int
    is_protected: bool

    @property
    def charge(self) -> Amounts:
        """The charge of the minimum and all extras."""
        return sum(self.extras.values(), self.minimum)


def covered(queues: QueueChains, gangs: Sequence[ItemGang]) -> Mapping[Item, str]:
    """The queue that covers each item; items that borrow are absent."""
    covers: dict[Item, str] = {}
    sizes = {(gang.key, ""): gang.minimum for gang in gangs}
    sizes |= {(gang.key, pod): amounts for gang in gangs for pod, amounts in gang.extras.items()}
    lines = {line for name in queues.queues for line, n in _declared(queues, name).items() if n}
    for name in sorted(queues.queues, key=lambda name: (-_depth(queues, name), name)):
        left = Counter({line: _guarantee(queues, name, line) for line in lines})
        if not any(left.values()):
            continue
        for item, queue in covers.items():
            if name in _names(queues, queue):
                left.subtract({line: sizes[item][line] for line in lines})
        inside = [gang for gang in gangs if name in _names(queues, gang.queue)]
        inside.sort(key=lambda gang: (-gang.priority, gang.started, gang.key))
        first = [gang for gang in inside if gang.is_protected and gang.queue == name]
        first.sort(key=lambda gang: (gang.started, gang.key))
        minimums = dict.fromkeys((gang.key, "") for gang in (*first, *inside))
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
    """A measure that rises with every plan that ends gangs.

    It has the number of covered items, by depth, kind and priority, and then the number of members
    that run. ``priorities`` has all priorities that exist.
    """
    covers, by_key = covered(queues, gangs), {gang.key: gang for gang in gangs}
    counts = []
    for level in sorted({_depth(queues, name) for name in queues.queues}, reverse=True):
        kinds = Counter(
            _kind(by_key[item[0]], item, queue)
            for item, queue in covers.items()
            if _depth(queues, queue) == level
        )
        counts.append(kinds[0, 0])
        counts += [kinds[kind, priority] for kind in (1, 2) for priority in priorities]
    use = [
        sum(g.members for g in gangs if g.queue == name and g.priority == priority)
        for name in sorted({ROOT, *queues.queues})
        for priority in priorities
    ]
    return counts, use


def _depth(queues: QueueChains, queue: str) -> int:
    """The number of levels below the root."""
    return len(_names(queues, queue))


def _kind(gang: ItemGang, item: Item, queue: str) -> tuple[int, int]:
    """The kind of a covered item, and its priority if that counts."""
    if item[1]:
        return 2, gang.priority
    return (0, 0) if gang.is_protected and gang.queue == queue else (1, gang.priority)


def _names(queues: QueueChains, queue: str) -> Sequence[str]:
    return [step.name for step in queues.chain(queue)]


def _declared(queues: QueueChains, name: str) -> Mapping[str, int]:
    queue = queues.queues[name]
    return dict(queue.guaranteed) if queue.mode is QueueMode.ACTIVE else {}


def _guarantee(queues: QueueChains, name: str, line: str) -> int:
    """The guarantee of a queue: its own declaration, or else the sum over its children."""
    declared = _declared(queues, name)
    if line in declared:
        return declared[line]
    children = [child for child in queues.queues if _names(queues, child)[1:2] == [name]]
    return sum(_guarantee(queues, child, line) for child in children)
