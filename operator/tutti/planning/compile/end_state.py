"""Whether rules between pods let members keep their nodes once all Reservations are bound.

Every member is judged as if it came last. ``verify`` checks the same with code of its own. Sources:
the filters of kube-scheduler's InterPodAffinity and PodTopologySpread.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...filters.selectors import Group
from ...filters.topology import Domains, TopologyDomains
from ...model.cluster import Member, Snapshot
from ...model.inter_pod import AffinityTerm, TopologySpread
from ...model.keys import NodeName
from ...model.shapes import Shape
from . import pod_classes
from .inter_pod import ALL_PODS, PODS_THAT_STAY, PODS_THERE, CountedPod, Presence
from .pod_classes import SelectorIndex, groups_of

MemberOnNode = tuple[Member, NodeName]

Counts = NDArray[np.int64]  # [domain]


class EndState:
    """Pods on their nodes, counted by group and domain when a rule needs the count."""

    def __init__(
        self, domains: TopologyDomains, index: SelectorIndex, pods: Iterable[CountedPod]
    ) -> None:
        """Count the pods, including the members to judge; ``index`` must know their groups."""
        self._domains, self._index = domains, index
        self._nodes: dict[tuple[int, Presence], list[int]] = {}  # by group
        self._holders: dict[AffinityTerm, list[int]] = {}  # the nodes of pods with the term
        for pod in pods:
            for group in pod.groups:
                self._nodes.setdefault((group, pod.presence), []).append(pod.node)
            for term in pod.anti_affinity:
                self._holders.setdefault(term, []).append(pod.node)
        self._counts: dict[object, Counts] = {}
        self._answers: dict[tuple[Shape, int], bool] = {}

    def allows(self, shape: Shape, node: int) -> bool:
        """Whether a member of the shape may be on its node, judged as if it came last."""
        key = shape, node
        if key not in self._answers:
            self._answers[key] = (
                self._keeps_apart(shape, node)
                and self._is_near(shape, node)
                and all(self._is_even(shape, spread, node) for spread in shape.rules.spread)
            )
        return self._answers[key]

    def _keeps_apart(self, shape: Shape, node: int) -> bool:
        """Whether neither its own anti-affinity nor that of other pods forbids the node."""
        groups, own = groups_of(shape), shape.rules.anti_affinity
        if any(
            self._count_others(shape, (term.peers,), term.topology, node, ALL_PODS) > 0
            for term in own
        ):
            return False
        for term, nodes in self._holders.items():
            if self._index.number[(term.peers,)] in groups:
                domains = self._domains.domains(term.topology)
                if _at(self._counted(term, nodes, domains), domains, node) > (term in own):
                    return False
        return True

    def _is_near(self, shape: Shape, node: int) -> bool:
        """Whether pods that match all terms are in each of its domains, or it is the first pod."""
        terms = shape.rules.affinity
        group = tuple(term.peers for term in terms)
        topologies = {term.topology for term in terms}
        if all(self._count_others(shape, group, topology, node) > 0 for topology in topologies):
            return True
        if self._index.number[group] not in groups_of(shape):
            return False
        all_domains = [self._domains.domains(topology) for topology in topologies]
        return all(
            domains[node] >= 0 and self._group(group, domains).sum() == 1 for domains in all_domains
        )

    def _is_even(self, shape: Shape, spread: TopologySpread, node: int) -> bool:
        """Whether its domain has at most ``max_skew`` pods more than the emptiest domain."""
        if not spread.peers.selector:
            return True  # an empty selector counts only the pod itself
        group = (spread.peers,)
        domains = self._domains.even(shape, spread)
        if domains[node] < 0:
            return False
        counts = self._group(group, domains, PODS_THAT_STAY)
        count, least = int(counts[domains[node]]), 0
        if len(counts) >= spread.min_domains:
            without_itself = counts.copy()
            without_itself[domains[node]] -= self._index.number[group] in groups_of(shape)
            least = int(without_itself.min())
        return count - least <= spread.max_skew

    def _count_others(
        self,
        shape: Shape,
        group: Group,
        topology: str,
        node: int,
        which: Sequence[Presence] = PODS_THERE,
    ) -> int:
        """The number of other pods of the group in the node's domain."""
        domains = self._domains.domains(topology)
        if domains[node] < 0:
            return 0
        is_counted = self._index.number[group] in groups_of(shape)
        return _at(self._group(group, domains, which), domains, node) - is_counted

    def _group(
        self, group: Group, domains: Domains, which: Sequence[Presence] = PODS_THERE
    ) -> Counts:
        """[domain]: the number of pods of the group, by whether they stay, leave or come."""
        number = self._index.number[group]
        nodes = [node for kind in which for node in self._nodes.get((number, kind), ())]
        return self._counted((number, which), nodes, domains)

    def _counted(self, pods: object, nodes: Sequence[int], domains: Domains) -> Counts:
        key = pods, id(domains)  # TopologyDomains returns and keeps one array for equal arguments
        if key not in self._counts:
            inside = domains[np.array(nodes, dtype=np.intp)]
            size = int(domains.max(initial=-1)) + 1
            self._counts[key] = np.bincount(inside[inside >= 0], minlength=size).astype(np.int64)
        return self._counts[key]


class RuleCheck:
    """Checks rules between pods for members that are promised a node."""

    def __init__(self, snapshot: Snapshot, members: Iterable[Member]) -> None:
        """``members`` are all members that may be promised a node."""
        self._rows = {node.name: row for row, node in enumerate(snapshot.nodes)}
        self._domains = TopologyDomains(snapshot.nodes)
        self._index = pod_classes.selector_index(snapshot, members, snapshot.placed_pods)
        self._coming = pod_classes.coming(snapshot)
        rows, among = self._rows, self._index.among
        self._residents = [
            CountedPod.of(pod, rows[pod.node], among(pod.namespace, pod.labels), ())
            for pod in (snapshot.placed_pods if self._index.number else ())
            if pod.node in rows
        ]

    @property
    def is_needed(self) -> bool:
        """Whether any rule is in force."""
        return bool(self._index.number)

    def state(self, promised: Sequence[MemberOnNode]) -> EndState:
        """The cluster once these members are bound beside the pods that have a node."""
        pods = [
            CountedPod(
                self._rows[node],
                groups_of(shape),
                shape.rules.anti_affinity,
                Presence.COMES if member.uid in self._coming else Presence.STAYS,
            )
            for member, node in promised
            if node in self._rows
            for shape in [self._shape(member)]
        ]
        return EndState(self._domains, self._index, [*self._residents, *pods])

    def allows(self, state: EndState, member: Member, node: NodeName) -> bool:
        """Whether rules let the member keep its node; True if the node does not exist."""
        return node not in self._rows or state.allows(self._shape(member), self._rows[node])

    def _shape(self, member: Member) -> Shape:
        (classified,) = self._index.classify((member,))
        return classified.shape


def _at(counts: Counts, domains: Domains, node: int) -> int:
    """The count of the node's domain; 0 if the node is in no domain."""
    return int(counts[domains[node]]) if domains[node] >= 0 else 0
