"""Gangs that Tutti plans and kube-scheduler binds, with the real kube-scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.test_volumes import CLAIMS, chosen, mounting
from tests.harness.provisioner import PROVISIONER, SELECTED, claim, storage_class, volume
from tests.harness.rig import Rig, ending, members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

HANDED_OVER_AT = "tutti.dev/handed-over-at"
GATED = {"schedulingGates": [{"name": "tutti.dev/gang"}]}
GATED_PODS: dict[str, Any] = {"scheduler": "default-scheduler", "spec": GATED}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A cluster with kube-scheduler and the PV controller, and hand-over turned on."""
    environment = {"TUTTI_HAND_OVER": "true"}
    values = ("settings.handOver=true",)
    components = ("scheduler", "controller-manager")
    with Rig.start(*components, values=values, environment=environment) as rig:
        rig.nodes(4, cpu=4, memory="16Gi")
        rig.create(
            storage_class("local", "kubernetes.io/no-provisioner"),
            storage_class("disk", PROVISIONER),
        )
        yield rig


def _group(name: str, size: int) -> dict[str, Any]:
    body = pod_group(name, size)
    body["spec"]["binding"] = "KubeScheduler"
    return body


def _with_affinity(body: dict[str, Any], terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return body | {"spec": body["spec"] | {"affinity": {"nodeAffinity": required}}}


def _terms(body: dict[str, Any]) -> list[dict[str, Any]]:
    affinity = body["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    return list(required["nodeSelectorTerms"])


def _resource_claim(name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "no-such-devices"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": [request]}},
    }


def _end_time_to_bind(rig: Rig, name: str) -> None:
    """Let the time be over in which kube-scheduler should bind a pod, as users could."""
    long_ago = {"metadata": {"annotations": {HANDED_OVER_AT: "2020-01-01T00:00:00Z"}}}
    rig.plane.request("PATCH", f"/api/v1/namespaces/ml/pods/{name}", long_ago)


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
        rig.create(*members(side, 10, cpu="1", **GATED_PODS))
    rig.until(
        lambda: sorted(rig.bound(name) for name in ("left", "right")) == [0, 10],
        "one is bound whole, the other not at all",
    )
    waiting = next(name for name in ("left", "right") if not rig.bound(name))
    assert all(one["spec"].get("schedulingGates") for one in _pods(rig, waiting))
    rig.plane.apply(ending(one, seconds=1) for one in rig.pods())
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
    rig.until(
        lambda: not any(one["spec"].get("schedulingGates") for one in _pods(rig, "mixed")),
        "all are handed over",
    )
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


def test_a_pod_is_pinned_where_kube_scheduler_can_bind_its_claim(rig: Rig) -> None:
    """The gang waits while there are too few volumes; one volume is made for one claim."""
    names = [f"stored-{i}" for i in range(3)]
    rig.create(_group("stored", 3), *(claim(name, "local") for name in names))
    for body in members("stored", 3, cpu="1", **GATED_PODS):
        rig.create(body | {"spec": body["spec"] | mounting(body["metadata"]["name"])})
    rig.until_waiting("stored", "NoNodeFits")
    for_second = volume("pv-1", "node-003", "local")
    for_second["spec"]["claimRef"] = {"name": "stored-1", "namespace": "ml"}
    rig.create(volume("pv-0", "node-002", "local"), for_second)
    rig.until_waiting("stored", "NotEnoughRoom")
    assert all(one["spec"].get("schedulingGates") for one in _pods(rig, "stored"))
    rig.create(volume("pv-2", "node-002", "local"))
    rig.until_bound("stored", 3)
    volumes = chosen(rig)
    assert sorted(volumes) == names
    assert volumes["stored-1"] == "pv-1"
    nodes = {one["metadata"]["name"]: one["spec"]["nodeName"] for one in _pods(rig, "stored")}
    assert nodes == {"stored-0": "node-002", "stored-1": "node-003", "stored-2": "node-002"}
    _clear(rig)


def test_kube_scheduler_refuses_a_pod_away_from_the_node_selected_for_its_claim(rig: Rig) -> None:
    """So such a pod is pinned to that node; what kube-scheduler refuses by itself is said."""
    rig.create(_group("made", 2), claim("made-0", "disk"), claim("elsewhere", "disk"))
    for name in ("made-0", "elsewhere"):
        selected = {"metadata": {"annotations": {SELECTED: "node-003"}}}
        rig.plane.request("PATCH", f"{CLAIMS}/{name}", selected)
    field = {"key": "metadata.name", "operator": "In", "values": ["node-001"]}
    lost = pod("lost", "", cpu="1", scheduler="default-scheduler", spec=mounting("elsewhere"))
    lost["metadata"]["labels"] = {}
    rig.create(_with_affinity(lost, [{"matchFields": [field]}]))
    rig.until(lambda: rig.pod_says("lost").get("reason") == "Unschedulable", "it is refused")
    device = pod("made-1", "made", cpu="1", **GATED_PODS)
    rig.create(_resource_claim("gpu"))
    device["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    body = pod("made-0", "made", cpu="1", **GATED_PODS)
    rig.create(body | {"spec": body["spec"] | mounting("made-0")}, device)
    rig.until(lambda: not rig.pod("made-0")["spec"].get("schedulingGates"), "it is handed over")
    (term,) = _terms(rig.pod("made-0"))
    assert term["matchFields"][0]["values"] == ["node-003"]
    rig.until(
        lambda: rig.condition("made", "Bound").get("reason") == "NotBound",
        "kube-scheduler's refusal is said before its time is over",
    )
    assert "made-1 is not bound" in rig.condition("made", "Bound")["message"]
    rig.plane.request("DELETE", "/api/v1/namespaces/ml/pods/lost?gracePeriodSeconds=0")
    _clear(rig)


def test_a_gang_is_degraded_until_the_successor_of_a_refused_pod_is_planned(rig: Rig) -> None:
    """The refused pod keeps its room, and nobody evicts it."""
    rig.create(_group("stuck", 15), _resource_claim("no-device"))
    device = pod("stuck-14", "stuck", cpu="1", **GATED_PODS)
    device["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "no-device"}]
    rig.create(*members("stuck", 14, cpu="1", **GATED_PODS), device)
    rig.until(lambda: rig.bound("stuck") == 14, "what kube-scheduler can bind is bound")
    rig.until_pod_says("stuck-14", "Unschedulable")
    assert _phase(rig, "stuck") == "Reserved", "kube-scheduler has time"
    _end_time_to_bind(rig, "stuck-14")
    sentence = rig.until_says("stuck", "Healthy", "NotBound")
    assert sentence.startswith("14 of 15 members are bound, 1 missing: stuck-14 is not bound")
    assert f"(Unschedulable: {rig.pod_says('stuck-14')['message']})" in sentence
    assert "delete what it cannot bind there" in sentence
    assert _phase(rig, "stuck") == "Degraded"
    rig.until(lambda: not rig.reservations(), "no Reservation waits for it")

    uid = rig.pod("stuck-14")["metadata"]["uid"]
    rig.create(pod_group("other", 2))
    rig.create(*members("other", 2, cpu="1"))
    rig.until_waiting("other", "NotEnoughRoom")
    assert rig.pod("stuck-14")["metadata"]["uid"] == uid, "it stays, and keeps its room"
    for name in ("other-0", "other-1"):
        rig.delete("pod", name)
    rig.delete("pod", "stuck-14")
    rig.create(pod("stuck-15", "stuck", cpu="1", **GATED_PODS))
    rig.until(lambda: rig.bound("stuck") == 15, "the successor is planned and bound")
    rig.until(lambda: _phase(rig, "stuck") in ("Bound", "Running"), "the gang is whole")
    _clear(rig)
