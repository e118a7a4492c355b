"""Is there a place for all of these pods: an exhaustive search over small clusters.

Pods that nothing tells apart are one group; node by node, as many of a group as fit or fewer. What
was found not to fit is remembered. Rules between pods are looked at once everybody has a node.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from . import noderules, podrules
from .cluster import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .cluster import Cluster, Gang, Pod, Room

Rooms = tuple[tuple[int, ...], ...]  # [node][resource]
Located = tuple["Pod", str]
Group = tuple["Pod", ...]
MOST_STEPS = 60_000
MOST_ENDS = 400  # placements whose rules are looked at


class UndecidedError(Exception):
    """The search was larger than it may be."""


class Demand:
    """So many pods, a choice of groups, of which each way to choose is a vector of counts."""

    def __init__(self, groups: Sequence[Group], ways: Sequence[tuple[int, ...]]) -> None:
        self.groups = groups
        self.ways = ways


class Searcher:
    """Searches in one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.names = [node.name for node in cluster.nodes]
        named = {*cluster.resources, PODS}
        self.resources = tuple(sorted(named))
        self._allowed: dict[int, tuple[bool, ...]] = {}
        self._signatures: dict[int, object] = {}
        capacity = [{r: _offer(node.room, r) for r in self.resources} for node in cluster.nodes]
        self.capacity = capacity

    def rooms(self, gone: Callable[[Pod], bool] = lambda _: False) -> Rooms:
        """The free room of each node, without the pods that are ``gone``."""
        left = [dict(room) for room in self.capacity]
        for pod in self.cluster.there:
            if pod.node in self.names and not gone(pod):
                room = left[self.names.index(pod.node)]
                for name, n in pod.request.items():
                    if name in room:
                        room[name] -= n
        return tuple(tuple(max(room[r], 0) for r in self.resources) for room in left)

    def less(self, rooms: Rooms, placed: Sequence[Located]) -> list[list[int]]:
        """The room that is left beside these; below zero where they do not fit."""
        left = [list(room) for room in rooms]
        for pod, where in placed:
            room = left[self.names.index(where)]
            for i, n in enumerate(self.request(pod)):
                room[i] -= n
        return left

    def request(self, pod: Pod) -> tuple[int, ...]:
        """What the pod takes, by resource."""
        return tuple(pod.request.get(r, 0) for r in self.resources)

    def allowed(self, pod: Pod) -> tuple[bool, ...]:
        """On which nodes the pod may run, room and other pods aside."""
        if id(pod) not in self._allowed:
            nodes = self.cluster.nodes
            self._allowed[id(pod)] = tuple(noderules.allows(pod, node) for node in nodes)
        return self._allowed[id(pod)]

    def groups(self, pods: Sequence[Pod]) -> list[Group]:
        """The pods by what tells them apart, the role among it."""
        found: dict[object, list[Pod]] = {}
        for pod in pods:
            found.setdefault((pod.role, self._signature(pod)), []).append(pod)
        return [tuple(group) for group in found.values()]

    def _signature(self, pod: Pod) -> object:
        if id(pod) not in self._signatures:
            own: object = (self.request(pod), self.allowed(pod))
            if self.cluster.has_rules:
                affinity, spreads = (
                    repr(pod.spec.get(key)) for key in ("affinity", "topologySpreadConstraints")
                )
                labels = tuple(sorted(pod.labels.items()))
                own = (own, affinity, spreads, pod.namespace, labels)
            self._signatures[id(pod)] = own
        return self._signatures[id(pod)]

    def whole(self, gang: Gang, pods: Sequence[Pod]) -> Demand:
        """All ways to choose the needed members of a gang among these."""
        groups = self.groups(pods)
        roles = [(role.name, role.least, gang.places(role.name)) for role in gang.roles]

        def suits(way: tuple[int, ...]) -> bool:
            for name, least, most in roles:
                n = sum(k for k, group in zip(way, groups, strict=True) if group[0].role == name)
                if n < least or (most is not None and n > most):
                    return False
            return True

        return Demand(groups, [way for way in ways(groups, gang.need) if suits(way)])

    def repairs(self, gang: Gang, pods: Sequence[Pod], count: int) -> Demand:
        """All ways to replace so many lost members of a started gang by these."""
        groups = self.groups(pods)
        lacks = gang.missing_by_role
        spare = gang.missing - sum(lacks.values())

        def suits(way: tuple[int, ...]) -> bool:
            counts: dict[str, int] = {}
            for k, group in zip(way, groups, strict=True):
                counts[group[0].role] = counts.get(group[0].role, 0) + k
            over = sum(max(n - lacks.get(role, 0), 0) for role, n in counts.items())
            places = ((gang.places(role), n) for role, n in counts.items())
            return over <= spare and all(most is None or n <= most for most, n in places)

        return Demand(groups, [way for way in ways(groups, count) if suits(way)])

    def exactly(self, pods: Sequence[Pod]) -> Demand:
        """These and no others."""
        groups = self.groups(pods)
        return Demand(groups, [tuple(len(group) for group in groups)])

    def place(
        self, rooms: Rooms, demands: Sequence[Demand], beside: Sequence[Located] = ()
    ) -> list[Located] | None:
        """A node for every pod that the demands need; None if there is no way.

        ``beside`` are newcomers whose room is taken off ``rooms`` already.

        Raises:
            UndecidedError: there are too many ways to try.
        """
        steps = _Steps(MOST_STEPS)
        total = [sum(column) for column in zip(*rooms, strict=True)]
        for chosen in product(*(demand.ways for demand in demands)):
            steps.count()
            groups = [
                group[:n]
                for demand, way in zip(demands, chosen, strict=True)
                for group, n in zip(demand.groups, way, strict=True)
                if n
            ]
            if self._too_much(groups, total):
                continue
            found = self._placed(rooms, groups, beside, steps)
            if found is not None:
                return found
        return None

    def _too_much(self, groups: Sequence[Group], total: Sequence[int]) -> bool:
        asked = [0] * len(total)
        for group in groups:
            for i, n in enumerate(self.request(group[0])):
                asked[i] += n * len(group)
        return any(n > most for n, most in zip(asked, total, strict=True))

    def _placed(
        self, rooms: Rooms, groups: Sequence[Group], beside: Sequence[Located], steps: _Steps
    ) -> list[Located] | None:
        merged: dict[object, list[Pod]] = {}
        for group in groups:
            merged.setdefault(self._signature(group[0]), []).extend(group)
        total = [max(sum(column), 1) for column in zip(*rooms, strict=True)]

        def hardness(group: list[Pod]) -> tuple[int, float]:
            pairs = zip(self.request(group[0]), total, strict=True)
            return (sum(self.allowed(group[0])), -max(n / most for n, most in pairs))

        order = sorted(merged.values(), key=hardness)
        failed: set[object] = set()
        has_rules = self.cluster.has_rules

        def descend(i: int, left: Rooms, located: list[Located]) -> list[Located] | None:
            steps.count()
            if i == len(order):
                if not has_rules:
                    return located
                steps.end()
                is_broken = podrules.broken(self.cluster, [*beside, *located])
                return None if is_broken else located
            if not has_rules and (i, left) in failed:
                return None
            group = order[i]
            request, allowed = self.request(group[0]), self.allowed(group[0])
            most = [
                _fitting(room, request, len(group)) if may else 0
                for room, may in zip(left, allowed, strict=True)
            ]
            if sum(most) >= len(group):
                for counts in _spreads(len(group), most):
                    after = tuple(
                        tuple(a - n * k for a, n in zip(room, request, strict=True)) if k else room
                        for room, k in zip(left, counts, strict=True)
                    )
                    names = [
                        name for name, k in zip(self.names, counts, strict=True) for _ in range(k)
                    ]
                    more = [*located, *zip(group, names, strict=True)]
                    found = descend(i + 1, after, more)
                    if found is not None:
                        return found
            failed.add((i, left))
            return None

        return descend(0, rooms, [])


class _Steps:
    def __init__(self, most: int) -> None:
        self._left = most
        self._ends = MOST_ENDS

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UndecidedError

    def end(self) -> None:
        self._ends -= 1
        if self._ends < 0:
            raise UndecidedError


def ways(groups: Sequence[Group], count: int) -> list[tuple[int, ...]]:
    """How many of each group, ``count`` in all."""
    return list(_spreads(count, [len(group) for group in groups]))


def _spreads(count: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All vectors below ``most`` that sum up to ``count``."""
    if not most:
        if count == 0:
            yield ()
        return
    rest = sum(most[1:])
    for n in range(min(count, most[0]), max(count - rest, 0) - 1, -1):
        for others in _spreads(count - n, most[1:]):
            yield (n, *others)


def _fitting(room: Sequence[int], request: Sequence[int], most: int) -> int:
    return min([most, *(a // n for a, n in zip(room, request, strict=True) if n)])


def _offer(room: Room, resource: str) -> int:
    return 1 if resource.startswith("port ") else room.get(resource, 0)
