"""The devices that each node has, from the slices of pools.

Only the newest generation of a pool counts, and only once all of its slices are known; a pool that
has two devices of one name on a node gives that node none. Source: ``GatherPools`` of the allocator
of k8s.io/dynamic-resource-allocation.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ...model.devices.inventory import Device, ResourceSlice
from ...model.keys import NodeName
from . import counters

PoolName = tuple[str, str]  # the driver, and the name of the pool


def pool_of(piece: ResourceSlice) -> PoolName:
    """The pool that a slice is a part of."""
    return piece.driver, piece.pool


def devices(pieces: Iterable[ResourceSlice]) -> Mapping[NodeName | None, tuple[Device, ...]]:
    """The devices of the slices of one pool, by node; None for those of several nodes."""
    current = newest(pieces)
    if not current or len(current) != current[0].slices or not counters.are_sound(current):
        return {}
    by_node: dict[NodeName | None, list[Device]] = {}
    is_spread = counters.are_spread(current)
    for piece in current:
        spread = (_spread(of) if of.counters else of for of in piece.devices)
        by_node.setdefault(piece.node, []).extend(spread if is_spread else piece.devices)
    return {node: tuple(own) for node, own in by_node.items() if not _has_twins(own)}


def unusable_on(pieces: Collection[ResourceSlice]) -> Collection[NodeName | None]:
    """The nodes of the newest slices of one pool whose devices do not count."""
    return {piece.node for piece in newest(pieces)} - devices(pieces).keys()


def newest(pieces: Iterable[ResourceSlice]) -> Sequence[ResourceSlice]:
    """The slices of the newest generation, by name."""
    known = sorted(pieces, key=lambda piece: piece.name)
    newest = max((piece.generation for piece in known), default=0)
    return [piece for piece in known if piece.generation == newest]


def _spread(device: Device) -> Device:
    """A device whose counters devices at other nodes consume, too."""
    return replace(device, unsupported=(*device.unsupported, "consumesCounters at several nodes"))


def _has_twins(devices: Iterable[Device]) -> bool:
    names = Counter(device.id.name for device in devices)
    return any(times > 1 for times in names.values())
