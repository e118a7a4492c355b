"""Gangs with the devices of Karpenter's dra-kwok-driver, which publishes slices for kwok's nodes.

kube-controller-manager makes and deletes the claims. No kubelet runs, so the play checks the claims
of all pods as the kubelets and their plugins would. The driver looks at its configuration twice a
minute, and it knows no counters: `tests/api/test_devices.py` has partitions of devices.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...harness.kubelet.devices import DeviceObjects
from ...harness.rig import Rig, members, pod_group
from .ground import NAMESPACE, path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GROUP = "resource.k8s.io/v1"
SLICES = f"/apis/{GROUP}/resourceslices"
CONFIGS = "/apis/test.karpenter.sh/v1alpha1/draconfigs"
GPU, NIC = "gpu.example.com", "nic.example.com"
NUMA = "example.com/numa"
KIND = "devices"  # the label of nodes that says which devices they have
LARGE = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
SMALL = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) < 0'
_QUIET_SECONDS = 3.0  # in which pods would start that must not
_PUBLISHED_SECONDS = 60.0  # the driver needs up to 30


def play(rig: Rig) -> None:
    """Give devices of the driver to gangs of each kind, and take them back."""
    wait_for_slices(rig)
    share_a_claim(rig)
    choose_alternatives(rig)
    look_on(rig)
    wait_for_devices(rig)
    wait_for_whole_pools(rig)
    give_all_back(rig)


def wait_for_slices(rig: Rig) -> None:
    """A gang with a claim per pod, made before the slices, starts once they are published.

    Each pod gets two large GPUs and a NIC of one NUMA node.
    """
    for driver in (GPU, NIC):
        rig.create(device_class(driver))
    rig.nodes(2, "large", cpu=32, memory="64Gi", labels={KIND: "large"})
    rig.nodes(2, "small", cpu=32, memory="64Gi", labels={KIND: "small"})
    rig.nodes(1, "plain", cpu=32, memory="64Gi")
    rig.create(made("ResourceClaimTemplate", "each", {"spec": {"devices": two_gpus_and_a_nic()}}))
    create_gang(rig, "train", 6, resourceClaimTemplateName="each")
    rig.until(lambda: rig.condition("train", "Reserved"), "it says why it waits")
    time.sleep(_QUIET_SECONDS)
    assert rig.bound("train") == 0
    halves = [gpus(4, "80Gi", numa=numa, first=4 * numa) for numa in range(2)]
    nics = [device(f"nic-{i}", {NUMA: {"int": i // 2}}) for i in range(4)]
    rig.create(
        config("gpus", GPU, large=halves, small=[gpus(2, "16Gi", numa=0)]),
        config("nics", NIC, large=[nics]),
    )
    rig.until(lambda: len(slices(rig)) == 8, "all slices are published", _PUBLISHED_SECONDS)
    rig.until_bound("train", 6)
    assert nodes_of(rig, "train") == {"large-000", "large-001"}
    check(rig)
    for claim in claims(rig, "train"):
        assert [result["request"] for result in results(claim)] == ["gpu", "gpu", "nic"]
        assert len({numa_of(rig, result) for result in results(claim)}) == 1


def share_a_claim(rig: Rig) -> None:
    """A gang whose pods name one claim runs on the node of its devices."""
    request = {"name": "gpu", "exactly": exactly(2, LARGE)}
    rig.create(made("ResourceClaim", "one", {"devices": configured(request)}))
    create_gang(rig, "shared", 3, resourceClaimName="one")
    rig.until_bound("shared", 3)
    check(rig)
    assert len(nodes_of(rig, "shared")) == 1
    (claim,) = claims(rig, "shared")
    assert len(claim["status"]["reservedFor"]) == 3


def choose_alternatives(rig: Rig) -> None:
    """Two of four pods get the last large GPUs, and the others two small ones each."""
    parts = [
        {"name": "large", **exactly(1, LARGE)},
        {"name": "small", **exactly(2, SMALL)},
    ]
    devices = configured({"name": "gpu", "firstAvailable": parts})
    rig.create(made("ResourceClaimTemplate", "either", {"spec": {"devices": devices}}))
    create_gang(rig, "either", 4, resourceClaimTemplateName="either")
    rig.until_bound("either", 4)
    check(rig)
    given = [[result["request"] for result in results(claim)] for claim in claims(rig, "either")]
    assert sorted(given) == [["gpu/large"]] * 2 + [["gpu/small"] * 2] * 2


def look_on(rig: Rig) -> None:
    """Pods with admin access get all devices of their node, which others have."""
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    rig.plane.request("PATCH", f"/api/v1/namespaces/{NAMESPACE}", label)
    all_gpus = {"deviceClassName": GPU, "allocationMode": "All", "adminAccess": True}
    devices = {"requests": [{"name": "gpu", "exactly": all_gpus}]}
    rig.create(made("ResourceClaimTemplate", "all", {"spec": {"devices": devices}}))
    create_gang(rig, "watch", 2, resourceClaimTemplateName="all")
    rig.until_bound("watch", 2)
    check(rig)
    for claim in claims(rig, "watch"):
        pool = results(claim)[0]["pool"]
        assert len(results(claim)) == (8 if "large" in pool else 2)


def wait_for_devices(rig: Rig) -> None:
    """A gang without devices waits, and gets those of a pod that is deleted."""
    create_gang(rig, "late", 1, resourceClaimTemplateName="each")
    rig.until_waiting("late", "NotEnoughRoom")
    rig.delete("pod", "train-0")
    rig.until_bound("late", 1)
    check(rig)


def wait_for_whole_pools(rig: Rig) -> None:
    """The driver changes one slice of each large pool: no GPU of them is given until it is whole.

    The pods that have devices of them keep these.
    """
    rig.delete("pod", "train-1")
    rig.until(lambda: len(claims(rig, "train")) == 4, "its claim is gone")
    halves = [gpus(4, "80Gi", numa=numa, first=4 * numa) for numa in range(2)]
    for done, half in enumerate(halves, 1):
        for each in half:
            each["attributes"]["firmware"] = {"version": "2.0.0"}
        terms = config("gpus", GPU, large=halves, small=[gpus(2, "16Gi", numa=0)])["spec"]
        rig.plane.request("PATCH", f"{CONFIGS}/gpus", {"spec": terms})
        renewed = 2 * done  # of two nodes
        rig.until(
            lambda number=renewed: generations(rig).count(1) == number,  # type: ignore[misc]
            "the driver renews the slices",
            _PUBLISHED_SECONDS,
        )
        if done == 1:
            create_gang(rig, "next", 1, resourceClaimTemplateName="each")
            rig.until(lambda: rig.condition("next", "Reserved"), "it says why it waits")
            time.sleep(_QUIET_SECONDS)
            assert rig.bound("next") == 0
    rig.until_bound("next", 1)
    check(rig)


def give_all_back(rig: Rig) -> None:
    """Once all pods are gone, the claims of templates are gone, and the shared one is free."""
    rig.plane.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--wait=false")
    rig.until(lambda: [name_of(claim) for claim in all_claims(rig)] == ["one"], "claims are gone")
    rig.until(lambda: "allocation" not in all_claims(rig)[0].get("status", {}), "it is free")


def check(rig: Rig) -> None:
    """What kubelets and their plugins would find wrong with all claims of pods that have a node."""
    faults = DeviceObjects.read(rig.plane.request).faults()
    assert not faults, "\n".join(faults)


def made(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object of resource.k8s.io in the namespace of the play."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}


def device_class(driver: str) -> dict[str, Any]:
    """All devices of a driver, with configuration."""
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    config = [{"opaque": {"driver": driver, "parameters": {"mode": "exclusive"}}}]
    return {
        "apiVersion": GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": selectors, "config": config},
    }


def exactly(count: int, expression: str) -> dict[str, Any]:
    """So many GPUs that an expression selects."""
    selectors = [{"cel": {"expression": expression}}]
    return {"deviceClassName": GPU, "count": count, "selectors": selectors}


def configured(*requests: Mapping[str, Any]) -> dict[str, Any]:
    """Requests of a claim with configuration for all of them, and for the first."""
    sharing = [{"opaque": {"driver": GPU, "parameters": {"sharing": s}}} for s in ("time", "none")]
    first = {"requests": [requests[0]["name"]]}
    return {"requests": [*requests], "config": [sharing[0], {**sharing[1], **first}]}


def two_gpus_and_a_nic() -> dict[str, Any]:
    """The devices of a pod of the first gang."""
    nic = {"name": "nic", "exactly": {"deviceClassName": NIC}}
    devices = configured({"name": "gpu", "exactly": exactly(2, LARGE)}, nic)
    return {**devices, "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": NUMA}]}


def create_gang(rig: Rig, name: str, size: int, **source: str) -> None:
    """Create a gang whose pods have one claim each from this source."""
    spec = {"resourceClaims": [{"name": "devices", **source}]}
    rig.create(pod_group(name, size), *members(name, size, cpu=1, spec=spec))


def config(name: str, driver: str, **pools: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """What the driver publishes: the slices of each node, by the kind of the node."""
    return {
        "apiVersion": "test.karpenter.sh/v1alpha1",
        "kind": "DRAConfig",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pools": [
                {
                    "name": kind,
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": KIND, "operator": "In", "values": [kind]}]}
                    ],
                    "resourceSlices": [{"devices": devices} for devices in slices_of_node],
                }
                for kind, slices_of_node in pools.items()
            ],
        },
    }


def gpus(count: int, memory: str, *, numa: int, first: int = 0) -> list[dict[str, Any]]:
    """GPUs of one NUMA node."""
    return [
        device(f"gpu-{first + i}", {NUMA: {"int": numa}}, capacity={"memory": {"value": memory}})
        for i in range(count)
    ]


def device(name: str, attributes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A device as slices have it."""
    return {"name": name, "attributes": attributes, **fields}


def slices(rig: Rig) -> list[dict[str, Any]]:
    """All slices."""
    return list(rig.plane.request("GET", SLICES)["items"])


def generations(rig: Rig) -> list[int]:
    """The generation of each slice."""
    return [item["spec"]["pool"].get("generation", 0) for item in slices(rig)]


def numa_of(rig: Rig, result: Mapping[str, Any]) -> int:
    """The NUMA node of an allocated device."""
    return next(
        int(each["attributes"][NUMA]["int"])
        for item in slices(rig)
        if item["spec"]["driver"] == result["driver"]
        and item["spec"]["pool"]["name"] == result["pool"]
        for each in item["spec"]["devices"]
        if each["name"] == result["device"]
    )


def all_claims(rig: Rig) -> list[dict[str, Any]]:
    """All claims of the play."""
    return list(rig.plane.request("GET", path(GROUP, "resourceclaims"))["items"])


def claims(rig: Rig, gang: str) -> list[dict[str, Any]]:
    """The claims that are reserved for pods of a gang."""
    names = {name_of(pod) for pod in rig.pods(gang)}
    return [
        claim
        for claim in all_claims(rig)
        if names & {one["name"] for one in claim.get("status", {}).get("reservedFor", ())}
    ]


def results(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The devices of a claim, by request."""
    found = claim["status"]["allocation"]["devices"]["results"]
    return sorted(found, key=lambda result: str(result["request"]))


def name_of(item: Mapping[str, Any]) -> str:
    """The name of an object."""
    return str(item["metadata"]["name"])


def nodes_of(rig: Rig, gang: str) -> set[str]:
    """The nodes of the pods of a gang."""
    return {pod["spec"]["nodeName"] for pod in rig.pods(gang)}


# What is played with a driver of devices.
DRIVEN: Mapping[str, Callable[[Rig], None]] = {"dra-kwok-driver": play}


def enact_driven(name: str) -> str:
    """Play with a driver; answers how long it took, or raises an AssertionError."""
    began = time.monotonic()
    with Rig.start("controller-manager", name) as rig:
        DRIVEN[name](rig)
    return f"{name}: with Tutti in {time.monotonic() - began:.1f} s"
