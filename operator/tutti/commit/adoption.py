"""Reservations of past terms: signed for the present term, or left alone until they can be.

If the API server refuses to have a Reservation signed, its room stays reserved, and the other gangs
are scheduled meanwhile (docs/decisions/0005).
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from ..kube.backoff import Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..kube.leader_election import assert_leader
from ..model.cluster import PodReservation, Reservation
from ..model.decisions import Released
from ..model.keys import GangKey, LeaderTerm, Uid
from ..state.cluster_state import ClusterState
from .reservations import ReservationWriter


class Adoption:
    """Signs the Reservations that stood when a term began; knows which are unsigned or deleted."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        writer: ReservationWriter,
        limit: ConcurrencyLimit,
        clock: Clock,
    ) -> None:
        self._state = state
        self._api = api
        self._writer = writer
        self._limit = limit
        self._clock = clock
        self._term: LeaderTerm | None = None
        self._inherited: dict[Uid | None, Reservation] = {}  # by the uid of the object
        self._must_check_leader = False  # since a Reservation was signed
        # Entries that left unsigned Reservations, until the recovery has read their pods.
        self.removed_entries: list[tuple[GangKey, PodReservation]] = []

    @property
    def inherited(self) -> Collection[Uid | None]:
        """The uids of inherited Reservations, signed or not; none of these is discarded."""
        return frozenset(self._inherited)

    def is_signed(self, reservation: Reservation) -> bool:
        """Whether a Reservation had our signature when it was last seen."""
        return reservation.term == self._term

    async def begin(self, term: LeaderTerm) -> None:
        """Sign the standing Reservations; the pods are listed after this.

        Raises:
            errors.ApiError: the API server is away, or does not say which replica leads.
            Deposed: another replica leads by now, and signs the same Reservations again.
        """
        if term != self._term:
            self._term, self._inherited = term, {}
        self._inherited.update(
            (reservation.self_uid, reservation)
            for reservation in self._state.reservations
            if reservation.term != term and not reservation.is_spent
        )
        await self.retry(term)

    async def retry(self, term: LeaderTerm) -> None:
        """Sign the Reservations that are still unsigned, unless they were refused a moment ago.

        Raises:
            errors.ApiError, Deposed: as of ``begin``.
        """
        now = self._clock()
        self._forget_deleted()
        self.observe()
        unsigned = [
            reservation
            for reservation in self._inherited.values()
            if not self.is_signed(reservation)
            and not self._state.refusals.holds_off(reservation.uid, now)
        ]
        self._must_check_leader |= bool(unsigned)
        await self._limit.all(
            partial(self._writer.adopt, reservation, term) for reservation in unsigned
        )
        self.observe()
        if self._must_check_leader:
            await assert_leader(self._api, term)
            self._must_check_leader = False

    def observe(self) -> None:
        """Note how the Reservations changed; a pod that leaves an unsigned one may be bound."""
        for reservation in self._state.reservations:
            inherited = self._inherited.get(reservation.self_uid)
            if inherited is None:
                continue
            if not self.is_signed(inherited):
                removed = Released(inherited, "", reservation).ended
                self.removed_entries += (
                    (reservation.gang, entry) for entry in removed if entry.pod.name
                )
            self._inherited[reservation.self_uid] = reservation

    def deleted(self) -> Sequence[Reservation]:
        """The inherited Reservations that other clients have deleted, until they are forgotten.

        The leader that made such a Reservation may have bound all its pods, which no list shows
        yet. Or it may resume and bind them: the garbage collector deletes objects whichever replica
        leads.
        """
        self._forget_deleted()
        standing = {reservation.self_uid for reservation in self._state.reservations}
        return [reservation for uid, reservation in self._inherited.items() if uid not in standing]

    def _forget_deleted(self) -> None:
        """Forget Reservations that we deleted or emptied: one that is filled again is discarded."""
        self.forget(self._writer.deleted)
        self._writer.deleted.clear()

    def forget(self, reservations: Iterable[Reservation]) -> None:
        """Forget Reservations whose pods cannot be bound any more, or are known to be bound."""
        for reservation in reservations:
            self._inherited.pop(reservation.self_uid, None)
