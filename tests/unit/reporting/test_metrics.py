"""What is counted, and when there is something to tell; the names are Prometheus' business."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tutti.kube.calls import Call
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Level, Mode, Plan, Reason, Rejection
from tutti.model.keys import GangKey, Uid
from tutti.model.queues import PastUse, Queue
from tutti.planning.observed_demand import observe
from tutti.planning.queued_gangs import queue_gangs
from tutti.reporting.metrics import BindingResult, CycleResult, Metrics

from ...harness.builders import (
    NAMESPACE,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
    space,
    topology,
)
from ...harness.fakes import Clock, FakeCluster, Life

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


class Leader:
    """Somebody who leads."""

    term = "tutti-0/1"
    transitions = 3


def told(metrics: Metrics) -> Mapping[str, float]:
    """Every sample, by its name and labels' values."""
    text = metrics.text().decode()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def leading() -> Metrics:
    metrics = Metrics()
    metrics.follow(Leader())
    return metrics


def test_what_has_not_happened_is_nought() -> None:
    found = told(Metrics())
    for name in ("cycles_total failed", "plans_total broken", "bindings_total refused"):
        assert found[f"tutti_{name}"] == 0.0
    assert found["tutti_lease_held"] == 0.0


def test_a_replica_that_does_not_lead_tells_nothing_of_the_cluster() -> None:
    metrics = Metrics()
    metrics.saw(snapshot_of(node("n1", cpu=1)), Plan())
    assert not any(name.startswith(("tutti_gangs", "tutti_resource")) for name in told(metrics))
    metrics.follow(Leader())
    found = told(metrics)
    assert found["tutti_resource_allocatable cpu core"] == 1.0
    assert (found["tutti_lease_held"], found["tutti_lease_changes_total"]) == (1.0, 3.0)


def queued() -> tuple[Snapshot, Plan]:
    """A gang that runs in a queue, and one that waits without."""
    past = PastUse(375_000, 375_000, 0.0, 60.0)
    vision = Queue(
        *("vision", Uid("v")),
        guaranteed=(("cpu", 1000),),
        limits=(("memory", 4 << 30),),
        past_use=past,
    )
    runs = gang("a").of(1, cpu=2, memory=1).bound_on("n1").but(queue="vision")
    waits = gang("b").of(1, cpu=9)
    snapshot = snapshot_of(node("n1", cpu=4, memory=8), space(NAMESPACE), vision, runs, waits)
    return snapshot, Plan(queues=queue_gangs(observe(snapshot)).use)


def test_queues_tell_figures_of_what_has_a_quota() -> None:
    metrics = leading()
    metrics.saw(*queued())
    found = told(metrics)
    figures = {
        name: value
        for name, value in found.items()
        if name.startswith("tutti_queue") and "evictions" not in name
    }
    assert figures == {
        "tutti_queue_charged root cpu core": 2.0,
        "tutti_queue_charged root memory byte": 2.0**30,
        "tutti_queue_charged vision cpu core": 2.0,
        "tutti_queue_charged vision memory byte": 2.0**30,
        "tutti_queue_covered root cpu core": 0.0,
        "tutti_queue_covered vision cpu core": 0.0,
        "tutti_queue_borrowed root cpu core": 2.0,
        "tutti_queue_borrowed vision cpu core": 2.0,
        "tutti_queue_guaranteed root cpu core": 0.0,
        "tutti_queue_guaranteed vision cpu core": 1.0,
        "tutti_queue_limit vision memory byte": 4 * 2.0**30,
        "tutti_queue_waiting_gangs root": 1.0,
        "tutti_queue_waiting_gangs vision": 0.0,
        "tutti_queue_share_ratio root": 0.0,
        "tutti_queue_share_ratio vision": 0.25,
        "tutti_queue_past_share_ratio vision": 0.375,
    }


def networked() -> Snapshot:
    """Two racks with GPUs: one is half empty, of the other one GPU is used."""
    racks = [
        node(f"{rack}-{n}", cpu=8, memory=8, gpu=4).labelled(**{"example.com/rack": rack})
        for rack in "rs"
        for n in range(2)
    ]
    full = gang("full").of(1, cpu=2, memory=1, gpu=4).bound_on("r-0")
    part = gang("part").of(1, cpu=1, memory=1, gpu=1).bound_on("s-0")
    return snapshot_of(*racks, full, part, topology("example.com/rack"))


def test_a_level_tells_what_one_domain_has_free_at_most() -> None:
    metrics = leading()
    metrics.saw(networked(), Plan())
    found = told(metrics)
    rack, network = "example.com/rack", "network"
    assert {name: n for name, n in found.items() if name.startswith("tutti_topology")} == {
        f"tutti_topology_largest_free {rack} cpu {network} core": 15.0,
        f"tutti_topology_largest_free {rack} memory {network} byte": 15 * 2.0**30,
        f"tutti_topology_largest_free {rack} nvidia.com/gpu {network} integer": 7.0,
        f"tutti_topology_largest_free {rack} pods {network} integer": 219.0,
        f"tutti_topology_largest_whole_nodes {rack} nvidia.com/gpu {network}": 1.0,
    }


def test_a_cluster_without_a_topology_tells_nothing_of_levels() -> None:
    metrics = leading()
    metrics.saw(replace(networked(), topologies=()), Plan())
    assert not any(name.startswith("tutti_topology") for name in told(metrics))


def test_the_docs_name_every_metric_and_no_other() -> None:
    """With its labels."""
    metrics = leading()
    snapshot, plan = queued()
    metrics.saw(replace(networked(), queues=snapshot.queues), plan)
    metrics.called(Call.BIND, 201)
    families = text_string_to_metric_families(metrics.text().decode())
    wanted = {}
    for family in families:
        ending = "_total" if family.type == "counter" else ""
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        if family.name.startswith("tutti_") and not family.name.endswith("_created"):
            wanted[family.name + ending] = labels
    table = re.findall(r"(?m)^\| `(tutti_\w+)` \|([^|]*)\|", PAGE.read_text())
    assert {name: set(re.findall(r"\w+", labels)) for name, labels in table} == wanted


def test_units_are_those_that_people_use() -> None:
    metrics = leading()
    metrics.saw(snapshot_of(node("n1", cpu=1.5, memory=2, gpu=3, pods=4)), Plan())
    found = told(metrics)
    assert found["tutti_resource_free cpu core"] == 1.5
    assert found["tutti_resource_free memory byte"] == 2 * 2**30
    assert found["tutti_resource_free nvidia.com/gpu integer"] == 3.0


def test_the_mode_is_told() -> None:
    found = told(Metrics(Mode.PAUSED))
    assert {mode: found[f"tutti_mode {mode}"] for mode in Mode} == {
        "active": 0.0,
        "shadow": 0.0,
        "paused": 1.0,
    }


@pytest.mark.parametrize(
    ("plan", "gap"),
    [
        (Plan(), "0.0"),
        (Plan(proved=False, levels=(Level(5, 90, 100), Level(0, 50, 100))), "0.1"),
        (Plan(proved=False, levels=(Level(5, 90, 90), Level(0, 50, 100))), "0.5"),
        (Plan(proved=False, levels=(Level(5, 90, 90), Level(0, 50, 50))), "0.0"),
        (Plan(proved=False, levels=(Level(5, 90), Level(0, 50, 100))), "nan"),
        (Plan(proved=False), "nan"),
    ],
)
def test_the_gap_is_that_of_the_highest_priority_without_a_proof(plan: Plan, gap: str) -> None:
    metrics = leading()
    metrics.saw(snapshot_of(), plan)
    assert str(told(metrics)["tutti_plan_gap_ratio"]) == gap


def test_who_waits_is_told_by_reason() -> None:
    metrics = leading()
    keys = [GangKey(NAMESPACE, name) for name in "ab"]
    waiting = tuple(Rejection(key, Reason.NOT_ENOUGH_ROOM, ()) for key in keys)
    metrics.saw(snapshot_of(gang("a").of(1, cpu=1), gang("b").of(1, cpu=1)), Plan((), waiting))
    found = told(metrics)
    assert found["tutti_waiting_gangs NotEnoughRoom"] == 2.0
    assert found["tutti_waiting_gangs NoNodeFits"] == 0.0
    assert found["tutti_gangs waiting"] == 2.0


@pytest.mark.parametrize(
    ("status", "result"),
    [(201, "bound"), (404, "conflict"), (409, "conflict"), (403, "refused"), (422, "refused")]
    + [(status, "failed") for status in (0, 429, 500, 503)],
)
def test_a_binding_is_counted_by_what_became_of_it(status: int, result: str) -> None:
    metrics = Metrics()
    metrics.called(Call.BIND, status)
    found = told(metrics)
    assert {one: found[f"tutti_bindings_total {one}"] for one in BindingResult} == {
        one: float(one == result) for one in BindingResult
    }
    assert found[f"tutti_api_requests_total {status} pods/binding create"] == 1.0


def test_how_late_the_watch_shows_bindings_is_counted() -> None:
    """A watch that is faster than the answer, or a clock that was set back, is not late."""
    metrics = Metrics()
    for seconds in (-1.0, 0.0, 0.3):
        metrics.watch_delay(seconds)
    found = told(metrics)
    assert found["tutti_watch_delay_seconds_count"] == 3.0
    assert found["tutti_watch_delay_seconds_sum"] == pytest.approx(0.3)


def test_cycles_are_counted_by_their_end() -> None:
    metrics = Metrics()
    metrics.ended(CycleResult.FAILED)
    assert told(metrics)["tutti_cycles_total failed"] == 1.0


async def test_a_gang_is_counted_once_when_all_that_it_needs_is_bound() -> None:
    """From the moment that it could have started; those that never start are not counted."""
    cluster, clock = FakeCluster(), Clock(1000.0)
    cluster.add(
        node("n1", cpu=4),
        gang("a").of(3, cpu=1).but(created=960.0).each(created=970.0),
        gang("large").of(9, cpu=1),
        single("s1", cpu=1).but(created=999.0).each(created=999.0),
    )
    life = Life(cluster, clock)
    life.cycle._metrics.follow(Leader())
    await life.settle()
    found = told(life.cycle._metrics)
    assert found["tutti_gang_time_to_bind_seconds_count"] == 2.0
    assert found["tutti_gang_time_to_bind_seconds_sum"] == pytest.approx(31.0)
    assert found["tutti_gangs started"] == 2.0
    assert found["tutti_plans_total proved"] + found["tutti_plans_total unproved"] >= 1.0
    stages = ("recover", "observe", "plan", "verify", "reserve", "bind", "report")
    assert all(found[f"tutti_cycle_stage_seconds_count {stage}"] >= 1.0 for stage in stages)


def test_a_gang_that_leaves_before_it_is_bound_is_forgotten() -> None:
    cluster = snapshot_of(node("n1", cpu=4), gang("a").of(1, cpu=1))
    from tutti.planning.plan import plan  # noqa: PLC0415 - only this test plans by itself
    from tutti.strategies.best_fit import BestFit  # noqa: PLC0415 - likewise
    from tutti.strategies.problem import Budget  # noqa: PLC0415 - likewise

    made = plan(cluster, BestFit(), BestFit(), Budget())
    metrics = leading()
    metrics.saw(cluster, made)
    assert metrics._starting
    metrics.saw(cluster, replace(made, placements=()))
    assert metrics._starting, "it may be bound yet"
    metrics.saw(snapshot_of(node("n1", cpu=4)), Plan())
    assert not metrics._starting
    assert told(metrics)["tutti_gang_time_to_bind_seconds_count"] == 0.0


async def test_a_gang_that_grows_is_not_counted_again() -> None:
    """Nor are calls that bind nothing."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), gang("a").of(3, cpu=1).needing(2))
    life = Life(cluster, Clock())
    await life.settle()
    cluster.add(node("n2", cpu=2))
    life.watch.catch_up()
    await life.settle()
    assert all(pod.node is not None for pod in cluster.pods.values())
    life.cycle._metrics.called(Call.CREATE_EVENT, 201)
    found = told(life.cycle._metrics)
    assert found["tutti_gang_time_to_bind_seconds_count"] == 1.0
    assert sum(found[f"tutti_bindings_total {one}"] for one in BindingResult) == 0.0


def test_pods_that_end_for_others_are_counted_by_queue_and_right() -> None:
    metrics = leading()
    metrics.planned(queued()[1])
    for by_guarantee in (True, False, True):
        metrics.evicted("vision", 2.5, by_guarantee=by_guarantee)
    found = told(metrics)
    assert found["tutti_queue_evictions_total vision guarantee"] == 2.0
    assert found["tutti_queue_evictions_total vision priority"] == 1.0
    assert found["tutti_queue_evictions_total root guarantee"] == 0.0
    assert found["tutti_evictions_lost_work_seconds_total"] == 7.5


def test_the_time_from_a_claim_to_its_first_binding_is_told_once() -> None:
    metrics = leading()
    waits = gang("a").of(2, cpu=1)
    held = replace(reservation(waits, ("a-0", "n1"), at=10.0), victims=())
    metrics.saw(snapshot_of(node("n1", cpu=2), waits, held, at=20.0), Plan())
    bound = waits.bound_on("n1")
    for at in (30.0, 40.0):
        metrics.saw(snapshot_of(node("n1", cpu=2), bound, held, at=at), Plan())
    metrics.saw(snapshot_of(node("n1", cpu=2), bound, at=45.0), Plan())
    other = replace(reservation(gang("b").of(1), at=10.0), victims=())
    metrics.saw(snapshot_of(node("n1", cpu=2), other, at=50.0), Plan())
    metrics.saw(snapshot_of(node("n1", cpu=2), at=60.0), Plan())
    found = told(metrics)
    assert found["tutti_claim_time_to_bind_seconds_count"] == 1.0
    assert found["tutti_claim_time_to_bind_seconds_sum"] == 20.0
