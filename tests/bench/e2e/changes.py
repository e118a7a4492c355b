"""What the benchmark asks of the API server, as ready-made requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.api import collection
from .scenarios import NAMESPACE
from .writing import written

if TYPE_CHECKING:
    from collections.abc import Mapping

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
_MERGE = "application/merge-patch+json"
NO_FINALIZERS = {"metadata": {"finalizers": None}}
_NO_TAINTS = {"spec": {"taints": None}}
_COMPLETED = {"status": {"phase": "Succeeded"}}


def creation(manifest: Mapping[str, Any]) -> bytes:
    """The creation of an object, which must be new."""
    return written("POST", f"{collection(manifest)}?fieldValidation=Ignore", manifest)


def merge(path: str, patch: object) -> bytes:
    """A merge patch of the object at this path."""
    return written("PATCH", path, patch, _MERGE)


def opening(node: Mapping[str, Any]) -> bytes:
    """The end of all taints of a node.

    Admission gives every new node the taint "not ready", and no controller is there to take it.
    """
    return merge(f"{collection(node)}/{node['metadata']['name']}", _NO_TAINTS)


def completion(pod: str) -> bytes:
    """The end of a pod's containers without an error, as a kubelet reports it."""
    return merge(f"{PODS}/{pod}/status", _COMPLETED)


def pod_deletion(pod: str) -> bytes:
    """The deletion of a pod at once."""
    return written("DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")


def group_deletion(group: Mapping[str, Any]) -> bytes:
    """The deletion of an object by its manifest."""
    return written("DELETE", f"{collection(group)}/{group['metadata']['name']}")
