"""The commit: a gang's placement is written down, then bound, and freed when nothing can follow.

What makes it safe against crashes and leaders of the past is in the preconditions of each call;
why they suffice is in docs/decisions/0005. Standing Reservations take the same path as new ones.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..kube import errors
from ..kube.backoff import Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..kube.leader_election import Deposed, ask_who_leads
from ..model.cluster import Member, PodReservation, Reservation, SlotReservation, Snapshot
from ..model.decisions import Assignment, Eviction, Placement, Released
from ..model.keys import GangKey, Origin, Uid
from ..model.lease import LeaderTerm
from ..state.cluster_state import ClusterState
from ..verify import plan_checks
from . import progress
from .adoption import Adoption
from .binding import Binder
from .release import Releaser
from .reservations import ReservationWriter

VANISHED = "its Reservation was deleted by somebody else"
WHOLE = "the gang is not given up any more"


class Commit:
    """Adopts, reserves, binds and frees; every method may be cut short at any call."""

    def __init__(
        self, state: ClusterState, api: Api, *, scheduler: str, clock: Clock, in_flight: int
    ) -> None:
        """``scheduler`` says whose Reservations these are; ``in_flight`` caps calls at a time."""
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._clock = clock
        self._gate = ConcurrencyLimit(in_flight)
        self._refusals = state.refusals
        self._binder = Binder(state, api, clock)
        self.reserver = ReservationWriter(state, api, clock)
        self._freer = Releaser(state, self.reserver, self._binder, self._gate, clock)
        self._adoption = Adoption(state, api, self.reserver, self._gate, clock)
        self.over: Sequence[Reservation] = ()  # of this cycle, with nothing left to bind or free
        self.evicted: Mapping[Uid, Member] = {}  # who is to be, as it was before the Lease was read

    async def adopt(self, term: LeaderTerm, *, follows_resignation: bool = False) -> None:
        """Begin a term: sign the standing Reservations, so that nobody before can delete them.

        The cluster state must have been listed since the term began. One that the API server will
        not have signed keeps its room, and is tried again, ever more rarely. A leader that has
        resigned has no binding on its way: then no pod is touched for that.

        Raises:
            errors.ApiError: the API server is away, or nobody knows who leads; adopt again.
            Deposed: somebody else leads by now, and signs what was signed once more.
        """
        await self._adoption.begin(term)
        if follows_resignation:
            self._freer.touch_nobody(term)

    async def settle(self, term: LeaderTerm) -> None:
        """Ask about the bindings that were never answered, and sign what could not be signed.

        Raises:
            errors.ApiError: as of ``adopt``; or room may be taken of which nothing is known, and
                nobody could be asked.
            Deposed: as of ``adopt``.
        """
        now = self._clock()
        await self._gate.all(
            partial(self._ask, member)
            for member in self._state.unconfirmed_bindings()
            if not self._refusals.holds_off(member.uid, now)
        )
        await self._adoption.retry(term)
        await self._freer.look_for_absent(self._adoption.left)
        self._adoption.left.clear()
        # Who was bound meanwhile is read at the first look, and known at the second.
        await self._free_vanished()
        left = await self._free_vanished()
        if not all(map(self._adoption.is_signed, left)):
            raise errors.Unavailable(f"{VANISHED}, and not all of its pods can be looked at")
        self._adoption.forget(left)  # one object stops nobody for ever
        await self._freer.touch_unclaimed(term)

    async def _free_vanished(self) -> Sequence[Reservation]:
        """Forget what went and cannot be bound any more; answers of which that is not sure."""
        vanished = self._adoption.vanished()
        if not vanished:
            return ()
        snapshot = self._state.snapshot(self._clock())
        kept = await self._freer.free([Released(held, VANISHED) for held in vanished], snapshot)
        self._adoption.forget(held for held in vanished if held.uid not in kept)
        return [held for held in vanished if held.uid in kept]

    async def _ask(self, member: Member) -> None:
        what = f"pod {member.key}: settling its binding"
        with self._refusals.backing_off_on_refusal(member.uid, member.gang, what, self._clock):
            await self._binder.fence(member, "the binding got no answer")

    async def reserve(self, decided: Sequence[Placement | Eviction], term: LeaderTerm) -> None:
        """Write down what was decided for every gang before its first pod is bound, or evicted."""
        self.reserver.begin()
        standing = {
            held.uid: held for held in self._state.reservations if held.slots and held.term == term
        }
        members = progress.members_by_uid(self._state.snapshot(self._clock())) if standing else {}
        await self._gate.all(
            partial(self.reserver.amend, self._amended(held, one, members), one.remark)
            if isinstance(one, Placement) and (held := standing.get(one.uid)) is not None
            else partial(self.reserver.create, self._reservation(one, term))
            for one in decided
            if one.gang.origin is Origin.POD_GROUP
        )

    def _reservation(self, decided: Placement | Eviction, term: LeaderTerm) -> Reservation:
        entries: tuple[PodReservation, ...] = ()
        slots: tuple[SlotReservation, ...] = ()
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
        """The standing Reservation with this placement, without who is surely bound, or gone."""
        unsure = {member.uid for member in self._state.unconfirmed_bindings()}

        def stays(entry: PodReservation) -> bool:
            if (member := members.get(entry.uid)) is None:
                return bool(entry.pod.name) and not self._freer.is_gone(entry.uid)
            return member.may_get_a_node or entry.uid in unsure

        entries = (*filter(stays, held.entries), *_entries(placement.assignments))
        return replace(held, entries=entries, slots=placement.slots)

    async def _prove(self, term: LeaderTerm) -> None:
        """Ask who leads, after reserving and before binding.

        Whoever leads next lists the Reservations after taking the Lease. So if the Lease is ours
        still, all that we have made will be found, and carried out by anyone as it stands; if not,
        they may never be, for somebody has planned with the same room.

        Raises:
            Deposed: what this cycle has reserved is given back.
        """
        try:
            await ask_who_leads(self._api, term)
        except Deposed:
            await self._gate.all(partial(self.reserver.delete, held) for held in self.reserver.made)
            raise

    @property
    def is_late(self) -> bool:
        """Whether bindings wait for the watch to show earlier ones."""
        return self._binder.is_late

    async def execute(
        self, placements: Sequence[Placement], term: LeaderTerm
    ) -> Sequence[Released]:
        """Carry out every standing Reservation and bind the gangs of one; then ``clear`` is due.

        Answers what was released, or placed anew. What the API server refuses is held off.

        Raises:
            errors.Unavailable: the API server is away.
            Deposed: see ``_prove``; nothing was bound.
        """
        await self._binder.wait_for_watch()
        now = self._clock()
        snapshot = self._state.snapshot(now)
        released: list[Released] = []
        stale: list[Reservation] = []
        bindings: list[tuple[GangKey, Assignment]] = []
        kept: set[Uid] = set()
        evicted: dict[Uid, Member] = {}
        steps = await self._next_steps(snapshot, term)
        for reservation, step in steps:
            match step:
                case progress.Bind(assignments):
                    bindings.extend((reservation.gang, one) for one in assignments)
                    kept.update((reservation.uid, *(one.uid for one in assignments)))
                case progress.Release(sentence):
                    released.append(Released(reservation, sentence))
                case progress.Discard():
                    stale.append(reservation)
                case progress.Evict(members):  # by the Evictor, once the term is proved
                    evicted.update((member.uid, member) for member in members)
                case progress.Trim() | progress.Await():
                    kept.add(reservation.uid)
                case progress.Finish() | progress.Clear():
                    pass
        singles = [p for p in placements if p.gang.origin is Origin.POD]
        alone = (
            await asyncio.to_thread(plan_checks.upheld, snapshot, singles, kept) if singles else ()
        )
        for placement in alone:
            bindings.extend((placement.gang, one) for one in placement.assignments)
        bindings = [one for one in bindings if not self._refusals.holds_off(one[1].uid, now)]
        if self.reserver.made or bindings or stale or evicted:
            await self._prove(term)
        self.evicted = evicted
        await self._gate.all(partial(self.reserver.delete, held) for held in stale)
        await self._freer.free(released, snapshot)
        seen = progress.members_by_uid(snapshot) if bindings else {}
        unstarted = await self._unstarted(steps)
        await self._gate.all(
            partial(self._bind, gang, assignment, seen[assignment.uid])
            for gang, assignment in bindings
            if gang not in unstarted
        )
        return [*self.reserver.replanned, *released, *await self._finish(term)]

    async def _unstarted(self, steps: progress.Steps) -> Collection[GangKey]:
        """The gangs whose repair must wait: the bound member that it relies on may be lost by now.

        The watch may show a loss late. So that member is read once the Reservation of the repair
        stands: if it still counts as bound, the gang had started when the repair was written down.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now, started = self._clock(), set[GangKey]()
        relied_on = {
            held.gang: step.relies_on
            for held, step in steps
            if isinstance(step, progress.Bind) and step.relies_on is not None
        }

        async def read(gang: GangKey, member: Member) -> None:
            what = f"reading pod {member.key}, before other members are replaced"
            with self._refusals.backing_off_on_refusal(member.uid, gang, what, self._clock):
                if await self._binder.is_bound(member):
                    started.add(gang)
                self._refusals.forget(member.uid)

        await self._gate.all(
            partial(read, gang, member)
            for gang, member in relied_on.items()
            if not self._refusals.holds_off(member.uid, now)
        )
        return relied_on.keys() - started

    async def give_up(self, held: Reservation, sentence: str) -> None:
        """Delete a Reservation that evicts, once no eviction that was sent for it can succeed.

        Raises:
            errors.Unavailable: the API server is away.
        """
        snapshot = self._state.snapshot(self._clock())
        await self._freer.free([Released(held, sentence)], snapshot)

    async def clear(self) -> None:
        """Delete what is ``over``; no report waits for it.

        Raises:
            errors.Unavailable: the API server is away.
        """
        await self._gate.all(partial(self.reserver.delete, held) for held in self.over)

    async def _next_steps(self, snapshot: Snapshot, term: LeaderTerm) -> progress.Steps:
        """What to do about the standing Reservations, worked out beside the event loop.

        One of which a change was refused a moment ago stays as it is; its pods are bound.
        """
        if not snapshot.reservations:
            return ()
        of_the_past, now = self._adoption.found, self._clock()
        found = await asyncio.to_thread(progress.next_steps, snapshot, term, of_the_past)
        return tuple(
            (held, _unchanged(step) if self._refusals.holds_off(held.uid, now) else step)
            for held, step in found
        )

    async def _bind(self, gang: GangKey, assignment: Assignment, member: Member) -> None:
        what = f"pod {assignment.pod}: looking at its binding"
        with self._refusals.backing_off_on_refusal(assignment.uid, gang, what, self._clock):
            await self._binder.bind(gang, assignment, member)

    async def _finish(self, term: LeaderTerm) -> Sequence[Released]:
        """Delete the Reservations that have nothing left to bind, or cannot be carried out.

        Answers of which people hear; what is ``over`` is left to ``clear``.
        """
        snapshot = self._state.snapshot(self._clock())
        unsure = {member.uid for member in self._state.unconfirmed_bindings()}
        done: list[Released] = []
        told: list[Released] = []
        over: list[Reservation] = []
        for held, step in await self._next_steps(snapshot, term):
            if not unsure.isdisjoint(entry.uid for entry in held.entries):
                continue
            match step:
                case progress.Clear():
                    over.append(held)
                case progress.Finish(sentence):
                    why = WHOLE if held.evict else "its node will not do any more"
                    one = Released(held, sentence or why)
                    done.append(one)
                    told.extend([one] if sentence else [])
                case progress.Release(sentence):
                    done.append(Released(held, sentence))
                    told.append(Released(held, sentence))
                case progress.Trim(rest):
                    why = "its node will not do any more"
                    done.append(Released(held, why, replace(held, entries=rest)))
                case _:
                    pass
        await self._freer.free(done, snapshot)
        self.over = over
        return told


def _unchanged(step: progress.Step) -> progress.Step:
    return step if isinstance(step, progress.Bind | progress.Evict) else progress.Await()


def _entries(assignments: Sequence[Assignment]) -> tuple[PodReservation, ...]:
    return tuple(PodReservation(one.pod, one.uid, one.node) for one in assignments)
