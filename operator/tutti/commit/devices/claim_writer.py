"""Writes one claim at a time: its devices before a pod is bound, or that they are free again.

Every write names the version of the claim that was seen. So a claim gets devices once, and a write
of an earlier leader fails once the claim has changed (docs/devices.md).
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from ...filters.devices import requests
from ...kube import errors
from ...kube.backoff import Clock
from ...kube.client import Api
from ...kube.codec.devices import ClaimWrite
from ...kube.concurrency import ConcurrencyLimit
from ...model.cluster import Member, PodReservation, Reservation
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
        users: dict[tuple[str, ClaimAllocation], list[tuple[GangKey, Assignment]]] = {}
        for gang, assignment in bindings:
            for allocation in assignment.claims:
                shared = users.setdefault((assignment.pod.namespace, allocation), [])
                shared.append((gang, assignment))
        await self._limit.all(
            partial(self._allocate, allocation, shared, lacking)
            for (_, allocation), shared in users.items()
        )
        return frozenset(lacking)

    async def _allocate(
        self,
        allocation: ClaimAllocation,
        users: Sequence[tuple[GangKey, Assignment]],
        lacking: set[GangKey],
    ) -> None:
        """Write the devices and the users of one claim; ``lacking`` gets their gangs if not."""
        gangs = {gang for gang, _ in users}
        claim = self._state.devices.claim(users[0][1].pod.namespace, allocation.claim)
        results = None if claim is None else _missing_results(claim, allocation)
        known_classes = self._state.devices.classes_by_name()
        if (
            claim is None
            or results is None
            or (results and requests.broken_class(claim, known_classes))
        ):
            lacking |= gangs  # the next cycle sees the Reservation as lost
            return
        known = {consumer.uid for consumer in claim.consumers}
        new = [(gang, assignment) for gang, assignment in users if assignment.uid not in known]
        if not new:
            return
        is_done = False
        gang, first = new[0]
        if not self._refusals.holds_off(first.uid, self._clock()):
            what = f"allocation of claim {claim.key}"
            with self._refusals.backing_off_on_refusal(first.uid, gang, what, self._clock):
                await self._write(claim, [assignment for _, assignment in new], results)
                is_done = True
        if not is_done:
            lacking |= gangs

    async def _write(
        self,
        claim: DeviceClaim,
        users: Sequence[Assignment],
        results: tuple[DeviceResult, ...],
    ) -> None:
        """Protect a claim from deletion, then write its devices and its consumers."""
        if FINALIZER not in claim.finalizers:
            claim = await self._api.protect_claim(claim, protected=True)
            self._state.learn_claim(claim)
        write = ClaimWrite(
            results,
            users[0].node,
            tuple(Consumer(user.uid, user.pod.name) for user in users),
            self._state.devices.classes_by_name(),
        )
        self._state.learn_claim(await self._api.allocate(claim, write))

    async def free(self, reservation: Reservation, entries: Iterable[PodReservation]) -> bool:
        """Take the devices of these pods back, and make writes that were sent before fail.

        None of the pods may be bound any more. Returns whether that is certain.

        Raises:
            errors.Unavailable: the API server is away.
        """
        users: dict[ClaimAllocation, set[Uid]] = {}
        for entry in entries:
            for allocation in entry.claims:
                users.setdefault(allocation, set()).add(entry.uid)
        freed = True
        for allocation, pods in users.items():
            claim = self._state.devices.claim(reservation.gang.namespace, allocation.claim)
            if claim is None or not _is_ours(claim, allocation, pods):
                continue
            is_done = False
            what = f"giving back the devices of claim {claim.key}"
            uid, gang = reservation.uid, reservation.gang
            with self._refusals.backing_off_on_refusal(uid, gang, what, self._clock):
                await self._free(claim, pods)
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
            partial(self._free_orphaned, claim, pods)
            for claim, pods in list(self._state.devices.orphaned())
            if not self._refusals.holds_off(pods[0].uid, now)
        )

    async def _free_orphaned(self, claim: DeviceClaim, pods: Sequence[Member]) -> None:
        what = f"giving back the devices of claim {claim.key}"
        first = pods[0]
        with self._refusals.backing_off_on_refusal(first.uid, first.gang, what, self._clock):
            await self._free(claim, {pod.uid for pod in pods})

    async def _free(self, claim: DeviceClaim, pods: Collection[Uid]) -> None:
        """Remove pods from the consumers of a claim; without any, its devices are free.

        A claim without devices is changed all the same: an allocation that an earlier leader sent
        names the version before, and fails.
        """
        is_changed = False
        try:
            if claim.is_allocated:
                others = [consumer for consumer in claim.consumers if consumer.uid not in pods]
                claim = await self._api.leave_claim(claim, others)
                self._state.learn_claim(claim)
                if others:
                    return
                is_changed = True
            protected = FINALIZER not in claim.finalizers
            self._state.learn_claim(await self._api.protect_claim(claim, protected=protected))
        except errors.Unchangeable:
            # No earlier leader has sent an allocation if the finalizer is not set: it was refused.
            if claim.is_allocated or (FINALIZER in claim.finalizers and not is_changed):
                raise
        except errors.Gone:
            self._state.forget_claim(claim)


def _is_ours(claim: DeviceClaim, allocation: ClaimAllocation, pods: Collection[Uid]) -> bool:
    """Whether a Reservation gave a claim its devices or its consumer, or may yet do so."""
    if claim.uid != allocation.uid:
        return False  # that claim is gone, and its devices are free
    if claim.allocated is None or any(user.uid in pods for user in claim.consumers):
        return True
    return claim.has(allocation.results)


def _missing_results(
    claim: DeviceClaim, allocation: ClaimAllocation
) -> tuple[DeviceResult, ...] | None:
    """The devices to write into a claim; none if it has them; None if it cannot get them."""
    if claim.uid != allocation.uid or claim.terminating:
        return None
    if claim.allocated is None:
        return allocation.results or None
    is_same = not allocation.results or claim.has(allocation.results)
    return () if is_same else None
