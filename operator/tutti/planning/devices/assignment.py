"""Which device each request of a claim gets, once the plan has chosen the nodes.

``filters.devices.rows`` counts exactly, so the pods of a plan always get their devices. Devices
that few selections want are given away first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...filters.devices import requests
from ...model.cluster import Member
from ...model.devices.claims import (
    ClaimAllocation,
    ClaimName,
    DeviceClaim,
    DeviceResult,
    DeviceRoom,
    FreeDevice,
)
from ...model.devices.inventory import DeviceId
from ...model.keys import NodeName, Uid
from ..compile.bipartite_matching import matched

Place = tuple[Member, NodeName]


class Wish(NamedTuple):
    """One device that a request of a claim needs."""

    claim: ClaimName
    request: str
    selection: int  # its index in the room; -1 if no device is known to meet it


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

    def on(
        self, node: NodeName, members: Sequence[Member]
    ) -> Mapping[Uid, tuple[ClaimAllocation, ...]]:
        """The devices of members on one node."""
        claims = {
            member.uid: own
            for member in members
            if len(own := self._claims_of(member)) == len(member.device_claims)
        }
        wanted = {claim.key: claim for own in claims.values() for claim in own}
        wishes = [wish for claim in wanted.values() for wish in self._wishes(claim)]
        given = _given(wishes, self._free.get(node, ()))
        short = {wish.claim for i, wish in enumerate(wishes) if i not in given}
        results: dict[ClaimName, list[DeviceResult]] = {}
        for i, device in given.items():
            result = DeviceResult(wishes[i].request, device)
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

    def _wishes(self, claim: DeviceClaim) -> Iterator[Wish]:
        """One wish for each device that a claim lacks."""
        if not claim.is_allocated:
            for request, selected in requests.selections(claim, self._classes):
                wish = Wish(claim.key, request.name, self._index.get(selected, -1))
                yield from (wish for _ in range(request.count))


def _given(wishes: Sequence[Wish], free: Iterable[FreeDevice]) -> Mapping[int, DeviceId]:
    """A different device for each wish, by position, as far as that is possible."""
    rarest = sorted(free, key=lambda device: (device.selections.bit_count(), device.id))
    kinds = [wish.selection for wish in wishes]
    fits = {
        kind: [device.id for device in rarest if kind >= 0 and device.selections >> kind & 1]
        for kind in set(kinds)
    }
    return matched(kinds, fits, {device.id: 1 for device in rarest})


def _allocation(claim: DeviceClaim, results: Iterable[DeviceResult]) -> ClaimAllocation:
    order = {request.name: i for i, request in enumerate(claim.requests)}
    ranked = sorted(results, key=lambda result: (order[result.request], result.device))
    return ClaimAllocation(claim.key.name, claim.uid, tuple(ranked))
