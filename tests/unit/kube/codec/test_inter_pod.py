"""What a pod asks of other pods, as kube-scheduler reads it."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.kube import wire
from tutti.kube.codec.decode import decode_member, decode_occupant
from tutti.kube.errors import BadObject
from tutti.model.inter_pod import (
    NO_RULES,
    AffinityTerm,
    InterPodRules,
    PodSelector,
    Requirement,
    TopologySpread,
)

from ..objects import REQUIRED, Json, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP = {"matchLabels": {"app": "t"}}
IS_APP = (Requirement("app", "In", ("t",)),)


def apart(*terms: Json, **more: Any) -> Json:
    """A spec with these terms of required anti-affinity."""
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms), **more}}}


def expressions(*given: tuple[str, str, list[str]]) -> Json:
    """A selector."""
    keys = ("key", "operator", "values")
    return {"matchExpressions": [dict(zip(keys, each, strict=True)) for each in given]}


def spread(**fields: Any) -> Json:
    """A spec with one constraint."""
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", **fields}]}


def rules(spec: Json, **metadata: Any) -> InterPodRules:
    """What a pod with this spec asks for."""
    return decode_member(pod(spec, **metadata)).shape.rules


def term(**fields: Any) -> AffinityTerm:
    """The one term of anti-affinity that is read of these fields."""
    (found,) = rules(apart({"topologyKey": "zone", **fields})).anti_affinity
    return found


def test_affinity_anti_affinity_and_spread_are_read() -> None:
    spec = {
        "affinity": {
            "podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": APP}]},
            "podAntiAffinity": {REQUIRED: [{"topologyKey": "host", "labelSelector": APP}]},
        },
        **spread(labelSelector=APP, maxSkew=2, minDomains=3),
    }
    peers = PodSelector(IS_APP, ("ml",))
    assert rules(spec) == InterPodRules(
        (AffinityTerm("zone", peers),),
        (AffinityTerm("host", peers),),
        (TopologySpread("zone", peers, 2, 3),),
    )
    assert decode_member(pod(spec)).unsupported_fields == ()


def test_a_pod_that_asks_for_nothing_has_no_rules() -> None:
    assert rules({}) is NO_RULES
    assert rules({"affinity": {"podAffinity": {REQUIRED: []}, "podAntiAffinity": None}}) == NO_RULES


def test_equal_rules_labels_and_pairs_are_the_same_object() -> None:
    backwards = apart({"topologyKey": "a"}, {"topologyKey": "b"}, {"topologyKey": "b"})
    member = decode_member(pod(apart({"topologyKey": "b"}, {"topologyKey": "a"})))
    other = decode_member(pod(backwards, uid="u2"))
    assert member.shape is other.shape
    assert member.labels is other.labels
    more = decode_member(pod(labels={"app": "t", "one": "more"}))
    assert more.labels[0] is member.labels[0]
    bound = [decode_occupant(pod({**backwards, "nodeName": n}, uid=n)) for n in "xy"]
    assert bound[0] is not None
    assert bound[1] is not None
    assert bound[0].anti_affinity is bound[1].anti_affinity
    assert bound[0].labels is member.labels


SPACES: dict[str, tuple[Json, tuple[tuple[str, ...], Any]]] = {
    "its own": ({}, (("ml",), None)),
    "its own, if none is named": ({"namespaces": []}, (("ml",), None)),
    "those named": ({"namespaces": ["z", "a", "z"]}, (("a", "z"), None)),
    "all": ({"namespaceSelector": {}}, ((), ())),
    "those with a label": (
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        ((), (Requirement("team", "In", ("a",)),)),
    ),
    "both": (
        {"namespaces": ["a"], "namespaceSelector": expressions(("team", "Exists", []))},
        (("a",), (Requirement("team", "Exists"),)),
    ),
}


@pytest.mark.parametrize(("fields", "want"), SPACES.values(), ids=SPACES)
def test_which_namespaces_a_term_is_about(fields: Json, want: tuple[Any, Any]) -> None:
    peers = term(**fields).peers
    assert (peers.namespaces, peers.namespace_labels) == want


SELECTORS: dict[str, tuple[Any, tuple[Requirement, ...] | None]] = {
    "none": (None, None),
    "empty": ({}, ()),
    "labels": (
        {"matchLabels": {"b": "2", "a": ""}},
        (
            Requirement("a", "In", ("",)),
            Requirement("b", "In", ("2",)),
        ),
    ),
    "the same twice": (
        {**APP, **expressions(("app", "In", ["t", "t"]))},
        IS_APP,
    ),
    "every operator": (
        expressions(
            ("d", "DoesNotExist", []),
            ("c", "Exists", []),
            ("b", "NotIn", ["2", "1"]),
            ("a.example/a_b.c", "In", ["x", ""]),
        ),
        (
            Requirement("a.example/a_b.c", "In", ("", "x")),
            Requirement("b", "NotIn", ("1", "2")),
            Requirement("c", "Exists"),
            Requirement("d", "DoesNotExist"),
        ),
    ),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS)
def test_whom_a_selector_selects(selector: Any, want: tuple[Requirement, ...] | None) -> None:
    assert term(labelSelector=selector).peers.selector == want


def test_what_the_api_server_merged_is_not_merged_again() -> None:
    # Its labels have changed since; kube-scheduler goes by the selector alone.
    merged = expressions(("app", "In", ["before"]), ("role", "NotIn", ["x"]))
    affinity_term = term(labelSelector=merged, matchLabelKeys=["app"], mismatchLabelKeys=["role"])
    assert affinity_term.peers.selector == (
        Requirement("app", "In", ("before",)),
        Requirement("role", "NotIn", ("x",)),
    )


EVEN: dict[str, tuple[Json, TopologySpread]] = {
    "defaults": ({"labelSelector": APP}, TopologySpread("zone", PodSelector(IS_APP, ("ml",)), 1)),
    "policies": (
        {"labelSelector": APP, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
        TopologySpread(
            "zone",
            PodSelector(IS_APP, ("ml",)),
            1,
            honors_node_affinity=False,
            honors_node_taints=True,
        ),
    ),
    "policies said": (
        {"labelSelector": APP, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"},
        TopologySpread("zone", PodSelector(IS_APP, ("ml",)), 1),
    ),
    "nobody": ({}, TopologySpread("zone", PodSelector(None, ("ml",)), 1)),
    "an empty selector counts nobody": (
        {"labelSelector": {}},
        TopologySpread("zone", PodSelector(None, ("ml",)), 1),
    ),
    "keys merged into an empty selector": (
        {"labelSelector": {}, "matchLabelKeys": ["app", "absent"]},
        TopologySpread("zone", PodSelector(IS_APP, ("ml",)), 1),
    ),
    "keys merged a second time": (
        {"labelSelector": APP, "matchLabelKeys": ["app"]},
        TopologySpread("zone", PodSelector(IS_APP, ("ml",)), 1),
    ),
    "keys merged with what a label was before": (
        {"labelSelector": expressions(("app", "In", ["s"])), "matchLabelKeys": ["app"]},
        TopologySpread(
            "zone", PodSelector((Requirement("app", "In", ("s",)), *IS_APP), ("ml",)), 1
        ),
    ),
    "keys without a selector": (
        {"matchLabelKeys": ["app"]},
        TopologySpread("zone", PodSelector(None, ("ml",)), 1),
    ),
}


@pytest.mark.parametrize(("fields", "want"), EVEN.values(), ids=EVEN)
def test_how_a_spread_constraint_is_read(fields: Json, want: TopologySpread) -> None:
    assert rules(spread(**fields)).spread == (want,)


def test_several_constraints_are_sorted_and_equal_ones_are_one() -> None:
    two = [{"topologyKey": key, "labelSelector": sel} for key in "ba" for sel in (APP, None)]
    found = rules({"topologySpreadConstraints": [*two, *two]}).spread
    assert [(one.topology, one.peers.selector) for one in found] == [
        ("a", None),
        ("a", IS_APP),
        ("b", None),
        ("b", IS_APP),
    ]


@pytest.mark.parametrize("when", ["ScheduleAnyway", "Odd", ""])
def test_a_constraint_that_is_not_hard_is_no_rule(when: str) -> None:
    assert rules(spread(whenUnsatisfiable=when, labelSelector=APP)) == NO_RULES


MALFORMED: dict[str, Json] = {
    "unknown operator": expressions(("a", "Near", ["x"])),
    "an operator of node selectors": expressions(("a", "Gt", ["1"])),
    "no operator": {"matchExpressions": [{"key": "a"}]},
    "in nothing": expressions(("a", "In", [])),
    "exists with values": expressions(("a", "Exists", ["x"])),
    "no key": {"matchExpressions": [{"operator": "Exists"}]},
    "odd key": expressions(("a b", "Exists", [])),
    "long key": expressions(("a" * 64, "Exists", [])),
    "odd prefix": expressions(("A/b", "Exists", [])),
    "long prefix": expressions((f"{'a' * 254}/b", "Exists", [])),
    "no prefix before a slash": expressions(("/b", "Exists", [])),
    "odd value": {"matchLabels": {"a": "x y"}},
    "long value": {"matchLabels": {"a": "x" * 64}},
    "a line's end": {"matchLabels": {"a": "x\n"}},
}


@pytest.mark.parametrize("selector", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("field", ["labelSelector", "namespaceSelector"])
def test_who_has_a_malformed_selector_waits_and_is_told_so(field: str, selector: Json) -> None:
    bad, good = {"topologyKey": "zone", field: selector}, {"topologyKey": "host"}
    near = {"affinity": {"podAffinity": {REQUIRED: [good, bad]}, **apart(good)["affinity"]}}
    read = decode_member(pod(near))
    assert read.unsupported_fields == ("a malformed spec.affinity.podAffinity",)
    assert read.shape.rules.affinity == ()
    assert [one.topology for one in read.shape.rules.anti_affinity] == ["host"]
    # As in kube-scheduler, one that is there already keeps nobody away.
    there = decode_occupant(pod({**apart(good, bad), "nodeName": "n1"}))
    assert there is not None
    assert there.anti_affinity == ()


def test_a_malformed_preference_keeps_a_pod_waiting_and_leaves_its_rules() -> None:
    bad = {"topologyKey": "zone", "labelSelector": MALFORMED["no key"]}
    spec = apart({"topologyKey": "host"}, **{PREFERRED: [{"weight": 1, "podAffinityTerm": bad}]})
    read = decode_member(pod(spec))
    assert read.unsupported_fields == ("a malformed spec.affinity.podAntiAffinity",)
    assert [one.topology for one in read.shape.rules.anti_affinity] == ["host"]
    there = decode_occupant(pod({**spec, "nodeName": "n1"}))
    assert there is not None
    assert there.anti_affinity == read.shape.rules.anti_affinity


@pytest.mark.parametrize(
    ("when", "want"),
    [("DoNotSchedule", ("a malformed spec.topologySpreadConstraints",)), ("ScheduleAnyway", ())],
)
def test_a_malformed_selector_of_a_hard_constraint_keeps_a_pod_waiting(
    when: str, want: tuple[str, ...]
) -> None:
    odd = spread(whenUnsatisfiable=when, labelSelector=MALFORMED["in nothing"])
    assert decode_member(pod(odd)).unsupported_fields == want


@pytest.mark.parametrize("skew", [2**31, -(2**31) - 1, 10**30])
def test_a_number_that_go_cannot_read_is_refused(skew: int) -> None:
    with pytest.raises(BadObject, match="maxSkew"):
        pod(spread(maxSkew=skew))


SCALARS = st.sampled_from(["", "a", "In", "Exists", "DoNotSchedule", "x y", None, 0, 7, -1, True])
NAMES = st.sampled_from(["matchLabels", "matchExpressions", "key", "operator", "values", "a"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_whatever_stands_in_a_rule_is_read_or_refused(data: st.DataObject) -> None:
    def some(*names: str) -> Json:
        fields = st.dictionaries(st.sampled_from(names), JSON | st.just(APP), max_size=4)
        return data.draw(fields)

    near = some("labelSelector", "namespaces", "namespaceSelector", "topologyKey", "matchLabelKeys")
    even = some(
        "labelSelector",
        "maxSkew",
        "whenUnsatisfiable",
        "minDomains",
        "matchLabelKeys",
        "nodeTaintsPolicy",
    )
    spec = {**apart(near), "topologySpreadConstraints": [even]}
    metadata = {"name": "a", "namespace": "ml", "uid": "u", "resourceVersion": "1"}
    with suppress(BadObject):
        member = decode_member(wire.parse_one({"metadata": metadata, "spec": spec}, wire.Pod))
        asked = member.shape.rules
        assert (
            len(asked.anti_affinity) == 1
            or "a malformed spec.affinity.podAntiAffinity" in member.unsupported_fields
        )
        if even.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            assert (
                asked.spread
                or "a malformed spec.topologySpreadConstraints" in member.unsupported_fields
            )
