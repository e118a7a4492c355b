"""Reservations of past terms: signed with ours, or left alone until they can be.

Separate from the commit, which carries out what is signed. The one that the API server will not
have signed keeps its room, and everyone else is served meanwhile (docs/decisions/0005).
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from ..kube.backoff import Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..kube.leader_election import ask_who_leads
from ..model.cluster import PodReservation, Reservation
from ..model.decisions import Released
from ..model.keys import GangKey, Uid
from ..model.lease import LeaderTerm
from ..state.cluster_state import ClusterState
from .reservations import ReservationWriter


class Adoption:
    """Signs what stood at the beginning of a term, and knows what of it is unsigned, or went."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        reserver: ReservationWriter,
        gate: ConcurrencyLimit,
        clock: Clock,
    ) -> None:
        self._state = state
        self._api = api
        self._reserver = reserver
        self._gate = gate
        self._clock = clock
        self._term: LeaderTerm | None = None
        self._found: dict[Uid | None, Reservation] = {}  # of past terms, by the uid of the object
        self._is_to_ask = False  # who leads, since something was signed
        # The entries of unsigned Reservations, until ``Commit`` has looked for their pods.
        self.left: list[tuple[GangKey, PodReservation]] = []

    @property
    def found(self) -> Collection[Uid | None]:
        """The objects of past terms, signed or not, by uid: no stranger's, whoever signs them."""
        return frozenset(self._found)

    def is_signed(self, held: Reservation) -> bool:
        """Whether a Reservation bore our signature when it was last seen."""
        return held.term == self._term

    async def begin(self, term: LeaderTerm) -> None:
        """Sign what stands; the pods are listed after this.

        Raises:
            errors.ApiError: the API server is away, or nobody knows who leads.
            Deposed: somebody else leads by now, and signs what was signed once more.
        """
        if term != self._term:
            self._term, self._found = term, {}
        standing = (held for held in self._state.reservations if held.term != term)
        self._found.update((held.self_uid, held) for held in standing)
        await self.retry(term)

    async def retry(self, term: LeaderTerm) -> None:
        """Sign what could not be signed before, unless it was refused a moment ago.

        Raises:
            errors.ApiError, Deposed: as of ``begin``.
        """
        now = self._clock()
        self._look()
        asked = [
            partial(self._reserver.adopt, held, term)
            for held in self._found.values()
            if not (self.is_signed(held) or self._state.refusals.holds_off(held.uid, now))
        ]
        self._is_to_ask |= bool(asked)
        await self._gate.all(asked)
        self._look()
        if self._is_to_ask:
            await ask_who_leads(self._api, term)
            self._is_to_ask = False

    def _look(self) -> None:
        """See what has become of them; who leaves an unsigned one may have been bound."""
        for held in self._state.reservations:
            known = self._found.get(held.self_uid)
            if known is None:
                continue
            if not self.is_signed(known):
                left = Released(known, "", held).ended
                self.left += ((held.gang, entry) for entry in left if entry.pod.name)
            self._found[held.self_uid] = held

    def vanished(self) -> Sequence[Reservation]:
        """Those that somebody else has deleted, until they are forgotten.

        Whoever made one may have bound all of it, which no list shows yet, or wake up to do so:
        the garbage collector asks nobody.
        """
        self.forget(self._reserver.deleted)
        self._reserver.deleted.clear()
        standing = {held.self_uid for held in self._state.reservations}
        return [held for uid, held in self._found.items() if uid not in standing]

    def forget(self, freed: Iterable[Reservation]) -> None:
        """Nothing of these can be bound any more, or it is known by now."""
        for held in freed:
            self._found.pop(held.self_uid, None)
