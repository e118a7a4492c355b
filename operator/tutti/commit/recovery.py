"""What comes before each plan: Reservations of earlier leaders, and calls without an answer.

A plan gives away room that looks free. So each pod that an earlier cycle or leader may have bound
without our knowledge is read first, or is fenced so that it cannot be bound (docs/decisions/0005).
"""

from collections.abc import Callable, Sequence
from functools import partial

from ..kube import errors
from ..kube.backoff import CONFLICT_SECONDS, Clock
from ..kube.concurrency import ConcurrencyLimit
from ..model.cluster import Member, Reservation
from ..model.decisions import Released
from ..model.keys import GangKey, LeaderTerm, Uid
from ..model.volumes import ClaimKey, VolumeChoice
from ..state.cluster_state import ClusterState
from .adoption import Adoption
from .binding import Binder, VolumeBinder
from .devices.claim_writer import ClaimWriter
from .release import Releaser

DELETED = "another client deleted its Reservation"
UNCLAIMED = "a leader before may have reserved room for it, for a PodGroup that is gone"


class Recovery:
    """Adopts Reservations, and settles what may have been bound; it may stop after any call."""

    def __init__(
        self,
        state: ClusterState,
        adoption: Adoption,
        binder: Binder,
        releaser: Releaser,
        claims: ClaimWriter,
        *,
        volumes: VolumeBinder,
        limit: ConcurrencyLimit,
        clock: Clock,
        predecessor_resigned: Callable[[], bool],
    ) -> None:
        """``predecessor_resigned`` says whether the leader before gave the Lease back by itself."""
        self._state = state
        self._adoption = adoption
        self._binder = binder
        self._releaser = releaser
        self._claims = claims
        self._volumes = volumes
        self._limit = limit
        self._clock = clock
        self._predecessor_resigned = predecessor_resigned
        self._refusals = state.refusals
        self._begun: LeaderTerm = ""
        self._term: LeaderTerm = ""  # whose pods to fence and to read are known
        self._departed: dict[Uid, Member] = {}  # pods that are still to be read
        self._unclaimed: dict[Uid, str] = {}  # versions of pods that are still to be fenced

    async def begin(self, term: LeaderTerm) -> None:
        """Begin a term: sign the standing Reservations, so that no earlier leader can delete them.

        The cluster state must have been listed since the term began. If the API server refuses to
        have a Reservation signed, its room stays reserved, and it is tried again, less and less
        often. A leader that has resigned has no binding under way; then no pod needs to be fenced
        for that.

        Raises:
            errors.ApiError: the API server is away, or does not say which replica leads; begin
                again.
            Deposed: another replica leads by now, and signs the same Reservations again.
        """
        if term != self._begun:
            self._state.pods.follow_departures()
            self._begun = term
        await self._adoption.begin(term)
        if self._predecessor_resigned():
            self._term, self._unclaimed, self._departed = term, {}, {}
            self._state.pods.take_departed()

    async def recover(self, term: LeaderTerm) -> None:
        """Find out what may have been bound without our knowledge, or make that impossible.

        Raises:
            errors.ApiError: as of ``begin``; also if pods may use room without our knowledge, and
                could not be read.
            Deposed: as of ``begin``.
        """
        await self._confirm_bindings()
        await self._release_claims()
        await self._adoption.retry(term)
        await self.catch_up()
        await self._fence_unclaimed(term)
        await self._claims.free_orphaned()

    async def catch_up(self) -> None:
        """Look for reserved pods that have disappeared, with or without their Reservations.

        Watches show more while calls wait. So this looks again after its own calls, and it comes
        last before a Snapshot for a plan: if there is nothing new, it does not wait.

        Raises:
            errors.Unavailable: as of ``recover``.
        """
        looked_for: set[Uid] = set()
        while True:
            self._adoption.observe()
            absent = [pod for pod in self._releaser.absent() if pod[1].uid not in looked_for]
            removed = self._adoption.removed_entries
            if not (absent or removed or self._adoption.deleted()):
                return
            looked_for.update(entry.uid for _, entry in absent)
            await self._releaser.read([*absent, *removed])
            removed.clear()
            await self._release_deleted()

    async def _confirm_bindings(self) -> None:
        """Fence the bindings that got no answer, or learn that they succeeded."""
        now = self._clock()
        await self._limit.all(
            partial(self._confirm_binding, member)
            for member in self._state.pods.unconfirmed_bindings()
            if not self._refusals.holds_off(member.uid, now)
        )

    async def _confirm_binding(self, member: Member) -> None:
        what = f"pod {member.key}: settling its binding"
        with self._refusals.backing_off_on_refusal(member.uid, member.gang, what, self._clock):
            await self._binder.fence(member, "the binding got no answer")

    async def _release_claims(self) -> None:
        """Let no volume be made for claims whose Reservation another client has deleted."""
        now = self._clock()
        await self._limit.all(
            partial(self._release_claim, key, choice)
            for key, choice in self._state.storage.abandoned()
            if not self._refusals.holds_off(Uid(choice.uid), now)
        )

    async def _release_claim(self, key: ClaimKey, choice: VolumeChoice) -> None:
        gang = GangKey(key.namespace, key.name)
        what = f"claim {key.name}: removing its selected node"
        with self._refusals.backing_off_on_refusal(Uid(choice.uid), gang, what, self._clock):
            await self._volumes.unselect(key.namespace, choice)

    async def _release_deleted(self) -> None:
        """Fence the pods of inherited Reservations that other clients have deleted.

        Raises:
            errors.Unavailable: as of ``recover``.
        """
        # A pod that was bound meanwhile is read in the first pass, and is known in the second.
        await self._try_to_release_deleted()
        remaining = await self._try_to_release_deleted()
        if not all(map(self._adoption.is_signed, remaining)):
            raise errors.Unavailable(f"{DELETED}, and not all of its pods can be looked at")
        self._adoption.forget(remaining)  # one object must not stop all other gangs for ever

    async def _try_to_release_deleted(self) -> Sequence[Reservation]:
        """Forget Reservations whose pods can no longer be bound; return the others."""
        deleted = self._adoption.deleted()
        if not deleted:
            return ()
        snapshot = self._state.snapshot(self._clock())
        failed = await self._releaser.release(
            [Released(reservation, DELETED) for reservation in deleted], snapshot
        )
        self._adoption.forget(
            reservation for reservation in deleted if reservation.uid not in failed
        )
        return [reservation for reservation in deleted if reservation.uid in failed]

    async def _fence_unclaimed(self, term: LeaderTerm) -> None:
        """Fence each waiting pod whose PodGroup does not exist, once in a term.

        An earlier leader may be about to bind it: its Reservation may have gone with the PodGroup
        before this term listed Reservations. A pod that has disappeared since the term began may
        have been bound by then, so it is read. A pod that cannot be changed or read is tried again,
        less and less often, and stops no other pod.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        snapshot = self._state.snapshot(now)
        if term != self._term:
            self._unclaimed = {pod.uid: pod.version for pod in snapshot.strays}
            self._departed = {pod.uid: pod for pod in self._state.pods.take_departed()}
            self._term = term
        if not (self._unclaimed or self._departed):
            return
        unfenced = [
            pod
            for pod in snapshot.strays
            if pod.may_get_a_node and pod.version == self._unclaimed.get(pod.uid)
        ]
        self._unclaimed = {pod.uid: pod.version for pod in unfenced}
        calls = (
            *((self._read_departed, pod) for pod in self._departed.values()),
            *((self._fence_unclaimed_pod, pod) for pod in unfenced),
        )
        await self._limit.all(
            partial(call, pod) for call, pod in calls if not self._refusals.holds_off(pod.uid, now)
        )

    async def _read_departed(self, pod: Member) -> None:
        what = f"looking for pod {pod.key}, which disappeared as a term began"
        with self._refusals.backing_off_on_refusal(pod.uid, pod.gang, what, self._clock):
            await self._binder.reread(pod.key, pod.uid)
            self._refusals.forget(pod.uid)
            del self._departed[pod.uid]

    async def _fence_unclaimed_pod(self, pod: Member) -> None:
        what = f"changing pod {pod.key} as a term begins"
        with self._refusals.backing_off_on_refusal(pod.uid, pod.gang, what, self._clock):
            sentence, reason = (
                pod.scheduled_condition.message or UNCLAIMED,
                pod.scheduled_condition.reason or "SchedulerError",
            )
            if await self._binder.fence(pod, sentence, reason):
                self._refusals.forget(pod.uid)
                return
            sentence, now = f"{what} met a conflict", self._clock()
            self._refusals.back_off(pod.uid, pod.gang, sentence, seconds=CONFLICT_SECONDS, now=now)
