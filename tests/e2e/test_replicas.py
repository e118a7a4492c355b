"""Two replicas on a real control plane: who leads, who takes over, and what a pause can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chaos.replicas import MODES, Pausing, Preempting, evicts
from tests.harness.rig import members, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOKS = 7  # at the Lease, 2 s apart: it is free after 10 s, so taken within 15 s
SAMPLE = (1, 2, 4)  # of the leader's writes for one gang; `make soak` takes every one


@pytest.fixture(scope="module")
def trial() -> Iterator[Pausing]:
    """Two replicas and three nodes; the judge speaks at the end."""
    with Pausing() as trial:
        yield trial


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", SAMPLE)
def test_a_leader_stopped_at_a_write_and_woken_later_does_no_harm(
    trial: Pausing, k: int, mode: str
) -> None:
    paused = trial.round(k, mode)
    assert paused.call


@pytest.mark.parametrize("mode", MODES)
def test_a_leader_stopped_where_it_begins_again_stands_by_when_it_wakes(
    trial: Pausing, mode: str
) -> None:
    operator = trial.restart(mode)
    operator.await_ready()
    assert operator.stop() == 0
    operator.start()


def test_both_are_ready_and_one_leads(trial: Pausing) -> None:
    assert {replica.probe("readyz") for replica in trial.replicas.values()} == {"ok"}
    assert trial.leader() in trial.replicas


def test_a_killed_leader_is_replaced_in_time_and_the_gang_is_bound(trial: Pausing) -> None:
    rig = trial.rig
    first = trial.leader()
    trial.replicas[first].kill()
    (second,) = trial.replicas.keys() - {first}
    before = len(trial.roads[second].calls)
    rig.create(pod_group("orphan", 3), *members("orphan", 3, cpu=1))
    rig.until_bound("orphan", 3)
    calls = [call for call in trial.roads[second].calls[before:] if "/leases/" in call.path]
    trial.replicas[first].start()
    assert trial.leader() == second
    taken = next(i for i, call in enumerate(calls) if call.method == "PUT")
    assert 0 < taken <= LOOKS


def test_a_leader_that_ends_cleanly_leaves_the_lease_free(trial: Pausing) -> None:
    first = trial.leader()
    assert trial.replicas[first].stop() == 0
    trial.rig.until(lambda: trial.leader() not in ("", first), "the other leads")
    trial.replicas[first].start()


def test_an_eviction_that_arrives_after_another_has_given_the_claim_up_ends_no_pod() -> None:
    with Pausing(Preempting()) as trial:
        assert trial.round(1, "before", evicts).call
