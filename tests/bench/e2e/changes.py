"""What the benchmark asks of the API server, as ready-made requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .scenarios import NAMESPACE
from .writing import written

if TYPE_CHECKING:
    from collections.abc import Mapping

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
_MERGE = "application/merge-patch+json"
NO_FINALIZERS = {"metadata": {"finalizers": None}}
_PLURALS = {"PriorityClass": "priorityclasses", "Topology": "topologies"}
_COMPLETED = {"status": {"phase": "Succeeded"}}


def collection(manifest: Mapping[str, Any]) -> str:
    """The path under which an object is created."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    return f"{prefix}{place}/{_PLURALS.get(kind, f'{kind.lower()}s')}"


def creation(manifest: Mapping[str, Any]) -> bytes:
    """The creation of an object, which must be new."""
    return written("POST", f"{collection(manifest)}?fieldValidation=Ignore", manifest)


def merge(path: str, patch: object) -> bytes:
    """A merge patch of the object at this path."""
    return written("PATCH", path, patch, _MERGE)


def completion(pod: str) -> bytes:
    """The end of a pod's containers without an error, as a kubelet reports it."""
    return merge(f"{PODS}/{pod}/status", _COMPLETED)


def pod_deletion(pod: str) -> bytes:
    """The deletion of a pod at once."""
    return written("DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")


def group_deletion(group: Mapping[str, Any]) -> bytes:
    """The deletion of an object by its manifest."""
    return written("DELETE", f"{collection(group)}/{group['metadata']['name']}")
