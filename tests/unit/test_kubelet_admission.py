"""The rule of the test agent, in a kubelet's words."""

from __future__ import annotations

from typing import Any

from tests.harness.controlplane import node_manifest
from tests.harness.kubelet.admission import Ledger


def asks(**requests: str) -> dict[str, Any]:
    named = {"nvidia.com/gpu" if name == "gpu" else name: n for name, n in requests.items()}
    return {"containers": [{"resources": {"requests": named}}]}


def ledger() -> Ledger:
    return Ledger.of(node_manifest("n1", cpu=4, memory="8Gi", pods=3, gpus=2))


def test_a_pod_is_let_in_while_the_sum_fits() -> None:
    node = ledger()
    assert node.admit("a", asks(cpu="3", gpu="2")) is None
    assert node.admit("b", asks(cpu="1")) is None


def test_what_is_short_first_is_said_in_the_units_of_a_kubelet() -> None:
    node = ledger()
    node.admit("a", asks(cpu="3500m"))
    found = node.admit("b", asks(cpu="1", memory="9Gi"))
    assert found is not None
    assert found.reason == "OutOfcpu"
    assert found.message == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 3500, "
        "capacity: 4000"
    )
    assert node.admit("c", asks(cpu="500m")) is None, "a pod that was turned away takes no room"


def test_the_number_of_pods_is_looked_at_first() -> None:
    node = ledger()
    for uid in "abc":
        node.admit(uid, asks(cpu="1m"))
    found = node.admit("d", asks(cpu="9"))
    assert found is not None
    assert found.reason == "OutOfpods"


def test_missing_devices_are_an_unexpected_error() -> None:
    node = ledger()
    node.admit("a", asks(gpu="1"))
    found = node.admit("b", asks(gpu="2"))
    assert found is not None
    assert found.reason == "UnexpectedAdmissionError"
    assert "unavailable for nvidia.com/gpu. Requested: 2, Available: 1" in found.message


def test_what_has_ended_leaves_its_room() -> None:
    node = ledger()
    node.take("a", asks(cpu="4"))
    node.leave("a")
    node.leave("a")
    assert node.admit("b", asks(cpu="4")) is None
