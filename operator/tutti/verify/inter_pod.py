"""May a pod stay where it is, looked at as if it came last: rules between pods, counted anew.

A part of ``plan_checks``, apart from it because it is of one piece; it shares nothing with what
turns the same rules into a plan's numbers but the questions whether a selector selects, and which
nodes a shape may run on. Nobody is counted before a rule asks for it, and who leaves is taken off
the counts. Sources: InterPodAffinity and PodTopologySpread of kube-scheduler 1.37.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest

import numpy as np

from ..filters.node_index import Mask, NodeIndex
from ..filters.selectors import Group, Spaces, is_counted, spaces
from ..model.cluster import Member, PlacedPod, Snapshot
from ..model.inter_pod import AffinityTerm, Labels, PodSelector, TopologySpread
from ..model.keys import NodeName
from ..model.shapes import Shape

Seat = tuple[Member, NodeName]  # a member and the node that it is to have
Traits = tuple[str, Labels]  # a namespace and labels: what selectors see of a pod
Heads = defaultdict[NodeName, int]  # pods by their node
Places = Mapping[NodeName, str]  # the domains of the nodes that count


class InterPodChecker:
    """Pods on their nodes, and what the rules of one say of all the others."""

    def __init__(self, snapshot: Snapshot, seats: Iterable[Seat]) -> None:
        """Take in all who have a node, and these; nodes that do not exist are in no domain."""
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._index = NodeIndex(snapshot.nodes)
        seats = tuple(seats)
        self._residents = snapshot.placed_pods
        self._spaces = spaces(snapshot.namespaces)
        self._holders: dict[AffinityTerm, Heads] = {}
        guards = (
            (one.anti_affinity, one.node) for one in snapshot.placed_pods if one.anti_affinity
        )
        for apart, node in (
            *guards,
            *((one.shape.rules.anti_affinity, node) for one, node in seats),
        ):
            for term in apart:
                self._holders.setdefault(term, defaultdict(int))[node] += 1
        shapes = {id(member.shape): member.shape for member, _ in seats}
        asked = {peers for shape in shapes.values() for peers in _peers(shape)}
        asked.update(term.peers for term in self._holders)
        self._keys = {one.key for peers in asked for one in peers.selector or ()}
        self._there: dict[Traits, tuple[Heads, Heads]] = {}  # who stay, and who terminate
        for member, node in seats:
            self._seat(_traits(member, self._keys), node)
        self._shunned = self._shunning(_SelectorIndex(self._there, self._spaces))
        self._everyone: _SelectorIndex | None = (
            None  # None: those who have a node are not counted yet
        )
        self._places: dict[object, Places] = {}
        self._counts: dict[object, _Count] = {}

    def faults(self, member: Member, node: NodeName) -> Iterator[str]:
        """What forbids a member its node, if it came last; it is one of those counted."""
        if node not in self._nodes:
            return
        traits, rules = _traits(member, self._keys), member.shape.rules
        where = f"pod {member.key}: node {node} is forbidden by"
        for term in rules.anti_affinity:
            if self._others(traits, node, (term.peers,), term.topology) > 0:
                yield f"{where} its anti-affinity on {term.topology}"
        for term in self._shunned.get(traits, ()):
            count = self._count(term, self._domains(term.topology))
            if (count.near(node) or 0) > (term in rules.anti_affinity):
                yield f"{where} others' anti-affinity on {term.topology}"
        if not self._has_company(traits, node, rules.affinity):
            yield f"{where} its affinity"
        for spread in rules.spread:
            if not self._is_even(traits, node, member.shape, spread):
                yield f"{where} its spread over {spread.topology}"

    def leave(self, member: Member, node: NodeName) -> None:
        """Count the member no longer; it is one of those counted."""
        traits, apart = _traits(member, self._keys), member.shape.rules.anti_affinity
        self._there[traits][False][node] -= 1
        for term in apart:
            self._holders[term][node] -= 1
        for count in self._counts.values():
            of = count.of
            if of in apart if isinstance(of, AffinityTerm) else traits in self._among(of):
                count.drop(node)

    def _seat(self, traits: Traits, node: NodeName, *, terminating: bool = False) -> None:
        if traits not in self._there:
            self._there[traits] = defaultdict(int), defaultdict(int)
        self._there[traits][terminating][node] += 1

    def _shunning(self, seats: "_SelectorIndex") -> Mapping[Traits, Sequence[AffinityTerm]]:
        """The anti-affinity of anybody to those who are to have a node."""
        shunned: dict[Traits, list[AffinityTerm]] = {}
        for term in self._holders:
            for traits in seats.among((term.peers,)):
                shunned.setdefault(traits, []).append(term)
        return shunned

    def _others(self, traits: Traits, node: NodeName, group: Group, topology: str) -> int:
        """How many others of the group are in the node's domain."""
        here = self._count(group, self._domains(topology)).near(node)
        return 0 if here is None else here - (traits in self._among(group))

    def _has_company(self, traits: Traits, node: NodeName, terms: Sequence[AffinityTerm]) -> bool:
        """Whether somebody who matches all terms is there, for each of them; or it is the first."""
        group = tuple(term.peers for term in terms)
        topologies = {term.topology for term in terms}
        if all(self._others(traits, node, group, topology) > 0 for topology in topologies):
            return True
        counts = [self._count(group, self._domains(topology)) for topology in topologies]
        return traits in self._among(group) and all(
            count.total == 1 and count.near(node) is not None for count in counts
        )

    def _is_even(
        self, traits: Traits, node: NodeName, shape: Shape, spread: TopologySpread
    ) -> bool:
        """Whether the node's domain has no more than so many above the emptiest."""
        if not spread.peers.selector:
            return True  # one for everyone counts nobody but the pod itself
        group = (spread.peers,)
        count = self._count(group, self._domains_for(shape, spread), leaving=False)
        if (here := count.near(node)) is None:
            return False
        itself = traits in self._among(group)
        least = count.least(here, itself) if len(count.domains) >= spread.min_domains else 0
        return here - least <= spread.max_skew

    def _count(
        self, of: "Group | AffinityTerm", places: Places, *, leaving: bool = True
    ) -> "_Count":
        """Pods by domain: a group, with or without those who terminate, or who has a term."""
        key = of, id(places), leaving  # the same question gives the same places, which are kept
        if key not in self._counts:
            self._counts[key] = _Count(of, places, self._heads(of, leaving=leaving))
        return self._counts[key]

    def _heads(self, of: "Group | AffinityTerm", *, leaving: bool) -> Iterable[Heads]:
        if isinstance(of, AffinityTerm):
            return [self._holders[of]]
        ways = (False, True) if leaving else (False,)
        return [self._there[traits][way] for traits in self._among(of) for way in ways]

    def _among(self, group: Group) -> frozenset[Traits]:
        """Those who are there and of the group, by what selectors see of them."""
        if self._everyone is None:
            for one in self._residents:
                self._seat(_traits(one, self._keys), one.node, terminating=one.terminating)
            self._everyone = _SelectorIndex(self._there, self._spaces)
        return self._everyone.among(group)

    def _domains(self, topology: str) -> Places:
        """Nodes by one label."""
        if topology not in self._places:
            labels = ((name, node.labels) for name, node in self._nodes.items())
            self._places[topology] = {
                name: value for name, own in labels for key, value in own if key == topology
            }
        return self._places[topology]

    def _domains_for(self, shape: Shape, spread: TopologySpread) -> Places:
        """Nodes by the spread's label, those alone that count for a pod of this shape."""
        needed = tuple(each.topology for each in shape.rules.spread)
        asked = shape.node_selector, shape.required, shape.tolerations
        key = spread.topology, needed, spread.honors_node_affinity, spread.honors_node_taints, asked
        if key not in self._places:
            needs = [self._domains(topology) for topology in needed]
            rows, counts = self._index.rows, self._counting(shape, spread)
            self._places[key] = {
                name: domain
                for name, domain in self._domains(spread.topology).items()
                if all(name in each for each in needs) and counts[rows[name]]
            }
        return self._places[key]

    def _counting(self, shape: Shape, spread: TopologySpread) -> Mask:
        """The nodes that the constraint's policies leave in."""
        found = np.ones(len(self._nodes), np.bool_)
        if spread.honors_node_affinity:
            found &= self._index.wanted(shape)
        if spread.honors_node_taints:
            found &= self._index.tolerated(shape)
        return found


class _Count:
    """Some pods, by domain."""

    def __init__(self, of: Group | AffinityTerm, places: Places, heads: Iterable[Heads]) -> None:
        self.of = of
        self._places = places
        self._found: defaultdict[str, int] = defaultdict(int)
        for some in heads:
            for node, n in some.items():
                if (domain := places.get(node)) is not None:
                    self._found[domain] += n
        self.total = sum(self._found.values())
        self._lowest: Sequence[int] = ()  # the two smallest, once somebody asks

    @cached_property
    def domains(self) -> frozenset[str]:
        """All domains, with those that nobody is in."""
        return frozenset(self._places.values())

    def near(self, node: NodeName) -> int | None:
        """How many are in the node's domain; None if it is in none."""
        domain = self._places.get(node)
        return None if domain is None else self._found[domain]

    def least(self, own: int, itself: int) -> int:
        """The fewest in any domain, if one that has ``own`` goes without the pod itself."""
        self._lowest = self._lowest or nsmallest(2, map(self._found.__getitem__, self.domains))
        others = self._lowest[1:] if own == self._lowest[0] else self._lowest[:1]
        return min((own - itself, *others))

    def drop(self, node: NodeName) -> None:
        """One of them leaves the node."""
        if (domain := self._places.get(node)) is not None:
            self._found[domain] -= 1
            self.total -= 1
            self._lowest = ()


class _SelectorIndex:
    """What selectors see of pods, found by the peers that a rule is about."""

    def __init__(self, known: Iterable[Traits], spaces: Spaces) -> None:
        self._all, self._spaces = tuple(known), spaces
        self._by_label: dict[tuple[str, str], list[Traits]] = {}
        for traits in self._all:
            for label in traits[1]:
                self._by_label.setdefault(label, []).append(traits)
        self._known: dict[Group, frozenset[Traits]] = {}

    def among(self, group: Group) -> frozenset[Traits]:
        """Those who are among all of these peers."""
        if group not in self._known:
            self._known[group] = frozenset(
                (space, labels)
                for space, labels in self._likely(group)
                if all(is_counted(one, space, dict(labels), self._spaces) for one in group)
            )
        return self._known[group]

    def _likely(self, group: Group) -> Iterable[Traits]:
        """Those who have a label that the peers must have; all, if they need none."""
        for one in (one for peers in group for one in peers.selector or ()):
            if one.operator == "In":
                return [
                    traits
                    for value in one.values
                    for traits in self._by_label.get((one.key, value), ())
                ]
        return self._all


def _traits(pod: Member | PlacedPod, keys: Collection[str]) -> Traits:
    """All that selectors by these keys can see of a pod."""
    space = pod.namespace if isinstance(pod, PlacedPod) else pod.key.namespace
    return space, tuple([label for label in pod.labels if label[0] in keys])


def _peers(shape: Shape) -> Iterator[PodSelector]:
    """Whom the shape's rules are about."""
    rules = shape.rules
    yield from (rule.peers for rule in (*rules.anti_affinity, *rules.affinity))
    yield from (spread.peers for spread in rules.spread)
