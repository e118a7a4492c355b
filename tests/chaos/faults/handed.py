"""The scene with gangs that Tutti plans and kube-scheduler binds, beside gangs that Tutti binds."""

from __future__ import annotations

from typing import Any

from ...harness.rig import GROUP_LABEL

HANDED = frozenset({"train", "graph", "short", "vast", "worn"})
ENVIRONMENT = {"TUTTI_HAND_OVER": "true"}
VALUES = ("settings.handOver=true",)
GATES = [{"name": "tutti.dev/gang"}]


def translated(body: dict[str, Any]) -> dict[str, Any]:
    """A PodGroup or pod as it is if kube-scheduler binds the members of its gang."""
    metadata = body["metadata"]
    is_group = body["kind"] == "PodGroup"
    name = metadata["name"] if is_group else metadata["labels"].get(GROUP_LABEL, "")
    if name not in HANDED:
        return body
    of_pod = {"schedulerName": "default-scheduler", "schedulingGates": GATES}
    return body | {"spec": body["spec"] | ({"binding": "KubeScheduler"} if is_group else of_pod)}
