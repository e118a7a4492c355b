"""KubeRay: a RayCluster's group is made once, and never follows the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ground import NAMESPACE, annotated, labelled, path, schedulers, template

if TYPE_CHECKING:
    from .ground import Ground

CLUSTERS = "ray.io/v1/rayclusters"
GROUPS = "scheduling.x-k8s.io/v1alpha1/podgroups"
LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO_GROUPS = "scheduling.volcano.sh/v1beta1/podgroups"


def cluster(ground: Ground) -> None:
    """A RayCluster that is shrunk, suspended and resumed: its minMember stays what it was."""
    address = path("ray.io/v1", "rayclusters", "ray")
    ground.create(ray_cluster("ray", workers=2))
    pods = ground.until_pods(3)
    group = ground.until_group(GROUPS)
    assert group["metadata"]["name"] == "ray"
    (reference,) = group["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference.get("controller")) == (
        *("RayCluster", "ray"),
        None,
    )
    assert group["spec"] == {"minMember": 3, "minResources": {"cpu": "5"}}
    assert labelled(pods, LABEL) == {"ray"}
    assert labelled(pods, "ray.io/group") == {"headgroup", "small"}
    assert schedulers(pods) == {"scheduler-plugins-scheduler"}

    ground.bind_all()
    ground.until_condition(address, "RayClusterProvisioned")
    (workers,) = ground.get(address)["spec"]["workerGroupSpecs"]
    ground.patch(address, {"spec": {"workerGroupSpecs": [workers | {"replicas": 1}]}})
    ground.until_pods(2)
    ground.patch(address, {"spec": {"suspend": True}})
    ground.until_pods(0)
    ground.until_condition(address, "RayClusterSuspended")
    ground.patch(address, {"spec": {"suspend": False}})
    ground.until_pods(2)
    assert ground.until_group(GROUPS)["spec"] == group["spec"]
    ground.delete(address)
    ground.until_pods(0)
    ground.until_gone(GROUPS)


def job_without_cluster(ground: Ground) -> None:
    """A RayJob that asks for a gang of scheduler-plugins: its cluster is never made."""
    ground.create(rayjob_manifest("sum"))
    ground.until(lambda: ground.get(path("ray.io/v1", "rayjobs", "sum")).get("status"), "it began")
    ground.until(
        lambda: "only RayCluster is supported" in ground.plane.process("kuberay").tail(),
        "the operator refuses it",
    )
    assert not ground.all(CLUSTERS)
    ground.delete(path("ray.io/v1", "rayjobs", "sum"))


def volcano_job(ground: Ground) -> None:
    """A RayJob with Volcano's groups: one for its cluster, of the job's name."""
    address = path("ray.io/v1", "rayjobs", "sum")
    ground.create(rayjob_manifest("sum"))
    pods = ground.until_pods(3)
    group = ground.until_group(VOLCANO_GROUPS)
    name = group["metadata"]["name"]
    assert name == "ray-sum-pg"
    assert annotated(pods, "scheduling.k8s.io/group-name") == {name}
    assert schedulers(pods) == {"volcano"}
    ground.delete(address)
    ground.until_pods(0)
    ground.until_gone(VOLCANO_GROUPS)


def ray_cluster(name: str, workers: int, **spec: Any) -> dict[str, Any]:
    """A RayCluster with a head of one CPU and workers of two; keywords are for its templates."""
    return _object("RayCluster", name, _cluster_spec(workers, **spec))


def rayjob_manifest(name: str, **spec: Any) -> dict[str, Any]:
    """A RayJob of a head and two workers; keywords are for its templates."""
    made = {"entrypoint": "python -c 1", "rayClusterSpec": _cluster_spec(workers=2, **spec)}
    return _object("RayJob", name, made)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"ray.io/gang-scheduling-enabled": "true"}
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    }


def _cluster_spec(workers: int, **spec: Any) -> dict[str, Any]:
    worker_group = {
        "groupName": "small",
        "replicas": workers,
        "minReplicas": 1,
        "maxReplicas": 4,
        "rayStartParams": {},
        "template": template(cpu=2, container="ray-worker", **spec),
    }
    head = {"rayStartParams": {}, "template": template(cpu=1, container="ray-head", **spec)}
    return {"rayVersion": "2.46.0", "headGroupSpec": head, "workerGroupSpecs": [worker_group]}
