"""Encodes rules between pods as fields of the API, with all defaults written out.

The inverse of ``kube.codec.inter_pod``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..kube.codec import inter_pod as reading
from ..kube.codec.preferences import SOFT
from ..model.devices.claims import is_sharing
from ..model.inter_pod import (
    CLUSTER,
    AffinityTerm,
    InterPodRules,
    PodSelector,
    Requirement,
    TopologySpread,
)
from ..model.shapes import NodeTerm, Preferences

Raw = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# A selector that cannot be read; it stands for one whose text a Snapshot does not keep.
_UNREADABLE: Mapping[str, Any] = {"labelSelector": {"matchExpressions": [{}]}}


def requirement(value: Requirement) -> Raw:
    """One requirement of a selector."""
    return {"key": value.key, "operator": value.operator, "values": list(value.values)}


def add_rules(spec: Raw, rules: InterPodRules) -> None:
    """Add rules about other pods to the spec of a pod, without those that shared claims add."""
    near = [term for term in rules.affinity if not _is_of_a_claim(term)]
    apart = [term for term in rules.anti_affinity if term.topology != CLUSTER]
    for field, terms in (("podAffinity", near), ("podAntiAffinity", apart)):
        if terms:
            spec.setdefault("affinity", {})[field] = {REQUIRED: [_term(term) for term in terms]}
    if rules.spread:
        spec["topologySpreadConstraints"] = [_spread(spread) for spread in rules.spread]


def _is_of_a_claim(term: AffinityTerm) -> bool:
    return any(is_sharing(wanted.key) for wanted in term.peers.selector or ())


def add_preferences(spec: Raw, preferences: Preferences) -> None:
    """Add preferences to the spec of a pod that has its required affinity and spread already."""
    if preferences.node_affinity:
        terms = [
            {"weight": n, "preference": node_term(term)} for term, n in preferences.node_affinity
        ]
        spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})[PREFERRED] = terms
    for field, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        liked = [term for term in preferences.pod_affinity if term.weight * sign > 0]
        if liked:
            spec.setdefault("affinity", {}).setdefault(field, {})[PREFERRED] = [
                {"weight": term.weight * sign, "podAffinityTerm": _term(term.term)}
                for term in liked
            ]
    if preferences.spread:
        constraints = [
            {**_spread(spread), "whenUnsatisfiable": SOFT} for spread in preferences.spread
        ]
        spec.setdefault("topologySpreadConstraints", []).extend(constraints)


def node_term(value: NodeTerm) -> Raw:
    """A term of node affinity."""
    term: Raw = {}
    if value.labels:
        term["matchExpressions"] = [requirement(expression) for expression in value.labels]
    if value.fields:
        term["matchFields"] = [requirement(expression) for expression in value.fields]
    return term


def add_unreadable(spec: Raw, field: str) -> bool:
    """Add a selector that cannot be read, if ``field`` names one; return whether it does."""
    if field == reading.MALFORMED + reading.SPREAD:
        spec["topologySpreadConstraints"] = [_UNREADABLE]
        return True
    for kind in (reading.AFFINITY, reading.ANTI_AFFINITY):
        if field == reading.MALFORMED + kind:
            beside = spec.setdefault("affinity", {}).setdefault(kind.rpartition(".")[2], {})
            beside[PREFERRED] = [{"weight": 1, "podAffinityTerm": _UNREADABLE}]
            return True
    return False


def _term(value: AffinityTerm) -> Raw:
    peers = value.peers
    term: Raw = {"topologyKey": value.topology, **_counted(peers)}
    if peers.namespaces:
        term["namespaces"] = list(peers.namespaces)
    if peers.namespace_labels is not None:
        term["namespaceSelector"] = _selector(peers.namespace_labels)
    return term


def _spread(value: TopologySpread) -> Raw:
    return {
        "topologyKey": value.topology,
        "whenUnsatisfiable": reading.HARD,
        "maxSkew": value.max_skew,
        "minDomains": value.min_domains,
        "nodeAffinityPolicy": reading.HONOR if value.honors_node_affinity else "Ignore",
        "nodeTaintsPolicy": reading.HONOR if value.honors_node_taints else "Ignore",
        **_counted(value.peers),
    }


def _counted(peers: PodSelector) -> Raw:
    return {} if peers.selector is None else {"labelSelector": _selector(peers.selector)}


def _selector(selector: Iterable[Requirement]) -> Raw:
    return {"matchExpressions": [requirement(expression) for expression in selector]}
