"""Members that claim a device each, and a volume that is made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.provisioner import ALL_CLAIMS, PROVISIONER, claim, storage_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...harness.rig import Rig

GROUP, DRIVER = "resource.k8s.io/v1", "gpu.example.com"
SPEC: Mapping[str, Any] = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
    "volumes": [
        {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim("", "disk")["spec"]}}}
    ],
}


def objects(nodes: Iterable[str], devices: int) -> Iterator[dict[str, Any]]:
    """The classes, the template, and so many devices of each node."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    yield _object("DeviceClass", "gpu", {"selectors": [selector]})
    yield storage_class("disk", PROVISIONER)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    yield _object("ResourceClaimTemplate", "one", spec, namespace="ml")
    for node in nodes:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        listed = [{"name": f"gpu-{i}"} for i in range(devices)]
        about = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
        yield _object("ResourceSlice", node, about)


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def left(rig: Rig) -> list[dict[str, Any]]:
    """The claims that are there."""
    paths = (f"/apis/{GROUP}/resourceclaims", ALL_CLAIMS)
    return [item for path in paths for item in rig.plane.request("GET", path)["items"]]
