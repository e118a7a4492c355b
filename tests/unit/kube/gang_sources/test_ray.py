"""RayClusters, and the pods that KubeRay makes for them."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources.ray import KIND, RayCluster, decode_cluster
from tutti.kube.wire.base import OwnerReference
from tutti.model.cluster import MadeFor, Role
from tutti.model.keys import POD, POD_GROUP, ApiKind, GangKey, Uid

from .. import objects

NAME = "rayclusters.ray.io"
PLUGINS, VOLCANO = "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.volcano.sh"
KEY = GangKey("ml", "ray", KIND.api)
NODE = {"ray.io/cluster": "ray", "ray.io/node-type": "worker", "ray.io/group": "small"}


def cluster(*groups: dict[str, Any], **spec: Any) -> RayCluster:
    metadata = {"name": "ray", "namespace": "ml", "uid": "u", "resourceVersion": "7"}
    body = {"metadata": metadata, "spec": {"workerGroupSpecs": groups, **spec}}
    return wire.parse_one(body, RayCluster)


def group(name: str = "small", **spec: Any) -> dict[str, Any]:
    least_and_most = {"minReplicas": 1, "maxReplicas": 4, "numOfHosts": 1}
    return {"groupName": name, "replicas": 2, **least_and_most, **spec}


def pod(labels: dict[str, str], annotations: dict[str, str] | None = None) -> wire.Pod:
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0"}})
    body["metadata"] |= {"labels": labels, "annotations": annotations or {}}
    return wire.parse_one(body, wire.Pod)


def test_a_cluster_is_a_gang_of_its_head_and_its_workers() -> None:
    gang = decode_cluster(cluster(group(), group("big", replicas=3)))
    assert (gang.key, gang.uid, gang.version, gang.min_member) == (KEY, "u", "7", 6)
    assert gang.roles == (Role("big", 3), Role("headgroup", 1), Role("small", 2))


@pytest.mark.parametrize(
    ("worker_group", "needed"),
    [
        (group(replicas=0), 1),  # as KubeRay, no fewer than the minimum
        (group(replicas=9), 4),  # and no more than the maximum
        (group(replicas=None), 1),
        (group(numOfHosts=4), 8),
        (group(suspend=True), 0),
        (group(replicas=3, minReplicas=None, maxReplicas=None), 3),
        (group(replicas=-3, minReplicas=-1), 0),
    ],
)
def test_it_needs_the_workers_that_kuberay_makes(worker_group: dict[str, Any], needed: int) -> None:
    assert decode_cluster(cluster(worker_group)).min_member == 1 + needed


def test_with_the_autoscaler_it_needs_the_minimum_of_each_worker_group() -> None:
    gang_object = decode_cluster(cluster(group(replicas=3), enableInTreeAutoscaling=True))
    assert gang_object.roles == (Role("headgroup", 1), Role("small", 1))
    assert decode_cluster(cluster(group(), enableInTreeAutoscaling=None)).min_member == 3


def test_a_cluster_without_workers_is_a_gang_of_its_head() -> None:
    assert decode_cluster(cluster()).min_member == 1


def test_fields_of_newer_versions_change_nothing() -> None:
    newer = {"upgradeStrategy": {"type": "x"}, "headGroupSpec": {"more": 1, "template": {"a": []}}}
    later = group(scaleStrategy={"workersToDelete": ["a"]}, template={"spec": {"b": 1}})
    assert decode_cluster(cluster(later, **newer)) == decode_cluster(cluster(group()))


def test_more_worker_groups_than_can_be_counted_are_named() -> None:
    gang_object = decode_cluster(cluster(*(group(f"g{i}") for i in range(100))))
    assert gang_object.unsupported_fields == ("more than 99 worker groups",)
    assert len(gang_object.roles) == 100


def test_levels_of_more_groups_than_can_be_counted_take_no_time() -> None:
    levels = {"kueue.x-k8s.io/podset-group-name": "a"}
    key = "kueue.x-k8s.io/podset-required-topology"

    def named(number: int) -> dict[str, Any]:
        annotations = {**levels, key: f"level-{number}"}
        return group(f"g{number}", template={"metadata": {"annotations": annotations}})

    many = [named(number) for number in range(6_000)]
    assert decode_cluster(cluster(*many)).same_domain == ()
    few = decode_cluster(cluster(*many[:99]))
    assert len(few.same_domain) == len(few.same_domain[0].roles) == 99
    assert len({id(rule.roles) for rule in few.same_domain}) == 1


@pytest.mark.parametrize(
    ("labels", "gang", "role"),
    [
        (NODE, KEY, "small"),
        ({**NODE, "ray.io/node-type": "head", "ray.io/group": "headgroup"}, KEY, "headgroup"),
        ({**NODE, "ray.io/node-type": "redis-cleanup"}, GangKey("ml", "a-0", POD), ""),
        ({"ray.io/cluster": "ray"}, GangKey("ml", "a-0", POD), ""),
        ({**NODE, "tutti.dev/pod-group": "own"}, GangKey("ml", "own", POD_GROUP), "small"),
    ],
)
def test_head_and_workers_are_members(labels: dict[str, str], gang: GangKey, role: str) -> None:
    member = decode_member(pod(labels), gang_sources.chosen([NAME]))
    assert (member.gang, member.role) == (gang, role)


def test_pods_name_the_uid_of_the_cluster_that_made_them() -> None:
    made = pod({"ray.io/cluster": "c", "ray.io/node-type": "head", "ray.io/group": "headgroup"})
    owner = OwnerReference(kind="RayCluster", name="c", uid="u")
    for owners, uid in (
        ((), None),
        ((owner,), None),
        ((owner.model_copy(update={"controller": True}),), "u"),
        ((owner.model_copy(update={"controller": True, "kind": "RayJob"}),), None),
    ):
        metadata = made.metadata.model_copy(update={"owner_references": owners})
        owned = made.model_copy(update={"metadata": metadata})
        made_for = None if uid is None else MadeFor(KIND.api, Uid(uid))
        assert decode_member(owned, gang_sources.chosen([NAME])).made_for == made_for


def test_the_pod_groups_that_kuberay_makes_are_no_other_gangs() -> None:
    """They have a stale size; an Event on each pod would be noise."""
    sources = gang_sources.chosen([NAME, PLUGINS, VOLCANO])
    labels = {**NODE, "scheduling.x-k8s.io/pod-group": "ray"}
    groups = {"scheduling.k8s.io/group-name": "ray-job-pg"}
    member = decode_member(pod(labels, groups), sources)
    assert (member.gang, member.other_gangs) == (KEY, ())
    labels["scheduling.x-k8s.io/pod-group"] = "mine"
    groups["scheduling.k8s.io/group-name"] = "mine"
    others = decode_member(pod(labels, groups), sources).other_gangs
    kinds = [ApiKind(f"scheduling.{group}", "PodGroup") for group in ("volcano.sh", "x-k8s.io")]
    assert others == tuple(GangKey("ml", "mine", kind) for kind in kinds)
