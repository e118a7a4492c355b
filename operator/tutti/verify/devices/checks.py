"""The devices that a plan gives to claims, counted and compared device by device.

Only the evaluation of one CEL expression for one device is shared with the planner.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain

from ...filters.devices import selectors
from ...kube.codec.quantity import QuantityError, nanos
from ...model.cluster import Member, Snapshot
from ...model.decisions import Assignment
from ...model.devices.claims import (
    MOST_RESULTS,
    AttributeName,
    ClaimAllocation,
    DeviceClaim,
    DeviceRequest,
    DeviceRoom,
    devices_of,
)
from ...model.devices.inventory import Counter as DeviceCounter
from ...model.devices.inventory import (
    Device,
    DeviceClass,
    DeviceId,
    DeviceToleration,
    ResourceSlice,
)
from ...model.keys import NodeName

Pool = tuple[str, str]  # the driver and the name
Place = tuple[NodeName | None, Device]


class _Known:
    """The devices, claims and classes of a Snapshot by name; each is indexed at the first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.room = snapshot.devices
        self._reservations = snapshot.reservations
        self._devices: dict[Pool, Mapping[DeviceId, Place]] = {}

    @cached_property
    def pools(self) -> Mapping[Pool, Sequence[ResourceSlice]]:
        """The slices of the newest generation of each pool."""
        return _current(self.room)

    def devices_of(self, pool: Pool) -> Mapping[DeviceId, Place]:
        """The devices of a pool that can be given away or are in use, with their node."""
        if pool not in self._devices:
            pieces = self.pools.get(pool)
            self._devices[pool] = dict(_devices(pieces)) if pieces else {}
        return self._devices[pool]

    def device(self, name: DeviceId) -> Place | tuple[None, None]:
        """A device with its node; no device if none of this name can be given away."""
        return self.devices_of(name[:2]).get(name, (None, None))

    @cached_property
    def claims(self) -> Mapping[tuple[str, str], DeviceClaim]:
        """The claims by namespace and name."""
        return {claim.key: claim for claim in self.room.claims}

    @cached_property
    def classes(self) -> Mapping[str, DeviceClass]:
        """The classes by name."""
        return {device_class.name: device_class for device_class in self.room.classes}

    @cached_property
    def taken(self) -> Collection[DeviceId]:
        """The devices that claims and standing Reservations have."""
        taken = {result.device for claim in self.room.claims for result in claim.allocated or ()}
        for reservation in self._reservations:
            space = reservation.gang.namespace
            for entry in reservation.entries:
                held = (own for own in entry.claims if not self._takes_nothing(space, own.claim))
                taken.update(devices_of(tuple(held)))
        return taken

    def _takes_nothing(self, namespace: str, name: str) -> bool:
        claim = self.claims.get((namespace, name))
        return claim is not None and claim.takes_nothing

    @cached_property
    def held(self) -> Mapping[Pool, Mapping[tuple[str, str], int]]:
        """What the devices consume, in nanos, that claims and standing Reservations have."""
        by_pool: dict[Pool, list[DeviceId]] = {}
        for device in self.taken:
            by_pool.setdefault(device[:2], []).append(device)
        return {pool: self.consumed(devices) for pool, devices in by_pool.items()}

    def consumed(self, devices: Iterable[DeviceId]) -> Counter[tuple[str, str]]:
        """What devices of one pool consume, in nanos, by counter set and name."""
        total = Counter[tuple[str, str]]()
        for device in devices:
            _, known = self.device(device)
            for of in () if known is None else known.counters:
                total[of.counter_set, of.name] += _nanos(of)
        return total

    @cached_property
    def counters(self) -> Mapping[Pool, Mapping[tuple[str, str], int]]:
        """How much there is of each counter, in nanos, by pool, counter set and name."""
        return {
            pool: {(of.counter_set, of.name): _nanos(of) for p in pieces for of in p.counters}
            for pool, pieces in self.pools.items()
        }

    @cached_property
    def promised(self) -> Collection[tuple[str, str]]:
        """The claims that standing Reservations give devices."""
        return {
            (reservation.gang.namespace, own.claim)
            for reservation in self._reservations
            for entry in reservation.entries
            for own in entry.claims
            if own.results
        }


class DeviceLedger:
    """The devices, and those that claims, Reservations and placements have."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._known = _Known(snapshot)
        self._taken: set[DeviceId] = set()  # by placements
        # What placements give to claims, and where.
        self._promised: dict[tuple[str, str], tuple[ClaimAllocation, NodeName]] = {}

    def copy(self) -> "DeviceLedger":
        """A ledger whose changes do not change this one."""
        copied = copy(self)
        copied._taken, copied._promised = {*self._taken}, {**self._promised}  # noqa: SLF001 - its own
        return copied

    def take(self, trial: "DeviceLedger") -> None:
        """Take over what a copy took."""
        self._taken, self._promised = trial._taken, trial._promised  # noqa: SLF001 - its own

    def faults(self, assignment: Assignment, member: Member) -> Iterator[str]:
        """One sentence for each fault of the devices of an assignment; takes them."""
        pod, space = f"pod {assignment.pod}", assignment.pod.namespace
        given = {allocation.claim: allocation for allocation in assignment.claims}
        named = {claim.claim for claim in member.device_claims}
        if len(given) < len(assignment.claims) or given.keys() != named:
            yield f"{pod}: its claims and those that get devices differ"
            return
        for name, allocation in given.items():
            claim = self._known.claims.get((space, name))
            if claim is None or claim.uid != allocation.uid or claim.terminating:
                yield f"{pod}: there is no claim {name} with this uid"
            elif claim.is_allocated:
                yield from self._joining(pod, claim, allocation, assignment.node)
            elif (space, name) in self._known.promised:
                yield f"{pod}: claim {name} gets devices twice"
            elif (space, name) in self._promised:
                if self._promised[space, name] != (allocation, assignment.node):
                    yield f"{pod}: claim {name}, which pods share, gets different devices"
            else:
                self._promised[space, name] = allocation, assignment.node
                yield from self._allocating(pod, claim, allocation, assignment.node)

    def _joining(
        self, pod: str, claim: DeviceClaim, allocation: ClaimAllocation, node: NodeName
    ) -> Iterator[str]:
        """The faults of a pod that joins the consumers of an allocated claim."""
        if allocation.results:
            yield f"{pod}: claim {claim.key.name} has devices already"
        if claim.reaches_unknown or (claim.nodes is not None and node not in claim.nodes):
            yield f"{pod}: node {node} cannot use the devices of claim {claim.key.name}"

    def _allocating(
        self, pod: str, claim: DeviceClaim, allocation: ClaimAllocation, node: NodeName
    ) -> Iterator[str]:
        """The faults of devices for a claim that has none; takes them."""
        given: dict[str, list[DeviceId]] = {}
        for result in allocation.results:
            given.setdefault(result.request, []).append(result.device)
        if sum(map(len, given.values())) > MOST_RESULTS or not all(
            self._is_answered(request, given, node) for request in claim.requests
        ):
            yield f"{pod}: claim {claim.key.name} gets too many devices or too few"
        if claim.unsupported:
            yield f"{pod}: claim {claim.key.name} uses {', '.join(claim.unsupported)}"
        yield from self._unmatched(pod, claim, given)
        by_name = dict(part for request in claim.requests for part in request.by_name())
        taken, held = self._taken, self._known.taken
        if claim.takes_nothing:
            taken, held = set(), ()
        for request_name, device in allocation.results:
            place, entry = self._known.device(device)
            if entry is None or place != node or entry.unsupported:
                yield f"{pod}: node {node} has no device {device}"
            elif device in taken or device in held:
                yield f"{pod}: device {device} is in use"
            elif request_name not in by_name or not self._suits(entry, by_name[request_name]):
                yield f"{pod}: device {device} will not do for request {request_name}"
            taken.add(device)
            if entry is not None and entry.counters and self._is_exceeded(device):
                yield f"{pod}: device {device} needs more of a counter than is left"

    def _is_exceeded(self, device: DeviceId) -> bool:
        """Whether devices that are given away consume more of a counter of a pool than it has."""
        pool = device[:2]
        consumed = self._known.consumed(own for own in self._taken if own[:2] == pool)
        consumed.update(self._known.held.get(pool, {}))
        return any(consumed[name] > most for name, most in self._known.counters[pool].items())

    def _unmatched(
        self, pod: str, claim: DeviceClaim, given: Mapping[str, Sequence[DeviceId]]
    ) -> Iterator[str]:
        """The constraints of a claim that its devices do not meet."""
        for wanted, of, is_distinct in claim.constraints:
            values = [
                self._value(device, wanted)
                for name, devices in given.items()
                if not of or name in of or name.split("/")[0] in of
                for device in devices
            ]
            different = len({*values})
            if None in values or (different < len(values) if is_distinct else different > 1):
                how = "are alike" if is_distinct else "differ"
                yield f"{pod}: devices of claim {claim.key.name} {how} in {wanted}, or lack it"

    def _value(self, device: DeviceId, wanted: AttributeName) -> tuple[object, ...] | None:
        """The type and the value of an attribute; None if the device does not have it."""
        _, entry = self._known.device(device)
        for domain, name, value, is_version in () if entry is None else entry.attributes:
            if domain == wanted.domain and name == wanted.name:
                return type(value), is_version, value
        return None

    def _is_answered(
        self, request: DeviceRequest, given: Mapping[str, Sequence[DeviceId]], node: NodeName
    ) -> bool:
        """Whether a request gets as many devices as it is for."""
        answers = {name: (given.get(name, ()), part.count) for name, part in request.by_name()}
        chosen = [(devices, count) for devices, count in answers.values() if devices]
        if len(chosen) != 1:
            return False
        ((devices, count),) = chosen
        if not request.takes_all:
            return len(devices) == count
        wanted = {
            device
            for pool in self._known.pools
            for device, (place, entry) in self._known.devices_of(pool).items()
            if place == node and self._selects(entry, request)
        }
        return bool(wanted) and len(devices) == len(wanted) and wanted == set(devices)

    def _selects(self, device: Device, request: DeviceRequest) -> bool:
        """Whether a device meets the selectors of a request and its class."""
        device_class = self._known.classes.get(request.device_class)
        if device_class is None:
            return False
        return selectors.matches((*device_class.selectors, *request.selectors), device)

    def _suits(self, device: Device, request: DeviceRequest) -> bool:
        """Whether a device has no taint that keeps it from a request, and meets its selectors."""
        taints = [*device.taints]
        taints += [rule.taint for rule in self._known.room.rules if rule.matches(device.id)]
        for key, value, effect in taints:
            if effect in ("NoSchedule", "NoExecute") and not any(
                _covers(toleration, key, value, effect) for toleration in request.tolerations
            ):
                return False
        return self._selects(device, request)


def _covers(toleration: DeviceToleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.key and toleration.key != key:
        return False
    return toleration.operator == "Exists" or toleration.value == value


def _current(room: DeviceRoom) -> Mapping[Pool, Sequence[ResourceSlice]]:
    """The slices of the newest generation of each pool."""
    by_pool: dict[Pool, list[ResourceSlice]] = {}
    for piece in room.slices:
        by_pool.setdefault((piece.driver, piece.pool), []).append(piece)
    newest = {pool: max(p.generation for p in pieces) for pool, pieces in by_pool.items()}
    return {
        pool: [p for p in pieces if p.generation == newest[pool]]
        for pool, pieces in by_pool.items()
    }


def _nanos(of: DeviceCounter) -> int:
    """An amount; a text that is none counts as 0, and no device of a pool with a negative one."""
    try:
        return nanos(of.quantity)
    except QuantityError:
        return 0


def _devices(pieces: Sequence[ResourceSlice]) -> Iterator[tuple[DeviceId, Place]]:
    """The devices of a pool with their node, if these slices are all of it and agree."""
    twice = Counter((device.id, p.node) for p in pieces for device in p.devices)
    sets = [name for p in pieces for name in {of.counter_set for of in p.counters}]
    counters = {of[:2] for p in pieces for of in p.counters}
    uses = [of for p in pieces for device in p.devices for of in device.counters]
    are_sound = {of[:2] for of in uses} <= counters and not any(
        of.quantity.startswith("-") for of in chain(uses, *(p.counters for p in pieces))
    )
    if len(pieces) == pieces[0].slices and len({*sets}) == len(sets) and are_sound:
        for piece in pieces:
            for device in piece.devices:
                if twice[device.id, piece.node] == 1:
                    yield device.id, (piece.node, device)
