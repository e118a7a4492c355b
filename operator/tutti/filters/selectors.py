"""Whether a rule between pods counts a pod, by the namespace and the labels of the pod.

Planning and the checker share this code. Source: ``labels.Selector`` of apimachinery,
``AffinityTerm`` of kube-scheduler.
"""

from collections.abc import Iterable, Mapping

from ..model.cluster import DisruptionBudget, Namespace
from ..model.inter_pod import Labels, PodSelector, Requirement
from ..model.shapes import Shape
from .node_rules import label_holds

Group = tuple[PodSelector, ...]  # the pods that all of these selectors count
Spaces = Mapping[str, Mapping[str, str]]  # the labels of namespaces, by name


def spaces(namespaces: Iterable[Namespace]) -> Spaces:
    """The labels of these namespaces, by name."""
    return {space.name: dict(space.labels) for space in namespaces}


def is_counted(
    peers: PodSelector, namespace: str, labels: Mapping[str, str], namespaces: Spaces
) -> bool:
    """Whether ``peers`` counts a pod of this namespace with these labels.

    A namespace that is not in ``namespaces`` has no labels.
    """
    if not _is_selected(peers.selector, labels):
        return False
    return namespace in peers.namespaces or _is_selected(
        peers.namespace_labels, namespaces.get(namespace, {})
    )


def is_budgeted(budget: DisruptionBudget, namespace: str, labels: Labels) -> bool:
    """Whether a pod of this namespace with these labels is one of the budget's pods."""
    return budget.namespace == namespace and _is_selected(budget.selector, dict(labels))


def _is_selected(selector: tuple[Requirement, ...] | None, labels: Mapping[str, str]) -> bool:
    """Whether all of a selector holds; an empty selector always holds, None never does."""
    return selector is not None and all(
        label_holds(requirement, labels) for requirement in selector
    )


def has_rules(shape: Shape) -> bool:
    """Whether the shape has a required rule about other pods."""
    rules = shape.rules
    return bool(rules.affinity or rules.anti_affinity or rules.spread)
