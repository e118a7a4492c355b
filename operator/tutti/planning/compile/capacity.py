"""How much room a gang lacks, counted exactly for each shape by itself.

Decisions do not use these findings. If a gang has several shapes, the findings name the shape that
lacks most.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...gang import domain_rules
from ...gang.demand import PlacementRequest
from ...gang.room_findings import (
    Asked,
    EmptyClusterRoom,
    Excluded,
    LargestDomain,
    LargestNode,
    MixedAsked,
    MorePortsTaken,
    NoNodeFits,
    NoWayTogether,
    PortTaken,
    RoomFor,
    RoomInSegments,
    ShortOf,
)
from ...model import ports
from ...model.cluster import Member
from ...model.decisions import Finding
from ...model.inter_pod import DomainRule, SegmentRule
from ...model.resources import Resources
from ...model.shapes import Shape
from ...strategies.capacity import fits_per_node
from ...strategies.domains import segments
from .grids import Grid, footprint
from .problems import parts

MOST_KINDS = 3  # how many kinds of obstacles, or shapes, are named


@dataclass(frozen=True, slots=True)
class Fit:
    """How many members of one shape fit, and on how many nodes."""

    members: int
    nodes: int


class CountedFit(Protocol):
    """The room for each shape alone; implementations count it differently."""

    def __getitem__(self, shape: Shape, /) -> Fit:
        """How many members of this shape fit, and on how many nodes, if placed alone."""


@dataclass(frozen=True, slots=True, eq=False)
class FitByShape:
    """The room for each shape alone, counted at its first use."""

    base: Grid
    free: NDArray[np.int64]
    known: dict[Shape, Fit] = field(default_factory=dict)
    # By the id of a Shape, with it. Equal pods share one: to see that is cheaper than to hash each.
    seen: dict[int, tuple[Shape, Fit]] = field(default_factory=dict)
    pods: dict[tuple[bytes, bytes], int] = field(default_factory=dict)  # by size and nodes

    def __getitem__(self, shape: Shape) -> Fit:
        """How many members of this shape alone fit into the free room."""
        if (entry := self.seen.get(id(shape))) is None:
            entry = self.seen[id(shape)] = shape, self._fit(shape)
        return entry[1]

    def pods_of(self, size: NDArray[np.int64], nodes: NDArray[np.bool_]) -> int:
        """How many pods that request this fit on these nodes; [resource], and whether by node."""
        key = size.tobytes(), nodes.tobytes()
        if key not in self.pods:
            self.pods[key] = int(fits_per_node(self.free, size, nodes).sum())
        return self.pods[key]

    def _fit(self, shape: Shape) -> Fit:
        fit = self.known.get(shape)
        if fit is None:
            row = self.base.shapes[shape]
            nodes = np.flatnonzero(self.base.allowed[row])  # often few: one rack, one pool
            requested = np.flatnonzero(self.base.requests[row])  # few of many host ports
            free = self.free[np.ix_(nodes, requested)]
            allowed = np.ones(len(nodes), dtype=np.bool_)
            counts = fits_per_node(free, self.base.requests[row, requested], allowed)
            fit = self.known[shape] = Fit(int(counts.sum()), int(np.count_nonzero(counts)))
        return fit


@dataclass(frozen=True, slots=True)
class ShapeShortage:
    """The members of one shape, the room for them alone, and how many of them must start.

    ``forced`` members must start, because the other shapes have room, or members, for no more than
    the rest.
    """

    members: tuple[Member, ...]
    room: Fit
    forced: int
    countable: int  # number of the members that their roles have places for

    @property
    def requests(self) -> Resources:
        """What one member requests."""
        return self.members[0].shape.requests

    @property
    def lacking(self) -> int:
        """How many more members must start than there is room for."""
        return max(0, self.forced - self.room.members)


def blocks(rooms: CountedFit, want: PlacementRequest) -> Sequence[ShapeShortage]:
    """One block for each shape of the request."""
    fits = [(group, rooms[group[0].shape]) for group in want.alike]
    reach = sum(min(len(group), room.members) for group, room in fits)
    if not want.minimums:
        return [
            _shortage(group, room, want.need - reach + min(len(group), room.members), len(group))
            for group, room in fits
        ]
    by_role = [_reach_by_role(group, room) for group, room in fits]
    in_role = sum(by_role, Counter[str]())
    places = dict(want.maximums)
    answer = []
    for (group, room), own in zip(fits, by_role, strict=True):
        other_roles = ((n - own[role], places.get(role)) for role, n in in_role.items())
        in_places = sum(n if most is None else min(n, most) for n, most in other_roles)
        in_all = want.need - min(reach - min(len(group), room.members), in_places)
        in_roles = sum(max(0, n - (in_role[role] - own[role])) for role, n in want.minimums)
        roles = Counter(member.role for member in group)
        countable = sum(min(n, places.get(role, n)) for role, n in roles.items())
        answer.append(_shortage(group, room, max(in_all, in_roles), countable))
    return answer


def _shortage(group: tuple[Member, ...], room: Fit, forced: int, countable: int) -> ShapeShortage:
    return ShapeShortage(group, room, min(max(forced, 0), countable), countable)


def _reach_by_role(group: Sequence[Member], room: Fit) -> Counter[str]:
    """By role, how many members of the group could start at most."""
    roles = Counter(member.role for member in group)
    return Counter({role: min(n, room.members) for role, n in roles.items()})


def short(rooms: CountedFit, want: PlacementRequest) -> ShapeShortage | None:
    """The shape that this room is shortest of, so that the want cannot be met; None if none is."""
    if len(want.alike) == 1 and not want.minimums:
        (group,) = want.alike
        if rooms[group[0].shape].members >= want.need:
            return None
    return _shortest(blocks(rooms, want))


def _shortest(shortages: Sequence[ShapeShortage]) -> ShapeShortage | None:
    lacking = [block for block in shortages if block.lacking]
    return max(lacking, key=lambda block: (block.lacking, block.room.members), default=None)


def domain_shortage(
    rooms: FitByShape, want: PlacementRequest
) -> LargestDomain | RoomInSegments | None:
    """The first domain rule of the gang for which, by counting, no domain has room, or None.

    Rules on segments come last. None also for a gang that has started: it has no choice of domains.
    """
    if not want.gang.required_levels or any(m.counts_as_bound for m in want.gang.members):
        return None
    return _without_domain(rooms, want) or _without_segments(rooms, want)


def levels_in_force(want: PlacementRequest) -> tuple[str, ...]:
    """The levels that some member must be in a domain of, sorted; none if the gang has started."""
    has_begun = any(member.counts_as_bound for member in want.gang.members)
    rules = () if has_begun else want.gang.required_levels
    return tuple(sorted({rule.level for rule in rules if _least_members(want, rule) > 0}))


def _without_domain(rooms: FitByShape, want: PlacementRequest) -> LargestDomain | None:
    """The first rule on one domain for which no domain has room."""
    base = rooms.base
    for rule in want.gang.same_domain:
        labels = domain_rules.labels_of(rule.level, base.topologies)
        covered = [group for group in parts(want) if domain_rules.covers(rule, group[0].role)]
        least = _least_members(want, rule)
        if not labels or least <= 0:
            continue
        domain = base.domains.domains(labels)
        inside = domain >= 0
        most = np.zeros(int(domain.max(initial=-1)) + 1, dtype=np.int64)
        alike: dict[Shape, int] = {}
        for group in covered:
            alike[group[0].shape] = alike.get(group[0].shape, 0) + len(group)
        for shape, members in alike.items():
            row = base.shapes[shape]
            fits = fits_per_node(rooms.free, base.requests[row], base.allowed[row])[inside]
            sums = np.bincount(domain[inside], fits, len(most)).astype(np.int64)
            most += np.minimum(sums, members)
        if int(most.max(initial=0)) < least:
            name = "/".join(base.domains.values(labels, int(most.argmax()))) if len(most) else ""
            return LargestDomain(rule.level, name, int(most.max(initial=0)), least)
    return None


def _without_segments(rooms: FitByShape, want: PlacementRequest) -> RoomInSegments | None:
    """The first rule on segments for which, by counting, domains have no room."""
    for rule in want.gang.segments:
        labels = domain_rules.labels_of(rule.of.level, rooms.base.topologies)
        if labels and _least_members(want, rule.of) > 0:
            rooms_in_domains = _room_in_segments(rooms, want, rule, labels)
            best = max(rooms_in_domains, key=lambda room: room.members, default=None)
            if best is not None and best.members < best.needed:
                return best
    return None


def _room_in_segments(
    rooms: FitByShape, want: PlacementRequest, rule: SegmentRule, labels: tuple[str, ...]
) -> Iterator[RoomInSegments]:
    """The room for segments, each shape counted by itself: in the cluster, or in each wider domain.

    That is so if a rule says that all these members must be in one domain, too.
    """
    base = rooms.base
    domains, level, around = base.domains.domains(labels), "", tuple[str, ...]()
    for wide in want.gang.same_domain:
        path = domain_rules.labels_of(wide.level, base.topologies)
        if len(path) > len(around) and domain_rules.includes(wide, rule.of):
            level, around = wide.level, path
    outer = base.domains.domains(around) if around else np.zeros_like(domains)
    counts = {
        group[0].shape: n
        for group in want.alike
        if (n := sum(domain_rules.covers(rule.of, member.role) for member in group))
    }
    needed = _least_members(want, rule.of)
    fits = {
        shape: fits_per_node(rooms.free, base.requests[row], base.allowed[row])
        for shape in counts
        for row in (base.shapes[shape],)
    }
    # The domains of each wider domain, in the order of the wider ones; a pair is one number, as
    # numbers are sorted much faster than columns.
    inside = np.flatnonzero((outer >= 0) & (domains >= 0))
    width = max(1, int(domains.max(initial=-1)) + 1)
    pairs, own = np.arange(width), domains[inside]
    if around:
        pairs, own = np.unique(outer[inside] * width + own, return_inverse=True)
    size = len(pairs)
    by_shape = [
        np.minimum(np.bincount(own, fits[shape][inside], size).astype(np.int64), n)
        for shape, n in counts.items()
    ]
    of_pairs = np.array(by_shape, np.int64).reshape(-1, size).sum(axis=0)
    first = np.searchsorted(pairs // width, np.arange(1, int(outer.max(initial=-1)) + 1))
    for number, totals in enumerate(np.split(of_pairs, first) if len(outer) else ()):
        yield RoomInSegments(
            rule.of.level,
            rule.size,
            whole=int((totals // rule.size).sum()),
            members=segments.most_members(totals, rule.size),
            needed=needed,
            around_level=level,
            around="/".join(base.domains.values(around, number)) if around else "",
        )


def _least_members(want: PlacementRequest, rule: DomainRule) -> int:
    """The least number of the rule's members that start, whichever members start."""
    uncovered = sum(not domain_rules.covers(rule, member.role) for member in want.members)
    in_roles = sum(n for role, n in want.minimums if domain_rules.covers(rule, role))
    return max(want.need - uncovered, in_roles)


def not_enough_room(
    empty: FitByShape, free: FitByShape, want: PlacementRequest
) -> tuple[Finding, ...]:
    """What the gang requests, and the room that is left beside the rest of the plan."""
    blocks_left = blocks(free, want)
    is_mixed = len(blocks_left) > 1
    if (block := short(empty, want)) is not None:
        empty_room = EmptyClusterRoom(block.room.members)
        return _demand_finding(want, block, is_mixed=is_mixed), empty_room, ShortOf(block.lacking)
    if (block := _shortest(blocks_left)) is not None:
        ports_taken = taken_ports(free, block.members[0].shape)
        room_left = (_room(block.room), *ports_taken, ShortOf(block.lacking))
        return _demand_finding(want, block, is_mixed=is_mixed), *room_left
    if not is_mixed:
        room = _room(blocks_left[0].room, is_unused=True)
        return _demand_finding(want, blocks_left[0], is_mixed=False), room
    kinds = [
        (block.countable, block.requests, _room(block.room))
        for block in blocks_left
        if block.room.members
    ]
    unnamed_kinds = max(0, len(kinds) - MOST_KINDS)
    return MixedAsked(want.need, tuple(kinds[:MOST_KINDS]), unnamed_kinds), NoWayTogether()


def _room(fit: Fit, *, is_unused: bool = False) -> RoomFor:
    return RoomFor(fit.members, fit.nodes, is_unused)


def taken_ports(rooms: FitByShape, shape: Shape) -> tuple[Finding, ...]:
    """The host ports of the shape that are taken on nodes where it may run."""
    named_ports = ports.named(dict(shape.requests.amounts))
    if not named_ports:
        return ()
    base = rooms.base
    row = base.shapes[shape]
    allowed = np.flatnonzero(base.allowed[row])
    findings: list[Finding] = []
    known: set[tuple[int, ...]] = set()  # columns
    for port in named_ports:
        names = port.resource, replace(port, ip=ports.ANY_IP).resource
        columns = tuple(base.columns.by_name[name] for name in names)
        if columns in known:
            continue  # host ports that count together
        known.add(columns)
        lacks = rooms.free[np.ix_(allowed, np.array(columns))] < base.requests[row, [*columns]]
        if n := int(np.count_nonzero(lacks.any(axis=1))):
            alike = base.columns.ports_with(port.resource)
            either = f"{port} or another of {alike} ports" if alike > 1 else str(port)
            findings.append(PortTaken(either, n))
    if len(findings) > MOST_KINDS:
        findings[MOST_KINDS:] = [MorePortsTaken(len(findings) - MOST_KINDS)]
    return tuple(findings)


def _demand_finding(want: PlacementRequest, block: ShapeShortage, *, is_mixed: bool) -> Asked:
    roles = {m.role for m in block.members} if is_mixed and want.minimums else set[str]()
    role = min(roles) if len(roles) == 1 else ""
    return Asked(block.forced, block.requests, role, is_single=want.gang.is_single)


def single_members(
    members: Sequence[Member], purpose: str, rooms: FitByShape
) -> tuple[Finding, ...]:
    """The request and the room for single members of a started gang; all have one shape."""
    shape = members[0].shape
    request = Asked(len(members), shape.requests, purpose=purpose)
    return request, _room(rooms[shape]), *taken_ports(rooms, shape)


def nowhere_member(empty: FitByShape, want: PlacementRequest) -> Member | None:
    """A member that the gang cannot start without and that fits no node, even if empty."""
    if all(empty[group[0].shape].members for group in want.alike):
        return None
    unplaceable = [
        m for block in blocks(empty, want) if not block.room.members for m in block.members
    ]
    uids = {member.uid for member in unplaceable}
    rest = [member for member in want.members if member.uid not in uids]
    by_role = Counter(member.role for member in rest)
    for role, least in want.minimums:
        if by_role[role] < least:
            return next(member for member in unplaceable if member.role == role)
    places = dict(want.maximums)
    in_places = sum(min(n, places.get(role, n)) for role, n in by_role.items())
    if in_places >= want.need:
        return None
    return next(m for m in unplaceable if by_role[m.role] < places.get(m.role, len(want.members)))


def nowhere(base: Grid, member: Member) -> NoNodeFits:
    """Why no node could hold the member, even if it were empty."""
    shape, key = member.shape, member.key if member.key.name else None
    flags = base.allowed[base.shapes[shape]]
    allowed = [node for node, is_allowed in zip(base.nodes, flags, strict=True) if is_allowed]
    excluded = _excluded(base, shape, len(base.nodes) - len(allowed))
    no_node = NoNodeFits(key, member.role, shape.requests, excluded, len(base.nodes))
    for name, n in footprint(shape).amounts if allowed else ():
        largest = max(allowed, key=lambda node: node.offers(name))  # the first, if equal
        if (most := largest.offers(name)) < n:
            return replace(no_node, largest=LargestNode(name, n, most, largest.name))
    return no_node


def _excluded(base: Grid, shape: Shape, nodes: int) -> Excluded:
    """The obstacles that keep the shape off nodes, the most frequent first."""
    if not nodes:
        return Excluded(0, ())
    whys = Counter(why for why in base.index.obstacles(shape) if why is not None)
    ranked = sorted(((n, why) for why, n in whys.items()), key=lambda item: (-item[0], item[1]))
    rest = sum(n for n, _ in ranked[MOST_KINDS:])
    return Excluded(nodes, tuple(ranked[:MOST_KINDS]), rest)
