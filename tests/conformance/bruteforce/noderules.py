"""May a pod run on a node, room and other pods aside: selector, node affinity, taints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .wishes import REQUIRED

if TYPE_CHECKING:
    from .cluster import Node, Pod, Raw


def allows(pod: Pod, node: Node) -> bool:
    """Whether kube-scheduler's node rules let the pod run there."""
    return selects(pod, node) and tolerates(pod, node)


def selects(pod: Pod, node: Node) -> bool:
    """Whether nodeSelector and required node affinity match."""
    selector = pod.spec.get("nodeSelector") or {}
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(REQUIRED)
    if required is None:
        return True
    return any(_term(term, node) for term in required.get("nodeSelectorTerms") or [])


def _term(term: Raw, node: Node) -> bool:
    labels, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not labels and not fields:
        return False
    return all(matches(label, node.labels) for label in labels) and all(
        matches(field, {"metadata.name": node.name}) for field in fields
    )


def matches(one: Raw, labels: dict[str, str]) -> bool:
    """Whether labels meet one requirement."""
    value, values = labels.get(one["key"]), one.get("values") or []
    match one["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _is_number(value) and int(value or 0) > int(values[0])
        case "Lt":
            return _is_number(value) and int(value or 0) < int(values[0])
    raise ValueError(one["operator"])


def _is_number(value: str | None) -> bool:
    return value is not None and value.lstrip("+-").isdigit()


def tolerates(pod: Pod, node: Node) -> bool:
    """Whether the pod stands every hard taint."""
    hard = [one for one in node.taints if one["effect"] in ("NoSchedule", "NoExecute")]
    tolerations = pod.spec.get("tolerations") or []
    return all(any(_covers(toleration, taint) for toleration in tolerations) for taint in hard)


def _covers(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    if not toleration.get("key"):
        return False
    return bool(toleration.get("value", "") == taint.get("value", ""))
