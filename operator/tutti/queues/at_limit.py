"""Why a limit keeps a gang waiting: the lowest limit that admits it, and the gangs in its way.

The findings are for users and decide nothing; ``limits`` has the limits that plans keep.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..gang.findings import QueueAtLimit
from ..model.keys import GangKey
from ..model.resources import Resources
from .limits import QueueLimit

MOST_ENDING = 3  # a sentence names at most so many gangs that have to end
MOST_BEFORE = 3  # and at most so many gangs that come before in the queue


class WaitingGang(NamedTuple):
    """A gang that waits for its start; ``since`` is in seconds since the epoch."""

    key: GangKey
    priority: int
    since: float


class LimitedGangs:
    """The gangs of all queues: the charges of gangs that run, the order of gangs that wait."""

    def __init__(
        self,
        queues: Mapping[GangKey, str],
        charges: Mapping[GangKey, Resources],
        waiting: Iterable[WaitingGang] = (),
    ) -> None:
        """``queues`` has the queue of each gang; ``waiting`` are the gangs that do not start."""
        self._queues = queues
        self._charges = charges
        self._lines: dict[str, list[GangKey]] = {}  # the gangs that wait, by queue, in order
        self._place: dict[GangKey, int] = {}
        for gang in sorted(waiting, key=lambda gang: (-gang.priority, gang.since, gang.key)):
            if gang.key in queues:
                line = self._lines.setdefault(queues[gang.key], [])
                self._place[gang.key] = len(line)
                line.append(gang.key)
        self._by_charge: dict[tuple[str, str], list[tuple[int, GangKey]]] = {}

    def finding(self, limit: QueueLimit, gang: GangKey, wanted: int, credit: int) -> QueueAtLimit:
        """Why this limit keeps the gang waiting.

        The gang wants ``wanted`` of the resource; ``credit`` of this amount is charged already.
        """
        enough = limit.in_use + wanted - credit
        place = self._place.get(gang, 0)
        before = self._lines[self._queues[gang]][:place] if place else []
        return QueueAtLimit(
            limit.queue,
            limit.resource,
            limit.in_use,
            limit.limit,
            wanted,
            enough=enough,
            ending=tuple(self._ending(limit, enough - limit.limit, gang)),
            before=tuple(before[:MOST_BEFORE]),
            more_before=max(place - MOST_BEFORE, 0),
        )

    def _ending(
        self, limit: QueueLimit, short: int, asking: GangKey
    ) -> Sequence[tuple[GangKey, int]]:
        """The fewest other gangs whose charges add up to ``short``, with the charge of each.

        If one gang is enough, it is the gang with the smallest such charge. The answer is empty if
        more than ``MOST_ENDING`` gangs would have to end.
        """
        charges = self._charges_of(limit)
        if asking in self._charges:
            charges = [charge for charge in charges if charge[1] != asking]
        if (index := bisect_left(charges, short, key=lambda charge: charge[0])) < len(charges):
            amount, gang = charges[index]
            return [(gang, amount)]
        largest = charges[: -MOST_ENDING - 1 : -1]
        for n, total in enumerate(accumulate(amount for amount, _ in largest), 1):
            if total >= short:
                return [(gang, amount) for amount, gang in largest[:n]]
        return ()

    def _charges_of(self, limit: QueueLimit) -> Sequence[tuple[int, GangKey]]:
        """The charge of each gang below the limit for its resource, the smallest first."""
        key = limit.queue, limit.resource
        if key not in self._by_charge:
            charges = (
                (self._charges[g][limit.resource], g) for g in limit.gangs & {*self._charges}
            )
            self._by_charge[key] = sorted(charge for charge in charges if charge[0])
        return self._by_charge[key]


NO_GANGS = LimitedGangs({}, {})
