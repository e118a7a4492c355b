"""What plans read of the status of a PodGroup."""

from typing import Any

import pytest

from tutti.kube import wire
from tutti.kube.gang_sources import GangObject
from tutti.kube.gang_sources.pod_group import PodGroup, decode_group


def with_status(status: dict[str, Any]) -> GangObject:
    """A PodGroup with this status, as it is read."""
    metadata = {"namespace": "ml", "name": "a", "uid": "u"}
    body = {"metadata": metadata, "spec": {"minMember": 1}, "status": status}
    return decode_group(wire.parse_one(body, PodGroup))


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        ({}, 0),
        ({"preemption": {"lostMilliseconds": 1500}}, 1500),
        ({"preemption": {"lostMilliseconds": -1}}, 0),
        ({"preemption": {"lostMilliseconds": "1500"}}, 0),
        ({"preemption": {}}, 0),
        ({"preemption": [1500]}, 0),
    ],
)
def test_what_ends_have_lost_is_in_the_status(status: dict[str, Any], lost: int) -> None:
    assert with_status(status).lost_milliseconds == lost


@pytest.mark.parametrize(
    ("phase", "members", "succeeded"),
    [
        ("Running", {"succeeded": 2}, 2),
        ("Bound", {"succeeded": 2}, 2),
        ("Running", {"succeeded": -1}, 0),
        ("Running", {"succeeded": "2"}, 0),
        ("Running", {}, 0),
        ("Running", [2], 0),
        ("Finished", {"succeeded": 2}, 0),
        ("Degraded", {"succeeded": 2}, 0),
        (None, {"succeeded": 2}, 0),
    ],
)
def test_who_has_succeeded_is_in_the_status_while_others_run(
    phase: str | None, members: Any, succeeded: int
) -> None:
    status = {"phase": phase, "members": members}
    assert with_status(status).succeeded_before == succeeded
    assert with_status({}).succeeded_before == 0
