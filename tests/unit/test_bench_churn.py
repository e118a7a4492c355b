"""Scenarios j and k of the benchmark: which gangs come when, and what their figures come to."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from ..bench.e2e import replay
from ..bench.e2e.accounts import Measured
from ..bench.e2e.arrivals import LOAD, SIZES, Arrival, drawn, use_without_waiting
from ..bench.e2e.changes import completion, creation, group_deletion
from ..bench.e2e.churn import Span, with_churn
from ..bench.e2e.histories import History, histories
from ..bench.e2e.ledger import HARNESS, Write
from ..bench.e2e.scenarios import scenarios
from ..bench.e2e.sizes import Sizes
from ..bench.e2e.starving import with_starving
from ..bench.e2e.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEDULER = "system:kube-scheduler"
EMPTY = Measured("kube-scheduler", "k", pods=0, bound=0)


def test_a_fifth_of_the_gangs_never_fits_and_comes_before_every_four_others() -> None:
    scenario = scenarios(1.0)["j"]
    assert (len(scenario.sizes), len(scenario.never)) == (200, 50)
    assert scenario.pods == scenario.gpus
    names = [name for name, _ in Sizes.of(scenario, "p-").in_turn()]
    assert names[:7] == ["p-n0000", *(f"p-g000{i}" for i in range(4)), "p-n0001", "p-g0004"]
    assert len(names) == len(set(names)) == 250
    assert names[-5] == "p-n0049"


@pytest.mark.parametrize("scale", [0.001, 0.08, 1.0])
def test_gangs_that_fit_fill_the_nodes_exactly_at_every_scale(scale: float) -> None:
    scenario = scenarios(scale)["j"]
    assert scenario.pods == scenario.gpus
    assert len(scenario.never) == math.ceil(len(scenario.sizes) / 4)


def test_arrivals_are_the_same_in_every_run_and_within_their_bounds() -> None:
    arrivals = drawn(1_600, 600.0)
    assert arrivals == drawn(1_600, 600.0)
    assert all(before.at < after.at < 600 for before, after in pairwise(arrivals))
    assert {arrival.size for arrival in arrivals} == set(SIZES)
    assert all(5 <= arrival.run_seconds <= 300 for arrival in arrivals)
    counts = [sum(arrival.size == size for arrival in arrivals) for size in SIZES]
    assert counts == sorted(counts, reverse=True), "larger gangs are rarer"


def test_arrivals_use_the_share_of_the_gpus_that_they_are_drawn_for() -> None:
    arrivals = drawn(1_600, 600.0)
    assert use_without_waiting(arrivals, 1_600, 120.0, 600.0) == pytest.approx(LOAD, abs=0.01)
    long = drawn(1_600, 36_000.0)
    assert use_without_waiting(long, 1_600, 600.0, 36_000.0) == pytest.approx(LOAD, abs=0.02)


def test_use_without_waiting_is_of_the_given_time() -> None:
    arrivals = [Arrival(0.0, 2, 10.0), Arrival(8.0, 4, 100.0)]
    assert use_without_waiting(arrivals, 8, 5.0, 10.0) == (2 * 5 + 4 * 2) / (8 * 5)


def _created(name: str, at: float) -> Write:
    return Write(HARNESS, "create", "pods", name, at)


def _bound(name: str, at: float) -> Write:
    return Write(SCHEDULER, "create", "pods/binding", name, at)


def _completed(name: str, at: float) -> Write:
    return Write(HARNESS, "patch", "pods/status", name, at)


def _history(*writes: Write, size: int = 2) -> History:
    return histories({"g": size}, writes)["g"]


def test_a_gang_is_whole_once_its_last_member_is_bound() -> None:
    gang = _history(
        *(_created(f"g-{i}", 10.0 + i) for i in range(2)), _bound("g-1", 12.0), _bound("g-0", 15.0)
    )
    assert (gang.created_at, gang.whole_at, gang.wait) == (11.0, 15.0, 4.0)
    assert gang.ended_at == math.inf
    assert gang.partial_gpu_seconds(0.0, 100.0) == 3.0
    assert gang.gpu_seconds(0.0, 100.0) == 85 + 88


def test_a_member_that_is_bound_twice_counts_once_and_from_the_first_time() -> None:
    gang = _history(_created("g-0", 1.0), _bound("g-0", 2.0), _bound("g-0", 3.0))
    assert (gang.wait, gang.whole_at) == (math.inf, math.inf)
    assert gang.partial_gpu_seconds(0.0, 10.0) == 8.0


@pytest.mark.parametrize(("verb", "resource"), [("delete", "pods"), ("create", "pods/eviction")])
def test_a_gang_that_lost_a_member_before_it_was_whole_never_is(verb: str, resource: str) -> None:
    gang = _history(
        _bound("g-0", 2.0), Write(SCHEDULER, verb, resource, "g-0", 5.0), _bound("g-1", 6.0)
    )
    assert gang.whole_at == math.inf
    assert gang.partial_gpu_seconds(0.0, 10.0) == 3 + 4


def test_a_gang_that_ends_was_whole_and_gives_its_gpus_back() -> None:
    gang = _history(
        *(_bound(f"g-{i}", 2.0) for i in range(2)),
        *(_completed(f"g-{i}", 5.0 + i) for i in range(2)),
    )
    assert (gang.whole_at, gang.ended_at) == (2.0, 6.0)
    assert gang.gpu_seconds(0.0, 100.0) == 3 + 4
    assert gang.partial_gpu_seconds(0.0, 100.0) == 0.0


def test_a_status_that_a_scheduler_writes_ends_no_pod_and_other_gangs_do_not_count() -> None:
    status = Write(SCHEDULER, "patch", "pods/status", "g-0", 3.0)
    gang = _history(_bound("g-0", 2.0), status, _bound("other-0", 2.0))
    assert (gang.ended, list(gang.bound)) == ({}, ["g-0"])


def test_gangs_that_fit_starve_if_they_are_never_whole() -> None:
    whole = History(1, {"a-0": 1.0}, {"a-0": 4.0})
    partial = History(2, {"b-0": 1.0, "b-1": 2.0}, {"b-0": 5.0})
    never = History(3, {f"n-{i}": 0.0 for i in range(3)}, {"n-0": 1.0, "n-1": 2.0})
    measured = with_starving(EMPTY, [whole, partial], [never], end=10.0)
    assert (measured.whole, measured.starving, measured.never_bound) == (1, 1, 2)
    assert measured.wait_longest == math.inf
    assert measured.partial_gpu_seconds == 5 + 9 + 8
    in_time = with_starving(EMPTY, [whole], [], end=10.0)
    assert (in_time.wait_p50, in_time.wait_p99, in_time.wait_longest) == (3.0, 3.0, 3.0)
    assert with_starving(EMPTY, [whole], [], end=3.0).starving == 1, "it was whole too late"


SPAN = Span(began=1_000.0, seconds=100.0)  # counts from 1,020


def _gang(created: float, whole: float, ended: float = math.inf) -> History:
    bound = {} if math.isinf(whole) else {"x-0": whole}
    return History(1, {"x-0": created}, bound, {} if math.isinf(ended) else {"x-0": ended})


def _churn(*gangs: tuple[History, Arrival], gpus: int = 4) -> Measured:
    names = [str(i) for i in range(len(gangs))]
    arrivals = {name: arrival for name, (_, arrival) in zip(names, gangs, strict=True)}
    known = {name: gang for name, (gang, _) in zip(names, gangs, strict=True)}
    return with_churn(EMPTY, known, arrivals, SPAN, gpus)


def test_figures_are_of_the_time_after_the_first_fifth() -> None:
    assert (SPAN.counts_from, SPAN.end) == (1_020.0, 1_100.0)
    early = (_gang(1_001.0, 1_002.0, 1_030.0), Arrival(1.0, 1, 28.0))
    later = (_gang(1_050.0, 1_055.0), Arrival(50.0, 1, 300.0))
    measured = _churn(early, later)
    assert measured.started == 1
    assert (measured.wait_p50, measured.wait_p99) == (5.0, 5.0)
    assert measured.utilisation == (10 + 45) / (4 * 80)
    assert measured.late_seconds == 0.0


def test_a_gang_that_still_waits_counts_with_the_time_it_has_waited() -> None:
    waiting = (_gang(1_010.0, math.inf), Arrival(10.0, 1, 30.0))
    after = (_gang(1_090.0, 1_101.0), Arrival(90.0, 1, 30.0))
    measured = _churn(waiting, after)
    assert (measured.started, measured.wait_p50, measured.wait_p99) == (0, 10.0, 90.0)


def test_a_gang_that_is_not_whole_holds_gpus_until_the_end() -> None:
    partial = History(2, {"x-0": 1_005.0, "x-1": 1_005.0}, {"x-0": 1_010.0})
    measured = _churn((partial, Arrival(5.0, 2, 30.0)))
    assert measured.partial_gpu_seconds == 80.0
    assert measured.utilisation == 80 / (4 * 80)


def test_what_the_benchmark_does_late_is_known() -> None:
    in_time = (_gang(1_010.0, 1_020.0, 1_050.0), Arrival(10.0, 1, 30.0))
    created_late = (_gang(1_043.0, 1_044.0), Arrival(40.0, 1, 300.0))
    ended_late = (_gang(1_010.0, 1_020.0, 1_057.0), Arrival(10.0, 1, 30.0))
    not_ended = (_gang(1_010.0, 1_020.0), Arrival(10.0, 1, 71.0))
    not_created = (History(1), Arrival(75.0, 1, 30.0))
    late = [
        _churn(in_time, gang).late_seconds
        for gang in (in_time, created_late, ended_late, not_ended, not_created)
    ]
    assert late == [0.0, 3.0, 7.0, 9.0, 25.0]


def test_tables_have_the_figures_of_their_scenario() -> None:
    starving = replace(EMPTY, scenario="j", whole=180.0, starving=20.0, wait_longest=math.inf)
    churn = replace(EMPTY, started=7.0, utilisation=0.5, late_seconds=0.1)
    for letter, measured, headings in (
        ("j", starving, ("whole", "starve", "longest s", "never")),
        ("k", churn, ("started", "GPUs used", "late s")),
    ):
        out = io.StringIO()
        Console(file=out, width=200).print(table_of(scenarios(0.05)[letter], [measured]))
        assert all(heading in out.getvalue() for heading in headings)
        assert "pods/s" not in out.getvalue()


def test_a_pod_is_completed_by_its_status_and_objects_by_their_paths() -> None:
    head, _, body = completion("g-0").partition(b"\r\n\r\n")
    assert head.startswith(b"PATCH /api/v1/namespaces/bench/pods/g-0/status ")
    assert b"application/merge-patch+json" in head
    assert body == b'{"status":{"phase":"Succeeded"}}'
    group = {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "bench"},
    }
    path = b"/apis/tutti.dev/v1alpha1/namespaces/bench/podgroups"
    assert creation(group).startswith(b"POST " + path + b"?")
    assert group_deletion(group).startswith(b"DELETE " + path + b"/g ")


class _Cluster:
    """Gangs, writer, audit log and clock in one: pods are bound when the clock moves on."""

    def __init__(self, *, refuses: str = "") -> None:
        self.now = 100.0
        self.requests: list[tuple[float, str]] = []
        self._refuses = refuses
        self._bindings: list[Write] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def members(self, name: str) -> list[str]:
        return [f"{name}-0", f"{name}-1"]

    def group(self, name: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "PodGroup", "metadata": {"name": name}}

    def manifests(self, name: str) -> list[dict[str, Any]]:
        pods = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}}
            for pod in self.members(name)
        ]
        return [self.group(name), *pods]

    def send(self, requests: Iterable[bytes]) -> None:
        for request in requests:
            head, _, body = request.partition(b"\r\n\r\n")
            method, path, _ = head.decode().split("\r\n")[0].split(" ")
            self.requests.append((float(round(self.now)), f"{method} {path.partition('?')[0]}"))
            if method == "POST" and b'"kind":"Pod"' in body:
                name = json.loads(body)["metadata"]["name"]
                if name != self._refuses:
                    # The second line is of the same pod: it must not count for another.
                    self._bindings += [_bound(name, self.now), _bound(name, self.now)]

    def follow(self) -> int:
        return 0

    def bindings(self) -> list[Write]:
        bindings, self._bindings = self._bindings, []
        return bindings


def _replayed(cluster: Any, monkeypatch: pytest.MonkeyPatch, *arrivals: Arrival) -> list[Any]:
    monkeypatch.setattr(replay, "time", cluster)
    named = {f"g{i}": arrival for i, arrival in enumerate(arrivals)}
    playing = replay.Replay(cluster, named, cluster.now, cluster, cluster)
    playing.until(105.0)
    playing.until(130.0)
    requests: list[Any] = cluster.requests
    return requests


def test_gangs_are_created_in_time_and_end_after_they_have_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = _replayed(_Cluster(), monkeypatch, Arrival(3.0, 2, 7.0))
    pods = "/api/v1/namespaces/bench/pods"
    assert requests == [
        (103.0, "POST /api/v1/podgroups"),
        (103.0, "POST /api/v1/pods"),
        (103.0, "POST /api/v1/pods"),
        (110.0, f"PATCH {pods}/g0-0/status"),
        (110.0, f"PATCH {pods}/g0-1/status"),
        (120.0, f"DELETE {pods}/g0-0"),
        (120.0, f"DELETE {pods}/g0-1"),
        (120.0, "DELETE /api/v1/podgroups/g0"),
    ]


def test_a_gang_that_is_never_whole_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _Cluster(refuses="g0-1")
    requests = _replayed(cluster, monkeypatch, Arrival(3.0, 2, 7.0), Arrival(4.0, 2, 5.0))
    assert [text for _, text in requests if "/g0" in text] == []
    assert sum("/g1-" in text for _, text in requests) == 4
