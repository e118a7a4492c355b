"""The Witness on a real API server: what it sees is complete, ordered, and honest about gaps."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.judge import Change, History, Kind, Promise, Witness, judge

CRDS = Path(__file__).parents[2] / "charts" / "tutti" / "crds"
PODS = "/api/v1/namespaces/default/pods"
TUTTI = "/apis/tutti.dev/v1alpha1/namespaces/default"
ADMIN = "admin"  # plays Tutti here


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own: one test kills its API server."""
    with ControlPlane.start(components=()) as started:
        yield started


def _pod(plane: ControlPlane, name: str) -> dict[str, Any]:
    body = {
        "metadata": {"name": name, "labels": {"tutti.dev/pod-group": "train"}},
        "spec": {"schedulerName": "tutti", "containers": [{"name": "main", "image": "none"}]},
    }
    return plane.request("POST", PODS, body)


def _bind(plane: ControlPlane, pod: dict[str, Any]) -> None:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    body = {"metadata": {"name": name, "uid": uid}, "target": {"kind": "Node", "name": "a"}}
    plane.request("POST", f"{PODS}/{name}/binding", body)


def _node(plane: ControlPlane, name: str) -> None:
    node = plane.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    room = {"cpu": "8", "pods": "10"}
    status = {"capacity": room, "allocatable": room}
    plane.request("PUT", f"/api/v1/nodes/{name}/status", node | {"status": status})


def _told(history: History) -> list[tuple[Kind, Change, str]]:
    return [
        (event.kind, event.change, event.body["metadata"]["name"])
        for event in history.events
        if event.change is not Change.INITIAL and event.kind is not Kind.NAMESPACES
    ]


def _until_watching(witness: Witness) -> None:
    deadline = time.monotonic() + 30
    while not witness.is_watching:
        assert time.monotonic() < deadline, "not everything is watched"
        time.sleep(0.05)


def test_a_gang_bound_as_it_should_be_is_seen_in_order_and_judged(plane: ControlPlane) -> None:
    with Witness(plane.kubeconfig) as witness:
        plane.install_crds(CRDS)
        _until_watching(witness)
        _node(plane, "a")
        group = plane.request(
            "POST",
            f"{TUTTI}/podgroups",
            {
                "apiVersion": "tutti.dev/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": "train"},
                "spec": {"minMember": 2},
            },
        )
        early, late = _pod(plane, "early"), _pod(plane, "late")
        _bind(plane, early)
        uid = group["metadata"]["uid"]
        named = [{key: late["metadata"][key] for key in ("name", "uid")}]
        plane.request(
            "POST",
            f"{TUTTI}/reservations",
            {
                "apiVersion": "tutti.dev/v1alpha1",
                "kind": "Reservation",
                "metadata": {"name": uid},
                "spec": {
                    "schedulerName": "tutti",
                    "podGroup": {"name": "train", "uid": uid, "generation": 1},
                    "term": "test",
                    "reservedAt": "2026-01-01T00:00:00Z",
                    "placement": [{"node": "a", "pods": named}],
                },
            },
        )
        _bind(plane, late)
        plane.request("DELETE", f"{TUTTI}/reservations/{uid}")
    history = witness.history()
    assert not history.gaps
    assert _told(history)[2:] == [
        (Kind.POD_GROUPS, Change.ADDED, "train"),
        (Kind.PODS, Change.ADDED, "early"),
        (Kind.PODS, Change.ADDED, "late"),
        (Kind.PODS, Change.MODIFIED, "early"),
        (Kind.RESERVATIONS, Change.ADDED, uid),
        (Kind.PODS, Change.MODIFIED, "late"),
        (Kind.RESERVATIONS, Change.DELETED, uid),
    ]
    verdict = judge(history, audit=plane.audit_log, operator_user=ADMIN)
    assert verdict.bindings == 2
    others = len(_others(verdict))
    broken = {promise: len(verdict.of(promise)) for promise in Promise if verdict.of(promise)}
    assert broken == {Promise.WHOLE: 1, Promise.HANDS_OFF: others, Promise.RESERVED_FIRST: 1}
    assert not judge(history, audit=plane.audit_log, operator_user="nobody").violations


def _others(verdict: Any) -> list[str]:
    return [
        violation.sentence
        for violation in verdict.violations
        if "closed list" in violation.sentence
    ]


def test_what_happened_before_the_start_is_the_initial_state(plane: ControlPlane) -> None:
    _node(plane, "b")
    _pod(plane, "before")
    with Witness(plane.kubeconfig) as witness:
        _pod(plane, "during")
    _pod(plane, "after")
    history = witness.history()
    names = {event.body["metadata"]["name"]: event.change for event in history.events}
    assert (names["b"], names["before"]) == (Change.INITIAL, Change.INITIAL)
    assert _told(history) == [(Kind.PODS, Change.ADDED, "during")]
    assert "after" not in names


def test_an_api_server_killed_and_started_again_leaves_at_most_a_marked_gap(
    plane: ControlPlane,
) -> None:
    plane.install_crds(CRDS)
    with Witness(plane.kubeconfig) as witness:
        _pod(plane, "first")
        plane.restart_api_server()
        _until_watching(witness)
        time.sleep(1)  # one that the server refuses after all says so by then
        _pod(plane, "second")
        plane.request("DELETE", f"{PODS}/first?gracePeriodSeconds=0")
    history = witness.history()
    told = _told(history)
    assert told[:2] == [(Kind.PODS, Change.ADDED, "first"), (Kind.PODS, Change.ADDED, "second")]
    assert told[-1] == (Kind.PODS, Change.DELETED, "first")
    assert history.gap_at(history.events[-1].revision) is None
