"""Pods that claim devices, on a real API server with the controller that makes their claims.

The test plays the driver: it publishes slices, and after each test it checks the claims of all
pods that have a node as a kubelet and its plugins would.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from ..harness.controlplane.pins import chosen_k8s
from ..harness.kubelet.devices import DeviceObjects
from ..harness.rig import Rig
from .places import Place
from .test_explain import explain

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER, CLASS = "gpu.example.com", "gpu"
GROUP = "resource.k8s.io/v1"
MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these."""
    with Rig.start("controller-manager") as started:
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        opaque = {"driver": DRIVER, "parameters": {"sharing": "none"}}
        spec = {"selectors": [selector], "config": [{"opaque": opaque}]}
        started.create(_object("DeviceClass", CLASS, spec))
        yield started


@pytest.fixture
def place(rig: Rig) -> Iterator[Place]:
    """A namespace and nodes of a test's own; in the end, kubelets can prepare all devices."""
    made = Place(rig)
    yield made
    seen = DeviceObjects.read(rig.plane.request)
    assert seen.faults() == []
    assert any(claim["metadata"]["namespace"] == made.name for claim in seen.prepared())


def _object(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _publish(place: Place, node: str, count: int, memory: str = "80Gi") -> None:
    """Publish devices of a node, as its driver does."""
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {"uuid": {"string": f"{node}-{i}"}},
            "capacity": {"memory": {"value": memory}},
        }
        for i in range(count)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
    place.rig.create(_object("ResourceSlice", f"{node}-slice", spec))


def _template(place: Place, count: int) -> str:
    """A template of claims for so many devices of 40Gi."""
    selector = {"cel": {"expression": MEMORY}}
    exactly = {"deviceClassName": CLASS, "count": count, "selectors": [selector]}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    place.rig.create(_object("ResourceClaimTemplate", "gpus", spec, namespace=place.name))
    return "gpus"


def _gang(place: Place, name: str, members: int, template: str) -> None:
    place.group(name, members)
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}]}
    place.members(name, members, cpu=1, spec=spec)


def _claims(place: Place) -> list[dict[str, Any]]:
    path = f"/apis/{GROUP}/namespaces/{place.name}/resourceclaims"
    found: list[dict[str, Any]] = place.rig.plane.request("GET", path)["items"]
    return found


def _results(claim: dict[str, Any]) -> list[dict[str, Any]]:
    allocation = claim.get("status", {}).get("allocation") or {}
    found: list[dict[str, Any]] = allocation.get("devices", {}).get("results", [])
    return found


def test_a_live_cluster_is_explained_with_its_devices(place: Place) -> None:
    """Its node has three devices, and the gang needs four."""
    (node,) = place.nodes(1)
    _publish(place, node, 3)
    _gang(place, "waits", 2, _template(place, 2))
    place.until_waiting("waits", "NotEnoughRoom")
    done = explain(place.rig, "explain", f"{place.name}/waits")
    assert done.returncode == 0, done.stderr
    assert "devices of gpu" in done.stdout
    assert "NotModelled" not in done.stdout
    spec = {
        "driver": DRIVER,
        "pool": {"name": f"{node}-more", "generation": 1, "resourceSliceCount": 1},
        "nodeName": node,
        "devices": [{"name": "gpu-9", "capacity": {"memory": {"value": "80Gi"}}}],
    }
    place.rig.create(_object("ResourceSlice", f"{node}-more", spec))
    place.until_bound("waits", 2)


def test_a_gang_gets_its_devices_as_a_kubelet_expects_them(place: Place) -> None:
    nodes = place.nodes(3)
    for node, memory in zip(nodes, ("80Gi", "80Gi", "16Gi"), strict=True):
        _publish(place, node, 4, memory)
    _gang(place, "train", 4, _template(place, 2))
    place.until_bound("train", 4)
    given = Counter[tuple[str, str]]()
    for claim in _claims(place):
        (consumer,) = claim["status"]["reservedFor"]
        node = place.rig.pod(consumer["name"], place.name)["spec"]["nodeName"]
        assert node in nodes[:2]
        results = _results(claim)
        assert [result["request"] for result in results] == ["gpu", "gpu"]
        assert {(result["driver"], result["pool"]) for result in results} == {(DRIVER, node)}
        given.update((result["pool"], result["device"]) for result in results)
        (config,) = claim["status"]["allocation"]["devices"]["config"]
        assert config["source"] == "FromClass"
        assert config["opaque"]["parameters"] == {"sharing": "none"}
    assert len(given) == 8
    assert set(given.values()) == {1}
    for i in range(3):
        place.delete("pods", f"train-{i}")
    place.rig.until(lambda: len(_claims(place)) == 1, "the controller deletes the claims")


def test_a_gang_shares_one_claim_until_its_last_pod_is_gone(place: Place) -> None:
    """Its pods run on one node, and its devices go to the next gang that names the claim."""
    nodes = place.nodes(2)
    for node in nodes:
        _publish(place, node, 2)
    exactly = {"deviceClassName": CLASS, "count": 2}
    config = [{"opaque": {"driver": DRIVER, "parameters": {"sharing": "time"}}}]
    devices = {"requests": [{"name": "gpu", "exactly": exactly}], "config": config}
    place.rig.create(_object("ResourceClaim", "one", {"devices": devices}, namespace=place.name))
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimName": "one"}]}
    for gang in ("train", "late"):
        place.group(gang, 4)
        names = place.members(gang, 4, cpu=1, spec=spec)
        place.until_bound(gang, 4)
        pods = [place.rig.pod(name, place.name) for name in names]
        (claim,) = _claims(place)
        assert {result["pool"] for result in _results(claim)} == {
            pod["spec"]["nodeName"] for pod in pods
        }
        reserved = {consumer["uid"] for consumer in claim["status"]["reservedFor"]}
        assert reserved == {pod["metadata"]["uid"] for pod in pods}
        if gang == "train":
            for name in names:
                place.delete("pods", name)
            place.rig.until(lambda: not any(map(_results, _claims(place))), "it has no devices")


def test_a_claim_that_no_patch_can_change_keeps_no_room(place: Place) -> None:
    """Its client sent the configuration with spaces, and patches of others have none."""
    (node,) = place.nodes(1)
    _publish(place, node, 1)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]
    config = [{"opaque": {"driver": DRIVER, "parameters": {"sharing": "time"}}}]
    devices = {"requests": requests, "config": config}
    claim = _object("ResourceClaim", "one", {"devices": devices}, namespace=place.name)
    path = f"/apis/{GROUP}/namespaces/{place.name}/resourceclaims"
    place.rig.plane.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(claim))
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimName": "one"}]}
    place.group("spaced", 1)
    place.members("spaced", 1, cpu=1, spec=spec)
    place.until_waiting("spaced", "Refused", "create it with kubectl")
    place.rig.until(lambda: not place.rig.reservations(place.name), "it has no Reservation")
    _gang(place, "train", 1, _template(place, 1))
    place.until_bound("train", 1)
    place.rig.plane.request("DELETE", f"{path}/one")


def test_a_gang_that_lacks_a_device_waits_and_says_so(place: Place) -> None:
    (node,) = place.nodes(1)
    _publish(place, node, 3)
    _gang(place, "train", 2, _template(place, 2))
    said = place.until_waiting("train", "NotEnoughRoom", "device")
    assert "devices of gpu#" in said
    assert not any(map(_results, _claims(place)))
    extra = place.nodes(1, "more")[0]
    _publish(place, extra, 2)
    place.until_bound("train", 2)


def test_pods_with_admin_access_share_the_devices_of_others(place: Place) -> None:
    (node,) = place.nodes(1)
    _publish(place, node, 2)
    _gang(place, "train", 2, _template(place, 1))
    place.until_bound("train", 2)
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    place.rig.plane.request("PATCH", f"/api/v1/namespaces/{place.name}", label)
    exactly = {"deviceClassName": CLASS, "allocationMode": "All", "adminAccess": True}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    place.rig.create(_object("ResourceClaimTemplate", "watched", spec, namespace=place.name))
    _gang(place, "watch", 2, "watched")
    place.until_bound("watch", 2)
    watching = [
        _results(claim)
        for claim in _claims(place)
        if claim["status"]["reservedFor"][0]["name"].startswith("watch")
    ]
    assert [len(results) for results in watching] == [2, 2]
    assert all(result["adminAccess"] for results in watching for result in results)


def test_partitions_share_the_counters_of_a_device(place: Place) -> None:
    """Each half consumes 40Gi, and a quarter 20Gi, of the 80Gi of one card."""
    (node,) = place.nodes(1)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    own = {"driver": DRIVER, "pool": pool, "nodeName": node}
    counters = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
    place.rig.create(_object("ResourceSlice", f"{node}-sets", {**own, "sharedCounters": counters}))
    devices = [
        {
            "name": f"part-{size}-{i}".lower(),
            "capacity": {"memory": {"value": size}},
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": size}}}],
        }
        for size in ("40Gi", "20Gi")
        for i in range(4)
    ]
    place.rig.create(_object("ResourceSlice", f"{node}-parts", {**own, "devices": devices}))
    _gang(place, "train", 2, _template(place, 1))
    place.until_bound("train", 2)
    _gang(place, "late", 1, "gpus")
    place.until_waiting("late", "NotEnoughRoom", "set of gpu#")
    place.delete("pods", "train-0")
    place.until_bound("late", 1)


def test_pods_that_request_an_extended_resource_get_devices_of_its_class(place: Place) -> None:
    """Their init container uses the devices of the main container, and needs one more."""
    (node,) = place.nodes(1)
    _publish(place, node, 4)
    resource = f"example.com/{place.name}"
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], "extendedResourceName": resource}
    place.rig.create(_object("DeviceClass", f"{place.name}-backing", spec))
    place.group("train", 2)
    for name in ("train-0", "train-1"):
        place.rig.create(_requesting(place, name, resource))
    place.until_bound("train", 2)
    given = set[str]()
    for claim in _claims(place):
        (owner,) = claim["metadata"]["ownerReferences"]
        pod = place.rig.pod(owner["name"], place.name)
        assert pod["spec"]["nodeName"] == node
        status = pod["status"]["extendedResourceClaimStatus"]
        assert status["resourceClaimName"] == claim["metadata"]["name"]
        requests = [(m["containerName"], m["requestName"]) for m in status["requestMappings"]]
        assert requests == [
            ("main", "container-1-request-1"),
            ("init", "container-1-request-1"),
            ("init", "container-0-request-0"),
        ]
        assert claim["status"]["reservedFor"][0]["uid"] == pod["metadata"]["uid"]
        given.update(result["device"] for result in _results(claim))
    assert len(given) == 4
    place.group("late", 1)
    place.rig.create(_requesting(place, "late-0", resource, "late"))
    place.until_waiting("late", "NotEnoughRoom", f"devices of {place.name}-backing")
    done = explain(place.rig, "explain", f"{place.name}/late")
    assert f"devices of {place.name}-backing" in done.stdout, done.stderr
    place.delete("pods", "train-0")
    place.until_bound("late", 1)
    place.delete("pods", "train-1")
    place.rig.until(lambda: len(_claims(place)) == 1, "the controller deletes the claims")


def _requesting(place: Place, name: str, resource: str, group: str = "train") -> dict[str, Any]:
    """A pod of a gang whose init container requests two devices, and its main container one."""
    made = place.pod(name, group, cpu=1)
    (main,) = made["spec"]["containers"]
    main["resources"] = {"limits": {"cpu": "100m", resource: "1"}}
    init = {**main, "name": "init", "resources": {"limits": {resource: "2"}}}
    made["spec"]["initContainers"] = [init]
    return made


@pytest.mark.skipif(chosen_k8s() != "1.37", reason="DeviceTaintRules of this version are 1.37's")
def test_a_device_is_not_used_while_a_rule_taints_it(place: Place) -> None:
    (node,) = place.nodes(1)
    _publish(place, node, 2)
    taint = {"key": "broken", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"pool": node, "device": "gpu-0"}, "taint": taint}
    place.rig.create(_object("DeviceTaintRule", f"{place.name}-rule", spec))
    _gang(place, "train", 2, _template(place, 1))
    place.until_waiting("train", "NotEnoughRoom")
    path = f"/apis/{GROUP}/devicetaintrules/{place.name}-rule"
    place.rig.plane.request("DELETE", path)
    place.until_bound("train", 2)
