"""Slices, classes, taint rules and claims of a FakeCluster, and builders of them.

Claims are kept as the API has them: patches are merged and read back as a client reads answers.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tutti.kube import errors, wire
from tutti.kube.codec.devices import decode_device_claim
from tutti.kube.list_watch import Item
from tutti.kube.wire.devices import ResourceClaim
from tutti.model.cluster import Member
from tutti.model.devices.claims import ClaimName, DeviceClaim, PodClaim
from tutti.model.devices.inventory import (
    Attribute,
    Device,
    DeviceClass,
    DeviceId,
    DeviceTaint,
    ResourceSlice,
    TaintRule,
)
from tutti.model.keys import NodeName, Uid

from .builders import NAMESPACE, GangBuilder

DRIVER = "gpu.example.com"
DeviceValue = ResourceSlice | DeviceClass | TaintRule | dict[str, Any]
Shown = tuple[str, Item[Any]]  # a stream, and what a watch shows; the value None: it is gone

SLICES, CLASSES = "devices.slices", "devices.classes"
RULES, CLAIMS = "devices.rules", "devices.claims"


def device(
    name: str, pool: str, taints: tuple[DeviceTaint, ...] = (), **attributes: str | int | bool
) -> Device:
    """A device of the driver of the tests."""
    values = (Attribute(DRIVER, key, value) for key, value in attributes.items())
    return Device(DeviceId(DRIVER, pool, name), tuple(sorted(values)), taints=taints)


def gpus(node: str, count: int, *, first: int = 0, **attributes: str | int | bool) -> ResourceSlice:
    """A slice with so many equal devices, in the pool of a node."""
    devices = (device(f"gpu-{first + i}", node, (), **attributes) for i in range(count))
    return ResourceSlice(f"{node}-slice", DRIVER, node, node=NodeName(node), devices=tuple(devices))


def device_class(
    name: str = "gpu", *selectors: str, backs: str = "", created: float = 0.0
) -> DeviceClass:
    """A class of the devices of the driver of the tests; it may back an extended resource."""
    expressions = (f'device.driver == "{DRIVER}"', *selectors)
    return DeviceClass(name, expressions, extended_resource=backs, created=created)


def request(
    name: str = "gpu", of: str = "gpu", count: int = 1, *selectors: str, **fields: Any
) -> dict[str, Any]:
    """A request of a claim."""
    expressions = [{"cel": {"expression": text}} for text in selectors]
    exactly = {"deviceClassName": of, "count": count, "selectors": expressions, **fields}
    return {"name": name, "exactly": exactly}


def claim(name: str, *requests: dict[str, Any], owner: str = "", **fields: Any) -> dict[str, Any]:
    """A ResourceClaim; without requests it asks for one device."""
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
    if owner:
        reference = {"kind": "Pod", "name": owner, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    wanted = {"requests": [*requests] or [request()], **fields}
    return {"metadata": metadata, "spec": {"devices": wanted}}


def claiming(gang: GangBuilder) -> GangBuilder:
    """The gang, each member of which names a claim: its own name and -gpu."""
    return gang.where(
        lambda member: replace(member, device_claims=(PodClaim("gpu", f"{member.key.name}-gpu"),))
    )


def claims_of(gang: GangBuilder, *requests: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One claim with these requests for each member of a gang that is ``claiming``."""
    return (claim(f"{member.key.name}-gpu", *requests) for member in gang.made.members)


@dataclass(slots=True)
class FakeDevices:
    """The objects by stream and name, with the raw claims."""

    items: dict[str, dict[str, Item[Any]]] = field(
        default_factory=lambda: {name: {} for name in (SLICES, CLASSES, RULES, CLAIMS)}
    )
    raw: dict[ClaimName, dict[str, Any]] = field(default_factory=dict)

    def put(self, value: DeviceValue, version: int) -> Shown:
        """Create or change an object."""
        if isinstance(value, dict):
            return self._keep(value, version)
        streams = {ResourceSlice: SLICES, DeviceClass: CLASSES, TaintRule: RULES}
        stream = streams[type(value)]
        old = self.items[stream].get(value.name)
        uid = Uid(f"uid-{version}") if old is None else old.uid
        item: Item[Any] = Item(uid, version, value)
        self.items[stream][value.name] = item
        return stream, item

    def claim(self, name: str) -> DeviceClaim:
        """A claim as it is now."""
        found: DeviceClaim = self.items[CLAIMS][name].value
        return found

    def delete(self, key: ClaimName, version: int) -> Shown:
        """Delete a claim: at once without finalizers, else it terminates."""
        raw = json.loads(json.dumps(self.raw[key]))
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return self._keep(raw, version)

    def patch(
        self, claim: DeviceClaim, patch: Mapping[str, Any], version: int
    ) -> tuple[Shown, list[str]]:
        """Merge a patch of the metadata or of the status; say which promise that breaks."""
        stored = self.raw.get(claim.key)
        if stored is None:
            raise errors.Gone("there is no such ResourceClaim", status=404)
        metadata = patch["metadata"]
        known = stored["metadata"]
        if (metadata["uid"], metadata["resourceVersion"]) != (
            known["uid"],
            known["resourceVersion"],
        ):
            raise errors.Conflict("it is another, or has changed", status=409)
        raw = json.loads(json.dumps(stored))
        if "status" in patch:
            raw["status"] = _merged(raw.get("status", {}), json.loads(json.dumps(patch["status"])))
            if raw["status"].get("allocation") and not known.get("finalizers"):
                raise errors.Refused("an allocated claim needs its finalizer", status=422)
        else:
            raw["metadata"]["finalizers"] = metadata["finalizers"]
        shown = self._keep(raw, version)
        return shown, list(self._twice())

    def _keep(self, raw: dict[str, Any], version: int) -> Shown:
        metadata = raw["metadata"]
        metadata.setdefault("uid", f"uid-{version}")
        metadata["resourceVersion"] = str(version)
        key = ClaimName(metadata["namespace"], metadata["name"])
        uid = Uid(metadata["uid"])
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.raw.pop(key, None)
            self.items[CLAIMS].pop(key.name, None)
            return CLAIMS, Item(uid, version, None)
        self.raw[key] = raw
        value = decode_device_claim(wire.parse_one(json.dumps(raw), ResourceClaim))
        item: Item[Any] = Item(uid, version, value)
        self.items[CLAIMS][key.name] = item
        return CLAIMS, item

    def _twice(self) -> Iterator[str]:
        """The devices that two claims have."""
        owners: dict[DeviceId, str] = {}
        for name, item in self.items[CLAIMS].items():
            for result in item.value.allocated or ():
                if result.device in owners:
                    yield f"{owners[result.device]} and {name} both have {result.device}"
                owners[result.device] = name

    def judged(self, pod: Member, node: NodeName) -> Iterator[str]:
        """What is wrong if a pod is bound now: a claim without devices, or devices elsewhere."""
        for own in pod.device_claims:
            item = self.items[CLAIMS].get(own.claim or "")
            if item is None or item.value.allocated is None:
                yield f"{pod.key} is bound before claim {own.claim} has devices"
                continue
            if pod.uid not in {consumer.uid for consumer in item.value.consumers}:
                yield f"{pod.key} is bound, and claim {own.claim} is not reserved for it"
            if item.value.nodes is not None and node not in item.value.nodes:
                yield f"{pod.key} is bound to {node}, and claim {own.claim} is elsewhere"


def _merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    result = {**old, **patch}
    return {key: value for key, value in result.items() if value is not None}
