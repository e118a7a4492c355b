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
    """Signs what stood at the beginning of a term, and knows what of it is unsigned, or went."""

    def __init__(self, world: World, reserver: Reserver, gate: Gate, clock: Clock) -> None:
        self._world = world
        self._reserver = reserver
        self._gate = gate
        self._clock = clock
        self._term: Term | None = None
        self._found: dict[Uid | None, Reservation] = {}  # of past terms, by the uid of the object

    @property
    def unsigned(self) -> Collection[Uid | None]:
        """The objects that are to be signed still, by uid."""
        return frozenset(uid for uid, held in self._found.items() if held.term != self._term)

    async def begin(self, term: Term) -> None:
        """Sign what stands; the pods are listed after this.

        Raises:
            errors.Unavailable: the API server is away.
        """
        self._term = term
        standing = (held for held in self._world.reservations if held.term != term)
        self._found = {held.self_uid: held for held in standing}
        await self.go_on(term)

    async def go_on(self, term: Term) -> None:
        """Sign what could not be signed before, unless it was refused a moment ago.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        self._look()
        await self._gate.all(
            partial(self._reserver.adopt, self._found[uid], term)
            for uid in self.unsigned
            if not self._world.refusals.holds_off(self._found[uid].uid, now)
        )
        self._look()

    def _look(self) -> None:
        for held in self._world.reservations:
            if held.self_uid in self._found:
                self._found[held.self_uid] = held

    def vanished(self) -> Sequence[Reservation]:
        """Those that somebody else has deleted, until they are forgotten.

        Whoever made one may have bound all of it, which no list shows yet, or wake up to do so:
        the garbage collector asks nobody.
        """
        self.forget(self._reserver.deleted)
        self._reserver.deleted.clear()
        standing = {held.self_uid for held in self._world.reservations}
        return [held for uid, held in self._found.items() if uid not in standing]

    def forget(self, freed: Iterable[Reservation]) -> None:
        """Nothing of these can be bound any more, or it is known by now."""
        for held in freed:
            self._found.pop(held.self_uid, None)
