"""kube-scheduler's filters between pods for one pod and one node, as naively as can be.

They ask everyone there again each time and remember nothing, so that nothing can be remembered
wrongly; what is planned and checked with arrays and tallies is held against them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tutti.filters.node_rules import fits_node, is_tolerated, is_wanted
from tutti.model.cluster import Member, Node, PlacedPod, Snapshot
from tutti.model.decisions import Plan
from tutti.model.inter_pod import PodSelector, Requirement, TopologySpread
from tutti.model.keys import NodeName


class Filters:
    """Pods with nodes, and whether one more may come."""

    def __init__(self, snapshot: Snapshot, there: Sequence[PlacedPod]) -> None:
        """With these pods there."""
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.spaces = {namespace.name: dict(namespace.labels) for namespace in snapshot.namespaces}
        self.there = [one for one in there if one.node in self.nodes]

    def pass_rules(self, member: Member, name: NodeName) -> bool:
        """Whether node rules and rules between pods let the member go there."""
        node = self.nodes.get(name)
        if node is None or fits_node(member.shape, node) is not None:
            return False
        rules = member.shape.rules
        return (
            all(
                self.pairs([one], term.topology).get(value, 0) == 0
                for one in self.there
                for term in rules.anti_affinity
                if self.counts(term.peers, one)
                if (value := self.value(name, term.topology)) is not None
            )
            and not self.is_shunned(member, name)
            and self.has_company(member, name)
            and all(self.is_even(member, spread, node) for spread in rules.spread)
        )

    def is_shunned(self, member: Member, name: NodeName) -> bool:
        """Whether somebody's anti-affinity forbids it."""
        newcomer = seen_as_resident(member, name)
        return any(
            self.counts(term.peers, newcomer)
            and self.value(name, term.topology) is not None
            and self.value(name, term.topology) == self.value(one.node, term.topology)
            for one in self.there
            for term in one.anti_affinity
        )

    def has_company(self, member: Member, name: NodeName) -> bool:
        """Whether its affinity is met, or it is the first."""
        terms = member.shape.rules.affinity

        def matches(placed_pod: PlacedPod) -> bool:
            return all(self.counts(term.peers, placed_pod) for term in terms)

        if not terms:
            return True
        keys = [term.topology for term in terms]
        found = [one for one in self.there if matches(one)]
        if any(self.value(name, key) is None for key in keys):
            return False
        if all(self.pairs(found, key).get(self.value(name, key)) for key in keys):
            return True
        nobody = not any(self.pairs(found, key) for key in keys)
        return nobody and matches(seen_as_resident(member, name))

    def is_even(self, member: Member, spread: TopologySpread, node: Node) -> bool:
        """Whether one constraint lets it come."""
        keys = {each.topology for each in member.shape.rules.spread}
        counts: dict[str, int] = {}
        for other in self.nodes.values():
            labels = dict(other.labels)
            if not keys <= set(labels):
                continue
            if spread.honors_node_affinity and not is_wanted(member.shape, other):
                continue
            if spread.honors_node_taints and not is_tolerated(member.shape, other):
                continue
            counts.setdefault(labels[spread.topology], 0)
            if spread.peers.selector != ():
                counts[labels[spread.topology]] += sum(
                    one.node == other.name
                    and not one.terminating
                    and self.counts(spread.peers, one)
                    for one in self.there
                )
        least = 0 if len(counts) < spread.min_domains else min(counts.values())
        itself = self.counts(spread.peers, seen_as_resident(member, node.name))
        here = counts.get(dict(node.labels)[spread.topology], 0)
        return here + itself - least <= spread.max_skew

    def pairs(self, placed_pods: Sequence[PlacedPod], key: str) -> Mapping[str | None, int]:
        """How many there are by the value of a label."""
        values = [value for pod in placed_pods if (value := self.value(pod.node, key)) is not None]
        return {value: values.count(value) for value in values}

    def value(self, name: NodeName, key: str) -> str | None:
        """What a node's label says."""
        return dict(self.nodes[name].labels).get(key)

    def counts(self, who: PodSelector, placed_pod: PlacedPod) -> bool:
        """Whether a pod is one of the peers."""
        space = self.spaces.get(placed_pod.namespace, {})
        is_named = placed_pod.namespace in who.namespaces or holds(who.namespace_labels, space)
        return is_named and holds(who.selector, dict(placed_pod.labels))


def holds(selector: tuple[Requirement, ...] | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    for one in selector:
        is_there, value = one.key in labels, labels.get(one.key)
        match one.operator:
            case "In":
                found = is_there and value in one.values
            case "NotIn":
                found = not is_there or value not in one.values
            case "Exists":
                found = is_there
            case _:
                found = not is_there
        if not found:
            return False
    return True


def seen_as_resident(member: Member, name: NodeName) -> PlacedPod:
    space, rules = member.key.namespace, member.shape.rules
    return PlacedPod(
        member.uid, name, space, member.labels, rules.anti_affinity, member.terminating
    )


def promised(snapshot: Snapshot) -> Sequence[PlacedPod]:
    """Members that standing Reservations hold a node for."""
    members = {m.uid: m for gang in snapshot.gangs for m in gang.members}
    return [
        seen_as_resident(members[entry.uid], entry.node)
        for reservation in snapshot.reservations
        for entry in reservation.entries
        if entry.uid in members and members[entry.uid].may_get_a_node
    ]


def newcomers(snapshot: Snapshot, plan: Plan) -> Sequence[tuple[Member, NodeName]]:
    members = {m.uid: m for gang in snapshot.gangs for m in gang.members}
    return [
        (members[assignment.uid], assignment.node)
        for placed in plan.placements
        for assignment in placed.assignments
    ]


def all_pass(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether every newcomer passes if it came last, and nobody's anti-affinity is broken."""
    placed = newcomers(snapshot, plan)
    everyone = [
        *snapshot.placed_pods,
        *promised(snapshot),
        *(seen_as_resident(member, on) for member, on in placed),
    ]
    return all(
        Filters(snapshot, [one for one in everyone if one.uid != member.uid]).pass_rules(member, on)
        for member, on in placed
    )


def alone(snapshot: Snapshot, member: Member) -> frozenset[NodeName]:
    """Where one member may go, room aside."""
    there = [*snapshot.placed_pods, *promised(snapshot)]
    filters = Filters(snapshot, [one for one in there if one.uid != member.uid])
    waiting = replace(member, node=None)
    return frozenset(name for name in filters.nodes if filters.pass_rules(waiting, name))
