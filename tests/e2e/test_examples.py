"""Every example of the README, applied as a user would, with the real controllers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.harness.provisioner import PROVISIONER, Provisioner, storage_class
from tests.harness.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER = "gpu.example.com"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A cluster with the real controller-manager, DRA devices and a provisioner of volumes."""
    with Rig.start("controller-manager") as rig:
        rig.nodes(4, cpu=16, memory="32Gi", gpus=4)
        rig.create(_device_class(), *(_slice(f"node-{i:03}") for i in range(4)))
        rig.create(storage_class("standard", PROVISIONER, is_default=True))
        with Provisioner(rig.plane.request):
            yield rig


def _device_class() -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [selector]},
    }


def _slice(node: str) -> dict[str, Any]:
    """Two devices of a node, as its driver publishes them."""
    memory = {"memory": {"value": "80Gi"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": [{"name": f"gpu-{i}", "capacity": memory} for i in range(2)],
        },
    }


def test_there_is_an_example_for_each_kind_of_workload() -> None:
    """Job, Indexed Job, StatefulSet, Deployment and bare pods; with devices and with volumes."""
    kinds = {
        each["kind"] + ("/Indexed" if each["spec"].get("completionMode") == "Indexed" else "")
        for path in EXAMPLES
        for each in yaml.safe_load_all(path.read_text())
    }
    assert kinds >= {"Job", "Job/Indexed", "StatefulSet", "Deployment", "Pod"}
    assert "ResourceClaimTemplate" in kinds


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_starts_whole(rig: Rig, path: Path) -> None:
    """Applied with kubectl, its gang is bound, runs, and says so."""
    namespace = path.stem
    rig.plane.create_namespace(namespace)
    rig.plane.kubectl("apply", "-n", namespace, "-f", str(path))
    name = next(
        each["metadata"]["name"]
        for each in yaml.safe_load_all(path.read_text())
        if each["kind"] == "PodGroup"
    )

    def phase() -> str:
        return str(rig.group(name, namespace).get("status", {}).get("phase", ""))

    rig.until(lambda: phase() == "Running", f"{name} is running")
    rig.until(lambda: _all_bound(rig, name, namespace), "members beyond those needed run too")


def _all_bound(rig: Rig, name: str, namespace: str) -> bool:
    counts = rig.group(name, namespace)["status"]["members"]
    assert counts["bound"] >= counts["needed"]
    return bool(counts["bound"] == counts["seen"] == counts["running"])


def test_a_replaced_member_of_a_running_gang_is_bound_again(rig: Rig) -> None:
    """A Deployment's new pod has a new name; it takes the lost one's place in the gang."""
    rig.plane.create_namespace("replaced")
    path = next(path for path in EXAMPLES if path.stem == "deployment")
    rig.plane.kubectl("apply", "-n", "replaced", "-f", str(path))
    name = "deployment"
    rig.until(lambda: rig.bound(name, "replaced") == 5, "all replicas are bound")
    before = {pod["metadata"]["name"] for pod in rig.pods(name, "replaced")}
    gone = min(before)
    rig.delete("pod", gone, "replaced")

    def is_whole_again() -> bool:
        pods = rig.pods(name, "replaced")
        names = {pod["metadata"]["name"] for pod in pods}
        return gone not in names and len(names) == rig.bound(name, "replaced") == len(before)

    rig.until(is_whole_again, "the replacement is bound")
    rig.until(
        lambda: rig.condition(name, "Healthy", "replaced").get("status") == "True",
        "the gang is whole again",
    )
