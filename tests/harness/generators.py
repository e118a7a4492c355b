"""Snapshots by chance, for properties that must hold for all of them.

Small on purpose: a few nodes and gangs that compete for little room reach the interesting cases
far sooner than large clusters do, and shrink to something that a person can read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tutti.kube.codec.inter_pod import term_order
from tutti.model.cluster import (
    Gang,
    Member,
    Node,
    OnTimeout,
    Phase,
    Reservation,
    SlotReservation,
    Snapshot,
)
from tutti.model.inter_pod import PodSelector, Requirement, TopologySpread, WeightedAffinityTerm
from tutti.model.keys import NodeName
from tutti.model.ports import HostPort
from tutti.model.resources import NOTHING
from tutti.model.shapes import Effect, NodeTerm, Preferences, Shape, Taint, Template, Toleration

from .builders import (
    GangBuilder,
    NodeBuilder,
    gang,
    node,
    peers,
    reservation,
    single,
    snapshot_of,
    space,
    term,
)

POOLS = ("a", "b")
ZONES = ("z1", "z2")
APPS = ("x", "y")
SPACES = ("ml", "other")
ROLES = ("driver", "worker")
PORTS = (HostPort(80), HostPort(80, ip="10.0.0.1"), HostPort(80, ip="::1"), HostPort(80, "UDP"))

TROUBLES: Mapping[str, Callable[[NodeBuilder], NodeBuilder]] = {
    "tainted": lambda builder: builder.tainted("dedicated", "gpu"),
    "cordoned": lambda builder: builder.cordoned(),
    "unready": lambda builder: builder.but(ready=False),
    "used": lambda builder: builder.using(cpu=1, memory=1),
    "overdrawn": lambda builder: builder.using(cpu=9),
    "listening": lambda builder: builder.listening(HostPort(80)),
    "listening at two": lambda builder: builder.listening(*PORTS[1:3]).listening(PORTS[1]),
}
MISHAPS: Mapping[str, Mapping[str, object]] = {
    "terminating": {"terminating": True},
    "gated": {"gates": ("hold",)},
    "unmodelled": {"unsupported_fields": ("spec.affinity.podAffinity",)},
    "succeeded": {"phase": Phase.SUCCEEDED},
    "failed": {"phase": Phase.FAILED},
}


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeBuilder:
    """A small node, now and then labelled, tainted, cordoned, not ready or in use by others."""
    builder = node(
        name,
        cpu=draw(st.integers(1, 8)),
        memory=draw(st.integers(2, 8)),
        gpu=draw(st.sampled_from([0, 0, 2, 4])),
        pods=draw(st.sampled_from([110, 110, 110, 110, 3, 1])),
    )
    if draw(st.booleans()):
        builder = builder.labelled(pool=draw(st.sampled_from(POOLS)))
    trouble = draw(st.sampled_from(["none"] * 6 + list(TROUBLES)))
    return TROUBLES[trouble](builder) if trouble in TROUBLES else builder


@st.composite
def gangs(draw: st.DrawFn, name: str, on: Sequence[str]) -> GangBuilder:
    """A gang of up to five members, in one or two kinds, some of them in any state."""
    if draw(st.integers(0, 5)) == 0:
        builder = single(name, cpu=draw(st.integers(0, 3)), gpu=draw(st.integers(0, 1)))
    elif draw(st.booleans()):
        builder = gang(name)
        for _ in range(draw(st.integers(1, 2))):
            count = draw(st.integers(1, 3))
            cpu, gpu = draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 0, 1, 2]))
            builder = builder.of(count, cpu=cpu, gpu=gpu, memory=1)
        builder = builder.needing(draw(st.integers(1, len(builder.members))))
    else:
        builder = gang(name)
        for role in ROLES:
            least, more = draw(st.integers(0, 2)), draw(st.integers(0, 1))
            builder = builder.role(role, least, least + more, cpu=draw(st.integers(0, 2)))
            if draw(st.integers(0, 3)) == 0:
                builder = builder.at_most(max(least, draw(st.integers(1, 2))))
            if draw(st.integers(0, 2)) == 0:
                builder = builder.declaring(cpu=draw(st.integers(0, 2)))
        least = sum(role.min_member for role in builder.roles)
        builder = builder.needing(draw(st.integers(max(least, 1), max(least, 1) + 1)))
    builder = builder.priority(draw(st.integers(0, 2))).but(created=float(draw(st.integers(0, 3))))
    if not builder.made.is_single:
        builder = _with_choices(draw, builder)
    builder = _with_rules(draw, builder)
    if draw(st.integers(0, 8)) == 0:
        builder = builder.but(terminating=True)
    return _disturbed(draw, builder, on)


def _with_rules(draw: st.DrawFn, builder: GangBuilder) -> GangBuilder:
    """What all its members ask of the nodes that they run on, besides room."""
    if draw(st.integers(0, 3)) == 0:
        builder = builder.shaped(node_selector=(("pool", draw(st.sampled_from(POOLS))),))
    if draw(st.integers(0, 3)) == 0:
        builder = builder.shaped(tolerations=(Toleration("dedicated", "Exists"),))
    if draw(st.integers(0, 4)) == 0:
        builder = builder.listening(*draw(st.sets(st.sampled_from(PORTS), min_size=1)))
    return builder


def _with_choices(draw: st.DrawFn, builder: GangBuilder) -> GangBuilder:
    """What a PodGroup may say besides how large it is."""
    if draw(st.integers(0, 5)) == 0:
        builder = builder.of_class("named", draw(st.sampled_from([None, 0, 1, 2])))
    if draw(st.integers(0, 5)) == 0:
        builder = builder.but(timeout_seconds=3600.0, on_timeout=draw(st.sampled_from(OnTimeout)))
    return builder


def _disturbed(draw: st.DrawFn, builder: GangBuilder, on: Sequence[str]) -> GangBuilder:
    """Let some members be in another state than waiting."""
    states = ["waiting"] * 8 + list(MISHAPS) + (["bound"] * 2 if on else [])

    def turned(member: Member) -> Member:
        state = draw(st.sampled_from(states))
        if state == "bound":
            return replace(member, node=NodeName(draw(st.sampled_from(on))))
        return replace(member, **MISHAPS.get(state, {}))  # type: ignore[arg-type]

    return builder.where(turned) if draw(st.booleans()) else builder


@st.composite
def standing(draw: st.DrawFn, of: GangBuilder, on: Sequence[str]) -> Reservation:
    """A standing Reservation of some members of a gang, and of slots, on any nodes."""
    names = [m.key.name for m in of.members if draw(st.booleans())]
    entries = [(name, draw(st.sampled_from(on))) for name in names]
    slots = [
        SlotReservation(NodeName(draw(st.sampled_from(on))), "worker", draw(st.integers(1, 2)))
    ]
    return reservation(
        of,
        *entries,
        at=float(draw(st.integers(0, 2))),
        slots=slots if draw(st.booleans()) else (),
    )


KEYS = ("pool", "n", "zone", "absent")
VALUES = ("a", "b", "1", "07", "-3", "9" * 30, "")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Else")
TAINTED = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "dedicated", "n")

requirements = st.builds(
    Requirement,
    st.sampled_from(KEYS),
    st.sampled_from(OPERATORS),
    st.lists(st.sampled_from(VALUES), max_size=3).map(tuple),
)
fields = st.builds(
    Requirement,
    st.sampled_from(["metadata.name", "metadata.name", "else"]),
    st.sampled_from(OPERATORS),
    st.lists(st.sampled_from(["n0", "n1", ""]), max_size=2).map(tuple),
)
node_terms = st.builds(
    NodeTerm,
    st.lists(requirements, max_size=3).map(tuple),
    st.sampled_from([0, 0, 1, 2]).flatmap(lambda n: st.lists(fields, max_size=n).map(tuple)),
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", *TAINTED]),
    st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "Else"]),
    st.sampled_from(VALUES),
    st.sampled_from(["", *(effect.value for effect in Effect)]),
)
taints = st.builds(
    Taint, st.sampled_from(TAINTED), st.sampled_from(VALUES), st.sampled_from(Effect)
)


@st.composite
def demanding(draw: st.DrawFn) -> Shape:
    """A shape that asks much of its node, with or without sense, but for room."""
    builder = single("any").labelled(app="x")
    if draw(st.integers(0, 3)) == 0:
        builder = builder.near(draw(st.sampled_from(KEYS)))
    if draw(st.integers(0, 3)) == 0:
        builder = builder.even(draw(st.sampled_from(KEYS)))
    chosen = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2)
    ways = st.lists(st.lists(requirements, max_size=2).map(tuple), max_size=2).map(tuple)
    return replace(
        builder.members[0].shape,
        requests=NOTHING,
        node_selector=tuple(sorted(draw(st.just({}) | chosen).items())),
        required=draw(st.none() | st.lists(node_terms, max_size=4).map(tuple)),
        tolerations=tuple(draw(st.lists(tolerations, max_size=4))),
        volume_reach=tuple(draw(st.just([]) | st.lists(ways, max_size=2))),
        preferences=Preferences(
            node_affinity=tuple(
                draw(st.lists(st.tuples(node_terms, st.integers(1, 9)), max_size=3))
            )
        ),
    )


@st.composite
def ruled_nodes(draw: st.DrawFn) -> Node:
    """A node that such a shape may or may not run on."""
    labels = draw(st.dictionaries(st.sampled_from(KEYS[:3]), st.sampled_from(VALUES)))
    return replace(
        node("any").made,
        labels=tuple(sorted(labels.items())),
        taints=tuple(draw(st.lists(taints, max_size=2))),
        unschedulable=draw(st.integers(0, 4)) == 0,
        ready=draw(st.integers(0, 4)) > 0,
    )


TOPOLOGIES = st.sampled_from(["hostname", "zone"])


@st.composite
def counted(draw: st.DrawFn) -> PodSelector:
    """Whom a rule is about: pods by label, of one namespace, of some, of all; or nobody."""
    app = draw(st.sampled_from(APPS))
    of_app = peers(draw(st.sampled_from(SPACES)), app=app)
    match draw(st.sampled_from(["app", "app", "app", "others", "labelled", "all", "nobody"])):
        case "others":
            return replace(of_app, selector=(Requirement("app", "NotIn", (app,)),))
        case "labelled":
            spaces = (Requirement("team", "In", ("a",)),)
            return replace(of_app, namespaces=(), namespace_labels=spaces)
        case "all":
            return PodSelector((), (), ())
        case "nobody":
            return replace(of_app, selector=None)
        case _:
            return of_app


@st.composite
def inhabited(draw: st.DrawFn, builder: NodeBuilder) -> NodeBuilder:
    """The node in a zone or in none, with up to two labelled pods of other schedulers."""
    builder = builder.labelled(hostname=str(builder.made.name))
    if draw(st.integers(0, 4)):
        builder = builder.labelled(zone=draw(st.sampled_from(ZONES)))
    for i in range(draw(st.sampled_from([0, 0, 1, 2]))):
        apart = [term(draw(TOPOLOGIES), draw(counted()))] if draw(st.integers(0, 4)) == 0 else []
        builder = builder.hosting(
            f"{builder.made.name}-{i}",
            *apart,
            namespace=draw(st.sampled_from(SPACES)),
            app=draw(st.sampled_from(APPS)),
        )
    return builder


@st.composite
def ruled(draw: st.DrawFn, builder: GangBuilder) -> GangBuilder:
    """The gang labelled, and now and then with rules for its members, or for those of a role."""
    builder = builder.labelled(app=draw(st.sampled_from(APPS)))
    for kind in draw(st.sampled_from([[], [], ["apart"], ["near"], ["even"], ["near", "apart"]])):
        by = draw(st.sampled_from(["", "", "worker"]))
        of = draw(st.none() | counted())
        topology = draw(TOPOLOGIES)
        match kind:
            case "apart":
                builder = builder.apart(topology, of, by=by)
            case "near":
                builder = builder.near(topology, of, by=by)
            case _:
                own = None if of is None else replace(of, namespaces=("ml",), namespace_labels=None)
                own = None if own is None or own.selector == () else own
                builder = builder.even(
                    topology,
                    own,
                    by=by,
                    skew=draw(st.integers(1, 2)),
                    min_domains=draw(st.sampled_from([1, 1, 2, 3])),
                    honors_node_affinity=draw(st.booleans()),
                    honors_node_taints=draw(st.booleans()),
                )
    return builder


@st.composite
def growing(draw: st.DrawFn) -> Snapshot:
    """Gangs whose further members are counted by rules that they have not themselves, roomy.

    Whole gangs, further members and lower priorities are decided one after the other, and each may
    break what was decided before: there is room nearly everywhere, so the rules alone forbid it.
    """
    nodes = [draw(inhabited(node(f"n{i}", cpu=draw(st.integers(1, 6))))) for i in range(4)]
    builders = []
    for i in range(draw(st.integers(1, 3))):
        builder = gang(f"g{i}")
        for role in ROLES:
            least = draw(st.integers(0, 2))
            builder = builder.role(role, least, least + draw(st.integers(0, 3)), cpu=1)
        for role in draw(st.lists(st.sampled_from(ROLES), max_size=2)):
            who = peers("ml", app="x") if draw(st.booleans()) else draw(counted())
            if draw(st.booleans()):
                builder = builder.near(draw(TOPOLOGIES), who, by=role)
            elif who.selector and who.namespaces:
                builder = builder.even(draw(TOPOLOGIES), who, by=role, skew=draw(st.integers(1, 2)))
            else:
                builder = builder.apart(draw(TOPOLOGIES), who, by=role)
        builder = builder.labelled(app=draw(st.sampled_from(["x", *APPS])))
        least = sum(role.min_member for role in builder.roles)
        builders.append(builder.needing(max(least, 1)).priority(draw(st.integers(0, 1))))
    return snapshot_of(*nodes, *builders, space("ml"), space("other", team="a"))


@st.composite
def inviting(draw: st.DrawFn, builder: NodeBuilder) -> NodeBuilder:
    """The node with a taint that would rather not, or with likings of others' pods there."""
    if draw(st.integers(0, 2)) == 0:
        builder = builder.tainted(
            draw(st.sampled_from(["dedicated", "busy"])), effect="PreferNoSchedule"
        )
    others = tuple(
        replace(pod, scored_terms=draw(likings())) if draw(st.booleans()) else pod
        for pod in builder.others
    )
    return replace(builder, others=others)


@st.composite
def likings(draw: st.DrawFn) -> tuple[WeightedAffinityTerm, ...]:
    """Preferred affinity and anti-affinity, of one term or two."""
    weights = st.sampled_from([1, 50, -1, -50])
    terms = draw(st.lists(st.builds(term, TOPOLOGIES, counted()), max_size=2, unique=True))
    return tuple(
        WeightedAffinityTerm(rated_term, draw(weights))
        for rated_term in sorted(terms, key=term_order)
    )


@st.composite
def wishing(draw: st.DrawFn, builder: GangBuilder) -> GangBuilder:
    """The gang with wishes for all its members, or for some of them."""
    if draw(st.integers(0, 2)) == 0:
        return builder
    pool = NodeTerm((Requirement("pool", "In", (draw(st.sampled_from(POOLS)),)),))
    spread = TopologySpread(
        term(draw(TOPOLOGIES), peers()).topology, peers(app=draw(st.sampled_from(APPS))), 1
    )
    wishes = Preferences(
        ((pool, draw(st.integers(1, 3))),) if draw(st.booleans()) else (),
        draw(likings()),
        (spread,) if draw(st.booleans()) else (),
    )
    return builder.where(
        lambda m: (
            replace(m, shape=replace(m.shape, preferences=wishes)) if draw(st.booleans()) else m
        )
    )


@st.composite
def snapshots(draw: st.DrawFn, *, with_rules: bool = False, with_wishes: bool = False) -> Snapshot:
    """A cluster of up to four nodes and five gangs, some of them with a standing Reservation.

    With rules, pods have labels, others' pods run there, and most often some rule between pods
    is in force. Wishes come with rules.
    """
    names = [f"n{i}" for i in range(draw(st.sampled_from([0, 1, 2, 2, 3, 3, 4])))]
    all_nodes = [draw(nodes(name)) for name in names]
    all_gangs = [draw(gangs(f"g{i}", names)) for i in range(draw(st.sampled_from([1, 2, 3, 4, 5])))]
    reservations = [
        draw(standing(builder, [*names, "gone"]))
        for builder in all_gangs
        if not builder.made.is_single and draw(st.integers(0, 5)) == 0
    ]
    spaces = []
    if with_rules:
        all_nodes = [draw(inhabited(builder)) for builder in all_nodes]
        all_gangs = [draw(ruled(builder)) for builder in all_gangs]
        spaces = [space("ml"), space("other", team=draw(st.sampled_from(["a", "b"])))]
    if with_wishes:
        all_nodes = [draw(inviting(builder)) for builder in all_nodes]
        all_gangs = [draw(wishing(builder)) for builder in all_gangs]
    # Members and gangs were created within the first seconds: by then, some have waited too long.
    at = draw(st.sampled_from([0.0, 3602.0, 9e9]))
    return snapshot_of(*all_nodes, *all_gangs, *reservations, *spaces, at=at)


@st.composite
def shuffled(draw: st.DrawFn, of: Snapshot) -> Snapshot:
    """The same Snapshot with everything in another order."""

    def mixed(gang: Gang) -> Gang:
        return replace(gang, members=tuple(draw(st.permutations(gang.members))))

    nodes: Sequence[Node] = draw(st.permutations(of.nodes))
    return replace(
        of,
        nodes=tuple(nodes),
        gangs=tuple(mixed(gang) for gang in draw(st.permutations(of.gangs))),
        reservations=tuple(draw(st.permutations(of.reservations))),
    )


@st.composite
def crowded(draw: st.DrawFn) -> Snapshot:
    """More than there is room for: old and new gangs of a few priorities, some of them running."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    room = [node(n, cpu=draw(st.integers(2, 6)), gpu=draw(st.integers(0, 3))) for n in names]
    gangs = []
    for i in range(draw(st.integers(4, 8))):
        builder = gang(f"g{i}")
        for _ in range(draw(st.integers(1, 2))):
            cpu, gpu = draw(st.integers(1, 4)), draw(st.sampled_from([0, 0, 1, 2]))
            builder = builder.of(draw(st.integers(1, 3)), cpu=cpu, gpu=gpu)
        kind = draw(st.sampled_from(["waiting"] * 4 + ["elastic", "running"]))
        if kind == "elastic":
            builder = builder.needing(draw(st.integers(1, len(builder.members))))
        if kind == "running":
            builder = builder.bound_on(*(draw(st.sampled_from(names)) for _ in builder.members))
        created = draw(st.sampled_from([0.0, 5000.0])) + i
        gangs.append(builder.priority(draw(st.sampled_from([0, 0, 1, 1, 2]))).but(created=created))
    return snapshot_of(*room, *gangs, at=8000.0)


@st.composite
def declaring(draw: st.DrawFn) -> Snapshot:
    """Gangs most of whose members do not exist yet, with rules and wishes, for too little room."""
    nodes = [draw(inhabited(node(f"n{i}", cpu=draw(st.integers(1, 6))))) for i in range(4)]
    builders = []
    for i in range(draw(st.integers(1, 4))):
        least = draw(st.integers(1, 5))
        builder = gang(f"g{i}").role("driver", 1, cpu=1).role("worker", least, cpu=1)
        builder = builder.needing(draw(st.integers(1, least + 2))).but(created=float(i))
        builder = draw(ruled(builder)) if draw(st.booleans()) else builder.labelled(app="x")
        builder = draw(wishing(builder)) if draw(st.booleans()) else builder
        builders.append(_declared(builder, draw(st.integers(0, least - 1))))
    builders = [builder.priority(draw(st.integers(0, 1))) for builder in builders]
    return snapshot_of(*nodes, *builders, space("ml"), space("other", team="a"))


def _declared(builder: GangBuilder, workers_there: int) -> GangBuilder:
    """The gang with so many workers; what the last of them is like is said by the role."""
    driver, *workers = builder.members
    like = Template(workers[-1].shape, workers[-1].labels)
    roles = tuple(
        replace(role, template=like) if role.name == "worker" else role for role in builder.roles
    )
    return replace(builder, members=(driver, *workers[:workers_there]), roles=roles)


@st.composite
def awaiting(draw: st.DrawFn) -> Snapshot:
    """Gangs that have begun and await members, of which some came and may not take every slot.

    Time may be up for the others, and somebody may have deleted a Reservation.
    """
    cpu_left = {f"n{i}": draw(st.integers(1, 5)) for i in range(draw(st.integers(1, 4)))}
    pools = {name: draw(st.sampled_from(POOLS)) for name in cpu_left}
    room = [node(name, cpu=cpu).labelled(pool=pools[name]) for name, cpu in cpu_left.items()]
    room = [builder.cordoned() if draw(st.integers(0, 7)) == 0 else builder for builder in room]
    begun, reservations = [], []
    for i in range(draw(st.integers(1, 3))):
        least = draw(st.integers(1, 4))
        builder = gang(f"g{i}").role("driver", 1, cpu=1)
        workers = draw(st.integers(0, least + 1))
        builder = builder.role("worker", least, workers, cpu=1).declaring(cpu=1)
        on = draw(st.sampled_from(sorted(cpu_left)))
        cpu_left[on] -= 1
        builder = builder.bound_on(on).needing(1 + least)
        begun.append(builder.where(lambda member: draw(arrived(member))))
        slots = {name: draw(st.integers(0, max(0, min(2, n)))) for name, n in cpu_left.items()}
        cpu_left = {name: n - slots[name] for name, n in cpu_left.items()}
        there = [SlotReservation(NodeName(name), "worker", n) for name, n in slots.items() if n]
        reservations.append(reservation(builder, at=float(i), slots=there))
    gone = [r for r in reservations if r.slots and draw(st.integers(0, 3)) == 0]
    at = draw(st.sampled_from([10.0, 9e9]))
    bare = snapshot_of(*room, *begun, *(r for r in reservations if r not in gone), at=at)
    return replace(bare, lost_reservations=frozenset(r.uid for r in gone))


@st.composite
def arrived(draw: st.DrawFn, member: Member) -> Member:
    """The member as it is, on one pool of nodes alone, or larger than its role declares."""
    if member.node is not None:
        return member
    pool = draw(st.sampled_from([(), (), *((("pool", name),) for name in POOLS)]))
    shape = replace(member.shape, node_selector=pool)
    if draw(st.integers(0, 5)) == 0:
        shape = replace(shape, requests=shape.requests + shape.requests)
    return replace(member, shape=shape)
