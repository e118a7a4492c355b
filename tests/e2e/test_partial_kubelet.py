"""The test agent that stands in for kubelets, on a real API server: what later tests rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.controlplane import RUN_SECONDS
from tests.harness.kubelet import FAIL_SECONDS, Kubelet
from tests.harness.rig import Rig, pod

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_the_agent_admits_by_the_sum_of_a_node_in_the_order_of_bindings() -> None:
    """The second pod is turned away, the third fits; all of it without kwok and without Tutti."""
    with Rig.start(operator=False) as rig, Kubelet(rig.plane) as kubelet:
        (node, dark) = kubelet.nodes(2, cpu=4, memory="8Gi")
        for name, cpu in (("first", 3), ("second", 2), ("third", 1)):
            rig.create(pod(name, scheduler="nobody", cpu=cpu))
            _bind(rig, name, node)
        rig.until(lambda: _phase(rig, "third") == "Running", "the third runs")
        rig.until(lambda: _phase(rig, "second") == "Failed", "the second is turned away")
        assert rig.pod("second")["status"]["reason"] == "OutOfcpu"
        assert [(name, at) for name, at, _ in kubelet.rejected] == [("second", node)]

        rig.delete("pod", "first")
        rig.until(lambda: len(rig.pods()) == 2, "what is deleted goes")
        for name, note in (("well", RUN_SECONDS), ("badly", FAIL_SECONDS)):
            _create_and_bind(rig, name, node, {note: "1"})
        rig.until(lambda: _phase(rig, "well") == "Succeeded", "it ends well")
        rig.until(lambda: _phase(rig, "badly") == "Failed", "it ends badly")

        kubelet.refuse(node)
        _create_and_bind(rig, "unlucky", node)
        rig.until(lambda: _phase(rig, "unlucky") == "Failed", "it is refused on demand")
        assert rig.pod("unlucky")["status"]["reason"] == "UnexpectedAdmissionError"

        kubelet.vanish(dark)
        _create_and_bind(rig, "lost", dark)
        rig.create(pod("after", scheduler="nobody", cpu=1))
        _bind(rig, "after", node)
        rig.until(lambda: _phase(rig, "after") == "Running", "the other node goes on")
        assert _phase(rig, "lost") == "Pending"


def _create_and_bind(
    rig: Rig, name: str, node: str, notes: Mapping[str, str] | None = None
) -> None:
    body = pod(name, scheduler="nobody", cpu=1)
    body["metadata"]["annotations"] = dict(notes or {})
    rig.create(body)
    _bind(rig, name, node)


def _bind(rig: Rig, name: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"metadata": {"name": name}, "target": target}
    rig.plane.request("POST", f"/api/v1/namespaces/ml/pods/{name}/binding", body)


def _phase(rig: Rig, name: str) -> str:
    return str(rig.pod(name)["status"]["phase"])
