"""Which devices of a node a claim for admin access gets.

Other claims keep these devices and lose none to it, so a node has them whatever else is on it. It
gets a device once; taints count as for other claims. Source: ``allocateDevice`` of the allocator of
k8s.io/dynamic-resource-allocation.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.devices.claims import MOST_RESULTS, DeviceClaim, Selection, counting_sets
from ...model.devices.inventory import Device, DeviceClass, DeviceId, ResourceSlice, TaintRule
from ...model.keys import NodeName
from . import pools, requests, selectors

Wanted = tuple[tuple[Selection, int], ...]  # what each request of a claim selects, and how many


class Here(NamedTuple):
    """The devices of a node, and whether the newest slices of all of its pools can be used."""

    devices: Sequence[Device] = ()
    is_whole: bool = True


def wanted(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> Wanted:
    """What the requests of a claim whose classes exist ask for, in the order of the claim."""
    return tuple((chosen, of.count) for of, chosen in requests.selections(claim, classes))


def row(asked: Wanted) -> str:
    """The name of the resource of nodes that have the devices of such a claim."""
    labels = (f"{count} {of.label}" if count > 1 else of.label for of, count in asked)
    return counting_sets(f"{' + '.join(labels)} with adminAccess")


def on(node: NodeName, slices: Iterable[ResourceSlice]) -> Here:
    """The devices of a node."""
    by_pool: dict[pools.PoolName, list[ResourceSlice]] = {}
    for piece in slices:
        by_pool.setdefault(pools.pool_of(piece), []).append(piece)
    devices = [pools.devices(pieces).get(node, ()) for pieces in by_pool.values()]
    is_whole = all(node not in pools.unusable_on(pieces) for pieces in by_pool.values())
    return Here([device for own in devices for device in own], is_whole)


def chosen(
    asked: Wanted, here: Here, rules: Collection[TaintRule]
) -> Sequence[Sequence[DeviceId]] | None:
    """The devices of each request; None if the node lacks some.

    Requests for all devices come first. The others get theirs by augmenting paths (Kuhn, 1955).
    """
    taken: set[DeviceId] = set()
    answers: list[list[DeviceId]] = [[] for _ in asked]
    for answer, (selected, _) in zip(answers, asked, strict=True):
        if selected.takes_all:
            answer.extend(_all_of(selected, here, rules))
            if not answer or not taken.isdisjoint(answer):
                return None
            taken.update(answer)
    slots = [i for i, (of, count) in enumerate(asked) if not of.takes_all for _ in range(count)]
    fits = [
        [d.id for d in here.devices if d.id not in taken and requests.is_met(of, d, rules)]
        for of, _ in asked
    ]
    slot_of: dict[DeviceId, int] = {}

    def is_placed(slot: int, tried: set[DeviceId]) -> bool:
        for device in fits[slots[slot]]:
            if device not in tried:
                tried.add(device)
                if device not in slot_of or is_placed(slot_of[device], tried):
                    slot_of[device] = slot
                    return True
        return False

    if not all(is_placed(slot, set()) for slot in range(len(slots))):
        return None
    for device, slot in slot_of.items():
        answers[slots[slot]].append(device)
    return answers if sum(map(len, answers)) <= MOST_RESULTS else None


def _all_of(selected: Selection, here: Here, rules: Collection[TaintRule]) -> Collection[DeviceId]:
    """All devices of a node that a selection takes; none if it cannot have one of them."""
    matching = [d for d in here.devices if selectors.matches(selected.expressions, d)]
    can_have = here.is_whole and all(requests.is_untainted(selected, d, rules) for d in matching)
    return [device.id for device in matching] if can_have else ()
