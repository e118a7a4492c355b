"""Writes one claim at a time: its devices before a pod is bound, or that they are free again.

Every write names the version of the claim that was seen. So a claim gets devices once, and a write
of an earlier leader fails once the claim has changed (docs/devices.md).
"""

from collections.abc import Iterable, Sequence
from functools import partial

from ...kube import errors
from ...kube.backoff import Clock
from ...kube.client import Api
from ...kube.codec.devices import ClaimWrite
from ...kube.concurrency import ConcurrencyLimit
from ...model.cluster import PodReservation, Reservation
from ...model.decisions import Assignment
from ...model.devices.claims import (
    FINALIZER,
    ClaimAllocation,
    Consumer,
    DeviceClaim,
    DeviceResult,
)
from ...model.keys import GangKey, Uid
from ...state.cluster_state import ClusterState


class ClaimWriter:
    """Allocates the claims of pods that are to be bound, and frees those of pods that are not."""

    def __init__(
        self, state: ClusterState, api: Api, limit: ConcurrencyLimit, clock: Clock
    ) -> None:
        self._state = state
        self._api = api
        self._refusals = state.refusals
        self._limit = limit
        self._clock = clock

    async def allocate(self, bindings: Sequence[tuple[GangKey, Assignment]]) -> frozenset[GangKey]:
        """Write the devices of all claims; returns the gangs of which some claim lacks them.

        No pod of these gangs may be bound in this cycle.

        Raises:
            errors.Unavailable: the API server is away.
        """
        lacking: set[GangKey] = set()
        await self._limit.all(
            partial(self._allocate, gang, assignment, allocation, lacking)
            for gang, assignment in bindings
            for allocation in assignment.claims
        )
        return frozenset(lacking)

    async def _allocate(
        self,
        gang: GangKey,
        assignment: Assignment,
        allocation: ClaimAllocation,
        lacking: set[GangKey],
    ) -> None:
        """Write the devices of one claim, unless it has them; ``lacking`` gets its gang if not."""
        claim = self._state.devices.claim(assignment.pod.namespace, allocation.claim)
        results = None if claim is None else _missing_results(claim, allocation)
        if claim is None or results is None or not self._has_classes(claim):
            lacking.add(gang)  # the next cycle sees the Reservation as lost
            return
        if any(consumer.uid == assignment.uid for consumer in claim.consumers):
            return
        is_done = False
        if not self._refusals.holds_off(assignment.uid, self._clock()):
            what = f"allocation of claim {claim.key}"
            with self._refusals.backing_off_on_refusal(assignment.uid, gang, what, self._clock):
                await self._write(claim, assignment, results)
                is_done = True
        if not is_done:
            lacking.add(gang)

    def _has_classes(self, claim: DeviceClaim) -> bool:
        """Whether the classes of a claim exist, whose configuration is copied into it."""
        known = self._state.devices.classes_by_name()
        return all(request.device_class in known for request in claim.requests)

    async def _write(
        self, claim: DeviceClaim, assignment: Assignment, results: tuple[DeviceResult, ...]
    ) -> None:
        """Protect a claim from deletion, then write its devices and its consumer."""
        if FINALIZER not in claim.finalizers:
            claim = await self._api.protect_claim(claim, protected=True)
            self._state.learn_claim(claim)
        write = ClaimWrite(
            results,
            assignment.node,
            Consumer(assignment.uid, assignment.pod.name),
            self._state.devices.classes_by_name(),
        )
        self._state.learn_claim(await self._api.allocate(claim, write))

    async def free(self, reservation: Reservation, entries: Iterable[PodReservation]) -> bool:
        """Take the devices of these pods back, and make writes that were sent before fail.

        None of the pods may be bound any more. Returns whether that is certain.

        Raises:
            errors.Unavailable: the API server is away.
        """
        freed = True
        for entry in entries:
            for allocation in entry.claims:
                name = allocation.claim
                claim = self._state.devices.claim(reservation.gang.namespace, name)
                if claim is None or not _is_ours(claim, allocation, entry.uid):
                    continue
                is_done = False
                what = f"giving back the devices of claim {claim.key}"
                uid, gang = reservation.uid, reservation.gang
                with self._refusals.backing_off_on_refusal(uid, gang, what, self._clock):
                    await self._free(claim, entry.uid)
                    is_done = True
                freed = freed and is_done
        return freed

    async def free_orphaned(self) -> None:
        """Take back the devices of waiting pods whose Reservation is gone.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        await self._limit.all(
            partial(self._free_orphaned, claim, member.uid, member.gang)
            for claim, member in list(self._state.devices.orphaned())
            if not self._refusals.holds_off(member.uid, now)
        )

    async def _free_orphaned(self, claim: DeviceClaim, pod: Uid, gang: GangKey) -> None:
        what = f"giving back the devices of claim {claim.key}"
        with self._refusals.backing_off_on_refusal(pod, gang, what, self._clock):
            await self._free(claim, pod)

    async def _free(self, claim: DeviceClaim, pod: Uid) -> None:
        """Remove a pod from the consumers of a claim; without any, its devices are free.

        A claim without devices is changed all the same: an allocation that an earlier leader sent
        names the version before, and fails.
        """
        try:
            if claim.is_allocated:
                others = [consumer for consumer in claim.consumers if consumer.uid != pod]
                claim = await self._api.leave_claim(claim, others)
                self._state.learn_claim(claim)
                if others:
                    return
            protected = FINALIZER not in claim.finalizers
            self._state.learn_claim(await self._api.protect_claim(claim, protected=protected))
        except errors.Gone:
            self._state.forget_claim(claim)


def _is_ours(claim: DeviceClaim, allocation: ClaimAllocation, pod: Uid) -> bool:
    """Whether a Reservation gave a claim its devices or its consumer, or may yet do so."""
    if claim.uid != allocation.uid:
        return False  # that claim is gone, and its devices are free
    if claim.allocated is None or any(consumer.uid == pod for consumer in claim.consumers):
        return True
    return {*claim.allocated} == {*allocation.results}


def _missing_results(
    claim: DeviceClaim, allocation: ClaimAllocation
) -> tuple[DeviceResult, ...] | None:
    """The devices to write into a claim; none if it has them; None if it cannot get them."""
    if claim.uid != allocation.uid or claim.terminating:
        return None
    if claim.allocated is None:
        return allocation.results or None
    is_same = not allocation.results or {*claim.allocated} == {*allocation.results}
    return () if is_same else None
