"""Kubeflow's controllers make PodGroups of scheduling.x-k8s.io; JobSet, below one, makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane import RUN_SECONDS
from .ground import NAMESPACE, labelled, owner, path, schedulers, template, uid_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .ground import Ground

GROUPS = "scheduling.x-k8s.io/v1alpha1/podgroups"
JOBSETS = "jobset.x-k8s.io/v1alpha2/jobsets"
LABEL = "scheduling.x-k8s.io/pod-group"


def mpi_job(ground: Ground) -> None:
    """An MPIJob: one PodGroup for launcher and workers; suspended, it has neither."""
    job = path("kubeflow.org/v2beta1", "mpijobs", "pi")
    ground.create(mpi("pi", workers=2))
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


def pod_group_status(ground: Ground) -> None:
    """The status of a PodGroup follows its pods, by their label, whoever made them."""
    ground.create(_object(GROUPS, "PodGroup", "mine", {"minMember": 2}))
    address = path("scheduling.x-k8s.io/v1alpha1", "podgroups", "mine")
    _until_phase(ground, address, "Pending")
    made = template(cpu=1, schedulerName="tutti")
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {LABEL: "mine"}}
        ground.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **made})
    _until_phase(ground, address, "Scheduling")
    ground.bind_all()
    _until_phase(ground, address, "Running")
    _succeed(ground, ground.pods())
    _until_phase(ground, address, "Finished")


def _until_phase(ground: Ground, address: str, phase: str) -> None:
    ground.until(
        lambda: ground.get(address).get("status", {}).get("phase") == phase, f"it is {phase}"
    )


def pytorch_job(ground: Ground) -> None:
    """A PyTorchJob: one PodGroup for all its pods; suspended, it has neither."""
    job = path("kubeflow.org/v1", "pytorchjobs", "net")
    ground.create(pytorch("net", workers=2))
    pods = ground.until_pods(3)
    group = ground.until_group(GROUPS)
    assert (group["metadata"]["name"], owner(group)) == ("net", ("PyTorchJob", "net"))
    assert group["spec"] == {"minMember": 3, "minResources": {"cpu": "5"}}
    assert {owner(pod) for pod in pods} == {("PyTorchJob", "net")}
    assert (labelled(pods, LABEL), schedulers(pods)) == ({"net"}, {"tutti"})

    ground.bind_all()
    ground.until_condition(job, "Running")
    ground.patch(job, {"spec": {"runPolicy": {"suspend": True}}})
    ground.until_pods(0)
    ground.until_gone(GROUPS)
    ground.patch(job, {"spec": {"runPolicy": {"suspend": False}}})
    ground.until_pods(3)
    ground.delete(job)
    ground.until_pods(0)
    ground.until_gone(GROUPS)


def train_job(ground: Ground) -> None:
    """A TrainJob: its PodGroup counts initializers and the nodes that come after them."""
    job = path("trainer.kubeflow.org/v1alpha1", "trainjobs", "tune")
    ground.create(_runtime("staged"), _train_job("tune", "staged"))
    first = ground.until_pods(1)
    group = ground.until_group(GROUPS)
    assert (group["metadata"]["name"], owner(group)) == ("tune", ("TrainJob", "tune"))
    assert group["spec"] == {
        "minMember": 3,
        "minResources": {"cpu": "5"},
        "scheduleTimeoutSeconds": 60,
    }
    assert {owner(jobset) for jobset in ground.all(JOBSETS)} == {("TrainJob", "tune")}
    assert (labelled(first, LABEL), schedulers(first)) == ({"tune"}, {"tutti"})
    assert labelled(first, "jobset.sigs.k8s.io/replicatedjob-name") == {"dataset-initializer"}

    _succeed(ground, first)
    # Three pods in all, but never three at a time: the first has ended when the others come.
    nodes = [pod for pod in ground.until_pods(3) if pod["status"]["phase"] == "Pending"]
    assert labelled(nodes, "jobset.sigs.k8s.io/replicatedjob-name") == {"node"}
    assert (len(nodes), labelled(nodes, LABEL), schedulers(nodes)) == (2, {"tune"}, {"tutti"})
    _succeed(ground, nodes)
    ground.until_condition(job, "Complete")
    ground.delete(job)
    ground.until_pods(0)
    ground.until_gone(GROUPS)


def jobset(ground: Ground) -> None:
    """A JobSet: no group of its own; labels and scheduler come from its templates."""
    address = path("jobset.x-k8s.io/v1alpha2", "jobsets", "set")
    jobs = [_replicated_job("driver", 1), _replicated_job("workers", 2)]
    ground.create(_object(JOBSETS, "JobSet", "set", {"replicatedJobs": jobs}))
    pods = ground.until_pods(3)
    assert not ground.all(GROUPS)
    assert {owner(pod) for pod in pods} == {("Job", "set-driver-0"), ("Job", "set-workers-0")}
    assert (labelled(pods, LABEL), schedulers(pods)) == ({"mine"}, {"tutti"})
    assert labelled(pods, "jobset.sigs.k8s.io/jobset-name") == {"set"}
    ground.patch(address, {"spec": {"suspend": True}})
    ground.until_pods(0)
    ground.patch(address, {"spec": {"suspend": False}})
    ground.until_pods(3)
    ground.delete(address)
    ground.until_pods(0)


def _succeed(ground: Ground, pods: Iterable[dict[str, Any]]) -> None:
    for pod in pods:
        name = pod["metadata"]["name"]
        soon = {"metadata": {"annotations": {RUN_SECONDS: "0"}}}
        ground.patch(path("v1", "pods", name), soon)
    ground.bind_all()


def _object(resource: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.rpartition("/")[0],
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def pytorch(name: str, workers: int) -> dict[str, Any]:
    """A PyTorchJob with a master of one CPU and workers of two."""
    replicas = {
        "Master": {"replicas": 1, "template": template(cpu=1, container="pytorch")},
        "Worker": {"replicas": workers, "template": template(cpu=2, container="pytorch")},
    }
    spec = {"pytorchReplicaSpecs": replicas}
    return _object("kubeflow.org/v1/pytorchjobs", "PyTorchJob", name, spec)


def staged_training(name: str) -> Iterator[dict[str, Any]]:
    """A TrainJob of an initializer of one CPU and then two nodes of two, and its runtime."""
    yield _runtime(f"{name}-runtime")
    yield _train_job(name, f"{name}-runtime")


def _train_job(name: str, runtime: str) -> dict[str, Any]:
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": runtime}
    spec = {"runtimeRef": reference}
    return _object("trainer.kubeflow.org/v1alpha1/trainjobs", "TrainJob", name, spec)


def _runtime(name: str) -> dict[str, Any]:
    """One initializer and two nodes, as the runtimes for torchtune are made."""
    initializer = "dataset-initializer"
    jobs = [
        _step(initializer, initializer, cpu=1),
        _step("node", "trainer", cpu=2)
        | {"dependsOn": [{"name": initializer, "status": "Complete"}]},
    ]
    spec = {
        "podGroupPolicy": {"coscheduling": {}},
        "mlPolicy": {"numNodes": 2},
        "template": {"spec": {"replicatedJobs": jobs}},
    }
    runtimes = "trainer.kubeflow.org/v1alpha1/trainingruntimes"
    return _object(runtimes, "TrainingRuntime", name, spec)


def plain_training(name: str, nodes: int, cpu: int) -> Iterator[dict[str, Any]]:
    """A TrainJob without initializers, and its runtime."""
    spec = {
        "podGroupPolicy": {"coscheduling": {}},
        "mlPolicy": {"numNodes": nodes},
        "template": {"spec": {"replicatedJobs": [_step("node", "trainer", cpu=cpu)]}},
    }
    runtimes = "trainer.kubeflow.org/v1alpha1/trainingruntimes"
    yield _object(runtimes, "TrainingRuntime", f"{name}-runtime", spec)
    yield _train_job(name, f"{name}-runtime")


def labelled_jobset(name: str, pods: int, cpu: int) -> Iterator[dict[str, Any]]:
    """A JobSet whose template names a PodGroup that users make."""
    job = _replicated_job("workers", pods, cpu=cpu, group=name, retries=6)
    yield _object(GROUPS, "PodGroup", name, {"minMember": pods})
    yield _object(JOBSETS, "JobSet", name, {"replicatedJobs": [job]})


def bare_jobset(name: str, pods: int, cpu: int) -> dict[str, Any]:
    """A JobSet whose template names no PodGroup, and which starts again after a failure."""
    job = _replicated_job("workers", pods, cpu=cpu)
    del job["template"]["spec"]["template"]["metadata"]
    spec = {"replicatedJobs": [job], "failurePolicy": {"maxRestarts": 3}}
    return _object(JOBSETS, "JobSet", name, spec)


def _step(name: str, step: str, cpu: int) -> dict[str, Any]:
    pods = template(cpu=cpu, container=name, schedulerName="tutti")
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step}
    job = {"metadata": {"labels": labels}, "spec": {"template": pods}}
    return {"name": name, "template": job}


def _replicated_job(
    name: str, pods: int, cpu: int = 1, group: str = "mine", retries: int = 0
) -> dict[str, Any]:
    made = template(cpu=cpu, schedulerName="tutti", restartPolicy="Never")
    made["metadata"] = {"labels": {LABEL: group}}
    job = {"parallelism": pods, "completions": pods, "backoffLimit": retries, "template": made}
    return {"name": name, "template": {"spec": job}}


def mpi(name: str, workers: int) -> dict[str, Any]:
    """An MPIJob with a launcher of one CPU and workers of two."""
    replicas = {
        "Launcher": {"replicas": 1, "template": template(cpu=1)},
        "Worker": {"replicas": workers, "template": template(cpu=2)},
    }
    return _object("kubeflow.org/v2beta1/mpijobs", "MPIJob", name, {"mpiReplicaSpecs": replicas})
