"""How many more nodes of an existing kind a gang needs, and which kind takes the fewest.

The kind of a node is what a new node like it would have: allocatable, taints, and the labels that
the gang's rules use. Cordons, and taints that Kubernetes puts on nodes in trouble, are not part of
it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ..filters.node_rules import fits_node
from ..gang import demand, domain_rules
from ..model.cluster import Node, Snapshot
from ..model.inter_pod import HOSTNAME
from ..model.keys import NodeName
from ..model.resources import NOTHING
from ..model.shapes import Shape
from ..planning.compile import capacity, grids
from ..planning.compile.capacity import Fit
from .baseline import Baseline, Counts, goes_before, room_for
from .probes import Prober, ProbeResult, SearchRange, SearchResult, first_yes
from .results import Certainty, MoreNodes

PLANS = 16  # for all kinds together
TROUBLE = "node.kubernetes.io/"  # prefix of the taints of a node in trouble


@dataclass(frozen=True, slots=True)
class _NodeKind:
    """One kind of node, and a range for how many of them the gang needs.

    ``least`` is a lower bound, by counting if ``is_counted``, else 1. ``guess`` is the number by
    counting beside the gangs that go before, within the domains of such a node.
    """

    like: Node
    least: int
    guess: int
    is_counted: bool


def more_nodes(baseline: Baseline, prober: Prober) -> MoreNodes:
    """The fewest nodes of one existing kind that start the gang."""
    topologies = _topologies(baseline)
    examples = kinds(baseline.snapshot.nodes, baseline.shapes, topologies)
    helpful = _helpful_kinds(baseline, examples, topologies)
    best: tuple[int, Node, Certainty] | None = None
    is_cut = False
    prober.allow(PLANS)
    for kind in helpful:
        if best is None or kind.least < best[0]:
            search = _fewest_nodes(baseline, prober, kind, best[0] if best else None)
            is_cut |= search.cut
            if search.number is not None:
                best = search.number, kind.like, search.certainty
    if best is None:
        certainty = Certainty.of(proved=not helpful)
        return MoreNodes(0, NodeName(""), len(examples), certainty, is_cut)
    number, like, certainty = best
    return MoreNodes(number, like.name, len(examples), certainty, is_cut)


def _fewest_nodes(
    baseline: Baseline, prober: Prober, kind: _NodeKind, beaten: int | None
) -> SearchResult:
    """The fewest nodes of this kind that are enough, if fewer than ``beaten``."""

    def ask(number: int) -> ProbeResult | None:
        return prober.verdict(with_nodes(baseline.snapshot, kind.like, number))

    is_proved = kind.is_counted or baseline.plan.proved
    most, guesses = kind.guess + _nodes_taken_before(baseline), [kind.guess]
    if beaten is not None:
        most = beaten - 1
        guesses = [n for n in (kind.guess, most) if n <= most]
    return first_yes(ask, SearchRange(kind.least, most, guesses, is_proved=is_proved))


def _nodes_taken_before(baseline: Baseline) -> int:
    """The new nodes that earlier gangs may take: at most one for each of their members."""
    waiting = {rejection.gang for rejection in baseline.plan.rejections}
    gangs = (gang for gang in baseline.snapshot.gangs if gang.key in waiting)
    return sum(demand.min_members(gang) for gang in gangs if goes_before(gang, baseline.gang))


def kinds(
    nodes: Iterable[Node], shapes: Sequence[Shape], topologies: Collection[str] = ()
) -> Sequence[Node]:
    """One node of every kind, the first by name; labels of ``topologies`` tell kinds apart, too."""
    keys = {key for shape in shapes for key in grids.label_keys(shape)} - {HOSTNAME}
    keys.update(topologies)
    examples: dict[object, Node] = {}
    for node in sorted(nodes, key=lambda example: example.name):
        labels = tuple(label for label in node.labels if label[0] in keys)
        examples.setdefault((node.allocatable, labels, fresh(node, node.name).taints), node)
    return tuple(examples.values())


def _topologies(baseline: Baseline) -> frozenset[str]:
    """The labels of the gang's rules and levels, and of rules about it, except the hostname."""
    rules = [shape.rules for shape in baseline.shapes]
    terms = [term for rule in rules for term in (*rule.affinity, *rule.anti_affinity)]
    terms += [term for pod in baseline.snapshot.placed_pods for term in pod.anti_affinity]
    spread = (spread.topology for rule in rules for spread in rule.spread)
    levels = (rule.level for rule in baseline.gang.required_levels)
    paths = (domain_rules.labels_of(level, baseline.snapshot.topologies) for level in levels)
    labels = chain((term.topology for term in terms), spread, *paths)
    return frozenset(labels) - {HOSTNAME}


def fresh(like: Node, name: NodeName) -> Node:
    """A new node of this kind: ready, empty, and with its own name."""
    labels = tuple((key, name if key == HOSTNAME else value) for key, value in like.labels)
    taints = tuple(taint for taint in like.taints if not taint.key.startswith(TROUBLE))
    return replace(
        like,
        name=name,
        labels=labels,
        taints=taints,
        unschedulable=False,
        ready=True,
        used=NOTHING,
    )


def with_nodes(snapshot: Snapshot, like: Node, number: int) -> Snapshot:
    """The Snapshot with ``number`` more new nodes."""
    names = {node.name for node in snapshot.nodes}
    mark = "new"
    while any(name.startswith(f"{like.name}-{mark}-") for name in names):
        mark += "er"
    width = len(str(number))
    new_names = [NodeName(f"{like.name}-{mark}-{i:0{width}}") for i in range(1, number + 1)]
    added = [fresh(like, name) for name in new_names]
    return replace(snapshot, nodes=tuple(sorted((*snapshot.nodes, *added), key=lambda n: n.name)))


def _helpful_kinds(
    baseline: Baseline, examples: Sequence[Node], topologies: Collection[str]
) -> Sequence[_NodeKind]:
    """The kinds that can help, the most promising first; of equal kinds, only the first."""
    bare = baseline.counts(baseline.free_now)
    node_kinds = []
    sizes: set[object] = set()
    for like in examples:
        fits = _fits_by_shape(baseline, fresh(like, NodeName("")))
        domains = tuple(label for label in like.labels if label[0] in topologies)
        if (*fits.values(), domains) in sizes:
            continue
        sizes.add((*fits.values(), domains))
        least = _by_count(baseline, bare, fits)
        guess = _by_count(baseline, _room_beside(baseline, like), fits)
        if least is not None:
            # If the gang does not fit beside the plan by counting, other gangs may still move to
            # new nodes.
            likely = baseline.want.need if guess is None else guess
            node_kinds.append(_NodeKind(like, max(least, 1), max(likely, 1), is_counted=least > 0))
    return sorted(node_kinds, key=lambda kind: (kind.guess, kind.least, kind.like.name))


def _room_beside(baseline: Baseline, like: Node) -> Counts:
    """The room of each shape, within the domains of this node if its members must be in one."""
    base, roles = baseline.base, dict[Shape, set[str]]()
    for member in baseline.want.members:
        roles.setdefault(member.shape, set()).add(member.role)
    counts = {}
    for shape, own in roles.items():
        free = baseline.free_for_gang.copy()
        for rule in baseline.gang.same_domain:
            if all(domain_rules.covers(rule, role) for role in own):
                labels = domain_rules.labels_of(rule.level, base.topologies)
                domains = base.domains.domains(labels)
                free[domains != domains[baseline.index[like.name]]] = 0
                free[domains < 0] = 0
        counts[shape] = room_for(base, shape, free)
    return counts


def _fits_by_shape(baseline: Baseline, node: Node) -> Mapping[Shape, int]:
    """The number of members of each shape that one such node can run."""
    return {shape: _fits(shape, node) for shape in baseline.shapes}


def _fits(shape: Shape, node: Node) -> int:
    if fits_node(shape, node) is not None:
        return 0
    requests = grids.footprint(shape).amounts
    return max(0, min(node.offers(name) // n for name, n in requests))


def _by_count(baseline: Baseline, room: Counts, fits: Mapping[Shape, int]) -> int | None:
    """The fewest nodes with which each shape by itself has room; None if no number is enough."""

    def is_enough(number: int) -> bool:
        fits_by_shape = {
            shape: Fit(fit.members + number * fits[shape], fit.nodes) for shape, fit in room.items()
        }
        return capacity.short(fits_by_shape, baseline.want) is None

    no, yes = -1, baseline.want.need
    if not is_enough(yes):
        return None
    while yes - no > 1:
        middle = (no + yes) // 2
        no, yes = (no, middle) if is_enough(middle) else (middle, yes)
    return yes
