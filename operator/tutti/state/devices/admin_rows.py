"""Resources of nodes that have the devices of claims for admin access, as many as pods can ask for.

Such claims take nothing away from each other (``filters.devices.admin_access``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from ...filters.devices import admin_access, requests, rows, selectors
from ...filters.devices.admin_access import Here, Wanted
from ...kube.codec.devices import ADMIN
from ...model.devices.inventory import Device, TaintRule
from ...model.keys import NodeName
from ...model.resources import Resources

MOST_ROWS = rows.MOST_ROWS  # resources that have the devices of claims for admin access, in all
ENOUGH = 100_000  # more pods than a node runs
Place = NodeName | None


class AdminRows:
    """Which places have the devices of which claims."""

    def __init__(self) -> None:
        self.wanted: Sequence[Wanted] = ()
        self._left_out: Collection[Wanted] = ()  # counting them, too, would make every plan slow
        self._fitting: dict[Place, Sequence[Wanted]] = {}
        self._features: dict[Place, Mapping[Wanted, Collection[str]]] = {}

    def choose(self, wanted: Sequence[Wanted], left_out: Collection[Wanted] = ()) -> None:
        """Look for the devices of these claims from now on; if they are new, every place is read.

        Claims that are ``left_out`` are known not to be looked for.
        """
        self._left_out = left_out
        if wanted != self.wanted:
            self.wanted = wanted
            self._fitting, self._features = {}, {}

    def read(self, place: Place, here: Here, rules: Collection[TaintRule]) -> None:
        """Take in the devices of a place."""
        self._fitting[place] = [
            asked for asked in self.wanted if admin_access.chosen(asked, here, rules) is not None
        ]
        self._features[place] = {
            asked: {
                f"devices[].{field}"
                for device in here.devices
                if (fields := _unsupported(device)) and _is_asked_for(device, asked, rules)
                for field in fields
            }
            for asked in self.wanted
        }

    @property
    def features(self) -> Mapping[Wanted, Collection[str]]:
        """The fields of devices that Tutti does not support, by the claims that could get them."""
        return {
            asked: sorted({field for known in self._features.values() for field in known[asked]})
            for asked in self.wanted
        }

    def problems(self, asked: Wanted) -> Iterator[str]:
        """Why it is not known which nodes have the devices of a claim."""
        if asked in self._left_out:
            yield f"{ADMIN}, asked for in more than {MOST_ROWS} ways"
        yield from self.features.get(asked, ())

    def offered(self, place: Place) -> Resources:
        """What a place has for claims."""
        return Resources.of({admin_access.row(of): ENOUGH for of in self._fitting.get(place, ())})


def _unsupported(device: Device) -> Sequence[str]:
    """What of a device is not supported for admin access."""
    counters = (f"consumesCounters and {ADMIN}",) if device.counters else ()
    return (*device.unsupported, *counters)


def _is_asked_for(device: Device, asked: Wanted, rules: Collection[TaintRule]) -> bool:
    return any(
        selectors.matches(of.expressions, device)
        if of.takes_all
        else requests.is_met(of, device, rules)
        for of, _ in asked
    )
