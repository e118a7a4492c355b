"""On which nodes a shape may run, apart from room: the answer for all nodes at once.

``node_rules`` has the rules and answers for one shape and one node; the answers here are the same.
A pod may have thousands of terms, tolerations or values. So they are not scanned for each node:
each requirement is looked up in an index of the labels of nodes, and each taint in an index of the
tolerations.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Node
from ..model.inter_pod import Requirement
from ..model.keys import NodeName
from ..model.shapes import NodeTerm, Shape, Taint, Toleration
from . import node_rules

Mask = NDArray[np.bool_]  # [node]


class Tolerations:
    """An index of the tolerations of a shape."""

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        """Index the tolerations; those that can match no taint are left out."""
        self._exact: set[tuple[str, str, str | None]] = set()  # key, effect; value, or None for any
        self._above: dict[tuple[str, str], int] = {}  # by key and effect: the least bound of Gt
        self._below: dict[tuple[str, str], int] = {}  # the largest bound of Lt
        for toleration in tolerations:
            where = toleration.key, toleration.effect
            if toleration.operator in ("", "Equal"):
                self._exact.add((*where, toleration.value))
            elif toleration.operator == "Exists":
                self._exact.add((*where, None))
            elif (n := node_rules.integer(toleration.value, node_rules.DECIMAL)) is None:
                continue
            elif toleration.operator == "Gt":
                self._above[where] = min(n, self._above.get(where, n))
            elif toleration.operator == "Lt":
                self._below[where] = max(n, self._below.get(where, n))

    def tolerate(self, taint: Taint) -> bool:
        """Whether any of the tolerations tolerates the taint."""
        value = node_rules.integer(taint.value, node_rules.DECIMAL)
        for where in product((taint.key, ""), (taint.effect, "")):
            if (*where, None) in self._exact or (*where, taint.value) in self._exact:
                return True
            if value is not None and (
                value > self._above.get(where, value) or value < self._below.get(where, value)
            ):
                return True
        return False


class _Label:
    """The values of one label on all nodes; None for nodes without it."""

    def __init__(self, values: Sequence[str | None]) -> None:
        self._values = values
        self.present: Mask = np.array([value is not None for value in values], np.bool_)
        self._none = np.zeros(len(values), np.bool_)

    @cached_property
    def _rows(self) -> Mapping[str, NDArray[np.intp]]:
        """The nodes by the value of the label."""
        rows: dict[str, list[int]] = {}
        for row, value in enumerate(self._values):
            if value is not None:
                rows.setdefault(value, []).append(row)
        return {value: np.array(own, np.intp) for value, own in rows.items()}

    @cached_property
    def _numbers(self) -> tuple[Mask, NDArray[np.int64]]:
        """The nodes whose value is an integer, and the integer of each node."""
        numbers = [
            None if value is None else node_rules.integer(value, node_rules.PARSE_INT)
            for value in self._values
        ]
        has_number = np.array([n is not None for n in numbers], np.bool_)
        return has_number, np.array([n or 0 for n in numbers], np.int64)

    def among(self, values: Sequence[str]) -> Mask:
        """The nodes whose value is one of these."""
        mask = self._none.copy()
        for value in values:
            if (rows := self._rows.get(value)) is not None:
                mask[rows] = True
        return mask

    def holds(self, requirement: Requirement) -> Mask:
        """The nodes for which the requirement holds: ``node_rules.label_holds``."""
        values = requirement.values
        match requirement.operator:
            case "In":
                return self.among(values)
            case "NotIn" if values:
                return ~self.among(values)
            case "Exists" if not values:
                return self.present
            case "DoesNotExist" if not values:
                return ~self.present
            case "Gt" | "Lt" if len(values) == 1:
                return self._compared(requirement.operator, values[0])
            case _:
                return self._none

    def _compared(self, operator: str, value: str) -> Mask:
        """The nodes whose value is an integer above or below this one."""
        bound = node_rules.integer(value, node_rules.PARSE_INT)
        if bound is None:
            return self._none
        has_number, numbers = self._numbers
        return has_number & (numbers > bound if operator == "Gt" else numbers < bound)


class NodeIndex:
    """An index of nodes by the labels and taints that node rules need; it is filled on demand."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """All answers are in the order of these nodes."""
        self._nodes = nodes
        self._by_key: dict[str, _Label] = {}

    @cached_property
    def rows(self) -> Mapping[NodeName, int]:
        """The position of each node in all answers."""
        return {node.name: row for row, node in enumerate(self._nodes)}

    def allowed(self, shape: Shape) -> Mask:
        """The nodes on which the shape may run: ``fits_node`` returns None for them."""
        mask = self._everywhere()
        tolerates = Tolerations(shape.tolerations).tolerate
        for taint, rows in self._taints:
            mask[rows] = node_rules.repelled(taint, tolerates) is None
        mask &= self.wanted(shape) & self._reached(shape)
        for key in node_rules.topologies(shape):
            mask &= self._label(key).present
        return mask

    def obstacles(self, shape: Shape) -> Iterator[str | None]:
        """The answer of ``fits_node`` for each node."""
        tolerates = Tolerations(shape.tolerations).tolerate
        repelled: list[str | None] = [None] * len(self._nodes)
        for taint, rows in self._taints:
            why = node_rules.repelled(taint, tolerates)
            for row in rows.tolist():
                repelled[row] = why
        required, reached = self._required(shape), self._reached(shape)
        for row, labels in enumerate(self._labels):
            why = repelled[row] or node_rules.not_selected(shape, labels)
            if why is None and not required[row]:
                why = node_rules.NOT_WANTED
            if why is None and not reached[row]:
                why = node_rules.OUT_OF_REACH
            yield why or node_rules.lacks_label(shape, labels)

    def wanted(self, shape: Shape) -> Mask:
        """The nodes that node selector and required node affinity allow: ``is_wanted``."""
        mask = self._required(shape)
        for key, value in shape.node_selector:
            mask = mask & self._label(key).among((value,))
        return mask

    def tolerated(self, shape: Shape) -> Mask:
        """The nodes whose hard taints the shape tolerates, all of them: ``is_tolerated``."""
        tolerates = Tolerations(shape.tolerations).tolerate
        mask = self._everywhere()
        for taint, rows in self._taints:
            mask[rows] = node_rules.untolerated(taint, tolerates) is None
        return mask

    def unwelcome(self, shape: Shape) -> NDArray[np.int64]:
        """[node]: how many PreferNoSchedule taints the shape does not tolerate."""
        tolerates = Tolerations(shape.tolerations).tolerate
        taints = np.zeros(len(self._nodes), np.int64)
        for taint, rows in self._taints:
            taints[rows] = node_rules.unwelcome(taint, tolerates)
        return taints

    def preference(self, shape: Shape) -> NDArray[np.int64]:
        """[node]: the sum of the weights of the preferred node affinity terms that hold there."""
        weights = np.zeros(len(self._nodes), np.int64)
        for term, weight in shape.preferences.node_affinity:
            weights[self._term(term)] += weight
        return weights

    def _everywhere(self) -> Mask:
        return np.ones(len(self._nodes), np.bool_)

    def _nowhere(self) -> Mask:
        return np.zeros(len(self._nodes), np.bool_)

    @cached_property
    def _taints(self) -> Sequence[tuple[Node, NDArray[np.intp]]]:
        """Nodes with taints, cordon or not ready: one of each kind, and the rows of that kind."""
        kinds: dict[object, list[int]] = {}
        for row, node in enumerate(self._nodes):
            if node.taints or node.unschedulable or not node.ready:
                kind = node.taints, node.unschedulable, node.ready
                kinds.setdefault(kind, []).append(row)
        return [(self._nodes[rows[0]], np.array(rows, np.intp)) for rows in kinds.values()]

    @cached_property
    def _labels(self) -> Sequence[Mapping[str, str]]:
        return [dict(node.labels) for node in self._nodes]

    @cached_property
    def _keys(self) -> frozenset[str]:
        """The labels that any node has."""
        return frozenset(key for labels in self._labels for key in labels)

    @cached_property
    def _absent(self) -> _Label:
        """A label that no node has."""
        return _Label([None] * len(self._nodes))

    def _label(self, key: str) -> _Label:
        if key not in self._keys:
            return self._absent
        if key not in self._by_key:
            self._by_key[key] = _Label([labels.get(key) for labels in self._labels])
        return self._by_key[key]

    @cached_property
    def _names(self) -> _Label:
        return _Label([str(node.name) for node in self._nodes])

    def _required(self, shape: Shape) -> Mask:
        """The nodes on which any term of the required node affinity holds."""
        if shape.required is None:
            return self._everywhere()
        mask = self._nowhere()
        for term in shape.required:
            mask |= self._term(term)
        return mask

    def _term(self, term: NodeTerm) -> Mask:
        """The nodes on which all of a term holds; an empty term selects no node."""
        mask: Mask | None = None
        for requirement in term.labels:
            met = self._label(requirement.key).holds(requirement)
            mask = met if mask is None else mask & met
        for requirement in term.fields:
            met = self._field(requirement)
            mask = met if mask is None else mask & met
        return self._nowhere() if mask is None else mask

    def _field(self, requirement: Requirement) -> Mask:
        """The nodes on which a requirement on fields holds: In or NotIn, with exactly one value."""
        values = requirement.values
        if len(values) != 1 or requirement.operator not in ("In", "NotIn"):
            return self._nowhere()
        if requirement.key == node_rules.NODE_NAME:
            return self._names.holds(requirement)
        is_equal = values[0] == ""  # nodes have no other field
        is_met = is_equal == (requirement.operator == "In")
        return self._everywhere() if is_met else self._nowhere()

    def _reached(self, shape: Shape) -> Mask:
        """The nodes from which all volumes of the shape can be reached."""
        mask = self._everywhere()
        for reach in shape.volume_reach:
            ways = self._nowhere()
            for way in reach:
                on = self._everywhere()
                for requirement in way:
                    on &= self._label(requirement.key).holds(requirement)
                ways |= on
            mask &= ways
        return mask
