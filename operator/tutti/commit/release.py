"""Reservations that end, once no binding or eviction that was sent for them can succeed any more.

Separate from the commit, which says what ends. A call may still be under way, of ours or of a
leader before us: it names a version of the pod, and changing the pod makes it fail. Only then is
the room free, or a member safe (docs/decisions/0005).
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import partial

from ..kube.backoff import CONFLICT_SECONDS, Clock
from ..kube.concurrency import ConcurrencyLimit
from ..model.cluster import Member, PodReservation, Snapshot
from ..model.decisions import Released
from ..model.keys import GangKey, Uid
from ..model.lease import LeaderTerm
from ..planning.partial_release import is_evictable
from ..state.cluster_state import ClusterState
from . import progress
from .binding import Binder
from .reservations import ReservationWriter

UNCLAIMED = "a leader before may have reserved room for it, for a PodGroup that is gone"


class Releaser:
    """Deletes Reservations, and shortens those that go on."""

    def __init__(
        self,
        state: ClusterState,
        reserver: ReservationWriter,
        binder: Binder,
        gate: ConcurrencyLimit,
        clock: Clock,
    ) -> None:
        self._state = state
        self._reserver = reserver
        self._binder = binder
        self._refusals = state.refusals
        self._gate = gate
        self._clock = clock
        self._gone: set[Uid] = set()  # reserved pods that were looked for, and do not exist
        self._term: LeaderTerm = ""
        self._versions: dict[Uid, str] = {}  # of pods to be changed, as the term began

    def is_gone(self, uid: Uid) -> bool:
        """Whether a reserved pod is known not to exist any more."""
        return uid in self._gone

    async def look_for_absent(self, others: Sequence[tuple[GangKey, PodReservation]]) -> None:
        """Look at reserved pods that no list shows, until they are known to be gone; and at others.

        A leader before us may have bound one a moment ago; how much room it has is known only then.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        absent = [
            (held.gang, entry)
            for held in self._state.reservations
            for entry in held.entries
            if entry.pod.name and not self._state.is_known(entry.uid)
        ]
        self._gone &= {entry.uid for _, entry in absent}
        await self._gate.all(
            partial(self._look_for, gang, entry)
            for gang, entry in (*absent, *others)
            if entry.uid not in self._gone and not self._refusals.holds_off(entry.uid, now)
        )

    async def _look_for(self, gang: GangKey, entry: PodReservation) -> None:
        what = f"looking for pod {entry.pod}, which has a Reservation"
        with self._refusals.backing_off_on_refusal(entry.uid, gang, what, self._clock):
            if await self._binder.reread(entry.pod, entry.uid) is None:
                self._gone.add(entry.uid)
            self._refusals.forget(entry.uid)

    def touch_nobody(self, term: LeaderTerm) -> None:
        """Leave ``touch_unclaimed`` nothing to do in this term."""
        self._term, self._versions = term, {}

    async def touch_unclaimed(self, term: LeaderTerm) -> None:
        """Change each waiting pod whose PodGroup does not exist, once in a term.

        A leader before us may be about to bind it: its Reservation may have gone with the PodGroup
        before this term listed any. One that cannot be changed is tried again ever more rarely, and
        stops nobody.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        snapshot = self._state.snapshot(now)
        if term != self._term:
            self._versions = {one.uid: one.version for one in snapshot.strays}
            self._term = term
        if not self._versions:
            return
        same = [
            one
            for one in snapshot.strays
            if one.may_get_a_node and one.version == self._versions.get(one.uid)
        ]
        self._versions = {one.uid: one.version for one in same}
        await self._gate.all(
            partial(self._touch_unclaimed, one)
            for one in same
            if not self._refusals.holds_off(one.uid, now)
        )

    async def _touch_unclaimed(self, member: Member) -> None:
        what = f"changing pod {member.key} as a term begins"
        with self._refusals.backing_off_on_refusal(member.uid, member.gang, what, self._clock):
            said = member.said
            why, reason = said.message or UNCLAIMED, said.reason or "SchedulerError"
            if await self._binder.fence(member, why, reason):
                self._refusals.forget(member.uid)
                return
            why, now = f"{what} met a conflict", self._clock()
            self._refusals.back_off(member.uid, member.gang, why, seconds=CONFLICT_SECONDS, now=now)

    async def free(self, ended: Sequence[Released], snapshot: Snapshot) -> Collection[Uid]:
        """Give back what has ended; answers the Reservations that were kept, to be tried again.

        Raises:
            errors.Unavailable: the API server is away.
        """
        if not ended:
            return ()
        members = progress.members_by_uid(snapshot)
        kept: set[Uid] = set()
        await self._gate.all(
            partial(self._look, one, entry, kept)
            for one in ended
            for entry in one.ended
            if entry.uid not in members and entry.uid not in self._gone and entry.pod.name
        )
        await self._gate.all(
            partial(self._touch, one, entry, member, kept)
            for one in ended
            for entry in one.ended
            if (member := members.get(entry.uid)) is not None and member.may_get_a_node
        )
        await self._gate.all(
            partial(self._spare, one, member, kept)
            for one in ended
            for uid in one.reservation.evict
            if (member := members.get(uid)) is not None and is_evictable(member)
        )
        await self._gate.all(
            partial(self._reserver.delete, one.reservation)
            if one.rest is None
            else partial(self._reserver.amend, one.rest)
            for one in ended
            if one.reservation.uid not in kept
        )
        return kept

    async def _touch(
        self, one: Released, entry: PodReservation, member: Member, kept: set[Uid]
    ) -> None:
        """Change a pod that has no node; its Reservation is kept unless that is sure."""
        is_sure = False
        why = f"its room on {entry.node} was given back: {one.sentence}"
        with self._sparing(one, entry):
            is_sure = await self._binder.fence(member, why, reason="Released")
        if not is_sure:
            kept.add(one.reservation.uid)

    async def _spare(self, one: Released, member: Member, kept: set[Uid]) -> None:
        """Change a pod that stays, so that no eviction sent before can succeed any more."""
        is_sure = False
        held, what = one.reservation, f"keeping pod {member.key}"
        with self._refusals.backing_off_on_refusal(held.uid, held.gang, what, self._clock):
            why = f"not evicted: {one.sentence}"
            is_sure = await self._binder.fence(member, why, reason="NotEvicted")
        if not is_sure:
            kept.add(held.uid)

    async def _look(self, one: Released, entry: PodReservation, kept: set[Uid]) -> None:
        """Whom no list shows may have been bound a moment ago, by a leader before us."""
        is_gone = False
        with self._sparing(one, entry):
            is_gone = await self._binder.reread(entry.pod, entry.uid) is None
        if not is_gone:
            kept.add(one.reservation.uid)

    def _sparing(self, one: Released, entry: PodReservation) -> AbstractContextManager[None]:
        held, what = one.reservation, f"giving back the room of pod {entry.pod}"
        return self._refusals.backing_off_on_refusal(held.uid, held.gang, what, self._clock)
