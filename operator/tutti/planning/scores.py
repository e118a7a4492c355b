"""How well each node suits a member: the scores of kube-scheduler, for the member that comes last.

Four of its plugins score the preferences of pods and nodes: TaintToleration, NodeAffinity,
PodTopologySpread and InterPodAffinity. Each gives 0 to 100 over the nodes that fit, and has its
default weight. ``preferences`` moves members by these scores. Source: the scoring of these plugins,
kube-scheduler 1.37.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..filters.node_index import NodeIndex
from ..filters.topology import Domains, Mask, TopologyDomains
from ..model.cluster import Node, PlacedPod
from ..model.inter_pod import HOSTNAME, AffinityTerm, TopologySpread, WeightedAffinityTerm
from ..model.shapes import Shape
from .compile.pod_classes import SelectorIndex

Scores = NDArray[np.int64]  # [node]
FULL = 100  # the highest score of a plugin


class Weights(NamedTuple):
    """The weights of the plugins, by kube-scheduler's ``getDefaultPlugins``."""

    taints: int = 3
    nodes: int = 2
    spread: int = 2
    pods: int = 2


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class MemberClass:
    """Members with the same rules and the same preferences."""

    row: int  # row of the Grid, for the shape without preferences
    shape: Shape  # with preferences
    groups: tuple[int, ...]  # groups of pods that preferences count


class _Tally:
    """A sum by domain over the nodes that count."""

    def __init__(self, domains: Domains, counts: Mask | None = None) -> None:
        self.domains, self._counts = domains, counts
        # The last sum is for nodes in no domain, whose number is -1; nothing is added to it.
        self._sums = np.zeros(int(domains.max(initial=-1)) + 2, np.int64)

    def add(self, node: int, amount: int) -> None:
        """Add the amount to the domain of the node."""
        domain = self.domains[node]
        if domain >= 0 and (self._counts is None or self._counts[node]):
            self._sums[domain] += amount

    def at_nodes(self) -> Scores:
        """[node]: the sum of its domain; 0 for a node in no domain."""
        scores: Scores = self._sums[self.domains]
        return scores


class _SoftSpread(NamedTuple):
    """One soft spread of a kind: the counted pods, the weight of each, and its maximum skew."""

    tally: _Tally
    weight: float
    skew: int


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreTerms:
    """The terms of the scores of one kind."""

    will_do: Mask
    fixed: Scores  # of taints and node affinity
    pods: tuple[tuple[int, _Tally], ...]  # with weights
    even: tuple[_SoftSpread, ...]
    spread: Mask  # the nodes that are in a domain of each soft spread


class Scorer:
    """The scores of the nodes for kinds of members, while members come and go."""

    def __init__(
        self,
        nodes: Sequence[Node],
        selectors: SelectorIndex,
        kinds: Sequence[MemberClass],
        will_do: Sequence[Mask],
        weights: Weights = WEIGHTS,
    ) -> None:
        """Start without pods; scores are scaled over the nodes that ``will_do`` for a kind."""
        self._nodes, self._selectors, self._kinds, self._weights = nodes, selectors, kinds, weights
        self._domains, self._index = TopologyDomains(nodes), NodeIndex(nodes)
        self._selected = {group for kind in kinds for group in kind.groups}
        self._drawing: dict[
            AffinityTerm, _Tally
        ] = {}  # by preference of a pod for pods of a kind, the weights by domain
        self._drawn: dict[int, list[_Tally]] = {}  # the same, by the preferred group
        self._counted: dict[int, list[_Tally]] = {}  # by group, tallies of all its pods
        self._staying: dict[int, list[_Tally]] = {}  # the same without terminating pods
        self._liked: dict[AffinityTerm, _Tally] = {}
        self._fixed: dict[object, Scores] = {}
        for kind in kinds:
            self._note(kind.shape.scored_terms)
        self._will_do = will_do
        self._score_terms: Sequence[_ScoreTerms] = ()
        self._own: Sequence[Sequence[tuple[_Tally, int]]] = ()  # by kind, tallies of its members

    def begin(self, residents: Iterable[PlacedPod]) -> None:
        """Count the placed pods."""
        rows = {node.name: row for row, node in enumerate(self._nodes)}
        known_pods = [pod for pod in residents if pod.node in rows]
        # Pods with equal preferences share one object: comparing ids is cheaper than hashing.
        scored_terms = {id(pod.scored_terms): pod.scored_terms for pod in known_pods}
        for terms in scored_terms.values():
            self._note(terms)
        pairs = zip(self._kinds, self._will_do, strict=True)
        self._score_terms = [self._weighed(kind, will_do) for kind, will_do in pairs]
        draws = {key: self._draws(terms) for key, terms in scored_terms.items()}
        self._own = [self._counts(kind) for kind in self._kinds]
        counts = bool(self._counted or self._staying)
        for pod in known_pods:
            own = draws[id(pod.scored_terms)]
            if counts or own:
                groups = self._selectors.among(pod.namespace, pod.labels) if counts else ()
                self._add(rows[pod.node], groups, own, leaving=pod.terminating)

    def add(self, kind: int, node: int, count: int) -> None:
        """Count more members of the kind on the node; fewer, if ``count`` is negative."""
        for tally, weight in self._own[kind]:
            tally.add(node, count * weight)

    def is_choosy(self, kind: int) -> bool:
        """Whether one node of the kind is better than another, or may become so."""
        terms = self._score_terms[kind]
        return self.is_moody(kind) or len(np.unique(terms.fixed[terms.will_do])) > 1

    def is_moody(self, kind: int) -> bool:
        """Whether the scores of the kind depend on where pods are."""
        return self.terms(kind) > 0

    def terms(self, kind: int) -> int:
        """How many sums the scores of the kind have, each of them over every node."""
        return len(self._score_terms[kind].pods) + len(self._score_terms[kind].even)

    def ignore_others(self) -> None:
        """From now on, count only what never changes: taints and affinity to nodes."""
        self._score_terms = [replace(terms, pods=(), even=()) for terms in self._score_terms]
        self._own = [()] * len(self._kinds)

    def scores(self, kind: int) -> Scores:
        """[node]: its score for one more member of the kind."""
        terms = self._score_terms[kind]
        total = terms.fixed
        if terms.pods:
            total = total + self._weights.pods * _by_pods(terms)
        if terms.even:
            total = total + self._weights.spread * _by_spread(terms)
        return total

    def _add(
        self,
        node: int,
        groups: Iterable[int],
        draws: Iterable[tuple[_Tally, int]],
        *,
        leaving: bool,
    ) -> None:
        """Count one more pod, which is in these groups."""
        for group in groups:
            for tally in self._counted.get(group, ()):
                tally.add(node, 1)
            for tally in () if leaving else self._staying.get(group, ()):
                tally.add(node, 1)
        for tally, weight in draws:
            tally.add(node, weight)

    def _counts(self, kind: MemberClass) -> Sequence[tuple[_Tally, int]]:
        """The tallies that count one more member of the kind, each with the amount."""
        counters = (self._counted, self._staying)
        tallies = (
            tally
            for counter in counters
            for group in kind.groups
            for tally in counter.get(group, ())
        )
        return [*((tally, 1) for tally in tallies), *self._draws(kind.shape.scored_terms)]

    def _draws(self, scored_terms: Iterable[WeightedAffinityTerm]) -> Sequence[tuple[_Tally, int]]:
        """The tallies of the preferences that concern a kind, each with its weight."""
        weights = ((self._drawing.get(scored.term), scored.weight) for scored in scored_terms)
        return [(tally, weight) for tally, weight in weights if tally is not None]

    def _note(self, scored_terms: Iterable[WeightedAffinityTerm]) -> None:
        """Make a tally for each preference that selects members of a kind."""
        for scored in scored_terms:
            if self._group(scored.term) in self._selected and scored.term not in self._drawing:
                tally = self._drawing[scored.term] = self._by_topology(scored.term)
                self._drawn.setdefault(self._group(scored.term), []).append(tally)

    def _group(self, term: AffinityTerm) -> int:
        return self._selectors.number[(term.peers,)]

    def _by_topology(self, term: AffinityTerm) -> _Tally:
        return _Tally(self._domains.domains(term.topology))

    def _weighed(self, kind: MemberClass, will_do: Mask) -> _ScoreTerms:
        drawn = [(1, tally) for group in kind.groups for tally in self._drawn.get(group, ())]
        likes = [
            (scored.weight, self._count(scored.term))
            for scored in kind.shape.preferences.pod_affinity
        ]
        keys = {spread.topology for spread in kind.shape.preferences.spread}
        inside = np.ones(len(self._nodes), np.bool_)
        for key in keys:
            inside &= self._domains.domains(key) >= 0
        even = [
            self._even(kind.shape, spread, inside, will_do)
            for spread in kind.shape.preferences.spread
        ]
        fixed = self._weights.taints * (FULL - self._by_taints(kind.shape, will_do))
        fixed = fixed + self._weights.nodes * self._by_nodes(kind.shape, will_do)
        return _ScoreTerms(will_do, fixed, (*drawn, *likes), tuple(even), inside)

    def _count(self, term: AffinityTerm) -> _Tally:
        """A tally of the pods that the term selects; shared by all kinds with the term."""
        if term not in self._liked:
            self._liked[term] = self._by_topology(term)
            self._counted.setdefault(self._group(term), []).append(self._liked[term])
        return self._liked[term]

    def _even(
        self, shape: Shape, spread: TopologySpread, inside: Mask, will_do: Mask
    ) -> _SoftSpread:
        """A soft spread; by hostname, node policies have no effect and all usable nodes count."""
        if spread.topology == HOSTNAME:
            tally = _Tally(np.arange(len(self._nodes), dtype=np.intp))
            domains = int((will_do & inside).sum())
        else:
            counts = inside & self._domains.counting(shape, spread)
            tally = _Tally(self._domains.domains(spread.topology), counts)
            domains = len(np.unique(tally.domains[will_do & inside]))
        # An empty selector counts no pods.
        if spread.peers.selector:
            group = self._selectors.number[(spread.peers,)]
            self._staying.setdefault(group, []).append(tally)
        return _SoftSpread(tally, float(np.log(domains + 2)), spread.max_skew)

    def _by_taints(self, shape: Shape, will_do: Mask) -> Scores:
        key = "taints", shape.tolerations
        if key not in self._fixed:
            self._fixed[key] = self._index.unwelcome(shape)
        return _scaled(self._fixed[key], will_do)

    def _by_nodes(self, shape: Shape, will_do: Mask) -> Scores:
        key = "nodes", shape.preferences.node_affinity
        if key not in self._fixed:
            self._fixed[key] = self._index.preference(shape)
        return _scaled(self._fixed[key], will_do)


def _scaled(raw: Scores, will_do: Mask) -> Scores:
    """Scores scaled so that the largest is 100, as by ``DefaultNormalizeScore``."""
    most = int(raw[will_do].max(initial=0))
    return FULL * raw // most if most else np.zeros_like(raw)


def _by_pods(terms: _ScoreTerms) -> Scores:
    raw = np.zeros(len(terms.fixed), np.int64)
    for weight, tally in terms.pods:
        raw += weight * tally.at_nodes()
    known = raw[terms.will_do]
    if not known.size or known.min() == known.max():
        return np.zeros_like(raw)
    least, most = int(known.min()), int(known.max())
    return (float(FULL) * ((raw - least) / (most - least))).astype(np.int64)


def _by_spread(terms: _ScoreTerms) -> Scores:
    """Scores that are higher for fewer pods; a node in no domain of a spread scores 0."""
    exact = np.zeros(len(terms.fixed))
    for tally, weight, skew in terms.even:
        exact += tally.at_nodes() * weight + (skew - 1)
    raw = np.floor(exact + 0.5).astype(np.int64)
    known = raw[terms.will_do & terms.spread]
    if not known.size:
        return np.zeros_like(raw)
    least, most = int(known.min()), int(known.max())
    scores = FULL * (most + least - raw) // most if most else np.full_like(raw, FULL)
    return np.where(terms.spread, scores, 0)
