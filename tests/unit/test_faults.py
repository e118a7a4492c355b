"""The faults of `make soak`: the same seed draws the same ones, and every write has a name."""

from __future__ import annotations

import socket

import pytest

from ..chaos.faults import supply, trials
from ..chaos.faults.__main__ import SECONDS_AFTER, Soak
from ..chaos.faults.writes import Write, write_of
from ..harness.controlplane.components import free_ports, is_free
from ..harness.controlplane.wiring import LOOPBACK
from ..harness.provisioner import SELECTED
from ..harness.proxy import Call

ADDRESSES = {
    Write.RESERVE: ("POST", "/apis/tutti.dev/v1alpha1/namespaces/ml/reservations"),
    Write.ADOPT: ("PATCH", "/apis/tutti.dev/v1alpha1/namespaces/ml/reservations/u-1"),
    Write.RELEASE: ("DELETE", "/apis/tutti.dev/v1alpha1/namespaces/ml/reservations/u-1"),
    Write.BIND: ("POST", "/api/v1/namespaces/ml/pods/a-0/binding"),
    Write.EVICT: ("POST", "/api/v1/namespaces/ml/pods/a-0/eviction"),
    Write.POD_STATUS: ("PATCH", "/api/v1/namespaces/ml/pods/a-0/status"),
    Write.GROUP_STATUS: ("PATCH", "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups/a/status"),
    Write.QUEUE_FINALIZER: ("PATCH", "/apis/tutti.dev/v1alpha1/queues/vision"),
    Write.QUEUE_STATUS: ("PATCH", "/apis/tutti.dev/v1alpha1/queues/vision/status"),
    Write.EVENT: ("POST", "/api/v1/namespaces/ml/events"),
    Write.LEASE: ("PUT", "/apis/coordination.k8s.io/v1/namespaces/tutti-system/leases/tutti"),
    Write.MAKE_CLAIM: ("POST", "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims"),
    Write.PROTECT_CLAIM: ("PATCH", "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/a"),
    Write.CLAIM_STATUS: ("PATCH", "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/a/status"),
    Write.SELECT_NODE: ("PATCH", "/api/v1/namespaces/ml/persistentvolumeclaims/a"),
    Write.BIND_VOLUME: ("PATCH", "/api/v1/persistentvolumes/a"),
    Write.HAND_OVER: ("PATCH", "/api/v1/namespaces/ml/pods/a-0"),
    Write.OTHER: ("DELETE", "/api/v1/namespaces/ml/pods/a-0"),
}


@pytest.mark.parametrize("write", Write)
def test_every_kind_of_write_is_known_by_its_address(write: Write) -> None:
    method, path = ADDRESSES[write]
    assert write_of(Call(method, path, {})) is write


def test_what_is_read_is_no_write() -> None:
    assert write_of(Call("GET", ADDRESSES[Write.RESERVE][1], {})) is None


def test_the_same_seed_and_number_draw_the_same_faults() -> None:
    drawn = [str(trials.chance(7, number, 40)) for number in range(50)]
    assert drawn == [str(trials.chance(7, number, 40)) for number in range(50)]
    assert len(set(drawn)) > 40
    assert drawn != [str(trials.chance(8, number, 40)) for number in range(50)]


def test_with_claims_the_provisioner_fails_at_answers_that_are_drawn() -> None:
    drawn = [trials.chance(1, number, 100, has_claims=True) for number in range(40)]
    again = [trials.chance(1, number, 100, has_claims=True) for number in range(40)]
    assert [str(trial) for trial in drawn] == [str(trial) for trial in again]
    assert {trial.failures for trial in drawn} == set(trials.FAILURES)
    plain = [trials.chance(1, number, 100) for number in range(40)]
    assert {trial.failures for trial in plain} == {(0,)}
    assert all(str(trial).startswith(str(bare)) for trial, bare in zip(drawn, plain, strict=True))
    assert "the provisioner fails at 1, 2" in "\n".join(map(str, drawn))
    assert "provisioner" not in "\n".join(map(str, plain))


def test_a_provisioner_fails_at_the_answers_that_it_is_told_and_makes_all_else() -> None:
    for failures in trials.FAILURES:
        sent: list[str] = []
        waiting = {
            "metadata": {
                "name": "both-0",
                "namespace": "ml",
                "uid": "u",
                "resourceVersion": "1",
                "annotations": {SELECTED: "n"},
            },
            "spec": {
                "storageClassName": supply.DISK,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }

        def request(
            method: str, _: str, __: object = None, sent: list[str] = sent, item: object = waiting
        ) -> object:
            sent.append(method)
            return {"items": [item]}

        provisioner = supply.Provisioner(request, "ml")
        provisioner.fail_at(failures)
        for _ in range(2 + len(failures)):  # it makes two volumes
            provisioner.answer()
        answers = [method for method in sent if method != "GET"]
        assert answers == ["PATCH" if i in failures else "POST" for i in range(len(answers))]
        assert provisioner.has_failed


def test_every_write_in_turn_is_killed_at_in_every_way() -> None:
    assert [str(trial) for trial in trials.kills(5)] == [
        "killed before the write: write 5",
        "killed after the commit: write 5",
        "killed, the write 3 s late: write 5",
    ]


def test_a_port_that_a_connection_has_got_is_not_free_for_an_operator() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        with socket.create_connection(server.getsockname()) as connection:
            assert not is_free(connection.getsockname()[1])
        assert not is_free(server.getsockname()[1])
    assert is_free(free_ports("probes")["probes"])


def test_a_port_is_not_chosen_again_while_there_are_others() -> None:
    """Though nobody listens on it yet."""
    chosen = [port for _ in range(500) for port in free_ports("etcd", "probes").values()]
    assert len(set(chosen)) == 1000


def test_every_write_in_turn_is_killed_at_twice() -> None:
    firsts = {trial.strikes[0].n for trial in Soak(1, 0, 0).trials("twice", 40)}
    assert firsts == {*range(1, 47)}
    seconds = {trial.strikes[1].n for trial in Soak(1, 0, 0).trials("twice", 40)}
    assert seconds == {*SECONDS_AFTER}
