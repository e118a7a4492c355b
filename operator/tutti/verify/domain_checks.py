"""Whether gangs keep to one domain: by labels and names alone, in plain Python."""

from collections.abc import Iterator, Mapping, Sequence

from ..gang import domain_rules, slots
from ..model.cluster import Gang, Node, Reservation
from ..model.decisions import Placement
from ..model.inter_pod import DomainRule, Topology
from ..model.keys import NodeName

Domain = tuple[str, ...] | None  # the values of the labels, the widest first


def faults(
    topologies: Sequence[Topology],
    nodes: Mapping[NodeName, Node],
    gang: Gang,
    placement: Placement,
    held: Reservation | None,
) -> Iterator[str]:
    """The rules of the gang that the new members of a placement break.

    They are in one domain, and it has members of the rule already, if any domain has. ``held`` is
    the Reservation that stands for the gang.
    """
    for rule in gang.same_domain:
        labels = domain_rules.labels_of(rule.level, topologies)
        if not labels:
            yield f"gang {gang.key}: no topology has the level {rule.level}"
            continue
        before = slots.places(() if held is None else held.slots)
        new = {_domain(nodes, node, labels) for node in _new(gang, rule, placement, held)}
        there = {_domain(nodes, node, labels) for node in _standing(gang, rule, held)} - {None}
        stays = {
            _domain(nodes, node, labels)
            for node, role in before & slots.places(placement.slots)
            if domain_rules.covers(rule, role)
        } - {None}
        if None in new or len(new) > 1 or (new and (there | stays) and not new & (there | stays)):
            names = ", ".join(sorted("/".join(name or ("none",)) for name in new))
            yield f"gang {gang.key}: it would be in these domains of {rule.level}: {names}"


def _domain(nodes: Mapping[NodeName, Node], name: NodeName, labels: tuple[str, ...]) -> Domain:
    """The domain of a node; None if it is in none, or there is no such node."""
    known = dict(nodes[name].labels) if name in nodes else {}
    values = [known.get(label) for label in labels]
    named = tuple(value for value in values if value is not None)
    return named if len(named) == len(labels) else None


def _new(
    gang: Gang, rule: DomainRule, placement: Placement, held: Reservation | None
) -> Iterator[NodeName]:
    """The nodes on which the placement adds members of the rule."""
    roles = {member.uid: member.role for member in gang.members}
    before = slots.places(() if held is None else held.slots)
    places = [(roles.get(one.uid, ""), one.node) for one in placement.assignments]
    places += [(role, node) for node, role in slots.places(placement.slots) - before]
    return (node for role, node in places if domain_rules.covers(rule, role))


def _standing(gang: Gang, rule: DomainRule, held: Reservation | None) -> Iterator[NodeName]:
    """The nodes of the rule's members that have one: bound, or by a standing Reservation."""
    roles = {member.uid: member.role for member in gang.members}
    places = [(m.role, m.node) for m in gang.members if m.node is not None and not m.is_over]
    entries = [] if held is None else [one for one in held.entries if one.uid in roles]
    places += [(roles[entry.uid], entry.node) for entry in entries]
    return (node for role, node in places if domain_rules.covers(rule, role))
