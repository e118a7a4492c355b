"""What plans read of the status of a PodGroup."""

from typing import Any

import pytest

from tutti.kube import wire
from tutti.kube.gang_sources.pod_group import PodGroup, decode_group


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
    body = {
        "metadata": {"namespace": "ml", "name": "a", "uid": "u"},
        "spec": {"minMember": 1},
        "status": status,
    }
    assert decode_group(wire.parse_one(body, PodGroup)).lost_milliseconds == lost
