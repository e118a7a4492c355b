"""Gangs that lose members to kubelets, nodes and people, and are completed: nothing is evicted.

With real Jobs and ReplicaSets, the real kube-controller-manager, and an agent for kubelets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.corner import Corner
from tests.harness.controlplane import STOP_SECONDS
from tests.harness.kubelet import Kubelet
from tests.harness.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Rig, Kubelet]]:
    """One cluster for all of these; judged when the last has ended."""
    with Rig.start("controller-manager") as rig, Kubelet(rig.plane) as kubelet:
        yield rig, kubelet


@pytest.fixture
def corner(cluster: tuple[Rig, Kubelet]) -> Corner:
    """A namespace and nodes of a test's own."""
    return Corner(*cluster)


def test_a_rejected_member_of_a_job_is_replaced_and_a_new_gang_waits(corner: Corner) -> None:
    """Eight pods of an Indexed Job; one is turned away by its kubelet with OutOfcpu."""
    first, _ = corner.nodes(2, cpu=4)
    # The kubelet knows of a pod that the API server has forgotten.
    corner.kubelet.burden(first, cpu="1")
    corner.group("train", 8)
    corner.job("train", 8)
    said = corner.until_says("train", "Healthy", "Rejected")
    assert "7 of 8 members are bound, 1 missing: train-" in said
    assert f"was rejected by node {first} (OutOfcpu)" in said
    assert corner.phase("train") == "Degraded"

    corner.kubelet.burden(first)
    corner.group("next", 2)
    corner.rig.create(*(corner.pod(f"next-{i}", "next", cpu=1) for i in range(2)))
    corner.until_says("next", "Reserved", "NotEnoughRoom")
    corner.until_running("train", 8)
    assert corner.bound("next") == 0
    assert corner.evictions() == 0
    assert corner.job_now("train")["failed"] == 1
    corner.delete("job", "train")
    corner.until_running("next", 2)


def test_devices_that_are_gone_are_a_rejection_too(corner: Corner) -> None:
    """The kubelet says UnexpectedAdmissionError; a ReplicaSet replaces the pod at once."""
    (node,) = corner.nodes(1, cpu=4)
    corner.kubelet.refuse(node)
    corner.group("serve", 3)
    corner.replicas("serve", 3)
    corner.until_running("serve", 3)
    failed = [pod for pod in corner.pods() if pod["status"]["phase"] == "Failed"]
    assert [pod["status"]["reason"] for pod in failed] == ["UnexpectedAdmissionError"]
    assert corner.evictions() == 0


def test_a_node_that_does_not_answer_is_named_and_its_members_are_replaced(
    corner: Corner,
) -> None:
    """Power is cut: the taint manager deletes the pod, the Job replaces it, elsewhere."""
    corner.nodes(3, cpu=1)
    corner.group("train", 3)
    corner.job("train", 3)
    corner.until_running("train", 3)
    spare = corner.nodes(1, "spare", cpu=1)
    lost = next(pod["spec"]["nodeName"] for pod in corner.pods("train"))
    (member,) = corner.on(lost)
    corner.kubelet.vanish(lost)
    said = corner.until_says("train", "Healthy", "NodeLost")
    assert f"2 of 3 members are bound, 1 missing: {member} on node {lost}, which is" in said
    corner.rig.until(lambda: corner.on(spare[0]), "a replacement is bound elsewhere")
    corner.until_says("train", "Healthy", "Whole")
    assert "NodeLost" in corner.events("train")


def test_a_node_that_is_deleted_is_named_while_its_pods_are_still_listed(corner: Corner) -> None:
    """And what was said stays when the pods are gone, until the gang is whole again."""
    kept, lost = corner.nodes(2, cpu=2)
    corner.group("serve", 4)
    corner.replicas("serve", 4)
    corner.until_running("serve", 4)
    names = sorted(corner.on(lost))
    corner.rig.plane.kubectl("delete", "node", lost)
    said = corner.until_says("serve", "Healthy", "NodeLost")
    assert said.startswith("2 of 4 members are bound, 2 missing: ")
    for name in names:
        assert f"{name} on node {lost}, which is gone" in said
        corner.delete("pod", name, "--force", "--grace-period=0")
    corner.until_says("serve", "Reserved", "NotEnoughRoom", "2 members to replace lost ones")
    assert corner.condition("serve", "Healthy")["reason"] == "NodeLost"
    assert len(corner.on(kept)) == 2
    corner.nodes(1, "new", cpu=2)
    corner.until_running("serve", 4)
    assert corner.evictions() == 0


def test_a_running_gangs_replacement_is_placed_before_a_gang_that_waited_longer(
    corner: Corner,
) -> None:
    """The room of a deleted member is free once it has stopped, and two want it."""
    corner.nodes(1, cpu=3)
    corner.group("serve", 3)
    corner.replicas("serve", 3, **{STOP_SECONDS: "600"})
    corner.until_running("serve", 3)
    corner.group("next", 1)
    corner.rig.create(corner.pod("next-0", "next", cpu=1))
    corner.until_says("next", "Reserved", "NotEnoughRoom")
    stopping = corner.pods("serve")[0]["metadata"]["name"]
    corner.delete("pod", stopping, "--grace-period=600")
    said = corner.until_says("serve", "Healthy", "MemberLost")
    assert "is being deleted on node" in said
    corner.delete("pod", stopping, "--force", "--grace-period=0")
    corner.until_running("serve", 3)
    assert corner.bound("next") == 0
    corner.delete("pod", "next-0")


def test_a_finishing_gang_is_never_called_broken(corner: Corner) -> None:
    """Its pods end one by one and are cleared away one by one; a restart changes nothing."""
    corner.nodes(1, cpu=5)
    corner.group("train", 4)
    names = [f"train-{i}" for i in range(4)]
    corner.rig.create(*(corner.pod(name, "train", cpu=1) for name in names))
    corner.until_running("train", 4)
    for name in names[:3]:
        corner.kubelet.finish(corner.rig.pod(name, corner.name))
        corner.delete("pod", name, "--force", "--grace-period=0")
    corner.rig.until(lambda: _succeeded(corner) == 3, "three are gone, and counted")
    assert len(corner.pods()) == 1
    corner.rig.operator.stop()
    corner.rig.operator.start()
    corner.rig.create(corner.pod("probe", "", cpu=1))
    corner.rig.until(
        lambda: "nodeName" in corner.rig.pod("probe", corner.name)["spec"],
        "a cycle has looked at all of it",
    )
    corner.kubelet.finish(corner.rig.pod(names[3], corner.name))
    corner.rig.until(lambda: corner.phase("train") == "Finished", "it has finished")
    assert _succeeded(corner) == 4
    assert "MemberLost" not in corner.events("train")
    assert corner.condition("train", "Healthy")["reason"] == "Whole"


def _succeeded(corner: Corner) -> int:
    return int(corner.rig.group("train", corner.name)["status"]["members"]["succeeded"])
