"""Whether gangs are in one domain, or in segments: by labels and names alone, in plain Python."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..gang import slots
from ..model.cluster import Gang, Member, Node, Reservation
from ..model.decisions import Placement
from ..model.inter_pod import HOSTNAME, DomainRule, SegmentRule, Topology, tier
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
    domain of theirs. For segments, see ``_SegmentCheck``. ``reservation`` is the standing
    Reservation of the gang.
    """
    for segments in gang.segments:
        labels = _labels_of(segments.of.level, topologies)
        yield from _SegmentCheck(segments, labels, nodes, gang, placement, reservation).faults()
    for rule in gang.same_domain:
        labels = _labels_of(rule.level, topologies)
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
            if _covers(rule, role)
        } - {None}
        if (
            None in new
            or len(new) > 1
            or (new and (occupied | kept_domains) and not new & (occupied | kept_domains))
        ):
            names = ", ".join(sorted("/".join(name or ("none",)) for name in new))
            yield f"gang {gang.key}: it would be in these domains of {rule.level}: {names}"


@dataclass(frozen=True, slots=True)
class _SegmentCheck:
    """One rule on segments of a gang, and a placement of the gang."""

    rule: SegmentRule
    labels: Sequence[str]  # of the level, the widest first; none if no topology has it
    nodes: Mapping[NodeName, Node]
    gang: Gang
    placement: Placement
    reservation: Reservation | None

    def faults(self) -> Iterator[str]:
        """One sentence for each way in which the members would not be in segments.

        A gang that starts has segments of full size, and at most one smaller one. A gang that runs
        has no more segments than it had, or than all its members fill. With an index, a segment has
        its new members in one domain, which is a domain of its members that have nodes.
        """
        of, level = self.rule.of, self.rule.of.level
        if not self.labels:
            yield f"gang {self.gang.key}: no topology has the level {level}"
            return
        new = self._domains(_new_nodes(self.gang, of, self.placement, self.reservation))
        if None in new:
            yield f"gang {self.gang.key}: segments would be outside of all domains of {level}"
        elif not any(member.counts_as_bound for member in self.gang.members):
            if sum(n % self.rule.size > 0 for n in Counter(new).values()) > 1:
                yield f"gang {self.gang.key}: more than one segment of {level} would be short"
        elif not self.rule.index:
            before = self._domains(_current_nodes(self.gang, of, self.reservation))
            most = max(
                self._segments(before), -(-(len(before) + self._waiting(new)) // self.rule.size)
            )
            if self._segments([*before, *new]) > most:
                yield f"gang {self.gang.key}: it would be in more than {most} segments of {level}"
        if self.rule.index and not self._is_by_index():
            yield f"gang {self.gang.key}: a segment would be in several domains of {level}"

    def _domains(self, names: Iterable[NodeName]) -> Sequence[Domain]:
        return [_domain(self.nodes, name, self.labels) for name in names]

    def _segments(self, domains: Sequence[Domain]) -> int:
        """How many segments members in these domains are, if as few as possible are short."""
        return sum(-(-n // self.rule.size) for n in Counter(domains).values())

    def _waiting(self, new: Sequence[Domain]) -> int:
        """How many members wait for a node, absent ones that get room included."""
        entries = () if self.reservation is None else self.reservation.entries
        waiting = {
            member.uid
            for member in self.gang.members
            if _covers(self.rule.of, member.role) and member.may_get_a_node
        } - {entry.uid for entry in entries}
        present = sum(assignment.uid in waiting for assignment in self.placement.assignments)
        return len(waiting) + len(new) - present

    def _is_by_index(self) -> bool:
        """Whether each segment has its new members in one domain, and in one of its others."""
        members = {m.uid: m for m in self.gang.members if _covers(self.rule.of, m.role)}
        current = {uid: m.node for uid, m in members.items() if m.node and not m.is_over}
        if self.reservation is not None:
            current |= {entry.uid: entry.node for entry in self.reservation.entries}
        added = {assignment.uid: assignment.node for assignment in self.placement.assignments}
        before, new = (
            self._by_segment((members[uid], node) for uid, node in places.items() if uid in members)
            for places in (current, added)
        )
        return all(
            len(domains) == 1 and domains <= before.get(number, domains)
            for number, domains in new.items()
        )

    def _by_segment(self, places: Iterable[tuple[Member, NodeName]]) -> Mapping[int, set[Domain]]:
        domains: dict[int, set[Domain]] = {}
        for member, node in places:
            domain = _domain(self.nodes, node, self.labels)
            domains.setdefault(_number(member, self.rule), set()).add(domain)
        return domains


def _labels_of(level: str, topologies: Iterable[Topology]) -> Sequence[str]:
    """The labels of a level, the widest first, by the first Topology that has it; else none.

    Topologies of Tutti come first, then those of other projects by their group, each by name.
    """
    for topology in sorted(topologies, key=lambda topology: (topology.group, topology.name)):
        labels = [*topology.levels]
        tiers = [label for label in labels if label != HOSTNAME or label != labels[-1]]
        named = {tier(len(tiers) - place): place for place in range(len(tiers))}
        place = labels.index(level) if level in labels else named.get(level)
        if place is not None:
            return labels[: place + 1]
    return ()


def _covers(rule: DomainRule, role: str) -> bool:
    """Whether the rule is for members of the role; without roles, it is for all."""
    return role in rule.roles if rule.roles else True


def _number(member: Member, segments: SegmentRule) -> int:
    """The number of a member's segment, by its label; -1 if it has none."""
    value = next((text for name, text in member.labels if name == segments.index), "")
    return int(value) // segments.size if value.isdecimal() else -1


def _domain(nodes: Mapping[NodeName, Node], name: NodeName, labels: Sequence[str]) -> Domain:
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
    added = slots.places(placement.slots) - before
    places += [(role, node) for node, role in added.elements()]
    return (node for role, node in places if _covers(rule, role))


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
    return (node for role, node in places if _covers(rule, role))
