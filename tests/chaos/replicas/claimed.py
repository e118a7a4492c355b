"""Members that claim a device each, and a volume that is made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.kubelet.devices import DeviceObjects
from ...harness.provisioner import ALL_CLAIMS, PROVISIONER, Provisioner, claim, storage_class
from .scene import NODES, SIZE, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ...harness.judge import Verdict
    from ...harness.rig import Rig

GROUP, DRIVER = "resource.k8s.io/v1", "gpu.example.com"
SPEC: Mapping[str, Any] = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
    "volumes": [
        {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim("", "disk")["spec"]}}}
    ],
}


class Claimed(Scene):
    """Each member has a device, and a volume that is made for it."""

    components = ("controller-manager",)

    def about(self) -> Mapping[str, Any]:
        """Members with both claims."""
        return {"cpu": 1, "spec": SPEC}

    def open(self, rig: Rig) -> AbstractContextManager[object]:
        """Create the devices, too, and let a provisioner run."""
        super().open(rig)
        rig.create(*_objects())
        return Provisioner(rig.plane.request, is_anywhere=True)

    def restore(self, rig: Rig) -> None:
        """Wait until the claims of earlier rounds have gone with their gangs."""
        rig.until(lambda: not _left(rig), "no claim is left")

    def faults(self, rig: Rig) -> Sequence[str]:
        """What kubelets and their plugins find wrong."""
        return DeviceObjects.read(rig.plane.request).faults()

    def has_been_seen(self, verdict: Verdict) -> bool:
        """Whether the judge has seen claims of both kinds."""
        return bool(verdict.devices and verdict.volumes)


def _objects() -> Iterator[dict[str, Any]]:
    """The classes, the template, and a device of each node for each core."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    yield _object("DeviceClass", "gpu", {"selectors": [selector]})
    yield storage_class("disk", PROVISIONER)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    yield _object("ResourceClaimTemplate", "one", spec, namespace="ml")
    for node in NODES:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        listed = [{"name": f"gpu-{i}"} for i in range(SIZE)]
        about = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
        yield _object("ResourceSlice", node, about)


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _left(rig: Rig) -> list[dict[str, Any]]:
    """The claims that are there."""
    paths = (f"/apis/{GROUP}/resourceclaims", ALL_CLAIMS)
    return [item for path in paths for item in rig.plane.request("GET", path)["items"]]
