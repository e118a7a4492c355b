"""Rules between pods, counted a second time: may a pod have its node if it came last?

This is a part of ``plan_checks``. With the code that plans by these rules it shares only whether a
selector matches, and which nodes a shape may run on. Pods are counted when a rule first needs the
count; removing a pod updates the counts.

Sources: InterPodAffinity and PodTopologySpread of kube-scheduler 1.37.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest

import numpy as np

from ..filters.node_index import Mask, NodeIndex
from ..filters.selectors import Group, Spaces, is_counted, spaces
from ..model.cluster import Member, PlacedPod, Snapshot
from ..model.inter_pod import CLUSTER, AffinityTerm, Labels, PodSelector, TopologySpread
from ..model.keys import NodeName, Uid
from ..model.shapes import Shape

PlacedMember = tuple[Member, NodeName]  # a member and the node that it is to have
Traits = tuple[str, Labels]  # a namespace and labels: what selectors see of a pod
PodsPerNode = defaultdict[NodeName, int]  # pods by their node
Domains = Mapping[NodeName, str]  # the domain of each node that counts

STAYING, LEAVING, COMING = range(3)  # pods
THERE, ALL = (STAYING, LEAVING), (STAYING, LEAVING, COMING)


class InterPodChecker:
    """Pods on their nodes, and whether their rules hold."""

    def __init__(
        self,
        snapshot: Snapshot,
        members: Iterable[PlacedMember],
        coming: Collection[Uid] = (),
    ) -> None:
        """Count the placed pods and these members; nodes that do not exist are in no domain.

        Affinity and spread do not count the members that are ``coming``: these come only once
        victims of a claim have gone.
        """
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._index = NodeIndex(snapshot.nodes)
        members = tuple(members)
        self._placed_pods = snapshot.placed_pods
        self._spaces = spaces(snapshot.namespaces)
        self._pods_by_term: dict[AffinityTerm, PodsPerNode] = {}
        placed_terms = (
            (pod.anti_affinity, pod.node) for pod in snapshot.placed_pods if pod.anti_affinity
        )
        for terms, node in (
            *placed_terms,
            *((member.shape.rules.anti_affinity, node) for member, node in members),
        ):
            for term in terms:
                self._pods_by_term.setdefault(term, defaultdict(int))[node] += 1
        shapes = {id(member.shape): member.shape for member, _ in members}
        selectors = {selector for shape in shapes.values() for selector in _selectors(shape)}
        selectors.update(term.peers for term in self._pods_by_term)
        self._keys = {
            requirement.key for selector in selectors for requirement in selector.selector or ()
        }
        # Pods that stay, that terminate, and that are to come.
        self._pods: dict[Traits, tuple[PodsPerNode, PodsPerNode, PodsPerNode]] = {}
        for member, node in members:
            which = COMING if member.uid in coming else STAYING
            self._add(_traits(member, self._keys), node, which)
        self._terms_by_traits = self._match_terms(_SelectorIndex(self._pods, self._spaces))
        # None: the placed pods are not counted yet.
        self._selector_index: _SelectorIndex | None = None
        self._domains_by_key: dict[object, Domains] = {}
        self._counts: dict[object, _Count] = {}

    def faults(self, member: Member, node: NodeName) -> Iterator[str]:
        """The rules that forbid a counted member its node, if it came last."""
        if node not in self._nodes:
            return
        traits, rules = _traits(member, self._keys), member.shape.rules
        where = f"pod {member.key}: node {node} is forbidden by"
        for term in rules.anti_affinity:
            if self._count_others(traits, node, (term.peers,), term.topology, ALL) > 0:
                yield f"{where} its anti-affinity on {term.topology}"
        for term in self._terms_by_traits.get(traits, ()):
            count = self._count(term, self._domains(term.topology), ALL)
            if (count.in_domain_of(node) or 0) > (term in rules.anti_affinity):
                yield f"{where} others' anti-affinity on {term.topology}"
        if not self._meets_affinity(traits, node, rules.affinity):
            yield f"{where} its affinity"
        for spread in rules.spread:
            if not self._meets_spread(traits, node, member.shape, spread):
                yield f"{where} its spread over {spread.topology}"

    def remove(self, member: Member, node: NodeName) -> None:
        """Remove a counted member, which is not coming, from the counts."""
        traits, terms = _traits(member, self._keys), member.shape.rules.anti_affinity
        self._pods[traits][STAYING][node] -= 1
        for term in terms:
            self._pods_by_term[term][node] -= 1
        for count in self._counts.values():
            of = count.of
            if of in terms if isinstance(of, AffinityTerm) else traits in self._traits_of(of):
                count.drop(node)

    def _add(self, traits: Traits, node: NodeName, which: int) -> None:
        if traits not in self._pods:
            self._pods[traits] = defaultdict(int), defaultdict(int), defaultdict(int)
        self._pods[traits][which][node] += 1

    def _match_terms(self, index: "_SelectorIndex") -> Mapping[Traits, Sequence[AffinityTerm]]:
        """By traits of new members, the anti-affinity terms of any pod that match them."""
        terms_by_traits: dict[Traits, list[AffinityTerm]] = {}
        for term in self._pods_by_term:
            for traits in index.traits_of((term.peers,)):
                terms_by_traits.setdefault(traits, []).append(term)
        return terms_by_traits

    def _count_others(
        self,
        traits: Traits,
        node: NodeName,
        group: Group,
        topology: str,
        which: Sequence[int],
    ) -> int:
        """The number of other pods of the group in the node's domain."""
        count = self._count(group, self._domains(topology), which).in_domain_of(node)
        return 0 if count is None else count - (traits in self._traits_of(group))

    def _meets_affinity(
        self, traits: Traits, node: NodeName, terms: Sequence[AffinityTerm]
    ) -> bool:
        """Whether each domain has a pod that matches all terms, or the pod is the first of them."""
        group = tuple(term.peers for term in terms)
        topologies = {term.topology for term in terms}
        if all(
            self._count_others(traits, node, group, topology, THERE) > 0 for topology in topologies
        ):
            return True
        counts = [self._count(group, self._domains(topology), THERE) for topology in topologies]
        return traits in self._traits_of(group) and all(
            count.total == 1 and count.in_domain_of(node) is not None for count in counts
        )

    def _meets_spread(
        self, traits: Traits, node: NodeName, shape: Shape, spread: TopologySpread
    ) -> bool:
        """Whether the node's domain has at most ``max_skew`` pods more than the emptiest."""
        if not spread.peers.selector:
            return True  # an empty selector counts only the pod itself
        group = (spread.peers,)
        counts = self._count(group, self._domains_for(shape, spread), (STAYING,))
        if (count := counts.in_domain_of(node)) is None:
            return False
        itself = traits in self._traits_of(group)
        least = counts.least(count, itself) if len(counts.domains) >= spread.min_domains else 0
        return count - least <= spread.max_skew

    def _count(
        self, of: "Group | AffinityTerm", domains: Domains, which: Sequence[int]
    ) -> "_Count":
        """Pods by domain: these of a group, or all with a term."""
        key = of, id(domains), which  # Domains are cached, so ids are stable
        if key not in self._counts:
            self._counts[key] = _Count(of, domains, self._pods_per_node(of, which))
        return self._counts[key]

    def _pods_per_node(
        self, of: "Group | AffinityTerm", which: Sequence[int]
    ) -> Iterable[PodsPerNode]:
        if isinstance(of, AffinityTerm):
            return [self._pods_by_term[of]]
        return [self._pods[traits][kind] for traits in self._traits_of(of) for kind in which]

    def _traits_of(self, group: Group) -> frozenset[Traits]:
        """The traits of the pods of a group."""
        if self._selector_index is None:
            for pod in self._placed_pods:
                which = LEAVING if pod.terminating else STAYING
                self._add(_traits(pod, self._keys), pod.node, which)
            self._selector_index = _SelectorIndex(self._pods, self._spaces)
        return self._selector_index.traits_of(group)

    def _domains(self, topology: str) -> Domains:
        """The domains by a label, or the whole cluster as one domain."""
        if topology == CLUSTER:
            self._domains_by_key.setdefault(CLUSTER, dict.fromkeys(self._nodes, ""))
        if topology not in self._domains_by_key:
            labels = ((name, node.labels) for name, node in self._nodes.items())
            self._domains_by_key[topology] = {
                name: value for name, own in labels for key, value in own if key == topology
            }
        return self._domains_by_key[topology]

    def _domains_for(self, shape: Shape, spread: TopologySpread) -> Domains:
        """The domains by the spread's label, of the nodes that count for a pod of this shape."""
        topologies = tuple(rule.topology for rule in shape.rules.spread)
        constraints = shape.node_selector, shape.required, shape.tolerations
        key = (
            spread.topology,
            topologies,
            spread.honors_node_affinity,
            spread.honors_node_taints,
            constraints,
        )
        if key not in self._domains_by_key:
            domain_maps = [self._domains(topology) for topology in topologies]
            rows, counts = self._index.rows, self._eligible_nodes(shape, spread)
            self._domains_by_key[key] = {
                name: domain
                for name, domain in self._domains(spread.topology).items()
                if all(name in domains for domains in domain_maps) and counts[rows[name]]
            }
        return self._domains_by_key[key]

    def _eligible_nodes(self, shape: Shape, spread: TopologySpread) -> Mask:
        """The nodes that the constraint's policies count."""
        mask = np.ones(len(self._nodes), np.bool_)
        if spread.honors_node_affinity:
            mask &= self._index.wanted(shape)
        if spread.honors_node_taints:
            mask &= self._index.tolerated(shape)
        return mask


class _Count:
    """A number of pods by domain."""

    def __init__(
        self, of: Group | AffinityTerm, domains: Domains, pods_per_node: Iterable[PodsPerNode]
    ) -> None:
        self.of = of
        self._domain_of = domains
        self._by_domain: defaultdict[str, int] = defaultdict(int)
        for pods in pods_per_node:
            for node, n in pods.items():
                if (domain := domains.get(node)) is not None:
                    self._by_domain[domain] += n
        self.total = sum(self._by_domain.values())
        self._lowest: Sequence[int] = ()  # the two smallest counts; empty if not known

    @cached_property
    def domains(self) -> frozenset[str]:
        """All domains, including empty ones."""
        return frozenset(self._domain_of.values())

    def in_domain_of(self, node: NodeName) -> int | None:
        """The number of pods in the node's domain; None if the node is in no domain."""
        domain = self._domain_of.get(node)
        return None if domain is None else self._by_domain[domain]

    def least(self, own: int, itself: int) -> int:
        """The fewest pods in any domain, if a domain with ``own`` pods loses ``itself`` of them."""
        self._lowest = self._lowest or nsmallest(2, map(self._by_domain.__getitem__, self.domains))
        minima = self._lowest[1:] if own == self._lowest[0] else self._lowest[:1]
        return min((own - itself, *minima))

    def drop(self, node: NodeName) -> None:
        """Count one pod less on the node."""
        if (domain := self._domain_of.get(node)) is not None:
            self._by_domain[domain] -= 1
            self.total -= 1
            self._lowest = ()


class _SelectorIndex:
    """The traits of pods, indexed for selectors."""

    def __init__(self, known: Iterable[Traits], spaces: Spaces) -> None:
        self._all, self._spaces = tuple(known), spaces
        self._by_label: dict[tuple[str, str], list[Traits]] = {}
        for traits in self._all:
            for label in traits[1]:
                self._by_label.setdefault(label, []).append(traits)
        self._known: dict[Group, frozenset[Traits]] = {}

    def traits_of(self, group: Group) -> frozenset[Traits]:
        """The traits that all selectors of the group match."""
        if group not in self._known:
            self._known[group] = frozenset(
                (space, labels)
                for space, labels in self._candidates(group)
                if all(
                    is_counted(selector, space, dict(labels), self._spaces) for selector in group
                )
            )
        return self._known[group]

    def _candidates(self, group: Group) -> Iterable[Traits]:
        """The traits with a label that a selector requires; all traits if none requires any."""
        for requirement in (
            requirement for selector in group for requirement in selector.selector or ()
        ):
            if requirement.operator == "In":
                return [
                    traits
                    for value in requirement.values
                    for traits in self._by_label.get((requirement.key, value), ())
                ]
        return self._all


def _traits(pod: Member | PlacedPod, keys: Collection[str]) -> Traits:
    """The traits of a pod, with the labels of these keys."""
    space = pod.namespace if isinstance(pod, PlacedPod) else pod.key.namespace
    return space, tuple([label for label in pod.labels if label[0] in keys])


def _selectors(shape: Shape) -> Iterator[PodSelector]:
    """The selectors of the shape's rules."""
    rules = shape.rules
    yield from (term.peers for term in (*rules.anti_affinity, *rules.affinity))
    yield from (spread.peers for spread in rules.spread)
