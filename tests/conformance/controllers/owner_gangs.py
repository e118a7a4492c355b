"""Gangs that Tutti reads from the owner of the pods: RayClusters, and JobSets with their stages."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...harness.rig import Rig
from . import kubeflow, ray
from .ground import path
from .play import has_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CLUSTERS = path("ray.io/v1", "rayclusters")
JOBS = path("ray.io/v1", "rayjobs")
TRAININGS = path("trainer.kubeflow.org/v1alpha1", "trainjobs")
SETS = path("jobset.x-k8s.io/v1alpha2", "jobsets")
PLUGINS = "podgroups.scheduling.x-k8s.io"
RAY, JOBSET = "rayclusters.ray.io", "jobsets.jobset.x-k8s.io"
SET = "jobset.sigs.k8s.io/jobset-name"
STEP = "jobset.sigs.k8s.io/replicatedjob-name"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
FAILED = {"phase": "Failed"}
_QUIET_SECONDS = 3.0  # in which pods would start that must not


@contextmanager
def owner_rig(
    *components: str, sources: tuple[str, ...], scheduler: str, cpu: int
) -> Iterator[Rig]:
    """These controllers, Tutti with these sources, and one node."""
    names = ",".join(sources)
    with Rig.start(
        *("controller-manager", *components),
        values=[f"settings.gangSources={{{names}}}", f"settings.schedulerName={scheduler}"],
        environment={"TUTTI_GANG_SOURCES": names, "TUTTI_SCHEDULER_NAME": scheduler},
    ) as rig:
        rig.nodes(1, cpu=cpu, memory="64Gi")
        yield rig


def live(rig: Rig, label: str, value: str) -> list[dict[str, Any]]:
    """The pods with a label that are not being deleted, and are not over."""
    return [
        pod
        for pod in rig.pods()
        if pod["metadata"].get("labels", {}).get(label, "").startswith(value)
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def nodes_of(rig: Rig, cluster: str) -> list[bool]:
    """Whether head and workers of a RayCluster have a node."""
    return ["nodeName" in pod["spec"] for pod in live(rig, "ray.io/cluster", cluster)]


def until_condition(rig: Rig, address: str, kind: str) -> None:
    """Wait until an object says of itself that a condition is true."""
    says = has_condition(kind)
    rig.until(lambda: says(rig.plane.request("GET", address)), f"{address} is {kind}")


def replace_last(rig: Rig, pods: Callable[[], list[dict[str, Any]]]) -> None:
    """Delete the last of these pods by name, and wait until all have a node without it."""
    before = pods()
    victim = max(before, key=lambda pod: str(pod["metadata"]["name"]))["metadata"]
    rig.delete("pod", victim["name"])

    def is_whole() -> bool:
        now = pods()
        return (
            len(now) == len(before)
            and victim["uid"] not in {pod["metadata"]["uid"] for pod in now}
            and all("nodeName" in pod["spec"] for pod in now)
        )

    rig.until(is_whole, f"{victim['name']} is replaced")


def change(rig: Rig, address: str, **spec: Any) -> None:
    """Change fields of an object's spec."""
    rig.plane.request("PATCH", address, {"spec": spec})


def resize(rig: Rig, name: str, workers: int) -> None:
    """Let a RayCluster have so many workers."""
    address = f"{CLUSTERS}/{name}"
    (group,) = rig.plane.request("GET", address)["spec"]["workerGroupSpecs"]
    change(rig, address, workerGroupSpecs=[group | {"replicas": workers}])


def shrunk(rig: Rig) -> None:
    """A RayCluster that is shrunk, suspended and resumed starts with what it is now."""
    rig.create(ray.ray_cluster("ray", workers=2, schedulerName="tutti"))
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 3, "it starts whole")
    until_condition(rig, f"{CLUSTERS}/ray", "RayClusterProvisioned")
    resize(rig, "ray", 1)
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 2, "it is smaller")
    change(rig, f"{CLUSTERS}/ray", suspend=True)
    rig.until(lambda: not rig.pods(), "it has no pods")
    until_condition(rig, f"{CLUSTERS}/ray", "RayClusterSuspended")
    change(rig, f"{CLUSTERS}/ray", suspend=False)
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 2, "it starts with one worker")
    until_condition(rig, f"{CLUSTERS}/ray", "RayClusterProvisioned")
    resize(rig, "ray", 3)
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 4, "it grows")
    rig.plane.request("DELETE", f"{CLUSTERS}/ray")
    rig.until(lambda: not rig.pods(), "everything is given back")


def one_by_one(rig: Rig) -> None:
    """Of two RayClusters that take 60 % each, the second waits for the first."""
    for name in ("one", "two"):
        rig.create(ray.ray_cluster(name, workers=2, schedulerName="tutti"))
        rig.until(lambda: len(nodes_of(rig, name)) == 3, "its pods are made")  # noqa: B023
    rig.until(lambda: nodes_of(rig, "one") == [True] * 3, "the first starts whole")
    time.sleep(_QUIET_SECONDS)
    assert nodes_of(rig, "two") == [False] * 3
    rig.plane.request("DELETE", f"{CLUSTERS}/one")
    rig.until(lambda: nodes_of(rig, "two") == [True] * 3, "the second starts whole")
    replace_last(rig, lambda: live(rig, "ray.io/cluster", "two"))
    rig.plane.request("DELETE", f"{CLUSTERS}/two")
    rig.until(lambda: not rig.pods(), "everything is given back")


def ray_job(rig: Rig) -> None:
    """RayJobs run one after the other; KubeRay says so of each, and of one that is suspended."""
    for name in ("sum", "next"):
        job = ray.rayjob_manifest(name, schedulerName="tutti")
        job["spec"]["shutdownAfterJobFinishes"] = True  # else KubeRay does not suspend it
        rig.create(job)
        rig.until(lambda: len(nodes_of(rig, f"{name}-")) == 3, "its cluster is made")  # noqa: B023
    rig.until(lambda: nodes_of(rig, "sum-") == [True] * 3, "its cluster starts whole")
    until_deployed(rig, "sum", "Running")
    replace_last(rig, lambda: live(rig, "ray.io/cluster", "sum-"))
    time.sleep(_QUIET_SECONDS)
    assert nodes_of(rig, "next-") == [False] * 3
    assert deployment(rig, "next") == "Initializing"

    change(rig, f"{JOBS}/sum", suspend=True)
    until_deployed(rig, "sum", "Suspended")
    assert not nodes_of(rig, "sum-")
    rig.until(lambda: nodes_of(rig, "next-") == [True] * 3, "the second starts whole")
    until_deployed(rig, "next", "Running")
    change(rig, f"{JOBS}/sum", suspend=False)
    rig.until(lambda: nodes_of(rig, "sum-") == [False] * 3, "the first waits for its room")
    rig.plane.request("DELETE", f"{JOBS}/next")
    rig.until(lambda: nodes_of(rig, "sum-") == [True] * 3, "its cluster starts whole again")
    until_deployed(rig, "sum", "Running")
    rig.plane.request("DELETE", f"{JOBS}/sum")
    rig.until(lambda: not rig.pods(), "everything is given back")


def deployment(rig: Rig, name: str) -> str:
    """How far KubeRay says that a RayJob is."""
    status = rig.plane.request("GET", f"{JOBS}/{name}").get("status", {})
    return str(status.get("jobDeploymentStatus", ""))


def until_deployed(rig: Rig, name: str, state: str) -> None:
    """Wait until KubeRay says this of a RayJob."""
    rig.until(lambda: deployment(rig, name) == state, f"{name} is {state}")


def steps(rig: Rig, job: str) -> dict[str, list[bool]]:
    """By step of a TrainJob: whether each of its pods that live has a node."""
    found: dict[str, list[bool]] = {}
    for pod in live(rig, SET, job):
        found.setdefault(pod["metadata"]["labels"][STEP], []).append("nodeName" in pod["spec"])
    return found


def finish(rig: Rig, job: str) -> None:
    """Let all pods of a TrainJob that live succeed."""
    for pod in live(rig, SET, job):
        address = path("v1", "pods", pod["metadata"]["name"], "status")
        rig.plane.request("PATCH", address, {"status": {"phase": "Succeeded"}})


def stages(rig: Rig) -> None:
    """The initializer of a TrainJob starts alone; then its nodes start whole, or wait whole."""
    for name in ("one", "two"):
        rig.create(*kubeflow.staged_training(name))
        rig.until(lambda: steps(rig, name) == {"dataset-initializer": [True]}, "it begins")  # noqa: B023
    replace_last(rig, lambda: live(rig, SET, "one"))
    assert steps(rig, "one") == {"dataset-initializer": [True]}
    finish(rig, "one")
    rig.until(lambda: steps(rig, "one") == {"node": [True] * 2}, "its nodes start whole")
    replace_last(rig, lambda: live(rig, SET, "one"))
    finish(rig, "two")
    rig.until(lambda: steps(rig, "two") == {"node": [False] * 2}, "the nodes of the second wait")
    time.sleep(_QUIET_SECONDS)
    assert steps(rig, "two") == {"node": [False] * 2}
    finish(rig, "one")
    until_condition(rig, f"{TRAININGS}/one", "Complete")
    rig.until(lambda: steps(rig, "two") == {"node": [True] * 2}, "they start whole")
    change(rig, f"{TRAININGS}/two", suspend=True)
    rig.until(lambda: not steps(rig, "two"), "it has no pods")
    until_condition(rig, f"{TRAININGS}/two", "Suspended")
    change(rig, f"{TRAININGS}/two", suspend=False)
    rig.until(lambda: steps(rig, "two"), "it goes on")
    for name in ("one", "two"):
        rig.plane.request("DELETE", f"{TRAININGS}/{name}")
    rig.until(lambda: not rig.pods(), "everything is given back")


def bare_set(rig: Rig) -> None:
    """A JobSet without a PodGroup starts whole, and whole again once a pod of it has failed."""
    rig.create(kubeflow.bare_jobset("first", pods=2, cpu=2))
    rig.until(lambda: steps(rig, "first") == {"workers": [True] * 2}, "it starts whole")
    rig.until(lambda: is_ready(rig, "first"), "its controller says so")
    failed = live(rig, SET, "first")[0]["metadata"]["name"]
    rig.plane.request("PATCH", path("v1", "pods", failed, "status"), {"status": FAILED})
    rig.until(lambda: len(live(rig, ATTEMPT, "1")) == 2, "it is restarted")
    rig.until(lambda: steps(rig, "first") == {"workers": [True] * 2}, "it starts whole again")
    rig.create(kubeflow.bare_jobset("second", pods=2, cpu=2))
    rig.until(lambda: steps(rig, "second") == {"workers": [False] * 2}, "the second waits")
    time.sleep(_QUIET_SECONDS)
    assert steps(rig, "second") == {"workers": [False] * 2}
    change(rig, f"{SETS}/first", suspend=True)
    until_condition(rig, f"{SETS}/first", "Suspended")
    rig.until(lambda: steps(rig, "second") == {"workers": [True] * 2}, "the second starts whole")
    rig.until(lambda: is_ready(rig, "second"), "its controller says so")
    change(rig, f"{SETS}/first", suspend=False)
    rig.until(lambda: steps(rig, "first") == {"workers": [False] * 2}, "the first waits")
    rig.plane.request("DELETE", f"{SETS}/second")
    rig.until(lambda: steps(rig, "first") == {"workers": [True] * 2}, "it starts whole again")
    rig.until(lambda: is_ready(rig, "first"), "its controller says so")
    rig.plane.request("DELETE", f"{SETS}/first")
    rig.until(lambda: not rig.pods(), "everything is given back")


def is_ready(rig: Rig, name: str) -> bool:
    """Whether a JobSet says of itself that its one Job is ready."""
    status = rig.plane.request("GET", f"{SETS}/{name}").get("status", {})
    return [job.get("ready") for job in status.get("replicatedJobsStatus", [])] == [1]


def stale_group(rig: Rig) -> None:
    """The same where KubeRay's PodGroup has a stale minMember, and is read as well."""
    rig.create(ray.ray_cluster("ray", workers=2))
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 3, "it starts whole")
    resize(rig, "ray", 1)
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 2, "it is smaller")
    change(rig, f"{CLUSTERS}/ray", suspend=True)
    rig.until(lambda: not rig.pods(), "it has no pods")
    change(rig, f"{CLUSTERS}/ray", suspend=False)
    rig.until(lambda: nodes_of(rig, "ray") == [True] * 2, "it starts with one worker")
    names = [pod["metadata"]["name"] for pod in rig.pods()]
    said = [event["reason"] for name in names for event in rig.events(name)]
    assert "SeveralGangs" not in said
    rig.plane.request("DELETE", f"{CLUSTERS}/ray")
    rig.until(lambda: not rig.pods(), "everything is given back")


def enact_owner(name: str) -> str:
    """Play the rounds of a name; answers how long it took, or raises an AssertionError."""
    components, sources, scheduler, cpu, rounds = OWNERS[name]
    began = time.monotonic()
    with owner_rig(*components, sources=sources, scheduler=scheduler, cpu=cpu) as rig:
        for one in rounds:
            one(rig)
    return f"{name}: with Tutti in {time.monotonic() - began:.1f} s"


# Components, sources, the name of Tutti as a scheduler, CPUs of the node, and what is played.
OWNERS: Mapping[
    str, tuple[tuple[str, ...], tuple[str, ...], str, int, tuple[Callable[[Rig], None], ...]]
] = {
    "ray": (("kuberay-alone",), (RAY,), "tutti", 8, (shrunk, one_by_one, ray_job)),
    "ray-stale": (("kuberay",), (RAY, PLUGINS), "scheduler-plugins-scheduler", 8, (stale_group,)),
    "trainer-stages": (("jobset", "trainer"), (JOBSET, PLUGINS), "tutti", 5, (stages, bare_set)),
}
