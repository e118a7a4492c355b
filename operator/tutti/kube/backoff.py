"""Refusals of the API server, and when Tutti tries again.

Every Snapshot has them. Until then plans leave a refused gang or pod out, since its room would stay
unused. Only a server that is away stops a cycle; a problem with one object concerns only that one.
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

REFUSED_SECONDS = 30.0  # the shortest wait after a refusal: rights get granted
CONFLICT_SECONDS = 5.0  # the shortest after a conflict, which usually ends in milliseconds
LONGEST_SECONDS = 300.0  # each further refusal doubles the wait, up to this
FORGOTTEN_SECONDS = 3600.0  # after the wait: a gang without room makes no request meanwhile


@dataclass(frozen=True, slots=True)
class ApiBackoff:
    """A refusal of the API server for a gang, and when Tutti tries again."""

    gang: GangKey
    sentence: str
    wait: float  # seconds
    until: float

    def stands(self, now: float) -> bool:
        """Whether the wait still lasts; not after the clock went back, when that is unknown."""
        return now < self.until <= now + self.wait


class ApiBackoffs:
    """Refusals, by the uid of the gang or pod that they concern."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Start with none; ``wake`` is called at each refusal: the next cycle has another plan."""
        self._wake = wake
        self._by_uid: dict[Uid, ApiBackoff] = {}

    def back_off(
        self, uid: Uid, gang: GangKey, sentence: str, *, seconds: float, now: float
    ) -> None:
        """Try again in the next cycle, then only after a wait; log the sentence if it is new.

        So a problem that passes at once delays no gang.
        """
        earlier = self._by_uid.get(uid)
        if earlier is None or earlier.sentence != sentence:
            logger.error("gang %s: %s", gang, sentence)
        wait = 0.0 if earlier is None else max(seconds, min(2 * earlier.wait, LONGEST_SECONDS))
        self._by_uid[uid] = ApiBackoff(gang, sentence, wait, now + wait)
        self._wake()

    @contextmanager
    def backing_off_on_refusal(
        self, uid: Uid, gang: GangKey, operation: str, clock: Clock
    ) -> Iterator[None]:
        """Back off if the API server refuses ``operation``, which concerns this gang or pod.

        Raises:
            errors.Unavailable: the API server is away.
        """
        try:
            yield
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            is_final = isinstance(problem, errors.Refused)
            sentence = f"{operation} {'refused' if is_final else 'failed'}: {problem}"
            seconds = REFUSED_SECONDS if is_final else CONFLICT_SECONDS
            self.back_off(uid, gang, sentence, seconds=seconds, now=clock())

    def holds_off(self, uid: Uid, now: float) -> bool:
        """Whether this gang or pod was refused a moment ago."""
        refusal = self._by_uid.get(uid)
        return refusal is not None and refusal.stands(now)

    def forget(self, uid: Uid) -> None:
        """Forget the refusal: the API server did not refuse this time."""
        self._by_uid.pop(uid, None)

    def snapshot(self, now: float) -> Mapping[Uid, ApiRefusal]:
        """The refusals that were repeated in the next cycle and not lifted since."""
        return {
            uid: ApiRefusal(
                refusal.sentence, refusal.until if refusal.until <= now + refusal.wait else now
            )
            for uid, refusal in self._by_uid.items()
            if refusal.wait
        }

    def of(self, gangs: Collection[GangKey], now: float) -> Mapping[GangKey, ApiBackoff]:
        """The refusals for these gangs, of each gang the one that has stood the longest.

        Forgets refusals of other gangs, and those that ended ``FORGOTTEN_SECONDS`` ago.
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
