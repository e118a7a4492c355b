"""Kubeflow's controllers make PodGroups of scheduling.x-k8s.io."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ground import NAMESPACE, labelled, owner, path, schedulers, template, uid_of

if TYPE_CHECKING:
    from .ground import Ground

GROUPS = "scheduling.x-k8s.io/v1alpha1/podgroups"
LABEL = "scheduling.x-k8s.io/pod-group"


def mpi_job(ground: Ground) -> None:
    """An MPIJob: one PodGroup for launcher and workers; suspended, it has neither."""
    job = path("kubeflow.org/v2beta1", "mpijobs", "pi")
    ground.create(_mpi_job("pi", workers=2))
    pods = ground.until_pods(3)
    group = ground.until_group(GROUPS)
    assert (group["metadata"]["name"], owner(group)) == ("pi", ("MPIJob", "pi"))
    assert group["spec"] == {
        "minMember": 3,
        "minResources": {"cpu": "5"},
        "scheduleTimeoutSeconds": 0,
    }
    assert "status" not in group
    assert {owner(pod) for pod in pods} == {("Job", "pi-launcher"), ("MPIJob", "pi")}
    assert (labelled(pods, LABEL), schedulers(pods)) == ({"pi"}, {"tutti"})

    ground.bind_all()
    ground.until_condition(job, "Running")
    ground.patch(job, {"spec": {"runPolicy": {"suspend": True}}})
    ground.until_pods(0)
    ground.until_gone(GROUPS)
    ground.patch(job, {"spec": {"runPolicy": {"suspend": False}}})
    ground.until_pods(3)
    assert uid_of(ground.until_group(GROUPS)) != uid_of(group)
    ground.delete(job)
    ground.until_pods(0)
    ground.until_gone(GROUPS)


def _mpi_job(name: str, workers: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template(cpu=1)},
                "Worker": {"replicas": workers, "template": template(cpu=2)},
            }
        },
    }
