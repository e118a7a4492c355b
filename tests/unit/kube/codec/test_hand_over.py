"""Pods that are handed over: which they are, how they are read, and the patch that does it."""

import json
from typing import Any

import pytest

from tutti.kube import wire
from tutti.kube.codec import hand_over
from tutti.kube.codec.decode import decode_occupant
from tutti.kube.errors import BadObject, Conflict
from tutti.kube.gang_sources import ALWAYS
from tutti.model.cluster import GATE, BoundBy
from tutti.model.decisions import Assignment
from tutti.model.keys import NodeName, PodKey, Uid

IN_A = {"tutti.dev/pod-group": "a"}
PIN = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
OTHER_PIN = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
ZONE = {"key": "zone", "operator": "In", "values": ["z1"]}
TO_N1 = Assignment(PodKey("ml", "a-0"), Uid("u-1"), "7", NodeName("n1"))


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [*terms]}
    return {"affinity": {"nodeAffinity": {hand_over.REQUIRED: required}}}


def gates(*names: str) -> dict[str, Any]:
    return {"schedulingGates": [{"name": name} for name in names]}


def raw(
    spec: dict[str, Any], labels: dict[str, str] | None = None, **metadata: Any
) -> dict[str, Any]:
    known = {"name": "a-0", "namespace": "ml", "uid": "u-1", "resourceVersion": "7"}
    own = IN_A if labels is None else labels
    return {
        "metadata": {**known, "labels": own, **metadata},
        "spec": {"schedulerName": "default-scheduler", **spec},
    }


def pod(*arguments: Any, **metadata: Any) -> wire.Pod:
    return wire.parse_one(raw(*arguments, **metadata), wire.Pod)


@pytest.mark.parametrize(
    ("spec", "labels", "is_member"),
    [
        (gates(GATE), {}, True),
        (gates("other", GATE), IN_A, True),
        (gates("other"), IN_A, False),
        ({"nodeName": "n1"}, IN_A, False),
        ({"nodeName": "n1", **affinity({"matchFields": [PIN]})}, IN_A, True),
        ({"nodeName": "n1", **affinity({"matchFields": [PIN]})}, {}, False),
        (affinity({"matchFields": [PIN]}), IN_A, True),
        (affinity({"matchFields": [PIN]}), {}, False),
        ({}, IN_A, False),
        ({"schedulerName": "mine", **gates(GATE)}, IN_A, False),
        ({"schedulerName": "", **gates(GATE)}, IN_A, True),
    ],
)
def test_a_pod_with_the_gate_is_a_member_and_later_one_with_a_group_and_a_pin(
    spec: dict[str, Any], labels: dict[str, str], *, is_member: bool
) -> None:
    assert hand_over.is_member(pod(spec, labels)) is is_member


def test_a_gated_pod_waits_and_other_gates_hold_it_back() -> None:
    waiting = hand_over.decode_handed_member(pod(gates(GATE)))
    assert (waiting.bound_by, waiting.group) == (BoundBy.KUBE_SCHEDULER, "a")
    assert waiting.is_waiting
    assert not waiting.gated
    held_back = hand_over.decode_handed_member(pod(gates("example.com/quota", GATE)))
    assert not held_back.is_waiting
    assert held_back.foreign_gates == ("example.com/quota",)


def test_a_pod_that_is_pinned_and_ungated_is_on_its_node() -> None:
    at = {"annotations": {hand_over.HANDED_OVER_AT: "1970-01-01T00:00:09Z"}}
    handed = hand_over.decode_handed_member(pod(affinity({"matchFields": [PIN]}), **at))
    assert (handed.node, handed.is_handed_over, handed.handed_over_at) == ("n1", True, 9.0)
    assert handed.counts_as_bound
    bound = hand_over.decode_handed_member(
        pod(affinity({"matchFields": [PIN]}) | {"nodeName": "n1"}, **at)
    )
    assert (bound.node, bound.is_handed_over, bound.handed_over_at) == ("n1", False, None)


@pytest.mark.parametrize(
    "at", ["", "soon", "9999999-01-01", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-14:00"]
)
def test_a_time_that_users_broke_is_unknown(at: str) -> None:
    broken = {"annotations": {hand_over.HANDED_OVER_AT: at}}
    handed = hand_over.decode_handed_member(pod(affinity({"matchFields": [PIN]}), **broken))
    assert handed.is_handed_over
    assert handed.handed_over_at is None


def test_a_time_without_a_zone_is_utc() -> None:
    at = {"annotations": {hand_over.HANDED_OVER_AT: "1970-01-01T00:00:09"}}
    handed = hand_over.decode_handed_member(pod(affinity({"matchFields": [PIN]}), **at))
    assert handed.handed_over_at == 9.0


def test_a_pod_without_gate_and_pin_and_one_that_terminates_have_no_node_and_do_not_wait() -> None:
    for odd in (
        pod({}),
        pod(affinity({"matchFields": [PIN]}), deletionTimestamp="2026-01-01T00:00:00Z"),
    ):
        member = hand_over.decode_handed_member(odd)
        assert member.node is None
        assert not member.is_waiting
        assert not member.counts_as_bound
        assert not member.counts_as_bound
        assert member.foreign_gates == ()


def test_what_kube_scheduler_models_is_let_through_and_the_rest_is_not() -> None:
    volumes = [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "disk", "awsElasticBlockStore": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    spec = {**gates(GATE), "volumes": volumes, "resourceClaims": [{"name": "gpu"}]}
    member = hand_over.decode_handed_member(pod(spec))
    assert member.unsupported_fields == ()
    assert member.claims == ("a-0-scratch", "data")
    native = hand_over.decode_handed_member(pod({**spec, "schedulingGroup": {}}))
    assert native.unsupported_fields == ("spec.schedulingGroup",)
    alone = hand_over.decode_handed_member(pod(spec, {}))
    assert alone.unsupported_fields == (hand_over.NO_GROUP,)


def test_only_if_tutti_hands_over_are_pods_of_the_default_scheduler_read_so() -> None:
    gated, own = pod(gates(GATE)), pod({"schedulerName": "tutti"})
    for hands_over in (True, False):
        decode = hand_over.member_decoder(ALWAYS, hands_over=hands_over)
        assert decode(own).bound_by is BoundBy.TUTTI
        assert (decode(gated).bound_by is BoundBy.KUBE_SCHEDULER) is hands_over


@pytest.mark.parametrize(
    ("terms", "pinned"),
    [
        ([], [{"matchFields": [PIN]}]),
        ([{"matchExpressions": [ZONE]}], [{"matchExpressions": [ZONE], "matchFields": [PIN]}]),
        ([{"matchFields": [OTHER_PIN]}], [{"matchFields": [OTHER_PIN, PIN]}]),
        (
            [{"matchExpressions": [ZONE]}, {}, {"matchFields": [PIN]}],
            [
                {"matchExpressions": [ZONE], "matchFields": [PIN]},
                {},
                {"matchFields": [PIN, PIN]},
            ],
        ),
    ],
)
def test_each_term_is_narrowed_and_an_empty_term_stays(
    terms: list[dict[str, Any]], pinned: list[dict[str, Any]]
) -> None:
    spec = gates(GATE) | (affinity(*terms) if terms else {})
    patch = hand_over.hand_over(json.dumps(raw(spec)).encode(), TO_N1, 9.0)
    required = patch["spec"]["affinity"]["nodeAffinity"][hand_over.REQUIRED]
    assert required == {"nodeSelectorTerms": pinned}
    assert patch["spec"]["schedulingGates"] is None
    assert patch["metadata"] == {
        "uid": "u-1",
        "resourceVersion": "7",
        "annotations": {hand_over.HANDED_OVER_AT: "1970-01-01T00:00:09Z"},
    }
    ungated = pod(affinity(*required["nodeSelectorTerms"]))
    may_be_on_n1 = not terms or terms != [{"matchFields": [OTHER_PIN]}]
    assert hand_over.is_member(ungated) is may_be_on_n1


def test_gates_of_others_are_never_removed() -> None:
    body = json.dumps(raw(gates("example.com/quota", GATE))).encode()
    patch = hand_over.hand_over(body, TO_N1, 9.0)
    assert patch["spec"]["schedulingGates"] == [{"name": "example.com/quota"}]


@pytest.mark.parametrize("changed", [{"uid": "u-2"}, {"resourceVersion": "8"}])
def test_a_pod_that_has_changed_is_not_handed_over(changed: dict[str, str]) -> None:
    pod_now = raw(gates(GATE))
    pod_now["metadata"] |= changed
    with pytest.raises(Conflict):
        hand_over.hand_over(json.dumps(pod_now).encode(), TO_N1, 9.0)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"metadata": {}, "spec": {}}', b"[" * 99999])
def test_an_answer_that_is_no_pod_is_an_error(body: bytes) -> None:
    with pytest.raises(BadObject):
        hand_over.hand_over(body, TO_N1, 9.0)


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        ([{"matchFields": [PIN]}], "n1"),
        ([{"matchFields": [PIN]}, {}], "n1"),
        ([{"matchFields": [OTHER_PIN, PIN]}, {"matchFields": [PIN]}], "n1"),
        ([{"matchFields": [PIN]}, {"matchExpressions": [ZONE]}], None),
        ([{"matchFields": [PIN]}, {"matchFields": [OTHER_PIN]}], None),
        ([{"matchFields": [OTHER_PIN, PIN]}], None),
        ([{}], None),
    ],
)
def test_terms_that_match_no_node_do_not_loosen_a_pin(
    terms: list[dict[str, Any]], node: str | None
) -> None:
    """A DaemonSet's pod, and one that was handed over, use room of the node that they may go to."""
    occupant = decode_occupant(pod(affinity(*terms)))
    assert (None if occupant is None else occupant.node) == node
