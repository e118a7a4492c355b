"""Best fit under rules: gang by gang; a gang starts only if all rules hold with it.

This runs only if there are rules. Best fit places the members without rules; other members go where
anti-affinity and spread hold. Members of a gang with affinity to one another are tried in one
domain after another, the tightest first. Each member checks every node, so checks are counted: once
``patience`` is used up, no more members with rules are placed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from .capacity import FreeCapacity
from .greedy import GreedyPlacement, NodeScoring, first
from .inter_pod_state import InterPodState
from .problem import Affinity, Budget, Demand, Problem, Share, Shares
from .shape_demand import Flags

MOST_DOMAINS = 8  # domains that are tried for one gang
LOOKS_PER_SECOND = 5_000_000  # checks of a node for one member; machines do three times as many


class WorkBudget:
    """How many checks of nodes may still be made; a count ends alike on every machine."""

    def __init__(self, looks: float) -> None:
        self.looks = looks

    @classmethod
    def within(cls, budget: Budget) -> "WorkBudget":
        """The number of checks that fit into the seconds of the budget."""
        return cls(budget.seconds * LOOKS_PER_SECOND)

    @property
    def is_over(self) -> bool:
        """Whether no checks are left."""
        return self.looks <= 0


def place_by_rules(
    problem: Problem,
    order: Iterable[int],
    standing: Sequence[tuple[Share, ...]],
    room: FreeCapacity,
    scoring: NodeScoring,
    *,
    patience: WorkBudget,
) -> Shares:
    """Place these demands in the given order, beside the standing shares.

    ``room`` is already without what the standing shares use.
    """
    state, answer = InterPodState(problem), list(standing)
    for demand, own in zip(problem.demands, answer, strict=True):
        for share in own:
            state.add(demand.parts[share.part].shape, share.node, share.count)
    waiting: list[int] = []
    for _, level in groupby(order, key=lambda index: problem.demands[index].level):
        waiting += level
        is_worth_a_try = True
        while is_worth_a_try:
            before = len(waiting)
            for index in waiting:
                attempt = _Attempt(problem, index, room, scoring, state, patience=patience)
                answer[index] = attempt.shares()
            # Gangs with affinity to other gangs may start once the other gangs are placed.
            waiting = [i for i in waiting if not answer[i] and _near(state, problem.demands[i])]
            is_worth_a_try = 0 < len(waiting) < before
    return tuple(answer)


def _near(state: InterPodState, demand: Demand) -> Sequence[Affinity]:
    return [rule for part in demand.parts for rule in state.near(part.shape)]


@dataclass(frozen=True, slots=True, eq=False)
class _Region:
    """Where a gang is tried: on some nodes, or near the pods that are placed already."""

    shapes: frozenset[int] = frozenset()  # shapes that must stay on the nodes
    nodes: Flags | None = None


class _Attempt(GreedyPlacement):
    """One demand, placed whole and by the rules, or undone."""

    def __init__(
        self,
        problem: Problem,
        index: int,
        room: FreeCapacity,
        scoring: NodeScoring,
        state: InterPodState,
        *,
        patience: WorkBudget,
    ) -> None:
        super().__init__(problem, index, room, scoring)
        demand = self._demand
        self._rules, self._state, self._patience = problem.rules, state, patience
        self._region = _Region()
        # Members that other members have affinity to come first.
        self._largest_first.sort(key=lambda i: bool(state.near(demand.parts[i].shape)))

    def shares(self) -> tuple[Share, ...]:
        """The demand's shares; or none, with all room given back."""
        shapes = {part.shape for part in self._demand.parts}
        if self._patience.is_over and any(map(self._state.concerns, shapes)):
            return ()
        for _ in self._regions_tried():
            for region in self._regions():
                mark, self._region = self._room.mark(), region
                if self._is_placed() and self._state.holds(sorted(shapes)):
                    return self._result()
                for (index, node), count in self._shares.items():
                    self._state.add(self._demand.parts[index].shape, node, -count)
                self._undo(mark)
        return ()

    def _take_back(
        self, mark: int, placed: Sequence[int], shares: Mapping[tuple[int, int], int]
    ) -> None:
        for key, count in self._shares.items():
            if added := count - shares.get(key, 0):
                self._state.add(self._demand.parts[key[0]].shape, key[1], -added)
        super()._take_back(mark, placed, shares)

    def _regions(self) -> Iterator[_Region]:
        """The regions to try: near placed pods, and each domain that may hold the gang.

        If no pod is placed that the affinity selects, domains come first.
        """
        near = _near(self._state, self._demand)
        if not near:
            yield _Region()
            return
        finest = max(
            (index for rule in near for index in rule.domain_counts),
            key=lambda index: len(self._rules.domain_counts[index].there),
        )
        together = self._domains(finest)
        if any(self._state.is_alone(rule) for rule in near):
            yield from (*together, _Region())
        else:
            yield from (_Region(), *together)

    def _domains(self, index: int) -> Iterator[_Region]:
        """The domains of a count that may hold the gang, the tightest first."""
        domain_count = self._rules.domain_counts[index]
        inside = domain_count.domain >= 0
        holds, room = np.zeros((2, len(domain_count.there)), dtype=np.int64)
        shapes, uncovered = set(), 0
        for part in self._demand.parts:
            if not (self._state.near(part.shape) or domain_count.counted[part.shape]):
                uncovered += part.available
                continue
            shapes.add(part.shape)
            fits = np.where(self._open(part.shape), self._room.fits(part.shape), 0)[inside]
            sums = np.bincount(domain_count.domain[inside], fits, len(holds)).astype(np.int64)
            holds += np.minimum(sums, part.available)
            room += sums
        enough = np.flatnonzero(holds + uncovered >= self._demand.need)
        for domain in enough[np.argsort(room[enough], kind="stable")][:MOST_DOMAINS].tolist():
            yield _Region(frozenset(shapes), domain_count.domain == domain)

    def _open(self, shape: int) -> Flags:
        """[node]: where the shape may go now, its affinity aside."""
        open_to = self._state.open_to(shape)
        if self._region.nodes is not None and shape in self._region.shapes:
            open_to &= self._region.nodes
        return open_to

    def _most(self, index: int) -> int:
        part = self._demand.parts[index]
        if not self._state.concerns(part.shape):
            return super()._most(index)
        fits = self._room.fits(part.shape)[self._open_to(index)]
        return min(part.available, int(fits.sum()))

    def _open_to(self, index: int) -> Flags:
        """[node]: where the part may go now, its domain included."""
        within = self._within[index]
        open_to = self._open(self._demand.parts[index].shape)
        return open_to if within is None else open_to & within

    def _spread(self, index: int, count: int) -> None:
        shape, state = self._demand.parts[index].shape, self._state
        if not state.concerns(shape):
            super()._spread(index, count)
            return
        until = self._placed[index] + count
        while self._placed[index] < until and not self._patience.is_over:
            fits = self._room.fits(shape)
            self._patience.looks -= len(fits)
            open_nodes = self._open_to(index) & (fits > 0)
            if self._region.nodes is None:
                open_nodes &= state.affinity_now(shape)
            nodes = state.emptiest(shape, np.flatnonzero(open_nodes))
            if not nodes.size:
                return
            most = 1 if state.counts_one_by_one(shape) else until - self._placed[index]
            take = np.minimum(fits[nodes], min(most, self._scoring.at_once))
            best = first(self._scoring.keys(self._room, shape, nodes, take))
            node, members = int(nodes[best]), int(take[best])
            self._room.take(shape, nodes[best : best + 1], take[best : best + 1])
            state.add(shape, node, members)
            self._placed[index] += members
            self._shares[index, node] = self._shares.get((index, node), 0) + members
