"""Rules between pods, in the end state: each newcomer is looked at as if it came last.

As kube-scheduler's filters InterPodAffinity and PodTopologySpread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import noderules
from .wishes import hard_spreads, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .cluster import Cluster, Node, Pod, Raw

Located = tuple["Pod", str]  # a pod and the name of its node


def broken(cluster: Cluster, newcomers: Sequence[Located]) -> str | None:
    """What is broken with all of them there, in a few words; None if nothing is."""
    nodes = {node.name: node for node in cluster.nodes}
    residents = [(pod, pod.node) for pod in cluster.there if pod.node in nodes]
    everybody = [*residents, *newcomers]
    for pod, where in newcomers:
        others = [(other, nodes[at]) for other, at in everybody if other is not pod and at]
        if why := _of(cluster, pod, nodes[where], others):
            return f"{pod.name} on {where}: {why}"
    return None


def _of(cluster: Cluster, pod: Pod, node: Node, others: Sequence[tuple[Pod, Node]]) -> str | None:
    for term in terms(pod.spec, "podAntiAffinity"):
        if any(_same(term, node, at) and _counts(cluster, term, pod, o) for o, at in others):
            return "anti-affinity"
    for other, at in others:
        for term in terms(other.spec, "podAntiAffinity"):
            if _same(term, node, at) and _counts(cluster, term, other, pod):
                return f"anti-affinity of {other.name}"
    if not _has_company(cluster, pod, node, others):
        return "affinity"
    if any(_is_skewed(cluster, spread, pod, (node, others)) for spread in hard_spreads(pod.spec)):
        return "spread"
    return None


def _has_company(
    cluster: Cluster, pod: Pod, node: Node, others: Sequence[tuple[Pod, Node]]
) -> bool:
    required = terms(pod.spec, "podAffinity")
    if any(term["topologyKey"] not in node.labels for term in required):
        return False
    counted = [at for other, at in others if all(_counts(cluster, t, pod, other) for t in required)]
    if all(any(_same(term, node, at) for at in counted) for term in required):
        return True
    is_first = not any(term["topologyKey"] in at.labels for at in counted for term in required)
    return is_first and all(_counts(cluster, term, pod, pod) for term in required)


def _is_skewed(
    cluster: Cluster,
    one: Raw,
    pod: Pod,
    place: tuple[Node, Sequence[tuple[Pod, Node]]],
) -> bool:
    node, others = place
    key, selector, skew = one["topologyKey"], _merged(one, pod), int(one["maxSkew"])
    if key not in node.labels:
        return True
    honors = one.get("nodeAffinityPolicy", "Honor") == "Honor"
    minds = one.get("nodeTaintsPolicy", "Ignore") == "Honor"
    keys = [spread["topologyKey"] for spread in hard_spreads(pod.spec)]
    counts: dict[str, int] = {}
    for each in cluster.nodes:
        if (
            all(name in each.labels for name in keys)
            and (not honors or noderules.selects(pod, each))
            and (not minds or noderules.tolerates(pod, each))
        ):
            counts.setdefault(each.labels[key], 0)
            counts[each.labels[key]] += sum(
                at is each
                and other.namespace == pod.namespace
                and not other.is_terminating
                and _selected(selector, other.labels)
                for other, at in others
            )
    least = min(counts.values(), default=0)
    if len(counts) < (one.get("minDomains") or 1):
        least = 0
    own = _selected(selector, pod.labels)
    return counts.get(node.labels[key], 0) + own - least > skew


def _same(term: Raw, here: Node, there: Node) -> bool:
    key = term["topologyKey"]
    return key in here.labels and here.labels[key] == there.labels.get(key)


def _counts(cluster: Cluster, term: Raw, owner: Pod, other: Pod) -> bool:
    """Whether a term of ``owner`` is about ``other``."""
    names, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not names and selector is None:
        names = [owner.namespace]
    labels = cluster.namespaces.get(
        other.namespace, {"kubernetes.io/metadata.name": other.namespace}
    )
    is_near = other.namespace in names or (selector is not None and _selected(selector, labels))
    return is_near and _selected(_merged(term, owner), other.labels)


def _merged(term: Raw, owner: Pod) -> Raw | None:
    """The selector with what matchLabelKeys add."""
    selector: Raw | None = term.get("labelSelector")
    keys = [key for key in term.get("matchLabelKeys") or [] if key in owner.labels]
    if selector is None or not keys:
        return selector
    more: Iterable[Raw] = (
        {"key": key, "operator": "In", "values": [owner.labels[key]]} for key in keys
    )
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *more]}


def _selected(selector: Raw | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    equal = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in equal.items()) and all(
        noderules.matches(one, labels) for one in selector.get("matchExpressions") or []
    )
