"""A reclaim on a real API server: a guarantee ends what borrows, the least of it, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..api.bodies import queue
from ..harness.operator_process import OperatorProcess
from ..harness.rig import Rig, members, pod, pod_group, remove_queues

if TYPE_CHECKING:
    from collections.abc import Iterator

STOPS = {"spec": {"terminationGracePeriodSeconds": 30}}


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Two nodes of four cores, two queues that guarantee four each, and an operator that is off."""
    with Rig.start() as started:
        started.nodes(2, cpu=4, memory="16Gi")
        for name in ("vision", "nlp"):
            guaranteed = [{"name": "cpu", "guaranteed": 4}]
            started.create(queue({"namespaces": {}, "resources": guaranteed}, name))
        yield started
        _remove_all(started)


def _remove_all(rig: Rig) -> None:
    for kind in ("/api/v1/namespaces/ml/pods", "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups"):
        rig.plane.request("DELETE", f"{kind}?gracePeriodSeconds=0")
    remove_queues(rig.plane.request)
    rig.until(lambda: not rig.reservations(), "no Reservation is left")


def _gang(rig: Rig, name: str, into: str, n: int, cpu: int) -> None:
    group = pod_group(name, n)
    group["spec"]["queue"] = into
    rig.create(group, *members(name, n, cpu=cpu, **STOPS))


def _there(rig: Rig) -> dict[str, int]:
    """How many pods of each gang have a node and stay."""
    found: dict[str, int] = {}
    for member in rig.pods():
        if "nodeName" in member["spec"] and "deletionTimestamp" not in member["metadata"]:
            name = member["metadata"]["labels"]["tutti.dev/pod-group"]
            found[name] = found.get(name, 0) + 1
    return found


def _restart(rig: Rig, **environment: Any) -> None:
    rig.operator.stop()
    rig.operator = OperatorProcess(rig.plane, environment=environment)
    rig.operator.start()


def test_a_guarantee_ends_the_least_that_borrows_once_the_setting_says_so(rig: Rig) -> None:
    _gang(rig, "own", "nlp", 2, cpu=2)
    rig.until_bound("own", 2)
    _gang(rig, "large", "nlp", 2, cpu=1)
    rig.until_bound("large", 2)
    _gang(rig, "small", "nlp", 2, cpu=1)
    rig.until_bound("small", 2)
    _gang(rig, "claims", "vision", 1, cpu=2)
    rig.until_waiting("claims", "NotEnoughRoom")
    rig.quiet()
    assert _there(rig) == {"own": 2, "large": 2, "small": 2}
    _restart(rig, TUTTI_PREEMPTION="Reclaim")
    rig.until_bound("claims", 1)
    there = _there(rig)
    assert (there["own"], there["claims"]) == (2, 1)
    (ended,) = {"large", "small"} - there.keys()
    assert sum(there.values()) == 5, "one gang of two has ended, whole"
    (told,) = [e["message"] for e in rig.events(ended) if e["reason"] == "Preempted"]
    assert "a guarantee covers it (its queue guarantees " in told
    rig.quiet()
    assert _there(rig) == there
    counted = _lost(rig, ended)
    assert counted["lostMilliseconds"] > 0
    assert _lost(rig, "own") == _lost(rig, "claims") == {}
    _restart(rig, TUTTI_PREEMPTION="Reclaim")
    rig.quiet()
    assert _lost(rig, ended) == counted, "no restart counts it again"


def test_a_gang_whose_job_would_fail_borrows_only_once_the_job_tolerates_it(rig: Rig) -> None:
    _restart(rig, TUTTI_PREEMPTION="Reclaim")
    jobs = "/apis/batch/v1/namespaces/ml/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": pod("any")["spec"]["containers"]}}
    body = {"metadata": {"name": "train"}, "spec": {"backoffLimit": 2, "template": template}}
    job = rig.plane.request("POST", jobs, body)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    owner["uid"] = job["metadata"]["uid"]
    group, *pods = pod_group("loan", 2), *members("loan", 2, cpu=3, **STOPS)
    group["spec"]["queue"] = "nlp"
    for manifest in pods:
        manifest["metadata"]["ownerReferences"] = [owner]
    rig.create(group, *pods)
    message = rig.until_waiting("loan", "MayNotBorrow")
    assert "Job train stands 2 more failures and each of the 2 evictions counts as one" in message
    rig.plane.request("PATCH", f"{jobs}/train", {"spec": {"backoffLimit": 3}})
    rig.until_bound("loan", 2)


def _lost(rig: Rig, gang: str) -> dict[str, Any]:
    """What the status of a PodGroup says that its ends have lost."""
    return dict(rig.group(gang)["status"].get("preemption", {}))
