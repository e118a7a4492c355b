"""Members that change or go in the middle of a commit, and a Reservation that is not taken.

A proxy between operator and API server holds the very call at which it happens.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..harness.operator_process import ACCOUNT, NAMESPACE, OperatorProcess
from ..harness.proxy import Call, Gate, Proxy, refuse
from ..harness.rig import Rig
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).with_name("event_logging_operator.py")
TOO_LARGE = "etcdserver: request is too large"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these."""
    with Rig.start(operator=False) as started:
        yield started


@pytest.fixture(scope="module")
def proxy(rig: Rig) -> Iterator[Proxy]:
    """The operator's only way to the API server."""
    original = rig.plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
    with Proxy(rig.plane.server, rig.plane.authority) as between:
        rig.operator = OperatorProcess(
            rig.plane,
            command=(sys.executable, str(SCRIPT)),
            kubeconfig=between.kubeconfig(original),
        )
        rig.operator.start()
        yield between
        assert rig.operator.stop() == 0


@pytest.fixture
def place(rig: Rig, proxy: Proxy) -> Iterator[Place]:  # noqa: ARG001 - it starts the operator
    """A namespace and nodes of a test's own; the operator outlives every test."""
    assert rig.operator.process is not None
    pid = rig.operator.process.pid
    yield Place(rig)
    assert rig.operator.process.poll() is None, "the operator has crashed"
    assert rig.operator.process.pid == pid
    assert rig.operator.probe("healthz") == "ok"
    assert "Traceback" not in rig.operator.log.read_text()


@contextmanager
def binding_held(proxy: Proxy, pod: str) -> Iterator[Gate]:
    """Hold the binding of one pod until the gate is opened."""
    gate = Gate()

    def is_it(call: Call) -> bool:
        return call.path.endswith(f"/pods/{pod}/binding")

    with proxy.rule(is_it, gate):
        yield gate


@contextmanager
def reservation_held(proxy: Proxy) -> Iterator[Gate]:
    """Hold the answer to the next Reservation: it is made, and the operator does not know."""
    gate = Gate(after_commit=True)
    with proxy.rule(lambda call: call.creates("reservations"), gate):
        yield gate


def until_known(place: Place, event: str) -> None:
    """Wait until the operator's store knows an event; the cycle stands still at the gate."""
    log = place.rig.operator.log
    place.rig.until(lambda: f"store knows {event}" in log.read_text(), f"it knows {event}")


def test_a_pod_deleted_while_its_siblings_are_bound_is_missed_and_replaced(
    place: Place, proxy: Proxy
) -> None:
    """Three of four are bound when the fourth goes: said, and repaired by its replacement."""
    place.nodes(1)
    place.group("train", 4)
    with binding_held(proxy, "train-3") as gate:
        place.members("train", 4, cpu=1)
        gate.await_held(1)
        place.until_bound("train", 3)
        place.delete("pod", "train-3")
        gate.open()
    place.until_says("train", "Healthy", "MemberLost", "3 of 4 members are bound, 1 missing")
    assert not place.rig.reservations(place.name)
    place.members("train", 1, first=4, cpu=1)
    place.until_bound("train", 4)
    place.until_says("train", "Healthy", "Whole")


def test_a_pod_deleted_before_any_is_bound_takes_its_reservation_along(
    place: Place, proxy: Proxy
) -> None:
    """Nothing of the gang is bound; it waits again and says for what."""
    place.nodes(1)
    place.group("train", 4)
    with reservation_held(proxy) as gate:
        place.members("train", 4, cpu=1)
        gate.await_held(1)
        place.delete("pod", "train-3")
        until_known(place, f"DELETED {place.name}/train-3 ")
        gate.open()
    place.until_event("train", "Released")
    place.until_waiting("train", "WaitingForMembers", "3 of 4 members exist")
    assert place.bound() == 0
    assert not place.rig.reservations(place.name)
    place.members("train", 1, first=4, cpu=1)
    place.until_bound("train", 4)


def test_a_pod_that_changes_its_group_once_it_is_reserved_is_not_bound_for_the_old_one(
    place: Place, proxy: Proxy
) -> None:
    """The Reservation is given back whole, with an Event; nothing of it was bound."""
    place.nodes(1)
    place.group("left", 3)
    place.group("joined", 2)
    with reservation_held(proxy) as gate:
        place.members("left", 3, cpu=1)
        gate.await_held(1)
        place.relabel("left-2", group="joined")
        version = place.rig.pod("left-2", place.name)["metadata"]["resourceVersion"]
        until_known(place, f"MODIFIED {place.name}/left-2 {version}")
        gate.open()
    place.until_waiting("left", "WaitingForMembers", "2 of 3 members exist")
    place.until_waiting("joined", "WaitingForMembers", "1 of 2 members exist")
    said = place.until_event("left", "Released")
    assert said.startswith("left-2 can no longer be bound to ")
    assert place.bound() == 0
    assert not place.rig.reservations(place.name)
    place.members("joined", 1, cpu=1)
    place.until_bound("joined", 2)


def test_a_pod_that_changes_its_group_while_its_siblings_are_bound_is_missed_there(
    place: Place, proxy: Proxy
) -> None:
    """Its binding carries its version, so the API server refuses it; the old group says so."""
    place.nodes(1)
    place.group("left", 3)
    place.group("joined", 2)
    with binding_held(proxy, "left-2") as gate:
        place.members("left", 3, cpu=1)
        gate.await_held(1)
        place.until_bound("left", 2)
        place.relabel("left-2", group="joined")
        gate.open()
    place.until_says("left", "Healthy", "MemberLost", "2 of 3 members are bound, 1 missing")
    place.until_waiting("joined", "WaitingForMembers", "1 of 2 members exist")
    assert not place.is_bound("left-2")
    place.members("left", 1, first=3, cpu=1)
    place.members("joined", 1, cpu=1)
    place.until_bound("left", 3)
    place.until_bound("joined", 2)


def test_a_reservation_that_the_api_server_finds_too_large_is_said_and_nothing_is_bound(
    place: Place, proxy: Proxy
) -> None:
    """As when the size computed beforehand says it; nobody else has to wait for it."""
    place.nodes(1)
    place.group("huge", 2)
    with proxy.rule(lambda call: call.creates("reservations"), refuse(500, TOO_LARGE)):
        place.members("huge", 2, cpu=1)
        place.until_waiting("huge", "Refused", TOO_LARGE)
        assert place.bound() == 0
    place.group("other", 1)
    place.members("other", 1, cpu=1)
    place.until_bound("other", 1)
    said = f"{place.name}/huge: Reservation refused: {TOO_LARGE}"
    assert place.rig.operator.log.read_text().count(f"ERROR   gang {said}") == 1
