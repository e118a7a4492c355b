"""The nodes that are selected from: each with one device, and no two devices alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ..differential.devices import GROUP
from ..differential.scenes import Scene

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Manifest = dict[str, Any]

GPU, NIC, ROOT = "gpu.example.com", "nic.example.com", "resource.kubernetes.io"
A, C = f'device.attributes["{GPU}"]', f'device.capacity["{GPU}"]'
MOST, LEAST = 2**63 - 1, -(2**63)

# Every GPU has these attributes and capacities; the last node has a NIC without any of them.
MODELS = ("A100", "a100-SXM", "H100", "H100 NVL", "L4", "größe-ß", "", "tpu,v5,lite", "B200")
HEALTHY = (True, False, True, True, False, True, True, False, True)
INDEXES = (0, 1, 2, 3, 7, 10, -4, 15, 64)
LARGE = (MOST, LEAST, 0, 1, -1, 2**53, 4_000_000_000, MOST - 1, LEAST + 1)
FIRMWARE = (
    *("1.9.0", "2.0.0-rc.1", "2.0.0", "10.0.1", "2.0.0+build.5", "0.0.0", "1.10.0-alpha"),
    *("1.10.0-alpha.2", "1.10.0-alpha.11"),
)
MEMORY = ("80Gi", "40Gi", "16Gi", "40e9", "1536Mi", "0", "100Ti", "81920Mi", "12345678")
CORES = ("108", "1500m", "7", "0.5", "1k", "2", "100m", "1e3", "64")
# Some GPUs have these, too; one attribute is of another type at each device.
RACKS = ("r1", "x1", None, "r2", None, None, "r1", None, None)
MIXED: Sequence[Manifest] = (
    *({"int": 1}, {"string": "1"}, {"bool": True}, {"string": "1.0.0"}, {"string": "true"}),
    *({"int": 0}, {"string": ""}, {"bool": False}, {"int": -1}),
)
GPUS = len(MODELS)
NODES = (*(f"n{i}" for i in range(GPUS)), "nic")


def cluster() -> Scene:
    """All nodes and their devices."""
    nodes = [node_manifest(name, cpu="8", memory="8Gi") for name in NODES]
    for node in nodes:
        node["metadata"]["annotations"] = {}  # kwok is not here
    slices = [*(_slice(NODES[i], GPU, _gpu(i)) for i in range(GPUS))]
    slices.append(_slice(NODES[-1], NIC, {"attributes": {"rack": {"string": "r1"}}}))
    return Scene(0, tuple(nodes), tuple(slices), (), ())


def _gpu(i: int) -> Manifest:
    attributes: Manifest = {
        "model": {"string": MODELS[i]},
        "healthy": {"bool": HEALTHY[i]},
        "index": {"int": INDEXES[i]},
        "large": {"int": LARGE[i]},
        "firmware": {"version": FIRMWARE[i]},
        "mixed": dict(MIXED[i]),
        f"{ROOT}/pcieRoot": {"string": f"pci0000:{i % 3:02}"},
    }
    if (rack := RACKS[i]) is not None:
        attributes["rack"] = {"string": rack}
    capacity = {"memory": {"value": MEMORY[i]}, "cores": {"value": CORES[i]}}
    return {"attributes": attributes, "capacity": capacity}


def _slice(node: str, driver: str, about: Mapping[str, Any]) -> Manifest:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    device = {"name": "d0", **about}
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": [device]}
    named = {"name": f"{node}-devices"}
    return {"apiVersion": GROUP, "kind": "ResourceSlice", "metadata": named, "spec": spec}
