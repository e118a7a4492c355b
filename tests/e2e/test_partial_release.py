"""``onPartial: Release``: bound members are evicted only where a controller makes all again.

With real Jobs and ReplicaSets, the real kube-controller-manager, and an agent for kubelets.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.corner import Corner
from tests.harness import rig as rigs
from tests.harness.kubelet import Kubelet
from tests.harness.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator

RETRY_SECONDS = 30  # between two evictions of a pod that a disruption budget keeps
IGNORES_DISRUPTION = {
    "podFailurePolicy": {
        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    }
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Rig, Kubelet]]:
    """One cluster for all of these; judged when the last has ended."""
    with Rig.start("controller-manager") as rig, Kubelet(rig.plane) as kubelet:
        yield rig, kubelet


@pytest.fixture
def corner(cluster: tuple[Rig, Kubelet]) -> Corner:
    """A namespace and nodes of a test's own."""
    return Corner(*cluster)


def _lose_one_for_good(corner: Corner, group: str, *options: str) -> str:
    """Delete the member on a node that takes no new ones; answers its name."""
    node = next(pod["spec"]["nodeName"] for pod in corner.pods(group))
    corner.cordon(node)
    (member,) = corner.on(node)
    corner.delete("pod", member, *options)
    return member


def test_a_gang_without_room_for_its_replacement_is_released_and_starts_again_elsewhere(
    corner: Corner,
) -> None:
    """Two of three are evicted, nothing of it runs, and with new nodes all of it does."""
    corner.nodes(3, cpu=1)
    corner.group("serve", 3, on_partial="Release")
    corner.replicas("serve", 3)
    corner.until_running("serve", 3)
    before = {pod["metadata"]["uid"] for pod in corner.pods("serve")}
    _lose_one_for_good(corner, "serve")
    corner.rig.until(lambda: corner.evictions() == 2, "the other two are evicted")
    corner.rig.until(
        lambda: (
            len(corner.pods()) == 3
            and not before & {pod["metadata"]["uid"] for pod in corner.pods("serve")}
        ),
        "all three are made again",
    )
    corner.until_says("serve", "Reserved", "NotEnoughRoom", "short 1")
    assert corner.bound("serve") == 0
    assert "Released" in corner.events("serve")
    corner.nodes(3, "new", cpu=1)
    corner.until_running("serve", 3)
    assert corner.evictions() == 2


def test_bare_pods_are_never_evicted_and_that_is_said(corner: Corner) -> None:
    """Nobody would make them again."""
    corner.nodes(3, cpu=1)
    corner.group("train", 3, on_partial="Release")
    corner.rig.create(*(corner.pod(f"train-{i}", "train", cpu=1) for i in range(3)))
    corner.until_running("train", 3)
    _lose_one_for_good(corner, "train")
    corner.rig.create(corner.pod("train-3", "train", cpu=1))
    said = corner.until_says("train", "Reserved", "NotEnoughRoom", "not released")
    assert "has no controller that creates it again" in said
    assert corner.running("train") == 2
    assert corner.evictions() == 0
    corner.nodes(1, "new", cpu=1)
    corner.until_running("train", 3)


def test_a_spark_driver_is_never_evicted(corner: Corner) -> None:
    """Although it has an owner here, the next one would be another application."""
    corner.nodes(2, cpu=1)
    corner.group("app", 2, on_partial="Release")
    corner.replicas("app", 2)
    corner.rig.until(lambda: len(corner.pods("app")) == 2, "there are two pods")
    for pod in corner.pods("app"):
        corner.rig.plane.kubectl(
            "label", "pod", pod["metadata"]["name"], "-n", corner.name, "spark-role=driver"
        )
    corner.until_running("app", 2)
    _lose_one_for_good(corner, "app")
    corner.until_says("app", "Reserved", "NotEnoughRoom", "is a Spark driver")
    assert corner.evictions() == 0
    corner.nodes(1, "new", cpu=1)
    corner.until_running("app", 2)


def test_a_gang_that_a_disruption_budget_keeps_is_completed_once_there_is_room(
    corner: Corner,
) -> None:
    """The API server answers 429, as to a flood of requests, but only one pod is meant.

    The budget asks for all of the gang, so it would never allow what stood in the way of a repair.
    """
    corner.nodes(2, cpu=1)
    corner.group("serve", 2)
    corner.replicas("serve", 2)
    corner.until_running("serve", 2)
    corner.budget("serve", 2)
    _lose_one_for_good(corner, "serve")
    corner.until_healthy("serve", 1)
    corner.release("serve")
    said = corner.until_says("serve", "Reserved", "NotEnoughRoom", "but not yet")
    assert "disruption budget serve needs 2 healthy pods and has 1 currently" in said
    (name,) = corner.kubelet.nodes(1, f"{corner.name}-other", cpu=1, memory="8Gi")
    corner.group("next", 1)
    spec = {"nodeSelector": {"kubernetes.io/hostname": name}}
    corner.rig.create(rigs.pod("next-0", "next", namespace=corner.name, spec=spec, cpu=1))
    corner.until_running("next", 1)
    assert corner.running("serve") == 1
    began, tried = time.monotonic(), corner.evictions()
    assert tried
    corner.nodes(1, "new", cpu=1)
    corner.until_running("serve", 2)
    allowed = 1 + int((time.monotonic() - began) / RETRY_SECONDS)
    assert corner.evictions() <= tried + allowed, "one in 30 seconds"


def test_a_gang_of_which_a_disruption_budget_keeps_a_part_is_completed_nevertheless(
    corner: Corner,
) -> None:
    """One of two goes; the other is asked once more, and then the gang is repaired."""
    corner.nodes(3, cpu=1)
    corner.group("serve", 3)
    corner.replicas("serve", 3)
    corner.until_running("serve", 3)
    corner.budget("serve", 1)
    _lose_one_for_good(corner, "serve")
    corner.until_healthy("serve", 2)
    corner.release("serve")
    corner.until_says("serve", "Reserved", "NotEnoughRoom", "evicting 2 bound members")
    corner.rig.until(lambda: corner.evictions() == 3, "the other one is asked once more")
    corner.rig.until(lambda: corner.running("serve") == 2, "who replaces the one has its room")
    corner.until_says("serve", "Reserved", "NotEnoughRoom", "1 other had left")
    corner.nodes(1, "new", cpu=1)
    corner.until_running("serve", 3)
    assert corner.evictions() == 3


def test_a_job_is_not_driven_into_its_backoff_limit(corner: Corner) -> None:
    """One rejection and seven evictions would be eight failures; six are allowed."""
    first, _ = corner.nodes(2, cpu=4)
    corner.kubelet.refuse(first)
    corner.group("train", 8, on_partial="Release")
    corner.job("train", 8)
    corner.until_says("train", "Healthy", "Rejected")
    corner.cordon(first)
    said = corner.until_says("train", "Reserved", "NotEnoughRoom", "but not yet")
    assert "Job train stands 5 more failures and each of the 7 evictions counts as one" in said
    assert corner.evictions() == 0
    assert corner.running("train") == 7
    corner.cordon(first, is_open=True)
    corner.until_running("train", 8)
    assert corner.job_now("train")["failed"] == 1


def test_a_job_that_ignores_disruption_is_released_and_runs_again(corner: Corner) -> None:
    """Its backoff limit of 1 is not even approached."""
    first, _ = corner.nodes(2, cpu=1)
    corner.group("train", 2, on_partial="Release")
    corner.kubelet.refuse(first)
    corner.job("train", 2, backoffLimit=1, **IGNORES_DISRUPTION)
    corner.until_says("train", "Healthy", "Rejected")
    corner.cordon(first)
    corner.rig.until(lambda: corner.evictions() == 1, "the other one is evicted")
    corner.nodes(1, "new", cpu=1)
    corner.until_running("train", 2)
    assert corner.job_now("train")["failed"] == 1
    assert not corner.job_now("train").get("conditions")
