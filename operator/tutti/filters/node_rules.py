"""Whether a shape may run on a node, apart from room: the node rules of kube-scheduler.

These are its filters NodeUnschedulable, TaintToleration and NodeAffinity, and the rules of
VolumeBinding and VolumeZone for the volumes of bound claims. Rules between pods also require labels
of a node. All these rules depend on one shape and one node, and not on the pods that run there.
``node_index`` gives the same answers for all nodes at once.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from ..model.cluster import Node
from ..model.inter_pod import Requirement
from ..model.shapes import Effect, NodeTerm, Shape, Taint, Toleration

HARD_EFFECTS = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
CORDON = Taint("node.kubernetes.io/unschedulable", "", Effect.NO_SCHEDULE)
# The taints of nodes whose condition ``Ready`` is False or Unknown. They may be set a moment later;
# once a taint is set, it counts like any other.
UNREADY = tuple(
    Taint(f"node.kubernetes.io/{state}", "", Effect.NO_SCHEDULE)
    for state in ("not-ready", "unreachable")
)
MAX_VALUE = 63

NODE_NAME = "metadata.name"  # the only field of nodes that terms can match
NOT_WANTED = "node affinity"
OUT_OF_REACH = "out of reach of a volume"

# Tolerations compare plain decimals only (KEP-5471); labels are read as Go's ParseInt reads them.
DECIMAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
PARSE_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64 = range(-(2**63), 2**63)

Tolerates = Callable[[Taint], bool]


def fits_node(shape: Shape, node: Node) -> str | None:
    """Why the shape may not run on the node, in a short phrase; None if it may."""
    labels = dict(node.labels)
    own = repelled(node, _tolerating(shape)) or _is_avoided(shape, node, labels)
    return own or _is_out_of_reach(shape, labels) or lacks_label(shape, labels)


def is_wanted(shape: Shape, node: Node) -> bool:
    """Whether node selector and required node affinity of the shape allow the node."""
    return _is_avoided(shape, node, dict(node.labels)) is None


def is_tolerated(shape: Shape, node: Node) -> bool:
    """Whether the shape tolerates all hard taints of the node; a cordon does not count."""
    return untolerated(node, _tolerating(shape)) is None


def unwelcome(node: Node, tolerates: Tolerates) -> int:
    """How many PreferNoSchedule taints of the node are not tolerated."""
    return sum(
        taint.effect == Effect.PREFER_NO_SCHEDULE and not tolerates(taint) for taint in node.taints
    )


def topologies(shape: Shape) -> Sequence[str]:
    """The labels that a node must have for the pod affinity and the spread of the shape."""
    affinity = [term.topology for term in shape.rules.affinity]
    return affinity + [spread.topology for spread in shape.rules.spread]


def repelled(node: Node, tolerates: Tolerates) -> str | None:
    """Why the node does not take a shape with these tolerations; None if it does."""
    if node.unschedulable and not tolerates(CORDON):
        return "is cordoned"
    if not node.ready and not any(map(tolerates, UNREADY)):
        return "is not ready"
    if (taint := untolerated(node, tolerates)) is not None:
        value = f"={taint.value}" if taint.value else ""
        return f"taint {taint.key}{value}:{taint.effect}"
    return None


def untolerated(node: Node, tolerates: Tolerates) -> Taint | None:
    """The first hard taint of the node that is not tolerated; None if all are."""
    for taint in node.taints:
        if taint.effect in HARD_EFFECTS and not tolerates(taint):
            return taint
    return None


def not_selected(shape: Shape, labels: Mapping[str, str]) -> str | None:
    """The first label of the node selector that the labels of a node lack; None if none."""
    for key, value in shape.node_selector:
        if labels.get(key) != value:
            return f"nodeSelector {key}={value}"
    return None


def lacks_label(shape: Shape, labels: Mapping[str, str]) -> str | None:
    """The first topology label of the shape that the labels of a node lack; None if none."""
    for key in topologies(shape):
        if key not in labels:
            return f"without label {key}"
    return None


def _is_avoided(shape: Shape, node: Node, labels: Mapping[str, str]) -> str | None:
    """Why node selector or required node affinity excludes the node; None if they allow it."""
    if (why := not_selected(shape, labels)) is not None:
        return why
    fields = {NODE_NAME: str(node.name)}
    if shape.required is None or any(_holds(term, labels, fields) for term in shape.required):
        return None
    return NOT_WANTED


def _is_out_of_reach(shape: Shape, labels: Mapping[str, str]) -> str | None:
    """Why the volumes of the shape cannot be reached from the node; None if they can."""
    for reach in shape.volume_reach:
        if not any(all(label_holds(requirement, labels) for requirement in way) for way in reach):
            return OUT_OF_REACH
    return None


def _tolerating(shape: Shape) -> Tolerates:
    """A function that says whether the shape tolerates a taint."""
    return lambda taint: _is_tolerated(taint, shape.tolerations)


def _is_tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt":
            bound = integer(toleration.value, DECIMAL)
            number = integer(taint.value, DECIMAL)
            return _compares(number, toleration.operator, bound)
        case _:
            return False


def _holds(term: NodeTerm, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """Whether all requirements of a term hold; an empty term never holds."""
    if not (term.labels or term.fields):
        return False
    return all(label_holds(requirement, labels) for requirement in term.labels) and all(
        _field_holds(requirement, fields) for requirement in term.fields
    )


def label_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether a requirement on labels holds; a malformed one never does, as in kube-scheduler."""
    value = labels.get(requirement.key)
    values = requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and (value is None or value not in values)
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
        case "Gt" | "Lt" if value is not None and len(values) == 1:
            number, bound = integer(value, PARSE_INT), integer(values[0], PARSE_INT)
            return _compares(number, requirement.operator, bound)
        case _:
            return False


def _field_holds(requirement: Requirement, fields: Mapping[str, str]) -> bool:
    """Whether a requirement on fields holds; only In or NotIn with one value can hold."""
    if len(requirement.values) != 1:
        return False
    is_equal = fields.get(requirement.key, "") == requirement.values[0]
    match requirement.operator:
        case "In":
            return is_equal
        case "NotIn":
            return not is_equal
        case _:
            return False


def integer(text: str, form: re.Pattern[str]) -> int | None:
    """The 64-bit integer that the text has in this form; None if it has none."""
    # Values of labels and taints have at most 63 characters.
    if len(text) > MAX_VALUE or form.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number in _INT64 else None


def _compares(number: int | None, operator: str, bound: int | None) -> bool:
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else number < bound
