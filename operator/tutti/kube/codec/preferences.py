"""The preferences of a pod: preferred affinity to nodes and pods, soft topology spread.

They are read as in the scoring of kube-scheduler 1.37. A preference that cannot be read counts as
none, and no preference keeps a pod waiting.
"""

from collections.abc import Iterable
from functools import lru_cache

from ...model.inter_pod import AffinityTerm, TopologySpread, WeightedAffinityTerm
from ...model.shapes import NO_PREFERENCES, NodeTerm, Preferences
from .. import wire
from .inter_pod import (
    MalformedSelector,
    decode_near,
    read_spreads,
    read_term,
    requirements,
    spread_order,
    term_order,
)
from .shapes import node_term_order

KNOWN = 16384  # preferences that are cached

SOFT = "ScheduleAnyway"


def decode_preferences(pod: wire.Pod) -> Preferences:
    """The preferences of a pod among the nodes on which it may run."""
    affinity = pod.spec.affinity
    preferences = Preferences(
        _nodes(affinity.node_affinity.preferred_during_scheduling_ignored_during_execution),
        _summed(_preferred(pod)),
        _even(pod) if pod.spec.topology_spread_constraints else (),
    )
    return NO_PREFERENCES if preferences == NO_PREFERENCES else _shared_preferences(preferences)


def decode_scored_terms(pod: wire.Pod) -> tuple[WeightedAffinityTerm, ...]:
    """The terms by which other pods prefer or avoid the domain of a placed pod.

    They include its required affinity with weight 1, as in kube-scheduler.
    """
    affinity = pod.spec.affinity
    if not (affinity.pod_affinity.is_in_use or affinity.pod_anti_affinity.is_in_use):
        return ()
    near = (WeightedAffinityTerm(term, 1) for term in decode_near(pod))
    return _shared_terms(_summed([*_preferred(pod), *near]))


def _nodes(terms: Iterable[wire.PreferredNodeTerm]) -> tuple[tuple[NodeTerm, int], ...]:
    """Terms on nodes with their weights; an empty term matches no node, so it is left out."""
    weights: dict[NodeTerm, int] = {}
    for preferred in terms:
        preference = preferred.preference
        term = NodeTerm(
            requirements(preference.match_expressions), requirements(preference.match_fields)
        )
        if term != NodeTerm():
            weights[term] = weights.get(term, 0) + preferred.weight
    return tuple(
        (term, weights[term]) for term in sorted(weights, key=node_term_order) if weights[term]
    )


def _preferred(pod: wire.Pod) -> list[WeightedAffinityTerm]:
    """The preferred terms of affinity and anti-affinity.

    If a selector of one of the two cannot be read, all its terms are left out.
    """
    affinity = pod.spec.affinity
    scored_terms: list[WeightedAffinityTerm] = []
    for pod_affinity, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        terms = pod_affinity.preferred_during_scheduling_ignored_during_execution
        try:
            scored_terms += [
                WeightedAffinityTerm(read_term(pod, t.pod_affinity_term), sign * t.weight)
                for t in terms
            ]
        except MalformedSelector:
            continue
    return scored_terms


def _summed(scored_terms: Iterable[WeightedAffinityTerm]) -> tuple[WeightedAffinityTerm, ...]:
    weights: dict[AffinityTerm, int] = {}
    for weighted in scored_terms:
        weights[weighted.term] = weights.get(weighted.term, 0) + weighted.weight
    return tuple(
        WeightedAffinityTerm(term, weights[term])
        for term in sorted(weights, key=term_order)
        if weights[term]
    )


def _even(pod: wire.Pod) -> tuple[TopologySpread, ...]:
    try:
        return tuple(sorted(set(read_spreads(pod, SOFT)), key=spread_order))
    except MalformedSelector:
        return ()


@lru_cache(maxsize=KNOWN)
def _shared_preferences(preferences: Preferences) -> Preferences:
    return preferences


@lru_cache(maxsize=KNOWN)
def _shared_terms(
    scored_terms: tuple[WeightedAffinityTerm, ...],
) -> tuple[WeightedAffinityTerm, ...]:
    return scored_terms
