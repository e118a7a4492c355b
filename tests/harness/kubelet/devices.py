"""What a kubelet and its DRA plugins check of the claims of pods that have a node.

A plugin prepares the devices that the allocation of a claim names. It knows the claim and the
slices that it has published, so it finds devices that do not exist, that are in two claims or that
no request asks for, and configuration that is not that of the classes and of the claim.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..judge.device_selectors import selects
from ..judge.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    Body = Mapping[str, Any]

API = "/apis/resource.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"
ENDED = ("Succeeded", "Failed")


class _Device(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class DeviceObjects:
    """The objects of a cluster that kubelets and their plugins read."""

    pods: Sequence[Body]
    claims: Sequence[Body]
    slices: Sequence[Body]
    classes: Sequence[Body]
    nodes: Sequence[Body]

    @classmethod
    def read(cls, request: Callable[[str, str], Body]) -> DeviceObjects:
        """Read them from an API server: pods before claims, which have their devices earlier."""
        paths = (
            *("/api/v1/pods", f"{API}/resourceclaims", f"{API}/resourceslices"),
            *(f"{API}/deviceclasses", "/api/v1/nodes"),
        )
        return cls(*(request("GET", path)["items"] for path in paths))

    def faults(self, withdrawn: Collection[str] = ()) -> list[str]:
        """What is wrong with the claims of pods that have a node; empty if nothing is.

        Drivers have withdrawn devices from the ``withdrawn`` pools, perhaps after they were given.
        """
        return [*self._faults_of_pods(withdrawn), *self._faults_of_devices()]

    def prepared(self) -> list[Body]:
        """The claims of pods that have a node and have not ended."""
        uids = {claim["metadata"]["uid"] for _, claim in self._used() if claim is not None}
        return [claim for claim in self.claims if claim["metadata"]["uid"] in uids]

    def _used(self) -> Iterator[tuple[Body, Body | None]]:
        """The pods with each of their claims; None is a claim that does not exist."""
        known = {_key(claim): claim for claim in self.claims}
        for pod in self.pods:
            is_over = pod["status"].get("phase") in ENDED or "deletionTimestamp" in pod["metadata"]
            if "nodeName" in pod["spec"] and not is_over:
                for name in _claims_of(pod):
                    yield pod, known.get((pod["metadata"]["namespace"], name))

    def _faults_of_pods(self, withdrawn: Collection[str]) -> Iterator[str]:
        nodes = {node["metadata"]["name"]: node for node in self.nodes}
        for pod, claim in self._used():
            title = f"pod {_title(pod)}"
            if claim is None:
                yield f"{title} has a claim that does not exist"
                continue
            title += f" with claim {_title(claim)}"
            status = claim.get("status") or {}
            if not status.get("allocation"):
                yield f"{title} has no devices"
                continue
            own = {"resource": "pods", "name": _name(pod), "uid": pod["metadata"]["uid"]}
            if own not in status.get("reservedFor", []):
                yield f"{title} is not in reservedFor"
            node = nodes[pod["spec"]["nodeName"]]
            if not _selects(status["allocation"].get("nodeSelector"), node):
                yield f"{title} is on node {_name(node)}, which the allocation does not select"
            for device in _results(claim):
                if device.pool in withdrawn and self._listed(device) is None:
                    continue
                if (where := self._node_of(device)) != _name(node):
                    yield f"{title} is on node {_name(node)}, and {device} is {where}"

    def _node_of(self, device: _Device) -> str:
        """The node of a device in the newest generation of its pool, or why it has none."""
        newest = self._newest(device)
        if not newest:
            return "of a pool without slices"
        if len(newest) != newest[0]["pool"]["resourceSliceCount"]:
            return "of a pool that is not complete"
        for spec in newest:
            if device.name in {each["name"] for each in spec.get("devices") or ()}:
                return str(spec.get("nodeName", "of several nodes"))
        return "not in the newest generation of its pool"

    def _listed(self, device: _Device) -> Body | None:
        """A device as the newest generation of its pool lists it; None if it does not."""
        for spec in self._newest(device):
            for listed in spec.get("devices") or ():
                if listed["name"] == device.name:
                    return dict(listed)
        return None

    def _newest(self, device: _Device) -> list[Body]:
        """The slices of the newest generation of the pool of a device."""
        specs = [item["spec"] for item in self.slices]
        of_pool = [spec for spec in specs if (spec["driver"], spec["pool"]["name"]) == device[:2]]
        generation = max((_generation(spec) for spec in of_pool), default=0)
        return [spec for spec in of_pool if _generation(spec) == generation]

    def _faults_of_devices(self) -> Iterator[str]:
        holders: dict[_Device, list[str]] = defaultdict(list)
        for claim in self.claims:
            if not (claim.get("status") or {}).get("allocation"):
                continue
            title = f"claim {_title(claim)}"
            if FINALIZER not in claim["metadata"].get("finalizers", ()):
                yield f"{title} has devices and no finalizer"
            yield from (f"{title} {fault}" for fault in self._faults_of_allocation(claim))
            for result in _allocated(claim)["results"]:
                if not result.get("adminAccess"):
                    holders[_device(result)].append(_title(claim))
        for device, owners in sorted(holders.items()):
            if len(owners) > 1:
                yield f"device {device} is allocated to {' and '.join(sorted(owners))}"
        yield from self._exceeded(holders)

    def _faults_of_allocation(self, claim: Body) -> Iterator[str]:
        """What the results are not that the requests ask for, and what is not passed on."""
        classes = {_name(item): item["spec"] for item in self.classes}
        results = defaultdict(list)
        for result in _allocated(claim)["results"]:
            results[result["request"]].append(result)
        for request in claim["spec"]["devices"]["requests"]:
            given = [(n, part) for n, part in _parts(request) if n in results]
            if len(given) != 1:
                yield f"has devices for {len(given)} ways to meet request {request['name']}"
                continue
            name, part = given[0]
            own = results.pop(name)
            yield from self._faults_of_request(name, part, [_device(result) for result in own])
            for result in own:
                for field, default in (("adminAccess", False), ("tolerations", [])):
                    if (result.get(field) or default) != (part.get(field) or default):
                        yield f"has another {field} for request {name} than its spec"
            wanted = [
                *_configured(classes[part["deviceClassName"]], "FromClass"),
                *_configured(claim["spec"]["devices"], "FromClaim", name),
            ]
            if [*_configured(_allocated(claim), "", name)] != wanted:
                yield f"has another configuration for request {name} than its class and its spec"
        for name in results:
            yield f"has devices for request {name}, which its spec does not have"

    def _faults_of_request(
        self, name: str, part: Body, devices: Sequence[_Device]
    ) -> Iterator[str]:
        """What is wrong with the number of devices, or excluded by a selector of one."""
        if part.get("allocationMode") != "All" and len(devices) != part.get("count", 1):
            yield f"has {len(devices)} devices for request {name}"
        (of_class,) = (
            item["spec"] for item in self.classes if _name(item) == part["deviceClassName"]
        )
        selectors = [*(of_class.get("selectors") or ()), *(part.get("selectors") or ())]
        for device in devices:
            listed = self._listed(device)
            for selector in selectors:
                text = selector["cel"]["expression"]
                if listed is not None and not selects(text, device.driver, listed):
                    yield f"has {device} for request {name}, which {text} excludes"

    def _exceeded(self, held: Mapping[_Device, object]) -> Iterator[str]:
        """The counters of which allocated devices consume more than there is."""
        for pool in sorted({device._replace(name="") for device in held}):
            offered, used = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
            for spec in self._newest(pool):
                for counters in spec.get("sharedCounters") or ():
                    offered += _amounts(counters["name"], counters)
                for each in spec.get("devices") or ():
                    if pool._replace(name=each["name"]) in held:
                        for counters in each.get("consumesCounters") or ():
                            used += _amounts(counters["counterSet"], counters)
            for counter in sorted(used - offered):
                yield f"counter {'/'.join(counter)} of pool {pool.pool} is exceeded"


def _key(item: Body) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _title(item: Body) -> str:
    return "/".join(_key(item))


def _name(item: Body) -> str:
    return str(item["metadata"]["name"])


def _generation(spec: Body) -> int:
    return int(spec["pool"].get("generation", 0))


def _claims_of(pod: Body) -> Iterator[str]:
    """The names of the claims of a pod; an empty one for a claim that was not made."""
    made = {one["name"]: one for one in pod["status"].get("resourceClaimStatuses", ())}
    for one in pod["spec"].get("resourceClaims", ()):
        if "resourceClaimName" in one:
            yield one["resourceClaimName"]
        elif "resourceClaimName" in (status := made.get(one["name"], {"resourceClaimName": ""})):
            yield status["resourceClaimName"]
    if extended := pod["status"].get("extendedResourceClaimStatus"):
        yield extended["resourceClaimName"]


def _allocated(claim: Body) -> Body:
    """The part of an allocation that plugins read."""
    found: Body = claim["status"]["allocation"]["devices"]
    return found


def _device(result: Body) -> _Device:
    return _Device(result["driver"], result["pool"], result["device"])


def _results(claim: Body) -> list[_Device]:
    return [_device(result) for result in _allocated(claim)["results"]]


def _parts(request: Body) -> Iterator[tuple[str, Body]]:
    """The ways to meet a request, by the names that results have."""
    if "exactly" in request:
        yield request["name"], request["exactly"]
    for part in request.get("firstAvailable", ()):
        yield f"{request['name']}/{part['name']}", part


def _configured(spec: Body, source: str, request: str = "") -> Iterator[tuple[str, Body]]:
    """The source and the configuration of the entries that are for a request, in their order."""
    for entry in spec.get("config") or ():
        names = entry.get("requests") or (request,)
        if request in names or request.partition("/")[0] in names:
            yield source or entry["source"], entry["opaque"]


def _selects(selector: Body | None, node: Body) -> bool:
    """Whether a node selector selects a node; without one, all nodes will do."""
    return selector is None or any(
        all(
            one["operator"] == "In" and node["metadata"]["labels"].get(one["key"]) in one["values"]
            for one in term.get("matchExpressions") or ()
        )
        and all(
            one["operator"] == "In" and _name(node) in one["values"]
            for one in term.get("matchFields") or ()
        )
        for term in selector["nodeSelectorTerms"]
    )


def _amounts(counter_set: str, body: Body) -> Counter[tuple[str, str]]:
    return Counter(
        {(counter_set, name): amount(each["value"]) for name, each in body["counters"].items()}
    )
