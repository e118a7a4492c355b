"""What each stage of a cycle may call, and how fresh a picture it takes."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tutti.commit import progress
from tutti.kube import errors
from tutti.model.cluster import Phase
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.keys import GangKey, NodeName
from tutti.reporting.metrics import Metrics, Stage

from ..harness.builders import NAMESPACE, gang, node, shape, single
from ..harness.fakes import Clock, FakeCluster, Fault, Life
from . import scenarios
from .test_releasing import JOB, lost_one, terminating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tutti.commit.progress import Steps
    from tutti.state.cluster_state import ClusterState

WRITES = {"bind", "say_of_pod", "evict", "declare", "reserve", "release", "adopt", "amend", "say"}
WRITES |= {"write_status", "write_queue_status", "set_finalizers"}


def _nothing() -> None:
    pass


class StageCalls(Metrics):
    """Notes which calls each stage makes; lets a test change the cluster when a stage ends."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.calls: dict[Stage, list[str]] = defaultdict(list)
        self.order: list[Stage] = []
        self.after: dict[Stage, Callable[[], None]] = {}

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Follow one stage."""
        self.order.append(stage)
        number = len(self._cluster.calls)
        yield
        self.calls[stage] += self._cluster.calls[number:]
        self.after.pop(stage, _nothing)()


def life_of(
    cluster: FakeCluster,
    limits: RolloutLimits = RolloutLimits(),  # noqa: B008 - frozen
) -> tuple[Life, StageCalls]:
    stages = StageCalls(cluster)
    return Life(cluster, Clock(), rollout_limits=limits, metrics=stages), stages


def one_gang() -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), node("n2", cpu=2), gang("a").of(2, cpu=2))
    return cluster


def with_a_job() -> FakeCluster:
    cluster = lost_one(JOB)
    cluster.put_job("a", 9)
    return cluster


def unanswered() -> FakeCluster:
    """A binding gets no answer, so that there is something to recover."""
    cluster, lost = one_gang(), [True]

    def fault(_number: int, call: str) -> Fault | None:
        if call == "bind" and lost:
            lost.pop()
            return Fault(errors.Unavailable("no answer"), is_committed=False)
        return None

    cluster.fault = fault
    return cluster


CLUSTERS = {**scenarios.SCENARIOS, "eviction": with_a_job, "no answer": unanswered}


@pytest.mark.parametrize("name", CLUSTERS)
async def test_nothing_is_called_while_it_observes_and_plans_nor_written_while_it_checks(
    name: str,
) -> None:
    cluster = CLUSTERS[name]()
    life, stages = life_of(cluster)
    for _ in range(6):
        await life.turn()
    assert stages.calls[Stage.OBSERVE] == []
    assert stages.calls[Stage.PLAN] == []
    assert set(stages.calls[Stage.VERIFY]) <= {"read_job"}
    assert not WRITES.isdisjoint(cluster.calls)
    if name == "eviction":
        assert stages.calls[Stage.VERIFY] == ["read_job"]
    if name == "no answer":
        assert "say_of_pod" in stages.calls[Stage.RECOVER]


async def test_the_stages_come_in_the_order_of_the_story() -> None:
    life, stages = life_of(one_gang())
    await life.turn()
    assert stages.order == list(Stage)


async def test_a_shadow_neither_recovers_nor_commits() -> None:
    life, stages = life_of(one_gang(), RolloutLimits(Mode.SHADOW))
    await life.turn()
    assert stages.calls[Stage.RECOVER] == []
    assert Stage.RESERVE not in stages.order
    assert Stage.BIND not in stages.order


async def test_what_changes_after_the_plan_is_seen_by_the_check() -> None:
    cluster = one_gang()
    life, stages = life_of(cluster)

    def change() -> None:
        cluster.change_node("n2", unschedulable=True)
        life.watch.catch_up()

    stages.after[Stage.PLAN] = change
    await life.turn()
    assert "reserve" not in cluster.calls
    assert "bind" not in cluster.calls


@pytest.mark.parametrize("stage", [Stage.VERIFY, Stage.RESERVE])
async def test_what_changes_after_the_check_is_seen_by_the_commit(stage: Stage) -> None:
    cluster = one_gang()
    life, stages = life_of(cluster)

    def change() -> None:
        cluster.occupy("n2", shape(cpu=1).requests)
        life.watch.catch_up()

    stages.after[stage] = change
    await life.turn()
    assert "reserve" in cluster.calls
    assert "bind" not in cluster.calls
    assert cluster.reservations == {}, "the room is given back in the same cycle"


async def test_a_gang_of_one_is_checked_again_by_the_commit() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=2), single("s", cpu=2))
    life, stages = life_of(cluster)

    def change() -> None:
        cluster.change_node("n1", unschedulable=True)
        life.watch.catch_up()

    stages.after[Stage.VERIFY] = change
    await life.turn()
    assert "bind" not in cluster.calls


async def test_what_changes_after_the_bindings_is_reported_in_the_same_cycle() -> None:
    cluster = one_gang()
    life, stages = life_of(cluster)

    def change() -> None:
        life.watch.catch_up()
        cluster.change_node("n2", ready=False)
        life.watch.catch_up()

    stages.after[Stage.BIND] = change
    await life.turn()
    lines = cluster.groups[GangKey(NAMESPACE, "a")].status["conditions"]
    healthy = next(line for line in lines if line["type"] == "Healthy")
    assert healthy["reason"] == "NodeLost"


async def test_jobs_are_read_again_right_before_the_eviction() -> None:
    cluster = with_a_job()
    life, stages = life_of(cluster)
    for _ in range(3):
        await life.turn()
    assert terminating(cluster) == ["a-0", "a-1"]
    assert stages.calls[Stage.VERIFY] == ["read_job"]
    bind_calls = stages.calls[Stage.BIND]
    assert bind_calls[bind_calls.index("read_job") :][:3] == ["read_job", "say", "evict"]


@pytest.mark.parametrize("stage", [Stage.VERIFY, Stage.RESERVE])
async def test_a_job_that_changes_after_the_plan_stops_the_eviction(stage: Stage) -> None:
    cluster = with_a_job()
    life, stages = life_of(cluster)

    def change() -> None:
        cluster.put_job("a", 1)

    stages.after[stage] = change
    await life.turn()
    assert "reserve" in cluster.calls
    assert "evict" not in cluster.calls
    assert terminating(cluster) == []


async def test_a_gang_that_becomes_whole_after_the_check_is_not_evicted() -> None:
    cluster = with_a_job()
    life, stages = life_of(cluster)

    def change() -> None:
        cluster.change_pod("a-3", node=NodeName("n1"), phase=Phase.RUNNING)
        life.watch.catch_up()

    stages.after[Stage.RESERVE] = change
    await life.turn()
    assert "reserve" in cluster.calls
    assert "evict" not in cluster.calls
    assert cluster.reservations == {}


async def test_steps_are_worked_out_once_before_the_bindings_and_once_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = one_gang()
    life, _ = life_of(cluster)
    bound: list[int] = []
    next_steps = progress.next_steps

    def counted(*arguments: object, **options: object) -> Steps:
        bound.append(cluster.calls.count("bind"))
        return next_steps(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(progress, "next_steps", counted)
    await life.turn()
    assert bound == [0, 2]
    bound.clear()
    await life.turn()
    assert bound == [], "no Reservation stands any more"


async def test_steps_of_an_eviction_are_worked_out_as_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = with_a_job()
    life, _ = life_of(cluster)
    evicted: list[int] = []
    next_steps = progress.next_steps

    def counted(*arguments: object, **options: object) -> Steps:
        evicted.append(cluster.calls.count("evict"))
        return next_steps(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(progress, "next_steps", counted)
    await life.turn()
    assert evicted == [0, 0]
    assert terminating(cluster) == ["a-0", "a-1"]


async def test_check_commit_and_report_each_take_a_snapshot_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = one_gang()
    life, stages = life_of(cluster)
    snapshots_taken: dict[Stage, int] = defaultdict(int)
    snapshot = type(life.state).snapshot

    def counted(state: ClusterState, now: float) -> object:
        snapshots_taken[stages.order[-1]] += 1
        return snapshot(state, now)

    monkeypatch.setattr(type(life.state), "snapshot", counted)
    await life.turn()
    assert snapshots_taken[Stage.OBSERVE] == 1
    assert snapshots_taken[Stage.PLAN] == 0
    assert snapshots_taken[Stage.VERIFY] == 1
    assert snapshots_taken[Stage.BIND] == 2, "one before the bindings, one after them"
    assert snapshots_taken[Stage.REPORT] == 1
