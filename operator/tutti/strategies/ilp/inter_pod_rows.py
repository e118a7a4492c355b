"""The program of admission with rules between members: members by shape and node, and the rules.

It is the largest form of the program without rules: every node is a class of its own. Flags say in
which domains a rule has members; for those domains the rule is a row.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pulp import LpVariable
from pulp.constants import LpConstraintEQ, LpConstraintGE, LpConstraintLE

from ..capacity import fits_per_node
from ..inter_pod_state import NOWHERE, domains_needed, reserved_nodes
from ..problem import Affinity, AntiAffinity, DemandLevel, DomainCount, EvenSpread, Problem
from ..shape_demand import ShapeDemand
from .patterns import NodeClass
from .program import Program, Term

Place = tuple[int, LpVariable]  # (row, variable): members of the row's shape on one node


def node_by_node(problem: Problem, shape_demand: ShapeDemand) -> Sequence[NodeClass]:
    """Every node that can take any member as a class, with the most members of each shape."""
    most = np.zeros((len(shape_demand.shapes), len(problem.free)), dtype=np.int64)
    inside = domains_needed(problem)
    for row, shape in enumerate(shape_demand.shapes.tolist()):
        may_be_there = problem.allowed[shape] & inside.get(shape, True)
        limit = int(shape_demand.most[row])
        most[row] = fits_per_node(problem.free, problem.requests[shape], may_be_there, limit)
    return [
        NodeClass(np.array([node]), None, problem.free[node].clip(0), most[:, node])
        for node in np.flatnonzero(most.any(axis=0)).tolist()
    ]


class InterPodProgram(Program):
    """The program of some demands under the problem's rules."""

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[int],
        shape_demand: ShapeDemand,
        classes: Sequence[NodeClass],
    ) -> None:
        super().__init__(problem, candidates, shape_demand, classes)
        self._domain_counts = problem.rules.domain_counts
        self._places: list[list[tuple[int, LpVariable]]] = [[] for _ in shape_demand.shapes]
        for filling in self.fillings:
            for row, variable in filling.whole:
                self._places[row].append((int(filling.nodes[0]), variable))
        for constraint in self.shape_rows:
            constraint.sense = LpConstraintEQ  # a place without a member satisfies no affinity
        self._counted_in = [self._by_domain(domain_count) for domain_count in self._domain_counts]
        rules = problem.rules
        for apart in (rule for rule in rules.anti_affinity if rule.shape in self._row_of):
            self._keep_apart(apart)
        self._reserved = reserved_nodes(rules)
        obeyed = {*self._row_of, *self._reserved}
        for near in (rule for rule in rules.affinity if rule.shape in obeyed):
            self._keep_near(near)
        for even in (rule for rule in rules.spread if rule.shape in obeyed):
            self._keep_even(even)

    def aim(self, level: DemandLevel) -> int:
        """Aim at one level's value; lower levels may start, since affinity may need them."""
        unit = super().aim(level)
        for gang_type in self.types:
            gang_type.starts.upBound = len(gang_type.indices)
        return unit

    def _add_room(self, terms: list[Term], room: int) -> None:
        """Add the row exactly, however large the amounts are: here the rows alone say what fits."""
        self._add_floor([(variable, -amount) for variable, amount in terms], -room)

    def _by_domain(self, domain_count: DomainCount) -> Sequence[Sequence[Place]]:
        """[domain]: the variables of counted members."""
        places_by_domain: list[list[Place]] = [[] for _ in domain_count.there]
        for shape, row in self._row_of.items():
            if domain_count.counted[shape]:
                for node, variable in self._places[row]:
                    if domain_count.domain[node] >= 0:
                        places_by_domain[domain_count.domain[node]].append((row, variable))
        return places_by_domain

    def _own(self, shape: int, domain_count: DomainCount) -> Mapping[int, Sequence[Place]]:
        """The variables of members of a shape, by domain; domains without any are left out."""
        places_by_domain: dict[int, list[Place]] = {}
        row = self._row_of.get(shape)
        if row is None:
            return places_by_domain
        for node, variable in self._places[row]:
            if domain_count.domain[node] >= 0:
                places_by_domain.setdefault(int(domain_count.domain[node]), []).append(
                    (row, variable)
                )
        return places_by_domain

    def _reserved_domains(self, shape: int, domain_count: DomainCount) -> Sequence[int]:
        """The domains with reserved members of a shape."""
        domains: list[int] = domain_count.domain[self._reserved.get(shape, NOWHERE)].tolist()
        return list(dict.fromkeys(domains))

    def _keep_apart(self, rule: AntiAffinity) -> None:
        """Add rows: in the domain of a member of the shape, no other member is counted."""
        domain_count, row = self._domain_counts[rule.domain_count], self._row_of[rule.shape]
        counts_itself = bool(domain_count.counted[rule.shape])
        for domain, own in self._own(rule.shape, domain_count).items():
            other_places = [
                place for place in self._counted_in[rule.domain_count][domain] if place[0] != row
            ]
            if counts_itself:
                for _, variable in own:
                    variable.upBound = 1
                self._row(_sum(own), LpConstraintLE, 1)
            if other_places:
                most = self._most(other_places)
                flag = self._flag(own, 1 if counts_itself else self._most(own))
                self._row([*_sum(other_places), (flag, most)], LpConstraintLE, most)

    def _keep_near(self, rule: Affinity) -> None:
        """Add rows: a member of the shape has a counted pod in its domain, or is the only one."""
        alone = [self._alone(rule)] if rule.may_be_first else []
        for index in rule.domain_counts:
            domain_count = self._domain_counts[index]
            enough = 1 + int(domain_count.counted[rule.shape])
            for domain, own in self._own(rule.shape, domain_count).items():
                if not domain_count.there[domain]:
                    flags = [
                        (self._flag(own, self._most(own)), -enough),
                        *((flag, enough) for flag in alone),
                    ]
                    counted = _sum(self._counted_in[index][domain])
                    self._row([*counted, *flags], LpConstraintGE, 0)
            for domain in self._reserved_domains(rule.shape, domain_count):
                if (lacking := enough - int(domain_count.there[domain])) > 0:
                    flags = [(flag, lacking) for flag in alone]
                    counted = _sum(self._counted_in[index][domain])
                    self._row([*counted, *flags], LpConstraintGE, lacking)

    def _alone(self, rule: Affinity) -> LpVariable:
        """A flag that may be 1 only if no other member or pod is counted in any domain."""
        flag = self._whole("a", 1)
        for index in rule.domain_counts:
            domain_count = self._domain_counts[index]
            counted = [place for own in self._counted_in[index] for place in own]
            most, placed = self._most(counted), int(domain_count.there.sum())
            itself = int(domain_count.counted[rule.shape])
            # A larger weight would not tighten the row.
            weight = max(most + placed - itself, 0)
            self._row([*_sum(counted), (flag, weight)], LpConstraintLE, weight + itself - placed)
        return flag

    def _keep_even(self, rule: EvenSpread) -> None:
        """Add rows: the domain of a member counts at most the skew more than the emptiest."""
        domain_count, counted = (
            self._domain_counts[rule.domain_count],
            self._counted_in[rule.domain_count],
        )
        skew = rule.max_skew
        least = [] if rule.from_zero else [(self._least(rule.domain_count), -1)]
        reserved = self._reserved_domains(rule.shape, domain_count)
        for domain in reserved:
            terms = [*_sum(counted[domain]), *least]
            self._row(terms, LpConstraintLE, skew - int(domain_count.there[domain]))
        for domain, own in self._own(rule.shape, domain_count).items():
            placed = int(domain_count.there[domain])
            if domain_count.counted[rule.shape] and skew < 1:
                self._row(_sum(own), LpConstraintLE, 0)
            elif (
                beyond := self._most(counted[domain]) + placed - skew
            ) > 0 and domain not in reserved:
                flag = self._flag(own, self._most(own))
                terms = [*_sum(counted[domain]), *least, (flag, beyond)]
                self._row(terms, LpConstraintLE, skew - placed + beyond)

    def _least(self, domain_count: int) -> LpVariable:
        """A variable that is at most the count in every domain."""
        counted, placed = (
            self._counted_in[domain_count],
            self._domain_counts[domain_count].there.tolist(),
        )
        most = [self._most(own) + n for own, n in zip(counted, placed, strict=True)]
        least = self._whole("l", min(most, default=0))
        for own, n in zip(counted, placed, strict=True):
            self._row([(least, 1), *((variable, -1) for _, variable in own)], LpConstraintLE, n)
        return least

    def _most(self, places: Iterable[Place]) -> int:
        """An upper bound of the number of members in these places."""
        sums: dict[int, int] = {}
        for row, variable in places:
            sums[row] = sums.get(row, 0) + int(variable.upBound or 0)
        return sum(min(n, int(self.shape_demand.most[row])) for row, n in sums.items())

    def _flag(self, own: Iterable[Place], most: int) -> LpVariable:
        """A flag that is 1 if these places have a member; at most ``most`` members fit there."""
        flag = self._whole("p", 1)
        self._row([*_sum(own), (flag, -most)], LpConstraintLE, 0)
        return flag


def _sum(places: Iterable[Place]) -> list[Term]:
    return [(variable, 1) for _, variable in places]
