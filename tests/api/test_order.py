"""Who comes first, how large a gang grows and how long it is tried, as its PodGroup says."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from ..harness.rig import Rig, pod_group
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these."""
    with Rig.start() as started:
        yield started


@pytest.fixture
def place(rig: Rig) -> Place:
    """A namespace and nodes of a test's own."""
    return Place(rig)


def _group(place: Place, name: str, min_member: int, **more: Any) -> None:
    """Create a PodGroup that says more than how many it needs."""
    made = pod_group(name, min_member, namespace=place.name)
    made["spec"] |= more
    place.rig.create(made)


def test_a_priority_class_decides_from_the_moment_that_it_exists(place: Place) -> None:
    """Until then the priority of the pods counts, and the gang says so."""
    name = f"{place.name}-high"
    place.nodes(1, cpu=2)
    _group(place, "busy", 1)
    place.members("busy", 1, cpu=2)
    place.until_bound("busy", 1)
    _group(place, "low", 1)
    place.members("low", 1, cpu=2)
    place.until_waiting("low", "NotEnoughRoom")
    _group(place, "high", 1, priorityClassName=name)
    place.members("high", 1, cpu=2)
    place.until_waiting("high", "NotEnoughRoom", f"PriorityClass {name} does not exist")
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    place.rig.create({**kind, "metadata": {"name": name}, "value": 1000})
    numbers = count()

    def is_known() -> bool:
        """Whether a new gang finds the class; an old one says so within a minute only."""
        sign = f"sign-{next(numbers)}"
        _group(place, sign, 1, priorityClassName=name)
        place.members(sign, 1, cpu=2)
        return "does not exist" not in place.until_waiting(sign, "NotEnoughRoom")

    place.rig.until(is_known, "the class is known")
    place.delete("pod", "busy-0")
    place.until_bound("high", 1)
    assert place.bound("low") == 0


def test_a_role_grows_to_its_maximum_and_no_further(place: Place) -> None:
    """The others wait for a member to end, and ask nobody for nodes."""
    place.nodes(1, cpu=8)
    roles = [{"name": "worker", "minMember": 1, "maxMember": 3}]
    _group(place, "elastic", 1, roles=roles)
    place.members("elastic", 5, role="worker", cpu=1)
    place.until_bound("elastic", 3)
    names = [f"elastic-{number}" for number in range(5)]
    waiting = [name for name in names if not place.is_bound(name)]

    def reasons() -> set[str]:
        return {str(place.says(name).get("reason")) for name in waiting}

    place.rig.until(lambda: reasons() == {"WaitingForMembers"}, "the others say why they wait")
    place.delete("pod", next(name for name in names if name not in waiting))
    place.until_bound("elastic", 3)


def test_a_gang_that_is_given_up_says_so_and_gets_no_room(place: Place) -> None:
    """In its phase, its condition, one Event, and on its pods."""
    _group(place, "late", 2)
    place.members("late", 2, cpu=2)
    place.until_waiting("late", "NoNodeFits")
    # Only now, so that it is not over before somebody has looked.
    path = f"/apis/tutti.dev/v1alpha1/namespaces/{place.name}/podgroups/late"
    spec = {"scheduleTimeoutSeconds": 3, "onTimeout": "Fail"}
    place.rig.plane.request("PATCH", path, {"spec": spec})
    sentence = place.until_waiting("late", "TimedOut")
    assert sentence.startswith("not started within 3 s; given up")
    assert place.rig.group("late", place.name)["status"]["phase"] == "Failed"
    assert place.until_event("late", "TimedOut") == sentence
    place.rig.until(lambda: place.says("late-0").get("reason") == "TimedOut", "its pods say why")
    place.nodes(1, cpu=8)
    _group(place, "other", 1)
    place.members("other", 1, cpu=1)
    place.until_bound("other", 1)
    assert place.bound("late") == 0
    told = [e for e in place.rig.events("late", place.name) if e["reason"] == "TimedOut"]
    assert [event.get("count", 1) for event in told] == [1]


def test_a_gang_that_keeps_waiting_starts_when_there_is_room(place: Place) -> None:
    """TimedOut is said of it meanwhile."""
    _group(place, "late", 1, scheduleTimeoutSeconds=1)
    place.members("late", 1, cpu=2)
    place.until_waiting("late", "TimedOut", "not started within 1 s; no node of the kinds present")
    place.nodes(1, cpu=8)
    place.until_bound("late", 1)
