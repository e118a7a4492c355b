"""Claims of devices and of volumes, and what they are claims of, as the judge reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .history import Body
    from .views import Key

EXTENDED = "resource.kubernetes.io/extended-resource-claim"
SELECTED = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class Device(NamedTuple):
    """The name of a device."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        """Read as drivers write it."""
        return "/".join(self)


class Result(NamedTuple):
    """A device that a claim has; ``takes`` is false of what others may have at the same time."""

    request: str
    device: Device
    takes: bool


@dataclass(frozen=True, slots=True)
class Request:
    """One way to meet a request of a claim, by the name that results have."""

    name: str
    count: int | None  # None: all that there are
    selectors: tuple[str, ...] = ()


class Counter(NamedTuple):
    """The name of a counter in its pool."""

    counter_set: str
    name: str


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim at one revision; ``node`` is the one that its allocation names."""

    key: Key
    uid: str
    results: tuple[Result, ...]
    is_allocated: bool
    node: str
    consumers: Mapping[str, str]  # names by uid
    terminating: bool
    owner: str  # uid of the pod that it was made for
    is_extended: bool
    requests: tuple[tuple[Request, ...], ...] = ()  # the ways to meet each

    @property
    def devices(self) -> frozenset[tuple[str, Device]]:
        """The devices with the requests that they are for."""
        return frozenset((result.request, result.device) for result in self.results)


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A ResourceSlice at one revision."""

    key: Key
    uid: str
    driver: str
    pool: str
    generation: int
    node: str
    consumed: Mapping[str, Mapping[Counter, int]]  # by name of the device
    counters: Mapping[Counter, int]
    devices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as listed, by name


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim at one revision."""

    key: Key
    uid: str
    volume: str
    is_bound: bool
    selected_node: str
    terminating: bool


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume at one revision; ``reach`` are terms of requirements on a node."""

    key: Key
    uid: str
    claim: tuple[str, str]  # namespace and name
    claim_uid: str
    reach: tuple[tuple[tuple[str, str, frozenset[str]], ...], ...] = ()

    def is_reached_from(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels reaches it."""
        return not self.reach or any(
            all(_holds(*requirement, labels) for requirement in term) for term in self.reach
        )


class VolumePromise(NamedTuple):
    """What a Reservation says of a claim; ``volume`` is empty where one is to be made."""

    claim: str
    uid: str
    node: str
    volume: str


@dataclass(frozen=True, slots=True)
class DevicePromise:
    """What a Reservation says of the claim of a pod; no devices where the claim has them."""

    pod: str
    claim: str
    uid: str
    node: str
    devices: frozenset[tuple[str, Device]] = field(default_factory=frozenset)


def read_claim(key: Key, body: Body) -> DeviceClaim:
    """Read a ResourceClaim."""
    metadata, status = body["metadata"], body.get("status") or {}
    allocation = status.get("allocation")
    owners = metadata.get("ownerReferences") or ()
    return DeviceClaim(
        key=key,
        uid=metadata["uid"],
        results=tuple(_results(allocation or {})),
        is_allocated=allocation is not None,
        node=_node(allocation or {}),
        consumers={each["uid"]: each["name"] for each in status.get("reservedFor") or ()},
        terminating=bool(metadata.get("deletionTimestamp")),
        owner=next((owner["uid"] for owner in owners if owner["kind"] == "Pod"), ""),
        is_extended=EXTENDED in (metadata.get("annotations") or {}),
        requests=tuple(
            tuple(_ways(request))
            for request in (body["spec"].get("devices") or {}).get("requests") or ()
        ),
    )


def _ways(request: Body) -> Iterator[Request]:
    if "exactly" in request:
        yield _way(request["name"], request["exactly"])
    for part in request.get("firstAvailable") or ():
        yield _way(f"{request['name']}/{part['name']}", part)


def _way(name: str, part: Body) -> Request:
    is_all = part.get("allocationMode") == "All"
    return Request(
        name,
        None if is_all else int(part.get("count") or 1),
        tuple(one["cel"]["expression"] for one in part.get("selectors") or ()),
    )


def _results(allocation: Body) -> Iterator[Result]:
    for one in (allocation.get("devices") or {}).get("results") or ():
        is_shared = bool(one.get("adminAccess") or one.get("shareID"))
        device = Device(one["driver"], one["pool"], one["device"])
        yield Result(one["request"], device, takes=not is_shared)


def _node(allocation: Body) -> str:
    """The node that an allocation selects by its name; empty if it selects in another way."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    names = {
        name for term in terms for one in term.get("matchFields") or () for name in one["values"]
    }
    return names.pop() if len(names) == len(terms) == 1 else ""


def read_slice(key: Key, body: Body) -> DeviceSlice:
    """Read a ResourceSlice."""
    spec = body["spec"]
    pool = spec["pool"]
    return DeviceSlice(
        key=key,
        uid=body["metadata"]["uid"],
        driver=spec["driver"],
        pool=pool["name"],
        generation=int(pool.get("generation") or 0),
        node=spec.get("nodeName") or "",
        consumed={
            device["name"]: _counters(
                (one["counterSet"], one["counters"]) for one in device.get("consumesCounters") or ()
            )
            for device in spec.get("devices") or ()
        },
        counters=_counters(
            (one["name"], one["counters"]) for one in spec.get("sharedCounters") or ()
        ),
        devices={device["name"]: device for device in spec.get("devices") or ()},
    )


def _counters(sets: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[Counter, int]:
    return {
        Counter(counter_set, name): amount(str(counter["value"]))
        for counter_set, counters in sets
        for name, counter in counters.items()
    }


def read_volume_claim(key: Key, body: Body) -> VolumeClaim:
    """Read a PersistentVolumeClaim."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    annotations, volume = metadata.get("annotations") or {}, spec.get("volumeName") or ""
    return VolumeClaim(
        key=key,
        uid=metadata["uid"],
        volume=volume,
        is_bound=bool(volume) and BIND_COMPLETED in annotations,
        selected_node=annotations.get(SELECTED, ""),
        terminating=bool(metadata.get("deletionTimestamp")),
    )


def read_volume(key: Key, body: Body) -> Volume:
    """Read a PersistentVolume."""
    spec = body.get("spec") or {}
    ref = spec.get("claimRef") or {}
    required = ((spec.get("nodeAffinity") or {}).get("required")) or {}
    return Volume(
        key=key,
        uid=body["metadata"]["uid"],
        claim=(ref.get("namespace", ""), ref.get("name", "")),
        claim_uid=ref.get("uid", ""),
        reach=tuple(
            tuple(
                (one["key"], one["operator"], frozenset(one.get("values") or ()))
                for one in term.get("matchExpressions") or ()
            )
            for term in required.get("nodeSelectorTerms") or ()
        ),
    )


def _holds(key: str, operator: str, values: frozenset[str], labels: Mapping[str, str]) -> bool:
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return True  # numbers are compared by nobody's volumes here


def device_claims(body: Body) -> tuple[str, ...]:
    """The names of the claims that a pod uses; an empty name stands for one that is to be made."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    made = {
        each["name"]: each.get("resourceClaimName")
        for each in status.get("resourceClaimStatuses") or ()
    }
    names = [
        each.get("resourceClaimName") or made.get(each["name"], "")
        for each in spec.get("resourceClaims") or ()
    ]
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return (*(name for name in names if name is not None), *((extended,) if extended else ()))


def volume_claims(body: Body) -> tuple[str, ...]:
    """The names of the claims of volumes that a pod mounts."""
    names = []
    for volume in (body.get("spec") or {}).get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            names.append(claim["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{body['metadata']['name']}-{volume['name']}")
    return tuple(names)


def device_promises(placement: Iterable[Body]) -> tuple[DevicePromise, ...]:
    """What the placement of a Reservation says of claims of devices."""
    return tuple(
        DevicePromise(
            pod=of_pod["pod"],
            claim=claim["name"],
            uid=claim["uid"],
            node=entry["node"],
            devices=frozenset(
                (one["request"], Device(one["driver"], one["pool"], one["device"]))
                for one in claim.get("devices") or ()
            ),
        )
        for entry in placement
        for of_pod in entry.get("claims") or ()
        for claim in of_pod["claims"]
    )


def volume_promises(spec: Body) -> tuple[VolumePromise, ...]:
    """What a Reservation says of claims of volumes."""
    return tuple(
        VolumePromise(one["claim"], one["uid"], one["node"], one.get("volume") or "")
        for one in spec.get("volumes") or ()
    )
