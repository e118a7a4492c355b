"""What room is short of what a gang asks for: counted per shape and exactly, then put in words.

Separate from the decision, which never reads a sentence. Of a gang with several shapes the one
that is shortest is named.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Member, Shape
from ..strategies.room import fits_per_node
from .amounts import count, format_amount, format_resources
from .demand import Want
from .feasibility import fits_node
from .reduce import Grid, footprint

MOST_KINDS = 3  # kinds of obstacles, or shapes, named in one sentence


@dataclass(frozen=True, slots=True)
class Room:
    """How many members of one shape fit, and on how many nodes."""

    members: int
    nodes: int

    def __str__(self) -> str:
        """Read as the middle of a sentence."""
        return (
            f"room for {self.members} on {count(self.nodes, 'node')}"
            if self.nodes
            else ("room for none")
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The members of one shape, and how many of them the gang cannot start without."""

    members: tuple[Member, ...]
    forced: int

    @property
    def shape(self) -> Shape:
        """What each of them asks for."""
        return self.members[0].shape


@dataclass(frozen=True, slots=True, eq=False)
class Rooms:
    """The room for each shape alone, counted once when asked for."""

    base: Grid
    free: NDArray[np.int64]
    known: dict[Shape, Room] = field(default_factory=dict)

    def __getitem__(self, shape: Shape) -> Room:
        """How many members of this shape alone fit into the free room."""
        if shape not in self.known:
            row = self.base.shapes[shape]
            counts = fits_per_node(self.free, self.base.requests[row], self.base.allowed[row])
            self.known[shape] = Room(int(counts.sum()), int(np.count_nonzero(counts)))
        return self.known[shape]


def blocks(want: Want) -> Sequence[Block]:
    """The want by shape."""
    groups: dict[Shape, list[Member]] = {}
    for member in want.members:
        groups.setdefault(member.shape, []).append(member)
    return [Block(tuple(group), _forced(want, group)) for group in groups.values()]


def _forced(want: Want, group: Sequence[Member]) -> int:
    """How many of the group must start, even if all others do."""
    by_role = 0
    for role, least in want.minimums:
        others = sum(m.role == role for m in want.members) - sum(m.role == role for m in group)
        by_role += max(0, least - others)
    return max(by_role, want.need - (len(want.members) - len(group)))


def short(rooms: Rooms, want: Want) -> tuple[Block, Room] | None:
    """The shape that this room is shortest of, so that the want cannot be met; None if none is."""
    found = [(block, rooms[block.shape]) for block in blocks(want)]
    lacking = [pair for pair in found if pair[0].forced > pair[1].members]
    return max(lacking, key=lambda pair: pair[0].forced - pair[1].members, default=None)


def not_enough_room(empty: Rooms, left: Rooms, want: Want) -> str:
    """What a gang asks for and what room is left, once everything else in the plan has its own."""
    is_mixed = len(blocks(want)) > 1
    if (found := short(empty, want)) is not None:
        block, most = found
        asked = _asked(want, block, is_mixed=is_mixed)
        only = f"only {most.members}" if most.members else "none"
        return f"{asked}; even the empty cluster has room for {only}; {_short(block, most)}"
    if (found := short(left, want)) is not None:
        block, most = found
        return f"{_asked(want, block, is_mixed=is_mixed)}; {most}; {_short(block, most)}"
    if not is_mixed:
        only_block = blocks(want)[0]
        most = left[only_block.shape]
        return f"{_asked(want, only_block, is_mixed=False)}; {most}, left unused by this plan"
    listed = [
        f"{len(block.members)} ask {format_resources(block.shape.requests)} each "
        f"({left[block.shape]})"
        for block in blocks(want)
    ]
    if len(listed) > MOST_KINDS:
        listed[MOST_KINDS:] = [f"{len(listed) - MOST_KINDS} more kinds"]
    needed = count(want.need, "member")
    return f"{needed} needed of {'; '.join(listed)}; each kind has room, all together do not"


def _asked(want: Want, block: Block, *, is_mixed: bool) -> str:
    requests = format_resources(block.shape.requests)
    if want.gang.is_single:
        return f"the pod needs {requests}"
    roles = {member.role for member in block.members}
    is_of_role = is_mixed and bool(want.minimums) and len(roles) == 1
    role = f"role {min(roles)}: " if is_of_role else ""
    n = block.forced
    return f"{role}{count(n, 'member')} need{'s' * (n == 1)} {requests}{' each' * (n > 1)}"


def _short(block: Block, most: Room) -> str:
    return f"short {block.forced - most.members}"


def single_members(members: Sequence[Member], purpose: str, found: Room) -> str:
    """What members of a started gang ask for, each for itself; all are of one shape."""
    n = len(members)
    requests = format_resources(members[0].shape.requests)
    asked = f"{count(n, 'member')} {purpose} need{'s' * (n == 1)} {requests}{' each' * (n > 1)}"
    return f"{asked}; {found}"


def nowhere_member(empty: Rooms, want: Want) -> Member | None:
    """A member that the gang cannot start without and no node could hold, even if empty."""
    lost = [m for block in blocks(want) if not empty[block.shape].members for m in block.members]
    if not lost:
        return None
    uids = {member.uid for member in lost}
    rest = [member for member in want.members if member.uid not in uids]
    for role, least in want.minimums:
        if sum(member.role == role for member in rest) < least:
            return next(member for member in lost if member.role == role)
    return lost[0] if len(rest) < want.need else None


def nowhere(base: Grid, shape: Shape) -> str:
    """Why no node could hold this shape, even if it were empty."""
    if not base.nodes:
        return "there are no nodes"
    flags = base.allowed[base.shapes[shape]]
    allowed = [node for node, is_allowed in zip(base.nodes, flags, strict=True) if is_allowed]
    if not allowed:
        return f"{count(len(base.nodes), 'node')}: {_obstacles(base, shape)}"
    others = len(base.nodes) - len(allowed)
    aside = f" ({count(others, 'node')} left out: {_obstacles(base, shape)})" if others else ""
    for name, n in footprint(shape).amounts:
        largest = max(allowed, key=lambda node: node.allocatable[name])  # the first, if equal
        if (most := largest.allocatable[name]) < n:
            asked = f"asks {format_amount(name, n)} {name}"
            found = (
                f"the largest node has {format_amount(name, most)} ({largest.name})"
                if most
                else "no node has any"
            )
            return f"{asked}; {found}{aside}"
    asked = f"asks {format_resources(shape.requests)}"
    return f"{asked}; no node has all of it{aside}"


def _obstacles(base: Grid, shape: Shape) -> str:
    """What keeps the shape off nodes, the most frequent first."""
    whys = Counter(why for node in base.nodes if (why := fits_node(shape, node)) is not None)
    ranked = sorted(whys.items(), key=lambda item: (-item[1], item[0]))
    listed = [f"{n} {why.removeprefix('is ')}" for why, n in ranked[:MOST_KINDS]]
    if rest := sum(n for _, n in ranked[MOST_KINDS:]):
        listed.append(f"{rest} for other reasons")
    return ", ".join(listed)
