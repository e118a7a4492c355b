"""Clusters on which pods may run nearly anywhere, and would rather run here or there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ...harness.controlplane.nodes import node_manifest
from . import ground, peers, rows
from .drawing import among, drawn
from .scenes import SCHEDULER, Probe, Scene, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .drawing import Draw

    Manifest = dict[str, Any]

NODES, RESIDENTS = 8, 16
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHTS = (1, 2, 5, 30, 100)
SEEDS = 10**9  # from there on, so that nothing is drawn as in other scenes


def nodes(draw: Draw, pod: Manifest) -> None:
    """Preferred node affinity."""
    drawn_on: Manifest = {"spec": {}}
    rows.node_affinity(draw, drawn_on)
    required = drawn_on["spec"]["affinity"]["nodeAffinity"][peers.REQUIRED]
    terms = [
        {"weight": draw(among(WEIGHTS)), "preference": term}
        for term in required["nodeSelectorTerms"]
    ]
    pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})[PREFERRED] = terms


def _weighted(draw: Draw, pod: Manifest, kind: str, ask: Callable[[Draw, Manifest], None]) -> None:
    drawn_on: Manifest = {"spec": {}}
    ask(draw, drawn_on)
    terms = [
        {"weight": draw(among(WEIGHTS)), "podAffinityTerm": each}
        for each in drawn_on["spec"]["affinity"][kind][peers.REQUIRED]
    ]
    pod["spec"].setdefault("affinity", {}).setdefault(kind, {})[PREFERRED] = terms


def near(draw: Draw, pod: Manifest) -> None:
    """Preferred pod affinity."""
    _weighted(draw, pod, "podAffinity", peers.near)


def apart(draw: Draw, pod: Manifest) -> None:
    """Preferred pod anti-affinity."""
    _weighted(draw, pod, "podAntiAffinity", peers.apart)


def even(draw: Draw, pod: Manifest) -> None:
    """Soft topology spread."""
    peers.even(draw, pod)
    for constraint in pod["spec"]["topologySpreadConstraints"]:
        constraint["whenUnsatisfiable"] = "ScheduleAnyway"
        constraint.pop("minDomains", None)


def required(draw: Draw, pod: Manifest) -> None:
    """Required affinity, which draws others once the pod has a node."""
    manifest: Manifest = {"spec": {}}
    peers.near(draw, manifest)
    terms = manifest["spec"]["affinity"]["podAffinity"]
    pod["spec"].setdefault("affinity", {}).setdefault("podAffinity", {}).update(terms)


WISHES: Mapping[str, Callable[[Draw, Manifest], None]] = {
    "tolerations": rows.tolerations,
    "preferred nodes": nodes,
    "preferred affinity": near,
    "preferred anti-affinity": apart,
    "soft spread": even,
}
_RUNNING = (near, apart, required)


def scene(number: int, probes: int) -> Scene:
    """The scene of this number."""
    names = [f"n{i}" for i in range(3 + number % (NODES - 2))]
    made = [drawn(_node(), _seed(number, 0, i)) for i in range(len(names))]
    for name, one in zip(names, made, strict=True):
        one["metadata"]["name"] = one["metadata"]["labels"]["kubernetes.io/hostname"] = name
        one["status"]["addresses"][0]["address"] = name
    count = 4 + number * 5 % (RESIDENTS - 3)
    residents = [drawn(_residing(tuple(names)), _seed(number, 1, i)) for i in range(count)]
    for i, pod in enumerate(residents):
        pod["metadata"]["name"] = f"resident-{i}"
    asked = [drawn(_probing(), _seed(number, 2, i)) for i in range(probes)]
    for i, probe in enumerate(asked):
        probe.pod["metadata"]["name"] = f"wishing-{number}-{i}"
    return Scene(number, tuple(made), (), tuple(residents), tuple(asked))


def _seed(number: int, part: int, i: int) -> int:
    return SEEDS + (number * 3 + part) * 1000 + i


@st.composite
def _node(draw: Draw) -> Manifest:
    effects = among(("PreferNoSchedule",) * 6 + ("NoSchedule",))
    taints = [
        {"key": key, "value": draw(among(ground.VALUES)), "effect": draw(effects)}
        for key in ground.KEYS[:2]
        if draw(among((False, False, True)))
    ]
    node = node_manifest(
        "", cpu="8", memory="16Gi", pods=110, labels=ground.labels(draw), taints=taints
    )
    node["metadata"]["annotations"] = {}  # kwok is not here
    return node


@st.composite
def _probing(draw: Draw) -> Probe:
    pod = plain(draw, SCHEDULER)
    kinds = tuple(WISHES)
    chosen = {draw(among(kinds)) for _ in range(draw(among((1, 1, 2, 2, 3))))}
    for row in WISHES:
        if row in chosen:
            WISHES[row](draw, pod)
    return Probe(pod, tuple(row for row in WISHES if row in chosen))


@st.composite
def _residing(draw: Draw, names: tuple[str, ...]) -> Manifest:
    pod = plain(draw, draw(among((SCHEDULER, "somebody-else"))))
    for ask in _RUNNING:
        if draw(among((False, False, True))):
            ask(draw, pod)
    pod["spec"]["nodeName"] = draw(among(names))
    pod["status"] = {"phase": draw(among(("Running",) * 8 + ("Succeeded", "Failed")))}
    if draw(among((False,) * 5 + (True,))):
        # Terminating for an hour, as nobody lets go of it.
        pod["spec"]["terminationGracePeriodSeconds"] = 3600
        pod["metadata"]["annotations"] = {"tests/leaves": "yes"}
    return pod
