"""Contradictory and bad objects of other projects: no gang but their own is hurt by them."""

from typing import Any

import pytest

from tutti.model.keys import POD_GROUP, ApiKind, GangKey, NodeName, PodKey, Uid

from ..harness.builders import NAMESPACE, GangBuilder, gang, node, single
from ..harness.fakes import Clock, FakeCluster, Life
from .test_disturbances import once_before

KUBERNETES = ApiKind("scheduling.k8s.io", "PodGroup")
PLUGINS = ApiKind("scheduling.x-k8s.io", "PodGroup")
VOLCANO = ApiKind("scheduling.volcano.sh", "PodGroup")
FOREIGN = {"kubernetes": KUBERNETES, "plugins": PLUGINS, "volcano": VOLCANO}
KINDS = {"tutti": POD_GROUP, **FOREIGN}


def named(pods: str, kind: ApiKind, number: int = 2, name: str = "same") -> GangBuilder:
    """A gang of this name and kind, whose pods begin with another name."""
    builder = gang(pods).of(number, cpu=1).each(group=name, group_kind=kind)
    return builder.but(key=GangKey(NAMESPACE, name, kind), uid=Uid(f"uid-of-{pods}"))


def a_life(*parts: Any) -> Life:
    """An operator, and a cluster of these parts that it has seen."""
    cluster = FakeCluster()
    cluster.add(*parts)
    life = Life(cluster, Clock())
    life.watch.catch_up()
    return life


def nodes_of(life: Life, pods: str, number: int = 2) -> list[str | None]:
    """Where the pods of a gang are."""
    return [life.cluster.pods[PodKey(NAMESPACE, f"{pods}-{i}")].node for i in range(number)]


async def test_groups_of_one_name_and_of_different_kinds_are_different_gangs() -> None:
    life = a_life(node("n1", cpu=7), *(named(pods, kind) for pods, kind in KINDS.items()))
    await life.settle()
    started = [nodes_of(life, pods) for pods in KINDS]
    assert sorted(started, key=str) == [[NodeName("n1")] * 2] * 3 + [[None, None]]
    assert (life.cluster.broken, life.problems) == ([], [])


@pytest.mark.parametrize("kind", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("call", ["reserve", "bind", "release"])
@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_group_deleted_under_way_leaves_nothing_behind(
    kind: ApiKind, call: str, *, is_seen: bool
) -> None:
    """Its pods are bound all, or none; then they wait for a group of this name."""
    life = a_life(node("n1", cpu=4), named("a", kind, 3))
    once_before(life, call, lambda: life.cluster.delete_group("same", kind), is_seen=is_seen)
    await life.settle()
    assert life.cluster.reservations == {}
    assert len({node is None for node in nodes_of(life, "a", 3)}) == 1
    life.cluster.collect()
    await life.settle()
    assert life.cluster.broken == []


@pytest.mark.parametrize("kind", FOREIGN.values(), ids=FOREIGN)
async def test_an_absurd_size_is_said_and_others_start(kind: ApiKind) -> None:
    life = a_life(node("n1", cpu=2), named("a", kind, 1).but(min_member=10**9), single("b", cpu=1))
    for _ in range(4):
        life.clock.now += 5.0
        await life.turn()
    condition = life.cluster.pods[PodKey(NAMESPACE, "a-0")].scheduled_condition
    assert "1 of 1000000000 members exist" in condition.message
    assert life.cluster.pods[PodKey(NAMESPACE, "b")].node == NodeName("n1")


FORGED: dict[str, tuple[ApiKind, dict[str, Any]]] = {
    "scheduled": (
        KUBERNETES,
        {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True"}]},
    ),
    **{
        phase: (VOLCANO, {"phase": phase})
        for phase in ("Inqueue", "Running", "Completed", "Unknown", "nonsense")
    },
    "no list": (VOLCANO, {"phase": 7, "conditions": "none"}),
}


@pytest.mark.parametrize(("kind", "status"), FORGED.values(), ids=FORGED)
async def test_a_forged_status_starts_nobody_and_stops_nobody(
    kind: ApiKind, status: dict[str, Any]
) -> None:
    waits = named("a", kind, 1, "waits").but(min_member=2)
    life = a_life(node("n1", cpu=3), waits, named("b", kind, 2, "fits"))
    for name in ("waits", "fits"):
        life.cluster.change_group(name, kind, status=status)
    life.watch.catch_up()
    for _ in range(4):
        life.clock.now += 5.0
        await life.turn()
        life.watch.catch_up()
    assert nodes_of(life, "a", 1) == [None]
    assert nodes_of(life, "b") == [NodeName("n1")] * 2
    assert (life.cluster.broken, life.problems) == ([], [])
