"""A provisioner of volumes, and the objects of storage that it works on."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from .controlplane.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

ALL_CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONER = "csi.example.com"


def storage_class(name: str, provisioner: str, *, is_default: bool = False) -> dict[str, Any]:
    """A class whose claims wait for their pods."""
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def claim(
    name: str, storage_class: str, size: str = "1Gi", *, namespace: str = "ml"
) -> dict[str, Any]:
    """A claim of a volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def volume(name: str, node: str, storage_class: str, size: str = "1Gi") -> dict[str, Any]:
    """A volume that one node reaches."""
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


def made_volume(claim: Mapping[str, Any], node: str) -> dict[str, Any]:
    """The volume that a provisioner makes for a claim, whose pod is to be on a node."""
    metadata, spec = claim["metadata"], claim["spec"]
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
    return made


def give_up(request: Callable[..., Any], claim: Mapping[str, Any]) -> None:
    """Say of a claim, as a provisioner does, that no volume can be made for its node."""
    metadata = claim["metadata"]
    version = metadata["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "annotations": {SELECTED: None}}}
    path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
    request("PATCH", path, patch)


class Provisioner:
    """A provisioner as external-provisioner is one; it fails for some nodes, and then says so."""

    def __init__(
        self,
        request: Callable[..., Any],
        fails_on: frozenset[str] = frozenset(),
        *,
        is_anywhere: bool = False,
    ) -> None:
        """``request`` asks the API server; with ``is_anywhere`` every node reaches its volumes."""
        self._request = request
        self._is_anywhere = is_anywhere
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
            with suppress(RequestError):  # the API server refuses: ask again
                self._look()

    def _look(self) -> None:
        for claim in self._request("GET", ALL_CLAIMS)["items"]:
            node = claim["metadata"].get("annotations", {}).get(SELECTED)
            if node and not claim["spec"].get("volumeName"):
                with suppress(RequestError):  # it has changed, or its volume is there: look again
                    self._provision(claim, node)

    def _provision(self, claim: Mapping[str, Any], node: str) -> None:
        if node in self.fails_on:
            give_up(self._request, claim)
            self.failures += 1
            return
        made = made_volume(claim, node)
        if self._is_anywhere:
            del made["spec"]["nodeAffinity"]
        self._request("POST", VOLUMES, made)
