"""Snapshots in few words: ``snapshot(node("n1", cpu=8), gang("a").of(4, cpu=2))``.

Builders are frozen like what they build; every method gives a new one. CPU is in cores, memory in
Gi, ``gpu`` is ``nvidia.com/gpu``; other resources go by their names with ``_`` for ``-``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tutti.model import ports
from tutti.model.cluster import (
    Entry,
    Gang,
    Member,
    Node,
    Reservation,
    Role,
    Shape,
    Slots,
    Snapshot,
    Taint,
)
from tutti.model.decisions import Plan
from tutti.model.keys import GangKey, NodeName, Origin, PodKey, Uid
from tutti.model.resources import Resources
from tutti.strategies.bestfit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Solution

NAMESPACE = "ml"
GPU = "nvidia.com/gpu"
UNITS: Mapping[str, int] = {"cpu": 1000, "memory": 2**30, "ephemeral_storage": 2**30}
NAMES: Mapping[str, str] = {"gpu": GPU, "ephemeral_storage": "ephemeral-storage"}

Amount = float


def resources(*, pods: int = 0, **amounts: Amount) -> Resources:
    """Amounts in units that people use."""
    named = {NAMES.get(name, name): int(n * UNITS.get(name, 1)) for name, n in amounts.items()}
    return Resources.of({**named, "pods": pods})


def shape(**amounts: Amount) -> Shape:
    """What one member asks for; as decoded from a pod, it takes one of the node's pods."""
    return Shape(resources(pods=1, **amounts))


@dataclass(frozen=True, slots=True)
class NodeBuilder:
    """A node in the making."""

    made: Node

    def labelled(self, **labels: str) -> "NodeBuilder":
        """Add labels."""
        merged = {**dict(self.made.labels), **labels}
        return self.but(labels=tuple(sorted(merged.items())))

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> "NodeBuilder":
        """Add a taint."""
        return self.but(taints=(*self.made.taints, Taint(key, value, effect)))

    def using(self, *, pods: int = 1, **amounts: Amount) -> "NodeBuilder":
        """Let other schedulers' pods use some of it."""
        return self.but(used=self.made.used + resources(pods=pods, **amounts))

    def listening(self, *wanted: ports.HostPort) -> "NodeBuilder":
        """Let another scheduler's pod use these ports of it."""
        taken = Resources.of(ports.asked(wanted)) + resources(pods=1)
        return self.but(used=self.made.used + taken)

    def cordoned(self) -> "NodeBuilder":
        """Take no new pods."""
        return self.but(unschedulable=True)

    def but(self, **changes: object) -> "NodeBuilder":
        """Change fields."""
        return NodeBuilder(replace(self.made, **changes))  # type: ignore[arg-type]


def node(name: str, *, pods: int = 110, **amounts: Amount) -> NodeBuilder:
    """A ready node with room for 110 pods."""
    return NodeBuilder(Node(NodeName(name), resources(pods=pods, **amounts)))


@dataclass(frozen=True, slots=True)
class GangBuilder:
    """A gang in the making; members are named after it and numbered."""

    key: GangKey
    members: tuple[Member, ...] = ()
    least: int | None = None  # as many as there are members, if None
    roles: tuple[Role, ...] = ()
    changes: Mapping[str, object] = field(default_factory=dict)

    def of(self, count: int, *, role: str = "", **amounts: Amount) -> "GangBuilder":
        """Add waiting members of one shape, each a second younger than the one before."""
        asks, space, first = shape(**amounts), self.key.namespace, len(self.members)
        names = [f"{self.key.name}-{n}" for n in range(first, first + count)]
        more = (member(name, asks, role=role, namespace=space) for name in names)
        aged = (
            replace(m, group=self.key.name, created=float(first + i)) for i, m in enumerate(more)
        )
        return replace(self, members=(*self.members, *aged))

    def role(
        self, name: str, least: int, count: int | None = None, **amounts: Amount
    ) -> "GangBuilder":
        """Add a role and ``count`` waiting members of it, ``least`` if not said."""
        grown = self.of(least if count is None else count, role=name, **amounts)
        return replace(grown, roles=(*self.roles, Role(name, least)))

    def at_most(self, most: int) -> "GangBuilder":
        """Limit the role that was added last."""
        *others, last = self.roles
        return replace(self, roles=(*others, replace(last, max_member=most)))

    def needing(self, least: int) -> "GangBuilder":
        """Set minMember."""
        return replace(self, least=least)

    def priority(self, priority: int) -> "GangBuilder":
        """Set the priority of all its pods."""
        return self.each(priority=priority)

    def bound_on(self, *nodes: str) -> "GangBuilder":
        """Bind its first members that wait, one per node named."""
        names = iter(nodes)
        return self.where(
            lambda m: (
                replace(m, node=NodeName(n)) if m.node is None and (n := next(names, "")) else m
            )
        )

    def of_class(self, name: str, value: int | None) -> "GangBuilder":
        """Name a PriorityClass; without a value there is no such class."""
        return self.but(priority_class=name, class_value=value)

    def each(self, **changes: object) -> "GangBuilder":
        """Change fields of all its members."""
        return self.where(lambda m: replace(m, **changes))  # type: ignore[arg-type]

    def last(self, count: int, **changes: object) -> "GangBuilder":
        """Change fields of its last members."""
        late = {m.uid for m in self.members[len(self.members) - count :]}
        return self.where(
            lambda m: replace(m, **changes) if m.uid in late else m  # type: ignore[arg-type]
        )

    def only(self, name: str, **changes: object) -> "GangBuilder":
        """Change fields of one member."""
        return self.where(
            lambda m: replace(m, **changes) if m.key.name == name else m  # type: ignore[arg-type]
        )

    def shaped(self, **rules: object) -> "GangBuilder":
        """Change fields of all its members' shapes."""
        return self.where(
            lambda m: replace(m, shape=replace(m.shape, **rules))  # type: ignore[arg-type]
        )

    def listening(self, *wanted: ports.HostPort) -> "GangBuilder":
        """Let each of its members use these ports of its node."""
        more = Resources.of(ports.asked(wanted))
        return self.where(
            lambda m: replace(m, shape=replace(m.shape, requests=m.shape.requests + more))
        )

    def where(self, change: Callable[[Member], Member]) -> "GangBuilder":
        """Change its members one by one."""
        return replace(self, members=tuple(change(m) for m in self.members))

    def but(self, **changes: object) -> "GangBuilder":
        """Change fields of the gang itself."""
        return replace(self, changes={**self.changes, **changes})

    @property
    def made(self) -> Gang:
        """The gang."""
        is_single = self.key.origin is Origin.POD
        uid = self.members[0].uid if is_single else Uid(f"{self.key}-uid")
        least = len(self.members) if self.least is None else self.least
        members = tuple(sorted(self.members, key=lambda m: m.key))
        made = Gang(self.key, uid, least, roles=self.roles, members=members)
        return replace(made, **self.changes)  # type: ignore[arg-type]


def gang(name: str, namespace: str = NAMESPACE) -> GangBuilder:
    """A PodGroup's gang; it needs all the members that it is given, unless ``needing`` fewer."""
    return GangBuilder(GangKey(namespace, name))


def single(name: str, **amounts: Amount) -> GangBuilder:
    """A pod that names no group."""
    return GangBuilder(GangKey(NAMESPACE, name, Origin.POD), (member(name, shape(**amounts)),))


def member(name: str, asks: Shape, *, role: str = "", namespace: str = NAMESPACE) -> Member:
    """A waiting pod."""
    key = PodKey(namespace, name)
    return Member(key, Uid(f"{key}-uid"), "1", asks, created=0.0, role=role)


def reservation(
    of: GangBuilder, *entries: tuple[str, str], at: float = 0.0, slots: Sequence[Slots] = ()
) -> Reservation:
    """A standing Reservation: pairs of a pod's name and a node's."""
    made = of.made
    uids = {m.key.name: m.uid for m in made.members}
    return Reservation(
        gang=made.key,
        uid=made.uid,
        generation=made.generation,
        scheduler="tutti",
        term="term",
        reserved_at=at,
        entries=tuple(
            Entry(PodKey(made.key.namespace, pod), uids.get(pod, Uid(f"{pod}-gone")), NodeName(on))
            for pod, on in entries
        ),
        slots=tuple(slots),
    )


Part = NodeBuilder | GangBuilder | Reservation


def snapshot(*parts: Part, strays: Sequence[Member] = (), at: float = 0.0) -> Snapshot:
    """A Snapshot in canonical order; what bound members use is added to their nodes."""
    gangs = [part.made for part in parts if isinstance(part, GangBuilder)]
    nodes = [part.made for part in parts if isinstance(part, NodeBuilder)]
    held = [part for part in parts if isinstance(part, Reservation)]
    members = [m for one in gangs for m in one.members]
    return Snapshot(
        taken_at=at,
        nodes=tuple(sorted(_occupied(nodes, members), key=lambda n: n.name)),
        gangs=tuple(sorted(gangs, key=lambda g: g.key)),
        reservations=tuple(sorted(held, key=lambda r: r.gang)),
        strays=tuple(strays),
    )


def _occupied(nodes: Sequence[Node], members: Sequence[Member]) -> Sequence[Node]:
    used: dict[NodeName, list[Resources]] = {}
    for m in members:
        if m.node is not None and not m.is_over:
            used.setdefault(m.node, []).append(m.shape.requests)
    return [
        replace(n, used=Resources.total([n.used, *used[n.name]])) if n.name in used else n
        for n in nodes
    ]


def applied(before: Snapshot, plan: Plan) -> Snapshot:
    """The Snapshot after all of the plan was bound."""
    where = {one.uid: one.node for placement in plan.placements for one in placement.assignments}
    newly = [m for g in before.gangs for m in g.members if m.uid in where]
    bound = {m.uid: replace(m, node=where[m.uid]) for m in newly}
    return replace(
        before,
        nodes=tuple(_occupied(before.nodes, list(bound.values()))),
        gangs=tuple(
            replace(g, members=tuple(bound.get(m.uid, m) for m in g.members)) for g in before.gangs
        ),
    )


@dataclass(frozen=True, slots=True)
class Canned:
    """A strategy that answers as best fit does, and says of itself what it was told to."""

    outcome: Outcome
    detail: str = ""
    name: str = "canned"
    bounds: tuple[tuple[int, int], ...] = ()

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer with best fit's shares under another outcome; FAILED has none."""
        if self.outcome is Outcome.FAILED:
            return Solution(self.outcome, (), self.detail)
        said = {"outcome": self.outcome, "detail": self.detail, "bounds": self.bounds}
        return replace(BestFit().solve(problem, budget), **said)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Overlooking:
    """A heuristic that sees nothing."""

    name: str = "overlooking"

    def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - spends nothing
        """Admit nobody."""
        return Solution(Outcome.HEURISTIC, ((),) * len(problem.demands))
