"""What gangs ask for, read from a Snapshot: the first stage of a plan.

Pods that fill slots of standing Reservations are assigned to these slots before anything is
planned.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..filters.node_rules import fits_node
from ..filters.topology import path_of
from ..gang import demand, domain_rules, order, refusals
from ..gang.demand import MemberCounts
from ..model.cluster import Member, Snapshot
from ..model.decisions import Rejection
from ..model.inter_pod import DomainRule, SegmentRule
from ..model.keys import GangKey, NodeName, Uid
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
    fixed = _FixedDomains(snapshot)
    return [fixed.with_node_rules(members) for members in counts]


class _FixedDomains:
    """The domains of started gangs, as node rules of their waiting members."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._reservations = {reservation.uid: reservation for reservation in snapshot.reservations}

    def with_node_rules(self, members: MemberCounts) -> MemberCounts:
        """The members, each limited to the domains that its gang runs in."""
        if not members.gang.required_levels or not members.is_committed:
            return members
        fixed = [
            (rule, dict(zip(labels, domain, strict=True)))
            for rule in members.gang.same_domain
            if (labels := domain_rules.labels_of(rule.level, self._snapshot.topologies))
            and (domain := self._domain(members, rule, labels)) is not None
        ]
        inside = _with_rules(members, lambda _: fixed)
        in_segments = self._of_segments(inside)
        return _with_rules(inside, lambda member: in_segments.get(member.uid, ()))

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
                    answer[member.uid] = [(rule.of, dict(zip(labels, path, strict=True)))]
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

    def _domain(
        self, members: MemberCounts, rule: DomainRule, labels: tuple[str, ...]
    ) -> Path | None:
        """Where most members of the rule are; if none has a node, where most of them fit."""
        reservation = self._reservations.get(members.gang.uid)
        paths = self._paths(domain_rules.nodes_of(members.gang, rule, reservation), labels)
        waiting = [m for m in members.waiting if domain_rules.covers(rule, m.role)]
        if not paths and waiting:
            paths = self._room(waiting[0].shape, labels)
        return _most(paths, labels) if paths else None

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
        requests = grids.footprint(shape)
        for node in self._snapshot.nodes:
            path = path_of(node, labels)
            if path is not None and fits_node(shape, node) is None:
                free = [
                    (node.offers(name) - node.used[name]) // n
                    for name, n in requests.amounts
                    if n > 0
                ]
                room[path] += max(0, min(free))
        return room


def _most(paths: Counter[Path], labels: Sequence[str]) -> Path:
    """The domain with the largest count; if there is none, one that no node is in."""
    return min(paths, key=lambda path: (-paths[path], path), default=("",) * len(labels))


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
