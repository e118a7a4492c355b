"""Writes start records that are missing: never written, without a queue, or deleted by others.

A plan obeys the records, so they are written before it. Each record is one object. It is created
once, changed once if its gang belongs to a Queue only later, and changed when more of its members
have succeeded, or if an older version wrote no roles. After a crash, the next cycle writes what is
still missing.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ..kube import errors
from ..kube.backoff import Clock
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit
from ..model.cluster import Reservation
from ..model.keys import LeaderTerm, Uid
from ..planning.queued_gangs import (
    UnrecordedGang,
    completed_records,
    outdated_records,
    unrecorded_gangs,
)
from ..state.cluster_state import ClusterState
from .reservations import with_roles

logger = logging.getLogger(__name__)

OLD_CRD = "the CRD of Reservations lacks fields: apply the CRDs of this version of Tutti"
DROPPED_SECONDS = 60.0  # until a field that an old CRD dropped is written again
WRITES_PER_CYCLE = 500  # so that thousands of gangs do not delay the next plan for long


class StartRecords:
    """Writes missing records as Reservations; a refused one is tried again, and stops no plan."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        scheduler: str,
        limit: ConcurrencyLimit,
        clock: Clock,
    ) -> None:
        """``scheduler`` is the name in our Reservations."""
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._limit = limit
        self._clock = clock
        # By gang: until when a record is not written again of which an old CRD dropped a field.
        self._dropped: dict[Uid, float] = {}

    async def write_missing(self, term: LeaderTerm) -> None:
        """Write the missing records, at most ``WRITES_PER_CYCLE`` of them.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        self._dropped = {uid: until for uid, until in self._dropped.items() if now < until}
        missing = [
            reservation
            for reservation in (*self._deleted(term), *self._incomplete(term, now))
            if not self._state.refusals.holds_off(reservation.uid, now)
        ]
        await self._limit.all(
            partial(self._write, reservation) for reservation in missing[:WRITES_PER_CYCLE]
        )

    def _deleted(self, term: LeaderTerm) -> Iterator[Reservation]:
        """Records that other clients have deleted while pods of the start held room."""
        for lost in self._state.reservations.lost_records():
            entries = self._state.pods.by_age(entry.uid for entry in lost.entries)
            named = dict.fromkeys((*lost.charged, *entries))
            charged = tuple(filter(self._state.pods.holds_room, named))
            again = replace(
                lost,
                term=term,
                entries=(),
                slots=(),
                evict=(),
                version="",
                self_uid=None,
                charged=charged,
            )
            yield with_roles(again)

    def _incomplete(self, term: LeaderTerm, now: float) -> Iterator[Reservation]:
        """Records of gangs that started before there were Queues, and records to be completed."""
        snapshot = self._state.snapshot(now)
        # No two records name one pod: those that ``_deleted`` writes again count here.
        records = (*snapshot.start_records, *self._state.reservations.lost_records())
        for unrecorded in unrecorded_gangs(replace(snapshot, start_records=records)):
            yield self._reservation(unrecorded, term, now)
        completed = {reservation.uid: reservation for reservation in completed_records(snapshot)}
        yield from completed.values()
        for reservation in outdated_records(snapshot):
            is_ours = reservation.is_spent or reservation.term == term
            if (
                is_ours
                and reservation.uid not in completed
                and reservation.uid not in self._dropped
                and (not reservation.is_spent or self._state.reservations.needs_record(reservation))
            ):
                yield reservation

    def _reservation(self, unrecorded: UnrecordedGang, term: LeaderTerm, now: float) -> Reservation:
        gang = unrecorded.gang
        record = Reservation(
            gang=gang.key,
            uid=gang.uid,
            generation=gang.generation,
            scheduler=self._scheduler,
            term=term,
            reserved_at=now,
            entries=(),
            record=unrecorded.record,
            charged=unrecorded.pods,
            roles=tuple((member.uid, member.role) for member in gang.members),
        )
        return with_roles(record)

    async def _write(self, reservation: Reservation) -> None:
        what = "record of its start"
        with self._state.refusals.backing_off_on_refusal(
            reservation.uid, reservation.gang, what, self._clock
        ):
            try:
                write = self._api.amend if reservation.version else self._api.reserve
                written = await write(reservation)
            except (errors.Conflict, errors.Gone):
                return  # the watch will show what has changed, or that its namespace is gone
            self._state.reservations.put(written)
            self._state.refusals.forget(reservation.uid)
            if (written.record, written.roles) != (reservation.record, reservation.roles):
                logger.warning("gang %s: %s", reservation.gang, OLD_CRD)
                self._dropped[reservation.uid] = self._clock() + DROPPED_SECONDS
                return
            logger.info(
                "gang %s: wrote down that it runs: %s", reservation.gang, reservation.record
            )
