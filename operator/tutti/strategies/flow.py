"""Flow: all gangs of a priority as one min-cost flow over shapes and kinds of nodes.

This follows Firmament, ksched and Aladdin. Members flow from their gang through their shape to
nodes that may take them, or past the nodes at a price; earlier gangs have a higher price. A flow
counts members, not resources. So its answer is tried on the real room, gang by gang, and only whole
gangs start. The gangs that do not fit flow again through the room that is left. Best fit tries the
gangs that never fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from .best_fit import BestFit, best_fit
from .capacity import FreeCapacity
from .checks import possible
from .domains.regions import has_domains
from .problem import Budget, Demand, Outcome, Problem, Share, Solution

MOST_FLOWS = 8  # flows of one priority; later ones add little
STEPS = 100  # steps of the price of a node, from the fullest to the emptiest
SINK = 0

Wholes = Mapping[int, tuple[Share, ...]]  # by demand


class NoFlowError(Exception):
    """OR-Tools did not find the cheapest flow, although one always exists."""


class Flow:
    """Decides jointly on all gangs of a priority, but counts each shape by itself on a node."""

    name = "flow"

    def __init__(self, engine: type[SimpleMinCostFlow] = SimpleMinCostFlow) -> None:
        """``engine`` finds the flows."""
        self._engine = engine

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Admit priority by priority; if all are admitted, the answer is proved."""
        if problem.rules or has_domains(problem):  # a flow has no domains
            return BestFit().solve(problem, budget)
        room, candidates = FreeCapacity(problem), possible(problem)
        answer: list[tuple[Share, ...]] = [()] * len(problem.demands)
        for level in sorted({problem.demands[index].level for index in candidates}, reverse=True):
            waiting = [i for i in candidates if problem.demands[i].level == level]
            try:
                placed = self._flows(problem, room, waiting)
            except NoFlowError as error:
                return Solution(Outcome.FAILED, ((),) * len(answer), str(error))
            for index, shares in placed.items():
                answer[index] = shares
            waiting = [index for index in waiting if index not in placed]
            answer = list(best_fit(problem, waiting, tuple(answer)))
            for index in waiting:
                _take(problem.demands[index], answer[index], room)
                room.caps.take_shares(index, answer[index])
        return Solution(Outcome.PROVED if all(answer) else Outcome.HEURISTIC, tuple(answer))

    def _flows(self, problem: Problem, room: FreeCapacity, waiting: Sequence[int]) -> Wholes:
        """Place gangs by repeated flows of the gangs that are still waiting; takes their room."""
        wholes: dict[int, tuple[Share, ...]] = {}
        for _ in range(MOST_FLOWS):
            kinds = _Kinds.of(problem, room)
            demands = {index: problem.demands[index] for index in waiting}
            network = _Network(kinds, demands, self._engine())
            shares_by_demand = zip(waiting, network.shares(room), strict=True)
            placed = {index: shares for index, shares in shares_by_demand if shares}
            wholes.update(placed)
            waiting = [index for index in waiting if index not in placed]
            if not (placed and waiting):
                break
        return wholes


def _take(demand: Demand, shares: Sequence[Share], room: FreeCapacity) -> None:
    for share in shares:
        shape = demand.parts[share.part].shape
        room.take(shape, np.array([share.node]), np.array([share.count]))


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """Nodes that are equal for all shapes: the same free room, and the same shapes allowed."""

    nodes: Sequence[NDArray[np.intp]]
    fits: NDArray[np.int64]  # [shape, kind]: members on one node of the kind
    price: NDArray[np.int64]  # [kind]

    @classmethod
    def of(cls, problem: Problem, room: FreeCapacity) -> "_Kinds":
        """The kinds of nodes as they are now; emptier kinds have a higher price."""
        rows = np.hstack([room.free, problem.allowed.T])
        _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        borders = np.cumsum(np.bincount(kind, minlength=1))[:-1]
        nodes = np.split(np.argsort(kind, kind="stable"), borders)
        fits = np.array([room.fits(shape)[first] for shape in range(len(problem.requests))])
        spare = room.spare[first].clip(0)
        price = spare * (STEPS - 1) / max(spare.max(initial=0.0), 1e-9)
        return cls(nodes, fits, price.astype(np.int64))


@dataclass(frozen=True, slots=True)
class _Gang:
    """A gang in the network: the arcs from its parts to shapes, and the arcs past the nodes."""

    index: int  # into Problem.demands
    demand: Demand
    parts: Sequence[int]
    past: Sequence[int]


class _Network:
    """A network from gangs through roles and parts to shapes, kinds of nodes and the sink."""

    def __init__(
        self, kinds: _Kinds, demands: Mapping[int, Demand], engine: SimpleMinCostFlow
    ) -> None:
        self._kinds, self._engine = kinds, engine
        total = sum(demand.need for demand in demands.values())
        shapes, number = kinds.fits.shape
        self._nodes = 1 + shapes + number
        sizes = np.array([len(nodes) for nodes in kinds.nodes], dtype=np.int64)
        most = np.minimum(kinds.fits * sizes, total)
        self._pairs = np.argwhere(most)
        shape, kind = self._pairs.T
        self._spots = engine.add_arcs_with_capacity_and_unit_cost(
            1 + shape, 1 + shapes + kind, most[shape, kind], kinds.price[kind]
        )
        engine.add_arcs_with_capacity_and_unit_cost(
            1 + shapes + np.arange(number),
            np.full(number, SINK),
            most.max(axis=0, initial=0),
            np.zeros(number, dtype=np.int64),
        )
        engine.set_node_supply(SINK, -total)
        self._gangs = [
            self._add(index, demand, STEPS * (len(demands) - rank))
            for rank, (index, demand) in enumerate(demands.items())
        ]

    def shares(self, room: FreeCapacity) -> Iterator[tuple[Share, ...]]:
        """The shares of each gang that flowed whole and has room; takes that room.

        A gang that flowed whole but would exceed a cap gets no shares.

        Raises:
            NoFlowError: the engine gave no answer.
        """
        if (status := self._engine.solve()) != self._engine.OPTIMAL:
            raise NoFlowError(f"OR-Tools found no flow: {status.name}")
        flows = self._engine.flows(self._spots)
        remaining: dict[
            int, list[list[int]]
        ] = {}  # by shape: kinds, the cheapest first, with members
        for row in np.lexsort((self._kinds.price[self._pairs[:, 1]],)).tolist():
            shape, kind = self._pairs[row].tolist()
            if flows[row]:
                remaining.setdefault(shape, []).append([kind, int(flows[row])])
        for gang in self._gangs:
            is_whole = not any(self._engine.flow(arc) for arc in gang.past)
            mark = room.mark()
            shares = self._placed(gang, remaining, room) if is_whole else ()
            if not room.caps.accept(gang.index, shares):
                room.undo(mark)
                shares = ()
            yield shares

    def _placed(
        self, gang: _Gang, remaining: Mapping[int, list[list[int]]], room: FreeCapacity
    ) -> tuple[Share, ...]:
        """The gang on nodes of the kinds that it flowed to; empty if they lack room for it."""
        mark, shares = room.mark(), []
        for number, arc in enumerate(gang.parts):
            shape, missing = gang.demand.parts[number].shape, self._engine.flow(arc)
            while missing:
                kind, members = remaining[shape][0]
                portion = min(missing, members)
                remaining[shape][0][1] -= portion
                if portion == members:
                    del remaining[shape][0]
                missing -= portion
                nodes, counts = _filled(room.fits(shape), self._kinds.nodes[kind], portion)
                if counts.sum() < portion:
                    room.undo(mark)
                    return ()
                room.take(shape, nodes, counts)
                pairs = zip(nodes.tolist(), counts.tolist(), strict=True)
                shares += [Share(number, node, count) for node, count in pairs]
        return tuple(shares)

    def _add(self, index: int, demand: Demand, price: int) -> _Gang:
        """Add a gang; each member that flows past the nodes costs ``price``."""
        engine, first = self._engine, self._nodes
        self._nodes += len(demand.parts)
        parts = [
            engine.add_arc_with_capacity_and_unit_cost(first + i, 1 + part.shape, part.available, 0)
            for i, part in enumerate(demand.parts)
        ]
        past = []
        # Members of a role beyond its minimum pass a gate, whose capacity is what the maximum
        # allows.
        limited = [r for r in range(len(demand.role_minimum)) if demand.maximum(r) < demand.need]
        gates = {role: self._nodes + i for i, role in enumerate(limited)}
        self._nodes += len(gates)
        anyone = demand.need - sum(demand.role_minimum)
        for role, supply in [(None, anyone), *enumerate(demand.role_minimum)]:
            engine.set_node_supply(self._nodes, supply)
            past.append(
                engine.add_arc_with_capacity_and_unit_cost(self._nodes, SINK, supply, price)
            )
            for i, part in enumerate(demand.parts):
                if role in (None, part.role):
                    source = gates.get(part.role, self._nodes) if role is None else self._nodes
                    engine.add_arc_with_capacity_and_unit_cost(source, first + i, supply, 0)
            for gated, gate in gates.items() if role is None else ():
                beyond = demand.maximum(gated) - demand.role_minimum[gated]
                engine.add_arc_with_capacity_and_unit_cost(self._nodes, gate, beyond, 0)
            self._nodes += 1
        return _Gang(index, demand, parts, past)


def _filled(
    fits: NDArray[np.int64], nodes: NDArray[np.intp], members: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The nodes that take these members, filled in order, and how many members each node takes."""
    before = np.cumsum(fits[nodes]) - fits[nodes]
    counts = np.minimum(fits[nodes], members - before).clip(0)
    return nodes[counts > 0], counts[counts > 0]
