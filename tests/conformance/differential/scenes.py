"""A generated cluster and the pods that are asked about on it, by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from . import devices, extended, ground, peers, rows
from .drawing import among, drawn
from .pools import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .drawing import Draw

    Manifest = dict[str, Any]

NODES, RESIDENTS = 8, 16
SCHEDULER = "differential"  # the oracle's name, and the pods' that are asked about
CLAIMING_SEEDS = 9_000_000_000  # far from those of the other probes
CLAIMING = 10  # probes with claims, beside the others
EXTENDED = 3  # probes that request extended resources of device classes, beside these
ALTERNATIVES = 2  # probes with alternatives for several devices, beside these
PARTS, MOST = 4, 1000  # of a scene, and examples of each: every one has a seed of its own

ROWS: Mapping[str, Callable[[Draw, dict[str, Any]], None]] = {
    "tolerations": rows.tolerations,
    "node selector": rows.node_selector,
    "node affinity": rows.node_affinity,
    "resources": rows.resources,
    "pod-level resources": rows.pod_level,
    "host ports": rows.host_ports,
    "affinity": peers.near,
    "anti-affinity": peers.apart,
    "spread": peers.even,
    "volumes": rows.volumes,
    "gates": rows.gates,
}
_PENDING = tuple(row for row in ROWS if row != "gates") * 4 + ("gates",)
_JOINT = (
    *("affinity", "anti-affinity", "spread") * 3,
    *("resources", "host ports", "tolerations", "volumes", "volumes", "volumes"),
)
# Rows of claims have probes of their own, so that the draws of the others stay as they are.
_CLAIMS: Mapping[str, Callable[[Draw, dict[str, Any]], None]] = {
    "open volumes": rows.open_volumes,
    "devices": devices.claims,
}
_BESIDE_CLAIMS = ("resources", "tolerations", "node selector", *[None] * 5)
_RUNNING = (
    *("resources", "pod-level resources", "host ports", "host ports", "host ports"),
    *("anti-affinity", "volumes", "volumes", "resize"),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A pod that is asked about, and the rows of the rules that it is about."""

    pod: Manifest
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster and its probes, as manifests; a resident's status is what becomes of it."""

    number: int
    nodes: tuple[Manifest, ...]
    beside: tuple[Manifest, ...]  # CSINodes, VolumeAttachments, devices and claims for them
    residents: tuple[Manifest, ...]
    probes: tuple[Probe, ...]


def scene(number: int, probes: int) -> Scene:
    """The scene of this number."""
    names = [f"n{i}" for i in range(2 + number % (NODES - 1))]
    nodes = [drawn(ground.nodes(), _seed(number, 0, i)) for i in range(len(names))]
    for name, node in zip(names, nodes, strict=True):
        node["metadata"]["name"] = node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        node["status"]["addresses"][0]["address"] = name
    drivers = [drawn(ground.drivers(), _seed(number, 1, i)) for i in range(len(names))]
    beside = [
        ground.csi_node(name, each)
        for name, each in zip(names, drivers, strict=True)
        if each is not None
    ]
    seeds = [_seed(number, 1, NODES + i) for i in range(len(names))]
    beside += [
        ground.attachment(name, *each)
        for name, seed in zip(names, seeds, strict=True)
        if (each := drawn(ground.attached(), seed)) is not None
    ]
    count = 4 + number * 5 % (RESIDENTS - 3)
    residents = [drawn(residing(tuple(names)), _seed(number, 2, i)) for i in range(count)]
    asked = [drawn(probing(), _seed(number, 3, i)) for i in range(probes)]
    seeds = [_claiming_seed(number, i) for i in range(CLAIMING if probes else 0)]
    asked += [drawn(claiming(), seed) for seed in seeds]
    seeds = [_claiming_seed(number, CLAIMING + 1 + i) for i in range(EXTENDED if probes else 0)]
    asked += [drawn(requesting(), seed) for seed in seeds]
    first = CLAIMING + 1 + EXTENDED
    seeds = [_claiming_seed(number, first + i) for i in range(ALTERNATIVES if probes else 0)]
    asked += [drawn(choosing(), seed) for seed in seeds]
    _keep_ports(residents)
    for i, pod in enumerate(residents):
        pod["metadata"]["name"] = f"resident-{i}"
    for i, probe in enumerate(asked):
        probe.pod["metadata"]["name"] = f"probe-{number}-{i}"
    beside += drawn(devices.inventory(tuple(names)), _claiming_seed(number, CLAIMING))
    beside += [claim for probe in asked for claim in devices.taken_out(probe.pod)]
    return Scene(number, tuple(nodes), tuple(beside), tuple(residents), tuple(asked))


def _keep_ports(residents: Sequence[Manifest]) -> None:
    """Let those run whose end would take a port from a neighbour.

    kube-scheduler keeps the ports of a node as a set (``HostPortInfo``): of two pods pinned to one
    port, which no kubelet admits, the first that ends frees it for both, until a restart.
    """
    for resident in residents:
        others = (
            other
            for other in residents
            if other is not resident and other["spec"]["nodeName"] == resident["spec"]["nodeName"]
        )
        if not _ports(resident).isdisjoint(port for other in others for port in _ports(other)):
            resident["status"]["phase"] = "Running"


def _ports(pod: Manifest) -> set[tuple[str, int]]:
    spec = pod["spec"]
    containers = (*spec["containers"], *spec.get("initContainers", ()))
    name = "containerPort" if spec.get("hostNetwork") else "hostPort"
    ports = (port for container in containers for port in container.get("ports", ()))
    return {(port["protocol"], port[name]) for port in ports if port.get(name)}


def _seed(number: int, part: int, i: int) -> int:
    return (number * PARTS + part) * MOST + i


def _claiming_seed(number: int, i: int) -> int:
    return CLAIMING_SEEDS + number * MOST + i


def plain(draw: Draw, scheduler: str) -> Manifest:
    """A pod that asks for nothing, in some namespace, with labels."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": draw(among((*NAMESPACES, "red", "red"))),
            "labels": peers.labels(draw),
        },
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": "c0", "image": "pause"}],
        },
    }


@st.composite
def probing(draw: Draw) -> Probe:
    """A pod that waits, with up to three rows."""
    return _asking(draw, [draw(among(_PENDING)) for _ in range(draw(among((1, 1, 1, 2, 2, 3))))])


@st.composite
def claiming(draw: Draw) -> Probe:
    """A pod that waits and names claims, for volumes or devices."""
    # The example of a number never begins with the first of these.
    kind = draw(among(("devices", "open volumes", "devices", "devices")))
    pod = plain(draw, SCHEDULER)
    _CLAIMS[kind](draw, pod)
    if (other := draw(among(_BESIDE_CLAIMS))) is not None:
        ROWS[other](draw, pod)
    return Probe(pod, (kind,) if other is None else (other, kind))


@st.composite
def choosing(draw: Draw) -> Probe:
    """A pod that waits and names claims with alternatives for several devices."""
    # The example of a number never begins with the first of these.
    other = draw(among((None, *_BESIDE_CLAIMS)))
    pod = plain(draw, SCHEDULER)
    devices.alternatives(draw, pod)
    if other is not None:
        ROWS[other](draw, pod)
    return Probe(pod, ("devices",) if other is None else (other, "devices"))


@st.composite
def requesting(draw: Draw) -> Probe:
    """A pod that waits and requests extended resources that device classes back."""
    # The example of a number never begins with the first of these.
    other = draw(among((None, *_BESIDE_CLAIMS)))
    pod = plain(draw, SCHEDULER)
    if other is not None:
        ROWS[other](draw, pod)
    extended.requests(draw, pod)
    return Probe(pod, ("extended resources",) if other is None else (other, "extended resources"))


@st.composite
def joining(draw: Draw) -> Probe:
    """A pod that waits with others like it."""
    return _asking(draw, [draw(among(_JOINT)) for _ in range(draw(among((1, 1, 2))))])


def _asking(draw: Draw, chosen: Sequence[str]) -> Probe:
    pod = plain(draw, SCHEDULER)
    for row in ROWS:
        if row in chosen:
            ROWS[row](draw, pod)
    return Probe(pod, tuple(row for row in ROWS if row in chosen))


@st.composite
def residing(draw: Draw, names: tuple[str, ...]) -> Manifest:
    """A pod that has a node, of the same scheduler or another."""
    # The example of a number never begins with the first of these.
    pod = plain(draw, draw(among((SCHEDULER, SCHEDULER, "somebody-else"))))
    chosen = [draw(among(_RUNNING)) for _ in range(draw(among((0, 1, 1, 2))))]
    for row in ROWS:
        if row in chosen:
            ROWS[row](draw, pod)
    pod["spec"]["nodeName"] = draw(among(names))
    status: Manifest = {"phase": draw(among(("Running",) * 8 + ("Succeeded", "Failed")))}
    if "resize" in chosen:
        status |= _resize(draw, pod)
    pod["status"] = status
    if draw(among((False,) * 7 + (True,))):
        # Terminating for an hour, as nobody lets go of it.
        pod["spec"]["terminationGracePeriodSeconds"] = 3600
        pod["metadata"]["annotations"] = {"tests/leaves": "yes"}
    return pod


def _resize(draw: Draw, pod: Manifest) -> Manifest:
    """What the node has allocated to a pod, more or less than what its spec asks for now."""
    amounts = among(("500m", "1", "2", "3"))
    statuses = []
    for container in pod["spec"]["containers"]:
        container.setdefault("resources", {}).setdefault("requests", {}).setdefault("cpu", "1")
        about: Manifest = {
            "name": container["name"],
            "image": "pause",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
        }
        if draw(st.booleans()):
            about["allocatedResources"] = {"cpu": draw(amounts)}
        if draw(st.booleans()):
            about["resources"] = {"requests": {"cpu": draw(amounts)}}
        statuses.append(about)
    manifest: Manifest = {"containerStatuses": statuses}
    if (reason := draw(among((None, "Infeasible", "Deferred")))) is not None:
        line = {"type": "PodResizePending", "status": "True", "reason": reason}
        manifest["conditions"] = [line]
    return manifest
