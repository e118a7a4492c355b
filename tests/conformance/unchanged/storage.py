"""Claims, volumes and CSI drivers of generated clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .objects import Object, named
from .rules import HOST, ZONE, ZONES

if TYPE_CHECKING:
    from .clusters import Cluster

DRIVER = "disk.example.com"
KINDS = (
    *("zonal", "labelled", "local", "csi", "csi", "csi", "shared", "one pod", "one pod"),
    *("one pod", "one pod, two users", "missing", "unbound", "late", "lost", "other kind"),
)
FEATURES = {
    "volumes with places": ("zonal", "labelled", "local", "shared"),
    "volumes with CSI limits": ("csi", "shared", "one pod"),
    "ReadWriteOncePod": ("one pod", "one pod, two users"),
    "claims that are not bound": ("missing", "unbound", "late", "lost"),
}


def add_drivers(cluster: Cluster) -> None:
    """Nodes' limits for volumes of a CSI driver, and two storage classes."""
    rng = cluster.rng
    for name in cluster.free:
        if rng.random() < 0.8:
            one = named("CSINode", name, version="storage.k8s.io/v1")
            driver: Object = {"name": DRIVER, "nodeID": name}
            if rng.random() < 0.8:
                driver["allocatable"] = {"count": rng.randint(1, 3)}
            cluster.objects.append({**one, "spec": {"drivers": [driver]}})
    if rng.random() < 0.5:
        one = named("CSIDriver", DRIVER, version="storage.k8s.io/v1")
        prevents = {"preventPodSchedulingIfMissing": rng.random() < 0.5}
        cluster.objects.append({**one, "spec": prevents})
    for name, mode in (("now", "Immediate"), ("late", "WaitForFirstConsumer")):
        one = named("StorageClass", name, version="storage.k8s.io/v1")
        cluster.objects.append({**one, "provisioner": DRIVER, "volumeBindingMode": mode})


def add_claims(cluster: Cluster, pods: list[Object]) -> None:
    """Let the pods of one role use volumes, each its own or all the same one."""
    rng = cluster.rng
    kind = rng.choice(KINDS)
    cluster.shown.add("volumes")
    if kind in ("shared", "one pod, two users"):
        name = _claim(cluster, pods[0]["metadata"]["namespace"], kind)
        for pod in pods if kind == "shared" else pods[:2]:
            _use(pod, name)
    elif kind == "other kind":
        cluster.shown.add("not modelled")
        source = rng.choice(("rbd", "ephemeral", "iscsi"))
        pods[0]["spec"]["volumes"] = [{"name": "data", source: {}}]
    else:
        for pod in pods if rng.random() < 0.6 else pods[:1]:
            _use(pod, _claim(cluster, pod["metadata"]["namespace"], kind))


def attach_foreign(cluster: Cluster, pod: Object, on: str) -> None:
    """Let a foreign pod that is on a node use a volume there, which takes one of its limit."""
    name = _claim(cluster, pod["metadata"]["namespace"], "csi")
    _use(pod, name)
    if cluster.rng.random() < 0.5:
        one = named("VolumeAttachment", f"on-{on}-{name}", version="storage.k8s.io/v1")
        source = {"persistentVolumeName": f"pv-{name}"}
        spec = {"attacher": DRIVER, "nodeName": on, "source": source}
        cluster.objects.append({**one, "spec": spec})


def _use(pod: Object, claim: str) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    source = {"persistentVolumeClaim": {"claimName": claim}}
    volumes.append({"name": f"volume-{len(volumes)}", **source})


def _claim(cluster: Cluster, namespace: str, kind: str) -> str:
    """Make a claim of this kind, with its volume; answers its name."""
    name = cluster.name("claim-")
    for feature, kinds in FEATURES.items():
        if kind in kinds:
            cluster.shown.add(feature)
    if kind == "missing":
        return name
    claim = named("PersistentVolumeClaim", name, namespace)
    modes = ["ReadWriteOncePod" if kind.startswith("one pod") else "ReadWriteMany"]
    claim["spec"] = {"accessModes": modes, "storageClassName": "late" if kind == "late" else "now"}
    cluster.objects.append(claim)
    if kind in ("unbound", "late"):
        return name
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["spec"]["volumeName"] = f"pv-{name}"
    claim["status"] = {"phase": "Lost" if kind == "lost" else "Bound"}
    cluster.objects.append(_volume(cluster, f"pv-{name}", kind))
    return name


def _volume(cluster: Cluster, name: str, kind: str) -> Object:
    rng = cluster.rng
    volume = named("PersistentVolume", name)
    volume["spec"] = {}
    if kind == "labelled":
        volume["metadata"]["labels"] = {ZONE: rng.choice(ZONES)}
    if kind in FEATURES["volumes with CSI limits"]:
        volume["spec"]["csi"] = {"driver": DRIVER, "volumeHandle": name}
    if kind in ("zonal", "local", "shared"):
        zones = rng.sample(ZONES, rng.choice((1, 2)))
        key, values = (HOST, [rng.choice([*cluster.free])]) if kind == "local" else (ZONE, zones)
        one = {"key": key, "operator": "In", "values": values}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
        volume["spec"]["nodeAffinity"] = {"required": terms}
    return volume
