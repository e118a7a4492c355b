"""Which partitions of devices requests get, so that no counter which they share is exceeded.

What fits in each cell of a node is known with the partitions that fill it so
(``filters.devices.cells``); cells are then combined until every request has a device.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from ...filters.devices import cells
from ...filters.devices.bundles import Kind
from ...filters.devices.cells import Need, Numbers
from ...filters.devices.ways import NoLimitsError, Want
from ...model.devices.claims import FreeDevice
from ...model.devices.inventory import DeviceId

# How many of each selection are answered, and the needs that do it, by the index of the selection.
_Reached = dict[Numbers, tuple[tuple[int, Need], ...]]


def sharing(wanted: Iterable[int], free: Sequence[FreeDevice]) -> int:
    """The selections, of those with these indexes, that compete with some that have counters."""
    every = sum(1 << bit for bit in {*wanted})
    competing, grown = 0, 0
    for device in free:
        grown |= device.selections & every if device.counters else 0
    while grown != competing:
        competing = grown
        for device in free:
            grown |= device.selections & every if device.selections & competing else 0
    return competing


def chosen(
    wanted: Sequence[int], free: Iterable[FreeDevice], left: Sequence[int]
) -> Sequence[DeviceId]:
    """A device for each of these selections; none if some lack one, or with too many ways.

    ``left`` has how much there is of each counter.
    """
    try:
        return _chosen(wanted, free, left)
    except NoLimitsError:
        return ()


def _chosen(
    wanted: Sequence[int], free: Iterable[FreeDevice], left: Sequence[int]
) -> Sequence[DeviceId]:
    names: dict[tuple[int, tuple[tuple[int, int], ...]], list[DeviceId]] = {}
    for device in free:
        names.setdefault((device.selections, device.counters), []).append(device.id)
    kinds = [Kind(mask, (), len(own), uses) for (mask, uses), own in sorted(names.items())]
    # In the order of ``limits``: the number of steps depends on it, and is limited.
    demand = dict(sorted(Counter(wanted).items(), reverse=True))
    there = cells.room(kinds, left)
    own = [cells.needs(Want(((bit, 1),)), kinds, there) for bit in demand]
    reached: _Reached = {(0,) * len(own): ()}
    for cell in cells.joined(own):
        filled = cells.filled(cell, [cells.inside(cell, needs) for needs in own], there)
        more: _Reached = {}
        for numbers, path in reached.items():
            for here, fill in filled.items():
                total = tuple(n + m for n, m in zip(numbers, here, strict=True))
                if all(n <= most for n, most in zip(total, demand.values(), strict=True)):
                    more.setdefault(total, (*path, *fill))
        reached = more
    given: dict[int, list[DeviceId]] = {bit: [] for bit in demand}
    order = [*demand]
    for at, need in reached.get(tuple(demand.values()), ()):
        kind = kinds[need[0][0]]
        given[order[at]].append(names[kind.selections, kind.counters].pop())
    return [given[bit].pop() for bit in wanted if given[bit]]
