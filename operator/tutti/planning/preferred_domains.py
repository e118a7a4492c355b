"""Better nodes for gangs that the plan starts, so that each gang is in few domains.

The plan keeps its gangs and their members; only their nodes change. ``domain_choice`` says which
domains a gang should have, and this module moves the gangs. The result is not proved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from ..filters.topology import Mask
from ..gang.demand import MemberCounts, PlacementRequest
from ..model.cluster import Snapshot
from ..model.decisions import Assignment
from ..model.keys import Uid
from ..strategies.capacity import FreeCapacity, fits_per_node
from ..strategies.greedy import NodeScoring, first
from ..strategies.inter_pod_state import InterPodState
from ..strategies.problem import Problem
from .compile.quotas import NO_QUOTAS
from .domain_choice import (
    Cost,
    Fits,
    LevelRule,
    LevelRules,
    PlacedGang,
    Seats,
    choices,
    placed_gang,
)
from .local_search import MoveContext
from .search import round_answer
from .search.limits import NO_PROGRESS, Progress, SearchLimits
from .search.partial_plan import PartialPlan

MOST_SWEEPS = 3  # times that each gang is moved by itself
MOST_CLEARED = 4  # domains that are cleared for one gang, one after the other
MOST_PLACED = 2_000  # times that one plan places a gang again, over all gangs
MOST_RULED = 100  # members that rules between pods concern; a gang with more stays
LOOKS_PER_GANG = 10  # such members count as much work as one gang without rules

Masks = NDArray[np.bool_]  # [group, node]


def improved(
    context: MoveContext,
    gangs: Sequence[MemberCounts],
    assigned: Mapping[Uid, Assignment],
    progress: Progress = NO_PROGRESS,
) -> Mapping[Uid, Assignment]:
    """The same members, on nodes with fewer domains for gangs that name levels.

    Compared by priority from the top, the gangs are together in no more domains than before.
    """
    named = (g for g in gangs if g.gang.same_domain or g.gang.preferred_domains)
    if not any(member.uid in assigned for gang in named for member in gang.waiting):
        return assigned
    packing = _Packing(context, gangs, assigned, progress)
    packing.improve()
    return packing.assignments(assigned)


def together(
    plan: PartialPlan, gangs: Sequence[MemberCounts], snapshot: Snapshot, limits: SearchLimits
) -> PartialPlan:
    """The plan with gangs in segments in one domain of the levels that they prefer, where possible.

    Only gangs that start are moved, each beside all others; its widest level comes first.
    """
    rules_of = LevelRules(plan.base, snapshot)
    for members in gangs:
        gang = members.gang
        if not (gang.segments and gang.preferred_domains) or members.is_committed:
            continue
        limits.progress.step()
        if limits.is_late:
            break
        if any(member.uid in plan.assigned for member in members.waiting):
            plan = _in_one_domain(plan, gangs, members, rules_of, limits)
    return plan


def _in_one_domain(
    plan: PartialPlan,
    gangs: Sequence[MemberCounts],
    members: MemberCounts,
    rules_of: LevelRules,
    limits: SearchLimits,
) -> PartialPlan:
    """The plan with one gang placed as if preferred levels were required, if that is better."""
    own = tuple(member for member in members.waiting if member.uid in plan.assigned)
    uids = {member.uid for member in own}
    others = {uid: place for uid, place in plan.assigned.items() if uid not in uids}
    beside = replace(plan.with_moved_members(gangs, others), quotas=NO_QUOTAS)
    quick = replace(limits, strategy=limits.fallback)
    required, best = members.gang.same_domain, plan.assigned
    preferred = [
        (rule, level) for rule, level in rules_of.of(members.gang) if not level.is_required
    ]
    for rule, _ in sorted(preferred, key=lambda pair: len(pair[1].enclosing)):
        gang = replace(members.gang, same_domain=(*required, rule), preferred_domains=())
        want = PlacementRequest(gang, len(own), own)
        answer = round_answer.answer_round(beside, [want], quick)
        if answer.has_placed(want):
            required, best = gang.same_domain, answer.assigned
    costs = [
        placed_gang(plan.base, members, assigned, rules_of).cost()
        for assigned in (best, plan.assigned)
    ]
    return plan.with_moved_members(gangs, best) if costs[0] < costs[1] else plan


class _Packing:
    """The gangs that a plan places, and the room beside them."""

    def __init__(
        self,
        context: MoveContext,
        gangs: Sequence[MemberCounts],
        assigned: Mapping[Uid, Assignment],
        progress: Progress,
    ) -> None:
        base = context.base
        problem = Problem(context.room, base.requests, base.allowed, (), base.rules)
        self._problem, self._progress = problem, progress
        self._nodes = base.nodes
        self._room = FreeCapacity(problem)
        self._scoring = NodeScoring(problem, self._room)
        self._end = InterPodState(problem)
        rules_of = LevelRules(base, context.snapshot)
        placed = [placed_gang(base, members, assigned, rules_of) for members in gangs]
        for gang in placed:
            for (group, node), count in gang.seats.items():
                self._end.add(gang.rows[group], node, count)
        most = MOST_RULED if self._end.holds() else 0
        # The top priority comes first, and in each priority the gang with the most members.
        self._gangs = sorted(
            (
                gang
                for gang in placed
                if gang.uids and self._looks(gang) <= most and not gang.members.gang.segments
            ),
            key=lambda gang: (-gang.members.gang.priority, -int(gang.counts.sum())),
        )
        self._moved = set[Uid]()  # gangs
        self._left = MOST_PLACED

    def improve(self) -> None:
        """Move gangs one by one, then all of them together, then some of them together."""
        with_rules = [gang for gang in self._gangs if gang.rules]
        for _ in range(MOST_SWEEPS):
            if not sum(self._alone(gang) for gang in with_rules):
                break
        if not self._is_split(with_rules):
            return
        self._together(self._gangs)
        for gang in with_rules:
            if gang.cost() > (0, 0):
                self._with_clearing(gang)

    def assignments(self, assigned: Mapping[Uid, Assignment]) -> Mapping[Uid, Assignment]:
        """The assignments with the new nodes; within a group the oldest take the first nodes."""
        answer = dict(assigned)
        for gang in self._gangs:
            if gang.members.gang.uid in self._moved:
                for group, uids in enumerate(gang.uids):
                    nodes = [
                        node
                        for (own, node), count in sorted(gang.seats.items())
                        for _ in range(count)
                        if own == group
                    ]
                    for uid, node in zip(uids, nodes, strict=True):
                        answer[uid] = replace(answer[uid], node=self._nodes[node].name)
        return answer

    def _is_split(self, gangs: Iterable[PlacedGang]) -> bool:
        return any(gang.cost() > (0, 0) for gang in gangs)

    def _is_over(self) -> bool:
        return self._left <= 0 or self._progress.is_late

    def _cost(self) -> list[Cost]:
        """The sums over the gangs of each priority, the top one first."""
        sums: dict[int, Cost] = {}
        for gang in self._gangs:
            domains, levels = sums.get(gang.members.gang.priority, (0, 0))
            own = gang.cost()
            sums[gang.members.gang.priority] = (domains + own[0], levels + own[1])
        return [*sums.values()]

    def _alone(self, gang: PlacedGang) -> bool:
        """Move the gang to better nodes beside all other gangs; return whether there are any."""
        if self._is_over():
            return False
        before = gang.seats
        self._take_off(gang)
        fits = self._fits(gang)
        old = (*gang.cost(), *gang.to_spare(fits))
        if self._place(gang, fits):
            if (*gang.cost(), *gang.to_spare(fits)) < old:
                self._moved.add(gang.members.gang.uid)
                return True
            self._take_off(gang)
        self._put(gang, before)
        return False

    def _together(
        self, gangs: Sequence[PlacedGang], first: tuple[PlacedGang, Masks] | None = None
    ) -> bool:
        """Move these gangs to better nodes together; return whether there are any.

        ``first`` is a gang that is placed before the others, and the only nodes that it may use.
        """
        before, old = [gang.seats for gang in gangs], self._cost()
        for gang in gangs:
            self._take_off(gang)
        done: list[PlacedGang] = []
        if first is not None and self._place(first[0], np.where(first[1], self._fits(first[0]), 0)):
            done.append(first[0])
        if first is None or done:
            for gang in gangs:
                if gang not in done:
                    if self._is_over() or not self._place(gang, self._fits(gang)):
                        break
                    done.append(gang)
        if len(done) == len(gangs) and self._cost() < old:
            self._moved |= {gang.members.gang.uid for gang in gangs}
            return True
        for gang in done:
            self._take_off(gang)
        for gang, seats in zip(gangs, before, strict=True):
            self._put(gang, seats)
        return False

    def _with_clearing(self, gang: PlacedGang) -> None:
        """Clear a domain for the gang, if the gangs that leave it find nodes elsewhere."""
        rule = next(rule for rule in gang.rules if not rule.is_required)
        for domain in islice(self._worth_clearing(gang, rule), MOST_CLEARED):
            inside = rule.enclosing[0] == domain
            masks = np.ones((len(gang.rows), len(inside)), dtype=np.bool_)
            masks[list(rule.groups)] = inside
            others = [
                other
                for other in self._gangs
                if other is gang or any(inside[node] for _, node in other.seats)
            ]
            if self._is_over() or self._together(others, (gang, masks)):
                return

    def _worth_clearing(self, gang: PlacedGang, rule: LevelRule) -> Iterator[int]:
        """Domains that hold the gang once other gangs leave them; few other members come first."""
        own = rule.enclosing[0]
        size = int(own.max(initial=-1)) + 1
        free, members = self._room.free.copy(), np.zeros(size, dtype=np.int64)
        for other in self._gangs:
            for (group, node), count in other.seats.items():
                free[node] += count * self._problem.requests[other.rows[group]]
                members[own[node]] += count if other is not gang else 0
        enough = members > 0
        for group in rule.groups:
            row = gang.rows[group]
            fits = fits_per_node(free, self._problem.requests[row], self._problem.allowed[row])
            enough &= np.bincount(own, fits, size) >= len(gang.uids[group])
        domains = np.flatnonzero(enough)
        yield from domains[np.lexsort((domains, members[domains]))].tolist()

    def _looks(self, gang: PlacedGang) -> int:
        """How many members of the gang rules between pods concern; each looks at all nodes."""
        pairs = zip(gang.rows, gang.uids, strict=True)
        return sum(len(uids) for row, uids in pairs if self._end.concerns(row))

    def _fits(self, gang: PlacedGang) -> Fits:
        """[group, node]: for how many members the node has room now.

        If one member of a group may keep the next one off its node, a node counts for one member.
        """
        fits = np.array([self._room.fits(row) for row in gang.rows])
        for group, row in enumerate(gang.rows):
            if self._end.concerns(row):
                fits[group, ~self._is_open(row)] = 0
                if self._end.counts_one_by_one(row):
                    fits[group] = fits[group].clip(max=1)
        return fits

    def _is_open(self, row: int) -> Mask:
        """[node]: where one more member of the shape keeps its rules."""
        return self._end.open_to(row) & self._end.affinity_now(row)

    def _place(self, gang: PlacedGang, fits: Fits) -> bool:
        """Give the gang nodes by its first choice that can be carried out; False if there is none.

        Domains that have room for each shape alone may not have room for all shapes together. If no
        choice can be carried out, preferences are left out and only required levels count.
        """
        self._left -= 1 + self._looks(gang) // LOOKS_PER_GANG + len(gang.rules) ** 2 // 8
        required = [rule for rule in gang.rules if rule.is_required]
        ways = (choices(rules, fits, gang.counts) for rules in (gang.rules, required))
        return any(self._carry_out(gang, masks) for masks in chain.from_iterable(ways))

    def _carry_out(self, gang: PlacedGang, masks: Sequence[Mask]) -> bool:
        """Place the members, those with the fewest nodes first; undo it if one has no room."""
        gang.seats = {}
        order = [
            (int(np.count_nonzero(masks[group])), -self._scoring.sizes[row], group)
            for group, row in enumerate(gang.rows)
        ]
        for *_, group in sorted(order):
            row, missing = gang.rows[group], len(gang.uids[group])
            for nodes, counts in self._spread(row, missing, masks[group]):
                self._take(row, nodes, counts)
                missing -= int(counts.sum())
                for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
                    gang.seats[group, node] = gang.seats.get((group, node), 0) + count
            if missing:
                self._take_off(gang)
                return False
        if not self._end.holds(gang.rows):
            self._take_off(gang)
            return False
        return True

    def _spread(
        self, row: int, count: int, within: Mask
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64]]]:
        """Nodes, and how many members each takes, by best fit; with rules, one member at a time."""
        if not self._end.concerns(row):
            yield from self._scoring.spread(self._room, row, count, within)
            return
        for _ in range(count):
            nodes = np.flatnonzero(within & self._is_open(row) & (self._room.fits(row) > 0))
            if not nodes.size:
                return
            ones = np.ones(nodes.size, np.int64)
            best = first(self._scoring.keys(self._room, row, nodes, ones))
            yield nodes[best : best + 1], ones[:1]

    def _take_off(self, gang: PlacedGang) -> None:
        self._change_room(gang, gang.seats, -1)

    def _put(self, gang: PlacedGang, seats: Seats) -> None:
        self._change_room(gang, seats, 1)
        gang.seats = seats

    def _change_room(self, gang: PlacedGang, seats: Seats, times: int) -> None:
        for group, row in enumerate(gang.rows):
            own = [(node, count) for (g, node), count in seats.items() if g == group]
            if own:
                nodes, counts = np.array(own, dtype=np.intp).T
                self._take(row, nodes, times * counts)

    def _take(self, row: int, nodes: NDArray[np.intp], counts: NDArray[np.int64]) -> None:
        self._room.take(row, nodes, counts)
        if self._end.concerns(row):
            for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
                self._end.add(row, node, count)
