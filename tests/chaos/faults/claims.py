"""The scene with claims: of devices, of partitions of a device, and of volumes.

What runs for ever fits together whoever starts first; the rest is too large, or comes later, when
others have ended or more is offered. So every order of events has one end. Meanwhile devices go
away and others appear, members are lost, and the provisioner fails.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ...harness import provisioner
from ...harness.kubelet.devices import DeviceObjects
from ...harness.rig import members, pod, pod_group
from . import supply
from .supply import RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from .rest import Rest

    Condition = Callable[[Rest], bool]

RUN_SECONDS = 0.5
# What an unbroken run starts; there is never room for ``huge`` and ``quarters``.
STARTED: Mapping[str, int] = {
    "brisk": 2,  # finishes by itself, and makes room for ``tail``
    "tensor": 2,
    "tail": 2,
    "huge": 0,
    "halves": 2,  # of a card; loses a member and is given another
    "quarters": 0,
    "extend": 2,  # requests an extended resource
    "beyond": 1,
    "share": 2,  # one claim for both
    "drift": 2,  # devices of it go away, before or after its start
    "locals": 2,  # volumes that are there
    "both": 2,  # volumes that are made, and devices
    "pair": 2,  # on two nodes, with one claim of a volume for both
    "doomed": 0,  # volumes that nobody makes; it loses a member, and there is no other
}
FIRST: Mapping[str, int] = {
    name: number
    for name, number in {**STARTED, "huge": 2, "doomed": 2}.items()
    if name not in ("tail", "quarters")
}  # pods when the operator starts
POOLS: Mapping[str, str] = {
    **dict.fromkeys(("brisk", "tensor", "tail", "huge"), "dra"),
    **dict.fromkeys(("halves", "quarters"), "card"),
    **dict.fromkeys(("extend", "beyond"), "ext"),
    "locals": "local",
    "doomed": "stuck",
}  # others have one of their own name
TEMPLATES: Mapping[str, tuple[int, str]] = {
    "one": (1, ""),
    "four": (4, ""),
    "half": (1, "half"),
    "quarter": (1, "quarter"),
}
TEMPLATE_OF: Mapping[str, str] = {
    **dict.fromkeys(("brisk", "tensor", "tail", "drift", "both", "doomed"), "one"),
    "huge": "four",
    "halves": "half",
    "quarters": "quarter",
}
CLASS_OF: Mapping[str, str] = {
    "locals": supply.LOCAL,
    "both": supply.DISK,
    "doomed": supply.STUCK,
}
SHARED = "pair-data"  # the claim of all members of ``pair``
# What stands in the end: devices and the pods that they are reserved for, volumes, by gang.
HELD: Mapping[str, str] = {
    "devices of tensor": "2 for 2",
    "devices of tail": "2 for 2",
    "devices of halves": "2 for 2",
    "devices of extend": "2 for 2",
    "devices of beyond": "2 for 1",
    "devices of share": "2 for 2",
    "devices of drift": "2 for 2",
    "devices of both": "2 for 2",
    "volumes of locals": "2 bound",
    "volumes of both": "2 bound",
    "volumes of pair": "1 bound",
    "volumes of doomed": "2 without",
    "volumes for claims": "5",
}
_WAITS = ("NotEnoughRoom", "NoNodeFits")


def objects(namespace: str) -> Iterator[dict[str, Any]]:
    """All that waits when the operator starts, with what it names before it."""
    for name, (count, size) in TEMPLATES.items():
        yield supply.template(name, namespace, count, size)
    yield supply.claim("share-all", namespace, 2)
    yield supply.local_volume(namespace, 0)
    yield provisioner.claim(SHARED, supply.NETWORK, namespace=namespace)
    for name, storage_class in CLASS_OF.items():
        for number in range(FIRST[name]):
            yield provisioner.claim(f"{name}-{number}", storage_class, namespace=namespace)
    for name in FIRST:
        yield pod_group(name, FIRST[name], namespace=namespace)
    for name, number in FIRST.items():
        for one in members(name, number, **_about(namespace, name)):
            yield _mounting(one, name)


def first_claims() -> int:
    """How many claims of devices there are when kube-controller-manager has made them."""
    return 1 + sum(number for name, number in FIRST.items() if name in TEMPLATE_OF)


def _about(namespace: str, gang: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeSelector": {"pool": POOLS.get(gang, gang)}}
    if gang in TEMPLATE_OF:
        one = {"name": "gpus", "resourceClaimTemplateName": TEMPLATE_OF[gang]}
        spec["resourceClaims"] = [one]
    elif gang == "share":
        spec["resourceClaims"] = [{"name": "gpus", "resourceClaimName": "share-all"}]
    cpu = 5 if gang == "pair" else 1  # of the 8 that a node has
    about: dict[str, Any] = {"namespace": namespace, "spec": spec, "cpu": cpu}
    if gang in ("extend", "beyond"):
        about[RESOURCE] = 1 if gang == "extend" else 2
    if gang == "brisk":
        about["run_seconds"] = RUN_SECONDS
    return about


def _mounting(one: dict[str, Any], gang: str) -> dict[str, Any]:
    """The pod with its volume, whose claim has its name or is for the whole gang."""
    if gang not in (*CLASS_OF, "pair"):
        return one
    source = {"claimName": SHARED if gang == "pair" else one["metadata"]["name"]}
    volumes = [{"name": "data", "persistentVolumeClaim": source}]
    return {**one, "spec": {**one["spec"], "volumes": volumes}}


def faults(request: Callable[..., Any]) -> list[str]:
    """What kubelets and their plugins find wrong in the end; devices of ``drift`` have gone."""
    return DeviceObjects.read(request).faults(withdrawn=[n for n in supply.NODES if "drift" in n])


def addresses(namespace: str) -> dict[str, str]:
    """Where objects of the kinds of this scene are created, and where they are left behind."""
    core, devices = (
        f"/api/v1/namespaces/{namespace}",
        f"/apis/{supply.GROUP}/namespaces/{namespace}",
    )
    return {
        "PersistentVolumeClaim": f"{core}/persistentvolumeclaims",
        "PersistentVolume": provisioner.VOLUMES,
        "ResourceClaim": f"{devices}/resourceclaims",
        "ResourceClaimTemplate": f"{devices}/resourceclaimtemplates",
    }


def remove(request: Callable[..., Any], namespace: str) -> None:
    """Delete the claims of a run; controllers let them go once its pods are gone."""
    for kind in ("PersistentVolumeClaim", "ResourceClaim"):
        request("DELETE", addresses(namespace)[kind])


class Story:
    """What others do: gangs come, members are lost, devices change, volumes are made or not."""

    def __init__(self, request: Callable[..., Any], namespace: str) -> None:
        self._request = request
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._ours = f"/apis/tutti.dev/v1alpha1/namespaces/{namespace}"
        self._provisioner = supply.Provisioner(request, namespace)
        self._steps: list[tuple[Condition, Callable[[], None]]] = [
            (_are_whole("brisk", "tensor"), lambda: self._come("tail", 2)),
            (_are_whole("halves"), lambda: self._come("quarters", 3)),
            (_waits("quarters"), lambda: self._replace("halves-1", "halves-2")),
            (
                lambda rest: _are_whole("extend")(rest) and _waits("beyond")(rest),
                lambda: supply.republish(request, "ext-0", range(3)),
            ),
            (_waits("locals"), self._offer_a_volume),
            (
                lambda rest: bool(rest.started["drift"] or self._promised("drift")),
                self._take_devices_away,
            ),
            (lambda _: "doomed-1" in self._provisioner.selected(), lambda: self._end("doomed-1")),
        ]

    def fail_at(self, answers: Collection[int]) -> None:
        """Let the provisioner fail at these of its answers, counted from 0."""
        self._provisioner.fail_at(answers)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return not self._steps and self._provisioner.has_failed

    def retry(self, rest: Rest) -> None:
        """Do what is due, each thing once."""
        for step in [step for step in self._steps if step[0](rest)]:
            self._steps.remove(step)
            step[1]()
        self._provisioner.answer()

    def _promised(self, gang: str) -> list[str]:
        """The nodes that the Reservation of a gang names."""
        return [
            entry["node"]
            for each in self._request("GET", f"{self._ours}/reservations")["items"]
            if each["spec"]["podGroup"]["name"] == gang
            for entry in each["spec"].get("placement", ())
        ]

    def _take_devices_away(self) -> None:
        """All devices of one node go, and others come in their place."""
        node = next(iter(self._promised("drift")), "drift-0")
        supply.republish(self._request, node, range(2, 4))

    def _offer_a_volume(self) -> None:
        self._request("POST", provisioner.VOLUMES, supply.local_volume(self._namespace, 1))

    def _come(self, gang: str, number: int) -> None:
        group = pod_group(gang, number, namespace=self._namespace)
        self._request("POST", f"{self._ours}/podgroups", group)
        for one in members(gang, number, **_about(self._namespace, gang)):
            self._request("POST", self._pods, one)

    def _replace(self, name: str, by: str) -> None:
        self._end(name)
        gang = by.partition("-")[0]
        self._request("POST", self._pods, pod(by, gang, **_about(self._namespace, gang)))

    def _end(self, name: str) -> None:
        self._request("DELETE", f"{self._pods}/{name}?gracePeriodSeconds=0")


def _are_whole(*gangs: str) -> Condition:
    return lambda rest: all(rest.started[gang] == STARTED[gang] for gang in gangs)


def _waits(gang: str) -> Condition:
    return lambda rest: any(reason in rest.said.get(gang, "") for reason in _WAITS)


def said(request: Callable[..., Any], namespace: str) -> dict[str, str]:
    """What claims have: devices and for how many pods, volumes, and how many are awaited."""
    where = addresses(namespace)
    devices, users = Counter[str](), Counter[str]()
    for item in request("GET", where["ResourceClaim"])["items"]:
        gang, status = item["metadata"]["name"].partition("-")[0], item.get("status", {})
        results = status.get("allocation", {}).get("devices", {}).get("results", ())
        devices[gang] += len(results)
        users[gang] += len(status.get("reservedFor", ()))
    lines = {
        f"devices of {gang}": f"{devices[gang]} for {users[gang]}"
        for gang in {*devices, *users}
        if devices[gang] or users[gang]
    }
    states: dict[str, Counter[str]] = {}
    for item in request("GET", where["PersistentVolumeClaim"])["items"]:
        gang = item["metadata"]["name"].partition("-")[0]
        awaits = provisioner.SELECTED in item["metadata"].get("annotations", {})
        state = "awaited" if awaits else "without"
        state = "bound" if item["spec"].get("volumeName") else state
        states.setdefault(gang, Counter())[state] += 1
    lines |= {
        f"volumes of {gang}": ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
        for gang, counts in states.items()
    }
    volumes = request("GET", provisioner.VOLUMES)["items"]
    lines["volumes for claims"] = str(sum("claimRef" in one["spec"] for one in volumes))
    return lines
