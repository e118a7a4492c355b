"""Which devices of a node the bundles of claims get, so that all other requests get theirs, too.

The plan gives a node no more bundles and devices than ``filters.devices`` says that it has, so a
choice exists. All are tried until one is found; devices that few selections want come first, and
of stacks (``filters.devices.cells``) the highest ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...filters.devices import cells, ways
from ...filters.devices.bundles import OF_STAND_IN, Bundle, Kind, Value
from ...filters.devices.ways import NoLimitsError, Way
from ...model.devices.claims import AttributeName, FreeDevice, Selection, is_stand_in
from ...model.devices.inventory import DeviceId

Chosen = Sequence[tuple[DeviceId, int]]  # the devices of a bundle, each with its option
# Whether other requests get their devices from these, with so much left of each counter.
Suits = Callable[[Sequence[FreeDevice], Sequence[int]], bool]


class BundleChoice:
    """The free devices of a node, by kind."""

    def __init__(
        self,
        bundles: Sequence[Bundle],
        bits: Mapping[Selection, int],
        free: Sequence[FreeDevice],
        value: Callable[[DeviceId, AttributeName], Value],
    ) -> None:
        """``bits`` has the index of each selection; ``value`` gives attributes."""
        attributes = sorted({of.attribute for bundle in bundles for of in bundle.constraints})
        totals = {
            bit: max(1, sum(of.selections >> bit & 1 for of in free))
            for selected, bit in bits.items()
            if selected.takes_all
        }
        self._wants = [ways.wanted(of, bits, attributes, totals) for of in bundles]
        numbers: dict[Value, int] = {None: ways.MISSING, OF_STAND_IN: ways.STAND_IN}
        by_kind: dict[Kind, list[FreeDevice]] = {}
        for of in free:
            values = [OF_STAND_IN if is_stand_in(of.id) else value(of.id, a) for a in attributes]
            numbered = tuple(numbers.setdefault(v, len(numbers)) for v in values)
            by_kind.setdefault(Kind(of.selections, numbered, 1, of.counters), []).append(of)
        self._kinds = sorted(by_kind, key=lambda kind: (kind.selections.bit_count(), kind))
        self._devices = [sorted(by_kind[kind]) for kind in self._kinds]
        self._stacks = cells.stacked(self._kinds, self._wants)
        self._dead: set[tuple[int, tuple[int, ...]]] = set()  # nothing was found from there

    def find(self, counters: Sequence[int], suits: Suits) -> Sequence[Chosen] | None:
        """The devices of each bundle such that ``suits`` holds for what remains, or None.

        ``counters`` has how much there is of each counter.
        """
        chosen = self._from(0, tuple(map(len, self._devices)), counters, suits)
        if chosen is None:
            return None
        remaining = [[device.id for device in own] for own in self._devices]
        return [[(remaining[kind].pop(0), option) for kind, option in way] for way in chosen]

    def _from(
        self, at: int, left: tuple[int, ...], counters: Sequence[int], suits: Suits
    ) -> list[Way] | None:
        """The ways of the bundles from this one on."""
        if min(counters, default=0) < 0 or (at, left) in self._dead:
            return None
        if at == len(self._wants):
            return [] if suits(self._rest(left), counters) else None
        try:
            for way in self._ways(at, left):
                rest, amounts = list(left), list(counters)
                for kind, _ in way:
                    rest[kind] -= 1
                    for counter, n in self._kinds[kind].counters:
                        amounts[counter] -= n
                if (others := self._from(at + 1, tuple(rest), amounts, suits)) is not None:
                    return [way, *others]
        except NoLimitsError:
            pass
        self._dead.add((at, left))
        return None

    def _ways(self, at: int, left: Sequence[int]) -> Iterator[Way]:
        """The ways of a bundle, with the highest stacks of each kind that has some."""
        here = [kind._replace(devices=n) for kind, n in zip(self._kinds, left, strict=True)]
        kinds, want = cells.joint(here, self._stacks), self._wants[at]
        for way in ways.ways(want, kinds, [kind.devices for kind in kinds]):
            rest, chosen = list(left), list[tuple[int, int]]()
            for kind, options in cells.draws(way, want, kinds):
                highest = sorted(self._stacks[kind], key=rest.__getitem__, reverse=True)
                for i, option in zip(highest, options, strict=False):
                    rest[i] -= 1
                    chosen.append((i, option))
            if min(rest, default=0) >= 0:
                yield tuple(chosen)

    def _rest(self, left: Sequence[int]) -> Sequence[FreeDevice]:
        """The devices that bundles leave: of each kind the last ones."""
        return [
            device
            for own, n in zip(self._devices, left, strict=True)
            for device in own[len(own) - n :]
        ]
