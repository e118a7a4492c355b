"""One Reservation at a time: written down, changed, signed or deleted, and what the answer means.

Separate from the commit, which says what is promised, bound and given back when, as ``binding`` is.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from .kube import errors
from .kube.client import Api
from .model.cluster import Entry, Reservation
from .model.lease import Term
from .refusals import CONFLICT_SECONDS, Clock
from .world import World

logger = logging.getLogger(__name__)

LARGER = "LargerThanDeclared"  # than its role's template says: a member that is placed anew


class Released(NamedTuple):
    """A Reservation that was given back, and why; or what of it did not go on as ``rest``."""

    reservation: Reservation
    sentence: str
    rest: Reservation | None = None
    reason: str = "Released"

    @property
    def ended(self) -> Iterator[Entry]:
        """The entries that are given back."""
        kept = frozenset(() if self.rest is None else self.rest.entries)
        return (entry for entry in self.reservation.entries if entry not in kept)


class Reserver:
    """Writes Reservations into the API server, and what becomes of that into the World."""

    def __init__(self, world: World, api: Api, clock: Clock) -> None:
        self._world = world
        self._api = api
        self._clock = clock
        self.made: list[Reservation] = []  # in this cycle
        self.replanned: list[Released] = []  # likewise, and of which people hear
        self.deleted: list[Reservation] = []  # until somebody clears it

    def begin(self) -> None:
        """Begin a cycle: nothing was made in it yet."""
        self.made.clear()
        self.replanned.clear()

    async def create(self, reservation: Reservation) -> None:
        """Write a Reservation down: from then on it is carried out, whoever leads."""
        with self._sparing(reservation, "Reservation"):
            try:
                standing = await self._api.reserve(reservation)
            except errors.Conflict:
                # One of the gang's stands already: the watch will show it, and it is carried out.
                self._hold_off(reservation, f"a Reservation named {reservation.uid} exists already")
            except errors.Gone:
                logger.info("gang %s: its namespace or PodGroup is gone", reservation.gang)
            else:
                self.made.append(standing)
                self._world.hold(standing)
                self._world.refusals.forget(reservation.uid)

    async def amend(self, held: Reservation, remark: str = "") -> None:
        """Change a Reservation that stands; if it has changed since, it is looked at again.

        Whoever leads next signs it after listing it, so that nobody before can change it any more:
        what is written here is found and carried out by anyone as it stands, or is refused.
        """
        with self._sparing(held, "Reservation"):
            try:
                self._world.hold(await self._api.amend(held))
            except errors.Conflict:
                self._hold_off(held, f"the Reservation {held.uid} has changed")
            except errors.Gone:
                self._world.unhold(held)
            else:
                self._world.refusals.forget(held.uid)
                if remark:
                    logger.warning("gang %s: %s", held.gang, remark)
                    self.replanned.append(Released(held, remark, held, LARGER))

    async def adopt(self, held: Reservation, term: Term) -> None:
        """Sign a standing Reservation, so that no leader before can delete it."""
        with self._sparing(held, "adoption of its Reservation"):
            try:
                self._world.hold(await self._api.adopt(held, term))
            except errors.Gone:
                self._world.unhold(held)
            else:
                self._world.refusals.forget(held.uid)
                logger.info("gang %s: carries on with the Reservation of %s", held.gang, held.term)

    async def delete(self, reservation: Reservation) -> None:
        """Delete a Reservation as it was seen; one that has changed is looked at again."""
        with self._sparing(reservation, "deletion of its Reservation"):
            try:
                with suppress(errors.Gone):
                    await self._api.release(reservation)
            except errors.Conflict as answer:
                logger.info("gang %s: its Reservation stays for now: %s", reservation.gang, answer)
                if reservation in self._world.reservations:
                    # Nothing has changed that could explain it, so nothing will tell when it has.
                    self._hold_off(reservation, f"deletion of its Reservation refused: {answer}")
            else:
                self.deleted.append(reservation)
                self._world.unhold(reservation)
                self._world.refusals.forget(reservation.uid)

    def _sparing(self, held: Reservation, what: str) -> AbstractContextManager[None]:
        return self._world.refusals.sparing(held.uid, held.gang, what, self._clock)

    def _hold_off(self, held: Reservation, sentence: str) -> None:
        refusals, now = self._world.refusals, self._clock()
        refusals.hold_off(held.uid, held.gang, sentence, seconds=CONFLICT_SECONDS, now=now)
