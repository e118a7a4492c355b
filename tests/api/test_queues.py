"""Queues on a real API server: who may use one, what a limit stops, and what lets a gang start."""

from __future__ import annotations

from datetime import UTC, datetime
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
    place = Place(rig)
    yield place
    rig.plane.request("DELETE", QUEUES)
    for path in (f"/api/v1/namespaces/{place.name}/pods", _groups(place)):
        rig.plane.request("DELETE", path)
    rig.until(lambda: not rig.plane.request("GET", QUEUES)["items"], "no Queue is left")


def _groups(place: Place) -> str:
    return f"/apis/tutti.dev/v1alpha1/namespaces/{place.name}/podgroups"


def _queue(place: Place, name: str, **spec: Any) -> None:
    """Create a Queue that this namespace alone may use."""
    ours = {"matchLabels": {"kubernetes.io/metadata.name": place.name}}
    place.rig.create(queue({"namespaces": ours, **spec}, name))


def _patch(place: Place, name: str, **spec: Any) -> None:
    """Change a Queue, and wait until Tutti has seen it: gangs come by another watch."""
    place.rig.plane.request("PATCH", f"{QUEUES}/{name}", {"spec": spec})
    place.rig.until_queue_is_known(name)


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
    """Also without its PodGroup and its labels: the record of its start goes with its last pod."""
    place.nodes(1, cpu=16)
    _queue(place, "vision", resources=[{"name": "cpu", "limit": 4}])
    _queue(place, "nlp")
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    (before,) = _until_records(place, 1)
    assert (before["queue"]["name"], before["placement"]) == ("vision", [])
    place.rig.plane.request("PATCH", f"{_groups(place)}/first", {"spec": {"queue": "nlp"}})
    _gang(place, "second", 2, "vision")
    words = "queue vision is at its limit: 3 of 4 cpu are in use, 2 wanted"
    place.until_waiting("second", "QueueAtLimit", words)
    place.delete("ptg", "first")
    _gang(place, "third", 2, "vision")
    place.until_waiting("third", "QueueAtLimit", words)
    for number, label in enumerate((None, "gone", "second")):
        path = f"/api/v1/namespaces/{place.name}/pods/first-{number}"
        labels = {"tutti.dev/pod-group": label}
        place.rig.plane.request("PATCH", path, {"metadata": {"labels": labels}})
    _gang(place, "fourth", 2, "vision")
    place.until_waiting("fourth", "QueueAtLimit", words)
    assert [*_until_records(place, 1)] == [before]
    assert len(before["charged"]) == 3
    place.delete("ptg", "fourth")
    for number in range(3):
        place.delete("pod", f"first-{number}")
    place.until_bound("second", 2)
    place.until_bound("third", 2)
    names = {record["podGroup"]["name"] for record in _until_records(place, 2)}
    assert names == {"second", "third"}


def test_a_member_that_succeeded_is_written_down_and_never_replaced(place: Place) -> None:
    place.nodes(1, cpu=16)
    _queue(place, "vision", resources=[{"name": "cpu", "limit": 2}])
    _gang(place, "first", 2, "vision")
    place.until_bound("first", 2)
    pods = f"/api/v1/namespaces/{place.name}/pods"
    place.rig.plane.request("PATCH", f"{pods}/first-0/status", {"status": {"phase": "Succeeded"}})
    _gang(place, "second", 1, "vision")
    place.until_bound("second", 1)
    (first,) = (
        record for record in _until_records(place, 2) if record["podGroup"]["name"] == "first"
    )
    assert first["succeeded"] == {"": 1}
    labels = {"tutti.dev/pod-group": None}
    place.rig.plane.request("PATCH", f"{pods}/first-0", {"metadata": {"labels": labels}})
    place.members("first", 3, 2, cpu=1)
    words = "queue vision is at its limit: 2 of 2 cpu are in use, 1 wanted"
    place.until_waiting("first", "QueueAtLimit", words)


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


def _read(place: Place, name: str) -> dict[str, Any]:
    """A Queue as it is now; nothing if it is gone."""
    found = place.rig.plane.request("GET", QUEUES)["items"]
    return next((item for item in found if item["metadata"]["name"] == name), {})


def _until_says(place: Place, name: str, kind: str, reason: str) -> str:
    """Wait until a condition of a Queue has this reason; answers its sentence."""

    def sentence() -> str:
        lines = _read(place, name).get("status", {}).get("conditions", [])
        return next((c["message"] for c in lines if (c["type"], c["reason"]) == (kind, reason)), "")

    return place.rig.until(sentence, f"queue {name} says {kind}: {reason}")


def test_a_queue_says_what_is_charged_and_what_is_wrong(place: Place) -> None:
    """And `kubectl get queues` shows it as a table."""
    place.nodes(1, cpu=16)
    _queue(place, "vision", parent="ml", resources=[{"name": "cpu", "guaranteed": 2, "limit": 4}])
    words = "its parent ml does not exist, so no gang starts here: create queue ml"
    assert words in _until_says(place, "vision", "Valid", "UnknownParent")
    _queue(place, "ml")
    _until_says(place, "vision", "Accepting", "Accepting")
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    _until_says(place, "vision", "Empty", "Charged")

    def charged() -> bool:
        entries = _read(place, "vision")["status"]["resources"]
        figures = {"name": "cpu", "charged": "3", "covered": "0", "borrowed": "3"}
        return figures in entries

    place.rig.until(charged, "the status of vision has its figures")
    header, *lines = place.rig.plane.kubectl("get", "queues").splitlines()
    assert header.split()[:6] == ["NAME", "PARENT", "WEIGHT", "STOP", "MODE", "STATE"]
    shown = next(line for line in lines if line.startswith("vision"))
    assert " ml " in shown
    assert "Accepting" in shown
    assert "3/4 cpu" in shown


def test_a_deleted_queue_is_held_until_its_gangs_have_ended(place: Place) -> None:
    """The gang that waits in it waits; one that is made again is another queue."""
    place.nodes(1, cpu=16)
    _queue(place, "vision", resources=[{"name": "cpu", "limit": 3}])
    _queue(place, "nlp")
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    uid = _read(place, "vision")["metadata"]["uid"]
    place.rig.plane.request("DELETE", f"{QUEUES}/vision")
    _until_says(place, "vision", "Accepting", "Deleting")
    _gang(place, "second", 1, "vision")
    place.until_waiting("second", "QueueHeld")
    assert _read(place, "vision")["metadata"]["uid"] == uid
    for number in range(3):
        place.delete("pod", f"first-{number}")
    place.rig.until(lambda: not _read(place, "vision"), "queue vision is gone")
    place.until_waiting("second", "UnknownQueue")
    _queue(place, "vision", resources=[{"name": "cpu", "limit": 3}])
    place.until_bound("second", 1)


def test_a_queue_that_drains_lets_in_nobody_who_comes_later(place: Place) -> None:
    """The others start still, and Tutti writes down since when it drains."""
    place.nodes(1, cpu=16)
    _queue(place, "vision", resources=[{"name": "cpu", "limit": 3}])
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    _gang(place, "second", 1, "vision")
    place.until_waiting("second", "QueueAtLimit")
    _patch(place, "vision", stop="Drain")
    _until_says(place, "vision", "Accepting", "Draining")
    place.rig.until(lambda: "drainingSince" in _read(place, "vision")["status"], "it is dated")
    since = datetime.fromisoformat(_read(place, "vision")["status"]["drainingSince"])
    # Gangs are dated by the second, so those of the same one count as there before.
    place.rig.until(lambda: (datetime.now(UTC) - since).total_seconds() > 1, "a second is over")
    _gang(place, "third", 1, "vision")
    place.until_waiting("third", "QueueDrains")
    place.delete("pod", "first-0")
    place.delete("pod", "first-1")
    place.delete("pod", "first-2")
    place.until_bound("second", 1)
    assert place.bound("third") == 0
    _patch(place, "vision", stop="None")
    place.until_bound("third", 1)
    place.rig.until(
        lambda: "drainingSince" not in _read(place, "vision")["status"], "the date is removed"
    )


def test_a_queue_in_shadow_stops_nobody_until_it_is_active(place: Place) -> None:
    """It says whom its limit would have stopped."""
    place.nodes(1, cpu=16)
    _queue(place, "vision", mode="Shadow", resources=[{"name": "cpu", "limit": 2}])
    _until_says(place, "vision", "WouldStop", "WithinLimit")
    _gang(place, "first", 3, "vision")
    place.until_bound("first", 3)
    sentence = _until_says(place, "vision", "WouldStop", "BeyondLimit")
    assert sentence == f"mode is Shadow: its limits would have stopped {place.name}/first"
    _patch(place, "vision", mode="Active")
    _gang(place, "second", 1, "vision")
    place.until_waiting("second", "QueueAtLimit", "3 of 2 cpu are in use, 1 wanted")
    assert place.bound("first") == 3
