"""What must hold of any set of starts that would be covered: rows, and who is in no such set.

The walk of ``cover`` decides; what is stated here is necessary, so it may only be too wide. Two
facts carry it. If a gang is covered by a queue, all gangs there that come before it and request no
more of any line are covered there or below. And what a queue covers now stays covered, whatever
starts, if no start comes before it and none is covered below.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from ..model.keys import GangKey
from ..model.resources import NOTHING, Resources
from .cover import QueuedGang, on_lines, walk
from .tree import QueueTree


@dataclass(frozen=True, slots=True)
class CoverRow:
    """What starts of these gangs request of a line is at most ``room`` if all would be covered."""

    queue: str
    line: str
    room: int
    gangs: frozenset[GangKey]


@dataclass(frozen=True, slots=True, eq=False)
class CoverRows:
    """The rows, and the starts that may be covered at all: all others are in no covered set."""

    starts: tuple[QueuedGang, ...]
    rows: tuple[CoverRow, ...]


def cover_rows(
    tree: QueueTree, running: Sequence[QueuedGang], starts: Sequence[QueuedGang]
) -> CoverRows:
    """The rows for starts beside the gangs that run."""
    scan = _Scan.of(tree, running)
    while True:
        feasible, stays = scan.feasible(starts)
        left = tuple(start for start in starts if feasible[start.key])
        if len(left) == len(starts):
            return CoverRows(left, tuple(_rows(tree, left, feasible, stays)))
        starts = left


def _rows(
    tree: QueueTree,
    starts: Sequence[QueuedGang],
    feasible: Mapping[GangKey, Sequence[str]],
    stays: Mapping[str, Resources],
) -> Iterable[CoverRow]:
    """One row for each queue and line: over the starts that only it or queues below may cover."""
    bounds = _bounds(tree)
    below: dict[str, set[GangKey]] = {}
    for start in starts:
        path = tree.path(start.queue)
        for queue in path[path.index(feasible[start.key][-1]) : -1]:
            below.setdefault(queue, set()).add(start.key)
    for queue, gangs in sorted(below.items()):
        for line in tree.lines:
            room = max(bounds[queue][line] - stays.get(queue, NOTHING)[line], 0)
            yield CoverRow(queue, line, room, frozenset(gangs))


def _bounds(tree: QueueTree) -> Mapping[str, Mapping[str, int]]:
    """What each queue and those below it can cover together: more than the queue by a fault."""
    found: dict[str, Mapping[str, int]] = {}
    for queue in tree.from_the_leaves:
        found[queue] = {
            line: max(
                tree.guarantees[queue][line],
                sum(found[child][line] for child in tree.children[queue]),
            )
            for line in tree.lines
        }
    return found


_Kind = tuple[int, Resources]  # a priority, and what a minimum requests of lines


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """The gangs that run, by the queue that covers them, and by kind at and below each queue."""

    tree: QueueTree
    covered: Mapping[str, Sequence[QueuedGang]]  # by queue
    kinds: Mapping[str, Mapping[_Kind, int]]  # at and below each queue, how many run
    lines: dict[GangKey, Resources] = field(default_factory=dict)
    protected: Mapping[str, Sequence[Resources]] = field(default_factory=dict)  # by their queue

    @classmethod
    def of(cls, tree: QueueTree, running: Sequence[QueuedGang]) -> "_Scan":
        cover = walk(tree, running)
        covered: dict[str, list[QueuedGang]] = {}
        kinds: dict[str, dict[_Kind, int]] = {queue: {} for queue in tree.queues}
        lines = {gang.key: on_lines(tree, gang.minimum) for gang in running}
        protected: dict[str, list[Resources]] = {}
        for gang in running:
            if gang.key in cover.gangs:
                covered.setdefault(cover.gangs[gang.key], []).append(gang)
            if gang.is_protected:
                protected.setdefault(gang.queue, []).append(lines[gang.key])
            kind = gang.priority, lines[gang.key]
            for queue in tree.path(gang.queue):
                kinds[queue][kind] = kinds[queue].get(kind, 0) + 1
        return cls(tree, covered, kinds, lines, protected)

    def feasible(
        self, starts: Sequence[QueuedGang]
    ) -> tuple[Mapping[GangKey, Sequence[str]], Mapping[str, Resources]]:
        """The queues that may cover each start, the deepest first; what stays covered by queue.

        What stays covered counts the queue and those below it.
        """
        tree = self.tree
        inside: dict[str, list[QueuedGang]] = {queue: [] for queue in tree.queues}
        for start in starts:
            for queue in tree.path(start.queue):
                inside[queue].append(start)
        feasible: dict[GangKey, list[str]] = {start.key: [] for start in starts}
        stays: dict[str, Resources] = {}
        for queue in tree.from_the_leaves[:-1]:
            staying = self._staying(queue, inside[queue], feasible)
            below = (stays[child] for child in tree.children[queue])
            stays[queue] = Resources.total((*(self.lines[gang.key] for gang in staying), *below))
            if not any(tree.guarantees[queue].values()):
                continue
            known: dict[_StartKind, bool] = {}
            for start in inside[queue]:
                if start.is_protected and start.queue != queue:
                    continue  # only its own queue may cover it
                requests = on_lines(tree, start.minimum)
                is_last = start.started == inf
                kind = _StartKind(start.priority, requests, is_last, start.is_protected)
                if kind not in known:
                    before = self._before(queue, kind)
                    known[kind] = self._may_cover(queue, requests, stays[queue], before)
                if known[kind]:
                    feasible[start.key].append(queue)
        return feasible, stays

    def _staying(
        self,
        queue: str,
        starts: Sequence[QueuedGang],
        feasible: Mapping[GangKey, Sequence[str]],
    ) -> Sequence[QueuedGang]:
        """The gangs that the queue covers now and whatever starts."""
        if any(feasible[start.key] for start in starts):
            return ()
        covered = self.covered.get(queue, ())
        if any(start.is_protected and start.queue == queue for start in starts):
            return [gang for gang in covered if gang.is_protected and gang.queue == queue]
        before = max(((start.priority, -start.started) for start in starts), default=(-inf, -inf))
        return [gang for gang in covered if (gang.priority, -gang.started) > before]

    def _may_cover(
        self, queue: str, wanted: Resources, stays: Resources, before: Sequence[Resources]
    ) -> bool:
        """Whether the queue could cover a start of this size beside what it must cover before.

        The larger of two amounts must be covered there: what stays, and the gangs that come before
        and request no more.
        """
        guarantee = self.tree.guarantees[queue]
        used = Resources.total(before).at_least(stays)
        return all(used[line] + n <= guarantee[line] for line, n in wanted.amounts)

    def _before(self, queue: str, kind: "_StartKind") -> Sequence[Resources]:
        """What gangs request that come before such a start and request no more of any line."""
        if kind.is_protected:
            sizes = [(requests, 1) for requests in self.protected.get(queue, ())]
        else:
            sizes = [
                (requests, number)
                for (other, requests), number in self.kinds[queue].items()
                if other > kind.priority or (kind.is_last and other == kind.priority)
            ]
        return [
            requests.scaled(number)
            for requests, number in sizes
            if all(n <= kind.requests[line] for line, n in requests.amounts)
        ]


class _StartKind(NamedTuple):
    """What decides which queues may cover a start."""

    priority: int
    requests: Resources  # of lines
    is_last: bool  # after all that run with its priority
    is_protected: bool
