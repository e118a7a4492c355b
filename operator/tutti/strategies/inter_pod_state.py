"""The end state of members on nodes, and whether the rules between members hold there.

The checks, best fit and the integer program share this module, so a rule means the same in all of
them. Every member is judged as if it came last. Sources: the filters of kube-scheduler's
InterPodAffinity and PodTopologySpread.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .problem import Affinity, AntiAffinity, DomainCount, EvenSpread, Problem, Rules, Shares
from .shape_demand import Array, Flags

Rule = AntiAffinity | Affinity | EvenSpread


NOWHERE: Array = np.zeros(0, dtype=np.intp)


def rules_hold(problem: Problem, shares: Shares) -> bool:
    """Whether every rule holds once all these members have their nodes."""
    state = InterPodState(problem)
    for demand, own in zip(problem.demands, shares, strict=True):
        for share in own:
            state.add(demand.parts[share.part].shape, share.node, share.count)
    return state.holds()


def domains_needed(problem: Problem) -> Mapping[int, Flags]:
    """By shape, [node]: whether the node is in a domain of every kind that the shape's rules need.

    Shapes whose rules need no domain are left out.
    """
    rules, inside_by_shape = problem.rules, dict[int, Flags]()
    domain_rules: Iterable[Rule] = (*rules.affinity, *rules.spread)
    for rule in domain_rules:
        for index in _domain_count_indices(rule):
            inside = rules.domain_counts[index].domain >= 0
            inside_by_shape[rule.shape] = (
                inside_by_shape[rule.shape] & inside if rule.shape in inside_by_shape else inside
            )
    return inside_by_shape


def reserved_nodes(rules: Rules) -> Mapping[int, Array]:
    """By shape, the nodes with reserved members."""
    nodes_by_shape: dict[int, set[int]] = {}
    for shape, node in rules.reserved:
        nodes_by_shape.setdefault(shape, set()).add(node)
    return {
        shape: np.array(sorted(nodes), dtype=np.intp) for shape, nodes in nodes_by_shape.items()
    }


class InterPodState:
    """Members on nodes, counted by domain for each DomainCount; members can be added."""

    def __init__(self, problem: Problem) -> None:
        """Start with the pods that had a node before."""
        self._rules = problem.rules
        self._nodes = len(problem.free)
        self._members_by_shape: dict[int, Array] = {}  # new members by shape: [node]
        self._new = [
            np.zeros(len(domain_count.there), dtype=np.int64)
            for domain_count in self._rules.domain_counts
        ]
        self._reserved = reserved_nodes(self._rules)
        self._counting = _counting(self._rules, len(problem.requests))
        self._concerning = _concerning(self._rules, self._counting)
        everywhere = np.ones(self._nodes, dtype=np.bool_)
        inside = domains_needed(problem)
        self._standable = {shape: inside.get(shape, everywhere) for shape in self._concerning}

    def concerns(self, shape: int) -> bool:
        """Whether any rule applies to members of the shape, or counts them."""
        return shape in self._concerning

    def near(self, shape: int) -> Sequence[Affinity]:
        """The affinity of the shape."""
        rules = self._concerning.get(shape, ())
        return [rule for rule in rules if isinstance(rule, Affinity) and rule.shape == shape]

    def counts_one_by_one(self, shape: int) -> bool:
        """Whether one more member of the shape may exclude the next one from a node."""
        return any(not isinstance(rule, Affinity) for rule in self._concerning.get(shape, ()))

    def add(self, shape: int, node: int, count: int) -> None:
        """Add ``count`` members of the shape on the node; a negative count removes members."""
        if shape not in self._concerning:
            return
        if shape not in self._members_by_shape:
            self._members_by_shape[shape] = np.zeros(self._nodes, dtype=np.int64)
        self._members_by_shape[shape][node] += count
        for index in self._counting[shape]:
            domain = self._rules.domain_counts[index].domain[node]
            if domain >= 0:
                self._new[index][domain] += count

    def holds(self, shapes: Iterable[int] | None = None) -> bool:
        """Whether the rules that concern these shapes hold; all rules, if None."""
        rules = self._rules
        own_rules: Iterable[Rule] = (*rules.anti_affinity, *rules.affinity, *rules.spread)
        if shapes is not None:
            concerning = (rule for shape in shapes for rule in self._concerning.get(shape, ()))
            own_rules = dict.fromkeys(concerning)
        return all(self._holds(rule) for rule in own_rules)

    def open_to(self, shape: int) -> Flags:
        """[node]: where one more member would break no anti-affinity and no spread now.

        Affinity matters only in the end: see ``affinity_now``. But while a member with affinity
        is the only one, the next member must be in its domains.
        """
        mask = self._standable[shape].copy()
        for rule in self._concerning[shape]:
            if isinstance(rule, AntiAffinity):
                _close(mask, self._domain_count(rule), self._closed(rule, shape))
            elif isinstance(rule, EvenSpread):
                _close(mask, self._domain_count(rule), self._full(rule, shape))
            elif (nodes := self._where(rule)).size == 1 and self._is_first(rule):
                self._keep_in_sight(mask, rule, nodes)
        return mask

    def _keep_in_sight(self, mask: Flags, rule: Affinity, nodes: Array) -> None:
        """Rule out nodes outside the domains of the first member, which needs a second there."""
        for index in rule.domain_counts:
            domain = self._rules.domain_counts[index].domain
            mask &= domain == domain[nodes[0]]

    def affinity_now(self, shape: int) -> Flags:
        """[node]: where one more member would have the affinity that it needs."""
        mask = self._standable[shape].copy()
        for rule in self.near(shape):
            if not (rule.may_be_first and self.is_alone(rule)):
                for index in rule.domain_counts:
                    _close(mask, self._rules.domain_counts[index], self._total(index) == 0)
        return mask

    def is_alone(self, rule: Affinity) -> bool:
        """Whether no pod or member is counted yet that the rule selects."""
        return not any(self._total(index).any() for index in rule.domain_counts)

    def emptiest(self, shape: int, among: Array) -> Array:
        """The nodes of ``among`` in the emptiest domains of the shape's spreads."""
        for rule in self._concerning[shape]:
            if isinstance(rule, EvenSpread) and rule.shape == shape:
                total = self._total(rule.domain_count)[self._domain_count(rule).domain[among]]
                among = among[total == total.min(initial=np.iinfo(np.int64).max)]
        return among

    def _domain_count(self, rule: AntiAffinity | EvenSpread) -> DomainCount:
        return self._rules.domain_counts[rule.domain_count]

    def _total(self, index: int) -> Array:
        """[domain]: the number of counted pods and members."""
        total: Array = self._rules.domain_counts[index].there + self._new[index]
        return total

    def _present(self, rule: AntiAffinity | EvenSpread) -> Flags:
        """[domain]: whether a member with the rule is in it."""
        own = self._domain_count(rule).domain[self._where(rule)]
        is_present = np.zeros(len(self._new[rule.domain_count]), dtype=np.bool_)
        is_present[own[own >= 0]] = True
        return is_present

    def _where(self, rule: Rule) -> Array:
        """The nodes with a member that has the rule.

        Reserved members with anti-affinity are left out: ``Problem.allowed`` already excludes the
        pods that they reject.
        """
        members = self._members_by_shape.get(rule.shape)
        nodes = NOWHERE if members is None else np.flatnonzero(members)
        before = self._reserved.get(rule.shape)
        if before is None or isinstance(rule, AntiAffinity):
            return nodes
        return np.union1d(nodes, before)

    def _closed(self, rule: AntiAffinity, shape: int) -> Flags:
        """[domain]: where one more member of the shape would break the anti-affinity."""
        closed = np.zeros(len(self._new[rule.domain_count]), dtype=np.bool_)
        if rule.shape == shape:
            closed |= self._new[rule.domain_count] > 0
        if self._domain_count(rule).counted[shape]:
            closed |= self._present(rule)
        return closed

    def _full(self, rule: EvenSpread, shape: int) -> Flags:
        """[domain]: where one more member of the shape would now exceed the skew."""
        domain_count, total = self._domain_count(rule), self._total(rule.domain_count)
        least = 0 if rule.from_zero else total.min(initial=np.iinfo(np.int64).max)
        full: Flags = total + domain_count.counted[shape] - least > rule.max_skew
        return full if rule.shape == shape else full & self._present(rule)

    def _holds(self, rule: Rule) -> bool:
        nodes = self._where(rule)
        if not nodes.size:
            return True
        if not self._standable[rule.shape][nodes].all():
            return False
        if isinstance(rule, Affinity):
            return self._is_near(rule, nodes)
        if isinstance(rule, EvenSpread):
            return self._is_even(rule)
        other_counts = self._new[rule.domain_count] - self._domain_count(rule).counted[rule.shape]
        return not bool((other_counts[self._present(rule)] > 0).any())

    def _is_even(self, rule: EvenSpread) -> bool:
        total, present = self._total(rule.domain_count), self._present(rule)
        if rule.from_zero:
            return bool((total[present] <= rule.max_skew).all())
        # Without the member itself, its own domain counts one less and may be the emptiest.
        own = int(self._domain_count(rule).counted[rule.shape])
        return bool((np.maximum(total[present] - total.min(), own) <= rule.max_skew).all())

    def _is_near(self, rule: Affinity, nodes: Array) -> bool:
        domain_counts = [
            (self._rules.domain_counts[index], self._total(index)) for index in rule.domain_counts
        ]
        other_counts = [
            total[domain_count.domain[nodes]] - domain_count.counted[rule.shape]
            for domain_count, total in domain_counts
        ]
        return all(bool((counts > 0).all()) for counts in other_counts) or self._is_first(rule)

    def _is_first(self, rule: Affinity) -> bool:
        """Whether a member with the rule may be the first, with no other counted pod anywhere."""
        return rule.may_be_first and all(
            int(self._total(index).sum())
            == int(self._rules.domain_counts[index].counted[rule.shape])
            for index in rule.domain_counts
        )


def _domain_count_indices(rule: Rule) -> Sequence[int]:
    return rule.domain_counts if isinstance(rule, Affinity) else (rule.domain_count,)


def _close(mask: Flags, domain_count: DomainCount, domains: Flags) -> None:
    """Rule out the nodes in these domains."""
    inside = domain_count.domain >= 0
    mask[inside] &= ~domains[domain_count.domain[inside]]


def _counting(rules: Rules, shapes: int) -> Sequence[Sequence[int]]:
    """[shape]: the indices of the domain counts that count it."""
    indices_by_shape: list[list[int]] = [[] for _ in range(shapes)]
    for index, domain_count in enumerate(rules.domain_counts):
        for shape in np.flatnonzero(domain_count.counted).tolist():
            indices_by_shape[shape].append(index)
    return indices_by_shape


def _concerning(rules: Rules, counting: Sequence[Sequence[int]]) -> Mapping[int, Sequence[Rule]]:
    """By shape, the rules of the shape and the rules that count it."""
    rules_by_index: dict[int, list[Rule]] = {}
    rules_by_shape: dict[int, dict[Rule, None]] = {}
    everything: Iterable[Rule] = (*rules.anti_affinity, *rules.affinity, *rules.spread)
    for rule in everything:
        rules_by_shape.setdefault(rule.shape, {})[rule] = None
        for index in _domain_count_indices(rule):
            rules_by_index.setdefault(index, []).append(rule)
    for shape, indices in enumerate(counting):
        for rule in (rule for index in indices for rule in rules_by_index.get(index, ())):
            rules_by_shape.setdefault(shape, {})[rule] = None
    return {shape: tuple(own) for shape, own in rules_by_shape.items()}
