"""Shadow mode, the pause and the cap: what is done, what is said, and what goes on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tutti.model.cluster import OnPartial, OnTimeout
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.keys import GangKey
from tutti.model.owners import Owner

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node, single
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios

SHADOW, PAUSED = RolloutLimits(Mode.SHADOW), RolloutLimits(Mode.PAUSED)
REPORTS = {"write_status", "say"}  # on PodGroups


def reserved_condition(cluster: FakeCluster, name: str) -> tuple[str, str]:
    """What a gang's condition Reserved says: reason and sentence."""
    conditions: Any = cluster.groups[GangKey(NAMESPACE, name)].status["conditions"]
    (line,) = (condition for condition in conditions if condition["type"] == "Reserved")
    assert line["status"] == "False"
    return line["reason"], line["message"]


async def settled(cluster: FakeCluster, rollout_limits: RolloutLimits) -> Life:
    life = Life(cluster, Clock(), rollout_limits=rollout_limits)
    await life.settle()
    assert life.problems == []
    return life


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
async def test_a_shadow_writes_nothing_but_reports_on_pod_groups(scenario: str) -> None:
    cluster = scenarios.SCENARIOS[scenario]()
    before = dict(cluster.pods)
    await settled(cluster, SHADOW)
    assert set(cluster.calls) <= REPORTS
    assert (cluster.pods, cluster.reservations) == (before, {})


async def test_a_shadow_says_who_would_start_and_why_others_would_wait() -> None:
    cluster = scenarios.more_than_fit()
    await settled(cluster, SHADOW)
    watching = "Tutti only watches (TUTTI_MODE=shadow), so nothing starts; "
    now = f"{watching}otherwise 4 members would start now on 1 node"
    assert reserved_condition(cluster, "c") == ("WouldStart", now)
    reasons = Counter(reserved_condition(cluster, name)[0] for name in ("a", "b"))
    assert reasons == {"WouldStart": 1, "NotEnoughRoom": 1}
    assert reserved_condition(cluster, "b")[1].startswith(watching)


async def test_a_shadow_says_which_gangs_would_start_in_one_rack() -> None:
    cluster = FakeCluster()
    cluster.add_topology(builders.topology("rack"))
    for name in ("r1-0", "r1-1", "r2-0", "r2-1", "r3-0", "r3-1"):
        cluster.add(node(name, cpu=2).labelled(rack=name[:2]))
    cluster.add(gang("a").of(4, cpu=1).together("rack"), gang("b").of(6, cpu=1).together("rack"))
    await settled(cluster, SHADOW)
    reason, sentence = reserved_condition(cluster, "a")
    assert reason == "WouldStart"
    assert "4 members would start now on 2 nodes" in sentence
    reason, sentence = reserved_condition(cluster, "b")
    assert reason == "NotEnoughRoom"
    assert "the largest domain of rack is " in sentence
    assert "it has room for 4 of 6 members" in sentence
    assert cluster.reservations == {}


async def test_after_the_shadow_what_it_has_said_is_done() -> None:
    cluster = scenarios.more_than_fit()
    await settled(cluster, SHADOW)
    assert scenarios.places(cluster, "c") == []
    await settled(cluster, RolloutLimits())
    assert len(scenarios.places(cluster, "c")) == 4
    scenarios.assert_promises(cluster)


def begun() -> FakeCluster:
    """A gang that is reserved and half bound, as a crash has left it."""
    cluster = scenarios.fits()
    cluster.fault = lambda _number, name: (
        Fault(Crash(), is_committed=True) if name == "bind" else None
    )
    return cluster


async def crashed() -> FakeCluster:
    cluster = begun()
    with pytest.raises(Crash):
        await Life(cluster, Clock()).turn()
    cluster.fault = lambda _number, _name: None
    assert cluster.reservations
    return cluster


async def test_a_shadow_leaves_a_reservation_that_stands_as_it_is() -> None:
    cluster = await crashed()
    held, bound = dict(cluster.reservations), scenarios.places(cluster, "a")
    await settled(cluster, SHADOW)
    assert cluster.reservations == held
    assert scenarios.places(cluster, "a") == bound


async def test_a_pause_finishes_what_was_begun_and_begins_nothing() -> None:
    cluster = await crashed()
    cluster.add(gang("late").of(1, cpu=1), single("s1", cpu=1))
    await settled(cluster, PAUSED)
    assert len(scenarios.places(cluster, "a")) == 3
    assert scenarios.places(cluster, "late") == []
    scenarios.assert_promises(cluster)
    await settled(cluster, RolloutLimits())
    assert len(scenarios.places(cluster, "late")) == 1
    assert all(pod.node is not None for pod in cluster.pods.values())


async def test_every_gang_that_waits_says_the_pause() -> None:
    """Also one that would wait anyway, and its pods: nothing is scaled up for them."""
    cluster = FakeCluster()
    cluster.add(
        node("n1", cpu=2),
        gang("fits").of(2, cpu=1),
        gang("large").of(1, cpu=9),
        gang("lacks").of(2, cpu=1).needing(3),
        single("s1", cpu=1),
    )
    await settled(cluster, PAUSED)
    for name in ("fits", "large", "lacks"):
        reason, sentence = reserved_condition(cluster, name)
        assert reason == "Paused"
        assert sentence.startswith("Tutti is paused (TUTTI_MODE=paused), so nothing starts; ")
    assert reserved_condition(cluster, "fits")[1].endswith(
        "; otherwise 2 members would start now on 1 node"
    )
    assert "no node of the kinds present fits" in reserved_condition(cluster, "large")[1]
    assert {pod.scheduled_condition.reason for pod in cluster.pods.values()} == {"Paused"}


async def test_a_gang_whose_time_is_up_says_so_in_a_pause_too() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=1), gang("late").of(1, cpu=1))
    cluster.change_group("late", timeout_seconds=10.0, on_timeout=OnTimeout.FAIL)
    await settled(cluster, PAUSED)
    assert reserved_condition(cluster, "late")[0] == "TimedOut"
    assert cluster.groups[GangKey(NAMESPACE, "late")].status["phase"] == "Failed"


def partial() -> FakeCluster:
    """A gang of three that lost one, whose room another has taken: it would be released."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=3), gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    cluster.change_group("a", on_partial=OnPartial.RELEASE)
    for name in ("a-0", "a-1"):
        cluster.change_pod(name, owner=Owner("ReplicaSet", "a", "apps"))
    cluster.delete_pod("a-2")
    cluster.occupy("n1", builders.resources(cpu=1, pods=1))
    successor = builders.member("a-new", builders.shape(cpu=1))
    cluster.add_pod(replace(successor, group="a", created=50.0))
    return cluster


async def test_without_rollout_limits_the_gang_would_be_released() -> None:
    """Or the next test would show nothing."""
    cluster = partial()
    await Life(cluster, Clock()).turn()
    assert "evict" in cluster.calls


@pytest.mark.parametrize(
    ("rollout_limits", "reason"),
    [(SHADOW, "NotEnoughRoom"), (PAUSED, "Paused")],
    ids=["shadow", "pause"],
)
async def test_nobody_is_evicted(rollout_limits: RolloutLimits, reason: str) -> None:
    cluster = partial()
    await settled(cluster, rollout_limits)
    assert "evict" not in cluster.calls
    assert reserved_condition(cluster, "a")[0] == reason
    assert reserved_condition(cluster, "a")[1].endswith(
        "2 bound members would be evicted now, to start again whole"
    )


async def cycles(cluster: FakeCluster, most: int) -> Sequence[Counter[str]]:
    """What each cycle has bound, by gang, until all is bound."""
    life = Life(cluster, Clock(), rollout_limits=RolloutLimits(bindings=most))
    told = []
    for _ in range(20):
        before = {pod.key for pod in cluster.pods.values() if pod.node is not None}
        life.clock.now += await life.turn() or 0.0
        bound = [pod for pod in cluster.pods.values() if pod.node and pod.key not in before]
        if bound:
            told.append(Counter(pod.group for pod in bound))
    assert life.problems == []
    return told


def queue() -> FakeCluster:
    """Four gangs of three, three, six and two, in this order, and room for all."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=20))
    for age, (name, n) in enumerate({"a": 3, "b": 3, "large": 6, "d": 2}.items()):
        cluster.add(gang(name).of(n, cpu=1).but(created=float(age)).each(created=float(age)))
    return cluster


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        (0, [{"a": 3, "b": 3, "large": 6, "d": 2}]),
        (5, [{"a": 3}, {"b": 3}, {"large": 6}, {"d": 2}]),
        (6, [{"a": 3, "b": 3}, {"large": 6}, {"d": 2}]),
        (8, [{"a": 3, "b": 3}, {"large": 6, "d": 2}]),
    ],
)
async def test_a_cycle_begins_so_many_bindings_at_most_and_never_half_a_gang(
    most: int, wanted: list[dict[str, int]]
) -> None:
    """Larger than the cap, a gang goes alone; and nobody passes another."""
    cluster = queue()
    assert await cycles(cluster, most) == wanted
    scenarios.assert_promises(cluster)


async def test_gangs_that_need_one_another_go_together_whatever_the_cap() -> None:
    """The first asks to be near the second, so without it, it may not start."""
    cluster = FakeCluster()
    cluster.add(
        node("n1", cpu=8).labelled(hostname="n1"),
        gang("a").of(2, cpu=1).near("hostname", builders.peers(app="b")),
        gang("b").of(2, cpu=1).labelled(app="b").but(created=1.0).each(created=1.0),
    )
    assert await cycles(cluster, 2) == [{"a": 2, "b": 2}]
    scenarios.assert_promises(cluster)
