"""What a pod would rather have, as the scoring of kube-scheduler reads it."""

from typing import Any

import pytest

from tutti.kube.codec.decode import decode_member, decode_occupant
from tutti.model.inter_pod import (
    AffinityTerm,
    PodSelector,
    Requirement,
    TopologySpread,
    WeightedAffinityTerm,
)
from tutti.model.shapes import NO_PREFERENCES, NodeTerm, Preferences

from ..objects import REQUIRED, Json, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP = {"matchLabels": {"app": "t"}}
PEERS = PodSelector((Requirement("app", "In", ("t",)),), ("ml",))
ODD = {"matchExpressions": [{"key": "app", "operator": "Near"}]}


def fast(weight: int) -> Json:
    """A preference for nodes of one disk."""
    wanted = [{"key": "disk", "operator": "In", "values": ["ssd"]}]
    return {"weight": weight, "preference": {"matchExpressions": wanted}}


def beside(topology: str, weight: int, selector: Json = APP) -> Json:
    """A preference for pods, to be near to them or apart."""
    term = {"topologyKey": topology, "labelSelector": selector}
    return {"weight": weight, "podAffinityTerm": term}


def affine(**kinds: Any) -> Json:
    """A spec with these preferences."""
    return {"affinity": {kind: {PREFERRED: list(terms)} for kind, terms in kinds.items()}}


def soft(selector: Json) -> Json:
    """A spec with one soft spread."""
    one = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    return {"topologySpreadConstraints": [{**one, "labelSelector": selector}]}


def wishes(spec: Json) -> Preferences:
    """What a pod with this spec wishes for."""
    return decode_member(pod(spec)).shape.preferences


def test_who_says_nothing_wishes_for_nothing() -> None:
    assert wishes({}) is NO_PREFERENCES


def test_preferred_nodes_are_read_and_of_equal_terms_the_weights_are_added_up() -> None:
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    named = {"weight": 3, "preference": {"matchFields": [name]}}
    empty = {"weight": 9, "preference": {}}
    ssd = NodeTerm((Requirement("disk", "In", ("ssd",)),))
    n1 = NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),))
    assert wishes(affine(nodeAffinity=[fast(1), named, empty, fast(4)])).node_affinity == (
        (n1, 3),
        (ssd, 5),
    )
    assert wishes(affine(nodeAffinity=[fast(0)])) is NO_PREFERENCES


def test_preferred_pods_are_read_those_to_be_apart_from_with_a_weight_below_zero() -> None:
    spec = affine(podAffinity=[beside("zone", 7)], podAntiAffinity=[beside("host", 5)])
    assert wishes(spec).pod_affinity == (
        WeightedAffinityTerm(AffinityTerm("host", PEERS), -5),
        WeightedAffinityTerm(AffinityTerm("zone", PEERS), 7),
    )
    same = affine(podAffinity=[beside("zone", 7)], podAntiAffinity=[beside("zone", 7)])
    assert wishes(same) is NO_PREFERENCES


def test_a_soft_spread_is_read_and_one_that_cannot_be_read_is_none() -> None:
    assert wishes(soft(APP)).spread == (TopologySpread("zone", PEERS, 2),)
    assert decode_member(pod(soft(APP))).shape.rules.spread == ()
    assert wishes(soft(ODD)) is NO_PREFERENCES


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_a_selector_that_cannot_be_read_takes_its_kind_of_wishes_along(kind: str) -> None:
    spec = affine(**{kind: [beside("zone", 1), beside("host", 1, ODD)]})
    read = decode_member(pod(spec))
    assert read.unsupported_fields == (f"a malformed spec.affinity.{kind}",)
    assert read.shape.preferences is NO_PREFERENCES
    there = decode_occupant(pod({**spec, "nodeName": "n1"}))
    assert there is not None
    assert there.scored_terms == ()


def test_whoever_is_there_draws_others_by_what_it_prefers_and_by_what_it_requires() -> None:
    spec = affine(podAffinity=[beside("zone", 7)], podAntiAffinity=[beside("host", 5)])
    required = [{"topologyKey": "zone", "labelSelector": APP}]
    spec["affinity"]["podAffinity"][REQUIRED] = required
    there = decode_occupant(pod({**spec, "nodeName": "n1"}))
    assert there is not None
    assert there.scored_terms == (
        WeightedAffinityTerm(AffinityTerm("host", PEERS), -5),
        WeightedAffinityTerm(AffinityTerm("zone", PEERS), 8),
    )
    ours = decode_member(pod(spec)).shape
    assert sum(term.weight for term in ours.scored_terms if term.term.topology == "zone") == 8
