"""Refusals of the API server, and when Tutti tries again.

Every Snapshot has the refusals. While one lasts, plans leave the refused gang or pod out, because
its room would stay unused. Only a server that is away stops a cycle; a problem with one object
affects only that object.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

from ..model.cluster import ApiRefusal
from ..model.keys import GangKey, Uid
from . import errors
from .concurrency import is_away

logger = logging.getLogger(__name__)

Clock = Callable[[], float]  # seconds since the epoch

REFUSED_SECONDS = 30.0  # the shortest wait after a refusal, in which rights may be granted
CONFLICT_SECONDS = 5.0  # the shortest wait after other errors, which usually pass sooner
LONGEST_SECONDS = 300.0  # each further refusal doubles the wait, up to this
SLACK_SECONDS = 2.0  # the estimate of the API server's clock may be set back so far at any answer
FORGOTTEN_SECONDS = 3600.0  # a refusal is kept so long after its wait; the gang may lack room


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait until something is tried again."""

    seconds: float
    until: float  # seconds since the epoch

    @classmethod
    def begun(cls, now: float, seconds: float) -> Self:
        """The wait of so many seconds that begins now."""
        return cls(seconds, now + seconds)

    def end(self, now: float) -> float:
        """When it ends: now, if the clock went far back, so that this is unknown."""
        return self.until if self.until <= now + self.seconds + SLACK_SECONDS else now

    def left(self, now: float) -> float:
        """The seconds that are left, never more than the wait had when it began."""
        return min(max(0.0, self.end(now) - now), self.seconds)


@dataclass(frozen=True, slots=True)
class ApiBackoff:
    """A refusal of the API server for a gang, and when Tutti tries again."""

    gang: GangKey
    sentence: str
    wait: Wait
    is_gone: bool = False  # whether the gang was gone at a report since

    def stands(self, now: float) -> bool:
        """Whether the wait still lasts."""
        return self.wait.left(now) > 0


class ApiBackoffs:
    """Refusals, by the uid of the gang or pod that they concern."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Start without refusals; ``wake`` is called at each refusal, as it changes the plan."""
        self._wake = wake
        self._by_uid: dict[Uid, ApiBackoff] = {}

    def back_off(
        self, uid: Uid, gang: GangKey, sentence: str, *, seconds: float, now: float
    ) -> None:
        """Record a refusal; log the sentence if it is new.

        Tutti tries again in the next cycle, so a problem that passes at once delays no gang. After
        each further refusal it waits, at least ``seconds``. A refusal that arrives while the wait
        lasts is of the attempt before the wait, and does not lengthen it.
        """
        earlier = self._by_uid.get(uid)
        if earlier is not None and earlier.stands(now):
            return
        if earlier is None or earlier.sentence != sentence:
            logger.error("gang %s: %s", gang, sentence)
        if earlier is None:
            seconds = 0.0
        else:
            seconds = max(seconds, min(2 * earlier.wait.seconds, LONGEST_SECONDS))
        self._by_uid[uid] = ApiBackoff(gang, sentence, Wait.begun(now, seconds))
        self._wake()

    @contextmanager
    def backing_off_on_refusal(
        self, uid: Uid, gang: GangKey, operation: str, clock: Clock
    ) -> Iterator[None]:
        """Back off if the API server refuses ``operation`` for this gang or pod.

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
        """Whether the wait after a refusal of this gang or pod still lasts."""
        refusal = self._by_uid.get(uid)
        return refusal is not None and refusal.stands(now)

    def forget(self, uid: Uid) -> None:
        """Forget a refusal, because the API server did not refuse this time."""
        self._by_uid.pop(uid, None)

    def snapshot(self, now: float) -> Mapping[Uid, ApiRefusal]:
        """The refusals that were repeated at least once and are not forgotten yet."""
        return {
            uid: ApiRefusal(refusal.sentence, refusal.wait.end(now))
            for uid, refusal in self._by_uid.items()
            if refusal.wait.seconds
        }

    def of(self, gangs: Collection[GangKey], now: float) -> Mapping[GangKey, ApiBackoff]:
        """The oldest refusal that still lasts for each of these gangs.

        This also forgets refusals whose wait has ended: those of these gangs after
        ``FORGOTTEN_SECONDS``, and all others after ``LONGEST_SECONDS``. A gang may be gone although
        what is refused remains, such as the deletion of its Reservation.
        """
        remembered: dict[Uid, ApiBackoff] = {}
        lasting: dict[GangKey, ApiBackoff] = {}
        for uid, known in self._by_uid.items():
            refusal = known if known.gang in gangs else replace(known, is_gone=True)
            limit = LONGEST_SECONDS if refusal.is_gone else FORGOTTEN_SECONDS
            if now - refusal.wait.until < limit:
                remembered[uid] = refusal
                if refusal.stands(now) and not refusal.is_gone:
                    lasting.setdefault(refusal.gang, refusal)
        self._by_uid = remembered
        return lasting

    def next_retry(self, now: float) -> float | None:
        """The seconds until the first wait ends, or None."""
        waits = (refusal.wait.left(now) for refusal in self._by_uid.values())
        return min((left for left in waits if left), default=None)
