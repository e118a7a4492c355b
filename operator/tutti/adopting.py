"""Reservations of past terms: signed with ours, or left alone until they can be.

Separate from the commit, which carries out what is signed. The one that the API server will not
have signed keeps its room, and everyone else is served meanwhile (docs/decisions/0005).
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from .kube.gate import Gate
from .model.cluster import Reservation
from .model.keys import Uid
from .model.lease import Term
from .refusals import Clock
from .reserving import Reserver
from .world import World


class Adoption:
    """Signs what stood at the beginning of a term, and knows what is unsigned yet."""

    def __init__(self, world: World, reserver: Reserver, gate: Gate, clock: Clock) -> None:
        self._world = world
        self._reserver = reserver
        self._gate = gate
        self._clock = clock
        self._unsigned: dict[Uid | None, Reservation] = {}  # by the uid of the object

    @property
    def unsigned(self) -> Collection[Uid | None]:
        """The objects that are to be signed still, by uid."""
        return frozenset(self._unsigned)

    async def begin(self, term: Term) -> None:
        """Sign what stands; the pods are listed after this.

        Raises:
            errors.Unavailable: the API server is away.
        """
        standing = (held for held in self._world.reservations if held.term != term)
        self._unsigned = {held.self_uid: held for held in standing}
        await self.go_on(term)
        self.forget(self.vanished())

    async def go_on(self, term: Term) -> None:
        """Sign what could not be signed before, unless it was refused a moment ago.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        for held in self._world.reservations:
            if held.self_uid in self._unsigned:
                self._unsigned[held.self_uid] = held
        await self._gate.all(
            partial(self._reserver.adopt, held, term)
            for held in self._unsigned.values()
            if not self._world.refusals.holds_off(held.uid, now)
        )
        for held in self._world.reservations:
            if held.term == term:
                self._unsigned.pop(held.self_uid, None)

    def vanished(self) -> Sequence[Reservation]:
        """Those that went before they were signed, until they are forgotten.

        Whoever made one could still delete it, with all of it bound, and no list may show that yet.
        """
        standing = {held.self_uid for held in self._world.reservations}
        return [held for uid, held in self._unsigned.items() if uid not in standing]

    def forget(self, freed: Iterable[Reservation]) -> None:
        """Nothing of these can be bound any more, or it is known by now."""
        for held in freed:
            del self._unsigned[held.self_uid]
