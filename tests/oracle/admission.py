"""What a Snapshot asks, as a Case: its rules in words of the oracle's own.

Only as many of Kubernetes' rules as the random Snapshots use.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tutti.model.decisions import Objective
from tutti.planning.value import AGE_STEPS, MOST_WEIGHT, SHARE_SCALE

from .case import Ask, Case, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.model.cluster import Gang, Member, Node, Reservation, Snapshot
    from tutti.model.decisions import Plan, Policy
    from tutti.model.keys import GangKey

    from .case import Worth


class Reading:
    """A Snapshot read by hand."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._snapshot, self._policy = snapshot, policy
        self._nodes = sorted(snapshot.nodes, key=lambda node: node.name)
        pods = [member for gang in snapshot.gangs for member in gang.members]
        self.axes = sorted({"pods", *(name for m in pods for name in m.shape.requests.names)})
        held = {reservation.gang for reservation in snapshot.reservations}
        self._levels = {
            g.key: max((m.priority for m in g.members), default=0) for g in snapshot.gangs
        }
        self.waiting = {
            gang.key: gang
            for gang in snapshot.gangs
            if gang.key not in held and not any(member.node for member in gang.members)
        }

    def case(self) -> Case:
        """The gangs that could start, and the room that nobody holds."""
        free = [[have - gone for have, gone in zip(*pair, strict=True)] for pair in self._rooms()]
        asks = [ask for gang in self.waiting.values() if (ask := self._ask(gang)) is not None]
        return Case(tuple(map(tuple, free)), tuple(asks))

    def stages(self, plan: Plan) -> Iterator[tuple[Case, Worth]]:
        """What was decided together, from the top, and what the plan starts of it on each level.

        Levels are one decision down to one where a gang may have more members than it needs: those
        come before lower levels, which get the room that is left as it is.
        """
        whole, placed = self.case(), [p.gang for p in plan.placements]
        asks = {k: ask for k, gang in self.waiting.items() if (ask := self._ask(gang)) is not None}
        growing = {ask.level for ask in asks.values() if len(ask.kinds) > ask.need}
        together: list[int] = []
        for level in whole.levels:
            together.append(level)
            if level in growing or level == whole.levels[-1]:
                values = dict.fromkeys(together, 0)
                for key, ask in asks.items():
                    if ask.level in values and key in placed:
                        values[ask.level] += ask.value
                rooms = self._left(plan, above=together[0])
                own = tuple(ask for ask in asks.values() if ask.level in values)
                yield Case(rooms, own), tuple(sorted(values.items(), reverse=True))
                together = []

    def _left(self, plan: Plan, above: int) -> tuple[tuple[int, ...], ...]:
        """The room of each node once the plan's gangs above a level have what they get."""
        placed = {
            one.uid: one.node
            for placement in plan.placements
            for one in placement.assignments
            if self._levels[placement.gang] > above
        }
        members = [m for gang in self._snapshot.gangs for m in gang.members if m.uid in placed]
        rooms = {
            node.name: list(room) for node, room in zip(self._nodes, self.case().rooms, strict=True)
        }
        for member in members:
            room, taken = rooms[placed[member.uid]], _taken(member)
            rooms[placed[member.uid]] = [
                n - taken[name] for n, name in zip(room, self.axes, strict=True)
            ]
        return tuple(map(tuple, rooms.values()))

    def joinable(self, plan: Plan) -> Iterator[str]:
        """Members beyond those needed that found no place although one node has room for them."""
        rooms = {
            node.name: Counter(dict(zip(self.axes, map(int.__sub__, *pair), strict=True)))
            for node, pair in zip(self._nodes, self._rooms(), strict=True)
        }
        placed = {one.uid: one.node for p in plan.placements for one in p.assignments}
        members = {m.uid: m for gang in self._snapshot.gangs for m in gang.members}
        for uid, name in placed.items():
            rooms[name].subtract(_taken(members[uid]))
        for gang in self._snapshot.gangs:
            if not any(m.node or m.uid in placed for m in gang.members):
                continue
            for member in self._ready(gang):
                taken = _taken(member)
                for node in self._nodes:
                    room = rooms[node.name]
                    is_open = member.uid not in placed and _may_run(member, node)
                    if is_open and all(room[name] >= n for name, n in taken.items()):
                        yield f"{member.key} would fit on {node.name}"

    def _rooms(self) -> Sequence[tuple[list[int], list[int]]]:
        """What each node has and what of it is used or held."""
        held: dict[str, Counter[str]] = {node.name: Counter() for node in self._nodes}
        gangs = {gang.key: gang for gang in self._snapshot.gangs}
        for reservation in self._snapshot.reservations:
            for name, taken in _holdings(reservation, gangs):
                held[name].update(taken)
        return [
            (
                [node.allocatable[name] for name in self.axes],
                [node.used[name] + held[node.name][name] for name in self.axes],
            )
            for node in self._nodes
        ]

    def _ready(self, gang: Gang) -> Sequence[Member]:
        """Members that could be bound now, the oldest first, as many as their role may have."""
        if gang.key in {reservation.gang for reservation in self._snapshot.reservations}:
            return []
        most = {role.name: role.max_member for role in gang.roles}
        there = Counter(member.role for member in gang.members if member.node)
        ready = []
        for member in sorted(gang.members, key=lambda m: (m.created, m.key)):
            limit = most.get(member.role)
            is_held_back = member.node or member.gated or member.unmodelled
            if not is_held_back and (limit is None or there[member.role] < limit):
                there[member.role] += 1
                ready.append(member)
        return ready

    def _ask(self, gang: Gang) -> Ask | None:
        """What the gang needs to start; None while it lacks members."""
        ready, roles = self._ready(gang), [role.name for role in gang.roles]
        need = max(gang.min_member, sum(role.min_member for role in gang.roles))
        kinds = [
            Kind(
                takes=tuple(_taken(member)[name] for name in self.axes),
                where=frozenset(i for i, node in enumerate(self._nodes) if _may_run(member, node)),
                role=roles.index(member.role) if roles else 0,
                count=1,
            )
            for member in ready
        ]
        if len(ready) < need:
            return None
        least = tuple(role.min_member for role in gang.roles) or (0,)
        level = self._levels[gang.key]
        return Ask(need, tuple(kinds), least, level, self._value(gang, need, ready))

    def _value(self, gang: Gang, need: int, ready: Sequence[Member]) -> int:
        """What the objective says it is worth."""
        if self._policy.objective is Objective.GANGS:
            return 1
        if self._policy.objective is Objective.MEMBERS:
            return need
        first: list[Member] = []
        for role in gang.roles:
            first += [member for member in ready if member.role == role.name][: role.min_member]
        first += [member for member in ready if member not in first][: need - len(first)]
        totals = {name: sum(node.allocatable[name] for node in self._nodes) for name in self.axes}
        shares = [
            sum(_taken(member)[name] for member in first) * SHARE_SCALE // total
            for name, total in totals.items()
            if total
        ]
        waited = (self._snapshot.taken_at - gang.created) / self._policy.age_seconds
        return max(1, *shares) * (AGE_STEPS + min(int(AGE_STEPS * waited), AGE_STEPS * MOST_WEIGHT))


def _taken(member: Member) -> Counter[str]:
    """What a member takes of a node: what it asks for, and one of the pods that may run there."""
    return Counter({**dict(member.shape.requests.amounts), "pods": 1})


def _may_run(member: Member, node: Node) -> bool:
    labels = dict(node.labels)
    tolerated = {toleration.key for toleration in member.shape.tolerations}
    return (
        node.ready
        and not node.unschedulable
        and all(taint.key in tolerated for taint in node.taints)
        and all(labels.get(key) == value for key, value in member.shape.node_selector)
    )


def _holdings(
    held: Reservation, gangs: Mapping[GangKey, Gang]
) -> Iterator[tuple[str, Counter[str]]]:
    """What a Reservation keeps free: its members' own, and for a slot the most of its role."""
    members = {member.uid: member for member in gangs[held.gang].members}
    for entry in held.entries:
        yield entry.node, _taken(members[entry.uid])
    for slots in held.slots:
        most = Counter[str]()
        for member in members.values():
            if member.role == slots.role:
                most |= _taken(member)
        yield slots.node, Counter({name: n * slots.count for name, n in most.items()})
