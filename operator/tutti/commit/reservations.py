"""One Reservation at a time: written down, changed, signed or deleted, and what the answer means.

Separate from the commit, which says what is promised, bound and given back when, as ``binding`` is.
"""

import logging
from contextlib import AbstractContextManager, suppress

from ..kube import errors
from ..kube.backoff import CONFLICT_SECONDS, Clock
from ..kube.client import Api
from ..model.cluster import Reservation
from ..model.decisions import Released
from ..model.lease import LeaderTerm
from ..state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

LARGER = "LargerThanDeclared"  # than its role's template says: a member that is placed anew


class ReservationWriter:
    """Writes Reservations into the API server, and what becomes of that into the cluster state."""

    def __init__(self, state: ClusterState, api: Api, clock: Clock) -> None:
        self._state = state
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
                self._state.hold(standing)
                self._state.refusals.forget(reservation.uid)

    async def amend(self, held: Reservation, remark: str = "") -> None:
        """Change a Reservation that stands; if it has changed since, it is looked at again.

        Whoever leads next signs it after listing it, so that nobody before can change it any more:
        what is written here is found and carried out by anyone as it stands, or is refused.
        """
        with self._sparing(held, "Reservation"):
            try:
                self._state.hold(await self._api.amend(held))
            except errors.Conflict:
                self._hold_off(held, f"the Reservation {held.uid} has changed")
            except errors.Gone:
                self._state.remove_reservation(held)
            else:
                self._state.refusals.forget(held.uid)
                if remark:
                    logger.warning("gang %s: %s", held.gang, remark)
                    self.replanned.append(Released(held, remark, held, LARGER))

    async def adopt(self, held: Reservation, term: LeaderTerm) -> None:
        """Sign a standing Reservation, so that no leader before can delete it."""
        with self._sparing(held, "adoption of its Reservation"):
            try:
                self._state.hold(await self._api.adopt(held, term))
            except errors.Gone:
                self._state.remove_reservation(held)
            else:
                self._state.refusals.forget(held.uid)
                logger.info("gang %s: carries on with the Reservation of %s", held.gang, held.term)

    async def delete(self, reservation: Reservation) -> None:
        """Delete a Reservation as it was seen; one that has changed is looked at again."""
        with self._sparing(reservation, "deletion of its Reservation"):
            try:
                with suppress(errors.Gone):
                    await self._api.release(reservation)
            except errors.Conflict as answer:
                logger.info("gang %s: its Reservation stays for now: %s", reservation.gang, answer)
                if reservation in self._state.reservations:
                    # Nothing has changed that could explain it, so nothing will tell when it has.
                    self._hold_off(reservation, f"deletion of its Reservation refused: {answer}")
            else:
                self.deleted.append(reservation)
                self._state.remove_reservation(reservation)
                self._state.refusals.forget(reservation.uid)

    def _sparing(self, held: Reservation, what: str) -> AbstractContextManager[None]:
        return self._state.refusals.backing_off_on_refusal(held.uid, held.gang, what, self._clock)

    def _hold_off(self, held: Reservation, sentence: str) -> None:
        refusals, now = self._state.refusals, self._clock()
        refusals.back_off(held.uid, held.gang, sentence, seconds=CONFLICT_SECONDS, now=now)
