"""What gangs ask for, read from a Snapshot: the first stage of a plan.

Pods that fill slots of standing Reservations are assigned to these slots before anything is
planned.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

from ..filters.node_rules import fits_node
from ..filters.topology import path_of
from ..gang import demand, domain_rules, order, refusals
from ..gang.demand import MemberCounts
from ..model.cluster import Member, Node, Snapshot
from ..model.decisions import Rejection
from ..model.inter_pod import DomainRule, SegmentRule
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import NOTHING, Resources
from ..model.shapes import Shape
from .compile import grids, slot_assignment
from .compile.slot_assignment import SlotAssignments

Path = tuple[str, ...]  # a domain: the values of the labels of its nodes, the widest first
FixedDomain = tuple[DomainRule, Mapping[str, str]]  # a rule, and the labels of its domain


@dataclass(frozen=True, slots=True, eq=False)
class ObservedDemand:
    """The gangs to decide on, in order, and the gangs that must not be planned now."""

    slots: SlotAssignments  # has the Snapshot in which arrived members have their slots
    refused: Mapping[GangKey, Rejection]  # gangs whose refusal still stands
    gangs: Sequence[MemberCounts]

    @property
    def snapshot(self) -> Snapshot:
        """The Snapshot that the rest of the plan uses."""
        return self.slots.snapshot


def observe(snapshot: Snapshot) -> ObservedDemand:
    """What each gang asks for now."""
    slots = slot_assignment.assign_slots(snapshot)
    refused = refusals.rejections(slots.snapshot)
    return ObservedDemand(slots, refused, _gangs(slots, refused))


def _gangs(slots: SlotAssignments, refused: Collection[GangKey]) -> Sequence[MemberCounts]:
    """The gangs to decide on: gangs with a Reservation are being carried out and are left out.

    A gang that ends for a claim is not repaired and does not grow until its pods have gone. A gang
    whose Reservation is open for absent members may be repaired and may grow, too. Once it lacks no
    member, the room of absent members is given back.
    """
    snapshot = slots.snapshot
    reserved = {
        reservation.gang
        for reservation in snapshot.reservations
        if reservation.uid not in slots.open
    }
    reserved |= snapshot.being_ended
    promised = {entry.uid for reservation in snapshot.reservations for entry in reservation.entries}
    gangs = order.considered(
        gang
        for gang in snapshot.gangs
        if (gang.uid not in snapshot.settled or gang.uid in slots.open)
        and not (gang.key in reserved or gang.key in refused)
    )
    counts = [demand.count_members(gang, promised, slots.room(gang)) for gang in gangs]
    counts = [
        replace(members, absent=())
        if members.absent and not slots.awaits(members.gang)
        else members
        for members in counts
    ]
    fixed = FixedDomains(snapshot)
    return [fixed.with_node_rules(members) for members in counts]


class FixedDomains:
    """The domains of started gangs, as node rules of their waiting members."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._reservations = {reservation.uid: reservation for reservation in snapshot.reservations}

    @cached_property
    def _reserved(self) -> Mapping[NodeName, Resources]:
        """The room that Reservations hold, by node."""
        return grids.reserved_room(self._snapshot)

    def with_node_rules(self, members: MemberCounts) -> MemberCounts:
        """The members, each limited to the domains that its gang runs in.

        If no member of a rule has a node, a domain is chosen: for wide levels first, and for others
        within the domains that are known by then.
        """
        if not members.gang.required_levels or not members.is_committed:
            return members
        inside = self.with_present_domains(members)
        rules = [pair for pair in self._rules(members) if not self._present(members, *pair)]
        for rule, labels in sorted(rules, key=lambda pair: len(pair[1])):
            waiting = [m for m in inside.waiting if domain_rules.covers(rule, m.role)]
            domain = self._roomiest(waiting, labels)
            inside = _within(inside, [(rule, _values(labels, domain))])
        in_segments = self._of_segments(inside)
        return _with_rules(inside, lambda member: in_segments.get(member.uid, ()))

    def with_present_domains(self, members: MemberCounts) -> MemberCounts:
        """The members, each limited to the domains of those members of its rules that have nodes.

        Rules on segments do not limit them here.
        """
        if not members.gang.same_domain or not members.is_committed:
            return members
        fixed = [
            (rule, _values(labels, _most(present, labels)))
            for rule, labels in self._rules(members)
            if (present := self._present(members, rule, labels))
        ]
        return _within(members, fixed)

    def _rules(self, members: MemberCounts) -> Sequence[tuple[DomainRule, tuple[str, ...]]]:
        """The rules on one domain whose level exists, each with the labels of its level."""
        return [
            (rule, labels)
            for rule in members.gang.same_domain
            if (labels := domain_rules.labels_of(rule.level, self._snapshot.topologies))
        ]

    def _of_segments(self, members: MemberCounts) -> Mapping[Uid, Sequence[FixedDomain]]:
        """The domain of each waiting member whose gang is in segments."""
        answer: dict[Uid, Sequence[FixedDomain]] = {}
        for rule in members.gang.segments:
            labels = domain_rules.labels_of(rule.of.level, self._snapshot.topologies)
            waiting = [m for m in members.waiting if domain_rules.covers(rule.of, m.role)]
            if labels and waiting:
                choose = self._by_index if rule.index else self._by_seats
                paths = choose(members, rule, labels, waiting)
                for member, path in zip(waiting, paths, strict=False):  # there may be more seats
                    answer[member.uid] = [(rule.of, _values(labels, path))]
        return answer

    def _by_seats(
        self,
        members: MemberCounts,
        rule: SegmentRule,
        labels: tuple[str, ...],
        waiting: Sequence[Member],
    ) -> Sequence[Path]:
        """Domains for waiting members: the seats of segments that lack members come first.

        Of these, seats with room come before the others. All further members are whole segments,
        each in the domain with most room.
        """
        nodes = domain_rules.nodes_of(
            members.gang, rule.of, self._reservations.get(members.gang.uid)
        )
        current, room = self._paths(nodes, labels), self._room(waiting[0].shape, labels)
        lacking = {path: -n % rule.size for path, n in sorted(current.items())}
        with_room = {path: min(n, room[path]) for path, n in lacking.items()}
        seats = [path for path, n in with_room.items() for _ in range(n)]
        seats += [path for path, n in lacking.items() for _ in range(n - with_room[path])]
        room.subtract(with_room)
        while len(seats) < len(waiting):
            path = _most(room, labels)
            room[path] -= rule.size
            seats += [path] * rule.size
        return seats

    def _by_index(
        self,
        members: MemberCounts,
        rule: SegmentRule,
        labels: tuple[str, ...],
        waiting: Sequence[Member],
    ) -> Sequence[Path]:
        """Domains for waiting members: that of the members of the same segment, by their indexes.

        A segment without a node gets the domain with most room.
        """
        room, chosen = self._room(waiting[0].shape, labels), dict[int, Path]()
        placed = domain_rules.segment_nodes(
            members.gang, rule, self._reservations.get(members.gang.uid)
        )
        for member in waiting:
            number = domain_rules.segment_of(member, rule)
            if number not in chosen:
                current = self._paths(placed.get(number, ()), labels)
                chosen[number] = _most(current or room, labels)
            room[chosen[number]] -= 1
        return [chosen[domain_rules.segment_of(member, rule)] for member in waiting]

    def _present(
        self, members: MemberCounts, rule: DomainRule, labels: tuple[str, ...]
    ) -> Counter[Path]:
        """By domain, how many members of the rule have a node there, now or by a Reservation."""
        reservation = self._reservations.get(members.gang.uid)
        return self._paths(domain_rules.nodes_of(members.gang, rule, reservation), labels)

    def _roomiest(self, waiting: Sequence[Member], labels: tuple[str, ...]) -> Path:
        """The domain that takes most of these members; of equal ones, the one with most room.

        If there is no node in a domain that any of them may run on, no node is in the answer.
        """
        shapes = Counter(member.shape for member in waiting)
        domains: dict[Path, list[Node]] = {}
        for node in self._snapshot.nodes:
            path = path_of(node, labels)
            if path is not None and any(fits_node(shape, node) is None for shape in shapes):
                domains.setdefault(path, []).append(node)
        rooms = {path: self._room_in(nodes, shapes) for path, nodes in domains.items()}
        order = sorted(rooms, key=lambda path: (-rooms[path][0], -rooms[path][1], path))
        return order[0] if order else ("",) * len(labels)

    def _room_in(self, nodes: Sequence[Node], shapes: Mapping[Shape, int]) -> tuple[int, int]:
        """How many of these members the nodes take together, and how many of each shape alone.

        They are filled with the shapes first that have least room, and each shape fills the nodes
        first that hold fewest members of it.
        """
        alone = {shape: [self._seats(shape, node) for node in nodes] for shape in shapes}
        taken, together = dict[NodeName, Resources](), 0
        for shape in sorted(shapes, key=lambda shape: sum(alone[shape])):
            left = shapes[shape]
            for _, node in sorted(zip(alone[shape], nodes, strict=True), key=itemgetter(0)):
                before = taken.get(node.name, NOTHING)
                count = min(left, self._seats(shape, node, before))
                taken[node.name] = before + grids.footprint(shape).scaled(count)
                left -= count
            together += shapes[shape] - left
        return together, sum(map(sum, alone.values()))

    def _paths(self, names: Iterable[NodeName], labels: tuple[str, ...]) -> Counter[Path]:
        """By domain, how many of these nodes are in it."""
        return Counter(
            path
            for name in names
            if (node := self._nodes.get(name)) is not None
            and (path := path_of(node, labels)) is not None
        )

    def _room(self, shape: Shape, labels: tuple[str, ...]) -> Counter[Path]:
        """By domain, how many members of the shape fit there, each node by itself."""
        room = Counter[Path]()
        for node in self._snapshot.nodes:
            path = path_of(node, labels)
            if path is not None and fits_node(shape, node) is None:
                room[path] += self._seats(shape, node)
        return room

    def _seats(self, shape: Shape, node: Node, taken: Resources = NOTHING) -> int:
        """How many members of the shape may run on the node and have room once this is taken."""
        if fits_node(shape, node) is not None:
            return 0
        gone = node.used + self._reserved.get(node.name, NOTHING) + taken
        amounts = grids.footprint(shape).amounts
        return max(0, min((node.offers(name) - gone[name]) // n for name, n in amounts if n > 0))


def _values(labels: Sequence[str], path: Path) -> Mapping[str, str]:
    """The labels of a domain, with their values."""
    return dict(zip(labels, path, strict=True))


def _most(paths: Counter[Path], labels: Sequence[str]) -> Path:
    """The domain with the largest count; if there is none, one that no node is in."""
    return min(paths, key=lambda path: (-paths[path], path), default=("",) * len(labels))


def _within(members: MemberCounts, fixed: Sequence[FixedDomain]) -> MemberCounts:
    """The members, each limited to the domains of the rules that cover it."""
    return _with_rules(members, lambda _: fixed)


def _with_rules(
    members: MemberCounts, rules_of: Callable[[Member], Sequence[FixedDomain]]
) -> MemberCounts:
    """The members, each limited to the domains of its rules."""

    def limited(member: Member) -> Member:
        return _with_labels(member, rules_of(member))

    ready, absent = map(limited, members.ready), map(limited, members.absent)
    return replace(members, ready=tuple(ready), absent=tuple(absent))


def _with_labels(member: Member, fixed: Sequence[FixedDomain]) -> Member:
    """The member with the node labels that the domain rules of its role require."""
    required_labels = [
        pair
        for rule, labels in fixed
        if domain_rules.covers(rule, member.role)
        for pair in labels.items()
    ]
    if not required_labels:
        return member
    selector = tuple(sorted({*member.shape.node_selector, *required_labels}))
    return replace(member, shape=replace(member.shape, node_selector=selector))
