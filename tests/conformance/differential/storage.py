"""Clusters with classes, volumes and capacities of their own, and pods whose claims wait for them.

Everything has a name of its cluster, so that kube-scheduler never knows an object of before.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ...harness.controlplane.nodes import node_manifest
from . import ground, rows
from .drawing import among, drawn
from .pools import CAPPED, DRIVERS, HOST, RACK, RACKS, SENTINELS, TIER, ZONE, ZONES
from .scenes import SCHEDULER, Probe, Scene, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .drawing import Draw

    Manifest = dict[str, Any]

ROW = "generated volumes"
PROBES = 10  # pods of a cluster
VOLUMES = 6  # the most of a node
SEEDS = 11_000_000_000  # far from those of other scenes
STATIC, ZONED, CAPACITY = "static", "zoned", "capacity"  # classes, without the number of a cluster
LARGEST = "largest"  # a class with enough capacity on the first node, but not in one volume
PROVISIONERS: Mapping[str, str] = {
    STATIC: "kubernetes.io/no-provisioner",
    ZONED: DRIVERS[0],
    CAPACITY: CAPPED,
}
FOR_ONE_POD = "ReadWriteOncePod"
SIZES = ("1Gi", "2Gi", "3Gi", "5Gi", "9Gi", "12Gi", "20Gi")
MODES = (
    *(("ReadWriteOnce",),) * 3,
    ("ReadWriteMany",),
    ("ReadWriteMany", "ReadWriteOnce"),
    (FOR_ONE_POD,),
)


def scene(number: int) -> Scene:
    """The cluster of this number with its pods."""
    names = tuple(f"n{i}" for i in range(2 + number % 5))
    nodes = [drawn(_nodes(), _seed(number, i)) for i in range(len(names))]
    for name, node in zip(names, nodes, strict=True):
        node["metadata"]["name"] = node["metadata"]["labels"][HOST] = name
        node["status"]["addresses"][0]["address"] = name
    beside = drawn(_supply(names, number), _seed(number, 100))
    probes = [drawn(_probing(number), _seed(number, 200 + i)) for i in range(PROBES)]
    for i, probe in enumerate(probes):
        probe.pod["metadata"]["name"] = f"claiming-{number}-{i}"
        beside += _taken_out(probe.pod)
    _share(number, [probe.pod for probe in probes], beside)
    probes.append(drawn(_large(), _seed(number, 300)))
    probes[-1].pod["metadata"]["name"] = f"claiming-{number}-large"
    probes[-1].pod["claims"][0]["storageClassName"] = f"{LARGEST}-{number}"
    beside += [*_taken_out(probes[-1].pod), *_largest(names, number)]
    return Scene(number, tuple(nodes), tuple(beside), (), tuple(probes))


def _seed(number: int, i: int) -> int:
    return SEEDS + number * 1000 + i


def _taken_out(pod: Manifest) -> list[Manifest]:
    """The claims of a drawn pod, now with names of their own."""
    made = []
    pod["spec"]["volumes"] = []
    for i, spec in enumerate(pod.pop("claims")):
        name, namespace = f"{pod['metadata']['name']}-{i}", pod["metadata"]["namespace"]
        source = {"persistentVolumeClaim": {"claimName": name}}
        pod["spec"]["volumes"].append({"name": f"v{i}", **source})
        made.append(_object("v1", "PersistentVolumeClaim", name, namespace=namespace, spec=spec))
    return made


@st.composite
def _large(draw: Draw) -> Probe:
    """A pod with a claim that is larger than the largest volume of one node."""
    pod = plain(draw, SCHEDULER)
    pod["claims"] = [
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}}
    ]
    return Probe(pod, (ROW,))


def _largest(names: tuple[str, ...], number: int) -> list[Manifest]:
    """A class, and as much capacity on each of two nodes; one of them says its largest volume."""
    name = f"{LARGEST}-{number}"
    waits = {"provisioner": CAPPED, "volumeBindingMode": "WaitForFirstConsumer"}
    made = [_object("storage.k8s.io/v1", "StorageClass", name, **waits)]
    for node, limits in zip(names, ({"maximumVolumeSize": "5Gi"}, {}), strict=False):
        topology = {"matchLabels": {HOST: node}}
        about = {"storageClassName": name, "nodeTopology": topology, "capacity": "12Gi", **limits}
        made.append(
            _object(
                "storage.k8s.io/v1",
                "CSIStorageCapacity",
                f"{name}-{node}",
                namespace=SENTINELS,
                **about,
            )
        )
    return made


def _share(number: int, pods: list[Manifest], beside: list[Manifest]) -> None:
    """Let a pod name a claim for one pod of another, too, if there is one in its namespace."""
    claims = [one for one in beside if one["kind"] == "PersistentVolumeClaim"]
    for claim in claims:
        space, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        if claim["spec"]["accessModes"] != [FOR_ONE_POD]:
            continue
        others = [pod for pod in pods if pod["metadata"]["namespace"] == space]
        pod = others[number % len(others)]
        volumes = pod["spec"]["volumes"]
        if all(of["persistentVolumeClaim"]["claimName"] != name for of in volumes):
            source = {"persistentVolumeClaim": {"claimName": name}}
            volumes.append({"name": f"v{len(volumes)}", **source})


@st.composite
def _nodes(draw: Draw) -> Manifest:
    node = node_manifest("", cpu="8", memory="16Gi", pods=110, labels=ground.labels(draw))
    node["metadata"]["annotations"] = {}  # kwok is not here
    return node


@st.composite
def _supply(draw: Draw, names: tuple[str, ...], number: int) -> list[Manifest]:
    """Classes, the volumes of nodes and a few that several reach, capacities."""
    made = [_class(draw, name, number) for name in PROVISIONERS]
    places = [
        {"key": HOST, "operator": "In", "values": [name]}
        for name in names
        for _ in range(draw(among((0, 1, 2, 3, VOLUMES))))
    ]
    if draw(among((False, False, True))):
        places.append({"key": ZONE, "operator": "In", "values": [draw(among(ZONES))]})
    made += [_volume(draw, f"v{number}-{i}", where, number) for i, where in enumerate(places)]
    for i in range(draw(among((0, 1, 2, 3)))):
        key, values = draw(among(((ZONE, ZONES), (RACK, RACKS))))
        limits = {"capacity": draw(among(SIZES))}
        if draw(among((False, True))):
            limits["maximumVolumeSize"] = draw(among(SIZES))
        topology = {"matchLabels": {key: draw(among(values))}}
        about = {"storageClassName": f"{CAPACITY}-{number}", "nodeTopology": topology, **limits}
        name = f"capacity-{number}-{i}"
        kind = "CSIStorageCapacity"
        made.append(_object("storage.k8s.io/v1", kind, name, namespace=SENTINELS, **about))
    return made


def _class(draw: Draw, name: str, number: int) -> Manifest:
    about: Manifest = {
        "provisioner": PROVISIONERS[name],
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if name == ZONED or (name == CAPACITY and draw(among((False, False, True)))):
        values = sorted({draw(among(ZONES)) for _ in range(2)})
        about["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
    return _object("storage.k8s.io/v1", "StorageClass", f"{name}-{number}", **about)


def _volume(draw: Draw, name: str, where: Manifest, number: int) -> Manifest:
    kind = draw(among((CAPACITY, ZONED, *[STATIC] * 6)))
    spec: Manifest = {
        "capacity": {"storage": draw(among(SIZES))},
        "accessModes": list(draw(among(MODES))),
        "storageClassName": f"{kind}-{number}",
        "hostPath": {"path": f"/mnt/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
    }
    if draw(among((False,) * 7 + (True,))):
        spec["volumeMode"] = "Block"
    made = _object("v1", "PersistentVolume", name, spec=spec)
    made["metadata"]["labels"] = {TIER: draw(among(("gold", "iron")))}
    return made


@st.composite
def _probing(draw: Draw, number: int) -> Probe:
    """A pod with one claim or two."""
    pod = plain(draw, SCHEDULER)
    pod["claims"] = [_claim(draw, number) for _ in range(draw(among((2, 1, 1))))]
    if draw(among((True, False, False, False))):
        rows.node_selector(draw, pod)
    return Probe(pod, (ROW,))


def _claim(draw: Draw, number: int) -> Manifest:
    kind = draw(among((CAPACITY, ZONED, CAPACITY, STATIC, STATIC, STATIC)))
    spec: Manifest = {
        "accessModes": [draw(among(("ReadWriteMany", FOR_ONE_POD, *["ReadWriteOnce"] * 3)))],
        "storageClassName": f"{kind}-{number}",
        "resources": {"requests": {"storage": draw(among(SIZES))}},
    }
    if draw(among((False,) * 7 + (True,))):
        spec["volumeMode"] = "Block"
    if kind == STATIC and draw(among((False,) * 4 + (True,))):
        spec["selector"] = {"matchLabels": {TIER: "gold"}}
    return spec


def _object(
    api_version: str, kind: str, name: str, *, namespace: str = "", **about: Any
) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return copy.deepcopy({"apiVersion": api_version, "kind": kind, "metadata": metadata, **about})
