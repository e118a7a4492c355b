"""What a kubelet plugin checks finds each mistake in the claims of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.kubelet.devices import FINALIZER, DeviceObjects

if TYPE_CHECKING:
    from collections.abc import Callable

    Objects = dict[str, Any]

DRIVER = "gpu.example.com"
OWN = {"resource": "pods", "name": "train-0", "uid": "uid-0"}
SHARING = {"driver": DRIVER, "parameters": {"sharing": "none"}}


def result(request: str, device: str) -> dict[str, Any]:
    return {"request": request, "driver": DRIVER, "pool": "n1", "device": device}


def devices(*names: str, **spec: Any) -> dict[str, Any]:
    """A slice of the node n1."""
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    own = {"driver": DRIVER, "pool": pool, "nodeName": "n1"}
    half = [{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}]
    made = [{"name": name, "consumesCounters": half} for name in names]
    return {"spec": {**own, "devices": made, **spec}}


def objects() -> Objects:
    """A pod whose claim has two GPUs and, of two alternatives, a small NIC."""
    gpu = {"deviceClassName": "any", "count": 2, "tolerations": [{"key": "old"}]}
    nics = [{"name": size, "deviceClassName": "any", "count": 1} for size in ("large", "small")]
    requests = [{"name": "gpu", "exactly": gpu}, {"name": "nic", "firstAvailable": nics}]
    own_config = [{"opaque": SHARING}, {"opaque": SHARING, "requests": ["nic"]}]
    gpus = [result("gpu", f"gpu-{i}") | {"tolerations": gpu["tolerations"]} for i in range(2)]
    allocation = {
        "devices": {
            "results": [*gpus, result("nic/small", "nic-0")],
            "config": [
                {"source": "FromClass", "opaque": SHARING},
                {"source": "FromClaim", "opaque": SHARING},
                {"source": "FromClaim", "opaque": SHARING, "requests": ["nic"]},
            ],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        },
    }
    claim = {
        "metadata": {
            "namespace": "ml",
            "name": "one",
            "uid": "uid-1",
            "finalizers": [FINALIZER],
        },
        "spec": {"devices": {"requests": requests, "config": own_config}},
        "status": {"allocation": allocation, "reservedFor": [OWN]},
    }
    pod = {
        "metadata": {"namespace": "ml", "name": "train-0", "uid": "uid-0"},
        "spec": {
            "nodeName": "n1",
            "resourceClaims": [{"name": "all", "resourceClaimTemplateName": "all"}],
        },
        "status": {"resourceClaimStatuses": [{"name": "all", "resourceClaimName": "one"}]},
    }
    nodes = [{"metadata": {"name": name, "labels": {"zone": name}}} for name in ("n1", "n2")]
    counters = {"name": "card", "counters": {"memory": {"value": "120Gi"}}}
    slices = [devices("gpu-0", "gpu-1", "nic-0"), devices(sharedCounters=[counters])]
    device_class = {"metadata": {"name": "any"}, "spec": {"config": [{"opaque": SHARING}]}}
    return {
        "pods": [pod],
        "claims": [claim],
        "slices": slices,
        "classes": [device_class],
        "nodes": nodes,
    }


def test_a_claim_whose_devices_are_right_has_no_fault() -> None:
    made = DeviceObjects(**objects())
    assert made.faults() == []
    assert [claim["metadata"]["name"] for claim in made.prepared()] == ["one"]


def test_a_pod_without_a_node_and_one_that_has_ended_need_no_devices() -> None:
    changes: list[Objects] = [{"spec": {}}, {"status": {"phase": "Failed"}}]
    for changed in changes:
        found = objects()
        found["pods"][0] |= changed
        found["claims"] = []
        assert DeviceObjects(**found).faults() == []


def test_a_claim_for_an_extended_resource_is_one_of_the_pod() -> None:
    found = objects()
    status = found["pods"][0]["status"]
    status["extendedResourceClaimStatus"] = {"resourceClaimName": "two"}
    assert DeviceObjects(**found).faults() == ["pod ml/train-0 has a claim that does not exist"]


def status(found: Objects) -> Any:
    return found["claims"][0]["status"]


def given(found: Objects) -> Any:
    return status(found)["allocation"]["devices"]


def requested(found: Objects) -> Any:
    return found["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]


def selector(expression: str) -> Any:
    return {"cel": {"expression": expression}}


MISTAKES: dict[str, tuple[Callable[[Objects], object], str]] = {
    "no claim": (lambda o: o["pods"][0]["status"].clear(), "does not exist"),
    "no allocation": (lambda o: status(o).pop("allocation"), "has no devices"),
    "not reserved": (lambda o: status(o)["reservedFor"].clear(), "not in reservedFor"),
    "reserved for another": (
        lambda o: status(o).update(reservedFor=[{**OWN, "uid": "uid-9"}]),
        "not in reservedFor",
    ),
    "another node": (lambda o: o["pods"][0]["spec"].update(nodeName="n2"), "does not select"),
    "a node by its label": (
        lambda o: status(o)["allocation"].update(
            nodeSelector={
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["n2"]}]}
                ]
            }
        ),
        "does not select",
    ),
    "no such pool": (lambda o: o["slices"].clear(), "a pool without slices"),
    "half a pool": (lambda o: o["slices"].pop(), "a pool that is not complete"),
    "no such device": (
        lambda o: o["slices"][0]["spec"]["devices"].pop(),
        "n1/nic-0 is not in the newest generation",
    ),
    "a later generation": (
        lambda o: o["slices"].append(
            devices("other", pool={"name": "n1", "generation": 2, "resourceSliceCount": 1})
        ),
        "gpu-0 is not in the newest generation",
    ),
    "no finalizer": (lambda o: o["claims"][0]["metadata"].pop("finalizers"), "no finalizer"),
    "one device twice": (
        lambda o: given(o)["results"][0].update(device="gpu-1"),
        "n1/gpu-1 is allocated to ml/one and ml/one",
    ),
    "too few devices": (lambda o: given(o)["results"].pop(0), "has 1 devices for request gpu"),
    "a device that the request excludes": (
        lambda o: requested(o).update(
            selectors=[selector('device.attributes["gpu.example.com"].size == "half"')]
        ),
        'which device.attributes["gpu.example.com"].size == "half" excludes',
    ),
    "a device that the class excludes": (
        lambda o: o["classes"][0]["spec"].update(
            selectors=[selector('device.driver == "nic.example.com"')]
        ),
        'has gpu.example.com/n1/gpu-0 for request gpu, which device.driver == "nic.example.com"',
    ),
    "no alternative": (lambda o: given(o)["results"].pop(), "has devices for 0 ways"),
    "two alternatives": (
        lambda o: given(o)["results"].append(result("nic/large", "nic-0")),
        "has devices for 2 ways",
    ),
    "a request that is not there": (
        lambda o: given(o)["results"].append(result("fpga", "nic-0")),
        "for request fpga, which its spec does not have",
    ),
    "admin access that is not asked for": (
        lambda o: given(o)["results"][0].update(adminAccess=True),
        "another adminAccess for request gpu",
    ),
    "no tolerations": (
        lambda o: given(o)["results"][0].pop("tolerations"),
        "another tolerations for request gpu",
    ),
    "no configuration of the class": (
        lambda o: given(o)["config"].pop(0),
        "another configuration for request gpu",
    ),
    "no configuration of a request": (
        lambda o: given(o)["config"].pop(),
        "another configuration for request nic/small",
    ),
    "too much of a counter": (
        lambda o: o["slices"][1]["spec"]["sharedCounters"][0]["counters"].update(
            memory={"value": "100Gi"}
        ),
        "counter card/memory of pool n1 is exceeded",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found(name: str) -> None:
    change, words = MISTAKES[name]
    found = objects()
    change(found)
    assert words in "\n".join(DeviceObjects(**found).faults())


def test_a_device_is_in_two_claims_only_with_admin_access() -> None:
    found = objects()
    second = objects()["claims"][0]
    second["metadata"] |= {"name": "two", "uid": "uid-2"}
    found["claims"].append(second)
    assert [words for words in DeviceObjects(**found).faults() if "is allocated to" in words] == [
        f"device {DRIVER}/n1/{name} is allocated to ml/one and ml/two"
        for name in ("gpu-0", "gpu-1", "nic-0")
    ]
    exactly = second["spec"]["devices"]["requests"][0]["exactly"] | {"adminAccess": True}
    second["spec"]["devices"]["requests"] = [{"name": "gpu", "exactly": exactly}]
    second["status"]["allocation"]["devices"]["results"].pop()
    for each in second["status"]["allocation"]["devices"]["results"]:
        each["adminAccess"] = True
    assert DeviceObjects(**found).faults() == []


def test_only_a_pool_of_which_devices_were_withdrawn_may_lack_some() -> None:
    found = objects()
    found["slices"][0]["spec"]["devices"].pop()
    made = DeviceObjects(**found)
    assert made.faults(withdrawn=["n1"]) == []
    assert len(made.faults(withdrawn=["n2"])) == 1


def test_a_device_of_a_withdrawn_pool_is_still_one_of_its_node() -> None:
    found = objects()
    found["slices"][0]["spec"]["nodeName"] = "n2"
    assert "is on node n1, and" in "\n".join(DeviceObjects(**found).faults(withdrawn=["n1"]))
