"""The nodes with the used amounts of each: one immutable value per node.

A Snapshot computes only the nodes that changed since the last Snapshot, even if there are 5,000
nodes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..model.cluster import Node
from ..model.keys import NodeName, Uid
from ..model.resources import NOTHING, Resources


class VolumeUsage(NamedTuple):
    """How many volumes of each limited driver a node offers, and how many are used."""

    offered: Resources
    used: Resources


NOTHING_ATTACHED = VolumeUsage(NOTHING, NOTHING)


@dataclass(slots=True)
class _Usage:
    """The amounts that each pod uses of one node, and their sum."""

    pods: dict[Uid, Resources] = field(default_factory=dict)
    total: Resources | None = NOTHING  # None: outdated


class NodeUsage:
    """The nodes by name, and the pods by node, also on nodes that are not known."""

    def __init__(
        self, attached: Callable[[Node], VolumeUsage] = lambda _: NOTHING_ATTACHED
    ) -> None:
        """``attached`` gives the volumes of a node, which add to the requests of its pods."""
        self._attached = attached
        self._known: dict[NodeName, tuple[Uid, Node]] = {}  # as the API server shows each node
        self._place: dict[Uid, NodeName] = {}  # the node whose room each pod uses
        self._usage: dict[NodeName, _Usage] = {}
        self._shown: dict[NodeName, Node] = {}  # with the used amounts
        self._order: list[NodeName] = []
        self._stale: set[NodeName] = set()
        self._nodes: tuple[Node, ...] = ()

    def learn(self, uid: Uid, node: Node) -> None:
        """Take in a node as it is now; of two nodes with one name, the last one counts."""
        self._known[node.name] = (uid, node)
        self._stale.add(node.name)

    def forget(self, uid: Uid, name: NodeName) -> None:
        """Remove a node that is gone, unless a newer node has its name."""
        if name in self._known and self._known[name][0] == uid:
            del self._known[name]
            self._stale.add(name)

    def occupy(self, uid: Uid, node: NodeName | None, requests: Resources) -> None:
        """Count the requests of a pod on ``node`` alone; on no node if it is None."""
        old = self._place.get(uid) if node is not None else self._place.pop(uid, None)
        if old is not None:
            usage = self._usage[old]
            if old == node and usage.pods[uid] == requests:
                return
            del usage.pods[uid]
            usage.total = None
            self._stale.add(old)
            if not usage.pods:
                del self._usage[old]
        if node is not None:
            self._place[uid] = node
            usage = self._usage.setdefault(node, _Usage())
            usage.pods[uid] = requests
            usage.total = None
            self._stale.add(node)

    def is_on(self, uid: Uid, node: NodeName) -> bool:
        """Whether a pod uses room on this node."""
        return self._place.get(uid) == node

    def touch(self, names: Iterable[NodeName] | None = None) -> None:
        """Compute these nodes again, because their volumes changed; None means all nodes."""
        self._stale.update(self._known if names is None else set(names) & self._known.keys())

    def tidy(self) -> None:
        """Forget what changed of nodes that are not known, and were not at the last ``nodes``."""
        self._stale &= self._known.keys() | self._shown.keys()

    def placed(self) -> Iterable[Uid]:
        """Every pod that uses room on a node, even if the node is not known."""
        return self._place

    def node(self, name: NodeName) -> Node | None:
        """One node with its used amounts at this moment."""
        entry = self._known.get(name)
        return None if entry is None else self._with_usage(entry[1])

    def nodes(self) -> tuple[Node, ...]:
        """Every node with its used amounts, by name; an unchanged node is the same object."""
        if self._stale:
            has_same_names = True
            for name in self._stale:
                was_shown = name in self._shown
                if name in self._known:
                    self._shown[name] = self._with_usage(self._known[name][1])
                else:
                    self._shown.pop(name, None)
                has_same_names &= was_shown == (name in self._shown)
            if not has_same_names:
                self._order = sorted(self._shown)
            self._stale.clear()
            self._nodes = tuple([self._shown[name] for name in self._order])
        return self._nodes

    def _with_usage(self, node: Node) -> Node:
        """A node with its used amounts."""
        beside, used = self._attached(node), self._used(node.name)
        if beside is NOTHING_ATTACHED:
            return replace(node, used=used)
        offers = node.allocatable + beside.offered
        return replace(node, allocatable=offers, used=used + beside.used)

    def _used(self, node: NodeName) -> Resources:
        usage = self._usage.get(node)
        if usage is None:
            return NOTHING
        if usage.total is None:
            usage.total = Resources.total(usage.pods.values())
        return usage.total
