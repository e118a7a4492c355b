"""The rules of a pod about other pods: required affinity and anti-affinity, hard topology spread.

They are read as in kube-scheduler 1.37, malformed selectors included (``GetAffinityTerms`` and the
plugin PodTopologySpread). Unlike the constraints in ``shapes``, these rules depend on other pods,
and the rules of a pod that has a node still hold.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from sys import intern

from ...model.inter_pod import (
    NO_RULES,
    AffinityTerm,
    InterPodRules,
    Labels,
    PodSelector,
    Requirement,
    TopologySpread,
)
from .. import wire

KNOWN = 16384  # rules that are cached
KNOWN_LABELS = 4096  # few are enough, because lists have similar pods one after the other

MALFORMED = "a malformed "  # precedes the name of the field
AFFINITY = "spec.affinity.podAffinity"
ANTI_AFFINITY = "spec.affinity.podAntiAffinity"
SPREAD = "spec.topologySpreadConstraints"

HARD = "DoNotSchedule"
HONOR = "Honor"

_TAKES_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
# The grammar of the key and the value of a label.
_LONGEST_PREFIX = 253
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_NAME = 63
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)

Selector = tuple[Requirement, ...] | None
Order = tuple[object, ...]


class MalformedSelector(Exception):  # noqa: N818 - it never leaves the decoders
    """A selector cannot be read."""


def decode_rules(pod: wire.Pod) -> tuple[InterPodRules, tuple[str, ...]]:
    """The rules of a pod, and the fields in which a selector cannot be read.

    kube-scheduler places no pod with such a selector, even in a preference (PreFilter of
    InterPodAffinity and of PodTopologySpread). If such a pod has a node, kube-scheduler ignores all
    its required terms of that field (``NodeInfo.AddPod``). So these terms are left out here. The
    field is returned, which keeps a waiting pod waiting.
    """
    affinity, spreads = pod.spec.affinity, pod.spec.topology_spread_constraints
    if not (affinity.pod_affinity.is_in_use or affinity.pod_anti_affinity.is_in_use or spreads):
        return NO_RULES, ()
    broken: set[str] = set()
    near = _terms(pod, affinity.pod_affinity, broken, AFFINITY)
    apart = _terms(pod, affinity.pod_anti_affinity, broken, ANTI_AFFINITY)
    even: tuple[TopologySpread, ...] = ()
    try:
        even = tuple(sorted(set(read_spreads(pod, HARD)), key=spread_order))
    except MalformedSelector:
        broken.add(MALFORMED + SPREAD)
    return _shared_rules(InterPodRules(near, apart, even)), tuple(sorted(broken))


def decode_apart(pod: wire.Pod) -> tuple[AffinityTerm, ...]:
    """The required anti-affinity of a pod that has a node; none if a selector cannot be read."""
    anti = pod.spec.affinity.pod_anti_affinity
    if not anti.required_during_scheduling_ignored_during_execution:
        return ()
    return _shared_rules(
        InterPodRules(anti_affinity=_terms(pod, anti, set(), ANTI_AFFINITY))
    ).anti_affinity


def decode_near(pod: wire.Pod) -> tuple[AffinityTerm, ...]:
    """The required affinity of a pod that has a node; none if a selector cannot be read."""
    return _terms(pod, pod.spec.affinity.pod_affinity, set(), AFFINITY)


def decode_labels(labels: Mapping[str, str]) -> Labels:
    """Labels, sorted; equal labels share one object, and so do equal pairs."""
    if not labels:
        return ()
    return _shared_labels(tuple([_shared_pair(key, labels[key]) for key in sorted(labels)]))


def is_label(key: str, value: str) -> bool:
    """Whether a pod can have this label."""
    return _is_key(key) and (not value or _is_name(value))


def requirements(wire_requirements: Iterable[wire.Requirement]) -> tuple[Requirement, ...]:
    """These requirements, sorted and without duplicates."""
    return _sorted(
        {Requirement(r.key, r.operator, tuple(sorted(set(r.values)))) for r in wire_requirements}
    )


def requirement_order(requirement: Requirement) -> tuple[str, str, tuple[str, ...]]:
    """The sort key of a requirement."""
    return requirement.key, requirement.operator, requirement.values


def term_order(term: AffinityTerm) -> Order:
    """The sort key of a term."""
    return term.topology, _peers_order(term.peers)


def spread_order(spread: TopologySpread) -> Order:
    """The sort key of a spread constraint."""
    policies = (spread.honors_node_affinity, spread.honors_node_taints)
    return (
        spread.topology,
        _peers_order(spread.peers),
        spread.max_skew,
        spread.min_domains,
        policies,
    )


def _sorted(unsorted: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(unsorted, key=requirement_order))


def _terms(
    pod: wire.Pod, affinity: wire.PodAffinity, broken: set[str], field: str
) -> tuple[AffinityTerm, ...]:
    try:
        for preferred in affinity.preferred_during_scheduling_ignored_during_execution:
            read_term(pod, preferred.pod_affinity_term)
    except MalformedSelector:
        broken.add(MALFORMED + field)
    required = affinity.required_during_scheduling_ignored_during_execution
    try:
        return tuple(sorted({read_term(pod, term) for term in required}, key=term_order))
    except MalformedSelector:
        broken.add(MALFORMED + field)
        return ()


def read_term(pod: wire.Pod, term: wire.PodAffinityTerm) -> AffinityTerm:
    """Read a term; without namespaces and namespace selector it means the namespace of the pod.

    The API server has merged ``matchLabelKeys`` and ``mismatchLabelKeys`` into the selector when
    the pod was created; these keys have no other effect.
    """
    names: tuple[str, ...] = tuple(sorted(set(term.namespaces)))
    if not names and term.namespace_selector is None:
        names = (pod.metadata.namespace,)
    peers = PodSelector(
        read_selector(term.label_selector), names, read_selector(term.namespace_selector)
    )
    return AffinityTerm(term.topology_key, peers)


def read_spreads(pod: wire.Pod, kind: str) -> Iterator[TopologySpread]:
    """The constraints of one kind, with ``matchLabelKeys`` merged as in kube-scheduler.

    With an empty selector or none, kube-scheduler counts no pods (``countPodsMatchSelector``).
    """
    labels = pod.metadata.labels
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != kind:
            continue
        selector = read_selector(constraint.label_selector)
        if selector is not None:
            keys = (key for key in constraint.match_label_keys if key in labels)
            same = (Requirement(key, "In", (labels[key],)) for key in keys)
            selector = _sorted({*selector, *same}) or None
        affinity = constraint.node_affinity_policy
        yield TopologySpread(
            constraint.topology_key,
            PodSelector(selector, (pod.metadata.namespace,)),
            constraint.max_skew,
            1 if constraint.min_domains is None else constraint.min_domains,
            honors_node_affinity=affinity is None or affinity == HONOR,
            honors_node_taints=constraint.node_taints_policy == HONOR,
        )


def read_selector(selector: wire.LabelSelector | None) -> Selector:
    """A label selector as ``LabelSelectorAsSelector`` reads it; None selects nothing.

    Raises:
        MalformedSelector: a requirement cannot be read.
    """
    if selector is None:
        return None
    labels = (Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    required = {*labels, *requirements(selector.match_expressions)}
    if not all(_is_readable(requirement) for requirement in required):
        raise MalformedSelector
    return _sorted(required)


def _is_readable(requirement: Requirement) -> bool:
    """Whether ``labels.NewRequirement`` would accept the requirement."""
    if _TAKES_VALUES.get(requirement.operator) is not bool(requirement.values):
        return False
    return _is_key(requirement.key) and all(
        not value or _is_name(value) for value in requirement.values
    )


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or _PREFIX.fullmatch(prefix) is None):
        return False
    return _is_name(name)


def _is_name(word: str) -> bool:
    return len(word) <= _LONGEST_NAME and _NAME.fullmatch(word) is not None


def _selector_order(selector: Selector) -> Order:
    return selector is not None, tuple(
        requirement_order(requirement) for requirement in selector or ()
    )


def _peers_order(peers: PodSelector) -> Order:
    selector, spaces = _selector_order(peers.selector), _selector_order(peers.namespace_labels)
    return selector, peers.namespaces, spaces


@lru_cache(maxsize=KNOWN)
def _shared_rules(rules: InterPodRules) -> InterPodRules:
    return rules


@lru_cache(maxsize=KNOWN_LABELS)
def _shared_labels(labels: Labels) -> Labels:
    return labels


@lru_cache(maxsize=KNOWN_LABELS)
def _shared_pair(key: str, value: str) -> tuple[str, str]:
    return intern(key), value
