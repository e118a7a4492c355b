"""What room is short of what a gang asks for, counted per shape and exactly.

Separate from the decision, which never reads a finding. Of a gang with several shapes the one
that is shortest is named.
"""

from collections import Counter
from collections.abc import Sequence
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
    ShortOf,
)
from ...model import ports
from ...model.cluster import Member
from ...model.decisions import Finding
from ...model.inter_pod import DomainRule
from ...model.resources import Resources
from ...model.shapes import Shape
from ...strategies.capacity import fits_per_node
from .grids import Grid, footprint
from .problems import parts

MOST_KINDS = 3  # kinds of obstacles, or shapes, that are named


@dataclass(frozen=True, slots=True)
class Fit:
    """How many members of one shape fit, and on how many nodes."""

    members: int
    nodes: int


class CountedFit(Protocol):
    """The room for each shape alone, however it was counted."""

    def __getitem__(self, shape: Shape, /) -> Fit:
        """How many members of this shape alone have room."""


@dataclass(frozen=True, slots=True, eq=False)
class FitByShape:
    """The room for each shape alone, counted once when asked for."""

    base: Grid
    free: NDArray[np.int64]
    known: dict[Shape, Fit] = field(default_factory=dict)

    def __getitem__(self, shape: Shape) -> Fit:
        """How many members of this shape alone fit into the free room."""
        found = self.known.get(shape)
        if found is None:
            row = self.base.shapes[shape]
            nodes = np.flatnonzero(self.base.allowed[row])  # often few: one rack, one pool
            allowed = np.ones(len(nodes), dtype=np.bool_)
            counts = fits_per_node(self.free[nodes], self.base.requests[row], allowed)
            found = self.known[shape] = Fit(int(counts.sum()), int(np.count_nonzero(counts)))
        return found


@dataclass(frozen=True, slots=True)
class ShapeShortage:
    """The members of one shape, the room for them alone, and how many must start of them.

    So many are ``forced`` because the others have room, or members, for no more than the rest.
    """

    members: tuple[Member, ...]
    room: Fit
    forced: int
    countable: int  # of the members, as many as their roles have places for

    @property
    def requests(self) -> Resources:
        """What each of them asks for."""
        return self.members[0].shape.requests

    @property
    def lacking(self) -> int:
        """How many more must start than there is room for."""
        return max(0, self.forced - self.room.members)


def blocks(rooms: CountedFit, want: PlacementRequest) -> Sequence[ShapeShortage]:
    """The want by shape."""
    found = [(group, rooms[group[0].shape]) for group in want.alike]
    reach = sum(min(len(group), room.members) for group, room in found)
    if not want.minimums:
        return [
            _shortage(group, room, want.need - reach + min(len(group), room.members), len(group))
            for group, room in found
        ]
    by_role = [_reach_by_role(group, room) for group, room in found]
    in_role = sum(by_role, Counter[str]())
    places = dict(want.maximums)
    answer = []
    for (group, room), own in zip(found, by_role, strict=True):
        others = ((n - own[role], places.get(role)) for role, n in in_role.items())
        in_places = sum(n if most is None else min(n, most) for n, most in others)
        in_all = want.need - min(reach - min(len(group), room.members), in_places)
        in_roles = sum(max(0, n - (in_role[role] - own[role])) for role, n in want.minimums)
        roles = Counter(member.role for member in group)
        countable = sum(min(n, places.get(role, n)) for role, n in roles.items())
        answer.append(_shortage(group, room, max(in_all, in_roles), countable))
    return answer


def _shortage(group: tuple[Member, ...], room: Fit, forced: int, countable: int) -> ShapeShortage:
    return ShapeShortage(group, room, min(max(forced, 0), countable), countable)


def _reach_by_role(group: Sequence[Member], room: Fit) -> Counter[str]:
    """How many of the group could start at most, role by role."""
    roles = Counter(member.role for member in group)
    return Counter({role: min(n, room.members) for role, n in roles.items()})


def short(rooms: CountedFit, want: PlacementRequest) -> ShapeShortage | None:
    """The shape that this room is shortest of, so that the want cannot be met; None if none is."""
    return _shortest(blocks(rooms, want))


def _shortest(found: Sequence[ShapeShortage]) -> ShapeShortage | None:
    lacking = [block for block in found if block.lacking]
    return max(lacking, key=lambda block: (block.lacking, block.room.members), default=None)


def domain_shortage(rooms: FitByShape, want: PlacementRequest) -> LargestDomain | None:
    """The rule of the gang that no domain has room for by counting; None if there is none.

    A gang that has started has no choice of domains.
    """
    if not want.gang.same_domain or any(m.counts_as_bound for m in want.gang.members):
        return None
    base = rooms.base
    for rule in want.gang.same_domain:
        labels = domain_rules.labels_of(rule.level, base.topologies)
        covered = [group for group in parts(want) if domain_rules.covers(rule, group[0].role)]
        needed = _needed(want, rule)
        if not labels or needed <= 0:
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
        if int(most.max(initial=0)) < needed:
            name = "/".join(base.domains.values(labels, int(most.argmax()))) if len(most) else ""
            return LargestDomain(rule.level, name, int(most.max(initial=0)), needed)
    return None


def _needed(want: PlacementRequest, rule: DomainRule) -> int:
    """How many members of the rule start at least, whichever start."""
    others = sum(not domain_rules.covers(rule, member.role) for member in want.members)
    in_roles = sum(n for role, n in want.minimums if domain_rules.covers(rule, role))
    return max(want.need - others, in_roles)


def not_enough_room(
    empty: FitByShape, left: FitByShape, want: PlacementRequest
) -> tuple[Finding, ...]:
    """What a gang asks for and what room is left, once everything else in the plan has its own."""
    blocks_left = blocks(left, want)
    is_mixed = len(blocks_left) > 1
    if (block := short(empty, want)) is not None:
        empty_room = EmptyClusterRoom(block.room.members)
        return _demand_finding(want, block, is_mixed=is_mixed), empty_room, ShortOf(block.lacking)
    if (block := _shortest(blocks_left)) is not None:
        ports_taken = taken_ports(left, block.members[0].shape)
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
    more = max(0, len(kinds) - MOST_KINDS)
    return MixedAsked(want.need, tuple(kinds[:MOST_KINDS]), more), NoWayTogether()


def _room(fit: Fit, *, is_unused: bool = False) -> RoomFor:
    return RoomFor(fit.members, fit.nodes, is_unused)


def taken_ports(rooms: FitByShape, shape: Shape) -> tuple[Finding, ...]:
    """Of the host ports that the shape asks for, those that are taken on nodes it may run on."""
    asked = ports.named(dict(shape.requests.amounts))
    if not asked:
        return ()
    base = rooms.base
    row = base.shapes[shape]
    allowed = np.flatnonzero(base.allowed[row])
    taken: list[Finding] = []
    for port in asked:
        lacks = np.zeros(len(allowed), dtype=np.bool_)
        for name in {port.resource, replace(port, ip=ports.ANY_IP).resource}:
            column = base.resources.index(name)
            lacks |= rooms.free[allowed, column] < base.requests[row, column]
        if n := int(np.count_nonzero(lacks)):
            taken.append(PortTaken(str(port), n))
    if len(taken) > MOST_KINDS:
        taken[MOST_KINDS:] = [MorePortsTaken(len(taken) - MOST_KINDS)]
    return tuple(taken)


def _demand_finding(want: PlacementRequest, block: ShapeShortage, *, is_mixed: bool) -> Asked:
    roles = {m.role for m in block.members} if is_mixed and want.minimums else set[str]()
    role = min(roles) if len(roles) == 1 else ""
    return Asked(block.forced, block.requests, role, is_single=want.gang.is_single)


def single_members(
    members: Sequence[Member], purpose: str, rooms: FitByShape
) -> tuple[Finding, ...]:
    """What members of a started gang ask for, each for itself; all are of one shape."""
    shape = members[0].shape
    asked = Asked(len(members), shape.requests, purpose=purpose)
    return asked, _room(rooms[shape]), *taken_ports(rooms, shape)


def nowhere_member(empty: FitByShape, want: PlacementRequest) -> Member | None:
    """A member that the gang cannot start without and no node could hold, even if empty."""
    lost = [m for block in blocks(empty, want) if not block.room.members for m in block.members]
    if not lost:
        return None
    uids = {member.uid for member in lost}
    rest = [member for member in want.members if member.uid not in uids]
    there = Counter(member.role for member in rest)
    for role, least in want.minimums:
        if there[role] < least:
            return next(member for member in lost if member.role == role)
    places = dict(want.maximums)
    in_places = sum(min(n, places.get(role, n)) for role, n in there.items())
    if in_places >= want.need:
        return None
    return next(m for m in lost if there[m.role] < places.get(m.role, len(want.members)))


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
    """What keeps the shape off nodes, the most frequent obstacle first."""
    if not nodes:
        return Excluded(0, ())
    whys = Counter(why for why in base.index.obstacles(shape) if why is not None)
    ranked = sorted(((n, why) for why, n in whys.items()), key=lambda item: (-item[0], item[1]))
    rest = sum(n for n, _ in ranked[MOST_KINDS:])
    return Excluded(nodes, tuple(ranked[:MOST_KINDS]), rest)
