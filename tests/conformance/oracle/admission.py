"""What a Snapshot asks, as a Case: its rules in words of the oracle's own.

Only as many of Kubernetes' rules as the random Snapshots use.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from tutti.model.cluster import PlacedPod
from tutti.model.decisions import Objective
from tutti.planning.compile.gang_value import AGE_STEPS, MOST_WEIGHT

from .case import Ask, Case
from .neighbourhood import Neighbourhood

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.model.cluster import Gang, Member, Node, Reservation, Snapshot
    from tutti.model.decisions import Plan, Policy
    from tutti.model.keys import GangKey, NodeName

    from .case import Worth


class Stage(NamedTuple):
    """What was decided together, and what the plan starts of it on each level, from the top."""

    case: Case
    found: Worth
    later: Case  # the same question with everyone who was decided on later


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
        # A whole number of which every gang's share of the cluster is one, too.
        self._parts = lcm(*(self._share(gang).denominator for gang in self.waiting.values()))

    def case(self) -> Case:
        """The gangs that could start, and the room that nobody holds."""
        return self._case(self._wanting(), ())

    def carried_out(self, nodes: Mapping[str, NodeName]) -> Case:
        """The members who wait as gangs of one, each of which only wants its node, by pod's name.

        All of them can be admitted if, and only if, everybody may be where these nodes say.
        """
        members = (member for gang in self._snapshot.gangs for member in gang.members)
        named = [(m, nodes[m.key.name]) for m in members if m.key.name in nodes]
        return self._case((), named)

    def stages(self, plan: Plan) -> Iterator[Stage]:
        """What was decided together, from the top.

        Levels are one decision down to one where a gang may have more members than it needs: those
        come before lower levels, which take everyone above for granted, where they are.
        """
        placed = {p.gang for p in plan.placements}
        wanting = self._wanting()
        levels = sorted({self._levels[gang.key] for gang in wanting}, reverse=True)
        growing = {self._levels[g.key] for g in wanting if len(self._oldest(g)) > _need(g)}
        together: list[int] = []
        for level in levels:
            together.append(level)
            if level in growing or level == levels[-1]:
                own = [gang for gang in wanting if self._levels[gang.key] in together]
                values = dict.fromkeys(together, 0)
                for gang in own:
                    if gang.key in placed:
                        values[self._levels[gang.key]] += self._value(gang)
                settled = self._placed(plan, above=together[0])
                granted = Counter(self._levels[member.gang] for member, _ in settled)
                found = {**values, **granted}
                below = [gang for gang in wanting if self._levels[gang.key] < level]
                yield Stage(
                    self._case(own, settled),
                    tuple(sorted(found.items(), reverse=True)),
                    self._case([*own, *below], settled, may_grow=True),
                )
                together = []

    def _wanting(self) -> list[Gang]:
        """The gangs that wait and lack no members."""
        return [gang for gang in self.waiting.values() if len(self._oldest(gang)) >= _need(gang)]

    def _case(
        self,
        gangs: Sequence[Gang],
        settled: Sequence[tuple[Member, NodeName]],
        *,
        may_grow: bool = False,
    ) -> Case:
        """What these gangs ask for, beside members who must have the node that they got.

        If they ``may_grow``, more members than they need may start with them.
        """
        members = [member for gang in gangs for member in self._ready(gang)]
        members += [member for member, _ in settled]
        around = Neighbourhood(
            self._nodes, self._snapshot.namespaces, self._there(), members, may_run=_may_run
        )
        asks = [self._ask(gang, around) for gang in gangs]
        if may_grow:
            pairs = zip(asks, gangs, strict=True)
            asks = [replace(ask, most=len(self._oldest(gang))) for ask, gang in pairs]
        for member, node in settled:
            kind = around.kind(member, self._takes(member), 0)
            there = {row for row, one in enumerate(self._nodes) if one.name == node}
            one = replace(kind, where=kind.where & there)
            asks.append(Ask(1, (one,), (0,), self._levels[member.gang], 1))
        return Case(self._left([]), tuple(asks), around.companies)

    def _there(self) -> Iterator[PlacedPod]:
        """Who has a node, or one that is held for it."""
        yield from self._snapshot.placed_pods
        members = {m.uid: m for gang in self._snapshot.gangs for m in gang.members}
        for reservation in self._snapshot.reservations:
            for entry in reservation.entries:
                yield _resident(members[entry.uid], entry.node)

    def _placed(self, plan: Plan, above: int) -> list[tuple[Member, NodeName]]:
        """Whom the plan gives a node, of the gangs above a level."""
        nodes = {
            assignment.uid: assignment.node
            for placement in plan.placements
            for assignment in placement.assignments
            if self._levels[placement.gang] > above
        }
        members = (member for gang in self._snapshot.gangs for member in gang.members)
        return [(member, nodes[member.uid]) for member in members if member.uid in nodes]

    def _left(self, seated: Sequence[tuple[Member, NodeName]]) -> tuple[tuple[int, ...], ...]:
        """The room of each node once these have theirs."""
        rooms = {
            node.name: [have - gone for have, gone in zip(*pair, strict=True)]
            for node, pair in zip(self._nodes, self._rooms(), strict=True)
        }
        for member, node in seated:
            rooms[node] = [n - m for n, m in zip(rooms[node], self._takes(member), strict=True)]
        return tuple(map(tuple, rooms.values()))

    def joinable(self, plan: Plan) -> Iterator[str]:
        """Members beyond those needed that found no place although one node has room for them.

        Not where somebody wants company or even numbers: who comes first matters there.
        """
        waiting = [member for gang in self._snapshot.gangs for member in self._ready(gang)]
        rules = [member.shape.rules for member in waiting]
        if any(rule.affinity or rule.spread for rule in rules):
            return
        seated = self._placed(plan, above=min(self._levels.values()) - 1)
        placed = {member.uid for member, _ in seated}
        there = [*self._there(), *(_resident(*pair) for pair in seated)]
        around = Neighbourhood(
            self._nodes, self._snapshot.namespaces, there, waiting, may_run=_may_run
        )
        rooms = self._left(seated)
        for gang in self._snapshot.gangs:
            if not any(m.node or m.uid in placed for m in gang.members):
                continue
            places = self._places(gang)
            for member in self._ready(gang):
                places[member.role] -= member.uid in placed
            for member in self._ready(gang):
                if member.uid in placed or places[member.role] <= 0:
                    continue
                takes = self._takes(member)
                for row in sorted(around.kind(member, takes, 0).where):
                    if all(n >= m for n, m in zip(rooms[row], takes, strict=True) if m):
                        yield f"{member.key} would fit on {self._nodes[row].name}"

    def _rooms(self) -> Sequence[tuple[list[int], list[int]]]:
        """What each node has and what of it is used or held."""
        held: dict[str, Counter[str]] = {node.name: Counter() for node in self._nodes}
        gangs = {gang.key: gang for gang in self._snapshot.gangs}
        for reservation in self._snapshot.reservations:
            for name, taken in _holdings(reservation, gangs):
                held[name].update(taken)
        return [
            (
                [node.offers(name) for name in self.axes],
                [node.used[name] + held[node.name][name] for name in self.axes],
            )
            for node in self._nodes
        ]

    def _ready(self, gang: Gang) -> Sequence[Member]:
        """Members that could be bound now, the oldest first, if their role may have more."""
        if gang.key in {reservation.gang for reservation in self._snapshot.reservations}:
            return []
        places = self._places(gang)
        return [
            member
            for member in sorted(gang.members, key=lambda m: (m.created, m.key))
            if not (member.node or member.gated or member.unsupported_fields)
            and places[member.role] > 0
        ]

    def _places(self, gang: Gang) -> dict[str, int]:
        """How many more members of each role may have a node."""
        there = Counter(member.role for member in gang.members if member.node)
        most = {role.name: role.max_member for role in gang.roles}
        many = len(gang.members)
        roles = {"", *(member.role for member in gang.members), *most}
        return {
            role: many if (limit := most.get(role)) is None else limit - there[role]
            for role in roles
        }

    def _oldest(self, gang: Gang) -> Sequence[Member]:
        """Of the members that could be bound, the oldest ones that their role may have."""
        places, chosen = self._places(gang), []
        for member in self._ready(gang):
            if places[member.role] > 0:
                places[member.role] -= 1
                chosen.append(member)
        return chosen

    def _ask(self, gang: Gang, around: Neighbourhood) -> Ask:
        """What the gang needs to start."""
        roles = [role.name for role in gang.roles]
        # Equal members are one kind: CP-SAT would try every order of them.
        kinds = Counter(
            around.kind(member, self._takes(member), roles.index(member.role) if roles else 0)
            for member in self._ready(gang)
        )
        least = tuple(role.min_member for role in gang.roles) or (0,)
        places = self._places(gang)
        return Ask(
            need=_need(gang),
            kinds=tuple(replace(kind, count=count) for kind, count in kinds.items()),
            least=least,
            level=self._levels[gang.key],
            value=self._value(gang),
            most_of_role=tuple(places[role] for role in roles),
        )

    def _takes(self, member: Member) -> tuple[int, ...]:
        taken = _taken(member)
        return tuple(taken[name] for name in self.axes)

    def _value(self, gang: Gang) -> int:
        """What the objective says it is worth."""
        if self._policy.objective is Objective.GANGS:
            return 1
        if self._policy.objective is Objective.MEMBERS:
            return _need(gang)
        waited = (self._snapshot.taken_at - gang.created) / self._policy.age_seconds
        weight = AGE_STEPS + min(int(AGE_STEPS * waited), AGE_STEPS * MOST_WEIGHT)
        return int(self._share(gang) * self._parts * weight)

    def _share(self, gang: Gang) -> Fraction:
        """The largest share of a resource's total that the gang's oldest members ask for."""
        need, ready = _need(gang), self._oldest(gang)
        first: list[Member] = []
        for role in gang.roles:
            first += [member for member in ready if member.role == role.name][: role.min_member]
        first += [member for member in ready if member not in first][: need - len(first)]
        totals = {name: sum(node.allocatable[name] for node in self._nodes) for name in self.axes}
        shares = [
            Fraction(sum(_taken(member)[name] for member in first), total)
            for name, total in totals.items()
            if total
        ]
        return max(shares, default=Fraction(1))


def _need(gang: Gang) -> int:
    return max(gang.min_member, sum(role.min_member for role in gang.roles))


def _resident(member: Member, node: NodeName) -> PlacedPod:
    space, apart = member.key.namespace, member.shape.rules.anti_affinity
    return PlacedPod(member.uid, node, space, member.labels, apart, member.terminating)


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
    reservation: Reservation, gangs: Mapping[GangKey, Gang]
) -> Iterator[tuple[str, Counter[str]]]:
    """What a Reservation keeps free: its members' own, and for a slot the most of its role."""
    members = {member.uid: member for member in gangs[reservation.gang].members}
    for entry in reservation.entries:
        yield entry.node, _taken(members[entry.uid])
    for slots in reservation.slots:
        most = Counter[str]()
        for member in members.values():
            if member.role == slots.role:
                most |= _taken(member)
        yield slots.node, Counter({name: n * slots.count for name, n in most.items()})
