"""Nodes of every kind that the rules tell apart, with what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ...harness.controlplane.nodes import node_manifest
from .drawing import among
from .pools import (
    CLAIMS,
    DEVICE,
    DRIVERS,
    HUGE,
    NAMESPACES,
    RACK,
    RACKS,
    TIER,
    TIERS,
    ZONE,
    ZONES,
    driver,
)

if TYPE_CHECKING:
    from .drawing import Draw

EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
KEYS = ("dedicated", "size", "node.kubernetes.io/disk-pressure")
VALUES = ("", "a", "b", "5", "10")
NOT_READY = "node.kubernetes.io/not-ready"

_rarely = among((False,) * 7 + (True,))


def labels(draw: Draw) -> dict[str, str]:
    """A node's labels; each key is missing now and then."""
    found = {ZONE: draw(among((*ZONES, None))), RACK: draw(among((*RACKS, None)))}
    found[TIER] = draw(among((None, *TIERS)))
    return {key: value for key, value in found.items() if value is not None}


@st.composite
def nodes(draw: Draw) -> dict[str, Any]:
    """A node without its name."""
    taints = draw(
        st.lists(
            st.builds(
                lambda key, value, effect: {"key": key, "value": value, "effect": effect},
                among(KEYS),
                among(VALUES),
                among(EFFECTS),
            ),
            max_size=2,
            unique_by=lambda taint: (taint["key"], taint["effect"]),
        )
        if draw(among((False, False, True)))
        else st.just([])
    )
    is_ready = not draw(_rarely)
    if not is_ready:  # as kube-controller-manager says it
        taints = [*taints, {"key": NOT_READY, "value": "", "effect": "NoSchedule"}]
    extended = {
        DEVICE: draw(among((0, 1, 4))),
        HUGE: draw(among(("0", "64Mi"))),
    }
    node = node_manifest(
        "",
        cpu=draw(among(("2", "4", "3900m", "1e1", "0"))),
        memory=draw(among(("4Gi", "8Gi", "8e9", "4294967296500m"))),
        pods=draw(among((3, 5, 110))),
        ephemeral_storage=draw(among(("1Gi", "10Gi", "0"))),
        extended=extended,
        labels=labels(draw),
        taints=taints,
        unschedulable=draw(_rarely),
    )
    node["metadata"]["annotations"] = {}  # kwok is not here
    if not is_ready:
        node["status"]["conditions"][0]["status"] = "False"
    return node


@st.composite
def drivers(draw: Draw) -> dict[str, int | None] | None:
    """What a node's CSINode says of the drivers there; None where there is no CSINode."""
    if draw(among((False, False, False, True))):
        return None
    counts = among((None, 0, 1, 1, 1, 2))
    return {name: draw(counts) for name in DRIVERS if draw(among((False, True, True)))}


@st.composite
def attached(draw: Draw) -> tuple[str, str] | None:
    """A volume that is attached to a node, and by whom; None where there is none."""
    # The example of a number never begins with the first of these.
    if draw(among((True, True, False))):
        return None
    i = draw(among(tuple(range(CLAIMS))))
    # Now and then by another driver than its own.
    by = draw(among((*DRIVERS, *[driver(i)] * 9)))
    return f"{draw(among(tuple(NAMESPACES)))}-{i}", by


def attachment(node: str, volume: str, driver: str) -> dict[str, Any]:
    """The VolumeAttachment of a volume to a node."""
    source = {"persistentVolumeName": volume}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"{node}-{volume}"},
        "spec": {"attacher": driver, "nodeName": node, "source": source},
    }


def csi_node(name: str, drivers: dict[str, int | None]) -> dict[str, Any]:
    """The CSINode of a node."""
    listed = [
        {"name": each, "nodeID": name, "topologyKeys": []}
        | ({} if count is None else {"allocatable": {"count": count}})
        for each, count in drivers.items()
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": listed},
    }
