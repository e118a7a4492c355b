"""Resources that count bundles: requests of claims whose devices must have an attribute in common.

Each weighted sum of bundles that limits some node is a resource (``filters.devices.limits``).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...filters.devices import bundles, limits, rows, ways
from ...filters.devices.bundles import Bundle, Kind, Seen, Value
from ...filters.devices.counters import Shared
from ...filters.devices.limits import Limits, Weights
from ...model.devices.claims import AttributeName, Selection, counting_sets
from ...model.devices.inventory import Device
from ...model.keys import NodeName
from ...model.resources import Resources
from ..node_usage import VolumeUsage

MOST_ROWS = rows.MOST_ROWS  # sums, in all

Place = NodeName | None
Tie = tuple[tuple[Bundle, ...], tuple[Selection, ...]]  # bundles, and what other requests select
Values = tuple[Value, ...]  # of a device, that bundles compare


class Tied(NamedTuple):
    """The bundles of claims that wait, and what other requests of such claims select; sorted."""

    bundles: tuple[Bundle, ...] = ()
    loose: tuple[Selection, ...] = ()
    options: frozenset[Selection] = frozenset()  # of bundles, that no whole request selects
    left_out: frozenset[Bundle] = frozenset()  # of claims for which there are too many bundles


NOTHING_TIED = Tied()


class _Devices(NamedTuple):
    """The devices of a node, those of them that are free, how many there are, and the counters."""

    whole: tuple[Kind, ...]
    free: tuple[Kind, ...]
    number: int
    counters: Shared


class _Room(NamedTuple):
    """The limits of a node by all of its devices and by the free ones, and how many these are."""

    whole: Limits
    free: Limits
    devices: int


_NO_LIMITS = Limits({}, {})
_NO_ROOM = _Room(_NO_LIMITS, _NO_LIMITS, 0)


class BundleRows:
    """The limits of each node, the names of all sums, and bundles that no limits describe."""

    def __init__(self) -> None:
        self._tied = NOTHING_TIED
        self._selections: Sequence[Selection] = ()
        self.ties: Sequence[Tie] = ()  # the bundles and what is beside them, each in its first turn
        self._attributes: Sequence[AttributeName] = ()
        self._wants: tuple[ways.Want, ...] = ()
        self._loose = 0
        self._left_out: frozenset[int] = frozenset()  # so that the others are few enough
        self._uncounted: Collection[Bundle] = ()  # the same, without the selections
        self.left_out: Collection[Selection] = ()  # of requests that are in no bundle, likewise
        self._devices: dict[Place, _Devices] = {}
        self._unread: set[Place] = set()
        self._rooms: dict[Place, _Room] = {}
        self._failed: Mapping[int, str] = {}  # bundles without limits on some node
        self._unlimited: Collection[int] = ()  # the same if all devices of the node were free
        self._without: Mapping[Bundle, str] = {}
        self._names: Mapping[Weights, str] = {}

    def choose(
        self,
        tied: Tied,
        selections: Sequence[Selection],
        largest: Mapping[int, int],
    ) -> None:
        """Count these bundles from now on; every place must be read again.

        ``largest`` has how many devices requests count for that take all, by their selection.
        """
        index = {selected: i for i, selected in enumerate(selections)}
        self._tied, self._selections = tied, selections
        attributes = {of.attribute for bundle in tied.bundles for of in bundle.constraints}
        self._attributes = sorted(attributes)
        self._wants = tuple(
            ways.wanted(bundle, index, self._attributes, largest) for bundle in tied.bundles
        )
        self._loose = sum(1 << index[selected] for selected in tied.loose)
        self._take_all_in()
        self._devices, self._rooms, self._failed = {}, {}, {}
        self._unread, self._unlimited = set(), ()

    @property
    def width(self) -> int:
        """How many values of each device bundles compare."""
        return len(self._attributes)

    def values(self, device: Device) -> Values:
        """The values of a device that bundles compare."""
        return tuple(bundles.value(device, attribute) for attribute in self._attributes)

    def read(
        self, place: Place, whole: Sequence[Seen], free: Sequence[Seen], counters: Shared
    ) -> None:
        """Take in the devices of a place, those of them that are free, and what they share."""
        self._devices[place] = _Devices(
            bundles.kinds(whole), bundles.kinds(free), len(whole), counters
        )
        self._unread.add(place)

    def name(self) -> None:
        """Name the sums that limit a place; if they are too many, ties are left out.

        Ties that come first stay. Which ones stay is decided again once the devices of a place
        have changed, or which of them are free.
        """
        if self._left_out and self._unread:
            self._take_all_in()
            self._unread = {*self._devices}
        self._find_limits()
        if len(self._sums()) > MOST_ROWS:
            self._leave_out()
        self._names = {weights: self._name(weights) for weights in sorted(self._sums())}
        self._without = {
            of: f"{why}, with {of.label}"
            for i, why in self._failed.items()
            for of in [self._bundle(i)]
        }

    def _take_all_in(self) -> None:
        """Leave nothing out."""
        self._left_out, self._uncounted, self.left_out = frozenset(), (), ()

    def _sums(self) -> Collection[Weights]:
        """The sums that limit a place."""
        sums = {weights for room in self._rooms.values() for weights in room.free.bounds}
        sums |= {((i, 1),) for i in range(len(self._wants))}
        return {of for of in sums if self._left_out.isdisjoint(i for i, _ in of)}

    def _leave_out(self) -> None:
        """Leave ties out until the sums are few enough; those that come first stay."""
        bundle_bits = {bundle: 1 << i for i, bundle in enumerate(self._tied.bundles)}
        first = len(bundle_bits)
        every_index = {i for weights in self._sums() for i, _ in weights} | self._left_out
        summed = {~i for i in every_index if i < 0}
        loose_bits = {self._selections[i]: 1 << first + i for i in summed}
        groups = [
            sum(bundle_bits[of] for of in tied) + sum(loose_bits.get(of, 0) for of in loose)
            for tied, loose in self.ties
        ]
        every = rows.union(groups)

        def fits(kept: int) -> bool:
            left = [i for i in range(every.bit_length()) if (every & ~kept) >> i & 1]
            self._left_out = frozenset(i if i < first else ~(i - first) for i in left)
            self._unread = {*self._devices}
            self._find_limits()
            return len(self._sums()) <= MOST_ROWS

        # Limits take longer than rows, so nothing is passed over, and the sums of all ties tell
        # about how many fit: those of which few enough sums are.
        masks = [sum(1 << (i if i >= 0 else first + ~i) for i, _ in of) for of in self._sums()]
        needed = sorted(
            max((n for n, group in enumerate(groups) if group & mask), default=0) for mask in masks
        )
        fits(rows.fitting(groups, fits, passed=0, guess=max(needed[MOST_ROWS], 1)))
        self._uncounted = {self._tied.bundles[i] for i in self._left_out if i >= 0}
        self.left_out = {self._selections[~i] for i in self._left_out if i < 0}

    def _find_limits(self) -> None:
        """Find the limits of the places that changed.

        A bundle without limits on one node is not tried on the nodes after it, so that each takes
        long at most once. After that, every change is a reason to go through all nodes again.
        """
        places = self._devices if self._failed or self._unlimited else self._unread
        failed: dict[int, str] = {}  # by the free devices of a node
        hard: set[int] = set()  # by all devices of a node
        for place in sorted(places, key=str):
            here = self._devices[place]
            whole = self._limits(here.whole, here.counters.whole, hard)
            free = self._limits(here.free, here.counters.free, failed)
            hard |= whole.without.keys()
            failed |= free.without
            self._rooms[place] = _Room(whole, free, here.number)
        self._failed, self._unlimited, self._unread = failed, hard, set()

    def _limits(
        self, kinds: tuple[Kind, ...], counters: tuple[int, ...], left_out: Collection[int]
    ) -> Limits:
        loose = self._loose & ~sum(1 << ~i for i in self._left_out if i < 0)
        left_out = self._left_out.union(left_out)
        return limits.limits(kinds, self._wants, loose, counters, left_out, order=self._order())

    def _order(self) -> tuple[int, ...]:
        """The bundles, and ``~i`` for selection i, in turn; in one turn, the smallest first."""
        numbers = {bundle: i for i, bundle in enumerate(self._tied.bundles)}
        places = {selected: i for i, selected in enumerate(self._selections)}
        order: list[int] = []
        for tied, loose in self.ties:
            own = (numbers[bundle] for bundle in tied)
            order += sorted(own, key=lambda i: (self._wants[i].size, i))
            order += [~places[selected] for selected in loose]
        return tuple(order)

    def _name(self, weights: Weights) -> str:
        labels = []
        for i, weight in weights:
            bundle = self._bundle(i)
            labels.append(f"{weight} x {bundle.label}" if weight > 1 else bundle.label)
        return counting_sets("|".join(labels))

    def _bundle(self, i: int) -> Bundle:
        return self._tied.bundles[i] if i >= 0 else bundles.unit(self._selections[~i])

    @property
    def state(self) -> tuple[object, ...]:
        """What the counts of all places depend on, and what pods are told."""
        return self._names, self._without, self._unlimited, self._left_out

    @property
    def are_left_out(self) -> bool:
        """Whether bundles or selections are left out, of which the turns decide."""
        without = self._failed or self._unlimited
        return bool(self._left_out or self._tied.left_out or without)

    @property
    def are_counted(self) -> bool:
        """Whether there are bundles, or devices that consume counters."""
        return bool(self._wants or self._loose)

    def counted(self, place: Place) -> VolumeUsage:
        """How much a place has of each sum, and how much of it is taken."""
        room = self._rooms.get(place, _NO_ROOM)
        offered, used = {}, {}
        for weights, name in self._names.items():
            free = _bound(weights, room.free, room.devices)
            are_known = all(i not in self._unlimited for i, _ in weights)
            whole = room.whole if are_known else _NO_LIMITS
            offered[name] = max(free, _bound(weights, whole, room.devices))
            used[name] = offered[name] - free
        return VolumeUsage(Resources.of(offered), Resources.of(used))

    def requested(
        self, wanted: Iterable[Bundle], loose: Iterable[tuple[Selection, int]]
    ) -> Resources:
        """What bundles, and other requests for so many devices, take of each sum."""
        amounts: Counter[int] = Counter(self._tied.bundles.index(bundle) for bundle in wanted)
        for selected, count in loose:
            amounts[~self._selections.index(selected)] += count
        return Resources.of(
            {
                name: sum(weight * amounts[i] for i, weight in weights)
                for weights, name in self._names.items()
            }
        )

    def knows(self, bundle: Bundle) -> bool:
        """Whether a bundle is counted."""
        return bundle in self._tied.bundles

    def problem(self, bundle: Bundle) -> str:
        """Why not every node has limits that say how many of a bundle fit; empty if each has."""
        if bundle in self._tied.left_out or bundle in self._uncounted:
            return f"more than {MOST_ROWS} limits on constraints"
        return self._without.get(bundle, "")


def _bound(weights: Weights, known: Limits, devices: int) -> int:
    """The bound of a sum; one that is not needed here has a bound that nothing exceeds."""
    return known.bounds.get(weights, sum(weight for _, weight in weights) * devices)
