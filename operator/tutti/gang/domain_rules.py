"""The levels of the cluster's network that gangs name, as labels of nodes.

The planner and the checker both read a rule by this module.
"""

from collections.abc import Iterable, Mapping, Sequence

from ..model.cluster import Gang, Node, Reservation, Snapshot
from ..model.decisions import Reason, Rejection
from ..model.inter_pod import DomainRule, Topology
from ..model.keys import NodeName
from .findings import UnknownLevel


def labels_of(level: str, topologies: Iterable[Topology]) -> tuple[str, ...]:
    """The node labels that identify a domain of the level, the widest first.

    There are none if no topology has the level. If several have it, the first by name counts.
    """
    for topology in sorted(topologies, key=lambda topology: topology.name):
        if level in topology.levels:
            return topology.levels[: topology.levels.index(level) + 1]
    return ()


def covers(rule: DomainRule, role: str) -> bool:
    """Whether the rule applies to members of the role."""
    return not rule.roles or role in rule.roles


def unknown_level(gang: Gang, snapshot: Snapshot) -> Rejection | None:
    """The rejection of a gang that names a level that no topology has; None if all levels exist."""
    if not gang.same_domain or not any(member.may_get_a_node for member in gang.members):
        return None
    known = {level for topology in snapshot.topologies for level in topology.levels}
    unknown = sorted({rule.level for rule in gang.same_domain} - known)
    if not unknown:
        return None
    return Rejection(
        gang.key, Reason.UNKNOWN_LEVEL, (UnknownLevel(unknown[0], tuple(sorted(known))),)
    )


def nodes_of(gang: Gang, rule: DomainRule, reservation: Reservation | None) -> Sequence[NodeName]:
    """The nodes of the rule's members, and those that the gang's Reservation holds for them."""
    return [node for role, node in places_of(gang, reservation) if covers(rule, role)]


def places_of(gang: Gang, reservation: Reservation | None) -> Sequence[tuple[str, NodeName]]:
    """The roles of all such members, each with its node."""
    roles = {member.uid: member.role for member in gang.members}
    places = [(m.role, m.node) for m in gang.members if m.node is not None and not m.is_over]
    if reservation is not None:
        entries = [entry for entry in reservation.entries if entry.uid in roles]
        places += [(roles[entry.uid], entry.node) for entry in entries]
        places += [(slot.role, slot.node) for slot in reservation.slots]
    return places


def preference_note(
    gang: Gang,
    places: Iterable[tuple[str, NodeName]],
    nodes: Mapping[NodeName, Node],
    topologies: Sequence[Topology],
) -> str:
    """Which preferred levels the gang does without on these places; empty if it has them all."""
    places, notes = [*places], []
    for rule in gang.preferred_domains:
        labels = labels_of(rule.level, topologies)
        if not labels:
            notes.append(f"no Topology has the preferred level {rule.level}")
            continue
        own = {node for role, node in places if covers(rule, role)}
        domains = {_domain(nodes.get(name), labels) or name for name in own}
        if len(domains) > 1:
            roles = f"{', '.join(rule.roles)} " if rule.roles else ""
            notes.append(f"{roles}in {len(domains)} domains of {rule.level}; 1 was preferred")
    return "; ".join(notes)


def _domain(node: Node | None, labels: Sequence[str]) -> tuple[str, ...]:
    """The values of the labels; none where the node is gone or lacks a label."""
    values = {} if node is None else dict(node.labels)
    path = tuple(values[label] for label in labels if label in values)
    return path if len(path) == len(labels) else ()
