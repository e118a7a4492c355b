"""Where a pod may run and what it uses there: Shapes, unmodelled rules, Occupants."""

from typing import Any

import pytest

from tutti.kube.codec.decode import decode_member, decode_occupant
from tutti.model.cluster import ForeignPod
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.shapes import NodeTerm

from ..objects import POD, naming, node_affinity, pod


def test_equal_pods_share_one_shape() -> None:
    backwards = list(reversed(POD["spec"]["tolerations"]))
    one, other = decode_member(pod()), decode_member(pod({"tolerations": backwards}, uid="u2"))
    assert one.shape is other.shape


def test_ten_thousand_tolerations_are_read() -> None:
    many = [{"key": f"k{n % 5000}", "operator": "Exists"} for n in range(10_000)]
    assert len(decode_member(pod({"tolerations": many})).shape.tolerations) == 5000


def test_node_affinity_is_read_sorted_and_without_empty_terms() -> None:
    got = decode_member(
        pod(
            node_affinity(
                naming("n1"),
                {},
                {
                    "matchExpressions": [
                        {"key": "z", "operator": "Exists"},
                        {"key": "a", "operator": "In", "values": ["y", "x", "y"]},
                    ]
                },
            )
        )
    )
    assert got.shape.required == (
        NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),)),
        NodeTerm((Requirement("a", "In", ("x", "y")), Requirement("z", "Exists"))),
    )


def test_terms_that_are_all_empty_match_no_node() -> None:
    assert decode_member(pod(node_affinity({}, {}))).shape.required == ()


UNMODELLED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "several volumes of a kind are named once": (
        {
            "volumes": [
                {"name": "a", "iscsi": {}},
                {"name": "b", "iscsi": {}},
                {"name": "c", "rbd": {}},
            ]
        },
        ("spec.volumes[].iscsi", "spec.volumes[].rbd"),
    ),
    "volumes that bind to no node": (
        {
            "volumes": [
                {"name": kind, kind: {}, "persistentVolumeClaim": None}
                for kind in (
                    "configMap",
                    "secret",
                    "downwardAPI",
                    "hostPath",
                    "nfs",
                    "csi",
                    "image",
                )
            ]
        },
        (),
    ),
    "a native gang": (
        {"schedulingGroup": {"podGroupName": "x"}},
        ("spec.schedulingGroup (settings.gangSources lacks podgroups.scheduling.k8s.io)",),
    ),
}


@pytest.mark.parametrize(("spec", "want"), UNMODELLED.values(), ids=UNMODELLED)
def test_rules_that_are_not_modelled_are_named(spec: dict[str, Any], want: tuple[str, ...]) -> None:
    assert decode_member(pod(spec)).unsupported_fields == want


PIN = node_affinity(naming("n1"))
OCCUPANTS: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "bound": ({"nodeName": "n1"}, {"phase": "Running"}, "n1"),
    "bound, not started": ({"nodeName": "n1"}, {"phase": "Pending"}, "n1"),
    "bound, lost": ({"nodeName": "n1"}, {"phase": "Unknown"}, "n1"),
    "succeeded": ({"nodeName": "n1"}, {"phase": "Succeeded"}, None),
    "failed": ({"nodeName": "n1"}, {"phase": "Failed"}, None),
    "pending": ({}, {}, None),
    "pinned": (PIN, {}, "n1"),
    "pinned and failed": (PIN, {"phase": "Failed"}, None),
    "pinned and gated": ({**PIN, "schedulingGates": [{"name": "g"}]}, {}, None),
    "pinned twice to the same": (node_affinity(naming("n1"), naming("n1")), {}, "n1"),
    "pinned to either": (node_affinity(naming("n1"), naming("n2")), {}, None),
    "pinned to both": (node_affinity(naming("n1", "n2")), {}, None),
    "kept off": (node_affinity(naming("n1", operator="NotIn")), {}, None),
    "pinned or anywhere with a label": (
        node_affinity(naming("n1"), {"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
        {},
        None,
    ),
    "no terms": (node_affinity(), {}, None),
}


@pytest.mark.parametrize(("spec", "status", "where"), OCCUPANTS.values(), ids=OCCUPANTS)
def test_a_pod_uses_room_where_it_is_bound_or_pinned(
    spec: dict[str, Any], status: dict[str, Any], where: str | None
) -> None:
    got = decode_occupant(pod(spec, status))
    assert (got.node if got else None) == where


def test_a_terminating_pod_holds_its_room_only_where_it_is_bound() -> None:
    at = "2026-01-01T00:01:00Z"
    assert decode_occupant(pod({"nodeName": "n1"}, deletionTimestamp=at)) == ForeignPod(
        Uid(POD["metadata"]["uid"]),
        NodeName("n1"),
        decode_member(pod()).shape.requests,
        "ml",
        decode_member(pod()).labels,
        terminating=True,
    )
    assert decode_occupant(pod(PIN, deletionTimestamp=at)) is None
