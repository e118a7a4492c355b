"""The integer program of admission: how many gangs of each type start, and how nodes are filled.

Gangs with equal requests and equal value are one *type*: one variable says how many of them start,
the earliest first. Nodes are counted per class and pattern, so a solution splits over nodes without
loss. A class with too many patterns to list is counted as a whole. That is exact for a single node.
For several nodes it is an upper bound, and an answer holds only if it can be carried out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, inf

import numpy as np
from pulp import LpAffineExpression, LpProblem, LpVariable
from pulp.constants import (
    LpConstraintEQ,
    LpConstraintGE,
    LpConstraintLE,
    LpInteger,
    LpMaximize,
)
from pulp.pulp import LpConstraint

from ..capacity import caps_by_demand
from ..domains.segment_copies import NO_COPIES, DemandCopies
from ..problem import Cap, Demand, DemandLevel, Problem
from ..shape_demand import Array, ShapeDemand
from .patterns import NodeClass

MOST_EXACT = 2_000  # members counted node by node; with more, engines prove little
TINY = 1e-9  # relative to a value: a lower price counts as none
DIGIT = 2**15  # weights below this are far from an engine's tolerance of 1e-6

Term = tuple[LpVariable, int]


@dataclass(frozen=True, slots=True, eq=False)
class GangType:
    """Interchangeable demands, and the variable of how many of them start."""

    demand: Demand
    indices: tuple[int, ...]  # into Problem.demands, in their order
    starts: LpVariable
    members: tuple[Term, ...]  # of each part: the sum over the demands that start


@dataclass(slots=True, eq=False)
class ClassVariables:
    """A node class in the program: how often each of the chosen patterns is used."""

    nodes: Array  # indices into Problem.free
    patterns: Array  # [pattern, row]; no rows if the class is counted as a whole
    row: LpConstraint | None = None  # the patterns use no more nodes than there are
    chosen: dict[int, LpVariable] = field(default_factory=dict)  # by index of the pattern
    whole: tuple[tuple[int, LpVariable], ...] = ()  # (row, all members), without patterns


class Program:
    """The program of some demands on some classes of nodes; columns may be added later."""

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[int],
        shape_demand: ShapeDemand,
        classes: Sequence[NodeClass],
        copies: Mapping[int, DemandCopies] = NO_COPIES,
    ) -> None:
        """Demands that have ``copies`` start with members in segments."""
        self.lp = LpProblem("admission", LpMaximize)  # type: ignore[no-untyped-call]
        self.shape_demand = shape_demand
        self._row_of = {int(shape): row for row, shape in enumerate(shape_demand.shapes)}
        self._names = 0
        self._rows: list[LpConstraint] = []
        # Whole segments, by shape, size, and how many of them the room of the shape holds.
        self._whole_segments: dict[tuple[int, int, int], list[Term]] = {}
        self.types = [
            self._type(problem, indices, copies.get(indices[0]))
            for indices in _alike(problem, candidates, copies)
        ]
        for (_, _, most), terms in self._whole_segments.items():
            if len(terms) > 1:
                self._row(terms, LpConstraintLE, most)
        for cap in problem.caps:
            self._add_cap(cap)
        self.shape_rows = self._shape_rows()
        self.fillings = [self._filling(node_class) for node_class in classes]
        self.levels = sorted({gang_type.demand.level for gang_type in self.types}, reverse=True)

    @property
    def is_counted(self) -> bool:
        """Whether some nodes have too many patterns to list."""
        return any(filling.whole for filling in self.fillings)

    @property
    def is_rough(self) -> bool:
        """Whether the program could hardly prove anything.

        That is so if several nodes are counted as a whole, which may promise too much, or if the
        program is too large.
        """
        counted = [filling for filling in self.fillings if filling.whole]
        size = sum(len(filling.whole) for filling in counted)
        return size > MOST_EXACT or any(len(filling.nodes) > 1 for filling in counted)

    def aim(self, level: DemandLevel) -> int:
        """Aim at one level's value, and let no lower level start; return the objective's unit."""
        for gang_type in self.types:
            gang_type.starts.upBound = (
                len(gang_type.indices) if gang_type.demand.level >= level else 0
            )
        unit, terms = self._weighed(level)
        self.lp.objective = LpAffineExpression(terms)
        return unit

    def value(self, values: Mapping[str, float]) -> float:
        """The objective of an engine's values, in the unit of the objective."""
        return float(
            sum(
                n * values[variable.name]
                for variable, n in LpAffineExpression(self.lp.objective).items()
            )
        )

    def weights(self) -> Mapping[int, int]:
        """How many gangs of each value may start, in the unit of the objective."""
        counts: dict[int, int] = {}
        for starts, weight in LpAffineExpression(self.lp.objective).items():
            counts[weight] = counts.get(weight, 0) + starts.upBound
        return counts

    def bound(self, prices: Mapping[str, float], per_node: Mapping[int, float]) -> float:
        """An upper bound of all answers, in the unit of the objective, valid for any prices.

        By weak duality, each row is paid for at its price, and each variable takes the better end
        of its range. ``per_node`` is the most that one node's members are worth at these prices, by
        the index of its filling. Source: Neumaier and Shcherbina, Mathematical Programming 99
        (2004).
        """
        total = sum((price * len(self.fillings[i].nodes) for i, price in per_node.items()), 0.0)
        for row, price in self._priced(prices):
            total -= price * float(row.constant)
        for variable, gain in self._gains(prices).items():
            if variable.upBound is not None:
                total += max(gain * (variable.lowBound or 0.0), gain * variable.upBound)
        return total

    def value_per_price(self, prices: Mapping[str, float]) -> Mapping[int, float]:
        """By demand of the level: its value over the price of the room and the caps that it uses.

        In an optimum of the relaxation, demands above 1 start, and demands below 1 do not.
        """
        weights = dict(LpAffineExpression(self.lp.objective).items())
        gains = self._gains(prices)
        ratios = {}
        for gang_type in self.types:
            weight = weights.get(gang_type.starts, 0)
            price = weight - gains.get(gang_type.starts, 0.0)
            ratio = weight / price if price > TINY * weight else inf
            ratios.update(dict.fromkeys(gang_type.indices, ratio) if weight else {})
        return ratios

    def _gains(self, prices: Mapping[str, float]) -> Mapping[LpVariable, float]:
        """The objective of each variable, less what its rows cost at these prices."""
        gains = dict(LpAffineExpression(self.lp.objective).items())
        for row, price in self._priced(prices):
            for variable, count in row.expr.items():
                gains[variable] = gains.get(variable, 0.0) - price * count
        return gains

    def _priced(self, prices: Mapping[str, float]) -> Iterator[tuple[LpConstraint, float]]:
        """The rows with their prices, but for those of classes.

        A price with the wrong sign for its row is no valid dual and counts as 0.
        """
        of_classes = {str(filling.row.name) for filling in self.fillings if filling.row is not None}
        for row in self._rows:
            if row.name not in of_classes:
                price = prices.get(str(row.name), 0.0)
                yield row, 0.0 if price * row.sense > 0 else price

    def everything(self, level: DemandLevel) -> int:
        """The value of the level if all its gangs started."""
        own = (gang_type for gang_type in self.types if gang_type.demand.level == level)
        return sum(gang_type.demand.value * len(gang_type.indices) for gang_type in own)

    def keep(self, level: DemandLevel, value: int) -> None:
        """Demand that the level's value is never below ``value``."""
        unit, terms = self._weighed(level)
        if value == self.everything(level):
            for starts, _ in terms:
                starts.lowBound = starts.upBound
        else:
            self._add_floor(terms, value // unit)

    def _weighed(self, level: DemandLevel) -> tuple[int, list[Term]]:
        """The unit of the level's values, and the variables of its types with their weights."""
        own = [gang_type for gang_type in self.types if gang_type.demand.level == level]
        unit = gcd(*(gang_type.demand.value for gang_type in own))
        return unit, [(gang_type.starts, gang_type.demand.value // unit) for gang_type in own]

    def add(self, filling: ClassVariables, patterns: Iterable[int]) -> None:
        """Add variables for these patterns of a class; they must not be in use yet."""
        if filling.row is None:
            filling.row = self._row([], LpConstraintLE, len(filling.nodes))
        for index in patterns:
            # Its row bounds the variable; a bound of its own would distort the prices.
            variable = filling.chosen[index] = self._whole("z", None)
            filling.row.expr.addterm(variable, 1)
            for row in np.flatnonzero(filling.patterns[index]).tolist():
                self.shape_rows[row].expr.addterm(variable, -int(filling.patterns[index, row]))

    def _type(
        self, problem: Problem, indices: Sequence[int], copies: DemandCopies | None
    ) -> GangType:
        """A type with its rows: all needed members or none, and enough of each role."""
        demand, count = problem.demands[indices[0]], len(indices)
        starts = self._whole("g", count)
        if len(demand.parts) == 1:
            return GangType(demand, tuple(indices), starts, ((starts, demand.need),))
        chosen = []
        for part in demand.parts:
            most = min(part.available, demand.maximum(part.role))
            members = self._whole("x", most * count)
            chosen.append(members)
            self._row([(members, 1), (starts, -most)], LpConstraintLE, 0)
        self._row([(starts, -demand.need), *((c, 1) for c in chosen)], LpConstraintEQ, 0)
        for role, minimum in enumerate(demand.role_minimum):
            own = [
                (members, 1)
                for members, part in zip(chosen, demand.parts, strict=True)
                if part.role == role
            ]
            if minimum:
                self._row([(starts, -minimum), *own], LpConstraintGE, 0)
            if (maximum := demand.maximum(role)) < demand.need:
                self._row([(starts, -maximum), *own], LpConstraintLE, 0)
        if copies is not None:
            self._add_segments(copies, starts, chosen)
        return GangType(demand, tuple(indices), starts, tuple((c, 1) for c in chosen))

    def _add_segments(
        self, copies: DemandCopies, starts: LpVariable, chosen: Sequence[LpVariable]
    ) -> None:
        """Add rows that keep the members of one demand in segments, and parts within their pods.

        In each domain there are whole segments, and in one domain a short one.
        """
        of_part: dict[int, list[Term]] = {}
        for origin, members in zip(copies.origins, chosen, strict=True):
            of_part.setdefault(origin, []).append((members, 1))
        parts = dict(zip(copies.origins, copies.demand.parts, strict=True))
        for origin, terms in of_part.items():
            self._row([*terms, (starts, -parts[origin].available)], LpConstraintLE, 0)
        for linked in copies.linked:
            is_short: list[Term] = []
            for own in linked.domains:
                whole = self._whole("k", own.most_whole)
                if own.shape is not None:
                    key = (own.shape, linked.size, own.room // linked.size)
                    self._whole_segments.setdefault(key, []).append((whole, 1))
                terms = [*((chosen[part], 1) for part in own.parts), (whole, -linked.size)]
                if linked.short != 0:
                    has_short = self._whole("h", 1)
                    is_short.append((has_short, 1))
                    most = linked.short or linked.size - 1
                    rest = has_short if linked.short else self._whole("e", most)
                    terms.append((rest, -most if linked.short else -1))
                    if not linked.short:
                        self._row([(rest, 1), (has_short, -most)], LpConstraintLE, 0)
                self._row(terms, LpConstraintEQ, 0)
            if is_short:
                self._row([*is_short, (starts, -1)], LpConstraintLE, 0)

    def _add_cap(self, cap: Cap) -> None:
        """Add a row that keeps the use of a cap within its room, if members could exceed it."""
        terms: list[Term] = []
        most = 0
        for gang_type in self.types:
            if gang_type.indices[0] in cap.demands:  # and so are all others of the type
                for part, (variable, count) in zip(
                    gang_type.demand.parts, gang_type.members, strict=True
                ):
                    amount = count * int(cap.amount[part.shape])
                    if amount:
                        terms.append((variable, amount))
                        most += amount * int(variable.upBound or 0)
        if most > cap.room:
            unit = gcd(*(amount for _, amount in terms))
            lowered = [(variable, -(amount // unit)) for variable, amount in terms]
            self._add_floor(lowered, -(cap.room // unit))

    def _shape_rows(self) -> list[LpConstraint]:
        """By row, the constraint that a shape has no more members than places."""
        terms = [LpAffineExpression() for _ in self.shape_demand.shapes]
        for gang_type in self.types:
            for part, (variable, count) in zip(
                gang_type.demand.parts, gang_type.members, strict=True
            ):
                terms[self._row_of[part.shape]].addterm(variable, count)
        return [self._row(list(own.items()), LpConstraintLE, 0) for own in terms]

    def _filling(self, node_class: NodeClass) -> ClassVariables:
        if node_class.patterns is None:
            nothing = np.zeros((0, len(self.shape_rows)), dtype=np.int64)
            return ClassVariables(node_class.nodes, nothing, whole=tuple(self._counted(node_class)))
        if len(node_class.patterns) == 1:
            # The nodes can be filled in one way: there is no choice, and so no variable.
            for row, count in enumerate(node_class.patterns[0].tolist()):
                constant = -int(self.shape_rows[row].constant)
                self.shape_rows[row].changeRHS(constant + len(node_class.nodes) * count)
        return ClassVariables(node_class.nodes, node_class.patterns)

    def _counted(self, nodes: NodeClass) -> Iterable[tuple[int, LpVariable]]:
        """Variables for the members of each shape in the class, limited by its nodes' room."""
        asks = self.shape_demand.requests
        most = nodes.most.tolist()
        variables = {row: self._whole("y", n) for row, n in enumerate(most) if n}
        for resource, room in enumerate(nodes.room.tolist()):
            rows = np.flatnonzero((asks[:, resource] > 0) & (nodes.most > 0)).tolist()
            amounts = [(row, int(asks[row, resource])) for row in rows]
            if sum(n * most[row] for row, n in amounts) > room:
                unit = gcd(*(n for _, n in amounts))
                self._add_room([(variables[row], n // unit) for row, n in amounts], room // unit)
        for row, variable in variables.items():
            self.shape_rows[row].expr.addterm(variable, -1)
        return variables.items()

    def _add_room(self, terms: list[Term], room: int) -> None:
        """Add a row that keeps the sum within the room."""
        self._row(terms, LpConstraintLE, room)

    def _whole(self, kind: str, most: int | None) -> LpVariable:
        """An integer variable from 0 to ``most``."""
        self._names += 1
        return self.lp.add_variable(f"{kind}{self._names}", 0, most, LpInteger)

    def _row(self, terms: Iterable[Term], sense: int, bound: int) -> LpConstraint:
        """Add a row: the weighed sum is at least, at most or exactly ``bound``."""
        self._names += 1
        row = LpConstraint(LpAffineExpression(list(terms)), sense, f"r{self._names}", bound)  # type: ignore[no-untyped-call]
        self.lp.addConstraint(row)
        self._rows.append(row)
        return row

    def _add_floor(self, terms: list[Term], floor: int) -> None:
        """Add rows that demand that the sum is at least ``floor``, exact for weights of any size.

        In one row, weights near 1e9 made CBC call its own solution infeasible. So the weights are
        added digit by digit: first the low digits with a carry, then the high digits plus the
        carry.
        """
        if all(abs(weight) < DIGIT for _, weight in terms):
            self._row(terms, LpConstraintGE, floor)
            return
        most = int(sum(variable.upBound or 0.0 for variable, _ in terms))
        self._names += 1
        carry = self.lp.add_variable(f"c{self._names}", -1, most, LpInteger)
        low = [(variable, weight % DIGIT) for variable, weight in terms]
        self._row([*low, (carry, -DIGIT)], LpConstraintGE, floor % DIGIT)
        high = [(variable, weight // DIGIT) for variable, weight in terms]
        self._add_floor([*high, (carry, 1)], floor // DIGIT)  # also right for negative numbers


def _alike(
    problem: Problem, candidates: Iterable[int], copies: Mapping[int, DemandCopies]
) -> Sequence[Sequence[int]]:
    """The candidates by type: equal in all but their order, and counted by the same caps.

    Each demand with segments is a type of its own: segments of several gangs, added up, would not
    always divide into segments of one gang each.
    """
    groups: dict[tuple[Demand, Sequence[int], int], list[int]] = {}
    caps = caps_by_demand(problem)
    for index in candidates:
        own = index if index in copies else -1
        mark = (problem.demands[index], tuple(caps.get(index, ())), own)
        groups.setdefault(mark, []).append(index)
    return list(groups.values())
