"""Snapshots in few words: ``snapshot_of(node("n1", cpu=8), gang("a").of(4, cpu=2))``.

Builders are frozen like what they build; every method gives a new one. CPU is in cores, memory in
Gi, ``gpu`` is ``nvidia.com/gpu``; other resources go by their names with ``_`` for ``-``. Labels
are keywords, too: ``group`` and ``role`` are those of Tutti, ``hostname`` is that of Kubernetes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tutti.kube.codec.inter_pod import spread_order, term_order
from tutti.model import ports
from tutti.model.cluster import (
    DisruptionBudget,
    Gang,
    Member,
    Namespace,
    Node,
    PlacedPod,
    PodReservation,
    Reservation,
    Role,
    SlotReservation,
    Snapshot,
)
from tutti.model.decisions import Plan
from tutti.model.inter_pod import (
    NO_RULES,
    AffinityTerm,
    DomainRule,
    InterPodRules,
    Labels,
    PodSelector,
    Requirement,
    SegmentRule,
    Topology,
    TopologySpread,
    WeightedAffinityTerm,
)
from tutti.model.keys import POD, GangKey, NodeName, PodKey, Uid
from tutti.model.owners import Job
from tutti.model.queues import Queue
from tutti.model.resources import Resources
from tutti.model.shapes import Shape, Taint, Template
from tutti.state.placed_pods import placed_pod, puts_rules_in_force
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, DemandLevel, Outcome, Problem, Solution

# So much time that the clock ends no search: a plan depends on its input alone.
AMPLE_BUDGET = Budget(seconds=600.0)
NAMESPACE = "ml"
GPU = "nvidia.com/gpu"
UNITS: Mapping[str, int] = {"cpu": 1000, "memory": 2**30, "ephemeral_storage": 2**30}
NAMES: Mapping[str, str] = {"gpu": GPU, "ephemeral_storage": "ephemeral-storage"}
LABELS: Mapping[str, str] = {
    "group": "tutti.dev/pod-group",
    "role": "tutti.dev/role",
    "hostname": "kubernetes.io/hostname",
}

Amount = float


def resources(*, pods: int = 0, **amounts: Amount) -> Resources:
    """Amounts in units that people use."""
    by_resource = {
        NAMES.get(name, name): int(n * UNITS.get(name, 1)) for name, n in amounts.items()
    }
    return Resources.of({**by_resource, "pods": pods})


def shape(**amounts: Amount) -> Shape:
    """What one member asks for; as decoded from a pod, it takes one of the node's pods."""
    return Shape(resources(pods=1, **amounts))


def labels(**by_name: str) -> Labels:
    """Labels by their short names."""
    return tuple(sorted((LABELS.get(key, key), value) for key, value in by_name.items()))


def peers(namespace: str = NAMESPACE, **by_name: str) -> PodSelector:
    """The pods of a namespace that have all of these labels."""
    same = tuple(Requirement(key, "In", (value,)) for key, value in labels(**by_name))
    return PodSelector(same, (namespace,))


def term(topology: str, of: PodSelector) -> AffinityTerm:
    """A term of affinity or anti-affinity."""
    return AffinityTerm(LABELS.get(topology, topology), of)


@dataclass(frozen=True, slots=True)
class NodeBuilder:
    """A node in the making, and whom other schedulers let run there."""

    made: Node
    others: tuple[PlacedPod, ...] = ()

    def labelled(self, **by_name: str) -> "NodeBuilder":
        """Add labels."""
        merged = {**dict(self.made.labels), **dict(labels(**by_name))}
        return self.but(labels=tuple(sorted(merged.items())))

    def hosting(
        self,
        name: str,
        *apart: AffinityTerm,
        namespace: str = NAMESPACE,
        scored_terms: Sequence[WeightedAffinityTerm] = (),
        **by_name: str,
    ) -> "NodeBuilder":
        """Let another scheduler's pod with these labels run there, and keep others away."""
        uid = Uid(f"{namespace}/{name}-uid")
        terms = tuple(sorted(apart, key=term_order))
        pod = PlacedPod(
            uid,
            self.made.name,
            namespace,
            labels(**by_name),
            terms,
            scored_terms=tuple(scored_terms),
        )
        used = self.made.used + resources(pods=1)
        return replace(self.but(used=used), others=(*self.others, pod))

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> "NodeBuilder":
        """Add a taint."""
        return self.but(taints=(*self.made.taints, Taint(key, value, effect)))

    def using(self, *, pods: int = 1, **amounts: Amount) -> "NodeBuilder":
        """Let other schedulers' pods use some of it; rules may count them, but by no label."""
        first, name = len(self.others), self.made.name
        more = (PlacedPod(Uid(f"{name}/other-{first + i}"), name, "others") for i in range(pods))
        used = self.made.used + resources(pods=pods, **amounts)
        return replace(self.but(used=used), others=(*self.others, *more))

    def listening(self, *host_ports: ports.HostPort) -> "NodeBuilder":
        """Let another scheduler's pod use these ports of it."""
        builder = self.using(pods=1)
        return builder.but(
            used=builder.made.used + Resources.of(ports.requested_amounts(host_ports))
        )

    def cordoned(self) -> "NodeBuilder":
        """Take no new pods."""
        return self.but(unschedulable=True)

    def but(self, **changes: object) -> "NodeBuilder":
        """Change fields."""
        return replace(self, made=replace(self.made, **changes))  # type: ignore[arg-type]


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
        own = labels(group=self.key.name, **({"role": role} if role else {}))
        aged = (
            replace(m, group=self.key.name, labels=own, created=float(first + i))
            for i, m in enumerate(more)
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

    def declaring(self, **amounts: Amount) -> "GangBuilder":
        """Let the role that was added last say what its absent members will ask for."""
        *others, last = self.roles
        own = labels(group=self.key.name, role=last.name)
        template = Template(shape(**amounts), own)
        return replace(self, roles=(*others, replace(last, template=template)))

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
                replace(m, node=NodeName(n), bound_at=m.bound_at or 0.0)
                if m.node is None and (n := next(names, ""))
                else m
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

    def listening(self, *host_ports: ports.HostPort) -> "GangBuilder":
        """Let each of its members use these ports of its node."""
        more = Resources.of(ports.requested_amounts(host_ports))
        return self.where(
            lambda m: replace(m, shape=replace(m.shape, requests=m.shape.requests + more))
        )

    def together(self, level: str, *roles: str) -> "GangBuilder":
        """Let its members, or those of roles, be in one domain of a level."""
        rule = DomainRule(LABELS.get(level, level), tuple(sorted(roles)))
        rules = {*self.changes.get("same_domain", ()), rule}  # type: ignore[misc]
        return self.but(same_domain=tuple(sorted(rules)))

    def in_segments(self, size: int, level: str, *roles: str, index: str = "") -> "GangBuilder":
        """Let its members, or those of roles, be in segments, each in one domain of a level."""
        rule = SegmentRule(DomainRule(LABELS.get(level, level), tuple(sorted(roles))), size, index)
        rules = {*self.changes.get("segments", ()), rule}  # type: ignore[misc]
        return self.but(segments=tuple(sorted(rules)))

    def preferring(self, level: str, *roles: str) -> "GangBuilder":
        """Let its members, or those of roles, be in few domains of a level."""
        rule = DomainRule(LABELS.get(level, level), tuple(sorted(roles)))
        rules = {*self.changes.get("preferred_domains", ()), rule}  # type: ignore[misc]
        return self.but(preferred_domains=tuple(sorted(rules)))

    def labelled(self, **by_name: str) -> "GangBuilder":
        """Add labels to all its members."""
        more = dict(labels(**by_name))
        return self.where(
            lambda m: replace(m, labels=tuple(sorted({**dict(m.labels), **more}.items())))
        )

    def near(self, topology: str, of: PodSelector | None = None, *, by: str = "") -> "GangBuilder":
        """Let its members, or those of a role, demand such pods in their domain; its own, if None.

        Required pod affinity, as ``apart`` is required anti-affinity.
        """
        term_of_rule = term(topology, self._own if of is None else of)
        return self._ruled(by, lambda r: replace(r, affinity=_with(r.affinity, term_of_rule)))

    def apart(self, topology: str, of: PodSelector | None = None, *, by: str = "") -> "GangBuilder":
        """Let its members, or those of a role, share no domain with such pods; its own, if None."""
        term_of_rule = term(topology, self._own if of is None else of)
        return self._ruled(
            by, lambda r: replace(r, anti_affinity=_with(r.anti_affinity, term_of_rule))
        )

    def even(
        self,
        topology: str,
        of: PodSelector | None = None,
        *,
        by: str = "",
        skew: int = 1,
        **more: object,
    ) -> "GangBuilder":
        """Let its members, or those of a role, spread such pods evenly; its own, if None."""
        key, counted = LABELS.get(topology, topology), self._own if of is None else of
        constraint = TopologySpread(key, counted, skew, **more)  # type: ignore[arg-type]
        return self._ruled(
            by,
            lambda r: replace(r, spread=tuple(sorted({*r.spread, constraint}, key=spread_order))),
        )

    @property
    def _own(self) -> PodSelector:
        return peers(self.key.namespace, group=self.key.name)

    def _ruled(self, role: str, change: Callable[[InterPodRules], InterPodRules]) -> "GangBuilder":
        return self.where(
            lambda m: (
                replace(m, shape=replace(m.shape, rules=change(m.shape.rules)))
                if role in ("", m.role)
                else m
            )
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
        is_single = self.key.kind == POD
        uid = self.members[0].uid if is_single else Uid(f"{self.key}-uid")
        least = len(self.members) if self.least is None else self.least
        members = tuple(sorted(self.members, key=lambda m: m.key))
        gang = Gang(self.key, uid, least, roles=self.roles, members=members)
        return replace(gang, **self.changes)  # type: ignore[arg-type]


def gang(name: str, namespace: str = NAMESPACE) -> GangBuilder:
    """A PodGroup's gang; it needs all the members that it is given, unless ``needing`` fewer."""
    return GangBuilder(GangKey(namespace, name))


def single(name: str, **amounts: Amount) -> GangBuilder:
    """A pod that names no group."""
    return GangBuilder(GangKey(NAMESPACE, name, POD), (member(name, shape(**amounts)),))


def member(name: str, asks: Shape, *, role: str = "", namespace: str = NAMESPACE) -> Member:
    """A waiting pod."""
    key = PodKey(namespace, name)
    return Member(key, Uid(f"{key}-uid"), "1", asks, created=0.0, role=role)


def reservation(
    of: GangBuilder,
    *entries: tuple[str, str],
    at: float = 0.0,
    slots: Sequence[SlotReservation] = (),
) -> Reservation:
    """A standing Reservation: pairs of a pod's name and a node's."""
    built_gang = of.made
    uids = {m.key.name: m.uid for m in built_gang.members}
    return Reservation(
        gang=built_gang.key,
        uid=built_gang.uid,
        generation=built_gang.generation,
        scheduler="tutti",
        term="term",
        reserved_at=at,
        entries=tuple(
            PodReservation(
                PodKey(built_gang.key.namespace, pod),
                uids.get(pod, Uid(f"{pod}-gone")),
                NodeName(on),
            )
            for pod, on in entries
        ),
        slots=tuple(slots),
    )


def _with(terms: tuple[AffinityTerm, ...], added: AffinityTerm) -> tuple[AffinityTerm, ...]:
    return tuple(sorted({*terms, added}, key=term_order))


def space(name: str, **by_name: str) -> Namespace:
    """A namespace."""
    return Namespace(name, labels(**by_name))


def topology(*levels: str, name: str = "network") -> Topology:
    """A topology of these levels, the widest first."""
    return Topology(name, tuple(LABELS.get(level, level) for level in levels))


def budget(name: str, allowed: int, *, most: int = 0, **by_name: str) -> DisruptionBudget:
    """A PodDisruptionBudget of the pods with these labels."""
    selector = tuple(Requirement(key, "In", (value,)) for key, value in labels(**by_name))
    return DisruptionBudget(NAMESPACE, name, selector, allowed, most)


Part = (
    NodeBuilder | GangBuilder | Reservation | Namespace | Queue | Topology | DisruptionBudget | Job
)


def snapshot_of(*parts: Part, strays: Sequence[Member] = (), at: float = 0.0) -> Snapshot:
    """A Snapshot in canonical order; what bound members use is added to their nodes."""
    gangs = [part.made for part in parts if isinstance(part, GangBuilder)]
    nodes = [part.made for part in parts if isinstance(part, NodeBuilder)]
    reservations = [part for part in parts if isinstance(part, Reservation)]
    members = [m for g in gangs for m in g.members]
    others = [pod for part in parts if isinstance(part, NodeBuilder) for pod in part.others]
    spaces = [part for part in parts if isinstance(part, Namespace)]
    queues = [part for part in parts if isinstance(part, Queue)]
    topologies = [part for part in parts if isinstance(part, Topology)]
    budgets = [part for part in parts if isinstance(part, DisruptionBudget)]
    jobs = {part.key: part for part in parts if isinstance(part, Job)}
    bare = Snapshot(
        taken_at=at,
        nodes=tuple(sorted(_occupied(nodes, members), key=lambda n: n.name)),
        gangs=tuple(sorted(gangs, key=lambda g: g.key)),
        reservations=tuple(
            sorted((r for r in reservations if not r.is_spent), key=lambda r: r.gang)
        ),
        start_records=tuple(sorted((r for r in reservations if r.is_spent), key=lambda r: r.gang)),
        strays=tuple(strays),
        namespaces=tuple(sorted(spaces, key=lambda namespace: namespace.name)),
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        topologies=tuple(sorted(topologies, key=lambda topology: topology.order)),
        budgets=tuple(sorted(budgets, key=str)),
        jobs=jobs or None,
    )
    return _inhabited(bare, others)


def _inhabited(bare: Snapshot, others: Sequence[PlacedPod]) -> Snapshot:
    """With whoever has a node and may count, and the namespaces, if some rule is in force."""
    members = [*(m for g in bare.gangs for m in g.members), *bare.strays]
    templates = (role.template for g in bare.gangs for role in g.roles)
    are_declared = any(t.shape.rules != NO_RULES for t in templates if t is not None)
    guards = [pod for pod in others if pod.anti_affinity or pod.scored_terms]
    if are_declared or any(puts_rules_in_force(m) for m in members):
        pods = [*others, *(pod for m in members if (pod := placed_pod(m)) is not None)]
    elif guards:
        pods = guards
    else:
        return replace(bare, placed_pods=(), namespaces=bare.namespaces if bare.queues else ())
    return replace(bare, placed_pods=tuple(sorted(pods, key=lambda pod: pod.uid)))


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
    """The Snapshot after all of the plan was bound; what is held for absent members stands."""
    where = {
        assignment.uid: assignment.node
        for placement in plan.placements
        for assignment in placement.assignments
    }
    newly = [m for g in before.gangs for m in g.members if m.uid in where]
    bound = {m.uid: replace(m, node=where[m.uid]) for m in newly}
    planned = {placement.uid: placement for placement in plan.placements}
    reserved_gangs = {old.uid for old in before.reservations}
    amended = [
        replace(old, slots=planned[old.uid].slots) if old.uid in planned else old
        for old in before.reservations
    ]
    added = [
        replace(
            reservation(GangBuilder(g.key), at=before.taken_at, slots=planned[g.uid].slots),
            uid=g.uid,
        )
        for g in before.gangs
        if g.uid in planned and g.uid not in reserved_gangs and planned[g.uid].slots
    ]
    standing = [*amended, *added]
    after = replace(
        before,
        reservations=tuple(sorted(standing, key=lambda old: old.gang)),
        lost_reservations=before.lost_reservations - {old.uid for old in standing},
        nodes=tuple(_occupied(before.nodes, list(bound.values()))),
        gangs=tuple(
            replace(g, members=tuple(bound.get(m.uid, m) for m in g.members)) for g in before.gangs
        ),
    )
    ours = {m.uid for g in after.gangs for m in g.members} | {m.uid for m in after.strays}
    return _inhabited(after, [pod for pod in before.placed_pods if pod.uid not in ours])


@dataclass(frozen=True, slots=True)
class Canned:
    """A strategy that answers as best fit does, and says of itself what it was told to."""

    outcome: Outcome
    detail: str = ""
    name: str = "canned"
    bounds: tuple[tuple[DemandLevel, int], ...] = ()

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer with best fit's shares under another outcome; FAILED has none."""
        if self.outcome is Outcome.FAILED:
            return Solution(self.outcome, (), self.detail)
        fields_of_answer = {"outcome": self.outcome, "detail": self.detail, "bounds": self.bounds}
        return replace(BestFit().solve(problem, budget), **fields_of_answer)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Overlooking:
    """A heuristic that sees nothing."""

    name: str = "overlooking"

    def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - spends nothing
        """Admit nobody."""
        return Solution(Outcome.HEURISTIC, ((),) * len(problem.demands))
