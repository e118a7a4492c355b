"""A provisioner of volumes, and the objects of storage that it works on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

from tests.harness.controlplane.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tests.harness.rig import Rig

ALL_CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONER = "csi.example.com"


def storage_class(name: str, provisioner: str, *, is_default: bool = False) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def claim(name: str, storage_class: str, size: str = "1Gi") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def volume(name: str, node: str, storage_class: str, size: str = "1Gi") -> dict[str, Any]:
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/mnt/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
    }


class Provisioner:
    """A provisioner as external-provisioner is one; it fails for some nodes, and then says so."""

    def __init__(self, rig: Rig, fails_on: frozenset[str] = frozenset()) -> None:
        self._rig = rig
        self.fails_on = fails_on
        self.failures = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            for claim in self._rig.plane.request("GET", ALL_CLAIMS)["items"]:
                node = claim["metadata"].get("annotations", {}).get(SELECTED)
                if node and not claim["spec"].get("volumeName"):
                    try:
                        self._provision(claim, node)
                    except RequestError:  # it has changed, or its volume is there: look again
                        continue

    def _provision(self, claim: Mapping[str, Any], node: str) -> None:
        metadata = claim["metadata"]
        if node in self.fails_on:
            patch = {
                "metadata": {
                    "resourceVersion": metadata["resourceVersion"],
                    "annotations": {SELECTED: None},
                }
            }
            namespace, name = metadata["namespace"], metadata["name"]
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
            self._rig.plane.request("PATCH", path, patch)
            self.failures += 1
            return
        spec = claim["spec"]
        size = spec["resources"]["requests"]["storage"]
        made = volume(f"pvc-{metadata['uid']}", node, spec["storageClassName"], size)
        del made["spec"]["local"]
        made["spec"]["csi"] = {"driver": PROVISIONER, "volumeHandle": metadata["uid"]}
        made["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        made["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": PROVISIONER}
        self._rig.plane.request("POST", VOLUMES, made)
