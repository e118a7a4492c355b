"""From a Solution back to names: the node of each member, and the room that is left."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...gang import domain_rules, slots
from ...gang.demand import PlacementRequest
from ...model.cluster import Member
from ...model.decisions import Assignment
from ...model.inter_pod import SegmentRule
from ...model.keys import Uid
from ...model.shapes import Shape
from ...strategies.problem import Share, Solution
from .grids import Grid
from .problems import parts
from .quotas import Started


def assignments(
    base: Grid, wants: Sequence[PlacementRequest], solution: Solution
) -> tuple[tuple[Assignment, ...], ...]:
    """The assignments of each request; within a part, the oldest members take the first nodes.

    Members that are in segments by an index come by their index, and whole segments before a short
    one. So a segment has the members with the indexes of one segment.
    """
    assigned: list[tuple[Assignment, ...]] = []
    for want, shares in zip(wants, solution.shares, strict=True):
        groups = parts(want) if shares else ()
        pools = [iter(_with_uids(_by_index(want, group))) for group in groups]
        rank = _ranks(base, want, groups, shares)
        assigned.append(
            tuple(
                Assignment(
                    member.key, uid, member.version, base.nodes[share.node].name, role=member.role
                )
                for share in sorted(
                    shares, key=lambda share: (share.part, rank.get(share, (0, 0)), share.node)
                )
                for member, uid in islice(pools[share.part], share.count)
            )
        )
    return tuple(assigned)


def _index_rule(want: PlacementRequest, role: str) -> SegmentRule | None:
    """The rule by which members of the role are in segments by an index."""
    if not want.gang.segments:
        return None
    rules = (rule for rule in want.gang.segments if rule.index)
    return next((rule for rule in rules if domain_rules.covers(rule.of, role)), None)


def _by_index(want: PlacementRequest, group: Sequence[Member]) -> Sequence[Member]:
    """The members in the order of their indexes, if they are in segments by these."""
    rule = _index_rule(want, group[0].role)
    if rule is None:
        return group
    return sorted(group, key=lambda member: domain_rules.index_of(member, rule) or 0)


def _ranks(
    base: Grid,
    want: PlacementRequest,
    groups: Sequence[Sequence[Member]],
    shares: Sequence[Share],
) -> Mapping[Share, tuple[int, int]]:
    """By share of members with an index: its domain, after those without a short segment."""
    ranks: dict[Share, tuple[int, int]] = {}
    for part, group in enumerate(groups):
        if (rule := _index_rule(want, group[0].role)) is not None:
            domains = base.domains.domains(domain_rules.labels_of(rule.of.level, base.topologies))
            own = [share for share in shares if share.part == part]
            members = Counter[int]()
            for share in own:
                members[int(domains[share.node])] += share.count
            for share in own:
                domain = int(domains[share.node])
                ranks[share] = members[domain] % rule.size, domain
    return ranks


def _with_uids(group: Sequence[Member]) -> Sequence[tuple[Member, Uid]]:
    """The members of one part, each with a distinct uid: absent members may share a uid."""
    if len({member.uid for member in group}) == len(group):
        return [(member, member.uid) for member in group]
    times = Counter[Uid]()
    assigned = []
    for member in group:
        n = times[member.uid]
        assigned.append((member, slots.nth(member.uid, n) if n else member.uid))
        times[member.uid] += 1
    return assigned


class PlacedCount(NamedTuple):
    """A number of members of one shape on one node."""

    shape: Shape
    node: int
    members: int


def placed_counts(wants: Sequence[PlacementRequest], solution: Solution) -> Iterable[PlacedCount]:
    """The members that a solution gives a node, counted by shape and node."""
    for want, shares in zip(wants, solution.shares, strict=True):
        groups = parts(want) if shares else ()
        for share in shares:
            yield PlacedCount(groups[share.part][0].shape, share.node, share.count)


def started(wants: Sequence[PlacementRequest], solution: Solution) -> Iterable[Started]:
    """The members that a solution starts, by gang and shape."""
    for want, shares in zip(wants, solution.shares, strict=True):
        groups, members = parts(want) if shares else (), Counter[int]()
        for share in shares:
            members[share.part] += share.count
        for part, count in members.items():
            yield Started(want.gang.key, groups[part][0].shape, count, is_repair=want.is_repair)


def room_left(
    base: Grid, free: NDArray[np.int64], wants: Sequence[PlacementRequest], solution: Solution
) -> NDArray[np.int64]:
    """The room that is left once a solution is carried out."""
    return room_beside(base, free, placed_counts(wants, solution))


def room_beside(
    base: Grid, free: NDArray[np.int64], counts: Iterable[PlacedCount]
) -> NDArray[np.int64]:
    """The free room after these members have their nodes."""
    positions = [(placed.node, base.shapes[placed.shape], placed.members) for placed in counts]
    free_after = free.copy()
    nodes, shapes, members = np.array(positions, dtype=np.int64).reshape(-1, 3).T
    np.subtract.at(free_after, nodes, base.requests[shapes] * members[:, None])
    return np.maximum(free_after, 0)
