"""What the scene with claims has of devices and volumes, and what gives and takes them."""

from __future__ import annotations

import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.errors import RequestError
from ...harness.controlplane.nodes import node_manifest
from ...harness.provisioner import (
    PROVISIONER,
    SELECTED,
    give_up,
    made_volume,
    storage_class,
    volume,
)
from ...harness.provisioner import VOLUMES as ALL_VOLUMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    Request = Callable[..., Any]

GROUP, DRIVER = "resource.k8s.io/v1", "gpu.example.com"
CLASS, RESOURCE = "gpu", "example.com/gpu"
SLICES = f"/apis/{GROUP}/resourceslices"
ALL_CLAIMS = f"/apis/{GROUP}/resourceclaims"
# Classes; every node reaches volumes of the third, and nothing ever answers of the last.
LOCAL, DISK, NETWORK, STUCK = "local", "disk", "network", "stuck"
# Devices of each node; the pool is the first part of its name.
NODES: Mapping[str, int] = {
    "dra-0": 2,
    "dra-1": 2,
    "ext-0": 1,
    "ext-1": 1,
    "share-0": 2,
    "share-1": 1,
    "drift-0": 2,
    "drift-1": 2,
    "both-0": 1,
    "both-1": 1,
    "stuck-0": 2,
    "local-0": 0,
    "local-1": 0,
    "pair-0": 0,
    "pair-1": 0,
    "card-0": 0,
}
CARD = 80  # of one counter, which partitions of the card consume
PARTITIONS: Mapping[str, tuple[int, int]] = {"half": (2, 40), "quarter": (4, 20)}
FIRST = frozenset({0})  # the answers at which a provisioner fails unless it is told otherwise
EMPTY_SECONDS = 30.0  # for controllers to finish with what an earlier run has left


def nodes() -> list[dict[str, Any]]:
    """The nodes of the scene."""
    return [
        node_manifest(name, cpu=8, memory="16Gi", labels={"pool": name.partition("-")[0]})
        for name in NODES
    ]


def classes() -> list[dict[str, Any]]:
    """The classes of devices and of volumes."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], "extendedResourceName": RESOURCE}
    return [
        _object("DeviceClass", CLASS, spec),
        storage_class(LOCAL, "kubernetes.io/no-provisioner"),
        storage_class(DISK, PROVISIONER),
        storage_class(NETWORK, PROVISIONER),
        storage_class(STUCK, PROVISIONER),
    ]


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def template(name: str, namespace: str, count: int, size: str = "") -> dict[str, Any]:
    """A template of claims for so many devices, of a size if one is named."""
    return _object(
        "ResourceClaimTemplate", name, {"spec": _wanted(count, size)}, namespace=namespace
    )


def claim(name: str, namespace: str, count: int) -> dict[str, Any]:
    """A claim for so many devices."""
    return _object("ResourceClaim", name, _wanted(count, ""), namespace=namespace)


def _wanted(count: int, size: str) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": CLASS, "count": count}
    if size:
        expression = f'device.attributes["{DRIVER}"].size == "{size}"'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def _pool(node: str, generation: int = 1, slices: int = 1) -> dict[str, Any]:
    pool = {"name": node, "generation": generation, "resourceSliceCount": slices}
    return {"driver": DRIVER, "pool": pool, "nodeName": node}


def _devices(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [{"name": f"gpu-{number}"} for number in numbers]


def _slices() -> list[dict[str, Any]]:
    """The slices as every run finds them."""
    pieces = [
        _object("ResourceSlice", node, {**_pool(node), "devices": _devices(range(count))})
        for node, count in NODES.items()
        if count
    ]
    node = "card-0"
    counters = [{"name": "card", "counters": {"memory": {"value": str(CARD)}}}]
    shared = {**_pool(node, slices=2), "sharedCounters": counters}
    partitions = [
        {
            "name": f"{size}-{i}",
            "attributes": {"size": {"string": size}},
            "consumesCounters": [
                {"counterSet": "card", "counters": {"memory": {"value": str(amount)}}}
            ],
        }
        for size, (number, amount) in PARTITIONS.items()
        for i in range(number)
    ]
    return [
        *pieces,
        _object("ResourceSlice", f"{node}-counters", shared),
        _object("ResourceSlice", node, {**_pool(node, slices=2), "devices": partitions}),
    ]


def republish(request: Request, node: str, numbers: Iterable[int]) -> None:
    """Publish the next generation of the devices of a node: these."""
    spec = {**_pool(node, 2), "devices": _devices(numbers)}
    request("PATCH", f"{SLICES}/{node}", {"spec": spec})


def restore(request: Request) -> None:
    """Have the devices that every run begins with, and nothing of an earlier run."""
    there = {item["metadata"]["name"]: item for item in request("GET", SLICES)["items"]}
    for piece in _slices():
        name = piece["metadata"]["name"]
        if name in there and there[name]["spec"]["pool"]["generation"] > 1:
            request("DELETE", f"{SLICES}/{name}")
            del there[name]
        if name not in there:
            request("POST", SLICES, piece)
    request("DELETE", ALL_VOLUMES)
    deadline = time.monotonic() + EMPTY_SECONDS
    while any(request("GET", path)["items"] for path in (ALL_VOLUMES, ALL_CLAIMS)):
        assert time.monotonic() < deadline, "claims or volumes of an earlier run are left"
        time.sleep(0.05)


def await_claims(request: Request, namespace: str, count: int) -> None:
    """Wait until kube-controller-manager has made the claims of all pods that wait."""
    path = f"/apis/{GROUP}/namespaces/{namespace}/resourceclaims"
    deadline = time.monotonic() + EMPTY_SECONDS
    while len(request("GET", path)["items"]) < count:
        assert time.monotonic() < deadline, "claims are not made"
        time.sleep(0.05)


class Provisioner:
    """Makes volumes of two classes for one namespace; now and then, it says that it cannot."""

    def __init__(self, request: Request, namespace: str) -> None:
        self._request = request
        self._path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        self._failures = FIRST
        self._answers = 0

    @property
    def has_failed(self) -> bool:
        """Whether it has failed as often as it is to."""
        return self._answers > max(self._failures)

    def fail_at(self, failures: Collection[int]) -> None:
        """Fail at these answers, counted from 0, and at no other."""
        self._failures = frozenset(failures)

    def selected(self) -> dict[str, dict[str, Any]]:
        """The claims that wait for a provisioner, by name."""
        return {
            item["metadata"]["name"]: item
            for item in self._request("GET", self._path)["items"]
            if SELECTED in item["metadata"].get("annotations", {})
            and not item["spec"].get("volumeName")
        }

    def answer(self) -> None:
        """Do what there is to do."""
        for item in self.selected().values():
            if item["spec"]["storageClassName"] not in (DISK, NETWORK):
                continue
            with suppress(RequestError):  # it has changed, or its volume is there
                if self._answers in self._failures:
                    give_up(self._request, item)
                else:
                    node = item["metadata"]["annotations"][SELECTED]
                    made = made_volume(item, node)
                    if item["spec"]["storageClassName"] == NETWORK:
                        del made["spec"]["nodeAffinity"]
                    self._request("POST", ALL_VOLUMES, made)
                self._answers += 1


def local_volume(namespace: str, number: int) -> dict[str, Any]:
    """A volume of the node of this number."""
    return volume(f"{namespace}-{number}", f"local-{number}", LOCAL)


def post(request: Request, path: str, body: Mapping[str, Any]) -> None:
    """Create an object; one that is there already is as good."""
    try:
        request("POST", path, body)
    except RequestError as problem:
        if problem.status != HTTPStatus.CONFLICT:
            raise
