"""The commit: a gang's placement is written down, then bound; its room is freed if it fails.

Preconditions of each call make it safe against crashes and past leaders; docs/decisions/0005 says
why they are enough. Standing Reservations take the same path as new ones.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..filters.volume_choice import BIND_SECONDS
from ..kube.backoff import REFUSED_SECONDS, Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..kube.leader_election import Deposed, assert_leader
from ..model.cluster import Member, PodReservation, Reservation, Snapshot
from ..model.decisions import Assignment, Claim, Eviction, Placement, Released, RolloutLimits
from ..model.keys import POD, GangKey, LeaderTerm, Uid
from ..reporting.metrics import Metrics
from ..state.cluster_state import ClusterState
from ..verify import plan_checks
from . import progress
from . import steps as step_lists
from .adoption import Adoption
from .binding import Binder, VolumeBinder
from .devices.claim_writer import ClaimWriter
from .devices.extended_claims import ExtendedClaims
from .eviction import NO_LIMITS, Evictor, PendingEviction
from .queue_lifecycle import QueueLifecycle
from .recovery import Recovery
from .release import Releaser
from .reservations import ReservationWriter, entries_for, reservation_for, roles_for
from .start_records import StartRecords


class Commit:
    """Reserves, binds, evicts and releases; every method may be interrupted at any call."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        scheduler: str,
        clock: Clock,
        in_flight: int,
        predecessor_resigned: Callable[[], bool],
        leads: Callable[[LeaderTerm], bool],
        preempts: bool = False,
        metrics: Metrics,
        limits: RolloutLimits = NO_LIMITS,
        volume_seconds: float = BIND_SECONDS,
    ) -> None:
        """``scheduler`` is the name in our Reservations; ``in_flight`` limits concurrent calls.

        Claims of a gang must be bound ``volume_seconds`` after its Reservation.

        ``predecessor_resigned`` is as of ``Recovery``. ``leads`` says whether this replica still
        leads in a term, as far as it knows. Without ``preempts``, claims are given up.
        """
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._leads = leads
        self._preempts = preempts
        self._clock = clock
        self._limit = ConcurrencyLimit(in_flight)
        self._refusals = state.refusals
        self._binder = Binder(state, api, clock)
        self._volumes = VolumeBinder(state, api, clock)
        self._volume_seconds = volume_seconds
        self._claims = ClaimWriter(state, api, self._limit, clock)
        self.extended_claims = ExtendedClaims(state, api, self._limit, clock)
        self._writer = ReservationWriter(state, api, clock)
        self._releaser = Releaser(
            state,
            self._writer,
            self._binder,
            self._claims,
            volumes=self._volumes,
            limit=self._limit,
            clock=clock,
        )
        self._adoption = Adoption(state, api, self._writer, self._limit, clock)
        self.recovery = Recovery(
            state,
            self._adoption,
            self._binder,
            self._releaser,
            self._claims,
            volumes=self._volumes,
            limit=self._limit,
            clock=clock,
            predecessor_resigned=predecessor_resigned,
        )
        self.evictor = Evictor(
            state,
            api,
            give_up=self._give_up,
            clock=clock,
            in_flight=in_flight,
            metrics=metrics,
            limits=limits,
        )
        self.queues = QueueLifecycle(state, api, limit=self._limit, clock=clock)
        self.records = StartRecords(state, api, scheduler=scheduler, limit=self._limit, clock=clock)
        self.done: Sequence[Reservation] = ()  # of this cycle: nothing is left to bind or free

    @property
    def is_late(self) -> bool:
        """Whether bindings wait for the watch to show earlier ones, or claims for a cycle."""
        return self._binder.is_late or self.evictor.is_capped

    async def reserve(
        self, decisions: Sequence[Placement | Eviction | Claim], term: LeaderTerm
    ) -> None:
        """Write down every decision before the first pod of its gang is bound or evicted."""
        self._writer.begin()
        for decision in decisions:
            if isinstance(decision, Claim):
                self.evictor.begin(decision)
        await self._limit.all(
            partial(self._writer.delete, reservation) for reservation in self._writer.unneeded()
        )
        standing = {
            reservation.uid: reservation
            for reservation in self._state.reservations
            if reservation.slots and reservation.term == term
        }
        now = self._clock()
        queues = [declared.queue for declared in self._state.queues]
        members = progress.members_by_uid(self._state.snapshot(now)) if standing else {}
        await self._limit.all(
            partial(
                self._writer.amend,
                self._amended(reservation, decision, members),
                decision.remark,
            )
            if isinstance(decision, Placement)
            and (reservation := standing.get(decision.uid)) is not None
            else partial(
                self._writer.create,
                reservation_for(
                    decision, scheduler=self._scheduler, term=term, now=now, queues=queues
                ),
            )
            for decision in decisions
            if _needs_reservation(decision)
        )

    def _amended(
        self, reservation: Reservation, placement: Placement, members: Mapping[Uid, Member]
    ) -> Reservation:
        """The standing Reservation with this placement, without entries that are bound or gone."""
        unconfirmed = {member.uid for member in self._state.pods.unconfirmed_bindings()}

        def stays(entry: PodReservation) -> bool:
            if (member := members.get(entry.uid)) is None:
                return bool(entry.pod.name) and not self._releaser.is_gone(entry.uid)
            return member.may_get_a_node or entry.uid in unconfirmed

        entries = (*filter(stays, reservation.entries), *entries_for(placement.assignments))
        arrivals = (a.uid for a in placement.assignments if a.fills_slot)
        charged = (*arrivals, *reservation.charged) if reservation.record is not None else ()
        volumes = {choice.claim: choice for choice in (*reservation.volumes, *placement.volumes)}
        return replace(
            reservation,
            entries=entries,
            charged=charged,
            roles=(*reservation.roles, *roles_for(placement.assignments)),
            slots=placement.slots,
            volumes=tuple(volumes[claim] for claim in sorted(volumes)),
        )

    async def execute(
        self, placements: Sequence[Placement], term: LeaderTerm
    ) -> Sequence[Released]:
        """Carry out every standing Reservation, and bind the gangs with one pod.

        The steps are computed once before binding and once after; then ``delete_done`` is due.
        Returns the Reservations that were released, or placed again. A call that the API server
        refuses is tried again later.

        Raises:
            errors.Unavailable: the API server is away.
            Deposed: see ``_assert_leader`` and ``_bind``.
        """
        await self._binder.wait_for_watch()
        snapshot = self._state.snapshot(self._clock())
        steps = await self._next_steps(snapshot, term)
        bindings = await self._due_bindings(steps, placements, snapshot)
        discarded = step_lists.discarded(steps)
        evictable = step_lists.evictable(steps)
        choices = [
            (gang, choice)
            for gang, choice in step_lists.choices(steps)
            if not self._refusals.holds_off(Uid(choice.uid), snapshot.taken_at)
        ]
        if self._writer.created or bindings or discarded or evictable or choices:
            await self._assert_leader(term)
        await self._limit.all(
            partial(self._writer.delete, reservation) for reservation in discarded
        )
        released = step_lists.releases(steps)
        self._back_off_failures(steps)
        await self._releaser.release(released, snapshot)
        await self._limit.all(partial(self._volumes.bind, gang, choice) for gang, choice in choices)
        await self._bind_all(bindings, steps, snapshot, term)
        bound = {assignment.uid for _, assignment in bindings}
        return [*self._writer.replanned, *released, *await self._finish(evictable, bound, term)]

    def _back_off_failures(self, steps: progress.Steps) -> None:
        """Plan members again later whose claims got no volume, less and less often."""
        now = self._clock()
        for gang, uid, sentence in step_lists.failures(steps):
            if not self._refusals.holds_off(uid, now):
                self._refusals.back_off(uid, gang, sentence, seconds=REFUSED_SECONDS, now=now)

    def next_late_volume(self) -> float | None:
        """The seconds until the claims of a gang are late; None if there are no such claims."""
        now = self._clock()
        waits = (
            reservation.reserved_at + self._volume_seconds - now
            for reservation in self._state.reservations
            if reservation.volumes
        )
        return min((wait for wait in waits if wait > 0), default=None)

    async def _due_bindings(
        self, steps: progress.Steps, placements: Sequence[Placement], snapshot: Snapshot
    ) -> Sequence[tuple[GangKey, Assignment]]:
        """The bindings that Reservations still need, and valid bindings of gangs with one pod."""
        bindings = [*step_lists.bindings(steps)]
        singles = [p for p in placements if not _needs_reservation(p)]
        if singles:
            going_on = step_lists.uids_going_on(steps)
            valid = await asyncio.to_thread(plan_checks.upheld, snapshot, singles, going_on)
            bindings += [(p.gang, assignment) for p in valid for assignment in p.assignments]
        now = snapshot.taken_at
        return [
            (gang, assignment)
            for gang, assignment in bindings
            if not self._refusals.holds_off(assignment.uid, now)
        ]

    async def _assert_leader(self, term: LeaderTerm) -> None:
        """Check that this replica leads, after reserving and before binding.

        The next leader lists the Reservations after it takes the Lease. So if the Lease is still
        ours, the next leader will find all Reservations that we have made, and can carry them out
        as they stand. Otherwise they may never be carried out, because another leader has planned
        with the same room.

        Raises:
            Deposed: another replica leads; the Reservations of this cycle are deleted.
        """
        try:
            await assert_leader(self._api, term)
        except Deposed:
            await self._limit.all(
                partial(self._writer.delete, reservation) for reservation in self._writer.created
            )
            raise

    async def _bind_all(
        self,
        bindings: Sequence[tuple[GangKey, Assignment]],
        steps: progress.Steps,
        snapshot: Snapshot,
        term: LeaderTerm,
    ) -> None:
        if not bindings:
            return
        members = progress.members_by_uid(snapshot)
        lacking = {*await self._claims.allocate(step_lists.bindings(steps))}
        named = await self.extended_claims.name(
            [(gang, members[own.uid]) for gang, own in bindings if gang not in lacking], lacking
        )
        unstarted = await self._unstarted(step_lists.relied_on(steps))
        due = [
            (gang, *_current(assignment, members[assignment.uid], named))
            for gang, assignment in bindings
            if gang not in unstarted and gang not in lacking
        ]
        starting = {start.gang.key: start for start in step_lists.starts(steps, snapshot, members)}
        stopped: set[GangKey] = set()

        async def bind(gang: GangKey, assignment: Assignment, member: Member) -> None:
            start = starting.pop(gang, None)
            if start is not None and not start.suffices(self._binder.fitting(start.members)):
                stopped.add(gang)  # others took its room while it waited for its turn
            if gang not in stopped:
                await self._bind(term, gang, assignment, member)

        await self._limit.all(partial(bind, *binding) for binding in due)

    async def _unstarted(self, relied_on: Mapping[GangKey, Member]) -> Collection[GangKey]:
        """The gangs whose repair must wait, because the bound member that it relies on may be lost.

        The watch may show a loss late. So that member is read after the Reservation of the repair
        is written. If it still counts as bound, the gang had started when the repair was written
        down.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now, started = self._clock(), set[GangKey]()

        async def read(gang: GangKey, member: Member) -> None:
            what = f"reading pod {member.key}, before other members are replaced"
            with self._refusals.backing_off_on_refusal(member.uid, gang, what, self._clock):
                if await self._binder.is_bound(member):
                    started.add(gang)
                self._refusals.forget(member.uid)

        await self._limit.all(
            partial(read, gang, member)
            for gang, member in relied_on.items()
            if not self._refusals.holds_off(member.uid, now)
        )
        return relied_on.keys() - started

    async def _bind(
        self, term: LeaderTerm, gang: GangKey, assignment: Assignment, member: Member
    ) -> None:
        """Bind a member, unless the term ended while the calls before had no answer.

        Raises:
            Deposed: the term has ended; the next leader carries the Reservations out.
        """
        if not self._leads(term):
            raise Deposed("the term ended while pods were bound")
        what = f"pod {assignment.pod}: looking at its binding"
        with self._refusals.backing_off_on_refusal(assignment.uid, gang, what, self._clock):
            await self._binder.bind(gang, assignment, member)

    async def _finish(
        self, evictable: Mapping[Uid, Member], bound: Collection[Uid], term: LeaderTerm
    ) -> Sequence[Released]:
        """Evict members that were evictable before and still are, and release what has ended.

        A claim that has ended pods stands until the cycle after its last binding, because the
        report tells its victims what they have lost while it stands. ``bound`` has the pods that
        this cycle has bound.

        Returns the Reservations to report. ``delete_done`` deletes those in ``done``.
        """
        snapshot = self._state.snapshot(self._clock())
        steps = await self._next_steps(snapshot, term)
        unconfirmed = {member.uid for member in self._state.pods.unconfirmed_bindings()}
        unreported = _begun_claims(steps, bound, snapshot)
        confirmed = tuple(
            (reservation, step)
            for reservation, step in steps
            if reservation.uid not in unreported
            and unconfirmed.isdisjoint(entry.uid for entry in reservation.entries)
        )
        evictions = [
            PendingEviction(
                reservation,
                tuple(evictable[m.uid] for m in step.members if m.uid in evictable),
                step.begun if isinstance(step, progress.Preempt) else (),
            )
            for reservation, step in steps
            if isinstance(step, progress.Evict | progress.Preempt)
        ]
        given_up = [pending for pending in evictions if pending.reservation.victims is None]
        await self.evictor.evict(given_up, snapshot)
        claims = [pending for pending in evictions if pending.reservation.victims is not None]
        await self.evictor.preempt(claims, snapshot)
        await self._releaser.release(step_lists.ended(confirmed), snapshot)
        self.done = step_lists.done(confirmed)
        return step_lists.announced(confirmed)

    async def _give_up(self, reservation: Reservation, sentence: str) -> None:
        """Delete a Reservation that evicts, once no eviction that was sent for it can succeed.

        Raises:
            errors.Unavailable: the API server is away.
        """
        snapshot = self._state.snapshot(self._clock())
        await self._releaser.release([Released(reservation, sentence)], snapshot)

    async def delete_done(self) -> None:
        """Delete the Reservations in ``done``; no report waits for it.

        Raises:
            errors.Unavailable: the API server is away.
        """
        await self._limit.all(
            partial(self._writer.delete, reservation) for reservation in self.done
        )

    async def _next_steps(self, snapshot: Snapshot, term: LeaderTerm) -> progress.Steps:
        """The steps of all standing Reservations, computed in a thread.

        A Reservation whose change was refused a moment ago is not changed; its pods are bound.
        """
        if not snapshot.reservations:
            return ()
        inherited, now = self._adoption.inherited, self._clock()
        steps = await asyncio.to_thread(
            progress.next_steps,
            snapshot,
            term,
            inherited,
            preempts=self._preempts,
            volume_seconds=self._volume_seconds,
        )
        return tuple(
            (
                reservation,
                step_lists.without_writes(step)
                if self._refusals.holds_off(reservation.uid, now)
                else step,
            )
            for reservation, step in steps
        )


def _current(
    assignment: Assignment, member: Member, named: Mapping[Uid, str]
) -> tuple[Assignment, Member]:
    """The binding of a pod, in the version that naming its claim gave it, if it was named."""
    version = named.get(member.uid)
    if version is None:
        return assignment, member
    return replace(assignment, version=version), replace(member, version=version)


def _begun_claims(
    steps: progress.Steps, bound: Collection[Uid], snapshot: Snapshot
) -> Collection[Uid]:
    """The claims that have ended pods, and of which this cycle has bound a pod."""
    claims = [
        reservation
        for reservation, _ in steps
        if reservation.victims and any(entry.uid in bound for entry in reservation.entries)
    ]
    members = progress.members_by_uid(snapshot) if claims else {}
    return {
        claim.uid
        for claim in claims
        for victim in claim.victims or ()
        if progress.has_begun(victim, members)
    }


def _needs_reservation(decision: Placement | Eviction | Claim) -> bool:
    """Whether a decision is written down first: not if one binding carries all of it out."""
    if decision.gang.kind != POD or isinstance(decision, Claim):
        return True
    if not isinstance(decision, Placement):
        return False
    return bool(decision.volumes) or any(a.claims for a in decision.assignments)
