"""A gang loses every bound member while a replacement is about to be bound.

The repair was planned while the gang ran. Once nobody is left, one replacement alone would be a
part of a gang that has not started: it may be bound only if its Reservation stood while another
member was bound.
"""

from dataclasses import replace

import pytest

from tutti.kube import errors
from tutti.model.cluster import Phase
from tutti.model.keys import PodKey

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Fault, Life

SURVIVORS = ("a-0", "a-1", "a-2")


def repairing() -> tuple[FakeCluster, Life]:
    """A gang of four that has lost one member; the replacement waits, and there is room."""
    cluster = FakeCluster()
    running = gang("a").of(4, cpu=1).bound_on(*["n1"] * 4).each(phase=Phase.RUNNING)
    cluster.add(node("n1", cpu=8), running)
    cluster.change_pod("a-3", phase=Phase.FAILED, failure="OutOfcpu")
    replacement = builders.member("a-new", builders.shape(cpu=1))
    cluster.add_pod(replace(replacement, group="a", created=50.0))
    return cluster, Life(cluster, Clock())


def reject_survivors(cluster: FakeCluster) -> None:
    """Let the kubelet turn the other three away."""
    for name in SURVIVORS:
        cluster.change_pod(name, phase=Phase.FAILED, failure="OutOfcpu")


def is_bound(cluster: FakeCluster) -> bool:
    return cluster.pods[PodKey(NAMESPACE, "a-new")].node is not None


async def test_a_repair_is_bound_while_another_member_lives() -> None:
    cluster, life = repairing()
    await life.turn()
    assert is_bound(cluster)
    assert cluster.calls.count("read_member") == 1


@pytest.mark.parametrize("is_shown", [True, False], ids=["the watch shows it", "the watch is late"])
async def test_no_repair_is_bound_of_a_gang_that_lost_everybody_before_it_was_reserved(
    *, is_shown: bool
) -> None:
    cluster, life = repairing()

    def lose(call: str) -> None:
        if call == "reserve":
            reject_survivors(cluster)
            if is_shown:
                life.watch.catch_up()

    cluster.before = lose
    await life.turn()
    cluster.before = lambda _call: None
    assert "reserve" in cluster.calls
    assert "bind" not in cluster.calls
    await life.settle()
    assert not is_bound(cluster)
    assert not cluster.reservations, "the room is given back once the losses are seen"


async def test_a_repair_waits_for_the_next_cycle_while_no_bound_member_can_be_read() -> None:
    cluster, life = repairing()
    cluster.fault = lambda _number, call: (
        Fault(errors.Unavailable("etcdserver: request timed out", status=500))
        if call == "read_member"
        else None
    )
    await life.turn()
    assert "bind" not in cluster.calls
    assert cluster.reservations
    cluster.fault = lambda _number, _call: None
    await life.settle()
    assert is_bound(cluster)
    assert not cluster.reservations


async def test_a_gang_that_starts_whole_needs_no_look_at_its_members() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), gang("a").of(4, cpu=1))
    await Life(cluster, Clock()).settle()
    assert "read_member" not in cluster.calls
