"""The manifests of the integrations: their pods are the gangs that the pages say."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tutti import dump
from tutti.dump.load import snapshot_of
from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources import jobset, ray, yunikorn
from tutti.planning import plan as planning
from tutti.spark import task_groups
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from .reference import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.model.decisions import Placement

Json = dict[str, Any]
PAGES = ROOT / "docs" / "integrations"


def manifests(page: str) -> Mapping[str, list[Json]]:
    """The objects of each block of YAML with a kind, by the kind of the last."""
    blocks = re.findall(r"(?ms)^```yaml\n(.*?)^```", (PAGES / f"{page}.md").read_text())
    read = [list(yaml.safe_load_all(block)) for block in blocks]
    return {objects[-1]["kind"]: objects for objects in read if "kind" in objects[-1]}


def pod(name: str, spec: Json, **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def node(cpu: int) -> Json:
    ready = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": allocatable, "conditions": ready},
    }


def of_argo(workflow: Json) -> Iterable[Json]:
    """What Argo makes of the templates that are containers: so many as the steps say."""
    spec = workflow["spec"]
    templates = {template["name"]: template for template in spec["templates"]}
    for steps in templates[spec["entrypoint"]]["steps"]:
        for step in steps:
            template = templates[step["template"]]
            for i in range(int(step.get("withSequence", {"count": 1})["count"])):
                made = {
                    "schedulerName": spec["schedulerName"],
                    "containers": [{"name": "main", **template["container"]}],
                }
                labels = template.get("metadata", {}).get("labels", {})
                yield pod(f"{step['name']}-{i}", made, **labels)


def of_airflow(template: Json) -> Iterable[Json]:
    for i in range(3):
        yield pod(f"task-{i}", template["spec"], **template["metadata"]["labels"])


def of_flink(deployment: Json) -> Iterable[Json]:
    """The JobManager, which alone exists at first."""
    spec = deployment["spec"]
    manager, shared = spec["jobManager"], spec["podTemplate"]
    amounts = manager["resource"]
    mebibytes = int(amounts["memory"].removesuffix("m"))
    requests = {"cpu": str(amounts["cpu"]), "memory": f"{mebibytes}Mi"}
    container = {"name": "main", "image": spec["image"], "resources": {"requests": requests}}
    labels = shared["metadata"]["labels"] | manager["podTemplate"]["metadata"]["labels"]
    yield pod("jobmanager", {**shared["spec"], "containers": [container]}, **labels)


def placements(objects: Iterable[Json], cpu: int) -> Mapping[str, Placement]:
    """What a plan starts on one node, by the name of the gang."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects, node(cpu)]})
    snapshot = snapshot_of(dump.read([dump.Text("page", text.encode())]))
    plan = planning.plan(snapshot, BestFit(), BestFit(), Budget(10, 10.0))
    return {placement.gang.name: placement for placement in plan.placements}


@pytest.mark.parametrize(
    ("kind", "pods_of", "gang", "cpu", "members_and_slots"),
    [
        ("Workflow", of_argo, "sum", 8, (4, 0)),
        ("Pod", of_airflow, "features", 6, (3, 0)),
        ("FlinkDeployment", of_flink, "stream", 5, (1, 2)),
    ],
)
def test_the_pods_of_a_workflow_start_together_or_not_at_all(
    kind: str, pods_of: Any, gang: str, cpu: int, members_and_slots: tuple[int, int]
) -> None:
    *groups, owner = manifests("workflows")[kind]
    objects = [*groups, *pods_of(owner)]
    alone = 1 if kind == "Workflow" else 0  # the pod of the first step
    started = placements(objects, cpu + alone)[gang]
    slots = sum(slot.count for slot in started.slots)
    assert (len(started.assignments), slots) == members_and_slots
    assert gang not in placements(objects, cpu - 1)


def test_of_argo_the_pod_of_the_first_step_is_alone() -> None:
    *groups, workflow = manifests("workflows")["Workflow"]
    assert set(placements([*groups, *of_argo(workflow)], 1)) == {"load-0"}


def test_the_role_template_of_flink_is_what_its_taskmanagers_request() -> None:
    group, deployment = manifests("workflows")["FlinkDeployment"]
    (role,) = [role for role in group["spec"]["roles"] if "template" in role]
    spec = deployment["spec"]
    asked = spec["taskManager"]["resource"]
    mebibytes = int(asked["memory"].removesuffix("m"))
    resources = role["template"]["resources"]
    assert resources == {"cpu": str(asked["cpu"]), "memory": f"{mebibytes // 1024}Gi"}
    per_manager = int(spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert role["minMember"] == spec["job"]["parallelism"] // per_manager
    assert (
        role["name"] == spec["taskManager"]["podTemplate"]["metadata"]["labels"]["tutti.dev/role"]
    )


def identified(manifest: Json) -> Json:
    """As the API server has it."""
    told = {"uid": "u", "namespace": "ml", "resourceVersion": "1"}
    return manifest | {"metadata": manifest["metadata"] | told}


def test_the_raycluster_is_a_gang_of_its_head_and_four_workers() -> None:
    (cluster,) = manifests("ray")["RayCluster"]
    gang = ray.decode_cluster(wire.parse_one(identified(cluster), ray.RayCluster))
    assert {role.name: role.min_member for role in gang.roles} == {"headgroup": 1, "workers": 4}


def test_the_jobset_is_a_gang_of_two_stages() -> None:
    (made,) = manifests("jobset")["JobSet"]
    gang = jobset.decode_set(wire.parse_one(identified(made), jobset.JobSet))
    assert [[(role.name, role.min_member) for role in stage] for stage in gang.stages] == [
        [("load", 1)],
        [("node", 4)],
    ]


def of_yunikorn(job: Json) -> Iterable[Json]:
    """The pods of the Job, and the PodGroup that Tutti makes of the first of them."""
    spec, template = job["spec"], job["spec"]["template"]
    pods = [pod(f"sum-{i}", template["spec"]) for i in range(spec["parallelism"])]
    for made in pods:
        made["metadata"] |= template["metadata"] | {"namespace": "ml"}
    read = wire.parse_one(identified(pods[0]), wire.Pod)
    first = decode_member(read, gang_sources.chosen([yunikorn.TASK_GROUPS]))
    assert first.application is not None
    yield task_groups.group(first, first.application)
    for made in pods:
        labels = {"tutti.dev/pod-group": first.application.app, "tutti.dev/role": first.role}
        yield made | {"metadata": made["metadata"] | {"labels": labels}}


def test_the_job_with_task_groups_is_a_gang_of_four() -> None:
    (job,) = manifests("yunikorn")["Job"]
    assert len(placements(of_yunikorn(job), 8)["sum"].assignments) == 4
    assert "sum" not in placements(of_yunikorn(job), 7)


def test_the_job_behind_kueue_is_a_gang_of_four() -> None:
    group, job = manifests("kueue")["Job"]
    template = job["spec"]["template"]
    labels = template["metadata"]["labels"]
    pods = [pod(f"sum-{i}", template["spec"], **labels) for i in range(job["spec"]["parallelism"])]
    assert len(placements([group, *pods], 8)["sum"].assignments) == 4
    assert "sum" not in placements([group, *pods], 7)
