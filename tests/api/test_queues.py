"""Queues on a real API server: who may use one, what a limit stops, and what lets a gang start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..harness.rig import Rig, pod_group
from .bodies import queue
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUES = "/apis/tutti.dev/v1alpha1/queues"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these."""
    with Rig.start() as started:
        yield started


@pytest.fixture
def place(rig: Rig) -> Iterator[Place]:
    """A namespace and nodes of a test's own; its queues go with it."""
    made = Place(rig)
    yield made
    rig.plane.request("DELETE", QUEUES)


def _queue(place: Place, name: str, **spec: Any) -> None:
    """Create a Queue that this namespace alone may use."""
    ours = {"matchLabels": {"kubernetes.io/metadata.name": place.name}}
    place.rig.create(queue({"namespaces": ours, **spec}, name))


def _patch(place: Place, name: str, **spec: Any) -> None:
    place.rig.plane.request("PATCH", f"{QUEUES}/{name}", {"spec": spec})


def _gang(place: Place, name: str, members: int, queue_name: str) -> None:
    made = pod_group(name, members, namespace=place.name)
    made["spec"] |= {"queue": queue_name} if queue_name else {}
    place.rig.create(made)
    place.members(name, members, cpu=1)


def test_a_limit_stops_a_gang_until_it_is_raised_and_ends_nobody(place: Place) -> None:
    """The parent's limit, which both queues share; the room would do for all."""
    place.nodes(1, cpu=16)
    _queue(place, "top", resources=[{"name": "cpu", "limit": 5}])
    for name in ("vision", "nlp"):
        _queue(place, name, parent="top")
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    _gang(place, "second", 3, "nlp")
    words = "queue top is at its limit: 3 of 5 cpu are in use, 3 wanted"
    place.until_waiting("second", "QueueAtLimit", words)
    _patch(place, "top", resources=[{"name": "cpu", "limit": 2}])
    _gang(place, "third", 1, "nlp")
    place.until_waiting("third", "QueueAtLimit", "3 of 2 cpu are in use, 1 wanted")
    assert place.bound("first") == 3
    _patch(place, "top", resources=[{"name": "cpu", "limit": 7}])
    place.until_bound("second", 3)
    place.until_bound("third", 1)


def test_a_gang_that_runs_stays_in_the_queue_that_it_started_in(place: Place) -> None:
    """Also without its PodGroup: the record of its start goes with its last pod."""
    place.nodes(1, cpu=16)
    _queue(place, "vision", resources=[{"name": "cpu", "limit": 4}])
    _queue(place, "nlp")
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    (before,) = _until_records(place, 1)
    assert (before["queue"]["name"], before["placement"]) == ("vision", [])
    group = f"/apis/tutti.dev/v1alpha1/namespaces/{place.name}/podgroups/first"
    place.rig.plane.request("PATCH", group, {"spec": {"queue": "nlp"}})
    _gang(place, "second", 2, "vision")
    words = "queue vision is at its limit: 3 of 4 cpu are in use, 2 wanted"
    place.until_waiting("second", "QueueAtLimit", words)
    place.delete("ptg", "first")
    _gang(place, "third", 2, "vision")
    place.until_waiting("third", "QueueAtLimit", words)
    assert [*_until_records(place, 1)] == [before]
    for number in range(3):
        place.delete("pod", f"first-{number}")
    place.until_bound("second", 2)
    place.until_bound("third", 2)
    names = {record["podGroup"]["name"] for record in _until_records(place, 2)}
    assert names == {"second", "third"}


def _until_records(place: Place, n: int) -> list[dict[str, Any]]:
    """Wait until so many Reservations are left, all of them for their record alone."""
    path = f"/apis/tutti.dev/v1alpha1/namespaces/{place.name}/reservations"

    def specs() -> list[dict[str, Any]]:
        found = [item["spec"] for item in place.rig.plane.request("GET", path)["items"]]
        is_spent = all("queue" in spec and not spec["placement"] for spec in found)
        return found if is_spent and len(found) == n else []

    return place.rig.until(specs, f"{n} records of starts are left")


def test_a_gang_without_a_queue_that_it_may_use_says_which_it_may(place: Place) -> None:
    """It starts once a default is there; a queue that holds starts nothing."""
    place.nodes(1, cpu=16)
    _queue(place, "held", stop="Hold")
    _gang(place, "lost", 1, "hled")
    place.until_waiting("lost", "UnknownQueue", "name held in spec.queue")
    _gang(place, "waits", 1, "held")
    place.until_waiting("waits", "QueueHeld")
    _patch(place, "held", stop="None")
    place.until_bound("waits", 1)
    assert place.bound("lost") == 0
