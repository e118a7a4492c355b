"""The levels of the cluster's network that gangs name, as labels of nodes.

The planner and the checker both read a rule by this module.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..model.cluster import Gang, Member, Node, Reservation, Snapshot
from ..model.decisions import Reason, Rejection
from ..model.inter_pod import HOSTNAME, DomainRule, SegmentRule, Topology, tier
from ..model.keys import NodeName
from .findings import MissingIndex, UnknownLevel
from .quantities import count

MOST_NAMED = 3  # domains of one level in a sentence


@dataclass(frozen=True, slots=True)
class DomainMembers:
    """How many members of a gang have their nodes in one domain."""

    values: tuple[str, ...]  # of the labels, the widest first; none for nodes in no domain
    members: int


@dataclass(frozen=True, slots=True)
class LevelDomains:
    """The domains of one level in which a gang, or some of its roles, has members."""

    level: str  # as the gang names it
    roles: tuple[str, ...]  # that have the level; none if it is for all members
    domains: tuple[DomainMembers, ...]

    def __str__(self) -> str:
        """Name the domains that have most members, such as "10 in b1/r2 and 6 in b1/r3 of rack"."""
        most = sorted(self.domains, key=lambda domain: (-domain.members, not domain.values))
        names = [_place(domain) for domain in most]
        if len(most) > 1:
            names = [f"{domain.members} {name}" for domain, name in zip(most, names, strict=True)]
        if rest := most[MOST_NAMED:]:
            left = sum(domain.members for domain in rest)
            names[MOST_NAMED:] = [f"{left} in {count(len(rest), 'more domain')}"]
        *firsts, last = names
        text = f"{', '.join(firsts)} and {last}" if firsts else last
        roles = f"{', '.join(self.roles)} " if self.roles else ""
        return f"{roles}{text} of {self.level}"


def _place(domain: DomainMembers) -> str:
    return f"in {'/'.join(domain.values)}" if domain.values else "in no domain"


def labels_of(level: str, topologies: Iterable[Topology]) -> tuple[str, ...]:
    """The node labels that identify a domain of the level, the widest first.

    There are none if no topology has the level. If several have it, the first counts, in the order
    of ``Topology.order``.
    """
    for topology in sorted(topologies, key=lambda topology: topology.order):
        levels = topology.levels
        if level in levels:
            return levels[: levels.index(level) + 1]
        of_domains = levels[:-1] if levels[-1:] == (HOSTNAME,) else levels
        for number in range(len(of_domains)):
            if level == tier(number + 1):
                return of_domains[: len(of_domains) - number]
    return ()


def covers(rule: DomainRule, role: str) -> bool:
    """Whether the rule applies to members of the role."""
    return not rule.roles or role in rule.roles


def includes(rule: DomainRule, other: DomainRule) -> bool:
    """Whether the rule applies to all members that the other rule applies to."""
    return not rule.roles or (bool(other.roles) and set(other.roles) <= set(rule.roles))


def rejection(gang: Gang, snapshot: Snapshot) -> Rejection | None:
    """Why the rules of a gang cannot be kept in any domain; None if they could be.

    It names a level that no topology has, or segments by an index that members lack.
    """
    has_begun = bool(gang.members or gang.finished)
    if has_begun and not any(member.may_get_a_node for member in gang.members):
        return None
    levels = sorted({rule.level for rule in gang.required_levels})
    unknown = [level for level in levels if not labels_of(level, snapshot.topologies)]
    if unknown:
        known = {level for topology in snapshot.topologies for level in topology.levels}
        finding = UnknownLevel(unknown[0], tuple(sorted(known)))
        return Rejection(gang.key, Reason.UNKNOWN_LEVEL, (finding,))
    for segments in gang.segments:
        if segments.index and (fault := _index_fault(gang, segments)) is not None:
            return Rejection(gang.key, Reason.MISSING_INDEX, (fault,))
    return None


def index_of(member: Member, segments: SegmentRule) -> int | None:
    """The index of a member by the label of the rule; None if it has none."""
    value = dict(member.labels).get(segments.index, "")
    return int(value) if value.isdecimal() and value.isascii() else None


def segment_of(member: Member, segments: SegmentRule) -> int:
    """The number of a member's segment by its index; -1 if it has none."""
    index = index_of(member, segments)
    return -1 if index is None else index // segments.size


def segment_nodes(
    gang: Gang, segments: SegmentRule, reservation: Reservation | None
) -> Mapping[int, Sequence[NodeName]]:
    """By segment, the nodes of its members, and those that the gang's Reservation has for them."""
    nodes: dict[int, list[NodeName]] = {}
    reserved = {} if reservation is None else {e.uid: e.node for e in reservation.entries}
    for member in gang.members:
        node = member.node or reserved.get(member.uid)
        if node is not None and not member.is_over and covers(segments.of, member.role):
            nodes.setdefault(segment_of(member, segments), []).append(node)
    return nodes


def _index_fault(gang: Gang, segments: SegmentRule) -> MissingIndex | None:
    """Why members do not fall into segments by their indexes; None if they do.

    To start, all members of the rule have one role and one shape, and the indexes from 0 on without
    gaps. So the members that start are those with the first indexes, however many they are.
    """
    own = [member for member in gang.members if covers(segments.of, member.role)]
    waiting = [member for member in own if member.may_get_a_node]
    for member in waiting:
        if index_of(member, segments) is None:
            return MissingIndex(segments.index, member.key.name)
    if any(member.counts_as_bound for member in gang.members):
        return None
    if len({(member.role, member.shape) for member in waiting}) > 1:
        return MissingIndex(segments.index, is_mixed=True)
    indexes = {index_of(member, segments) for member in waiting}
    missing = next((i for i in range(len(waiting)) if i not in indexes), None)
    return None if missing is None else MissingIndex(segments.index, index=missing)


def nodes_of(gang: Gang, rule: DomainRule, reservation: Reservation | None) -> Sequence[NodeName]:
    """The nodes of the rule's members, and those that the gang's Reservation holds for them."""
    return [node for role, node in places_of(gang, reservation) if covers(rule, role)]


def places_of(gang: Gang, reservation: Reservation | None) -> Sequence[tuple[str, NodeName]]:
    """The roles of all such members, each with its node; each absent member counts."""
    roles = {member.uid: member.role for member in gang.members}
    places = [(m.role, m.node) for m in gang.members if m.node is not None and not m.is_over]
    if reservation is not None:
        entries = [entry for entry in reservation.entries if entry.uid in roles]
        places += [(roles[entry.uid], entry.node) for entry in entries]
        places += [(slot.role, slot.node) for slot in reservation.slots for _ in range(slot.count)]
    return places


def level_domains(
    gang: Gang,
    places: Iterable[tuple[str, NodeName]],
    nodes: Mapping[NodeName, Node],
    topologies: Sequence[Topology],
) -> tuple[LevelDomains, ...]:
    """The domains of each level that the gang names, required or preferred, on these places.

    A level that no topology has is left out, and so is one without a member that has a node.
    """
    places, answer = [*places], []
    for rule in dict.fromkeys((*gang.required_levels, *gang.preferred_domains)):
        labels = labels_of(rule.level, topologies)
        own = Counter(node for role, node in places if covers(rule, role))
        members = Counter[tuple[str, ...]]()
        for name, n in own.items() if labels else ():
            members[_domain(nodes.get(name), labels)] += n
        if members:
            domains = (DomainMembers(*pair) for pair in sorted(members.items()))
            answer.append(LevelDomains(rule.level, rule.roles, tuple(domains)))
    return tuple(answer)


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
