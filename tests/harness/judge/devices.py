"""Devices of claims: given once, as a Reservation says, before a pod is bound, and then given back.

A claim counts as Tutti's if Tutti has written its allocation; the others are judged nowhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .audit import AuditEntry
from .bindings import Begun, bound_in
from .claim_views import Counter, Device, DeviceClaim, DevicePromise, DeviceSlice
from .device_selectors import selects
from .findings import Finding, Findings, Promise
from .quantities import format_amount
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod, Reservation

STATUS = "resourceclaims/status"


@dataclass(slots=True)
class _Books:
    """What is known of claims, of who uses them, and of the devices that there are."""

    standpoint: Standpoint
    claims: dict[str, DeviceClaim] = field(default_factory=dict)
    names: dict[Key, DeviceClaim] = field(default_factory=dict)
    holders: dict[Device, set[str]] = field(default_factory=dict)  # uids of claims that take it
    slices: dict[str, DeviceSlice] = field(default_factory=dict)
    places: dict[Device, set[str]] = field(default_factory=dict)  # its nodes, at any time
    listed: dict[Device, list[Mapping[str, Any]]] = field(default_factory=dict)  # at any time
    pods: dict[str, Pod] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)  # uids of pods that had a node at any time
    made: dict[str, Key] = field(default_factory=dict)  # for extended resources, by uid of the pod
    reservations: dict[str, Reservation] = field(default_factory=dict)  # that hold claims
    begun: Begun = field(default_factory=Begun)

    def take(self, step: Step) -> None:
        """Apply one step."""
        self.begun.take(step)
        self._forget(step.before)
        match step.after:
            case DeviceClaim() as claim:
                self.claims[claim.uid] = self.names[claim.key] = claim
                for device in _taken(claim):
                    self.holders.setdefault(device, set()).add(claim.uid)
                if claim.is_extended and not claim.terminating:
                    self.made[claim.owner] = claim.key
            case DeviceSlice() as piece:
                self.slices[piece.uid] = piece
                for name in piece.consumed:
                    device = Device(piece.driver, piece.pool, name)
                    self.places.setdefault(device, set()).add(piece.node)
                    self.listed.setdefault(device, []).append(piece.devices[name])
            case Pod() as pod:
                self.pods[pod.uid] = pod
                if pod.node:
                    self.bound.add(pod.uid)
            case Reservation() as reservation if reservation.devices:
                self.reservations[reservation.uid] = reservation

    def _forget(self, before: object) -> None:
        match before:
            case DeviceClaim() as claim:
                self.claims.pop(claim.uid, None)
                if (named := self.names.get(claim.key)) is not None and named.uid == claim.uid:
                    del self.names[claim.key]
                self.made.pop(claim.owner, None)
                for device in _taken(claim):
                    self.holders.get(device, set()).discard(claim.uid)
            case DeviceSlice() as piece:
                self.slices.pop(piece.uid, None)
            case Pod() as pod:
                self.pods.pop(pod.uid, None)
            case Reservation() as reservation:
                self.reservations.pop(reservation.uid, None)

    def is_others(self, uid: str) -> bool:
        """Whether another scheduler reserves claims for a pod."""
        pod = self.pods.get(uid)
        return pod is not None and (pod.is_handed or not self.standpoint.is_ours(pod))

    def promises(self, claim: DeviceClaim) -> list[DevicePromise]:
        """What standing Reservations say of a claim."""
        return [
            promise
            for reservation in self.reservations.values()
            if reservation.key.namespace == claim.key.namespace
            for promise in reservation.devices
            if promise.uid == claim.uid
        ]

    def newest(self, driver: str, pool: str) -> list[DeviceSlice]:
        """The slices of the newest generation of a pool."""
        all_slices = [s for s in self.slices.values() if (s.driver, s.pool) == (driver, pool)]
        last = max((piece.generation for piece in all_slices), default=0)
        return [piece for piece in all_slices if piece.generation == last]

    def exceeded(self, driver: str, pool: str) -> Iterator[str]:
        """The counters of a pool of which allocated devices consume more than there is."""
        used: dict[Counter, int] = {}
        offered: dict[Counter, int] = {}
        for piece in self.newest(driver, pool):
            offered |= piece.counters
            for name, consumed in piece.consumed.items():
                if self.holders.get(Device(driver, pool, name)):
                    for counter, value in consumed.items():
                        used[counter] = used.get(counter, 0) + value
        for counter, value in sorted(used.items()):
            most = offered.get(counter, 0)
            if value > most:
                yield (
                    f"counter {'/'.join(counter)} of {driver}/{pool} is exceeded: "
                    f"{format_amount(value)} of {format_amount(most)}"
                )


def _taken(claim: DeviceClaim) -> list[Device]:
    return [result.device for result in claim.results if result.takes]


def judge_devices(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Check each allocation and each binding at its revision, and what is left in the end."""
    ours = {
        entry.key
        for entry in entries
        if entry.resource == STATUS
        and entry.is_write
        and entry.succeeded
        and entry.user == standpoint.operator_user
        and "status.allocation" in entry.fields
    }
    books = _Books(standpoint)
    violations: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        books.take(step)
        now, key = step.after or step.before, None
        faults: list[str] = []
        if isinstance(now, DeviceClaim) and now.key in ours and not step.initial:
            key = now.key
            judged += _is_allocation(step)
            faults += _allocation_faults(step, books)
        elif (pod := bound_in(step, standpoint)) is not None and not pod.is_handed:
            key = pod.key
            judged += bool(pod.device_claims)
            faults += _binding_faults(pod, books)
        if key is None or not standpoint.looks_at(key.namespace):
            continue
        for fault in faults:
            finding = Finding(Promise.DEVICES, str(key), fault, step.revision)
            (violations if step.gap is None else unproved).append(finding)
    left = [
        Finding(Promise.DEVICES, str(claim.key), f"claim {claim.key} {why}")
        for claim in sorted(books.claims.values(), key=lambda claim: claim.key)
        if claim.key in ours and standpoint.looks_at(claim.key.namespace)
        for why in _left(claim, books)
    ]
    return Findings(tuple(violations), unproved=tuple(unproved), unfinished=(*left,), judged=judged)


def _is_allocation(step: Step) -> bool:
    """Whether a claim got devices in this step."""
    before, now = step.before, step.after
    was = isinstance(before, DeviceClaim) and before.is_allocated
    return isinstance(now, DeviceClaim) and now.is_allocated and not was


def _allocation_faults(step: Step, books: _Books) -> Iterator[str]:
    before, now = step.before, step.after
    if isinstance(before, DeviceClaim):
        kept = now.consumers if isinstance(now, DeviceClaim) else {}
        for uid in sorted(before.consumers.keys() - kept.keys()):
            user = books.pods.get(uid)
            if user is not None and user.takes_room and not user.terminating:
                yield f"claim {before.key} is taken from pod {user.key}, which is bound"
    if not isinstance(now, DeviceClaim):
        return
    title, promises = f"claim {now.key}", books.promises(now)
    if _is_allocation(step):
        yield from _device_faults(now, books)
        if not promises:
            yield f"{title} gets devices, and no Reservation that stands holds it"
        elif not any((p.devices, p.node) == (now.devices, now.node) for p in promises):
            yield f"{title} gets other devices than its Reservation says, or on another node"
    had = before.consumers if isinstance(before, DeviceClaim) else {}
    for uid in sorted(now.consumers.keys() - had.keys()):
        if not (books.is_others(uid) or any(promise.pod == uid for promise in promises)):
            name = now.consumers[uid]
            yield f"{title} is reserved for {name} ({uid}), and no Reservation that stands says so"


def _device_faults(claim: DeviceClaim, books: _Books) -> Iterator[str]:
    """What is wrong with the devices of a claim at this moment, whoever promised them."""
    for device in sorted(_taken(claim)):
        for other in sorted(books.holders[device] - {claim.uid}):
            name = books.claims[other].key
            yield f"claim {claim.key} gets device {device}, which claim {name} has"
    if len(set(_taken(claim))) < len(_taken(claim)):
        yield f"claim {claim.key} gets one device twice"
    for result in claim.results:
        if claim.node not in books.places.get(result.device, ()):
            yield f"claim {claim.key} gets {result.device}, which {claim.node} never had"
    for sentence in _request_faults(claim, books):
        yield f"claim {claim.key} {sentence}"
    for driver, pool in sorted({(device.driver, device.pool) for device in _taken(claim)}):
        for sentence in books.exceeded(driver, pool):
            yield f"claim {claim.key} gets devices, and {sentence}"


def _request_faults(claim: DeviceClaim, books: _Books) -> Iterator[str]:
    """What of the devices of a claim no request wants, and what a request lacks.

    Devices may have changed since they were promised: a selector must select what one was once.
    """
    rest = {result.request for result in claim.results}
    for ways in claim.requests:
        given = [way for way in ways if way.name in rest]
        rest -= {way.name for way in ways}
        if len(given) != 1:
            names = ", ".join(way.name for way in ways)
            yield f"gets devices for {len(given)} ways to meet one request ({names})"
            continue
        (way,) = given
        devices = [result.device for result in claim.results if result.request == way.name]
        if way.count not in (None, len(devices)):
            yield f"gets {len(devices)} devices for request {way.name}, which wants {way.count}"
        for device in devices:
            listed = books.listed.get(device, ())
            for text in way.selectors:
                if listed and not any(selects(text, device.driver, body) for body in listed):
                    yield f"gets {device}, which request {way.name} excludes by {text}"
    for name in sorted(rest):
        yield f"gets devices for request {name}, which it does not have"


def _binding_faults(pod: Pod, books: _Books) -> Iterator[str]:
    for fault in _claims_lacking(pod, books, pod.node):
        yield f"pod {pod.key} is bound to {pod.node}, but {fault}"
    made = books.made.get(pod.uid)
    if made is not None and made.name not in pod.device_claims:
        yield f"pod {pod.key} is bound, but its status does not name claim {made}"
    if not books.begun.is_first(pod):
        return
    for promise in _promises_of(pod, books):
        other = books.pods.get(promise.pod)
        claim = books.claims.get(promise.uid)
        if other is None or other.uid == pod.uid or not other.is_waiting or claim is None:
            continue
        if not claim.terminating and other.uid not in claim.consumers:
            yield (
                f"pod {pod.key} is the first of its gang to be bound, and claim {claim.key} "
                f"is not reserved for {other.key} yet"
            )


def _claims_lacking(pod: Pod, books: _Books, node: str) -> Iterator[str]:
    for name in pod.device_claims:
        claim = books.names.get(Key(pod.key.namespace, name))
        if claim is None:
            yield f"its claim {name} does not exist" if name else "a claim of it is not made"
        elif not claim.is_allocated:
            yield f"claim {name} has no devices"
        elif pod.uid not in claim.consumers:
            yield f"claim {name} is not reserved for it"
        elif claim.node and claim.node != node:
            yield f"claim {name} has devices of {claim.node}"


def _promises_of(pod: Pod, books: _Books) -> list[DevicePromise]:
    """What standing Reservations of the gang of a pod say of claims."""
    return [
        promise
        for reservation in books.reservations.values()
        if reservation.gang == pod.gang
        for promise in reservation.devices
    ]


def _left(claim: DeviceClaim, books: _Books) -> Iterator[str]:
    """What a claim has in the end that nobody uses, and no Reservation holds.

    Pods that had a node are left to kube-controller-manager, and so are pods that have ended.
    """
    if not claim.is_allocated or claim.terminating:
        return
    promised = {promise.pod for promise in books.promises(claim)}
    if not (claim.consumers or promised):
        yield "keeps its devices, and is reserved for nobody"
    for uid, name in sorted(claim.consumers.items()):
        user = books.pods.get(uid)
        is_over = user is not None and user.phase in ("Succeeded", "Failed")
        if uid not in (*promised, *books.bound) and not (is_over or books.is_others(uid)):
            state = "is gone" if user is None else "is not bound"
            yield f"keeps its devices for pod {name} ({uid}), which {state}"
