"""Necessary conditions for a set of starts that would be covered, as rows of a program.

The walk of ``cover`` decides whether a set is covered. Each covered set keeps the rows, but some
sets that keep the rows are not covered. The rows rest on two facts. First, if a queue covers a
gang, then it or queues below it cover all gangs at or below it that come before this gang and
request no more of any line. Second, what a queue covers now stays covered if no start comes before
it and no start is covered below the queue.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from ..model.keys import GangKey
from ..model.resources import Resources
from .cover import QueuedGang, on_lines, walk
from .tree import QueueTree


@dataclass(frozen=True, slots=True)
class CoverRow:
    """The starts among ``gangs`` request at most ``room`` of the line if all would be covered."""

    queue: str
    line: str
    room: int
    gangs: frozenset[GangKey]


@dataclass(frozen=True, slots=True, eq=False)
class CoverRows:
    """The rows, and the starts that may be covered; no other start is in any covered set."""

    starts: tuple[QueuedGang, ...]
    rows: tuple[CoverRow, ...]


def cover_rows(
    tree: QueueTree,
    running: Sequence[QueuedGang],
    starts: Sequence[QueuedGang],
    tier: float = inf,
    together: Collection[GangKey] = (),
) -> CoverRows:
    """The rows for starts beside the gangs that run.

    Only queues up to this ``tier`` may cover the starts. The gangs in ``together`` are in
    ``running``; they have to be covered up to this tier in one set with the starts.
    """
    scan = _Scan.of(tree, running, tier, together)
    while True:
        feasible, stays = scan.feasible(starts)
        left = tuple(start for start in starts if feasible[start.key])
        if len(left) == len(starts):
            return CoverRows(left, tuple(_rows(scan, left, feasible, stays)))
        starts = left


def _rows(
    scan: "_Scan",
    starts: Sequence[QueuedGang],
    feasible: Mapping[GangKey, Sequence[str]],
    stays: Mapping[str, Collection[GangKey]],
) -> Iterable[CoverRow]:
    """One row for each queue and line, over the starts that only it or queues below may cover."""
    tree, bounds = scan.tree, _bounds(scan.tree)
    below: dict[str, set[GangKey]] = {}
    for start in starts:
        path = scan.path(start)
        for queue in path[path.index(feasible[start.key][-1]) :]:
            below.setdefault(queue, set()).add(start.key)
    for queue, gangs in sorted(below.items()):
        used = scan.total(stays[queue])
        for line in tree.lines:
            room = max(bounds[queue][line] - used[line], 0)
            yield CoverRow(queue, line, room, frozenset(gangs))


def _bounds(tree: QueueTree) -> Mapping[str, Mapping[str, int]]:
    """What each queue and the queues below it can cover together, by queue and line.

    It is more than the queue guarantees if its children guarantee more together (a fault).
    """
    bounds: dict[str, Mapping[str, int]] = {}
    for queue in tree.from_the_leaves:
        bounds[queue] = {
            line: max(
                tree.guarantees[queue][line],
                sum(bounds[child][line] for child in tree.children[queue]),
            )
            for line in tree.lines
        }
    return bounds


_Count = tuple[Resources, int]  # what a gang requests of lines, and how many such gangs there are
_Kind = tuple[int, Resources]  # a priority, and what a minimum requests of lines


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """The gangs that run, by the queue that covers them, and by kind at and below each queue."""

    tree: QueueTree
    tier: float  # the highest tier of a queue that may cover a start
    covered: Mapping[str, Sequence[QueuedGang]]  # by queue
    together: Mapping[str, Collection[GangKey]]  # by the topmost queue that may cover them
    # How many gangs of each kind run at or below each queue; the flag says that this plan starts
    # them: names break ties with such gangs.
    kinds: Mapping[str, Mapping[tuple[_Kind, bool], int]]
    lines: Mapping[GangKey, Resources]
    protected: Mapping[str, Sequence[QueuedGang]]  # by their queue

    @classmethod
    def of(
        cls,
        tree: QueueTree,
        running: Sequence[QueuedGang],
        tier: float,
        together: Collection[GangKey],
    ) -> "_Scan":
        """Sort the gangs that run by their cover and kind."""
        cover = walk(tree, running)
        covered: dict[str, list[QueuedGang]] = {}
        topmost: dict[str, set[GangKey]] = {}
        kinds: dict[str, dict[tuple[_Kind, bool], int]] = {queue: {} for queue in tree.queues}
        lines = {gang.key: on_lines(tree, gang.minimum) for gang in running}
        protected: dict[str, list[QueuedGang]] = {}
        for gang in running:
            if gang.key in cover.gangs:
                covered.setdefault(cover.gangs[gang.key], []).append(gang)
            if gang.is_protected:
                protected.setdefault(gang.queue, []).append(gang)
            kind = (gang.priority, lines[gang.key]), gang.started == inf
            for queue in tree.paths[gang.queue]:
                kinds[queue][kind] = kinds[queue].get(kind, 0) + 1
        scan = cls(tree, tier, covered, topmost, kinds, lines, protected)
        for gang in running:
            if gang.key in together:
                last = gang.queue if gang.is_protected else scan.path(gang)[-1]
                topmost.setdefault(last, set()).add(gang.key)
        return scan

    def path(self, gang: QueuedGang) -> Sequence[str]:
        """The gang's own queue and the queues above it, as far as their tier lets them cover it."""
        tiers, path = self.tree.tiers, self.tree.paths[gang.queue]
        return [queue for queue in path[:-1] if tiers[queue] <= self.tier]

    def total(self, gangs: Iterable[GangKey]) -> Resources:
        """What the minimums of these gangs request of lines."""
        return Resources.total(self.lines[gang] for gang in gangs)

    def feasible(
        self, starts: Sequence[QueuedGang]
    ) -> tuple[Mapping[GangKey, Sequence[str]], Mapping[str, Collection[GangKey]]]:
        """The queues that may cover each start, the deepest first, and what stays covered.

        The second mapping has, for each queue, the gangs that it and the queues below it cover now
        and whatever starts.
        """
        tree = self.tree
        inside: dict[str, list[QueuedGang]] = {queue: [] for queue in tree.queues}
        for start in starts:
            for queue in tree.paths[start.queue]:
                inside[queue].append(start)
        kinds = {start.key: _StartKind.of(tree, start) for start in starts}
        feasible: dict[GangKey, list[str]] = {start.key: [] for start in starts}
        stays: dict[str, set[GangKey]] = {}
        for queue in (q for q in tree.from_the_leaves[:-1] if tree.tiers[q] <= self.tier):
            staying = self._staying(queue, inside[queue], feasible)
            stays[queue] = {gang.key for gang in staying}.union(
                self.together.get(queue, ()), *(stays[child] for child in tree.children[queue])
            )
            if not any(tree.guarantees[queue].values()):
                continue
            used = self.total(stays[queue])
            known: dict[_StartKind, bool] = {}
            for start in inside[queue]:
                if start.is_protected and start.queue != queue:
                    continue  # only its own queue may cover it
                kind = kinds[start.key]
                if kind not in known:
                    before = self._before(queue, kind)
                    known[kind] = self._may_cover(queue, kind.requests, used, before)
                if known[kind]:
                    feasible[start.key].append(queue)
        return feasible, stays

    def _staying(
        self,
        queue: str,
        starts: Sequence[QueuedGang],
        feasible: Mapping[GangKey, Sequence[str]],
    ) -> Sequence[QueuedGang]:
        """The gangs that the queue covers now and still covers whichever of the starts start."""
        if any(feasible[start.key] for start in starts):
            return ()
        covered = self.covered.get(queue, ())
        if any(start.is_protected and start.queue == queue for start in starts):
            return [gang for gang in covered if gang.is_protected and gang.queue == queue]
        before = max(((start.priority, -start.started) for start in starts), default=(-inf, -inf))
        return [gang for gang in covered if (gang.priority, -gang.started) > before]

    def _may_cover(
        self, queue: str, wanted: Resources, stays: Resources, before: Sequence[_Count]
    ) -> bool:
        """Whether the queue could cover a start that requests ``wanted``.

        The queue must also have room for the larger of two amounts: what stays covered, and what
        the gangs request that come ``before`` the start and request no more of any line.
        """
        guarantee = self.tree.guarantees[queue]
        return all(
            max(sum(requests[line] * number for requests, number in before), stays[line]) + n
            <= guarantee[line]
            for line, n in wanted.amounts
        )

    def _before(self, queue: str, kind: "_StartKind") -> Sequence[_Count]:
        """The gangs that come before such a start and request no more of any line, by requests."""
        if kind.is_protected:
            sizes = [
                (self.lines[gang.key], 1)
                for gang in self.protected.get(queue, ())
                if gang.started < kind.started
            ]
        else:
            is_last = kind.started == inf
            sizes = [
                (requests, number)
                for ((other, requests), is_tied), number in self.kinds[queue].items()
                if other > kind.priority or (is_last and other == kind.priority and not is_tied)
            ]
        return [
            (requests, number)
            for requests, number in sizes
            if all(n <= kind.requests[line] for line, n in requests.amounts)
        ]


class _StartKind(NamedTuple):
    """What decides which queues may cover a start."""

    priority: int
    requests: Resources  # of lines
    started: float  # infinite if it comes after all gangs of its priority that run
    is_protected: bool

    @classmethod
    def of(cls, tree: QueueTree, start: QueuedGang) -> "_StartKind":
        """The kind of a start."""
        requests = on_lines(tree, start.minimum)
        return cls(start.priority, requests, start.started, start.is_protected)
