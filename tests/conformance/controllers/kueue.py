"""Kueue in front of a scheduler: it gates pods until their quota is there, and places nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane import RUN_SECONDS
from .ground import NAMESPACE, path, schedulers, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...harness.rig import Rig
    from .ground import Ground

API = "kueue.x-k8s.io/v1beta2"
GATES = ["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"]
QUEUE = "kueue.x-k8s.io/queue-name"
GROUP = "kueue.x-k8s.io/pod-group-name"
COUNT = "kueue.x-k8s.io/pod-group-total-count"


def pod_groups(ground: Ground) -> None:
    """Two pod groups that take 60 % of the quota each: the second is gated until the first ends."""
    ground.create(*queues(cpus=10))
    ground.until_condition(path(API, "localqueues", "team"), "Active")
    ground.create(*group_pods("first", 3, cpu=2))
    ground.until(lambda: gates(ground, "first") == [[]] * 3, "the first group is let through")
    ground.create(*group_pods("second", 3, cpu=2))
    ground.until(
        lambda: _reason(ground, "second") == "Pending", "the second group waits for its quota"
    )
    assert gates(ground, "second") == [GATES] * 3
    assert schedulers(ground.pods()) == {"tutti"}
    assert len(ground.all(f"{API}/workloads")) == 2

    for pod in ("first-0", "first-1", "first-2"):
        soon = {"metadata": {"annotations": {RUN_SECONDS: "0"}}}
        ground.patch(path("v1", "pods", pod), soon)
    ground.bind_all()
    ground.until(lambda: gates(ground, "second") == [[]] * 3, "the second group is let through")


def gates(ground: Ground | Rig, group: str) -> list[list[str]]:
    """The scheduling gates of each pod of a group."""
    return [
        [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
        for pod in ground.pods()
        if pod["metadata"].get("labels", {}).get(GROUP) == group
    ]


def _reason(ground: Ground, workload: str) -> str | None:
    lines = ground.get(path(API, "workloads", workload)).get("status", {}).get("conditions", [])
    return next((line["reason"] for line in lines if line["type"] == "QuotaReserved"), None)


def queues(cpus: int) -> Iterator[dict[str, Any]]:
    """A queue of the namespace, with a quota of CPUs."""
    quota = {"name": "cpu", "nominalQuota": str(cpus)}
    flavors = [{"name": "any", "resources": [quota]}]
    cluster_queue = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
    }
    for kind, metadata, spec in (
        ("ResourceFlavor", {"name": "any"}, {}),
        ("ClusterQueue", {"name": "all"}, cluster_queue),
        ("LocalQueue", {"name": "team", "namespace": NAMESPACE}, {"clusterQueue": "all"}),
    ):
        yield {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def group_pods(group: str, number: int, cpu: int, **labels: str) -> Iterator[dict[str, Any]]:
    """The pods of a pod group of Kueue's, with further labels."""
    for index in range(number):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{group}-{index}",
                "namespace": NAMESPACE,
                "labels": {QUEUE: "team", GROUP: group, **labels},
                "annotations": {COUNT: str(number)},
            },
            **template(cpu=cpu, schedulerName="tutti"),
        }
