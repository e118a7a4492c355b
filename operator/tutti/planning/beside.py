"""May a pod stay where it is, looked at as if it came last: rules between pods, counted anew.

A part of ``verify``, apart from it because it is of one piece; it shares nothing with what turns
the same rules into a plan's numbers but the question whether a selector selects. Sources:
InterPodAffinity and PodTopologySpread of kube-scheduler 1.37.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..model.cluster import Member, Node, Resident, Shape, Snapshot
from ..model.keys import NodeName
from ..model.resources import NOTHING
from ..model.rules import Labels, Peers, Spread, Term
from .feasibility import is_tolerated, is_wanted
from .peers import has_rules, is_counted, spaces

Who = tuple[Peers, ...]  # pods that are among all of these peers
Seat = tuple[Member, NodeName]  # a member and the node that it is to have
Look = tuple[str, Labels]  # a namespace and labels: what selectors see of pods
Kind = tuple[str, Labels, bool]  # the same, and whether they terminate
Tally = Mapping[str, int]  # pods by the value of a node label
NO_SHAPE = Shape(NOTHING)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod and the node that it has, or is to have."""

    node: NodeName
    namespace: str
    labels: Labels
    apart: tuple[Term, ...]
    shape: Shape = NO_SHAPE
    terminating: bool = False

    @classmethod
    def of_resident(cls, one: Resident) -> "Pod":
        """A pod that has its node; what else it once asked for is over."""
        return cls(one.node, one.namespace, one.labels, one.apart, terminating=one.terminating)

    @classmethod
    def of_member(cls, member: Member, node: NodeName) -> "Pod":
        """A member on the node that it is to have."""
        shape = member.shape
        return cls(node, member.key.namespace, member.labels, shape.rules.apart, shape)


class Neighbours:
    """Pods on their nodes, and what the rules of one say of all the others."""

    def __init__(self, snapshot: Snapshot, members: Sequence[Seat]) -> None:
        """Count all who have a node, and these; on nodes that do not exist nobody counts.

        Where no rule is in force nobody is counted at all.
        """
        shapes = {id(member.shape): member.shape for member, _ in members}
        self.are_ruled = any(map(has_rules, shapes.values())) or any(
            one.apart for one in snapshot.residents
        )
        self._nodes = {node.name: node for node in snapshot.nodes} if self.are_ruled else {}
        self._labels = {name: dict(node.labels) for name, node in self._nodes.items()}
        self._spaces = spaces(snapshot.namespaces)
        residents = (Pod.of_resident(one) for one in snapshot.residents)
        pods = (*residents, *(Pod.of_member(*seat) for seat in members if self.are_ruled))
        there = [pod for pod in pods if pod.node in self._nodes]
        self._keys = {key for pod in there for key in _keys(pod)}
        self._kinds: dict[Kind, Counter[NodeName]] = {}
        self._terms: dict[Term, Counter[NodeName]] = {}
        for pod in there:
            self._kinds.setdefault((*self._kind(pod), pod.terminating), Counter())[pod.node] += 1
            for term in pod.apart:
                self._terms.setdefault(term, Counter())[pod.node] += 1
        self._by_label: dict[tuple[str, str], set[Look]] = {}
        for space, labels, _ in self._kinds:
            for label in labels:
                self._by_label.setdefault(label, set()).add((space, labels))
        self._known: dict[Who, frozenset[Look]] = {}
        self._shunned: dict[Look, list[Term]] = {}
        self._tallies: dict[object, Tally] = {}

    def faults(self, member: Member, node: NodeName) -> Iterator[str]:
        """What forbids a member its node, if it came last; it is one of those counted."""
        pod = Pod.of_member(member, node)
        if node not in self._nodes:
            return
        where = f"pod {member.key}: node {node} is forbidden by"
        for term in pod.apart:
            if self._others(pod, (term.peers,), term.topology):
                yield f"{where} its anti-affinity on {term.topology}"
        for term in self._terms_about(pod):
            if self._holders(pod, term):
                yield f"{where} others' anti-affinity on {term.topology}"
        if not self._has_company(pod):
            yield f"{where} its affinity"
        for spread in pod.shape.rules.even:
            if not self._is_even(pod, spread):
                yield f"{where} its spread over {spread.topology}"

    def _terms_about(self, pod: Pod) -> Sequence[Term]:
        """The anti-affinity of anybody to pods like this one."""
        if not self._shunned:
            for term in self._terms:
                for look in self._among((term.peers,)):
                    self._shunned.setdefault(look, []).append(term)
        return self._shunned.get(self._kind(pod), ())

    def _holders(self, pod: Pod, term: Term) -> int:
        """How many others in the pod's domain have this term of anti-affinity."""
        value = self._labels[pod.node].get(term.topology)
        key = "holders", term
        if key not in self._tallies:
            self._tallies[key] = self._by_value(term.topology, [self._terms[term]])
        return 0 if value is None else self._tallies[key].get(value, 0) - (term in pod.apart)

    def _others(self, pod: Pod, who: Who, topology: str) -> int:
        """How many others of these are in the pod's domain."""
        value = self._labels[pod.node].get(topology)
        here = self._tally(who, topology).get(value, 0) if value is not None else 0
        return here - (value is not None and self._is_among(pod, who))

    def _has_company(self, pod: Pod) -> bool:
        """Whether somebody who matches all terms is there, for each of them; or it is the first."""
        terms = pod.shape.rules.near
        who = tuple(term.peers for term in terms)
        topologies = {term.topology for term in terms}
        if all(self._others(pod, who, topology) > 0 for topology in topologies):
            return True
        if not self._is_among(pod, who) or not topologies <= set(self._labels[pod.node]):
            return False
        return all(sum(self._tally(who, topology).values()) == 1 for topology in topologies)

    def _is_even(self, pod: Pod, spread: Spread) -> bool:
        """Whether the pod's domain has no more than so many above the emptiest."""
        if not spread.peers.selector:
            return True  # one for everyone counts nobody but the pod itself
        who = (spread.peers,)
        counts = dict(self._spread_tally(pod, spread))
        value = self._labels[pod.node].get(spread.topology, "")
        if value not in counts:
            return False
        itself = self._is_among(pod, who)
        counts[value] -= itself
        least = min(counts.values()) if len(counts) >= spread.min_domains else 0
        return counts[value] + itself - least <= spread.max_skew

    def _spread_tally(self, pod: Pod, spread: Spread) -> Tally:
        """Who of the peers stays, by domain, on the nodes that count for the pod."""
        shape = pod.shape
        key = spread, shape.rules.even, shape.node_selector, shape.required, shape.tolerations
        if key not in self._tallies:
            needed = {each.topology for each in shape.rules.even}
            found: Counter[str] = Counter()
            staying = self._heads((spread.peers,), leaving=False)
            for name, node in self._nodes.items():
                labels = self._labels[name]
                if needed <= set(labels) and _counts_for(shape, spread, node):
                    found[labels[spread.topology]] += sum(heads[name] for heads in staying)
            self._tallies[key] = found
        return self._tallies[key]

    def _tally(self, who: Who, topology: str) -> Tally:
        """How many of these are in each domain, those who terminate too."""
        key = who, topology
        if key not in self._tallies:
            self._tallies[key] = self._by_value(topology, self._heads(who))
        return self._tallies[key]

    def _by_value(self, topology: str, heads: Iterable[Counter[NodeName]]) -> Tally:
        found: Counter[str] = Counter()
        for some in heads:
            for node, n in some.items():
                if (value := self._labels[node].get(topology)) is not None:
                    found[value] += n
        return found

    def _heads(self, who: Who, *, leaving: bool = True) -> list[Counter[NodeName]]:
        """Where those of these peers are, kind by kind."""
        ways = (False, True) if leaving else (False,)
        kinds = [(*look, is_leaving) for look in self._among(who) for is_leaving in ways]
        return [self._kinds[kind] for kind in kinds if kind in self._kinds]

    def _is_among(self, pod: Pod, who: Who) -> bool:
        return self._kind(pod) in self._among(who)

    def _among(self, who: Who) -> frozenset[Look]:
        """Those who are there and among all of these peers, by what selectors see of them."""
        if who not in self._known:
            self._known[who] = frozenset(
                (space, labels)
                for space, labels in self._likely(who)
                if all(is_counted(one, space, dict(labels), self._spaces) for one in who)
            )
        return self._known[who]

    def _likely(self, who: Who) -> Iterable[Look]:
        """Those who have a label that the peers must have; all, if they need none."""
        for one in (one for peers in who for one in peers.selector or ()):
            if one.operator == "In":
                found = (self._by_label.get((one.key, value), set()) for value in one.values)
                return set().union(*found)
        return {(space, labels) for space, labels, _ in self._kinds}

    def _kind(self, pod: Pod) -> Look:
        """All that selectors can see of a pod."""
        return pod.namespace, tuple(label for label in pod.labels if label[0] in self._keys)


def _counts_for(shape: Shape, spread: Spread, node: Node) -> bool:
    """Whether the constraint's policies leave the node in."""
    return (not spread.heeds_affinity or is_wanted(shape, node)) and (
        not spread.heeds_taints or is_tolerated(shape, node)
    )


def _keys(pod: Pod) -> Iterator[str]:
    """The labels that the pod's rules select by."""
    rules = pod.shape.rules
    about = [
        *(rule.peers for rule in (*pod.apart, *rules.near)),
        *(one.peers for one in rules.even),
    ]
    return (one.key for peers in about for one in peers.selector or ())
