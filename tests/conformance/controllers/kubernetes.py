"""Kubernetes' own controllers: a Job has a Workload and a PodGroup of scheduling.k8s.io."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.pins import NATIVE_GANG_API
from .ground import NAMESPACE, owner, path, schedulers, template, uid_of

if TYPE_CHECKING:
    from .ground import Ground


def job(ground: Ground) -> None:
    """A Job that asks for a gang: all pods name its PodGroup, which outlives a suspension."""
    version = NATIVE_GANG_API[ground.plane.k8s]
    groups = f"{version}/podgroups"
    address = path("batch/v1", "jobs", "sum")
    ground.create(_job("sum", pods=3, schedulingPolicy={"gang": {}}))
    pods = ground.until_pods(3)
    group = ground.until_group(groups)
    assert owner(group) == ("Job", "sum")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {
        group["metadata"]["name"]
    }
    assert schedulers(pods) == {"tutti"}

    ground.bind_all()
    ground.until(lambda: ground.get(address)["status"].get("ready") == 3, "three pods are ready")
    ground.patch(address, {"spec": {"suspend": True}})
    ground.until_pods(0)
    assert uid_of(ground.until_group(groups)) == uid_of(group)
    ground.patch(address, {"spec": {"suspend": False}})
    ground.until_pods(3)
    ground.plane.kubectl("delete", "job", "sum", "-n", NAMESPACE)
    ground.until_pods(0)
    ground.until_gone(groups)


def plain_job(ground: Ground) -> None:
    """A Job that asks for nothing has a PodGroup too: its pods are placed one by one."""
    groups = f"{NATIVE_GANG_API[ground.plane.k8s]}/podgroups"
    ground.create(_job("plain", pods=2))
    ground.until_pods(2)
    assert ground.until_group(groups)["spec"]["schedulingPolicy"] == {"basic": {}}
    ground.plane.kubectl("delete", "job", "plain", "-n", NAMESPACE)
    ground.until_pods(0)
    ground.until_gone(groups)


def gang_job(name: str, pods: int, cpu: int) -> dict[str, Any]:
    """A Job whose pods start together."""
    return _job(name, pods, cpu, schedulingPolicy={"gang": {}})


def _job(name: str, pods: int, cpu: int = 1, **scheduling: Any) -> dict[str, Any]:
    spec = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "template": template(cpu=cpu, schedulerName="tutti", restartPolicy="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec | ({"scheduling": scheduling} if scheduling else {}),
    }
