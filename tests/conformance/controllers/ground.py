"""A control plane with a controller and no scheduler: make objects, bind by hand, wait, look."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...harness.controlplane import ControlPlane, node_manifest
from ...harness.controlplane.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

T = TypeVar("T")

NAMESPACE = "ml"
NODE = "node"
PATIENCE_SECONDS = 60.0
_NOT_FOUND = 404


@contextmanager
def ground(components: Collection[str]) -> Iterator[Ground]:
    """A control plane with kwok, these components, a namespace and one large node."""
    with ControlPlane.start(components=("kwok", *components)) as plane:
        plane.create_namespace(NAMESPACE)
        plane.create([node_manifest(NODE, cpu=64, memory="256Gi")])
        yield Ground(plane)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a case stands on."""

    plane: ControlPlane

    def create(self, *objects: Mapping[str, Any]) -> None:
        """Create objects, which must be new."""
        self.plane.create(objects)

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change an object by a merge patch."""
        return self.plane.request("PATCH", path, body)

    def delete(self, path: str) -> None:
        """Delete an object and what it owns."""
        self.plane.request("DELETE", path)

    def get(self, path: str) -> dict[str, Any]:
        """The object, or nothing while it does not exist."""
        try:
            return self.plane.request("GET", path)
        except RequestError as answer:
            if answer.status != _NOT_FOUND:
                raise
            return {}

    def all(self, resource: str) -> list[dict[str, Any]]:
        """The objects of the namespace of a resource, such as "batch/v1/jobs"."""
        version, _, plural = resource.rpartition("/")
        return list(self.plane.request("GET", path(version, plural))["items"])

    def pods(self) -> list[dict[str, Any]]:
        """The pods of the namespace that are not being deleted, by name."""
        pods = [p for p in self.all("v1/pods") if "deletionTimestamp" not in p["metadata"]]
        return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))

    def bind_all(self) -> None:
        """Bind every pod that has no node and no gate: kwok runs it then."""
        for pod in self.pods():
            if "nodeName" not in pod["spec"] and not pod["spec"].get("schedulingGates"):
                name = pod["metadata"]["name"]
                binding = {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": name},
                    "target": {"kind": "Node", "name": NODE},
                }
                self.plane.request("POST", path("v1", "pods", name, "binding"), binding)

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Wait until something is so, and answer it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (seen := look()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {PATIENCE_SECONDS:.0f} s: {what}")
            time.sleep(0.05)
        return seen

    def until_pods(self, number: int) -> list[dict[str, Any]]:
        """Wait until there are so many pods."""
        what = f"there are {number} pods"
        if not number:
            self.until(lambda: not self.pods(), what)
            return []
        return self.until(lambda: p if len(p := self.pods()) == number else None, what)

    def until_group(self, resource: str) -> dict[str, Any]:
        """Wait until there is exactly one group of this kind."""
        what = f"there is one of {resource}"
        return self.until(lambda: g[0] if len(g := self.all(resource)) == 1 else None, what)

    def until_gone(self, resource: str) -> None:
        """Wait until no object of this kind is left."""
        self.until(lambda: not self.all(resource), f"no {resource} are left")

    def until_condition(self, object_path: str, kind: str) -> None:
        """Wait until an object's condition is true."""

        def is_true() -> bool:
            lines = self.get(object_path).get("status", {}).get("conditions", [])
            return any(line["type"] == kind and line["status"] == "True" for line in lines)

        self.until(is_true, f"{object_path} is {kind}")


def path(version: str, plural: str, *rest: str) -> str:
    """The path of objects in the namespace, of one of them, or of its subresource."""
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return "/".join((f"{prefix}/namespaces/{NAMESPACE}/{plural}", *rest))


def template(cpu: int, container: str = "main", **spec: Any) -> dict[str, Any]:
    """A pod template that asks for so many CPUs."""
    main = {
        "name": container,
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": str(cpu)}},
    }
    return {"spec": {"containers": [main], "terminationGracePeriodSeconds": 0, **spec}}


def owner(item: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of what controls an object."""
    references = item["metadata"].get("ownerReferences", [])
    return next((r["kind"], r["name"]) for r in references if r.get("controller"))


def uid_of(item: Mapping[str, Any]) -> str:
    """The uid of an object."""
    return str(item["metadata"]["uid"])


def labelled(pods: Collection[Mapping[str, Any]], key: str) -> set[str | None]:
    """The values that pods have under a label."""
    return {pod["metadata"].get("labels", {}).get(key) for pod in pods}


def annotated(pods: Collection[Mapping[str, Any]], key: str) -> set[str | None]:
    """The values that pods have under an annotation."""
    return {pod["metadata"].get("annotations", {}).get(key) for pod in pods}


def schedulers(pods: Collection[Mapping[str, Any]]) -> set[str]:
    """The names of the schedulers that pods ask for."""
    return {pod["spec"]["schedulerName"] for pod in pods}
