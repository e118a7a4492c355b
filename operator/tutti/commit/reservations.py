"""Writes one Reservation at a time: creates, changes, signs or deletes it, and reads the answer.

The commit decides which room is reserved and given back, and when.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from math import ceil, floor

from ..gang.quantities import quantity
from ..kube import errors
from ..kube.backoff import CONFLICT_SECONDS, REFUSED_SECONDS, Clock
from ..kube.client import Api
from ..model.cluster import ClaimGrounds, PodReservation, Reservation
from ..model.decisions import Assignment, Claim, Eviction, Placement, Released
from ..model.keys import LeaderTerm, Uid
from ..model.queues import Queue
from ..planning.queueing import claim_rounds
from ..state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

NO_DEVICES = (
    "the CRD of Reservations has no field claims in placement: apply the CRDs of this version of "
    "Tutti"
)
NO_CLAIMS = "the CRD of Reservations has no field claim: apply the CRDs of this version of Tutti"
NO_VOLUMES = "the CRD of Reservations has no field volumes: apply the CRDs of this version of Tutti"
LARGER = "LargerThanDeclared"  # than its role's template; such a member is placed again


def reservation_for(
    decision: Placement | Eviction | Claim,
    *,
    scheduler: str,
    term: LeaderTerm,
    now: float,
    queues: Iterable[Queue] = (),
) -> Reservation:
    """The Reservation that writes down a decision about one gang; ``queues`` are all of them."""
    placement = decision if isinstance(decision, Placement) else None
    eviction = decision if isinstance(decision, Eviction) else None
    claim = decision if isinstance(decision, Claim) else None
    start = placement or claim
    return Reservation(
        gang=decision.gang,
        uid=decision.uid,
        generation=decision.generation,
        scheduler=scheduler,
        term=term,
        reserved_at=now,
        entries=entries_for(start.assignments) if start else (),
        roles=roles_for(start.assignments) if start else (),
        slots=placement.slots if placement else (),
        evict=tuple(member.uid for member in eviction.members) if eviction else (),
        record=start.record if start else None,
        victims=claim_rounds.victims_of(claim) if claim else None,
        grounds=_grounds(claim, queues) if claim else None,
        volumes=start.volumes if start else (),
    )


def _grounds(claim: Claim, queues: Iterable[Queue]) -> ClaimGrounds:
    """Why a claim ends its victims; a cost that is not proved least is above its bound."""
    cost = ceil(claim.cost * 1000)
    bound = cost if claim.is_proved else floor(claim.bound * 1000)
    record = claim.record if claim.by_guarantee else None
    if record is None:
        return ClaimGrounds(claim.by_guarantee, cost, bound)
    requested = {name for start in record.minimum for name, _ in start.requests.amounts}
    guarantee = tuple(
        (name, quantity(name, amount))
        for queue in queues
        if queue.name == record.queue
        for name, amount in queue.guaranteed
        if amount and name in requested
    )
    return ClaimGrounds(claim.by_guarantee, cost, bound, guarantee)


def entries_for(assignments: Sequence[Assignment]) -> tuple[PodReservation, ...]:
    """One entry for each assignment."""
    return tuple(
        PodReservation(assignment.pod, assignment.uid, assignment.node, assignment.claims)
        for assignment in assignments
    )


def roles_for(assignments: Iterable[Assignment]) -> tuple[tuple[Uid, str], ...]:
    """The role with which the pod of each assignment joins its gang."""
    return tuple(sorted((assignment.uid, assignment.role) for assignment in assignments))


def with_roles(reservation: Reservation, earlier: Reservation | None = None) -> Reservation:
    """The Reservation with one role of each pod that it names; that of ``earlier`` never changes.

    If its record has no roles, it says no role of any pod.
    """
    if reservation.record is None or not reservation.record.has_roles:
        return replace(reservation, roles=())
    roles = dict(reservation.roles) | dict(earlier.roles if earlier is not None else ())
    named = {*reservation.pods} & roles.keys()
    return replace(reservation, roles=tuple(sorted((uid, roles[uid]) for uid in named)))


class ReservationWriter:
    """Writes Reservations into the API server, and the results into the cluster state."""

    def __init__(self, state: ClusterState, api: Api, clock: Clock) -> None:
        self._state = state
        self._api = api
        self._clock = clock
        self.created: list[Reservation] = []  # in this cycle
        self.replanned: list[Released] = []  # in this cycle; these are reported
        self.deleted: list[Reservation] = []  # or emptied, until the recovery has noted them

    def begin(self) -> None:
        """Begin a cycle, in which nothing has been created yet."""
        self.created.clear()
        self.replanned.clear()

    def unneeded(self) -> Sequence[Reservation]:
        """Spent Reservations whose record no longer counts, unless just refused."""
        now = self._clock()
        return [
            reservation
            for reservation in self._state.reservations.unneeded_records()
            if not self._state.refusals.holds_off(reservation.uid, now)
        ]

    async def create(self, reservation: Reservation) -> None:
        """Write a Reservation down: from then on every leader carries it out.

        If a spent Reservation has the record of the gang's start, that object gets the room. If its
        record is of an earlier start, it must be deleted first.
        """
        spent = self._state.reservations.spent(reservation.uid)
        if spent is not None and not self._state.reservations.needs_record(spent):
            why = "of an earlier start is not deleted yet"
            self._back_off(reservation, f"the Reservation {reservation.uid} {why}")
            return
        with self._backing_off(reservation, "Reservation"):
            try:
                if spent is None:
                    created = await self._api.reserve(with_roles(reservation))
                else:
                    start = replace(
                        reservation,
                        record=spent.record,
                        charged=spent.charged,
                        version=spent.version,
                        self_uid=spent.self_uid,
                    )
                    created = await self._api.amend(with_roles(start, spent))
            except errors.Conflict:
                # The gang has a Reservation already: the watch will show it, and it is carried out.
                why = "exists already" if spent is None else "has changed"
                self._back_off(reservation, f"a Reservation named {reservation.uid} {why}")
            except errors.Gone:
                logger.info("gang %s: its namespace or PodGroup is gone", reservation.gang)
                if spent is not None:
                    self._state.reservations.drop(spent)
            else:
                self.created.append(created)
                self._state.reservations.put(created)
                if reservation.victims is not None and created.victims is None:
                    self._back_off_member(reservation, NO_CLAIMS)  # it has no room, and is released
                elif _has_devices(reservation) and not _has_devices(created):
                    self._back_off_member(reservation, NO_DEVICES)  # it is released
                elif reservation.volumes and not created.volumes:
                    self._back_off_member(reservation, NO_VOLUMES)  # likewise
                else:
                    self._state.refusals.forget(reservation.uid)

    async def amend(self, reservation: Reservation, remark: str = "") -> None:
        """Change a standing Reservation; if it has changed meanwhile, that is tried again later.

        The next leader lists and then signs it, and after that no earlier leader can change it. So
        the change is refused, or the next leader finds it and carries it out.
        """
        with self._backing_off(reservation, "Reservation"):
            try:
                self._state.reservations.put(await self._api.amend(self._charging(reservation)))
            except errors.Conflict:
                self._back_off(reservation, f"the Reservation {reservation.uid} has changed")
            except errors.Gone:
                self._state.reservations.drop(reservation)
            else:
                self._state.refusals.forget(reservation.uid)
                if remark:
                    logger.warning("gang %s: %s", reservation.gang, remark)
                    self.replanned.append(Released(reservation, remark, reservation, LARGER))

    async def adopt(self, reservation: Reservation, term: LeaderTerm) -> None:
        """Sign a standing Reservation, so that no earlier leader can delete it."""
        with self._backing_off(reservation, "adoption of its Reservation"):
            try:
                self._state.reservations.put(await self._api.adopt(reservation, term))
            except errors.Gone:
                self._state.reservations.drop(reservation)
            else:
                self._state.refusals.forget(reservation.uid)
                logger.info(
                    "gang %s: adopted the Reservation that %s signed",
                    reservation.gang,
                    reservation.term,
                )

    async def delete(self, reservation: Reservation) -> None:
        """Delete a Reservation as it was seen; if it has changed, that is tried again later.

        While the record of its start still counts, it is emptied instead.
        """
        spent = None
        with self._backing_off(reservation, "deletion of its Reservation"):
            try:
                with suppress(errors.Gone):
                    if self._state.reservations.needs_record(reservation):
                        victims = None if reservation.victims is None else ()
                        empty = replace(
                            reservation,
                            entries=(),
                            slots=(),
                            evict=(),
                            victims=victims,
                            grounds=None,
                            volumes=(),
                        )
                        spent = await self._api.amend(self._charging(empty))
                    else:
                        await self._api.release(reservation)
            except errors.Conflict as answer:
                logger.info("gang %s: its Reservation stays for now: %s", reservation.gang, answer)
                if reservation in self._state.reservations:
                    # No change explains the refusal, so no event will tell when it ends.
                    self._back_off(reservation, f"deletion of its Reservation refused: {answer}")
            else:
                self.deleted.append(reservation)
                if spent is None:
                    self._state.reservations.drop(reservation)
                else:
                    self._state.reservations.put(spent)
                self._state.refusals.forget(reservation.uid)

    def _charging(self, reservation: Reservation) -> Reservation:
        """The Reservation to write, with the pods that leave its placement in ``charged``.

        They are charged while they hold room. If none is left, the names of pods that are gone
        stay: a record without any pod is one of an older version. If pods join the placement, its
        earlier pods are named first, because ``charged`` has the order of joining. Pods that
        ``reservation`` names take the places of slots, and come before all others.
        """
        before = self._state.reservations.current(reservation)
        if before is None or before.record is None:
            return with_roles(reservation)
        held = {entry.uid for entry in reservation.entries}
        pods, earlier = self._state.pods, {entry.uid for entry in before.entries}
        counting = {uid for uid in earlier - held if pods.may_hold_room(uid)}
        counting |= {uid for uid in before.charged if uid in held or pods.holds_room(uid)}
        if held - earlier:
            counting |= earlier & held
        counting |= {*reservation.charged} - {*before.charged}
        named = dict.fromkeys((*reservation.charged, *before.charged, *pods.by_age(earlier)))
        charged = [uid for uid in named if uid in counting]
        charged = charged or [uid for uid in named if uid not in held]
        return with_roles(replace(reservation, charged=tuple(charged)), before)

    def _backing_off(self, reservation: Reservation, what: str) -> AbstractContextManager[None]:
        return self._state.refusals.backing_off_on_refusal(
            reservation.uid, reservation.gang, what, self._clock
        )

    def _back_off(self, reservation: Reservation, sentence: str) -> None:
        self._state.refusals.back_off(
            reservation.uid,
            reservation.gang,
            sentence,
            seconds=CONFLICT_SECONDS,
            now=self._clock(),
        )

    def _back_off_member(self, reservation: Reservation, sentence: str) -> None:
        """Back off a member: the release of the Reservation ends what is noted for the gang."""
        uids = (entry.uid for entry in reservation.entries)
        self._state.refusals.back_off(
            next(uids, reservation.uid),
            reservation.gang,
            sentence,
            seconds=REFUSED_SECONDS,
            now=self._clock(),
        )


def _has_devices(reservation: Reservation) -> bool:
    """Whether a Reservation gives devices to claims."""
    return any(entry.claims for entry in reservation.entries)
