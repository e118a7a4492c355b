"""Compile affinity, anti-affinity and topology spread into the numbers of a Problem.

A rule about pods that already have a node cannot change while a plan is made, and becomes part of
``allowed``. The other rules are between waiting members. Sources: ``filtering.go`` of
InterPodAffinity and of PodTopologySpread, kube-scheduler 1.37.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from ...filters.selectors import has_rules
from ...filters.topology import Domains, Mask, TopologyDomains, in_flagged_domain
from ...model.cluster import Member, PlacedPod
from ...model.inter_pod import CLUSTER, AffinityTerm, TopologySpread
from ...model.keys import NodeName, Uid
from ...model.shapes import Shape
from ...model.volumes import claim_for_one_pod
from ...strategies.problem import Affinity, AntiAffinity, DomainCount, EvenSpread, Placed, Rules
from .answers import PlacedCount
from .grids import Grid
from .pod_classes import SelectorIndex, groups_of

Rule = AntiAffinity | Affinity | EvenSpread


class Presence(Enum):
    """Whether a pod is on its node, and for how long."""

    STAYS = auto()  # bound, or about to be
    LEAVES = auto()  # it terminates
    COMES = auto()  # its gang claims the node: it comes once victims have gone


# Which pods a rule counts. Nothing is near to, or balanced by, a pod that may never come.
ALL_PODS = tuple(Presence)  # anti-affinity
PODS_THERE = Presence.STAYS, Presence.LEAVES  # affinity
PODS_THAT_STAY = (Presence.STAYS,)  # topology spread


@dataclass(frozen=True, slots=True)
class CountedPod:
    """A pod that has a node: its groups, its anti-affinity, and the row of its node."""

    node: int
    groups: tuple[int, ...]
    anti_affinity: tuple[AffinityTerm, ...] = ()
    presence: Presence = Presence.STAYS

    @classmethod
    def of(
        cls, pod: PlacedPod, row: int, groups: tuple[int, ...], coming: Collection[Uid]
    ) -> "CountedPod":
        """The pod, which is still to come if its uid is among ``coming``."""
        presence = Presence.LEAVES if pod.terminating else Presence.STAYS
        if pod.uid in coming:
            presence = Presence.COMES
        return cls(row, groups, pod.anti_affinity, presence)


@dataclass(frozen=True, slots=True, eq=False)
class RuleOutcome:
    """One rule of a shape, and the nodes that it allows before any waiting member is placed."""

    description: str
    allowed_now: Mask  # [node]: where a member may go if no other member is placed
    is_final: bool  # whether the placement of other members cannot allow more nodes
    rule: Rule | None = None  # what the strategy must keep
    is_of_claim: bool = False  # whether it lets one pod at a time use a claim


class InterPodCompiler:
    """Compiles the rules of waiting shapes on the nodes of a Grid, beside pods that have a node."""

    def __init__(
        self,
        base: Grid,
        selectors: SelectorIndex,
        existing: Sequence[CountedPod],
        reserved: Collection[Placed] = (),
        topology: TopologyDomains | None = None,
    ) -> None:
        """Count ``existing`` pods; ``allowed`` of the Grid has the node rules alone.

        The rules of ``reserved`` members must hold as well.
        """
        self._base, self._selectors, self._existing = base, selectors, tuple(existing)
        self._topology = topology or TopologyDomains(base.nodes)
        self._reserved = tuple(dict.fromkeys(reserved))
        self._rows = [
            row for row, shape in enumerate(base.shapes) if groups_of(shape) or has_rules(shape)
        ]
        self._shapes = tuple(base.shapes)
        self._counted: dict[int, Mask] = {}
        for row in self._rows:
            for group in groups_of(self._shapes[row]):
                flags = self._counted.setdefault(group, np.zeros(len(self._shapes), np.bool_))
                flags[row] = True
        self._index_existing()

    @classmethod
    def of(
        cls,
        base: Grid,
        selectors: SelectorIndex,
        placed_pods: Iterable[PlacedPod],
        reserved: Iterable[tuple[Member, NodeName]] = (),
        coming: Collection[Uid] = (),
    ) -> "InterPodCompiler":
        """Count placed pods; pods on nodes that do not exist are not counted.

        ``reserved`` members are among the placed pods, and their rules must hold as well. So are
        the pods that are ``coming``, which only anti-affinity counts.
        """
        if not selectors.number:
            return cls(base, selectors, ())
        rows = {node.name: row for row, node in enumerate(base.nodes)}
        counted = (
            CountedPod.of(pod, rows[pod.node], selectors.among(pod.namespace, pod.labels), coming)
            for pod in placed_pods
            if pod.node in rows
        )
        spots = [Placed(base.shapes[member.shape], rows[node]) for member, node in reserved]
        return cls(
            base, selectors, [pod for pod in counted if pod.groups or pod.anti_affinity], spots
        )

    def _index_existing(self) -> None:
        """Index existing pods by the groups that count them, and by their anti-affinity."""
        nodes: dict[tuple[int, Presence], list[int]] = {}
        forbidden: dict[tuple[int, str], list[int]] = {}
        for pod in self._existing if self._rows else ():
            for group in pod.groups:
                nodes.setdefault((group, pod.presence), []).append(pod.node)
            for term in pod.anti_affinity:
                key = self._selectors.number[(term.peers,)], term.topology
                forbidden.setdefault(key, []).append(pod.node)
        self._nodes = {key: np.array(rows, np.intp) for key, rows in nodes.items()}
        self._existing_anti_affinity: dict[int, dict[str, NDArray[np.intp]]] = {}
        for (group, topology), rows in forbidden.items():
            self._existing_anti_affinity.setdefault(group, {})[topology] = np.array(rows, np.intp)

    def with_placed(self, placed: Iterable[PlacedCount]) -> "InterPodCompiler":
        """A compiler that counts placed members as well; this one if no rule counts them."""
        if not self._rows:
            return self
        existing, reserved = list(self._existing), list(self._reserved)
        for at in placed:
            rules, groups = at.shape.rules, groups_of(at.shape)
            if groups or rules.anti_affinity:
                existing += [CountedPod(at.node, groups, rules.anti_affinity)] * at.members
            if rules.affinity or rules.spread:
                reserved.append(Placed(self._base.shapes[at.shape], at.node))
        if len(existing) == len(self._existing) and len(reserved) == len(self._reserved):
            return self
        return InterPodCompiler(self._base, self._selectors, existing, reserved, self._topology)

    def grid(self) -> Grid:
        """The Grid without the nodes that rules forbid now, and with the rules that remain."""
        if not self._rows:
            return self._base
        allowed, counts = self._base.allowed.copy(), _DomainCounts(self)
        anti_affinity: list[AntiAffinity] = []
        affinity: list[Affinity] = []
        spread: list[EvenSpread] = []
        for row in self._rows:
            for outcome in self._outcomes(row, counts):
                if outcome.is_final:
                    allowed[row] &= outcome.allowed_now
                match outcome.rule:
                    case AntiAffinity() as rule:
                        anti_affinity.append(rule)
                    case Affinity() as rule:
                        affinity.append(rule)
                    case EvenSpread() as rule:
                        spread.append(rule)
        rules = Rules(
            tuple(counts.made), tuple(anti_affinity), tuple(affinity), tuple(spread), self._reserved
        )
        return replace(self._base, allowed=allowed, rules=rules)

    def nodes(self, shape: Shape) -> Mask:
        """[node]: where node rules alone allow the shape."""
        allowed: Mask = self._base.allowed[self._base.shapes[shape]]
        return allowed

    def outcomes(self, shape: Shape) -> Sequence[RuleOutcome]:
        """The outcome of each rule of a shape, and of each rule of other pods that counts it."""
        if not self._rows:
            return ()
        row = self._base.shapes[shape]
        if row not in self._rows:
            return ()
        return (*self._outcomes(row, _DomainCounts(self)), *self._outcomes_for_reserved(row))

    def _outcomes(self, row: int, counts: "_DomainCounts") -> Iterator[RuleOutcome]:
        rules = self._shapes[row].rules
        for term in rules.anti_affinity:
            yield self._anti_affinity(row, term, counts)
        if rules.affinity:
            yield self._affinity(row, rules.affinity, counts)
        for spread in rules.spread:
            # A constraint without a selector counts the pod alone, so it never fails.
            if spread.peers.selector:
                yield self._spread(row, spread, counts)
        yield from self._outcomes_of_existing(row)

    def _outcomes_of_existing(self, row: int) -> Iterator[RuleOutcome]:
        """The anti-affinity of existing pods to the shape."""
        for group in groups_of(self._shapes[row]):
            for topology, nodes in self._existing_anti_affinity.get(group, {}).items():
                domains = self._topology.domains(topology)
                is_occupied = _count(nodes, domains) > 0
                description = f"other pods' anti-affinity on {topology}"
                yield RuleOutcome(
                    description, ~in_flagged_domain(is_occupied, domains), is_final=True
                )

    def _outcomes_for_reserved(self, row: int) -> Iterator[RuleOutcome]:
        """The affinity and spread of reserved members of other shapes, which count the shape."""
        groups = groups_of(self._shapes[row])
        nodes: dict[int, list[int]] = {}
        for placed in self._reserved:
            if placed.shape != row:
                nodes.setdefault(placed.shape, []).append(placed.node)
        for shape, own in nodes.items():
            rules = self._shapes[shape].rules
            near = tuple(term.peers for term in rules.affinity)
            if near and self._selectors.number[near] in groups:
                yield from self._affinity_of_reserved(
                    self._selectors.number[near], rules.affinity, own
                )
            for spread in rules.spread:
                if spread.peers.selector and self._selectors.number[(spread.peers,)] in groups:
                    yield self._spread_of_reserved(shape, spread, own)

    def _affinity_of_reserved(
        self, group: int, terms: Sequence[AffinityTerm], nodes: Sequence[int]
    ) -> Iterator[RuleOutcome]:
        """A reserved member is the only pod of the group: the next pod must share its domains."""
        if sum(len(self._nodes.get((group, presence), ())) for presence in PODS_THERE) == 1:
            topologies = tuple(dict.fromkeys(term.topology for term in terms))
            all_domains = [self._topology.domains(topology) for topology in topologies]
            allowed = np.logical_and.reduce(
                [(domains >= 0) & (domains == domains[nodes[0]]) for domains in all_domains]
            )
            description = f"other pods' affinity on {', '.join(topologies)}"
            yield RuleOutcome(description, allowed, is_final=False)

    def _spread_of_reserved(
        self, shape: int, spread: TopologySpread, nodes: Sequence[int]
    ) -> RuleOutcome:
        """Reserved members with a spread: their domains must not get too many pods."""
        domains = self._topology.even(self._shapes[shape], spread)
        group = self._selectors.number[(spread.peers,)]
        pods_by_domain = self.count_existing(group, domains, PODS_THAT_STAY)
        least = (
            0
            if len(pods_by_domain) < spread.min_domains
            else int(pods_by_domain.min(initial=pods_by_domain.max(initial=0)))
        )
        own = _count(np.array(nodes, np.intp), domains) > 0
        full = own & (pods_by_domain + 1 - least > spread.max_skew)
        description = f"other pods' topology spread over {spread.topology}"
        return RuleOutcome(description, ~in_flagged_domain(full, domains), is_final=False)

    def _anti_affinity(self, row: int, term: AffinityTerm, counts: "_DomainCounts") -> RuleOutcome:
        group = self._selectors.number[(term.peers,)]
        domains = self._topology.domains(term.topology)
        is_occupied = self.count_existing(group, domains, ALL_PODS) > 0
        rule = (
            AntiAffinity(row, counts.index_of(group, domains)) if group in self._counted else None
        )
        claim = _claim_of(term)
        return RuleOutcome(
            claim or f"pod anti-affinity on {term.topology}",
            ~in_flagged_domain(is_occupied, domains),
            is_final=True,
            rule=rule,
            is_of_claim=bool(claim),
        )

    def is_claim_taken(self, shape: Shape) -> bool:
        """Whether another pod has a claim of these pods that one pod at a time may use."""
        if all(term.topology != CLUSTER for term in shape.rules.anti_affinity):
            return False
        of_claims = (outcome for outcome in self.outcomes(shape) if outcome.is_of_claim)
        return not all(outcome.allowed_now.any() for outcome in of_claims)

    def _affinity(
        self, row: int, terms: Sequence[AffinityTerm], counts: "_DomainCounts"
    ) -> RuleOutcome:
        """All terms select the same pods: the pods that match every term."""
        group = self._selectors.number[tuple(term.peers for term in terms)]
        topologies = tuple(dict.fromkeys(term.topology for term in terms))
        all_domains = [self._topology.domains(topology) for topology in topologies]
        counts_by_topology = [self.count_existing(group, domains) for domains in all_domains]
        pairs = zip(counts_by_topology, all_domains, strict=True)
        satisfied = np.logical_and.reduce(
            [in_flagged_domain(pods_by_domain > 0, domains) for pods_by_domain, domains in pairs]
        )
        may_be_first = group in groups_of(self._shapes[row])
        is_first = may_be_first and not any(
            pods_by_domain.any() for pods_by_domain in counts_by_topology
        )
        description = f"pod affinity on {', '.join(topologies)}"
        is_final = group not in self._counted
        # A satisfied affinity stays satisfied, unless a reserved member was the first pod.
        is_satisfied = satisfied[self._base.allowed[row]].all() and not self._is_reserved(row)
        if is_final or is_satisfied:
            return RuleOutcome(description, satisfied, is_final=is_final)
        indices = tuple(counts.index_of(group, domains) for domains in all_domains)
        allowed = satisfied | np.logical_and.reduce([domains >= 0 for domains in all_domains])
        rule = Affinity(row, indices, may_be_first)
        return RuleOutcome(
            description, allowed if is_first else satisfied, is_final=False, rule=rule
        )

    def _spread(self, row: int, spread: TopologySpread, counts: "_DomainCounts") -> RuleOutcome:
        group = self._selectors.number[(spread.peers,)]
        domains = self._topology.even(self._shapes[row], spread)
        pods_by_domain = self.count_existing(group, domains, PODS_THAT_STAY)
        from_zero = len(pods_by_domain) < spread.min_domains
        least = 0 if from_zero else int(pods_by_domain.min(initial=pods_by_domain.max(initial=0)))
        itself = group in groups_of(self._shapes[row])
        allowed = in_flagged_domain(pods_by_domain + itself - least <= spread.max_skew, domains)
        description = f"topology spread over {spread.topology}"
        if group not in self._counted:
            return RuleOutcome(description, allowed, is_final=True)
        index = counts.index_of(group, domains, PODS_THAT_STAY)
        rule = EvenSpread(row, index, spread.max_skew, from_zero)
        return RuleOutcome(description, allowed, is_final=False, rule=rule)

    def _is_reserved(self, row: int) -> bool:
        return any(spot.shape == row for spot in self._reserved)

    def count_existing(
        self, group: int, domains: Domains, which: Sequence[Presence] = PODS_THERE
    ) -> NDArray[np.int64]:
        """[domain]: how many existing pods of the group, by whether they stay, leave or come."""
        nodes = [self._nodes[group, kind] for kind in which if (group, kind) in self._nodes]
        return _count(np.concatenate([*nodes, np.zeros(0, np.intp)]), domains)

    def counted(self, group: int) -> Mask:
        """[shape]: whether its members belong to the group; at least one shape does."""
        return self._counted[group]


class _DomainCounts:
    """The DomainCounts that rules use, without duplicates."""

    def __init__(self, compiler: InterPodCompiler) -> None:
        self._compiler = compiler
        self._indices: dict[object, int] = {}
        self.made: list[DomainCount] = []

    def index_of(self, group: int, domains: Domains, which: Sequence[Presence] = PODS_THERE) -> int:
        """The index of the DomainCount of a group in these domains."""
        # TopologyDomains returns the same array for the same arguments, and keeps it.
        key = group, id(domains), which
        if key not in self._indices:
            existing = self._compiler.count_existing(group, domains, which)
            self._indices[key] = len(self.made)
            self.made.append(DomainCount(domains, self._compiler.counted(group), existing))
        return self._indices[key]


def _claim_of(term: AffinityTerm) -> str:
    """A rule by which pods share a claim for one pod, in words; empty if it is another rule."""
    if term.topology != CLUSTER:
        return ""
    (label, *_) = (requirement.key for requirement in term.peers.selector or ())
    return f"claim {claim_for_one_pod(label)}, which one pod at a time may use (ReadWriteOncePod)"


def _count(nodes: NDArray[np.intp], domains: Domains) -> NDArray[np.int64]:
    """[domain]: how many of the nodes are in it."""
    where = domains[nodes]
    size = int(domains.max(initial=-1)) + 1
    return np.bincount(where[where >= 0], minlength=size).astype(np.int64)
