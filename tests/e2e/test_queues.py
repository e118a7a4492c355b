"""Queues on a real API server while gangs come and go: limits that change, queues that move and go.

The judge replays what every queue is charged: a limit that is exceeded for one moment is a
violation, and so is a start in a queue that is stopped, or the end of one that is charged.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ..api.bodies import queue
from ..harness.operator_process import USER
from ..harness.rig import QUEUES, Rig, ending, members, pod, pod_group, remove_queues

if TYPE_CHECKING:
    from collections.abc import Iterator

TEAMS = ("vision", "nlp", "speech")
SHORT = 1.0  # seconds for which a member runs
FEWEST_CHARGES = 8  # that the judge has looked at, of any of these tests


@pytest.fixture(scope="module")
def cluster() -> Iterator[Rig]:
    """Twelve cores and an operator."""
    with Rig.start() as started:
        started.nodes(3, cpu=4, memory="16Gi")
        yield started
        assert started.verdict().charges > FEWEST_CHARGES


@pytest.fixture
def rig(cluster: Rig) -> Iterator[Rig]:
    """The same for one test, which leaves no pods and no Queues."""
    yield cluster
    for kind in ("/api/v1/namespaces/ml/pods", "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups"):
        cluster.plane.request("DELETE", f"{kind}?gracePeriodSeconds=0")
    cluster.until(lambda: not cluster.reservations(), "no Reservation is left")
    remove_queues(cluster.plane.request)


def _cpu(limit: int | None = None, guaranteed: int | None = None) -> list[dict[str, Any]]:
    line: dict[str, Any] = {"name": "cpu"}
    line |= {} if limit is None else {"limit": limit}
    return [line | ({} if guaranteed is None else {"guaranteed": guaranteed})]


def _queue(rig: Rig, name: str, **spec: Any) -> None:
    """Create a Queue that all namespaces may use."""
    rig.create(queue({"namespaces": {}, **spec}, name))


def _running(rig: Rig) -> int:
    """How many pods have a node and have not ended."""
    return sum(
        "nodeName" in pod["spec"] and pod["status"]["phase"] != "Succeeded" for pod in rig.pods()
    )


def _end(rig: Rig, *names: str) -> None:
    """Let all members of these gangs succeed, as their kubelets would."""
    for member in (member for name in names for member in rig.pods(name)):
        path = f"/api/v1/namespaces/ml/pods/{member['metadata']['name']}/status"
        rig.plane.request("PATCH", path, {"status": {"phase": "Succeeded"}})


def _change(rig: Rig, name: str, **spec: Any) -> None:
    rig.plane.request("PATCH", f"{QUEUES}/{name}", {"spec": spec})


def _gangs(rig: Rig, into: str, *names: str, seconds: float | None = SHORT) -> None:
    for name in names:
        group = pod_group(name, 2)
        group["spec"]["queue"] = into
        rig.create(group, *members(name, 2, run_seconds=seconds, cpu=1))


def _names(rig: Rig) -> set[str]:
    return {item["metadata"]["name"] for item in rig.plane.request("GET", QUEUES)["items"]}


def _charged(rig: Rig, name: str) -> str:
    status = rig.plane.request("GET", f"{QUEUES}/{name}").get("status", {})
    return next((line.get("charged", "") for line in status.get("resources", ())), "")


def _until_charged(rig: Rig, name: str, amount: str) -> None:
    rig.until(lambda: _charged(rig, name) == amount, f"{name} is charged {amount}")


def _succeeded(rig: Rig, *names: str) -> bool:
    return all(pod["status"]["phase"] == "Succeeded" for name in names for pod in rig.pods(name))


def _until_succeeded(rig: Rig, *names: str) -> None:
    rig.until(lambda: _succeeded(rig, *names), f"{names} have succeeded")


def _is_empty(rig: Rig, name: str) -> bool:
    lines = rig.plane.request("GET", f"{QUEUES}/{name}").get("status", {}).get("conditions", ())
    return any(line["type"] == "Empty" and line["status"] == "True" for line in lines)


def _waits_behind(rig: Rig, gang: str, others: tuple[str, ...]) -> list[str]:
    """The others that started in plans after Tutti said that the gang lacks room."""
    is_known = False
    starts: dict[str, str] = {}  # since then, with the moment of the plan
    for line in rig.plane.audited():
        target = line.get("objectRef", {})
        if line["user"]["username"] != USER or line["responseStatus"]["code"] >= 300:
            continue
        if target.get("resource") == "podgroups" and target.get("name") == gang:
            is_known |= "NotEnoughRoom" in str(line["requestObject"])
        elif target.get("resource") == "reservations" and line["verb"] == "create" and is_known:
            spec = line["requestObject"]["spec"]
            starts[spec["podGroup"]["name"]] = spec["queue"]["startedAt"]
    assert gang in starts, f"{gang} has not waited, or not started"
    return [name for name in others if starts.get(name, starts[gang]) < starts[gang]]


def test_teams_borrow_and_give_back_while_limits_and_queues_change(rig: Rig) -> None:
    _queue(rig, "top", resources=_cpu(limit=10))
    for name in TEAMS:
        _queue(rig, name, parent="top", resources=_cpu(guaranteed=3))
    old = [f"v{i}" for i in range(8)]
    _gangs(rig, "vision", *old, seconds=None)  # alone, and more than its guarantee
    rig.until(lambda: _running(rig) == 10, "vision borrows all up to the limit")
    others = {name: [f"{name}{i}" for i in range(3)] for name in TEAMS[1:]}
    for name, gangs in others.items():
        _gangs(rig, name, *gangs)
    rig.plane.apply(ending(member, SHORT) for gang in old for member in rig.pods(gang))
    _until_succeeded(rig, others["nlp"][0], others["speech"][0])
    _change(rig, "top", resources=_cpu(limit=4))  # below use
    more = [f"m{i}" for i in range(3)]
    _gangs(rig, "vision", *more)
    _until_succeeded(rig, more[0])
    _change(rig, "nlp", parent="", resources=_cpu(limit=4, guaranteed=3))  # moved
    _change(rig, "top", resources=_cpu(limit=8))
    _change(rig, "vision", stop="Hold")
    rig.until_queue_is_known("vision")
    _until_succeeded(rig, *others["nlp"], *others["speech"])
    _gangs(rig, "vision", "held")
    rig.until_says("held", "Reserved", "QueueHeld")
    _change(rig, "vision", stop="None")
    _until_succeeded(rig, *old, *more, "held")


def test_three_teams_keep_all_rules_under_load_while_all_is_changed(rig: Rig) -> None:
    """Borrowing, giving back, a limit below use, and a queue moved, held, drained, deleted."""
    _queue(rig, "top", resources=_cpu(limit=10))
    _queue(rig, "single", parent="top", resources=_cpu(limit=1), defaultFor={})
    for name in TEAMS:
        _queue(rig, name, resources=_cpu(guaranteed=3))
    load = {name: tuple(f"load-{name}{i:02}" for i in range(12)) for name in TEAMS}
    borrowers, others = load["vision"][:6], load["vision"][6:]
    _gangs(rig, "vision", *borrowers, seconds=None)
    rig.until(lambda: _running(rig) == 12, "vision borrows all nodes")
    _gangs(rig, "vision", *others)
    for name in TEAMS[1:]:
        _gangs(rig, name, *load[name])
    for name in TEAMS[1:]:
        rig.until_says(load[name][0], "Reserved", "NotEnoughRoom")
    _end(rig, *borrowers)
    rig.until(lambda: rig.bound(load["nlp"][0]) and rig.bound(load["speech"][0]), "they start")
    for name in TEAMS[1:]:
        assert not _waits_behind(rig, load[name][0], load["vision"]), "vision gives back first"

    for name in TEAMS:
        _change(rig, name, parent="top")  # moved while charged
    rig.create(*(pod(f"single-{i}", cpu=1, run_seconds=SHORT) for i in range(4)))
    _change(rig, "top", resources=_cpu(limit=4))  # below use
    rig.until_queue_is_known("top")
    rig.until(lambda: _running(rig) <= 4, "what ends is not followed")
    _change(rig, "nlp", parent="", resources=_cpu(limit=4, guaranteed=3))
    _change(rig, "speech", stop="Hold")
    rig.until_queue_is_known("speech")
    _gangs(rig, "speech", "held")
    rig.operator.kill()
    rig.operator.start()
    rig.until_says("held", "Reserved", "QueueHeld")
    _change(rig, "speech", stop="None")
    _change(rig, "top", resources=_cpu(limit=8))
    _change(rig, "vision", stop="Drain")
    path = f"{QUEUES}/vision"
    since = rig.until(
        lambda: rig.plane.request("GET", path)["status"].get("drainingSince"), "it drains"
    )
    next_second = datetime.fromisoformat(since) + timedelta(seconds=1)
    rig.until(lambda: datetime.now(UTC) > next_second, "what is created now is newer")
    _gangs(rig, "vision", "new")
    rig.until_says("new", "Reserved", "QueueDrains")
    _gangs(rig, "speech", "long", seconds=None)
    rig.until_bound("long", 2)

    rig.plane.request("DELETE", f"{QUEUES}/speech")
    rig.until_queue_is_known("speech")
    _gangs(rig, "speech", "late")
    rig.until_says("late", "Reserved", "QueueHeld")
    assert "speech" in _names(rig), "it is held until its gangs have ended"
    _end(rig, "long")
    _until_succeeded(rig, *load["nlp"], *load["vision"], "held", "long")
    rig.until_says("late", "Reserved", "UnknownQueue")
    assert "speech" not in _names(rig)
    rig.until(lambda: _is_empty(rig, "vision"), "vision has drained")
    rig.until(
        lambda: all(rig.pod(f"single-{i}")["status"]["phase"] == "Succeeded" for i in range(4)),
        "the pods without a group have ended",
    )


def test_queues_drain_and_are_deleted_under_load(rig: Rig) -> None:
    for name in TEAMS:
        _queue(rig, name, resources=_cpu(limit=4))
        _gangs(rig, name, *(f"{name}{i}" for i in range(4)))
    rig.until(lambda: rig.bound("vision0"), "they run")
    _change(rig, "vision", stop="Drain")
    _gangs(rig, "nlp", "last", seconds=None)
    rig.until_bound("last", 2)
    rig.plane.request("DELETE", f"{QUEUES}/nlp")
    assert "nlp" in _names(rig), "it is held until its gangs have ended"
    _end(rig, "last")
    path = f"{QUEUES}/vision"
    status = rig.until(
        lambda: rig.plane.request("GET", path).get("status", {}).get("drainingSince"), "it drains"
    )
    assert status
    _until_succeeded(rig, *(f"speech{i}" for i in range(4)), *(f"vision{i}" for i in range(4)))
    _until_succeeded(rig, "last")
    rig.until(lambda: _names(rig) == {"vision", "speech"}, "nlp is gone")


def test_queues_come_and_go_while_gangs_run_and_nothing_ends(rig: Rig) -> None:
    """An upgrade: gangs run, Queues are created, a limit is below use, Queues are removed."""
    old = ("one", "two", "three")
    for name in old:
        rig.create(pod_group(name, 2), *members(name, 2, cpu=1))
    for name in old:
        rig.until_bound(name, 2)
    before = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in rig.pods()}
    rig.until(lambda: not rig.reservations(), "no record is kept without Queues")
    _queue(rig, "all", resources=_cpu(limit=4), defaultFor={})
    _until_charged(rig, "all", "6")
    rig.create(pod_group("new", 2), *members("new", 2, cpu=1))
    rig.until_says("new", "Reserved", "QueueAtLimit", "6 of 4 cpu are in use, 2 wanted")
    rig.operator.kill()
    rig.operator.start()
    _change(rig, "all", resources=_cpu(limit=8))
    rig.until_bound("new", 2)
    rig.until(lambda: len(rig.reservations()) == 4, "each gang that runs has a record")
    rig.create(pod_group("more", 2), *members("more", 2, cpu=1))
    rig.until_says("more", "Reserved", "QueueAtLimit", "8 of 8 cpu are in use, 2 wanted")
    remove_queues(rig.plane.request)
    rig.until_bound("more", 2)
    rig.until(lambda: not rig.reservations(), "the records go with the last Queue")
    after = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in rig.pods()}
    assert before.items() <= after.items()
