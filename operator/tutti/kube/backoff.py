"""What the API server would not do a moment ago, and when it is asked again.

Every Snapshot has it: whoever was refused is left out of plans meanwhile, for the room that it was
given would go to nobody. Only a server that is away stops a cycle; what is wrong with one object
concerns that one alone.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..model.cluster import ApiRefusal
from ..model.keys import GangKey, Uid
from . import errors
from .concurrency import is_away

logger = logging.getLogger(__name__)

Clock = Callable[[], float]  # seconds since the epoch

REFUSED_SECONDS = 30.0  # what was refused is asked again, but not at once: rights get granted
CONFLICT_SECONDS = 5.0  # what stands in the way is usually seen and gone within milliseconds
LONGEST_SECONDS = 300.0  # what is refused each time waits twice as long, but not longer than this
FORGOTTEN_SECONDS = 3600.0  # after which it may be asked again, for who finds no room is not asked


@dataclass(frozen=True, slots=True)
class ApiBackoff:
    """What the API server would not do for a gang, and when it is asked again."""

    gang: GangKey
    sentence: str
    wait: float  # seconds
    until: float

    def stands(self, now: float) -> bool:
        """Whether nobody asks yet; after a clock that went back nobody knows, and somebody does."""
        return now < self.until <= now + self.wait


class ApiBackoffs:
    """What was refused, by the uid of the gang or pod that it was asked for."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Start with none; ``wake`` is called at each: the next cycle has another plan."""
        self._wake = wake
        self._by_uid: dict[Uid, ApiBackoff] = {}

    def back_off(
        self, uid: Uid, gang: GangKey, sentence: str, *, seconds: float, now: float
    ) -> None:
        """Ask this once more in the next cycle, then no more for a while, and say so.

        What passes at once costs nobody its turn.
        """
        earlier = self._by_uid.get(uid)
        if earlier is None or earlier.sentence != sentence:
            logger.error("gang %s: %s", gang, sentence)
        wait = 0.0 if earlier is None else max(seconds, min(2 * earlier.wait, LONGEST_SECONDS))
        self._by_uid[uid] = ApiBackoff(gang, sentence, wait, now + wait)
        self._wake()

    @contextmanager
    def backing_off_on_refusal(
        self, uid: Uid, gang: GangKey, what: str, clock: Clock
    ) -> Iterator[None]:
        """Hold off ``what``, if the API server answers no; it concerns this gang or pod alone.

        Raises:
            errors.Unavailable: the API server is away.
        """
        try:
            yield
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            is_final = isinstance(problem, errors.Refused)
            sentence = f"{what} {'refused' if is_final else 'failed'}: {problem}"
            seconds = REFUSED_SECONDS if is_final else CONFLICT_SECONDS
            self.back_off(uid, gang, sentence, seconds=seconds, now=clock())

    def holds_off(self, uid: Uid, now: float) -> bool:
        """Whether this gang or pod was refused a moment ago."""
        refusal = self._by_uid.get(uid)
        return refusal is not None and refusal.stands(now)

    def forget(self, uid: Uid) -> None:
        """It was not refused this time."""
        self._by_uid.pop(uid, None)

    def snapshot(self, now: float) -> Mapping[Uid, ApiRefusal]:
        """What was refused again at once, and has not been granted since."""
        return {
            uid: ApiRefusal(
                refusal.sentence, refusal.until if refusal.until <= now + refusal.wait else now
            )
            for uid, refusal in self._by_uid.items()
            if refusal.wait
        }

    def of(self, gangs: Collection[GangKey], now: float) -> Mapping[GangKey, ApiBackoff]:
        """What the API server would not do for these gangs, of each what has stood the longest.

        What others met is forgotten, and what has not been asked for again for long.
        """
        self._by_uid = {
            uid: refusal
            for uid, refusal in self._by_uid.items()
            if refusal.gang in gangs and now < refusal.until + FORGOTTEN_SECONDS
        }
        return {
            refusal.gang: refusal
            for refusal in reversed(self._by_uid.values())
            if refusal.stands(now)
        }
