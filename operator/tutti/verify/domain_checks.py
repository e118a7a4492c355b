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
    reservation: Reservation | None,
) -> Iterator[str]:
    """One sentence for each domain rule of the gang that the new members of a placement break.

    The new members must be in one domain. If members of the rule have nodes already, it must be a
    domain of theirs. ``reservation`` is the standing Reservation of the gang.
    """
    for rule in gang.same_domain:
        labels = domain_rules.labels_of(rule.level, topologies)
        if not labels:
            yield f"gang {gang.key}: no topology has the level {rule.level}"
            continue
        before = slots.places(() if reservation is None else reservation.slots)
        new = {
            _domain(nodes, node, labels) for node in _new_nodes(gang, rule, placement, reservation)
        }
        occupied = {
            _domain(nodes, node, labels) for node in _current_nodes(gang, rule, reservation)
        } - {None}
        kept_domains = {
            _domain(nodes, node, labels)
            for node, role in before & slots.places(placement.slots)
            if domain_rules.covers(rule, role)
        } - {None}
        if (
            None in new
            or len(new) > 1
            or (new and (occupied | kept_domains) and not new & (occupied | kept_domains))
        ):
            names = ", ".join(sorted("/".join(name or ("none",)) for name in new))
            yield f"gang {gang.key}: it would be in these domains of {rule.level}: {names}"


def _domain(nodes: Mapping[NodeName, Node], name: NodeName, labels: tuple[str, ...]) -> Domain:
    """The domain of a node; None if the node is in no domain, or does not exist."""
    label_values = dict(nodes[name].labels) if name in nodes else {}
    values = [label_values.get(label) for label in labels]
    domain = tuple(value for value in values if value is not None)
    return domain if len(domain) == len(labels) else None


def _new_nodes(
    gang: Gang, rule: DomainRule, placement: Placement, reservation: Reservation | None
) -> Iterator[NodeName]:
    """The nodes on which the placement adds members of the rule."""
    roles = {member.uid: member.role for member in gang.members}
    before = slots.places(() if reservation is None else reservation.slots)
    places = [
        (roles.get(assignment.uid, ""), assignment.node) for assignment in placement.assignments
    ]
    places += [(role, node) for node, role in slots.places(placement.slots) - before]
    return (node for role, node in places if domain_rules.covers(rule, role))


def _current_nodes(
    gang: Gang, rule: DomainRule, reservation: Reservation | None
) -> Iterator[NodeName]:
    """The nodes of the rule's members that are bound or reserved."""
    roles = {member.uid: member.role for member in gang.members}
    places = [(m.role, m.node) for m in gang.members if m.node is not None and not m.is_over]
    entries = (
        []
        if reservation is None
        else [entry for entry in reservation.entries if entry.uid in roles]
    )
    places += [(roles[entry.uid], entry.node) for entry in entries]
    return (node for role, node in places if domain_rules.covers(rule, role))
