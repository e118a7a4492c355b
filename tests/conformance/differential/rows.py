"""What a pod may ask of a node: one function per row of the rules, each adds it to a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from .drawing import among
from .ground import EFFECTS, KEYS, NOT_READY, VALUES
from .pools import (
    CLAIMS,
    DEVICE,
    GHOST,
    HOST,
    HUGE,
    OPEN,
    OVERHEAD,
    PHANTOMS,
    RACK,
    SPECIAL,
    TIER,
    ZONE,
)

if TYPE_CHECKING:
    from .drawing import Draw

    Manifest = dict[str, Any]

PASSES = (*EFFECTS[:2], "")  # effects that a toleration names
LABEL_KEYS = (ZONE, RACK, TIER, HOST, GHOST)
LABEL_VALUES = {
    ZONE: ("z1", "z2", "z9"),
    RACK: ("r1", "r2"),
    TIER: ("1", "5", "10", "007", "high", ""),
    HOST: ("n0", "n1", "n2"),
    GHOST: ("",),
}
BOUNDS = ("1", "5", "-4", "+4", "007", "9223372036854775807", "9223372036854775808", "high")
# Sums above 2^63-1 are out of contract: kube-scheduler's turn negative then, and fit anywhere.
HUGE_AMOUNT = "100Pi"
CPU = ("1", "2", "1", "500m", "1.5", "25e-1", "3", "1n", "0.0000000001", "0")
MEMORY = (
    *("1Gi", "512Mi", "2Gi", "1.5Gi", "1Gi", "512Mi", "3G"),
    *("4e9", "100m", "0", "4294967297", HUGE_AMOUNT),
)
ADDRESSES = ("", "", "", "0.0.0.0", "10.0.0.1", "10.0.0.1", "10.0.0.2", "::")
STORAGE = ("1Gi", "500Mi", "1", "0", "1025Mi")


def tolerations(draw: Draw, pod: Manifest) -> None:
    """Passes for taints, of every operator and effect."""
    keys = (*KEYS, NOT_READY, "node.kubernetes.io/unschedulable", "")
    many = draw(among((1, 1, 2, 2, 3, 3, 300)))
    operators = among(("Equal", "Exists") * 6 + (None, "Gt", "Lt"))
    found = [
        _toleration(draw(among(keys)), draw(operators), draw(among(VALUES)), draw(among(PASSES)))
        for _ in range(min(many, 3))
    ]
    pod["spec"].setdefault("tolerations", []).extend(found * max(1, many // 3))


def _toleration(key: str, operator: str | None, value: str, effect: str) -> Manifest:
    found = {"key": key, "value": "" if operator == "Exists" else value, "effect": effect}
    if key == "":
        found |= {"operator": "Exists", "value": ""}
    elif operator is not None:
        found["operator"] = operator
    return {name: text for name, text in found.items() if text}


def node_selector(draw: Draw, pod: Manifest) -> None:
    """Labels that a node must have."""
    keys = draw(st.lists(among(LABEL_KEYS[:4]), min_size=1, max_size=2, unique=True))
    chosen = {key: draw(among(LABEL_VALUES[key])) for key in keys}
    pod["spec"].setdefault("nodeSelector", {}).update(chosen)


def node_affinity(draw: Draw, pod: Manifest) -> None:
    """Required terms, and a preference that must not matter."""
    terms = [_term(draw) for _ in range(draw(among((1, 1, 2, 3))))]
    required = {"nodeSelectorTerms": terms}
    wanted: Manifest = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if draw(st.booleans()):
        preferred = {"weight": 100, "preference": _term(draw)}
        wanted["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = wanted


def _term(draw: Draw) -> Manifest:
    term: Manifest = {}
    if wanted := [_requirement(draw) for _ in range(draw(among((0, 1, 1, 2))))]:
        term["matchExpressions"] = wanted
    if draw(among((False, False, True))):
        names = draw(among(("n0", "n1", "n2", "nobody")))
        operator = draw(among(("In", "NotIn")))
        one = {"key": "metadata.name", "operator": operator, "values": [names]}
        term["matchFields"] = [one] * draw(among((1, 1, 2)))
    return term


def _requirement(draw: Draw) -> Manifest:
    key = draw(among(LABEL_KEYS))
    operator = draw(among(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    if operator in ("Gt", "Lt"):
        return {"key": TIER, "operator": operator, "values": [draw(among(BOUNDS))]}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = st.lists(among(LABEL_VALUES[key]), min_size=1, max_size=2, unique=True)
    return {"key": key, "operator": operator, "values": draw(values)}


def resources(draw: Draw, pod: Manifest) -> None:
    """Requests of containers, init containers and sidecars."""
    spec = pod["spec"]
    spec["containers"] = [
        {"name": f"c{i}", "image": "pause", "resources": _amounts(draw)}
        for i in range(draw(among((1, 1, 2))))
    ]
    inits = [
        {"name": f"i{i}", "image": "pause", "resources": _amounts(draw)}
        | ({"restartPolicy": "Always"} if draw(st.booleans()) else {})
        for i in range(draw(among((0, 0, 1, 2))))
    ]
    if inits:
        spec["initContainers"] = inits
    if (chosen := draw(among((None, None, None, OVERHEAD, SPECIAL)))) is not None:
        spec["runtimeClassName"] = chosen


def _amounts(draw: Draw) -> Manifest:
    asked: dict[str, str] = {}
    limits: dict[str, str] = {}
    if draw(st.booleans()):
        asked["cpu"] = draw(among(CPU))
    if draw(st.booleans()):
        asked["memory"] = draw(among(MEMORY))
    match draw(among(("", "", "storage", "device", "huge", "limits"))):
        case "storage":
            asked["ephemeral-storage"] = draw(among(STORAGE))
        case "device":
            asked[DEVICE] = limits[DEVICE] = draw(among(("1", "2", "0", "4e0")))
        case "huge":
            asked[HUGE] = limits[HUGE] = draw(among(("2Mi", "64Mi", "66Mi")))
            asked.setdefault("cpu", "1")
        case "limits":
            limits = {"cpu": "4", "memory": HUGE_AMOUNT}  # become requests where nothing is asked
    return {"requests": asked} | ({"limits": limits} if limits else {})


def pod_level(draw: Draw, pod: Manifest) -> None:
    """Requests of the pod as a whole."""
    resources(draw, pod)
    asked = {"cpu": draw(among(("2", "3", "4", "10", "0")))}
    if draw(st.booleans()):
        asked["memory"] = draw(among(("4Gi", "8Gi", HUGE_AMOUNT)))
    pod["spec"]["resources"] = {"requests": asked}
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
        # More than the pod may not be asked for by those in it, and seldom is tried.
        if draw(st.booleans()) or asked["cpu"] in ("0", "2"):
            container["resources"] = {"requests": {"memory": "0"}}


def host_ports(draw: Draw, pod: Manifest) -> None:
    """Ports of the node's own, by protocol and address."""
    spec = pod["spec"]
    spec.setdefault("containers", [{"name": "c0", "image": "pause"}])
    count = draw(among((1, 1, 2)))
    spec["containers"][0]["ports"] = [_port(draw) for _ in range(count)]
    match draw(among(("", "", "", "network", "sidecar", "init"))):
        case "network":
            spec["hostNetwork"] = True
            spec["containers"][0]["ports"] = [
                {"containerPort": p["containerPort"], "protocol": p["protocol"]}
                for p in spec["containers"][0]["ports"]
            ]
        case "sidecar" | "init" as kind:
            init = {"name": "i-port", "image": "pause", "ports": [_port(draw)]}
            init |= {"restartPolicy": "Always"} if kind == "sidecar" else {}
            spec.setdefault("initContainers", []).append(init)


def _port(draw: Draw) -> Manifest:
    port: Manifest = {
        "containerPort": draw(among((80, 81))),
        "protocol": draw(among(("TCP",) * 5 + ("UDP", "SCTP"))),
        "hostPort": draw(among((80, 80, 80, 81, 0))),
    }
    if (ip := draw(among(ADDRESSES))) != "":
        port["hostIP"] = ip
    return port


def volumes(draw: Draw, pod: Manifest) -> None:
    """Claims, mostly bound ones, and volumes that no node has to reach."""
    names = tuple(f"claim-{i}" for i in range(CLAIMS))
    mounted = []
    for i in range(draw(among((1, 1, 2, 3)))):
        if draw(among((False,) * 6 + (True,))):
            plain: Manifest = {"emptyDir": {}} if i % 2 else {"configMap": {"name": "any"}}
            mounted.append({"name": f"v{i}", **plain})
            continue
        phantom = draw(among((False,) * 5 + (True,)))
        name = draw(among(PHANTOMS if phantom else names))
        mounted.append({"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}})
    pod["spec"]["volumes"] = mounted


def open_volumes(draw: Draw, pod: Manifest) -> None:
    """Claims that wait for their pod, mostly one of them."""
    names = [draw(among(OPEN))[0] for _ in range(draw(among((1, 1, 1, 2))))]
    pod["spec"]["volumes"] = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
        for i, name in enumerate(dict.fromkeys(names))
    ]


def gates(_: Draw, pod: Manifest) -> None:
    """Not to be scheduled before somebody says so."""
    pod["spec"]["schedulingGates"] = [{"name": "tests/wait"}]
