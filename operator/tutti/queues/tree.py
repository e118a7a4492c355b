"""Queues as a tree below the built-in root, and the faults in their declarations.

A fault never removes a guarantee and never lifts a limit: a queue whose parent cannot be used hangs
from the root and starts nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from ..gang.findings import HoldCause
from ..model.keys import Uid
from ..model.queues import ROOT, Queue, QueueMode, Stop


class Fault(StrEnum):
    """What can be wrong with a queue, as its conditions name it."""

    RESERVED_NAME = "ReservedName"
    UNKNOWN_PARENT = "UnknownParent"
    CYCLE = "Cycle"
    CHILDREN_EXCEED_PARENT = "ChildrenExceedParent"
    EXCEEDS_PARENT = "ExceedsParent"  # only of a queue in shadow
    EXCEEDS_CLUSTER = "ExceedsCluster"
    LIMIT_BELOW_GUARANTEE = "LimitBelowGuarantee"
    OMITS_RESOURCE = "OmitsResource"  # a resource that some other queue guarantees
    UNREADABLE = "Unreadable"  # fields that count for nothing


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One fault of a queue.

    ``names`` are queues, resources or fields; ``amount`` and ``bound`` are in the unit of the
    resource.
    """

    queue: str
    fault: Fault
    names: tuple[str, ...] = ()
    amount: int = 0
    bound: int = 0


@dataclass(frozen=True, slots=True)
class QueueTree:
    """The queues that can be used, by name, the root included; parents lead to the root."""

    queues: Mapping[str, Queue]
    parents: Mapping[str, str]  # the root has none
    broken: frozenset[str] = frozenset()  # hang from the root because their parent cannot be used
    lines: tuple[str, ...] = ()  # the resources that some queue guarantees, sorted
    guarantees: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by queue and line
    children: Mapping[str, Sequence[str]] = field(default_factory=dict)  # sorted by name
    depths: Mapping[str, int] = field(default_factory=dict)  # below the root
    from_the_leaves: tuple[str, ...] = ()  # all queues, each after those below it
    # Each queue and its ancestors, from the queue up to the root.
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # 0 for a leaf; the tier of an only child; else one more than the highest tier of the children.
    tiers: Mapping[str, int] = field(default_factory=dict)
    held: frozenset[str] = frozenset()  # start nothing
    # When the first drain of a queue or a queue above it began, in seconds since the epoch;
    # infinite if none drains.
    draining_since: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, queues: Iterable[Queue]) -> "QueueTree":
        """Hang the queues below the root; a queue with the reserved name ``root`` is left out."""
        known = {queue.name: queue for queue in queues if queue.name != ROOT}
        parents = {queue.name: queue.parent or ROOT for queue in known.values()}
        lost = {name for name, parent in parents.items() if parent != ROOT and parent not in known}
        broken = frozenset(lost | _on_cycles(parents))
        parents.update(dict.fromkeys(broken, ROOT))
        children: dict[str, list[str]] = {name: [] for name in (*known, ROOT)}
        for name in sorted(known):
            children[parents[name]].append(name)
        known[ROOT] = Queue(ROOT, Uid(""))
        lines = {
            line
            for queue in known.values()
            if queue.mode is QueueMode.ACTIVE
            for line, n in queue.guaranteed
            if n > 0
        }
        depths = {ROOT: 0}
        from_the_root = [ROOT]
        for name in from_the_root:
            depths.update(dict.fromkeys(children[name], depths[name] + 1))
            from_the_root += children[name]
        order = tuple(sorted(known, key=lambda name: (-depths[name], name)))
        paths: dict[str, tuple[str, ...]] = {ROOT: (ROOT,)}
        for name in from_the_root[1:]:
            paths[name] = (name, *paths[parents[name]])
        tree = cls(known, parents, broken, tuple(sorted(lines)), {}, children, depths, order, paths)
        held, draining = _stops(tree)
        return replace(
            tree,
            guarantees=_guarantees(tree),
            tiers=_tiers(tree),
            held=held,
            draining_since=draining,
        )

    @property
    def height(self) -> int:
        """The depth of the deepest queue."""
        return self.depths[self.from_the_leaves[0]]

    @property
    def covering_tiers(self) -> Sequence[int]:
        """The tiers of the queues that guarantee anything, the lowest first."""
        covering = (queue for queue, lines in self.guarantees.items() if any(lines.values()))
        return sorted({self.tiers[queue] for queue in covering})

    def is_leaf(self, name: str) -> bool:
        """Whether gangs may belong to the queue: it is the root, or has no children."""
        return name == ROOT or not self.children[name]

    def hold_cause(self, name: str) -> HoldCause | None:
        """Why the queue itself starts no gang, whatever queues above it do; None if it may."""
        queue = self.queues[name]
        if queue.is_terminating:
            return HoldCause.DELETION
        if name in self.broken:
            return HoldCause.PARENT
        return HoldCause.STOP if queue.stop is Stop.HOLD else None

    def stop_of(self, name: str, created: float) -> Stop:
        """The stop that keeps a gang created at this time from starting in the queue, if any.

        A stop also applies to all queues below its queue. A queue that drains still starts gangs
        that were created before the drain began. A queue that is being deleted or is broken counts
        as a queue with the stop ``HOLD``.
        """
        if name in self.held:
            return Stop.HOLD
        since = self.draining_since[name]
        return Stop.DRAIN if since < inf and created >= since else Stop.NONE


def findings(queues: Sequence[Queue], capacity: Mapping[str, int]) -> Sequence[Finding]:
    """All faults of the queues, sorted; ``capacity`` is the total of all nodes, by resource.

    A queue in shadow has the faults that it would have or cause if no queue were in shadow. It
    causes no fault of another queue.
    """
    in_shadow = {queue.name for queue in queues if queue.mode is QueueMode.SHADOW}
    faults = _findings(queues, capacity)
    if not in_shadow:
        return sorted(faults)
    active = [replace(queue, mode=QueueMode.ACTIVE) for queue in queues]
    tried = _findings(active, capacity)
    own = (fault for fault in tried if fault.queue in in_shadow)
    caused = (
        Finding(queue.name, Fault.EXCEEDS_PARENT, fault.names, fault.amount, fault.bound)
        for fault in tried
        if fault.fault is Fault.CHILDREN_EXCEED_PARENT
        and fault.queue not in in_shadow
        and fault not in faults
        for queue in queues
        if queue.name in in_shadow and queue.parent == fault.queue
        if any(name in fault.names and n for name, n in queue.guaranteed)
    )
    return sorted([*(fault for fault in faults if fault.queue not in in_shadow), *own, *caused])


def _findings(queues: Sequence[Queue], capacity: Mapping[str, int]) -> Sequence[Finding]:
    tree = QueueTree.of(queues)
    faults = [Finding(queue.name, Fault.RESERVED_NAME) for queue in queues if queue.name == ROOT]
    cycles = _on_cycles({queue.name: queue.parent for queue in queues})
    for name in tree.broken:
        fault = Fault.CYCLE if name in cycles else Fault.UNKNOWN_PARENT
        faults.append(Finding(name, fault, (tree.queues[name].parent,)))
    for queue in tree.queues.values():
        faults += _own_findings(tree, queue)
        faults += _findings_of_children(tree, queue, capacity)
    return faults


def _own_findings(tree: QueueTree, queue: Queue) -> Iterator[Finding]:
    """The faults in the declaration of one queue itself."""
    if queue.unreadable:
        yield Finding(queue.name, Fault.UNREADABLE, queue.unreadable)
    guaranteed, limits = dict(queue.guaranteed), dict(queue.limits)
    omitted = tuple(line for line in tree.lines if line not in guaranteed)
    if guaranteed and omitted:
        yield Finding(queue.name, Fault.OMITS_RESOURCE, omitted)
    for line, n in guaranteed.items():
        if limits.get(line, n) < n:
            yield Finding(queue.name, Fault.LIMIT_BELOW_GUARANTEE, (line,), n, limits[line])


def _findings_of_children(
    tree: QueueTree, queue: Queue, capacity: Mapping[str, int]
) -> Iterator[Finding]:
    """The faults where children guarantee more than their parent, or than the cluster has.

    Queues that hang from the root because their parent cannot be used do not count here.
    """
    children = [child for child in tree.children[queue.name] if child not in tree.broken]
    for line in tree.lines:
        total = sum(tree.guarantees[child][line] for child in children)
        if queue.name == ROOT and total > (bound := capacity.get(line, 0)):
            for child in children:
                if tree.guarantees[child][line]:
                    yield Finding(child, Fault.EXCEEDS_CLUSTER, (line,), total, bound)
        elif queue.name != ROOT and total > tree.guarantees[queue.name][line]:
            bound = tree.guarantees[queue.name][line]
            yield Finding(queue.name, Fault.CHILDREN_EXCEED_PARENT, (line,), total, bound)


def _on_cycles(parents: Mapping[str, str]) -> frozenset[str]:
    """The queues that are their own ancestors."""
    on_cycles: set[str] = set()
    visited: set[str] = set()
    for name in parents:
        path: list[str] = []
        step = name
        while step in parents and step not in visited:
            visited.add(step)
            path.append(step)
            step = parents[step]
        if step in path:
            on_cycles.update(path[path.index(step) :])
    return frozenset(on_cycles)


def _tiers(tree: QueueTree) -> Mapping[str, int]:
    tiers: dict[str, int] = {}
    for queue in tree.from_the_leaves:
        children = tree.children[queue]
        tiers[queue] = max((tiers[child] for child in children), default=0) + (len(children) > 1)
    return tiers


def _stops(tree: QueueTree) -> tuple[frozenset[str], Mapping[str, float]]:
    """The queues that start nothing, and since when each queue drains."""
    held: set[str] = set()
    draining: dict[str, float] = {}
    for name in reversed(tree.from_the_leaves):
        queue, parent = tree.queues[name], tree.parents.get(name, ROOT)
        if tree.hold_cause(name) is not None or parent in held:
            held.add(name)
        since = queue.draining_since if queue.stop is Stop.DRAIN else None
        draining[name] = min(inf if since is None else since, draining.get(parent, inf))
    return frozenset(held), draining


def _guarantees(tree: QueueTree) -> Mapping[str, Mapping[str, int]]:
    """What each queue guarantees on each line.

    Where a queue names no amount, it guarantees what its children guarantee together, which is
    nothing for a leaf. The root guarantees nothing.
    """
    guarantees: dict[str, Mapping[str, int]] = {}
    for name in tree.from_the_leaves:
        queue = tree.queues[name]
        declared = dict(queue.guaranteed if queue.mode is QueueMode.ACTIVE else ())
        if name == ROOT:
            declared = dict.fromkeys(tree.lines, 0)
        guarantees[name] = {
            line: declared.get(line, sum(guarantees[child][line] for child in tree.children[name]))
            for line in tree.lines
        }
    return guarantees
