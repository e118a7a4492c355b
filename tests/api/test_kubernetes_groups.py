"""Kubernetes' own PodGroups on a real API server: what they ask for, and what people do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..conformance.controllers.ground import path
from ..harness.controlplane.pins import chosen_k8s
from ..harness.rig import Rig, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

API = "scheduling.k8s.io/v1beta1"
SCHEDULED = "PodGroupInitiallyScheduled"
BAD_WORDS = ("Traceback", "Error:", "Exception")
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}

pytestmark = pytest.mark.skipif(chosen_k8s() != "1.37", reason="the API is 1.37's")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A node of ten CPUs; the API is served, and Tutti reads it unless told otherwise."""
    with Rig.start("controller-manager", "workload-with-job") as started:
        started.plane.create([CLASS])
        started.nodes(1, cpu=10, memory="64Gi")
        yield started
        log = started.operator.log.read_text()
        assert not [line for line in log.splitlines() if any(word in line for word in BAD_WORDS)]


def group(name: str, **policy: Any) -> dict[str, Any]:
    """A PodGroup of the gang policy, unless it says otherwise."""
    return {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"schedulingPolicy": policy},
    }


def member(name: str, of: str, *, label: str = "", **about: Any) -> dict[str, Any]:
    """A pod of one CPU that names such a PodGroup, and perhaps one of Tutti's."""
    spec = {"schedulingGroup": {"podGroupName": of}, **about.pop("spec", {})}
    return pod(name, label, spec=spec, cpu=1, **about)


def condition(rig: Rig, name: str) -> dict[str, Any]:
    """What Tutti says of a PodGroup."""
    found = rig.plane.request("GET", path(API, "podgroups", name))
    lines = found.get("status", {}).get("conditions", [])
    return next((line for line in lines if line["type"] == SCHEDULED), {})


def until_says(rig: Rig, name: str, status: str, reason: str) -> dict[str, Any]:
    """Wait until it is so."""

    def said() -> dict[str, Any] | None:
        line = condition(rig, name)
        return line if (line.get("status"), line.get("reason")) == (status, reason) else None

    return rig.until(said, f"{name} says {status}, {reason}")


def until_bound(rig: Rig, *names: str) -> None:
    """Wait until these pods have a node."""
    rig.until(lambda: all("nodeName" in rig.pod(n)["spec"] for n in names), f"{names} have nodes")


def are_waiting(rig: Rig, *names: str) -> bool:
    """Whether none of them has a node."""
    return not any("nodeName" in rig.pod(name)["spec"] for name in names)


def clear(rig: Rig, *groups: str) -> None:
    """Delete all pods, and these PodGroups, and wait until they are gone."""
    rig.plane.kubectl("delete", "pods", "--all", "-n", "ml")
    for name in groups:
        rig.plane.kubectl("delete", f"podgroups.v1beta1.scheduling.k8s.io/{name}", "-n", "ml")


def test_pods_wait_for_their_group_and_for_each_other(rig: Rig) -> None:
    """The group comes after its pods; fewer are enough once minCount is less."""
    rig.create(*(member(f"sum-{i}", "sum") for i in range(2)))
    rig.until_pod_says("sum-0", "PodGroupNotFound")
    body = group("sum", gang={"minCount": 3})
    body["spec"]["disruptionMode"] = {"all": {}}  # has no effect
    rig.create(body)
    rig.until_pod_says("sum-0", "WaitingForMembers", "2 of 3 members exist")
    assert condition(rig, "sum") == {}
    fewer = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    rig.plane.request("PATCH", path(API, "podgroups", "sum"), fewer)
    until_bound(rig, "sum-0", "sum-1")
    line = until_says(rig, "sum", "True", "Scheduled")
    rig.until(lambda: not rig.reservations(), "it is carried out")
    assert not rig.quiet()
    rig.delete("pod", "sum-1")
    rig.until(lambda: len(rig.pods()) == 1, "one is lost")
    rig.quiet(1.5)
    assert condition(rig, "sum") == line
    clear(rig, "sum")


def test_no_room_is_said_and_priorities_must_agree(rig: Rig) -> None:
    rig.create(group("large", gang={"minCount": 11}))
    rig.create(*(member(f"large-{i:02}", "large") for i in range(11)))
    line = until_says(rig, "large", "False", "Unschedulable")
    assert "short" in line["message"]
    rig.until_pod_says("large-00", "Unschedulable")
    clear(rig, "large")

    rig.create(group("mixed", gang={"minCount": 2}), member("mixed-0", "mixed"))
    rig.create(member("mixed-1", "mixed", spec={"priorityClassName": "high"}))
    line = until_says(rig, "mixed", "False", "SchedulerError")
    assert "the same priority: it is 0, but 1000 in pod mixed-1" in line["message"]
    rig.until_pod_says("mixed-0", "MembersDiffer")
    assert are_waiting(rig, "mixed-0", "mixed-1")
    clear(rig, "mixed")


def test_pods_of_a_basic_group_start_one_by_one(rig: Rig) -> None:
    rig.create(group("plain", basic={}))
    rig.create(*(member(f"plain-{i:02}", "plain") for i in range(11)))
    rig.until(lambda: rig.bound() == 10, "as many as there is room for have a node")
    until_says(rig, "plain", "True", "Scheduled")
    clear(rig, "plain")


def test_an_absurd_number_and_a_forged_status_start_nobody_and_stop_nobody(rig: Rig) -> None:
    rig.create(group("vast", gang={"minCount": 10**9}), member("vast-0", "vast"))
    rig.until_pod_says("vast-0", "WaitingForMembers", "1 of 1000000000 members exist")
    rig.create(group("forged", gang={"minCount": 2}), member("forged-0", "forged"))
    true = {"type": SCHEDULED, "status": "True", "reason": "Scheduled", "message": ""}
    forged = {"conditions": [true | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    rig.plane.request("PATCH", path(API, "podgroups", "forged", "status"), {"status": forged})
    rig.until_pod_says("forged-0", "WaitingForMembers")
    rig.create(pod("other", cpu=1))
    until_bound(rig, "other")
    assert are_waiting(rig, "vast-0", "forged-0")
    clear(rig, "vast", "forged")


def test_a_pod_that_two_sources_claim_is_in_the_first_gang_and_an_event_says_so(rig: Rig) -> None:
    """The two PodGroups have one name; the label of Tutti's counts."""
    rig.create(group("both", gang={"minCount": 1}), pod_group("both", 2))
    rig.create(member("both-0", "both", label="both"))
    rig.until_waiting("both", "WaitingForMembers")
    rig.until(
        lambda: "SeveralGangs" in {event["reason"] for event in rig.events("both-0")}, "it is told"
    )
    assert are_waiting(rig, "both-0")
    assert condition(rig, "both") == {}
    rig.create(member("both-1", "both"))  # of Kubernetes' alone
    until_bound(rig, "both-1")
    assert are_waiting(rig, "both-0")
    rig.delete("podgroups.tutti.dev", "both")
    clear(rig, "both")


def test_a_group_that_is_deleted_under_way_starts_nothing_any_more(rig: Rig) -> None:
    """Its finalizer keeps it while it has pods."""
    rig.create(group("gone", gang={"minCount": 2}), member("gone-0", "gone"))
    rig.until_pod_says("gone-0", "WaitingForMembers")
    rig.plane.request("DELETE", path(API, "podgroups", "gone"))
    rig.until_pod_says("gone-0", "WaitingForMembers", "is being deleted")
    rig.create(member("gone-1", "gone"))
    rig.until_pod_says("gone-1", "WaitingForMembers", "is being deleted")
    assert are_waiting(rig, "gone-0", "gone-1")
    clear(rig)
    rig.create(group("next", gang={"minCount": 1}), member("next-0", "next"))
    until_bound(rig, "next-0")
    clear(rig, "next")
