"""An operator that serves named namespaces: the others' gangs are left alone, their room is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..harness.operator_process import NAMESPACE, USER
from ..harness.rig import Rig, members, pod, pod_group
from .places import kind_of, written

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVED, OTHER = "ml", "elsewhere"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One of two namespaces is served, with the rights that the chart grants for that."""
    settings = {"TUTTI_NAMESPACES": SERVED}
    with Rig.start(values=[f"settings.namespaces={{{SERVED}}}"], environment=settings) as started:
        started.plane.create_namespace(OTHER)
        started.nodes(1, cpu=4, memory="16Gi")
        yield started


def test_a_gang_elsewhere_is_not_touched_and_one_of_the_namespace_is_bound(rig: Rig) -> None:
    """Both name the scheduler; the one elsewhere is older."""
    rig.create(pod_group("train", 2, namespace=OTHER), *members("train", 2, namespace=OTHER, cpu=1))
    rig.create(pod_group("train", 2), *members("train", 2, cpu=1))
    rig.until_bound("train", 2)
    assert rig.bound("train", OTHER) == 0
    assert "status" not in rig.group("train", OTHER)
    assert not rig.pod_says("train-0", OTHER)
    assert {line["objectRef"]["namespace"] for line in written(rig)} == {SERVED}
    assert "create pods/binding" in {kind_of(line) for line in written(rig)}


def test_room_that_is_taken_elsewhere_is_taken(rig: Rig) -> None:
    """Whoever has bound it: room is the cluster's."""
    rig.create(pod("taken", namespace=OTHER, spec={"nodeName": "node-000"}, cpu=2))
    rig.until_in_use("cpu", 4)
    rig.create(pod_group("more", 2), *members("more", 2, cpu=1))
    assert "room for none" in rig.until_waiting("more", "NotEnoughRoom")
    rig.delete("pod", "taken", OTHER)
    rig.until_bound("more", 2)


@pytest.mark.parametrize(
    ("group", "resource", "part", "verb"),
    [
        ("", "pods", "binding", "create"),
        ("", "pods", "eviction", "create"),
        ("", "pods", "status", "patch"),
        ("", "events", "", "create"),
        ("tutti.dev", "podgroups", "status", "patch"),
        ("tutti.dev", "reservations", "", "delete"),
    ],
)
def test_the_right_to_write_ends_with_the_namespace(
    rig: Rig, group: str, resource: str, part: str, verb: str
) -> None:
    """Also in the release's own, but for the Lease."""
    what = {"group": group, "resource": resource, "subresource": part, "verb": verb}
    may = {}
    for namespace in (SERVED, OTHER, NAMESPACE):
        spec = {"user": USER, "resourceAttributes": {"namespace": namespace, **what}}
        answer = rig.plane.request("POST", REVIEWS, {"spec": spec})
        may[namespace] = answer["status"]["allowed"]
    assert may == {SERVED: True, OTHER: False, NAMESPACE: False}
