"""Which gangs a guarantee covers, and which borrow: one walk from the leaves to the root.

Only lines count here: resources that some queue guarantees. ``docs/queues.md`` states the walk.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from ..model.keys import GangKey
from ..model.resources import NOTHING, Resources
from .tree import QueueTree


@dataclass(frozen=True, slots=True)
class QueuedGang:
    """A gang in its queue, as the walk sees it; extras are in the order in which they joined.

    A gang that waits has an infinite ``started``, so it comes after the gangs of its priority that
    run.
    """

    key: GangKey
    queue: str
    priority: int
    minimum: Resources
    extras: tuple[tuple[str, Resources], ...] = ()  # by pod
    started: float = inf  # seconds since the epoch
    is_protected: bool = False  # never a victim; then it comes first in its own queue


@dataclass(frozen=True, slots=True)
class Cover:
    """The queue that covers each gang, and each extra by gang and pod; what is missing borrows."""

    gangs: dict[GangKey, str] = field(default_factory=dict)
    extras: dict[tuple[GangKey, str], str] = field(default_factory=dict)
    used: dict[str, Resources] = field(default_factory=dict)  # by queue: what it covers itself

    def rank(self, tree: QueueTree, gang: GangKey) -> int | None:
        """The depth of the queue that covers the gang; None if it borrows."""
        queue = self.gangs.get(gang)
        return None if queue is None else tree.depths[queue]


@dataclass
class _Rest:
    """What neither a queue nor any queue below it covers: gangs, and extras of covered gangs."""

    gangs: list[QueuedGang] = field(default_factory=list)
    extras: list[tuple[QueuedGang, str, Resources]] = field(default_factory=list)
    used: Resources = NOTHING  # by what this queue and those below cover


def walk(tree: QueueTree, gangs: Iterable[QueuedGang]) -> Cover:
    """Say for each gang, and for each of its extras, which queue covers it."""
    if not tree.lines:
        return Cover()
    own: dict[str, list[QueuedGang]] = {}
    for gang in sorted(gangs, key=_order):
        own.setdefault(gang.queue, []).append(gang)
    cover = Cover()
    rests: dict[str, _Rest] = {}
    for queue in tree.from_the_leaves:
        rest = _Rest(own.get(queue, []))
        for child in tree.children[queue]:
            below = rests.pop(child)
            rest.gangs += below.gangs
            rest.extras += below.extras
            rest.used += below.used
        rests[queue] = _covered_here(tree, queue, rest, cover)
    return cover


def would_be_covered(
    tree: QueueTree,
    running: Sequence[QueuedGang],
    starts: Sequence[QueuedGang],
    tier: float = inf,
) -> bool:
    """Whether the walk covers each of the starts once all of them run, and no queue's strip a gang.

    Only queues up to this ``tier`` may cover a start. The starts of a queue strip a gang of this
    queue that runs if it is covered beside those of a higher priority, and not beside all of them.
    Starts of other queues do not count for that. A protected start has to be covered by its own
    queue, and may not take the cover of another protected gang.
    """
    cover = walk(tree, (*running, *starts))
    if not all(_is_covered(gang, cover) for gang in starts):
        return False
    if any(tree.tiers[cover.gangs[gang.key]] > tier for gang in starts):
        return False
    protected = [gang for gang in running if gang.is_protected and not _is_covered(gang, cover)]
    if protected and any(start.is_protected for start in starts):
        before = walk(tree, running)
        if any(_is_covered(gang, before) for gang in protected):
            return False
    # What a leaf itself covers depends on its own gangs alone.
    exposed = {gang.queue for gang in running if cover.gangs.get(gang.key) != gang.queue}
    by_queue: dict[str, list[QueuedGang]] = {}
    for start in starts:
        if start.queue in exposed:
            by_queue.setdefault(start.queue, []).append(start)
    return not any(_strip(tree, running, own) for own in by_queue.values())


def covering_tier(tree: QueueTree, running: Sequence[QueuedGang], start: QueuedGang) -> float:
    """The tier of the queue that would cover a start; infinite if it would not be covered."""
    if not would_be_covered(tree, running, [start]):
        return inf
    return tree.tiers[walk(tree, (*running, start)).gangs[start.key]]


def _is_covered(gang: QueuedGang, cover: Cover) -> bool:
    """Whether a queue covers the gang; for a protected gang, whether its own queue does."""
    queue = cover.gangs.get(gang.key)
    return queue is not None and (queue == gang.queue or not gang.is_protected)


def _strip(tree: QueueTree, running: Sequence[QueuedGang], starts: Sequence[QueuedGang]) -> bool:
    """Whether these starts, all of one queue, strip a gang of this queue."""
    queue = starts[0].queue
    # No gang below another child of the root counts for what queues here cover.
    top = tree.paths[queue][-2:]
    beside = [gang for gang in running if tree.paths[gang.queue][-2:] == top]
    cover = walk(tree, (*beside, *starts))
    uncovered = [g for g in beside if g.queue == queue and g.key not in cover.gangs]
    for priority in sorted({gang.priority for gang in uncovered}):
        above = [start for start in starts if start.priority > priority]
        if len(above) < len(starts):
            before = walk(tree, (*beside, *above))
            if any(g.priority == priority and g.key in before.gangs for g in uncovered):
                return True
    return False


def _covered_here(tree: QueueTree, queue: str, rest: _Rest, cover: Cover) -> _Rest:
    """Let one queue cover what fits, and return what it leaves to its parent."""
    guarantee = tree.guarantees[queue]
    if not any(guarantee.values()):
        return rest  # a gang that requests no line is not covered here either
    left = {line: n - rest.used[line] for line, n in guarantee.items()}
    spare = dict(left)
    over = _Rest()
    extras = rest.extras
    for gang in sorted(rest.gangs, key=lambda gang: _order_in(queue, gang)):
        if take(left, gang.minimum):
            cover.gangs[gang.key] = queue
            extras += [(gang, pod, requests) for pod, requests in gang.extras]
        else:
            over.gangs.append(gang)
    for gang, pod, requests in sorted(extras, key=lambda extra: _order(extra[0])):
        if take(left, requests):
            cover.extras[gang.key, pod] = queue
        else:
            over.extras.append((gang, pod, requests))
    here = Resources.of({line: spare[line] - left[line] for line in spare})
    over.used = rest.used + here
    cover.used[queue] = here
    return over


def take(left: dict[str, int], requests: Resources) -> bool:
    """Take the requests out of what is left, if they fit on every line; return whether they do.

    Resources that ``left`` does not name do not count.
    """
    amounts = [(line, n) for line, n in requests.amounts if line in left]
    if any(n > left[line] for line, n in amounts):
        return False
    for line, n in amounts:
        left[line] -= n
    return True


def _order(gang: QueuedGang) -> tuple[int, float, GangKey]:
    return (-gang.priority, gang.started, gang.key)


def _order_in(queue: str, gang: QueuedGang) -> tuple[bool, tuple[int, float, GangKey]]:
    """The order in which a queue takes minimums: its own protected gangs first, by start alone."""
    if gang.is_protected and gang.queue == queue:
        return False, (0, gang.started, gang.key)
    return True, _order(gang)


def on_lines(tree: QueueTree, requests: Resources) -> Resources:
    """The requests, without resources that are no lines."""
    return Resources(tuple((name, n) for name, n in requests.amounts if name in tree.lines))
