"""Which devices of a node the bundles of claims get, so that all other requests get theirs, too.

The plan gives a node no more bundles and devices than ``filters.devices`` says that it has, so a
choice exists. All are tried until one is found; devices that few selections want come first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...filters.devices import ways
from ...filters.devices.bundles import Bundle, Kind, Value
from ...filters.devices.ways import NoLimitsError, Want
from ...model.devices.claims import AttributeName, FreeDevice, Selection
from ...model.devices.inventory import DeviceId

Chosen = Sequence[Sequence[DeviceId]]  # the devices of each bundle, part after part


class BundleChoice:
    """The free devices of a node, by kind."""

    def __init__(
        self,
        bundles: Sequence[Bundle],
        bits: Mapping[Selection, int],
        free: Iterable[FreeDevice],
        value: Callable[[DeviceId, AttributeName], Value],
    ) -> None:
        """``bits`` has the index of each selection; ``value`` gives attributes."""
        attributes = sorted({match.attribute for of in bundles for match in of.matches})
        self._wants = [
            Want(
                tuple((bits.get(selected, len(bits)), count) for selected, count in of.parts),
                tuple((attributes.index(match.attribute), match.parts) for match in of.matches),
            )
            for of in bundles
        ]
        known = [(of, [value(of.id, attribute) for attribute in attributes]) for of in free]
        numbers: dict[Value, int] = {None: ways.MISSING}
        by_kind: dict[tuple[int, tuple[int, ...]], list[FreeDevice]] = {}
        for of, values in known:
            numbered = tuple(numbers.setdefault(v, len(numbers)) for v in values)
            by_kind.setdefault((of.selections, numbered), []).append(of)
        order = sorted(by_kind, key=lambda kind: (kind[0].bit_count(), kind))
        self._devices = [sorted(by_kind[kind]) for kind in order]
        self._kinds = [Kind(*kind, len(by_kind[kind])) for kind in order]
        self._dead: set[tuple[int, tuple[int, ...]]] = set()  # nothing was found from there

    def find(self, suits: Callable[[Sequence[FreeDevice]], bool]) -> Chosen | None:
        """The devices of each bundle such that ``suits`` holds for those that remain, or None."""
        chosen = self._from(0, tuple(kind.devices for kind in self._kinds), suits)
        if chosen is None:
            return None
        remaining = [[device.id for device in own] for own in self._devices]
        return [[remaining[kind].pop(0) for kind in way] for way in chosen]

    def _from(
        self, at: int, left: tuple[int, ...], suits: Callable[[Sequence[FreeDevice]], bool]
    ) -> list[ways.Way] | None:
        """The ways of the bundles from this one on."""
        if at == len(self._wants):
            return [] if suits(self._rest(left)) else None
        if (at, left) in self._dead:
            return None
        try:
            for way in ways.ways(self._wants[at], self._kinds, left):
                rest = list(left)
                for kind in way:
                    rest[kind] -= 1
                if (found := self._from(at + 1, tuple(rest), suits)) is not None:
                    return [way, *found]
        except NoLimitsError:
            pass
        self._dead.add((at, left))
        return None

    def _rest(self, left: Sequence[int]) -> Sequence[FreeDevice]:
        """The devices that bundles leave: of each kind the last ones."""
        return [
            device
            for own, n in zip(self._devices, left, strict=True)
            for device in own[len(own) - n :]
        ]
