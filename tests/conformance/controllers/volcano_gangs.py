"""Volcano's controllers with Tutti in place of Volcano's scheduler: vcjobs start whole, or wait."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...harness.rig import Rig, pod
from .ground import NAMESPACE, annotated, labelled, path, template, uid_of
from .lws import lws_manifest
from .play import has_condition
from .ray import rayjob_manifest
from .volcano import command, vcjob_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CRD = "podgroups.scheduling.volcano.sh"
GROUPS = path("scheduling.volcano.sh/v1beta1", "podgroups")
JOBS = path("batch.volcano.sh/v1alpha1", "jobs")
VERSION = "volcano.sh/job-version"
SETS = path("leaderworkerset.x-k8s.io/v1", "leaderworkersets")
SET, REPLICA = (f"leaderworkerset.sigs.k8s.io/{key}" for key in ("name", "group-index"))
MOST_RESTARTS = 3  # of all containers of a task, if its maxRetry says nothing
_QUIET_SECONDS = 3.0  # in which pods would be made that must not be


@contextmanager
def volcano_rig(*components: str, scheduler: str = "tutti", cpu: int = 10) -> Iterator[Rig]:
    """These controllers, Tutti with this source, and one node."""
    with Rig.start(
        *("controller-manager", *components),
        values=[f"settings.gangSources={{{CRD}}}", f"settings.schedulerName={scheduler}"],
        environment={"TUTTI_GANG_SOURCES": CRD, "TUTTI_SCHEDULER_NAME": scheduler},
    ) as rig:
        rig.nodes(1, cpu=cpu, memory="64Gi")
        yield rig


def enact(name: str) -> str:
    """Play the rounds of a name; answers how long it took, or raises an AssertionError."""
    components, scheduler, rounds = ROUNDS[name]
    began = time.monotonic()
    with volcano_rig(*components, scheduler=scheduler) as rig:
        for one in rounds:
            one(rig)
    return f"{name}: with Tutti in {time.monotonic() - began:.1f} s"


def smoke(rig: Rig) -> None:
    """A vcjob that fits starts whole; a second has no pods until the first has gone."""
    rig.create(vcjob_manifest("first", workers=4, cpu=1, head=2))
    until_job(rig, "first", "Running")
    assert rig.bound() == 5
    # The job's phase is Volcano's to write, from the pods; the PodGroup's is Tutti's.
    rig.until(lambda: pod_group(rig, "first")["status"]["phase"] == "Running", "Tutti says so")
    assert condition(pod_group(rig, "first"), "Scheduled")["status"] == "True"

    rig.create(vcjob_manifest("second", workers=4, cpu=1, head=2))
    rig.until(
        lambda: condition(pod_group(rig, "second"), "Unschedulable").get("message"), "it says why"
    )
    time.sleep(_QUIET_SECONDS)
    assert not pods(rig, "second")
    assert pod_group(rig, "second")["status"]["phase"] == "Pending"
    delete(rig, "first")
    until_job(rig, "second", "Running")
    assert len(pods(rig, "second")) == 5
    delete(rig, "second")
    rig.until(lambda: not rig.pods(), "everything is given back")


def repair(rig: Rig) -> None:
    """A member that is killed is replaced, and nothing else changes; then the job completes."""
    rig.create(
        vcjob_manifest("jobs", workers=2, cpu=2, action="CompleteJob", event="TaskCompleted")
    )
    until_job(rig, "jobs", "Running")
    group, others = pod_group(rig, "jobs"), uids(rig, "jobs") - {uid(rig, "jobs-work-1")}
    rig.delete("pod", "jobs-work-1")
    rig.until(lambda: len(uids(rig, "jobs") - others) == 1, "it is replaced")
    rig.until(lambda: rig.bound() == 3, "it is whole again")
    assert others < uids(rig, "jobs")
    assert uid_of(pod_group(rig, "jobs")) == uid_of(group)
    end(rig, "jobs-head-0", "Succeeded")  # which completes its task, and the policy the job
    until_job(rig, "jobs", "Completed")
    delete(rig, "jobs")
    rig.until(lambda: not rig.pods(), "everything is given back")


def restart(rig: Rig) -> None:
    """A pod that fails restarts the job whole, in a new PodGroup and with no old pod."""
    rig.create(vcjob_manifest("again", workers=4, cpu=2))
    until_job(rig, "again", "Running")
    for version in ("1", "2"):
        old, group = uids(rig, "again"), uid_of(pod_group(rig, "again"))
        end(rig, "again-work-1", "Failed")
        until_run(rig, "again", version)
        rig.until(lambda: rig.bound() == 5, "the job is whole again")
        until_job(rig, "again", "Running")
        assert not old & uids(rig, "again")
        assert uid_of(pod_group(rig, "again")) != group
    delete(rig, "again")
    rig.until(lambda: not rig.pods(), "everything is given back")


def fail_task(rig: Rig) -> None:
    """A container that restarts too often fails its task, which restarts the job whole."""
    rig.create(vcjob_manifest("frail", workers=4, cpu=2, event="TaskFailed"))
    until_job(rig, "frail", "Running")
    old = uids(rig, "frail")
    (container,) = rig.pod("frail-work-1")["status"]["containerStatuses"]
    status = {"containerStatuses": [container | {"restartCount": MOST_RESTARTS}]}
    rig.plane.request("PATCH", path("v1", "pods", "frail-work-1", "status"), {"status": status})
    until_run(rig, "frail", "1")
    rig.until(lambda: len(bound(rig, "frail")) == 5, "the job is whole again")
    until_job(rig, "frail", "Running")
    assert not old & uids(rig, "frail")
    delete(rig, "frail")
    rig.until(lambda: not rig.pods(), "everything is given back")


def restart_task(rig: Rig) -> None:
    """A task that restarts leaves the others where they are, in a PodGroup of another uid."""
    rig.create(vcjob_manifest("part", action="RestartTask", workers=4, cpu=2))
    until_job(rig, "part", "Running")
    for _ in range(2):
        head, group = uid(rig, "part-head-0"), uid_of(pod_group(rig, "part"))
        end(rig, "part-work-1", "Failed")
        until_other_group(rig, "part", group)
        rig.until(lambda: len(bound(rig, "part")) == 5, "the gang is whole again")
        rig.until(lambda: pod_group(rig, "part")["status"].get("phase") == "Running", "it runs")
        assert uid(rig, "part-head-0") == head
    delete(rig, "part")
    rig.until(lambda: not rig.pods(), "everything is given back")


def abort(rig: Rig) -> None:
    """An aborted job gives its room to the next, and waits without pods when it is resumed."""
    rig.create(vcjob_manifest("one", workers=3, cpu=2))
    until_job(rig, "one", "Running")
    rig.create(vcjob_manifest("two", workers=3, cpu=2))
    rig.create(command("AbortJob", job_of(rig, "one")))
    until_job(rig, "one", "Aborted")
    until_job(rig, "two", "Running")
    rig.create(command("ResumeJob", job_of(rig, "one")))
    rig.until(lambda: pod_group(rig, "one")["status"].get("phase") == "Pending", "it waits")
    assert not pods(rig, "one")
    delete(rig, "two")
    until_job(rig, "one", "Running")
    delete(rig, "one")
    rig.until(lambda: not rig.pods(), "everything is given back")


def queues(rig: Rig) -> None:
    """The queue of a vcjob is Tutti's Queue of that name, and the limit of that counts."""
    for name in ("vision", "unknown"):
        rig.create(volcano_queue(name))
        rig.plane.until_admitted(vcjob_manifest(name, queue=name))
    rig.create(queue_manifest("vision", cpu=5))
    for name, queue in (("one", "vision"), ("two", "vision"), ("lost", "unknown")):
        rig.create(vcjob_manifest(name, workers=2, cpu=2, queue=queue))
    until_job(rig, "one", "Running")
    rig.create(vcjob_manifest("free", workers=2, cpu=2))  # of Volcano's default queue
    until_job(rig, "free", "Running")  # of 10 CPUs 5 are used: so it is the limit that counts
    rig.until(
        lambda: (
            "queue unknown does not exist"
            in condition(pod_group(rig, "lost"), "Unschedulable").get("message", "")
        ),
        "it says what is wrong with its queue",
    )
    delete(rig, "free")
    time.sleep(_QUIET_SECONDS)
    assert not pods(rig, "two")
    assert not pods(rig, "lost")
    delete(rig, "one")
    until_job(rig, "two", "Running")
    rig.create(queue_manifest("unknown", cpu=5))
    until_job(rig, "lost", "Running")
    for name in ("two", "lost"):
        delete(rig, name)
    rig.until(lambda: not rig.pods(), "everything is given back")
    rig.plane.kubectl("delete", "queues.tutti.dev", "--all")


def hostile(rig: Rig) -> None:
    """Forged phases, absurd sizes and unknown fields hurt only the job that has them."""
    rig.create(group_manifest("vast", {"minMember": 2**31 - 1}), member("vast-0", "vast"))
    rig.create(
        group_manifest("near", {"minMember": 1, "networkTopology": {"highestTierAllowed": 1}}),
        member("near-0", "near"),
    )
    rig.until(
        lambda: "of 2147483647" in rig.pod_says("vast-0").get("message", ""), "it says its size"
    )
    rig.until(
        lambda: "no Topology has the level tier 1" in rig.pod_says("near-0").get("message", ""),
        "it names the tier",
    )
    tasks = [{"name": f"t{i}", "replicas": 1, "template": template(cpu=1)} for i in range(5000)]
    wide = vcjob_manifest("wide")
    wide["spec"]["tasks"] = tasks
    rig.create(wide)
    rig.until(
        lambda: (
            "spec.minTaskMember of more than 100 tasks"
            in condition(pod_group(rig, "wide"), "Unschedulable").get("message", "")
        ),
        "it names the limit of tasks",
    )
    rig.create(vcjob_manifest("large", workers=40, cpu=2))
    rig.until(lambda: pod_group(rig, "large")["status"].get("phase") == "Pending", "it waits")
    forge(rig, "large", "Inqueue")  # its pods are made, and wait
    rig.until(lambda: len(pods(rig, "large")) == 41, "its pods are made")
    rig.create(vcjob_manifest("small"))
    until_job(rig, "small", "Running")
    forge(rig, "small", "Pending")
    rig.until(lambda: pod_group(rig, "small")["status"]["phase"] == "Running", "it is put right")
    assert not bound(rig, "large")
    rig.plane.request("DELETE", f"{GROUPS}/{pod_group(rig, 'large')['metadata']['name']}")
    time.sleep(_QUIET_SECONDS)
    assert not bound(rig, "large")
    assert not pods(rig, "wide")
    assert pod_group(rig, "wide")["status"]["phase"] == "Pending"
    for name in ("large", "wide", "small"):
        delete(rig, name)
    for name in ("vast-0", "near-0"):
        rig.delete("pod", name)
    rig.until(lambda: not rig.pods(), "everything is given back")
    rig.plane.kubectl("delete", "crd", CRD, "--wait=false")
    rig.create(pod("late", cpu="100m"))
    rig.until(lambda: "nodeName" in rig.pod("late")["spec"], "other pods are served")


def until_run(rig: Rig, job: str, version: str) -> None:
    """Wait until all pods of a vcjob are of this run."""
    rig.until(
        lambda: annotated(pods(rig, job), VERSION) == {version}, f"the pods are of run {version}"
    )


def until_other_group(rig: Rig, job: str, group: str) -> None:
    """Wait until the PodGroup of a vcjob has another uid."""
    rig.until(lambda: uid_of(pod_group(rig, job)) != group, "there is a new PodGroup")


def group_manifest(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A PodGroup of nobody's."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def volcano_queue(name: str) -> dict[str, Any]:
    """A Queue of Volcano's, without which its webhook refuses a vcjob."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1},
    }


def queue_manifest(name: str, cpu: int) -> dict[str, Any]:
    """A Queue of Tutti's with a limit, which all namespaces may use."""
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"namespaces": {}, "resources": [{"name": "cpu", "limit": cpu}]},
    }


def member(name: str, group: str) -> dict[str, Any]:
    """A pod that names a PodGroup of Volcano's."""
    body = pod(name, cpu=1)
    body["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group
    return body


def forge(rig: Rig, job: str, phase: str) -> None:
    """Write a phase, as a user may who may change PodGroups."""
    address = f"{GROUPS}/{pod_group(rig, job)['metadata']['name']}"
    rig.plane.request("PATCH", address, {"status": {"phase": phase}})


def end(rig: Rig, name: str, phase: str) -> None:
    """Have a pod end."""
    rig.plane.request("PATCH", path("v1", "pods", name, "status"), {"status": {"phase": phase}})


def uid(rig: Rig, name: str) -> str:
    """The uid of a pod."""
    return uid_of(rig.pod(name))


def uids(rig: Rig, job: str) -> set[str]:
    """The uids of the pods of a vcjob."""
    return {uid_of(pod) for pod in pods(rig, job)}


def bound(rig: Rig, job: str) -> list[dict[str, Any]]:
    """The pods of a vcjob that have a node."""
    return [pod for pod in pods(rig, job) if "nodeName" in pod["spec"]]


def pods(rig: Rig, job: str) -> list[dict[str, Any]]:
    """The pods of a vcjob that are not being deleted."""
    return [
        pod
        for pod in rig.pods()
        if pod["metadata"].get("labels", {}).get("volcano.sh/job-name") == job
        and "deletionTimestamp" not in pod["metadata"]
    ]


def job_of(rig: Rig, name: str) -> dict[str, Any]:
    """A vcjob."""
    return rig.plane.request("GET", f"{JOBS}/{name}")


def pod_group(rig: Rig, job: str) -> dict[str, Any]:
    """The PodGroup of a vcjob."""
    return rig.plane.request("GET", f"{GROUPS}/{job}-{uid_of(job_of(rig, job))}")


def condition(group: dict[str, Any], kind: str) -> dict[str, Any]:
    """A condition of a PodGroup; empty where it has none of this type."""
    lines = group.get("status", {}).get("conditions", [])
    return next((line for line in lines if line["type"] == kind), {})


def until_job(rig: Rig, name: str, phase: str) -> None:
    """Wait until a vcjob is in this phase."""
    rig.until(
        lambda: job_of(rig, name).get("status", {}).get("state", {}).get("phase") == phase,
        f"{name} is {phase}",
    )


def delete(rig: Rig, name: str) -> None:
    """Delete a vcjob."""
    rig.plane.request("DELETE", f"{JOBS}/{name}")


def replicas(rig: Rig) -> None:
    """Each replica of a LeaderWorkerSet is a gang; a killed member starts its replica again."""
    rig.create(lws_manifest("serve", replicas=2, size=3, cpu=2))
    rig.until(lambda: rig.bound() == 3, "the replica that fits starts whole")
    rig.until(lambda: ready_replicas(rig, "serve") == 1, "its controller says so")
    time.sleep(_QUIET_SECONDS)
    assert len(placed(rig, REPLICA)) == 1  # 6 of 10 CPUs; the other has no room
    victim = [pod for pod in rig.pods() if "nodeName" in pod["spec"]][-1]["metadata"]
    rig.delete("pod", victim["name"])
    rig.until(
        lambda: victim["uid"] not in {uid_of(pod) for pod in rig.pods()} and rig.bound() == 3,
        "a replica is whole",
    )
    assert len(placed(rig, REPLICA)) == 1
    rig.until(lambda: ready_replicas(rig, "serve") == 1, "its controller says so")
    rig.nodes(1, prefix="more", cpu=6, memory="64Gi")
    rig.until(lambda: rig.bound() == 6, "the second replica starts whole")
    rig.until(lambda: ready_replicas(rig, "serve") == 2, "both are ready")
    rig.until(lambda: is_available(rig, "serve"), "its controller waits for nothing more")
    rig.plane.request("DELETE", f"{SETS}/serve")
    rig.until(lambda: not rig.pods(), "everything is given back")
    rig.plane.request("DELETE", "/api/v1/nodes/more-000")


def sets(rig: Rig) -> None:
    """Of two LeaderWorkerSets that take 60 % each, the second waits until the first has none."""
    rig.create(lws_manifest("one", replicas=1, size=3, cpu=2))
    rig.until(lambda: is_available(rig, "one"), "the first is whole")
    rig.create(lws_manifest("two", replicas=1, size=3, cpu=2))
    rig.until(lambda: len(rig.pods()) == 6, "the pods of the second are made")
    time.sleep(_QUIET_SECONDS)
    assert placed(rig, SET) == {"one"}
    scale(rig, "one", 0)
    rig.until(lambda: is_available(rig, "two"), "the second is whole")
    scale(rig, "one", 1)
    rig.until(lambda: len(rig.pods()) == 6, "the pods of the first are made again")
    time.sleep(_QUIET_SECONDS)
    assert placed(rig, SET) == {"two"}
    rig.plane.request("DELETE", f"{SETS}/two")
    rig.until(lambda: placed(rig, SET) == {"one"}, "the first starts again")
    rig.until(lambda: ready_replicas(rig, "one") == 1, "it is whole")
    rig.plane.request("DELETE", f"{SETS}/one")
    rig.until(lambda: not rig.pods(), "everything is given back")


def placed(rig: Rig, label: str) -> set[str | None]:
    """The values of a label of the pods that have a node."""
    return labelled([pod for pod in rig.pods() if "nodeName" in pod["spec"]], label)


def scale(rig: Rig, name: str, number: int) -> None:
    """Let a LeaderWorkerSet have so many replicas."""
    rig.plane.request("PATCH", f"{SETS}/{name}", {"spec": {"replicas": number}})


def ready_replicas(rig: Rig, name: str) -> int:
    """How many replicas a LeaderWorkerSet says are ready."""
    status = rig.plane.request("GET", f"{SETS}/{name}").get("status", {})
    return int(status.get("readyReplicas", 0))


def is_available(rig: Rig, name: str) -> bool:
    """Whether a LeaderWorkerSet says that all its replicas are there."""
    return has_condition("Available")(rig.plane.request("GET", f"{SETS}/{name}"))


def ray_job(rig: Rig) -> None:
    """A RayJob by KubeRay's integration of Volcano, which hard-codes the scheduler's name."""
    jobs = path("ray.io/v1", "rayjobs")
    rig.create(rayjob_manifest("sum"))
    rig.until(lambda: ray_nodes(rig, "sum") == [True] * 3, "it starts whole")
    rig.create(rayjob_manifest("next"))
    rig.until(lambda: ray_nodes(rig, "next") == [False] * 3, "the pods of the second are made")
    time.sleep(_QUIET_SECONDS)
    assert ray_nodes(rig, "next") == [False] * 3
    rig.plane.request("DELETE", f"{jobs}/sum")
    rig.until(lambda: ray_nodes(rig, "next") == [True] * 3, "the second starts whole")
    rig.plane.request("DELETE", f"{jobs}/next")
    rig.until(lambda: not rig.pods(), "everything is given back")


def ray_nodes(rig: Rig, job: str) -> list[bool]:
    """Whether the head and the workers of a RayJob have a node; its submitter comes later."""
    return [
        "nodeName" in pod["spec"]
        for pod in rig.pods()
        if pod["metadata"].get("labels", {}).get("ray.io/cluster", "").startswith(f"{job}-")
        and "ray.io/node-type" in pod["metadata"]["labels"]
    ]


# Components, the name of Tutti as a scheduler, and what is played in turn.
ROUNDS: Mapping[str, tuple[tuple[str, ...], str, tuple[Callable[[Rig], None], ...]]] = {
    "volcano": (("volcano",), "tutti", (smoke, repair, restart, fail_task, restart_task, abort)),
    "volcano-queues": (("volcano",), "tutti", (queues,)),
    "volcano-hostile": (("volcano",), "tutti", (hostile,)),
    "lws": (("lws",), "tutti", (sets, replicas)),
    "kuberay-volcano": (("kuberay-volcano",), "volcano", (ray_job,)),
    "volcano-smoke": (("volcano",), "tutti", (smoke,)),
}
