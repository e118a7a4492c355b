"""The API server expires watches, refuses, or is away: the operator waits and goes on.

All by one operator process, which is never restarted; a proxy stands between it and the server.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ..harness.operator_process import ACCOUNT, NAMESPACE, OperatorProcess
from ..harness.proxy import (
    Call,
    Proxy,
    anything,
    delay,
    expire,
    lose,
    lose_answer,
    nth,
    refuse,
    watches,
)
from ..harness.rig import Rig
from .places import Place, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.proxy import Action, Match

AWAY_SECONDS = 60.0
SOON_SECONDS = 20.0  # waits between tries grow to 5 s; the look of once a minute is not it
DEMAND = ("/api/v1/pods", "/apis/tutti.dev/v1alpha1/podgroups")
SUPPLY = ("/api/v1/nodes", "/apis/tutti.dev/v1alpha1/reservations")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these."""
    with Rig.start(operator=False) as started:
        yield started


@pytest.fixture(scope="module")
def proxy(rig: Rig) -> Iterator[Proxy]:
    """The operator's only way to the API server; the same process comes out that went in."""
    original = rig.plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
    with Proxy(rig.plane.server, rig.plane.authority) as between:
        rig.operator = OperatorProcess(rig.plane, kubeconfig=between.kubeconfig(original))
        rig.operator.start()
        assert rig.operator.process is not None
        pid = rig.operator.process.pid
        yield between
        assert rig.operator.process.pid == pid
        log = rig.operator.log.read_text()
        assert "Traceback" not in log
        assert "left out" not in log, "some line of a watch could not be read"
        assert rig.operator.stop() == 0


@pytest.fixture
def place(rig: Rig) -> Place:
    """A namespace and nodes of a test's own."""
    return Place(rig)


def test_what_was_deleted_while_the_watches_had_expired_leaves_no_ghost(
    place: Place, proxy: Proxy
) -> None:
    """A node, a bound pod, a pending pod and a PodGroup go unseen; all are forgotten."""
    rest = set(place.nodes(2, gpus=8))
    (lost,) = place.nodes(1, "lost", gpus=8)
    place.rig.create(place.pod("filler", gpu=8, spec={"nodeName": min(rest)}))
    place.group("ghost", 2)
    place.group("gone", 2)
    place.members("ghost", 1, cpu=1)
    place.until_waiting("ghost", "WaitingForMembers")
    place.until_waiting("gone", "WaitingForMembers")

    with ExitStack() as expired:
        with proxy.rule(watches, refuse(503)):
            proxy.cut_watches()
            for kind, name in (
                ("pod", "filler"),
                ("pod", "ghost-0"),
                ("podgroup", "gone"),
                ("node", lost),
            ):
                place.delete(kind, name)
            place.rig.until(lambda: not place.rig.pods("", place.name), "the pods are gone")
            listed = place.rig.plane.request("GET", "/api/v1/pods")
            version = int(listed["metadata"]["resourceVersion"])
            is_from_before = partial(_is_watch_from, range(version + 1))
            expired.enter_context(proxy.rule(is_from_before, expire))
        began = time.monotonic()
        _await_watches(place.rig, proxy, version)
    place.group("fresh", 2)
    place.members("fresh", 2, gpu=8)
    place.members("ghost", 1, first=1, cpu=1)
    place.members("gone", 1, cpu=1)
    place.until_bound("fresh", 2)
    assert time.monotonic() - began < SOON_SECONDS
    used = {pod["spec"]["nodeName"] for pod in place.rig.pods("fresh", place.name)}
    assert used == rest
    said = place.until_event("gone-0", "PodGroupNotFound")
    assert said.startswith(f"PodGroup {place.name}/gone does not exist")
    place.until_pod_says("ghost-1", "WaitingForMembers")
    place.until_waiting("ghost", "WaitingForMembers", "1 of 2 members exist")
    assert place.bound("ghost") == place.bound("gone") == 0
    place.members("ghost", 1, first=2, cpu=0)
    place.until_bound("ghost", 2)


def _is_reservation(call: Call) -> bool:
    return call.creates("reservations")


def _is_binding(call: Call) -> bool:
    return call.is_binding


def _is_watch_from(versions: range, call: Call) -> bool:
    return call.is_watch and int(call.query["resourceVersion"]) in versions


def _await_watches(rig: Rig, proxy: Proxy, version: int) -> None:
    """Wait until every stream has been listed again and is watched from there."""

    def is_renewed(path: str, field: str) -> bool:
        return any(
            call.path == path
            and call.is_watch
            and field in call.query.get("fieldSelector", "")
            and int(call.query["resourceVersion"]) > version
            for call in list(proxy.calls)
        )

    fields = ("spec.nodeName!=", "schedulerName=tutti", "schedulerName!=tutti")
    streams = [(path, "") for path in (*SUPPLY, DEMAND[1])]
    streams += [(DEMAND[0], field) for field in fields]
    rig.until(lambda: all(is_renewed(*stream) for stream in streams), "all watches are renewed")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_api_server_that_refuses_for_a_while_is_asked_again(
    place: Place, proxy: Proxy, status: int
) -> None:
    """Everything is refused for some seconds, watches included; then the gang starts."""
    place.nodes(1)
    with proxy.rule(anything, refuse(status, retry_after=1)):
        proxy.cut_watches()
        place.group("train", 4)
        place.members("train", 4, cpu=1)
        time.sleep(3)
        assert place.bound() == 0
    began = time.monotonic()
    place.until_bound("train", 4)
    assert time.monotonic() - began < SOON_SECONDS


def test_single_calls_that_are_refused_leave_no_gang_half_bound(place: Place, proxy: Proxy) -> None:
    """Every second binding is answered with 429 at first."""
    place.nodes(1)
    refused: set[str] = set()

    def is_first_try(call: Call) -> bool:
        is_it = call.is_binding and call.path not in refused and len(proxy.calls) % 2 == 0
        refused.update([call.path] if is_it else [])
        return is_it

    with proxy.rule(is_first_try, refuse(429, retry_after=1)):
        place.group("train", 8)
        place.members("train", 8, cpu="100m")
        place.until_bound("train", 8)
    place.until_says("train", "Bound", "Bound")
    assert refused


LOSSES = {
    "a reservation on its way": (_is_reservation, lose),
    "the answer to a reservation": (_is_reservation, lose_answer),
    "a binding on its way": (_is_binding, lose),
    "the answer to a binding": (_is_binding, lose_answer),
}


@pytest.mark.parametrize(("match", "action"), LOSSES.values(), ids=LOSSES)
def test_a_connection_that_breaks_in_the_middle_of_a_commit_costs_nothing(
    place: Place, proxy: Proxy, match: Match, action: Action
) -> None:
    """Before or after the server has done its part: the gang is bound, each pod once."""
    place.nodes(1)
    with proxy.rule(nth(1, match), action):
        place.group("train", 4)
        place.members("train", 4, cpu=1)
        place.until_bound("train", 4)
        place.until_says("train", "Bound", "Bound")
    place.rig.until(lambda: not place.rig.reservations(place.name), "the Reservation is gone")


def test_watches_that_lag_lead_to_no_second_binding(place: Place, proxy: Proxy) -> None:
    """What was just done is known before any watch tells it."""
    place.nodes(1, cpu=4)
    with proxy.rule(watches, delay(1.0)):
        proxy.cut_watches()
        place.group("train", 4)
        place.members("train", 4, cpu=1)
        place.until_bound("train", 4)
        place.rig.create(place.pod("late", cpu=1))
        place.until_event("late", "Unschedulable")
        proxy.cut_watches()
    costs = Counter(kind_of(line) for line in place.writes())
    assert costs["create pods/binding"] == 4


def test_an_api_server_that_is_away_for_a_minute_is_waited_for(place: Place, proxy: Proxy) -> None:
    """A gang made meanwhile is bound within seconds; what went meanwhile is forgotten."""
    place.nodes(2, gpus=8)
    place.group("before", 1)
    place.members("before", 1, gpu=8)
    place.until_bound("before", 1)
    place.group("waits", 2)
    place.members("waits", 2, gpu=8)
    place.until_waiting("waits", "NotEnoughRoom")

    proxy.go_away()
    began = time.monotonic()
    place.group("during", 2)
    place.members("during", 2, gpu=8)
    place.delete("pod", "before-0")
    place.delete("podgroup", "waits")
    place.delete("pod", "waits-0")
    place.delete("pod", "waits-1")
    time.sleep(max(0.0, AWAY_SECONDS - (time.monotonic() - began)))
    assert place.rig.operator.probe("healthz") == "ok"
    assert place.bound("during") == 0
    proxy.come_back()
    began = time.monotonic()
    place.until_bound("during", 2)
    assert time.monotonic() - began < SOON_SECONDS
    print(f"bound {time.monotonic() - began:.1f} s after the return")
