"""Gangs that objects of other projects declare, on a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.rig import Rig, pod

CRD = Path(__file__).parents[1] / "bench" / "e2e" / "coscheduling-crd.yaml"
NAME = "podgroups.scheduling.x-k8s.io"
LABEL = "scheduling.x-k8s.io/pod-group"


def foreign_group(name: str, n: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"minMember": n},
    }


def member(name: str, group: str) -> dict[str, Any]:
    body = pod(name, cpu=1)
    body["metadata"]["labels"] = {LABEL: group}
    return body


def test_scheduler_plugins_pod_groups_start_whole_once_their_crd_is_there() -> None:
    """The CRD comes and goes while Tutti runs; other pods never wait for it."""
    chosen = {"TUTTI_GANG_SOURCES": NAME}
    with Rig.start(values=[f"settings.gangSources={{{NAME}}}"], environment=chosen) as rig:
        rig.nodes(1, cpu=2, memory="16Gi")
        rig.create(pod("alone", cpu="100m"), member("early-0", "early"))
        rig.until(lambda: "nodeName" in rig.pod("alone")["spec"], "other pods are served")
        rig.until(lambda: rig.pod_says("early-0").get("reason") == "PodGroupNotFound", "it waits")
        rig.delete("pod", "early-0")
        rig.delete("pod", "alone")
        rig.plane.install_crds(CRD)
        rig.create(foreign_group("mpi", 2), member("mpi-0", "mpi"))
        rig.until(
            lambda: "1 of 2 members exist" in rig.pod_says("mpi-0").get("message", ""), "it waits"
        )
        rig.create(member("mpi-1", "mpi"))
        rig.until(lambda: rig.bound() == 2, "the gang starts whole")
        rig.create(
            foreign_group("large", 2), member("large-0", "large"), member("large-1", "large")
        )
        rig.until(lambda: rig.pod_says("large-0").get("reason") == "Unschedulable", "no room")
        rig.until(lambda: not rig.reservations(), "it is carried out")
        rig.plane.kubectl("delete", "crd", NAME)
        rig.until(lambda: rig.pod_says("large-1").get("reason") == "PodGroupNotFound", "it is gone")
        rig.create(pod("late", cpu="0"))
        rig.until(lambda: "nodeName" in rig.pod("late")["spec"], "other pods are served")
