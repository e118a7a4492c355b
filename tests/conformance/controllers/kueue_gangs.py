"""Kueue in front of Tutti: Kueue decides by quota when a job may start, Tutti where, and whole."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...harness.rig import GROUP_LABEL, Rig, pod_group
from . import kueue
from .ground import NAMESPACE, owner, path, template

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JOBS = path("batch/v1", "jobs")
WORKLOADS = path(kueue.API, "workloads")
CLUSTER_QUEUE = f"/apis/{kueue.API}/clusterqueues/all"
PODS, CPUS = 3, 2  # of each job: 60 % of the quota, and of the room
QUOTA = 10
WAITS = ["Unschedulable"] * PODS
_QUIET_SECONDS = 3.0  # in which pods would start that must not


def job(name: str) -> list[dict[str, Any]]:
    """A PodGroup, and a Job of Kueue's queue whose pods name it."""
    pods = template(cpu=CPUS, schedulerName="tutti", restartPolicy="Never")
    pods["metadata"] = {"labels": {GROUP_LABEL: name}}
    spec = {"parallelism": PODS, "completions": PODS, "backoffLimit": 6, "template": pods}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {kueue.QUEUE: "team"}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return [pod_group(name, PODS), body]


def live(rig: Rig, group: str) -> list[dict[str, Any]]:
    """The pods of a gang that are not being deleted."""
    return [pod for pod in rig.pods(group) if "deletionTimestamp" not in pod["metadata"]]


def bound(rig: Rig, group: str) -> int:
    """How many of these have a node."""
    return sum("nodeName" in pod["spec"] for pod in live(rig, group))


def reasons(rig: Rig, group: str) -> list[str]:
    """Why the pods of a gang wait."""
    return [rig.pod_says(pod["metadata"]["name"]).get("reason", "") for pod in live(rig, group)]


def workload(rig: Rig, name: str) -> dict[str, Any]:
    """The Workload that Kueue makes of a Job."""
    items = rig.plane.request("GET", WORKLOADS)["items"]
    return next((item for item in items if owner(item) == ("Job", name)), {})


def says(rig: Rig, name: str, kind: str) -> str:
    """The status of a condition of this Workload."""
    lines = workload(rig, name).get("status", {}).get("conditions", [])
    return next((line["status"] for line in lines if line["type"] == kind), "")


def ready(rig: Rig, name: str) -> int:
    """How many pods of a Job are ready, as the Job says."""
    return int(rig.plane.request("GET", f"{JOBS}/{name}").get("status", {}).get("ready", 0))


def allow(rig: Rig, cpus: int) -> None:
    """Change the quota."""
    (group,) = rig.plane.request("GET", CLUSTER_QUEUE)["spec"]["resourceGroups"]
    quota = {"name": "cpu", "nominalQuota": str(cpus)}
    flavors = [{"name": "any", "resources": [quota]}]
    groups = [group | {"flavors": flavors}]
    rig.plane.request("PATCH", CLUSTER_QUEUE, {"spec": {"resourceGroups": groups}})


def activate(rig: Rig, name: str, *, is_active: bool) -> None:
    """Stop a Job, as users of Kueue do, or let it go on."""
    address = f"{WORKLOADS}/{workload(rig, name)['metadata']['name']}"
    rig.plane.request("PATCH", address, {"spec": {"active": is_active}})


def end(rig: Rig, group: str) -> None:
    """Let all pods of a gang succeed."""
    for pod in live(rig, group):
        address = path("v1", "pods", pod["metadata"]["name"], "status")
        rig.plane.request("PATCH", address, {"status": {"phase": "Succeeded"}})


def jobs(rig: Rig) -> None:
    """A Job without quota has no pods; one with quota and without room waits whole."""
    rig.create(*job("first"))
    rig.until(lambda: bound(rig, "first") == PODS, "the first starts whole")
    rig.until(lambda: ready(rig, "first") == PODS, "its Job says so")
    assert says(rig, "first", "Admitted") == "True"
    rig.create(*job("second"))
    rig.until(lambda: says(rig, "second", "QuotaReserved") == "False", "it waits for its quota")
    time.sleep(_QUIET_SECONDS)
    assert not rig.pods("second")

    victim = live(rig, "first")[-1]["metadata"]
    rig.delete("pod", victim["name"])
    rig.until(
        lambda: (
            victim["uid"] not in {pod["metadata"]["uid"] for pod in rig.pods("first")}
            and bound(rig, "first") == PODS
        ),
        "a member is replaced",
    )
    rig.until(lambda: ready(rig, "first") == PODS, "its Job says so")
    allow(rig, 2 * QUOTA)
    rig.until(lambda: reasons(rig, "second") == WAITS, "it has its quota and no room")
    time.sleep(_QUIET_SECONDS)
    assert bound(rig, "second") == 0

    activate(rig, "first", is_active=False)
    rig.until(lambda: bound(rig, "second") == PODS, "the second has its room")
    assert not live(rig, "first")
    activate(rig, "first", is_active=True)
    rig.until(lambda: reasons(rig, "first") == WAITS, "the first is admitted and waits for room")
    end(rig, "second")
    rig.until(lambda: says(rig, "second", "Finished") == "True", "Kueue sees that it is over")
    rig.until(lambda: bound(rig, "first") == PODS, "the first starts whole again")
    for name in ("first", "second"):
        rig.plane.kubectl("delete", "job", name, "-n", NAMESPACE)
        rig.delete("podgroups.tutti.dev", name)
    rig.until(lambda: not rig.pods(), "everything is given back")
    allow(rig, QUOTA)


def gated_pods(rig: Rig) -> None:
    """Pods that Kueue gates wait with their gates, and start whole once Kueue removes these."""
    for name in ("one", "two"):
        labels = {GROUP_LABEL: name}
        rig.create(pod_group(name, PODS), *kueue.group_pods(name, PODS, cpu=CPUS, **labels))
        if name == "one":
            rig.until(lambda: bound(rig, "one") == PODS, "the first starts whole")
    time.sleep(_QUIET_SECONDS)
    gates = [
        [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
        for pod in live(rig, "two")
    ]
    assert gates == [kueue.GATES] * PODS
    assert bound(rig, "two") == 0
    end(rig, "one")
    rig.until(lambda: bound(rig, "two") == PODS, "the second starts whole")
    end(rig, "two")
    for name in ("one", "two"):
        for index in range(PODS):
            rig.delete("pod", f"{name}-{index}")
        rig.delete("podgroups.tutti.dev", name)
    rig.until(lambda: not rig.pods(), "everything is given back")


FRONTS: Mapping[str, tuple[Callable[[Rig], None], ...]] = {"kueue": (jobs, gated_pods)}


def enact_front(name: str) -> str:
    """Play the rounds of a name; answers how long it took, or raises an AssertionError."""
    began = time.monotonic()
    with Rig.start("controller-manager", "kueue") as rig:
        rig.nodes(1, cpu=QUOTA, memory="64Gi")
        rig.create(*kueue.queues(cpus=QUOTA))
        queue = path(kueue.API, "localqueues", "team")
        rig.until(
            lambda: any(
                line["type"] == "Active" and line["status"] == "True"
                for line in rig.plane.request("GET", queue).get("status", {}).get("conditions", [])
            ),
            "Kueue serves the queue",
        )
        for one in FRONTS[name]:
            one(rig)
    return f"{name}: with Tutti in {time.monotonic() - began:.1f} s"
