"""Ends Reservations, once no binding or eviction that was sent for them can succeed.

A call of this or an earlier leader may still be under way. It names a version of the pod, and
changing the pod makes it fail. Only then is the room free, or a member safe (docs/decisions/0005).
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

from ..kube.backoff import Clock
from ..kube.concurrency import ConcurrencyLimit
from ..model.cluster import Member, PodReservation, Reservation, Snapshot
from ..model.decisions import Released
from ..model.keys import GangKey, Uid
from ..model.volumes import ClaimKey, VolumeChoice
from ..planning.partial_release import is_evictable
from ..state.cluster_state import ClusterState
from . import progress
from .binding import Binder, VolumeBinder
from .devices.claim_writer import ClaimWriter
from .reservations import ReservationWriter


class Releaser:
    """Deletes Reservations that end, and shortens Reservations that go on."""

    def __init__(
        self,
        state: ClusterState,
        writer: ReservationWriter,
        binder: Binder,
        claims: ClaimWriter,
        *,
        volumes: VolumeBinder,
        limit: ConcurrencyLimit,
        clock: Clock,
    ) -> None:
        self._state = state
        self._writer = writer
        self._binder = binder
        self._claims = claims
        self._volumes = volumes
        self._refusals = state.refusals
        self._limit = limit
        self._clock = clock
        self._gone: set[Uid] = set()  # reserved pods that were read and do not exist

    def is_gone(self, uid: Uid) -> bool:
        """Whether a reserved pod is known to be gone."""
        return uid in self._gone

    def absent(self) -> Sequence[tuple[GangKey, PodReservation]]:
        """The reserved pods that no list shows and that are not known to be gone.

        An earlier leader may have bound such a pod a moment ago; only reading it shows how much
        room it uses.
        """
        now = self._clock()
        absent = [
            (reservation.gang, entry)
            for reservation in self._state.reservations
            for entry in reservation.entries
            if entry.pod.name and not self._state.pods.is_known(entry.uid)
        ]
        self._gone &= {entry.uid for _, entry in absent}
        return [
            (gang, entry)
            for gang, entry in absent
            if entry.uid not in self._gone and not self._refusals.holds_off(entry.uid, now)
        ]

    async def read(self, pods: Sequence[tuple[GangKey, PodReservation]]) -> None:
        """Read pods that are or were reserved, unless they are known to be gone.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        await self._limit.all(
            partial(self._read_absent, gang, entry)
            for gang, entry in pods
            if entry.uid not in self._gone and not self._refusals.holds_off(entry.uid, now)
        )

    async def _read_absent(self, gang: GangKey, entry: PodReservation) -> None:
        what = f"looking for pod {entry.pod}, which has a Reservation"
        with self._refusals.backing_off_on_refusal(entry.uid, gang, what, self._clock):
            if await self._binder.reread(entry.pod, entry.uid) is None:
                self._gone.add(entry.uid)
            self._refusals.forget(entry.uid)

    async def release(self, ended: Sequence[Released], snapshot: Snapshot) -> Collection[Uid]:
        """Give back what has ended; return the uids of Reservations that stay and are tried again.

        Raises:
            errors.Unavailable: the API server is away.
        """
        if not ended:
            return ()
        members = progress.members_by_uid(snapshot)
        failed: set[Uid] = set()
        await self._limit.all(
            partial(self._read_unlisted, released, entry, failed)
            for released in ended
            for entry in released.ended
            if entry.uid not in members and entry.uid not in self._gone and entry.pod.name
        )
        await self._limit.all(
            partial(self._fence_binding, released, entry, member, failed)
            for released in ended
            for entry in released.ended
            if (member := members.get(entry.uid)) is not None and member.may_get_a_node
        )
        await self._limit.all(
            partial(self._fence_eviction, released, member, failed)
            for released in ended
            for uid in released.reservation.evictable
            if (member := members.get(uid)) is not None and is_evictable(member)
        )
        await self._limit.all(
            partial(self._free_claims, released, members, failed)
            for released in ended
            if released.reservation.uid not in failed
        )
        selected = {  # by choice, because Reservations may share it
            choice: released
            for released in ended
            for choice in released.ended_volumes
            if not choice.volume
        }
        ending = {
            released.reservation.self_uid
            for released in ended
            if released.rest is None and released.reservation.uid not in failed
        }
        await self._limit.all(
            partial(self._unselect, released, choice, ending, failed)
            for choice, released in selected.items()
        )
        await self._limit.all(
            partial(self._writer.delete, released.reservation)
            if released.rest is None
            else partial(self._writer.amend, released.rest)
            for released in ended
            if released.reservation.uid not in failed
        )
        return failed

    async def _read_unlisted(
        self, released: Released, entry: PodReservation, failed: set[Uid]
    ) -> None:
        """Read a pod that no list shows: an earlier leader may have bound it a moment ago."""
        is_gone = False
        with self._backing_off(released.reservation, f"giving back the room of pod {entry.pod}"):
            is_gone = await self._binder.reread(entry.pod, entry.uid) is None
        if not is_gone:
            failed.add(released.reservation.uid)

    async def _fence_binding(
        self, released: Released, entry: PodReservation, member: Member, failed: set[Uid]
    ) -> None:
        """Change a pod without a node; unless that surely worked, its Reservation stays."""
        is_sure = False
        sentence = f"its room on {entry.node} was given back: {released.sentence}"
        with self._backing_off(released.reservation, f"giving back the room of pod {entry.pod}"):
            is_sure = await self._binder.fence(member, sentence, reason="Released")
        if not is_sure:
            failed.add(released.reservation.uid)

    async def _free_claims(
        self, released: Released, members: Mapping[Uid, Member], failed: set[Uid]
    ) -> None:
        """Take back the devices of pods that are not bound; unless that worked, it is tried again.

        The pods of these entries cannot be bound any more.
        """
        unbound = [
            entry
            for entry in released.ended
            if entry.claims and ((m := members.get(entry.uid)) is None or m.node is None)
        ]
        if not await self._claims.free(released.reservation, unbound):
            failed.add(released.reservation.uid)

    async def _fence_eviction(self, released: Released, member: Member, failed: set[Uid]) -> None:
        """Change a pod that stays, so that no eviction sent before can still succeed."""
        is_sure = False
        sentence = f"not evicted: {released.sentence}"
        with self._backing_off(released.reservation, f"keeping pod {member.key}"):
            is_sure = await self._binder.fence(member, sentence, reason="NotEvicted")
        if not is_sure:
            failed.add(released.reservation.uid)

    async def _unselect(
        self,
        released: Released,
        choice: VolumeChoice,
        ending: Collection[Uid | None],
        failed: set[Uid],
    ) -> None:
        """Let no provisioner make a volume any more for a claim that Tutti had provisioned.

        A claim stays as it is if a Reservation has it that is not ``ending``.
        """
        key = ClaimKey(released.reservation.gang.namespace, choice.claim)
        own = released.reservation.self_uid
        if self._state.storage.is_chosen_by_others(key, {*ending, own}):
            return
        is_sure = False
        with self._backing_off(released.reservation, f"releasing claim {choice.claim}"):
            await self._volumes.unselect(released.reservation.gang.namespace, choice)
            is_sure = True
        if not is_sure:
            failed.add(released.reservation.uid)

    def _backing_off(self, reservation: Reservation, what: str) -> AbstractContextManager[None]:
        return self._refusals.backing_off_on_refusal(
            reservation.uid, reservation.gang, what, self._clock
        )
