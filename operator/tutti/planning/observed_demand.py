"""What gangs ask for, read from a Snapshot: the first stage of a plan.

Pods that fill slots of standing Reservations are assigned to these slots before anything is
planned.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..filters.node_index import Mask, NodeIndex
from ..filters.topology import path_of
from ..gang import demand, domain_rules, order, refusals
from ..gang.demand import MemberCounts
from ..model import ports
from ..model.cluster import Member, Snapshot
from ..model.decisions import Rejection
from ..model.inter_pod import DomainRule, SegmentRule
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import NOTHING
from ..model.shapes import Shape
from .compile import grids, slot_assignment
from .compile.slot_assignment import SlotAssignments

Path = tuple[str, ...]  # a domain: the values of the labels of its nodes, the widest first
Counts = NDArray[np.int64]  # [node] or [domain]
FixedDomain = tuple[DomainRule, Mapping[str, str]]  # a rule, and the labels of its domain

# What is counted to choose a domain, so that no gang takes long. The plan itself counts all.
MOST_SHAPES = 8  # of waiting members
MOST_RESOURCES = 16  # of a shape
MOST_SEATS = 10**6  # of a node
MOST_AMOUNT = 2**60  # of a resource


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

    def deciding_on(self, gangs: Sequence[MemberCounts]) -> "ObservedDemand":
        """The same with these gangs alone; nothing writes changes of the slots of others."""
        slots = self.slots.only_of({members.gang.uid for members in gangs})
        return replace(self, slots=slots, gangs=gangs)


def observe(snapshot: Snapshot) -> ObservedDemand:
    """What each gang asks for now."""
    slots = slot_assignment.assign_slots(snapshot)
    refused = refusals.rejections(slots.snapshot)
    return ObservedDemand(slots, refused, ()).deciding_on(_gangs(slots, refused))


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
    def _rooms(self) -> "_NodeRooms":
        return _NodeRooms(self._snapshot)

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

        Domains with a node for members of every shape come first, since another rule may limit some
        members to one of them. If no domain has a node for any of the members, no node is in the
        answer. Of the shapes, the most frequent count.
        """
        shapes = Counter(member.shape for member in waiting).most_common(MOST_SHAPES)
        best = self._rooms.best(shapes, labels)
        return ("",) * len(labels) if best is None else best

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
        return self._rooms.by_domain(shape, labels)


class _NodeRooms:
    """How many members the nodes of a domain have room for, counted for all nodes at once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes, self._index = snapshot.nodes, NodeIndex(snapshot.nodes)
        self._reserved = grids.reserved_room(snapshot)
        self._offered = {name for node in snapshot.nodes for name in node.allocatable.names}
        self._free: dict[str, Counts] = {}
        self._domains: dict[tuple[str, ...], tuple[Sequence[Path], Counts]] = {}

    def by_domain(self, shape: Shape, labels: tuple[str, ...]) -> Counter[Path]:
        """The room for members of one shape, by domain; only domains with a node for them."""
        paths, domains = self._domains_of(labels)
        allowed = self._index.allowed(shape) & (domains >= 0)
        seats = self._seats(shape, allowed, {})
        room = np.bincount(domains[allowed], seats[allowed], len(paths))
        return Counter({paths[i]: int(room[i]) for i in np.unique(domains[allowed])})

    def best(self, shapes: Sequence[tuple[Shape, int]], labels: tuple[str, ...]) -> Path | None:
        """The best domain for so many members of each shape; None if none has a node for any.

        The shapes with least room fill the domains first, and each shape fills the nodes first that
        hold fewest members of it.
        """
        paths, domains = self._domains_of(labels)
        allowed = [self._index.allowed(shape) & (domains >= 0) for shape, _ in shapes]
        alone = [
            self._seats(shape, mask, {}) for (shape, _), mask in zip(shapes, allowed, strict=True)
        ]
        lacking, together, room = np.zeros((3, len(paths)), np.int64)
        taken: dict[str, Counts] = {}
        for i in sorted(range(len(shapes)), key=lambda i: int(alone[i].sum())):
            (shape, need), rows = shapes[i], np.flatnonzero(allowed[i])
            lacking += np.bincount(domains[rows], minlength=len(paths)) == 0
            room += _summed(domains[rows], alone[i][rows], len(paths))
            rows = rows[np.lexsort((alone[i][rows], domains[rows]))]
            own = domains[rows]
            seats = np.minimum(self._seats(shape, allowed[i], taken)[rows], need)
            before = np.cumsum(seats) - seats
            _, first, number = np.unique(own, return_index=True, return_inverse=True)
            count = np.clip(need - (before - before[first][number]), 0, seats)
            together += _summed(own, count, len(paths))
            for name, amount in _counted(shape) if count.any() else ():
                taken.setdefault(name, np.zeros(len(self._nodes), np.int64))[rows] += count * amount
        order = np.lexsort((-room, -together, lacking))  # paths are sorted
        return paths[order[0]] if len(order) and lacking[order[0]] < len(shapes) else None

    def _seats(self, shape: Shape, allowed: Mask, taken: Mapping[str, Counts]) -> Counts:
        """[node]: how many members of the shape have room there once this is taken."""
        seats = np.where(allowed, MOST_SEATS, 0)
        for name, amount in _counted(shape):
            if amount > MOST_AMOUNT or not (name in self._offered or ports.is_port(name)):
                return np.zeros_like(seats)
            seats = np.minimum(seats, (self._free_of(name) - taken.get(name, 0)) // amount)
        return np.maximum(seats, 0)

    def _free_of(self, name: str) -> Counts:
        """[node]: how much of a resource is neither used nor reserved."""
        if name not in self._free:
            free = (
                node.offers(name) - node.used[name] - self._reserved.get(node.name, NOTHING)[name]
                for node in self._nodes
            )
            amounts = [min(max(amount, 0), MOST_AMOUNT) for amount in free]
            self._free[name] = np.array(amounts, np.int64)
        return self._free[name]

    def _domains_of(self, labels: tuple[str, ...]) -> tuple[Sequence[Path], Counts]:
        """The domains of a level, sorted, and for each node the number of its own, or -1."""
        if labels not in self._domains:
            own = [path_of(node, labels) for node in self._nodes]
            paths = sorted({path for path in own if path is not None})
            numbers = {path: i for i, path in enumerate(paths)}
            domains = [-1 if path is None else numbers[path] for path in own]
            self._domains[labels] = paths, np.array(domains, np.int64)
        return self._domains[labels]


def _counted(shape: Shape) -> Sequence[tuple[str, int]]:
    """What a member takes of a node, of a few resources."""
    amounts = grids.footprint(shape).amounts
    return [(name, amount) for name, amount in amounts if amount > 0][:MOST_RESOURCES]


def _summed(domains: Counts, counts: Counts, size: int) -> Counts:
    return np.bincount(domains, counts, size).astype(np.int64)


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
