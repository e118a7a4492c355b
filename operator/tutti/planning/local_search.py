"""Moves placed members one by one to nodes that they prefer.

``preferences`` decides when to move, and keeps the best result. Each member is judged as if it came
last, by the room and rules at that moment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..filters.topology import Mask
from ..model.cluster import Member, PlacedPod, Snapshot
from ..model.keys import Uid
from ..model.shapes import Shape
from ..strategies.capacity import FreeCapacity, fits_per_node
from ..strategies.greedy import NodeScoring, first
from ..strategies.inter_pod_state import InterPodState
from ..strategies.problem import Problem
from .compile.grids import Grid
from .compile.pod_classes import SelectorIndex
from .scores import MemberClass, Scorer, Scores

if TYPE_CHECKING:
    from ..filters.selectors import Group

EXCHANGE = 5_000  # looks at nodes that one tried exchange counts as
TARGETS = 3  # nodes that are tried for a member in one step


@dataclass(frozen=True, slots=True, eq=False)
class MemberPlace:
    """A member, its shape with all its preferences, and its node."""

    member: Member
    shape: Shape
    row: int  # row in the Grid of the shape that it was placed by
    node: int
    within: Mask | None = None  # [node]: where the rules of its gang allow it; None if anywhere


@dataclass(frozen=True, slots=True, eq=False)
class MoveContext:
    """The numbers before and after the plan, by which moves are judged."""

    snapshot: Snapshot
    placed_pods: Sequence[PlacedPod]  # standing Reservations included
    base: Grid  # with the rules of all waiting members
    room: NDArray[np.int64]  # [node, resource]: room that may still be given away


def preferred_groups(
    snapshot: Snapshot, residents: Sequence[PlacedPod], shapes: Iterable[Shape]
) -> SelectorIndex:
    """The groups of pods that preferences select."""
    shapes = tuple(dict.fromkeys(shapes))
    # Pods with equal preferences share one object.
    scored_terms = {id(pod.scored_terms): pod.scored_terms for pod in residents}.values()
    term_lists = (*scored_terms, *(shape.scored_terms for shape in shapes))
    terms = dict.fromkeys(scored.term for terms in term_lists for scored in terms)
    groups: list[Group] = [(term.peers,) for term in terms]
    groups += [(spread.peers,) for shape in shapes for spread in shape.preferences.spread]
    return SelectorIndex(groups, snapshot.namespaces)


class LocalSearch:
    """Placed members by kind and node, which move one by one."""

    def __init__(self, context: MoveContext, places: Sequence[MemberPlace], work: int) -> None:
        base = context.base
        problem = Problem(context.room, base.requests, base.allowed, (), base.rules)
        self._allowed = base.allowed
        self._room = FreeCapacity(problem)
        self._ties = NodeScoring(problem, self._room)
        self._end = InterPodState(problem)
        shapes = (place.shape for place in places)
        selectors = preferred_groups(context.snapshot, context.placed_pods, shapes)
        kinds: dict[tuple[MemberClass, bytes], int] = {}
        self._within: list[Mask | None] = []  # by kind
        self._seats: dict[tuple[int, int], list[Uid]] = {}  # by kind and node
        self._kinds_on: dict[int, set[int]] = {}  # by node, the kinds that are or were there
        self._first: dict[Uid, int] = {}
        for place in places:
            member = place.member
            groups = selectors.among(member.key.namespace, member.labels)
            kind = MemberClass(place.row, place.shape, groups)
            region = b"" if place.within is None else place.within.tobytes()
            number = kinds.setdefault((kind, region), len(kinds))
            if number == len(self._within):
                self._within.append(place.within)
            self._seats.setdefault((number, place.node), []).append(member.uid)
            self._first[member.uid] = place.node
        self._kinds = tuple(kind for kind, _ in kinds)
        will_do = [self._will_do(base, kind.row) for kind in self._kinds]
        self._scorer = Scorer(base.nodes, selectors, self._kinds, will_do)
        self._scorer.begin(context.placed_pods)
        for (number, node), uids in self._seats.items():
            self._scorer.add(number, node, len(uids))
            self._end.add(self._kinds[number].row, node, len(uids))
            self._kinds_on.setdefault(node, set()).add(number)
        # The total is computed at least twice: before the first move and at the end.
        terms = sum(self._scorer.terms(number) for number, _ in self._seats)
        if 2 * terms * len(base.nodes) > work:
            self._scorer.ignore_others()
        self._choosy = frozenset(k for k in range(len(kinds)) if self._scorer.is_choosy(k))
        self._left = work

    @property
    def is_open(self) -> bool:
        """Whether a member could have a better node, and all rules hold at the start."""
        return bool(self._choosy) and self._end.holds()

    def total(self) -> int:
        """The sum of all members' scores, each judged as if it came last."""
        return sum(
            self._worth(kind, node) * len(uids)
            for (kind, node), uids in sorted(self._seats.items())
            if kind in self._choosy and uids
        )

    def moved(self) -> Mapping[Uid, int]:
        """The new nodes of the members that have moved since the start."""
        return {
            uid: node
            for (_, node), uids in self._seats.items()
            for uid in uids
            if self._first[uid] != node
        }

    def sweep(self) -> bool:
        """Try a better node for each member once; return whether a member moved."""
        has_moved = False
        for kind, node in sorted(self._seats):
            if kind not in self._choosy:
                continue
            # If a member of this kind stays here, the other members of the kind stay, too.
            while self._left > 0 and self._seats[kind, node] and self._improve(kind, node):
                has_moved = True
        return has_moved

    def _improve(self, kind: int, node: int) -> bool:
        """Move a member to a better node, or exchange it with a member of another kind."""
        row = self._kinds[kind].row
        self._leave(kind, node)
        scores = self._scores(kind)
        better = self._allowed[row] & (scores > scores[node])
        if (within := self._within[kind]) is not None:
            better &= within
        roomy = self._room.fits(row) > 0
        if self._end.concerns(row):
            better &= self._end.open_to(row) & self._end.affinity_now(row)
        for target in self._targets(kind, scores, better & roomy):
            self._enter(kind, target)
            if self._end.holds((row,)):
                self._rename(kind, node, target)
                return True
            self._leave(kind, target)
        self._enter(kind, node)
        return any(
            self._exchange((kind, node), (partner, target))
            for target in self._targets(kind, scores, better & ~roomy)
            for partner in self._partners(kind, target)
        )

    def _targets(self, kind: int, scores: Scores, among: Mask) -> Iterator[int]:
        """Up to ``TARGETS`` nodes of ``among``, best score first; best fit breaks ties."""
        row, among = self._kinds[kind].row, among.copy()
        for _ in range(TARGETS):
            nodes = np.flatnonzero(among)
            if not nodes.size:
                return
            nodes = nodes[scores[nodes] == scores[nodes].max()]
            keys = self._ties.keys(self._room, row, nodes, np.ones(nodes.size, np.int64))
            target = int(nodes[first(keys)])
            among[target] = False
            yield target

    def _partners(self, kind: int, node: int) -> Sequence[int]:
        """The other kinds that have a member on the node."""
        kinds_on_node = sorted(self._kinds_on.get(node, ()))
        return [
            partner for partner in kinds_on_node if self._seats[partner, node] and partner != kind
        ]

    def _exchange(self, own: tuple[int, int], partner_seat: tuple[int, int]) -> bool:
        """Exchange two members if that raises the sum of their scores and breaks no rule."""
        if self._left <= 0:
            return False
        self._left -= EXCHANGE
        (kind, node), (partner, target) = own, partner_seat
        before = self._worth(kind, node) + self._worth(partner, target)
        self._leave(kind, node)
        self._leave(partner, target)
        if self._takes(kind, target):
            self._enter(kind, target)
            if self._takes(partner, node):
                self._enter(partner, node)
                after = self._worth(kind, target) + self._worth(partner, node)
                if after > before and self._end.holds(self._rows(kind, partner)):
                    self._rename(kind, node, target)
                    self._rename(partner, target, node)
                    return True
                self._leave(partner, node)
            self._leave(kind, target)
        self._enter(partner, target)
        self._enter(kind, node)
        return False

    def _rows(self, *kinds: int) -> Sequence[int]:
        return [self._kinds[kind].row for kind in kinds]

    def _takes(self, kind: int, node: int) -> bool:
        within = self._within[kind]
        is_inside = within is None or bool(within[node])
        return is_inside and bool(self._room.fits(self._kinds[kind].row)[node] > 0)

    def _worth(self, kind: int, node: int) -> int:
        """The score of a member of the kind on this node, as if it came last."""
        if not self._scorer.is_moody(kind):
            return int(self._scorer.scores(kind)[node])
        self._leave(kind, node)
        score = int(self._scores(kind)[node])
        self._enter(kind, node)
        return score

    def _scores(self, kind: int) -> Scores:
        """The current scores of the kind; the work of adding them up is counted."""
        self._left -= len(self._allowed[0]) * max(1, self._scorer.terms(kind))
        return self._scorer.scores(kind)

    def _enter(self, kind: int, node: int, count: int = 1) -> None:
        row = self._kinds[kind].row
        self._room.take(row, np.array([node]), np.array([count]))
        self._scorer.add(kind, node, count)
        self._end.add(row, node, count)

    def _leave(self, kind: int, node: int) -> None:
        self._enter(kind, node, -1)

    def _rename(self, kind: int, node: int, target: int) -> None:
        """Record in the seats that the last member of the kind on ``node`` is on ``target`` now."""
        uid = self._seats[kind, node].pop()
        self._seats.setdefault((kind, target), []).append(uid)
        self._kinds_on.setdefault(target, set()).add(kind)

    def _will_do(self, base: Grid, row: int) -> Mask:
        """The nodes on which a member could be placed before any other member."""
        mask: Mask = fits_per_node(base.free, base.requests[row], base.allowed[row]) > 0
        if self._end.concerns(row):
            mask &= self._end.open_to(row)
            near = mask & self._end.affinity_now(row)
            return near if near.any() else mask
        return mask
