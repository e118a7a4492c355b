"""Starved gangs: they go first, and room is held for one of them as it frees up.

All of this follows from the Snapshot, so nothing is remembered between cycles. Held room is given
to no other gang of the same or a lower priority. So the room that is missing never grows.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...gang import order
from ...gang.demand import PlacementRequest
from ...model.cluster import Gang, Snapshot
from ...model.decisions import Policy
from ...model.resources import NOTHING, Resources
from ...queues.cover import QueuedGang
from ...strategies import checks
from ...strategies.capacity import fits_per_node
from ...strategies.problem import Budget, Outcome, Problem, Share, Solution
from ..compile import capacity, grids, problems
from ..compile.capacity import FitByShape
from ..compile.grids import Grid

PORTIONS = 1024  # units of a member, for counting how much of it has room


class StarvationTrials(Protocol):
    """Places in the empty cluster, for problems of one demand."""

    def look(self, problem: Problem) -> Sequence[Share]:
        """A place found by a quick search; empty if there is none."""

    def choose(self, problems: Iterable[Problem]) -> None:
        """Choose which problems to search, of those without a place by the quick search."""

    def search(self, problem: Problem) -> Sequence[Share]:
        """A place found by a search, for one of these problems; empty if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class StarvedGang:
    """A gang that goes first, and one way to place it in the empty cluster."""

    want: PlacementRequest
    base: Grid  # with the rules between pods as they are in the empty cluster
    vacant: NDArray[np.int64]  # [node, resource]: once all members of gangs have ended
    shares: tuple[Share, ...]

    @property
    def placed(self) -> NDArray[np.int64]:
        """[node, resource]: what it requests in the empty cluster."""
        placed = np.zeros_like(self.vacant)
        for row, share in _rows(self):
            placed[share.node] += self.base.requests[row] * share.count
        return placed

    @property
    def is_ruled(self) -> bool:
        """Whether rules between pods restrict some of its members."""
        rows = {row for row, _ in _rows(self)}
        rules = self.base.rules
        asking = {
            rule.shape
            for rules_of_kind in (rules.anti_affinity, rules.affinity, rules.spread)
            for rule in rules_of_kind
        }
        return not rows.isdisjoint(asking)


@dataclass(frozen=True, slots=True)
class EmptyClusterPlacement:
    """A strategy that places a starved gang as in the empty cluster, if that room is free now."""

    shares: tuple[Share, ...]
    name: str = "as in the empty cluster"

    def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - spends nothing
        """Answer a problem of this gang alone."""
        shares = (self.shares,) if checks.is_sound(problem, (self.shares,)) else ((),)
        return Solution(Outcome.HEURISTIC, shares)


@dataclass(frozen=True, slots=True)
class QueuedHolder:
    """A gang for which something is held, as the walk over the queues sees it.

    The tier is that of the queue which covers it, infinite if none does. If the gang is entitled,
    its cover is held, too.
    """

    gang: QueuedGang
    tier: float
    is_entitled: bool


@dataclass(frozen=True, slots=True, eq=False)
class HeldCapacity:
    """The room that is held for a gang until it has enough.

    While a limit of its queue keeps the gang waiting, no room is held, and only its place below the
    limits is.
    """

    gang: Gang
    room: NDArray[np.int64]  # [node, resource]
    nodes: int  # the number of nodes that it is to start on
    is_from_all: bool = False  # held from gangs of any priority; only with Queues
    requests: Resources = NOTHING  # amounts held below each limit above its queue
    holder: QueuedHolder | None = None  # the gang in its queue; only with Queues

    def holds_back(self, gang: Gang) -> bool:
        """Whether this room is kept from a gang that has not started."""
        is_below = self.is_from_all or gang.priority <= self.gang.priority
        return is_below and gang.key != self.gang.key


def priority_of(want: PlacementRequest) -> int:
    """The level of a gang if there are no Queues."""
    return want.gang.priority


def starved(
    snapshot: Snapshot,
    cleared: Callable[[], Grid],
    wants: Sequence[PlacementRequest],
    policy: Policy,
    trials: StarvationTrials,
    *,
    level_of: Callable[[PlacementRequest], Hashable] = priority_of,
) -> tuple[StarvedGang, ...]:
    """The gangs that go first: of each level the gang that has waited longest, if it is starved.

    They come by priority, the highest first. A level is a priority, or what ``level_of`` returns;
    such a level may have several priorities, and its highest comes first. A gang without room in
    the empty cluster is skipped. The empty cluster has no members of gangs; ``cleared`` computes
    its Grid, and is called only if needed. Pods of no gang count as staying, since their end is
    unknown.
    """
    late = [w for w in wants if falls_due(w, policy) <= snapshot.taken_at]
    if not late:
        return ()
    base = cleared()
    vacant = grids.vacant(snapshot, base)
    late.sort(key=lambda w: (-w.gang.priority, falls_due(w, policy), w.gang.key))
    levels: dict[Hashable, list[PlacementRequest]] = {}
    for want in late:
        levels.setdefault(level_of(want), []).append(want)
    candidates = [_candidates_of(level, base, vacant, trials) for level in levels.values()]
    trials.choose(
        problem for level_candidates in candidates for _, problem in level_candidates.doubtful
    )
    firsts = (
        _first_to_fit(level_candidates, base, vacant, trials) for level_candidates in candidates
    )
    return tuple(level_candidates for level_candidates in firsts if level_candidates is not None)


def next_change_at(
    wants: Iterable[PlacementRequest],
    firsts: Sequence[StarvedGang],
    snapshot: Snapshot,
    policy: Policy,
) -> float | None:
    """When the next gang becomes starved, among priorities without a gang that goes first."""
    priorities = {gang.want.gang.priority for gang in firsts}
    moments = (falls_due(w, policy) for w in wants if w.gang.priority not in priorities)
    return min((at for at in moments if snapshot.taken_at < at < inf), default=None)


def hold(gang: StarvedGang, free: NDArray[np.int64]) -> HeldCapacity:
    """The free room to hold for the gang, on the seats that miss the least room.

    Seats are chosen shape by shape, the largest first; each choice is exact for its shape. If not
    all members get a seat in this way, or rules between pods concern them, the gang's placement in
    the empty cluster is used. That placement does not depend on which gangs start or end.
    """
    best_seats = None if gang.is_ruled else _best_seated(gang, free)
    seat_room = gang.placed if best_seats is None else best_seats
    nodes = int(np.count_nonzero(seat_room.any(axis=1)))
    return HeldCapacity(gang.want.gang, np.minimum(free, seat_room), nodes)


def _best_seated(gang: StarvedGang, free: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The room of the seats that miss least, over all domains if the gang must be in one.

    None if not all members get a seat, if a domain rule concerns only some members, or if members
    must be in segments.
    """
    demand = problems.problem(gang.base, gang.vacant, [gang.want], [1])
    rules = demand.demands[0].same_domain
    if demand.demands[0].segments:
        return None
    if not rules:
        seats = _seated(gang, free, None)
        return None if seats is None else seats[0]
    if len(rules) > 1 or len(rules[0].parts) < len(demand.demands[0].parts):
        return None
    domain = demand.domains[rules[0].level]
    options = (_seated(gang, free, domain == n) for n in range(int(domain.max(initial=-1)) + 1))
    least = min((seats for seats in options if seats is not None), key=itemgetter(1), default=None)
    return None if least is None else least[0]


def _seated(
    gang: StarvedGang, free: NDArray[np.int64], within: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], int] | None:
    """The room of the seats that miss least, and what they miss; None if seats run out."""
    base = gang.base
    seat_room = np.zeros_like(free)
    missing = 0
    vacant, free_room = gang.vacant, free
    for row, count in _by_shape(gang):
        request = base.requests[row]
        allowed = base.allowed[row] if within is None else base.allowed[row] & within
        chosen = members_per_node(vacant, free_room, allowed, (request, count))
        if int(chosen.sum()) < count:
            return None
        used = chosen[:, None] * request
        missing += _missing(chosen, free_room, request)
        seat_room = seat_room + used
        vacant, free_room = vacant - used, np.maximum(free_room - used, 0)
    return seat_room, missing


def _missing(chosen: NDArray[np.int64], free: NDArray[np.int64], request: NDArray[np.int64]) -> int:
    """How much of these members has no free room, in units of 1 / PORTIONS of a member."""
    used = np.flatnonzero(request)
    portions = (free[:, used] * PORTIONS // request[used]).min(axis=1)
    return int(np.maximum(chosen * PORTIONS - portions, 0).sum())


def falls_due(want: PlacementRequest, policy: Policy) -> float:
    """When the gang becomes starved, in seconds since the epoch."""
    return order.waiting_since(want.gang, want.members) + policy.starvation_seconds


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The first gang of a level that the quick search places, and older gangs that it does not."""

    doubtful: Sequence[tuple[PlacementRequest, Problem]]
    easy: StarvedGang | None = None


def _candidates_of(
    level: Iterable[PlacementRequest],
    base: Grid,
    vacant: NDArray[np.int64],
    trials: StarvationTrials,
) -> _Candidates:
    rooms = FitByShape(base, vacant)
    doubtful: list[tuple[PlacementRequest, Problem]] = []
    for want in level:
        if capacity.short(rooms, want) is None and capacity.domain_shortage(rooms, want) is None:
            problem = problems.problem(base, vacant, [want], [1])
            if shares := trials.look(problem):
                return _Candidates(doubtful, StarvedGang(want, base, vacant, tuple(shares)))
            doubtful.append((want, problem))
    return _Candidates(doubtful)


def _first_to_fit(
    candidates: _Candidates, base: Grid, vacant: NDArray[np.int64], trials: StarvationTrials
) -> StarvedGang | None:
    for want, problem in candidates.doubtful:
        if shares := trials.search(problem):
            return StarvedGang(want, base, vacant, tuple(shares))
    return candidates.easy


def _by_shape(gang: StarvedGang) -> Sequence[tuple[int, int]]:
    """The number of members of each shape that would start, the largest shape first."""
    counts: dict[int, int] = {}
    for row, share in _rows(gang):
        counts[row] = counts.get(row, 0) + share.count
    totals = gang.vacant.sum(axis=0).clip(1)
    sizes = {row: float((gang.base.requests[row] / totals).max()) for row in counts}
    return sorted(counts.items(), key=lambda item: (-sizes[item[0]], item[0]))


def _rows(gang: StarvedGang) -> Iterable[tuple[int, Share]]:
    """The shares, each with the row of its shape."""
    rows = [gang.base.shapes[group[0].shape] for group in problems.parts(gang.want)]
    return ((rows[share.part], share) for share in gang.shares)


def members_per_node(
    vacant: NDArray[np.int64],
    free: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    members: tuple[NDArray[np.int64], int],
) -> NDArray[np.int64]:
    """How many of these equal members to seat on each node, so that the least room is missing.

    A member misses the part of its request without free room. On one node each further member
    misses no less than the member before it, so taking the cheapest seats one by one is exact.
    Seats of equal cost are taken in the nodes' order. So a choice changes only for a seat that
    misses less, or that comes earlier.
    """
    request, count = members
    used = np.flatnonzero(request)
    most = fits_per_node(vacant, request, allowed, count)
    portions = (free[:, used] * PORTIONS // request[used]).min(axis=1)
    whole = np.minimum(portions // PORTIONS, most)
    begun = np.minimum(most - whole, 1)
    nodes = np.tile(np.arange(len(free)), 3)
    nothing = np.zeros_like(whole)
    costs = np.concatenate((nothing, PORTIONS - portions % PORTIONS, nothing + PORTIONS))
    offers = np.concatenate((whole, begun, most - whole - begun))
    cheapest = np.lexsort((nodes, costs))
    before = np.cumsum(offers[cheapest]) - offers[cheapest]
    seats = np.clip(count - before, 0, offers[cheapest])
    chosen: NDArray[np.int64] = np.zeros_like(whole)
    np.add.at(chosen, nodes[cheapest], seats)
    return chosen
