"""Devices of dynamic resource allocation, and claims for them.

Each attribute that a selector reads without asking whether it exists is there: kube-scheduler
gives a pod up at an expression that fails, and then nothing can be compared.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ...harness.controlplane.pins import chosen_k8s
from .drawing import among

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .drawing import Draw

    Manifest = dict[str, Any]

GROUP = "resource.k8s.io/v1"
GPU, NIC = "gpu.example.com", "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
CLASSES: Mapping[str, tuple[str, ...]] = {
    "gpu": (f'device.driver == "{GPU}"',),
    "nic": (f'device.driver == "{NIC}"',),
    "large": (
        f'device.driver == "{GPU}"',
        f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    ),
    "any": (),
}
SELECTORS = (
    f'device.driver == "{GPU}" && device.attributes["{GPU}"].model == "a"',
    f'device.driver == "{GPU}" && device.attributes["{GPU}"].model in ["b", "c"]',
    f'device.driver != "{GPU}" || device.attributes["{GPU}"].healthy',
    f'device.driver == "{GPU}" && device.attributes["{GPU}"].index % 2 == 0',
    f'device.driver == "{GPU}" && device.attributes["{GPU}"].firmware.isLessThan(semver("2.0.0"))',
    f'device.capacity[?"{GPU}"].?memory.orValue(quantity("0")).isGreaterThan(quantity("16Gi"))',
    f'"rack" in device.attributes["{NIC}"]',
    f'device.attributes["{NIC}"].?rack.orValue("none").startsWith("r")',
    f'device.attributes["{GPU}"].?model.hasValue()',
    'device.driver.lowerAscii().split(".")[0] in ["gpu", "tpu"]',
    "true",
)
TAINTS = ("broken", "slow")
EFFECTS = ("NoSchedule", "NoExecute", "None")
TAKEN = 3  # claims in namespace red, of which some have devices
ADMIN = "admin"  # the request of a claim that is allocated with admin access
CLAIMS = "claims"  # of a drawn pod, until they are taken out


def seen() -> tuple[str, ...]:
    """The kinds that decisions look at and the API server has; 1.37 has taint rules in v1."""
    rules = ("devicetaintrules",) if chosen_k8s() == "1.37" else ()
    return ("deviceclasses", "resourceclaims", "resourceslices", *rules)


def classes() -> Iterator[Manifest]:
    """The device classes of all scenes."""
    for name, selectors in CLASSES.items():
        yield class_of(name, selectors)


def class_of(name: str, selectors: Sequence[str]) -> Manifest:
    """A device class of these selectors."""
    return _object("DeviceClass", name, {"selectors": [_cel(text) for text in selectors]})


def status(body: Manifest) -> Manifest | None:
    """The status that a drawn object is to have, which only a write of its own can set."""
    if body["kind"] != "ResourceClaim":
        return None
    found: str | None = body["metadata"].get("annotations", {}).get("tests/status")
    return None if found is None else _status(found)


def named_claim(name: str, namespace: str) -> Manifest:
    """The identity of a claim."""
    claim = _object("ResourceClaim", name, {})
    claim["metadata"]["namespace"] = namespace
    return claim


def _status(words: str) -> Manifest:
    node, request, *devices = words.split()
    results = []
    for device in devices:
        driver, pool, name = device.split("/")
        result = {"request": request, "driver": driver, "pool": pool, "device": name}
        results.append({**result, **({"adminAccess": True} if request == ADMIN else {})})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [term]},
        }
    }


def taken_out(pod: Manifest) -> list[Manifest]:
    """The claims that a drawn pod brings along, now with names of their own."""
    made = []
    for i, claim in enumerate(pod.pop(CLAIMS, ())):
        name = f"{pod['metadata']['name']}-{i}"
        claim["metadata"] = {"name": name, "namespace": pod["metadata"]["namespace"]}
        pod["spec"]["resourceClaims"].append({"name": f"c{i}", "resourceClaimName": name})
        made.append(claim)
    return made


@st.composite
def inventory(draw: Draw, names: tuple[str, ...]) -> list[Manifest]:
    """The slices of nodes, taint rules, and claims that have devices already."""
    made: list[Manifest] = []
    here: list[tuple[str, str]] = []
    for node in names:
        for driver in (GPU, NIC):
            count = draw(among((0, 1, 2, 3, 4) if driver == GPU else (0, 0, 1, 2)))
            pieces = _slices(draw, node, driver, count)
            made += pieces
            for piece in pieces:
                pool = piece["spec"]["pool"]["name"]
                here += [
                    (node, f"{driver}/{pool}/{device['name']}")
                    for device in piece["spec"].get("devices", ())
                ]
    if draw(among((False, True, True))) and "devicetaintrules" in seen():
        made.append(_rule(draw, names))
    for i in range(TAKEN):
        about: Manifest = {}
        name = "devices"
        if here and draw(st.booleans()):
            at = draw(among(tuple(range(len(here)))))
            if draw(st.booleans()):
                name, (node, device) = ADMIN, here[at]
            else:
                node, device = here.pop(at)
            about = {"tests/status": f"{node} {name} {device}"}
        asked = _for_admin(draw, name) if name == ADMIN else _exactly(draw, name)
        made.append(_claim(f"taken-{i}", [asked], about))
    return made


def _slices(draw: Draw, node: str, driver: str, count: int) -> list[Manifest]:
    """The pool of a driver on a node, in one slice or two, now and then incomplete or outdated."""
    devices = [_device(draw, driver, i) for i in range(count)]
    cut = draw(among((0, 0, 0, 1)))
    parts = [devices[:cut], devices[cut:]] if cut else [devices]
    state = draw(among(("",) * 7 + ("incomplete", "outdated", "outdated")))
    count = len(parts) + (state == "incomplete")
    pool = {"name": node, "generation": draw(among((1, 1, 1, 2))), "resourceSliceCount": count}
    made = [_slice(pool, driver, i, part) for i, part in enumerate(parts)]
    if driver == GPU and draw(among((False, False, False, True))):
        made.append(_shared(draw, pool, driver, devices))
        pool["resourceSliceCount"] += 1
    if state == "outdated":
        newer = {**pool, "generation": pool["generation"] + 1, "resourceSliceCount": 1}
        made.append(_slice(newer, driver, 9, [_device(draw, driver, 9)]))
    return made


def _shared(draw: Draw, pool: Manifest, driver: str, devices: Sequence[Manifest]) -> Manifest:
    """Counters of a pool, which some devices from now on consume."""
    for device in devices:
        if draw(among((True,) * 7 + (False,))):
            uses = {"memory": {"value": draw(among(("10Gi", "20Gi", "40Gi", "40Gi")))}}
            if draw(st.booleans()):
                uses["cores"] = {"value": draw(among(("1", "2", "3")))}
            device["consumesCounters"] = [{"counterSet": "card", "counters": uses}]
    counters = {"memory": {"value": "40Gi"}, "cores": {"value": draw(among(("2", "4", "7")))}}
    made = _slice(pool, driver, 5, ())
    del made["spec"]["devices"]
    made["spec"]["sharedCounters"] = [{"name": "card", "counters": counters}]
    return made


def _slice(pool: Manifest, driver: str, i: int, devices: Sequence[Manifest]) -> Manifest:
    node = pool["name"]
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": list(devices)}
    return _object("ResourceSlice", f"{node}-{driver}-{i}", spec)


def _device(draw: Draw, driver: str, i: int) -> Manifest:
    device: Manifest = {"name": f"{driver[:3]}-{i}"}
    if driver == GPU:
        device["attributes"] = {
            "model": {"string": draw(among(("a", "a", "b", "c")))},
            "healthy": {"bool": draw(among((True, True, False)))},
            "index": {"int": i},
            "firmware": {"version": draw(among(("1.9.0", "2.0.0-rc.1", "2.0.0", "10.0.1")))},
        }
        device["capacity"] = {"memory": {"value": draw(among(("16Gi", "40Gi", "80Gi", "40e9")))}}
    elif draw(st.booleans()):
        device["attributes"] = {"rack": {"string": draw(among(("r1", "x1")))}}
    if draw(among((True,) * 5 + (False,))):
        device.setdefault("attributes", {})[ROOT] = _root(draw)
    if draw(among((False, False, False, True))):
        device["taints"] = [_taint(draw)]
    return device


def _root(draw: Draw) -> Manifest:
    """Now and then of another type than at other devices."""
    root: str = draw(among(("0", "0", "1", "number")))
    return {"int": 0} if root == "number" else {"string": root}


def _taint(draw: Draw) -> Manifest:
    value = draw(among(("", "yes")))
    taint = {"key": draw(among(TAINTS)), "effect": draw(among(EFFECTS))}
    return {**taint, **({"value": value} if value else {})}


def _rule(draw: Draw, names: tuple[str, ...]) -> Manifest:
    chosen: Manifest = {}
    if draw(st.booleans()):
        chosen["driver"] = draw(among((NIC, GPU, GPU)))
    if draw(among((False, False, True))):
        chosen["pool"] = draw(among(names))
    if not chosen or draw(among((False, False, True))):
        chosen["device"] = draw(among(("gpu-0", "gpu-1", "nic-0")))
    taint = {**_taint(draw), "effect": draw(among(("None", "NoSchedule", "NoExecute")))}
    return _object("DeviceTaintRule", "rule", {"deviceSelector": chosen, "taint": taint})


def claims(draw: Draw, pod: Manifest) -> None:
    """Claims of the pod's own, and now and then one that may have its devices already."""
    pod["spec"]["resourceClaims"] = []
    if draw(among((False,) * 6 + (True,))):
        pod["metadata"]["namespace"] = "red"
        name = f"taken-{draw(among(tuple(range(TAKEN))))}"
        pod["spec"]["resourceClaims"].append({"name": "taken", "resourceClaimName": name})
    count = draw(among((1, 1, 1, 2)))
    if draw(among((False,) * 6 + (True,))):
        pod["metadata"]["namespace"] = "red"
        pod[CLAIMS] = [
            _claim("", [_for_admin(draw, f"r{i}") for i in range(draw(among((1, 1, 2))))])
            for _ in range(count)
        ]
    else:
        pod[CLAIMS] = [_open_claim(draw) for _ in range(count)]


def alternatives(draw: Draw, pod: Manifest) -> None:
    """Claims with alternatives for one or more devices."""
    pod["spec"]["resourceClaims"] = []
    requests = [
        {
            "name": f"r{i}",
            "firstAvailable": [
                {"name": f"p{j}", **_kind(draw), "count": draw(among((1, 1, 2, 2, 3)))}
                for j in range(draw(among((2, 2, 3))))
            ],
        }
        for i in range(draw(among((1, 1, 2))))
    ]
    if draw(st.booleans()):
        requests.append(_exactly(draw, "more"))
    pod[CLAIMS] = [_claim("", requests)]


def _open_claim(draw: Draw) -> Manifest:
    if draw(among((True, False, False))):
        return _matching_claim(draw)
    requests = [_request(draw, f"r{i}") for i in range(draw(among((1, 1, 2))))]
    claim = _claim("", requests)
    if draw(among((False,) * 5 + (True,))):
        claim["spec"]["devices"]["constraints"] = [_constraint(draw, requests)]
    return claim


def _matching_claim(draw: Draw) -> Manifest:
    """Devices that most nodes have, if only some of them match."""
    requests = []
    for i, name in enumerate(draw(among((("gpu",), ("any",), ("gpu", "nic"), ("gpu", "any"))))):
        kind: Manifest = {"deviceClassName": name, "count": draw(among((1, 1, 2, 2, 3)))}
        if draw(among((False, False, True))):
            kind["selectors"] = [_cel(draw(among(SELECTORS[2:4])))]
        kind["tolerations"] = [{"operator": "Exists"}]
        requests.append(_of_kind(draw, f"r{i}", kind))
    claim = _claim("", requests)
    count = draw(among((1, 1, 1, 2)))
    claim["spec"]["devices"]["constraints"] = [_constraint(draw, requests) for _ in range(count)]
    return claim


def _of_kind(draw: Draw, name: str, kind: Manifest) -> Manifest:
    """Mostly a number of devices of a kind, now and then all, or one of it or of another kind."""
    match draw(among(("count", "all", "first", "first", *["count"] * 6))):
        case "first":
            parts = [{**kind, "name": "p0"}, {**_kind(draw), "name": "p1"}]
            for part in parts:
                part.pop("count", None)
            return {"name": name, "firstAvailable": parts}
        case "all":
            del kind["count"]
            return {"name": name, "exactly": {**kind, "allocationMode": "All"}}
        case _:
            return {"name": name, "exactly": kind}


def _constraint(draw: Draw, requests: Sequence[Manifest]) -> Manifest:
    """One value of an attribute for some requests, or for all of a claim; or different values."""
    name = draw(among((f"{GPU}/model", f"{GPU}/firmware", *[ROOT] * 5)))
    how = draw(among(("matchAttribute", "matchAttribute", "distinctAttribute")))
    chosen = [request["name"] for request in requests if draw(among((True, True, False)))]
    if chosen and "firstAvailable" in requests[-1] and draw(among((False, True))):
        chosen[-1:] = [f"{requests[-1]['name']}/p0"]
    return {how: name, **({"requests": sorted({*chosen})} if chosen else {})}


def _request(draw: Draw, name: str) -> Manifest:
    """Mostly a number of devices, now and then all of a node or the first of two kinds."""
    match draw(among(("count", "all", "first", *["count"] * 4))):
        case "first":
            parts = [{"name": f"p{i}", **_kind(draw)} for i in range(draw(among((2, 2, 3))))]
            return {"name": name, "firstAvailable": parts}
        case "all":
            return {"name": name, "exactly": {**_kind(draw), "allocationMode": "All"}}
        case _:
            return _exactly(draw, name)


def _exactly(draw: Draw, name: str) -> Manifest:
    return {"name": name, "exactly": {**_kind(draw), "count": draw(among((1, 1, 2, 3)))}}


def _for_admin(draw: Draw, name: str) -> Manifest:
    """For devices that others may have."""
    asked = _exactly(draw, name)
    if draw(st.booleans()):
        del asked["exactly"]["count"]
        asked["exactly"]["allocationMode"] = "All"
    asked["exactly"]["adminAccess"] = True
    return asked


def _kind(draw: Draw) -> Manifest:
    """Devices of one class: by selectors, and with tolerations."""
    kind: Manifest = {"deviceClassName": draw(among(("gpu", "gpu", "nic", "large", "any")))}
    chosen = [draw(among(SELECTORS)) for _ in range(draw(among((0, 1, 1, 2))))]
    if chosen:
        kind["selectors"] = [_cel(text) for text in chosen]
    if draw(among((False, False, True))):
        kind["tolerations"] = [_toleration(draw)]
    return kind


def _toleration(draw: Draw) -> Manifest:
    toleration: Manifest = {}
    if draw(among((True, True, True, False))):
        toleration["key"] = draw(among(TAINTS))
    if "key" not in toleration or draw(st.booleans()):
        toleration["operator"] = "Exists"
    else:
        toleration |= {"operator": "Equal", "value": draw(among(("", "yes")))}
    if (effect := draw(among(("", "", *EFFECTS[:2])))) != "":
        toleration["effect"] = effect
    return toleration


def _claim(
    name: str, requests: Sequence[Manifest], annotations: Manifest | None = None
) -> Manifest:
    spec = {"devices": {"requests": list(requests)}}
    claim = _object("ResourceClaim", name, spec)
    claim["metadata"] |= {"namespace": "red", "annotations": copy.copy(annotations or {})}
    return claim


def _cel(expression: str) -> Manifest:
    return {"cel": {"expression": expression}}


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}
