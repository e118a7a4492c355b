"""Volcano's controllers: a vcjob waits for its PodGroup, and starts again after a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ground import NAMESPACE, annotated, owner, path, schedulers, template, uid_of

if TYPE_CHECKING:
    from .ground import Ground

GROUPS = "scheduling.volcano.sh/v1beta1/podgroups"
ANNOTATION = "scheduling.k8s.io/group-name"


def vcjob(ground: Ground) -> None:
    """A vcjob: no pod before the phase Inqueue; a failed pod restarts all in a new PodGroup."""
    job = path("batch.volcano.sh/v1alpha1", "jobs", "train")
    ground.create(vcjob_manifest("train"))
    group = ground.until_group(GROUPS)
    name = group["metadata"]["name"]
    assert (name, owner(group)) == (f"train-{uid_of(ground.get(job))}", ("Job", "train"))
    assert group["spec"] == {
        "minMember": 3,
        "minTaskMember": {"head": 1, "work": 2},
        "minResources": {"count/pods": "3", "cpu": "5", "pods": "3", "requests.cpu": "5"},
        "queue": "default",
    }
    assert not group.get("status")
    assert not ground.pods()

    _enqueue(ground, name)
    pods = ground.until_pods(3)
    assert [pod["metadata"]["name"] for pod in pods] == [
        "train-head-0",
        "train-work-0",
        "train-work-1",
    ]
    assert (annotated(pods, ANNOTATION), schedulers(pods)) == ({name}, {"tutti"})
    assert annotated(pods, "volcano.sh/task-spec") == {"head", "work"}

    ground.bind_all()
    ground.until(lambda: _phase(ground, job) == "Running", "the job runs")
    failed = path("v1", "pods", "train-head-0", "status")
    ground.patch(failed, {"status": {"phase": "Failed"}})
    # It has the same name. The new pods may come before it has a phase: the controller marks the
    # job as restarting before it deletes the old PodGroup, and may take that for the new one.
    again = ground.until(
        lambda: next((g for g in ground.all(GROUPS) if uid_of(g) != uid_of(group)), None),
        "the job has a new PodGroup",
    )
    assert (again["metadata"]["name"], again.get("status")) == (name, {})
    _enqueue(ground, name)
    ground.until(
        lambda: annotated(ground.pods(), "volcano.sh/job-version") == {"1"}, "the pods are new"
    )
    ground.until_pods(3)
    assert ground.get(job)["status"]["retryCount"] == 1

    ground.create(command("AbortJob", ground.get(job)))
    ground.until(lambda: _phase(ground, job) == "Aborted", "the job is aborted")
    ground.until_pods(0)
    ground.until_gone(GROUPS)
    ground.create(command("ResumeJob", ground.get(job)))
    _enqueue(ground, ground.until_group(GROUPS)["metadata"]["name"])
    ground.until_pods(3)
    ground.delete(job)
    ground.until_pods(0)
    ground.until_gone(GROUPS)


def vcjob_task(ground: Ground) -> None:
    """A vcjob that restarts one task: the others run on, and belong to the new PodGroup then."""
    job = path("batch.volcano.sh/v1alpha1", "jobs", "parts")
    ground.create(vcjob_manifest("parts", action="RestartTask"))
    group = ground.until_group(GROUPS)
    _enqueue(ground, group["metadata"]["name"])
    ground.until_pods(3)
    ground.bind_all()
    ground.until(lambda: _phase(ground, job) == "Running", "the job runs")
    head = ground.pods()[0]
    failed = path("v1", "pods", "parts-work-0", "status")
    ground.patch(failed, {"status": {"phase": "Failed"}})
    again = ground.until(
        lambda: next((g for g in ground.all(GROUPS) if uid_of(g) != uid_of(group)), None),
        "the job has a new PodGroup",
    )
    assert again["metadata"]["name"] == group["metadata"]["name"]
    _enqueue(ground, again["metadata"]["name"])
    pods = ground.until_pods(3)
    assert uid_of(pods[0]) == uid_of(head)
    assert pods[0]["spec"]["nodeName"]
    ground.delete(job)
    ground.until_pods(0)


def _enqueue(ground: Ground, name: str) -> None:
    """What a scheduler does for a job that would fit: status is no subresource there."""
    ground.patch(
        path("scheduling.volcano.sh/v1beta1", "podgroups", name), {"status": {"phase": "Inqueue"}}
    )


def _phase(ground: Ground, job: str) -> str | None:
    phase: str | None = ground.get(job).get("status", {}).get("state", {}).get("phase")
    return phase


def vcjob_manifest(
    name: str,
    action: str = "RestartJob",
    *,
    event: str = "PodFailed",
    head: int = 1,
    workers: int = 2,
    cpu: int = 2,
    queue: str = "",
) -> dict[str, Any]:
    """A vcjob of a head with so many CPUs, and of workers."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": "tutti",
            "policies": [{"event": event, "action": action}],
            **({"queue": queue} if queue else {}),  # else it is the webhook's, as minAvailable is
            "tasks": [
                {"name": "head", "replicas": 1, "template": template(cpu=head)},
                {"name": "work", "replicas": workers, "template": template(cpu=cpu)},
            ],
        },
    }


def command(action: str, job: dict[str, Any]) -> dict[str, Any]:
    """What `vcctl` creates to abort or resume a vcjob."""
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": action.lower(), "namespace": NAMESPACE},
        "action": action,
        "target": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": job["metadata"]["name"],
            "uid": uid_of(job),
            "controller": True,
        },
    }
