"""One gang of 5,000 members, each on a node of its own, all names as long as they may be."""

from __future__ import annotations

import json
import random
import string
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...harness import rig
from ...harness.controlplane.nodes import node_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...harness.controlplane.cluster import ControlPlane

MEMBERS = 5_000
LONGEST = 253  # characters of a pod's or a node's name
LABEL = 63  # of a PodGroup's name and a namespace
NAMESPACE = "n" * LABEL
GROUP = "g" * LABEL
STATUS_BYTES = 4_000
PATIENCE = 600.0
# Nobody takes the taint away that nodes are born with: no kubelet is played here.
NEWBORN: Mapping[str, Any] = {
    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
}
LETTERS = string.ascii_lowercase + string.digits
TUTTI = "/apis/tutti.dev/v1alpha1"


@dataclass(slots=True)
class Sizes:
    """What was seen of the gang while it was bound, and of what is left."""

    reservation: int = 0  # bytes
    entries: int = 0
    named: int = 0  # entries with the names of their pods
    status: int = 0  # bytes
    phases: tuple[str, ...] = ()
    bound: int = 0
    nodes: int = 0  # with a pod
    left: int = 0  # Reservations that stand at the end
    seconds: float = 0.0  # from the last pod's creation to the end


def names(count: int, seed: int) -> Iterator[str]:
    """Random names of the longest kind: nothing in them repeats, so nothing makes them shorter."""
    chance = random.Random(seed)
    for _ in range(count):
        yield "".join(chance.choices(LETTERS, k=LONGEST))


def prepare(plane: ControlPlane, members: int = MEMBERS) -> None:
    """Make the nodes, each with room for one member, and the PodGroup."""
    plane.create_namespace(NAMESPACE)
    plane.create(_node(name) for name in names(members, 1))
    plane.create([rig.pod_group(GROUP, members, namespace=NAMESPACE)])


def _node(name: str) -> Mapping[str, Any]:
    made = node_manifest(name, cpu=1, memory="4Gi")
    made["metadata"]["labels"]["kubernetes.io/hostname"] = name[:LABEL]
    return made


def run(plane: ControlPlane, members: int = MEMBERS) -> Sizes:
    """Create the members and look until all are bound and the Reservation is gone."""
    plane.create(
        rig.pod(name, GROUP, namespace=NAMESPACE, spec=NEWBORN, cpu=1) for name in names(members, 2)
    )
    sizes = Sizes()
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE and not _is_done(plane, sizes):
        time.sleep(0.2)
    sizes.seconds = time.monotonic() - began
    pods = plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    taken = [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]]
    sizes.bound, sizes.nodes = len(taken), len(set(taken))
    return sizes


def _is_done(plane: ControlPlane, sizes: Sizes) -> bool:
    """Note what stands; whether the gang is bound and nothing stands for it any more."""
    standing = plane.request("GET", f"{TUTTI}/namespaces/{NAMESPACE}/reservations")["items"]
    sizes.left = len(standing)
    for one in standing:
        placement = one["spec"]["placement"]
        sizes.reservation = max(sizes.reservation, _bytes(one))
        sizes.entries = max(sizes.entries, len(placement))
        sizes.named = max(sizes.named, sum("pods" in entry for entry in placement))
    group = plane.request("GET", f"{TUTTI}/namespaces/{NAMESPACE}/podgroups/{GROUP}")
    status = group.get("status", {})
    sizes.status = max(sizes.status, _bytes(status))
    phase = status.get("phase", "")
    if phase and phase not in sizes.phases:
        sizes.phases = (*sizes.phases, phase)
    return not standing and phase == "Bound"


def _bytes(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":")))
