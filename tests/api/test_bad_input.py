"""Input that makes no sense, or no sense yet: a clear answer, and nothing lost.

What the API server refuses by itself is in `test_crds`; what goes wrong while a gang is being
bound in `test_bad_input_binding`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..harness.rig import GROUP_LABEL, PAUSE, Rig
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these, with the real controllers."""
    with Rig.start("controller-manager") as started:
        yield started


@pytest.fixture
def place(rig: Rig) -> Place:
    """A namespace and nodes of a test's own."""
    return Place(rig)


def test_a_pod_of_a_missing_group_waits_says_which_and_proceeds_when_it_appears(
    place: Place,
) -> None:
    """The Event is on the pod, which is all there is."""
    place.nodes(1)
    place.members("train", 2, cpu=1)
    said = place.until_event("train-0", "PodGroupNotFound")
    assert said == f"PodGroup {place.name}/train does not exist; the pod waits until it does"
    assert place.says("train-0")["reason"] == "PodGroupNotFound"
    assert place.bound() == 0
    place.group("train", 2)
    place.until_bound("train", 2)


def test_a_gang_with_too_few_pods_waits_and_counts_them(place: Place) -> None:
    """Its pods say that they wait for siblings, so that nothing is scaled up for them."""
    place.nodes(1)
    place.group("train", 8)
    place.members("train", 5, cpu=1)
    place.until_waiting("train", "WaitingForMembers", "5 of 8 members exist")
    place.until_pod_says("train-0", "WaitingForMembers")
    assert place.bound() == 0
    place.members("train", 3, first=5, cpu=1)
    place.until_bound("train", 8)


def test_an_ordered_stateful_set_is_told_how_to_bring_all_its_pods(place: Place) -> None:
    """OrderedReady creates the second pod once the first runs, and that never happens."""
    place.nodes(1)
    place.group("web", 3)
    place.rig.create(_stateful_set(place, "web", replicas=3, policy="OrderedReady"))
    place.until_waiting(
        "web",
        "WaitingForMembers",
        (
            "1 of 3 members exist; StatefulSet web, if OrderedReady, creates one pod at a time: "
            "set podManagementPolicy: Parallel"
        ),
    )
    assert place.bound() == 0
    place.group("parallel", 3)
    place.rig.create(_stateful_set(place, "parallel", replicas=3, policy="Parallel"))
    place.until_bound("parallel", 3)


def test_a_job_of_too_little_parallelism_is_told_what_to_raise(place: Place) -> None:
    """Once it is raised, the gang starts."""
    place.nodes(1)
    place.group("batch", 4)
    place.rig.create(_batch(place, "batch", parallelism=3))
    place.until_waiting(
        "batch",
        "WaitingForMembers",
        "3 of 4 members exist; Job batch: spec.parallelism must be at least minMember (4)",
    )
    assert place.bound() == 0
    path = f"/apis/batch/v1/namespaces/{place.name}/jobs/batch"
    place.rig.plane.request("PATCH", path, {"spec": {"parallelism": 4}})
    place.until_bound("batch", 4)


def test_a_member_that_no_node_could_hold_names_the_resource_and_the_largest_node(
    place: Place,
) -> None:
    """Pools can scale from zero, so only the kinds present are spoken of."""
    place.nodes(1, "small", gpus=2)
    place.nodes(1, "large", gpus=8)
    place.group("train", 2)
    place.members("train", 2, gpu=16)
    said = place.until_waiting("train", "NoNodeFits")
    assert said.startswith(f"no node of the kinds present fits member {place.name}/train-0: ")
    assert "asks 16 nvidia.com/gpu" in said
    assert f"the largest node has 8 ({place.name}-large-000)" in said
    place.until_pod_says("train-0", "Unschedulable")
    place.nodes(2, "huge", gpus=16)
    place.until_bound("train", 2)


def test_a_pod_of_an_unknown_role_is_told_so_and_does_not_count(place: Place) -> None:
    """Its group waits for the role that is missing, and starts when the pod's role is put right."""
    place.nodes(1)
    place.group("train", driver=1, worker=2)
    place.rig.create(place.pod("typo", "train", role="wroker", cpu=1))
    said = place.until_event("typo", "UnknownRole")
    assert said == (
        "PodGroup train has no role 'wroker': label tutti.dev/role must be one of driver, worker"
    )
    place.rig.create(
        place.pod("driver", "train", role="driver", cpu=1),
        place.pod("worker", "train", role="worker", cpu=1),
    )
    place.until_waiting(
        "train", "WaitingForMembers", "role worker: 1 of 2 exist; 1 pod names no role of the gang"
    )
    place.rig.until(
        lambda: place.rig.group("train", place.name)["status"]["members"]["seen"] == 2,
        "the driver is seen, too",
    )
    assert place.bound() == 0
    place.relabel("typo", role="worker")
    place.until_bound("train", 3)


def test_a_pod_that_changes_its_group_while_it_waits_counts_for_the_new_one(place: Place) -> None:
    """The group that it left says that it lacks one."""
    place.nodes(1, cpu=4)
    place.group("left", 3)
    place.group("joined", 2)
    place.members("left", 3, cpu=3)
    place.until_waiting("left", "NotEnoughRoom")
    place.members("joined", 1, cpu=1)
    place.until_waiting("joined", "WaitingForMembers")
    place.relabel("left-2", group="joined")
    place.until_bound("joined", 2)
    place.until_waiting("left", "WaitingForMembers", "2 of 3 members exist")
    assert place.bound("left") == 0


def test_a_pod_that_leaves_its_group_is_a_gang_of_one(place: Place) -> None:
    """Its old group does not count it any more."""
    place.nodes(1)
    place.group("left", 3)
    place.members("left", 2, cpu=1)
    place.until_waiting("left", "WaitingForMembers")
    patch = {"metadata": {"labels": {GROUP_LABEL: None}}}
    path = f"/api/v1/namespaces/{place.name}/pods/left-1"
    place.rig.plane.request("PATCH", path, patch)
    place.until_pod_bound("left-1")
    assert not place.is_bound("left-0")


def _template(place: Place, group: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": PAUSE, "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"labels": {"app": group, GROUP_LABEL: group}},
        "spec": {
            "schedulerName": "tutti",
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"pool": place.name},
            "containers": [container],
            **spec,
        },
    }


def _stateful_set(place: Place, name: str, *, replicas: int, policy: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": place.name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": policy,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(place, name),
        },
    }


def _batch(place: Place, name: str, *, parallelism: int) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": place.name},
        "spec": {
            "parallelism": parallelism,
            "completions": 4,
            "template": _template(place, name, restartPolicy="Never"),
        },
    }
