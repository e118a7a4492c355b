"""How many pods may end for claims: so many in one cycle, and so many of one queue within an hour.

The counts are those of this leader: the next one begins at nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..gang.findings import EvictionsCapped
from ..model.decisions import Claim, RolloutLimits
from ..model.keys import Uid

HOUR_SECONDS = 3600.0
DUE_SECONDS = 30.0  # until it is seen whether pods that claims name have ended, or are spared


class LimitedClaims(NamedTuple):
    """The claims that may be carried out now; what keeps the others, and for how long."""

    claims: tuple[Claim, ...]
    obstacle: EvictionsCapped | None = None
    until: float | None = None  # seconds since the epoch; None: until the next cycle


class _Ended(NamedTuple):
    at: float  # seconds since the epoch
    queue: str


class EvictionLimits:
    """Counts the pods that end for claims. A claim is never split.

    The pods of a claim count from its decision until it is carried out or given up: what has not
    been evicted by then does not count any more.

    A claim that alone exceeds a limit is carried out where nothing else counts against the limit.
    """

    def __init__(self, limits: RolloutLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._ended: dict[Uid, _Ended] = {}  # pods of the last hour, the oldest first
        # The queues of pods that claims name, by claimant, as this leader has decided.
        self._due: dict[Uid, Mapping[Uid, str]] = {}

    def within(self, claims: Sequence[Claim]) -> LimitedClaims:
        """The first claims that keep the limits: each counts on those before it."""
        now, in_cycle = self._clock(), 0
        self._ended = {p: e for p, e in self._ended.items() if e.at + HOUR_SECONDS > now}
        due = {p: q for pods in self._due.values() for p, q in pods.items() if p not in self._ended}
        in_hour = Counter([*(ended.queue for ended in self._ended.values()), *due.values()])
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
                waits = [e.at + HOUR_SECONDS for e in self._ended.values() if e.queue == queue][:1]
                if queue in due.values():
                    waits.append(now + DUE_SECONDS)
                until = min(waits, default=None)
                return LimitedClaims(tuple(claims[:number]), obstacle, until)
            in_cycle += pods.total()
            in_hour += pods
        return LimitedClaims(tuple(claims))

    def begin(self, claim: Claim) -> None:
        """Take in that a claim is about to be written down."""
        self._due[claim.uid] = {m.uid: v.queue for v in claim.victims for m in v.members}

    def keep(self, standing: Collection[Uid]) -> None:
        """Forget the claims that no longer stand, or never did, by claimant."""
        self._due = {uid: pods for uid, pods in self._due.items() if uid in standing}

    def evicted(self, claimant: Uid, pod: Uid, queue: str) -> tuple[str, bool]:
        """Take in that a pod ends for a claim.

        Returns the queue that it counts for, which is ``queue`` if another leader decided on the
        claim or the pod came later; and whether the pod had not been counted.
        """
        queue = self._due.get(claimant, {}).get(pod, queue)
        is_new = pod not in self._ended
        if is_new:
            self._ended[pod] = _Ended(self._clock(), queue)
        return queue, is_new


def _exceeds(pods: int, most: int) -> bool:
    return bool(most) and pods > most


def _pods(claim: Claim) -> Counter[str]:
    """How many pods end for a claim, by the queue that their gang is charged to."""
    pods = Counter[str]()
    for victim in claim.victims:
        pods[victim.queue] += len(victim.members)
    return pods
