"""Nodes that kwok keeps alive, as manifests; and the annotations that steer their pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MANAGED = {"kwok.x-k8s.io/node": "fake"}
RUN_SECONDS = "kwok.tutti.dev/run-seconds"
STOP_SECONDS = "kwok.tutti.dev/stop-seconds"


def node_manifest(
    name: str,
    *,
    cpu: str | int,
    memory: str,
    pods: int = 110,
    gpus: int = 0,
    ephemeral_storage: str = "100Gi",
    extended: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    managed: bool = True,
) -> dict[str, Any]:
    """A Node whose whole capacity is allocatable; unmanaged ones stay NotReady."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": ephemeral_storage}
    room |= {"nvidia.com/gpu": gpus} if gpus else {}
    room |= extended or {}
    quantities = {resource: str(quantity) for resource, quantity in room.items()}
    status: dict[str, Any] = {"capacity": quantities, "allocatable": dict(quantities)}
    if managed:
        # Ready from the start: kwok would make it so too, one write per node later.
        ready = {"type": "Ready", "status": "True", "reason": "Created", "message": ""}
        status |= {"conditions": [ready], "addresses": [{"type": "Hostname", "address": name}]}
    spec: dict[str, Any] = {"taints": [dict(taint) for taint in taints]} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
            "annotations": dict(MANAGED) if managed else {},
        },
        "spec": spec | ({"unschedulable": True} if unschedulable else {}),
        "status": status,
    }


def is_usable(node: Mapping[str, Any]) -> bool:
    """Whether the node is ready, and no condition of it keeps pods off by a taint."""
    conditions = node["status"].get("conditions", [])
    is_ready = any(line["type"] == "Ready" and line["status"] == "True" for line in conditions)
    taints = node["spec"].get("taints", [])
    return is_ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)
