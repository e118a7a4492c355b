"""Gangs that Tutti plans and kube-scheduler binds, with the real kube-scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.rig import Rig, members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

GATED = {"schedulingGates": [{"name": "tutti.dev/gang"}]}
GATED_PODS: dict[str, Any] = {"scheduler": "default-scheduler", "spec": GATED}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A cluster with kube-scheduler, and hand-over turned on."""
    environment = {"TUTTI_HAND_OVER": "true"}
    values = ("settings.handOver=true",)
    with Rig.start("scheduler", values=values, environment=environment) as rig:
        rig.nodes(4, cpu=4, memory="16Gi")
        yield rig


def _group(name: str, size: int) -> dict[str, Any]:
    body = pod_group(name, size)
    body["spec"]["binding"] = "KubeScheduler"
    return body


def _with_affinity(body: dict[str, Any], terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return body | {"spec": body["spec"] | {"affinity": {"nodeAffinity": required}}}


def _phase(rig: Rig, name: str) -> str:
    path = f"/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups/{name}"
    return str(rig.plane.request("GET", path).get("status", {}).get("phase", ""))


def _pods(rig: Rig, gang: str) -> list[dict[str, Any]]:
    return [one for one in rig.pods() if one["metadata"]["name"].startswith(f"{gang}-")]


def _clear(rig: Rig) -> None:
    """Delete all pods and PodGroups, and wait until no room is held."""
    rig.plane.request("DELETE", "/api/v1/namespaces/ml/pods?gracePeriodSeconds=0")
    rig.plane.request("DELETE", "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups")
    rig.until(lambda: not rig.pods() and not rig.reservations(), "the pods are gone")


def test_two_gangs_that_do_not_fit_together_start_one_after_the_other(rig: Rig) -> None:
    rig.create(_group("left", 10), _group("right", 10))
    for side in ("left", "right"):
        rig.create(*members(side, 10, cpu="1", run_seconds=4, **GATED_PODS))
    rig.until(
        lambda: sorted(rig.bound(name) for name in ("left", "right")) == [0, 10],
        "one is bound whole, the other not at all",
    )
    waiting = next(name for name in ("left", "right") if not rig.bound(name))
    assert all(one["spec"].get("schedulingGates") for one in _pods(rig, waiting))
    rig.until(lambda: _phase(rig, waiting) == "Finished", "the other starts whole after it")
    _clear(rig)


def test_the_pin_narrows_each_term_of_a_pod_and_claims_of_devices_are_let_through(
    rig: Rig,
) -> None:
    """The claim of a device that no node has keeps its pod from its node, not the gang gated."""
    rig.create(_group("mixed", 3))
    hostname = {"key": "kubernetes.io/hostname", "operator": "Exists"}
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["nowhere"]}
    plain = pod("mixed-0", "mixed", cpu="1", **GATED_PODS)
    terms: list[dict[str, Any]] = [{"matchExpressions": [hostname]}, {"matchFields": [name]}]
    choosy = _with_affinity(pod("mixed-1", "mixed", cpu="1", **GATED_PODS), terms)
    device = pod("mixed-2", "mixed", cpu="1", **GATED_PODS)
    device["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "missing"}]
    rig.create(plain, choosy, device)
    rig.until(lambda: rig.bound("mixed") == 2, "what kube-scheduler can bind is bound")
    assert not any(one["spec"].get("schedulingGates") for one in _pods(rig, "mixed"))
    assert len(rig.reservations()) == 1, "it stays until every member has its node"
    rig.plane.request("DELETE", "/api/v1/namespaces/ml/pods/mixed-2?gracePeriodSeconds=0")
    rig.create(pod("mixed-3", "mixed", cpu="1", **GATED_PODS))
    rig.until(lambda: rig.bound("mixed") == 3, "the successor is planned and bound")
    rig.until(lambda: _phase(rig, "mixed") in ("Bound", "Running"), "the gang is whole")
    _clear(rig)


def test_a_leader_that_is_killed_between_two_patches_leaves_no_half_ungated_gang(rig: Rig) -> None:
    rig.create(_group("train", 8))
    rig.create(*members("train", 8, cpu="1", **GATED_PODS))
    rig.until(
        lambda: any(not one["spec"].get("schedulingGates") for one in _pods(rig, "train")),
        "the first is handed over",
    )
    rig.operator.kill()
    rig.operator.start()
    rig.until(lambda: rig.bound("train") == 8, "the others follow")
    _clear(rig)
