"""Which gangs would have to make room: bound gangs by ending, planned gangs by not starting.

The search is for the fewest gangs: one gang exactly, several gangs greedily, by the room that each
gives back. If members must be in one domain, the room for these counts domain by domain.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..gang import domain_rules
from ..model.cluster import Gang, Snapshot
from ..model.inter_pod import DomainRule
from ..model.keys import GangKey, NodeName
from ..model.resources import Resources
from ..model.shapes import Shape
from ..strategies.capacity import fits_per_node
from .baseline import Baseline, Table, goes_before, placements, summed
from .probes import Prober, ProbeResult
from .results import Certainty, EndedGangs, Placeable

PLANS_FOR_ONE = 6
PLANS_TOGETHER = 3
TWO = 2  # the number after one
MOST_TOGETHER = 8  # gangs named together; a longer list would not help

Without = Callable[[Sequence[GangKey]], Snapshot]
ByNode = Mapping[NodeName, Resources]
Rows = NDArray[np.intp] | slice
Counts = Mapping[Shape, NDArray[np.int64]]  # by shape and domain, how many members fit
_Kind = tuple[bool, Shape]  # with whether such members must be in one domain


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A gang that could make room, and the room that it would give back."""

    gang: GangKey
    rows: NDArray[np.intp]
    rooms: Table
    size: float  # the sum of its shares of the cluster's resources


def ended(baseline: Baseline, prober: Prober) -> EndedGangs:
    """The bound gangs whose end would make room."""
    rooms = _held_by_gang(baseline)

    def without(keys: Sequence[GangKey]) -> Snapshot:
        return without_bound(baseline.snapshot, {key: rooms[key] for key in keys})

    return _Search(baseline, prober, without).fewest(_candidates(baseline, rooms))


def preferred(baseline: Baseline, prober: Prober, alone: Placeable) -> EndedGangs:
    """The gangs that the plan starts, and without which this gang would start instead."""
    if alone.members < baseline.want.need:
        return EndedGangs((), alone.certainty)
    given_by_gang = placements(baseline.snapshot, baseline.plan)
    rivals = {
        gang.key: given_by_gang[gang.key]
        for gang in baseline.snapshot.gangs
        if gang.key in given_by_gang and goes_before(gang, baseline.gang)
    }
    if not rivals:
        return EndedGangs((), Certainty.PROVED)

    def without(keys: Sequence[GangKey]) -> Snapshot:
        return without_waiting(baseline.snapshot, keys)

    prober.allow(1)
    if prober.verdict(without(tuple(rivals))) is not ProbeResult.STARTS:
        return EndedGangs((), Certainty.TRIED)
    fewest = _Search(baseline, prober, without).fewest(_candidates(baseline, rivals))
    return fewest if fewest.gangs else EndedGangs(tuple(rivals), Certainty.TRIED, fewest.cut)


def without_bound(snapshot: Snapshot, rooms: Mapping[GangKey, ByNode]) -> Snapshot:
    """The Snapshot after these gangs have ended and given back their room."""
    freed = summed([item for by_node in rooms.values() for item in by_node.items()])
    nodes = tuple(
        replace(node, used=node.used - freed[node.name]) if node.name in freed else node
        for node in snapshot.nodes
    )
    gangs = tuple(gang for gang in snapshot.gangs if gang.key not in rooms)
    over = {m.uid for gang in snapshot.gangs if gang.key in rooms for m in gang.members}
    residents = tuple(pod for pod in snapshot.placed_pods if pod.uid not in over)
    return replace(snapshot, nodes=nodes, gangs=gangs, placed_pods=residents)


def without_waiting(snapshot: Snapshot, keys: Sequence[GangKey]) -> Snapshot:
    """The Snapshot as if no member of these gangs waited."""

    def content(gang: Gang) -> Gang:
        members = tuple(member for member in gang.members if not member.is_waiting)
        return replace(gang, members=members)

    quiet = set(keys)
    gangs = tuple(content(gang) if gang.key in quiet else gang for gang in snapshot.gangs)
    return replace(snapshot, gangs=gangs)


def _domain_labels(baseline: Baseline) -> tuple[str, ...]:
    """The labels of the narrowest level that all members must be in one domain of, if any."""
    levels = (rule.level for rule in baseline.gang.same_domain if not rule.roles)
    paths = (domain_rules.labels_of(level, baseline.snapshot.topologies) for level in levels)
    return max(paths, key=len, default=())


def _narrowest_rule(baseline: Baseline) -> tuple[DomainRule | None, tuple[str, ...]]:
    """The rule with the narrowest level that members which wait must be in one domain of, if any.

    Of equal levels, that of all members counts.
    """
    roles = {member.role for member in baseline.want.members}
    rules = [
        (rule, domain_rules.labels_of(rule.level, baseline.snapshot.topologies))
        for rule in baseline.gang.same_domain
        if any(domain_rules.covers(rule, role) for role in roles)
    ]
    return max(rules, key=lambda pair: (len(pair[1]), not pair[0].roles), default=(None, ()))


def _held_by_gang(baseline: Baseline) -> Mapping[GangKey, ByNode]:
    """The room of bound members of other gangs; a gang with a Reservation still starts."""
    reserved = {reservation.gang for reservation in baseline.snapshot.reservations}
    rooms = {
        gang.key: summed(
            [
                (member.node, member.shape.requests)
                for member in gang.members
                if member.node is not None and not member.is_over
            ]
        )
        for gang in baseline.snapshot.gangs
        if gang.key != baseline.gang.key and gang.key not in reserved
    }
    return {key: by_node for key, by_node in rooms.items() if by_node}


def _candidates(
    baseline: Baseline, rooms_by_gang: Mapping[GangKey, ByNode]
) -> Sequence[_Candidate]:
    """The gangs by the room that they would give back, the smallest first."""
    totals = baseline.base.capacity.sum(axis=0).clip(1)
    candidates = []
    for key, by_node in rooms_by_gang.items():
        rows, rooms = baseline.rows(by_node)
        candidates.append(_Candidate(key, rows, rooms, float((rooms.sum(axis=0) / totals).sum())))
    return sorted(candidates, key=lambda candidate: (candidate.size, candidate.gang))


class _Search:
    """The search for the fewest other gangs without which the gang starts."""

    def __init__(self, baseline: Baseline, prober: Prober, without: Without) -> None:
        self._baseline, self._prober, self._without = baseline, prober, without
        want = baseline.want
        self._minimums = dict(want.minimums)
        rule, labels = _narrowest_rule(baseline)
        kinds = [
            (rule is not None and domain_rules.covers(rule, member.role), member)
            for member in want.members
        ]
        self._by_role_and_kind = Counter(
            (member.role if want.minimums else "", (is_inside, member.shape))
            for is_inside, member in kinds
        )
        self._by_kind = Counter((is_inside, member.shape) for is_inside, member in kinds)
        base = baseline.base
        self._domains = base.domains.domains(labels) if labels else np.full(len(base.nodes), -1)
        self._labels = _domain_labels(baseline)  # of the domain that is named

    def fewest(self, candidates: Sequence[_Candidate]) -> EndedGangs:
        """One gang if one is enough, else a few gangs, chosen greedily."""
        baseline = self._baseline
        everything = self._freed(baseline.free_now, candidates)
        if not candidates or self._lacking(self._counts(everything)):
            return EndedGangs((), Certainty.PROVED)
        self._prober.allow(PLANS_FOR_ONE)
        # The plan, if proved, or a count of all free room proves that the end of no gang is not
        # enough.
        none_will_do = baseline.plan.proved or self._lacking(self._counts(baseline.free_now)) > 0
        one_will_not = none_will_do
        for candidate in self._promising(candidates):
            verdict = self._prober.verdict(self._without([candidate.gang]))
            if verdict is ProbeResult.STARTS:
                certainty = Certainty.of(proved=none_will_do)
                return EndedGangs((candidate.gang,), certainty, domain=self._domain())
            one_will_not &= verdict is ProbeResult.WAITS
            if verdict is None:
                break
        gangs, is_cut = self._together(candidates)
        certainty = Certainty.of(proved=one_will_not and len(gangs) == TWO)
        return EndedGangs(gangs, certainty, is_cut, self._domain() if gangs else "")

    def _domain(self) -> str:
        """The domain that the gang starts in by the latest plan; empty if it needs none."""
        if not (self._labels and self._prober.node):
            return ""
        row = self._baseline.index[self._prober.node]
        domains = self._baseline.base.domains
        values = domains.values(self._labels, int(domains.domains(self._labels)[row]))
        return f"{'/'.join(values)} of {self._labels[-1]}"

    def _promising(self, candidates: Sequence[_Candidate]) -> Sequence[_Candidate]:
        """The gangs that may be enough alone by counting, the most likely first.

        The most likely gangs make room beside the gangs that go before, although these may move.
        """
        likely = self._singles(self._baseline.free_for_gang, candidates)
        sure = {candidate.gang for candidate in likely}
        possible = self._singles(self._baseline.free_now, candidates)
        return [*likely, *(candidate for candidate in possible if candidate.gang not in sure)]

    def _singles(self, free: Table, candidates: Sequence[_Candidate]) -> Sequence[_Candidate]:
        counts = self._counts(free)
        return [
            candidate
            for candidate in candidates
            if not self._lacking(self._counts_without(free, counts, candidate))
        ]

    def _together(self, candidates: Sequence[_Candidate]) -> tuple[tuple[GangKey, ...], bool]:
        """Add the gang that helps most, one by one, until the planner starts our gang.

        Returns the gangs, and whether the search ended early.
        """
        self._prober.allow(PLANS_TOGETHER)
        free, rest = self._baseline.free_for_gang.copy(), list(candidates)
        chosen: list[_Candidate] = []
        while rest and len(chosen) < MOST_TOGETHER:
            counts = self._counts(free)
            lacking = [
                self._lacking(self._counts_without(free, counts, candidate)) for candidate in rest
            ]
            best = rest.pop(lacking.index(min(lacking)))
            chosen.append(best)
            free[best.rows] += best.rooms
            if min(lacking) or len(chosen) == 1:
                continue
            keys = tuple(sorted(candidate.gang for candidate in self._indispensable(chosen)))
            verdict = self._prober.verdict(self._without(keys))
            if verdict is ProbeResult.STARTS:
                return keys, False
            if verdict is None:
                break
        return (), bool(rest)

    def _indispensable(self, chosen: Sequence[_Candidate]) -> Sequence[_Candidate]:
        """The chosen gangs that counting needs; later gangs may make earlier ones unnecessary."""
        indispensable = list(chosen)
        for candidate in chosen[:-1]:
            rest = [gang for gang in indispensable if gang is not candidate]
            freed = self._freed(self._baseline.free_for_gang, rest)
            if not self._lacking(self._counts(freed)):
                indispensable = rest
        return indispensable

    def _freed(self, free: Table, candidates: Sequence[_Candidate]) -> Table:
        freed = free.copy()
        for candidate in candidates:
            freed[candidate.rows] += candidate.rooms
        return freed

    def _counts(self, free: Table) -> Counts:
        return {shape: self._room(shape, free, slice(None)) for _, shape in self._by_kind}

    def _room(self, shape: Shape, free: Table, rows: Rows) -> NDArray[np.int64]:
        """[domain]: for how many members of the shape these nodes have room.

        The first is of the nodes in no domain.
        """
        base = self._baseline.base
        row = base.shapes[shape]
        fits = fits_per_node(free, base.requests[row], base.allowed[row, rows])
        size = int(self._domains.max(initial=-1)) + 2
        return np.bincount(self._domains[rows] + 1, fits, size).astype(np.int64)

    def _counts_without(self, free: Table, counts: Counts, candidate: _Candidate) -> Counts:
        """The counts without this gang; only counts on its own nodes change."""
        rows, before = candidate.rows, free[candidate.rows]
        after = before + candidate.rooms
        return {
            shape: n + self._room(shape, after, rows) - self._room(shape, before, rows)
            for shape, n in counts.items()
        }

    def _lacking(self, counts: Counts) -> int:
        """How many members lack room, with the domain that has room for most.

        Each shape is counted by itself; 0 means that they may fit. Members that need no domain have
        the room of all nodes.
        """
        need = self._baseline.want.need
        size = int(self._domains.max(initial=-1)) + 2
        in_role = {role: np.zeros(size, dtype=np.int64) for role in self._minimums}
        reach = np.zeros(size, dtype=np.int64)
        for kind, n in self._by_kind.items():
            reach += self._fitting(kind, n, counts)
        for (role, kind), n in self._by_role_and_kind.items():
            if role in in_role:
                in_role[role] += self._fitting(kind, n, counts)
        short = sum(np.maximum(0, least - in_role[role]) for role, least in self._minimums.items())
        return int(np.maximum(np.maximum(need - reach, short), 0).min())

    def _fitting(self, kind: _Kind, n: int, counts: Counts) -> NDArray[np.int64]:
        """[domain]: how many of these members have room if they are in it; the first is none."""
        is_inside, shape = kind
        room = counts[shape]
        if not is_inside:
            return np.full_like(room, min(n, int(room.sum())))
        most: NDArray[np.int64] = np.minimum(n, np.append(0, room[1:]))
        return most
