"""Histories by hand with claims: of devices that slices offer, and of volumes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...harness.judge import Kind
from ...harness.judge.claim_views import BIND_COMPLETED, EXTENDED, SELECTED
from .writing import NOON, US, Story

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DRIVER = "gpu.example.com"
GROUP = "resource.k8s.io"
HOST = "kubernetes.io/hostname"


class ClaimStory(Story):
    """A story in which pods have claims; of each object the uid is its name, after ``uid-``."""

    def piece(
        self,
        node: str,
        *devices: str,
        generation: int = 1,
        memory: int = 0,
        takes: Mapping[str, int] | None = None,
        size: str = "",
    ) -> int:
        """Put the slice of a node, whose pool has its name; ``takes`` is memory by device.

        ``size`` is an attribute of all of its devices.
        """
        pool = {"name": node, "generation": generation}
        listed = [
            {
                "name": name,
                "attributes": {"size": {"string": size}},
                "consumesCounters": [
                    {"counterSet": "card", "counters": {"memory": {"value": str(takes[name])}}}
                ]
                if takes and name in takes
                else [],
            }
            for name in devices
        ]
        sets = [{"name": "card", "counters": {"memory": {"value": str(memory)}}}] * bool(memory)
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
        metadata = {"name": f"{node}-slice"}
        body = {"metadata": metadata, "spec": {**spec, "sharedCounters": sets}}
        return self.put(Kind.DEVICE_SLICES, body)

    def user(self, name: str, group: str = "", *claims: str, volume: str = "", **about: Any) -> int:
        """Put a pod that names these claims of devices, and a claim of a volume."""
        self.pod(name, group, **about)
        body = self._bodies[Kind.PODS, f"uid-{name}"]
        spec = body["spec"] | {
            "resourceClaims": [{"name": one, "resourceClaimName": one} for one in claims],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}]
            if volume
            else [],
        }
        return self.put(Kind.PODS, body | {"spec": spec})

    def claim(
        self,
        name: str,
        node: str = "",
        *devices: str,
        reserved: Iterable[str] = (),
        by: str = US,
        admin: bool = False,
        owner: str = "",
        is_silent: bool = False,
        wanted: Mapping[str, Any] | None = None,
        request: str = "gpu",
    ) -> int:
        """Put a claim, with devices of a node if one is named; ``is_silent`` is without a log.

        ``wanted`` is its one request, by default for as many devices; its devices are for
        ``request``.
        """
        exactly = {"deviceClassName": "gpu", "count": max(1, len(devices))}
        own = {"name": "gpu", **(wanted or {"exactly": exactly})}
        results = [
            {"request": request, "driver": DRIVER, "pool": node, "device": device}
            | ({"adminAccess": True} if admin else {})
            for device in devices
        ]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        metadata: dict[str, Any] = {"name": name, "namespace": "ml"}
        if owner:
            owners = [{"kind": "Pod", "uid": f"uid-{owner}"}]
            metadata |= {"ownerReferences": owners, "annotations": {EXTENDED: "true"}}
        status: dict[str, Any] = {
            "reservedFor": [{"name": each, "uid": f"uid-{each}"} for each in reserved]
        }
        status |= {"allocation": allocation} if node else {}
        if node and not is_silent:
            self.told(name, by=by)
        spec = {"devices": {"requests": [own]}}
        return self.put(Kind.DEVICE_CLAIMS, {"metadata": metadata, "spec": spec, "status": status})

    def told(self, name: str, *, by: str = US) -> None:
        """Tell the audit log that the devices of a claim were written."""
        fields = frozenset({"status.allocation", "status.reservedFor"})
        self.wrote(
            *("patch", "resourceclaims/status", name), api_group=GROUP, fields=fields, user=by
        )

    def hold(
        self,
        group: str,
        places: Mapping[str, str],
        *,
        devices: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
        volumes: Mapping[str, tuple[str, str]] | None = None,
        request: str = "gpu",
    ) -> int:
        """Put a Reservation: nodes by pod; devices by pod and claim; of volumes node and name."""
        placement = [
            {
                "node": node,
                "pods": [{"name": pod, "uid": f"uid-{pod}"}],
                "claims": [
                    {
                        "pod": f"uid-{pod}",
                        "claims": [
                            {
                                "name": claim,
                                "uid": f"uid-{claim}",
                                "devices": [
                                    {
                                        "request": request,
                                        "driver": DRIVER,
                                        "pool": node,
                                        "device": device,
                                    }
                                    for device in names
                                ],
                            }
                            for claim, names in (devices or {}).get(pod, {}).items()
                        ],
                    }
                ],
            }
            for pod, node in places.items()
        ]
        spec = {
            "podGroup": {"name": group, "uid": f"uid-{group}"},
            "reservedAt": NOON.isoformat(),
            "placement": placement,
            "volumes": [
                {"claim": name, "uid": f"uid-{name}", "node": node, "volume": volume}
                for name, (node, volume) in (volumes or {}).items()
            ],
        }
        metadata = {"name": f"uid-{group}", "namespace": "ml", "uid": f"reservation-{group}"}
        return self.put(Kind.RESERVATIONS, {"metadata": metadata, "spec": spec})

    def volume_claim(self, name: str, volume: str = "", *, selected: str = "", by: str = US) -> int:
        """Put a claim of a volume, bound to one if it is named; a node is selected by somebody."""
        annotations = {BIND_COMPLETED: "yes"} if volume else {}
        annotations |= {SELECTED: selected} if selected else {}
        if selected:
            fields = frozenset({"metadata.annotations"})
            self.wrote("patch", "persistentvolumeclaims", name, fields=fields, user=by)
        metadata = {"name": name, "namespace": "ml", "annotations": annotations}
        body = {"metadata": metadata, "spec": {"volumeName": volume}}
        return self.put(Kind.VOLUME_CLAIMS, body)

    def volume(self, name: str, node: str = "", *, claim: str = "") -> int:
        """Put a volume that one node reaches, for a claim if one is named."""
        term = {"key": HOST, "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        spec: dict[str, Any] = {"nodeAffinity": {"required": required}} if node else {}
        if claim:
            spec["claimRef"] = {"namespace": "ml", "name": claim, "uid": f"uid-{claim}"}
        return self.put(Kind.VOLUMES, {"metadata": {"name": name}, "spec": spec})

    def give(self, name: str, node: str, claim: str) -> int:
        """Give a volume to a claim, in the watch and in the audit log."""
        fields = frozenset({"spec.claimRef", "metadata.annotations"})
        self.wrote_of_cluster("patch", "persistentvolumes", name, fields)
        return self.volume(name, node, claim=claim)

    def wrote_of_cluster(self, verb: str, resource: str, name: str, fields: frozenset[str]) -> None:
        """Add a line about an object without a namespace to the audit log."""
        self.wrote(verb, resource, name, fields=fields)
        self.entries[-1] = replace(self.entries[-1], namespace="")


def two_hosts() -> ClaimStory:
    """Begin with two nodes of two devices each."""
    story = ClaimStory()
    for name in "ab":
        story.node(name, labels={HOST: name})
        story.piece(name, "gpu-0", "gpu-1")
    story.begins()
    return story
