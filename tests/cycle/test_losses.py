"""What is said of a gang that had nothing more to say, when its nodes turn."""

from typing import Any

import pytest

from tutti.model.cluster import Phase
from tutti.model.keys import GangKey

from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Life


def healthy(cluster: FakeCluster) -> str:
    lines: Any = cluster.groups[GangKey(NAMESPACE, "a")].status["conditions"]
    return next(str(line["reason"]) for line in lines if line["type"] == "Healthy")


async def settled() -> tuple[FakeCluster, Life]:
    """A gang that runs on two nodes, of which nothing is left to say."""
    cluster = FakeCluster()
    running = gang("a").of(2, cpu=1).bound_on("n1", "n2").each(phase=Phase.RUNNING)
    cluster.add(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1), running)
    life = Life(cluster, Clock())
    await life.settle()
    assert healthy(cluster) == "Whole"
    return cluster, life


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_node_that_turns_is_said_of_the_gang_that_runs_there(*, is_deleted: bool) -> None:
    cluster, life = await settled()
    if is_deleted:
        cluster.delete_node("n2")
    else:
        cluster.change_node("n2", ready=False)
    life.watch.catch_up()
    await life.settle()
    assert healthy(cluster) == "NodeLost"
    if is_deleted:
        cluster.add(node("n2", cpu=1))
    else:
        cluster.change_node("n2", ready=True)
    life.watch.catch_up()
    await life.settle()
    assert healthy(cluster) == "Whole"


async def test_a_node_that_turns_elsewhere_costs_no_word() -> None:
    cluster, life = await settled()
    calls = len(cluster.calls)
    cluster.change_node("n3", ready=False)
    life.watch.catch_up()
    await life.settle()
    assert len(cluster.calls) == calls
