"""The domains of nodes, by the labels that rules between pods name.

They depend on nodes alone, and not on the pods there.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Node
from ..model.inter_pod import CLUSTER, TopologySpread
from ..model.shapes import Shape
from .node_index import NodeIndex

Domains = NDArray[np.intp]  # [node]: the number of its domain, or -1
Mask = NDArray[np.bool_]  # [node]


class TopologyDomains:
    """The domains of each topology label; each is computed once, on demand."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Answers are in the order of these nodes."""
        self._nodes = nodes
        self._index = NodeIndex(nodes)
        self._labels: Sequence[Mapping[str, str]] = ()
        self._by_topology: dict[str, Domains] = {}
        self._counting_nodes: dict[object, Mask] = {}
        self._even: dict[object, Domains] = {}

    def domains(self, topology: str) -> Domains:
        """[node]: the domain by the value of a label; -1 for a node without the label."""
        if topology == CLUSTER:
            self._by_topology.setdefault(CLUSTER, np.zeros(len(self._nodes), np.intp))
        if topology not in self._by_topology:
            self._labels = self._labels or [dict(node.labels) for node in self._nodes]
            numbers: dict[str, int] = {}
            self._by_topology[topology] = np.array(
                [
                    -1 if value is None else numbers.setdefault(value, len(numbers))
                    for value in (labels.get(topology) for labels in self._labels)
                ],
                dtype=np.intp,
            )
        return self._by_topology[topology]

    def even(self, shape: Shape, spread: TopologySpread) -> Domains:
        """[node]: the domain over which a constraint spreads; -1 for nodes that do not count.

        A node counts if it has the labels of all constraints of the shape, and the policies of this
        constraint allow it. Source: ``calPreFilterState`` of PodTopologySpread.
        """
        keys = tuple(sorted({spread.topology for spread in shape.rules.spread}))
        heeds = self._heeds(shape, spread)
        key = (spread.topology, keys, *heeds)
        if key not in self._even:
            counts = self._counting(shape, *heeds).copy()
            for label in keys:
                counts &= self.domains(label) >= 0
            self._even[key] = _renumbered(self.domains(spread.topology), counts)
        return self._even[key]

    def counting(self, shape: Shape, spread: TopologySpread) -> Mask:
        """The nodes that the policies of the constraint allow."""
        return self._counting(shape, *self._heeds(shape, spread))

    def _heeds(self, shape: Shape, spread: TopologySpread) -> tuple[object, object]:
        """The node rules of the shape that the constraint applies; None for rules it ignores."""
        wants = (shape.node_selector, shape.required) if spread.honors_node_affinity else None
        return wants, shape.tolerations if spread.honors_node_taints else None

    def _counting(self, shape: Shape, wants: object, tolerates: object) -> Mask:
        """The nodes that these node rules of the shape allow."""
        key = wants, tolerates
        if key not in self._counting_nodes:
            mask = np.ones(len(self._nodes), np.bool_)
            if wants is not None:
                mask &= self._index.wanted(shape)
            if tolerates is not None:
                mask &= self._index.tolerated(shape)
            self._counting_nodes[key] = mask
        return self._counting_nodes[key]


class NestedDomains:
    """Domains of several labels: the nodes with the same value for each label."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Answers are in the order of these nodes."""
        self.nodes = nodes
        self._labels: Sequence[Mapping[str, str]] = ()
        self._known: dict[tuple[str, ...], tuple[Domains, Sequence[tuple[str, ...]]]] = {}

    def domains(self, labels: tuple[str, ...]) -> Domains:
        """[node]: its domain, numbered in the order of values; -1 if the node lacks a label."""
        return self._of(labels)[0]

    def values(self, labels: tuple[str, ...], domain: int) -> tuple[str, ...]:
        """The values of these labels on the nodes of a domain."""
        return self._of(labels)[1][domain]

    def _of(self, labels: tuple[str, ...]) -> tuple[Domains, Sequence[tuple[str, ...]]]:
        if labels not in self._known:
            self._labels = self._labels or [dict(node.labels) for node in self.nodes]
            paths = [_path(own, labels) for own in self._labels]
            names = sorted({path for path in paths if path is not None})
            numbers = {path: number for number, path in enumerate(names)}
            row = [-1 if path is None else numbers[path] for path in paths]
            self._known[labels] = np.array(row, dtype=np.intp), names
        return self._known[labels]

    def reordered(self, order: NDArray[np.intp]) -> "NestedDomains":
        """The same domains of the same nodes in another order, without computing them again."""
        other = NestedDomains([self.nodes[i] for i in order])
        other._labels = [self._labels[i] for i in order] if self._labels else ()
        other._known = {labels: (row[order], names) for labels, (row, names) in self._known.items()}
        return other


def path_of(node: Node, labels: Sequence[str]) -> tuple[str, ...] | None:
    """The values of these labels on a node; None if it lacks one."""
    return _path(dict(node.labels), labels)


def _path(own: Mapping[str, str], labels: Sequence[str]) -> tuple[str, ...] | None:
    try:
        return tuple(map(own.__getitem__, labels)) or None
    except KeyError:
        return None


def _renumbered(domains: Domains, counts: Mask) -> Domains:
    """The domains of the nodes that count, numbered without gaps; -1 for other nodes."""
    numbers = np.full_like(domains, -1)
    numbers[counts] = np.unique(domains[counts], return_inverse=True)[1]
    return numbers


def in_flagged_domain(flags: Mask, domains: Domains) -> Mask:
    """The nodes in a domain whose flag is set."""
    mask: Mask = domains >= 0
    mask[mask] = flags[domains[mask]]
    return mask
