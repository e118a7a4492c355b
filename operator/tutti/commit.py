"""The commit: a gang's placement is written down, then bound, and freed when nothing can follow.

What makes it safe against crashes and leaders of the past is in the preconditions of each call;
why they suffice is in docs/decisions/0005. Standing Reservations take the same path as new ones.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from .binding import Binder, Clock, Refusals
from .election import Deposed
from .kube import errors
from .kube.client import Api
from .kube.gate import Gate
from .model.cluster import Entry, Member, Reservation, Slots, Snapshot
from .model.decisions import Assignment, Eviction, Placement
from .model.keys import GangKey, Origin, Uid
from .model.lease import Term
from .planning import progress, verify
from .reserving import Released, Reserver
from .world import World


class Commit:
    """Adopts, reserves, binds and frees; every method may be cut short at any call."""

    def __init__(
        self, world: World, api: Api, *, scheduler: str, clock: Clock, in_flight: int
    ) -> None:
        """``scheduler`` says whose Reservations these are; ``in_flight`` caps calls at a time."""
        self._world = world
        self._api = api
        self._scheduler = scheduler
        self._clock = clock
        self._gate = Gate(in_flight)
        self.refusals = Refusals(clock)
        self._binder = Binder(world, api, self.refusals, clock)
        self.reserver = Reserver(world, api, self.refusals)

    async def adopt(self, term: Term) -> None:
        """Begin a term: sign the standing Reservations, so that nobody before can delete them.

        The World must have been listed since the term began.

        Raises:
            errors.ApiError: not all could be signed; list again, and adopt again.
        """
        problems = await self._gate.all(
            partial(self.reserver.adopt, held, term)
            for held in tuple(self._world.reservations)
            if held.term != term
        )
        if problems:
            raise problems[0]

    async def settle(self) -> Sequence[errors.ApiError]:
        """Ask about the bindings that were sent and never answered."""
        return await self._gate.all(
            partial(self._binder.make_sure, member, "the binding got no answer")
            for member in self._world.unsure()
        )

    async def reserve(
        self, decided: Sequence[Placement | Eviction], term: Term
    ) -> Sequence[errors.ApiError]:
        """Write down what was decided for every gang before its first pod is bound, or evicted."""
        self.reserver.begin()
        standing = {
            held.uid: held for held in self._world.reservations if held.slots and held.term == term
        }
        members = progress.members_by_uid(self._world.snapshot(self._clock())) if standing else {}
        return await self._gate.all(
            partial(self.reserver.amend, self._amended(held, one, members), one.remark)
            if isinstance(one, Placement) and (held := standing.get(one.uid)) is not None
            else partial(self.reserver.create, self._reservation(one, term))
            for one in decided
            if one.gang.origin is Origin.POD_GROUP
        )

    def _reservation(self, decided: Placement | Eviction, term: Term) -> Reservation:
        entries: tuple[Entry, ...] = ()
        slots: tuple[Slots, ...] = ()
        evict: tuple[Uid, ...] = ()
        match decided:
            case Placement(assignments=assignments):
                entries, slots = _entries(assignments), decided.slots
            case Eviction(members=members):
                evict = tuple(member.uid for member in members)
        return Reservation(
            gang=decided.gang,
            uid=decided.uid,
            generation=decided.generation,
            scheduler=self._scheduler,
            term=term,
            reserved_at=self._clock(),
            entries=entries,
            slots=slots,
            evict=evict,
        )

    def _amended(
        self, held: Reservation, placement: Placement, members: Mapping[Uid, Member]
    ) -> Reservation:
        """The standing Reservation with this placement, and without pods that are surely bound."""
        unsure = {member.uid for member in self._world.unsure()}
        entries = tuple(
            entry
            for entry in held.entries
            if (member := members.get(entry.uid)) is not None
            and (member.may_get_a_node or entry.uid in unsure)
        )
        return replace(
            held, entries=(*entries, *_entries(placement.assignments)), slots=placement.slots
        )

    async def _prove(self, term: Term) -> None:
        """Ask who leads, after reserving and before binding.

        Whoever leads next lists the Reservations after taking the Lease. So if the Lease is ours
        still, all that we have made will be found, and carried out by anyone as it stands; if not,
        they may never be, for somebody has planned with the same room.

        Raises:
            Deposed: what this cycle has reserved is given back.
        """
        if (await self._api.read_lease()).term != term:
            await self._gate.all(partial(self.reserver.delete, held) for held in self.reserver.made)
            raise Deposed("the Lease names another term")

    @property
    def is_late(self) -> bool:
        """Whether bindings wait for the watch to show earlier ones."""
        return self._binder.is_late

    async def carry_out(
        self, placements: Sequence[Placement], term: Term
    ) -> tuple[Sequence[Released], Sequence[errors.ApiError]]:
        """Carry out every standing Reservation and bind the gangs of one.

        Answers what was released, or placed anew, and the problems that single calls met.

        Raises:
            Deposed: see ``_prove``; nothing was bound.
        """
        await self._binder.until_current()
        now = self._clock()
        snapshot = self._world.snapshot(now)
        released: list[Released] = []
        stale: list[Reservation] = []
        bindings: list[tuple[GangKey, Assignment]] = []
        kept: set[Uid] = set()
        is_evicting = False
        for reservation, step in await _next_steps(snapshot, term):
            match step:
                case progress.Bind(assignments):
                    bindings.extend((reservation.gang, one) for one in assignments)
                    kept.update((reservation.uid, *(one.uid for one in assignments)))
                case progress.Release(sentence):
                    released.append(Released(reservation, sentence))
                case progress.Discard():
                    stale.append(reservation)
                case progress.Evict():
                    is_evicting = True  # by the Evictor, once the term is proved
                case progress.Trim() | progress.Await():
                    kept.add(reservation.uid)
                case progress.Finish():
                    pass
        singles = [p for p in placements if p.gang.origin is Origin.POD]
        alone = await asyncio.to_thread(verify.upheld, snapshot, singles, kept) if singles else ()
        for placement in alone:
            bindings.extend((placement.gang, one) for one in placement.assignments)
        bindings = [one for one in bindings if not self.refusals.holds_off(one[1].uid, now)]
        if self.reserver.made or bindings or is_evicting:
            await self._prove(term)
        problems = list(await self._gate.all(partial(self.reserver.delete, held) for held in stale))
        problems += await self._free(released, snapshot)
        members = progress.members_by_uid(snapshot) if bindings else {}
        problems += await self._gate.all(
            partial(self._binder.bind, gang, assignment, members[assignment.uid])
            for gang, assignment in bindings
        )
        finished, failed = await self._finish(term)
        return [*self.reserver.replanned, *released, *finished], [*problems, *failed]

    async def _finish(self, term: Term) -> tuple[Sequence[Released], Sequence[errors.ApiError]]:
        """Delete the Reservations that have nothing left to bind; answers of which people hear."""
        snapshot = self._world.snapshot(self._clock())
        unsure = {member.uid for member in self._world.unsure()}
        done: list[Released] = []
        told: list[Released] = []
        for held, step in await _next_steps(snapshot, term):
            if not unsure.isdisjoint(entry.uid for entry in held.entries):
                continue
            if self.refusals.holds_off(held.uid, self._clock()):
                continue
            match step:
                case progress.Finish(sentence):
                    one = Released(held, sentence or "its node will not do any more")
                    done.append(one)
                    told.extend([one] if sentence else [])
                case progress.Trim(rest):
                    why = "its node will not do any more"
                    done.append(Released(held, why, replace(held, entries=rest)))
                case _:
                    pass
        return told, await self._free(done, snapshot)

    async def _free(
        self, ended: Sequence[Released], snapshot: Snapshot
    ) -> Sequence[errors.ApiError]:
        """Delete Reservations, each once no binding that was sent for it can succeed any more.

        A binding may still be under way, of ours or of a leader before us: it names a version of
        the pod, and changing the pod makes it fail. Only then is the room free.
        """
        if not ended:
            return ()
        members = progress.members_by_uid(snapshot)
        kept: set[Uid] = set()

        async def touch(one: Released, member: Member, entry: Entry) -> None:
            is_sure = False
            why = f"its room on {entry.node} was given back: {one.sentence}"
            try:
                is_sure = await self._binder.make_sure(member, why, reason="Released")
            finally:
                if not is_sure:
                    kept.add(one.reservation.uid)

        async def look(one: Released, entry: Entry) -> None:
            """Whom no list shows may have been bound a moment ago, by a leader before us."""
            if await self._binder.look_again(entry.pod, entry.uid) is not None:
                kept.add(one.reservation.uid)

        problems = list(
            await self._gate.all(
                partial(look, one, entry)
                for one in ended
                if one.rest is None
                for entry in one.ended
                if entry.uid not in members and entry.pod.name
            )
        )
        problems += list(
            await self._gate.all(
                partial(touch, one, member, entry)
                for one in ended
                for entry in one.ended
                if (member := members.get(entry.uid)) is not None and member.may_get_a_node
            )
        )
        problems += await self._gate.all(
            partial(self.reserver.delete, one.reservation)
            if one.rest is None
            else partial(self.reserver.amend, one.rest)
            for one in ended
            if one.reservation.uid not in kept
        )
        return problems


async def _next_steps(snapshot: Snapshot, term: Term) -> progress.Steps:
    """What to do about the standing Reservations, worked out beside the event loop."""
    if not snapshot.reservations:
        return ()
    return await asyncio.to_thread(progress.next_steps, snapshot, term)


def _entries(assignments: Sequence[Assignment]) -> tuple[Entry, ...]:
    return tuple(Entry(one.pod, one.uid, one.node) for one in assignments)
