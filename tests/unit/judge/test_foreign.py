"""Pods belong to the groups of other projects that they name, where Tutti reads these."""

from typing import Any

import pytest

from ...harness.judge import Kind, Promise
from ...harness.judge.views import PodGroup, view
from .writing import Story, two_nodes

NATIVE: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
PLUGINS: dict[str, Any] = {"minMember": 2}
KINDS = [(Kind.KUBERNETES_GROUPS, NATIVE), (Kind.PLUGINS_GROUPS, PLUGINS)]


def pod(story: Story, name: str, group: str, **labels: str) -> int:
    """Put a pod that names a group of either kind."""
    own = {"scheduling.x-k8s.io/pod-group": group, **labels}
    body: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": own},
        "spec": {
            "schedulerName": "tutti",
            "containers": [],
            "schedulingGroup": {"podGroupName": group},
        },
        "status": {"phase": "Pending"},
    }
    return story.put(Kind.PODS, body)


def group(story: Story, kind: Kind, name: str, spec: dict[str, Any]) -> int:
    """Put a group."""
    return story.put(kind, {"metadata": {"name": name, "namespace": "ml"}, "spec": spec})


@pytest.mark.parametrize(("kind", "spec"), KINDS)
def test_a_member_alone_is_a_violation(kind: Kind, spec: dict[str, Any]) -> None:
    story = two_nodes()
    group(story, kind, "sum", spec)
    pod(story, "sum-0", "sum")
    pod(story, "sum-1", "sum")
    story.bind("sum-0", "a")
    (found,) = story.verdict().of(Promise.WHOLE)
    assert f"gang ml/{kind.api_group}/sum: 1 of 2 members bound" in found.sentence
    assert story.verdict().of(Promise.RESERVED_FIRST)


def test_a_reservation_names_the_kind_of_its_gang() -> None:
    story = two_nodes()
    group(story, Kind.KUBERNETES_GROUPS, "sum", NATIVE)
    pod(story, "sum-0", "sum")
    pod(story, "sum-1", "sum")
    named = [{"name": f"sum-{i}", "uid": f"uid-sum-{i}"} for i in range(2)]
    spec = {
        "podGroup": {"name": "sum", "apiGroup": "scheduling.k8s.io", "kind": "PodGroup"},
        "placement": [{"node": "a", "pods": named}],
    }
    story.put(Kind.RESERVATIONS, {"metadata": {"name": "r", "namespace": "ml"}, "spec": spec})
    story.bind("sum-0", "a")
    story.bind("sum-1", "a")
    assert not story.verdict().violations


@pytest.mark.parametrize(("named", "is_right"), [("q", True), ("default", False), ("", False)])
def test_a_group_of_volcano_belongs_to_the_queue_that_it_names(
    named: str, *, is_right: bool
) -> None:
    story = two_nodes()
    story.queue("q")
    group(story, Kind.VOLCANO_GROUPS, "sum", {"minMember": 1, "queue": named})
    body: dict[str, Any] = {
        "metadata": {
            "name": "sum-1",
            "namespace": "ml",
            "uid": "uid-sum-1",
            "annotations": {"scheduling.k8s.io/group-name": "sum"},
        },
        "spec": {"schedulerName": "tutti", "containers": []},
        "status": {"phase": "Pending"},
    }
    story.put(Kind.PODS, body)
    spec = {
        "podGroup": {"name": "sum", "apiGroup": "scheduling.volcano.sh", "kind": "PodGroup"},
        "placement": [{"node": "a", "pods": [{"name": "sum-1", "uid": "uid-sum-1"}]}],
        "queue": {"name": "q", "uid": "uid-q"},
    }
    story.put(Kind.RESERVATIONS, {"metadata": {"name": "r", "namespace": "ml"}, "spec": spec})
    assert bool(story.verdict().of(Promise.LIMITS)) is not is_right


def test_of_a_group_that_is_no_gang_each_pod_is_alone() -> None:
    story = two_nodes()
    group(story, Kind.KUBERNETES_GROUPS, "sum", {"schedulingPolicy": {"basic": {}}})
    pod(story, "sum-0", "sum")
    story.bind("sum-0", "a")
    assert not story.verdict().violations


def test_a_group_of_tuttis_comes_before_others_of_the_same_name() -> None:
    story = two_nodes()
    story.group("sum", 1)
    group(story, Kind.KUBERNETES_GROUPS, "sum", NATIVE)
    pod(story, "sum-0", "sum", **{"tutti.dev/pod-group": "sum"})
    story.bind("sum-0", "a")
    assert not story.verdict().of(Promise.WHOLE)


RAY: dict[str, Any] = {"workerGroupSpecs": [{"groupName": "small", "replicas": 1}]}
JOBS: dict[str, Any] = {
    "replicatedJobs": [{"name": "node", "template": {"spec": {"parallelism": 2}}}]
}
LABELS: dict[Kind, list[dict[str, str]]] = {
    Kind.RAY_CLUSTERS: [
        {"ray.io/cluster": "sum", "ray.io/node-type": "head", "ray.io/group": "headgroup"},
        {"ray.io/cluster": "sum", "ray.io/node-type": "worker", "ray.io/group": "small"},
    ],
    Kind.JOB_SETS: [{"jobset.sigs.k8s.io/jobset-name": "sum"}] * 2,
}


@pytest.mark.parametrize(("kind", "spec"), [(Kind.RAY_CLUSTERS, RAY), (Kind.JOB_SETS, JOBS)])
def test_a_member_of_an_owners_gang_alone_is_a_violation(kind: Kind, spec: dict[str, Any]) -> None:
    """Also where the group that it names has fewer members."""
    story = two_nodes()
    group(story, kind, "sum", spec)
    group(story, Kind.PLUGINS_GROUPS, "other", {"minMember": 1})
    for i, labels in enumerate(LABELS[kind]):
        pod(story, f"sum-{i}", "other", **labels)
    story.bind("sum-0", "a")
    (found,) = story.verdict().of(Promise.WHOLE)
    assert f"gang ml/{kind.api_group}/sum: 1 of 2 members bound" in found.sentence


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({}, 3),
        ({"replicas": 9}, 5),
        ({"replicas": 0}, 2),
        ({"suspend": True}, 1),
        ({"numOfHosts": 2}, 5),
    ],
)
def test_a_raycluster_needs_what_kuberay_makes(changes: dict[str, Any], needed: int) -> None:
    worker = {"groupName": "w", "replicas": 2, "minReplicas": 1, "maxReplicas": 4, **changes}
    spec = {"workerGroupSpecs": [worker]}
    body = {"metadata": {"name": "r", "namespace": "ml", "uid": "u"}, "spec": spec}
    read = view(Kind.RAY_CLUSTERS, body, 1)
    assert isinstance(read, PodGroup)
    assert read.min_member == needed
    scaled = {**body, "spec": {**spec, "enableInTreeAutoscaling": True}}
    read = view(Kind.RAY_CLUSTERS, scaled, 1)
    assert isinstance(read, PodGroup)
    assert read.min_member <= needed
