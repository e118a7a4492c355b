"""Which device each request of a claim gets, once the plan has chosen the nodes.

``filters.devices.rows`` counts exactly, so the pods of a plan always get their devices. Devices
that few selections want are given away first.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from ...filters.devices import admin_access, bundles, requests
from ...model.cluster import Member
from ...model.devices.claims import (
    AttributeName,
    ClaimAllocation,
    ClaimName,
    DeviceClaim,
    DeviceResult,
    DeviceRoom,
    FreeDevice,
    Selection,
    WantedDevices,
    is_stand_in,
)
from ...model.devices.inventory import Device, DeviceId
from ...model.keys import NodeName, Uid
from ..compile.bipartite_matching import matched
from . import counter_choice
from .bundle_choice import BundleChoice

Place = tuple[Member, NodeName]


class Wish(NamedTuple):
    """One device that a request of a claim needs."""

    claim: ClaimName
    selection: Selection
    bit: int  # the index of the selection in the room; -1 if no device is known to meet it
    names: tuple[str, ...]  # of the request, or of its alternatives


def allocations(
    room: DeviceRoom, places: Iterable[Place]
) -> Mapping[Uid, tuple[ClaimAllocation, ...]]:
    """The devices for the claims of these members on their nodes, by member.

    A member is left out if a claim of it does not exist, or if its node lacks devices for it.
    """
    by_node: dict[NodeName, list[Member]] = {}
    for member, node in places:
        if member.device_claims:
            by_node.setdefault(node, []).append(member)
    if not by_node:
        return {}
    finder = _Finder(room)
    allocated: dict[Uid, tuple[ClaimAllocation, ...]] = {}
    for node, members in by_node.items():
        allocated.update(finder.on(node, sorted(members, key=lambda member: member.key)))
    return allocated


class _Finder:
    """The claims, classes and free devices by name."""

    def __init__(self, room: DeviceRoom) -> None:
        self._claims = {claim.key: claim for claim in room.claims}
        self._classes = {device_class.name: device_class for device_class in room.classes}
        self._index = {selected: i for i, selected in enumerate(room.selections)}
        self._free = {here.node: here.free for here in room.nodes}
        self._left = {here.node: here.counters for here in room.nodes}
        self._room = room
        self._divided: dict[WantedDevices, bundles.Divided] = {}
        self._at: dict[NodeName, admin_access.Here] = {}

    @cached_property
    def _devices(self) -> Mapping[DeviceId, Device]:
        """All devices by name; of several of one name, that of the newest generation."""
        pieces = sorted(self._room.slices, key=lambda piece: piece.generation)
        return {device.id: device for piece in pieces for device in piece.devices}

    def on(
        self, node: NodeName, members: Sequence[Member]
    ) -> Mapping[Uid, tuple[ClaimAllocation, ...]]:
        """The devices of members on one node."""
        claims = {
            member.uid: own
            for member in members
            if len(own := self._claims_of(member)) == len(member.device_claims)
        }
        open_claims = [c for own in claims.values() for c in own if not c.is_allocated]
        named = {claim.key: claim for claim in open_claims}
        wanted = {name: claim for name, claim in named.items() if not claim.takes_nothing}
        free = self._free.get(node, ())
        parts = {name: self._parts(claim) for name, claim in wanted.items()}
        wishes = [wish for name in wanted for wish in self._wishes(name, parts[name], free)]
        tied = [(name, of) for name in wanted for of in parts[name].bundles]
        bundled, short = self._bundled(tied, wishes, free, node)
        results: dict[ClaimName, list[DeviceResult]] = {}
        for (name, _), given in zip(tied, bundled, strict=False):
            results.setdefault(name, []).extend(r for r in given if not is_stand_in(r.device))
        taken = {result.device for given in bundled for result in given}
        rest = [device for device in free if device.id not in taken]
        matching = self._given(wishes, rest, self._remaining(node, taken))
        short |= {wish.claim for i, wish in enumerate(wishes) if i not in matching}
        for name in named.keys() - wanted.keys():
            administered = self._administered(named[name], node)
            results[name] = administered
            short |= set() if administered else {name}
        for i, device in matching.items():
            if not is_stand_in(device):
                result = DeviceResult(self._name(wishes[i], device), device)
                results.setdefault(wishes[i].claim, []).append(result)
        return {
            uid: tuple(_allocation(claim, results.get(claim.key, ())) for claim in own)
            for uid, own in claims.items()
            if short.isdisjoint(claim.key for claim in own)
        }

    def _claims_of(self, member: Member) -> Sequence[DeviceClaim]:
        """The claims of a member that exist."""
        names = (ClaimName(member.key.namespace, own.claim or "") for own in member.device_claims)
        return [self._claims[name] for name in names if name in self._claims]

    def _parts(self, claim: DeviceClaim) -> bundles.Divided:
        """The bundles and the other requests of a claim."""
        known = self._divided.get(claim.wanted)
        if known is None:
            known = self._divided[claim.wanted] = bundles.divided(claim, self._classes)
        return known

    def _wishes(
        self, claim: ClaimName, parts: bundles.Divided, free: Sequence[FreeDevice]
    ) -> Iterator[Wish]:
        """One wish for each device that a claim lacks; all of a node count with stand-ins."""
        for request, selected in parts.loose:
            index = self._index.get(selected, -1)
            count = request.count
            if selected.takes_all:
                count = max(1, sum(1 for device in free if _suits(device, index)))
            names = tuple([name for name, _ in request.by_name()])
            wish = Wish(claim, selected, index, names)
            yield from (wish for _ in range(count))

    def _administered(self, claim: DeviceClaim, node: NodeName) -> list[DeviceResult]:
        """The devices of a claim for admin access on a node; none if the node lacks some."""
        if node not in self._at:
            self._at[node] = admin_access.on(node, self._room.slices)
        asked = admin_access.wanted(claim, self._classes)
        chosen = admin_access.chosen(asked, self._at[node], self._room.rules) or ()
        return [
            DeviceResult(request.name, device)
            for request, devices in zip(claim.requests, chosen, strict=False)
            for device in devices
        ]

    def _bundled(
        self,
        tied: Sequence[tuple[ClaimName, bundles.ClaimBundle]],
        wishes: Sequence[Wish],
        free: Sequence[FreeDevice],
        node: NodeName,
    ) -> tuple[Sequence[Sequence[DeviceResult]], set[ClaimName]]:
        """The devices of each bundle, such that every wish can be met, too; and whose lack them."""
        if not tied:
            return [], set()

        def suits(rest: Sequence[FreeDevice], left: Sequence[int]) -> bool:
            return len(self._given(wishes, rest, left)) == len(wishes)

        every = [of.bundle for _, of in tied]
        choice = BundleChoice(every, self._index, free, self._value)
        chosen = choice.find(self._left.get(node, ()), suits)
        if chosen is None:
            return [], {name for name, _ in tied}
        named = [
            [DeviceResult(self._option_name(of, option, device), device) for device, option in own]
            for (_, of), own in zip(tied, chosen, strict=True)
        ]
        return named, set()

    def _option_name(self, of: bundles.ClaimBundle, option: int, device: DeviceId) -> str:
        """The name of the request, or of its first alternative, that a device is for."""
        names, (_, selected) = of.names[option], of.bundle.answers[option]
        return names[self._alternative(selected, device)] if selected.alternatives else names[0]

    def _remaining(self, node: NodeName, taken: Collection[DeviceId]) -> Sequence[int]:
        """How much is left of each counter of a node without what these devices consume."""
        left = [*self._left.get(node, ())]
        for device in self._free.get(node, ()):
            for counter, n in device.counters if device.id in taken else ():
                left[counter] -= n
        return left

    def _value(self, device: DeviceId, attribute: AttributeName) -> bundles.Value:
        """The value of an attribute; None if the device does not have it, or does not exist."""
        known = self._devices.get(device)
        return None if known is None else bundles.value(known, attribute)

    def _given(
        self, wishes: Sequence[Wish], free: Iterable[FreeDevice], left: Sequence[int]
    ) -> Mapping[int, DeviceId]:
        """A different device for each wish, by position, as far as that is possible.

        ``left`` has how much there is of each counter. Without counters, the device that fewest
        selections want comes first; for a request with alternatives, the
        device of the earliest alternative.
        """
        devices = list(free)
        given: dict[int, DeviceId] = {}
        bits = (wish.bit for wish in wishes if wish.bit >= 0)
        if shared := counter_choice.sharing(bits, devices):
            places = [i for i, w in enumerate(wishes) if w.bit >= 0 and shared >> w.bit & 1]
            chosen = counter_choice.chosen([wishes[i].bit for i in places], devices, left)
            given.update(zip(places, chosen, strict=False))
            devices = [device for device in devices if not device.selections & shared]
        rarest = sorted(devices, key=lambda device: (device.selections.bit_count(), device.id))
        kinds = {wish.bit: wish.selection for wish in wishes}
        fits = {index: [device.id for device in rarest if _suits(device, index)] for index in kinds}
        for index, selected in kinds.items():
            if selected.alternatives:
                fits[index].sort(key=partial(self._alternative, selected))
        others = [i for i in range(len(wishes)) if i not in given]
        order = [wishes[i].bit for i in others]
        matching = matched(order, fits, {device.id: 1 for device in rarest})
        return given | {others[at]: device for at, device in matching.items()}

    def _alternative(self, selected: Selection, device: DeviceId) -> int:
        """The first alternative of a selection that a device meets."""
        known, rules = self._devices[device], self._room.rules
        parts = enumerate(selected.alternatives)
        return next(i for i, part in parts if requests.is_met(part, known, rules))

    def _name(self, wish: Wish, device: DeviceId) -> str:
        """The name of the request, or of its alternative, that a device is for."""
        names = wish.names
        return names[self._alternative(wish.selection, device)] if len(names) > 1 else names[0]


def _suits(device: FreeDevice, index: int) -> bool:
    """Whether a device meets the selection of this index."""
    return index >= 0 and bool(device.selections >> index & 1)


def _allocation(claim: DeviceClaim, results: Iterable[DeviceResult]) -> ClaimAllocation:
    names = (name for request in claim.requests for name, _ in request.by_name())
    order = {name: i for i, name in enumerate(names)}
    ranked = sorted(results, key=lambda result: (order[result.request], result.device))
    return ClaimAllocation(claim.key.name, claim.uid, tuple(ranked))
