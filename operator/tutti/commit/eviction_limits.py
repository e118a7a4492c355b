"""How many pods may end for claims: so many in one cycle, and so many of one queue within an hour.

The counts are those of this leader: the next one begins at nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..gang.findings import EvictionsCapped
from ..model.decisions import Claim, RolloutLimits

HOUR_SECONDS = 3600.0


class LimitedClaims(NamedTuple):
    """The claims that may be carried out now; what keeps the others, and for how long."""

    claims: tuple[Claim, ...]
    obstacle: EvictionsCapped | None = None
    until: float | None = None  # seconds since the epoch; None: until the next cycle


class _Ended(NamedTuple):
    at: float  # seconds since the epoch
    pods: Counter[str]  # by queue


class EvictionLimits:
    """Counts the pods that end for claims. A claim is never split.

    A claim that alone exceeds a limit is carried out where nothing else counts against the limit.
    """

    def __init__(self, limits: RolloutLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._ended: list[_Ended] = []  # of the last hour, the oldest first

    def within(self, claims: Sequence[Claim]) -> LimitedClaims:
        """The first claims that keep the limits: each counts on those before it."""
        now, in_cycle, in_hour = self._clock(), 0, Counter[str]()
        self._ended = [ended for ended in self._ended if ended.at + HOUR_SECONDS > now]
        for ended in self._ended:
            in_hour += ended.pods
        for number, claim in enumerate(claims):
            pods = _pods(claim)
            if in_cycle and _exceeds(in_cycle + pods.total(), self._limits.evictions):
                obstacle = EvictionsCapped(in_cycle, self._limits.evictions)
                return LimitedClaims(tuple(claims[:number]), obstacle)
            most = self._limits.hourly_evictions
            full = [q for q, n in pods.items() if in_hour[q] and _exceeds(in_hour[q] + n, most)]
            if full:
                queue = min(full)
                obstacle = EvictionsCapped(in_hour[queue], most, queue)
                first = next((e.at for e in self._ended if e.pods[queue]), None)
                until = None if first is None else first + HOUR_SECONDS
                return LimitedClaims(tuple(claims[:number]), obstacle, until)
            in_cycle += pods.total()
            in_hour += pods
        return LimitedClaims(tuple(claims))

    def count(self, claim: Claim) -> None:
        """Take in that a claim is carried out."""
        if pods := _pods(claim):
            self._ended.append(_Ended(self._clock(), pods))


def _exceeds(pods: int, most: int) -> bool:
    return bool(most) and pods > most


def _pods(claim: Claim) -> Counter[str]:
    """How many pods end for a claim, by the queue that their gang is charged to."""
    pods = Counter[str]()
    for victim in claim.victims:
        pods[victim.queue] += len(victim.members)
    return pods
