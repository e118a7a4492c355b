"""What partitions of devices consume of the counters that they share.

A pool has sets of counters, such as the memory slices of one GPU. A device that consumes more of a
counter than is left cannot be allocated; what an allocated device consumes, it consumes whoever has
it. Sources: KEP-4815, and ``checkAvailableCounters`` of the allocator of
k8s.io/dynamic-resource-allocation.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from ...model.devices.inventory import Counter, Device, DeviceId, ResourceSlice
from .values import amount

Key = tuple[str, str, str, str]  # the driver, the pool, the counter set and the counter
Uses = tuple[tuple[int, int], ...]  # the numbers of counters, and how much is consumed of each


class Shared(NamedTuple):
    """What devices of a place consume, and how much there is of each counter, and is left of it.

    Counters have numbers, and amounts are multiples of what all consumption is a multiple of.
    """

    uses: Mapping[DeviceId, Uses]
    whole: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    blocked: frozenset[DeviceId] = frozenset()  # a counter of their pool is exceeded


NOTHING_SHARED = Shared({})


def offered(pieces: Iterable[ResourceSlice]) -> Mapping[Key, Fraction]:
    """The counters of the current slices of a pool."""
    return {
        (piece.driver, piece.pool, of.counter_set, of.name): _amount(of)
        for piece in pieces
        for of in piece.counters
    }


def are_sound(pieces: Collection[ResourceSlice]) -> bool:
    """Whether the current slices of a pool define each counter set once, and all that are used.

    Amounts must not be negative, although the API server admits such.
    """
    sets = [name for piece in pieces for name in {of.counter_set for of in piece.counters}]
    known = {(of.counter_set, of.name) for piece in pieces for of in piece.counters}
    used = {
        (of.counter_set, of.name) for p in pieces for device in p.devices for of in device.counters
    }
    return len(sets) == len({*sets}) and used <= known and not any(map(_is_negative, _all(pieces)))


def shared(
    devices: Iterable[Device], known: Mapping[Key, Fraction], held: Collection[DeviceId]
) -> Shared:
    """The counters of a place whose devices these are; ``held`` has those that are allocated."""
    consumed = {device.id: _consumed(device) for device in devices if device.counters}
    left = dict(known)
    for device in consumed.keys() & held:
        for key, n in consumed[device].items():
            left[key] -= n
    exceeded = {key[:2] for key, n in left.items() if n < 0}
    units: dict[Key, Fraction] = {}
    for uses in consumed.values():
        for key, n in uses.items():
            units[key] = _common(units.get(key, Fraction(0)), n)
    numbers = {key: i for i, key in enumerate(sorted(key for key, unit in units.items() if unit))}
    return Shared(
        {
            device: tuple(
                sorted((numbers[key], int(n / units[key])) for key, n in uses.items() if n)
            )
            for device, uses in consumed.items()
        },
        tuple(int(known[key] // units[key]) for key in numbers),
        tuple(max(0, int(left[key] // units[key])) for key in numbers),
        frozenset(device for device in consumed if device[:2] in exceeded),
    )


def _consumed(device: Device) -> Mapping[Key, Fraction]:
    return {
        (device.id.driver, device.id.pool, of.counter_set, of.name): _amount(of)
        for of in device.counters
    }


def _all(pieces: Iterable[ResourceSlice]) -> Iterator[Counter]:
    """The counters of a pool, and what its devices consume."""
    for piece in pieces:
        yield from piece.counters
        yield from (of for device in piece.devices for of in device.counters)


def _is_negative(of: Counter) -> bool:
    return of.quantity.startswith("-")


def _amount(of: Counter) -> Fraction:
    return amount(of.quantity) or Fraction(0)


def _common(one: Fraction, other: Fraction) -> Fraction:
    """The largest number that both are multiples of."""
    below = one.denominator * other.denominator
    return Fraction(
        gcd(one.numerator * other.denominator, other.numerator * one.denominator), below
    )


def are_spread(pieces: Sequence[ResourceSlice]) -> bool:
    """Whether devices at several places consume counters of a pool."""
    places = {piece.node for piece in pieces for device in piece.devices if device.counters}
    return len(places) > 1
