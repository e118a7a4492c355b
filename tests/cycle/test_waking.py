"""What time alone changes: the cycle answers when it has to look again though nothing happens."""

import pytest

from tutti.model.cluster import OnTimeout

from ..harness.builders import gang, node
from ..harness.fakes import Clock, FakeCluster, Life

HOUR = 3600.0  # after which a gang has waited too long, where nothing else is said


def said(cluster: FakeCluster, name: str) -> str:
    """The sentence by which a gang is told why it waits."""
    status = next(group.status for key, group in cluster.groups.items() if key.name == name)
    return next(
        str(condition["message"])
        for condition in status["conditions"]
        if condition["type"] == "Reserved"
    )


async def test_a_cycle_is_run_when_a_gang_has_waited_too_long() -> None:
    cluster, clock = FakeCluster(), Clock()
    busy = gang("busy").of(1, cpu=2).bound_on("n1")
    large = gang("large").of(1, cpu=4).each(created=clock.now).but(created=clock.now)
    cluster.add(node("n1", cpu=4), busy, large)
    began = clock.now
    await Life(cluster, clock).settle()
    assert said(cluster, "large").endswith("so room is held for it on 1 node as it frees up")
    assert began + HOUR <= clock.now < began + HOUR + 120


@pytest.mark.parametrize(
    ("on_timeout", "phase"), [(OnTimeout.KEEP_WAITING, "Waiting"), (OnTimeout.FAIL, "Failed")]
)
async def test_a_cycle_is_run_when_a_gang_runs_out_of_time_and_says_so_once(
    on_timeout: OnTimeout, phase: str
) -> None:
    cluster, clock = FakeCluster(), Clock()
    began = clock.now
    made = gang("late").of(1, cpu=4).each(created=began)
    made = made.but(created=began, timeout_seconds=600.0, on_timeout=on_timeout)
    cluster.add(node("n1", cpu=2), made)
    await Life(cluster, clock).settle()
    assert began + 600.0 <= clock.now < began + 720.0
    assert said(cluster, "late").startswith("not started within 600 s; ")
    (group,) = cluster.groups.values()
    assert group.status["phase"] == phase
    told = [event["reason"] for event in cluster.events.values()]
    assert told.count("TimedOut") == 1
